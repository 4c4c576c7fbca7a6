//! What a Namespace is, and the sentence about one that is not empty.

use std::fmt::Write as _;

use occ_api::ids::NamespaceId;
use occ_api::time::Timestamp;
use occ_api::types::{self, NamespaceStatus};
use time::OffsetDateTime;

use crate::drivers::types::Tenant;
use crate::iam::Kind;

/// Longest message of an error, in code points.
const MESSAGE_CODE_POINTS_MAX: usize = 256;
/// Room kept for "and N more.".
const MORE_CODE_POINTS: usize = 24;

/// A live Namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Namespace {
    /// Its id.
    pub id: NamespaceId,
    /// Unique in the Installation, tombstones included.
    pub name: String,
    /// A namespace of the compute that the operator made.
    pub existing_namespace: Option<String>,
    /// Where it stands.
    pub status: NamespaceStatus,
    /// When it was asked for.
    pub created_at: OffsetDateTime,
}

/// A Namespace to be inserted as `provisioning`.
#[derive(Debug, Clone)]
pub(crate) struct NewNamespace {
    pub(crate) id: NamespaceId,
    pub(crate) name: String,
    pub(crate) existing_namespace: Option<String>,
    pub(crate) created_at: OffsetDateTime,
}

impl From<NewNamespace> for Namespace {
    fn from(new: NewNamespace) -> Self {
        Self {
            id: new.id,
            name: new.name,
            existing_namespace: new.existing_namespace,
            status: NamespaceStatus::Provisioning,
            created_at: new.created_at,
        }
    }
}

impl Namespace {
    /// The resource as clients see it.
    #[must_use]
    pub fn to_wire(&self) -> types::Namespace {
        types::Namespace {
            id: self.id.clone(),
            name: self.name.clone(),
            existing_namespace: self.existing_namespace.clone(),
            status: self.status,
            created_at: Timestamp::from(self.created_at),
        }
    }

    /// The tenant as a compute sees it.
    #[must_use]
    pub fn to_driver(&self) -> Tenant {
        Tenant {
            namespace_id: self.id.to_string(),
            name: self.name.clone(),
            existing_namespace: self.existing_namespace.clone(),
        }
    }

    /// May new Configurations, Agents and policy be made in it?
    #[must_use]
    pub fn accepts_contents(&self) -> bool {
        matches!(self.status, NamespaceStatus::Provisioning | NamespaceStatus::Ready)
    }

    /// Does anything still change by itself?
    #[must_use]
    pub fn is_settled(&self) -> bool {
        matches!(self.status, NamespaceStatus::Ready | NamespaceStatus::Failed)
    }
}

/// Kinds that keep a Namespace from being deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ContentKind {
    Agent,
    Configuration,
    Secret,
}

impl ContentKind {
    pub(super) fn iam_kind(self) -> Kind {
        match self {
            Self::Agent => Kind::Agent,
            Self::Configuration => Kind::Configuration,
            Self::Secret => Kind::Secret,
        }
    }

    fn plural(self) -> &'static str {
        match self {
            Self::Agent => "Agents",
            Self::Configuration => "Configurations",
            Self::Secret => "Secrets",
        }
    }
}

/// What is left of one kind. `ids` holds only what the caller may read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Content {
    pub(crate) kind: ContentKind,
    pub(crate) count: u64,
    pub(crate) ids: Vec<String>,
}

/// Names the kinds with their counts, then ids of each kind in turn while there is room.
pub(crate) fn not_empty_message(contents: &[Content]) -> String {
    let mut text = String::from("The Namespace is not empty: ");
    for (index, content) in contents.iter().enumerate() {
        let separator = if index == 0 { "" } else { ", " };
        let _ = write!(text, "{separator}{} {}", content.count, content.kind.plural());
    }
    let total: u64 = contents.iter().map(|content| content.count).sum();
    let mut named = 0_u64;
    let rounds = contents.iter().map(|content| content.ids.len()).max().unwrap_or(0);
    'named: for round in 0..rounds {
        for id in contents.iter().filter_map(|content| content.ids.get(round)) {
            let separator = if named == 0 { ": " } else { ", " };
            if text.chars().count() + separator.len() + id.len() + MORE_CODE_POINTS > MESSAGE_CODE_POINTS_MAX
            {
                break 'named;
            }
            text.push_str(separator);
            text.push_str(id);
            named += 1;
        }
    }
    match total - named.min(total) {
        0 => text.push('.'),
        _ if named == 0 => text.push('.'),
        more => {
            let _ = write!(text, " and {more} more.");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(kind: ContentKind, count: u64, ids: usize) -> Content {
        let ids = (0..ids).map(|n| format!("agt_00000000-0000-4000-8000-{n:012}")).collect();
        Content { kind, count, ids }
    }

    #[test]
    fn names_what_fits_and_counts_the_rest() {
        let text = not_empty_message(&[
            content(ContentKind::Agent, 900, 8),
            content(ContentKind::Configuration, 2, 2),
            content(ContentKind::Secret, 1, 0),
        ]);
        assert!(
            text.starts_with("The Namespace is not empty: 900 Agents, 2 Configurations, 1 Secrets: agt_"),
            "{text}"
        );
        assert!(text.ends_with(" and 900 more."), "{text}");
        assert!(text.chars().count() <= MESSAGE_CODE_POINTS_MAX, "{text}");
    }

    #[test]
    fn hides_ids_that_the_caller_may_not_read() {
        let text = not_empty_message(&[content(ContentKind::Secret, 3, 0)]);
        assert_eq!(text, "The Namespace is not empty: 3 Secrets.");
    }
}

//! A deploy that is refused because the Agent's own principal lacks a grant: the exact next commands.

use occ_api::ids::{IdentityId, SecretId};
use serde_json::Value;

use crate::client::Call;
use crate::failure::Failure;
use crate::output::cell_text;
use crate::session::Session;

/// Adds the missing binding as the next command, when that is what the failure is about.
pub(super) fn explain(session: &Session, failure: Failure) -> Failure {
    if failure.code() != "FORBIDDEN" {
        return failure;
    }
    match missing(failure.message()) {
        Some((principal, secret)) => {
            let hint = next_commands(
                &principal,
                &secret,
                role(session).as_deref(),
                &session.namespace_flag(),
            );
            failure.hint(hint)
        }
        None => failure,
    }
}

/// `The Agent's principal spn_… lacks operate on Secret sec_….`
fn missing(message: &str) -> Option<(IdentityId, SecretId)> {
    if !message.contains("lacks operate on Secret") {
        return None;
    }
    let mut words =
        message.split(|character: char| character.is_whitespace() || matches!(character, '.' | ','));
    let principal = words.find_map(|word| IdentityId::parse(word).ok())?;
    let secret = words.find_map(|word| SecretId::parse(word).ok())?;
    Some((principal, secret))
}

/// A Role of the Namespace that grants exactly this, if the credential may look.
fn role(session: &Session) -> Option<String> {
    let roles = session
        .api()
        .ok()?
        .list(&Call::get(session.in_namespace("iam/roles").ok()?), None)
        .ok()?;
    let grants_operate = |role: &&Value| {
        let permissions = role.get("permissions").and_then(Value::as_array);
        matches!(permissions.map(Vec::as_slice), Some([only])
            if only.get("action").and_then(Value::as_str) == Some("operate")
                && only.get("resourceKind").and_then(Value::as_str) == Some("secret"))
    };
    roles
        .iter()
        .find(grants_operate)?
        .get("id")?
        .as_str()
        .map(str::to_owned)
}

fn next_commands(principal: &IdentityId, secret: &SecretId, role: Option<&str>, flag: &str) -> String {
    let mut text = "let the Agent's principal use the Secret, then deploy again:\n".to_owned();
    let role = match role {
        Some(role) => cell_text(role),
        None => {
            text.push_str(&format!(
                "  ROLE=$(occ iam role create{flag} -o name -f - <<'EOF'\n\
                 name: Secret user\n\
                 permissions:\n\
                 - action: operate\n  \
                   resourceKind: secret\n\
                 EOF\n\
                 )\n"
            ));
            "$ROLE".to_owned()
        }
    };
    text.push_str(&format!(
        "  occ iam access-binding create{flag} -f - <<EOF\n\
         subjectKind: identity\n\
         subjectId: {principal}\n\
         roleId: {role}\n\
         resourceKind: secret\n\
         resourceId: {secret}\n\
         EOF"
    ));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPN: &str = "spn_0b7e54c1-91d2-4c3f-8a60-5d2f7be1c904";
    const SEC: &str = "sec_3f0c2a9e-7b1d-4c55-9a51-0c8e6f2d4b10";

    #[test]
    fn the_ids_are_read_from_the_sentence() {
        let message = format!("The Agent's principal {SPN} lacks operate on Secret {SEC}.");
        let (principal, secret) = missing(&message).unwrap();
        assert_eq!((principal.as_str(), secret.as_str()), (SPN, SEC));
        assert!(missing("The request is forbidden.").is_none());
        assert!(missing(&format!("The Agent's principal x lacks operate on Secret {SEC}.")).is_none());
    }

    #[test]
    fn with_a_role_the_binding_is_the_only_command() {
        let (principal, secret) = (IdentityId::parse(SPN).unwrap(), SecretId::parse(SEC).unwrap());
        let hint = next_commands(&principal, &secret, Some("role_1"), " --namespace ns_1");
        assert!(!hint.contains("role create"), "{hint}");
        assert!(
            hint.contains("access-binding create --namespace ns_1 -f -"),
            "{hint}"
        );
        assert!(
            hint.contains(&format!("subjectId: {SPN}\nroleId: role_1\n")),
            "{hint}"
        );
        assert!(hint.contains(&format!("resourceId: {SEC}")), "{hint}");
        assert!(next_commands(&principal, &secret, None, "").contains("roleId: $ROLE"));
    }
}

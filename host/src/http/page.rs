//! Pages of a list: `limit`, and a signed cursor that names the last row.
//!
//! A cursor binds the operation, its path parameters and its filters; it grants nothing.
//! Neither parameter present: the whole list, refused above [`WHOLE_LIST_MAX`] rows.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use occ_api::error::{ErrorCode, FieldCode};
use serde::Serialize;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::request::Request;
use super::respond::Reply;
use crate::app::AuthKey;
use crate::error::{Error, Result};

/// Most items of a page.
pub const LIMIT_MAX: u32 = 200;
/// Items of a page when only a cursor is given, and of lists that always page.
pub const LIMIT_DEFAULT: u32 = 50;
/// Most items of a page of audit events, work and plugins.
pub const LIMIT_ALWAYS_PAGED_MAX: u32 = 100;
/// Most items of an answer without paging.
pub const WHOLE_LIST_MAX: u32 = 5_000;
/// Most characters of a cursor.
pub const CURSOR_CHARS_MAX: usize = 512;
/// Bytes of the cursor's signature.
const SIGNATURE_BYTES: usize = 16;
/// Between sort key and id inside a cursor; in neither of them.
const SEPARATOR: char = '\n';

/// Which part of a list is wanted.
#[derive(Debug, Clone)]
pub struct PageRequest {
    /// Items wanted; absent when the whole list is.
    pub limit: Option<u32>,
    /// The last row of the page before: its sort key and its id.
    pub after: Option<(String, String)>,
    binder: Binder,
}

impl PageRequest {
    pub(super) fn read(request: &Request, always: bool) -> Result<Self> {
        let binder = Binder::new(request);
        let after = match request.query("cursor") {
            Some(cursor) => Some(binder.open(cursor).ok_or_else(cursor_refused)?),
            None => None,
        };
        let given = request.query("limit").and_then(|limit| limit.parse::<u32>().ok());
        let limit = given.or_else(|| (always || after.is_some()).then_some(LIMIT_DEFAULT));
        Ok(Self { limit, after, binder })
    }

    /// Rows that the statement has to fetch: one more than are shown, which tells whether there are more.
    #[must_use]
    pub fn fetch(&self) -> i64 {
        i64::from(self.limit.unwrap_or(WHOLE_LIST_MAX)) + 1
    }

    /// The time of the last row of the page before, when the list is ordered by a time.
    ///
    /// # Errors
    /// `INVALID_REQUEST` when the cursor holds no time.
    pub fn after_time(&self) -> Result<Option<OffsetDateTime>> {
        let Some((key, _)) = &self.after else {
            return Ok(None);
        };
        parse_micros(key).map(Some).ok_or_else(cursor_refused)
    }

    /// The number of the last row of the page before, when the list is ordered by a number.
    ///
    /// # Errors
    /// `INVALID_REQUEST` when the cursor holds no number.
    pub fn after_number(&self) -> Result<Option<i64>> {
        let Some((key, _)) = &self.after else {
            return Ok(None);
        };
        key.parse().map(Some).map_err(|_| cursor_refused())
    }

    /// The id of the last row of the page before.
    #[must_use]
    pub fn after_id(&self) -> Option<&str> {
        self.after.as_ref().map(|(_, id)| id.as_str())
    }

    /// The answer: the rows that fit, and the cursor of the next page. `position` gives a row's sort key
    /// ([`sort_time`] or a number as text) and its id.
    ///
    /// # Errors
    /// `INVALID_REQUEST` when the whole list is too long for one answer.
    pub fn reply<Row, Item: Serialize>(
        &self,
        mut rows: Vec<Row>,
        position: impl Fn(&Row) -> (String, String),
        item: impl Fn(Row) -> Item,
    ) -> Result<Reply> {
        let shown = usize::try_from(self.limit.unwrap_or(WHOLE_LIST_MAX)).unwrap_or(usize::MAX);
        let more = rows.len() > shown;
        if more && self.limit.is_none() {
            return Err(Error::new(
                ErrorCode::InvalidRequest,
                format!("The list has more than {WHOLE_LIST_MAX} items: ask for pages with limit."),
            ));
        }
        rows.truncate(shown);
        let next = match rows.last().filter(|_| more) {
            Some(last) => {
                let (key, id) = position(last);
                Some(self.binder.seal(&key, &id))
            }
            None => None,
        };
        let items: Vec<Item> = rows.into_iter().map(item).collect();
        Reply::page(&items, self.limit.map(|_| next))
    }
}

/// The sort key of a time: microseconds, exactly what PostgreSQL keeps.
#[must_use]
pub fn sort_time(time: OffsetDateTime) -> String {
    (time.unix_timestamp_nanos() / 1_000).to_string()
}

fn parse_micros(key: &str) -> Option<OffsetDateTime> {
    let micros = key.parse::<i64>().ok()?;
    OffsetDateTime::from_unix_timestamp_nanos(i128::from(micros) * 1_000).ok()
}

/// An instant in a query parameter.
pub(crate) fn parse_time(text: &str) -> Option<OffsetDateTime> {
    if !text.ends_with('Z') {
        return None;
    }
    OffsetDateTime::parse(text, &Rfc3339).ok()
}

fn cursor_refused() -> Error {
    Error::invalid_field("/cursor", FieldCode::InvalidValue)
}

/// Ties cursors to one list.
#[derive(Debug, Clone)]
struct Binder {
    key: AuthKey,
    context: Vec<u8>,
}

impl Binder {
    fn new(request: &Request) -> Self {
        let mut context = request.operation.id.as_bytes().to_vec();
        let filters = request.query_values().filter(|(name, _)| !matches!(*name, "limit" | "cursor"));
        for (name, value) in request.path_values().chain(filters) {
            for part in [name, value] {
                context.push(0);
                context.extend_from_slice(part.as_bytes());
            }
        }
        Self { key: request.auth_key.clone(), context }
    }

    fn seal(&self, key: &str, id: &str) -> String {
        let payload = format!("{key}{SEPARATOR}{id}");
        let mut bytes = self.sign(payload.as_bytes()).to_vec();
        bytes.extend_from_slice(payload.as_bytes());
        URL_SAFE_NO_PAD.encode(bytes)
    }

    fn open(&self, cursor: &str) -> Option<(String, String)> {
        let bytes = URL_SAFE_NO_PAD.decode(cursor).ok()?;
        let (signature, payload) = bytes.split_at_checked(SIGNATURE_BYTES)?;
        if signature != self.sign(payload) {
            return None;
        }
        let (key, id) = std::str::from_utf8(payload).ok()?.split_once(SEPARATOR)?;
        Some((key.to_owned(), id.to_owned()))
    }

    fn sign(&self, payload: &[u8]) -> [u8; SIGNATURE_BYTES] {
        let full = self.key.cursor(&[&self.context, payload]);
        let mut signature = [0; SIGNATURE_BYTES];
        signature.iter_mut().zip(full).for_each(|(to, from)| *to = from);
        signature
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn binder(context: &str) -> Binder {
        Binder {
            key: AuthKey::new(b"0123456789abcdef0123456789abcdef"),
            context: context.as_bytes().to_vec(),
        }
    }

    fn page(limit: Option<u32>) -> PageRequest {
        PageRequest { limit, after: None, binder: binder("listThings") }
    }

    #[test]
    fn a_cursor_comes_back_in_its_own_list_only() {
        let cursor = binder("listThings\0a").seal("1700000000000000", "cfg_1");
        assert!(cursor.len() <= CURSOR_CHARS_MAX);
        assert_eq!(
            binder("listThings\0a").open(&cursor),
            Some(("1700000000000000".to_owned(), "cfg_1".to_owned()))
        );
        assert_eq!(binder("listThings\0b").open(&cursor), None);
        assert_eq!(binder("listThings\0a").open(&format!("{cursor}A")), None);
        for foreign in ["", "AA", "!!", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"] {
            assert_eq!(binder("listThings\0a").open(foreign), None, "{foreign}");
        }
    }

    #[test]
    fn the_last_page_has_no_cursor() {
        let position = |row: &u32| (row.to_string(), format!("id{row}"));
        let full = page(Some(2)).reply(vec![1, 2, 3], position, |row| row).unwrap();
        assert_eq!(full.data(), Some("[1,2]"));
        let next = full.next_cursor().unwrap().unwrap();
        assert_eq!(binder("listThings").open(next), Some(("2".to_owned(), "id2".to_owned())));
        let last = page(Some(2)).reply(vec![3], position, |row| row).unwrap();
        assert_eq!(last.next_cursor(), Some(None));
        let whole = page(None).reply(vec![1, 2, 3], position, |row| row).unwrap();
        assert_eq!((whole.data(), whole.next_cursor()), (Some("[1,2,3]"), None));
    }

    #[test]
    fn a_list_that_is_too_long_is_refused_whole() {
        let rows: Vec<u32> = (0..=WHOLE_LIST_MAX).collect();
        let error = page(None).reply(rows, |row| (row.to_string(), String::new()), |row| row).unwrap_err();
        assert_eq!(error.api_code(), ErrorCode::InvalidRequest);
    }

    #[test]
    fn times_keep_their_microseconds() {
        let time = OffsetDateTime::from_unix_timestamp_nanos(1_700_000_000_123_456_000).unwrap();
        assert_eq!(parse_micros(&sort_time(time)), Some(time));
    }
}

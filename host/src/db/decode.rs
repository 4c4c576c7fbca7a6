//! Turns columns into typed values. What does not fit is a defect: the schema checks the same.

use std::str::FromStr;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::error::{Error, Result};

/// A typed id out of a text column.
///
/// # Errors
/// `INTERNAL_ERROR` when the text is no such id.
pub fn id<T: FromStr>(text: &str) -> Result<T> {
    text.parse()
        .map_err(|_| Error::internal(format!("a stored id cannot be read as {}", std::any::type_name::<T>())))
}

/// A typed id out of a column that may be null.
///
/// # Errors
/// As [`id`].
pub fn id_opt<T: FromStr>(text: Option<&str>) -> Result<Option<T>> {
    text.map(id).transpose()
}

/// A count or number that the schema keeps from being negative.
///
/// # Errors
/// `INTERNAL_ERROR` for a negative number.
pub fn count(number: i64) -> Result<u64> {
    u64::try_from(number).map_err(|_| Error::internal("a stored number is negative"))
}

/// A number for a `bigint` column.
///
/// # Errors
/// `INTERNAL_ERROR` past the range of `bigint`.
pub fn bigint(number: u64) -> Result<i64> {
    i64::try_from(number).map_err(|_| Error::internal("a number does not fit a bigint column"))
}

/// One word of an enumeration, as its wire form spells it.
///
/// # Errors
/// `INTERNAL_ERROR` for a word that the enumeration does not have.
pub fn word<T: DeserializeOwned>(text: &str) -> Result<T> {
    serde_json::from_value(Value::String(text.to_owned())).map_err(|_| {
        Error::internal(format!("a stored word cannot be read as {}", std::any::type_name::<T>()))
    })
}

/// The wire form of one word of an enumeration, for a text column.
///
/// # Errors
/// `INTERNAL_ERROR` when the value is not written as one word.
pub fn word_text(value: &impl Serialize) -> Result<String> {
    match serde_json::to_value(value) {
        Ok(Value::String(text)) => Ok(text),
        _ => Err(Error::internal("a word has no text form")),
    }
}

/// Typed ids out of an array or a column.
///
/// # Errors
/// As [`id`].
pub fn ids<T: FromStr>(texts: &[String]) -> Result<Vec<T>> {
    texts.iter().map(|text| id(text)).collect()
}

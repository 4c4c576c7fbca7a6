//! Reading JSON from outside: a strict parser, and a reader of closed objects that reports
//! every fault together.

mod object;
mod parse;

pub use object::{Object, decode};
pub use parse::parse_strict;

use serde_json::Value;

use crate::error::FieldError;

/// Nesting that a body may have; inside `values` of a Configuration [`DEPTH_MAX_DOCUMENT`].
pub const DEPTH_MAX: usize = 24;
/// Nesting inside an open document.
pub const DEPTH_MAX_DOCUMENT: usize = 64;

/// A request body that reads itself from JSON and names every field at fault.
pub trait FromBody: Sized {
    /// Reads the body.
    ///
    /// # Errors
    /// Every field at fault, with its JSON Pointer.
    fn from_body(value: &Value) -> Result<Self, Vec<FieldError>>;
}

#[cfg(test)]
mod tests;

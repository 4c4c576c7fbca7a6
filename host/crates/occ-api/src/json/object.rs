//! Reads a closed object member by member and collects every fault.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::FromBody;
use crate::error::{DETAILS_MAX, FieldCode, FieldError, pointer_segment};
use crate::ids::TypedId;

/// Reads a body as its type.
///
/// # Errors
/// Every field at fault, at most [`DETAILS_MAX`].
pub fn decode<T: FromBody>(value: &Value) -> Result<T, Vec<FieldError>> {
    T::from_body(value).map_err(|mut faults| {
        faults.truncate(DETAILS_MAX);
        faults
    })
}

/// An object that is being read. Members that nobody asked for are unknown fields.
pub struct Object<'a> {
    path: String,
    members: Option<&'a Map<String, Value>>,
    known: Vec<&'a str>,
    faults: Vec<FieldError>,
}

impl<'a> Object<'a> {
    /// Begins at a JSON Pointer; anything but an object is one fault of type.
    #[must_use]
    pub fn new(value: &'a Value, path: impl Into<String>) -> Self {
        let path = path.into();
        let members = value.as_object();
        let faults = if members.is_some() {
            Vec::new()
        } else {
            vec![FieldError::new(path.clone(), FieldCode::InvalidType)]
        };
        Self { path, members, known: Vec::new(), faults }
    }

    /// A member as it is.
    pub fn optional(&mut self, key: &'a str) -> Option<&'a Value> {
        self.known.push(key);
        self.members?.get(key)
    }

    /// A member that must be there.
    pub fn required(&mut self, key: &'a str) -> Option<&'a Value> {
        let value = self.optional(key);
        if value.is_none() && self.members.is_some() {
            self.fault(key, FieldCode::Required);
        }
        value
    }

    /// A text that must be there and pass a check.
    pub fn text(
        &mut self,
        key: &'a str,
        check: impl FnOnce(&str) -> Result<(), FieldCode>,
    ) -> Option<String> {
        let value = self.required(key)?;
        self.checked_text(key, value, check)
    }

    /// A text that may be absent.
    pub fn optional_text(
        &mut self,
        key: &'a str,
        check: impl FnOnce(&str) -> Result<(), FieldCode>,
    ) -> Option<String> {
        let value = self.optional(key)?;
        self.checked_text(key, value, check)
    }

    /// An id that must be there.
    pub fn id<T: TypedId>(&mut self, key: &'a str) -> Option<T> {
        let value = self.required(key)?;
        self.checked_id(key, value)
    }

    /// An id that may be absent.
    pub fn optional_id<T: TypedId>(&mut self, key: &'a str) -> Option<T> {
        let value = self.optional(key)?;
        self.checked_id(key, value)
    }

    /// A word that must be one of an enumeration.
    pub fn word<T>(&mut self, key: &'a str, find: impl FnOnce(&str) -> Option<T>) -> Option<T> {
        let value = self.required(key)?;
        self.checked_word(key, value, find)
    }

    /// A word of an enumeration that may be absent.
    pub fn optional_word<T>(&mut self, key: &'a str, find: impl FnOnce(&str) -> Option<T>) -> Option<T> {
        let value = self.optional(key)?;
        self.checked_word(key, value, find)
    }

    /// A nested object that is read by its own function.
    pub fn nested<T>(
        &mut self,
        key: &'a str,
        value: &'a Value,
        read: impl FnOnce(&mut Object<'a>) -> Option<T>,
    ) -> Option<T> {
        let mut object = Object::new(value, self.pointer(key));
        let read = read(&mut object);
        match object.finish(read) {
            Ok(value) => Some(value),
            Err(mut faults) => {
                self.faults.append(&mut faults);
                None
            }
        }
    }

    /// Every member of an open object, each read by a function; the key is the member's name.
    pub fn entries<T>(
        &mut self,
        mut read: impl FnMut(&mut Self, &'a str, &'a Value) -> Option<T>,
    ) -> BTreeMap<String, T> {
        let mut entries = BTreeMap::new();
        for (key, value) in self.members.into_iter().flatten() {
            self.known.push(key);
            if let Some(entry) = read(self, key, value) {
                entries.insert(key.clone(), entry);
            }
        }
        entries
    }

    /// Records a fault of a member; an empty key means the object itself.
    pub fn fault(&mut self, key: &str, code: FieldCode) {
        self.faults.push(FieldError::new(self.pointer(key), code));
    }

    /// Pointer of a member.
    #[must_use]
    pub fn pointer(&self, key: &str) -> String {
        if key.is_empty() { self.path.clone() } else { format!("{}/{}", self.path, pointer_segment(key)) }
    }

    /// The value, when nothing was at fault and nothing unknown was sent.
    ///
    /// # Errors
    /// Every fault of this object and of what is nested in it.
    pub fn finish<T>(mut self, value: Option<T>) -> Result<T, Vec<FieldError>> {
        for key in self.members.into_iter().flat_map(Map::keys) {
            if !self.known.contains(&key.as_str()) {
                self.faults.push(FieldError::new(self.pointer(key), FieldCode::UnknownField));
            }
        }
        match value {
            Some(value) if self.faults.is_empty() => Ok(value),
            _ if self.faults.is_empty() => Err(vec![FieldError::new(self.path, FieldCode::InvalidValue)]),
            _ => Err(self.faults),
        }
    }

    fn checked_text(
        &mut self,
        key: &str,
        value: &Value,
        check: impl FnOnce(&str) -> Result<(), FieldCode>,
    ) -> Option<String> {
        let Some(text) = value.as_str() else {
            self.fault(key, FieldCode::InvalidType);
            return None;
        };
        match check(text) {
            Ok(()) => Some(text.to_owned()),
            Err(code) => {
                self.fault(key, code);
                None
            }
        }
    }

    fn checked_id<T: TypedId>(&mut self, key: &str, value: &Value) -> Option<T> {
        let parsed = value.as_str().map(T::parse);
        match parsed {
            Some(Ok(id)) => return Some(id),
            Some(Err(_)) => self.fault(key, FieldCode::InvalidFormat),
            None => self.fault(key, FieldCode::InvalidType),
        }
        None
    }

    fn checked_word<T>(
        &mut self,
        key: &str,
        value: &Value,
        find: impl FnOnce(&str) -> Option<T>,
    ) -> Option<T> {
        let Some(text) = value.as_str() else {
            self.fault(key, FieldCode::InvalidType);
            return None;
        };
        let found = find(text);
        if found.is_none() {
            self.fault(key, FieldCode::InvalidValue);
        }
        found
    }
}

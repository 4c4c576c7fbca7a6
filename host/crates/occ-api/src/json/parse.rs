//! A JSON reader that stops at its limits instead of building the tree first.
//!
//! Beyond the grammar it refuses duplicate keys, NUL and unpaired surrogates in strings, keys
//! that JavaScript treats as special, numbers that are not finite, and too deep nesting.

use std::collections::HashSet;

use serde_json::{Map, Number, Value};

use crate::error::{FieldCode, FieldError, pointer_segment};

/// Keys that a JavaScript client would not see as ordinary members.
const KEYS_REFUSED: [&str; 3] = ["__proto__", "constructor", "prototype"];

/// Reads one document. `depth_max` bounds nesting; inside the top-level member `open` (an open
/// document such as `values`) nesting is counted anew against `open.1`.
///
/// # Errors
/// The first fault, with its JSON Pointer.
pub fn parse_strict(
    bytes: &[u8],
    depth_max: usize,
    open: Option<(&str, usize)>,
) -> Result<Value, FieldError> {
    let text = std::str::from_utf8(bytes).map_err(|_| FieldError::new("", FieldCode::InvalidFormat))?;
    let mut parser = Parser { text, at: 0, path: Vec::new(), depth_max, open };
    parser.space();
    let value = parser.value(0)?;
    parser.space();
    if parser.at == text.len() { Ok(value) } else { Err(parser.fault(FieldCode::InvalidFormat)) }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    path: Vec<String>,
    depth_max: usize,
    open: Option<(&'a str, usize)>,
}

impl Parser<'_> {
    fn value(&mut self, depth: usize) -> Result<Value, FieldError> {
        match self.peek() {
            Some(b'{') => self.object(depth),
            Some(b'[') => self.array(depth),
            Some(b'"') => self.string().map(Value::String),
            Some(b't') => self.word("true", Value::Bool(true)),
            Some(b'f') => self.word("false", Value::Bool(false)),
            Some(b'n') => self.word("null", Value::Null),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => Err(self.fault(FieldCode::InvalidFormat)),
        }
    }

    fn object(&mut self, depth: usize) -> Result<Value, FieldError> {
        self.enter(depth)?;
        let mut members = Map::new();
        let mut seen = HashSet::new();
        if self.closes(b'}') {
            return Ok(Value::Object(members));
        }
        loop {
            self.space();
            let key = self.string()?;
            self.path.push(key.clone());
            if KEYS_REFUSED.contains(&key.as_str()) || !seen.insert(key.clone()) {
                return Err(self.fault(FieldCode::InvalidValue));
            }
            self.space();
            self.expect(b':')?;
            self.space();
            let value = self.value(depth + 1)?;
            self.path.pop();
            members.insert(key, value);
            if !self.continues(b'}')? {
                return Ok(Value::Object(members));
            }
        }
    }

    fn array(&mut self, depth: usize) -> Result<Value, FieldError> {
        self.enter(depth)?;
        let mut items = Vec::new();
        if self.closes(b']') {
            return Ok(Value::Array(items));
        }
        loop {
            self.space();
            self.path.push(items.len().to_string());
            let item = self.value(depth + 1)?;
            self.path.pop();
            items.push(item);
            if !self.continues(b']')? {
                return Ok(Value::Array(items));
            }
        }
    }

    /// Steps over the opening bracket when the nesting allows it.
    fn enter(&mut self, depth: usize) -> Result<(), FieldError> {
        let allowed = match self.open {
            Some((member, document)) if self.path.first().is_some_and(|first| first == member) => {
                document + 1
            }
            _ => self.depth_max,
        };
        if depth >= allowed {
            return Err(self.fault(FieldCode::TooDeep));
        }
        self.at += 1;
        Ok(())
    }

    /// Is the container empty?
    fn closes(&mut self, end: u8) -> bool {
        self.space();
        let closes = self.peek() == Some(end);
        self.at += usize::from(closes);
        closes
    }

    /// After an item: another one, or the end?
    fn continues(&mut self, end: u8) -> Result<bool, FieldError> {
        self.space();
        match self.peek() {
            Some(b',') => {
                self.at += 1;
                Ok(true)
            }
            Some(byte) if byte == end => {
                self.at += 1;
                Ok(false)
            }
            _ => Err(self.fault(FieldCode::InvalidFormat)),
        }
    }

    fn string(&mut self) -> Result<String, FieldError> {
        self.expect(b'"')?;
        let mut text = String::new();
        loop {
            let rest = self.text.get(self.at..).unwrap_or_default();
            let Some(end) = rest.find(|character: char| matches!(character, '"' | '\\') || character < ' ')
            else {
                return Err(self.fault(FieldCode::InvalidFormat));
            };
            text.push_str(rest.get(..end).unwrap_or_default());
            self.at += end;
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(text);
                }
                Some(b'\\') => text.push(self.escape()?),
                _ => return Err(self.fault(FieldCode::InvalidFormat)),
            }
        }
    }

    fn escape(&mut self) -> Result<char, FieldError> {
        self.at += 1;
        let escape = self.peek().ok_or_else(|| self.fault(FieldCode::InvalidFormat))?;
        self.at += 1;
        Ok(match escape {
            b'"' => '"',
            b'\\' => '\\',
            b'/' => '/',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => return self.code_point(),
            _ => return Err(self.fault(FieldCode::InvalidFormat)),
        })
    }

    /// `\uXXXX`, or a pair of surrogates; a half of a pair and NUL are refused.
    fn code_point(&mut self) -> Result<char, FieldError> {
        let high = self.hex()?;
        let code = match high {
            0xD800..=0xDBFF => {
                if self.text.get(self.at..self.at + 2) != Some("\\u") {
                    return Err(self.fault(FieldCode::InvalidValue));
                }
                self.at += 2;
                let low = self.hex()?;
                if !(0xDC00..=0xDFFF).contains(&low) {
                    return Err(self.fault(FieldCode::InvalidValue));
                }
                0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00)
            }
            0 => return Err(self.fault(FieldCode::InvalidValue)),
            other => other,
        };
        char::from_u32(code).ok_or_else(|| self.fault(FieldCode::InvalidValue))
    }

    fn hex(&mut self) -> Result<u32, FieldError> {
        let digits = self
            .text
            .get(self.at..self.at + 4)
            .filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let code = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok());
        self.at += 4;
        code.ok_or_else(|| self.fault(FieldCode::InvalidFormat))
    }

    fn number(&mut self) -> Result<Value, FieldError> {
        let begin = self.at;
        self.at += usize::from(self.peek() == Some(b'-'));
        let whole = self.digits();
        let leading_zero = whole.len() > 1 && whole.starts_with('0');
        let mut complete = !whole.is_empty() && !leading_zero;
        if self.peek() == Some(b'.') {
            self.at += 1;
            complete &= !self.digits().is_empty();
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            self.at += usize::from(matches!(self.peek(), Some(b'+' | b'-')));
            complete &= !self.digits().is_empty();
        }
        let text = self.text.get(begin..self.at).unwrap_or_default();
        if !complete {
            return Err(self.fault(FieldCode::InvalidFormat));
        }
        // A number beyond the range of a double reads as infinite, which serde_json refuses.
        serde_json::from_str::<Number>(text)
            .map(Value::Number)
            .map_err(|_| self.fault(FieldCode::InvalidValue))
    }

    fn digits(&mut self) -> &str {
        let begin = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        self.text.get(begin..self.at).unwrap_or_default()
    }

    fn word(&mut self, word: &str, value: Value) -> Result<Value, FieldError> {
        if self.text.get(self.at..).is_some_and(|rest| rest.starts_with(word)) {
            self.at += word.len();
            return Ok(value);
        }
        Err(self.fault(FieldCode::InvalidFormat))
    }

    fn expect(&mut self, byte: u8) -> Result<(), FieldError> {
        if self.peek() == Some(byte) {
            self.at += 1;
            return Ok(());
        }
        Err(self.fault(FieldCode::InvalidFormat))
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn fault(&self, code: FieldCode) -> FieldError {
        let path: String = self.path.iter().map(|segment| format!("/{}", pointer_segment(segment))).collect();
        FieldError::new(path, code)
    }
}

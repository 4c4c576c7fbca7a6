//! Columns for people. Cells that would move the cursor or reorder text are quoted and escaped.

use occ_api::error::is_unprintable;
use serde_json::Value;

/// Spaces between columns.
const GAP: usize = 3;

/// Where a cell comes from.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Cell {
    /// The member at a JSON Pointer.
    At(&'static str),
    /// Whatever a function makes of the resource.
    With(fn(&Value) -> String),
}

/// A heading and its cells.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Column {
    heading: &'static str,
    cell: Cell,
}

/// How resources of one kind are shown.
#[derive(Debug, Clone, Copy)]
pub(crate) struct View {
    /// JSON Pointer of the id.
    pub(crate) id: &'static str,
    /// In this order.
    pub(crate) columns: &'static [Column],
}

/// A column of the member at a JSON Pointer.
pub(crate) const fn at(heading: &'static str, pointer: &'static str) -> Column {
    Column { heading, cell: Cell::At(pointer) }
}

/// A column that a function makes.
pub(crate) const fn cell(heading: &'static str, make: fn(&Value) -> String) -> Column {
    Column { heading, cell: Cell::With(make) }
}

/// The whole table, headings first.
pub(super) fn render(view: &View, values: &[Value]) -> String {
    let mut rows: Vec<Vec<String>> =
        vec![view.columns.iter().map(|column| column.heading.to_owned()).collect()];
    for value in values {
        rows.push(view.columns.iter().map(|column| text_of(value, column.cell)).collect());
    }
    aligned(&rows)
}

/// Pads each column to its widest cell.
fn aligned(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or_default();
    let width =
        |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or_default()).collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            line.push_str(cell);
            line.extend(std::iter::repeat_n(' ', width - cell.chars().count() + GAP));
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

fn text_of(value: &Value, cell: Cell) -> String {
    match cell {
        Cell::At(pointer) => value.pointer(pointer).map_or_else(|| "-".to_owned(), shown),
        Cell::With(make) => {
            let made = make(value);
            if made.is_empty() { "-".to_owned() } else { cell_text(&made) }
        }
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => cell_text(text),
        Value::Array(items) if items.is_empty() => "-".to_owned(),
        Value::Array(items) => items.iter().map(shown).collect::<Vec<_>>().join(","),
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => value.to_string(),
    }
}

/// A text as a cell: as it is, or quoted and escaped.
pub(crate) fn cell_text(text: &str) -> String {
    if text.is_empty() {
        return "\"\"".to_owned();
    }
    if !text.chars().any(is_unprintable) {
        return text.to_owned();
    }
    let mut quoted = String::from("\"");
    for character in text.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            _ if is_unprintable(character) => quoted.extend(character.escape_unicode()),
            _ => quoted.push(character),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const VIEW: View =
        View { id: "/id", columns: &[at("ID", "/id"), at("NAME", "/name"), at("BACKEND", "/backendId")] };

    #[test]
    fn columns_line_up_and_what_is_unset_is_a_dash() {
        let rows = [
            json!({"id": "agt_1", "name": "concierge", "backendId": null}),
            json!({"id": "agt_22", "name": "x"}),
        ];
        assert_eq!(
            render(&VIEW, &rows),
            "ID       NAME        BACKEND\nagt_1    concierge   -\nagt_22   x           -\n"
        );
    }

    #[test]
    fn hostile_names_cannot_move_the_cursor() {
        let row = json!({"id": "a", "name": "\u{202e}evil\u{1b}[2J\n\"q\"", "backendId": ""});
        let text = render(&VIEW, &[row]);
        assert_eq!(text.lines().nth(1), Some(r#"a    "\u{202e}evil\u{1b}[2J\n\"q\""   """#));
    }
}

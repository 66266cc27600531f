//! Tables, their cells and the notes that cells point to: the shapes that every page shares, and
//! how a table is written in Markdown. What is in the cells is decided in [`super::view`].

use super::escape;
use super::format::MISSING;
use crate::evidence::Reason;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// A table as templates see it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Table {
    /// Titles of the columns.
    pub columns: Vec<Column>,
    /// Rows, each with one cell per column.
    pub rows: Vec<Vec<Cell>>,
}

/// Head of a column.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Column {
    /// Title.
    pub title: String,
    /// Whether its cells are numbers, which stand to the right.
    pub number: bool,
}

/// One cell.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cell {
    /// What it says.
    pub text: String,
    /// Whether that is a name or a path as it stands in files.
    pub code: bool,
    /// Where it leads.
    pub href: Option<String>,
    /// Numbers of the notes that it points to.
    pub notes: Vec<u32>,
}

impl Cell {
    /// Plain text.
    pub fn text(text: impl Into<String>) -> Self {
        Cell {
            text: text.into(),
            ..Cell::default()
        }
    }

    /// A name or a path.
    pub fn code(text: impl Into<String>) -> Self {
        Cell {
            text: text.into(),
            code: true,
            ..Cell::default()
        }
    }

    /// The mark of a missing value, with its reason as a note.
    pub fn missing(notes: &mut Notes, reason: impl AsRef<str>) -> Self {
        Cell::text(MISSING).with_note(notes, reason)
    }

    /// The value, or the mark of a missing one.
    pub fn or_missing(value: Option<String>, notes: &mut Notes, reason: &str) -> Self {
        match value {
            Some(text) => Cell::text(text),
            None => Cell::missing(notes, reason),
        }
    }

    /// The same cell, pointing to a note.
    pub fn with_note(mut self, notes: &mut Notes, text: impl AsRef<str>) -> Self {
        let number = notes.number(text.as_ref());
        if !self.notes.contains(&number) {
            self.notes.push(number);
        }
        self
    }

    /// The same cell, leading somewhere.
    pub fn to(mut self, href: impl Into<String>) -> Self {
        self.href = Some(href.into());
        self
    }
}

impl Table {
    /// A table with these columns: a title that ends in `#` heads a column of numbers (the sign is
    /// taken off).
    pub fn with(titles: &[&str]) -> Self {
        let mut table = Table::default();
        table.add_columns(titles);
        table
    }

    /// Adds columns, as [`Table::with`] reads them.
    pub fn add_columns(&mut self, titles: &[&str]) {
        self.columns.extend(titles.iter().map(|title| Column {
            title: title.trim_end_matches('#').to_owned(),
            number: title.ends_with('#'),
        }));
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The table in Markdown, below its caption in emphasis.
    pub fn markdown(&self, caption: &str) -> String {
        let mut out = format!("*{}*\n\n", escape::text(caption));
        for column in &self.columns {
            out += "| ";
            out += &escape::text(&column.title);
            out.push(' ');
        }
        out += "|\n";
        for column in &self.columns {
            out += if column.number { "|--:" } else { "|:--" };
        }
        out += "|\n";
        for row in &self.rows {
            for cell in row {
                out += "| ";
                push_cell(&mut out, cell);
                out.push(' ');
            }
            out += "|\n";
        }
        out
    }
}

fn push_cell(out: &mut String, cell: &Cell) {
    let label = if cell.code {
        escape::code(&cell.text, true)
    } else {
        escape::text(&cell.text)
    };
    match &cell.href {
        Some(target) => *out += &escape::link(&label, target),
        None => *out += &label,
    }
    for note in &cell.notes {
        *out += &format!("[^{note}]");
    }
}

/// The notes of a page, numbered in the order in which they are first needed; equal texts are one
/// note.
#[derive(Debug, Clone, Default)]
pub struct Notes {
    texts: Vec<String>,
    numbers: HashMap<String, u32>,
}

/// A note as templates see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// Number.
    pub number: u32,
    /// What it says.
    pub text: String,
}

impl Notes {
    /// Number of the note with this text.
    pub fn number(&mut self, text: &str) -> u32 {
        if let Some(&number) = self.numbers.get(text) {
            return number;
        }
        self.texts.push(text.to_owned());
        let number = self.texts.len() as u32;
        self.numbers.insert(text.to_owned(), number);
        number
    }

    /// All of them.
    pub fn into_list(self) -> Vec<Note> {
        self.texts
            .into_iter()
            .zip(1..)
            .map(|(text, number)| Note { number, text })
            .collect()
    }
}

/// A reason as a note says it: its text, and its word for those who search the evidence.
pub fn reason_text(reason: &Reason) -> String {
    if reason.text.is_empty() {
        format!("not available ({})", reason.code.word())
    } else {
        format!("{} ({})", reason.text, reason.code.word())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_written_with_its_caption_and_notes() {
        let mut notes = Notes::default();
        let mut table = Table::with(&["instance", "n#"]);
        table
            .rows
            .push(vec![Cell::code("a|b"), Cell::missing(&mut notes, "why")]);
        table.rows.push(vec![
            Cell::text("c").to("c.md"),
            Cell::text("1").with_note(&mut notes, "why"),
        ]);
        assert_eq!(
            table.markdown("Numbers*"),
            "*Numbers\\**\n\n| instance | n |\n|:--|--:|\n| `a\\|b` | –[^1] |\n| [c](c.md) | 1[^1] |\n"
        );
        assert_eq!(notes.into_list().len(), 1, "equal texts are one note");
    }
}

//! `cells.json`: the cells of a published page without its trials, for datasets of class `aggregate`.
//!
//! A cell keeps the text of the document. What it says as a number stands beside it, with the digits
//! that the text carries: a ratio of such cells is worth no more than these.

use super::{Class, Kind, Origin};
use protocol::SourceKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `cells.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CellsFile {
    /// Always [`super::SCHEMA`].
    pub schema: String,
    /// `cells`.
    pub kind: Kind,
    /// Id of the system.
    pub system: String,
    /// `aggregate`: the cells cannot be recomputed.
    pub class: Class,
    /// Candidate that the page is about.
    pub candidate: String,
    /// Whose code.
    pub origin: Origin,
    /// Code and build of every instance of the page (`ref`, `reference`).
    pub code: String,
    /// See `code`.
    pub build: String,
    /// What the document's table says of itself: its comment lines.
    pub document: Vec<String>,
    /// Where the document's cycles come from, by the title of its column: `perf` for `mean cycles`,
    /// `tsc` and `cntvct` for a column of ticks, `none` without such a column.
    pub cycle_source: SourceKind,
    /// The tables in the order of the document.
    pub tables: Vec<CellTable>,
}

/// One table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CellTable {
    /// `environment`, `kat`, `performance`, `resource`, `sizes`, `symmetric`.
    pub section: String,
    /// Titles of the columns.
    pub header: Vec<String>,
    /// Rows, each with one cell a column.
    pub rows: Vec<Vec<Cell>>,
}

/// One cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cell {
    /// The text, as printed.
    pub text: String,
    /// What it says; null where it is not a quantity.
    pub quantity: Option<Quantity>,
}

/// A printed quantity.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Quantity {
    /// Value in the base unit.
    pub value: f64,
    /// Base unit: `cycles`, `ticks`, `s`, `1/s`, `calls`, `bytes`, `share`.
    pub unit: String,
    /// Significant digits that the text carries (times and rates are printed with three, and without
    /// their trailing zeros).
    pub digits: u32,
}

impl CellsFile {
    /// The table of a section.
    pub fn table(&self, section: &str) -> Option<&CellTable> {
        self.tables.iter().find(|table| table.section == section)
    }
}

impl CellTable {
    /// Number of the column with that title.
    pub fn column(&self, title: &str) -> Option<usize> {
        self.header.iter().position(|header| header == title)
    }
}

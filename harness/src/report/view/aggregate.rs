//! Pages of an aggregate: the cells of a published page, each with the document's own text.

use super::common::Rows;
use crate::evidence::CellTable;
use crate::report::table::{Cell, Column, Table};

/// The table of a section, with the texts of the document; `None` where the document has none.
pub(super) fn table(rows: &Rows, section: &str) -> Option<Table> {
    let cells = &rows.dataset.cells.as_ref()?.value;
    (cells.candidate == rows.candidate.id)
        .then(|| cells.table(section).map(as_printed))
        .flatten()
}

fn as_printed(table: &CellTable) -> Table {
    let columns = table
        .header
        .iter()
        .enumerate()
        .map(|(index, title)| Column {
            title: title.clone(),
            number: table
                .rows
                .iter()
                .any(|row| row.get(index).is_some_and(|cell| cell.quantity.is_some()))
                && title != "calls per operation"
                && title != "value",
        });
    let instance = table.column("instance");
    Table {
        columns: columns.collect(),
        rows: table
            .rows
            .iter()
            .map(|row| {
                let cells = row.iter().enumerate().map(|(index, cell)| Cell {
                    text: cell.text.clone(),
                    code: Some(index) == instance,
                    ..Cell::default()
                });
                cells.collect()
            })
            .collect(),
    }
}

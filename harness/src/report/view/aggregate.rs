//! Pages of an aggregate: the cells of a published page, each with the document's own text.

use super::common::{kat_marks, Rows};
use super::figures::{FEW_CALLS, PRINTED_ZERO, ZERO_OR_TINY};
use super::performance::FEWER_THAN_THE_GUIDE;
use crate::evidence::CellTable;
use crate::report::table::{Cell, Column, Notes, Table};

/// The table of a section, with the texts of the document and our marks; `None` where the document has
/// none.
pub(super) fn table(rows: &Rows, section: &str, notes: &mut Notes) -> Option<Table> {
    let cells = &rows.dataset.cells.as_ref()?.value;
    if cells.candidate != rows.candidate.id {
        return None;
    }
    let printed = cells.table(section)?;
    let mut table = as_printed(printed);
    mark_failures(&mut table, printed, rows, notes);
    mark_few_calls(&mut table, printed, notes);
    let zero_or_tiny = |cell: &&mut Cell| section == "symmetric" && cell.text == PRINTED_ZERO;
    for cell in table.rows.iter_mut().flatten().filter(zero_or_tiny) {
        *cell = std::mem::take(cell).with_note(notes, ZERO_OR_TINY);
    }
    Some(table)
}

/// Marks the labels whose KAT did not pass.
fn mark_failures(table: &mut Table, printed: &CellTable, rows: &Rows, notes: &mut Notes) {
    let Some(instance) = printed.column("instance") else {
        return;
    };
    let marks = kat_marks(rows);
    for cell in table
        .rows
        .iter_mut()
        .filter_map(|row| row.get_mut(instance))
    {
        let label = cell.text.clone();
        let marks = marks.iter().filter(|(of, _)| *of == label);
        *cell = marks.fold(std::mem::take(cell), |cell, (_, text)| {
            cell.with_note(notes, text)
        });
    }
}

/// Marks numbers of calls below the guide's.
fn mark_few_calls(table: &mut Table, printed: &CellTable, notes: &mut Notes) {
    let Some(column) = printed.column("n (trials × iters)") else {
        return;
    };
    for (row, of) in table.rows.iter_mut().zip(&printed.rows) {
        let calls = of.get(column).and_then(|cell| cell.quantity.as_ref());
        if calls.is_some_and(|calls| calls.value < FEW_CALLS as f64) {
            row[column] = std::mem::take(&mut row[column]).with_note(notes, FEWER_THAN_THE_GUIDE);
        }
    }
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

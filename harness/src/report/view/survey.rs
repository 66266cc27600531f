//! The symmetric survey: the verdict and the shares of all candidates.

use super::common::{page_name, Frame, Place, Rows};
use super::symmetric::Shares;
use super::{aggregate, symmetric};
use crate::dataset::Dataset;
use crate::report::table::{Cell, Note, Notes, Table};
use serde::Serialize;

/// All that `symmetric.md` shows.
#[derive(Debug, Clone, Serialize)]
pub struct SymmetricPage {
    /// Top and foot.
    pub frame: Frame,
    /// One row per candidate.
    pub verdicts: Table,
    /// One table per candidate that has profiles.
    pub candidates: Vec<CandidateShares>,
    /// All notes.
    pub notes: Vec<Note>,
}

/// Shares of one candidate.
#[derive(Debug, Clone, Serialize)]
pub struct CandidateShares {
    /// Id.
    pub id: String,
    /// Name.
    pub name: String,
    /// What became of the cost of the wrappers in its shares.
    pub wrappers: String,
    /// Its shares and calls.
    pub table: Table,
}

impl SymmetricPage {
    /// The survey of a dataset.
    pub fn new(dataset: &Dataset, place: &Place) -> Self {
        let mut notes = Notes::default();
        let mut verdicts = Table::with(&["candidate", "name", "verdict", "wrapped"]);
        let mut candidates = Vec::new();
        for candidate in &dataset.campaign.candidates {
            let rows = Rows::of(dataset, candidate);
            if rows.shown.is_empty() {
                continue;
            }
            let verdict = symmetric::verdict(&rows);
            let mut verdict_cell =
                Cell::or_missing(verdict, &mut notes, &symmetric::why_no_verdict(&rows));
            if dataset.cells.is_some() && verdict_cell.notes.is_empty() {
                verdict_cell = verdict_cell.with_note(&mut notes, symmetric::FROM_PRINTED_CALLS);
            }
            verdicts.rows.push(vec![
                Cell::code(&candidate.id).to(format!("{}.md", page_name(&candidate.id))),
                Cell::text(&candidate.name),
                verdict_cell,
                Cell::text(&candidate.wrap_column),
            ]);
            let table = aggregate::table(&rows, "symmetric", &mut notes)
                .or_else(|| symmetric::table(&rows, Shares::Plain, &mut notes));
            candidates.extend(table.map(|table| CandidateShares {
                id: candidate.id.clone(),
                name: candidate.name.clone(),
                wrappers: symmetric::wrappers(&rows).sentence(&candidate.id),
                table,
            }));
        }
        SymmetricPage {
            frame: Frame::new(dataset, place, Some("symmetric"), |_| {
                Some("symmetric.md".to_owned())
            }),
            verdicts,
            candidates,
            notes: notes.into_list(),
        }
    }
}

//! Sizes: what goes over the wire and into storage, and the audit of the published sizes against
//! what the interface claims.

use super::common::{kat_marks, Frame, Place, Rows};
use crate::catalogue::{self, Basis};
use crate::dataset::Dataset;
use crate::evidence::SizesRecord;
use crate::report::table::{Cell, Note, Notes, Table};
use serde::Serialize;

/// All that `sizes.md` shows.
#[derive(Debug, Clone, Serialize)]
pub struct SizesPage {
    /// Top and foot.
    pub frame: Frame,
    /// Every label with its published and claimed sizes.
    pub audit: Table,
    /// How many published sizes were held against a claim.
    pub compared: usize,
    /// How many disagree.
    pub differing: usize,
    /// All notes.
    pub notes: Vec<Note>,
}

impl SizesPage {
    /// The size audit of a dataset.
    pub fn new(dataset: &Dataset, place: &Place) -> Self {
        let mut audit = Audit {
            table: Table::with(&[
                "instance",
                "candidate",
                "size",
                "published (bytes)#",
                "basis",
                "claimed (bytes)#",
                "result",
            ]),
            notes: Notes::default(),
            compared: 0,
            differing: 0,
        };
        for candidate in &dataset.campaign.candidates {
            let rows = Rows::of(dataset, candidate);
            for (label, claimed) in labels(&rows) {
                audit.label(&rows, place, label, claimed);
            }
        }
        SizesPage {
            frame: Frame::new(dataset, place, Some("sizes"), |_| {
                Some("sizes.md".to_owned())
            }),
            audit: audit.table,
            compared: audit.compared,
            differing: audit.differing,
            notes: audit.notes.into_list(),
        }
    }
}

struct Audit {
    table: Table,
    notes: Notes,
    compared: usize,
    differing: usize,
}

impl Audit {
    fn label(&mut self, rows: &Rows, place: &Place, label: &str, claimed: Option<SizesRecord>) {
        let published = place.catalogue.find(&rows.candidate.id, label);
        let sizes = [
            (
                "public key",
                published.and_then(|row| row.public_key_bytes),
                claimed.map(|sizes| sizes.public_key_bytes),
            ),
            (
                "signature",
                published.and_then(|row| row.signature_bytes),
                claimed.map(|sizes| sizes.signature_bytes),
            ),
        ];
        for (name, published_bytes, claimed_bytes) in sizes {
            let result = self.result(published_bytes, claimed_bytes, published);
            let mut published_cell = Cell::or_missing(
                published_bytes.map(|b| b.to_string()),
                &mut self.notes,
                NOT_PUBLISHED,
            );
            if let (Some(row), Some(_)) = (published, published_bytes) {
                published_cell =
                    published_cell.with_note(&mut self.notes, format!("source: {}", row.source));
            }
            self.table.rows.push(vec![
                label_cell(rows, label, &mut self.notes),
                Cell::text(&rows.candidate.id),
                Cell::text(name),
                published_cell,
                Cell::or_missing(
                    published.map(|row| row.basis.word().to_owned()),
                    &mut self.notes,
                    NOT_PUBLISHED,
                ),
                Cell::or_missing(
                    claimed_bytes.map(|b| b.to_string()),
                    &mut self.notes,
                    NOT_CLAIMED,
                ),
                Cell::text(result),
            ]);
        }
    }

    fn result(
        &mut self,
        published: Option<u64>,
        claimed: Option<u64>,
        row: Option<&catalogue::Row>,
    ) -> String {
        let (Some(published), Some(claimed)) = (published, claimed) else {
            return "not compared".to_owned();
        };
        self.compared += 1;
        let nominal = row.is_some_and(|row| row.basis == Basis::NominalVariable);
        if published == claimed {
            "agrees".to_owned()
        } else if nominal && claimed > published {
            format!(
                "room for {} more than the nominal size",
                claimed - published
            )
        } else {
            self.differing += 1;
            let difference = i128::from(claimed) - i128::from(published);
            format!("differs by {difference:+}")
        }
    }
}

const NOT_PUBLISHED: &str = "not in the size catalogue (not_recorded)";
const NOT_CLAIMED: &str = "no record states what the interface claims (not_recorded)";

/// The labels of a candidate in page order, with the lengths that its interface claims.
fn labels<'a>(rows: &Rows<'a>) -> Vec<(&'a str, Option<SizesRecord>)> {
    let mut all: Vec<(&str, Option<SizesRecord>)> = Vec::new();
    for identity in &rows.shown {
        if all.iter().any(|(label, _)| *label == identity.label) {
            continue;
        }
        let claimed = rows
            .each()
            .filter(|key| key.0.label == identity.label)
            .find_map(|key| rows.timing(&key)?.value.sizes);
        all.push((&identity.label, claimed));
    }
    all
}

/// A label, marked where the KAT of any of its rows did not pass.
fn label_cell(rows: &Rows, label: &str, notes: &mut Notes) -> Cell {
    let marks = kat_marks(rows).into_iter();
    marks
        .filter(|(of, _)| *of == label)
        .fold(Cell::code(label), |cell, (_, text)| {
            cell.with_note(notes, text)
        })
}

/// The table of a candidate's page: published sizes where there are any, else those claimed; the
/// secret key as claimed.
pub(super) fn table(rows: &Rows, place: &Place, notes: &mut Notes) -> Table {
    let mut table = Table::with(&["instance", "public key#", "secret key#", "signature#"]);
    for (label, claimed) in labels(rows) {
        let published = place.catalogue.find(&rows.candidate.id, label);
        let public = published.and_then(|row| row.public_key_bytes);
        let signature = published.and_then(|row| Some((row.signature_bytes?, row.basis)));
        let secret = claimed.map(|sizes| sizes.secret_key_bytes.to_string());
        let cells = vec![
            label_cell(rows, label, notes),
            size(
                public.map(|b| b.to_string()),
                claimed.map(|s| s.public_key_bytes),
                notes,
            ),
            Cell::or_missing(secret, notes, NOT_CLAIMED),
            size(
                signature.map(|(bytes, basis)| with_basis(bytes, basis)),
                claimed.map(|s| s.signature_bytes),
                notes,
            ),
        ];
        table.rows.push(cells);
    }
    table
}

/// `≈` before a nominal size, `(maximum)` behind a maximum.
fn with_basis(bytes: u64, basis: Basis) -> String {
    match basis {
        Basis::Encoded => bytes.to_string(),
        Basis::NominalVariable => format!("≈{bytes}"),
        Basis::MaximumVariable => format!("{bytes} (maximum)"),
    }
}

fn size(published: Option<String>, claimed: Option<u64>, notes: &mut Notes) -> Cell {
    match (published, claimed) {
        (Some(text), _) => Cell::text(text),
        (None, Some(bytes)) => Cell::text(bytes.to_string()).with_note(
            notes,
            "not in the size catalogue: the length that the interface claims",
        ),
        (None, None) => Cell::missing(notes, NOT_PUBLISHED),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varying_sizes_are_marked() {
        assert_eq!(with_basis(666, Basis::Encoded), "666");
        assert_eq!(with_basis(666, Basis::NominalVariable), "≈666");
        assert_eq!(with_basis(666, Basis::MaximumVariable), "666 (maximum)");
    }
}

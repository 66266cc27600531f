//! The headline figures of a row, from its record or from the cells of a published page: what the
//! summary, the rankings and the comparison repeat.

use super::common::{source_mean, why_not, why_null, SOURCES};
use crate::dataset::{Dataset, Key};
use crate::evidence::{CellTable, CellsFile, Quantity};
use crate::identity::Identity;
use crate::report::format;
use crate::report::table::{Cell, Notes};
use protocol::SourceKind;

/// Headline figures of one operation of one identity.
#[derive(Debug, Clone)]
pub struct Figures {
    /// Where cycles or ticks come from.
    pub source: SourceKind,
    /// Mean cycles or ticks.
    pub mean: Option<Shown>,
    /// Mean time, seconds.
    pub time: Option<Shown>,
    /// Timed calls.
    pub calls: Option<u64>,
    /// Share of wrapped hash functions.
    pub share: Share,
    /// Why there is no time at all.
    pub reason: Option<String>,
}

/// A value and how it is printed.
#[derive(Debug, Clone, PartialEq)]
pub struct Shown {
    /// Value in the base unit.
    pub value: f64,
    /// As tables print it.
    pub text: String,
    /// Significant digits that it carries; `None` where it is exact enough (from a record).
    pub digits: Option<u32>,
}

/// Share of wrapped hash functions.
#[derive(Debug, Clone, PartialEq)]
pub enum Share {
    /// Measured, or printed by a published page.
    Known(Shown),
    /// Nothing was wrapped.
    NothingWrapped,
    /// Not measured.
    Unknown,
}

impl Share {
    /// As summaries print it; `None` where it was not measured.
    pub fn text(&self) -> Option<String> {
        match self {
            Share::Known(share) => Some(share.text.clone()),
            Share::NothingWrapped => Some("??%".to_owned()),
            Share::Unknown => None,
        }
    }

    /// Whether a published page prints it as one that is zero or too small for its digits.
    pub fn is_printed_zero(&self) -> bool {
        matches!(self, Share::Known(Shown { text, digits: Some(_), .. }) if text == PRINTED_ZERO)
    }
}

/// How the public pages print a share that is zero or tiny.
pub(super) const PRINTED_ZERO: &str = "0.0%";

/// Said of such a share.
pub(super) const ZERO_OR_TINY: &str = "a share printed as 0.0%: zero, or below 0.05%";

/// Calls below which summaries give their number, and the guide asks for more (NICCS guide §3.3).
pub const FEW_CALLS: u64 = 100;

impl Figures {
    /// Figures of a key, from whatever the dataset has.
    pub fn of(dataset: &Dataset, key: &Key) -> Self {
        match &dataset.cells {
            Some(entry) => from_cells(&entry.value, key),
            None => from_record(dataset, key),
        }
    }

    /// `(19%)`, `(4.9%, n=20)`, `(n=20)` or nothing.
    fn parenthesis(&self, with_share: bool) -> String {
        let share = with_share.then(|| self.share.text()).flatten();
        let few = self.calls.filter(|calls| *calls < FEW_CALLS);
        let parts: Vec<String> = share
            .into_iter()
            .chain(few.map(|calls| format!("n={calls}")))
            .collect();
        if parts.is_empty() {
            String::new()
        } else {
            format!(" ({})", parts.join(", "))
        }
    }

    /// Cell of a summary: cycles or ticks with share and number of calls.
    pub fn mean_cell(&self, notes: &mut Notes) -> Cell {
        match &self.mean {
            Some(mean) => {
                let cell = Cell::text(format!("{}{}", mean.text, self.parenthesis(true)));
                match self.share.is_printed_zero() {
                    true => cell.with_note(notes, ZERO_OR_TINY),
                    false => cell,
                }
            }
            None => Cell::missing(notes, self.why()),
        }
    }

    /// Cell of a summary: time with number of calls, and with the share where no cell of cycles has it.
    pub fn time_cell(&self, with_share: bool, notes: &mut Notes) -> Cell {
        match &self.time {
            Some(time) => Cell::text(format!("{}{}", time.text, self.parenthesis(with_share))),
            None => Cell::missing(notes, self.why()),
        }
    }

    fn why(&self) -> &str {
        self.reason
            .as_deref()
            .unwrap_or("not recorded (not_recorded)")
    }
}

fn from_record(dataset: &Dataset, key: &Key) -> Figures {
    let record = dataset.timing.get(key).map(|entry| &entry.value);
    let derived = record.and_then(|record| record.derived.as_ref());
    let source = record.map_or(SourceKind::None, |record| record.cycle_source.kind);
    let mean = record
        .filter(|_| SOURCES.contains(&source))
        .and_then(|record| source_mean(record, source));
    let exact = |value: f64, text: String| Shown {
        value,
        text,
        digits: None,
    };
    let reason = match (record, derived) {
        (None, _) => Some(why_not(dataset, &key.0, "measure")),
        (Some(record), None) => Some(why_null(&record.head, "/derived")),
        (Some(record), Some(_)) if mean.is_none() => Some(match &record.cycle_source.reason {
            Some(reason) => crate::report::table::reason_text(reason),
            None => why_null(&record.head, "/derived/mean_cycles"),
        }),
        _ => None,
    };
    Figures {
        source,
        mean: mean.map(|value| exact(value, format::cycles(value))),
        time: derived.map(|d| exact(d.mean_s, format::time(d.mean_s))),
        calls: derived.map(|d| d.n),
        share: share_of(dataset, key),
        reason,
    }
}

/// Verdict word of a profile in which nothing was wrapped.
pub(super) const NONE_WRAPPED: &str = "none wrapped";

fn share_of(dataset: &Dataset, key: &Key) -> Share {
    let profile = dataset.profile.get(key);
    match profile.and_then(|entry| entry.value.derived.as_ref()) {
        Some(derived) if derived.verdict == NONE_WRAPPED => Share::NothingWrapped,
        Some(derived) => derived.hash_share.map_or(Share::Unknown, |share| {
            Share::Known(Shown {
                value: share,
                text: format::share(share),
                digits: None,
            })
        }),
        None => Share::Unknown,
    }
}

/// The row of a table of cells about a label and, where the table has that column, an operation.
pub fn cell_row<'c>(table: &'c CellTable, key: &Key) -> Option<&'c Vec<crate::evidence::Cell>> {
    let instance = table.column("instance")?;
    let operation = table.column("operation");
    table.rows.iter().find(|row| {
        let is = |column: usize, text: &str| row.get(column).is_some_and(|cell| cell.text == text);
        is(instance, &key.0.label) && operation.is_none_or(|column| is(column, key.1.name()))
    })
}

/// Whether published cells are of an identity.
fn is_of(cells: &CellsFile, identity: &Identity) -> bool {
    identity.candidate == cells.candidate
        && identity.code == cells.code
        && identity.build == cells.build
}

/// The number that a published page prints for a key in a section with a row for each operation.
pub(super) fn cell_of<'d>(
    dataset: &'d Dataset,
    key: &Key,
    section: &str,
    title: &str,
) -> Option<&'d Quantity> {
    let cells = &dataset.cells.as_ref()?.value;
    let table = cells.table(section).filter(|_| is_of(cells, &key.0))?;
    cell_row(table, key)?
        .get(table.column(title)?)?
        .quantity
        .as_ref()
}

/// The text that a published page has for an identity, in a section with one row a label.
pub fn printed<'d>(
    dataset: &'d Dataset,
    identity: &Identity,
    section: &str,
    title: &str,
) -> Option<&'d str> {
    let cells = &dataset.cells.as_ref()?.value;
    let table = cells.table(section).filter(|_| is_of(cells, identity))?;
    let instance = table.column("instance")?;
    let is_label = |cell: &crate::evidence::Cell| cell.text == identity.label;
    let mut rows = table.rows.iter();
    let row = rows.find(|row| row.get(instance).is_some_and(is_label))?;
    Some(&row.get(table.column(title)?)?.text)
}

fn from_cells(cells: &CellsFile, key: &Key) -> Figures {
    let of_this = is_of(cells, &key.0);
    let performance = cells.table("performance").filter(|_| of_this);
    let row = performance.and_then(|table| cell_row(table, key));
    let shown = |title: &str| {
        let cell = row?.get(performance?.column(title)?)?;
        let Quantity { value, digits, .. } = cell.quantity.as_ref()?;
        Some(Shown {
            value: *value,
            text: cell.text.clone(),
            digits: Some(*digits),
        })
    };
    let mean = shown(super::common::source_title(cells.cycle_source));
    let symmetric = cells.table("symmetric").filter(|_| of_this);
    let share = symmetric
        .and_then(|table| cell_row(table, key))
        .and_then(|row| {
            let cell = row.get(2)?;
            Some((cell.text.clone(), cell.quantity.as_ref()?))
        })
        .map_or(Share::Unknown, |(text, quantity)| {
            Share::Known(Shown {
                value: quantity.value,
                text,
                digits: Some(quantity.digits),
            })
        });
    Figures {
        source: cells.cycle_source,
        time: shown("mean time"),
        calls: shown("n (trials × iters)").map(|n| n.value as u64),
        share,
        reason: mean
            .is_none()
            .then(|| "the published page has no such cell (aggregate)".to_owned()),
        mean,
    }
}

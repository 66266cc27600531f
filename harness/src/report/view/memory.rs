//! Resource consumption: static image, resident set, and the memory of an operation in isolation.

use super::common::Rows;
use super::figures::cell_of;
use crate::dataset::{Dataset, Key};
use crate::evidence::{Class, Trial};
use crate::report::format;
use crate::report::table::{Cell, Notes, Table};
use serde::Serialize;

/// Image and resident set, in the form of the public pages.
pub(super) fn resident(rows: &Rows, notes: &mut Notes) -> Table {
    let mut table = rows.table(&[
        "operation",
        &format!("{STATIC_TITLE}#"),
        "baseline RSS#",
        "peak RSS#",
    ]);
    for key in rows.each() {
        let mut cells = rows.head(&key.0, notes);
        cells.push(Cell::text(key.1.name()));
        let elf = static_bytes(rows.dataset, &key).map(|bytes| bytes.to_string());
        cells.push(Cell::or_missing(elf, notes, &rows.why_not(&key.0, "build")));
        let resident = resident_of(rows.dataset, &key);
        let baseline = resident.and_then(|resident| resident.baseline_bytes);
        let peak = resident.and_then(|resident| resident.peak_bytes);
        let why = rows.why_not(&key.0, "measure");
        cells.push(Cell::or_missing(baseline.map(format::kib), notes, &why));
        cells.push(Cell::or_missing(peak.map(format::kib), notes, &why));
        table.rows.push(cells);
    }
    table
}

/// Resident set of a process that runs an operation, and of which process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Resident {
    /// Which processes.
    pub method: ResidentMethod,
    /// Before the operation, bytes.
    pub baseline_bytes: Option<u64>,
    /// At most, bytes.
    pub peak_bytes: Option<u64>,
}

/// The processes that a resident set is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ResidentMethod {
    /// The process of the memory phase.
    MemoryProcess,
    /// The timed process of a counted attempt with the highest peak.
    TimedProcess,
    /// Maxima over the timed processes of a row, each for itself.
    TimedMaxima,
    /// As a published page prints it.
    Printed,
}

impl ResidentMethod {
    /// In words.
    pub fn text(self) -> &'static str {
        match self {
            ResidentMethod::MemoryProcess => "of the process of the memory phase",
            ResidentMethod::TimedProcess => "of the timed process with the highest peak",
            ResidentMethod::TimedMaxima => {
                "the maxima over the timed processes of a row, each for itself"
            }
            ResidentMethod::Printed => {
                "as its published page prints them, which does not say of which processes"
            }
        }
    }

    /// Whether values of the two may stand side by side. The public campaign's pages print the maxima
    /// over timed processes wherever its records are at hand to see it.
    pub fn is_like(self, other: Self) -> bool {
        let one = |method| match method {
            ResidentMethod::Printed => ResidentMethod::TimedMaxima,
            other => other,
        };
        one(self) == one(other)
    }
}

/// Baseline and peak of ONE process: that of the memory phase, else the counted attempt with the
/// highest peak. An import gives the maxima over its processes, which is what its source states, and
/// published cells what they print.
pub fn resident_of(dataset: &Dataset, key: &Key) -> Option<Resident> {
    if dataset.cells.is_some() {
        let bytes = |title| Some(cell_of(dataset, key, "resource", title)?.value as u64);
        return some_of(
            ResidentMethod::Printed,
            bytes("baseline RSS"),
            bytes("peak RSS"),
        );
    }
    let memory = dataset.memory.get(key);
    if let Some(process) = memory.and_then(|entry| entry.value.process) {
        return some_of(
            ResidentMethod::MemoryProcess,
            Some(process.baseline_rss_bytes),
            Some(process.peak_rss_bytes),
        );
    }
    let record = &dataset.timing.get(key)?.value;
    let counted = record.trials.iter().filter_map(Trial::counted_attempt);
    if record.head.class == Class::Imported {
        return some_of(
            ResidentMethod::TimedMaxima,
            counted.clone().filter_map(|a| a.baseline_rss_bytes).max(),
            counted.filter_map(|a| a.peak_rss_bytes).max(),
        );
    }
    let highest = counted
        .filter(|attempt| attempt.peak_rss_bytes.is_some())
        .max_by_key(|attempt| attempt.peak_rss_bytes)?;
    some_of(
        ResidentMethod::TimedProcess,
        highest.baseline_rss_bytes,
        highest.peak_rss_bytes,
    )
}

fn some_of(
    method: ResidentMethod,
    baseline_bytes: Option<u64>,
    peak_bytes: Option<u64>,
) -> Option<Resident> {
    (baseline_bytes.is_some() || peak_bytes.is_some()).then_some(Resident {
        method,
        baseline_bytes,
        peak_bytes,
    })
}

/// Loaded bytes of the timed library: the sum of its loaded ELF segments.
pub fn static_bytes(dataset: &Dataset, key: &Key) -> Option<u64> {
    if dataset.cells.is_some() {
        return Some(cell_of(dataset, key, "resource", STATIC_TITLE)?.value as u64);
    }
    Some(dataset.build_row(&key.0)?.elf.as_ref()?.load_bytes)
}

const STATIC_TITLE: &str = "static: ELF image (bytes)";

/// Stack and heap of an operation alone; rows without the evidence are left to `why`.
pub(super) fn isolated(rows: &Rows, notes: &mut Notes) -> Option<Table> {
    if !rows
        .each()
        .any(|key| rows.dataset.memory.contains_key(&key))
    {
        return None;
    }
    let mut table = rows.table(&[
        "operation",
        "stack (bytes)#",
        "median stack (bytes)#",
        "heap (bytes)#",
        "median heap (bytes)#",
        "static + stack + heap (bytes)#",
        "allocations#",
        "not freed (bytes)#",
        "keys#",
    ]);
    for key in rows.each() {
        let mut cells = rows.head(&key.0, notes);
        cells.push(Cell::text(key.1.name()));
        cells.extend(isolated_cells(rows, &key, notes));
        table.rows.push(cells);
    }
    Some(table)
}

fn isolated_cells(rows: &Rows, key: &Key, notes: &mut Notes) -> Vec<Cell> {
    const VALUES: usize = 8;
    let Some(evidence) = rows.dataset.memory.get(key).map(|entry| &entry.value) else {
        let why = rows.why_not(&key.0, "memory");
        return (0..VALUES).map(|_| Cell::missing(notes, &why)).collect();
    };
    let Some(derived) = &evidence.derived else {
        let why = super::common::why_null(&evidence.head, "/derived");
        return (0..VALUES).map(|_| Cell::missing(notes, &why)).collect();
    };
    let worst = |value: fn(&protocol::MemoryRun) -> u64| {
        evidence
            .runs
            .iter()
            .map(value)
            .max()
            .unwrap_or(0)
            .to_string()
    };
    let mut heap = Cell::text(worst(|run| run.heap_peak_bytes));
    if evidence.interposed_sha256.is_some() {
        heap = heap.with_note(notes, INTERPOSED);
    }
    let mut total = Cell::text(derived.guide_total_bytes.to_string());
    if evidence.lto_removed {
        total = total.with_note(notes, LTO_REMOVED);
    }
    vec![
        Cell::text(worst(|run| run.stack_peak_bytes)),
        Cell::text(median_bytes(derived.median.stack_peak_bytes)),
        heap,
        Cell::text(median_bytes(derived.median.heap_peak_bytes)),
        total,
        Cell::text(worst(|run| run.allocations)),
        Cell::text(worst(|run| run.leaked_bytes)),
        Cell::text(evidence.runs.len().to_string()),
    ]
}

/// Said of a heap that no wrappers counted.
const INTERPOSED: &str = "the library comes already built: its allocations were counted by an allocator interposed in the process, the C library's own on its behalf included";

/// Bytes, with the half that a median of an even number of runs may have.
fn median_bytes(bytes: f64) -> String {
    match bytes.fract() == 0.0 {
        true => format!("{bytes:.0}"),
        false => format!("{bytes:.1}"),
    }
}

/// Said wherever a figure comes from a library without the timed one's link-time optimisation.
pub(super) const LTO_REMOVED: &str = "measured on a library of the same flags without -flto, because link-time optimisation defeats the wrappers";

const NOT_RECORDED: &str = "not recorded (not_recorded)";

/// Parts of the static image.
pub(super) fn static_parts(rows: &Rows, notes: &mut Notes) -> Option<Table> {
    let mut table = rows.table(&[
        "text#",
        "read-only data#",
        "data#",
        "zero-initialised#",
        "headers and tables#",
        "loaded in all#",
        "needs",
    ]);
    for identity in &rows.shown {
        let build = rows.dataset.build_row(identity);
        let Some(elf) = build.and_then(|row| row.elf.as_ref()) else {
            continue;
        };
        // An import knows the loaded bytes only, which another table shows.
        let parts = [
            elf.text,
            elf.rodata,
            elf.data,
            elf.bss,
            elf.headers_and_tables,
        ];
        if parts.iter().all(Option::is_none) {
            continue;
        }
        let mut cells = rows.head(identity, notes);
        let all = Some(elf.load_bytes);
        cells.extend(parts.into_iter().chain([all]).map(|part| {
            Cell::or_missing(part.map(|bytes| bytes.to_string()), notes, NOT_RECORDED)
        }));
        let needed = elf.needed.as_ref().map(|names| match names.is_empty() {
            true => "nothing".to_owned(),
            false => names.join(", "),
        });
        cells.push(Cell::or_missing(needed, notes, NOT_RECORDED));
        table.rows.push(cells);
    }
    (!table.is_empty()).then_some(table)
}

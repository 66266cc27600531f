//! Resource consumption: static image, resident set, and the memory of an operation in isolation.

use super::common::Rows;
use crate::dataset::Key;
use crate::evidence::{Class, Trial};
use crate::report::format;
use crate::report::table::{Cell, Notes, Table};

/// Image and resident set, in the form of the public pages.
pub(super) fn resident(rows: &Rows, notes: &mut Notes) -> Table {
    let mut table = rows.table(&[
        "operation",
        "static: ELF image (bytes)#",
        "baseline RSS#",
        "peak RSS#",
    ]);
    for key in rows.each() {
        let mut cells = rows.head(&key.0, notes);
        cells.push(Cell::text(key.1.name()));
        let elf = rows
            .dataset
            .build_row(&key.0)
            .and_then(|row| row.elf.as_ref())
            .map(|elf| elf.load_bytes.to_string());
        cells.push(Cell::or_missing(elf, notes, &rows.why_not(&key.0, "build")));
        let (baseline, peak) = resident_set(rows, &key);
        let why = rows.why_not(&key.0, "measure");
        cells.push(Cell::or_missing(baseline.map(format::kib), notes, &why));
        cells.push(Cell::or_missing(peak.map(format::kib), notes, &why));
        table.rows.push(cells);
    }
    table
}

/// Baseline and peak of ONE process: that of the memory phase, else the counted attempt with the
/// highest peak. An import gives the maxima over its processes, which is what its source states.
fn resident_set(rows: &Rows, key: &Key) -> (Option<u64>, Option<u64>) {
    let memory = rows.dataset.memory.get(key);
    if let Some(process) = memory.and_then(|entry| entry.value.process) {
        return (
            Some(process.baseline_rss_bytes),
            Some(process.peak_rss_bytes),
        );
    }
    let Some(record) = rows.timing(key).map(|entry| &entry.value) else {
        return (None, None);
    };
    let counted = record.trials.iter().filter_map(Trial::counted_attempt);
    if record.head.class == Class::Imported {
        return (
            counted.clone().filter_map(|a| a.baseline_rss_bytes).max(),
            counted.filter_map(|a| a.peak_rss_bytes).max(),
        );
    }
    counted
        .filter(|attempt| attempt.peak_rss_bytes.is_some())
        .max_by_key(|attempt| attempt.peak_rss_bytes)
        .map_or((None, None), |attempt| {
            (attempt.baseline_rss_bytes, attempt.peak_rss_bytes)
        })
}

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

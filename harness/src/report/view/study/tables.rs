//! Tables of a study: points, models, levels; and the sentences that answer its questions.

use super::charts::{megabytes, percent};
use super::data::{mean_s, trial_means, value, Data};
use crate::dataset::Entry;
use crate::evidence::{FitModel, FitValue, Status, StudyRecord};
use crate::identity::Identity;
use crate::report::format;
use crate::report::table::{Cell, Notes, Table};
use crate::report::view::common::{
    evidence_cell, kat_mark, source_mean, source_title, sources, why_null, Place,
};
use crate::stats::{self, Welch, WelchError};
use crate::values::Size;
use protocol::{Operation, SourceKind, StudyMode};
use std::collections::BTreeSet;

/// Adjusted p value below which two levels are told apart.
const ALPHA: f64 = 0.05;

/// Whose code was measured, and whether it is known to be correct.
pub fn candidates(data: &Data, notes: &mut Notes) -> Table {
    let mut table = Table::with(&["instance", "code", "build", "whose code", "KAT"]);
    for identity in &data.identities {
        let known = data.dataset.campaign.candidates.iter();
        let origin = known
            .into_iter()
            .find(|candidate| candidate.id == identity.candidate)
            .map_or("", |candidate| candidate.origin.word());
        let kat = match kat_mark(data.dataset, identity) {
            None => Cell::text("PASS"),
            Some(text) => Cell::text("see note").with_note(notes, text),
        };
        table.rows.push(vec![
            Cell::code(format!("{}/{}", identity.candidate, identity.label)),
            Cell::text(&identity.code),
            Cell::text(&identity.build),
            Cell::text(origin),
            kat,
        ]);
    }
    table
}

/// Cells that name a point.
fn head(record: &StudyRecord) -> Vec<Cell> {
    vec![
        Cell::text(record.timing.operation.name()),
        Cell::code(record.mode.name()),
        Cell::text(Size(record.size_bytes).to_string()),
    ]
}

/// A value of a point, or why it is not there.
fn cell(
    entry: &Entry<StudyRecord>,
    text: Option<String>,
    pointer: &str,
    notes: &mut Notes,
) -> Cell {
    match text {
        Some(text) => Cell::text(text),
        None => Cell::missing(notes, why_null(&entry.value.timing.head, pointer)),
    }
}

/// Time of each point.
pub fn time(data: &Data, identity: &Identity, place: &Place, notes: &mut Notes) -> Table {
    let points = data.points_of(identity);
    let kinds = sources(points.iter().map(|entry| &entry.value.timing));
    let mut table = Table::with(&["operation", "mode", "size#", "mean time#", "95% interval#"]);
    for &kind in &kinds {
        table.add_columns(&[&format!("{}#", source_title(kind))]);
    }
    table.add_columns(&["MB/s#", "n (trials × iters)#", "record"]);
    for entry in points {
        table.rows.push(time_row(entry, &kinds, place, notes));
    }
    table
}

fn time_row(
    entry: &Entry<StudyRecord>,
    kinds: &[SourceKind],
    place: &Place,
    notes: &mut Notes,
) -> Vec<Cell> {
    let record = &entry.value;
    let derived = record.timing.derived.as_ref();
    let mut cells = head(record);
    let mean = derived.map(|d| format::time(d.mean_s));
    cells.push(cell(entry, mean, "/derived", notes));
    let interval = derived.and_then(|d| d.ci95.map(|ci| (ci.high - ci.low) / 2.0 / d.mean_s));
    let interval = interval.map(|half| format!("±{}", format::share(half)));
    cells.push(cell(entry, interval, "/derived/ci95", notes));
    for &kind in kinds {
        let mean = source_mean(&record.timing, kind).map(format::cycles);
        cells.push(cell(entry, mean, "/derived/mean_cycles", notes));
    }
    let rate = value(record, |study| study.throughput_mb_per_s).flatten();
    let rate = rate.map(format::general3);
    cells.push(cell(entry, rate, "/study/throughput_mb_per_s", notes));
    let n = derived.map(|d| {
        let plan = &record.timing.plan;
        format::n(d.n, u64::from(plan.trials), plan.iterations)
    });
    cells.push(cell(entry, n, "/derived", notes));
    let file = evidence_cell(place, &entry.file);
    cells.push(Cell {
        text: format::digest16(&entry.sha256),
        ..file
    });
    cells
}

/// CPU and memory of each point.
pub fn resources(data: &Data, identity: &Identity, notes: &mut Notes) -> Table {
    let mut table = Table::with(&[
        "operation",
        "mode",
        "size#",
        "of one core#",
        "of all cores#",
        "user#",
        "system#",
        "baseline RSS#",
        "peak RSS#",
        "page faults#",
    ]);
    for entry in data.points_of(identity) {
        let record = &entry.value;
        let mut cells = head(record);
        let study = record.study.as_ref();
        let texts = [
            study.map(|s| percent(s.cpu_percent_one)),
            study.map(|s| percent(s.cpu_percent_all)),
            study.map(|s| time_or_zero(s.user_s)),
            study.map(|s| time_or_zero(s.system_s)),
            study.map(|s| megabytes(s.baseline_rss_bytes as f64)),
            study.map(|s| megabytes(s.peak_rss_bytes as f64)),
            study.map(|_| faults(record)),
        ];
        for text in texts {
            cells.push(cell(entry, text, "/study", notes));
        }
        table.rows.push(cells);
    }
    table
}

fn time_or_zero(seconds: f64) -> String {
    match seconds == 0.0 {
        true => "0 s".to_owned(),
        false => format::time(seconds),
    }
}

/// Most page faults of the timed calls of a trial, minor and major.
fn faults(record: &StudyRecord) -> String {
    let trials = record.timing.trials.iter();
    let counted = trials.filter_map(|trial| trial.counted_attempt()?.faults);
    let (minor, major) = counted.fold((0, 0), |(minor, major), faults| {
        (faults.minor.max(minor), faults.major.max(major))
    });
    match major {
        0 => minor.to_string(),
        _ => format!("{minor} and {major} major"),
    }
}

/// Reading and hashing, where a mode tells them apart.
pub fn reading(data: &Data, identity: &Identity) -> Option<Table> {
    let mut table = Table::with(&[
        "operation",
        "mode",
        "size#",
        "bytes read in an attempt#",
        "reading#",
        "hashing#",
        "hashing, share of the call#",
    ]);
    for entry in data.points_of(identity) {
        let record = &entry.value;
        let Some(study) = record.study.as_ref().filter(|study| study.read_s.is_some()) else {
            continue;
        };
        let counted = record.timing.trials.iter().zip(&record.io);
        let bytes = counted.filter_map(|(t, io)| Some(io.get(t.counted? as usize)?.bytes_read));
        let mut cells = head(record);
        cells.push(Cell::text(bytes.max().unwrap_or(0).to_string()));
        let text =
            |text: Option<String>| Cell::text(text.unwrap_or_else(|| "before the calls".into()));
        cells.push(text(study.read_s.map(time_or_zero)));
        cells.push(text(study.hash_s.map(time_or_zero)));
        cells.push(text(study.hash_share.map(format::share)));
        if record.mode == StudyMode::Buffer {
            // The call hashes, and nobody stands between to time it.
            let within = Cell::text("within the call");
            let last = cells.len() - 2;
            cells.splice(last.., [within.clone(), within]);
        }
        table.rows.push(cells);
    }
    (!table.is_empty()).then_some(table)
}

/// A fitted value with its interval.
fn fitted(value: FitValue, text: impl Fn(f64) -> String) -> String {
    let end = |end: Option<f64>| end.map_or("∞".to_owned(), &text);
    format!(
        "{} ({} to {})",
        text(value.value),
        end(value.low),
        end(value.high)
    )
}

fn signed_time(seconds: f64) -> String {
    match seconds {
        s if s < 0.0 => format!("−{}", format::time(-s)),
        s => time_or_zero(s),
    }
}

/// A size that was computed, three significant digits.
fn about(bytes: f64) -> String {
    for (unit, name) in [(1e9, "GB"), (1e6, "MB"), (1e3, "kB")] {
        if bytes >= unit {
            return format!("{} {name}", format::general3(bytes / unit));
        }
    }
    format!("{bytes:.0} B")
}

/// An identity without its candidate, in words that can break.
fn short(identity: &Identity) -> String {
    format!("{} {} {}", identity.label, identity.code, identity.build)
}

/// Whether the fitted time grows beyond doubt.
fn grows(model: &FitModel) -> bool {
    model.s_per_byte.low.is_some_and(|low| low > 0.0)
}

const NO_GROWTH: &str =
    "the growth with the size cannot be told from 0: its 95% interval holds 0 (below_resolution)";

/// The fitted models.
pub fn models(data: &Data, notes: &mut Notes) -> Table {
    let mut table = Table::with(&[
        "instance",
        "operation",
        "mode",
        "fixed cost#",
        "MB/s#",
        "worst deviation#",
        "growing part above 90% from#",
        "hashing measured above 90% from#",
    ]);
    for identity in &data.identities {
        for operation in data.operations() {
            let Some(fit) = data.fit(identity, operation) else {
                continue;
            };
            for (index, mode) in fit.value.modes.iter().enumerate() {
                let why = |key: &str| why_null(&fit.value.head, &format!("/modes/{index}/{key}"));
                let mut cells = vec![
                    Cell::text(short(identity)),
                    Cell::text(operation.name()),
                    Cell::code(mode.mode.name()),
                ];
                match &mode.model {
                    None => cells.extend((0..4).map(|_| Cell::missing(notes, why("model")))),
                    Some(model) => {
                        let reason = |key: &str| match grows(model) {
                            true => why(&format!("model/{key}")),
                            false => NO_GROWTH.to_owned(),
                        };
                        let known = |value: Option<FitValue>| value.filter(|_| grows(model));
                        cells.push(Cell::text(fitted(model.fixed_s, signed_time)));
                        let rate = known(model.throughput_mb_per_s);
                        let rate = rate.map(|rate| fitted(rate, format::general3));
                        cells.push(Cell::or_missing(
                            rate,
                            notes,
                            &reason("throughput_mb_per_s"),
                        ));
                        cells.push(Cell::text(format::share(model.worst_relative_residual)));
                        let above = known(model.growing_above_90_bytes);
                        let above = above.map(|above| fitted(above, about));
                        let reason = reason("growing_above_90_bytes");
                        cells.push(Cell::or_missing(above, notes, &reason));
                    }
                }
                let measured = mode.hash_above_90_bytes.map(|n| Size(n).to_string());
                cells.push(Cell::or_missing(
                    measured,
                    notes,
                    &why("hash_above_90_bytes"),
                ));
                table.rows.push(cells);
            }
        }
    }
    table
}

/// Two levels at one size.
pub struct Pair<'a> {
    /// The lower and the higher level.
    pub levels: [&'a Identity; 2],
    /// Bytes of the message.
    pub size: u64,
    /// Higher over lower.
    pub tested: Result<Welch, WelchError>,
    /// p after Holm's correction over the pairs of the operation.
    pub adjusted: Option<f64>,
}

impl Pair<'_> {
    /// Whether the two are told apart; `None` where that was not tested.
    pub fn is_apart(&self) -> Option<bool> {
        self.adjusted.map(|p| p < ALPHA)
    }
}

/// All pairs of levels of a family in one operation, by size.
pub fn pairs<'a>(data: &Data, family: &[&'a Identity], operation: Operation) -> Vec<Pair<'a>> {
    let mode = data.main_mode(operation);
    let mut pairs = Vec::new();
    for &size in &data.settings.sizes {
        for (index, low) in family.iter().enumerate() {
            for high in &family[index + 1..] {
                let record = |identity| data.complete(identity, operation, mode, size);
                if let (Some(a), Some(b)) = (record(low), record(high)) {
                    pairs.push(Pair {
                        levels: [low, high],
                        size,
                        tested: stats::welch(&trial_means(a), &trial_means(b)),
                        adjusted: None,
                    });
                }
            }
        }
    }
    let tested: Vec<f64> = pairs
        .iter()
        .filter_map(|p| Some(p.tested.as_ref().ok()?.p))
        .collect();
    let mut adjusted = stats::holm(&tested).into_iter();
    for pair in pairs.iter_mut().filter(|pair| pair.tested.is_ok()) {
        pair.adjusted = adjusted.next();
    }
    pairs
}

/// The size from which on no pair of levels is told apart; `None` where the largest is, or where
/// nothing was tested.
pub fn together_from(pairs: &[Pair]) -> Option<u64> {
    let mut sizes: Vec<u64> = pairs.iter().map(|pair| pair.size).collect();
    sizes.dedup();
    let together = |size: &&u64| {
        let mut at = pairs.iter().filter(|pair| pair.size == **size);
        at.all(|pair| pair.is_apart() == Some(false))
    };
    sizes.iter().rev().take_while(together).last().copied()
}

/// Levels against each other, or why no pair of them was tested.
pub fn levels(data: &Data, notes: &mut Notes) -> Result<Table, Vec<String>> {
    let families = data.families();
    let all = families.iter().flat_map(|family| {
        let operations = data.operations().into_iter();
        operations.flat_map(|operation| pairs(data, family, operation))
    });
    let untested = untested(all);
    if !untested.is_empty() {
        return Err(untested);
    }
    let mut table = Table::with(&[
        "code",
        "operation",
        "size#",
        "levels",
        "ratio of times#",
        "95% interval#",
        "p (Holm)#",
        "verdict",
    ]);
    for family in data.families() {
        for operation in data.operations() {
            for pair in pairs(data, &family, operation) {
                let [low, high] = pair.levels;
                let mut cells = vec![
                    Cell::text(format!("{} {}", low.code, low.build)),
                    Cell::text(operation.name()),
                    Cell::text(Size(pair.size).to_string()),
                    Cell::text(format!("{} / {}", high.label, low.label)),
                ];
                match &pair.tested {
                    Err(error) => {
                        let why = error.to_string();
                        cells.extend((0..3).map(|_| Cell::missing(notes, &why)));
                        cells.push(Cell::text(why.clone()));
                    }
                    Ok(welch) => {
                        cells.push(Cell::text(format::ratio(welch.ratio, 4)));
                        let ends = [welch.low, welch.high].map(|end| format::ratio(end, 4));
                        cells.push(Cell::text(ends.join(" to ")));
                        let p = pair.adjusted.map(format::general3);
                        cells.push(Cell::or_missing(p, notes, "not tested"));
                        cells.push(Cell::text(match pair.is_apart() {
                            Some(true) => "told apart",
                            _ => "no detectable difference",
                        }));
                    }
                }
                table.rows.push(cells);
            }
        }
    }
    Ok(table)
}

/// Why there is nothing to say of these pairs; empty where one of them was tested.
fn untested<'a>(pairs: impl Iterator<Item = Pair<'a>>) -> Vec<String> {
    let mut why = BTreeSet::new();
    for pair in pairs {
        match pair.tested {
            Ok(_) => return Vec::new(),
            Err(WelchError::TooFewTrials) => why.insert(format!(
                "a test takes {} trials of each",
                stats::LEAST_TRIALS
            )),
            Err(error) => {
                let text = error.to_string();
                why.insert(text.trim_start_matches("not tested: ").to_owned())
            }
        };
    }
    if why.is_empty() {
        why.insert("there are no two levels of one code at one size".to_owned());
    }
    why.into_iter().collect()
}

/// Files of the models.
pub fn fits(data: &Data, place: &Place) -> Table {
    let mut table = Table::with(&["instance", "operation", "file", "SHA-256"]);
    for ((identity, operation), entry) in &data.dataset.fits {
        table.rows.push(vec![
            Cell::code(identity.to_string()),
            Cell::text(operation.name()),
            evidence_cell(place, &entry.file),
            Cell::text(format::digest16(&entry.sha256)),
        ]);
    }
    table
}

/// What the study answers, a sentence each; what it has no evidence of, it leaves out.
pub fn answers(data: &Data) -> Vec<String> {
    let family = data.family();
    let mut all = Vec::new();
    if data.is_busy() {
        let (taken, counted) = data.taken();
        all.push(format!(
            "The machine was busy: {taken} of {counted} counted attempts did not have their CPU all the time (flag min_cpu_per_wall). Times and uses of the CPU on this page are those of a busy machine; memory and signatures do not depend on it."
        ));
    }
    for operation in data.operations() {
        all.extend(
            family
                .last()
                .and_then(|highest| growth(data, highest, operation)),
        );
    }
    for operation in data.operations() {
        if operation != Operation::Keygen {
            all.extend(
                family
                    .last()
                    .and_then(|highest| hashing(data, highest, operation)),
            );
            all.push(apart(data, &family, operation));
        }
    }
    all.extend(family.last().and_then(|highest| memory(data, highest)));
    all.extend(same_signatures(data));
    all.extend(skipped(data));
    all
}

fn growth(data: &Data, identity: &Identity, operation: Operation) -> Option<String> {
    let mode = data.main_mode(operation);
    let model = data.mode_fit(identity, operation, mode)?.model?;
    let label = &identity.label;
    let name = operation.name();
    let fixed = fitted(model.fixed_s, signed_time);
    let worst = format::share(model.worst_relative_residual);
    Some(match model.throughput_mb_per_s.filter(|_| grows(&model)) {
        Some(rate) => format!(
            "{label} {name} (mode {}): time = {fixed} + bytes / {} MB/s; the farthest size is {worst} off that line.",
            mode.name(),
            fitted(rate, format::general3)
        ),
        None => format!(
            "{label} {name}: from these sizes a growth with the size of the message cannot be told from 0; the fixed cost is {fixed}, the farthest size is {worst} off it."
        ),
    })
}

fn hashing(data: &Data, identity: &Identity, operation: Operation) -> Option<String> {
    let mode = data.main_mode(operation);
    let above = data
        .mode_fit(identity, operation, mode)?
        .model?
        .growing_above_90_bytes?;
    let stream = data.mode_fit(identity, operation, StudyMode::Stream);
    let measured = stream.and_then(|fit| fit.hash_above_90_bytes);
    let measured = match measured {
        Some(size) => format!(
            "; in mode stream, where it is timed apart, it is so at every measured size from {} on",
            Size(size)
        ),
        None => String::new(),
    };
    Some(format!(
        "{} {}: hashing the message is more than 90% of the time from {} on, by the model{measured}.",
        identity.label,
        operation.name(),
        fitted(above, about)
    ))
}

fn apart(data: &Data, family: &[&Identity], operation: Operation) -> String {
    let pairs = pairs(data, family, operation);
    let name = operation.name();
    if pairs.is_empty() {
        return format!("{name}: there are no two levels of one code to be told apart.");
    }
    if data.is_busy() {
        return format!(
            "{name}: whether levels can be told apart is not judged, for the machine was busy."
        );
    }
    if let Some(Err(error)) = pairs.iter().map(|p| &p.tested).find(|t| t.is_err()) {
        return format!("{name}: whether levels can be told apart is {error}.");
    }
    match together_from(&pairs) {
        Some(size) => format!(
            "{name}: from {} on no two levels can be told apart (each size is tested with Welch's t on its trials).",
            Size(size)
        ),
        None => format!("{name}: levels can be told apart at the largest measured size still."),
    }
}

fn memory(data: &Data, identity: &Identity) -> Option<String> {
    let of = |mode: StudyMode| {
        let size = data.largest(identity, Operation::Sign, mode)?;
        let record = data.complete(identity, Operation::Sign, mode, size)?;
        let peak = value(record, |study| study.peak_rss_bytes as f64)?;
        Some(format!(
            "{} in mode {} ({})",
            megabytes(peak),
            mode.name(),
            Size(size)
        ))
    };
    let all: Vec<String> = data
        .settings
        .modes
        .iter()
        .filter_map(|&mode| of(mode))
        .collect();
    let label = &identity.label;
    (!all.is_empty()).then(|| {
        format!(
            "Peak resident set of signing the largest message with {label}: {}.",
            all.join(", ")
        )
    })
}

fn same_signatures(data: &Data) -> Option<String> {
    let all = data
        .dataset
        .fits
        .values()
        .filter_map(|fit| fit.value.signatures);
    let (compared, identical) = all.fold((0, 0), |(compared, identical), one| {
        (compared + one.compared, identical + one.identical)
    });
    (compared > 0).then(|| {
        format!("Signatures of buffer, mmap and stream under the same randomness are identical in {identical} of {compared} comparisons (one a size and trial).")
    })
}

fn skipped(data: &Data) -> Option<String> {
    let all = data.identities.iter().flat_map(|id| data.points_of(id));
    let skipped = all.filter(|entry| entry.value.timing.head.status == Status::Skipped);
    let count = skipped.count();
    (count > 0).then(|| format!("{count} points are not measured; each says why in its row."))
}

/// Time of a point as it is written, for others of the page.
pub fn mean_text(record: &StudyRecord) -> Option<String> {
    mean_s(record).map(format::time)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair<'a>(levels: [&'a Identity; 2], size: u64, p: f64) -> Pair<'a> {
        Pair {
            levels,
            size,
            tested: Ok(Welch {
                ratio: 1.0,
                low: 0.9,
                high: 1.1,
                p,
                df: 8.0,
            }),
            adjusted: Some(p),
        }
    }

    #[test]
    fn levels_of_which_no_pair_was_tested_leave_the_reasons() {
        let id: Identity = "dilithium/dilithium2/clean/reference".parse().unwrap();
        let levels = [&id, &id];
        let failed = |error| Pair {
            tested: Err(error),
            adjusted: None,
            ..pair(levels, 1, 0.0)
        };
        let few = || failed(WelchError::TooFewTrials);
        assert_eq!(
            untested([few(), few()].into_iter()),
            ["a test takes 5 trials of each"]
        );
        let reasons = untested([failed(WelchError::NoVariance), few()].into_iter());
        assert_eq!(reasons, ["a test takes 5 trials of each", "no variance"]);
        assert_eq!(untested([few(), pair(levels, 1, 0.5)].into_iter()), [""; 0]);
        assert_eq!(untested(std::iter::empty()).len(), 1);
    }

    #[test]
    fn levels_are_together_from_the_size_after_the_last_that_tells_them_apart() {
        let [a, b, c] = ["a", "b", "c"].map(|l| format!("d/{l}/clean/reference").parse().unwrap());
        let at = |size, p: [f64; 2]| [pair([&a, &b], size, p[0]), pair([&b, &c], size, p[1])];
        let of = |points: &[(u64, [f64; 2])]| {
            let pairs: Vec<Pair> = points.iter().flat_map(|&(size, p)| at(size, p)).collect();
            together_from(&pairs)
        };
        let (apart, together) = ([0.001, 0.5], [0.2, 0.5]);
        assert_eq!(of(&[(1, apart), (2, together), (3, together)]), Some(2));
        assert_eq!(of(&[(1, together), (2, apart), (3, together)]), Some(3));
        assert_eq!(of(&[(1, together), (2, together), (3, apart)]), None);
        assert_eq!(of(&[(1, together)]), Some(1));
        assert_eq!(of(&[]), None);
        // What was not tested is not together.
        let mut untested = pair([&a, &b], 4, 0.5);
        untested.tested = Err(WelchError::TooFewTrials);
        untested.adjusted = None;
        assert_eq!(together_from(&[untested]), None);
    }

    #[test]
    fn computed_sizes_have_three_digits_and_intervals_both_ends() {
        for (bytes, text) in [
            (0.0, "0 B"),
            (999.0, "999 B"),
            (1234.0, "1.23 kB"),
            (2.382e6, "2.38 MB"),
            (1e9, "1 GB"),
        ] {
            assert_eq!(about(bytes), text);
        }
        let value = FitValue {
            value: 2e-3,
            low: Some(-1e-3),
            high: None,
        };
        assert_eq!(fitted(value, signed_time), "2 ms (−1 ms to ∞)");
    }
}

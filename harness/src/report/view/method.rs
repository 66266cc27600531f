//! The method page: how this dataset came about, from its plan and from the records actually made.
//! Nothing is stated here that the evidence does not show.

use super::common::{kat_mark, why_null, Frame, Place};
use super::environment;
use crate::compare::{second_timing, Metric};
use crate::dataset::Dataset;
use crate::evidence::{
    BuildRow, Class, CycleSourceRecord, Disturbed, Exit, FindingState, FlagsKind, LibraryKind,
    PlanSettings, TimingRecord, Trial,
};
use crate::report::format;
use crate::report::table::{reason_text, Cell, Note, Notes, Table};
use crate::stats::{self, WelchError};
use protocol::SourceKind;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// All that `method.md` shows.
#[derive(Debug, Clone, Serialize)]
pub struct MethodPage {
    /// Top and foot.
    pub frame: Frame,
    /// Settings of the plan.
    pub plan: Option<Table>,
    /// Whether records have verdicts on stability.
    pub verdicts: bool,
    /// Records, trials, calls and attempts of the dataset.
    pub made: Option<Table>,
    /// Whether this program measured, and not the tool of an import.
    pub own: bool,
    /// Whether the cells are those of a published page, without any evidence of how they came about.
    pub aggregate: bool,
    /// Whether any record has core cycles.
    pub core_cycles: bool,
    /// Whether every record with core cycles names the event that was counted.
    pub event_named: bool,
    /// How inputs were made, one sentence each.
    pub inputs: Vec<String>,
    /// Where cycles and ticks come from.
    pub sources: Option<Table>,
    /// The noise floor.
    pub noise_floor: Option<NoiseFloor>,
    /// Why there is no noise floor.
    pub no_noise_floor: String,
    /// Host checks.
    pub checks: Option<Table>,
    /// Protections of a worker.
    pub layers: Option<Table>,
    /// Compilers and flags.
    pub builds: Option<Table>,
    /// KAT flows.
    pub kat: Option<Table>,
    /// What the flows and modes of that table are.
    pub kat_words: Vec<KatWord>,
    /// Keys and wrapper costs of the memory and profile phases.
    pub phases: Vec<String>,
    /// All notes.
    pub notes: Vec<Note>,
}

/// The noise floor of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NoiseFloor {
    /// What was timed twice.
    pub identity: String,
    /// Its operation.
    pub operation: String,
    /// `cycles` or `time`.
    pub metric: String,
    /// What a reader must know of its KAT, if it did not pass.
    pub kat: Option<String>,
    /// Ratio of the two timings.
    pub ratio: String,
    /// Its 95% interval.
    pub interval: String,
    /// The floor, as a percentage.
    pub floor: String,
}

impl MethodPage {
    /// The method page of a dataset.
    pub fn new(dataset: &Dataset, place: &Place) -> Self {
        let mut notes = Notes::default();
        let plan = dataset.campaign.plan.as_ref();
        let (noise_floor, no_noise_floor) = match noise_floor(dataset) {
            Ok(floor) => (Some(floor), String::new()),
            Err(why) => (None, why),
        };
        let filled = |table: Table| (!table.is_empty()).then_some(table);
        MethodPage {
            frame: Frame::new(dataset, place, Some("method"), |_| {
                Some("method.md".to_owned())
            }),
            plan: plan.map(plan_table),
            verdicts: dataset.timing.values().any(|entry| {
                let derived = entry.value.derived.as_ref();
                derived.is_some_and(|derived| derived.stability.is_some())
            }),
            made: made(dataset),
            own: dataset.campaign.provenance.is_none(),
            aggregate: dataset.cells.is_some(),
            core_cycles: core_cycles(dataset).next().is_some(),
            event_named: core_cycles(dataset).all(|source| source.event.is_some()),
            inputs: inputs(dataset),
            sources: filled(sources(dataset, &mut notes)),
            noise_floor,
            no_noise_floor,
            checks: filled(checks(dataset, &mut notes)),
            layers: filled(layers(dataset)),
            builds: filled(builds(dataset, &mut notes)),
            kat: filled(kat(dataset, &mut notes)),
            kat_words: kat_words(dataset),
            phases: phases(dataset),
            notes: notes.into_list(),
        }
    }
}

/// Sources of the records with core cycles.
fn core_cycles(dataset: &Dataset) -> impl Iterator<Item = &CycleSourceRecord> {
    let sources = dataset.timing.values().map(|e| &e.value.cycle_source);
    sources.filter(|source| source.kind == SourceKind::Perf)
}

fn plan_table(plan: &PlanSettings) -> Table {
    let mut table = Table::with(&["setting", "value#"]);
    let mut add = |name: &str, value: String| {
        table.rows.push(vec![Cell::text(name), Cell::text(value)]);
    };
    let Disturbed {
        min_clock_ratio,
        min_cpu_per_wall,
        involuntary_switches_per_s,
        steal_percent,
        sibling_busy_percent,
    } = plan.disturbed;
    add("name", plan.name.clone());
    add(
        "trials of an operation, each a fresh process",
        plan.trials.to_string(),
    );
    match plan.iterations {
        Some(iterations) => add("calls of a trial, fixed", iterations.to_string()),
        None => {
            add("time aimed at for a trial", format::time(plan.target_s));
            add("calls over all trials, least", plan.min_total.to_string());
            add("calls of a trial, most", plan.max_iterations.to_string());
            add("time over all trials, most", format::time(plan.budget_s));
        }
    }
    if let Some(cost_s) = plan.cost_s {
        add("cost of a call, not calibrated", format::time(cost_s));
    }
    add(
        "repeats of a disturbed trial, most",
        plan.repeats.to_string(),
    );
    add("builds", plan.builds.clone());
    add("inputs", plan.inputs.clone());
    add(
        "disturbed below cycles per second over the fixed clock",
        min_clock_ratio.to_string(),
    );
    add(
        "disturbed below CPU time over wall time",
        min_cpu_per_wall.to_string(),
    );
    add(
        "disturbed above involuntary switches per second",
        involuntary_switches_per_s.to_string(),
    );
    add(
        "disturbed above steal, percent of the attempt",
        steal_percent.to_string(),
    );
    add(
        "disturbed above use of the core's other threads, percent of the attempt",
        sibling_busy_percent.to_string(),
    );
    table
}

/// What was made, in numbers.
fn made(dataset: &Dataset) -> Option<Table> {
    let records: Vec<&TimingRecord> = dataset.timing.values().map(|e| &e.value).collect();
    if records.is_empty() {
        return None;
    }
    let trials = || records.iter().flat_map(|record| &record.trials);
    let attempts = || trials().flat_map(|trial| &trial.attempts);
    let counted = || trials().filter_map(Trial::counted_attempt);
    let ended = |exit: Exit| attempts().filter(|a| a.exit == exit).count();
    let calls: u64 = counted().map(|attempt| attempt.calls).sum();
    let warmups: BTreeSet<u32> = records.iter().map(|record| record.plan.warmups).collect();
    let mut table = Table::with(&["made", "number#"]);
    let mut add = |name: &str, value: String| {
        table.rows.push(vec![Cell::text(name), Cell::text(value)]);
    };
    add("timing records", records.len().to_string());
    add("trials planned", trials().count().to_string());
    add("trials counted", counted().count().to_string());
    add("timed calls counted", calls.to_string());
    add(
        "calls of a trial, fewest",
        range(&records, |r| r.plan.iterations, u64::min),
    );
    add(
        "calls of a trial, most",
        range(&records, |r| r.plan.iterations, u64::max),
    );
    add("untimed calls before them", environment::list(&warmups));
    add("attempts", attempts().count().to_string());
    let imported = records.iter().any(|r| r.head.class == Class::Imported);
    let stated = records
        .iter()
        .map(|r| r.stated_disturbed_retries)
        .sum::<Option<u64>>();
    let disturbed = attempts().filter(|a| !a.flags.is_empty()).count();
    match (imported, stated) {
        (false, _) => add("attempts disturbed", disturbed.to_string()),
        (true, Some(n)) => add(
            "disturbed retries that the source states (not among the attempts, which carry no flags)",
            n.to_string(),
        ),
        (true, None) => {}
    }
    for (exit, name) in [
        (Exit::Interrupted, "attempts cut off with the orchestrator"),
        (Exit::Timeout, "attempts killed at their time limit"),
        (Exit::Crash, "attempts that crashed"),
        (Exit::CallFailed, "attempts with a failed call"),
        (
            Exit::NotVerified,
            "attempts whose last output did not verify",
        ),
    ] {
        if ended(exit) > 0 {
            add(name, ended(exit).to_string());
        }
    }
    Some(table)
}

fn range(
    records: &[&TimingRecord],
    value: impl Fn(&TimingRecord) -> u64,
    pick: fn(u64, u64) -> u64,
) -> String {
    let values = records.iter().map(|record| value(record));
    values
        .reduce(pick)
        .map_or_else(String::new, |v| v.to_string())
}

fn inputs(dataset: &Dataset) -> Vec<String> {
    let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
    for entry in dataset.timing.values() {
        let inputs = &entry.value.inputs;
        let rule = match inputs.rule {
            Some(protocol::InputRule::Fresh) => {
                "fresh: every call has a message of its own from the recorded stream"
            }
            Some(protocol::InputRule::Fixed) => {
                "fixed: one message, the generator seeded with bytes 00 to 2f"
            }
            None => "rule not recorded",
        };
        let bytes = match inputs.message_bytes {
            Some(bytes) => format!("messages of {bytes} bytes"),
            None => "length of the messages not recorded".to_owned(),
        };
        *kinds.entry(format!("{rule}; {bytes}")).or_default() += 1;
    }
    kinds
        .into_iter()
        .map(|(text, records)| format!("{text} ({})", count(records, "record")))
        .collect()
}

fn count(number: usize, what: &str) -> String {
    if number == 1 {
        format!("1 {what}")
    } else {
        format!("{number} {what}s")
    }
}

/// What the records of one kind of source have in common.
#[derive(Default)]
struct SourceUse {
    read_costs_ns: Vec<u64>,
    records: usize,
    /// Counted attempts that were read in another way than their record's, by that way.
    otherwise: BTreeMap<String, usize>,
    reason: Option<String>,
    /// What the first of them says of the facts that it lacks, in the order of the columns.
    lacking: Vec<String>,
}

/// The facts of a source in the order of their columns, as keys of the evidence.
const SOURCE_FACTS: [&str; 6] = [
    "pmu",
    "event",
    "user_only",
    "access",
    "frequency_hz",
    "read_cost_ns",
];

/// Place of `access` in a row.
const READ_BY: usize = 4;

/// One row per kind of source.
fn sources(dataset: &Dataset, notes: &mut Notes) -> Table {
    let mut table = Table::with(&[
        "source",
        "PMU",
        "event or register",
        "user mode only",
        "read by",
        "rate",
        "cost of a read#",
        "records#",
    ]);
    let mut kinds: BTreeMap<Vec<Option<String>>, SourceUse> = BTreeMap::new();
    for entry in dataset.timing.values() {
        let source = &entry.value.cycle_source;
        let key = vec![
            Some(source.kind.name().to_owned()),
            source.pmu.clone(),
            source.event.clone(),
            source
                .user_only
                .map(|yes| if yes { "yes" } else { "no" }.to_owned()),
            source.access.clone(),
            source.frequency_hz.map(|hz| format::ghz(hz as f64)),
        ];
        let used = kinds.entry(key).or_default();
        used.read_costs_ns.extend(source.read_cost_ns);
        used.records += 1;
        let counted = entry.value.trials.iter().filter_map(Trial::counted_attempt);
        for way in counted.filter_map(|attempt| attempt.read_by.clone()) {
            *used.otherwise.entry(way).or_default() += 1;
        }
        if used.lacking.is_empty() {
            let pointers = SOURCE_FACTS.map(|fact| format!("/cycle_source/{fact}"));
            let head = &entry.value.head;
            used.lacking = pointers.map(|pointer| why_null(head, &pointer)).to_vec();
        }
        if let Some(why) = &source.reason {
            used.reason.get_or_insert_with(|| reason_text(why));
        }
    }
    for (key, used) in kinds {
        let mut costs = used.read_costs_ns;
        costs.sort_unstable();
        let cost = match (costs.first(), costs.last()) {
            (Some(a), Some(b)) if a != b => Some(format!("{a} to {b} ns")),
            (Some(a), _) => Some(format!("{a} ns")),
            _ => None,
        };
        let mut facts = key.into_iter();
        let mut kind = Cell::text(facts.next().flatten().unwrap_or_default());
        if let Some(reason) = used.reason {
            kind = kind.with_note(notes, format!("no core cycles: {reason}"));
        }
        let facts = facts.chain([cost]).zip(&used.lacking);
        let facts = facts.map(|(text, why)| Cell::or_missing(text, notes, why));
        let mut cells: Vec<Cell> = std::iter::once(kind).chain(facts).collect();
        for (way, attempts) in used.otherwise {
            let access = cells[READ_BY].clone();
            cells[READ_BY] = access.with_note(
                notes,
                format!(
                    "{} counted by {way}: the right to read the counter from user mode came or went",
                    count(attempts, "attempt")
                ),
            );
        }
        cells.push(Cell::text(used.records.to_string()));
        table.rows.push(cells);
    }
    table
}

/// The floor of cycles where the pair has them, else of time.
fn noise_floor(dataset: &Dataset) -> Result<NoiseFloor, String> {
    if dataset.aa.is_empty() {
        return Err("no operation was timed a second time".to_owned());
    }
    let found = Metric::ALL.into_iter().find_map(|metric| {
        let (key, pair) = second_timing(dataset, metric)?;
        Some((metric, key, pair.ok()?))
    });
    let why = || match second_timing(dataset, Metric::Time) {
        None => "the first timing of the operation that was timed twice is not there",
        Some((_, Err(WelchError::TooFewTrials))) => {
            "the two timings cannot be tested: fewer than five trials"
        }
        Some((_, Err(WelchError::NoVariance))) => {
            "the two timings cannot be tested: their trials do not spread"
        }
        Some(_) => "the two timings cannot be tested: a trial took no time",
    };
    let (metric, (identity, operation), pair) = found.ok_or_else(why)?;
    Ok(NoiseFloor {
        identity: identity.to_string(),
        operation: operation.to_string(),
        kat: kat_mark(dataset, &identity),
        metric: metric.name().to_owned(),
        ratio: format!("{:.4}", pair.ratio),
        interval: format!("{:.4} to {:.4}", pair.low, pair.high),
        floor: format::share(libm::expm1(stats::noise_floor(&pair))),
    })
}

fn checks(dataset: &Dataset, notes: &mut Notes) -> Table {
    let mut table = Table::with(&["item", "CPU", "state", "value", "read from"]);
    let mut seen: BTreeSet<Vec<String>> = BTreeSet::new();
    for finding in dataset.environments.iter().flat_map(|e| &e.value.check) {
        let state = match finding.state {
            FindingState::Ok => "ok",
            FindingState::Bad => "bad",
            FindingState::Unknown => "unknown",
            FindingState::NotApplicable => "not applicable",
        };
        let row = vec![
            finding.item.clone(),
            finding
                .cpu
                .map_or_else(|| "all".to_owned(), |cpu| cpu.to_string()),
            state.to_owned(),
            finding.value.clone(),
            finding.source.clone(),
        ];
        if !seen.insert(row.clone()) {
            continue;
        }
        let mut cells: Vec<Cell> = row.into_iter().map(Cell::text).collect();
        if let (Some(remedy), true) = (&finding.remedy, finding.state != FindingState::Ok) {
            cells[2] =
                std::mem::take(&mut cells[2]).with_note(notes, format!("to be done: {remedy}"));
        }
        table.rows.push(cells);
    }
    table
}

fn layers(dataset: &Dataset) -> Table {
    let mut table = Table::with(&["protection", "in force", "what, or why not"]);
    let mut seen: BTreeSet<(String, bool, String)> = BTreeSet::new();
    for layer in dataset.environments.iter().flat_map(|e| &e.value.layers) {
        if seen.insert((layer.name.clone(), layer.active, layer.detail.clone())) {
            table.rows.push(vec![
                Cell::text(&layer.name),
                Cell::text(if layer.active { "yes" } else { "no" }),
                Cell::text(&layer.detail),
            ]);
        }
    }
    table
}

/// Identities of one build with one compiler.
#[derive(Default)]
struct BuildUse {
    flags: Vec<Vec<String>>,
    without_lto: bool,
}

fn builds(dataset: &Dataset, notes: &mut Notes) -> Table {
    let mut table = Table::with(&["build", "flags of", "compiler", "flags", "identities#"]);
    let rows: &[BuildRow] = dataset
        .build
        .as_ref()
        .map_or(&[], |build| &build.value.rows);
    let mut kinds: BTreeMap<[&str; 3], BuildUse> = BTreeMap::new();
    for row in rows.iter().filter(|row| !row.libraries.is_empty()) {
        let kind = match row.flags_kind {
            FlagsKind::Guide => "guide",
            FlagsKind::HarnessDefault => "harness-default",
        };
        let key = [
            row.identity.build.as_str(),
            kind,
            row.compiler_version.as_str(),
        ];
        let used = kinds.entry(key).or_default();
        used.flags.push(flag_words(&row.flags));
        used.without_lto |= row.lto_removed == Some(true);
    }
    for (key, used) in kinds {
        let (flags, all) = common_words(&used.flags);
        let mut cells: Vec<Cell> = key.into_iter().map(Cell::text).collect();
        let mut flags = Cell::code(flags);
        if !all {
            flags = flags.with_note(
                notes,
                "common to all of them; macros and folders of each identity are in build.json",
            );
        }
        if used.without_lto {
            flags = flags.with_note(
                notes,
                "the libraries of the memory and profile phases have the same flags without -flto",
            );
        }
        cells.push(flags);
        cells.push(Cell::text(used.flags.len().to_string()));
        table.rows.push(cells);
    }
    table
}

/// Flags whose value is the next word.
const WITH_VALUE: [&str; 6] = ["-I", "-D", "-U", "-L", "-include", "-isystem"];

/// The flags of a line, each with its value where that is a word of its own.
fn flag_words(line: &str) -> Vec<String> {
    let mut words = line.split_whitespace();
    let mut all = Vec::new();
    while let Some(word) = words.next() {
        let value = WITH_VALUE.contains(&word).then(|| words.next()).flatten();
        all.push(match value {
            Some(value) => format!("{word} {value}"),
            None => word.to_owned(),
        });
    }
    all
}

/// Words that all lists have, in the order of the first, and whether that is all of every list.
fn common_words(lists: &[Vec<String>]) -> (String, bool) {
    let Some(first) = lists.first() else {
        return (String::new(), true);
    };
    let common: Vec<&str> = first
        .iter()
        .filter(|word| lists.iter().all(|list| list.contains(word)))
        .map(String::as_str)
        .collect();
    let all = lists.iter().all(|list| list.len() == common.len());
    (common.join(" "), all)
}

fn kat(dataset: &Dataset, notes: &mut Notes) -> Table {
    let mut table = Table::with(&["flow", "library", "modes", "manifest", "results"]);
    let mut kinds: BTreeMap<Vec<String>, BTreeMap<&str, usize>> = BTreeMap::new();
    let mut marks: BTreeMap<Vec<String>, BTreeSet<String>> = BTreeMap::new();
    let mut lacking: BTreeMap<Vec<String>, String> = BTreeMap::new();
    for ((identity, library), entry) in &dataset.kat {
        let evidence = &entry.value;
        let modes: BTreeSet<&str> = evidence.digests.iter().map(|d| d.mode.as_str()).collect();
        let modes: Vec<&str> = modes.into_iter().collect();
        let manifest = evidence.manifest_sha256.as_deref().map(format::digest16);
        let key = vec![
            evidence.flow.clone(),
            library.name().to_owned(),
            modes.join(", "),
            manifest.unwrap_or_default(),
        ];
        let why = || why_null(&evidence.head, "/manifest_sha256");
        lacking.entry(key.clone()).or_insert_with(why);
        if let (LibraryKind::Timed, Some(text)) = (library, kat_mark(dataset, identity)) {
            let text = format!("{}: {text}", identity.label);
            marks.entry(key.clone()).or_default().insert(text);
        }
        *kinds
            .entry(key)
            .or_default()
            .entry(evidence.result.word())
            .or_default() += 1;
    }
    for (key, results) in kinds {
        let cells_key = key.clone();
        let list: Vec<String> = results
            .iter()
            .map(|(word, n)| format!("{word} {n}"))
            .collect();
        let why = lacking.remove(&cells_key).unwrap_or_default();
        let mut cells: Vec<Cell> = key
            .into_iter()
            .map(|text| Cell::or_missing((!text.is_empty()).then_some(text), notes, &why))
            .collect();
        cells[3].code = cells[3].notes.is_empty();
        let marks = marks.remove(&cells_key).unwrap_or_default();
        cells.push(
            marks
                .into_iter()
                .fold(Cell::text(list.join(", ")), |cell, text| {
                    cell.with_note(notes, text)
                }),
        );
        table.rows.push(cells);
    }
    table
}

/// A flow or a mode of known-answer tests, and what it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct KatWord {
    /// `flow` or `mode`.
    pub kind: &'static str,
    /// Its word in the evidence.
    pub word: &'static str,
    /// What it stands for.
    pub text: &'static str,
}

const fn kat_word(kind: &'static str, word: &'static str, text: &'static str) -> KatWord {
    KatWord { kind, word, text }
}

/// All of them.
const KAT_WORDS: [KatWord; 7] = [
    kat_word(
        "flow",
        "iccs",
        "ten vectors, made as the programme (NGCC) makes them, with its own helper functions",
    ),
    kat_word(
        "flow",
        "nist",
        "a hundred vectors, made as PQCsignKAT of the NIST competition makes them",
    ),
    kat_word(
        "mode",
        "strict",
        "the SHA-256 of the whole text of the vectors, without blanks at the ends of lines and empty lines",
    ),
    kat_word("mode", "nolen", "the same without the lines that state a length"),
    kat_word("mode", "nistkat", "the SHA-256 of the first vector alone"),
    kat_word(
        "mode",
        "rsp",
        "the SHA-256 of the whole response file, its header included",
    ),
    kat_word("mode", "all", "the SHA-256 of all vectors without the header"),
];

/// Those that the dataset has.
fn kat_words(dataset: &Dataset) -> Vec<KatWord> {
    let all = || dataset.kat.values().map(|entry| &entry.value);
    let used = |word: &KatWord| match word.kind {
        "flow" => all().any(|kat| kat.flow == word.word),
        _ => {
            let mut digests = all().flat_map(|kat| &kat.digests);
            // `strict:3` is of the first three vectors.
            digests.any(|digest| digest.mode.split(':').next() == Some(word.word))
        }
    };
    KAT_WORDS.into_iter().filter(used).collect()
}

/// How often a profile ran each operation, where its evidence says so.
fn profile_passes(dataset: &Dataset) -> Option<String> {
    let keys = || dataset.profile.values().flat_map(|e| &e.value.passes);
    let passes: BTreeSet<usize> = keys().map(|key| key.ticks.len()).collect();
    let disturbed = keys().filter(|key| key.all_disturbed()).count();
    Some(format!(
        "Passes of a profile: each key's operation ran {} times on the same inputs, so with the same calls. Of the passes that were not disturbed (switched out against their will more often than once in 100 ms, or off the CPU for more than 1% of the time and 10 ms) the one with the fewest ticks counts, as a whole, so that the shares of an operation add up. {disturbed} of {} keys had disturbed passes only.",
        from_to(passes.first()?, passes.last()?),
        keys().count(),
    ))
}

/// `20`, or `1 to 20`.
fn from_to<T: PartialEq + std::fmt::Display>(least: &T, most: &T) -> String {
    match least == most {
        true => least.to_string(),
        false => format!("{least} to {most}"),
    }
}

/// Keys and costs of the two other phases, as their evidence has them.
fn phases(dataset: &Dataset) -> Vec<String> {
    let mut all = Vec::new();
    let runs: BTreeSet<usize> = dataset
        .memory
        .values()
        .map(|e| e.value.runs.len())
        .collect();
    if let (Some(least), Some(most)) = (runs.first(), runs.last()) {
        all.push(format!(
            "Memory: {} of evidence, with {} keys each; stack by painting a stack of its own, heap by counting allocations.",
            count(dataset.memory.len(), "file"),
            from_to(least, most)
        ));
    }
    let costs: BTreeSet<u64> = dataset
        .profile
        .values()
        .filter_map(|e| e.value.wrapper_cost_ticks)
        .collect();
    if let (Some(least), Some(most)) = (costs.first(), costs.last()) {
        all.push(format!(
            "Profile: {} of evidence; a wrapper costs {} ticks, which is subtracted for each call.",
            count(dataset.profile.len(), "file"),
            from_to(least, most)
        ));
    } else if !dataset.profile.is_empty() {
        all.push(format!(
            "Profile: {} of evidence; the cost of a wrapper was not measured, so that the shares contain it.",
            count(dataset.profile.len(), "file")
        ));
    }
    all.extend(profile_passes(dataset));
    let flips = dataset
        .kat
        .iter()
        .filter(|((_, kind), _)| *kind == LibraryKind::Timed)
        .filter_map(|(_, entry)| entry.value.flips)
        .fold((0, 0, 0), |sum, f| {
            [f.message, f.signature, f.key].iter().fold(sum, |s, c| {
                (s.0 + c.tried, s.1 + c.rejected, s.2 + c.exempt)
            })
        });
    if flips.0 > 0 {
        all.push(format!(
            "Bit flips: {} of one bit in message, signature or public key were tried, {} were rejected; {} of the tries were in bytes declared unauthenticated, where a signature may stay valid.",
            flips.0, flips.1, flips.2
        ));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_stays_with_its_value() {
        let one = "-std=c99 -O2 -I drivers/dove -I drivers/iccs -DX=1 -D Y";
        let two = "-std=c99 -O2 -I drivers/iccs -DX=2 -D Y";
        let lists = [one, two].map(flag_words);
        assert_eq!(lists[0].len(), 6);
        let common = "-std=c99 -O2 -I drivers/iccs -D Y";
        assert_eq!(common_words(&lists), (common.to_owned(), false));
        assert_eq!(common_words(&lists[..1]), (one.to_owned(), true));
        assert_eq!(
            flag_words("-O2 -I"),
            ["-O2", "-I"],
            "a line that is cut short"
        );
    }
}

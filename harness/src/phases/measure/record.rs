//! The timing record from its first line to its last: made empty, and completed attempt by attempt.

use super::slots;
use crate::evidence::{
    self, Attempt, CycleSourceRecord, DerivedTiming, Exit, Flag, InputsRecord, PlanSettings,
    Reason, ReasonCode, SeedRecord, SessionRef, SizesRecord, Status, TimingRecord, Trial,
};
use crate::stats::{self, TimingInput};
use protocol::{Measured, SourceKind};
use std::collections::BTreeMap;

/// What completing a record needs beside the attempts.
#[derive(Debug, Clone)]
pub struct Rules {
    /// Repeats of a disturbed attempt.
    pub repeats: u32,
    /// Whether the plan gives verdicts.
    pub verdicts: bool,
    /// Fixed core clock, hertz.
    pub clock_hz: Option<f64>,
    /// Why core cycles cannot be counted.
    pub no_cycles: Option<Reason>,
}

impl Rules {
    /// Those of a plan, before anything is known of the CPU.
    pub fn of(plan: &PlanSettings) -> Self {
        Rules {
            repeats: plan.repeats,
            verdicts: plan.verdicts,
            clock_hz: None,
            no_cycles: None,
        }
    }
}

/// Slots without attempts.
pub fn empty_trials(trials: u32) -> Vec<Trial> {
    let empty = || Trial {
        attempts: Vec::new(),
        counted: None,
    };
    (0..trials).map(|_| empty()).collect()
}

/// A cycle source that nobody has opened yet.
pub fn unknown_source() -> CycleSourceRecord {
    let text = "no attempt has ended well yet";
    CycleSourceRecord {
        kind: SourceKind::None,
        reason: Some(Reason::new(ReasonCode::NotRecorded, text)),
        pmu: None,
        event: None,
        user_only: None,
        access: None,
        frequency_hz: None,
        resolution: None,
        read_cost_ns: None,
        overhead: None,
        self_test: None,
    }
}

/// The source that an attempt counted with; `no_cycles` says why it is not core cycles, if it is not.
fn source(measured: &Measured, no_cycles: Option<&Reason>) -> CycleSourceRecord {
    let probe = &measured.source;
    let found = probe.source.as_ref();
    let kind = found.map_or(SourceKind::None, |s| s.kind);
    let own = probe.reason.as_ref();
    let reason = no_cycles
        .cloned()
        .or_else(|| own.map(|(code, text)| Reason::of_worker(code, text)));
    CycleSourceRecord {
        kind,
        reason: reason.filter(|_| kind != SourceKind::Perf),
        pmu: found.and_then(|s| s.pmu.clone()),
        event: found.map(|s| s.event.clone()),
        user_only: found.map(|s| s.user_only),
        access: found.map(|s| s.access.clone()),
        frequency_hz: found.and_then(|s| s.frequency_hz),
        resolution: found.and_then(|s| s.resolution),
        read_cost_ns: found.map(|s| s.read_cost_ns),
        overhead: Some(measured.overhead.clone()),
        self_test: found.map(|s| s.self_test.clone()),
    }
}

/// Sources to ask for: what the record has already, else all that there are, best first.
pub fn sources(record: &TimingRecord) -> Vec<SourceKind> {
    match has_counted(record) {
        true => vec![record.cycle_source.kind],
        false => vec![SourceKind::Perf, SourceKind::Tsc, SourceKind::Cntvct],
    }
}

fn has_counted(record: &TimingRecord) -> bool {
    record.cycle_source.overhead.is_some()
}

/// Whether an answer counts with another source than the record's.
pub fn changes_source(record: &TimingRecord, measured: &Measured) -> bool {
    let kind = measured.source.source.as_ref();
    has_counted(record) && kind.map_or(SourceKind::None, |s| s.kind) != record.cycle_source.kind
}

/// `access` of a counter that is read by a system call.
const BY_READ: &str = "read";

/// How the counter of an answer was read, where that is not the access of the record's source.
fn other_access(record: &TimingRecord, measured: &Measured) -> Option<String> {
    let source = measured.source.source.as_ref()?;
    let used = match measured.read_directly || source.kind != SourceKind::Perf {
        true => source.access.as_str(),
        false => BY_READ,
    };
    let access = record.cycle_source.access.as_deref()?;
    let counted = source.kind == record.cycle_source.kind && measured.count_refused.is_none();
    (counted && used != access).then(|| used.to_owned())
}

/// Minor page faults of the first counted trial before `trial`.
pub fn reference_faults(record: &TimingRecord, trial: u32) -> Option<u64> {
    record.trials[..trial as usize]
        .iter()
        .filter_map(Trial::counted_attempt)
        .find_map(|attempt| attempt.faults.map(|faults| faults.minor))
}

/// Adds an attempt to a slot, with what the worker measured if it ended well.
pub fn add(
    record: &mut TimingRecord,
    trial: u32,
    attempt: Attempt,
    measured: Option<&Measured>,
    session: &SessionRef,
    rules: &Rules,
) {
    put(record, trial, attempt, measured, session, rules);
    settle(record, rules);
}

/// [`add`] without what follows from it.
pub fn put(
    record: &mut TimingRecord,
    trial: u32,
    mut attempt: Attempt,
    measured: Option<&Measured>,
    session: &SessionRef,
    rules: &Rules,
) {
    if let Some(measured) = measured.filter(|_| attempt.exit == Exit::Ok) {
        note(record, trial, measured, rules);
    }
    attempt.read_by = measured.and_then(|measured| other_access(record, measured));
    note_session(record, Some(session));
    let slot = &mut record.trials[trial as usize];
    slot.attempts.push(attempt);
    slot.counted = slots::counted(&slot.attempts);
}

/// Notes that a session has taken part, in the order of their numbers.
pub fn note_session(record: &mut TimingRecord, session: Option<&SessionRef>) {
    let sessions = &mut record.head.sessions;
    if let Some(session) = session.filter(|s| !sessions.contains(s)) {
        let at = sessions.partition_point(|earlier| earlier.k < session.k);
        sessions.insert(at, session.clone());
    }
}

/// What is the same for all attempts, and the seeds of this one.
fn note(record: &mut TimingRecord, trial: u32, measured: &Measured, rules: &Rules) {
    if !has_counted(record) {
        record.cycle_source = source(measured, rules.no_cycles.as_ref());
    }
    note_inputs(record, trial, measured);
}

/// Inputs and sizes, which do not depend on the machine.
pub fn note_inputs(record: &mut TimingRecord, trial: u32, measured: &Measured) {
    if record.sizes.is_none() {
        record.inputs.keys = Some(measured.keys);
        record.inputs.messages = Some(measured.messages);
        record.sizes = Some(SizesRecord {
            public_key_bytes: measured.sizes.pk,
            secret_key_bytes: measured.sizes.sk,
            signature_bytes: measured.sizes.sn,
        });
    }
    for (role, seed) in &measured.seeds {
        let seeds = &mut record.inputs.seeds;
        if !seeds.iter().any(|s| s.trial == trial && s.role == *role) {
            seeds.push(SeedRecord {
                trial,
                role: role.clone(),
                seed: seed.clone(),
            });
        }
    }
    record
        .inputs
        .seeds
        .sort_by(|a, b| (a.trial, &a.role).cmp(&(b.trial, &b.role)));
}

/// Status, derived values and reasons, from what the slots hold now.
pub fn settle(record: &mut TimingRecord, rules: &Rules) {
    let reasons = derive(record, rules);
    let known = Known::of(record, &reasons);
    evidence::explain_with(record, |pointer| known.reason(pointer));
}

/// Status and derived values, from what the slots hold now; returns the reasons of those that are
/// missing, by field.
pub fn derive(record: &mut TimingRecord, rules: &Rules) -> BTreeMap<String, Reason> {
    (record.head.status, record.head.reason) = slots::status(&record.trials, rules.repeats);
    let overhead = record.cycle_source.overhead.as_ref();
    let input = TimingInput {
        verdicts: rules.verdicts,
        clock_hz: rules.clock_hz,
        empty_call_s: overhead.map(|o| o.empty_call_ps as f64 / 1e12),
        cost_s: record.plan.cost_s,
    };
    let derived = match record.head.status {
        Status::Failed => None,
        _ => stats::derive_timing(&record.trials, input),
    };
    let (derived, reasons) = match derived {
        Some((derived, reasons)) => (Some(derived), reasons),
        None => (None, BTreeMap::new()),
    };
    record.derived = derived;
    reasons
}

/// Sets the derived values, and a reason for each null.
pub fn explain(
    record: &mut TimingRecord,
    derived: Option<DerivedTiming>,
    reasons: &BTreeMap<String, Reason>,
) {
    record.derived = derived;
    let known = Known::of(record, reasons);
    evidence::explain_with(record, |pointer| known.reason(pointer));
}

/// What a record knows about its nulls.
pub struct Known<'a> {
    derived: &'a BTreeMap<String, Reason>,
    source: SourceKind,
    no_counter: Option<Reason>,
    status: Option<Reason>,
    timeless: Option<Reason>,
    threads: bool,
}

/// Why nothing can be derived although an attempt counts: it took no time by the clock.
fn timeless(record: &TimingRecord) -> Option<Reason> {
    let mut counted = record.trials.iter().filter_map(Trial::counted_attempt);
    let attempt = counted.find(|a| a.calls > 0 && a.nanoseconds == 0)?;
    // A batch is a thousand readings or steps of the clock, whichever takes longer.
    let floor = attempt.batch.zip(record.plan.cost_s);
    let floor = floor.map_or(String::new(), |(batch, cost)| {
        format!(
            ", which tells no less than {:.0} ns",
            batch as f64 * cost * 1e6
        )
    });
    let text = format!("{} calls took no time by the clock{floor}", attempt.calls);
    Some(Reason::new(ReasonCode::BelowResolution, text))
}

/// Whether the library ran threads of its own in an attempt.
fn runs_threads(record: &TimingRecord) -> bool {
    let mut attempts = record.trials.iter().flat_map(|trial| &trial.attempts);
    attempts.any(|a| a.flags.iter().any(Flag::is_threads))
}

/// Fields that a counter of core cycles fills.
fn is_count(field: &str) -> bool {
    field.ends_with("cycles") || ["instructions", "time_enabled", "time_running"].contains(&field)
}

/// Why a source that works gave no count.
fn uncounted(threads: bool) -> Reason {
    let text = match threads {
        true => "the library runs several threads, and the counter counts the calling one alone",
        false => "the count of an attempt was refused or the attempt did not end well; its detail says why",
    };
    Reason::new(ReasonCode::NotRecorded, text)
}

impl<'a> Known<'a> {
    /// What `record` knows; `derived` are the reasons of its derived values, by field.
    pub fn of(record: &TimingRecord, derived: &'a BTreeMap<String, Reason>) -> Self {
        Known {
            derived,
            source: record.cycle_source.kind,
            no_counter: record.cycle_source.reason.clone(),
            status: record.head.reason.clone(),
            timeless: timeless(record),
            threads: runs_threads(record),
        }
    }

    /// The reason of the null at a JSON pointer, where it is known better than by its key.
    pub fn reason(&self, pointer: &str) -> Option<Reason> {
        let field = pointer.strip_prefix("/derived/");
        if let Some(known) = field.and_then(|field| self.derived.get(field)) {
            return Some(known.clone());
        }
        let last = pointer.rsplit('/').next()?;
        match last {
            "fixed_iterations" => None,
            "derived" if self.timeless.is_some() => self.timeless.clone(),
            "migrations" | "steal" => {
                let text = "the kernel does not tell it here";
                Some(Reason::new(ReasonCode::NotRecorded, text))
            }
            _ if last.ends_with("ticks") && self.source == SourceKind::Perf => {
                Some(counts_cycles())
            }
            _ if self.source == SourceKind::Perf && is_count(last) => Some(uncounted(self.threads)),
            "instructions" | "time_enabled" | "time_running" => self.no_counter.clone(),
            _ if last.ends_with("cycles") || last.ends_with("ticks") => self.no_counter.clone(),
            _ if pointer.starts_with("/cycle_source/") => self.no_counter.clone(),
            _ if pointer.starts_with("/trials/*/attempts/*/") => {
                let text = "an attempt that did not end well has no figures";
                Some(Reason::new(ReasonCode::NotRecorded, text))
            }
            _ => self.status.clone(),
        }
    }
}

fn counts_cycles() -> Reason {
    let text = "the source counts core cycles, and no clock beside them";
    Reason::new(ReasonCode::NotInPlan, text)
}

/// Inputs of a record before its first attempt.
pub fn no_inputs(rule: protocol::InputRule, message_bytes: u32) -> InputsRecord {
    InputsRecord {
        message_bytes: Some(message_bytes),
        rule: Some(rule),
        seeds: Vec::new(),
        keys: None,
        messages: None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::attempt::of_answer;
    use super::super::tests::{attempt, measured, record};
    use super::*;
    use crate::testing::counter;

    const RULES: Rules = Rules {
        repeats: 0,
        verdicts: false,
        clock_hz: None,
        no_cycles: None,
    };

    fn session(k: u32) -> SessionRef {
        SessionRef {
            k,
            environment_sha256: "00".into(),
        }
    }

    fn good(record: &mut TimingRecord, trial: u32, k: u32) {
        let mut measured = measured(4, 400);
        measured.seeds = vec![("message".into(), "aa".into()), ("key".into(), "bb".into())];
        let attempt = of_answer(&measured);
        add(record, trial, attempt, Some(&measured), &session(k), &RULES);
    }

    #[test]
    fn a_record_grows_to_complete_with_its_sessions_and_seeds() {
        let mut record = record(3);
        settle(&mut record, &RULES);
        assert_eq!(record.head.status, Status::Partial);
        good(&mut record, 1, 0);
        good(&mut record, 0, 1);
        assert_eq!(
            record.head.reason.as_ref().unwrap().code,
            ReasonCode::Interrupted
        );
        good(&mut record, 2, 1);
        assert_eq!(
            (record.head.status, &record.head.reason),
            (Status::Complete, &None)
        );
        assert_eq!(record.head.sessions, [session(0), session(1)]);
        let seeds: Vec<_> = record
            .inputs
            .seeds
            .iter()
            .map(|s| (s.trial, s.role.as_str()))
            .collect();
        assert_eq!(seeds[..3], [(0, "key"), (0, "message"), (1, "key")]);
        assert_eq!(record.derived.as_ref().unwrap().n, 12);
    }

    #[test]
    fn an_attempt_that_was_read_in_another_way_than_its_record_says_so() {
        let answer = |access: &str, read_directly| {
            let mut measured = measured(4, 400);
            measured.cycles = Some(1000);
            measured.read_directly = read_directly;
            measured.source.kind = SourceKind::Perf;
            measured.source.source = Some(counter(access, ""));
            measured
        };
        let read_by = |answers: &[Measured]| {
            let mut record = record(3);
            for (trial, measured) in (0..).zip(answers) {
                let attempt = of_answer(measured);
                add(
                    &mut record,
                    trial,
                    attempt,
                    Some(measured),
                    &session(0),
                    &RULES,
                );
            }
            let trials = record.trials.iter();
            let attempts = trials.filter_map(|trial| trial.attempts.first());
            attempts.map(|a| a.read_by.clone()).collect::<Vec<_>>()
        };
        let [direct, withdrawn] = [true, false].map(|directly| answer("rdpmc", directly));
        let kernels = answer("read", false);
        let read = Some("read".to_owned());
        assert_eq!(
            read_by(&[direct.clone(), withdrawn.clone(), kernels.clone()]),
            [None, read.clone(), read.clone()]
        );
        assert_eq!(
            read_by(std::slice::from_ref(&withdrawn)),
            [read],
            "the first of its record"
        );
        assert_eq!(
            read_by(&[kernels, direct.clone()]),
            [None, Some("rdpmc".to_owned())]
        );
        let refused = Measured {
            count_refused: Some("it is frozen".into()),
            cycles: None,
            ..withdrawn
        };
        assert_eq!(read_by(&[direct, refused]), [None, None]);
    }

    #[test]
    fn a_failed_slot_fails_the_record_and_leaves_no_derived_value() {
        let mut record = record(3);
        good(&mut record, 0, 0);
        add(
            &mut record,
            1,
            attempt(Exit::CallFailed),
            None,
            &session(0),
            &RULES,
        );
        assert_eq!(record.head.status, Status::Failed);
        assert_eq!(record.derived, None);
        assert_eq!(record.head.missing["/derived"].code, ReasonCode::CallFailed);
    }

    #[test]
    fn every_null_has_a_reason() {
        let mut record = record(2);
        good(&mut record, 0, 0);
        add(
            &mut record,
            1,
            attempt(Exit::Interrupted),
            None,
            &session(0),
            &RULES,
        );
        assert_eq!(
            record.head.missing["/trials/*/attempts/*/user_ns"].text,
            "an attempt that did not end well has no figures"
        );
        assert_eq!(
            record.head.missing["/derived/ci95"].code,
            ReasonCode::TooFewTrials
        );
        let mut again = record.clone();
        evidence::explain(&mut again);
        assert_eq!(again, record);
    }

    #[test]
    fn a_refused_count_costs_the_cycles_and_not_the_time() {
        let mut record = record(2);
        good(&mut record, 0, 0);
        record.cycle_source.kind = SourceKind::Perf;
        let m = measured(4, 400);
        let refused = super::super::attempt::without_count(of_answer(&m), &m, "x".into());
        add(&mut record, 1, refused, Some(&m), &session(0), &RULES);
        assert_eq!(record.head.status, Status::Complete);
        let derived = record.derived.as_ref().unwrap();
        assert_eq!((derived.n, derived.mean_cycles), (8, None));
        for field in ["/derived/mean_cycles", "/trials/*/attempts/*/cycles"] {
            assert!(
                record.head.missing[field].text.contains("refused"),
                "{field}"
            );
        }
    }

    #[test]
    fn calls_that_take_no_time_leave_a_complete_record_with_the_floor_of_the_clock() {
        let mut record = record(2);
        record.plan.cost_s = Some(1e-9);
        good(&mut record, 0, 0);
        let mut m = measured(4, 0);
        m.batch = 52_000;
        let attempt = of_answer(&m);
        add(&mut record, 1, attempt, Some(&m), &session(0), &RULES);
        assert_eq!(record.head.status, Status::Complete);
        assert_eq!(record.derived, None);
        let reason = &record.head.missing["/derived"];
        assert_eq!(reason.code, ReasonCode::BelowResolution);
        let expected = "4 calls took no time by the clock, which tells no less than 52 ns";
        assert_eq!(reason.text, expected);
    }

    #[test]
    fn a_record_keeps_to_one_source() {
        let mut record = record(2);
        assert_eq!(sources(&record).len(), 3);
        good(&mut record, 0, 0);
        assert_eq!(sources(&record), [SourceKind::None]);
        assert!(!changes_source(&record, &measured(1, 1)));
        record.cycle_source.kind = SourceKind::Tsc;
        assert!(changes_source(&record, &measured(1, 1)));
    }
}

//! The record of a point from its first line to its last: a timing record, and what the file cost.

use super::point::Key;
use crate::evidence::{
    self, Attempt, Exit, LibraryRef, Reason, ReasonCode, SessionRef, Status, StudyDerived, StudyIo,
    StudyRecord, StudySettings, TimingRecord,
};
use crate::phases::measure::record::{self, Known, Rules};
use protocol::{Measured, Operation, StudyMode, StudyOutcome};
use std::collections::BTreeMap;

/// State of the page cache: every file is written or read in whole before the first attempt, and each
/// attempt reads it before its timed calls.
const WARM: &str = "warm";

/// A record without attempts.
pub fn new(
    settings: &StudySettings,
    key: &Key,
    timing: TimingRecord,
    library: Option<LibraryRef>,
    file_sha256: &str,
    online_cpus: u32,
) -> StudyRecord {
    let io = timing.trials.iter().map(|_| Vec::new()).collect();
    let reads_chunks = !matches!(key.mode, StudyMode::Buffer | StudyMode::Mmap);
    StudyRecord {
        timing,
        mode: key.mode,
        library,
        size_bytes: key.size_bytes,
        file_sha256: file_sha256.to_owned(),
        chunk_bytes: reads_chunks.then_some(settings.chunk_bytes),
        page_cache: WARM.to_owned(),
        online_cpus,
        io,
        signature_sha256: None,
        study: None,
    }
}

/// What an attempt without figures read.
fn nothing() -> StudyIo {
    StudyIo {
        bytes_read: 0,
        read_ns: None,
        hash_ns: None,
        signature_sha256: None,
    }
}

/// What an attempt read, by the worker's account.
pub fn io(outcome: &StudyOutcome) -> StudyIo {
    StudyIo {
        bytes_read: outcome.bytes_read,
        read_ns: outcome.read_ns,
        hash_ns: outcome.hash_ns,
        signature_sha256: outcome.signature_sha256.clone(),
    }
}

/// Adds an attempt to a slot, with what the worker measured if it ended well.
pub fn add(
    record: &mut StudyRecord,
    trial: u32,
    attempt: Attempt,
    measured: Option<(&Measured, StudyIo)>,
    session: &SessionRef,
    rules: &Rules,
) {
    let (measured, io) = match measured {
        Some((measured, io)) => (Some(measured), io),
        None => (None, nothing()),
    };
    let good = attempt.exit == Exit::Ok;
    record::put(&mut record.timing, trial, attempt, measured, session, rules);
    record.io[trial as usize].push(match good {
        true => io,
        // What it signed may be why it does not count.
        false => StudyIo {
            signature_sha256: io.signature_sha256,
            ..nothing()
        },
    });
    settle(record, Settled::Open(rules));
}

/// Who decides what became of a record.
#[derive(Debug)]
pub enum Settled<'a> {
    /// Its slots, by the rules of the plan.
    Open(&'a Rules),
    /// Something outside: it cannot be measured.
    Ended(Status, Reason),
}

/// A record that is not measured, with the reason.
pub fn end(record: &mut StudyRecord, status: Status, reason: Reason, session: Option<&SessionRef>) {
    record.timing.head.sessions = session.cloned().into_iter().collect();
    settle(record, Settled::Ended(status, reason));
}

/// Status, derived values and reasons, from what the slots hold now.
pub fn settle(record: &mut StudyRecord, settled: Settled) {
    // Attempts that a resume has marked as cut off read nothing.
    for (io, trial) in record.io.iter_mut().zip(&record.timing.trials) {
        io.resize_with(trial.attempts.len(), nothing);
    }
    let reasons = match settled {
        Settled::Open(rules) => record::derive(&mut record.timing, rules),
        Settled::Ended(status, reason) => {
            record.timing.head.status = status;
            record.timing.head.reason = Some(reason);
            record.timing.derived = None;
            BTreeMap::new()
        }
    };
    let first = counted(record).next();
    let first = first.filter(|_| record.timing.trials[0].counted.is_some());
    record.signature_sha256 = first.and_then(|(_, io)| io.signature_sha256.clone());
    record.study = derive(record);
    let known = Known::of(&record.timing, &reasons);
    let (operation, status) = (record.timing.operation, record.timing.head.reason.clone());
    evidence::explain_with(record, |pointer| {
        own_reason(pointer, operation, &status, &known)
    });
}

/// Attempts that count, with what they read.
fn counted(record: &StudyRecord) -> impl Iterator<Item = (&Attempt, &StudyIo)> {
    let slots = record.timing.trials.iter().zip(&record.io);
    slots.filter_map(|(trial, io)| {
        Some((trial.counted_attempt()?, io.get(trial.counted? as usize)?))
    })
}

fn own_reason(
    pointer: &str,
    operation: Operation,
    status: &Option<Reason>,
    known: &Known,
) -> Option<Reason> {
    let no_message =
        |text| (operation == Operation::Keygen).then(|| Reason::new(ReasonCode::NotInPlan, text));
    match pointer {
        "/chunk_bytes" => None,
        "/library" => status.clone(),
        "/study" => known.reason("/derived"),
        "/signature_sha256" => no_message("key generation makes no signature").or(status.clone()),
        "/io/*/*/signature_sha256" => no_message("key generation makes no signature"),
        "/study/throughput_mb_per_s" => no_message("key generation takes no message"),
        _ if pointer.starts_with("/io/") || pointer.starts_with("/study/") => None,
        _ => known.reason(pointer),
    }
}

/// What follows from the counted attempts; `None` where the timing has no derived values.
fn derive(record: &StudyRecord) -> Option<StudyDerived> {
    let timing = record.timing.derived.as_ref()?;
    let all: Vec<(&Attempt, &StudyIo)> = counted(record).collect();
    let total = |of: &dyn Fn(&(&Attempt, &StudyIo)) -> Option<u64>| -> Option<u64> {
        all.iter().map(of).sum::<Option<u64>>()
    };
    let calls = timing.n as f64;
    let wall = total(&|(a, _)| Some(a.nanoseconds))? as f64;
    let user = total(&|(a, _)| a.user_ns)? as f64;
    let system = total(&|(a, _)| a.system_ns)? as f64;
    let cpu_percent_one = 100.0 * (user + system) / wall;
    let read = total(&|(_, io)| io.read_ns).map(|ns| ns as f64);
    let hash = total(&|(_, io)| io.hash_ns).map(|ns| ns as f64);
    // A buffer is filled once, whatever the number of calls.
    let readings = match record.mode {
        StudyMode::Buffer => all.len() as f64,
        _ => calls,
    };
    Some(StudyDerived {
        throughput_mb_per_s: (record.timing.operation != Operation::Keygen)
            .then(|| record.size_bytes as f64 / timing.mean_s / 1e6),
        cpu_percent_one,
        cpu_percent_all: cpu_percent_one / f64::from(record.online_cpus),
        user_s: user / 1e9 / calls,
        system_s: system / 1e9 / calls,
        baseline_rss_bytes: all.iter().filter_map(|(a, _)| a.baseline_rss_bytes).max()?,
        peak_rss_bytes: all.iter().filter_map(|(a, _)| a.peak_rss_bytes).max()?,
        read_s: read.map(|ns| ns / 1e9 / readings),
        hash_s: hash.map(|ns| ns / 1e9 / calls),
        hash_share: hash.map(|ns| ns / wall),
    })
}

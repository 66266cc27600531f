//! The models of a study: one file an operation, from its complete records.

use super::point::{keys, Key};
use crate::evidence::{
    self, fit_file, BuildFile, FitEvidence, FitPoint, Kind, ModeFit, Reason, ReasonCode,
    SameSignatures, SessionRef, Status, StudyRecord, StudySettings,
};
use crate::phases::context::{Context, PhaseError};
use crate::stats;
use protocol::{Operation, StudyMode};
use std::collections::{BTreeMap, BTreeSet};

/// Share above which hashing counts as all of the time.
const MOST: f64 = 0.9;

/// Modes whose signatures are the same under the same randomness: the message is the file itself.
pub const SAME: [StudyMode; 3] = [StudyMode::Buffer, StudyMode::Mmap, StudyMode::Stream];

/// Writes the fits of all operations.
pub fn write(
    context: &Context<'_>,
    build: &BuildFile,
    settings: &StudySettings,
) -> Result<(), PhaseError> {
    let mut records: BTreeMap<String, (Key, Vec<StudyRecord>)> = BTreeMap::new();
    for key in keys(context, build, settings)? {
        let file = fit_file(&key.row.identity, key.operation);
        let (_, of_operation) = records.entry(file).or_insert_with(|| (key, Vec::new()));
        let stored = context.book.read::<StudyRecord>(&key.file())?;
        of_operation.extend(stored.map(|stored| stored.value));
    }
    for (file, (key, records)) in records {
        let fit = fit(context, settings, &key, &records);
        let known = context.book.read::<FitEvidence>(&file)?;
        if known.is_none_or(|known| known.value != fit) {
            context.book.write(&file, &fit)?;
        }
    }
    Ok(())
}

fn fit(
    context: &Context,
    settings: &StudySettings,
    key: &Key,
    records: &[StudyRecord],
) -> FitEvidence {
    let mut head = context.head(Kind::Fit, &key.row.identity);
    head.sessions = sessions(records);
    if let Some((status, reason)) = unfinished(records) {
        head.status = status;
        head.reason = Some(reason);
    }
    let of_mode = |mode: StudyMode| mode_fit(mode, records);
    let mut fit = FitEvidence {
        head,
        operation: key.operation,
        modes: settings
            .modes_of(key.operation)
            .into_iter()
            .map(of_mode)
            .collect(),
        signatures: (key.operation != Operation::Keygen).then(|| same_signatures(records)),
    };
    let few = format!(
        "a fit needs {} sizes with a complete record",
        stats::LEAST_SIZES
    );
    evidence::explain_with(&mut fit, |pointer| {
        let (code, text) = match pointer.rsplit('/').next()? {
            "model" => (ReasonCode::TooFewTrials, few.as_str()),
            "signatures" => (ReasonCode::NotInPlan, "key generation makes no signature"),
            "throughput_mb_per_s" | "growing_above_90_bytes" => (
                ReasonCode::BelowResolution,
                "the fitted time does not grow with the size, or has no fixed part",
            ),
            "low" | "high" => (ReasonCode::BelowResolution, "the interval has no such end"),
            "hash_above_90_bytes" => (
                ReasonCode::NotRecorded,
                "this mode does not hash apart, or no measured size is above 90%",
            ),
            _ => return None,
        };
        Some(Reason::new(code, text))
    });
    fit
}

fn sessions(records: &[StudyRecord]) -> Vec<SessionRef> {
    let mut all: Vec<SessionRef> = Vec::new();
    for session in records.iter().flat_map(|r| &r.timing.head.sessions) {
        if !all.contains(session) {
            all.push(session.clone());
        }
    }
    all.sort_by_key(|session| session.k);
    all
}

/// The first record that failed or is not finished; a skipped one takes nothing away.
fn unfinished(records: &[StudyRecord]) -> Option<(Status, Reason)> {
    records.iter().find_map(|record| {
        let head = &record.timing.head;
        match head.status {
            Status::Failed | Status::Partial => Some((head.status, head.reason.clone()?)),
            Status::Complete | Status::Skipped => None,
        }
    })
}

fn mode_fit(mode: StudyMode, records: &[StudyRecord]) -> ModeFit {
    let mut of_mode: Vec<&StudyRecord> = records
        .iter()
        .filter(|r| r.mode == mode && r.timing.head.status == Status::Complete)
        .collect();
    of_mode.sort_by_key(|record| record.size_bytes);
    let points: Vec<FitPoint> = of_mode.iter().filter_map(|record| point(record)).collect();
    ModeFit {
        mode,
        model: stats::fit(&points),
        hash_above_90_bytes: hash_above(&of_mode),
        points,
    }
}

/// Mean over the trial means: each trial has its own keys, and counts the same.
fn point(record: &StudyRecord) -> Option<FitPoint> {
    let counted = record
        .timing
        .trials
        .iter()
        .filter_map(|t| t.counted_attempt());
    let means: Vec<f64> = counted.map(|a| a.mean_s()).collect();
    (!means.is_empty()).then(|| FitPoint {
        size_bytes: record.size_bytes,
        mean_s: stats::exact_sum(&means) / means.len() as f64,
    })
}

/// The smallest size from which on all shares are above 90%.
fn hash_above(ascending: &[&StudyRecord]) -> Option<u64> {
    let is_above = |record: &&&StudyRecord| {
        let share = record.study.as_ref().and_then(|study| study.hash_share);
        share.is_some_and(|share| share > MOST)
    };
    let from = ascending.iter().rev().take_while(is_above).last()?;
    Some(from.size_bytes)
}

/// Compares the first signatures of each size and trial over the modes.
fn same_signatures(records: &[StudyRecord]) -> SameSignatures {
    let mut by_slot: BTreeMap<(u64, usize), Vec<&str>> = BTreeMap::new();
    for record in records.iter().filter(|r| SAME.contains(&r.mode)) {
        for (trial, (slot, io)) in record.timing.trials.iter().zip(&record.io).enumerate() {
            let of_attempt = slot.counted.and_then(|index| io.get(index as usize));
            let signature = of_attempt.and_then(|io| io.signature_sha256.as_deref());
            by_slot
                .entry((record.size_bytes, trial))
                .or_default()
                .extend(signature);
        }
    }
    let several = by_slot.values().filter(|all| all.len() > 1);
    let (mut compared, mut identical) = (0, 0);
    for all in several {
        compared += 1;
        identical += u64::from(all.iter().collect::<BTreeSet<_>>().len() == 1);
    }
    SameSignatures {
        compared,
        identical,
    }
}

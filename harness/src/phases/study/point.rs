//! The points of a study: one record each, with its plan, its library and its evidence so far.

use super::message::Messages;
use super::record::{self, Settled};
use crate::evidence::{
    study_file, BuildFile, BuildRow, Kind, LibraryKind, LibraryRef, Reason, ReasonCode, Status,
    StudyRecord, StudySettings,
};
use crate::host::facts::{self, Root};
use crate::identity::Identity;
use crate::phases::context::{library, Context, PhaseError};
use crate::phases::measure::item::{mark_cut_off, new_record};
use crate::phases::measure::record::Rules;
use crate::phases::{calibrate, kat};
use crate::plan;
use crate::run::book::PreparedKey;
use crate::select::Row;
use crate::values::Size;
use protocol::{LibraryFile, Operation, StudyMode};
use std::cell::RefCell;

/// What a record is about.
#[derive(Debug, Clone, Copy)]
pub struct Key<'a> {
    /// Its row.
    pub row: &'a Row,
    /// What was built.
    pub built: &'a BuildRow,
    /// Operation.
    pub operation: Operation,
    /// How the message reaches the library.
    pub mode: StudyMode,
    /// Bytes of the message.
    pub size_bytes: u64,
}

impl Key<'_> {
    /// Path of the record below the run.
    pub fn file(&self) -> String {
        let identity = &self.row.identity;
        study_file(identity, self.operation, self.mode, self.size_bytes)
    }

    /// Its key in the order of trials, and its name on the screen.
    pub fn name(&self) -> String {
        let key = self.row.identity.operation_key(self.operation);
        format!("{key} {} {}", self.mode.name(), Size(self.size_bytes))
    }
}

/// One record and what it takes to complete it.
pub struct Point<'a> {
    /// What it is about.
    pub key: Key<'a>,
    /// The library that is called.
    pub library: LibraryFile,
    /// How attempts are judged.
    pub rules: Rules,
    /// CPU to measure on.
    pub cpu: u32,
    /// The record as it is on the disk, or will be.
    pub record: RefCell<StudyRecord>,
    /// The key that all trials share; looked up with the first attempt.
    pub prepared: RefCell<Option<Option<PreparedKey>>>,
}

impl Point<'_> {
    /// Expected time of one attempt, seconds.
    pub fn attempt_s(&self) -> f64 {
        let plan = &self.record.borrow().timing.plan;
        let calls = plan.iterations as f64 + f64::from(plan.warmups);
        calls * plan.cost_s.unwrap_or(0.0) + plan.preparation_s.unwrap_or(0.0)
    }
}

/// All points of the rows that may be measured, in page order.
pub fn keys<'a>(
    context: &'a Context<'_>,
    build: &'a BuildFile,
    settings: &StudySettings,
) -> Result<Vec<Key<'a>>, PhaseError> {
    let mut keys = Vec::new();
    for row in context.active() {
        if kat::gate(context, build, &row.identity, LibraryKind::Timed)?.is_err() {
            continue;
        }
        let Some(built) = build.rows.iter().find(|b| b.identity == row.identity) else {
            continue;
        };
        for &operation in &row.operations {
            for mode in settings.modes_of(operation) {
                keys.extend(settings.sizes.iter().map(|&size_bytes| Key {
                    row,
                    built,
                    operation,
                    mode,
                    size_bytes,
                }));
            }
        }
    }
    Ok(keys)
}

/// Whether nothing is left to be done for a record.
pub fn is_done(context: &Context, key: &Key) -> Result<bool, PhaseError> {
    let known = context.book.read::<StudyRecord>(&key.file())?;
    Ok(known.is_some_and(|known| {
        let timed = library(key.built, LibraryKind::Timed).map(|l| l.sha256);
        let head = &known.value.timing.head;
        head.status != Status::Partial && known.value.timing.libraries.timed == timed
    }))
}

/// The open point of a key, with what earlier sessions left undone marked in its record; `None` where
/// it cannot be measured, which its record then says.
pub fn point<'a>(
    context: &Context<'_>,
    build: &BuildFile,
    settings: &StudySettings,
    messages: &Messages,
    key: Key<'a>,
) -> Result<Option<Point<'a>>, PhaseError> {
    let identity = &key.row.identity;
    let Ok(kat) = kat::gate(context, build, identity, LibraryKind::Timed)? else {
        return Ok(None);
    };
    let Some(timed) = library(key.built, LibraryKind::Timed) else {
        return Ok(None);
    };
    let kind = match key.mode {
        StudyMode::Stream => LibraryKind::Stream,
        _ => LibraryKind::Timed,
    };
    let called = match kat::gate(context, build, identity, kind)? {
        Ok(_) => library(key.built, kind),
        Err(_) => None,
    };
    let file = key.file();
    let known = context.book.read::<StudyRecord>(&file)?;
    let known = known.filter(|k| k.value.timing.libraries.timed.as_ref() == Some(&timed.sha256));
    let mut record = match known {
        Some(stored) => stored.value,
        None => {
            // What has no costs is not measured, which is said below.
            let (call_s, key_s) = costs(context, &key)?.unwrap_or((0.0, 0.0));
            let plan =
                plan::study_point(context.plan, key.operation, key.size_bytes, call_s, key_s);
            let mut timing = new_record(context, key.row, key.operation, false, &kat, plan, &timed);
            timing.head.kind = Kind::Study;
            timing.inputs.message_bytes = u32::try_from(key.size_bytes).ok();
            let library = called.as_ref().map(|file| LibraryRef {
                kind,
                sha256: file.sha256.clone(),
            });
            record::new(
                settings,
                &key,
                timing,
                library,
                &messages[&key.size_bytes].sha256,
                online(),
            )
        }
    };
    let rules = Rules::of(context.plan);
    if let Some((status, reason)) = cannot(context, settings, &key, called.is_some())? {
        record::end(&mut record, status, reason, context.sessions.last());
        context.book.write(&file, &record)?;
        return Ok(None);
    }
    if mark_cut_off(
        &mut record.timing,
        &context.book.begun(&file),
        &context.sessions,
    ) {
        record::settle(&mut record, Settled::Open(&rules));
        context.book.write(&file, &record)?;
    }
    Ok(called.map(|library| Point {
        key,
        library,
        rules,
        cpu: record.timing.cpu.unwrap_or(context.cpus[0]),
        record: RefCell::new(record),
        prepared: RefCell::new(None),
    }))
}

/// CPUs online.
fn online() -> u32 {
    facts::online(&Root::default()).len().max(1) as u32
}

/// Calibrated costs of a call on a short message and of a key generation, seconds.
fn costs(context: &Context, key: &Key) -> Result<Result<(f64, f64), Reason>, PhaseError> {
    let Some(known) = calibrate::calibrated(context, key.row, key.operation)? else {
        return Err(PhaseError::Earlier {
            missing: "a calibrated cost",
            phase: calibrate::NAME,
        });
    };
    Ok(match (known.c_s, known.head.reason) {
        (Some(call_s), _) => Ok((call_s, known.key_s.unwrap_or(call_s))),
        (None, Some(reason)) => Err(reason),
        (None, None) => Err(Reason::new(
            ReasonCode::NotRecorded,
            "it has no calibrated cost",
        )),
    })
}

/// Why a point is not measured, if it is not.
fn cannot(
    context: &Context,
    settings: &StudySettings,
    key: &Key,
    has_library: bool,
) -> Result<Option<(Status, Reason)>, PhaseError> {
    if let Err(reason) = costs(context, key)? {
        return Ok(Some((Status::Failed, reason)));
    }
    if let Some(reason) = too_large(settings, key.mode, key.size_bytes) {
        return Ok(Some((Status::Skipped, reason)));
    }
    if has_library {
        return Ok(None);
    }
    Ok(Some(
        match key.built.libraries.contains_key(LibraryKind::Stream.name()) {
            true => (Status::Failed, not_the_same(&key.row.identity)),
            false => (Status::Skipped, no_stream()),
        },
    ))
}

/// A buffer that is larger than the memory guard allows.
fn too_large(settings: &StudySettings, mode: StudyMode, size_bytes: u64) -> Option<Reason> {
    let guard = settings.memory_guard_bytes;
    (mode == StudyMode::Buffer && size_bytes > guard).then(|| {
        let text = format!(
            "a buffer for the whole message needs {size_bytes} bytes ({}) of memory, and the memory guard is {guard} bytes ({}): raise memory_guard in [study.message-size], or see the mode stream",
            Size(size_bytes),
            Size(guard)
        );
        Reason::new(ReasonCode::OverBudget, text)
    })
}

fn no_stream() -> Reason {
    let text = "it takes its message through no function that crosses the link, so no library of it can read the message in chunks; see the mode buffer";
    Reason::new(ReasonCode::NotInPlan, text)
}

fn not_the_same(identity: &Identity) -> Reason {
    let text = format!(
        "the stream library of {identity} does not reproduce the first vector of its known answers"
    );
    Reason::new(ReasonCode::KatMismatch, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> StudySettings {
        StudySettings {
            name: "message-size".into(),
            plan: "quick".into(),
            sizes: vec![1000, 3_000_000_000],
            modes: vec![StudyMode::Buffer, StudyMode::Stream],
            trials: 5,
            chunk_bytes: 65536,
            memory_guard_bytes: 2_000_000_000,
            file: None,
        }
    }

    #[test]
    fn a_buffer_above_the_guard_is_refused_with_the_number_it_needs() {
        let of = |mode, size| too_large(&settings(), mode, size);
        let reason = of(StudyMode::Buffer, 3_000_000_000).unwrap();
        assert_eq!(reason.code, ReasonCode::OverBudget);
        assert!(
            reason.text.contains("needs 3000000000 bytes (3 GB)"),
            "{}",
            reason.text
        );
        assert_eq!(
            of(StudyMode::Buffer, 2_000_000_000),
            None,
            "the guard itself is allowed"
        );
        for mode in [StudyMode::Mmap, StudyMode::Stream, StudyMode::PrehashSha3] {
            assert_eq!(of(mode, 3_000_000_000), None);
        }
    }

    #[test]
    fn key_generation_is_measured_once_a_size() {
        assert_eq!(settings().modes_of(Operation::Keygen).len(), 1);
        assert_eq!(settings().modes_of(Operation::Sign), settings().modes);
    }
}

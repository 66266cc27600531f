//! What is measured: one item a record, with its plan, its library and its evidence so far.

use super::record::{self, Rules};
use super::slots;
use crate::evidence::{
    aa_file, record_file, Attempt, BuildFile, BuildRow, Exit, KatRef, Kind, Libraries, LibraryKind,
    PlanRecord, Reason, SessionRef, Status, TimingRecord,
};
use crate::phases::context::{library, Context, PhaseError};
use crate::phases::{calibrate, inputs, kat};
use crate::plan::{self, Cost};
use crate::run::book::{Begun, PreparedKey};
use crate::select::Row;
use protocol::{LibraryFile, Operation};
use std::cell::RefCell;

/// One record and what it takes to complete it.
pub struct Item<'a> {
    /// Its row.
    pub row: &'a Row,
    /// What was built.
    pub built: &'a BuildRow,
    /// Operation.
    pub operation: Operation,
    /// Second timing of the noise floor.
    pub aa: bool,
    /// Path of the record below the run.
    pub file: String,
    /// Timed library.
    pub library: LibraryFile,
    /// Calibrated cost.
    pub cost: Cost,
    /// How attempts are judged.
    pub rules: Rules,
    /// CPU to measure on.
    pub cpu: u32,
    /// The record as it is on the disk, or will be.
    pub record: RefCell<TimingRecord>,
    /// The key that all trials share; looked up with the first attempt.
    pub prepared: RefCell<Option<Option<PreparedKey>>>,
}

impl Item<'_> {
    /// Its key in the order of trials, and its name on the screen.
    pub fn key(&self) -> String {
        let key = self.row.identity.operation_key(self.operation);
        match self.aa {
            true => format!("{key}.aa"),
            false => key,
        }
    }

    /// Whether attempts are left to be made.
    pub fn is_open(&self) -> bool {
        self.record.borrow().head.status == Status::Partial
    }

    /// Expected time of one attempt, seconds.
    pub fn attempt_s(&self) -> f64 {
        let plan = &self.record.borrow().plan;
        let calls = plan.iterations as f64 + f64::from(plan.warmups);
        calls * self.cost.call_s + self.cost.preparation_s
    }
}

/// All items in page order, with what earlier sessions left undone marked in their records; a record
/// of what could not be calibrated is written as failed. The `aa` item is the last.
pub fn all<'a>(
    context: &'a Context<'_>,
    build: &'a BuildFile,
) -> Result<Vec<Item<'a>>, PhaseError> {
    let mut items = Vec::new();
    for row in context.active() {
        let Ok(kat) = kat::gate(context, build, &row.identity, LibraryKind::Timed)? else {
            continue;
        };
        let Some(built) = build.rows.iter().find(|b| b.identity == row.identity) else {
            continue;
        };
        for &operation in &row.operations {
            if let Some(item) = item(context, row, built, operation, false, &kat)? {
                items.push(item);
            }
        }
    }
    if context.is_emulated() {
        return Ok(items);
    }
    let floor = cheapest_verify(&items).map(|item| (item.row, item.built));
    if let Some((row, built)) = floor {
        if let Ok(kat) = kat::gate(context, build, &row.identity, LibraryKind::Timed)? {
            items.extend(item(context, row, built, Operation::Verify, true, &kat)?);
        }
    }
    Ok(items)
}

/// The verify with the least cost: what the noise floor is taken from. Deferred rows may not be
/// measured at all, so they do not serve.
fn cheapest_verify<'i, 'a>(items: &'i [Item<'a>]) -> Option<&'i Item<'a>> {
    items
        .iter()
        .filter(|item| item.operation == Operation::Verify && !item.row.deferred)
        .min_by(|a, b| a.cost.call_s.total_cmp(&b.cost.call_s))
}

fn item<'a>(
    context: &'a Context<'_>,
    row: &'a Row,
    built: &'a BuildRow,
    operation: Operation,
    aa: bool,
    kat: &KatRef,
) -> Result<Option<Item<'a>>, PhaseError> {
    let file = match aa {
        true => aa_file(&row.identity),
        false => record_file(&row.identity, operation),
    };
    let Some(library) = library(built, LibraryKind::Timed) else {
        return Ok(None);
    };
    let Some(calibrated) = calibrate::calibrated(context, row, operation)? else {
        return Err(PhaseError::Earlier {
            missing: "a calibrated cost",
            phase: calibrate::NAME,
        });
    };
    let cost = calibrated.c_s.map(|call_s| Cost {
        call_s,
        preparation_s: calibrated.preparation_s.unwrap_or(0.0),
    });
    let plan = match cost {
        Some(cost) => plan::measure(context.plan, cost),
        None => uncalibrated(context),
    };
    let begun = context.book.begun(&file);
    let known = context.book.read::<TimingRecord>(&file)?;
    let known = known.filter(|k| k.value.libraries.timed.as_ref() == Some(&library.sha256));
    let mut record = match known {
        Some(stored) => stored.value,
        None => new_record(context, row, operation, aa, kat, plan, &library),
    };
    let rules = Rules::of(context.plan);
    if let (None, Some(reason)) = (cost, calibrated.head.reason) {
        return fail(context, &file, record, reason).map(|()| None);
    }
    if mark_cut_off(&mut record, &begun, &context.sessions) {
        record::settle(&mut record, &rules);
        context.book.write(&file, &record)?;
    }
    Ok(Some(Item {
        row,
        built,
        operation,
        aa,
        file,
        library,
        cost: cost.unwrap_or(Cost {
            call_s: 0.0,
            preparation_s: 0.0,
        }),
        rules,
        cpu: record.cpu.unwrap_or(context.cpus[0]),
        record: RefCell::new(record),
        prepared: RefCell::new(None),
    }))
}

/// Plan of an operation without a cost: nothing, or one call for a functional pass.
fn uncalibrated(context: &Context) -> PlanRecord {
    let nothing = Cost {
        call_s: 0.0,
        preparation_s: 0.0,
    };
    PlanRecord {
        iterations: u64::from(context.is_emulated()),
        warmups: 0,
        cost_s: None,
        preparation_s: None,
        timeout_s: context.plan.timeout_floor_s,
        ..plan::measure(context.plan, nothing)
    }
}

/// A record without attempts.
pub fn new_record(
    context: &Context,
    row: &Row,
    operation: Operation,
    aa: bool,
    kat: &KatRef,
    plan: PlanRecord,
    library: &LibraryFile,
) -> TimingRecord {
    let mut head = context.head(Kind::Timing, &row.identity);
    head.sessions.clear();
    head.status = Status::Partial;
    TimingRecord {
        head,
        operation,
        aa,
        trials: record::empty_trials(plan.trials),
        plan,
        kat: Some(kat.clone()),
        libraries: Libraries {
            timed: Some(library.sha256.clone()),
        },
        inputs: record::no_inputs(inputs::rule(context), inputs::MESSAGE_BYTES),
        cycle_source: record::unknown_source(),
        cpu: None,
        sizes: None,
        host_ready: Some(context.host_ready),
        stated_disturbed_retries: None,
        derived: None,
    }
}

/// Writes a record that cannot be measured, unless it is there.
fn fail(
    context: &Context,
    file: &str,
    mut record: TimingRecord,
    reason: Reason,
) -> Result<(), PhaseError> {
    if record.head.status == Status::Failed {
        return Ok(());
    }
    record.head.status = Status::Failed;
    record.head.reason = Some(reason);
    record.head.sessions = context.sessions.last().cloned().into_iter().collect();
    record::explain(&mut record, None, &Default::default());
    context.book.write(file, &record)?;
    Ok(())
}

/// Adds the attempts that were begun and have left nothing, with the session of each: the orchestrator
/// ended before them.
pub fn mark_cut_off(record: &mut TimingRecord, begun: &[Begun], sessions: &[SessionRef]) -> bool {
    let mut marked = false;
    for start in begun {
        let Some(slot) = record.trials.get_mut(start.trial as usize) else {
            continue;
        };
        if slot.attempts.len() == start.attempt as usize {
            let mut attempt = Attempt::empty(Exit::Interrupted);
            attempt.session = start.session;
            attempt.started_utc = Some(start.utc.clone());
            attempt.detail = Some(slots::CUT_OFF.to_owned());
            slot.attempts.push(attempt);
            slot.counted = slots::counted(&slot.attempts);
            record::note_session(record, sessions.iter().find(|s| s.k == start.session));
            marked = true;
        }
    }
    marked
}

#[cfg(test)]
mod tests {
    use super::super::tests::record;
    use super::*;

    #[test]
    fn what_was_begun_and_left_nothing_is_marked_once() {
        let begun = |trial, attempt| Begun {
            session: 3,
            utc: "then".into(),
            trial,
            attempt,
        };
        let mut record = record(2);
        let starts = [begun(0, 0), begun(1, 0), begun(1, 0), begun(9, 0)];
        record.trials[0].attempts.push(Attempt::empty(Exit::Ok));
        let session = |k| SessionRef {
            k,
            environment_sha256: k.to_string(),
        };
        record.head.sessions = vec![session(4)];
        let sessions = [session(0), session(3), session(4)];
        assert!(mark_cut_off(&mut record, &starts, &sessions));
        assert!(!mark_cut_off(&mut record, &starts, &sessions));
        assert_eq!(record.head.sessions, sessions[1..]);
        let attempts: Vec<_> = record.trials.iter().map(|t| t.attempts.len()).collect();
        assert_eq!(attempts, [1, 1]);
        let marked = &record.trials[1].attempts[0];
        assert_eq!((marked.exit, marked.session), (Exit::Interrupted, 3));
        assert_eq!(record.trials[1].counted, None);
    }
}

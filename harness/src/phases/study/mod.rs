//! The study phase: operations on messages of growing size, each trial a fresh worker, all points
//! interleaved, one record each; then the models.
//!
//! [`message`] has the files, [`point`] what a record needs, [`record`] what an attempt makes of it,
//! [`fit`] the models. Order of trials, disturbances, slots and what counts are those of
//! [`super::measure`].

mod fit;
pub mod message;
mod point;
mod record;

use super::context::{Context, PhaseError};
use super::measure::attempt;
use super::measure::disturb::{self, Normal};
use super::measure::order::{self, Slot};
use super::measure::record as timing;
use super::measure::slots;
use super::measure::Seen;
use super::{inputs, together, Lane};
use crate::evidence::journal::JournalEvent;
use crate::evidence::{Attempt, BuildFile, Exit, Head, Status, StudyIo, StudyRecord};
use crate::host::facts::Root;
use crate::progress::{Event, StepEnd};
use crate::select::Row;
use crate::worker::{Answer, Job};
use message::{Message, Messages};
use point::Point;
use protocol::{
    Body, FailureCode, MeasureTask, Measured, Operation, StudyOutcome, StudyTask, Task, FILE_FD,
};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// Name of the phase.
pub const NAME: &str = "study";

/// Runs the phase.
pub async fn run(context: &Context<'_>) -> Result<(), PhaseError> {
    let settings = context.study.expect("the phase of a study").settings;
    let build = context.build()?;
    let start = Instant::now();
    let keys = point::keys(context, &build, settings)?;
    let mut open = Vec::new();
    for &key in &keys {
        if !point::is_done(context, &key)? {
            open.push(key);
        }
    }
    let sizes: BTreeSet<u64> = open.iter().map(|key| key.size_bytes).collect();
    let sizes: Vec<u64> = sizes.into_iter().collect();
    let messages = message::messages(context, &sizes).await?;
    let mut points = Vec::new();
    for &key in &open {
        points.extend(point::point(context, &build, settings, &messages, key)?);
    }
    give_cpus(context, &mut points);
    let signatures = Signatures::default();
    for &key in &keys {
        if let Some(known) = context.book.read::<StudyRecord>(&key.file())? {
            signatures.take_over(&known.value);
        }
    }
    measure(context, &points, &messages, &signatures).await?;
    drop(messages);
    fit::write(context, &build, settings)?;
    context.progress.event(Event::End {
        phase: NAME,
        took: start.elapsed(),
    });
    Ok(())
}

/// Heads of all records of a row, each with what it is about; `None` where there is none.
pub fn heads(
    context: &Context,
    build: &BuildFile,
    row: &Row,
) -> Result<Vec<(String, Option<Head>)>, PhaseError> {
    let settings = context.study.expect("the phase of a study").settings;
    let keys = point::keys(context, build, settings)?;
    keys.iter()
        .filter(|key| key.row.identity == row.identity)
        .map(|key| {
            let stored = context.book.read::<StudyRecord>(&key.file())?;
            Ok((key.name(), stored.map(|stored| stored.value.timing.head)))
        })
        .collect()
}

/// All points of an instance on one CPU, the load spread; who has begun keeps his.
fn give_cpus(context: &Context, points: &mut [Point]) {
    let mut costs: BTreeMap<String, f64> = BTreeMap::new();
    let mut fixed = BTreeMap::new();
    for point in points.iter() {
        let group = point.key.row.identity.subject();
        *costs.entry(group.clone()).or_default() += point.attempt_s();
        if let Some(cpu) = point.record.borrow().timing.cpu {
            fixed.insert(group, cpu);
        }
    }
    let assigned = order::assign(&costs, &fixed, &context.cpus);
    for point in points {
        if let Some(&cpu) = assigned.get(&point.key.row.identity.subject()) {
            point.cpu = cpu;
            point.rules.clock_hz = context.clock_hz.get(&cpu).copied();
            point.rules.no_cycles = context.no_cycles.get(&cpu).cloned();
        }
    }
}

/// What attempts of one run work with.
struct Work<'a> {
    context: &'a Context<'a>,
    messages: &'a Messages,
    signatures: &'a Signatures,
}

async fn measure(
    context: &Context<'_>,
    points: &[Point<'_>],
    messages: &Messages,
    signatures: &Signatures,
) -> Result<(), PhaseError> {
    let listed: Vec<order::Item> = points
        .iter()
        .map(|point| order::Item {
            key: point.key.name(),
            trials: point.record.borrow().timing.plan.trials,
            deferred: point.key.row.deferred,
        })
        .collect();
    let slots: Vec<Slot> = order::schedule(context.book.directory().order_seed(), &listed)
        .into_iter()
        .filter(|slot| is_open(&points[slot.item], slot.trial))
        .collect();
    let planned: f64 = slots.iter().map(|slot| points[slot.item].attempt_s()).sum();
    context.progress.event(Event::Begin {
        phase: NAME,
        steps: slots.len(),
        planned: Duration::from_secs_f64(planned / context.cpus.len() as f64),
    });
    let cpus: BTreeSet<u32> = points.iter().map(|point| point.cpu).collect();
    let work = &Work {
        context,
        messages,
        signatures,
    };
    let slots = &slots;
    // One lane that cannot go on ends the others after their attempt.
    let halt = &std::cell::Cell::new(false);
    let lanes = cpus.into_iter().map(|cpu| -> Lane<'_> {
        Box::pin(async move {
            for slot in slots.iter().filter(|slot| points[slot.item].cpu == cpu) {
                if halt.get() {
                    break;
                }
                let end = run_slot(work, &points[slot.item], slot.trial).await;
                halt.set(halt.get() || end.is_err());
                end?;
            }
            Ok(())
        })
    });
    for end in together::all(lanes.collect()).await {
        end?;
    }
    Ok(())
}

fn is_open(point: &Point, trial: u32) -> bool {
    let record = point.record.borrow();
    record.timing.head.status == Status::Partial
        && slots::is_open(&record.timing.trials[trial as usize], point.rules.repeats)
}

/// All attempts that a slot needs.
async fn run_slot(work: &Work<'_>, point: &Point<'_>, trial: u32) -> Result<(), PhaseError> {
    let context = work.context;
    while is_open(point, trial) {
        if context.stop.is_requested() {
            return Err(PhaseError::Interrupted);
        }
        say_retry(context, point, trial)?;
        run_attempt(work, point, trial).await?;
    }
    let record = point.record.borrow();
    let head = &record.timing.head;
    let text = head.reason.as_ref().map(|r| r.text.clone());
    context.progress.event(Event::Step {
        label: &point.key.name(),
        planned: Duration::from_secs_f64(point.attempt_s() / context.cpus.len() as f64),
        end: match (head.status, &text) {
            (Status::Failed, Some(text)) => StepEnd::Bad(text),
            (Status::Complete, _) => StepEnd::Good("measured"),
            _ => StepEnd::Silent,
        },
    });
    Ok(())
}

/// A line in the journal when a disturbed attempt is about to be repeated.
fn say_retry(context: &Context, point: &Point, trial: u32) -> Result<(), PhaseError> {
    let record = point.record.borrow();
    let last = record.timing.trials[trial as usize].attempts.last();
    if let Some(last) = last.filter(|a| a.exit == Exit::Ok) {
        context.book.log(JournalEvent::Retry {
            record: point.key.file(),
            trial,
            flags: last.flags.iter().map(|flag| flag.name.clone()).collect(),
        })?;
    }
    Ok(())
}

/// One fresh worker for one slot, and the record rewritten.
async fn run_attempt(work: &Work<'_>, point: &Point<'_>, trial: u32) -> Result<(), PhaseError> {
    let context = work.context;
    let message = &work.messages[&point.key.size_bytes];
    let task = task(context, point, trial, message).await?;
    let number = point.record.borrow().timing.trials[trial as usize]
        .attempts
        .len();
    context.book.log(JournalEvent::AttemptBegun {
        record: point.key.file(),
        trial,
        attempt: number as u32,
    })?;
    let root = Root::default();
    let before = Seen::of(&root, context, point.cpu);
    let limit = point.record.borrow().timing.plan.timeout_s;
    let answer = context
        .ask(Job {
            task,
            library: Some(point.library.clone()),
            cpu: Some(point.cpu),
            limit: Duration::from_secs_f64(limit),
            file: Some((FILE_FD, message.descriptor()?)),
            preload: None,
        })
        .await?;
    let outside = before.until(&Seen::of(&root, context, point.cpu), &answer);
    let (mut attempt, outcome) = ended(&answer, context.session(), message)?;
    attempt.steal = outside.steal;
    let mut record = point.record.borrow_mut();
    if let Some(outcome) = outcome {
        let normal = Normal {
            limits: &context.plan.disturbed,
            clock_hz: point.rules.clock_hz,
            minor_faults: timing::reference_faults(&record.timing, trial),
        };
        attempt.flags = disturb::flags(&outcome.measured, outside, normal);
        if timing::changes_source(&record.timing, &outcome.measured) {
            attempt.exit = Exit::Interrupted;
            attempt.detail = Some("it counted with another source than the record's".into());
        }
        if let Some(text) = work
            .signatures
            .differs(&record, trial, &record::io(outcome))
        {
            attempt = not_the_same(attempt, text);
        }
    }
    let was_interrupted = attempt.detail.as_deref() == Some(slots::CUT_OFF);
    record.timing.cpu = Some(point.cpu);
    let session = context.sessions.last().expect("a phase runs in a session");
    let measured = outcome.map(|outcome| (&outcome.measured, record::io(outcome)));
    record::add(&mut record, trial, attempt, measured, session, &point.rules);
    context.book.write(&point.key.file(), &*record)?;
    match was_interrupted {
        true => Err(PhaseError::Interrupted),
        false => Ok(()),
    }
}

/// The attempt of an answer, with the outcome if it ended well. A message that was changed spoils
/// whatever the worker says.
fn ended<'a>(
    answer: &'a Answer,
    session: u32,
    message: &Message,
) -> Result<(Attempt, Option<&'a StudyOutcome>), PhaseError> {
    let (attempt, measured) = match attempt::of(answer, session, of_study) {
        Err(PhaseError::WorkerFailed { code, .. })
            if code == FailureCode::Io && message.is_changed(true) =>
        {
            return Err(message.changed().into());
        }
        other => other?,
    };
    if attempt.exit != Exit::Interrupted && message.is_changed(false) {
        return Err(message.changed().into());
    }
    let outcome = match (&answer.body, measured) {
        (Some(Body::Study(outcome)), Some(_)) => Some(outcome.as_ref()),
        _ => None,
    };
    Ok((attempt, outcome))
}

/// What was measured, of the answer to a study task.
fn of_study(body: &Body) -> Option<&Measured> {
    match body {
        Body::Study(outcome) => Some(&outcome.measured),
        _ => None,
    }
}

/// The same attempt as one that did not end well.
fn not_the_same(attempt: Attempt, text: String) -> Attempt {
    Attempt {
        session: attempt.session,
        started_utc: attempt.started_utc,
        detail: Some(text),
        steal: attempt.steal,
        stdout: attempt.stdout,
        stderr: attempt.stderr,
        command: attempt.command,
        ..attempt::empty(Exit::NotVerified)
    }
}

async fn task(
    context: &Context<'_>,
    point: &Point<'_>,
    trial: u32,
    message: &Message,
) -> Result<Task, PhaseError> {
    if point.prepared.borrow().is_none() {
        // Made when the operation was calibrated; see the measure phase.
        let key = inputs::prepared_key(context, point.key.built, Some(point.cpu)).await?;
        point.prepared.replace(Some(key.ok().flatten()));
    }
    let prepared = point.prepared.borrow().clone().flatten();
    let record = point.record.borrow();
    let plan = &record.timing.plan;
    Ok(Task::Study(StudyTask {
        measure: MeasureTask {
            operation: point.key.operation,
            inputs: inputs::inputs(context, &point.key.row.identity, trial, prepared.as_ref()),
            iterations: plan.iterations,
            warmups: plan.warmups,
            cost_ns: (plan.cost_s.unwrap_or(0.0) * 1e9).ceil() as u64,
            sources: timing::sources(&record.timing),
        },
        mode: record.mode,
        size_bytes: record.size_bytes,
        file_sha256: message.sha256.clone(),
        chunk_bytes: record.chunk_bytes.unwrap_or(0),
    }))
}

/// The first signature of each parameter set, operation, size and trial: modes that sign the file
/// itself must agree in it, whatever the code and the build.
#[derive(Debug, Default)]
struct Signatures(RefCell<BTreeMap<Signed, Signature>>);

/// Parameter set, operation, bytes of the message, trial.
type Signed = (String, Operation, u64, u32);
/// SHA-256 of the first signature, and who made it.
type Signature = (String, String);

impl Signatures {
    /// Takes over what an earlier session has measured.
    fn take_over(&self, record: &StudyRecord) {
        for (trial, (slot, io)) in record.timing.trials.iter().zip(&record.io).enumerate() {
            if let Some(io) = slot.counted.and_then(|index| io.get(index as usize)) {
                self.differs(record, trial as u32, io);
            }
        }
    }

    /// Remembers the signature of an attempt; says so if it is another one than is known.
    fn differs(&self, record: &StudyRecord, trial: u32, io: &StudyIo) -> Option<String> {
        let signature = io.signature_sha256.as_ref()?;
        if !fit::SAME.contains(&record.mode) {
            return None;
        }
        let identity = &record.timing.head.identity;
        let key = (
            identity.subject(),
            record.timing.operation,
            record.size_bytes,
            trial,
        );
        let own = format!("{identity} in mode {}", record.mode.name());
        let mut known = self.0.borrow_mut();
        let (first, by) = known
            .entry(key)
            .or_insert_with(|| (signature.clone(), own.clone()));
        (first != signature).then(|| {
            format!(
                "its signature is not that of {by} on the same message with the same randomness"
            )
        })
    }
}

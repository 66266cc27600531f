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
use super::inputs;
use super::measure::attempt;
use super::measure::record as timing;
use super::measure::slots;
use super::measure::trials::{self, Timed};
use super::measure::Seen;
use crate::evidence::{Attempt, BuildFile, Exit, Head, StudyIo, StudyRecord, TimingRecord};
use crate::host::facts::Root;
use crate::progress::Event;
use crate::select::Row;
use crate::worker::{Answer, Job};
use message::{Message, Messages};
use point::Point;
use protocol::{
    Body, FailureCode, MeasureTask, Measured, Operation, StudyOutcome, StudyTask, Task, FILE_FD,
};
use std::cell::{Ref, RefCell};
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
    trials::give_cpus(context, &mut points);
    let signatures = Signatures::default();
    for &key in &keys {
        if let Some(known) = context.book.read::<StudyRecord>(&key.file())? {
            signatures.take_over(&known.value);
        }
    }
    let work = Work {
        context,
        messages: &messages,
        signatures: &signatures,
    };
    let attempt = async |point: &Point<'_>, trial| run_attempt(&work, point, trial).await;
    trials::run(context, NAME, &points, attempt).await?;
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

/// What attempts of one run work with.
struct Work<'a> {
    context: &'a Context<'a>,
    messages: &'a Messages,
    signatures: &'a Signatures,
}

impl Timed for Point<'_> {
    fn name(&self) -> String {
        self.key.name()
    }

    fn file(&self) -> String {
        self.key.file()
    }

    fn row(&self) -> &Row {
        self.key.row
    }

    fn cpu(&self) -> u32 {
        self.cpu
    }

    fn set_cpu(&mut self, cpu: u32) {
        self.cpu = cpu;
    }

    fn rules(&self) -> &timing::Rules {
        &self.rules
    }

    fn rules_mut(&mut self) -> &mut timing::Rules {
        &mut self.rules
    }

    fn attempt_s(&self) -> f64 {
        Point::attempt_s(self)
    }

    fn record(&self) -> Ref<'_, TimingRecord> {
        Ref::map(self.record.borrow(), |record| &record.timing)
    }
}

/// One fresh worker for one slot, and the record rewritten.
async fn run_attempt(work: &Work<'_>, point: &Point<'_>, trial: u32) -> Result<(), PhaseError> {
    let context = work.context;
    let message = &work.messages[&point.key.size_bytes];
    let task = task(context, point, trial, message).await?;
    trials::say_begun(context, point, trial)?;
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
        let seen = (&outcome.measured, outside);
        let limits = &context.plan.disturbed;
        attempt = attempt::judge(limits, &point.rules, &record.timing, trial, attempt, seen);
        if let Some(text) = work
            .signatures
            .differs(&record, trial, &record::io(outcome))
        {
            attempt = not_the_same(attempt, text);
        }
    }
    let was_interrupted = attempt.detail.as_deref() == Some(slots::CUT_OFF);
    record.timing.cpu = Some(point.cpu);
    let ready = record.timing.host_ready;
    record.timing.host_ready = ready.map(|ready| ready && context.host_ready);
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
        ..Attempt::empty(Exit::NotVerified)
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

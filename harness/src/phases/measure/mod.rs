//! The measure phase: every trial a fresh worker, all operations interleaved, one record each.
//!
//! [`order`] says what comes when and on which CPU, [`item`] what a record needs, [`attempt`] what an
//! answer becomes, [`disturb`] what disturbed it, [`slots`] which attempt counts, [`trials`] runs
//! them all, [`record`] what the
//! record makes of it. The record is rewritten after each attempt, so that nothing measured is lost.
//!
//! Under emulation an operation is run once to see that it works; no time is recorded.

pub(super) mod attempt;
pub(super) mod disturb;
pub(super) mod item;
pub(super) mod order;
pub(super) mod record;
pub(super) mod slots;
pub(super) mod trials;

use super::context::{Context, PhaseError};
use super::{inputs, together, Lane};
use crate::evidence::{Exit, Reason, ReasonCode, Status, TimingRecord};
use crate::host::facts::{self, Root};
use crate::progress::{Event, StepEnd};
use crate::select::Row;
use crate::worker::{Answer, Job};
use disturb::Outside;
use item::Item;
use protocol::{MeasureTask, Measured, Task};
use std::cell::Ref;
use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};
use trials::Timed;

/// Name of the phase.
pub const NAME: &str = "measure";

/// Runs the phase.
pub async fn run(context: &Context<'_>) -> Result<(), PhaseError> {
    let build = context.build()?;
    let mut items = item::all(context, &build)?;
    let start = Instant::now();
    if context.is_emulated() {
        functional(context, &items).await?;
    } else {
        trials::give_cpus(context, &mut items);
        let attempt = async |item: &Item<'_>, trial| run_attempt(context, item, trial).await;
        trials::run(context, NAME, &items, attempt).await?;
    }
    context.progress.event(Event::End {
        phase: NAME,
        took: start.elapsed(),
    });
    Ok(())
}

impl Timed for Item<'_> {
    fn name(&self) -> String {
        self.key()
    }

    fn file(&self) -> String {
        self.file.clone()
    }

    fn row(&self) -> &Row {
        self.row
    }

    fn cpu(&self) -> u32 {
        self.cpu
    }

    fn set_cpu(&mut self, cpu: u32) {
        self.cpu = cpu;
    }

    fn rules(&self) -> &record::Rules {
        &self.rules
    }

    fn rules_mut(&mut self) -> &mut record::Rules {
        &mut self.rules
    }

    fn attempt_s(&self) -> f64 {
        Item::attempt_s(self)
    }

    fn record(&self) -> Ref<'_, TimingRecord> {
        self.record.borrow()
    }
}

/// One fresh worker for one slot, and the record rewritten.
async fn run_attempt(context: &Context<'_>, item: &Item<'_>, trial: u32) -> Result<(), PhaseError> {
    let task = task(context, item, trial, Some(item.cpu)).await?;
    trials::say_begun(context, item, trial)?;
    let root = Root::default();
    let before = Seen::of(&root, context, item.cpu);
    let answer = ask(context, item, task, Some(item.cpu)).await?;
    let outside = before.until(&Seen::of(&root, context, item.cpu), &answer);
    let mut record = item.record.borrow_mut();
    let (mut attempt, measured) = attempt::of(&answer, context.session(), attempt::of_measure)?;
    attempt.steal = outside.steal;
    if let Some(measured) = measured {
        attempt = attempt::judge(
            &context.plan.disturbed,
            &item.rules,
            &record,
            trial,
            attempt,
            (measured, outside),
        );
    }
    let was_interrupted = attempt.detail.as_deref() == Some(slots::CUT_OFF);
    record.cpu = Some(item.cpu);
    record.host_ready = record.host_ready.map(|ready| ready && context.host_ready);
    let session = context.sessions.last().expect("a phase runs in a session");
    record::add(&mut record, trial, attempt, measured, session, &item.rules);
    context.book.write(&item.file, &*record)?;
    match was_interrupted {
        true => Err(PhaseError::Interrupted),
        false => Ok(()),
    }
}

async fn ask(
    context: &Context<'_>,
    item: &Item<'_>,
    task: Task,
    cpu: Option<u32>,
) -> Result<Answer, PhaseError> {
    let limit = item.record.borrow().plan.timeout_s;
    context
        .ask(Job {
            task,
            library: Some(item.library.clone()),
            cpu,
            limit: Duration::from_secs_f64(limit),
            file: None,
            preload: None,
        })
        .await
}

async fn task(
    context: &Context<'_>,
    item: &Item<'_>,
    trial: u32,
    cpu: Option<u32>,
) -> Result<Task, PhaseError> {
    if item.prepared.borrow().is_none() {
        // It was made when the operation was calibrated; a library that cannot make it again is
        // told so by the attempt itself, which then makes its own.
        let key = inputs::prepared_key(context, item.built, cpu).await?;
        item.prepared.replace(Some(key.ok().flatten()));
    }
    let prepared = item.prepared.borrow().clone().flatten();
    let record = item.record.borrow();
    Ok(Task::Measure(MeasureTask {
        operation: item.operation,
        inputs: inputs::inputs(context, &item.row.identity, trial, prepared.as_ref()),
        iterations: record.plan.iterations,
        warmups: record.plan.warmups,
        cost_ns: (record.plan.cost_s.unwrap_or(item.cost.call_s) * 1e9).ceil() as u64,
        sources: record::sources(&record),
    }))
}

/// Counters of the machine at one moment.
pub(super) struct Seen {
    steal: Option<u64>,
    sibling_busy: Option<u64>,
    throttled: Option<u64>,
    frequency: facts::Frequency,
}

impl Seen {
    pub(super) fn of(root: &Root, context: &Context, cpu: u32) -> Self {
        let siblings = context.siblings.get(&cpu).map_or(&[][..], Vec::as_slice);
        Seen {
            steal: facts::steal_ticks(root, cpu),
            sibling_busy: siblings
                .iter()
                .map(|&sibling| facts::busy_ticks(root, sibling))
                .sum(),
            throttled: facts::throttled(root, cpu),
            frequency: facts::frequency(root, cpu),
        }
    }

    pub(super) fn until(&self, after: &Seen, answer: &Answer) -> Outside {
        let more = |before: Option<u64>, after: Option<u64>| Some(after?.saturating_sub(before?));
        Outside {
            elapsed: answer.outcome.elapsed,
            steal: more(self.steal, after.steal),
            sibling_busy: more(self.sibling_busy, after.sibling_busy),
            throttled: more(self.throttled, after.throttled),
            frequency_changes: self.frequency.changes_until(&after.frequency),
        }
    }
}

/// Runs each open item once, side by side, and records that it works.
async fn functional(context: &Context<'_>, items: &[Item<'_>]) -> Result<(), PhaseError> {
    let open: VecDeque<&Item> = items.iter().filter(|item| item.is_open()).collect();
    context.progress.event(Event::Begin {
        phase: NAME,
        steps: open.len(),
        planned: Duration::ZERO,
    });
    let queue = &std::cell::RefCell::new(open);
    let lanes = context.free_lanes().into_iter().map(|_| -> Lane<'_> {
        Box::pin(async move {
            loop {
                let Some(item) = queue.borrow_mut().pop_front() else {
                    return Ok(());
                };
                if let Err(error) = run_once(context, item).await {
                    queue.borrow_mut().clear();
                    return Err(error);
                }
            }
        })
    });
    for end in together::all(lanes.collect()).await {
        end?;
    }
    Ok(())
}

async fn run_once(context: &Context<'_>, item: &Item<'_>) -> Result<(), PhaseError> {
    let answer = ask(context, item, task(context, item, 0, None).await?, None).await?;
    let (attempt, measured) = attempt::of(&answer, context.session(), attempt::of_measure)?;
    let mut record = item.record.borrow_mut();
    record.trials = Vec::new();
    record.head.sessions = context.sessions.last().cloned().into_iter().collect();
    (record.head.status, record.head.reason) = match (attempt.exit, measured) {
        (Exit::Interrupted, _) => return Err(PhaseError::Interrupted),
        (Exit::Ok, Some(measured)) => {
            record::note_inputs(&mut record, 0, measured);
            (Status::Skipped, Some(worked(measured)))
        }
        _ => {
            let slot = crate::evidence::Trial {
                attempts: vec![attempt],
                counted: None,
            };
            slots::status(&[slot], 0)
        }
    };
    record::explain(&mut record, None, &BTreeMap::new());
    context.book.write(&item.file, &*record)?;
    let text = record.head.reason.as_ref().map(|r| r.text.clone());
    context.progress.event(Event::Step {
        label: &item.key(),
        planned: Duration::ZERO,
        end: match (record.head.status, &text) {
            (Status::Failed, Some(text)) => StepEnd::Bad(text),
            _ => StepEnd::Good("works"),
        },
    });
    Ok(())
}

fn worked(measured: &Measured) -> Reason {
    let calls = measured.calls;
    let text =
        format!("emulated: {calls} call was made and its result verified; its time means nothing");
    Reason::new(ReasonCode::Emulated, text)
}

#[cfg(test)]
pub(crate) mod tests {
    use crate::evidence::*;
    use protocol::*;

    /// A measured attempt of so many calls in so many nanoseconds, with nothing else remarkable.
    pub fn measured(calls: u64, nanoseconds: u64) -> Measured {
        Measured {
            calls,
            nanoseconds,
            cycles: None,
            ticks: None,
            instructions: None,
            time_enabled_ns: None,
            time_running_ns: None,
            read_directly: false,
            count_refused: None,
            refused_value: None,
            refused_instructions: None,
            batch: 1,
            samples_ns: vec![nanoseconds / calls; calls as usize],
            rest: Rest { calls: 0, value: 0 },
            source: SourceProbe {
                kind: SourceKind::None,
                source: None,
                reason: None,
            },
            overhead: Overhead {
                clock_read_ps: 0,
                empty_call_ps: 0,
                iterations: 0,
            },
            usage: Usage {
                user_ns: nanoseconds,
                ..Usage::default()
            },
            baseline_rss_bytes: 0,
            peak_rss_bytes: 0,
            cpu_before: 1,
            cpu_after: 1,
            messages: calls,
            keys: 1,
            seeds: Vec::new(),
            sizes: Sizes {
                pk: 0,
                sk: 0,
                sn: 0,
            },
            last_signature_bytes: 0,
            boottime_ns: nanoseconds,
            threads: 1,
        }
    }

    /// An attempt that ended so.
    pub fn attempt(exit: Exit) -> Attempt {
        Attempt::empty(exit)
    }

    /// A record without attempts.
    pub fn record(trials: u32) -> TimingRecord {
        let plan = &crate::config::defaults::defaults().plans["quick"];
        let cost = crate::plan::Cost {
            call_s: 1e-3,
            preparation_s: 0.0,
        };
        TimingRecord {
            head: Head {
                schema: SCHEMA.into(),
                kind: Kind::Timing,
                identity: "c/l/ref/reference".parse().unwrap(),
                origin: Origin::Independent,
                class: Class::Local,
                system: "local".into(),
                status: Status::Partial,
                reason: None,
                host_token: Some("00".into()),
                sessions: Vec::new(),
                missing: Default::default(),
            },
            operation: Operation::Verify,
            aa: false,
            plan: crate::plan::measure(plan, cost),
            kat: None,
            libraries: Libraries { timed: None },
            inputs: super::record::no_inputs(InputRule::Fresh, 64),
            cycle_source: super::record::unknown_source(),
            cpu: None,
            sizes: None,
            host_ready: None,
            stated_disturbed_retries: None,
            trials: super::record::empty_trials(trials),
            derived: None,
        }
    }
}

//! The trials of many records, interleaved over the measured CPUs. Timing and the study of message sizes
//! share this: what an attempt is differs, and all that decides when it is made and whether again does not.

use super::order::{self, Slot};
use super::record::Rules;
use super::slots;
use crate::evidence::journal::JournalEvent;
use crate::evidence::{Exit, Status, TimingRecord};
use crate::phases::context::{Context, PhaseError};
use crate::phases::{together, Lane};
use crate::progress::{Event, StepEnd};
use crate::select::Row;
use std::cell::{Cell, Ref};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// A record whose trials are run.
pub trait Timed {
    /// Name in messages and for the order of the trials.
    fn name(&self) -> String;
    /// Path of the record below the run.
    fn file(&self) -> String;
    /// Row that it belongs to.
    fn row(&self) -> &Row;
    /// CPU to measure on.
    fn cpu(&self) -> u32;
    /// Gives it a CPU.
    fn set_cpu(&mut self, cpu: u32);
    /// How attempts are judged.
    fn rules(&self) -> &Rules;
    /// The same, to be completed with what is known of the CPU.
    fn rules_mut(&mut self) -> &mut Rules;
    /// Expected time of one attempt, seconds.
    fn attempt_s(&self) -> f64;
    /// The record as it is now.
    fn record(&self) -> Ref<'_, TimingRecord>;
}

/// All that is timed of an instance on one CPU, the load spread; who has begun keeps his.
pub fn give_cpus<T: Timed>(context: &Context, items: &mut [T]) {
    let mut costs: BTreeMap<String, f64> = BTreeMap::new();
    let mut fixed = BTreeMap::new();
    for item in items.iter() {
        let group = item.row().identity.subject();
        let trials = f64::from(item.record().plan.trials);
        *costs.entry(group.clone()).or_default() += trials * item.attempt_s();
        if let Some(cpu) = item.record().cpu {
            fixed.insert(group, cpu);
        }
    }
    let assigned = order::assign(&costs, &fixed, &context.cpus);
    for item in items {
        if let Some(&cpu) = assigned.get(&item.row().identity.subject()) {
            item.set_cpu(cpu);
            let rules = item.rules_mut();
            rules.clock_hz = context.clock_hz.get(&cpu).copied();
            rules.no_cycles = context.no_cycles.get(&cpu).cloned();
        }
    }
}

/// Runs all open slots; `attempt` makes one attempt and rewrites the record.
pub async fn run<T: Timed>(
    context: &Context<'_>,
    phase: &'static str,
    items: &[T],
    attempt: impl AsyncFn(&T, u32) -> Result<(), PhaseError>,
) -> Result<(), PhaseError> {
    let listed: Vec<order::Item> = items
        .iter()
        .map(|item| order::Item {
            key: item.name(),
            trials: item.record().plan.trials,
            deferred: item.row().deferred,
        })
        .collect();
    let seed = context.book.directory().order_seed();
    let slots: Vec<Slot> = order::schedule(seed, &listed)
        .into_iter()
        .filter(|slot| is_open(&items[slot.item], slot.trial))
        .collect();
    let planned: f64 = slots.iter().map(|slot| items[slot.item].attempt_s()).sum();
    context.progress.event(Event::Begin {
        phase,
        steps: slots.len(),
        planned: Duration::from_secs_f64(planned / context.cpus.len() as f64),
    });
    let cpus: BTreeSet<u32> = items.iter().map(Timed::cpu).collect();
    // One lane that cannot go on ends the others after their attempt.
    let (slots, attempt, halt) = (&slots, &attempt, &Cell::new(false));
    let lanes = cpus.into_iter().map(|cpu| -> Lane<'_> {
        Box::pin(async move {
            for slot in slots.iter().filter(|slot| items[slot.item].cpu() == cpu) {
                if halt.get() {
                    break;
                }
                let end = run_slot(context, &items[slot.item], slot.trial, attempt).await;
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

fn is_open(item: &impl Timed, trial: u32) -> bool {
    let record = item.record();
    record.head.status == Status::Partial
        && slots::is_open(&record.trials[trial as usize], item.rules().repeats)
}

/// All attempts that a slot needs.
async fn run_slot<T: Timed>(
    context: &Context<'_>,
    item: &T,
    trial: u32,
    attempt: &impl AsyncFn(&T, u32) -> Result<(), PhaseError>,
) -> Result<(), PhaseError> {
    while is_open(item, trial) {
        if context.stop.is_requested() {
            return Err(PhaseError::Interrupted);
        }
        say_retry(context, item, trial)?;
        attempt(item, trial).await?;
    }
    let record = item.record();
    let text = record.head.reason.as_ref().map(|r| r.text.clone());
    context.progress.event(Event::Step {
        label: &item.name(),
        planned: Duration::from_secs_f64(item.attempt_s() / context.cpus.len() as f64),
        end: match (record.head.status, &text) {
            (Status::Failed, Some(text)) => StepEnd::Bad(text),
            (Status::Complete, _) => StepEnd::Good("measured"),
            _ => StepEnd::Silent,
        },
    });
    Ok(())
}

/// A line in the journal when a disturbed attempt is about to be repeated.
fn say_retry(context: &Context, item: &impl Timed, trial: u32) -> Result<(), PhaseError> {
    let record = item.record();
    let last = record.trials[trial as usize].attempts.last();
    if let Some(last) = last.filter(|a| a.exit == Exit::Ok) {
        context.book.log(JournalEvent::Retry {
            record: item.file(),
            trial,
            flags: last.flags.iter().map(|flag| flag.name.clone()).collect(),
        })?;
    }
    Ok(())
}

/// A line in the journal before the worker of an attempt is started.
pub fn say_begun(context: &Context, item: &impl Timed, trial: u32) -> Result<(), PhaseError> {
    let attempt = item.record().trials[trial as usize].attempts.len() as u32;
    context.book.log(JournalEvent::AttemptBegun {
        record: item.file(),
        trial,
        attempt,
    })?;
    Ok(())
}

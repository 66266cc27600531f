//! The calibrate phase: what one call of each operation costs, and the digests of trial 0's outputs,
//! which must be the same for every code and architecture.
//!
//! Instances go through a queue, one at a time on each measured CPU. Under emulation times mean
//! nothing and only the digests are kept.

use super::context::{library, Context, PhaseError};
use super::{inputs, kat, together};
use crate::evidence::{
    self, calibrate_file, BuildFile, BuildRow, CalibrateEvidence, Head, Kind, LibraryKind,
    LibraryRef, PlanSettings, Reason, ReasonCode, Status,
};
use crate::identity::Identity;
use crate::plan;
use crate::progress::{Event, StepEnd};
use crate::select::Row;
use crate::worker::Job;
use protocol::{Body, Calibrated, Operation, Task, CALIBRATE_PAIRS, TRIAL_CALIBRATE, VERIFY_PAIRS};
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

/// Name of the phase.
pub const NAME: &str = "calibrate";

/// Operations of one instance (all its codes and builds), so that one CPU has all of them.
type Group<'a> = Vec<(&'a Row, &'a BuildRow, Operation)>;

/// Runs the phase.
pub async fn run(context: &Context<'_>) -> Result<(), PhaseError> {
    let build = context.build()?;
    let groups = open_groups(context, &build)?;
    let start = Instant::now();
    let steps = groups.iter().map(Vec::len).sum();
    context.progress.event(Event::Begin {
        phase: NAME,
        steps,
        planned: Duration::ZERO,
    });
    if steps == 0 {
        return Ok(());
    }
    let queue: RefCell<VecDeque<Group>> = RefCell::new(groups.into());
    let queue = &queue;
    let lanes = context
        .timing_lanes()
        .into_iter()
        .map(|cpu| -> super::Lane<'_> {
            Box::pin(async move {
                loop {
                    let Some(group) = queue.borrow_mut().pop_front() else {
                        return Ok(());
                    };
                    if let Err(error) = calibrate_group(context, group, cpu).await {
                        queue.borrow_mut().clear();
                        return Err(error);
                    }
                }
            })
        });
    for end in together::all(lanes.collect()).await {
        end?;
    }
    context.progress.event(Event::End {
        phase: NAME,
        took: start.elapsed(),
    });
    Ok(())
}

/// What is not calibrated yet, by instance in page order.
fn open_groups<'a>(
    context: &'a Context<'_>,
    build: &'a BuildFile,
) -> Result<Vec<Group<'a>>, PhaseError> {
    let mut groups: BTreeMap<String, Group> = BTreeMap::new();
    let mut order = Vec::new();
    for row in context.active() {
        if kat::gate(context, build, &row.identity, LibraryKind::Timed)?.is_err() {
            continue;
        }
        let Some(built) = build.rows.iter().find(|b| b.identity == row.identity) else {
            continue;
        };
        for &operation in &row.operations {
            if is_done(context, built, operation)? {
                continue;
            }
            let subject = row.identity.subject();
            if !order.contains(&subject) {
                order.push(subject.clone());
            }
            groups
                .entry(subject)
                .or_default()
                .push((row, built, operation));
        }
    }
    Ok(order.iter().filter_map(|s| groups.remove(s)).collect())
}

fn is_done(context: &Context, built: &BuildRow, operation: Operation) -> Result<bool, PhaseError> {
    let file = calibrate_file(&built.identity, operation);
    let known = context.book.read::<CalibrateEvidence>(&file)?;
    let timed = built.libraries.get(LibraryKind::Timed.name());
    Ok(known.is_some_and(|k| Some(&k.value.library.sha256) == timed.map(|l| &l.sha256)))
}

async fn calibrate_group(
    context: &Context<'_>,
    group: Group<'_>,
    cpu: Option<u32>,
) -> Result<(), PhaseError> {
    for (row, built, operation) in group {
        // Once per library: with its first operation.
        let outputs = row.operations.first() == Some(&operation);
        let evidence = calibrate(context, built, operation, outputs, cpu).await?;
        let file = calibrate_file(&built.identity, operation);
        context.book.write(&file, &evidence)?;
        let text = evidence.head.reason.as_ref().map(|r| r.text.clone());
        context.progress.event(Event::Step {
            label: &built.identity.operation_key(operation),
            planned: Duration::ZERO,
            end: match (&evidence.head.status, &text) {
                (Status::Failed, Some(text)) => StepEnd::Bad(text),
                _ => StepEnd::Silent,
            },
        });
    }
    Ok(())
}

async fn calibrate(
    context: &Context<'_>,
    built: &BuildRow,
    operation: Operation,
    outputs: bool,
    cpu: Option<u32>,
) -> Result<CalibrateEvidence, PhaseError> {
    let head = context.head(Kind::Calibrate, &built.identity);
    let file = library(built, LibraryKind::Timed).expect("only rows that were built come here");
    let library = LibraryRef {
        kind: LibraryKind::Timed,
        sha256: file.sha256.clone(),
    };
    let prepared = match inputs::prepared_key(context, built, cpu).await? {
        Ok(prepared) => prepared,
        Err(reason) => return Ok(failed(head, operation, library, reason)),
    };
    let answer = context
        .ask(Job {
            task: Task::Calibrate {
                operation,
                inputs: inputs::inputs(
                    context,
                    &built.identity,
                    TRIAL_CALIBRATE,
                    prepared.as_ref(),
                ),
                outputs,
            },
            library: Some(file),
            cpu,
            limit: Duration::from_secs_f64(plan::calibrate_timeout_s(context.plan)),
            file: None,
            preload: None,
        })
        .await?;
    let calibrated = match inputs::body(&answer)? {
        Ok(Body::Calibrated(calibrated)) => calibrated,
        Ok(_) => return Ok(failed(head, operation, library, inputs::other_answer())),
        Err(reason) => return Ok(failed(head, operation, library, reason)),
    };
    let key_ns = match (&prepared, operation) {
        (Some(key), _) => Some(key.keygen_ns),
        // The calls themselves are key generations.
        (None, Operation::Keygen) => None,
        (None, _) => Some(calibrated.key_ns),
    };
    Ok(finished(
        context, head, operation, library, calibrated, key_ns,
    ))
}

fn finished(
    context: &Context,
    head: Head,
    operation: Operation,
    library: LibraryRef,
    calibrated: &Calibrated,
    key_ns: Option<u64>,
) -> CalibrateEvidence {
    let seconds = |ns: u64| ns as f64 / 1e9;
    let timed = !context.is_emulated();
    let c_s = plan::cost_s(&calibrated.calls_ns).filter(|_| timed);
    let mut evidence = CalibrateEvidence {
        head,
        operation,
        library,
        calls_ns: match timed {
            true => calibrated.calls_ns.clone(),
            false => Vec::new(),
        },
        c_s,
        key_s: key_ns.map(seconds).or(c_s).filter(|_| timed),
        preparation_s: c_s.map(|c_s| preparation_s(context.plan, operation, calibrated, c_s)),
        outputs: calibrated.outputs.clone(),
    };
    evidence::explain_with(&mut evidence, |pointer| match pointer {
        "/outputs" => None,
        _ => Some(Reason::new(
            ReasonCode::Emulated,
            "times of an emulated processor mean nothing",
        )),
    });
    evidence
}

/// Preparation of a trial: its key, and what else it needs. Calibrating a verification makes fewer
/// pairs of message and signature than a trial may use, so their time is scaled to the plan.
fn preparation_s(
    plan: &PlanSettings,
    operation: Operation,
    calibrated: &Calibrated,
    c_s: f64,
) -> f64 {
    let seconds = |ns: u64| ns as f64 / 1e9;
    let pairs = match operation {
        Operation::Verify => {
            let calls = plan::iterations(plan, c_s) + u64::from(plan::warmups(c_s));
            calls.min(VERIFY_PAIRS) as f64 / CALIBRATE_PAIRS as f64
        }
        _ => 1.0,
    };
    seconds(calibrated.key_ns) + pairs * seconds(calibrated.preparation_ns)
}

fn failed(
    mut head: Head,
    operation: Operation,
    library: LibraryRef,
    reason: Reason,
) -> CalibrateEvidence {
    head.status = Status::Failed;
    head.reason = Some(reason.clone());
    let mut evidence = CalibrateEvidence {
        head,
        operation,
        library,
        calls_ns: Vec::new(),
        c_s: None,
        key_s: None,
        preparation_s: None,
        outputs: None,
    };
    evidence::explain_with(&mut evidence, |_| Some(reason.clone()));
    evidence
}

/// Calibration of an operation; `None` when it is not there.
pub fn calibrated(
    context: &Context,
    row: &Row,
    operation: Operation,
) -> Result<Option<CalibrateEvidence>, PhaseError> {
    let file = calibrate_file(&row.identity, operation);
    Ok(context.book.read(&file)?.map(|stored| stored.value))
}

/// An identity whose outputs are not those of another code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Different {
    /// Which.
    pub identity: Identity,
    /// What differs, in words.
    pub text: String,
}

/// Identities whose trial 0 gave other outputs than another code of the same parameter set.
pub fn different_outputs(context: &Context) -> Result<Vec<Different>, PhaseError> {
    let mut first: BTreeMap<String, (Identity, protocol::Outputs)> = BTreeMap::new();
    let mut different = Vec::new();
    for row in context.active() {
        let Some(&operation) = row.operations.first() else {
            continue;
        };
        let known = calibrated(context, row, operation)?;
        let Some(outputs) = known.and_then(|k| k.outputs) else {
            continue;
        };
        let identity = &row.identity;
        match first.get(&identity.subject()) {
            Some((other, theirs)) if *theirs != outputs => different.push(Different {
                identity: identity.clone(),
                text: format!(
                    "it gives other keys or signatures than {other} from the same inputs"
                ),
            }),
            Some(_) => {}
            None => {
                first.insert(identity.subject(), (identity.clone(), outputs));
            }
        }
    }
    Ok(different)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verify_trial_prepares_as_many_pairs_as_it_uses() {
        let mut plan = crate::config::defaults::defaults().plans["quick"].clone();
        let calibrated = Calibrated {
            calls_ns: vec![],
            key_ns: 1_000_000_000,
            preparation_ns: 80_000_000,
            outputs: None,
        };
        let seconds =
            |plan: &PlanSettings, operation, c_s| preparation_s(plan, operation, &calibrated, c_s);
        // 0.1 s of a call of 1 ms are 100 calls, above the 64 pairs; of 0.2 s, 1 call and 1 warm-up.
        assert_eq!(seconds(&plan, Operation::Verify, 0.001), 1.0 + 8.0 * 0.08);
        assert_eq!(seconds(&plan, Operation::Verify, 0.2), 1.0 + 0.25 * 0.08);
        assert_eq!(seconds(&plan, Operation::Sign, 0.001), 1.08);
        plan.iterations = Some(1);
        assert_eq!(seconds(&plan, Operation::Verify, 0.001), 1.0 + 0.5 * 0.08);
    }
}

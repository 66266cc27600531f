//! What the memory and the profile phase share: single operations over some keys, with a library of
//! their own, for every operation of every row that takes part.

use super::context::{library, Context, PhaseError};
use super::{calibrate, inputs, kat, together, Lane};
use crate::build::INTERPOSE;
use crate::evidence::{BuildFile, BuildRow, Head, LibraryKind, LibraryRef, Reason, Status};
use crate::plan;
use crate::progress::{Event, StepEnd};
use crate::select::Row;
use crate::worker::Job;
use protocol::{Body, LibraryFile, Operation, Task};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// One operation to look at.
pub struct Single<'a> {
    /// Its row.
    pub row: &'a Row,
    /// What was built.
    pub built: &'a BuildRow,
    /// Which.
    pub operation: Operation,
    /// The library, or why it may not be used.
    pub library: Result<LibraryFile, Reason>,
    /// Number of keys.
    pub keys: u32,
    /// Expected time, seconds.
    pub expected_s: f64,
    /// Time limit, seconds.
    pub limit_s: f64,
    /// Which library it is.
    pub kind: LibraryKind,
    /// The interposed allocator, where the library comes already built and the phase has use for it.
    pub interposed: Option<LibraryFile>,
    /// Whether the phase leaves it out: `library` has the reason, which is no failure.
    pub left_out: bool,
}

impl Single<'_> {
    /// The library as the evidence names it; with an empty digest where there is none.
    pub fn library_ref(&self) -> LibraryRef {
        let known = self.built.libraries.get(self.kind.name());
        LibraryRef {
            kind: self.kind,
            sha256: known.map(|l| l.sha256.clone()).unwrap_or_default(),
        }
    }

    /// Marks the head of evidence without an answer.
    pub fn mark(&self, head: &mut Head, reason: &Reason) {
        head.status = match self.left_out {
            true => Status::Skipped,
            false => Status::Failed,
        };
        head.reason = Some(reason.clone());
    }
}

/// The interposed allocator of a row whose library comes already built.
fn interposed(built: &BuildRow) -> Option<LibraryFile> {
    let library = built.libraries.get(INTERPOSE)?;
    Some(LibraryFile {
        path: protocol::path_to_text(std::path::Path::new(&library.file)),
        sha256: library.sha256.clone(),
    })
}

/// What a phase does where there is no library of its kind.
pub enum ReadyMade {
    /// It uses the timed library, in a worker that counts allocations by the interposed one.
    Interpose,
    /// It leaves the operation out, for this reason.
    Skip(Reason),
}

/// A phase of single operations.
pub trait Phase {
    /// Name of the phase.
    const NAME: &'static str;
    /// Library that it uses, where there is one of that kind.
    const LIBRARY: LibraryKind;

    /// What it does with a library that comes already built, which has no others beside it.
    fn ready_made() -> ReadyMade;

    /// SHA-256 of the library of the evidence that is there.
    fn known(context: &Context, single: &Single) -> Result<Option<String>, PhaseError>;
    /// What a worker is to do.
    fn task(single: &Single, inputs: protocol::Inputs) -> Task;
    /// Trial number in the seeds.
    const TRIAL: u32;
    /// Writes the evidence of an answer or of a reason.
    fn write(
        context: &Context,
        single: &Single,
        answer: Result<&Body, Reason>,
    ) -> Result<Written, PhaseError>;
}

/// What the reader is told of evidence that was written.
#[derive(Debug, PartialEq, Eq)]
pub enum Written {
    /// Nothing: it is one of many alike.
    Silent,
    /// What was found.
    Said(String),
    /// What went wrong.
    Wrong(String),
}

impl From<Option<Reason>> for Written {
    fn from(wrong: Option<Reason>) -> Written {
        wrong.map_or(Written::Silent, |reason| Written::Wrong(reason.text))
    }
}

/// Runs a phase; lanes are the CPUs to pin to, or `None` for a worker that is not pinned.
pub async fn run<P: Phase>(
    context: &Context<'_>,
    lanes: Vec<Option<u32>>,
) -> Result<(), PhaseError> {
    let build = context.build()?;
    let singles = open::<P>(context, &build)?;
    let start = Instant::now();
    let share = lanes.len().max(1) as f64;
    let planned: f64 = singles.iter().map(|s| s.expected_s).sum();
    context.progress.event(Event::Begin {
        phase: P::NAME,
        steps: singles.len(),
        planned: Duration::from_secs_f64(planned / share),
    });
    if singles.is_empty() {
        return Ok(());
    }
    let queue = &RefCell::new(VecDeque::from(singles));
    let lanes = lanes.into_iter().map(|cpu| -> Lane<'_> {
        Box::pin(async move {
            loop {
                let Some(single) = queue.borrow_mut().pop_front() else {
                    return Ok(());
                };
                if let Err(error) = run_one::<P>(context, &single, cpu, share).await {
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
        phase: P::NAME,
        took: start.elapsed(),
    });
    Ok(())
}

/// What has no evidence of its library yet, the most expensive first. Rows whose timed library may
/// not be used are left out: their reason is that one's.
fn open<'a, P: Phase>(
    context: &'a Context<'_>,
    build: &'a BuildFile,
) -> Result<Vec<Single<'a>>, PhaseError> {
    let mut singles = Vec::new();
    for row in context.active() {
        if kat::gate(context, build, &row.identity, LibraryKind::Timed)?.is_err() {
            continue;
        }
        let Some(built) = build.rows.iter().find(|b| b.identity == row.identity) else {
            continue;
        };
        let ready_made = interposed(built).map(|file| (file, P::ready_made()));
        let kind = match &ready_made {
            Some((_, ReadyMade::Interpose)) => LibraryKind::Timed,
            _ => P::LIBRARY,
        };
        let found = match &ready_made {
            Some((_, ReadyMade::Skip(reason))) => Some(Err(reason.clone())),
            _ => match kat::gate(context, build, &row.identity, kind)? {
                Ok(_) => library(built, kind).map(Ok),
                Err(reason) => Some(Err(reason)),
            },
        };
        let Some(found) = found else { continue };
        for &operation in &row.operations {
            let mut single = single(context, row, built, operation, found.clone())?;
            single.kind = kind;
            match &ready_made {
                Some((file, ReadyMade::Interpose)) => single.interposed = Some(file.clone()),
                Some((_, ReadyMade::Skip(_))) => single.left_out = true,
                None => {}
            }
            if P::known(context, &single)? != Some(single.library_ref().sha256) {
                singles.push(single);
            }
        }
    }
    singles.sort_by(|a, b| b.expected_s.total_cmp(&a.expected_s));
    Ok(singles)
}

fn single<'a>(
    context: &Context,
    row: &'a Row,
    built: &'a BuildRow,
    operation: Operation,
    library: Result<LibraryFile, Reason>,
) -> Result<Single<'a>, PhaseError> {
    let mut costs = Vec::new();
    let mut key_s = None;
    for &other in &row.operations {
        if let Some(known) = calibrate::calibrated(context, row, other)? {
            costs.extend(known.c_s);
            key_s = key_s.or(known.key_s);
        }
    }
    // Without a cost (emulation, a failed calibration) a key counts as expensive.
    let keys = match key_s {
        Some(key_s) => plan::keys(context.plan, key_s),
        None => context.plan.keys_expensive,
    };
    let limit_s = plan::keys_timeout_s(context.plan, keys, &costs);
    Ok(Single {
        row,
        built,
        operation,
        library,
        kind: LibraryKind::Timed,
        interposed: None,
        left_out: false,
        keys,
        expected_s: f64::from(keys) * (key_s.unwrap_or(0.0) + costs.iter().sum::<f64>()),
        limit_s,
    })
}

async fn run_one<P: Phase>(
    context: &Context<'_>,
    single: &Single<'_>,
    cpu: Option<u32>,
    share: f64,
) -> Result<(), PhaseError> {
    let written = match &single.library {
        Err(reason) => P::write(context, single, Err(reason.clone()))?,
        Ok(library) => {
            let identity = &single.row.identity;
            let mut inputs = inputs::inputs(context, identity, P::TRIAL, None);
            inputs.key_trial = P::TRIAL; // a key for each run, also where trials share one
            let answer = context
                .ask(Job {
                    task: P::task(single, inputs),
                    library: Some(library.clone()),
                    cpu,
                    limit: Duration::from_secs_f64(single.limit_s),
                    file: None,
                    preload: single.interposed.clone(),
                })
                .await?;
            P::write(context, single, inputs::body(&answer)?)?
        }
    };
    context.progress.event(Event::Step {
        label: &format!(
            "{} {}",
            P::NAME,
            single.row.identity.operation_key(single.operation)
        ),
        planned: Duration::from_secs_f64(single.expected_s / share),
        end: match &written {
            Written::Silent => StepEnd::Silent,
            Written::Said(text) => StepEnd::Good(text),
            Written::Wrong(text) => StepEnd::Bad(text),
        },
    });
    Ok(())
}

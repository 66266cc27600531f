//! Opens the run and carries the phases out in order, up to the one that was asked for.
//!
//! What a command means was decided before (see [`crate::select`] and [`crate::run::directory`]); what
//! a library does wrong is evidence and ends nothing here. The run is sealed by the last phase, and
//! its pages are rendered from it.

use super::context::{Context, Layers, PhaseError, Study};
use super::finish::{self, Stated};
use super::{calibrate, kat, measure, memory, profile, study};
use crate::build::{self, BuildError};
use crate::config::Campaign;
use crate::evidence::journal::JournalEvent;
use crate::evidence::seal;
use crate::evidence::{CampaignFile, Class, Finding, PlanSettings, RowInfo, Status, CAMPAIGN_FILE};
use crate::host::tune::guard::{Guard, GuardError};
use crate::host::{affinity, readiness, tune, Root};
use crate::identity::Identity;
use crate::process::Stop;
use crate::progress::{Event, Progress};
use crate::report::{self, ReportError};
use crate::run::book::{Book, BookError};
use crate::run::directory::{self, Choice, DirectoryError, Place, Request, RunDirectory};
use crate::run::lock::{self, Lock, LockError, Patience};
use crate::run::preflight::{self, PreflightError};
use crate::run::session::{Look, Machine};
use crate::select::{Chosen, Row};
use crate::worker::{binary, session, Worker, WorkerError};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Folder of a run's pages.
const PAGES: &str = "pages";
/// Where they are rendered first: a folder of the run that its manifest does not cover.
const DRAFT: &str = "keys/pages.new";

/// Phases in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Libraries.
    Build,
    /// Known answers.
    Kat,
    /// Costs.
    Calibrate,
    /// Times.
    Measure,
    /// Stack, heap, static.
    Memory,
    /// Symmetric share.
    Profile,
    /// The points of a study, in place of the three before.
    Study,
    /// Manifest and seal.
    Seal,
}

impl Phase {
    /// All of them, in order.
    pub const ALL: [Phase; 8] = [
        Phase::Build,
        Phase::Kat,
        Phase::Calibrate,
        Phase::Measure,
        Phase::Memory,
        Phase::Profile,
        Phase::Study,
        Phase::Seal,
    ];

    /// Whether a study has it, or a campaign.
    fn belongs(self, to_a_study: bool) -> bool {
        match self {
            Phase::Measure | Phase::Memory | Phase::Profile => !to_a_study,
            Phase::Study => to_a_study,
            Phase::Build | Phase::Kat | Phase::Calibrate | Phase::Seal => true,
        }
    }

    /// The word of the command line and of the journal.
    pub fn name(self) -> &'static str {
        match self {
            Phase::Build => build::NAME,
            Phase::Kat => kat::NAME,
            Phase::Calibrate => calibrate::NAME,
            Phase::Measure => measure::NAME,
            Phase::Memory => memory::NAME,
            Phase::Profile => profile::NAME,
            Phase::Study => study::NAME,
            Phase::Seal => "seal",
        }
    }

    /// Whether it times calls: the orchestrator then keeps off the measured CPUs.
    fn is_timed(self) -> bool {
        matches!(
            self,
            Phase::Calibrate | Phase::Measure | Phase::Profile | Phase::Study
        )
    }
}

/// What is to be done.
pub struct Order<'a> {
    /// The campaign.
    pub campaign: &'a Campaign,
    /// System and class.
    pub chosen: &'a Chosen,
    /// Plan.
    pub plan: &'a PlanSettings,
    /// Identities, and why some take no part.
    pub rows: &'a [Row],
    /// CPUs to measure on.
    pub cpus: &'a [u32],
    /// What makes two commands ask for the same run.
    pub request: &'a Request,
    /// What is studied; `None` for a campaign.
    pub study: Option<Study<'a>>,
    /// Folder of the runs.
    pub runs: &'a Path,
    /// Which run.
    pub choice: Choice,
    /// The last phase to carry out.
    pub last: Phase,
    /// `--worker`.
    pub worker: Option<&'a Path>,
    /// `--pack`.
    pub pack: Option<&'a Path>,
    /// `--keep-text`.
    pub keep_text: Option<&'a Path>,
    /// `--allow-unfixed-host`.
    pub allow_unfixed_host: bool,
    /// `--tune`.
    pub tune: bool,
    /// Files of another machine to tune instead of this one's.
    pub sysroot: Option<&'a Path>,
    /// `--wait`.
    pub wait: bool,
}

/// What came of it.
#[derive(Debug)]
pub struct Done {
    /// The run.
    pub run: PathBuf,
    /// It was complete before: nothing was done.
    pub was_complete: bool,
    /// The seal, of a run that is sealed.
    pub seal: Option<String>,
    /// What became of each row; of the last session's evidence where the run is not finished.
    pub rows: Vec<RowInfo>,
    /// Pages, the index first.
    pub pages: Vec<PathBuf>,
    /// Findings of the host check that stand against measuring.
    pub host: Vec<Finding>,
}

impl Done {
    /// Whether a row failed.
    pub fn has_failed(&self) -> bool {
        self.rows.iter().any(|row| row.status == Status::Failed)
    }
}

/// Why the work ended early.
#[derive(Debug, thiserror::Error)]
pub enum PipelineError {
    /// The run.
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    /// Its evidence.
    #[error(transparent)]
    Book(BookError),
    /// Its place.
    #[error(transparent)]
    Preflight(#[from] PreflightError),
    /// A lock.
    #[error(transparent)]
    Lock(LockError),
    /// The worker binary.
    #[error(transparent)]
    Worker(WorkerError),
    /// The host is not ready for this plan.
    #[error("this host is not ready for the plan {plan}:\n{list}\nfix it (`campaign check`, `campaign tune`), or go on with --allow-unfixed-host, which every page then says")]
    Unready {
        /// The plan.
        plan: String,
        /// What is not fine, one a line.
        list: String,
    },
    /// The build phase.
    #[error(transparent)]
    Build(BuildError),
    /// The host cannot be tuned (`--tune`).
    #[error(transparent)]
    Tune(#[from] GuardError),
    /// The host could not be restored after the run.
    #[error("the run was carried out, but the host is not restored; `campaign untune` says what is in the way")]
    NotRestored(#[source] Option<GuardError>),
    /// Another phase.
    #[error(transparent)]
    Phase(PhaseError),
    /// The pages.
    #[error(transparent)]
    Report(#[from] ReportError),
    /// The kernel gives no event loop.
    #[error("the event loop cannot be made")]
    Runtime(#[source] std::io::Error),
    /// A stop was asked for; the run can be resumed.
    #[error("interrupted; the same command resumes")]
    Interrupted,
}

impl From<BookError> for PipelineError {
    fn from(error: BookError) -> Self {
        match error {
            BookError::Directory(error) => PipelineError::Directory(error),
            other => PipelineError::Book(other),
        }
    }
}

impl From<PhaseError> for PipelineError {
    fn from(error: PhaseError) -> Self {
        match error {
            PhaseError::Interrupted => PipelineError::Interrupted,
            PhaseError::Book(error) => error.into(),
            PhaseError::Worker(error) => error.into(),
            other => PipelineError::Phase(other),
        }
    }
}

impl From<WorkerError> for PipelineError {
    fn from(error: WorkerError) -> Self {
        match error {
            WorkerError::Interrupted => PipelineError::Interrupted,
            other => PipelineError::Worker(other),
        }
    }
}

impl From<LockError> for PipelineError {
    fn from(error: LockError) -> Self {
        match error {
            LockError::Interrupted { .. } => PipelineError::Interrupted,
            other => PipelineError::Lock(other),
        }
    }
}

impl From<BuildError> for PipelineError {
    fn from(error: BuildError) -> Self {
        match error {
            BuildError::Interrupted => PipelineError::Interrupted,
            other => PipelineError::Build(other),
        }
    }
}

/// Carries an order out. Blocks until it is done or stopped.
pub fn carry_out(
    order: &Order,
    stop: &Stop,
    progress: &dyn Progress,
) -> Result<Done, PipelineError> {
    let place = directory::choose(order.runs, order.request, &order.choice)?;
    if let Place::Complete(dir) = &place {
        return match order.last {
            Phase::Seal => was_complete(dir),
            _ => Err(DirectoryError::Sealed { path: dir.clone() }.into()),
        };
    }
    preflight(order, &place)?;
    let locks = lock_cpus(order, stop, progress)?;
    let worker = find_worker(order, stop, progress)?;
    let guard = tune(order, progress)?;
    let result = on_this_host(order, &place, worker.bounded(), stop, progress);
    let result = restore(guard, result, progress);
    drop(locks);
    result
}

/// Tunes the host where that was asked for, by a process that restores it whatever becomes of this one.
/// An emulated system has nothing to tune.
fn tune(order: &Order, progress: &dyn Progress) -> Result<Option<Guard>, PipelineError> {
    if let Some(left) = tune::left(&Root::from_option(order.sysroot)) {
        progress.event(Event::Note(&left.to_string()));
    }
    if !order.tune || order.chosen.class == Class::Emulated {
        return Ok(None);
    }
    // The program that runs, even where another has been put in its place.
    let program = Path::new("/proc/self/exe");
    let (guard, applied) = Guard::start(program, order.cpus, order.sysroot)?;
    for note in &applied.notes {
        progress.event(Event::Note(&format!("tune: left as it is: {note}")));
    }
    for refused in applied.failed() {
        let text = format!("tune: /{}: {}", refused.path, refused.why);
        progress.event(Event::Problem(&text));
    }
    let text = format!(
        "tune: {} settings changed for the run",
        applied.changes.len()
    );
    progress.event(Event::Note(&text));
    Ok(Some(guard))
}

/// Lets the host be restored. What became of the run comes first, unless all went well there.
fn restore(
    guard: Option<Guard>,
    result: Result<Done, PipelineError>,
    progress: &dyn Progress,
) -> Result<Done, PipelineError> {
    let Some(guard) = guard else { return result };
    let not_restored = match guard.finish() {
        Ok(restored) if restored.open.is_empty() => {
            progress.event(Event::Note("tune: the host is as it was before"));
            return result;
        }
        Ok(_) => PipelineError::NotRestored(None),
        Err(error) => PipelineError::NotRestored(Some(error)),
    };
    if result.is_err() {
        progress.event(Event::Problem(&not_restored.to_string()));
        return result;
    }
    Err(not_restored)
}

/// The run itself, on the host as it is now.
fn on_this_host(
    order: &Order,
    place: &Place,
    worker: Worker,
    stop: &Stop,
    progress: &dyn Progress,
) -> Result<Done, PipelineError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(PipelineError::Runtime)?;
    let allowed = affinity::allowed_on(&Root::default()).map_err(affinity_lost)?;
    let machine = runtime.block_on(look(order, &worker, &allowed, stop))?;
    let host = match order.chosen.class {
        // Nothing is timed, so the state of this machine is beside the point.
        Class::Emulated => Vec::new(),
        _ => unready(machine.environment().check.clone()),
    };
    gate(order, &host)?;

    // Up to here nothing was written.
    let book = open(order, place)?;
    check_tool(&book)?;
    let context = context(order, stop, progress, worker, allowed, machine, book)?;
    let result = work(order, &context, &runtime, host);
    if let Err(error) = &result {
        say_interrupted(&context, error);
    }
    result
}

fn affinity_lost(source: std::io::Error) -> PipelineError {
    PipelineError::Phase(PhaseError::Affinity(source))
}

/// Tries the worker out, then looks at the machine with it.
async fn look(
    order: &Order<'_>,
    worker: &Worker,
    allowed: &[u32],
    stop: &Stop,
) -> Result<Machine, PipelineError> {
    let folder = &order.campaign.root;
    let pin = order.cpus.first().copied();
    let pin = pin.filter(|_| order.chosen.class != Class::Emulated);
    let layers = session::try_out(worker, folder, pin, stop).await?;
    let look = Look {
        campaign: order.campaign,
        system: &order.chosen.system,
        cpus: order.cpus,
        allowed,
        folder,
        layers: &layers,
    };
    let machine = Machine::look(look, worker, stop).await?;
    match stop.is_requested() {
        true => Err(PipelineError::Interrupted),
        false => Ok(machine),
    }
}

/// Begins a session and puts everything together that the phases work with.
fn context<'a>(
    order: &'a Order,
    stop: &'a Stop,
    progress: &'a dyn Progress,
    worker: Worker,
    allowed: Vec<u32>,
    machine: Machine,
    book: Book,
) -> Result<Context<'a>, PipelineError> {
    let clock_hz = machine.fixed_clocks();
    let siblings = machine.siblings();
    let no_cycles = machine.no_cycles();
    let session = machine.begin(&book)?;
    Ok(Context {
        campaign: order.campaign,
        plan: order.plan,
        system: &order.chosen.system,
        class: order.chosen.class,
        rows: order.rows.to_vec(),
        book,
        sessions: session.sessions,
        host_token: session.host_token,
        host_ready: session.environment.ready,
        layers: Layers::of(&session.environment.layers),
        clock_hz,
        no_cycles,
        siblings,
        worker,
        study: order.study,
        cpus: order.cpus.to_vec(),
        allowed,
        stop,
        progress,
    })
}

/// The reason of an early end belongs into the journal, if that can still be written.
fn say_interrupted(context: &Context, error: &PipelineError) {
    let by = match (error, context.stop.signal()) {
        (PipelineError::Interrupted, Some(2)) => "SIGINT",
        (PipelineError::Interrupted, _) => "SIGTERM",
        _ => "error",
    };
    let by = by.to_owned();
    let _ = context.book.log(JournalEvent::Interrupted { by });
}

/// What a complete run says without being touched. Only what a kill right after the sealing line has
/// kept from being written is made up for: the seal file and the pages.
fn was_complete(dir: &Path) -> Result<Done, PipelineError> {
    let chain = crate::evidence::journal::verify(&dir.join(crate::evidence::journal::JOURNAL))
        .map_err(DirectoryError::from)?;
    if seal::read_seal(dir).as_ref() != Some(&chain.last_sha256) {
        seal::write_seal(dir, &chain.last_sha256).map_err(BookError::from)?;
    }
    let file: CampaignFile =
        crate::evidence::store::read_json(&dir.join(CAMPAIGN_FILE)).map_err(BookError::from)?;
    if !dir.join(PAGES).is_dir() {
        render(dir)?;
    }
    Ok(Done {
        run: dir.to_owned(),
        was_complete: true,
        seal: Some(chain.last_sha256),
        rows: file.rows,
        pages: pages(dir),
        host: Vec::new(),
    })
}

/// Renders the pages of a run, all of them or none.
fn render(dir: &Path) -> Result<(), PipelineError> {
    let (draft, place) = (dir.join(DRAFT), dir.join(PAGES));
    let failed = |source| {
        PipelineError::Phase(PhaseError::File {
            path: place.clone(),
            action: "written",
            source,
        })
    };
    let remove = |path: &Path| match std::fs::remove_dir_all(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(failed(error)),
        _ => Ok(()),
    };
    remove(&draft)?;
    report::render_run(dir, &draft)?;
    remove(&place)?;
    std::fs::rename(&draft, &place).map_err(failed)
}

/// Pages that are there, the index first.
fn pages(dir: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(dir.join(PAGES)) else {
        return Vec::new();
    };
    let mut pages: Vec<PathBuf> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|e| e == "html" || e == "md"))
        .collect();
    let rank = |path: &PathBuf| path.file_stem().is_some_and(|stem| stem != "index");
    pages.sort_by_key(|path| (rank(path), path.clone()));
    pages
}

fn preflight(order: &Order, place: &Place) -> Result<(), PipelineError> {
    let folder = match place {
        Place::Unfinished(dir) => dir.clone(),
        Place::New(Some(dir)) => dir.clone(),
        _ => order.runs.to_owned(),
    };
    // What is not there yet is judged by the nearest folder that is.
    let there = folder
        .ancestors()
        .find(|path| path.is_dir())
        .unwrap_or(Path::new("."));
    preflight::writable(there)?;
    let active = order.rows.iter().filter(|row| row.skipped.is_none());
    let operations: usize = active.map(|row| row.operations.len()).sum();
    let trials = u64::from(order.plan.trials);
    let needed = match order.study {
        None => preflight::estimate(operations as u64, trials, 0),
        Some(study) => {
            let settings = study.settings;
            let points = operations * settings.sizes.len() * settings.modes.len();
            let messages: u64 = match settings.file {
                Some(_) => 0,
                None => settings.sizes.iter().sum(),
            };
            preflight::estimate(points as u64, trials, messages)
        }
    };
    Ok(preflight::space(there, needed)?)
}

/// One campaign a CPU; an emulated run measures nothing.
fn lock_cpus(
    order: &Order,
    stop: &Stop,
    progress: &dyn Progress,
) -> Result<Vec<Lock>, PipelineError> {
    if order.chosen.class == Class::Emulated || order.last < Phase::Calibrate {
        return Ok(Vec::new());
    }
    let me = match order.study {
        None => format!("campaign, plan {}", order.plan.name),
        Some(_) => "campaign study".to_owned(),
    };
    // In one order for all, so that two who wait do not wait for each other.
    let mut cpus = order.cpus.to_vec();
    cpus.sort();
    let lock = |cpu| match lock::lock_cpu(cpu, &me, Patience::None) {
        Err(LockError::Held { what, holder, .. }) if order.wait => {
            progress.event(Event::Note(&format!(
                "waiting for {what}, in use by {holder}"
            )));
            lock::lock_cpu(cpu, &me, Patience::Until(stop))
        }
        taken_or_not => taken_or_not,
    };
    cpus.into_iter().map(|cpu| Ok(lock(cpu)?)).collect()
}

fn find_worker(
    order: &Order,
    stop: &Stop,
    progress: &dyn Progress,
) -> Result<Worker, PipelineError> {
    let system = &order.chosen.system;
    let runner = binary::runner(Some(system));
    let wanted = binary::Wanted {
        explicit: order.worker,
        pack: order.pack,
        root: &order.campaign.root,
        system_id: &system.id,
        arch: system.arch,
        runner: &runner,
    };
    Ok(binary::find(wanted, stop, &|text| {
        progress.event(Event::Note(text));
    })?)
}

/// Findings that stand against measuring.
fn unready(mut check: Vec<Finding>) -> Vec<Finding> {
    check.retain(readiness::stands_against);
    check
}

/// Plans that give verdicts measure on a ready host only, unless they are told otherwise.
fn gate(order: &Order, host: &[Finding]) -> Result<(), PipelineError> {
    let measures = order.last >= Phase::Calibrate && order.chosen.class != Class::Emulated;
    if !measures || !order.plan.verdicts || order.allow_unfixed_host || host.is_empty() {
        return Ok(());
    }
    Err(PipelineError::Unready {
        plan: order.plan.name.clone(),
        list: host.iter().map(describe).collect::<Vec<_>>().join("\n"),
    })
}

/// A finding as a line.
pub fn describe(finding: &Finding) -> String {
    let cpu = finding
        .cpu
        .map(|cpu| format!(" of CPU {cpu}"))
        .unwrap_or_default();
    let remedy = finding
        .remedy
        .as_deref()
        .map(|r| format!(": {r}"))
        .unwrap_or_default();
    format!("  {}{cpu}: {}{remedy}", finding.item, finding.value)
}

fn open(order: &Order, place: &Place) -> Result<Book, PipelineError> {
    Ok(match place {
        Place::Unfinished(dir) => {
            let (directory, journal, chain) = RunDirectory::open(dir)?;
            Book::resumed(directory, journal, chain)
        }
        Place::New(at) => {
            let (directory, journal) =
                RunDirectory::create(order.runs, at.as_deref(), order.request)?;
            Book::new(directory, journal)?
        }
        Place::Complete(_) => unreachable!("a complete run is not opened"),
    })
}

/// A run is measured by one version of this program.
fn check_tool(book: &Book) -> Result<(), PipelineError> {
    let known = book.read::<CampaignFile>(CAMPAIGN_FILE)?;
    let theirs = known.and_then(|known| known.value.tool.source_digest);
    match theirs {
        Some(theirs) if theirs != protocol::BUILD_ID => Err(DirectoryError::Another {
            path: book.directory().path().to_owned(),
            what: "version of this program",
            theirs,
            ours: protocol::BUILD_ID.to_owned(),
        }
        .into()),
        _ => Ok(()),
    }
}

fn work(
    order: &Order,
    context: &Context,
    runtime: &tokio::runtime::Runtime,
    host: Vec<Finding>,
) -> Result<Done, PipelineError> {
    let stated = Stated {
        only: order.request.only.as_deref(),
        allow_unfixed_host: order.allow_unfixed_host,
    };
    finish::begin(context, stated)?;
    let run = context.book.directory().path().to_owned();
    let wanted = |phase: &Phase| {
        *phase < Phase::Seal && *phase <= order.last && phase.belongs(order.study.is_some())
    };
    for phase in Phase::ALL.into_iter().filter(wanted) {
        context.book.log(JournalEvent::PhaseBegun {
            phase: phase.name().to_owned(),
        })?;
        one_phase(order, context, runtime, phase)?;
        context.book.log(JournalEvent::PhaseEnded {
            phase: phase.name().to_owned(),
        })?;
    }
    if order.last < Phase::Seal {
        return Ok(Done {
            run,
            was_complete: false,
            seal: None,
            rows: finish::so_far(context)?,
            pages: Vec::new(),
            host,
        });
    }
    let rows = finish::end(context, stated)?;
    let seal = context.book.seal()?;
    render(&run)?;
    Ok(Done {
        was_complete: false,
        seal: Some(seal),
        rows,
        pages: pages(&run),
        run,
        host,
    })
}

fn one_phase(
    order: &Order,
    context: &Context,
    runtime: &tokio::runtime::Runtime,
    phase: Phase,
) -> Result<(), PipelineError> {
    let away = phase.is_timed() && !context.is_emulated();
    let measured: &[u32] = if away { &context.cpus } else { &[] };
    affinity::keep_away(&context.allowed, measured).map_err(affinity_lost)?;
    match phase {
        Phase::Build => match order.pack {
            Some(pack) => super::packed::run(context, pack)?,
            None => build_phase(context)?,
        },
        Phase::Kat => {
            let keep_text = order.keep_text.filter(|_| order.last == Phase::Kat);
            runtime.block_on(kat::run(context, keep_text))?;
        }
        Phase::Calibrate => runtime.block_on(calibrate::run(context))?,
        Phase::Measure => runtime.block_on(measure::run(context))?,
        Phase::Memory => runtime.block_on(memory::run(context))?,
        Phase::Profile => runtime.block_on(profile::run(context))?,
        Phase::Study => runtime.block_on(study::run(context))?,
        Phase::Seal => {}
    }
    match context.stop.is_requested() {
        true => Err(PipelineError::Interrupted),
        false => Ok(()),
    }
}

/// The build phase, with its events and its journal lines.
fn build_phase(context: &Context) -> Result<(), PipelineError> {
    let identities: Vec<Identity> = context.active().map(|row| row.identity.clone()).collect();
    let start = Instant::now();
    let progress = context.progress;
    build::build_all(
        context.campaign,
        context.system,
        &identities,
        &mut build::Context {
            run_dir: context.book.directory().path(),
            features: build::features_for(context.system),
            streams: context.study.is_some(),
            jobs: None,
            stop: context.stop,
            before_writing: &mut |path, sha256| {
                context.book.log(JournalEvent::Written {
                    path: path.to_owned(),
                    sha256: sha256.to_owned(),
                })?;
                Ok(())
            },
            on_progress: &|event| event.tell(progress),
        },
    )?;
    context.progress.event(Event::End {
        phase: build::NAME,
        took: start.elapsed(),
    });
    Ok(())
}

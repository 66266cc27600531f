//! What `plan`, `run` and every phase do first: read the configuration, choose system, plan, CPUs and
//! run, and decide which identities take part. Nothing is written.

use super::carry::StudyAsked;
use super::exit::Failure;
use super::options::{Global, Selection};
use crate::build;
use crate::config::model::MessageSizeStudy;
use crate::config::{self, defaults, Campaign, ConfigError, Sources};
use crate::evidence::{Class, PlanSettings, StudySettings, MESSAGE_SIZE};
use crate::host::affinity::{self, AffinityError};
use crate::host::facts::{self, Root};
use crate::pack;
use crate::phases::study::message;
use crate::plan;
use crate::run::directory::{self, Choice, DirectoryError, Place, Request, RUNS};
use crate::select::{self, Chosen, Features, Machine, Row, SelectError};
use std::path::{Path, PathBuf};

/// The plan without `--plan`.
pub const DEFAULT_PLAN: &str = "quick";

/// This program was built for an architecture that the project does not know.
#[derive(Debug, thiserror::Error)]
#[error(
    "this program runs on {}, which no campaign can be for: x86_64 and aarch64 are supported",
    std::env::consts::ARCH
)]
pub struct UnsupportedArch;

/// The current folder cannot be found out.
#[derive(Debug, thiserror::Error)]
#[error("the current folder cannot be found out: change into one that exists")]
pub struct NoFolder(#[source] pub std::io::Error);

/// Everything that is decided before the first phase.
#[derive(Debug)]
pub struct Prepared {
    /// The configuration.
    pub campaign: Campaign,
    /// System and class.
    pub chosen: Chosen,
    /// The plan.
    pub plan: PlanSettings,
    /// CPUs to measure on.
    pub cpus: Vec<u32>,
    /// Identities, and why some take no part.
    pub rows: Vec<Row>,
    /// What makes two commands ask for the same run.
    pub request: Request,
}

impl Prepared {
    /// Folder of the runs.
    pub fn runs(&self) -> PathBuf {
        self.campaign.root.join(RUNS)
    }

    /// Where the work of this command is to be done; changes nothing.
    pub fn place(&self, choice: &Choice) -> Result<Place, DirectoryError> {
        directory::choose(&self.runs(), &self.request, choice)
    }
}

/// The configuration that `--config` names, else the nearest one.
pub fn config_path(global: &Global) -> Result<PathBuf, Failure> {
    if let Some(path) = &global.config {
        return Ok(path.clone());
    }
    let here = std::env::current_dir().map_err(|e| Failure::could_not(NoFolder(e)))?;
    let found = config::find(&here)?;
    // A short name reads better in messages, where the file is here.
    let short = found.strip_prefix(&here).map(Path::to_owned);
    Ok(short.unwrap_or(found))
}

/// Reads it.
pub fn campaign(global: &Global, sources: Sources) -> Result<Campaign, Failure> {
    Ok(config::load(&config_path(global)?, sources)?)
}

/// An unpacked campaign and its configuration; its libraries are built, so sources need not be there.
/// What `--system`, `--plan` and `--only` do not say, the pack does.
pub fn from_pack(
    pack: &Path,
    selection: &Selection,
    global: &Global,
) -> Result<(Global, Selection), Failure> {
    let file = pack::open(pack)?;
    let only = file.only.as_deref().map(regex::Regex::new).transpose();
    let selection = Selection {
        system: selection.system.clone().or(Some(file.system)),
        plan: selection.plan.clone().or(file.plan),
        only: match &selection.only {
            Some(own) => Some(own.clone()),
            None => only.map_err(Failure::request)?,
        },
        ..selection.clone()
    };
    let global = Global {
        config: global.config.clone().or(Some(pack.join(config::FILE))),
        ..global.clone()
    };
    Ok((global, selection))
}

/// Decides everything. What is not given is as in the run that `--run` names, where there is one.
pub fn prepare(
    selection: &Selection,
    global: &Global,
    sources: Sources,
    no_deferred: bool,
) -> Result<Prepared, Failure> {
    let campaign = campaign(global, sources)?;
    let begun = begun(selection)?;
    let name = selection.plan.clone();
    let name = name.or_else(|| begun.as_ref().map(|run| run.plan.clone()));
    let name = name.unwrap_or(DEFAULT_PLAN.to_owned());
    let plan = select::plan(&campaign, &name)?.clone();
    decide(selection, campaign, begun, plan, no_deferred)
}

/// Decides everything about a study. Its plan is `study` in the names of runs; the one that was asked
/// for gives it its limits.
pub fn study(
    selection: &Selection,
    global: &Global,
    asked: &StudyAsked,
) -> Result<Prepared, Failure> {
    let campaign = campaign(global, Sources::Required)?;
    let begun = begun(selection)?;
    let theirs = begun.as_ref().and_then(|run| run.study.as_ref());
    let configured = campaign.study.clone();
    let configured = configured.unwrap_or_else(|| defaults::defaults().study.clone());
    let settings = settings(selection, asked, &configured, theirs)?;
    let base = select::plan(&campaign, &settings.plan)?;
    let plan = plan::study(base, settings.trials);
    let mut prepared = decide(selection, campaign, begun, plan, false)?;
    if prepared.chosen.class == Class::Emulated {
        return Err(Failure::request(StudyError::Emulated(
            prepared.chosen.system.id,
        )));
    }
    if prepared.request.only.is_none() {
        let patterns: Vec<regex::Regex> = configured
            .instances
            .iter()
            .filter_map(|pattern| regex::Regex::new(pattern).ok()) // checked with the configuration
            .collect();
        prepared.rows.retain(|row| {
            let name = row.identity.to_string();
            patterns.iter().any(|pattern| pattern.is_match(&name))
        });
    }
    if prepared.rows.is_empty() {
        return Err(Failure::request(StudyError::NoInstance));
    }
    prepared.request.study = Some(settings);
    Ok(prepared)
}

/// A study cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum StudyError {
    /// Nothing is named.
    #[error("no instance of this architecture is named for the study: give `instances` in [study.message-size] of campaign.toml, or --only")]
    NoInstance,
    /// The system is another architecture's.
    #[error("system {0} would be emulated here, and a study is of nothing but times and memory, which then mean nothing: run it on a machine of its kind")]
    Emulated(String),
    /// A run of a user's file, and no file.
    #[error("that run is of a file with SHA-256 {0}: name it again with --file")]
    FileNeeded(String),
}

/// What is measured: as asked for, else as in the run that is resumed, else as configured.
fn settings(
    selection: &Selection,
    asked: &StudyAsked,
    configured: &MessageSizeStudy,
    theirs: Option<&StudySettings>,
) -> Result<StudySettings, Failure> {
    let file = match asked.file {
        Some(path) => Some(message::inspect(path).map_err(Failure::request)?),
        None => None,
    };
    let theirs_file = theirs.and_then(|theirs| theirs.file.as_ref());
    let own_sizes = !asked.sizes.is_empty() || asked.full;
    if let (None, Some(known), false) = (&file, theirs_file, own_sizes) {
        return Err(Failure::request(StudyError::FileNeeded(
            known.sha256.clone(),
        )));
    }
    let mut sizes = match (&file, theirs) {
        (Some(file), _) => vec![file.bytes],
        (None, Some(theirs)) if !own_sizes => theirs.sizes.clone(),
        (None, _) if asked.sizes.is_empty() => configured.sizes.clone(),
        (None, _) => asked.sizes.clone(),
    };
    if asked.full {
        sizes.extend(&configured.full_sizes);
    }
    sizes.sort_unstable();
    sizes.dedup();
    let plan = selection.plan.clone();
    let plan = plan.or_else(|| theirs.map(|theirs| theirs.plan.clone()));
    let trials = asked.trials.or(theirs.map(|theirs| theirs.trials));
    Ok(StudySettings {
        name: MESSAGE_SIZE.to_owned(),
        plan: plan.unwrap_or(DEFAULT_PLAN.to_owned()),
        sizes,
        modes: theirs
            .map_or(&configured.modes, |theirs| &theirs.modes)
            .clone(),
        trials: trials.unwrap_or(configured.trials),
        chunk_bytes: configured.chunk_bytes,
        memory_guard_bytes: configured.memory_guard_bytes,
        file,
    })
}

/// What a campaign and a study have in common.
fn decide(
    selection: &Selection,
    campaign: Campaign,
    begun: Option<Request>,
    plan: PlanSettings,
    no_deferred: bool,
) -> Result<Prepared, Failure> {
    let system = selection.system.clone();
    let system = system.or_else(|| begun.as_ref().map(|run| run.system.clone()));
    let cpu_list = selection.cpu.as_ref().map(|list| list.0.clone());
    let cpu_list = cpu_list.or_else(|| begun.as_ref().and_then(|run| run.cpus.clone()));

    let root = Root::default();
    let allowed = affinity::allowed_on(&root).map_err(AffinityError::Unknown)?;
    let cpus = affinity::choose(&root, &allowed, cpu_list.as_deref())?;
    let machine = Machine {
        arch: config::Arch::host().ok_or_else(|| Failure::could_not(UnsupportedArch))?,
        cpu_models: facts::models(&root, &cpus),
    };
    let chosen = select::system(&campaign, system.as_deref(), &machine)?;
    let only = only(selection, begun.as_ref())?;
    let rows = select::rows(
        &campaign,
        &select::Selection {
            arch: chosen.system.arch,
            features: &features(&chosen, &root, &cpus),
            plan: &plan,
            only: only.as_ref(),
            no_deferred,
        },
    )?;
    Ok(Prepared {
        request: Request {
            system: chosen.system.id.clone(),
            plan: plan.name.clone(),
            config_sha256: campaign.sha256.clone(),
            only: only.map(|only| only.as_str().to_owned()),
            cpus: cpu_list,
            study: None,
        },
        campaign,
        chosen,
        plan,
        cpus,
        rows,
    })
}

/// The request of the run that `--run` names, if it was begun.
fn begun(selection: &Selection) -> Result<Option<Request>, Failure> {
    match &selection.run {
        Some(dir) => Ok(directory::request_of(dir)?),
        None => Ok(None),
    }
}

fn only(selection: &Selection, begun: Option<&Request>) -> Result<Option<regex::Regex>, Failure> {
    let theirs = || begun.and_then(|run| run.only.as_deref());
    match (&selection.only, theirs()) {
        (Some(own), _) => Ok(Some(own.clone())),
        (None, Some(theirs)) => regex::Regex::new(theirs)
            .map(Some)
            .map_err(Failure::request),
        (None, None) => Ok(None),
    }
}

/// CPU features of what the code will run on. Under a runner those of the CPU that it emulates:
/// this machine's say nothing.
fn features(chosen: &Chosen, root: &Root, cpus: &[u32]) -> Features {
    if chosen.class == Class::Emulated {
        return match build::Features::of_runner(&chosen.system.runner) {
            build::Features::Known { cpu, words } => Features::Known { cpu, words },
            _ => Features::Unknown,
        };
    }
    let words = facts::features(root, cpus);
    match words.is_empty() {
        true => Features::Unknown,
        false => Features::Known {
            cpu: "the CPU".to_owned(),
            words,
        },
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        Failure::request(error)
    }
}

impl From<SelectError> for Failure {
    fn from(error: SelectError) -> Self {
        Failure::request(error)
    }
}

impl From<AffinityError> for Failure {
    fn from(error: AffinityError) -> Self {
        match error {
            AffinityError::NotUsable { .. } => Failure::request(error),
            AffinityError::NotPinned { .. } | AffinityError::None | AffinityError::Unknown(_) => {
                Failure::could_not(error)
            }
        }
    }
}

impl From<DirectoryError> for Failure {
    fn from(error: DirectoryError) -> Self {
        use DirectoryError::*;
        match error {
            Another { .. } | Foreign { .. } | Sealed { .. } | AnotherHost { .. } => {
                Failure::request(error)
            }
            Changed { .. } | Journal(_) | Lock(_) | Store(_) | Io { .. } => {
                Failure::could_not(error)
            }
        }
    }
}

//! `campaign pack`: a campaign for a machine without a toolchain.

use super::exit::{Failure, Outcome};
use super::options::Global;
use super::{output, prepare};
use crate::build::BuildError;
use crate::config::{self, Arch, Campaign, Sources, System};
use crate::evidence::{PlanSettings, Status};
use crate::host::{facts, Root};
use crate::identity::Identity;
use crate::pack::make::{self, MakeError, Packed, Request};
use crate::pack::PackError;
use crate::process::Stop;
use crate::progress::{self, Event};
use crate::select::{self, Features, Machine, Row};
use crate::worker::{binary, WorkerError};
use regex::Regex;
use serde::Serialize;
use std::path::PathBuf;

/// Arguments of `pack`.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// System that it is for
    #[arg(long, value_name = "ID")]
    pub system: String,
    /// Plan that it is for: its builds are packed, and a run takes it unless told otherwise
    /// [default: all builds, for any plan]
    #[arg(long, value_name = "NAME")]
    pub plan: Option<String>,
    /// Only what matches, in candidate/label/code/build/operation; a run takes it over
    #[arg(long, value_name = "REGEX", value_parser = super::options::pattern())]
    pub only: Option<Regex>,
    /// The program for that architecture, instead of this one or one that is built now
    #[arg(long, value_name = "PATH")]
    pub program: Option<PathBuf>,
    /// The archive [default: pack-ID.tar in the current folder]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

/// What was packed, as JSON.
#[derive(Debug, Serialize)]
struct Json<'a> {
    archive: String,
    folder: &'a str,
    system: &'a str,
    arch: &'a str,
    needs: String,
    identities: usize,
    failed: Vec<String>,
    files: usize,
}

/// Builds everything and writes the archive; status 1 where a row failed to build.
pub fn run(args: &Args, global: &Global) -> Result<Outcome, Failure> {
    let config = prepare::config_path(global)?;
    let campaign = config::load(&config, Sources::Required)?;
    let system = system(&campaign, &args.system)?;
    let rows = rows(&campaign, &system, args)?;
    let taken = rows.into_iter().filter(|row| row.skipped.is_none());
    let identities: Vec<Identity> = taken.map(|row| row.identity).collect();
    let stop = Stop::on_signals().map_err(|e| Failure::could_not(super::carry::NoSignals(e)))?;
    let progress = progress::reader(global.quiet);
    let runner = binary::runner(Some(&system));
    let wanted = binary::Wanted {
        explicit: global.worker.as_deref(),
        pack: None,
        root: &campaign.root,
        system_id: &system.id,
        arch: system.arch,
        runner: &runner,
    };
    let say = |text: &str| progress.event(Event::Note(text));
    let worker = binary::find(wanted, &stop, &say).map_err(|e| of_worker(e, &stop))?;
    let program = match &args.program {
        Some(program) => program.clone(),
        None => binary::program(wanted, &stop, &say).map_err(|e| of_worker(e, &stop))?,
    };
    let out = match &args.out {
        Some(out) => out.clone(),
        None => PathBuf::from(format!("pack-{}.tar", system.id)),
    };
    let request = Request {
        campaign: &campaign,
        config: &config,
        system: &system,
        plan: args.plan.as_deref(),
        only: args.only.as_ref().map(Regex::as_str),
        identities: &identities,
        program: &program,
        worker: worker.path(),
        out: &out,
    };
    let packed = make::make(&request, &stop, &|event| event.tell(&*progress))
        .map_err(|error| failure(error, &stop))?;
    let failed = failed(&packed);
    let has_failed = !failed.is_empty();
    let archive = out.display().to_string();
    match global.json {
        true => output::print_json(&Json {
            archive,
            folder: &packed.folder,
            system: &packed.file.system,
            arch: &packed.file.arch,
            needs: packed.file.needs.text(),
            identities: identities.len(),
            failed,
            files: packed.files,
        })?,
        false => output::print(&summary(&packed, &archive, identities.len(), &failed))?,
    }
    Ok(Outcome::found(has_failed))
}

/// The system of that name; `local` is a machine of this architecture.
fn system(campaign: &Campaign, id: &str) -> Result<System, Failure> {
    if let Some(system) = campaign.system(id) {
        return Ok(system.clone());
    }
    let arch = Arch::host().ok_or_else(|| Failure::could_not(prepare::UnsupportedArch))?;
    let machine = Machine {
        arch,
        cpu_models: facts::models(&Root::default(), &[]),
    };
    Ok(select::system(campaign, Some(id), &machine)?.system)
}

/// Identities to be built; without a plan those of all builds.
fn rows(campaign: &Campaign, system: &System, args: &Args) -> Result<Vec<Row>, Failure> {
    let all = PlanSettings {
        builds: "all".to_owned(),
        ..select::plan(campaign, prepare::DEFAULT_PLAN)?.clone()
    };
    let plan = match &args.plan {
        Some(name) => select::plan(campaign, name)?,
        None => &all,
    };
    Ok(select::rows(
        campaign,
        &select::Selection {
            arch: system.arch,
            features: &Features::NotAsked,
            plan,
            only: args.only.as_ref(),
            no_deferred: false,
        },
    )?)
}

fn failed(packed: &Packed) -> Vec<String> {
    let failed = packed.build.rows.iter();
    failed
        .filter(|row| row.status == Status::Failed)
        .map(|row| row.identity.to_string())
        .collect()
}

fn summary(packed: &Packed, archive: &str, identities: usize, failed: &[String]) -> String {
    let (file, folder) = (&packed.file, &packed.folder);
    let needs = file.needs.text();
    let mut text = format!(
        "{archive}: {identities} identities for {} ({}), {} files; needs {needs} there\n",
        file.system, file.arch, packed.files
    );
    for identity in failed {
        text += &format!("  failed to build: {identity}\n");
    }
    text + &format!(
        "there: tar -xf {archive} && cd {folder} && ./campaign run --pack .\n\
         back:  tar -cf back.tar runs, and here: campaign collect back.tar\n"
    )
}

fn of_worker(error: WorkerError, stop: &Stop) -> Failure {
    match error {
        WorkerError::Interrupted => Failure::interrupted(stop),
        other => Failure::could_not(other),
    }
}

fn failure(error: MakeError, stop: &Stop) -> Failure {
    match error {
        MakeError::Build(BuildError::Interrupted) => Failure::interrupted(stop),
        MakeError::Build(
            error @ (BuildError::WrongTarget { .. } | BuildError::UnknownIdentity(_)),
        ) => Failure::request(error),
        MakeError::Pack(error) => error.into(),
        other => Failure::could_not(other),
    }
}

impl From<PackError> for Failure {
    fn from(error: PackError) -> Self {
        match error {
            PackError::Changed { .. } | PackError::Digests(_) => Failure::found(error),
            PackError::Store(_) | PackError::Archive { .. } | PackError::Unfit { .. } => {
                Failure::could_not(error)
            }
            PackError::NoPack(_)
            | PackError::Layout { .. }
            | PackError::AnotherVersion { .. }
            | PackError::AnotherSystem { .. }
            | PackError::Absent { .. }
            | PackError::Outside(_)
            | PackError::Special(_) => Failure::request(error),
        }
    }
}

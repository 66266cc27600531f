//! `campaign tune`: fixes the host for measuring, and remembers what it was.

use super::exit::{Failure, Outcome};
use super::options::Global;
use super::output;
use crate::host::affinity::{self, AffinityError};
use crate::host::tune::{self, Applied, Plan, Target, TuneError, JOURNAL};
use crate::host::Root;
use crate::values::{number_list, CpuList};
use std::fmt::Write;
use std::path::PathBuf;

/// Arguments of `tune`.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// Show the changes and make none
    #[arg(long)]
    pub dry_run: bool,
    /// CPUs that will be measured on [default: chosen from this machine]
    #[arg(long, value_name = "LIST")]
    pub cpu: Option<CpuList>,
    /// Read and write /proc and /sys below this folder, for tests
    #[arg(long, value_name = "DIR")]
    pub sysroot: Option<PathBuf>,
}

/// Makes the changes, or shows them; status 1 when the kernel refused one that matters.
pub fn run(args: &Args, global: &Global) -> Result<Outcome, Failure> {
    let root = Root::from_option(args.sysroot.as_deref());
    let cpus = cpus(&root, args.cpu.as_ref())?;
    let plan = tune::plan(&root, &cpus)?;
    if args.dry_run {
        match global.json {
            true => output::print_json(&plan)?,
            false => output::print(&planned(&plan, &cpus))?,
        }
        return Ok(Outcome::Done);
    }
    let applied = tune::apply(&root, &plan, &cpus)?;
    match global.json {
        true => output::print_json(&applied)?,
        false => output::print(&done(&applied, &cpus))?,
    }
    let failed = applied.failed().count();
    Ok(Outcome::found(failed > 0))
}

/// The CPUs to tune for: those asked for, else those that a run would measure on.
fn cpus(root: &Root, asked: Option<&CpuList>) -> Result<Vec<u32>, Failure> {
    let allowed = affinity::allowed_on(root).map_err(AffinityError::Unknown)?;
    let asked = asked.map(|list| &list.0[..]);
    Ok(affinity::choose(root, &allowed, asked)?)
}

fn planned(plan: &Plan, cpus: &[u32]) -> String {
    let list = number_list(cpus);
    let mut text = match plan.steps.is_empty() {
        true => format!("nothing to change for CPU {list}\n"),
        false => format!("would be changed for CPU {list}, in this order:\n"),
    };
    for step in &plan.steps {
        let to = match &step.to {
            Target::Value(value) => value.clone(),
            Target::SameAs(path) => format!("what /{path} holds then"),
        };
        let _ = writeln!(text, "  /{}: {} -> {to}", step.path, step.from);
    }
    notes(&mut text, &plan.notes);
    text
}

/// What was changed, and what not.
fn done(applied: &Applied, cpus: &[u32]) -> String {
    let list = number_list(cpus);
    let mut text = match (applied.changes.is_empty(), applied.refused.is_empty()) {
        (true, true) => format!("nothing to change for CPU {list}\n"),
        (true, false) => "nothing was changed\n".to_owned(),
        (false, _) => format!("changed for CPU {list}:\n"),
    };
    for change in &applied.changes {
        let _ = writeln!(text, "  /{}: {} -> {}", change.path, change.from, change.to);
    }
    if !applied.refused.is_empty() {
        text += "not changed, because the kernel refused:\n";
    }
    for refused in &applied.refused {
        let _ = writeln!(
            text,
            "  /{} to {}: {}",
            refused.path, refused.to, refused.why
        );
    }
    notes(&mut text, &applied.notes);
    if !applied.changes.is_empty() {
        let _ = writeln!(
            text,
            "the values before are in /{JOURNAL}; `campaign untune` restores them"
        );
    }
    text
}

fn notes(text: &mut String, notes: &[String]) {
    for note in notes {
        let _ = writeln!(text, "left as it is: {note}");
    }
}

impl From<TuneError> for Failure {
    fn from(error: TuneError) -> Self {
        match error {
            TuneError::SecondThread { .. } => Failure::request(error),
            other => Failure::could_not(other),
        }
    }
}

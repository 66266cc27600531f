//! Makes the changes of a plan, each after its line in the journal.

use super::journal::{self, How, Journal, Line};
use super::restore::restore_from;
use super::{Plan, Step, Target, TuneError};
use crate::host::facts::parse_cpu_list;
use crate::host::root::Root;
use serde::{Deserialize, Serialize};

/// What became of a plan.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Applied {
    /// Changes that the kernel took.
    pub changes: Vec<Change>,
    /// Changes that it did not take.
    pub refused: Vec<Refused>,
    /// What was left as it is from the start.
    pub notes: Vec<String>,
}

impl Applied {
    /// What was refused and matters. Interrupts that their drivers manage cannot be moved, which is no
    /// failure.
    pub fn failed(&self) -> impl Iterator<Item = &Refused> {
        let matters = |refused: &&Refused| !refused.path.starts_with("proc/irq/");
        self.refused.iter().filter(matters)
    }
}

/// A change that was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// The file, below the root.
    pub path: String,
    /// What it held.
    pub from: String,
    /// What it holds.
    pub to: String,
}

/// A change that was not made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    /// The file, below the root.
    pub path: String,
    /// What it should have held.
    pub to: String,
    /// Why it does not.
    pub why: String,
}

/// Applies a plan; [`super::restore()`] undoes it. A change that the kernel refuses does not keep the
/// others from being made.
pub fn apply(root: &Root, plan: &Plan, cpus: &[u32]) -> Result<Applied, TuneError> {
    let (applied, _) = apply_and_hold(root, plan, cpus, false)?;
    Ok(applied)
}

/// [`apply`], keeping the journal where anything was changed. `guarded`: this process stays, and
/// restores.
pub(super) fn apply_and_hold(
    root: &Root,
    plan: &Plan,
    cpus: &[u32],
    guarded: bool,
) -> Result<(Applied, Option<Journal>), TuneError> {
    if let Some(left) = journal::left(root) {
        return Err(match left.how {
            How::InUse => TuneError::InUse(left),
            _ => TuneError::Tuned(left),
        });
    }
    let mut applied = Applied {
        notes: plan.notes.clone(),
        ..Applied::default()
    };
    if plan.steps.is_empty() {
        return Ok((applied, None));
    }
    // One that was cut off before anything was changed holds nothing.
    if let Some(empty) = Journal::open(root)? {
        empty.remove()?;
    }
    let mut journal = Journal::create(root, plan, cpus, guarded)?;
    if let Err(error) = change_all(root, plan, &mut journal, &mut applied) {
        let open = restore_from(root, journal).map_or(1, |restored| restored.open.len());
        return Err(TuneError::GivenUp {
            open,
            source: Box::new(error),
        });
    }
    if applied.changes.is_empty() && is_as_before(root, &journal)? {
        journal.remove()?;
        return Ok((applied, None));
    }
    Ok((applied, Some(journal)))
}

fn change_all(
    root: &Root,
    plan: &Plan,
    journal: &mut Journal,
    applied: &mut Applied,
) -> Result<(), TuneError> {
    for step in &plan.steps {
        match change(root, step, journal)? {
            Ok(Some(change)) => applied.changes.push(change),
            Ok(None) => {}
            Err(refused) => applied.refused.push(refused),
        }
    }
    journal.append(&[Line::Complete])
}

/// Makes one change; none where the file holds the value already. An outer error is the journal's.
fn change(
    root: &Root,
    step: &Step,
    journal: &mut Journal,
) -> Result<Result<Option<Change>, Refused>, TuneError> {
    let to = match &step.to {
        Target::Value(value) => Some(value.clone()),
        Target::SameAs(path) => root.text(path),
    };
    let refused = |why: String| Refused {
        path: step.path.clone(),
        to: to.clone().unwrap_or_default(),
        why,
    };
    let Some(value) = &to else {
        return Ok(Err(refused("what it should hold cannot be read".into())));
    };
    let now = match root.read(&step.path) {
        Ok(now) => now,
        Err(why) => return Ok(Err(refused(why.to_string()))),
    };
    if is_same(&step.path, &now, value) {
        return Ok(Ok(None));
    }
    journal.append(&[Line::Write {
        path: step.path.clone(),
        to: value.clone(),
    }])?;
    if let Err(error) = root.write(&step.path, &format!("{value}\n")) {
        return Ok(Err(refused(error.to_string())));
    }
    Ok(match root.read(&step.path) {
        Ok(after) if after != now => Ok(Some(Change {
            path: step.path.clone(),
            from: now,
            to: after,
        })),
        Ok(after) => Err(refused(format!(
            "it was taken, and the file still holds {after}"
        ))),
        Err(why) => Err(refused(format!("it was written, and then: {why}"))),
    })
}

/// Lists of CPUs have several forms.
fn is_same(path: &str, a: &str, b: &str) -> bool {
    match path.ends_with("_list") {
        true => parse_cpu_list(a) == parse_cpu_list(b),
        false => a == b,
    }
}

/// Whether every saved value is the one that the file holds.
fn is_as_before(root: &Root, journal: &Journal) -> Result<bool, TuneError> {
    let found = journal.found()?;
    let values = found.map(|found| found.values).unwrap_or_default();
    Ok(values
        .iter()
        .all(|(path, value)| root.raw(path).is_ok_and(|now| now == *value)))
}

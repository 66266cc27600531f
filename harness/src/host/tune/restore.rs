//! Brings every saved value back.
//!
//! Changes are undone in reverse order. Some settings change others (boost resets limits, SMT brings
//! files back with the driver's own values), so the values are gone through again until each is what
//! was saved, or no write helps any more.

use super::journal::{same_boot, Found, Journal};
use super::TuneError;
use crate::host::root::Root;
use serde::{Deserialize, Serialize};

/// Rounds over the values; two settings that depend on each other need two.
const ROUNDS: usize = 4;
/// Interrupts have other numbers after a restart, and their own affinity again.
const PER_BOOT: &str = "proc/irq/";

/// What became of a tuned host.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restored {
    /// Whether there was anything to restore.
    pub was_tuned: bool,
    /// Whether the machine was started again after it was tuned.
    pub restarted: bool,
    /// Files that were written.
    pub written: Vec<String>,
    /// Values that could not be brought back; the journal is kept then.
    pub open: Vec<Unrestored>,
}

/// A value that could not be brought back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unrestored {
    /// The file, below the root.
    pub path: String,
    /// What it held before.
    pub value: String,
    /// Why it does not again.
    pub why: String,
}

/// Restores what the journal holds, and removes it when that was everything.
pub fn restore(root: &Root) -> Result<Restored, TuneError> {
    let Some(journal) = Journal::open(root)? else {
        return Ok(Restored::default());
    };
    restore_from(root, journal)
}

pub(super) fn restore_from(root: &Root, journal: Journal) -> Result<Restored, TuneError> {
    let Some(found) = journal.found()? else {
        // It ended before anything was changed.
        journal.remove()?;
        return Ok(Restored::default());
    };
    let restarted = !same_boot(root, &found.head);
    let values = in_order(found, restarted);
    let mut written = Vec::new();
    let mut open = Vec::new();
    for _ in 0..ROUNDS {
        let before = written.len();
        open = round(root, &values, &mut written);
        if open.is_empty() || written.len() == before {
            break;
        }
    }
    if open.is_empty() {
        open = different(root, &values);
    }
    if open.is_empty() {
        journal.remove()?;
    }
    Ok(Restored {
        was_tuned: true,
        restarted,
        written,
        open,
    })
}

/// What was changed last comes first, then what may have been changed with it.
fn in_order(found: Found, restarted: bool) -> Vec<(String, String)> {
    let Found {
        values, written, ..
    } = found;
    let position = |path: &String| written.iter().rposition(|w| w == path);
    let mut changed: Vec<_> = values
        .iter()
        .filter(|(path, _)| position(path).is_some())
        .cloned()
        .collect();
    changed.sort_by_key(|(path, _)| std::cmp::Reverse(position(path)));
    let touched = values
        .into_iter()
        .rev()
        .filter(|(path, _)| position(path).is_none());
    changed
        .into_iter()
        .chain(touched)
        .filter(|(path, _)| !(restarted && path.starts_with(PER_BOOT)))
        .collect()
}

/// Writes each value that is not there; returns what did not succeed.
fn round(root: &Root, values: &[(String, String)], written: &mut Vec<String>) -> Vec<Unrestored> {
    let mut open = Vec::new();
    for (path, value) in values {
        let Some(why) = difference(root, path, value) else {
            continue;
        };
        let why = match root.write(path, value) {
            Err(error) => format!("{why}; {error}"),
            Ok(()) => {
                if !written.contains(path) {
                    written.push(path.clone());
                }
                match difference(root, path, value) {
                    None => continue,
                    Some(why) => why,
                }
            }
        };
        open.push(Unrestored {
            path: path.clone(),
            value: value.trim_end().to_owned(),
            why,
        });
    }
    open
}

/// Values that a later write of the same round has changed again.
fn different(root: &Root, values: &[(String, String)]) -> Vec<Unrestored> {
    let differs = |(path, value): &(String, String)| {
        let why = difference(root, path, value)?;
        let (path, value) = (path.clone(), value.trim_end().to_owned());
        Some(Unrestored { path, value, why })
    };
    values.iter().filter_map(differs).collect()
}

/// How a file differs from its saved value. An interrupt that is gone has nothing to restore.
fn difference(root: &Root, path: &str, value: &str) -> Option<String> {
    match root.raw(path) {
        Ok(now) if now == value => None,
        Ok(now) => Some(format!("it holds {}", now.trim_end())),
        Err(_) if path.starts_with(PER_BOOT) && !root.exists(path) => None,
        Err(error) => Some(error.to_string()),
    }
}

//! Runs and datasets as they are named on the command line: a directory; `SYSTEM/ID` below the published
//! datasets; a system's folder, its `current` file, or its name, which all stand for its current dataset.

use super::exit::Failure;
use super::options::Global;
use crate::config::paths;
use crate::evidence::journal::JOURNAL;
use crate::evidence::seal::MANIFEST;
use crate::evidence::CAMPAIGN_FILE;
use crate::place::CURRENT;
use crate::report::site;
use protocol::path_to_text;
use std::path::{Path, PathBuf};

/// Files of which any one shows that a directory is a run or a dataset: one that lost its
/// `campaign.json` is for an audit to refute.
const SIGNS: [&str; 3] = [CAMPAIGN_FILE, JOURNAL, MANIFEST];

/// Names listed to help.
const LISTED: usize = 10;

/// A name that stands for no run and no dataset.
#[derive(Debug, thiserror::Error)]
pub enum NameError {
    /// Nothing of ours is there.
    #[error("`{}` is no run and no dataset: {why}{}", path_to_text(.argument), listed(.known))]
    Nothing {
        /// As it was typed.
        argument: PathBuf,
        /// What is there instead.
        why: String,
        /// Runs and datasets that are there.
        known: Vec<String>,
    },
    /// A `current` that leads nowhere.
    #[error("`{}` names `{id}`, but there is no such dataset beside it: write the id of one that is there, or publish it", path_to_text(.file))]
    Current {
        /// The file.
        file: PathBuf,
        /// What it says.
        id: String,
    },
}

fn listed(known: &[String]) -> String {
    match known {
        [] => String::new(),
        _ => format!("\n  these are there: {}", known.join(", ")),
    }
}

/// The directory of each argument; a wrong one is a wrong request.
pub(super) fn resolve(arguments: &[PathBuf], global: &Global) -> Result<Vec<PathBuf>, Failure> {
    let root = root(global);
    arguments
        .iter()
        .map(|argument| one(argument, root.as_deref()).map_err(Failure::request))
        .collect()
}

fn one(argument: &Path, root: Option<&Path>) -> Result<PathBuf, NameError> {
    let below = root.map(|root| root.join(site::DATA).join(argument));
    for place in [Some(argument.to_owned()), below].into_iter().flatten() {
        if let Some(found) = at(&place)? {
            return Ok(found);
        }
    }
    Err(NameError::Nothing {
        argument: argument.to_owned(),
        why: why(argument),
        known: root.map(known_in).unwrap_or_default(),
    })
}

/// The run or dataset that a path stands for, if any.
fn at(place: &Path) -> Result<Option<PathBuf>, NameError> {
    if SIGNS.iter().any(|sign| place.join(sign).is_file()) {
        return Ok(Some(place.to_owned()));
    }
    let pointer = place.file_name().is_some_and(|name| name == CURRENT) && place.is_file();
    let folder = match pointer {
        true => place.parent().unwrap_or(place),
        // The one dataset of a folder is meant only where it is a system's.
        false if place.join(CURRENT).is_file() || is_system(place) => place,
        false => return Ok(None),
    };
    let Some(id) = site::current_in(folder) else {
        return Ok(None);
    };
    // The file is somebody's text: only a name in its own folder is followed.
    match folder.join(&id) {
        dataset if site::datasets_in(folder).contains(&id) => Ok(Some(dataset)),
        _ => Err(NameError::Current {
            file: folder.join(CURRENT),
            id,
        }),
    }
}

/// Whether a folder lies where those of systems lie.
fn is_system(folder: &Path) -> bool {
    let absolute = folder.canonicalize().ok();
    absolute.is_some_and(|folder| {
        folder
            .parent()
            .is_some_and(|data| data.ends_with(site::DATA))
    })
}

/// What a path is instead of a run or a dataset.
fn why(argument: &Path) -> String {
    if argument.is_dir() {
        return format!("it has no {}", SIGNS[0]);
    }
    if argument.exists() {
        return "it is a file".to_owned();
    }
    let start = match argument.is_absolute() {
        true => PathBuf::from("/"),
        false => std::env::current_dir().unwrap_or_default(),
    };
    let nowhere = argument
        .to_str()
        .and_then(|text| paths::explain(&start, text));
    nowhere.unwrap_or_else(|| "there is no such folder".to_owned())
}

/// Published datasets and runs of a campaign, for a reader who mistyped one.
fn known_in(root: &Path) -> Vec<String> {
    let runs = site::datasets_in(&root.join("runs"));
    let mut all = site::published(root);
    all.extend(runs.into_iter().map(|run| format!("runs/{run}")));
    if all.len() > LISTED {
        let more = all.len() - LISTED;
        all.truncate(LISTED);
        all.push(format!("and {more} more"));
    }
    all
}

/// Folder of the configuration, if there is one.
fn root(global: &Global) -> Option<PathBuf> {
    let file = match &global.config {
        Some(file) => file.clone(),
        None => crate::config::find(&std::env::current_dir().ok()?).ok()?,
    };
    Some(std::path::absolute(file).ok()?.parent()?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A root with two systems: one with a current dataset of two, one with a single dataset.
    fn campaign() -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        let data = root.path().join(site::DATA);
        for dataset in ["arm_1/new", "arm_1/old", "x86_1/only", "other/a", "other/b"] {
            std::fs::create_dir_all(data.join(dataset)).unwrap();
            std::fs::write(data.join(dataset).join("campaign.json"), "{}").unwrap();
        }
        std::fs::write(data.join("arm_1/current"), "new\n").unwrap();
        root
    }

    #[test]
    fn a_dataset_has_many_names() {
        let root = campaign();
        let data = root.path().join(site::DATA);
        for (name, dataset) in [
            ("arm_1/old", "arm_1/old"),
            ("arm_1", "arm_1/new"),
            ("arm_1/current", "arm_1/new"),
            ("x86_1", "x86_1/only"),
        ] {
            let expected = data.join(dataset);
            assert_eq!(one(Path::new(name), Some(root.path())).unwrap(), expected);
            assert_eq!(one(&data.join(name), None).unwrap(), expected);
        }
        std::fs::remove_file(data.join("x86_1/only/campaign.json")).unwrap();
        std::fs::write(data.join("x86_1/only/journal.jsonl"), "").unwrap();
        assert!(
            one(&data.join("x86_1/only"), None).is_ok(),
            "audit says what is missing"
        );
    }

    #[test]
    fn a_wrong_name_is_answered_with_what_is_there() {
        let root = campaign();
        let data = root.path().join(site::DATA);
        let said = |argument: &Path| one(argument, Some(root.path())).unwrap_err().to_string();
        let text = said(&data.join("arm_1/nwe"));
        assert!(text.contains("did you mean `new`?"), "{text}");
        assert!(
            text.contains("these are there: arm_1/new, arm_1/old, other/a"),
            "{text}"
        );
        assert!(said(&data).contains("it has no campaign.json"));
        assert!(said(&data.join("other")).contains("it has no campaign.json"));
        std::fs::write(root.path().join("file"), "").unwrap();
        assert!(said(&root.path().join("file")).contains("it is a file"));
    }

    #[test]
    fn a_current_file_leads_nowhere_but_into_its_folder() {
        let root = campaign();
        let data = root.path().join(site::DATA);
        for id in ["gone", "../x86_1/only", "/etc", ""] {
            std::fs::write(data.join("arm_1/current"), format!("{id}\n")).unwrap();
            let error = one(&data.join("arm_1/current"), None).unwrap_err();
            assert!(matches!(error, NameError::Current { .. }), "{id}: {error}");
        }
    }
}

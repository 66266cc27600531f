//! The pages of a dataset against what it gives: rendered again in memory, compared byte for byte.

use super::finding::{Finding, Findings};
use crate::dataset::Dataset;
use crate::report::check::{self, Difference};
use crate::report::templates::Templates;
use crate::report::{render, site};
use std::path::Path;

/// Compares the pages of a run or dataset with those that are there; says nothing where none are.
pub fn check(dataset: &Path) -> Vec<Finding> {
    let mut f = Findings::of("pages");
    if let Err(error) = compare(dataset, &mut f) {
        f.error("", "the pages can be rendered", "", error);
    }
    f.list
}

fn compare(path: &Path, f: &mut Findings) -> Result<(), Box<dyn std::error::Error>> {
    let target = site::target(path)?;
    if !target.folder.is_dir() {
        f.note(
            "",
            "the pages of a dataset are rendered",
            "a folder",
            "none yet",
        );
        return Ok(());
    }
    let pages = render(&Dataset::read(path)?, &target.place, &Templates::new(None)?)?;
    // Pages of a run were made by the version that ran it; published ones are made again with each.
    let add = match target.published {
        Some(_) => Findings::error::<String, &str, &str, String>,
        None => Findings::note::<String, &str, &str, String>,
    };
    for difference in check::compare(&target.folder, &pages) {
        let (page, rule, found) = match difference {
            Difference::Missing(page) => (page, "a page is there", "none".to_owned()),
            Difference::Changed { path, diff } => (path, "a page is what its dataset gives", diff),
            Difference::Orphan(page) => (page, "a page has its dataset", "no dataset".to_owned()),
        };
        add(f, shown(&page, path), rule, "", found);
    }
    Ok(())
}

/// A page's path without the folders above the dataset, which say nothing.
fn shown(page: &Path, dataset: &Path) -> String {
    let root = dataset.ancestors().nth(4);
    let below = root.and_then(|root| page.strip_prefix(root).ok());
    below.unwrap_or(page).display().to_string()
}

//! Charts as PNG, for documents that take no SVG: made by `rsvg-convert` from the SVG files, since text
//! needs fonts and those are the system's. Nothing depends on them, and no check compares them: another
//! system's fonts give other bytes.

use super::pages::PageFile;
use crate::process::{run_blocking, Command, Stop};
use rayon::prelude::*;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The program, and the package that has it.
const PROGRAM: &str = "rsvg-convert";
const PACKAGE: &str = "librsvg2-bin";
/// Pixels of the picture for one of the chart: sharp on paper.
const ZOOM: &str = "2";
/// A chart takes a fraction of a second.
const LIMIT: Duration = Duration::from_secs(60);

/// Charts that cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum PngError {
    /// The program is not here.
    #[error("charts as PNG are made by `{PROGRAM}`, which is not here: install the package {PACKAGE}; the SVG charts are written")]
    Missing,
    /// It does not do it.
    #[error("`{PROGRAM}` cannot make `{}`: {said}", .path.display())]
    Refused {
        /// The picture.
        path: PathBuf,
        /// How it ended and what it wrote.
        said: String,
    },
}

/// Makes a picture beside every chart among `pages`, which are written in `folder` already; returns the
/// pictures.
pub fn write(folder: &Path, pages: &[PageFile]) -> Result<Vec<PathBuf>, PngError> {
    let is_chart = |page: &&PageFile| page.file.extension().is_some_and(|e| e == "svg");
    let charts: Vec<&PageFile> = pages.iter().filter(is_chart).collect();
    charts
        .par_iter()
        .map(|chart| one(&folder.join(&chart.file)))
        .collect()
}

fn one(chart: &Path) -> Result<PathBuf, PngError> {
    let path = chart.with_extension("png");
    // Fonts are found through the environment.
    let command = Command::new(PROGRAM)
        .args(["--zoom", ZOOM, "--output"])
        .arg(&path)
        .arg(chart)
        .inherit_env()
        .deadline(LIMIT);
    let outcome = run_blocking(command, &Stop::new());
    match outcome.end {
        end if end.is_success() => Ok(path),
        end if end.is_missing_program() => Err(PngError::Missing),
        end => Err(PngError::Refused {
            path,
            said: format!("{end}\n{}", outcome.stderr.text()),
        }),
    }
}

//! `import`: evidence of another tool, and published cells, as datasets of ours.
//!
//! [`read`] reads a directory of the public campaign's schema 2 and checks it by the rules of that
//! format; [`derive`] makes our files of it, as a pure function that an audit calls again; [`dataset`]
//! writes them with their source, less host names. [`cells`] reads tables of published cells.

pub mod cells;
mod context;
pub mod dataset;
pub mod derive;
pub mod read;
pub mod schema2;

pub use context::Context;

use crate::audit::Finding;
use crate::evidence::store::StoreError;
use std::path::PathBuf;

/// Evidence cannot be imported.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The evidence breaks the rules of its own format.
    #[error("the evidence in `{}` does not hold by the rules of its format, so nothing was imported:{}", .dir.display(), lines(.findings))]
    Unsound {
        /// The directory.
        dir: PathBuf,
        /// What does not hold.
        findings: Vec<Finding>,
    },
    /// It is of another system.
    #[error(
        "the evidence is of the system `{found}`, not of `{asked}`: name that one with --system"
    )]
    System {
        /// What was asked for.
        asked: String,
        /// What the evidence says.
        found: String,
    },
    /// It has something that our records have no place for.
    #[error("{file}: {what}")]
    Foreign {
        /// The file.
        file: String,
        /// What it is.
        what: String,
    },
    /// A table of cells that cannot be read.
    #[error("{}:{line}: {what}", .file.display())]
    Table {
        /// The file.
        file: PathBuf,
        /// Number of the line, from 1.
        line: usize,
        /// What is wrong with it.
        what: String,
    },
    /// A file of ours cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The dataset cannot be put in its place.
    #[error(transparent)]
    Place(#[from] crate::place::PlaceError),
}

/// The first findings, one a line.
fn lines(findings: &[Finding]) -> String {
    const SHOWN: usize = 20;
    let mut text: String = findings
        .iter()
        .take(SHOWN)
        .map(|f| format!("\n  {f}"))
        .collect();
    if findings.len() > SHOWN {
        text += &format!("\n  and {} more", findings.len() - SHOWN);
    }
    text
}

//! `campaign kat`: one phase; it checks every library against its known answers.

use super::carry::{self, Asked};
use super::exit::{Failure, Outcome};
use super::options::{Global, Selection};
use super::output;
use crate::dataset::{Dataset, DatasetError};
use crate::evidence::{KatEvidence, KatResult, Status};
use crate::phases::pipeline::{Done, Phase};
use std::path::PathBuf;

/// Arguments of `kat`.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// Which campaign.
    #[command(flatten)]
    pub selection: Selection,
    /// Write the texts of the known answers to this folder (860 MB for the largest instance)
    #[arg(long, value_name = "DIR")]
    pub keep_text: Option<PathBuf>,
}

/// Carries the phase out and prints the result of each library.
pub fn run(args: &Args, global: &Global) -> Result<Outcome, Failure> {
    let asked = Asked {
        keep_text: args.keep_text.as_deref(),
        ..Asked::phase(&args.selection, Phase::Kat)
    };
    let done = carry::carry_out(&asked, global)?;
    if global.json {
        return carry::finish(&done, global);
    }
    let dataset = Dataset::read(&done.run)?;
    let results: Vec<&KatEvidence> = dataset.kat.values().map(|entry| &entry.value).collect();
    output::print(&lines(&results, &done))?;
    let wrong = results.iter().any(|kat| {
        let known = dataset.known_deviation(&kat.head.identity, kat.result.word());
        kat.result != KatResult::Pass && known.is_none()
    });
    Ok(Outcome::found(wrong || done.has_failed()))
}

/// One line a library, then what has none.
fn lines(results: &[&KatEvidence], done: &Done) -> String {
    let mut text = String::new();
    for kat in results {
        let detail = kat
            .detail
            .as_ref()
            .map(|d| format!(": {d}"))
            .unwrap_or_default();
        let (word, identity) = (kat.result.word(), &kat.head.identity);
        text += &format!("{word:10} {identity} {}{detail}\n", kat.library.kind.name());
    }
    for row in &done.rows {
        let has_none = results.iter().all(|kat| kat.head.identity != row.identity);
        if let (true, Status::Failed, Some(reason)) = (has_none, row.status, &row.reason) {
            text += &format!("{:10} {}: {}\n", "-", row.identity, reason.text);
        }
    }
    text
}

impl From<DatasetError> for Failure {
    fn from(error: DatasetError) -> Self {
        Failure::could_not(error)
    }
}

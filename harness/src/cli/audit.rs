//! `campaign audit`: recomputes every published number from the raw evidence.

use super::exit::{Failure, Outcome};
use super::options::{Datasets, Global};
use super::output;
use crate::audit::{self, Report};

/// Arguments of `audit`.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// What to audit.
    #[command(flatten)]
    pub datasets: Datasets,
}

/// Audits and says what was found.
pub fn run(args: &Args, global: &Global) -> Result<Outcome, Failure> {
    let mut reports = Vec::new();
    for path in super::report::resolve(&args.datasets.datasets, global)? {
        let mut report = audit::audit(&path);
        report.findings.append(&mut audit::pages::check(&path));
        reports.push(report);
    }
    if global.json {
        output::print_json(&reports)?;
    } else {
        let text: String = reports
            .iter()
            .map(|report| shown(report, global.quiet))
            .collect();
        output::print(&text)?;
    }
    Ok(Outcome::found(reports.iter().any(Report::is_refuted)))
}

/// One line a finding, and one for the dataset.
fn shown(report: &Report, quiet: bool) -> String {
    let mut text: String = report
        .findings
        .iter()
        .map(|finding| format!("{finding}\n"))
        .collect();
    if quiet {
        return text;
    }
    let verdict = match (report.is_refuted(), report.auditable) {
        (true, _) => "does not hold",
        (false, true) => "holds: every number follows from its evidence",
        (false, false) => {
            "is as it was published; its cells have no trials and cannot be recomputed"
        }
    };
    let seal = report.seal.as_deref().unwrap_or("no seal");
    text += &format!(
        "{}: {verdict}\n  {} files, {} findings, seal {seal}\n",
        report.dataset.display(),
        report.files,
        report.findings.len()
    );
    text
}

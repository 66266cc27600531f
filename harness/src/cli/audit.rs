//! `campaign audit`: recomputes every published number from the raw evidence.

use super::exit::{Failure, Outcome};
use super::options::{Datasets, Global};
use super::output;
use crate::audit::{self, Findings, Report};
use crate::signature;
use std::path::{Path, PathBuf};

/// Arguments of `audit`.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// What to audit.
    #[command(flatten)]
    pub datasets: Datasets,
    /// The seal must be signed by one of these (a file of allowed signers, see ssh-keygen(1))
    #[arg(long, value_name = "FILE")]
    pub allowed_signers: Option<PathBuf>,
}

/// Audits and says what was found.
pub fn run(args: &Args, global: &Global) -> Result<Outcome, Failure> {
    let mut reports = Vec::new();
    for path in super::named::resolve(&args.datasets.datasets, global)? {
        let mut report = audit::audit(&path);
        report.findings.append(&mut audit::pages::check(&path));
        if let Some(allowed) = &args.allowed_signers {
            signed(&mut report, allowed);
        }
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

/// Whose signature the seal has.
fn signed(report: &mut Report, allowed: &Path) {
    match signature::verify(&report.dataset, allowed) {
        Ok(signer) => report.signer = Some(signer),
        Err(error) => {
            let mut findings = Findings::of("seal");
            findings.error(
                "",
                "the seal is signed by an allowed signer",
                "a signature",
                error,
            );
            report.findings.append(&mut findings.list);
        }
    }
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
        (false, true) if report.findings.is_empty() => {
            "holds: every number follows from its evidence"
        }
        (false, true) => {
            "holds but for what the notes name: every number of the evidence follows from it"
        }
        (false, false) => {
            "is as it was published; its cells have no trials and cannot be recomputed"
        }
    };
    let seal = report.seal.as_deref().unwrap_or("no seal");
    text += &format!(
        "{}: {verdict}\n  {} files, {}, seal {seal}\n",
        audit::printable(&report.dataset.display().to_string()),
        report.files,
        match report.findings.len() {
            1 => "1 finding".to_owned(),
            n => format!("{n} findings"),
        }
    );
    if let Some(signer) = &report.signer {
        text += &format!("  signed by {signer}\n");
    }
    if report.is_refuted() && report.seal.is_none() {
        text += "  it has no seal: a run that is not finished is finished and sealed by `campaign run`\n";
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::{Finding, Severity};

    fn said(severity: Option<Severity>, seal: Option<&str>) -> String {
        let finding = |severity| Finding {
            severity,
            file: "pages/sign-09.md".into(),
            pointer: String::new(),
            rule: "a page is what the evidence gives".into(),
            expected: String::new(),
            found: String::new(),
        };
        let report = Report {
            dataset: "runs/x".into(),
            seal: seal.map(str::to_owned),
            auditable: true,
            signer: None,
            files: 3,
            findings: severity.map(finding).into_iter().collect(),
        };
        shown(&report, false)
    }

    #[test]
    fn the_verdict_says_no_more_than_was_found() {
        let sound = said(None, Some("ab"));
        assert!(sound.contains("holds: every number follows"), "{sound}");
        let noted = said(Some(Severity::Note), Some("ab"));
        assert!(
            noted.contains("holds but for what the notes name"),
            "{noted}"
        );
        let refuted = said(Some(Severity::Error), Some("ab"));
        assert!(
            refuted.contains("does not hold") && !refuted.contains("campaign run"),
            "{refuted}"
        );
        let unfinished = said(Some(Severity::Error), None);
        assert!(
            unfinished.contains("finished and sealed by `campaign run`"),
            "{unfinished}"
        );
    }
}

//! What `run` and the phase commands share: from words to an order of the pipeline, from its end to
//! an exit status, and the summary.

use super::exit::{Failure, Outcome};
use super::options::{Global, Selection};
use super::{output, prepare};
use crate::build::BuildError;
use crate::config::Sources;
use crate::evidence::{Finding, ReasonCode, RowInfo, Status};
use crate::phases::context::{PhaseError, Study};
use crate::phases::pipeline::{self, Done, Order, Phase, PipelineError};
use crate::process::{self, Stop};
use crate::progress;
use crate::run::directory::Choice;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// What was asked for.
#[derive(Debug, Clone)]
pub struct Asked<'a> {
    /// Which campaign.
    pub selection: &'a Selection,
    /// The last phase to carry out.
    pub last: Phase,
    /// `--new`.
    pub new: bool,
    /// `--allow-unfixed-host`.
    pub allow_unfixed_host: bool,
    /// `--no-deferred`.
    pub no_deferred: bool,
    /// `--wait`.
    pub wait: bool,
    /// `--tune`.
    pub tune: bool,
    /// `--sysroot`.
    pub sysroot: Option<&'a Path>,
    /// `--pack`.
    pub pack: Option<&'a Path>,
    /// `--keep-text`.
    pub keep_text: Option<&'a Path>,
    /// What is studied; `None` for a campaign.
    pub study: Option<StudyAsked<'a>>,
}

/// What of a study was asked for on the command line.
#[derive(Debug, Clone)]
pub struct StudyAsked<'a> {
    /// `--sizes`, bytes.
    pub sizes: Vec<u64>,
    /// `--full`.
    pub full: bool,
    /// `--trials`.
    pub trials: Option<u32>,
    /// `--file`.
    pub file: Option<&'a Path>,
}

impl<'a> Asked<'a> {
    /// A phase with nothing but its selection.
    pub fn phase(selection: &'a Selection, last: Phase) -> Self {
        Asked {
            selection,
            last,
            new: false,
            allow_unfixed_host: false,
            no_deferred: false,
            wait: false,
            tune: false,
            sysroot: None,
            pack: None,
            keep_text: None,
            study: None,
        }
    }
}

/// The signals that stop a campaign cannot be listened for.
#[derive(Debug, thiserror::Error)]
#[error("SIGINT and SIGTERM cannot be listened for")]
pub struct NoSignals(#[source] pub std::io::Error);

/// Carries it out.
pub fn carry_out(asked: &Asked, global: &Global) -> Result<Done, Failure> {
    let of_pack = asked
        .pack
        .map(|pack| prepare::from_pack(pack, asked.selection, global))
        .transpose()?;
    let (selection, sources, place) = match &of_pack {
        Some((global, selection)) => (selection, Sources::Absent, global),
        None => (asked.selection, Sources::Required, global),
    };
    let prepared = match &asked.study {
        None => prepare::prepare(selection, place, sources, asked.no_deferred)?,
        Some(study) => prepare::study(selection, place, study)?,
    };
    process::hide();
    let stop = Stop::on_signals().map_err(|error| Failure::could_not(NoSignals(error)))?;
    let progress = progress::reader(global.quiet);
    let runs = prepared.runs();
    let order = Order {
        campaign: &prepared.campaign,
        chosen: &prepared.chosen,
        plan: &prepared.plan,
        rows: &prepared.rows,
        cpus: &prepared.cpus,
        request: &prepared.request,
        study: prepared.request.study.as_ref().map(|settings| Study {
            settings,
            file: asked.study.as_ref().and_then(|study| study.file),
        }),
        runs: &runs,
        choice: match (&asked.selection.run, asked.new) {
            (Some(dir), _) => Choice::Named(dir.clone()),
            (None, true) => Choice::New,
            (None, false) => Choice::Newest,
        },
        last: asked.last,
        worker: global.worker.as_deref(),
        pack: asked.pack,
        keep_text: asked.keep_text,
        allow_unfixed_host: asked.allow_unfixed_host,
        wait: asked.wait,
        tune: asked.tune,
        sysroot: asked.sysroot,
    };
    pipeline::carry_out(&order, &stop, &*progress).map_err(|error| failure(error, &stop))
}

fn failure(error: PipelineError, stop: &Stop) -> Failure {
    match error {
        PipelineError::Directory(error) => error.into(),
        error @ PipelineError::Unready { .. } => Failure::found(error),
        PipelineError::Phase(error @ PhaseError::Manifest(_)) => Failure::request(error),
        PipelineError::Phase(error @ PhaseError::Timed { .. }) => Failure::request(error),
        PipelineError::Phase(PhaseError::Pack(error)) => error.into(),
        PipelineError::Build(
            error @ (BuildError::WrongTarget { .. } | BuildError::UnknownIdentity(_)),
        ) => Failure::request(error),
        PipelineError::Interrupted => Failure::interrupted(stop),
        other => Failure::could_not(other),
    }
}

/// Runs a phase command: carries it out and prints the summary.
pub fn phase(selection: &Selection, last: Phase, global: &Global) -> Result<Outcome, Failure> {
    finish(&carry_out(&Asked::phase(selection, last), global)?, global)
}

/// Prints the summary; the exit status is that of the rows.
pub fn finish(done: &Done, global: &Global) -> Result<Outcome, Failure> {
    match global.json {
        true => output::print_json(&Json::of(done))?,
        false => output::print(&summary(done))?,
    }
    Ok(Outcome::found(done.has_failed()))
}

/// The summary as JSON.
#[derive(Debug, Serialize)]
struct Json<'a> {
    run: String,
    was_complete: bool,
    seal: Option<&'a str>,
    rows: &'a [RowInfo],
    pages: Vec<String>,
    host: &'a [Finding],
}

impl<'a> Json<'a> {
    fn of(done: &'a Done) -> Self {
        Json {
            run: shown(&done.run),
            was_complete: done.was_complete,
            seal: done.seal.as_deref(),
            rows: &done.rows,
            pages: done.pages.iter().map(|page| shown(page)).collect(),
            host: &done.host,
        }
    }
}

/// A path as short as it can be said from here.
fn shown(path: &Path) -> String {
    let here = std::env::current_dir().unwrap_or_default();
    path.strip_prefix(&here)
        .unwrap_or(path)
        .display()
        .to_string()
}

/// What happened, in lines.
fn summary(done: &Done) -> String {
    let run = shown(&done.run);
    let mut lines = Vec::new();
    lines.push(match (done.was_complete, &done.seal) {
        (true, _) => {
            format!("{run} is complete already; nothing was done (--new starts another run, as after a change of sources)")
        }
        (false, Some(_)) => format!("{run} is complete and sealed"),
        (false, None) => format!("{run} can be continued: `campaign run` does the rest"),
    });
    lines.extend(counts(&done.rows));
    for row in done.rows.iter().filter(|row| row.status == Status::Failed) {
        let text = row.reason.as_ref().map_or("", |reason| &reason.text);
        lines.push(format!("  failed: {}: {text}", row.identity));
    }
    if !done.host.is_empty() {
        lines.push("the host is not fixed, which every page says:".to_owned());
        lines.extend(done.host.iter().map(pipeline::describe));
    }
    if let Some(seal) = &done.seal {
        lines.push(format!("seal {seal}"));
    }
    let html: Vec<&PathBuf> = done
        .pages
        .iter()
        .filter(|page| page.extension().is_some_and(|e| e == "html"))
        .collect();
    if !html.is_empty() {
        lines.push("pages (beside each .html its .md):".to_owned());
        lines.extend(html.iter().map(|page| format!("  {}", shown(page))));
    }
    lines.join("\n") + "\n"
}

/// How many rows ended how.
fn counts(rows: &[RowInfo]) -> Option<String> {
    let mut parts: BTreeMap<u8, (usize, &str)> = BTreeMap::new();
    let mut reasons: BTreeMap<ReasonCode, usize> = BTreeMap::new();
    for row in rows {
        let (rank, word) = match row.status {
            Status::Complete => (0, "complete"),
            Status::Partial => (1, "not finished"),
            Status::Failed => (2, "failed"),
            Status::Skipped => (3, "skipped"),
        };
        parts.entry(rank).or_insert((0, word)).0 += 1;
        if let (Status::Skipped, Some(reason)) = (row.status, &row.reason) {
            *reasons.entry(reason.code).or_default() += 1;
        }
    }
    if rows.is_empty() {
        return Some("no row matches".to_owned());
    }
    let mut words: Vec<String> = parts
        .values()
        .map(|(n, word)| format!("{n} {word}"))
        .collect();
    if let (Some(last), false) = (words.last_mut(), reasons.is_empty()) {
        let each: Vec<String> = reasons
            .iter()
            .map(|(code, n)| format!("{n} {}", code.word()))
            .collect();
        last.push_str(&format!(" ({})", each.join(", ")));
    }
    Some(format!("rows: {}", words.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::Reason;

    fn row(name: &str, status: Status, code: Option<ReasonCode>) -> RowInfo {
        RowInfo {
            identity: format!("c/{name}/ref/reference").parse().unwrap(),
            status,
            reason: code.map(|code| Reason::new(code, format!("{name} is why"))),
        }
    }

    #[test]
    fn the_summary_says_what_failed_and_names_the_pages() {
        let done = Done {
            run: "/runs/local-quick-1".into(),
            was_complete: false,
            seal: Some("5ea1".into()),
            rows: vec![
                row("a", Status::Complete, None),
                row("b", Status::Failed, Some(ReasonCode::KatMismatch)),
                row("c", Status::Skipped, Some(ReasonCode::NotInPlan)),
                row("d", Status::Skipped, Some(ReasonCode::CpuFeature)),
                row("e", Status::Skipped, Some(ReasonCode::NotInPlan)),
            ],
            pages: vec![
                "/runs/local-quick-1/pages/index.html".into(),
                "/runs/local-quick-1/pages/index.md".into(),
            ],
            host: Vec::new(),
        };
        assert!(done.has_failed());
        insta::assert_snapshot!(summary(&done), @r"
        /runs/local-quick-1 is complete and sealed
        rows: 1 complete, 1 failed, 3 skipped (1 cpu_feature, 2 not_in_plan)
          failed: c/b/ref/reference: b is why
        seal 5ea1
        pages (beside each .html its .md):
          /runs/local-quick-1/pages/index.html
        ");
    }
}

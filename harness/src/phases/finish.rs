//! `campaign.json`: what the campaign is, written when a run begins, and what became of each row,
//! written when it ends.

use super::context::{not_built, Context, PhaseError};
use super::{calibrate, kat, profile, study};
use crate::clock;
use crate::config::{Candidate, Wrap};
use crate::evidence::journal::JournalEvent;
use crate::evidence::{
    self, memory_file, profile_file, record_file, BuildFile, CampaignFile, CandidateInfo, Class,
    Head, InstanceInfo, KatIssueInfo, Kind, LibraryKind, MemoryEvidence, ProfileEvidence, Reason,
    ReasonCode, RowInfo, Status, TimingRecord, ToolInfo, CAMPAIGN_FILE,
};
use crate::select::Row;
use protocol::Operation;
use std::collections::BTreeMap;

/// What of the request the file states beside the context.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stated<'a> {
    /// `--only`.
    pub only: Option<&'a str>,
    /// `--allow-unfixed-host`.
    pub allow_unfixed_host: bool,
}

/// Writes the file at the beginning of a session, unless it says all of it already.
pub fn begin(context: &Context, stated: Stated) -> Result<(), PhaseError> {
    let known = context.book.read::<CampaignFile>(CAMPAIGN_FILE)?;
    let mut file = campaign(context, stated, open_rows(context));
    if let Some(known) = &known {
        file.started_utc = known.value.started_utc.clone();
        file.allow_unfixed_host |= known.value.allow_unfixed_host;
    }
    evidence::explain(&mut file);
    if known.is_none_or(|known| known.value != file) {
        context.book.write(CAMPAIGN_FILE, &file)?;
    }
    Ok(())
}

/// Writes the file at the end, with what became of each row; returns the rows.
pub fn end(context: &Context, stated: Stated) -> Result<Vec<RowInfo>, PhaseError> {
    let known = context.book.read::<CampaignFile>(CAMPAIGN_FILE)?;
    let rows = rows(context)?;
    let mut file = campaign(context, stated, rows.clone());
    if let Some(known) = known {
        file.started_utc = known.value.started_utc;
        file.allow_unfixed_host |= known.value.allow_unfixed_host;
    }
    file.ended_utc = Some(clock::utc_now());
    evidence::explain(&mut file);
    context.book.write(CAMPAIGN_FILE, &file)?;
    for row in rows.iter().filter(|row| row.status == Status::Failed) {
        let text = row.reason.as_ref().map_or("", |reason| &reason.text);
        context.book.log(JournalEvent::Note {
            text: format!("{} failed: {text}", row.identity),
        })?;
    }
    Ok(rows)
}

/// What became of each row so far; rows whose later phases were not asked for are partial.
pub fn so_far(context: &Context) -> Result<Vec<RowInfo>, PhaseError> {
    let build = context.build()?;
    let row = |row: &Row| match &row.skipped {
        Some(reason) => Ok(info(row, Status::Skipped, Some(reason.clone()))),
        None => match outcome(context, &build, row) {
            Ok((status, reason)) => Ok(info(row, status, reason)),
            // The phase that would say more has not been run.
            Err(PhaseError::Earlier { missing, phase }) => {
                let text = format!("{missing} is missing: `campaign {phase}` makes it");
                let reason = Reason::new(ReasonCode::Interrupted, text);
                Ok(info(row, Status::Partial, Some(reason)))
            }
            Err(error) => Err(error),
        },
    };
    context.rows.iter().map(row).collect()
}

fn campaign(context: &Context, stated: Stated, rows: Vec<RowInfo>) -> CampaignFile {
    let of = context.campaign;
    let shown = |candidate: &&Candidate| {
        let own = |row: &&Row| row.identity.candidate == candidate.id;
        context.rows.iter().any(|row| own(&row))
    };
    let mut candidates: Vec<CandidateInfo> =
        of.candidates.iter().filter(shown).map(candidate).collect();
    candidates.sort_by(|a, b| a.id.cmp(&b.id));
    CampaignFile {
        schema: evidence::SCHEMA.to_owned(),
        kind: Kind::Campaign,
        system: context.system.id.clone(),
        arch: context.system.arch.word().to_owned(),
        system_description: context
            .system
            .description
            .clone()
            .filter(|_| context.class != Class::Local),
        class: context.class,
        study: context.study.map(|study| study.settings.clone()),
        plan: Some(context.plan.clone()),
        config_sha256: Some(of.sha256.clone()),
        only: stated.only.map(str::to_owned),
        cpus: context.cpus.clone(),
        allow_unfixed_host: stated.allow_unfixed_host,
        tool: ToolInfo {
            name: "campaign".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            source_digest: Some(protocol::BUILD_ID.to_owned()),
            worker_sha256: Some(context.worker.sha256().to_owned()),
            runner: context.worker.runner(),
        },
        report_kind: of.report.kind.word().to_owned(),
        title: of.report.title.clone(),
        reference_instance: of.report.reference.clone(),
        candidates,
        rows,
        started_utc: Some(clock::utc_now()),
        ended_utc: None,
        provenance: None,
        missing: BTreeMap::new(),
    }
}

fn candidate(candidate: &Candidate) -> CandidateInfo {
    CandidateInfo {
        id: candidate.id.clone(),
        name: candidate.name.clone(),
        category: candidate.category.clone(),
        function: candidate.function.clone(),
        origin: candidate.origin,
        specification: candidate.specification.clone(),
        links: candidate.links.clone(),
        instances: candidate
            .instances
            .iter()
            .map(|instance| InstanceInfo {
                label: instance.label.clone(),
                security_bits: instance.security_bits,
            })
            .collect(),
        kat_issues: candidate
            .kat_issues
            .iter()
            .map(|issue| KatIssueInfo {
                instance: issue.instance.clone(),
                result: issue.result.word().to_owned(),
                reason: issue.reason.clone(),
            })
            .collect(),
        wrap_column: wrap_column(&candidate.wrap),
    }
}

/// Name of the column of what is wrapped, as public pages have it: `pseudohash/XOF/sm3`.
fn wrap_column(wrap: &Wrap) -> String {
    match wrap {
        Wrap::None => String::new(),
        Wrap::Derived(_) => "SHAKE".to_owned(),
        Wrap::Listed(functions) => {
            let short = |name: &str| match name {
                "pseudoXOF" => "XOF".to_owned(),
                "sm3hash" => "sm3".to_owned(),
                other => other.to_owned(),
            };
            let mut names: Vec<String> = Vec::new();
            for function in functions.iter().filter(|f| f.group == "hash") {
                let name = short(&function.name);
                if !names.contains(&name) {
                    names.push(name);
                }
            }
            names.join("/")
        }
    }
}

fn info(row: &Row, status: Status, reason: Option<Reason>) -> RowInfo {
    RowInfo {
        identity: row.identity.clone(),
        status,
        reason,
    }
}

/// Rows of a run that goes on.
fn open_rows(context: &Context) -> Vec<RowInfo> {
    let open = |row: &Row| match &row.skipped {
        Some(reason) => info(row, Status::Skipped, Some(reason.clone())),
        None => {
            let text = "the run is not finished";
            let reason = Reason::new(ReasonCode::Interrupted, text);
            info(row, Status::Partial, Some(reason))
        }
    };
    context.rows.iter().map(open).collect()
}

/// What became of each row.
fn rows(context: &Context) -> Result<Vec<RowInfo>, PhaseError> {
    let build = context.build()?;
    let different: BTreeMap<String, String> = calibrate::different_outputs(context)?
        .into_iter()
        .map(|found| (found.identity.to_string(), found.text))
        .collect();
    context
        .rows
        .iter()
        .map(|row| {
            if let Some(reason) = &row.skipped {
                return Ok(info(row, Status::Skipped, Some(reason.clone())));
            }
            let (status, reason) = outcome(context, &build, row)?;
            Ok(match different.get(&row.identity.to_string()) {
                Some(text) if status == Status::Complete => {
                    let reason = Reason::new(ReasonCode::NotVerified, text.clone());
                    info(row, Status::Failed, Some(reason))
                }
                _ => info(row, status, reason),
            })
        })
        .collect()
}

type Outcome = (Status, Option<Reason>);

fn outcome(context: &Context, build: &BuildFile, row: &Row) -> Result<Outcome, PhaseError> {
    let built = build.rows.iter().find(|b| b.identity == row.identity);
    if let Some((built, reason)) = built.and_then(|b| Some((b, not_built(b)?))) {
        return Ok((built.status, Some(reason)));
    }
    if let Err(reason) = kat::gate(context, build, &row.identity, LibraryKind::Timed)? {
        return Ok((Status::Failed, Some(reason)));
    }
    if context.study.is_some() {
        return studied(context, build, row);
    }
    for &operation in &row.operations {
        for (phase, head) in heads(context, row, operation)? {
            let skips = context.is_emulated() || phase == profile::NAME;
            match judge(head, skips) {
                (Status::Complete, _) => {}
                (status, reason) => {
                    let reason = reason.map(|reason| Reason {
                        text: format!("{operation} ({phase}): {}", reason.text),
                        ..reason
                    });
                    return Ok((status, reason));
                }
            }
        }
    }
    Ok((Status::Complete, None))
}

/// What became of a row of a study: a point that was skipped, for its size or for want of a library,
/// takes nothing away.
fn studied(context: &Context, build: &BuildFile, row: &Row) -> Result<Outcome, PhaseError> {
    for (name, head) in study::heads(context, build, row)? {
        match judge(head, false) {
            (Status::Complete | Status::Skipped, _) => {}
            (status, reason) => {
                let reason = reason.map(|reason| Reason {
                    text: format!("{name}: {}", reason.text),
                    ..reason
                });
                return Ok((status, reason));
            }
        }
    }
    Ok((Status::Complete, None))
}

/// Heads of all evidence of an operation; `None` where a phase has left none.
fn heads(
    context: &Context,
    row: &Row,
    operation: Operation,
) -> Result<[(&'static str, Option<Head>); 3], PhaseError> {
    let identity = &row.identity;
    let book = &context.book;
    let timing = book.read::<TimingRecord>(&record_file(identity, operation))?;
    let memory = book.read::<MemoryEvidence>(&memory_file(identity, operation))?;
    let profile = book.read::<ProfileEvidence>(&profile_file(identity, operation))?;
    Ok([
        ("measure", timing.map(|stored| stored.value.head)),
        ("memory", memory.map(|stored| stored.value.head)),
        ("profile", profile.map(|stored| stored.value.head)),
    ])
}

/// `skips`: whether evidence that was left out for a reason is no gap of the row.
fn judge(head: Option<Head>, skips: bool) -> Outcome {
    let Some(head) = head else {
        let text = "there is no evidence of it";
        return (
            Status::Partial,
            Some(Reason::new(ReasonCode::NotRecorded, text)),
        );
    };
    match head.status {
        // A functional pass is all that there is under emulation, and a library that comes already built
        // has no profile.
        Status::Skipped if skips => (Status::Complete, None),
        status => (status, head.reason),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::WrapFunction;

    #[test]
    fn the_column_of_the_helpers_is_named_as_on_public_pages() {
        let function = |symbol: &str, group: &str| WrapFunction {
            symbol: symbol.into(),
            group: group.into(),
            name: symbol.into(),
            prototype: None,
            in_bits: None,
            out_bits: None,
        };
        let listed = Wrap::Listed(vec![
            function("pseudohash", "hash"),
            function("pseudoXOF", "hash"),
            function("sm3hash", "hash"),
            function("get_random_number", "drng"),
        ]);
        assert_eq!(wrap_column(&listed), "pseudohash/XOF/sm3");
        assert_eq!(wrap_column(&Wrap::None), "");
    }
}

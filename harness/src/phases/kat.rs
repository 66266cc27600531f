//! The KAT phase: every library against its published digests, side by side on all CPUs.
//!
//! The timed library passes the whole KAT, with flipped bits; the profile and memory libraries (in a
//! study the stream library) must reproduce its first vector. Evidence that is there for the same library and the same manifest is
//! kept. What a library does wrong is a result word, and the campaign goes on without it.

use super::context::{is_own_failure, library, not_built, Context, PhaseError};
use super::{together, Lane};
use crate::config::{Candidate, KatIssue};
use crate::evidence::{
    self, kat_file, kat_log, BuildFile, BuildRow, KatDigestRecord, KatEvidence, KatRef, KatResult,
    Kind, LibraryKind, LibraryRef, Reason, ReasonCode, Status,
};
use crate::identity::Identity;
use crate::kat::manifest::{Entry, Manifest};
use crate::progress::{Event, StepEnd};
use crate::worker::{Answer, Ending, Job};
use crate::{clock, hash, plan, publish};
use protocol::{Body, FailureCode, KatFlow, KatMode, KatOutcome, KatTask, Task, TEXT_FD};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Name of the phase.
pub const NAME: &str = "kat";

/// Records of each flow.
fn vectors(flow: KatFlow) -> u32 {
    match flow {
        KatFlow::Iccs => 10,
        KatFlow::Nist => 100,
    }
}

/// The stream of the first vector, by which libraries of one identity are compared.
fn first_vector(flow: KatFlow) -> KatMode {
    match flow {
        KatFlow::Iccs => KatMode {
            mode: "strict".into(),
            first: Some(1),
        },
        KatFlow::Nist => KatMode {
            mode: "nistkat".into(),
            first: None,
        },
    }
}

/// `strict:3`.
fn word(mode: &KatMode) -> String {
    match mode.first {
        Some(n) => format!("{}:{n}", mode.mode),
        None => mode.mode.clone(),
    }
}

/// Records that a stream covers.
fn covers(flow: KatFlow, mode: &KatMode) -> u32 {
    match (mode.mode.as_str(), mode.first) {
        ("nistkat", _) => 1,
        (_, Some(first)) => first,
        (_, None) => vectors(flow),
    }
}

/// One library to be checked.
struct Check<'a> {
    identity: &'a Identity,
    kind: LibraryKind,
    built: &'a BuildRow,
    candidate: &'a Candidate,
    manifest: &'a Manifest,
}

/// Runs the phase. `keep_text` is a folder for the texts; with it, nothing that is done is skipped.
pub async fn run(context: &Context<'_>, keep_text: Option<&Path>) -> Result<(), PhaseError> {
    let build = context.build()?;
    let manifests = manifests(context)?;
    // The others are compared with the timed library's first vector.
    let others: &[LibraryKind] = match context.study {
        None => &[LibraryKind::Profile, LibraryKind::Memory],
        Some(_) => &[LibraryKind::Stream],
    };
    for (name, kinds) in [
        ("kat", &[LibraryKind::Timed][..]),
        ("kat, other libraries", others),
    ] {
        let mut checks = checks(context, &build, &manifests, kinds);
        if keep_text.is_none() {
            let mut open = Vec::new();
            for check in checks {
                if !is_done(context, &check)? {
                    open.push(check);
                }
            }
            checks = open;
        }
        stand(context, &checks)?;
        run_all(context, name, checks, keep_text).await?;
    }
    Ok(())
}

/// What was timed rests on the known answers before it: they are not tried again, whatever would come of it.
fn stand(context: &Context, checks: &[Check]) -> Result<(), PhaseError> {
    let timed: BTreeSet<Identity> = context
        .book
        .begun_records()
        .filter_map(|path| Some(publish::subject(path)?.identity))
        .collect();
    for check in checks.iter().filter(|c| timed.contains(c.identity)) {
        let file = kat_file(check.identity, check.kind);
        let known = context.book.read::<KatEvidence>(&file)?;
        let built = &check.built.libraries[check.kind.name()].sha256;
        let Some(known) = known.filter(|k| k.value.library.sha256 == *built) else {
            continue;
        };
        let before = known.value.manifest_sha256.as_ref();
        return Err(PhaseError::Timed {
            identity: check.identity.to_string(),
            why: match before == Some(&check.manifest.sha256) {
                true => "known answers that it rests on would be tried again; do that in a run of their own (--new)".to_owned(),
                false => format!(
                    "its KAT manifest {} is another one now; put the one back that it was timed with, or start another run with --new",
                    check.candidate.kat.manifest.display()
                ),
            },
        });
    }
    Ok(())
}

fn manifests<'a>(context: &Context<'a>) -> Result<BTreeMap<&'a str, Manifest>, PhaseError> {
    context
        .campaign
        .candidates
        .iter()
        .map(|candidate| {
            let path = context.campaign.root.join(&candidate.kat.manifest);
            Ok((candidate.id.as_str(), Manifest::read(&path)?))
        })
        .collect()
}

/// Libraries of these kinds that were built, the most expensive parameter sets first: they decide
/// how long the phase takes.
fn checks<'a>(
    context: &'a Context<'_>,
    build: &'a BuildFile,
    manifests: &'a BTreeMap<&str, Manifest>,
    kinds: &[LibraryKind],
) -> Vec<Check<'a>> {
    let mut checks = Vec::new();
    for row in context.active() {
        let Some(built) = build.rows.iter().find(|b| b.identity == row.identity) else {
            continue;
        };
        let Some((candidate, instance, ..)) = context.campaign.find(&row.identity) else {
            continue;
        };
        for &kind in kinds {
            if not_built(built).is_none() && library(built, kind).is_some() {
                let check = Check {
                    identity: &row.identity,
                    kind,
                    built,
                    candidate,
                    manifest: &manifests[candidate.id.as_str()],
                };
                checks.push((instance.security_bits, check));
            }
        }
    }
    checks.sort_by_key(|(bits, _)| std::cmp::Reverse(*bits));
    checks.into_iter().map(|(_, check)| check).collect()
}

/// Whether there is evidence of this very library and manifest.
fn is_done(context: &Context, check: &Check) -> Result<bool, PhaseError> {
    let file = kat_file(check.identity, check.kind);
    let Some(stored) = context.book.read::<KatEvidence>(&file)? else {
        return Ok(false);
    };
    let known = stored.value;
    let log = kat_log(check.identity, check.kind);
    Ok(Some(&known.library.sha256)
        == check
            .built
            .libraries
            .get(check.kind.name())
            .map(|l| &l.sha256)
        && known.manifest_sha256.as_ref() == Some(&check.manifest.sha256)
        && hash::sha256_file(&context.book.path(&log)).is_ok_and(|sha| sha == known.log_sha256))
}

async fn run_all(
    context: &Context<'_>,
    name: &str,
    checks: Vec<Check<'_>>,
    keep_text: Option<&Path>,
) -> Result<(), PhaseError> {
    let start = Instant::now();
    context.progress.event(Event::Begin {
        phase: name,
        steps: checks.len(),
        planned: Duration::ZERO,
    });
    if checks.is_empty() {
        return Ok(());
    }
    let queue = &RefCell::new(VecDeque::from(checks));
    let lanes = context.free_lanes().into_iter().map(|_| -> Lane<'_> {
        Box::pin(async move {
            loop {
                let Some(check) = queue.borrow_mut().pop_front() else {
                    return Ok(());
                };
                if let Err(error) = run_one(context, &check, keep_text).await {
                    queue.borrow_mut().clear();
                    return Err(error);
                }
            }
        })
    });
    for end in together::all(lanes.collect()).await {
        end?;
    }
    context.progress.event(Event::End {
        phase: name,
        took: start.elapsed(),
    });
    Ok(())
}

async fn run_one(
    context: &Context<'_>,
    check: &Check<'_>,
    keep_text: Option<&Path>,
) -> Result<(), PhaseError> {
    let label = format!("{} {}", check.identity, check.kind.name());
    let text = match (keep_text, check.kind) {
        (Some(folder), LibraryKind::Timed) => Some(text_file(folder, check)?),
        _ => None,
    };
    let limit = plan::kat_timeout_s(context.plan, context.is_emulated());
    let started = clock::utc_now();
    let answer = context
        .ask(Job {
            task: Task::Kat(task(check, text.is_some())),
            library: library(check.built, check.kind),
            cpu: None,
            limit: Duration::from_secs_f64(limit),
            file: text.map(|file| (TEXT_FD, file.into())),
            preload: None,
        })
        .await?;
    let judged = judge(context, check, &answer)?;
    let word = judged.result.word();
    let evidence = evidence(context, check, &answer, judged, started)?;
    let text = match &evidence.detail {
        Some(detail) => format!("{word}: {detail}"),
        None => word.to_owned(),
    };
    context
        .book
        .write(&kat_file(check.identity, check.kind), &evidence)?;
    context.progress.event(Event::Step {
        label: &label,
        planned: Duration::ZERO,
        end: match evidence.result {
            KatResult::Pass => StepEnd::Good(&text),
            _ => StepEnd::Bad(&text),
        },
    });
    Ok(())
}

fn task(check: &Check, keep_text: bool) -> KatTask {
    let flow = check.candidate.kat.flow;
    let entries: Vec<&Entry> = check.manifest.of(&check.identity.label).collect();
    let is_timed = check.kind == LibraryKind::Timed;
    let first = first_vector(flow);
    let published = entries.iter().map(|e| e.mode.clone());
    let modes = match is_timed {
        true => published
            .filter(|m| *m != first)
            .chain([first.clone()])
            .collect(),
        false => vec![first],
    };
    let name = entries.iter().find(|e| e.mode.mode == "rsp");
    let instance = check
        .candidate
        .instances
        .iter()
        .find(|i| i.label == check.identity.label);
    KatTask {
        flow,
        name: name
            .map_or(check.identity.label.as_str(), |e| e.name())
            .to_owned(),
        vectors: match is_timed {
            // Without published digests the whole flow still shows whether the library works.
            true if entries.is_empty() => Some(vectors(flow)),
            true => None,
            false => Some(1),
        },
        modes,
        flips: is_timed,
        unauthenticated_signature_bytes: instance
            .map(|i| i.unauthenticated_signature_bytes.clone())
            .unwrap_or_default(),
        keep_text,
    }
}

/// Opens the file for the text of a library.
fn text_file(folder: &Path, check: &Check) -> Result<std::fs::File, PhaseError> {
    let published = check.manifest.of(&check.identity.label).next();
    let name = match published {
        Some(entry) => entry.file.clone(),
        None => format!("KAT_SIG_{}.txt", check.identity.label),
    };
    let path: PathBuf = folder
        .join(&check.identity.candidate)
        .join(check.identity.stem())
        .join(name);
    let made = std::fs::create_dir_all(path.parent().expect("joined above"))
        .and_then(|()| std::fs::File::create(&path));
    made.map_err(|source| PhaseError::File {
        path,
        action: "written",
        source,
    })
}

/// What an answer is worth.
#[derive(Debug, PartialEq, Eq)]
struct Judged {
    result: KatResult,
    detail: Option<String>,
    digests: Vec<KatDigestRecord>,
}

fn judge(context: &Context, check: &Check, answer: &Answer) -> Result<Judged, PhaseError> {
    let fail = |result, detail: &str| {
        Ok(Judged {
            result,
            detail: Some(detail.to_owned()),
            digests: Vec::new(),
        })
    };
    let outcome = match &answer.ending {
        Ending::Interrupted => return Err(PhaseError::Interrupted),
        Ending::Failed(failure) if is_own_failure(failure.code) => {
            return Err(PhaseError::WorkerFailed {
                code: failure.code,
                text: failure.text.clone(),
            })
        }
        Ending::Failed(failure) => return fail(failed(failure.code), &failure.text),
        Ending::Timeout(seconds) => {
            return fail(KatResult::Timeout, &format!("killed after {seconds} s"))
        }
        Ending::Crash(text) => return fail(KatResult::Crash, text),
        Ending::Done => match &answer.body {
            Some(Body::Kat(outcome)) => outcome,
            _ => return fail(KatResult::Crash, "it answered something else"),
        },
    };
    if let Some(failure) = &outcome.failure {
        return fail(failed(failure.code), &failure.text);
    }
    let expected = match check.kind {
        LibraryKind::Timed => None,
        _ => match first_vector_of_timed(context, check)? {
            Some(digest) => Some(digest),
            None => {
                return fail(
                    KatResult::Nokat,
                    "there is no first vector of the timed library to compare with",
                )
            }
        },
    };
    Ok(compare(
        check.candidate.kat.flow,
        outcome,
        &published(check),
        expected.as_deref(),
    ))
}

/// Result word of a failure that the worker tells.
fn failed(code: FailureCode) -> KatResult {
    match code {
        FailureCode::LoadFail => KatResult::Loadfail,
        FailureCode::Overflow => KatResult::Overflow,
        FailureCode::CallFailed | FailureCode::NotVerified | FailureCode::Contract => {
            KatResult::Cryptofail
        }
        _ => KatResult::Crash,
    }
}

fn published<'a>(check: &'a Check) -> Vec<&'a Entry> {
    match check.kind {
        LibraryKind::Timed => check.manifest.of(&check.identity.label).collect(),
        _ => Vec::new(),
    }
}

fn first_vector_of_timed(context: &Context, check: &Check) -> Result<Option<String>, PhaseError> {
    let file = kat_file(check.identity, LibraryKind::Timed);
    let mode = word(&first_vector(check.candidate.kat.flow));
    let stored = context.book.read::<KatEvidence>(&file)?;
    Ok(stored.and_then(|stored| {
        let row = stored.value.digests.into_iter().find(|d| d.mode == mode)?;
        row.found
    }))
}

/// Compares the digests found with those published, or with the timed library's first vector.
fn compare(
    flow: KatFlow,
    outcome: &KatOutcome,
    published: &[&Entry],
    of_timed: Option<&str>,
) -> Judged {
    let first = word(&first_vector(flow));
    let found = |mode: &str| outcome.digests.iter().find(|d| d.mode == mode);
    let record = |mode: &str, expected: Option<&str>| KatDigestRecord {
        mode: mode.to_owned(),
        expected: expected.map(str::to_owned),
        found: found(mode).map(|d| d.sha256.clone()),
        records: found(mode).map(|d| d.records),
    };
    let mut digests: Vec<KatDigestRecord> = published
        .iter()
        .map(|entry| record(&word(&entry.mode), Some(&entry.sha256)))
        .collect();
    if !digests.iter().any(|d| d.mode == first) {
        digests.push(record(&first, of_timed));
    }
    let wrong = digests
        .iter()
        .find(|d| d.expected.is_some() && d.expected != d.found);
    let short = published
        .iter()
        .zip(&digests)
        .find(|(entry, digest)| digest.records != Some(covers(flow, &entry.mode)));
    let whole = published
        .iter()
        .any(|entry| covers(flow, &entry.mode) >= vectors(flow));
    let (result, detail) = if let Some((entry, digest)) = short {
        let text = format!(
            "{}: {} records were made, the manifest covers {}",
            digest.mode,
            digest.records.unwrap_or(0),
            covers(flow, &entry.mode)
        );
        (KatResult::Mismatch, Some(text))
    } else if let Some(digest) = wrong {
        (
            KatResult::Mismatch,
            Some(format!(
                "{}: the digest differs: {} is expected, {} was found",
                digest.mode,
                digest.expected.as_deref().unwrap_or("none"),
                digest.found.as_deref().unwrap_or("none")
            )),
        )
    } else if of_timed.is_some() || whole {
        (KatResult::Pass, None)
    } else if published.is_empty() {
        (
            KatResult::Nokat,
            Some(match digests.iter().find_map(|d| d.found.as_deref()) {
                Some(found) => format!("the manifest has no line for it; it would be {found}"),
                None => "the manifest has no line for it".into(),
            }),
        )
    } else {
        let text = "only the first records are published, and they are equal";
        (KatResult::Partial, Some(text.into()))
    };
    Judged {
        result,
        detail,
        digests,
    }
}

fn evidence(
    context: &Context,
    check: &Check,
    answer: &Answer,
    judged: Judged,
    start: String,
) -> Result<KatEvidence, PhaseError> {
    let outcome = match &answer.body {
        Some(Body::Kat(outcome)) => Some(outcome),
        _ => None,
    };
    let log = log(check, answer, outcome, &judged);
    let log_file = kat_log(check.identity, check.kind);
    let log_sha256 = context.book.write_bytes(&log_file, log.as_bytes())?;
    let mut head = context.head(Kind::Kat, check.identity);
    if judged.result != KatResult::Pass {
        head.status = Status::Failed;
        head.reason = Some(reason(judged.result, judged.detail.as_deref()));
    }
    let mut evidence = KatEvidence {
        head,
        library: LibraryRef {
            kind: check.kind,
            sha256: check.built.libraries[check.kind.name()].sha256.clone(),
        },
        flow: match check.candidate.kat.flow {
            KatFlow::Iccs => "iccs".into(),
            KatFlow::Nist => "nist".into(),
        },
        result: judged.result,
        detail: judged.detail,
        digests: judged.digests,
        manifest_sha256: Some(check.manifest.sha256.clone()),
        text_bytes: outcome.map(|o| o.text_bytes),
        flips: outcome.and_then(|o| o.flips),
        log: log_file,
        log_sha256,
        start: Some(start),
        end: Some(clock::utc_now()),
    };
    evidence::explain_with(&mut evidence, |pointer| missing(pointer, check.kind));
    Ok(evidence)
}

fn missing(pointer: &str, kind: LibraryKind) -> Option<Reason> {
    let (code, text) = match (pointer, kind) {
        ("/flips", LibraryKind::Timed) | ("/digests/*/found", _) => {
            (ReasonCode::NotRecorded, "the run did not get so far")
        }
        ("/digests/*/expected", _) => (
            ReasonCode::NotInPlan,
            "the manifest does not hold it; other libraries are compared with it",
        ),
        _ => return None,
    };
    Some(Reason::new(code, text))
}

/// The log: what the worker says it did, what the library printed, and the result as its last line.
fn log(check: &Check, answer: &Answer, outcome: Option<&KatOutcome>, judged: &Judged) -> String {
    let mut lines = vec![
        format!("identity {}", check.identity),
        format!(
            "library {} {}",
            check.kind.name(),
            check.built.libraries[check.kind.name()].sha256
        ),
        format!("manifest {}", check.manifest.sha256),
    ];
    lines.extend(outcome.into_iter().flat_map(|o| o.log.iter().cloned()));
    lines.extend(outcome.map(|o| format!("text {} bytes", o.text_bytes)));
    for digest in &judged.digests {
        lines.push(format!(
            "digest {} expected {} found {} records {}",
            digest.mode,
            digest.expected.as_deref().unwrap_or("-"),
            digest.found.as_deref().unwrap_or("-"),
            digest.records.unwrap_or(0)
        ));
    }
    for (name, capture) in [
        ("stdout", &answer.outcome.stdout),
        ("stderr", &answer.outcome.stderr),
    ] {
        if capture.bytes() > 0 {
            lines.push(format!("{name}, {} bytes:", capture.bytes()));
            lines.extend(capture.evidence().head.lines().map(|l| format!("  {l}")));
        }
    }
    if let Some(detail) = &judged.detail {
        lines.push(format!("detail {detail}"));
    }
    lines.push(format!("RESULT {}", judged.result.word()));
    lines.join("\n") + "\n"
}

/// The reason that a result other than PASS gives to everything that needs it.
fn reason(result: KatResult, detail: Option<&str>) -> Reason {
    let code = match result {
        KatResult::Pass | KatResult::Mismatch => ReasonCode::KatMismatch,
        KatResult::Nokat => ReasonCode::KatNokat,
        KatResult::Partial => ReasonCode::KatPartial,
        KatResult::Cryptofail => ReasonCode::KatCryptofail,
        KatResult::Overflow => ReasonCode::KatOverflow,
        KatResult::Loadfail => ReasonCode::KatLoadfail,
        KatResult::Timeout => ReasonCode::KatTimeout,
        KatResult::Crash => ReasonCode::KatCrash,
    };
    let word = result.word();
    let text = match detail {
        Some(detail) => format!("the KAT result is {word}: {detail}"),
        None => format!("the KAT result is {word}"),
    };
    Reason::new(code, text)
}

/// Whether the configuration lets an instance be used with that result.
fn is_allowed(issues: &[KatIssue], label: &str, result: KatResult) -> bool {
    result == KatResult::Pass
        || issues
            .iter()
            .any(|issue| issue.instance == label && issue.result == result)
}

/// The KAT evidence that lets a library be used, or why it may not be used.
pub fn gate(
    context: &Context,
    build: &BuildFile,
    identity: &Identity,
    kind: LibraryKind,
) -> Result<Result<KatRef, Reason>, PhaseError> {
    let Some(built) = build.rows.iter().find(|row| row.identity == *identity) else {
        return Err(PhaseError::Earlier {
            missing: "its row in build.json",
            phase: "build",
        });
    };
    if let Some(reason) = not_built(built) {
        return Ok(Err(reason));
    }
    let Some(library) = built.libraries.get(kind.name()) else {
        let text = format!("there is no {} library of it", kind.name());
        return Ok(Err(Reason::new(ReasonCode::BuildFailed, text)));
    };
    let file = kat_file(identity, kind);
    let known = context.book.read::<KatEvidence>(&file)?;
    let Some(known) = known.filter(|k| k.value.library.sha256 == library.sha256) else {
        return Err(PhaseError::Earlier {
            missing: "KAT evidence",
            phase: NAME,
        });
    };
    let issues = context
        .campaign
        .find(identity)
        .map(|(candidate, ..)| candidate.kat_issues.as_slice())
        .unwrap_or_default();
    let (result, detail) = (known.value.result, known.value.detail.as_deref());
    Ok(match is_allowed(issues, &identity.label, result) {
        true => Ok(KatRef {
            file,
            sha256: known.sha256,
            result,
        }),
        false => Err(reason(result, detail)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::KatDigest;

    fn entry(mode: &str, first: Option<u32>, digest: &str) -> Entry {
        Entry {
            line: 1,
            sha256: digest.into(),
            mode: KatMode {
                mode: mode.into(),
                first,
            },
            label: "a".into(),
            file: "a.txt".into(),
        }
    }

    fn outcome(digests: &[(&str, &str, u32)]) -> KatOutcome {
        KatOutcome {
            digests: digests
                .iter()
                .map(|&(mode, sha256, records)| KatDigest {
                    mode: mode.into(),
                    sha256: sha256.into(),
                    records,
                })
                .collect(),
            records: 10,
            text_bytes: 0,
            flips: None,
            log: Vec::new(),
            failure: None,
        }
    }

    #[test]
    fn the_result_follows_from_the_digests() {
        use KatResult::{Mismatch, Nokat, Partial, Pass};
        let iccs = outcome(&[
            ("strict:1", "f", 1),
            ("strict", "s", 10),
            ("nolen", "n", 10),
            ("strict:3", "3", 3),
        ]);
        let nist = outcome(&[("nistkat", "k", 1), ("rsp", "r", 100)]);
        type Case<'a> = (
            KatFlow,
            &'a KatOutcome,
            Vec<Entry>,
            Option<&'a str>,
            KatResult,
        );
        let cases: [Case; 13] = [
            (
                KatFlow::Iccs,
                &iccs,
                vec![entry("strict", None, "s")],
                None,
                Pass,
            ),
            (
                KatFlow::Iccs,
                &iccs,
                vec![entry("nolen", None, "n")],
                None,
                Pass,
            ),
            (
                KatFlow::Iccs,
                &iccs,
                vec![entry("strict", None, "x")],
                None,
                Mismatch,
            ),
            (
                KatFlow::Iccs,
                &iccs,
                vec![entry("strict", None, "s"), entry("nolen", None, "x")],
                None,
                Mismatch,
            ),
            (KatFlow::Iccs, &iccs, vec![], None, Nokat),
            (
                KatFlow::Iccs,
                &iccs,
                vec![entry("strict", Some(3), "3")],
                None,
                Partial,
            ),
            (
                KatFlow::Iccs,
                &iccs,
                vec![entry("strict", Some(3), "x")],
                None,
                Mismatch,
            ),
            (
                KatFlow::Iccs,
                &iccs,
                vec![entry("strict", Some(30), "s")],
                None,
                Mismatch,
            ),
            (
                KatFlow::Nist,
                &nist,
                vec![entry("nistkat", None, "k"), entry("rsp", None, "r")],
                None,
                Pass,
            ),
            (
                KatFlow::Nist,
                &nist,
                vec![entry("nistkat", None, "k")],
                None,
                Partial,
            ),
            (
                KatFlow::Nist,
                &nist,
                vec![entry("nistkat", None, "k"), entry("rsp", None, "x")],
                None,
                Mismatch,
            ),
            (KatFlow::Iccs, &iccs, vec![], Some("f"), Pass),
            (KatFlow::Iccs, &iccs, vec![], Some("x"), Mismatch),
        ];
        for (n, (flow, outcome, entries, timed, expected)) in cases.into_iter().enumerate() {
            let entries: Vec<&Entry> = entries.iter().collect();
            let judged = compare(flow, outcome, &entries, timed);
            assert_eq!(judged.result, expected, "case {n}: {judged:?}");
        }
    }

    #[test]
    fn a_stream_that_is_missing_is_no_pass() {
        let strict = entry("strict", None, "s");
        let judged = compare(KatFlow::Iccs, &outcome(&[]), &[&strict], None);
        assert_eq!(judged.result, KatResult::Mismatch);
        assert_eq!(judged.digests[0].found, None);
    }

    #[test]
    fn fewer_records_than_published_are_a_mismatch_with_that_reason() {
        let strict = entry("strict", None, "s");
        let judged = compare(
            KatFlow::Iccs,
            &outcome(&[("strict", "s", 9)]),
            &[&strict],
            None,
        );
        assert_eq!(judged.result, KatResult::Mismatch);
        let detail = judged.detail.unwrap();
        assert_eq!(
            detail,
            "strict: 9 records were made, the manifest covers 10"
        );
    }

    #[test]
    fn a_deviation_is_allowed_for_its_instance_and_result_only() {
        let issue = KatIssue {
            instance: "a".into(),
            result: KatResult::Nokat,
            reason: "no vectors".into(),
        };
        let issues = [issue];
        assert!(is_allowed(&issues, "a", KatResult::Nokat));
        assert!(!is_allowed(&issues, "a", KatResult::Mismatch));
        assert!(!is_allowed(&issues, "b", KatResult::Nokat));
        assert!(is_allowed(&issues, "b", KatResult::Pass));
    }
}

//! What several files say of one thing: libraries, KAT results, sizes, costs, hosts, rows.

use super::chain::Journal;
use super::course;
use super::facts::{Facts, Row, Session, Sizes};
use super::finding::{Finding, Findings, Severity};
use super::head::Head;
use super::kat;
use super::other::{Calibration, Kat};
use super::study;
use super::timing::Record;
use std::collections::{BTreeMap, BTreeSet};

/// What was read from each file.
#[derive(Debug, Default)]
pub struct Evidence {
    /// KAT evidence by path.
    pub kat: BTreeMap<String, (Head, Kat)>,
    /// Start and end of KAT evidence by path, nanoseconds since the epoch.
    pub spans: BTreeMap<String, (Option<i128>, Option<i128>)>,
    /// Calibrations with their paths, by identity and operation.
    pub calibrate: BTreeMap<(String, String), (String, Head, Calibration)>,
    /// Timing records by path.
    pub timing: BTreeMap<String, (Head, Record)>,
    /// Memory evidence and its number of keys, by identity and operation.
    pub memory: Singles,
    /// Profiles and their number of keys, by identity and operation.
    pub profile: Singles,
    /// Points of a study.
    pub points: study::Points,
    /// Path and figures of fitted models, by identity and operation.
    pub fits: BTreeMap<(String, String), (String, study::Fit)>,
}

/// Evidence of single operations: head and number of keys, by identity and operation.
pub type Singles = BTreeMap<(String, String), (Head, Option<u64>)>;

/// Operations in the order of pages.
pub const OPERATIONS: [&str; 3] = ["keygen", "sign", "verify"];

/// Whether evidence under this operation key was asked for.
pub fn wanted(facts: &Facts, journal: &Journal, key: &str) -> bool {
    let subset = |pattern: &String| regex::Regex::new(pattern).is_ok_and(|p| p.is_match(key));
    facts.only.as_ref().is_none_or(|only| only.is_match(key)) && journal.subsets.iter().all(subset)
}

/// All checks between files.
pub fn check(evidence: &Evidence, facts: &Facts, journal: &Journal) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, (head, record)) in &evidence.timing {
        let mut f = Findings::of(path);
        kat_of(head, record, evidence, facts, &mut f);
        library(head, record, facts, &mut f);
        cost(head, record, evidence, facts, &mut f);
        sizes(head, record, facts, &mut f);
        ready(head, record, facts, &mut f);
        findings.append(&mut f.list);
    }
    one_value_each(evidence, &mut findings);
    outputs(evidence, facts, &mut findings);
    study::fits(&evidence.fits, &evidence.points, facts, &mut findings);
    let wanted = |key: &str| wanted(facts, journal, key);
    kat::cross(evidence, facts, &wanted, &mut findings);
    study::whole(&evidence.points, facts, &wanted, &mut findings);
    if facts.class != "aggregate" {
        rows(evidence, facts, journal, &mut findings);
        builds(facts, &mut findings);
        campaign(facts, journal, &mut findings);
    }
    if facts.is_own() {
        course::check(evidence, facts, journal, &mut findings);
    }
    findings
}

/// KAT and timing name the same library, and the result may be timed.
fn kat_of(head: &Head, record: &Record, evidence: &Evidence, facts: &Facts, f: &mut Findings) {
    let Some((file, digest, result)) = &record.kat else {
        if head.status == "complete" {
            f.error(
                "/kat",
                "what was timed has KAT evidence",
                "a reference",
                "null",
            );
        }
        return;
    };
    let Some((of, kat)) = evidence.kat.get(file) else {
        f.error("/kat/file", "the KAT evidence is there", "a file", file);
        return;
    };
    let actual = facts.digests.get(file).cloned().unwrap_or_default();
    if actual != *digest {
        f.error(
            "/kat/sha256",
            "the digest is that of the KAT evidence",
            actual,
            digest,
        );
    }
    if kat.result != *result {
        f.error(
            "/kat/result",
            "the result is that of the KAT evidence",
            &kat.result,
            result,
        );
    }
    if of.identity != head.identity || kat.library != "timed" {
        f.error(
            "/kat/file",
            "the KAT evidence is of the timed library of this identity",
            &head.identity,
            &of.identity,
        );
    }
    if record.library.as_ref() != Some(&kat.sha256) {
        let found = format!("{:?}", record.library);
        f.error(
            "/libraries/timed",
            "KAT and timing are of one library",
            &kat.sha256,
            found,
        );
    }
    let allowed = kat.result == "PASS"
        || facts
            .issues
            .contains(&(head.subject.clone(), kat.result.clone()));
    if !allowed {
        f.error(
            "/kat/result",
            "only what passes its KAT is timed, or what campaign.json allows for",
            "PASS",
            &kat.result,
        );
    }
}

fn library(head: &Head, record: &Record, facts: &Facts, f: &mut Findings) {
    let built = facts
        .builds
        .get(&head.identity)
        .and_then(|b| b.libraries.get("timed"));
    if record.library.as_ref() != built {
        f.error(
            "/libraries/timed",
            "the library is the one of build.json",
            format!("{built:?}"),
            format!("{:?}", record.library),
        );
    }
}

fn cost(head: &Head, record: &Record, evidence: &Evidence, facts: &Facts, f: &mut Findings) {
    if facts.class == "imported" {
        return;
    }
    let key = (
        head.identity.clone(),
        head.operation.clone().unwrap_or_default(),
    );
    let Some((_, _, calibration)) = evidence.calibrate.get(&key) else {
        if head.status == "complete" {
            f.error(
                "/plan/cost_s",
                "what was timed was calibrated",
                "a calibration",
                "none",
            );
        }
        return;
    };
    // A plan may reckon with a cost of its own; calibrated it was all the same.
    let own = facts.plan.as_ref().and_then(|plan| plan.cost_s);
    let expected = match facts.study {
        false => (
            calibration.cost_s.map(|cost| own.unwrap_or(cost)),
            calibration
                .preparation_s
                .filter(|_| calibration.cost_s.is_some()),
        ),
        // Without a cost nothing is measured, and the plan of what is not means nothing.
        true if calibration.cost_s.is_none() => record.cost,
        true => {
            let bytes = match head.operation.as_deref() {
                Some("keygen") => 0.0,
                _ => record.message_bytes.unwrap_or(0) as f64,
            };
            let cost = calibration
                .cost_s
                .map(|cost| cost + bytes * study::PLANNED_S_PER_BYTE);
            (
                cost.filter(|_| record.message_bytes.is_some())
                    .or(record.cost.0),
                record.cost.1,
            )
        }
    };
    if record.cost != expected {
        f.error(
            "/plan/cost_s",
            "the cost is the calibrated one, or the plan's",
            format!("{expected:?}"),
            format!("{:?}", record.cost),
        );
    }
    if record.library.as_ref() != Some(&calibration.library) {
        let found = format!("{:?}", record.library);
        f.error(
            "/libraries/timed",
            "calibration and timing are of one library",
            &calibration.library,
            found,
        );
    }
}

/// Claimed sizes against published ones.
fn sizes(head: &Head, record: &Record, facts: &Facts, f: &mut Findings) {
    let (Some([public_key, _, signature]), Some(known)) =
        (record.sizes, facts.sizes.get(&head.subject))
    else {
        if record.sizes.is_none() && head.status == "complete" {
            f.error(
                "/sizes",
                "a timed library states its sizes",
                "sizes",
                "null",
            );
        }
        return;
    };
    let Sizes {
        public_key: known_key,
        signature: known_signature,
        basis,
    } = known;
    for (key, published, claimed) in [
        ("public_key_bytes", known_key, public_key),
        ("signature_bytes", known_signature, signature),
    ] {
        let Some(published) = published else { continue };
        let agrees = match (basis.as_str(), key) {
            ("nominal-variable", "signature_bytes") => true,
            _ => claimed == *published,
        };
        if !agrees {
            f.error(
                format!("/sizes/{key}"),
                "the API claims the published size",
                published,
                claimed,
            );
        }
    }
}

/// Whether the host was ready is told by the checks of the sessions.
fn ready(head: &Head, record: &Record, facts: &Facts, f: &mut Findings) {
    if facts.class == "imported" || head.sessions.is_empty() {
        return;
    }
    let sessions = head.sessions.iter().filter_map(|k| facts.sessions.get(k));
    let checks: Vec<bool> = sessions.map(|session| session.ready).collect();
    let all = checks.iter().all(|&ready| ready);
    // What the end of the orchestrator cut off has measured nothing.
    let measured = record.attempts.iter().flatten().filter(|a| a.ok);
    let unready = |k: u64| facts.sessions.get(&k).is_none_or(|s| !s.ready);
    let wrong = match record.host_ready {
        Some(true) => measured.map(|a| a.session).any(unready),
        Some(false) => all,
        None => true,
    };
    if wrong {
        f.error(
            "/host_ready",
            "a host is ready by the check of its session",
            all,
            format!("{:?}", record.host_ready),
        );
    }
    // A plan that gives verdicts is measured on a ready host, unless it is told otherwise.
    let verdicts = facts.plan.as_ref().is_some_and(|plan| plan.verdicts);
    let timed = verdicts && facts.class != "emulated";
    if timed && !all && !facts.allow_unfixed_host {
        f.error(
            "/sessions",
            "a host that is not ready is said in campaign.json (allow_unfixed_host)",
            true,
            false,
        );
    }
}

/// Records of one identity agree in sizes; records of one parameter set are on one CPU.
fn one_value_each(evidence: &Evidence, findings: &mut Vec<Finding>) {
    let mut sizes = BTreeMap::new();
    for (path, (head, record)) in &evidence.timing {
        let mut f = Findings::of(path);
        if let Some(own) = record.sizes {
            let first = *sizes.entry(&head.identity).or_insert(own);
            if first != own {
                f.error(
                    "/sizes",
                    "all operations of a library state the same sizes",
                    format!("{first:?}"),
                    format!("{own:?}"),
                );
            }
        }
        findings.append(&mut f.list);
    }
}

/// Trial 0's outputs are the same for every code of a parameter set, or the row says that they are not.
fn outputs(evidence: &Evidence, facts: &Facts, findings: &mut Vec<Finding>) {
    for (identity, other) in course::different_outputs(evidence, facts) {
        let said = facts
            .rows
            .get(&identity)
            .and_then(|row| row.reason.as_ref());
        if said.is_none_or(|reason| reason.code != "not_verified") {
            let mut f = Findings::of(&format!("calibrate of {identity}"));
            f.error(
                "/outputs",
                format!(
                    "every code gives the outputs of {other}, or its row says that it does not"
                ),
                "the same",
                "others",
            );
            findings.append(&mut f.list);
        }
    }
}

/// What became of each row is what its evidence shows.
fn rows(evidence: &Evidence, facts: &Facts, journal: &Journal, findings: &mut Vec<Finding>) {
    let measured: BTreeMap<(String, String), &Head> = evidence
        .timing
        .values()
        .filter(|(_, record)| !record.aa)
        .map(|(head, _)| {
            (
                (
                    head.identity.clone(),
                    head.operation.clone().unwrap_or_default(),
                ),
                head,
            )
        })
        .collect();
    let mut f = Findings::of("campaign.json");
    for (identity, Row { status, .. }) in &facts.rows {
        let pointer = format!("/rows ({identity})");
        let keys = OPERATIONS.map(|o| (identity.clone(), o.to_owned()));
        let keys: Vec<_> = keys
            .iter()
            .filter(|(i, o)| wanted(facts, journal, &format!("{i}/{o}")))
            .collect();
        if status != "complete" || facts.study {
            continue;
        }
        for key in keys {
            match measured.get(key) {
                None => f.error(
                    &pointer,
                    "a complete row is measured",
                    format!("a record of {}", key.1),
                    "none",
                ),
                Some(head) if head.status != "complete" && facts.class != "emulated" => {
                    f.error(
                        &pointer,
                        "a complete row has complete records",
                        "complete",
                        &head.status,
                    );
                }
                Some(_) => {}
            }
            if facts.class != "imported" {
                for (phase, there) in [("memory", &evidence.memory), ("profile", &evidence.profile)]
                {
                    if !there.contains_key(key) {
                        f.error(
                            &pointer,
                            "a complete row has all its evidence",
                            format!("{phase} of {}", key.1),
                            "none",
                        );
                    }
                }
            }
        }
        if !facts.builds.contains_key(identity) {
            f.error(
                &pointer,
                "a complete row was built",
                "a row of build.json",
                "none",
            );
        }
    }
    findings.append(&mut f.list);
}

fn builds(facts: &Facts, findings: &mut Vec<Finding>) {
    let mut f = Findings::of("build.json");
    for (identity, build) in &facts.builds {
        let row = facts.rows.get(identity).map(|row| row.status.as_str());
        if row == Some("complete") && build.status != "complete" {
            f.error(
                format!("/rows ({identity})"),
                "a complete row was built",
                "complete",
                &build.status,
            );
        }
    }
    findings.append(&mut f.list);
}

/// The campaign against its journal.
fn campaign(facts: &Facts, journal: &Journal, findings: &mut Vec<Finding>) {
    let mut f = Findings::of("campaign.json");
    let tokens: BTreeSet<Option<&String>> = facts
        .sessions
        .values()
        .map(|s| s.host_token.as_ref())
        .collect();
    if tokens.len() > 1 {
        f.error("/system", "all sessions are of one host", 1, tokens.len());
    }
    let told: Vec<Option<&String>> = facts
        .sessions
        .values()
        .map(|s| s.host_token.as_ref())
        .collect();
    let seen: Vec<Option<&String>> = journal.sessions.iter().map(Some).collect();
    if !journal.imported && told != seen {
        f.error(
            "",
            "every session of the journal has its environment file",
            format!("{seen:?}"),
            format!("{told:?}"),
        );
    }
    let numbered = facts
        .sessions
        .keys()
        .copied()
        .eq(0..facts.sessions.len() as u64);
    if !numbered || facts.sessions.is_empty() {
        f.error(
            "",
            "sessions are numbered from 0",
            facts.sessions.len(),
            format!("{:?}", facts.sessions.keys()),
        );
    }
    let imported = facts.class == "imported";
    if imported != journal.imported {
        f.error(
            "/class",
            "an import's journal says that it is one",
            journal.imported,
            &facts.class,
        );
    }
    if let (Some((start, end)), Some(first), Some(last)) =
        (facts.period, journal.first_ns, journal.last_ns)
    {
        // The end is written before the seal, the start after the first line.
        let jumped = journal.jumped_ns;
        if !imported && (start < first - jumped || end > last + jumped) {
            f.error(
                "/ended_utc",
                "the campaign lies between the first and the last line of its journal",
                format!("{first} to {last}"),
                format!("{start} to {end}"),
            );
        }
    }
    if facts.is_own() {
        begun(facts, journal, &mut f);
    }
    class(facts, &mut f);
    findings.append(&mut f.list);
}

/// The class is the one that system, machine and tool make of the run.
fn class(facts: &Facts, f: &mut Findings) {
    let mut is = |holds: bool, rule: &str, expected: &str| {
        if !holds {
            f.error("/class", rule, expected, &facts.class);
        }
    };
    let own = facts.is_own();
    is(
        own != facts.provenance,
        "evidence of another tool says where it comes from, and our own does not",
        if own { "no provenance" } else { "provenance" },
    );
    if !own {
        return;
    }
    let (local, emulated) = (facts.class == "local", facts.class == "emulated");
    let rule = "a machine that is no registered system is of class local";
    is(facts.system != "local" || local, rule, "local");
    let rule = "nothing describes a machine that is not registered";
    is(!(local && facts.described), rule, "registered");
    let other = facts.sessions.values().any(|s| s.arch != facts.arch);
    let rule = "a run on another architecture than the system's is emulated, and no other";
    let word = |is: bool| if is { "emulated" } else { "not emulated" };
    is(other == emulated, rule, word(other));
    let rule = "a command runs the worker where it is emulated, and nowhere else";
    is((facts.runner > 0) == emulated, rule, word(facts.runner > 0));
    if let Some(system) = facts.systems.get(&facts.system).filter(|_| !local) {
        let matches = |session: &Session| {
            let model = session.cpu_model.as_ref();
            emulated || model.is_some_and(|model| system.cpu_model.is_match(model))
        };
        is(
            system.arch == facts.arch && facts.sessions.values().all(matches),
            "a registered machine matches its system in campaign.toml",
            "local",
        );
    }
}

/// What was asked for is what a resume would have to ask for again.
fn begun(facts: &Facts, journal: &Journal, f: &mut Findings) {
    let Some(begun) = &journal.begun else {
        f.error(
            "",
            "the journal of a campaign begins with its request",
            "run_begun",
            "none",
        );
        return;
    };
    let plan = facts.plan.as_ref().map(|plan| plan.name.clone());
    let study = "study".to_owned();
    let planned = match facts.study {
        true => begun.plan == study,
        false => Some(&begun.plan) == plan.as_ref(),
    };
    let sorted = |cpus: &[u64]| cpus.iter().copied().collect::<BTreeSet<u64>>();
    let cpus = begun
        .cpus
        .as_ref()
        .is_none_or(|cpus| sorted(cpus) == sorted(&facts.cpus));
    let stated = &facts.stated;
    for (key, agrees, expected, found) in [
        ("plan", planned, begun.plan.clone(), format!("{plan:?}")),
        (
            "system",
            begun.system == facts.system,
            begun.system.clone(),
            facts.system.clone(),
        ),
        (
            "config_sha256",
            stated.config_sha256.as_ref() == Some(&begun.config_sha256),
            begun.config_sha256.clone(),
            format!("{:?}", stated.config_sha256),
        ),
        (
            "only",
            stated.only == begun.only,
            format!("{:?}", begun.only),
            format!("{:?}", stated.only),
        ),
        (
            "cpus",
            cpus,
            format!("{:?}", begun.cpus),
            format!("{:?}", facts.cpus),
        ),
        (
            "study",
            stated.study == begun.study,
            "what the journal says".to_owned(),
            "another study".to_owned(),
        ),
    ] {
        if !agrees {
            let rule = "campaign.json is of the run that the journal began";
            f.error(format!("/{key}"), rule, expected, found);
        }
    }
}

/// Whether any finding refutes the evidence.
pub fn refuted(findings: &[Finding]) -> bool {
    findings
        .iter()
        .any(|finding| finding.severity == Severity::Error)
}

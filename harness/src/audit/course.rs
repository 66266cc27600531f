//! The course of a run: what its journal saw against what is there, and what that makes of each row.
//!
//! A campaign that is sealed has done all of its phases, so that what must be there follows from the rows,
//! the builds and the known answers: nothing can be left out without one of them saying why. Imports have
//! no journal of their own measuring; they are derived again instead.

use super::chain::{left_out, Journal, Placed, Started};
use super::cross::{Evidence, OPERATIONS};
use super::facts::{Facts, Reason};
use super::finding::{Finding, Findings};
use super::head::Head;
use super::timing::{Record, Tried};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};

/// Checks the course of a run.
pub fn check(evidence: &Evidence, facts: &Facts, journal: &Journal, findings: &mut Vec<Finding>) {
    let course = Course {
        evidence,
        facts,
        journal,
        measured: measured(evidence),
    };
    // Under emulation a call is made to see that it works: no attempt of a trial begins.
    if facts.class != "emulated" {
        course.started(findings);
        course.order(findings);
        course.noise_floor(findings);
    }
    course.moments(findings);
    course.states(findings);
    course.more_than_allowed(findings);
    course.keys(findings);
    course.key_costs(findings);
    course.whole(findings);
}

type Key = (String, String);

/// Heads of the timing records by identity and operation, without the second ones.
fn measured(evidence: &Evidence) -> BTreeMap<Key, &Head> {
    let records = evidence.timing.values().filter(|(_, record)| !record.aa);
    records.map(|(head, _)| (key_of(head), head)).collect()
}

fn key_of(head: &Head) -> Key {
    let operation = head.operation.clone().unwrap_or_default();
    (head.identity.clone(), operation)
}

/// Identities whose first outputs are not those of the first code of their parameter set, and that code.
pub fn different_outputs(evidence: &Evidence, facts: &Facts) -> Vec<(String, String)> {
    let mut first = BTreeMap::<String, (&String, &[String; 3])>::new();
    let mut different = Vec::new();
    for identity in &facts.order {
        let outputs = OPERATIONS.iter().find_map(|operation| {
            let key = (identity.clone(), (*operation).to_owned());
            evidence.calibrate.get(&key)?.2.outputs.as_ref()
        });
        let Some(outputs) = outputs else { continue };
        match first.get(&subject(identity)) {
            Some((other, theirs)) if *theirs != outputs => {
                different.push((identity.clone(), (*other).clone()));
            }
            Some(_) => {}
            None => {
                first.insert(subject(identity), (identity, outputs));
            }
        }
    }
    different
}

/// `candidate/label`
fn subject(identity: &str) -> String {
    let parts: Vec<&str> = identity.split('/').take(2).collect();
    parts.join("/")
}

/// `candidate/label/code` of an identity, and its build.
fn code_and_build(identity: &str) -> (&str, &str) {
    identity.rsplit_once('/').unwrap_or((identity, ""))
}

/// `folder/candidate/label.code.build` of an identity.
fn stem(folder: &str, identity: &str) -> String {
    match identity.split_once('/') {
        Some((candidate, rest)) => format!("{folder}/{candidate}/{}", rest.replace('/', ".")),
        None => String::new(),
    }
}

/// Status and reason of a row.
type State = (String, Option<Reason>);

/// How much evidence an identity may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Allowed {
    Nothing,
    KnownAnswers,
    Everything,
}

struct Course<'a> {
    evidence: &'a Evidence,
    facts: &'a Facts,
    journal: &'a Journal,
    measured: BTreeMap<Key, &'a Head>,
}

impl Course<'_> {
    /// Whether `--only` asks for an operation.
    fn asks(&self, key: &str) -> bool {
        self.facts
            .only
            .as_ref()
            .is_none_or(|only| only.is_match(key))
    }

    /// Operations of an identity that `--only` asks for.
    fn asked(&self, identity: &str) -> Vec<&'static str> {
        let asked = |operation: &&str| self.asks(&format!("{identity}/{operation}"));
        OPERATIONS.into_iter().filter(asked).collect()
    }

    fn is_deferred(&self, identity: &str) -> bool {
        let defer = self.facts.plan.iter().flat_map(|plan| &plan.defer);
        let mut patterns = defer.filter_map(|pattern| regex::Regex::new(pattern).ok());
        patterns.any(|pattern| pattern.is_match(identity))
    }

    /// Every worker that the journal saw start is an attempt of its record, and the other way round.
    fn started(&self, findings: &mut Vec<Finding>) {
        for path in self.journal.attempts.keys() {
            let known = self.evidence.timing.contains_key(path);
            if !known && !left_out(path, &self.journal.subsets) {
                let mut f = Findings::of(path);
                let rule = "a worker that the journal saw start has left its record";
                f.error("", rule, "a record", "none");
                findings.append(&mut f.list);
            }
        }
        for (path, (head, record)) in &self.evidence.timing {
            let mut f = Findings::of(path);
            let none = Vec::new();
            let starts = self.journal.attempts.get(path).unwrap_or(&none);
            attempts(starts, record, &mut f);
            sessions(head, record, &mut f);
            self.after_what_it_rests_on(head, record, starts, &mut f);
            findings.append(&mut f.list);
        }
    }

    /// Nothing is timed before its known answers and its cost are there.
    fn after_what_it_rests_on(
        &self,
        head: &Head,
        record: &Record,
        starts: &[Started],
        f: &mut Findings,
    ) {
        let Some(first) = starts.first() else { return };
        let kat = record.kat.as_ref().map(|(file, ..)| file);
        let calibrated = self.evidence.calibrate.get(&key_of(head));
        for path in kat.into_iter().chain(calibrated.map(|(path, ..)| path)) {
            let placed = self.journal.placed.get(path);
            if placed.is_some_and(|placed| placed.last.line > first.at.line) {
                let rule = "attempts begin after the known answers and the cost that they rest on";
                f.error("/trials", rule, format!("after {path}"), "before it");
            }
        }
    }

    /// Trials are made in the order that the seed of the run gives, on each CPU in each session.
    fn order(&self, findings: &mut Vec<Finding>) {
        let Some(begun) = self.journal.begun.as_ref().filter(|_| !self.facts.study) else {
            return;
        };
        let mut starts = Vec::new();
        for (path, all) in &self.journal.attempts {
            let Some((head, record)) = self.evidence.timing.get(path) else {
                continue;
            };
            let operation = head.operation.as_deref().unwrap_or_default();
            let aa = if record.aa { ".aa" } else { "" };
            let key = format!("{}/{operation}{aa}", head.identity);
            let deferred = self.is_deferred(&head.identity);
            let mut places = BTreeMap::new();
            for start in all {
                let place = places
                    .entry(start.trial)
                    .or_insert_with(|| (deferred, start.trial, place(begun, start.trial, &key)));
                starts.push((start.at, record.cpu, *place, path));
            }
        }
        starts.sort_by_key(|(at, ..)| at.line);
        let mut last = BTreeMap::new();
        for (at, cpu, place, path) in starts {
            let before = last.insert((at.session, cpu), place);
            if before.is_some_and(|before| before > place) {
                let mut f = Findings::of(path);
                let rule = "trials are made in the order that the seed of the run gives";
                f.error(
                    format!("/trials/{}", place.1),
                    rule,
                    "an earlier one",
                    "this one",
                );
                findings.append(&mut f.list);
            }
        }
    }

    /// The cheapest verification is timed a second time.
    fn noise_floor(&self, findings: &mut Vec<Finding>) {
        // Of a part of a run the cheapest may be elsewhere.
        if self.facts.study || !self.journal.subsets.is_empty() {
            return;
        }
        let cost = |identity: &&String| {
            let key = ((*identity).clone(), "verify".to_owned());
            let (_, _, calibration) = self.evidence.calibrate.get(&key)?;
            let timed = self.measured.contains_key(&key) && !self.is_deferred(identity);
            calibration.cost_s.filter(|_| timed)
        };
        let all = self.facts.order.iter();
        let costs = all.filter_map(|identity| Some((identity, cost(&identity)?)));
        let cheapest = costs.min_by(|a, b| a.1.total_cmp(&b.1));
        let Some((identity, _)) = cheapest else {
            return;
        };
        let path = format!("{}__verify.aa.json", stem("records", identity));
        if !self.evidence.timing.contains_key(&path) {
            let mut f = Findings::of(&path);
            let rule = "the cheapest verification is timed a second time";
            f.error("", rule, "a record", "none");
            findings.append(&mut f.list);
        }
    }

    /// Moments that files state lie between the lines of the journal around them.
    fn moments(&self, findings: &mut Vec<Finding>) {
        let placed = |path: &str| self.journal.placed.get(path);
        for (path, &(start, end)) in &self.evidence.spans {
            let log = path.strip_suffix(".json").map(|stem| format!("{stem}.log"));
            let (Some(own), Some(log)) = (placed(path), log.and_then(|log| placed(&log))) else {
                continue; // said where files are held against the journal
            };
            let mut f = Findings::of(path);
            for (pointer, from, until, at) in [
                ("/start", &own.since, &log.last, start),
                ("/end", &log.last, &own.last, end),
            ] {
                framed(pointer, from, until, at, &mut f);
            }
            findings.append(&mut f.list);
        }
        let mut f = Findings::of("campaign.json");
        if let (Some(own), Some((start, end))) = (placed("campaign.json"), self.facts.period) {
            framed(
                "/started_utc",
                &own.session_first,
                &own.first,
                Some(start),
                &mut f,
            );
            framed("/ended_utc", &own.since, &own.last, Some(end), &mut f);
        }
        findings.append(&mut f.list);
        for (number, session) in &self.facts.sessions {
            let path = format!("environment/{number}.json");
            let mut f = Findings::of(&path);
            if let Some(own) = placed(&path) {
                looked_at(own, session.started, &mut f);
            }
            findings.append(&mut f.list);
        }
    }

    /// Each row is what its evidence makes of it.
    fn states(&self, findings: &mut Vec<Finding>) {
        let mut f = Findings::of("campaign.json");
        let different: BTreeMap<String, String> = different_outputs(self.evidence, self.facts)
            .into_iter()
            .collect();
        let mut failed = BTreeSet::new();
        for (identity, row) in &self.facts.rows {
            let pointer = format!("/rows ({identity})");
            if self.asked(identity).is_empty() {
                f.error(&pointer, "a row is asked for by --only", "a match", "none");
            }
            if row.status == "failed" {
                let text = row
                    .reason
                    .as_ref()
                    .map_or("", |reason| reason.text.as_str());
                failed.insert(format!("{identity} failed: {text}"));
            }
            let found = (row.status.clone(), row.reason.clone());
            match self.expected(identity, &different) {
                Some(expected) if expected != found && !self.is_cut(identity) => f.error(
                    &pointer,
                    "a row is what its evidence makes of it",
                    shown(&expected),
                    shown(&found),
                ),
                Some(_) => {}
                None => self.not_selected(identity, &pointer, &mut f),
            }
        }
        self.one_build_of_each_code(&mut f);
        // What failed was noted when the run was closed, and nothing else.
        let noted: BTreeSet<String> = self
            .journal
            .notes
            .iter()
            .filter(|note| note.contains(" failed: "))
            .cloned()
            .collect();
        if let Some(lacking) = failed.symmetric_difference(&noted).next() {
            let rule = "the journal notes each row that failed, and no other";
            f.error("/rows", rule, format!("{noted:?}"), lacking);
        }
        findings.append(&mut f.list);
    }

    /// Whether a subset left an operation of an identity out: the row is about more than what is there.
    fn is_cut(&self, identity: &str) -> bool {
        let operation =
            |operation: &str| format!("{}__{operation}.json", stem("records", identity));
        OPERATIONS
            .iter()
            .any(|of| left_out(&operation(of), &self.journal.subsets))
    }

    /// What the evidence makes of a row; `None` for one that no phase took up.
    fn expected(&self, identity: &str, different: &BTreeMap<String, String>) -> Option<State> {
        let built = self.facts.builds.get(identity)?;
        if built.status != "complete" {
            return Some((built.status.clone(), built.reason.clone()));
        }
        if let Err(reason) = self.gate(identity) {
            return Some(("failed".to_owned(), reason));
        }
        let state = match self.facts.study {
            true => self.studied(identity),
            false => self.worked(identity),
        };
        if let (None, Some(other)) = (&state, different.get(identity)) {
            let reason = Reason {
                code: "not_verified".to_owned(),
                text: format!(
                    "it gives other keys or signatures than {other} from the same inputs"
                ),
            };
            return Some(("failed".to_owned(), Some(reason)));
        }
        Some(state.unwrap_or_else(|| ("complete".to_owned(), None)))
    }

    /// Whether the timed library may be used; the reason of its known answers where it may not.
    fn gate(&self, identity: &str) -> Result<(), Option<Reason>> {
        let path = format!("{}.timed.json", stem("kat", identity));
        let Some((head, kat)) = self.evidence.kat.get(&path) else {
            return Err(None);
        };
        let issue = (subject(identity), kat.result.clone());
        match kat.result == "PASS" || self.facts.issues.contains(&issue) {
            true => Ok(()),
            false => Err(head.reason.clone()),
        }
    }

    /// The first thing of a campaign that did not work.
    fn worked(&self, identity: &str) -> Option<State> {
        for operation in self.asked(identity) {
            let key = (identity.to_owned(), operation.to_owned());
            let heads = [
                ("measure", self.measured.get(&key).copied()),
                (
                    "memory",
                    self.evidence.memory.get(&key).map(|(head, _)| head),
                ),
                (
                    "profile",
                    self.evidence.profile.get(&key).map(|(head, _)| head),
                ),
            ];
            for (phase, head) in heads {
                let Some(head) = head else {
                    let reason = Reason {
                        code: "not_recorded".to_owned(),
                        text: format!("{operation} ({phase}): there is no evidence of it"),
                    };
                    return Some(("partial".to_owned(), Some(reason)));
                };
                let left_out = phase == "profile" || self.facts.class == "emulated";
                if head.status == "complete" || head.status == "skipped" && left_out {
                    continue;
                }
                let reason = head.reason.clone().map(|reason| Reason {
                    text: format!("{operation} ({phase}): {}", reason.text),
                    ..reason
                });
                return Some((head.status.clone(), reason));
            }
        }
        None
    }

    /// A point of a study that did not work. Which of several is told is the row's own.
    fn studied(&self, identity: &str) -> Option<State> {
        let own = self.facts.rows.get(identity);
        let heads = self.evidence.timing.values().map(|(head, _)| head);
        let bad: Vec<&Head> = heads
            .filter(|head| head.identity == identity)
            .filter(|head| !matches!(head.status.as_str(), "complete" | "skipped"))
            .collect();
        let told = |head: &&&Head| {
            let reason = own.and_then(|row| row.reason.as_ref());
            let pair = reason.zip(head.reason.as_ref());
            pair.is_some_and(|(own, of)| own.code == of.code && own.text.ends_with(&of.text))
        };
        match bad.iter().find(told) {
            Some(head) => {
                let reason = own.and_then(|row| row.reason.clone());
                Some((head.status.clone(), reason))
            }
            None => bad
                .first()
                .map(|head| (head.status.clone(), head.reason.clone())),
        }
    }

    /// A row that no phase took up was kept out by what was asked for, or by the machine.
    fn not_selected(&self, identity: &str, pointer: &str, f: &mut Findings) {
        let row = &self.facts.rows[identity];
        let Some(reason) = row.reason.as_ref().filter(|_| row.status == "skipped") else {
            f.error(
                pointer,
                "what takes part is built",
                "a row of build.json",
                "none",
            );
            return;
        };
        let plan = self.facts.plan.as_ref();
        let (code, build) = code_and_build(identity);
        let borne_out = match reason.code.as_str() {
            "not_in_plan" => plan.is_some_and(|plan| plan.builds == "first"),
            "deferred" => self.is_deferred(identity),
            "cpu_feature" => {
                let names = reason
                    .text
                    .split_once(" lacks ")
                    .map_or("", |(_, names)| names);
                let has = |name: &str| {
                    let mut sessions = self.facts.sessions.values();
                    sessions.any(|session| session.features.iter().any(|f| f == name))
                };
                !names.split(", ").any(has)
            }
            // A build without flags for an architecture is built for none of its codes.
            "build_failed" => !self
                .facts
                .builds
                .keys()
                .any(|other| code_and_build(other).1 == build),
            _ => false,
        };
        if !borne_out {
            let rule =
                "a row is left out for what the plan, the machine or the other rows bear out";
            f.error(
                pointer,
                rule,
                code,
                format!("{}: {}", reason.code, reason.text),
            );
        }
    }

    /// Plans that take the first build of each code take one.
    fn one_build_of_each_code(&self, f: &mut Findings) {
        if self
            .facts
            .plan
            .as_ref()
            .is_none_or(|plan| plan.builds != "first")
        {
            return;
        }
        let mut taken: BTreeMap<&str, u64> = BTreeMap::new();
        for (identity, row) in &self.facts.rows {
            let left = row.reason.as_ref().is_some_and(|r| r.code == "not_in_plan");
            *taken.entry(code_and_build(identity).0).or_default() += u64::from(!left);
        }
        // With --only the first build may be one that was not asked for.
        let wrong = |n: u64| n > 1 || n == 0 && self.facts.only.is_none();
        for (code, n) in taken.into_iter().filter(|(_, n)| wrong(*n)) {
            let pointer = format!("/rows ({code})");
            f.error(pointer, "the plan takes the first build of each code", 1, n);
        }
    }

    fn allowed(&self, identity: &str) -> Allowed {
        let built = self.facts.builds.get(identity);
        match built.is_some_and(|built| built.status == "complete") {
            false => Allowed::Nothing,
            true if self.gate(identity).is_err() => Allowed::KnownAnswers,
            true => Allowed::Everything,
        }
    }

    /// No file is of what was not built, did not pass its known answers or was not asked for.
    fn more_than_allowed(&self, findings: &mut Vec<Finding>) {
        let allowed: BTreeMap<&String, Allowed> = self
            .facts
            .rows
            .keys()
            .map(|identity| (identity, self.allowed(identity)))
            .collect();
        let mut check = |path: String, head: &Head, least: Allowed| {
            let mut f = Findings::of(&path);
            let of = allowed.get(&head.identity).copied();
            if of.is_none_or(|of| of < least) {
                let rule = "no evidence is of what was not built or did not pass its known answers";
                f.error("/identity", rule, "none", &head.identity);
            }
            if let Some(operation) = &head.operation {
                if !self.asks(&format!("{}/{operation}", head.identity)) {
                    f.error(
                        "/operation",
                        "evidence is of what was asked for",
                        "",
                        operation,
                    );
                }
            }
            findings.append(&mut f.list);
        };
        for (path, (head, _)) in &self.evidence.kat {
            check(path.clone(), head, Allowed::KnownAnswers);
        }
        for (path, head, _) in self.evidence.calibrate.values() {
            check(path.clone(), head, Allowed::Everything);
        }
        for (path, (head, _)) in &self.evidence.timing {
            check(path.clone(), head, Allowed::Everything);
        }
        for (folder, heads) in [
            ("memory", &self.evidence.memory),
            ("profile", &self.evidence.profile),
        ] {
            for ((identity, operation), (head, _)) in heads {
                let path = format!("{}__{operation}.json", stem(folder, identity));
                check(path, head, Allowed::Everything);
            }
        }
    }

    /// Memory and profile are of as many keys as the plan gives for the cost of one.
    fn keys(&self, findings: &mut Vec<Finding>) {
        let Some(plan) = &self.facts.plan else { return };
        for (folder, all) in [
            ("memory", &self.evidence.memory),
            ("profile", &self.evidence.profile),
        ] {
            for ((identity, operation), (head, keys)) in all {
                if head.status != "complete" || self.is_cut(identity) {
                    continue;
                }
                let cost = self.asked(identity).into_iter().find_map(|operation| {
                    let key = (identity.clone(), operation.to_owned());
                    self.evidence.calibrate.get(&key)?.2.key_s
                });
                let expected = match cost {
                    Some(cost) if cost <= plan.keys_limit_s => plan.keys,
                    _ => plan.keys_expensive,
                };
                if *keys != Some(expected) {
                    let path = format!("{}__{operation}.json", stem(folder, identity));
                    let mut f = Findings::of(&path);
                    let rule = "as many keys as the plan gives for the cost of one";
                    f.error("", rule, expected, format!("{keys:?}"));
                    findings.append(&mut f.list);
                }
            }
        }
    }

    /// The cost of a key is that of the prepared one, or of the calls where they make keys.
    fn key_costs(&self, findings: &mut Vec<Finding>) {
        for ((_, operation), (path, _, calibration)) in &self.evidence.calibrate {
            let prepared = self.journal.prepared.get(&calibration.library);
            let expected: Vec<Option<f64>> = match prepared {
                Some(all) => all.iter().map(|&ns| Some(ns as f64 / 1e9)).collect(),
                None if operation == "keygen" => vec![calibration.cost_s],
                None => continue,
            };
            if calibration.cost_s.is_some() && !expected.contains(&calibration.key_s) {
                let mut f = Findings::of(path);
                let rule = "a key costs what the journal or the calls say";
                let found = format!("{:?}", calibration.key_s);
                f.error("/key_s", rule, format!("{expected:?}"), found);
                findings.append(&mut f.list);
            }
        }
    }

    /// A sealed run has done all of its phases.
    fn whole(&self, findings: &mut Vec<Finding>) {
        let phases: &[&str] = match self.facts.study {
            true => &["build", "kat", "calibrate", "study"],
            false => &["build", "kat", "calibrate", "measure", "memory", "profile"],
        };
        let mut f = Findings::of("journal.jsonl");
        for phase in phases.iter().filter(|p| !self.journal.ended.contains(**p)) {
            f.error(
                "",
                "a sealed run has ended all its phases",
                *phase,
                "no end of it",
            );
        }
        findings.append(&mut f.list);
        for identity in self.facts.rows.keys() {
            if self
                .facts
                .builds
                .get(identity)
                .is_none_or(|b| b.status != "complete")
            {
                continue;
            }
            let kat = format!("{}.timed.json", stem("kat", identity));
            if !self.evidence.kat.contains_key(&kat) {
                self.lacks(
                    &kat,
                    "what was built is held against its known answers",
                    findings,
                );
            }
            if self.allowed(identity) == Allowed::Everything {
                self.all_operations(identity, findings);
            }
        }
    }

    fn all_operations(&self, identity: &str, findings: &mut Vec<Finding>) {
        let has_figures = self
            .facts
            .builds
            .get(identity)
            .is_some_and(|b| b.elf.is_some());
        for operation in self.asked(identity) {
            let key = (identity.to_owned(), operation.to_owned());
            let campaign = !self.facts.study;
            for (folder, there, due) in [
                (
                    "calibrate",
                    self.evidence.calibrate.contains_key(&key),
                    true,
                ),
                ("records", self.measured.contains_key(&key), campaign),
                (
                    "memory",
                    self.evidence.memory.contains_key(&key),
                    campaign && has_figures,
                ),
                (
                    "profile",
                    self.evidence.profile.contains_key(&key),
                    campaign,
                ),
            ] {
                if due && !there {
                    let path = format!("{}__{operation}.json", stem(folder, identity));
                    let rule = "what was built and passed its known answers has all its evidence";
                    self.lacks(&path, rule, findings);
                }
            }
        }
    }

    fn lacks(&self, path: &str, rule: &str, findings: &mut Vec<Finding>) {
        if !left_out(path, &self.journal.subsets) {
            let mut f = Findings::of(path);
            f.error("", rule, "a file", "none");
            findings.append(&mut f.list);
        }
    }
}

fn shown((status, reason): &State) -> String {
    match reason {
        Some(reason) => format!("{status}, {}: {}", reason.code, reason.text),
        None => status.clone(),
    }
}

/// Place of a trial in its round.
fn place(begun: &super::chain::Begun, trial: u64, key: &str) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(begun.order_seed.as_bytes());
    hash.update([0]);
    hash.update((trial as u32).to_le_bytes());
    hash.update(key.as_bytes());
    hash.finalize().into()
}

fn framed(
    pointer: &str,
    from: &super::chain::Moment,
    until: &super::chain::Moment,
    at: Option<i128>,
    f: &mut Findings,
) {
    if at.is_none_or(|at| !from.frames(until, at)) {
        f.error(
            pointer,
            "a moment lies between the lines of the journal around it",
            format!(
                "{} to {}, lines {} to {}",
                from.utc,
                until.utc,
                from.line + 1,
                until.line + 1
            ),
            format!("{at:?}"),
        );
    }
}

/// A session looks at the machine some moments before it writes its first line.
fn looked_at(own: &Placed, started: Option<i128>, f: &mut Findings) {
    const TEN_MINUTES: i128 = 600_000_000_000;
    let begun = own.since.utc;
    if started.is_none_or(|at| at > begun || at < begun - TEN_MINUTES) {
        let rule = "a session looks at the machine in the ten minutes before its first line";
        f.error("/started_utc", rule, begun, format!("{started:?}"));
    }
}

/// Workers that the journal saw start are the attempts of the record, one by one.
fn attempts(starts: &[Started], record: &Record, f: &mut Findings) {
    let mut seen: BTreeMap<u64, u64> = BTreeMap::new();
    for start in starts {
        let number = seen.entry(start.trial).or_default();
        let index = *number;
        *number += 1;
        let place = format!("/trials/{}/attempts/{index}", start.trial);
        if start.attempt != index {
            f.error(
                &place,
                "the journal counts the attempts of a trial",
                index,
                start.attempt,
            );
        }
        let slot = record.attempts.get(start.trial as usize);
        let Some(tried) = slot.and_then(|slot| slot.get(index as usize)) else {
            continue; // said below
        };
        let before = index.checked_sub(1).and_then(|i| slot?.get(i as usize));
        one_attempt(start, tried, before, &place, f);
    }
    let rule = "the record has every attempt that the journal saw begin, and no other";
    for (trial, attempts) in record.attempts.iter().enumerate() {
        let begun = seen.remove(&(trial as u64)).unwrap_or(0);
        if begun != attempts.len() as u64 {
            let place = format!("/trials/{trial}/attempts");
            f.error(place, rule, begun, attempts.len());
        }
    }
    if let Some(trial) = seen.into_keys().next() {
        f.error("/trials", rule, trial + 1, record.attempts.len());
    }
}

fn one_attempt(
    start: &Started,
    tried: &Tried,
    before: Option<&Tried>,
    place: &str,
    f: &mut Findings,
) {
    if tried.session != start.at.session {
        let rule = "an attempt is of the session in which the journal saw it begin";
        f.error(
            format!("{place}/session"),
            rule,
            start.at.session,
            tried.session,
        );
    }
    match start.until {
        Some(until) => {
            framed(
                &format!("{place}/started_utc"),
                &start.at,
                &until,
                tried.started,
                f,
            );
        }
        None => f.error(
            place,
            "an attempt is written down after it",
            "a line",
            "none",
        ),
    }
    // Only what went well and was disturbed is repeated; what was cut off is made again.
    let expected = before
        .filter(|before| before.ok)
        .map(|before| &before.flags);
    if start.retry.as_ref() != expected {
        f.error(
            format!("{place}/flags"),
            "the journal says which flags asked for a repeat",
            format!("{expected:?}"),
            format!("{:?}", start.retry),
        );
    }
}

/// A record is of the sessions of its attempts.
fn sessions(head: &Head, record: &Record, f: &mut Findings) {
    let of: BTreeSet<u64> = record
        .attempts
        .iter()
        .flatten()
        .map(|a| a.session)
        .collect();
    if !of.is_empty() && !of.iter().eq(&head.sessions) {
        f.error(
            "/sessions",
            "a record is of the sessions of its attempts, in their order",
            format!("{of:?}"),
            format!("{:?}", head.sessions),
        );
    }
}

//! What several pages share: where a page stands, which rows a candidate has, why a value is
//! missing, and the warnings of a dataset.

use super::figures::printed;
use crate::catalogue::Catalogue;
use crate::dataset::{Dataset, Entry, Key};
use crate::evidence::{
    covers, CampaignFile, CandidateInfo, Class, FindingState, Head, KatResult, Reason, ReasonCode,
    Status, TimingRecord, Trial,
};
use crate::host::readiness;
use crate::identity::Identity;
use crate::report::escape;
use crate::report::table::{reason_text, Cell, Notes, Table};
use protocol::{Operation, SourceKind};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Where the pages of a dataset stand, relative to other things.
#[derive(Debug, Clone, Default)]
pub struct Place {
    /// From a page to the dataset's directory, with a slash at the end (`../`).
    pub evidence: String,
    /// Page above the dataset's index, if there is one (`../index.md`).
    pub home: Option<String>,
    /// All systems that have pages beside these.
    pub systems: Vec<SystemLink>,
    /// Published sizes.
    pub catalogue: Catalogue,
}

/// A system with pages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SystemLink {
    /// Id.
    pub id: String,
    /// From a page of this dataset to that system's folder, with a slash (`../arm_1/`).
    pub folder: String,
    /// Ids of the candidates that have a page there.
    pub candidates: BTreeSet<String>,
    /// Security targets that have a ranking there, bits.
    pub targets: BTreeSet<u32>,
}

/// A word that may lead somewhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Crumb {
    /// The word.
    pub text: String,
    /// Where it leads.
    pub href: Option<String>,
}

impl Crumb {
    pub(super) fn new(text: impl Into<String>, href: Option<String>) -> Self {
        Crumb {
            text: text.into(),
            href,
        }
    }
}

/// What every page has at its top and its foot.
#[derive(Debug, Clone, Serialize)]
pub struct Frame {
    /// Title of all pages.
    pub site: String,
    /// Where the page stands.
    pub breadcrumb: Vec<Crumb>,
    /// The same page of every system.
    pub switch: Vec<Crumb>,
    /// Id of the system.
    pub system: String,
    /// Its description.
    pub system_description: Option<String>,
    /// Its architecture, as readers write it.
    pub arch: String,
    /// Whether the machine is measured by an evaluator, not by a submitter.
    pub independent: bool,
    /// What a reader must know before any figure.
    pub warnings: Vec<String>,
    /// Name of the dataset.
    pub dataset: String,
    /// Seal of the dataset.
    pub seal: Option<String>,
    /// What the dataset is, if it was imported.
    pub provenance: Option<String>,
    /// How the dataset came about: the tool that measured, or the format of what was imported.
    pub made: String,
}

impl Frame {
    /// The frame of a page; `page` is the last crumb, `same` gives the file of the same page on a
    /// system, where it has one.
    pub(super) fn new(
        dataset: &Dataset,
        place: &Place,
        page: Option<&str>,
        same: impl Fn(&SystemLink) -> Option<String>,
    ) -> Self {
        let campaign = &dataset.campaign;
        let system = &campaign.system;
        let mut breadcrumb = vec![Crumb::new("Performance measurements", place.home.clone())];
        let index = page.map(|_| "index.md".to_owned());
        breadcrumb.push(Crumb::new(system, index));
        breadcrumb.extend(page.map(|name| Crumb::new(name, None)));
        let switch = place
            .systems
            .iter()
            .map(|link| {
                let other = link.id != *system;
                let href = same(link).filter(|_| other);
                Crumb::new(&link.id, href.map(|file| format!("{}{file}", link.folder)))
            })
            .collect();
        Frame {
            site: campaign.title.clone(),
            breadcrumb,
            switch,
            system: system.clone(),
            system_description: campaign.system_description.clone(),
            arch: arch_name(&campaign.arch).to_owned(),
            independent: campaign.report_kind != "self-assessment",
            warnings: warnings(dataset),
            dataset: dataset.id.clone(),
            seal: dataset.seal.clone(),
            provenance: campaign.provenance.as_ref().map(|p| p.text.clone()),
            made: made(campaign),
        }
    }
}

fn made(campaign: &CampaignFile) -> String {
    let tool = format!("{} {}", campaign.tool.name, campaign.tool.version);
    match campaign.class {
        Class::Imported | Class::Aggregate => format!("imported ({tool})"),
        _ => format!("measured with {tool}"),
    }
}

/// An architecture as readers write it.
pub(super) fn arch_name(arch: &str) -> &str {
    match arch {
        "x86_64" => "x86-64",
        "aarch64" => "AArch64",
        other => other,
    }
}

/// Longest stem of a page's file name that is taken over from an id.
const PAGE_NAME_MAX: usize = 100;

/// Stem of a candidate's page: the id, where that is a file name that needs no care and is no other
/// page's, else a cleaned id with the first digits of its digest.
pub fn page_name(candidate: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let taken = matches!(
        candidate,
        "index" | "summary" | "method" | "sizes" | "symmetric"
    ) || candidate.starts_with("ranking-")
        || candidate.starts_with('.');
    if !taken && candidate.chars().all(plain) && candidate.len() <= PAGE_NAME_MAX {
        return candidate.to_owned();
    }
    let clean: String = candidate
        .chars()
        .map(|c| if plain(c) { c } else { '-' })
        .take(40)
        .collect();
    let digest = crate::hash::sha256(candidate.as_bytes());
    format!("{}-{}", clean.trim_start_matches('.'), &digest[..12])
}

/// The rows of a candidate, and how they are labelled.
pub(super) struct Rows<'a> {
    pub dataset: &'a Dataset,
    pub candidate: &'a CandidateInfo,
    /// Identities that the tables show: planned, whatever became of them.
    pub shown: Vec<&'a Identity>,
    /// Identities that were not planned or put off, with the reason.
    pub left_out: Vec<(&'a Identity, &'a Reason)>,
    /// Operations of the candidate.
    pub operations: Vec<Operation>,
    /// Whether code and build need columns of their own.
    pub builds: bool,
}

impl<'a> Rows<'a> {
    pub(super) fn of(dataset: &'a Dataset, candidate: &'a CandidateInfo) -> Self {
        let mut shown = Vec::new();
        let mut left_out = Vec::new();
        for row in &dataset.campaign.rows {
            if row.identity.candidate != candidate.id {
                continue;
            }
            match &row.reason {
                Some(reason) if is_left_out(row.status, reason) => {
                    left_out.push((&row.identity, reason));
                }
                _ => shown.push(&row.identity),
            }
        }
        shown.sort();
        left_out.sort_by_key(|(identity, _)| *identity);
        let seen: BTreeSet<Operation> = dataset
            .timing
            .keys()
            .filter(|(identity, _)| identity.candidate == candidate.id)
            .map(|(_, operation)| *operation)
            .collect();
        let operations = if seen.is_empty() {
            Operation::ALL.to_vec()
        } else {
            seen.into_iter().collect()
        };
        let builds = shown
            .windows(2)
            .any(|pair| (&pair[0].code, &pair[0].build) != (&pair[1].code, &pair[1].build));
        Rows {
            dataset,
            candidate,
            shown,
            left_out,
            operations,
            builds,
        }
    }

    /// An empty table with the columns that name an identity, then `titles`.
    pub(super) fn table(&self, titles: &[&str]) -> Table {
        let mut table = Table::with(&["instance"]);
        if self.builds {
            table.add_columns(&["code", "build"]);
        }
        table.add_columns(titles);
        table
    }

    /// The cells that name an identity, marked where its KAT did not pass.
    pub(super) fn head(&self, identity: &Identity, notes: &mut Notes) -> Vec<Cell> {
        let mut label = Cell::code(&identity.label);
        if let Some(text) = kat_mark(self.dataset, identity) {
            label = label.with_note(notes, text);
        }
        let mut cells = vec![label];
        if self.builds {
            cells.push(Cell::text(&identity.code));
            cells.push(Cell::text(&identity.build));
        }
        cells
    }

    /// Every shown identity with every operation.
    pub(super) fn each(&self) -> impl Iterator<Item = Key> + '_ {
        self.shown.iter().flat_map(move |identity| {
            self.operations
                .iter()
                .map(move |operation| ((*identity).clone(), *operation))
        })
    }

    pub(super) fn timing(&self, key: &Key) -> Option<&'a Entry<TimingRecord>> {
        self.dataset.timing.get(key)
    }

    /// A label that tells rows apart in a chart: with the code where there are several, and with the
    /// build where the code does not say it.
    pub(super) fn short_name(&self, identity: &Identity) -> String {
        let mut name = identity.label.clone();
        let codes: BTreeSet<&str> = self.shown.iter().map(|id| id.code.as_str()).collect();
        if codes.len() > 1 {
            name += &format!(" {}", identity.code);
        }
        let pairs: BTreeSet<(&str, &str)> = self
            .shown
            .iter()
            .map(|id| (id.code.as_str(), id.build.as_str()))
            .collect();
        if pairs.len() > codes.len() {
            name += &format!(" {}", identity.build);
        }
        name
    }

    /// Share of the DRNG, where it was measured or published.
    pub(super) fn drng_share(&self, key: &Key) -> Option<f64> {
        if let Some(cells) = &self.dataset.cells {
            let table = cells.value.table("symmetric")?;
            let row = super::figures::cell_row(table, key)?;
            return Some(row.get(table.column("DRNG")?)?.quantity.as_ref()?.value);
        }
        self.dataset
            .profile
            .get(key)?
            .value
            .derived
            .as_ref()?
            .drng_share
    }

    /// Why an identity has no evidence of some kind.
    pub(super) fn why_not(&self, identity: &Identity, phase: &str) -> String {
        why_not(self.dataset, identity, phase)
    }
}

/// Ids of the candidates that have a page: those with a row that is shown. A study has one page for
/// all.
pub fn candidates_with_page(campaign: &CampaignFile) -> BTreeSet<String> {
    if campaign.study.is_some() {
        return BTreeSet::new();
    }
    let shown = shown_identities(campaign);
    shown.map(|identity| identity.candidate.clone()).collect()
}

/// Identities of the rows that tables show.
pub(super) fn shown_identities(campaign: &CampaignFile) -> impl Iterator<Item = &Identity> {
    let shown = campaign.rows.iter().filter(|row| {
        let left_out = |reason| is_left_out(row.status, reason);
        !row.reason.as_ref().is_some_and(left_out)
    });
    shown.map(|row| &row.identity)
}

fn is_left_out(status: Status, reason: &Reason) -> bool {
    status == Status::Skipped && matches!(reason.code, ReasonCode::NotInPlan | ReasonCode::Deferred)
}

/// What tables of all candidates have no rows for: the identities that were not planned or put off, by
/// the reason, and what the run was not asked for.
pub(super) fn left_out(campaign: &CampaignFile, of: impl Fn(&Identity) -> bool) -> Vec<String> {
    let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
    let rows = campaign.rows.iter().filter(|row| of(&row.identity));
    let left = rows.filter_map(|row| {
        let reason = row.reason.as_ref();
        reason.filter(|reason| is_left_out(row.status, reason))
    });
    for reason in left {
        *reasons.entry(reason_text(reason)).or_default() += 1;
    }
    let rows = reasons.into_iter().map(|(reason, count)| match count {
        1 => format!("1 identity: {reason}"),
        _ => format!("{count} identities: {reason}"),
    });
    let only = campaign.only.as_ref();
    let only = only.map(|only| format!("all that --only {only} does not match: not asked for"));
    rows.chain(only).collect()
}

/// Why an identity has no evidence of some kind: the campaign's reason for the row, the build's, or
/// that the phase has not come to it.
pub(super) fn why_not(dataset: &Dataset, identity: &Identity, phase: &str) -> String {
    let row = dataset
        .campaign
        .rows
        .iter()
        .find(|row| row.identity == *identity);
    let reason = row
        .and_then(|row| row.reason.as_ref())
        .or_else(|| dataset.build_row(identity)?.reason.as_ref());
    match reason {
        Some(reason) => reason_text(reason),
        None if dataset.campaign.ended_utc.is_none() => {
            format!("the {phase} phase has not come to it yet: this run is not finished")
        }
        None => format!("this dataset holds no {phase} evidence of it"),
    }
}

/// Why a value of a file is missing: what the file says of that JSON pointer, of a parent of it, or
/// of itself.
pub(super) fn why_null(head: &Head, pointer: &str) -> String {
    let mut at = pointer;
    while !at.is_empty() {
        let known = head.missing.iter().find(|(key, _)| covers(key, at));
        if let Some((_, reason)) = known {
            return reason_text(reason);
        }
        at = at.rfind('/').map_or("", |cut| &at[..cut]);
    }
    match &head.reason {
        Some(reason) => reason_text(reason),
        None => "not recorded (not_recorded)".to_owned(),
    }
}

/// Result of the KAT of an identity's timed library, where the dataset states one.
pub(super) fn kat_word<'d>(dataset: &'d Dataset, identity: &Identity) -> Option<&'d str> {
    if let Some(entry) = dataset.kat_of(identity) {
        return Some(entry.value.result.word());
    }
    let of_record = |op| {
        let entry = dataset.timing.get(&(identity.clone(), op))?;
        Some(entry.value.kat.as_ref()?.result.word())
    };
    let known = Operation::ALL.into_iter().find_map(of_record);
    known.or_else(|| printed(dataset, identity, "kat", "KAT"))
}

/// The result of a KAT that did not pass: `KAT MISMATCH`.
pub(super) fn kat_failure(dataset: &Dataset, identity: &Identity) -> Option<String> {
    let word = kat_word(dataset, identity)?;
    (word != KatResult::Pass.word()).then(|| format!("KAT {word}"))
}

/// What a reader must know of an identity whose KAT did not pass, or that has none.
pub(super) fn kat_mark(dataset: &Dataset, identity: &Identity) -> Option<String> {
    let failure = kat_failure(dataset, identity)?;
    let word = kat_word(dataset, identity)?;
    Some(match dataset.known_deviation(identity, word) {
        Some(issue) => format!("{failure}, a known deviation: {}", issue.reason),
        None => format!("{failure}: its figures are of code that is not known to be correct"),
    })
}

/// The marks of all shown identities of a candidate that have one, each once, with the label it is of.
pub(super) fn kat_marks<'a>(rows: &Rows<'a>) -> Vec<(&'a str, String)> {
    let mut all: Vec<(&str, String)> = Vec::new();
    for identity in &rows.shown {
        let mark = kat_mark(rows.dataset, identity);
        let mark = mark.map(|text| (identity.label.as_str(), text));
        if let Some(mark) = mark.filter(|mark| !all.contains(mark)) {
            all.push(mark);
        }
    }
    all
}

/// Clocks and counters in the order of their columns.
pub(super) const SOURCES: [SourceKind; 3] = [SourceKind::Perf, SourceKind::Tsc, SourceKind::Cntvct];

/// Head of the column of a source's means.
pub(super) fn source_title(kind: SourceKind) -> &'static str {
    match kind {
        SourceKind::Tsc => "mean TSC ticks",
        SourceKind::Cntvct => "mean CNTVCT ticks",
        SourceKind::Perf | SourceKind::None => "mean cycles",
    }
}

/// Mean of a record in units of a source; ticks and cycles are never the same column.
pub(super) fn source_mean(record: &TimingRecord, kind: SourceKind) -> Option<f64> {
    let derived = record.derived.as_ref()?;
    match kind {
        SourceKind::Perf => derived.mean_cycles,
        _ if record.cycle_source.kind == kind => derived.mean_ticks,
        _ => None,
    }
}

/// Sources that records of these keys have, in column order.
pub(super) fn sources<'a>(records: impl Iterator<Item = &'a TimingRecord>) -> Vec<SourceKind> {
    let kinds: BTreeSet<SourceKind> = records.map(|r| r.cycle_source.kind).collect();
    let found: Vec<SourceKind> = SOURCES.into_iter().filter(|k| kinds.contains(k)).collect();
    if found.is_empty() {
        vec![SourceKind::Perf]
    } else {
        found
    }
}

/// What a reader must know before any figure of this dataset.
pub(super) fn warnings(dataset: &Dataset) -> Vec<String> {
    let campaign = &dataset.campaign;
    let mut all = Vec::new();
    if campaign.class == Class::Emulated {
        all.push(format!(
            "Emulated, functional only: the libraries ran under an emulator on another architecture \
             than that of {}. KAT results, sizes and call counts hold; nothing was timed, so there are \
             no times and no cycles.",
            campaign.system
        ));
    }
    if campaign.class == Class::Local && campaign.system != crate::select::LOCAL {
        all.push(format!(
            "Not {system}: the machine that was measured is not the one registered under this name; its processor \
             is given below. These figures are of no registered system.",
            system = campaign.system
        ));
    }
    for (parent, regex) in &dataset.subsets {
        all.push(format!(
            "A part of a run: of the run with the seal {parent} was published what the expression \"{regex}\" matches. \
             The rest is not here."
        ));
    }
    // What the machine does to times is beside the point where there are none.
    let timed = campaign.class != Class::Emulated;
    let guest = virtualization(dataset).filter(|_| timed);
    match guest.map(|kind| (kind, kind.strip_prefix("container:"))) {
        Some((_, Some(kind))) => all.push(format!(
            "Container ({kind}): what lies below it cannot be seen from inside."
        )),
        Some((kind, None)) => all.push(format!(
            "Virtual machine ({kind}): other guests share the processor, and its clock is not in our hands."
        )),
        None => {}
    }
    if let Some(text) = unfixed(dataset).filter(|_| timed) {
        all.push(text);
    }
    all.extend(busy(dataset));
    if campaign.ended_utc.is_none() {
        let rows = &campaign.rows;
        let done = rows
            .iter()
            .filter(|row| row.status == Status::Complete)
            .count();
        all.push(format!(
            "This run is not finished: {done} of {} rows are complete.",
            rows.len()
        ));
    }
    all
}

/// Of how many operations most counted trials were disturbed: their means say more of the machine than
/// of the code.
fn busy(dataset: &Dataset) -> Option<String> {
    let mostly_disturbed = |record: &TimingRecord| {
        let counted = record.trials.iter().filter_map(Trial::counted_attempt);
        let disturbed = counted.clone().filter(|a| !a.flags.is_empty()).count();
        2 * disturbed > counted.count()
    };
    let records = dataset.timing.values().map(|entry| &entry.value);
    let busy = records.filter(|record| mostly_disturbed(record)).count();
    (busy > 0).then(|| {
        format!(
            "The machine was busy: for {busy} of {} operations most of the trials that count were disturbed, \
             so that their means may be far too high.",
            dataset.timing.len()
        )
    })
}

/// The virtualization that any session found.
fn virtualization(dataset: &Dataset) -> Option<&str> {
    dataset
        .environments
        .iter()
        .filter_map(|entry| entry.value.stable.virtualization.as_deref())
        .find(|kind| *kind != "none")
}

/// Longest value of a finding that is repeated in a warning; the method page has all of them.
const SHORT_VALUE: usize = 32;

/// What of the host was not as it should be, over all sessions.
fn unfixed(dataset: &Dataset) -> Option<String> {
    let sessions = dataset.environments.iter().map(|entry| &entry.value);
    let unready = sessions.clone().any(|session| !session.ready)
        || dataset
            .timing
            .values()
            .any(|entry| entry.value.host_ready == Some(false));
    if !unready {
        return None;
    }
    let findings: BTreeSet<String> = sessions
        .flat_map(|session| &session.check)
        .filter(|finding| readiness::stands_against(finding))
        .map(|finding| {
            let item = finding.item.replace('_', " ");
            match finding.state {
                FindingState::Unknown => format!("{item} unknown"),
                _ if finding.value.chars().count() <= SHORT_VALUE => {
                    format!("{item} {}", finding.value)
                }
                _ => format!("{item} not as it should be"),
            }
        })
        .collect();
    let list: Vec<String> = findings.into_iter().collect();
    Some(if list.is_empty() {
        "The host was not fixed while this was measured.".to_owned()
    } else {
        format!(
            "The host was not fixed while this was measured: {}.",
            list.join("; ")
        )
    })
}

/// A path of the evidence as a link from a page.
pub(super) fn evidence_cell(place: &Place, file: &str) -> Cell {
    let parts: Vec<String> = file.split('/').map(escape::path_part).collect();
    Cell::code(file).to(format!("{}{}", place.evidence, parts.join("/")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_names_are_file_names_and_clash_with_no_other_page() {
        assert_eq!(page_name("sign-09"), "sign-09");
        for odd in [
            "index",
            "ranking-128",
            "a b",
            "a<b>",
            "..",
            ".x",
            &"x".repeat(300),
            "é",
        ] {
            let name = page_name(odd);
            assert!(
                name != odd && name.len() < 120 && !name.starts_with('.'),
                "{name}"
            );
            assert!(
                name.bytes()
                    .all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b)),
                "{name}"
            );
        }
        assert_ne!(page_name("a b"), page_name("a-b"));
    }

    #[test]
    fn a_busy_machine_is_warned_of_where_most_trials_of_an_operation_were_disturbed() {
        let mut dataset = crate::testing::Synthetic::default().build();
        let mut disturb = |trials: usize| {
            let record = &mut dataset.timing.values_mut().next().unwrap().value;
            for attempt in record.trials[..trials]
                .iter_mut()
                .flat_map(|t| &mut t.attempts)
            {
                attempt.flags = vec![crate::evidence::Flag {
                    name: "steal_percent".into(),
                    value: 2.0,
                    limit: 0.5,
                }];
            }
            warnings(&dataset)
        };
        assert_eq!(disturb(2), Vec::<String>::new());
        let all = disturb(3);
        assert!(
            all[0].contains("for 1 of 18 operations most of the trials"),
            "{all:?}"
        );
    }

    #[test]
    fn a_published_part_is_one_on_every_page() {
        let mut dataset = crate::testing::Synthetic::default().build();
        dataset.subsets = vec![("ab".repeat(32), "^toy/".to_owned())];
        let all = warnings(&dataset);
        let words = format!("of the run with the seal {} was published", "ab".repeat(32));
        assert!(
            all[0].contains(&words) && all[0].contains("^toy/"),
            "{all:?}"
        );
    }

    #[test]
    fn a_system_measured_on_another_machine_is_warned_of() {
        let mut dataset = crate::testing::Synthetic::public_campaign(1).build();
        let named = |dataset: &Dataset| {
            let start = format!("Not {}:", dataset.campaign.system);
            warnings(dataset).iter().any(|w| w.starts_with(&start))
        };
        assert!(!named(&dataset));
        dataset.campaign.class = Class::Local;
        assert!(named(&dataset));
        dataset.campaign.system = crate::select::LOCAL.to_owned();
        assert!(!named(&dataset));
    }
}

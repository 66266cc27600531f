//! The second step: from typed text to the checked model. Names are resolved, defaults filled in,
//! files looked for. Whatever is wrong is collected, and the rest still checked.
//!
//! Here are the tables that stand alone; a candidate is in `candidate.rs`, its instances and their codes
//! in `code.rs`.

mod candidate;
mod code;

use super::defaults::{self, Defaults};
use super::mistake::Collector;
use super::model::*;
use super::reader::{did_you_mean, one_of, Located};
use super::text::*;
use crate::evidence::PlanSettings;
use crate::identity::{is_part, Identity};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// What a check needs beside the text.
pub struct Context<'c> {
    /// Folder of the file, absolute.
    pub root: &'c Path,
    /// The same folder as the user named it, for messages.
    pub shown_root: &'c Path,
    /// Whether source files must be there; not so where built libraries are carried along.
    pub sources: bool,
    /// Where mistakes go.
    pub mistakes: &'c Collector<'c>,
}

/// Longest `<label>.<code>.<build>`, bytes: file names have at most 255, of which 45 go to the longest
/// ending (`__keygen__prehash-sha256__1000000000000.json`) and 30 to that of a temporary file.
const STEM_MAX: usize = 180;

/// Names that stand for something else: a machine that is not registered, a folder of pages.
const TAKEN_SYSTEMS: [&str; 2] = ["local", "compare"];

/// The checked campaign. `None` only if mistakes were collected.
pub fn campaign(text: CampaignText, sha256: String, c: &Context<'_>) -> Option<Campaign> {
    let defaults = defaults::defaults();
    let systems = systems(&text.systems, c);
    let builds = builds(&text.builds, c);
    let candidates = candidate::candidates(&text.candidates, &builds, &used_archs(&systems), c);
    let mut campaign = Campaign {
        root: c.root.to_owned(),
        sha256,
        report: Report {
            kind: text.report.kind.unwrap_or(defaults.report.kind),
            title: text.report.title.unwrap_or(defaults.report.title.clone()),
            reference: None,
        },
        systems,
        builds,
        candidates,
        plans: BTreeMap::new(),
        study: None,
    };
    let identities = all_identities(&campaign);
    campaign.plans = plans(text.plans, &defaults, &identities, c);
    campaign.study = text
        .study
        .map(|study| message_size(study, &defaults.study, &identities, c));
    campaign.report.reference = reference(text.report.reference, &defaults, &campaign, c);
    c.mistakes.is_empty().then_some(campaign)
}

// ---- helpers ----

impl Context<'_> {
    fn wrong(&self, at: &Located<String>, what: String, expected: &str) {
        self.mistakes
            .add(at.span(), what, Some(expected.to_owned()), None);
    }

    fn wrong_hint(
        &self,
        at: &Located<String>,
        what: String,
        expected: Option<String>,
        hint: Option<String>,
    ) {
        self.mistakes.add(at.span(), what, expected, hint);
    }
}

/// Reports a name that was given before. True for the first of its kind; `kind` is a plural.
fn is_new(
    name: &Located<String>,
    seen: &mut BTreeMap<String, usize>,
    kind: &str,
    c: &Context<'_>,
) -> bool {
    let text = name.get_ref();
    if let Some(first) = seen.get(text) {
        let what = format!("two {kind} are called `{text}`: here and in line {first}");
        c.wrong(name, what, "each name once");
        return false;
    }
    seen.insert(text.clone(), c.mistakes.line(name.span().start));
    true
}

/// Whether a name can be part of an identity and of a file name.
fn is_good_name(name: &Located<String>, what: &str, c: &Context<'_>) -> bool {
    let text = name.get_ref();
    let good = is_part(text) && text.len() <= STEM_MAX && !text.contains(char::is_control);
    if !good {
        let shown: String = text.chars().take(40).collect();
        c.wrong(
            name,
            format!("`{}` cannot be a {what}", shown.escape_debug()),
            &format!(
                "1 to {STEM_MAX} bytes, none of them `/` or a control character, and neither `.` nor `..`"
            ),
        );
    }
    good
}

/// Compiles a regular expression; reports one that is none.
fn regex(text: &Located<String>, c: &Context<'_>) -> Option<regex::Regex> {
    match regex::Regex::new(text.get_ref()) {
        Ok(regex) => Some(regex),
        Err(error) => {
            let error = error.to_string();
            let reason = error.lines().last().unwrap_or_default();
            c.wrong(
                text,
                format!(
                    "`{}` is no regular expression: {}",
                    text.get_ref(),
                    reason.trim_start_matches("error: ")
                ),
                "the syntax of the Rust crate regex, as in \"i7-12700|i9\"",
            );
            None
        }
    }
}

/// Reports a regular expression that matches no identity.
fn matches_some(text: &Located<String>, identities: &[String], c: &Context<'_>) {
    if let Some(regex) = regex(text, c) {
        if !identities.is_empty() && !identities.iter().any(|name| regex.is_match(name)) {
            c.wrong(
                text,
                format!("`{}` matches nothing of this campaign", text.get_ref()),
                "a regular expression over candidate/label/code/build",
            );
        }
    }
}

/// Every identity that exists on some architecture, in page order.
fn all_identities(campaign: &Campaign) -> Vec<String> {
    let all: BTreeSet<Identity> = [Arch::X86_64, Arch::Aarch64]
        .into_iter()
        .flat_map(|arch| campaign.identities(arch))
        .collect();
    all.iter().map(Identity::to_string).collect()
}

// ---- systems and builds ----

fn systems(texts: &[SystemText], c: &Context<'_>) -> Vec<System> {
    let mut seen = BTreeMap::new();
    texts
        .iter()
        .filter_map(|text| {
            if let Some(id) = &text.id {
                system_id(id, &mut seen, c);
            }
            if let Some(model) = &text.cpu_model {
                regex(model, c);
            }
            let cc = text.cc.as_ref();
            if let Some(cc) = cc.filter(|cc| cc.get_ref().trim().is_empty()) {
                c.wrong(cc, "`cc` is empty".to_owned(), r#"cc = "gcc""#);
            }
            runner(text, c);
            Some(System {
                id: text.id.as_ref()?.get_ref().clone(),
                arch: text.arch?,
                cpu_model: text.cpu_model.as_ref()?.get_ref().clone(),
                cc: cc.map_or("gcc", |cc| cc.get_ref()).to_owned(),
                runner: text.runner.as_ref().map(plain).unwrap_or_default(),
                description: text.description.clone(),
            })
        })
        .collect()
}

fn system_id(id: &Located<String>, seen: &mut BTreeMap<String, usize>, c: &Context<'_>) {
    if TAKEN_SYSTEMS.contains(&id.get_ref().as_str()) {
        let what = format!(
            "no system can be called `{}`: the name has a meaning",
            id.get_ref()
        );
        c.wrong(id, what, r#"id = "x86_1""#);
    }
    if is_good_name(id, "system id", c) {
        is_new(id, seen, "systems", c);
    }
}

fn runner(text: &SystemText, c: &Context<'_>) {
    const EXAMPLE: &str =
        r#"runner = ["qemu-aarch64-static", "-cpu", "neoverse-n1"], or no `runner` at all"#;
    let Some(runner) = &text.runner else { return };
    let blank = |word: &&Located<String>| word.get_ref().trim().is_empty();
    if runner.get_ref().is_empty() {
        c.mistakes.add(
            runner.span(),
            "`runner` is empty",
            Some(EXAMPLE.to_owned()),
            None,
        );
    }
    for word in runner.get_ref().iter().filter(blank) {
        c.wrong(word, "a word of `runner` is empty".to_owned(), EXAMPLE);
    }
}

fn used_archs(systems: &[System]) -> BTreeSet<Arch> {
    systems.iter().map(|system| system.arch).collect()
}

fn builds(texts: &[(Located<String>, BuildText)], c: &Context<'_>) -> BTreeMap<String, Build> {
    let mut builds = BTreeMap::new();
    for (name, text) in texts {
        is_good_name(name, "build", c);
        let by_arch = |values: &Option<ByArch<Vec<String>>>| {
            let mut map = BTreeMap::new();
            for arch in [Arch::X86_64, Arch::Aarch64] {
                let value = values.as_ref().and_then(|values| values.get(arch));
                map.extend(value.map(|value| (arch, value.clone())));
            }
            map
        };
        let build = Build {
            name: name.get_ref().clone(),
            cflags: by_arch(&text.cflags),
            requires: by_arch(&text.requires),
        };
        builds.insert(build.name.clone(), build);
    }
    builds
}

// ---- plans, study, report ----

fn plans(
    texts: Vec<(Located<String>, PlanText)>,
    defaults: &Defaults,
    identities: &[String],
    c: &Context<'_>,
) -> BTreeMap<String, PlanSettings> {
    let mut plans = defaults.plans.clone();
    for (name, text) in texts {
        is_good_name(&name, "plan", c);
        for pattern in text.defer.iter().flat_map(|list| list.get_ref()) {
            matches_some(pattern, identities, c);
        }
        let base = base_plan(&name, text.like.as_ref(), defaults, c);
        let plan = defaults::overlay(name.get_ref(), base, &text);
        plans.insert(plan.name.clone(), plan);
    }
    plans
}

/// The plan that a plan starts from: itself, the one that it names, or `quick`.
fn base_plan<'d>(
    name: &Located<String>,
    like: Option<&Located<String>>,
    defaults: &'d Defaults,
    c: &Context<'_>,
) -> &'d PlanSettings {
    let quick = &defaults.plans["quick"];
    match (defaults.plans.get(name.get_ref()), like) {
        (Some(own), None) => own,
        (Some(own), Some(like)) => {
            let what = format!("[plan.{}] has defaults of its own", name.get_ref());
            c.wrong(like, what, "no `like` in this plan");
            own
        }
        (None, None) => quick,
        (None, Some(like)) => defaults.plans.get(like.get_ref()).unwrap_or_else(|| {
            let words = || defaults.plans.keys().map(String::as_str);
            c.wrong_hint(
                like,
                format!("no plan `{}` is built in", like.get_ref()),
                Some(one_of(words())),
                did_you_mean(like.get_ref(), words()),
            );
            quick
        }),
    }
}

fn message_size(
    text: StudyText,
    defaults: &MessageSizeStudy,
    identities: &[String],
    c: &Context<'_>,
) -> MessageSizeStudy {
    for pattern in text.instances.iter().flat_map(|list| list.get_ref()) {
        matches_some(pattern, identities, c);
    }
    let instances = text.instances.as_ref().map(plain);
    MessageSizeStudy {
        instances: instances.unwrap_or(defaults.instances.clone()),
        sizes: text.sizes.unwrap_or(defaults.sizes.clone()),
        full_sizes: text.full_sizes.unwrap_or(defaults.full_sizes.clone()),
        modes: text.modes.unwrap_or(defaults.modes.clone()),
        trials: text.trials.unwrap_or(defaults.trials),
        memory_guard_bytes: text.memory_guard.unwrap_or(defaults.memory_guard_bytes),
        chunk_bytes: text.chunk.unwrap_or(defaults.chunk_bytes),
    }
}

fn reference(
    text: Option<Located<String>>,
    defaults: &Defaults,
    campaign: &Campaign,
    c: &Context<'_>,
) -> Option<Identity> {
    let Some(text) = text else {
        return defaults
            .report
            .reference
            .clone()
            .filter(|identity| campaign.find(identity).is_some());
    };
    let identity: Identity = match text.get_ref().parse() {
        Ok(identity) => identity,
        Err(error) => {
            c.wrong(
                &text,
                error.to_string(),
                r#"reference = "dilithium/dilithium2/clean/reference""#,
            );
            return None;
        }
    };
    let exists = campaign
        .find(&identity)
        .is_some_and(|(_, _, code, _)| code.builds.contains(&identity.build));
    if !exists {
        let all = all_identities(campaign);
        c.wrong_hint(
            &text,
            format!("the reference `{identity}` is not an identity of this campaign"),
            Some("candidate/label/code/build of something below [[candidate]]".to_owned()),
            did_you_mean(text.get_ref(), all.iter().map(String::as_str)),
        );
    }
    Some(identity)
}

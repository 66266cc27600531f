//! Checks of `[[candidate]]`: names, source crates, KAT manifest, wrapped functions, allowed deviations.

use super::{code, is_good_name, is_new, Context};
use crate::config::mistake::Mistake;
use crate::config::model::*;
use crate::config::paths;
use crate::config::reader::{did_you_mean, one_of, Located};
use crate::config::text::*;
use crate::config::words;
use crate::kat::manifest::{self, Manifest, ManifestError};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Names that pages use for themselves.
const TAKEN_CANDIDATES: [&str; 6] = [
    "index",
    "summary",
    "method",
    "sizes",
    "symmetric",
    "study-message-size",
];

pub(super) fn candidates(
    texts: &[CandidateText],
    builds: &BTreeMap<String, Build>,
    archs: &BTreeSet<Arch>,
    c: &Context<'_>,
) -> Vec<Candidate> {
    let mut seen = BTreeMap::new();
    texts
        .iter()
        .filter_map(|text| {
            if let Some(id) = &text.id {
                candidate_id(id, &mut seen, c);
            }
            candidate(text, builds, archs, c)
        })
        .collect()
}

fn candidate_id(id: &Located<String>, seen: &mut BTreeMap<String, usize>, c: &Context<'_>) {
    let name = id.get_ref().as_str();
    if TAKEN_CANDIDATES.contains(&name) || name.starts_with("ranking-") {
        let what = format!("no candidate can be called `{name}`: a page has that name");
        c.wrong(id, what, r#"id = "sign-09""#);
    }
    if is_good_name(id, "candidate id", c) {
        is_new(id, seen, "candidates", c);
    }
}

fn candidate(
    text: &CandidateText,
    builds: &BTreeMap<String, Build>,
    archs: &BTreeSet<Arch>,
    c: &Context<'_>,
) -> Option<Candidate> {
    let crates = source_crates(text, c);
    let kat = kat(text, c);
    let instances = code::instances(text, crates.as_deref(), builds, archs, c);
    Some(Candidate {
        id: text.id.as_ref()?.get_ref().clone(),
        name: text.name.clone()?,
        category: text
            .category
            .clone()
            .unwrap_or_else(|| "public-key algorithm".to_owned()),
        function: text
            .function
            .clone()
            .unwrap_or_else(|| "digital signature".to_owned()),
        origin: text.origin?,
        specification: text.specification.clone(),
        links: text.links.clone(),
        source_crates: text.source_crates.as_ref().map(|p| p.get_ref().into()),
        kat: kat?,
        wrap: wrap(&text.wrap, c),
        kat_issues: kat_issues(text, c),
        instances,
    })
}

/// Names of the crates that a manifest pins. `None` where there is no manifest or it cannot be read.
fn source_crates(text: &CandidateText, c: &Context<'_>) -> Option<Vec<String>> {
    let path = text.source_crates.as_ref()?;
    let manifest = match std::fs::read_to_string(c.root.join(path.get_ref())) {
        Ok(manifest) => manifest,
        // An unpacked campaign has its libraries, and not what they were made of.
        Err(_) if !c.sources => return None,
        Err(error) => {
            let what = format!("`{}` cannot be read: {error}", path.get_ref());
            let hint = paths::explain(c.root, path.get_ref());
            c.wrong_hint(path, what, Some("a Cargo.toml".to_owned()), hint);
            return None;
        }
    };
    let table: Option<toml::Table> = manifest.parse().ok();
    let dependencies = table
        .as_ref()
        .and_then(|t| t.get("dependencies")?.as_table());
    if dependencies.is_none() {
        let what = format!("`{}` has no table [dependencies]", path.get_ref());
        c.wrong(path, what, "a Cargo.toml that names the crates");
    }
    Some(dependencies?.keys().cloned().collect())
}

fn kat(text: &CandidateText, c: &Context<'_>) -> Option<Kat> {
    let path = text.kat_manifest.as_ref()?;
    let manifest = PathBuf::from(path.get_ref());
    match Manifest::read(&c.root.join(&manifest)) {
        Ok(read) => {
            if let Some(flow) = text.kat_flow {
                kat_modes(&read, flow, path, c);
            }
        }
        Err(ManifestError::Read { source, .. }) => {
            let what = format!(
                "the KAT manifest `{}` cannot be read: {source}",
                path.get_ref()
            );
            let hint = paths::explain(c.root, path.get_ref());
            c.wrong_hint(
                path,
                what,
                Some("a KAT manifest, as performance/kat/README.md describes it".to_owned()),
                hint,
            );
        }
        Err(ManifestError::Lines { lines, .. }) => {
            for line in lines {
                let mistake = manifest_mistake(
                    &manifest,
                    line.line,
                    line.column,
                    line.what,
                    line.expected,
                    c,
                );
                c.mistakes.add_foreign(path.span(), mistake);
            }
        }
    }
    Some(Kat {
        flow: text.kat_flow?,
        manifest,
    })
}

/// Reports lines whose mode belongs to the other flow.
fn kat_modes(read: &Manifest, flow: protocol::KatFlow, path: &Located<String>, c: &Context<'_>) {
    for entry in &read.entries {
        if manifest::flow_of(&entry.mode.mode) != Some(flow) {
            let what = format!(
                "the mode `{}` is not one of this candidate's KAT flow",
                entry.mode.mode
            );
            let expected = match flow {
                protocol::KatFlow::Iccs => "`strict` or `nolen`",
                protocol::KatFlow::Nist => "`nistkat`, `rsp` or `all`",
            };
            let mistake =
                manifest_mistake(path.get_ref().as_ref(), entry.line, 1, what, expected, c);
            c.mistakes.add_foreign(path.span(), mistake);
        }
    }
}

fn manifest_mistake(
    manifest: &Path,
    line: usize,
    column: usize,
    what: String,
    expected: &str,
    c: &Context<'_>,
) -> Mistake {
    Mistake {
        file: c.shown_root.join(manifest),
        line,
        column,
        excerpt: String::new(),
        width: 1,
        what,
        expected: Some(expected.to_owned()),
        hint: None,
        absence: false,
    }
}

fn wrap(text: &WrapText, c: &Context<'_>) -> Wrap {
    if let Some(path) = &text.derive {
        if c.sources && !c.root.join(path.get_ref()).is_file() {
            let what = format!("`{}` is no file", path.get_ref());
            let hint = paths::explain(c.root, path.get_ref());
            c.wrong_hint(path, what, Some("a table of prototypes".to_owned()), hint);
        }
        return Wrap::Derived(path.get_ref().into());
    }
    let mut seen = BTreeMap::new();
    let mut functions = Vec::new();
    for (group, symbol) in &text.named {
        if wrap_symbol(symbol, &mut seen, c) {
            functions.push(wrapped(group, symbol.get_ref(), None));
        }
    }
    for function in &text.functions {
        let Some(symbol) = &function.symbol else {
            continue;
        };
        if wrap_symbol(symbol, &mut seen, c) {
            let group = function.group.unwrap_or("other");
            functions.push(wrapped(group, symbol.get_ref(), Some(function)));
        }
    }
    if functions.is_empty() {
        Wrap::None
    } else {
        Wrap::Listed(functions)
    }
}

fn wrap_symbol(
    symbol: &Located<String>,
    seen: &mut BTreeMap<String, usize>,
    c: &Context<'_>,
) -> bool {
    if !words::is_c_name(symbol.get_ref()) {
        let what = format!("`{}` is no name of C", symbol.get_ref());
        c.wrong(symbol, what, r#"the name of a function, as in "pseudoXOF""#);
        return false;
    }
    is_new(symbol, seen, "wrapped functions", c)
}

fn wrapped(group: &str, symbol: &str, text: Option<&WrapFunctionText>) -> WrapFunction {
    let name = if group == "drng" { "drng" } else { symbol };
    let own = |value: fn(&WrapFunctionText) -> &Option<Located<String>>| {
        text.and_then(|text| value(text).as_ref().map(|text| text.get_ref().clone()))
    };
    WrapFunction {
        symbol: symbol.to_owned(),
        group: group.to_owned(),
        name: text
            .and_then(|text| text.name.clone())
            .unwrap_or_else(|| name.to_owned()),
        prototype: own(|text| &text.prototype),
        in_bits: own(|text| &text.in_bits),
        out_bits: own(|text| &text.out_bits),
    }
}

fn kat_issues(text: &CandidateText, c: &Context<'_>) -> Vec<KatIssue> {
    let labels: BTreeSet<&str> = text
        .instances
        .iter()
        .filter_map(|instance| Some(instance.label.as_ref()?.get_ref().as_str()))
        .collect();
    let mut seen = BTreeMap::new();
    text.kat_issues
        .iter()
        .filter_map(|issue| {
            let instance = issue.instance.as_ref()?;
            let label = instance.get_ref();
            if !labels.contains(label.as_str()) {
                c.wrong_hint(
                    instance,
                    format!("`kat_issue` names the instance `{label}`, which the candidate does not have"),
                    Some(one_of(labels.iter().copied())),
                    did_you_mean(label, labels.iter().copied()),
                );
            }
            is_new(instance, &mut seen, "KAT issues", c);
            Some(KatIssue {
                instance: label.clone(),
                result: issue.result?,
                reason: issue.reason.clone()?,
            })
        })
        .collect()
}

//! What two datasets must agree on, whatever the machine: sizes, KAT digests and results, the outputs
//! of the first trial, and the calls of the profile phase.

use super::pair::Pair;
use super::Row;
use crate::dataset::Dataset;
use crate::evidence::{KatEvidence, ProfileEvidence};
use crate::identity::Identity;
use crate::report::format::MISSING;
use crate::report::view::figures::printed;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// A disagreement.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Finding {
    /// About which identity.
    pub identity: Identity,
    /// What disagrees.
    pub what: String,
    /// Value of A.
    pub a: String,
    /// Value of B.
    pub b: String,
}

/// Facts of a kind that both sides have, over all compared identities.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Agreement {
    /// Which kind, in words.
    pub what: Kind,
    /// Identities of which both sides state such facts.
    pub identities: usize,
    /// Facts that both state.
    pub facts: usize,
    /// Those of them that are equal.
    pub equal: usize,
}

/// Kinds of facts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Bytes of keys and signatures.
    Sizes,
    /// Results of known answers.
    KatResults,
    /// Digests of the texts of known answers.
    KatDigests,
    /// Keys and signatures of the first trial.
    Outputs,
    /// Calls of wrapped functions, by operation and key.
    Calls,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 5] = [
        Kind::Sizes,
        Kind::KatResults,
        Kind::KatDigests,
        Kind::Outputs,
        Kind::Calls,
    ];

    /// The word on pages.
    pub fn text(self) -> &'static str {
        match self {
            Kind::Sizes => "sizes of keys and signatures",
            Kind::KatResults => "KAT results",
            Kind::KatDigests => "KAT texts (SHA-256)",
            Kind::Outputs => "first keys and signatures (SHA-256)",
            Kind::Calls => "calls of hash functions and DRNG, by operation and key",
        }
    }
}

/// All disagreements of the compared identities, and how much agrees.
pub(super) fn findings(pair: &Pair, rows: &[Row]) -> (Vec<Finding>, Vec<Agreement>) {
    let mut identities: Vec<&Identity> = rows.iter().map(|row| &row.identity).collect();
    identities.dedup();
    let mut found = Vec::new();
    let mut kinds: BTreeMap<Kind, (BTreeSet<&Identity>, usize, usize)> = BTreeMap::new();
    for identity in identities {
        let (a, b) = (facts(pair.a, identity), facts(pair.b, identity));
        for (key, value) in &a {
            let Some(other) = b.get(key) else { continue };
            let (of, facts, equal) = kinds.entry(key.0).or_default();
            of.insert(identity);
            *facts += 1;
            if other == value {
                *equal += 1;
                continue;
            }
            found.push(Finding {
                identity: identity.clone(),
                what: key.1.clone(),
                a: value.clone(),
                b: other.clone(),
            });
        }
    }
    let agreement =
        |(what, (of, facts, equal)): (Kind, (BTreeSet<&Identity>, usize, usize))| Agreement {
            what,
            identities: of.len(),
            facts,
            equal,
        };
    (found, kinds.into_iter().map(agreement).collect())
}

/// Facts by kind and name.
type Facts = BTreeMap<(Kind, String), String>;

/// What a dataset states of an identity that no machine may change.
fn facts(dataset: &Dataset, identity: &Identity) -> Facts {
    let mut facts = Facts::new();
    let mut add = |kind: Kind, what: &str, value: String| {
        facts.insert((kind, what.to_owned()), value);
    };
    for operation in protocol::Operation::ALL {
        let key = (identity.clone(), operation);
        if let Some(sizes) = dataset.timing.get(&key).and_then(|entry| entry.value.sizes) {
            let bytes = [
                ("public key (bytes)", sizes.public_key_bytes),
                ("secret key (bytes)", sizes.secret_key_bytes),
                ("signature (bytes)", sizes.signature_bytes),
            ];
            for (what, bytes) in bytes {
                add(Kind::Sizes, what, bytes.to_string());
            }
        }
        let calibration = dataset.calibrate.get(&key);
        if let Some(outputs) = calibration.and_then(|entry| entry.value.outputs.as_ref()) {
            let digests = [
                ("first public key (SHA-256)", &outputs.pk),
                ("first secret key (SHA-256)", &outputs.sk),
                ("first signatures (SHA-256)", &outputs.signatures),
            ];
            for (what, digest) in digests {
                add(Kind::Outputs, what, digest.clone());
            }
        }
    }
    add_calls(&mut facts, dataset, identity);
    if let Some(entry) = dataset.kat_of(identity) {
        add_kat(&mut facts, &entry.value);
    }
    add_cells(&mut facts, dataset, identity);
    facts
}

/// Calls of each key's operation. They follow from the inputs, so those are part of the name.
fn add_calls(facts: &mut Facts, dataset: &Dataset, identity: &Identity) {
    let plan = dataset.campaign.plan.as_ref();
    let inputs = plan.map_or("fresh", |plan| plan.inputs.as_str());
    for operation in protocol::Operation::ALL {
        let Some(entry) = dataset.profile.get(&(identity.clone(), operation)) else {
            continue;
        };
        for (index, text) in calls(&entry.value).into_iter().enumerate() {
            let what = format!("calls of {operation}, key {} ({inputs} inputs)", index + 1);
            facts.insert((Kind::Calls, what), text);
        }
    }
}

/// `drng 1, pseudoXOF 140` of each run.
fn calls(profile: &ProfileEvidence) -> Vec<String> {
    let one = |run: &protocol::ProfileRun| {
        let mut parts: Vec<String> = run
            .calls
            .iter()
            .map(|(name, calls)| format!("{name} {calls}"))
            .collect();
        if run.rejected_draws > 0 {
            parts.push(format!("{} draws rejected", run.rejected_draws));
        }
        match parts.is_empty() {
            true => "none".to_owned(),
            false => parts.join(", "),
        }
    };
    profile.runs.iter().map(one).collect()
}

fn add_kat(facts: &mut Facts, kat: &KatEvidence) {
    let result = (Kind::KatResults, "KAT result".to_owned());
    facts.insert(result, kat.result.word().to_owned());
    for digest in &kat.digests {
        if let Some(found) = &digest.found {
            let what = format!("KAT digest {} {}", kat.flow, digest.mode);
            facts.insert((Kind::KatDigests, what), found.clone());
        }
    }
}

/// Sizes and KAT results of published cells. A nominal size or a maximum (`≈666`, `4627 (maximum)`) is
/// not what another page may state exactly of the same signature: it is held against nothing.
fn add_cells(facts: &mut Facts, dataset: &Dataset, identity: &Identity) {
    for (kind, section, title, what) in [
        (Kind::Sizes, "sizes", "public key", "public key (bytes)"),
        (Kind::Sizes, "sizes", "secret key", "secret key (bytes)"),
        (Kind::Sizes, "sizes", "signature", "signature (bytes)"),
        (Kind::KatResults, "kat", "KAT", "KAT result"),
    ] {
        let text = printed(dataset, identity, section, title);
        let exact = |text: &&str| kind != Kind::Sizes || text.parse::<u64>().is_ok();
        if let Some(text) = text.filter(exact).filter(|text| *text != MISSING) {
            facts.insert((kind, what.to_owned()), text.to_owned());
        }
    }
}

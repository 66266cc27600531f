//! What two datasets must agree on, whatever the machine: sizes, KAT digests and results, and the
//! outputs of the first trial.

use super::pair::Pair;
use super::Row;
use crate::dataset::Dataset;
use crate::evidence::{KatEvidence, LibraryKind};
use crate::identity::Identity;
use serde::Serialize;
use std::collections::BTreeMap;

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

/// All disagreements of the compared identities.
pub(super) fn findings(pair: &Pair, rows: &[Row]) -> Vec<Finding> {
    let mut identities: Vec<&Identity> = rows.iter().map(|row| &row.identity).collect();
    identities.dedup();
    let mut found = Vec::new();
    for identity in identities {
        let (a, b) = (facts(pair.a, identity), facts(pair.b, identity));
        for (what, value) in &a {
            match b.get(what) {
                Some(other) if other != value => found.push(Finding {
                    identity: identity.clone(),
                    what: what.clone(),
                    a: value.clone(),
                    b: other.clone(),
                }),
                _ => {}
            }
        }
    }
    found
}

/// What a dataset states of an identity that no machine may change.
fn facts(dataset: &Dataset, identity: &Identity) -> BTreeMap<String, String> {
    let mut facts = BTreeMap::new();
    for operation in protocol::Operation::ALL {
        let key = (identity.clone(), operation);
        if let Some(sizes) = dataset.timing.get(&key).and_then(|entry| entry.value.sizes) {
            facts.insert(
                "public key (bytes)".into(),
                sizes.public_key_bytes.to_string(),
            );
            facts.insert(
                "secret key (bytes)".into(),
                sizes.secret_key_bytes.to_string(),
            );
            facts.insert(
                "signature (bytes)".into(),
                sizes.signature_bytes.to_string(),
            );
        }
        let calibration = dataset.calibrate.get(&key);
        if let Some(outputs) = calibration.and_then(|entry| entry.value.outputs.as_ref()) {
            facts.insert("first public key (SHA-256)".into(), outputs.pk.clone());
            facts.insert("first secret key (SHA-256)".into(), outputs.sk.clone());
            facts.insert(
                "first signatures (SHA-256)".into(),
                outputs.signatures.clone(),
            );
        }
    }
    if let Some(entry) = dataset.kat.get(&(identity.clone(), LibraryKind::Timed)) {
        add_kat(&mut facts, &entry.value);
    }
    add_cells(&mut facts, dataset, identity);
    facts
}

fn add_kat(facts: &mut BTreeMap<String, String>, kat: &KatEvidence) {
    facts.insert("KAT result".into(), kat.result.word().to_owned());
    for digest in &kat.digests {
        if let Some(found) = &digest.found {
            facts.insert(
                format!("KAT digest {} {}", kat.flow, digest.mode),
                found.clone(),
            );
        }
    }
}

/// Sizes and KAT results of published cells.
fn add_cells(facts: &mut BTreeMap<String, String>, dataset: &Dataset, identity: &Identity) {
    let Some(cells) = dataset.cells.as_ref().map(|entry| &entry.value) else {
        return;
    };
    let cell = |section: &str, title: &str| {
        let table = cells.table(section)?;
        let instance = table.column("instance")?;
        let row = table.rows.iter().find(|row| {
            row.get(instance)
                .is_some_and(|cell| cell.text == identity.label)
        })?;
        Some(row.get(table.column(title)?)?.text.clone())
    };
    for (section, title, what) in [
        ("sizes", "public key", "public key (bytes)"),
        ("sizes", "secret key", "secret key (bytes)"),
        ("sizes", "signature", "signature (bytes)"),
        ("kat", "KAT", "KAT result"),
    ] {
        if let Some(text) = cell(section, title) {
            facts.insert(what.to_owned(), text);
        }
    }
}

//! The public campaign's format: one file of an otherwise sound import is anything. Reading and checking
//! never panic, and neither does deriving records from what was found sound.
#![no_main]

use harness::import::{derive, read, Context};
use libfuzzer_sys::fuzz_target;
use std::collections::BTreeMap;
use std::sync::LazyLock;

static SOUND: LazyLock<BTreeMap<String, Vec<u8>>> = LazyLock::new(evidence_fuzz::public_evidence);

fn seeds() {
    evidence_fuzz::seed(SOUND.values().cloned());
}

/// Which file these bytes stand for, by a key that it alone has.
fn place(bytes: &[u8]) -> &'static String {
    let text = String::from_utf8_lossy(bytes);
    let kinds = [
        ("\"processes\"", "records/"),
        ("\"tick_source\"", "profile/"),
        ("\"instances\"", "build.json"),
        ("\"system_id\"", "campaign.json"),
        ("", "kat/"),
    ];
    let (_, begin) = kinds
        .iter()
        .find(|(key, _)| text.contains(key))
        .expect("the last fits all");
    SOUND
        .keys()
        .find(|path| path.starts_with(begin))
        .expect("every kind is there")
}

fn context() -> Context {
    Context {
        system_description: None,
        report_kind: "independent".to_owned(),
        title: String::new(),
        reference_instance: None,
        candidates: Vec::new(),
        dropped: BTreeMap::new(),
    }
}

fuzz_target!(init: seeds(), |bytes: &[u8]| {
    let mut files = SOUND.clone();
    files.insert(place(bytes).clone(), bytes.to_vec());
    let (evidence, findings) = read::read_memory(&files);
    if let Some(evidence) = evidence {
        let derived = derive::files(&evidence, &context());
        assert!(derived.is_ok() || !findings.is_empty(), "what is sound can be derived");
    }
});

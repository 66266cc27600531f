//! The two readers of `journal.jsonl`: whatever the auditor accepts is sealed and whole for the other too.
//!
//! A search cannot find the SHA-256 of a line, so each input is tried twice: as it is, and with numbers
//! and digests put right, as a forger would.
#![no_main]

use harness::audit;
use harness::evidence::journal::{self, verify_from, JournalLine, JOURNAL};
use libfuzzer_sys::fuzz_target;
use std::path::Path;

fn seeds() {
    let files = evidence_fuzz::evidence();
    let journals = files
        .into_iter()
        .filter(|(path, _)| path.ends_with(JOURNAL));
    // Short ones: what differs is in the first lines and in the last.
    let short = journals.map(|(_, bytes)| {
        let text = String::from_utf8(bytes).expect("a journal");
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        let kept = lines.iter().take(12).chain(lines.last());
        kept.copied().collect::<String>().into_bytes()
    });
    evidence_fuzz::seed(short);
}

fn agree(bytes: &[u8]) {
    let findings = audit::journal(bytes);
    let chain = verify_from(Path::new(JOURNAL), bytes);
    if findings.is_empty() {
        let chain = chain.expect("what an auditor accepts can be read");
        assert!(chain.sealed().is_some() && chain.torn.is_none());
    }
}

/// The lines that can be read, chained anew.
fn forged(bytes: &[u8]) -> Vec<u8> {
    let (mut text, mut prev) = (String::new(), journal::NO_LINE.to_owned());
    let lines = bytes.split(|&b| b == b'\n');
    let read = lines.filter_map(|line| serde_json::from_slice::<JournalLine>(line).ok());
    for (seq, line) in (0..).zip(read) {
        let line = JournalLine { seq, prev, ..line };
        let json = serde_json::to_string(&line).expect("a line has text keys only");
        prev = harness::hash::sha256(json.as_bytes());
        text += &json;
        text.push('\n');
    }
    text.into_bytes()
}

fuzz_target!(init: seeds(), |bytes: &[u8]| {
    agree(bytes);
    agree(&forged(bytes));
});

//! The two readers of `MANIFEST.sha256`, the auditor's and the publisher's, agree on every text.
#![no_main]

use harness::audit;
use harness::evidence::seal::{self, MANIFEST};
use libfuzzer_sys::fuzz_target;

fn seeds() {
    let files = evidence_fuzz::evidence();
    let manifests = files
        .into_iter()
        .filter(|(path, _)| path.ends_with(MANIFEST));
    evidence_fuzz::seed(manifests.map(|(_, bytes)| bytes));
}

fuzz_target!(init: seeds(), |bytes: &[u8]| {
    let (audited, findings) = audit::manifest(bytes);
    let read = std::str::from_utf8(bytes).ok().map(seal::parse_manifest);
    match read {
        Some(Ok(entries)) => {
            assert_eq!(findings, [], "the auditor accepts what is published");
            let pairs = entries.into_iter().map(|entry| (entry.path, entry.sha256));
            assert_eq!(pairs.collect::<Vec<_>>(), audited.into_iter().collect::<Vec<_>>());
        }
        Some(Err(_)) => assert_ne!(findings, [], "the auditor refuses what cannot be published"),
        None => assert_ne!(findings, [], "a manifest is UTF-8"),
    }
});

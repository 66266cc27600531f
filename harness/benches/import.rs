//! `campaign import` of evidence of the public campaign's size, in its format: copies of its evidence for
//! DOVE on arm_1 under other names. The goal is that of `audit`.

mod support;

use criterion::{criterion_group, criterion_main, Criterion};
use harness::config::{self, Sources};
use harness::import::dataset::import;
use harness::testing::sealed;
use std::path::Path;

/// Instances of the public campaign, rounded up to three records each.
const INSTANCES: usize = 2746usize.div_ceil(3);
const CANDIDATES: usize = 119;

fn bench(criterion: &mut Criterion) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/arm_1");
    for (factor, what) in support::SIZES {
        let (_home, root) = support::root();
        let evidence = root.join("evidence");
        sealed::copies(&source, &evidence, INSTANCES * factor, CANDIDATES)
            .expect("evidence on disk");
        support::print(
            what,
            &root,
            &["import", "--quiet", "evidence", "--system", "arm_1"],
            Some("performance"),
        );
        if factor == 1 {
            let config = config::load(&root.join("campaign.toml"), Sources::Absent)
                .expect("a configuration");
            support::time(criterion, "import", || {
                import(&config, &evidence, "arm_1", None, false).expect("the evidence is sound");
            });
        }
    }
}

criterion_group!(benches, bench);
criterion_main!(benches);

//! All pages of a dataset of the public campaign's size: Markdown, HTML and charts, read from disk and
//! written to disk. Goal: below 2.0 s and 200 MB on two cores; ten times the dataset below 20 s.
//!
//! The dataset is made up (119 candidates, 2748 records with all phases). Every round renders into an
//! empty folder.

mod support;

use criterion::{criterion_group, criterion_main, Criterion};
use harness::report::render_run;
use harness::testing::{self, Synthetic};

fn bench(criterion: &mut Criterion) {
    for (factor, what) in support::SIZES {
        let (_home, root) = support::root();
        let run = root.join("run");
        testing::write(&Synthetic::public_campaign(factor).build(), &run).expect("a run on disk");
        support::print(
            what,
            &root,
            &["report", "--quiet", "run"],
            Some("run/pages"),
        );
        if factor == 1 {
            support::time(criterion, "pages", || {
                let out = tempfile::tempdir().expect("a temporary folder");
                render_run(&run, out.path()).expect("pages");
            });
        }
    }
}

criterion_group!(benches, bench);
criterion_main!(benches);

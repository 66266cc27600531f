//! `campaign publish` of a sealed run of the public campaign's size, all phases: every file checked
//! against its digest and for names of the machine, copied, and put in place of the dataset that is there.
//! The goal is that of `audit`.

mod support;

use criterion::{criterion_group, criterion_main, Criterion};
use harness::publish::{publish, Request};
use harness::testing::{sealed, Synthetic};
use std::collections::BTreeSet;

fn bench(criterion: &mut Criterion) {
    let names = BTreeSet::new();
    for (factor, what) in support::SIZES {
        let (_home, root) = support::root();
        let run = root.join("runs/x86_1-guide-1");
        sealed::write(&Synthetic::public_campaign(factor), &run).expect("a run on disk");
        support::print(
            what,
            &root,
            &["publish", "--quiet", "runs/x86_1-guide-1"],
            Some("performance"),
        );
        let request = Request {
            root: &root,
            run: &run,
            id: None,
            current: false,
            partial: None,
            allow_unfixed_host: false,
            names: &names,
        };
        if factor == 1 {
            support::time(criterion, "publish", || {
                publish(&request).expect("it can be published");
            });
        }
    }
}

criterion_group!(benches, bench);
criterion_main!(benches);

//! `campaign audit` of a sealed dataset of the public campaign's size, all phases. Goal: below 1.0 s and
//! 150 MB on two cores, pages apart; ten times the dataset below 10 s.

mod support;

use criterion::{criterion_group, criterion_main, Criterion};
use harness::audit::audit;
use harness::testing::{sealed, Synthetic};

fn bench(criterion: &mut Criterion) {
    for (factor, what) in support::SIZES {
        let (_home, root) = support::root();
        let dataset = root.join("x86_1-guide-1");
        sealed::write(&Synthetic::public_campaign(factor), &dataset).expect("a dataset on disk");
        support::print(what, &root, &["audit", "--quiet", "x86_1-guide-1"], None);
        if factor == 1 {
            support::time(criterion, "audit", || {
                assert!(!audit(&dataset).is_refuted(), "the dataset is sound");
            });
        }
    }
}

criterion_group!(benches, bench);
criterion_main!(benches);

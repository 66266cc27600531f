//! All pages of a dataset of the public campaign's size: Markdown, HTML and charts, read from disk
//! and written to disk. Goal: below 2.0 s and 200 MB on two cores; ten times the dataset below 20 s.
//!
//! The dataset is made up (119 candidates, 2748 records with all phases). Peak memory is that of a
//! `campaign report` process of its own, printed before the timings.

use criterion::{criterion_group, criterion_main, Criterion};
use harness::report::render_run;
use harness::testing::{self, Synthetic};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

fn pages(criterion: &mut Criterion) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let run = folder.path().join("run");
    testing::write(&Synthetic::public_campaign(1).build(), &run).expect("a dataset on disk");
    print_peak("119 candidates, 2748 records", &run);
    let mut group = criterion.benchmark_group("pages");
    group
        .sample_size(10)
        .measurement_time(Duration::from_secs(25));
    group.bench_function("public campaign", |bencher| {
        bencher.iter_custom(|rounds| {
            let mut total = Duration::ZERO;
            for _ in 0..rounds {
                let out = tempfile::tempdir().expect("a temporary folder");
                let start = Instant::now();
                render_run(&run, out.path()).expect("pages");
                total += start.elapsed();
            }
            total
        });
    });
    group.finish();
    let tenfold = folder.path().join("tenfold");
    testing::write(&Synthetic::public_campaign(10).build(), &tenfold).expect("a dataset on disk");
    print_peak("ten times that", &tenfold);
}

/// Time and peak memory of `campaign report` as a process.
fn print_peak(what: &str, run: &Path) {
    let start = Instant::now();
    let status = Command::new(env!("CARGO_BIN_EXE_campaign"))
        .args(["report", "--quiet"])
        .arg(run)
        .status()
        .expect("campaign runs");
    assert!(status.success());
    let elapsed = start.elapsed().as_secs_f64();
    let usage = nix::sys::resource::getrusage(nix::sys::resource::UsageWho::RUSAGE_CHILDREN)
        .expect("usage of children");
    // Linux counts in KiB; the largest child so far is this one, since each is larger than the last.
    println!(
        "{what}: {elapsed:.2} s, peak {} MB",
        usage.max_rss() * 1024 / 1_000_000
    );
}

criterion_group!(benches, pages);
criterion_main!(benches);

//! What isolation costs a worker, and that it does not move the timing.
//!
//! `install` is the time of the layers themselves, by a clock inside the child; `process` the whole
//! life of a child with and without them, so that what the kernel does at its end counts too; `call`
//! the time of one call in the timing loop with and without them, to be compared with each other.

use criterion::{criterion_group, criterion_main, BatchSize, Criterion};
use protocol::Isolation;
use std::hint::black_box;
use std::time::{Duration, Instant};
use worker::counters::contained;
use worker::isolation::install;
use worker::timing::{run, settle, LoopPlan, MonotonicRaw};

const LIMIT: Duration = Duration::from_secs(60);

const ALL: Isolation = Isolation {
    drop_privileges: true,
    landlock: true,
    seccomp: true,
    namespaces: true,
    address_space_bytes: Some(8 << 30),
    cpu_seconds: Some(600),
    file_bytes: Some(1 << 20),
};

/// Nanoseconds of `work` in a child of its own.
fn in_child(work: impl FnOnce() -> Duration) -> Duration {
    let nanoseconds = contained(LIMIT, || work().as_nanos() as u64).expect("the child ends");
    Duration::from_nanos(nanoseconds)
}

fn layers(criterion: &mut Criterion) {
    let one = |wanted: Isolation| {
        in_child(|| {
            let start = Instant::now();
            black_box(install(&wanted, &[]));
            start.elapsed()
        })
    };
    let cases = [
        ("all", ALL),
        (
            "namespaces",
            Isolation {
                namespaces: true,
                ..Isolation::NONE
            },
        ),
        (
            "landlock",
            Isolation {
                landlock: true,
                ..Isolation::NONE
            },
        ),
        (
            "seccomp",
            Isolation {
                seccomp: true,
                ..Isolation::NONE
            },
        ),
        (
            "privileges",
            Isolation {
                drop_privileges: true,
                ..Isolation::NONE
            },
        ),
    ];
    let mut group = criterion.benchmark_group("install");
    for (name, wanted) in cases {
        group.bench_function(name, |bencher| {
            bencher.iter_custom(|rounds| (0..rounds).map(|_| one(wanted.clone())).sum())
        });
    }
    group.finish();
}

fn processes(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("process");
    for (name, wanted) in [("bare", Isolation::NONE), ("isolated", ALL)] {
        group.bench_function(name, |bencher| {
            bencher.iter_batched(
                || (),
                |()| contained(LIMIT, || install(&wanted, &[]).len()).expect("the child ends"),
                BatchSize::PerIteration,
            )
        });
    }
    group.finish();
}

/// Some 2 µs of integer work that touches memory, as candidates do.
fn operation(table: &mut [u64; 512]) -> i32 {
    for index in 0..table.len() {
        let other = table[(index * 7 + 1) % table.len()];
        table[index] = table[index]
            .rotate_left(7)
            .wrapping_mul(0x9E37_79B9_7F4A_7C15)
            ^ other;
    }
    0
}

fn calls(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("call");
    for (name, wanted) in [("bare", Isolation::NONE), ("isolated", ALL)] {
        group.bench_function(name, |bencher| {
            bencher.iter_custom(|rounds| {
                in_child(|| {
                    install(&wanted, &[]);
                    let plan = LoopPlan {
                        calls: rounds,
                        batch: 16,
                    };
                    let mut readings = vec![0; plan.readings()];
                    let mut table = [1; 512];
                    let done = run(plan, &mut MonotonicRaw, &mut readings, |_| {
                        operation(&mut table)
                    });
                    done.expect("the operation returns 0");
                    black_box(&table);
                    Duration::from_nanos(
                        settle(plan, &readings).expect("time moves on").nanoseconds,
                    )
                })
            })
        });
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(30).measurement_time(Duration::from_secs(3));
    targets = layers, processes, calls
}
criterion_main!(benches);

//! What isolation costs a worker, and that it does not move the timing.
//!
//! `install` is the time of the layers themselves, by a clock inside the child; `process` the whole
//! life of a child with and without them, so that what the kernel does at its end counts too; `call`
//! the time of one call in the timing loop with and without them. The last two lines compare these
//! in turns, beside bare with bare.

use criterion::{criterion_group, criterion_main, BatchSize, Criterion};
use protocol::Isolation;
use std::hint::black_box;
use std::time::{Duration, Instant};
use worker::counters::contained;
use worker::isolation::install;
use worker::timing::{run, settle, LoopPlan, MonotonicRaw, Settled};

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

/// What the timing loop says of `calls` calls in a child under `wanted`.
fn timed(wanted: &Isolation, calls: u64, figure: impl FnOnce(Settled) -> u64) -> Duration {
    in_child(|| {
        install(wanted, &[]);
        let plan = LoopPlan { calls, batch: 16 };
        let mut readings = vec![0; plan.readings()];
        let mut table = [1; 512];
        let done = run(plan, &mut MonotonicRaw, &mut readings, |_| {
            operation(&mut table)
        });
        done.expect("the operation returns 0");
        black_box(&table);
        Duration::from_nanos(figure(settle(plan, &readings).expect("time moves on")))
    })
}

fn calls(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("call");
    for (name, wanted) in [("bare", Isolation::NONE), ("isolated", ALL)] {
        group.bench_function(name, |bencher| {
            bencher.iter_custom(|rounds| timed(&wanted, rounds, |all| all.nanoseconds))
        });
    }
    group.finish();
    compare();
}

/// The comparison that counts: the kinds take turns, so that a drift of the machine hits all alike,
/// and a second bare one shows what the machine itself makes of equal code. The median of the samples
/// leaves out those that an interruption fell into.
fn compare() {
    const ROUNDS: usize = 101;
    const CALLS: u64 = 512 * 16;
    let median = |mut all: Settled| {
        all.samples.sort_unstable();
        all.samples[all.samples.len() / 2]
    };
    let [mut isolated, mut again] = [Vec::new(), Vec::new()];
    for _ in 0..ROUNDS {
        let [bare, layers, bare_again] = [Isolation::NONE, ALL, Isolation::NONE]
            .map(|wanted| timed(&wanted, CALLS, median).as_secs_f64());
        isolated.push(layers / bare);
        again.push(bare_again / bare);
    }
    for (name, mut ratios) in [("isolated / bare", isolated), ("bare / bare", again)] {
        ratios.sort_by(f64::total_cmp);
        let at = |share: usize| (ratios[ROUNDS * share / 100] - 1.0) * 100.0;
        println!(
            "{name}: median {:+.2}%, middle half {:+.2}% to {:+.2}% ({ROUNDS} rounds of {CALLS} calls)",
            at(50),
            at(25),
            at(75)
        );
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(30).measurement_time(Duration::from_secs(3));
    targets = layers, processes, calls
}
criterion_main!(benches);

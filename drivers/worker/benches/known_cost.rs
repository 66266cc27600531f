//! The timing loop against operations of known cost.
//!
//! Call number i of a small C library returns when the clock reaches start + i × cost, so that a call
//! that overshoots shortens the next one, and the mean is the cost by construction. What the loop
//! reports for 100 ns, 1 µs, 10 µs and 1 ms is Criterion's measurement; the last line of each case
//! sets it beside the truth, and should stay below 1% from 1 µs up.

use criterion::{criterion_group, criterion_main, Criterion};
use std::cell::Cell;
use std::time::Duration;
use worker::timing::{batch, clock_step_ns, overhead, run, settle, LoopPlan, MonotonicRaw};

#[path = "../tests/support/mod.rs"]
mod support;

const SOURCE: &str = r#"
#define _GNU_SOURCE
#include <time.h>
static unsigned long long start, cost, calls;
static unsigned long long now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC_RAW, &t);
    return (unsigned long long)t.tv_sec * 1000000000u + (unsigned long long)t.tv_nsec;
}
void spin_start(unsigned long long nanoseconds) { cost = nanoseconds; calls = 0; start = now(); }
int spin(void)
{
    unsigned long long end = start + ++calls * cost;
    while (now() < end) { }
    return 0;
}
"#;

/// Reported nanoseconds of `calls` calls of `cost_ns` each.
fn reported(library: &libloading::Library, cost_ns: u64, calls: u64) -> u64 {
    let read = overhead(10_000).clock_read_ps;
    let plan = LoopPlan {
        calls,
        batch: batch(read, clock_step_ns(), cost_ns),
    };
    let mut readings = vec![0; plan.readings()];
    // SAFETY: both symbols are of the source above, with these types.
    let (begin, spin) = unsafe {
        (
            library
                .get::<unsafe extern "C" fn(u64)>(b"spin_start")
                .expect("defined above"),
            library
                .get::<unsafe extern "C" fn() -> i32>(b"spin")
                .expect("defined above"),
        )
    };
    // SAFETY: the functions touch their own static variables only, and one thread calls them.
    unsafe { begin(cost_ns) };
    let done = run(plan, &mut MonotonicRaw, &mut readings, |_| unsafe {
        spin()
    });
    done.expect("the operation returns 0");
    settle(plan, &readings).expect("time moves on").nanoseconds
}

fn known_costs(criterion: &mut Criterion) {
    let folder = tempfile::tempdir().expect("a folder for the library");
    let Some(path) = support::library(folder.path(), "spin.so", SOURCE, &[]) else {
        return;
    };
    // SAFETY: a library of ours, without constructors.
    let library = unsafe { libloading::Library::new(path) }.expect("it was just made");
    let mut group = criterion.benchmark_group("reported");
    for (name, cost_ns) in [
        ("100 ns", 100),
        ("1 us", 1_000),
        ("10 us", 10_000),
        ("1 ms", 1_000_000),
    ] {
        let (total, calls) = (Cell::new(0), Cell::new(0));
        group.bench_function(name, |bencher| {
            bencher.iter_custom(|rounds| {
                let nanoseconds = reported(&library, cost_ns, rounds);
                total.set(total.get() + nanoseconds);
                calls.set(calls.get() + rounds);
                Duration::from_nanos(nanoseconds)
            })
        });
        let mean = total.get() as f64 / calls.get().max(1) as f64;
        let deviation = (mean / cost_ns as f64 - 1.0) * 100.0;
        println!("{name}: reported {mean:.3} ns a call, known {cost_ns} ns: {deviation:+.3}%");
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(20).measurement_time(Duration::from_secs(3));
    targets = known_costs
}
criterion_main!(benches);

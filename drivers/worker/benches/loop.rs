//! Cost of the timing loop around an empty operation, against calling it directly (goal: below 5 ns
//! a call more). The operation is a C-ABI function behind a pointer, as a library's is.

use criterion::{criterion_group, criterion_main, Criterion, Throughput};
use std::hint::black_box;
use worker::timing::{run, LoopPlan, MonotonicRaw};

const CALLS: u64 = 10_000;

extern "C" fn nothing(a: *mut u8, b: u64, c: *mut u8, d: u64) -> i32 {
    black_box((a, b, c, d));
    0
}

fn compare(criterion: &mut Criterion) {
    let operation: extern "C" fn(*mut u8, u64, *mut u8, u64) -> i32 = black_box(nothing);
    let call = |number: u64| operation(std::ptr::null_mut(), number, std::ptr::null_mut(), 64);
    let mut group = criterion.benchmark_group("loop");
    group.throughput(Throughput::Elements(CALLS));
    group.bench_function("direct", |bencher| {
        bencher.iter(|| (0..CALLS).map(call).fold(0, |a, b| a | b))
    });
    for batch in [1, 16, 256, CALLS] {
        let plan = LoopPlan {
            calls: CALLS,
            batch,
        };
        let mut readings = vec![0; plan.readings()];
        group.bench_function(format!("timed, batches of {batch}"), |bencher| {
            bencher.iter(|| run(plan, &mut MonotonicRaw, &mut readings, call))
        });
    }
    group.finish();
}

criterion_group!(benches, compare);
criterion_main!(benches);

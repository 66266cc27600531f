//! Throughput of the KAT text: bytes to upper-case hex, canonical form, SHA-256; in bytes of text a
//! second (goal: above 1000 MB/s on a CPU with SHA extensions).

use criterion::{criterion_group, criterion_main, Criterion, Throughput};
use protocol::{KatFlow, KatMode};
use worker::kat::streams::Streams;

/// A public key of the size of the largest DOVE set.
const KEY_BYTES: usize = 22_833_052;

fn hash(criterion: &mut Criterion) {
    let key: Vec<u8> = (0..KEY_BYTES).map(|i| (i * 131) as u8).collect();
    let mut group = criterion.benchmark_group("kat_hash");
    group.sample_size(20);
    group.throughput(Throughput::Bytes(2 * KEY_BYTES as u64));
    let cases = [
        (KatFlow::Iccs, "strict"),
        (KatFlow::Iccs, "nolen"),
        (KatFlow::Nist, "rsp"),
    ];
    for (flow, word) in cases {
        let mode = KatMode {
            mode: word.into(),
            first: None,
        };
        group.bench_function(word, |bencher| {
            let modes = std::slice::from_ref(&mode);
            let mut streams = Streams::new(flow, "bench", modes, None).expect("modes of the flow");
            streams.begin();
            bencher.iter(|| streams.hex("PK", &[&key]).expect("nothing is written"));
        });
    }
    group.finish();
}

criterion_group!(benches, hash);
criterion_main!(benches);

//! A/A pairs: the same library timed twice in one run, a hundred times. The 95% interval of the ratio
//! of both records should hold 1 in about 95 of them; at least 88 are asked for.
//!
//! Each pair is a campaign of its own, by the program itself: two records of 5 trials, interleaved,
//! a fresh worker each.

use harness::evidence::TimingRecord;
use harness::stats::welch;
use std::path::Path;

#[path = "../tests/support/mod.rs"]
mod support;

use support::lab::{Lab, FINE};

const PAIRS: u32 = 100;

fn main() {
    let lab = Lab::new(&[FINE], "");
    let file = lab.path("campaign.toml");
    let text = std::fs::read_to_string(&file).expect("it was just written");
    let text = text
        .replace("trials = 3", "trials = 5")
        .replace("target_s = 0.002", "target_s = 0.05");
    std::fs::write(&file, text).expect("a file of ours");
    let (mut covered, mut floors) = (0, Vec::new());
    for k in 1..=PAIRS {
        lab.campaign(&["run", "--new", "--only", "/verify$"])
            .expect(0);
        let records = lab.run_dir(k).join("records/lab");
        let a = means(&records.join("lab-1.ref.reference__verify.json"));
        let b = means(&records.join("lab-1.ref.reference__verify.aa.json"));
        let test = welch(&a, &b).expect("5 trials a side");
        covered += u32::from(test.low <= 1.0 && 1.0 <= test.high);
        floors.push(libm::log(test.low).abs().max(libm::log(test.high).abs()));
    }
    floors.sort_by(f64::total_cmp);
    println!("the 95% interval holds 1 in {covered} of {PAIRS} pairs");
    println!(
        "noise floor of a pair: median {:.3}%, 90th of 100 {:.3}%",
        libm::expm1(floors[floors.len() / 2]) * 100.0,
        libm::expm1(floors[floors.len() * 9 / 10]) * 100.0
    );
}

/// Seconds per call of the counted attempts.
fn means(path: &Path) -> Vec<f64> {
    let text = std::fs::read(path).expect("the record is there");
    let record: TimingRecord = serde_json::from_slice(&text).expect("a record");
    let counted = record.trials.iter().filter_map(|t| t.counted_attempt());
    let means: Vec<f64> = counted.map(|a| a.mean_s()).collect();
    assert_eq!(means.len(), 5, "{}", path.display());
    means
}

//! Common to the benches: `campaign` as a process of its own, with what it cost.
#![allow(dead_code)] // not every bench needs everything

use criterion::Criterion;
use nix::sys::resource::{getrusage, Usage, UsageWho};
use nix::sys::time::TimeValLike;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// What a process cost.
#[derive(Debug, Clone, Copy)]
pub struct Cost {
    /// Real time, seconds.
    pub wall_s: f64,
    /// CPU time of all its threads in user mode, seconds.
    pub user_s: f64,
    /// CPU time in the kernel, seconds.
    pub system_s: f64,
    /// Most memory that this or any process before it had, MB.
    pub peak_mb: i64,
}

/// Runs `campaign`, which must succeed. The peak is the largest of all children so far: run what is
/// small first.
pub fn campaign<S: AsRef<OsStr>>(folder: &Path, words: &[S]) -> Cost {
    let before = children();
    let start = Instant::now();
    let status = Command::new(env!("CARGO_BIN_EXE_campaign"))
        .args(words)
        .current_dir(folder)
        .stdout(Stdio::null())
        .status()
        .expect("campaign runs");
    let wall_s = start.elapsed().as_secs_f64();
    assert!(status.success(), "{status}");
    let after = children();
    let seconds = |of: fn(&Usage) -> i64| (of(&after) - of(&before)) as f64 / 1e6;
    Cost {
        wall_s,
        user_s: seconds(|u| u.user_time().num_microseconds()),
        system_s: seconds(|u| u.system_time().num_microseconds()),
        // Linux counts in KiB.
        peak_mb: after.max_rss() * 1024 / 1_000_000,
    }
}

fn children() -> Usage {
    getrusage(UsageWho::RUSAGE_CHILDREN).expect("usage of children")
}

/// Runs `campaign` five times, each time without what it makes (a folder), and prints the least times, the
/// peak, and the load of the machine, which says whether real time can be believed.
pub fn print<S: AsRef<OsStr>>(what: &str, folder: &Path, words: &[S], makes: Option<&str>) {
    const ROUNDS: usize = 5;
    let round = |_| {
        let made = makes
            .map(|made| folder.join(made))
            .filter(|made| made.exists());
        if let Some(made) = made {
            std::fs::remove_dir_all(made).expect("the last round's work is removed");
        }
        campaign(folder, words)
    };
    let costs: Vec<Cost> = (0..ROUNDS).map(round).collect();
    let least = |of: fn(&Cost) -> f64| costs.iter().map(of).fold(f64::INFINITY, f64::min);
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    println!(
        "{what}: {:.2} s real, {:.2} s user, {:.2} s system, peak {} MB (least of {ROUNDS}; load {})",
        least(|c| c.wall_s),
        least(|c| c.user_s),
        least(|c| c.system_s),
        costs[ROUNDS - 1].peak_mb,
        load.split(' ').next().unwrap_or_default(),
    );
}

/// Sizes of a dataset, as multiples of the public campaign's.
pub const SIZES: [(usize, &str); 2] = [(1, "119 candidates, 2748 records"), (10, "ten times that")];

/// A folder with a configuration that names the systems and nothing else.
pub fn root() -> (tempfile::TempDir, PathBuf) {
    let home = tempfile::tempdir().expect("a temporary folder");
    let text = "[[system]]\nid = \"x86_1\"\narch = \"x86_64\"\ncpu_model = \"i7-12700\"\n\n\
                [[system]]\nid = \"arm_1\"\narch = \"aarch64\"\ncpu_model = \"Oryon\"\n";
    std::fs::write(home.path().join("campaign.toml"), text).expect("a configuration on disk");
    let path = home.path().to_owned();
    (home, path)
}

/// Times one call of the library by criterion.
pub fn time(criterion: &mut Criterion, name: &str, mut once: impl FnMut()) {
    let mut group = criterion.benchmark_group(name);
    group
        .sample_size(10)
        .measurement_time(Duration::from_secs(15));
    group.bench_function(SIZES[0].1, |bencher| bencher.iter(&mut once));
    group.finish();
}

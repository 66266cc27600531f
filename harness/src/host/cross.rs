//! The tools for a system of another architecture: its compiler, its runner, its worker.
//!
//! Nothing is timed there, so the state of this machine does not matter.

use crate::config::{Arch, System};
use crate::evidence::{Finding, FindingState};
use crate::process::{self, Command, End, Stop};
use std::path::Path;
use std::time::Duration;

/// Time limit of a question to a tool.
const LIMIT: Duration = Duration::from_secs(60);
/// The script that sets the Rust toolchain up, in the checkout.
const SCRIPT: &str = "scripts/cross-toolchain.sh";

/// One finding a tool; all of them matter. `has_worker`: a worker was named with `--worker`.
pub fn findings(system: &System, root: &Path, has_worker: bool, stop: &Stop) -> Vec<Finding> {
    vec![
        compiler(system, stop),
        runner(system, stop),
        worker(root, has_worker, stop),
    ]
}

fn compiler(system: &System, stop: &Stop) -> Finding {
    let package = match system.arch {
        Arch::Aarch64 => "gcc-aarch64-linux-gnu libc6-dev-arm64-cross",
        Arch::X86_64 => "gcc-x86-64-linux-gnu libc6-dev-amd64-cross",
    };
    tool(
        "cross_compiler",
        &system.cc,
        "cc of the system in campaign.toml",
        format!("apt-get install {package} (Debian, Ubuntu), or name another with `cc`"),
        stop,
    )
}

fn runner(system: &System, stop: &Stop) -> Finding {
    let program = system.runner.first().map_or("", String::as_str);
    tool(
        "runner",
        program,
        "runner of the system in campaign.toml",
        "apt-get install qemu-user-static (Debian, Ubuntu), or name another with `runner`"
            .to_owned(),
        stop,
    )
}

fn tool(item: &str, command: &str, source: &str, remedy: String, stop: &Stop) -> Finding {
    let (state, value) = match Command::from_words(command.split_whitespace()) {
        None => (FindingState::Bad, "none is named".to_owned()),
        Some(words) => {
            let outcome = process::run_blocking(words.arg("--version").deadline(LIMIT), stop);
            let text = outcome.stdout.text();
            let line = text.lines().next().unwrap_or(command).to_owned();
            match &outcome.end {
                End::NotStarted(error) => (FindingState::Bad, format!("{command}: {error}")),
                end if end.is_success() => (FindingState::Ok, line),
                end => (FindingState::Bad, format!("{command} --version {end}")),
            }
        }
    };
    finding(item, state, value, source, remedy)
}

/// A worker is built with a Rust toolchain of the other architecture.
fn worker(root: &Path, has_worker: bool, stop: &Stop) -> Finding {
    let answer = |state, value: String| {
        let remedy = format!("run {SCRIPT}, or name a built worker with --worker");
        finding("cross_worker", state, value, SCRIPT, remedy)
    };
    if has_worker {
        return answer(FindingState::Ok, "named with --worker".to_owned());
    }
    let checkout = [Some(root), Path::new(env!("CARGO_MANIFEST_DIR")).parent()];
    let script = checkout
        .into_iter()
        .flatten()
        .map(|folder| folder.join(SCRIPT))
        .find(|script| script.is_file());
    let Some(script) = script else {
        return answer(
            FindingState::Unknown,
            "no checkout to build it from".to_owned(),
        );
    };
    let mut command = Command::new(script).arg("check").deadline(LIMIT);
    if let Some(folder) = std::env::var_os(crate::worker::binary::CROSS_DIR) {
        command = command.env(crate::worker::binary::CROSS_DIR, folder);
    }
    let outcome = process::run_blocking(command, stop);
    let said: Vec<String> = [&outcome.stdout, &outcome.stderr]
        .into_iter()
        .flat_map(|output| {
            let text = output.text();
            text.lines().map(str::to_owned).collect::<Vec<_>>()
        })
        .collect();
    match (outcome.end.is_success(), said.is_empty()) {
        (true, _) => answer(
            FindingState::Ok,
            "the Rust toolchain for it works".to_owned(),
        ),
        (false, false) => answer(FindingState::Bad, said.join("; ")),
        (false, true) => answer(FindingState::Bad, format!("{SCRIPT} check {}", outcome.end)),
    }
}

fn finding(
    item: &str,
    state: FindingState,
    value: String,
    source: &str,
    remedy: String,
) -> Finding {
    Finding {
        item: item.to_owned(),
        cpu: None,
        advice: false,
        state,
        value,
        source: source.to_owned(),
        remedy: (state != FindingState::Ok).then_some(remedy),
    }
}

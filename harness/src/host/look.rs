//! Looks at the machine: reads its facts, asks a worker about counters, watches the siblings, and
//! judges. This is what `check` prints and what a session records.

use super::facts;
use super::readiness::{self, Need, Seen};
use super::root::Root;
use crate::evidence::{CpuFacts, CpuProbe, Finding, StableFacts, VolatileFacts};
use crate::process::{self, Command, Stop};
use crate::worker::{self, Ending, Job, Worker, WorkerError};
use protocol::{Body, Probe, Task};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// Additions of the loop that a counter is held against: some 20 ms.
const PROBE_ADDS: u64 = 50_000_000;
/// Time limit of a probe, and of the question for a version.
const LIMIT: Duration = Duration::from_secs(60);
/// Time over which siblings are watched: 30 ticks of the kernel's accounting.
const WATCH: Duration = Duration::from_millis(300);
/// Ticks a second of `/proc/stat` (USER_HZ, fixed on Linux).
const TICKS_PER_S: f64 = 100.0;

/// What is looked at, and with what.
#[derive(Debug)]
pub struct Look<'a> {
    /// The machine's files.
    pub root: &'a Root,
    /// CPUs to measure on.
    pub cpus: &'a [u32],
    /// CPUs that this process may use.
    pub allowed: &'a [u32],
    /// First line of the compiler's version.
    pub compiler: Option<String>,
    /// What implementations need and the CPU has not.
    pub needs: Option<&'a [Need]>,
    /// Who asks about counters, or why nobody does.
    pub prober: Result<Prober<'a>, String>,
}

/// Who asks about counters.
#[derive(Debug, Clone, Copy)]
pub struct Prober<'a> {
    /// The worker.
    pub worker: &'a Worker,
    /// Folder that it starts in.
    pub folder: &'a Path,
    /// The wish to stop.
    pub stop: &'a Stop,
}

/// The machine as it was found.
#[derive(Debug)]
pub struct State {
    /// Facts that do not change.
    pub stable: StableFacts,
    /// Facts that do.
    pub volatile: VolatileFacts,
    /// The measured CPUs.
    pub cpus: Vec<CpuFacts>,
    /// Their counters.
    pub probes: Vec<CpuProbe>,
    /// The judgement.
    pub findings: Vec<Finding>,
}

impl Look<'_> {
    /// Looks. An error is the worker binary's own; a probe that fails is an unknown counter.
    pub async fn look(self) -> Result<State, WorkerError> {
        let mut stable = facts::stable(self.root, self.cpus, self.allowed);
        stable.compiler = self.compiler;
        let volatile = facts::volatile(self.root);
        let mut cpus: Vec<CpuFacts> = self
            .cpus
            .iter()
            .map(|&cpu| facts::cpu(self.root, cpu))
            .collect();
        let busy = busy_siblings(self.root, &cpus).await;
        let mut probes = Vec::new();
        let mut not_probed = String::new();
        match self.prober {
            Err(why) => not_probed = why,
            Ok(prober) => {
                for cpu in &mut cpus {
                    match prober.ask(cpu.cpu).await? {
                        Ok(probe) => {
                            cpu.measured_clock_hz = probe.core_clock_estimate_hz;
                            probes.push(CpuProbe {
                                cpu: cpu.cpu,
                                probe,
                            });
                        }
                        Err(why) => not_probed = why,
                    }
                }
            }
        }
        let findings = readiness::findings(&Seen {
            root: self.root,
            stable: &stable,
            volatile: &volatile,
            cpus: &cpus,
            probes: &probes,
            not_probed: &not_probed,
            busy: busy.as_ref(),
            needs: self.needs,
        });
        Ok(State {
            stable,
            volatile,
            cpus,
            probes,
            findings,
        })
    }
}

impl Prober<'_> {
    /// Counters of one CPU, or why they are not known.
    async fn ask(&self, cpu: u32) -> Result<Result<Probe, String>, WorkerError> {
        let job = Job {
            task: Task::Probe {
                loop_adds: PROBE_ADDS,
            },
            library: None,
            cpu: Some(cpu),
            limit: LIMIT,
            file: None,
            preload: None,
        };
        let answer = worker::session::run(self.worker, self.folder, job, self.stop).await?;
        Ok(match (answer.ending, answer.body) {
            (Ending::Done, Some(Body::Probe(probe))) => Ok(probe),
            (Ending::Done, _) => Err("the worker answered something else".to_owned()),
            (Ending::Failed(failure), _) => Err(format!("the worker failed: {}", failure.text)),
            (Ending::Timeout(seconds), _) => {
                Err(format!("the worker was killed after {seconds} s"))
            }
            (Ending::Crash(text), _) => Err(format!("the worker crashed: {text}")),
            (Ending::Interrupted, _) => Err("interrupted".to_owned()),
        })
    }
}

/// Busy parts of the siblings of the measured CPUs; `None` of a copy, whose files stand still.
async fn busy_siblings(root: &Root, cpus: &[CpuFacts]) -> Option<BTreeMap<u32, f64>> {
    if !root.is_live() {
        return None;
    }
    let siblings: Vec<u32> = cpus.iter().flat_map(|cpu| cpu.siblings.clone()).collect();
    if siblings.is_empty() {
        return Some(BTreeMap::new());
    }
    let ticks = || -> BTreeMap<u32, u64> {
        let of = |&cpu: &u32| Some((cpu, facts::busy_ticks(root, cpu)?));
        siblings.iter().filter_map(of).collect()
    };
    let (start, before) = (std::time::Instant::now(), ticks());
    tokio::time::sleep(WATCH).await;
    let (seconds, after) = (start.elapsed().as_secs_f64(), ticks());
    let part = |(cpu, now): (&u32, &u64)| {
        let used = now.saturating_sub(*before.get(cpu)?);
        Some((*cpu, used as f64 / TICKS_PER_S / seconds))
    };
    Some(after.iter().filter_map(part).collect())
}

/// First line of the version of the first of these commands that is there.
pub async fn compiler_version(commands: &[&str], stop: &Stop) -> Option<String> {
    for command in commands {
        let command = Command::from_words(command.split_whitespace())?
            .arg("--version")
            .deadline(LIMIT);
        let outcome = process::run(command, stop).await;
        if let (true, Some(line)) = (
            outcome.end.is_success(),
            outcome.stdout.text().lines().next(),
        ) {
            return Some(line.to_owned());
        }
    }
    None
}

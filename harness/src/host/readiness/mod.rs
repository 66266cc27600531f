//! Whether the machine is in a state in which figures can be trusted: one finding an item, each with
//! the value read, where from, and what to do.
//!
//! The judgement rests on files below a [`Root`] and on what was asked of the machine beforehand (a
//! probe of the counters, a look at how busy the siblings are). "Unknown" is never "ok". Some items
//! only advise: their findings carry `advice` and never stand against measuring. What a plan does
//! about a host that is not ready is decided where the run is begun.
//!
//! | file | items |
//! |---|---|
//! | `counters.rs` | perf_event_paranoid, capabilities, seccomp, cycle_counter, nmi_watchdog |
//! | `frequency.rs` | driver, governor, frequency, turbo |
//! | `cores.rs` | smt, sibling, core_type, isolation |
//! | `interference.rs` | virtualization, interrupts, load, heat, swap, and others |
//! | `guide.rs` | the guide's environment, and what the implementations need |

mod cores;
mod counters;
mod frequency;
mod guide;
mod interference;

#[cfg(test)]
mod tests;

use super::root::{NotRead, Root};
use crate::evidence::{CpuFacts, CpuProbe, Finding, FindingState, StableFacts, VolatileFacts};
use std::collections::BTreeMap;

pub use guide::{needs, Need};

/// What the judgement rests on.
#[derive(Debug, Clone, Copy)]
pub struct Seen<'a> {
    /// The machine's files.
    pub root: &'a Root,
    /// Facts that do not change.
    pub stable: &'a StableFacts,
    /// Facts that do.
    pub volatile: &'a VolatileFacts,
    /// The measured CPUs.
    pub cpus: &'a [CpuFacts],
    /// Their counters.
    pub probes: &'a [CpuProbe],
    /// Why a CPU without a probe has none.
    pub not_probed: &'a str,
    /// How busy CPUs were over a short time, as parts of it; `None` where nothing was watched.
    pub busy: Option<&'a BTreeMap<u32, f64>>,
    /// What implementations need and the CPU has not; `None` where no campaign is known.
    pub needs: Option<&'a [Need]>,
}

/// All findings, in a fixed order: what holds for the machine, then CPU by CPU.
pub fn findings(seen: &Seen) -> Vec<Finding> {
    let mut found = vec![
        interference::virtualization(seen),
        counters::perf_event_paranoid(seen),
        counters::capabilities(seen),
        counters::seccomp(seen),
        counters::nmi_watchdog(seen),
        frequency::turbo(seen),
        cores::smt(seen),
        interference::irqbalance(seen),
        interference::load(seen),
        interference::swap(seen),
        interference::thermal(seen),
        interference::aslr(seen),
        interference::clocksource(seen),
        guide::memory(seen),
        guide::kernel(seen),
        guide::compiler(seen),
        guide::cpu_features(seen),
    ];
    for cpu in seen.cpus {
        found.extend([
            counters::cycle_counter(seen, cpu),
            frequency::driver(seen, cpu),
            frequency::governor(seen, cpu),
            frequency::frequency(seen, cpu),
            cores::sibling(seen, cpu),
            cores::core_type(seen, cpu),
            cores::isolation(seen, cpu),
            interference::irq_affinity(seen, cpu),
            interference::throttling(seen, cpu),
            guide::processor(seen, cpu),
        ]);
    }
    found
}

/// Whether nothing that matters is bad or unknown.
pub fn is_ready(findings: &[Finding]) -> bool {
    !findings.iter().any(stands_against)
}

/// Whether a finding stands against measuring.
pub fn stands_against(finding: &Finding) -> bool {
    !finding.advice && !is_fine(finding)
}

/// Neither bad nor unknown.
pub fn is_fine(finding: &Finding) -> bool {
    matches!(
        finding.state,
        FindingState::Ok | FindingState::NotApplicable
    )
}

/// An item on its way to a finding.
#[derive(Debug, Clone)]
struct Item {
    name: &'static str,
    cpu: Option<u32>,
    advice: bool,
    source: String,
    remedy: String,
}

impl Item {
    /// An item that stands against measuring unless it is fine; `path` is where it is read.
    fn required(name: &'static str, path: &str, remedy: impl Into<String>) -> Self {
        Item {
            name,
            cpu: None,
            advice: false,
            source: shown(path),
            remedy: remedy.into(),
        }
    }

    /// An item that advises.
    fn advice(name: &'static str, path: &str, remedy: impl Into<String>) -> Self {
        Item {
            advice: true,
            ..Item::required(name, path, remedy)
        }
    }

    fn on(mut self, cpu: u32) -> Self {
        self.cpu = Some(cpu);
        self
    }

    fn with_remedy(self, remedy: &str) -> Self {
        Item {
            remedy: remedy.to_owned(),
            ..self
        }
    }

    fn ok(self, value: impl Into<String>) -> Finding {
        self.finding(FindingState::Ok, value.into())
    }

    fn bad(self, value: impl Into<String>) -> Finding {
        self.finding(FindingState::Bad, value.into())
    }

    fn unknown(self, value: impl Into<String>) -> Finding {
        self.finding(FindingState::Unknown, value.into())
    }

    fn not_applicable(self, value: impl Into<String>) -> Finding {
        self.finding(FindingState::NotApplicable, value.into())
    }

    /// A file that gave no value.
    fn not_read(self, why: &NotRead) -> Finding {
        self.unknown(why.to_string())
    }

    fn finding(self, state: FindingState, value: String) -> Finding {
        let fine = matches!(state, FindingState::Ok | FindingState::NotApplicable);
        Finding {
            item: self.name.to_owned(),
            cpu: self.cpu,
            advice: self.advice,
            state,
            value,
            source: self.source,
            remedy: (!fine).then_some(self.remedy),
        }
    }
}

/// A path below the root as one says it; other sources as they are.
fn shown(path: &str) -> String {
    match path.starts_with("proc/") || path.starts_with("sys/") {
        true => format!("/{path}"),
        false => path.to_owned(),
    }
}

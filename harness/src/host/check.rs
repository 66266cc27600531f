//! Whether the machine is fixed enough that figures can be compared: one finding an item.
//!
//! "Unknown" is never "ok". What each plan does about a host that is not ready is decided where the
//! run is begun.

use crate::evidence::{CpuFacts, CpuProbe, Finding, FindingState, StableFacts, VolatileFacts};
use protocol::SourceKind;

/// What the judgement rests on.
#[derive(Debug, Clone, Copy)]
pub struct Seen<'a> {
    /// Facts that do not change.
    pub stable: &'a StableFacts,
    /// Facts that do.
    pub volatile: &'a VolatileFacts,
    /// The measured CPUs.
    pub cpus: &'a [CpuFacts],
    /// Their counters.
    pub probes: &'a [CpuProbe],
}

/// All findings, in a fixed order.
pub fn findings(seen: Seen) -> Vec<Finding> {
    let mut found = vec![virtualization(seen.stable), turbo(seen.volatile), smt(seen)];
    for cpu in seen.cpus {
        found.push(governor(cpu));
        found.push(frequency(cpu));
        found.push(counter(cpu.cpu, seen.probes));
    }
    found
}

/// Whether nothing stands against measuring.
pub fn is_ready(findings: &[Finding]) -> bool {
    findings
        .iter()
        .all(|f| matches!(f.state, FindingState::Ok | FindingState::NotApplicable))
}

fn finding(
    item: &str,
    cpu: Option<u32>,
    state: FindingState,
    value: &str,
    source: &str,
    remedy: &str,
) -> Finding {
    let fine = matches!(state, FindingState::Ok | FindingState::NotApplicable);
    Finding {
        item: item.to_owned(),
        cpu,
        state,
        value: value.to_owned(),
        source: source.to_owned(),
        remedy: (!fine).then(|| remedy.to_owned()),
    }
}

fn virtualization(stable: &StableFacts) -> Finding {
    let (state, value) = match stable.virtualization.as_deref() {
        Some("none") => (FindingState::Ok, "none"),
        Some(kind) => (FindingState::Bad, kind),
        None => (FindingState::Unknown, "the kernel does not tell"),
    };
    finding(
        "virtualization",
        None,
        state,
        value,
        "/proc/cpuinfo, /sys/class/dmi/id",
        "measure on the machine itself: a virtual one shares its processor with others",
    )
}

fn turbo(volatile: &VolatileFacts) -> Finding {
    const INTEL: &str = "/sys/devices/system/cpu/intel_pstate/no_turbo";
    const BOOST: &str = "/sys/devices/system/cpu/cpufreq/boost";
    let (state, value, source) = match (
        volatile.intel_pstate_no_turbo.as_deref(),
        volatile.cpufreq_boost.as_deref(),
    ) {
        (Some("1"), _) => (FindingState::Ok, "off", INTEL),
        (Some(_), _) => (FindingState::Bad, "on", INTEL),
        (None, Some("0")) => (FindingState::Ok, "off", BOOST),
        (None, Some(_)) => (FindingState::Bad, "on", BOOST),
        (None, None) => (FindingState::Unknown, "the files are absent", BOOST),
    };
    finding(
        "turbo",
        None,
        state,
        value,
        source,
        "campaign tune, or switch it off in the firmware",
    )
}

fn smt(seen: Seen) -> Finding {
    const CONTROL: &str = "/sys/devices/system/cpu/smt/control";
    let siblings = seen.cpus.iter().any(|cpu| !cpu.siblings.is_empty());
    let (state, value) = match seen.volatile.smt_control.as_deref() {
        Some(word @ ("off" | "forceoff")) => (FindingState::Ok, word),
        Some(word @ ("notsupported" | "notimplemented")) => (FindingState::NotApplicable, word),
        Some(word) if !siblings => (FindingState::Ok, word),
        Some(word) => (FindingState::Bad, word),
        None => (FindingState::Unknown, "the file is absent"),
    };
    finding(
        "smt",
        None,
        state,
        value,
        CONTROL,
        "campaign tune: a sibling thread takes part of the core",
    )
}

fn governor(cpu: &CpuFacts) -> Finding {
    let source = format!(
        "/sys/devices/system/cpu/cpu{}/cpufreq/scaling_governor",
        cpu.cpu
    );
    let (state, value) = match cpu.governor.as_deref() {
        Some("performance") => (FindingState::Ok, "performance"),
        Some(other) => (FindingState::Bad, other),
        None => (FindingState::Unknown, "the file is absent"),
    };
    finding(
        "governor",
        Some(cpu.cpu),
        state,
        value,
        &source,
        "campaign tune",
    )
}

fn frequency(cpu: &CpuFacts) -> Finding {
    let source = format!("/sys/devices/system/cpu/cpu{}/cpufreq", cpu.cpu);
    let (state, value) = match (cpu.min_khz, cpu.max_khz) {
        (Some(min), Some(max)) if min == max => (FindingState::Ok, format!("fixed at {max} kHz")),
        (Some(min), Some(max)) => (FindingState::Bad, format!("{min} to {max} kHz")),
        _ => (FindingState::Unknown, "the files are absent".to_owned()),
    };
    finding(
        "frequency",
        Some(cpu.cpu),
        state,
        &value,
        &source,
        "campaign tune: minimum = maximum",
    )
}

fn counter(cpu: u32, probes: &[CpuProbe]) -> Finding {
    let probe = probes.iter().find(|probe| probe.cpu == cpu);
    let perf = probe.and_then(|p| p.probe.sources.iter().find(|s| s.kind == SourceKind::Perf));
    let (state, value, remedy) = match perf {
        Some(perf) if perf.source.is_some() => (FindingState::Ok, "usable".to_owned(), ""),
        Some(perf) => {
            let text = perf
                .reason
                .as_ref()
                .map_or("not usable", |(_, text)| text.as_str());
            (FindingState::Bad, text.to_owned(), "see the value")
        }
        None => (
            FindingState::Unknown,
            "not probed".to_owned(),
            "run the check on this CPU",
        ),
    };
    finding(
        "cycle_counter",
        Some(cpu),
        state,
        &value,
        "perf_event_open",
        remedy,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_unknown_is_never_ready() {
        let cpu = CpuFacts {
            cpu: 2,
            ..CpuFacts::default()
        };
        let seen = Seen {
            stable: &StableFacts::default(),
            volatile: &VolatileFacts::default(),
            cpus: &[cpu],
            probes: &[],
        };
        let found = findings(seen);
        assert_eq!(found.len(), 6);
        assert!(found
            .iter()
            .all(|f| f.state == FindingState::Unknown && f.remedy.is_some()));
        assert!(!is_ready(&found));
    }

    #[test]
    fn a_fixed_machine_is_ready_but_for_its_counter() {
        let cpu = CpuFacts {
            cpu: 2,
            governor: Some("performance".into()),
            min_khz: Some(2_100_000),
            max_khz: Some(2_100_000),
            ..CpuFacts::default()
        };
        let stable = StableFacts {
            virtualization: Some("none".into()),
            ..StableFacts::default()
        };
        let volatile = VolatileFacts {
            smt_control: Some("off".into()),
            intel_pstate_no_turbo: Some("1".into()),
            ..VolatileFacts::default()
        };
        let found = findings(Seen {
            stable: &stable,
            volatile: &volatile,
            cpus: &[cpu],
            probes: &[],
        });
        let open: Vec<&str> = found
            .iter()
            .filter(|f| f.state != FindingState::Ok)
            .map(|f| f.item.as_str())
            .collect();
        assert_eq!(open, ["cycle_counter"]);
    }
}

//! `environment/<k>.json`: the machine as one session found it. No host name, no user name.

use super::Kind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// `environment/<k>.json`, written once per session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EnvironmentFile {
    /// Always [`super::SCHEMA`].
    pub schema: String,
    /// `environment`.
    pub kind: Kind,
    /// Number of the session, from 0.
    pub k: u32,
    /// Start of the session, UTC.
    pub started_utc: String,
    /// Salted digest of the machine; null in imports.
    pub host_token: Option<String>,
    /// Facts that do not change while the machine is up.
    pub stable: StableFacts,
    /// Facts that may.
    pub volatile: VolatileFacts,
    /// Per measured CPU.
    pub cpus: Vec<CpuFacts>,
    /// Findings of the host check.
    pub check: Vec<Finding>,
    /// Whether all of them that do not only advise are fine.
    pub ready: bool,
    /// Protections of a worker, as probed.
    pub layers: Vec<protocol::Layer>,
    /// Counters and clocks, as probed on each measured CPU.
    pub probes: Vec<CpuProbe>,
    /// Reason of each `null` of this file, as in the common head.
    pub missing: BTreeMap<String, super::Reason>,
}

/// Facts that do not change while the machine is up.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StableFacts {
    /// `x86_64`, `aarch64`.
    pub architecture: String,
    /// Name of the processor, decoded where the kernel gives numbers only; of measured CPUs of several
    /// kinds all names, with ` + ` between them.
    pub cpu_model: Option<String>,
    /// Raw MIDR of the first measured CPU (AArch64); that of each is in `cpus`.
    pub midr: Option<String>,
    /// Features that builds may require and all measured CPUs have.
    pub cpu_features: Vec<String>,
    /// Product name of the machine.
    pub machine: Option<String>,
    /// Logical CPUs online.
    pub logical_cpus_online: u32,
    /// Allowed and online CPUs of the orchestrator.
    pub cpus_allowed: Vec<u32>,
    /// Memory, KiB.
    pub memory_total_kib: Option<u64>,
    /// PRETTY_NAME of os-release.
    pub os: Option<String>,
    /// Kernel release.
    pub kernel: Option<String>,
    /// First line of the compiler's version.
    pub compiler: Option<String>,
    /// Name and version of what built the libraries (`campaign 0.1.0`, `cmake version 4.2.3`).
    pub build_tool: Option<String>,
    /// `none`, `kvm`, `container:docker`, ...
    pub virtualization: Option<String>,
    /// Clock source in use.
    pub clocksource: Option<String>,
}

/// Facts that may change.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VolatileFacts {
    /// kernel.perf_event_paranoid.
    pub perf_event_paranoid: Option<i64>,
    /// Load average, one minute.
    pub load_average: Option<f64>,
    /// Swap in use, KiB.
    pub swap_used_kib: Option<u64>,
    /// SMT control.
    pub smt_control: Option<String>,
    /// intel_pstate/no_turbo.
    pub intel_pstate_no_turbo: Option<String>,
    /// cpufreq/boost.
    pub cpufreq_boost: Option<String>,
    /// randomize_va_space.
    pub aslr: Option<String>,
    /// nmi_watchdog.
    pub nmi_watchdog: Option<String>,
    /// Everything else read, by path.
    pub other: BTreeMap<String, String>,
}

/// One CPU.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CpuFacts {
    /// Number.
    pub cpu: u32,
    /// Name of its processor, decoded where the kernel gives numbers only; left out where it was not
    /// recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Its raw MIDR (AArch64); left out where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub midr: Option<String>,
    /// Its features that builds may require; left out where they were not recorded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub features: Vec<String>,
    /// scaling_driver.
    pub driver: Option<String>,
    /// scaling_governor.
    pub governor: Option<String>,
    /// scaling_min_freq, kHz.
    pub min_khz: Option<u64>,
    /// scaling_max_freq, kHz.
    pub max_khz: Option<u64>,
    /// cpuinfo_max_freq, kHz.
    pub hardware_max_khz: Option<u64>,
    /// Core type (`cpu_core`, `cpu_atom`), or capacity.
    pub core_type: Option<String>,
    /// cpu_capacity.
    pub capacity: Option<u64>,
    /// Sibling threads.
    pub siblings: Vec<u32>,
    /// Kernel's PMU for this CPU.
    pub pmu: Option<String>,
    /// Core clock measured by a dependent-add loop, hertz: an estimate.
    pub measured_clock_hz: Option<u64>,
}

/// One item of the host check.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// Item (`perf_event_paranoid`, `governor`).
    pub item: String,
    /// CPU it is about.
    pub cpu: Option<u32>,
    /// Whether it only advises; otherwise it stands against measuring unless it is fine.
    pub advice: bool,
    /// The judgement.
    pub state: FindingState,
    /// Value read, in words.
    pub value: String,
    /// Where it was read.
    pub source: String,
    /// What to do.
    pub remedy: Option<String>,
}

/// Judgements. `unknown` is never `ok`.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum FindingState {
    /// As it should be.
    Ok,
    /// Not as it should be.
    Bad,
    /// Cannot be told.
    Unknown,
    /// Does not exist here.
    NotApplicable,
}

/// What a probe found on one CPU.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CpuProbe {
    /// Number.
    pub cpu: u32,
    /// The worker's answer.
    pub probe: protocol::Probe,
}

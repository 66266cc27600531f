//! Facts of the machine, read from `/proc`, `/sys` and `/etc` below a root folder.
//!
//! Nothing is judged here. A file that is absent, empty or unreadable gives `None`, never a guess.
//! No host name and no user name is read.

use super::cpuinfo::CpuInfo;
pub use super::root::Root;
use super::virtualization;
use crate::evidence::{CpuFacts, StableFacts, VolatileFacts};
use std::collections::{BTreeMap, BTreeSet};

/// Facts that do not change while the machine is up. `measured` are the CPUs to measure on, `allowed`
/// those that this process may use.
pub fn stable(root: &Root, measured: &[u32], allowed: &[u32]) -> StableFacts {
    let cpuinfo = CpuInfo::read(root, measured.first().copied().unwrap_or(0));
    let models = models(root, measured);
    let common = features(root, measured);
    let mut cpu_features = cpuinfo.features();
    cpu_features.retain(|feature| common.contains(feature));
    StableFacts {
        architecture: architecture(root, &cpuinfo).to_owned(),
        cpu_model: (!models.is_empty()).then(|| models.join(" + ")),
        midr: cpuinfo.midr(root).map(|midr| midr.text()),
        cpu_features,
        machine: root
            .text("sys/class/dmi/id/product_name")
            .or_else(|| root.text("proc/device-tree/model")),
        logical_cpus_online: online(root).len() as u32,
        cpus_allowed: allowed.to_vec(),
        memory_total_kib: meminfo(root, "MemTotal"),
        os: os_release(root),
        kernel: root.text("proc/sys/kernel/osrelease"),
        compiler: None,
        build_tool: None,
        virtualization: virtualization::kind(root, &cpuinfo),
        clocksource: root.text("sys/devices/system/clocksource/clocksource0/current_clocksource"),
    }
}

/// The architecture of this program; of a copy of another machine's files, what these say.
fn architecture(root: &Root, cpuinfo: &CpuInfo) -> &'static str {
    match (root.is_live(), cpuinfo.architecture()) {
        (false, Some(theirs)) => theirs,
        _ => std::env::consts::ARCH,
    }
}

/// Features that all of these CPUs have, as the kernel names them, for builds and codes that require some:
/// what one cluster has and another has not would end in an illegal instruction there. Empty when the
/// kernel does not tell of one of them.
pub fn features(root: &Root, cpus: &[u32]) -> BTreeSet<String> {
    let of =
        |&cpu: &u32| -> BTreeSet<String> { CpuInfo::read(root, cpu).flags().into_iter().collect() };
    let common = or_first(cpus).iter().map(of);
    common
        .reduce(|common, theirs| &common & &theirs)
        .unwrap_or_default()
}

/// Names of the processors of these CPUs, each once; empty when one of them is not known.
pub fn models(root: &Root, cpus: &[u32]) -> Vec<String> {
    let mut models = Vec::new();
    for &cpu in or_first(cpus) {
        match model(root, &CpuInfo::read(root, cpu)) {
            None => return Vec::new(),
            Some(model) if models.contains(&model) => {}
            Some(model) => models.push(model),
        }
    }
    models
}

/// The kernel's name of a processor, else what its MIDR says.
fn model(root: &Root, cpuinfo: &CpuInfo) -> Option<String> {
    let named = cpuinfo.value("model name");
    named.or_else(|| cpuinfo.midr(root).map(|midr| midr.name()))
}

/// The CPUs, or where none is chosen the machine's first.
fn or_first(cpus: &[u32]) -> &[u32] {
    match cpus {
        [] => &[0],
        cpus => cpus,
    }
}

/// The architecture of the machine, as far as its files or this program tell.
pub fn architecture_of(root: &Root) -> &'static str {
    architecture(root, &CpuInfo::read(root, 0))
}

/// Facts that may change.
pub fn volatile(root: &Root) -> VolatileFacts {
    let swap = meminfo(root, "SwapTotal").zip(meminfo(root, "SwapFree"));
    VolatileFacts {
        perf_event_paranoid: root.number("proc/sys/kernel/perf_event_paranoid"),
        load_average: root
            .text("proc/loadavg")
            .and_then(|text| text.split(' ').next()?.parse().ok()),
        swap_used_kib: swap.map(|(total, free)| total.saturating_sub(free)),
        smt_control: root.text("sys/devices/system/cpu/smt/control"),
        intel_pstate_no_turbo: root.text("sys/devices/system/cpu/intel_pstate/no_turbo"),
        cpufreq_boost: root.text("sys/devices/system/cpu/cpufreq/boost"),
        aslr: root.text("proc/sys/kernel/randomize_va_space"),
        nmi_watchdog: root.text("proc/sys/kernel/nmi_watchdog"),
        other: other(root),
    }
}

/// Settings that no field has, by path.
const OTHER: [&str; 9] = [
    "sys/devices/system/cpu/present",
    "sys/devices/system/cpu/offline",
    "sys/devices/system/cpu/isolated",
    "sys/devices/system/cpu/nohz_full",
    "sys/devices/system/cpu/intel_pstate/status",
    "sys/devices/system/cpu/amd_pstate/status",
    "sys/devices/system/cpu/cpuidle/current_governor",
    "sys/kernel/mm/transparent_hugepage/enabled",
    "proc/sys/kernel/numa_balancing",
];

/// Parameters of the kernel's command line that bear on timing; the others may tell whose machine it is.
const PARAMETERS: [&str; 12] = [
    "isolcpus",
    "nohz_full",
    "nohz",
    "rcu_nocbs",
    "mitigations",
    "idle",
    "intel_idle.max_cstate",
    "processor.max_cstate",
    "intel_pstate",
    "amd_pstate",
    "tsc",
    "nosmt",
];

fn other(root: &Root) -> BTreeMap<String, String> {
    let files = OTHER
        .iter()
        .filter_map(|path| Some((format!("/{path}"), root.text(path)?.trim().to_owned())));
    let parameters = PARAMETERS
        .iter()
        .filter_map(|name| Some((format!("/proc/cmdline {name}"), parameter(root, name)?)));
    files.chain(parameters).collect()
}

/// Value of a parameter of the kernel's command line, empty for one without a value.
pub fn parameter(root: &Root, name: &str) -> Option<String> {
    root.text("proc/cmdline")?
        .split_whitespace()
        .map(|word| word.split_once('=').unwrap_or((word, "")))
        .find(|(key, _)| *key == name)
        .map(|(_, value)| value.to_owned())
}

/// Facts of one CPU.
pub fn cpu(root: &Root, cpu: u32) -> CpuFacts {
    let file = |name: &str| cpu_file(cpu, name);
    let siblings = root.text(&file("topology/thread_siblings_list"));
    let cpuinfo = CpuInfo::read(root, cpu);
    CpuFacts {
        cpu,
        model: model(root, &cpuinfo),
        midr: cpuinfo.midr(root).map(|midr| midr.text()),
        features: cpuinfo.features(),
        driver: root.text(&file("cpufreq/scaling_driver")),
        governor: root.text(&file("cpufreq/scaling_governor")),
        min_khz: root.number(&file("cpufreq/scaling_min_freq")),
        max_khz: root.number(&file("cpufreq/scaling_max_freq")),
        hardware_max_khz: root.number(&file("cpufreq/cpuinfo_max_freq")),
        core_type: core_type(root, cpu),
        capacity: root.number(&file("cpu_capacity")),
        siblings: siblings
            .map(|list| parse_cpu_list(&list))
            .unwrap_or_default()
            .into_iter()
            .filter(|&other| other != cpu)
            .collect(),
        pmu: pmu(root, cpu),
        measured_clock_hz: None,
    }
}

/// Whether a CPU is the first thread of its core: the one that stays when SMT is switched off. Without
/// the kernel's list it has its core to itself.
pub fn is_first_thread(root: &Root, cpu: u32) -> bool {
    root.text(&cpu_file(cpu, "topology/thread_siblings_list"))
        .map(|list| parse_cpu_list(&list))
        .is_none_or(|list| list.iter().all(|&other| cpu <= other))
}

/// CPUs that are online, by the kernel's list or else by `/proc/cpuinfo`.
pub fn online(root: &Root) -> Vec<u32> {
    match root.text("sys/devices/system/cpu/online") {
        Some(list) => parse_cpu_list(&list),
        None => root
            .text("proc/cpuinfo")
            .unwrap_or_default()
            .lines()
            .filter_map(|line| line.split_once(':'))
            .filter(|(key, _)| key.trim() == "processor")
            .filter_map(|(_, value)| value.trim().parse().ok())
            .collect(),
    }
}

/// The kernel's lists: `0-3,8`. What is no number is left out.
pub fn parse_cpu_list(text: &str) -> Vec<u32> {
    text.trim()
        .split(',')
        .filter_map(|part| {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            Some(first.trim().parse::<u32>().ok()?..=last.trim().parse().ok()?)
        })
        .flatten()
        .collect()
}

/// A switch for clocks above the guaranteed one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoostSwitch {
    /// Its file.
    pub path: String,
    /// Whether it is on.
    pub is_on: bool,
    /// What switches it off.
    pub off: &'static str,
}

/// All switches that bear on these CPUs and can be read: Intel's own driver's, the general one, and one
/// for each frequency policy (Documentation/admin-guide/pm/intel_pstate.rst and cpufreq.rst).
pub fn boost_switches(root: &Root, cpus: &[u32]) -> Vec<BoostSwitch> {
    let mut files = vec![
        (
            "sys/devices/system/cpu/intel_pstate/no_turbo".to_owned(),
            "1",
        ),
        ("sys/devices/system/cpu/cpufreq/boost".to_owned(), "0"),
    ];
    for &cpu in cpus {
        let own = (root.resolve(&cpu_file(cpu, "cpufreq/boost")), "0");
        if !files.contains(&own) {
            files.push(own);
        }
    }
    let switch = |(path, off): (String, &'static str)| {
        let value = root.text(&path)?;
        let is_on = value.trim() != off;
        Some(BoostSwitch { path, is_on, off })
    };
    files.into_iter().filter_map(switch).collect()
}

/// Interrupts whose affinity can be read, with the CPUs that each may come to.
pub fn irqs(root: &Root) -> Vec<(u32, Vec<u32>)> {
    let affinity = |irq: u32| Some((irq, parse_cpu_list(&root.text(&irq_file(irq))?)));
    root.names("proc/irq")
        .iter()
        .filter_map(|name| name.parse().ok())
        .filter_map(affinity)
        .collect()
}

/// Path of the affinity of an interrupt.
pub fn irq_file(irq: u32) -> String {
    format!("proc/irq/{irq}/smp_affinity_list")
}

/// Steal time of a CPU since boot, clock ticks of `/proc/stat`.
pub fn steal_ticks(root: &Root, cpu: u32) -> Option<u64> {
    cpu_times(root, cpu)?.get(7).copied()
}

/// Time since boot in which a CPU did anything, clock ticks of `/proc/stat`.
pub fn busy_ticks(root: &Root, cpu: u32) -> Option<u64> {
    let times = cpu_times(root, cpu)?;
    // All but idle and iowait; what guests used is in user and nice already.
    Some(times.get(..3)?.iter().sum::<u64>() + times.get(5..7)?.iter().sum::<u64>())
}

/// How often a CPU and its package were throttled since boot.
pub fn throttled(root: &Root, cpu: u32) -> Option<u64> {
    let file = |name: &str| cpu_file(cpu, &format!("thermal_throttle/{name}_throttle_count"));
    let core: u64 = root.number(&file("core"))?;
    Some(core + root.number::<u64>(&file("package")).unwrap_or(0))
}

/// What the kernel says of a CPU's frequency: limits in kHz, and how often it was changed since boot.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Frequency {
    limits: Option<(u64, u64)>,
    transitions: Option<u64>,
}

impl Frequency {
    /// Changes between two looks, of limits and of the frequency itself; `None` without a frequency driver.
    pub fn changes_until(&self, later: &Frequency) -> Option<u64> {
        let limits = self.limits.zip(later.limits);
        let limits = limits.map(|(before, after)| u64::from(before != after));
        let transitions = self.transitions.zip(later.transitions);
        let transitions = transitions.map(|(before, after)| after.saturating_sub(before));
        limits.or(transitions)?;
        Some(limits.unwrap_or(0) + transitions.unwrap_or(0))
    }
}

/// Reads it.
pub fn frequency(root: &Root, cpu: u32) -> Frequency {
    let number = |name: &str| root.number::<u64>(&cpu_file(cpu, &format!("cpufreq/{name}")));
    Frequency {
        limits: number("scaling_min_freq").zip(number("scaling_max_freq")),
        transitions: number("stats/total_trans"),
    }
}

/// user, nice, system, idle, iowait, irq, softirq, steal, ...
fn cpu_times(root: &Root, cpu: u32) -> Option<Vec<u64>> {
    let stat = root.text("proc/stat")?;
    let name = format!("cpu{cpu}");
    let mut words = stat
        .lines()
        .map(str::split_whitespace)
        .find_map(|mut words| (words.next() == Some(&name)).then_some(words))?;
    words.by_ref().map(|word| word.parse().ok()).collect()
}

/// Path of a file of one CPU.
pub fn cpu_file(cpu: u32, name: &str) -> String {
    format!("sys/devices/system/cpu/cpu{cpu}/{name}")
}

/// `cpu_core` or `cpu_atom` of a hybrid x86 processor.
fn core_type(root: &Root, cpu: u32) -> Option<String> {
    ["cpu_core", "cpu_atom"]
        .into_iter()
        .find(|name| has_cpu(root, &format!("sys/devices/{name}/cpus"), cpu))
        .map(str::to_owned)
}

/// The kernel's PMU that counts on this CPU.
fn pmu(root: &Root, cpu: u32) -> Option<String> {
    const DEVICES: &str = "sys/bus/event_source/devices";
    let names = root.names(DEVICES);
    // A core PMU lists its CPUs in `cpus`; units outside the cores have `cpumask` instead.
    let own = names
        .iter()
        .find(|name| has_cpu(root, &format!("{DEVICES}/{name}/cpus"), cpu));
    own.or_else(|| names.iter().find(|name| *name == "cpu"))
        .cloned()
}

fn has_cpu(root: &Root, path: &str, cpu: u32) -> bool {
    root.text(path)
        .is_some_and(|list| parse_cpu_list(&list).contains(&cpu))
}

/// A line of `/proc/meminfo`, KiB.
fn meminfo(root: &Root, key: &str) -> Option<u64> {
    root.text("proc/meminfo")?.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        let number = value.trim().strip_suffix("kB")?.trim();
        (name == key).then(|| number.parse().ok())?
    })
}

fn os_release(root: &Root) -> Option<String> {
    let text = root
        .text("etc/os-release")
        .or_else(|| root.text("usr/lib/os-release"))?;
    let value = text
        .lines()
        .find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
    Some(value.trim_matches('"').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root(files: &[(&str, &str)]) -> (tempfile::TempDir, Root) {
        let dir = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let root = Root::at(dir.path());
        (dir, root)
    }

    #[test]
    fn a_machine_without_files_is_unknown_and_not_an_error() {
        let (_dir, root) = root(&[]);
        let facts = stable(&root, &[3], &[3]);
        assert_eq!((facts.cpu_model, facts.memory_total_kib), (None, None));
        assert_eq!((facts.virtualization, facts.logical_cpus_online), (None, 0));
        assert_eq!(volatile(&root), VolatileFacts::default());
        assert_eq!(
            cpu(&root, 3),
            CpuFacts {
                cpu: 3,
                ..CpuFacts::default()
            }
        );
        assert_eq!(steal_ticks(&root, 3), None);
    }

    #[test]
    fn an_arm_machine_without_model_name_is_named_by_its_part_and_keeps_its_midr() {
        let cpuinfo = "processor\t: 0\nFeatures\t: fp asimd sve\nCPU implementer\t: 0x41\nCPU variant\t: 0x0\nCPU part\t: 0xd03\nCPU revision\t: 4\n\n\
                       processor\t: 4\nFeatures\t: fp asimd sve\nCPU implementer\t: 0x41\nCPU variant\t: 0x1\nCPU part\t: 0xd08\nCPU revision\t: 3\n";
        let (_dir, bare) = root(&[("proc/cpuinfo", cpuinfo)]);
        let facts = stable(&bare, &[4], &[]);
        assert_eq!(facts.architecture, "aarch64");
        assert_eq!(facts.cpu_model.as_deref(), Some("ARM Cortex-A72"));
        assert_eq!(facts.midr.as_deref(), Some("0x00000000411fd083"));
        assert_eq!(facts.virtualization, None, "silence proves nothing");
        let (_dir, with_files) = root(&[
            ("proc/cpuinfo", cpuinfo),
            ("proc/device-tree/compatible", "vendor,board\0soc\0"),
            (
                "sys/devices/system/cpu/cpu4/regs/identification/midr_el1",
                "0x00000000410fd0c1\n",
            ),
        ]);
        let facts = stable(&with_files, &[4], &[]);
        assert_eq!(facts.cpu_model.as_deref(), Some("ARM Neoverse-N1"));
        assert_eq!(facts.virtualization.as_deref(), Some("none"));
    }

    /// What one cluster can do and the other cannot is said of neither the machine nor the other one.
    #[test]
    fn each_measured_cpu_of_two_clusters_has_its_own_name_and_features() {
        let cpuinfo = "processor\t: 0\nFeatures\t: asimd sha2\nCPU implementer\t: 0x41\nCPU variant\t: 0x0\nCPU part\t: 0xd03\nCPU revision\t: 4\n\n\
                       processor\t: 4\nFeatures\t: asimd sha2 sve\nCPU implementer\t: 0x41\nCPU variant\t: 0x1\nCPU part\t: 0xd08\nCPU revision\t: 3\n";
        let (_dir, root) = root(&[("proc/cpuinfo", cpuinfo)]);
        let (little, big) = (cpu(&root, 0), cpu(&root, 4));
        assert_eq!(little.model.as_deref(), Some("ARM Cortex-A53"));
        assert_eq!(big.model.as_deref(), Some("ARM Cortex-A72"));
        assert_eq!(little.midr.as_deref(), Some("0x00000000410fd034"));
        assert_eq!(big.midr.as_deref(), Some("0x00000000411fd083"));
        assert_eq!(little.features, ["asimd", "sha2"]);
        assert_eq!(big.features, ["asimd", "sha2", "sve"]);
        for cpus in [[0, 4], [4, 0]] {
            assert!(!features(&root, &cpus).contains("sve"));
            assert_eq!(stable(&root, &cpus, &[]).cpu_features, ["asimd", "sha2"]);
        }
        assert!(features(&root, &[4]).contains("sve"));
        let both = stable(&root, &[4, 0], &[]).cpu_model;
        assert_eq!(both.as_deref(), Some("ARM Cortex-A72 + ARM Cortex-A53"));
        assert_eq!(models(&root, &[4, 4]), ["ARM Cortex-A72"]);
    }

    #[test]
    fn only_harmless_kernel_parameters_are_kept() {
        let (_dir, root) = root(&[("proc/cmdline", "root=UUID=1234 isolcpus=2-3 nosmt quiet\n")]);
        let other = volatile(&root).other;
        assert_eq!(other["/proc/cmdline isolcpus"], "2-3");
        assert_eq!(other["/proc/cmdline nosmt"], "");
        assert_eq!(other.len(), 2);
    }

    #[test]
    fn facts_are_of_the_measured_cpu() {
        let (_dir, root) = root(&[
            (
                "proc/cpuinfo",
                "processor\t: 0\nvendor_id\t: GenuineIntel\nmodel name\t: Little\nflags\t\t: fpu avx2\n\nprocessor\t: 1\nvendor_id\t: GenuineIntel\nmodel name\t: Big\nflags\t\t: fpu avx2 sha_ni hypervisor\n",
            ),
            ("proc/meminfo", "MemTotal:       24000000 kB\nSwapTotal: 100 kB\nSwapFree: 40 kB\n"),
            ("proc/stat", "cpu  1 2 3 4 5 6 7 8 9 10\ncpu1 1 2 3 4 5 6 7 53 9 10\n"),
            ("etc/os-release", "NAME=x\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\n"),
            ("sys/class/dmi/id/sys_vendor", "QEMU\n"),
            ("sys/devices/system/cpu/online", "0-1\n"),
            ("sys/devices/system/cpu/cpu1/topology/thread_siblings_list", "0-1\n"),
            ("sys/devices/system/cpu/cpu1/cpufreq/scaling_min_freq", "2100000\n"),
            ("sys/devices/cpu_core/cpus", "1-3\n"),
            ("sys/bus/event_source/devices/cpu_core/cpus", "1-3\n"),
            ("sys/bus/event_source/devices/cpu_atom/cpus", "0\n"),
        ]);
        let facts = stable(&root, &[1], &[0, 1]);
        assert_eq!(facts.cpu_model.as_deref(), Some("Big"));
        assert_eq!(facts.cpu_features, ["avx2", "sha_ni"]);
        assert_eq!(facts.virtualization.as_deref(), Some("qemu"));
        assert_eq!(facts.os.as_deref(), Some("Debian GNU/Linux 12 (bookworm)"));
        assert_eq!(facts.memory_total_kib, Some(24_000_000));
        assert_eq!(volatile(&root).swap_used_kib, Some(60));
        let big = cpu(&root, 1);
        assert_eq!(
            (big.min_khz, &big.siblings[..]),
            (Some(2_100_000), &[0][..])
        );
        assert_eq!(big.core_type.as_deref(), Some("cpu_core"));
        assert_eq!(big.pmu.as_deref(), Some("cpu_core"));
        assert_eq!(cpu(&root, 0).pmu.as_deref(), Some("cpu_atom"));
        assert_eq!(steal_ticks(&root, 1), Some(53));
        assert_eq!(busy_ticks(&root, 1), Some(1 + 2 + 3 + 6 + 7));
        assert_eq!((busy_ticks(&root, 5), throttled(&root, 1)), (None, None));
    }

    #[test]
    fn lists_of_the_kernel_are_read() {
        assert_eq!(parse_cpu_list("0-2,5,7-8\n"), [0, 1, 2, 5, 7, 8]);
        assert_eq!(parse_cpu_list(""), [0u32; 0]);
    }

    #[test]
    fn changes_of_the_frequency_are_counted() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::at(dir.path());
        assert_eq!(
            frequency(&root, 1).changes_until(&frequency(&root, 1)),
            None
        );
        let folder = dir.path().join("sys/devices/system/cpu/cpu1/cpufreq/stats");
        std::fs::create_dir_all(&folder).unwrap();
        let write = |name: &str, value: &str| {
            std::fs::write(folder.parent().unwrap().join(name), value).unwrap();
        };
        write("scaling_min_freq", "2000000");
        write("scaling_max_freq", "2000000");
        let first = frequency(&root, 1);
        assert_eq!(first.changes_until(&frequency(&root, 1)), Some(0));
        write("scaling_max_freq", "3000000");
        assert_eq!(first.changes_until(&frequency(&root, 1)), Some(1));
        write("stats/total_trans", "10");
        let counting = frequency(&root, 1);
        write("stats/total_trans", "13");
        assert_eq!(counting.changes_until(&frequency(&root, 1)), Some(3));
    }
}

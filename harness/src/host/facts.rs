//! Facts of the machine, read from `/proc`, `/sys` and `/etc` below a root folder.
//!
//! Nothing is judged here. A file that is absent, empty or unreadable gives `None`, never a guess.
//! No host name and no user name is read.

use crate::evidence::{CpuFacts, StableFacts, VolatileFacts};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// CPU features that builds of this field ask for; others are noise in the evidence.
const FEATURES: [&str; 24] = [
    "sse4_2",
    "popcnt",
    "avx",
    "avx2",
    "bmi1",
    "bmi2",
    "aes",
    "pclmulqdq",
    "sha_ni",
    "adx",
    "avx512f",
    "avx512vl",
    "avx512bw",
    "avx512ifma",
    "asimd",
    "pmull",
    "sha1",
    "sha2",
    "sha3",
    "sha512",
    "sve",
    "sve2",
    "sm3",
    "sm4",
];

/// Where the kernel's files are looked for: `/`, or a copy of them in tests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Root(PathBuf);

impl Default for Root {
    fn default() -> Self {
        Root::at("/")
    }
}

impl Root {
    /// Files below `folder`.
    pub fn at(folder: impl AsRef<Path>) -> Self {
        Root(folder.as_ref().to_owned())
    }

    /// Whole content without the last line end; `None` when it is absent, empty or no text.
    pub fn text(&self, path: &str) -> Option<String> {
        let text = std::fs::read_to_string(self.0.join(path)).ok()?;
        let text = text.trim_end_matches(['\n', '\0']);
        (!text.is_empty()).then(|| text.to_owned())
    }

    /// Content as a number.
    pub fn number<T: std::str::FromStr>(&self, path: &str) -> Option<T> {
        self.text(path)?.trim().parse().ok()
    }

    /// Whether there is such a file or folder.
    pub fn exists(&self, path: &str) -> bool {
        self.0.join(path).exists()
    }

    /// Names in a folder, sorted; none when it is absent.
    pub fn names(&self, folder: &str) -> Vec<String> {
        let Ok(entries) = std::fs::read_dir(self.0.join(folder)) else {
            return Vec::new();
        };
        let mut names: Vec<String> = entries
            .flatten()
            .filter_map(|entry| entry.file_name().into_string().ok())
            .collect();
        names.sort();
        names
    }
}

/// Facts that do not change while the machine is up. `measured` is the first measured CPU, `allowed`
/// are the CPUs that this process may use.
pub fn stable(root: &Root, measured: Option<u32>, allowed: &[u32]) -> StableFacts {
    let cpuinfo = CpuInfo::read(root, measured.unwrap_or(0));
    StableFacts {
        architecture: std::env::consts::ARCH.to_owned(),
        cpu_model: cpuinfo.value(&["model name"]),
        midr: root.text(&cpu_file(
            measured.unwrap_or(0),
            "regs/identification/midr_el1",
        )),
        cpu_features: cpuinfo.features(),
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
        virtualization: virtualization(root, &cpuinfo),
        clocksource: root.text("sys/devices/system/clocksource/clocksource0/current_clocksource"),
    }
}

/// All features of a CPU as the kernel names them, for builds and codes that require some; empty when
/// the kernel does not tell.
pub fn features(root: &Root, cpu: u32) -> std::collections::BTreeSet<String> {
    CpuInfo::read(root, cpu).flags().collect()
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
        other: BTreeMap::new(),
    }
}

/// Facts of one CPU.
pub fn cpu(root: &Root, cpu: u32) -> CpuFacts {
    let file = |name: &str| cpu_file(cpu, name);
    let siblings = root.text(&file("topology/thread_siblings_list"));
    CpuFacts {
        cpu,
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

fn cpu_file(cpu: u32, name: &str) -> String {
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
    let own = names.iter().find(|name| {
        let is_core = name.starts_with("cpu_") || name.starts_with("arm");
        is_core && has_cpu(root, &format!("{DEVICES}/{name}/cpus"), cpu)
    });
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

/// What the machine runs under, as far as the kernel tells.
fn virtualization(root: &Root, cpuinfo: &CpuInfo) -> Option<String> {
    if let Some(name) = root.text("run/systemd/container") {
        return Some(format!("container:{name}"));
    }
    if root.exists(".dockerenv") {
        return Some("container:docker".into());
    }
    let vendor = root.text("sys/class/dmi/id/sys_vendor").unwrap_or_default();
    let product = root
        .text("sys/class/dmi/id/product_name")
        .unwrap_or_default();
    let named = [
        ("QEMU", "qemu"),
        ("KVM", "kvm"),
        ("VMware", "vmware"),
        ("VirtualBox", "oracle"),
        ("Amazon EC2", "amazon"),
        ("Google Compute", "google"),
        ("Virtual Machine", "microsoft"),
    ]
    .into_iter()
    .find(|(word, _)| vendor.contains(word) || product.contains(word));
    match (named, cpuinfo.flags().any(|flag| flag == "hypervisor")) {
        (Some((_, name)), _) => Some(name.into()),
        (None, true) => Some("unknown hypervisor".into()),
        // On x86 the processor says when it is virtual; elsewhere silence proves nothing.
        (None, false) if cpuinfo.is_x86() => Some("none".into()),
        (None, false) => None,
    }
}

/// The part of `/proc/cpuinfo` about one CPU, and what is said once for all.
struct CpuInfo(Vec<(String, String)>);

impl CpuInfo {
    fn read(root: &Root, cpu: u32) -> Self {
        let text = root.text("proc/cpuinfo").unwrap_or_default();
        let blocks: Vec<Vec<(String, String)>> = text
            .split("\n\n")
            .map(|block| {
                block
                    .lines()
                    .filter_map(|line| line.split_once(':'))
                    .map(|(k, v)| (k.trim().to_owned(), v.trim().to_owned()))
                    .collect()
            })
            .collect();
        let own = |block: &&Vec<(String, String)>| {
            block.contains(&("processor".to_owned(), cpu.to_string()))
        };
        let own = blocks.iter().find(own).or(blocks.first());
        CpuInfo(own.cloned().unwrap_or_default())
    }

    fn value(&self, keys: &[&str]) -> Option<String> {
        let (_, value) = self.0.iter().find(|(k, _)| keys.contains(&k.as_str()))?;
        (!value.is_empty()).then(|| value.clone())
    }

    fn flags(&self) -> impl Iterator<Item = String> {
        let flags = self.value(&["flags", "Features"]).unwrap_or_default();
        flags
            .split_whitespace()
            .map(str::to_owned)
            .collect::<Vec<_>>()
            .into_iter()
    }

    fn features(&self) -> Vec<String> {
        self.flags()
            .filter(|flag| FEATURES.contains(&flag.as_str()))
            .collect()
    }

    fn is_x86(&self) -> bool {
        self.value(&["vendor_id"]).is_some()
    }
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
        let facts = stable(&root, Some(3), &[3]);
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
        let facts = stable(&root, Some(1), &[0, 1]);
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
}

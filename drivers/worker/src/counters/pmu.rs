//! Which performance monitoring unit counts on a given CPU, from the kernel's own list.
//!
//! A machine with two kinds of cores has a PMU for each, and an event opened on the wrong one reads
//! 0 for ever; so the PMU comes from the pinned CPU, never from a name or from CPU 0. A core PMU is
//! the device `cpu` (x86 with one kind of core) or one with a file `cpus` that lists its CPUs
//! (`cpu_core`, `cpu_atom`, `armv8_*`, `apple_*`); uncore units have `cpumask` instead. Opening the
//! event is `perf`'s part.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Where the kernel lists event sources, below the system root.
pub const DEVICES: &str = "sys/bus/event_source/devices";

/// One core PMU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pmu {
    /// Name of the device.
    pub name: String,
    /// Number that goes into `perf_event_attr.type`.
    pub kind: u32,
    /// CPUs it counts on; `None` where the device does not say, which means all.
    pub cpus: Option<BTreeSet<u32>>,
    /// `perf_event_attr.config` of its cycle event, where the device names one.
    pub cycles: Option<u64>,
    /// `perf_event_attr.config` of its instruction event, where the device names one.
    pub instructions: Option<u64>,
    /// Whether its format has the bit that asks for reads from user mode (arm64: `config1:1`).
    pub user_read_bit: bool,
}

impl Pmu {
    /// Whether it counts on `cpu`.
    pub fn counts_on(&self, cpu: u32) -> bool {
        self.cpus.as_ref().is_none_or(|cpus| cpus.contains(&cpu))
    }

    /// Name and CPUs, for messages.
    pub fn describe(&self) -> String {
        match &self.cpus {
            Some(cpus) => format!("{} (CPUs {})", self.name, list(cpus)),
            None => format!("{} (all CPUs)", self.name),
        }
    }
}

/// What the kernel lists.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pmus {
    /// Core PMUs, by name.
    pub cores: Vec<Pmu>,
    /// Names of all other event sources.
    pub others: Vec<String>,
    /// Whether the list could be read at all (containers often have no `/sys`).
    pub readable: bool,
}

/// How the cycle event of a CPU is named to the kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Choice {
    /// One kind of core: the generic hardware event, no PMU to confuse it with.
    Generic(Option<Pmu>),
    /// Several kinds of cores: this PMU's own event.
    Named(Pmu),
    /// No PMU counts on the CPU, or there are several and the CPU is not known.
    NoPmu,
}

impl Pmus {
    /// Reads the list below `root` (`/`, or a copy for tests).
    pub fn read(root: &Path) -> Pmus {
        let mut found = Pmus::default();
        let Ok(entries) = std::fs::read_dir(root.join(DEVICES)) else {
            return found;
        };
        found.readable = true;
        for entry in entries.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            match core_pmu(&entry.path(), &name) {
                Some(pmu) => found.cores.push(pmu),
                None => found.others.push(name),
            }
        }
        found.cores.sort_by(|a, b| a.name.cmp(&b.name));
        found.others.sort();
        found
    }

    /// The PMU for `cpu`; `None` means that the thread is not pinned.
    pub fn choose(&self, cpu: Option<u32>) -> Choice {
        let counting = |pmu: &&Pmu| cpu.is_none_or(|cpu| pmu.counts_on(cpu));
        match self.cores.as_slice() {
            [] => Choice::Generic(None),
            [only] if counting(&only) => Choice::Generic(Some(only.clone())),
            [_] => Choice::NoPmu,
            several => match cpu.and_then(|_| several.iter().find(counting)) {
                Some(pmu) => Choice::Named(pmu.clone()),
                None => Choice::NoPmu,
            },
        }
    }

    /// What the list holds, for messages.
    pub fn describe(&self) -> String {
        let cores: Vec<String> = self.cores.iter().map(Pmu::describe).collect();
        match (self.readable, cores.is_empty()) {
            (false, _) => format!("/{DEVICES} cannot be read"),
            (true, true) => format!(
                "/{DEVICES} lists no core PMU (only {})",
                self.others.join(", ")
            ),
            (true, false) => format!("core PMUs: {}", cores.join(", ")),
        }
    }
}

fn core_pmu(device: &Path, name: &str) -> Option<Pmu> {
    let cpus = text(device.join("cpus")).and_then(|list| parse_cpu_list(&list));
    if name != "cpu" && cpus.is_none() {
        return None;
    }
    let event = |names: &[&str]| {
        let file = |name: &&str| text(device.join("events").join(name));
        names
            .iter()
            .find_map(file)
            .and_then(|text| event_config(device, &text))
    };
    Some(Pmu {
        name: name.to_owned(),
        kind: text(device.join("type"))?.parse().ok()?,
        cpus,
        cycles: event(&["cpu-cycles", "cpu_cycles"]),
        instructions: event(&["instructions", "inst_retired"]),
        user_read_bit: device.join("format/rdpmc").exists(),
    })
}

fn text(path: PathBuf) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    Some(text.trim().to_owned())
}

/// `perf_event_attr.config` of an event file (`event=0x3c,umask=0x01`), by the bit ranges that the
/// device's `format` folder gives its terms. `None` where a term is not part of `config`.
fn event_config(device: &Path, event: &str) -> Option<u64> {
    let mut config = 0;
    for term in event.split(',') {
        let (name, value) = term.split_once('=').unwrap_or((term, "1"));
        let format = text(device.join("format").join(name))?;
        let ranges = format.strip_prefix("config:")?;
        config |= scatter(number(value)?, ranges)?;
    }
    Some(config)
}

/// Puts the bits of `value`, lowest first, into the bit ranges (`0-7,21`).
fn scatter(mut value: u64, ranges: &str) -> Option<u64> {
    let mut config = 0;
    for range in ranges.split(',') {
        let (low, high) = range.split_once('-').unwrap_or((range, range));
        for bit in low.parse().ok()?..=high.parse::<u32>().ok()? {
            config |= (value & 1).checked_shl(bit)?;
            value >>= 1;
        }
    }
    (value == 0).then_some(config)
}

fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// CPUs of a kernel list (`0-3,8`); an empty list is a PMU without online CPUs. `None` where the
/// text is no list.
pub fn parse_cpu_list(text: &str) -> Option<BTreeSet<u32>> {
    let mut cpus = BTreeSet::new();
    for part in text.trim().split(',').filter(|part| !part.is_empty()) {
        let (low, high) = part.split_once('-').unwrap_or((part, part));
        cpus.extend(low.parse::<u32>().ok()?..=high.parse().ok()?);
    }
    Some(cpus)
}

/// The kernel's way of writing a set of CPUs.
fn list(cpus: &BTreeSet<u32>) -> String {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for &cpu in cpus {
        match ranges.last_mut() {
            Some((_, high)) if *high + 1 == cpu => *high = cpu,
            _ => ranges.push((cpu, cpu)),
        }
    }
    let text = |&(low, high): &(u32, u32)| match low == high {
        true => low.to_string(),
        false => format!("{low}-{high}"),
    };
    ranges.iter().map(text).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Writes `(path below the devices folder, content)` into a root of its own.
    fn root(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(root.path().join(DEVICES)).unwrap();
        for (path, content) in files {
            let path = root.path().join(DEVICES).join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, format!("{content}\n")).unwrap();
        }
        root
    }

    const HYBRID: &[(&str, &str)] = &[
        ("cpu_core/type", "4"),
        ("cpu_core/cpus", "0-3"),
        ("cpu_core/format/event", "config:0-7"),
        ("cpu_core/format/umask", "config:8-15"),
        ("cpu_core/events/cpu-cycles", "event=0x3c"),
        ("cpu_core/events/instructions", "event=0xc0"),
        ("cpu_atom/type", "10"),
        ("cpu_atom/cpus", "4-7"),
        ("cpu_atom/format/event", "config:0-7"),
        ("cpu_atom/format/umask", "config:8-15"),
        ("cpu_atom/events/cpu-cycles", "event=0x3c"),
        ("cpu_atom/events/instructions", "event=0xc0"),
        ("uncore_imc_0/type", "20"),
        ("uncore_imc_0/cpumask", "0"),
        ("software/type", "1"),
    ];

    #[test]
    fn a_hybrid_processor_gives_each_cpu_the_pmu_of_its_own_core() {
        let root = root(HYBRID);
        let pmus = Pmus::read(root.path());
        for (cpu, name, kind) in [(0, "cpu_core", 4), (3, "cpu_core", 4), (4, "cpu_atom", 10)] {
            let Choice::Named(pmu) = pmus.choose(Some(cpu)) else {
                panic!("CPU {cpu} has a PMU");
            };
            assert_eq!((pmu.name.as_str(), pmu.kind), (name, kind));
            assert_eq!((pmu.cycles, pmu.instructions), (Some(0x3c), Some(0xc0)));
        }
        assert_eq!(pmus.choose(Some(9)), Choice::NoPmu);
        assert_eq!(pmus.choose(None), Choice::NoPmu);
        assert_eq!(pmus.others, ["software", "uncore_imc_0"]);
        assert_eq!(
            pmus.describe(),
            "core PMUs: cpu_atom (CPUs 4-7), cpu_core (CPUs 0-3)"
        );
    }

    #[test]
    fn one_kind_of_core_needs_no_named_event() {
        let arm = root(&[
            ("armv8_pmuv3/type", "8"),
            ("armv8_pmuv3/cpus", "0-1"),
            ("armv8_pmuv3/format/event", "config:0-15"),
            ("armv8_pmuv3/format/rdpmc", "config1:1"),
            ("armv8_pmuv3/events/cpu_cycles", "event=0x0011"),
        ]);
        let Choice::Generic(Some(pmu)) = Pmus::read(arm.path()).choose(Some(1)) else {
            panic!("one PMU");
        };
        assert_eq!(
            (pmu.name.as_str(), pmu.kind, pmu.cycles),
            ("armv8_pmuv3", 8, Some(0x11))
        );
        assert_eq!((pmu.instructions, pmu.user_read_bit), (None, true));
        let cluster_without = Pmus::read(arm.path()).choose(Some(4));
        assert_eq!(cluster_without, Choice::NoPmu);

        let server = root(&[("cpu/type", "4"), ("cpu/events/cpu-cycles", "event=0x76")]);
        let Choice::Generic(Some(pmu)) = Pmus::read(server.path()).choose(None) else {
            panic!("one PMU");
        };
        assert_eq!((pmu.name.as_str(), pmu.cpus), ("cpu", None));
    }

    #[test]
    fn a_machine_without_core_pmu_is_told_from_one_without_sys() {
        let vm = root(&[("software/type", "1"), ("tracepoint/type", "2")]);
        let pmus = Pmus::read(vm.path());
        assert_eq!(pmus.choose(Some(0)), Choice::Generic(None));
        assert!(pmus
            .describe()
            .ends_with("lists no core PMU (only software, tracepoint)"));

        let bare = tempfile::tempdir().unwrap();
        let pmus = Pmus::read(bare.path());
        assert_eq!(pmus.choose(Some(0)), Choice::Generic(None));
        assert!(pmus.describe().ends_with("cannot be read"));
    }

    #[test]
    fn terms_of_an_event_go_to_the_bits_that_the_format_names() {
        let root = root(&[
            ("cpu/type", "4"),
            ("cpu/format/event", "config:0-7,32-35"),
            ("cpu/format/umask", "config:8-15"),
            ("cpu/format/any", "config:21"),
            ("cpu/format/ldlat", "config1:0-15"),
            ("cpu/events/cpu-cycles", "event=0x13c,umask=1,any"),
            ("cpu/events/instructions", "event=0xc0,ldlat=3"),
        ]);
        let pmus = Pmus::read(root.path());
        assert_eq!(
            pmus.cores[0].cycles,
            Some(1 << 32 | 1 << 21 | 1 << 8 | 0x3c)
        );
        assert_eq!(pmus.cores[0].instructions, None, "ldlat is not in config");
    }

    proptest! {
        #[test]
        fn a_written_cpu_list_reads_back(cpus in proptest::collection::btree_set(0u32..300, 0..40)) {
            prop_assert_eq!(parse_cpu_list(&list(&cpus)), Some(cpus));
        }

        #[test]
        fn no_text_makes_the_list_parser_panic(text in "[0-9,x-]{0,12}") {
            // A huge range is refused by the kernel's format, not by us: keep the numbers small.
            prop_assume!(text.split(['-', ',']).all(|part| part.len() < 5));
            let _ = parse_cpu_list(&text);
        }
    }
}

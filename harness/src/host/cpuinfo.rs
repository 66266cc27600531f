//! `/proc/cpuinfo`: the only place that tells some facts on machines whose `/sys` is not there.

use super::parts::Midr;
use super::root::Root;

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

/// What is said about one CPU.
pub struct CpuInfo {
    cpu: u32,
    lines: Vec<(String, String)>,
}

impl CpuInfo {
    /// The part about `cpu`; the first part where it has none of its own.
    pub fn read(root: &Root, cpu: u32) -> Self {
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
        CpuInfo {
            cpu,
            lines: own.cloned().unwrap_or_default(),
        }
    }

    /// What stands after `key`; an empty value is none.
    pub fn value(&self, key: &str) -> Option<String> {
        let (_, value) = self.lines.iter().find(|(k, _)| k == key)?;
        (!value.is_empty()).then(|| value.clone())
    }

    /// All features as the kernel names them.
    pub fn flags(&self) -> Vec<String> {
        let flags = self.value("flags").or_else(|| self.value("Features"));
        flags
            .unwrap_or_default()
            .split_whitespace()
            .map(str::to_owned)
            .collect()
    }

    /// Those that builds may ask for.
    pub fn features(&self) -> Vec<String> {
        let mut flags = self.flags();
        flags.retain(|flag| FEATURES.contains(&flag.as_str()));
        flags
    }

    /// Whether the processor says that it is virtual, as x86 ones do.
    pub fn is_virtual(&self) -> bool {
        self.flags().iter().any(|flag| flag == "hypervisor")
    }

    /// Whether this is an x86 processor.
    pub fn is_x86(&self) -> bool {
        self.value("vendor_id").is_some()
    }

    /// `x86_64` or `aarch64`, by the lines that only one of them has.
    pub fn architecture(&self) -> Option<&'static str> {
        match (self.is_x86(), self.value("CPU implementer").is_some()) {
            (true, _) => Some("x86_64"),
            (_, true) => Some("aarch64"),
            _ => None,
        }
    }

    /// MIDR_EL1 of an ARM processor: the kernel's file, else put together from the lines here.
    pub fn midr(&self, root: &Root) -> Option<Midr> {
        let file = super::facts::cpu_file(self.cpu, "regs/identification/midr_el1");
        root.text(&file)
            .and_then(|text| Midr::from_text(&text))
            .or_else(|| Midr::from_cpuinfo(|key| self.value(key)))
    }
}

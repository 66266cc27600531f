//! What the NICCS self-assessment guide asks of the environment (§2.1), and what the implementations
//! of a campaign ask of the processor, so that none ends in SIGILL.

use super::{Item, Seen};
use crate::config::{Arch, Campaign};
use crate::evidence::{CpuFacts, Finding};
use crate::identity::Identity;
use std::collections::{BTreeMap, BTreeSet};

/// "above 4 GB memory".
const MEMORY_ABOVE_BYTES: u64 = 4_000_000_000;
/// "Linux with kernel 4.19 or later".
const KERNEL: [u64; 2] = [4, 19];
/// "GCC 8.5.0 or later".
const GCC: [u64; 3] = [8, 5, 0];
/// "above 2 GHz".
const CLOCK_ABOVE_HZ: u64 = 2_000_000_000;

/// What an implementation needs and the processor has not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Need {
    /// The implementation, `candidate/label/code/build`.
    pub identity: String,
    /// Features, as `/proc/cpuinfo` names them.
    pub features: Vec<String>,
}

/// What implementations for an architecture need and a processor with these features has not.
pub fn needs(campaign: &Campaign, arch: Arch, features: &BTreeSet<String>) -> Vec<Need> {
    let lacking = |identity: Identity| {
        let (_, _, code, build) = campaign.find(&identity)?;
        let of_build = build.requires.get(&arch).into_iter().flatten();
        let features: BTreeSet<&String> = of_build
            .chain(&code.requires)
            .filter(|feature| !features.contains(*feature))
            .collect();
        (!features.is_empty()).then(|| Need {
            identity: identity.to_string(),
            features: features.into_iter().cloned().collect(),
        })
    };
    let all = campaign.identities(arch).into_iter();
    all.filter_map(lacking).collect()
}

pub(super) fn memory(seen: &Seen) -> Finding {
    let item = Item::required(
        "guide_memory",
        "proc/meminfo",
        "measure on a machine with more than 4 GB (guide §2.1)",
    );
    let Some(kib) = seen.stable.memory_total_kib else {
        return item.unknown("MemTotal cannot be read");
    };
    let value = format!("{} MiB", kib / 1024);
    match kib * 1024 > MEMORY_ABOVE_BYTES {
        true => item.ok(value),
        false => item.bad(value),
    }
}

pub(super) fn kernel(seen: &Seen) -> Finding {
    let item = Item::required(
        "guide_kernel",
        "proc/sys/kernel/osrelease",
        "boot Linux 4.19 or later (guide §2.1)",
    );
    let Some(release) = seen.stable.kernel.as_deref() else {
        return item.unknown("file absent or empty");
    };
    match version(release) {
        Some(found) if found[..] >= KERNEL[..] => item.ok(release),
        Some(_) => item.bad(release),
        None => item.unknown(format!("`{release}` is no version")),
    }
}

pub(super) fn compiler(seen: &Seen) -> Finding {
    let item = Item::required(
        "guide_compiler",
        "the compiler's --version",
        "install GCC 8.5.0 or later (guide §2.1), or name another with `cc` of the system",
    );
    let Some(line) = seen.stable.compiler.as_deref() else {
        return item.unknown("not asked, or no compiler");
    };
    if line.contains("clang") {
        return item.bad(format!("{line}: the guide names GCC"));
    }
    match gcc_version(line) {
        Some(found) if found[..] >= GCC[..] => item.ok(line),
        Some(_) => item.bad(line),
        None => item.unknown(format!("`{line}` has no version")),
    }
}

/// The first word after the brackets that begins with a number: `gcc (GCC) 8.5.0 20210514 (Red Hat 8.5.0-4)`.
fn gcc_version(line: &str) -> Option<Vec<u64>> {
    let after = line.split_once(')').map_or(line, |(_, after)| after);
    after
        .split_whitespace()
        .find(|word| word.contains('.') && word.starts_with(|c: char| c.is_ascii_digit()))
        .and_then(version)
}

/// The leading numbers: `6.1.0-57-arm64` is 6, 1, 0.
fn version(text: &str) -> Option<Vec<u64>> {
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let numbers: Option<Vec<u64>> = text[..end]
        .trim_end_matches('.')
        .split('.')
        .map(|part| part.parse().ok())
        .collect();
    numbers.filter(|numbers| numbers.len() >= 2)
}

/// "64-bit x86 with AVX2, above 2 GHz".
pub(super) fn processor(seen: &Seen, cpu: &CpuFacts) -> Finding {
    let item = Item::required(
        "guide_processor",
        "/proc/cpuinfo, cpufreq, core clock of the probe",
        "measure on a processor with AVX2 above 2 GHz (guide §2.1, x86 edition)",
    )
    .on(cpu.cpu);
    if seen.stable.architecture != "x86_64" {
        return item.not_applicable("the x86 edition asks for AVX2 and more than 2 GHz");
    }
    let features = &cpu.features;
    if !features.iter().any(|feature| feature == "avx2") {
        return match features.is_empty() {
            true => item.unknown("the features of the processor cannot be read"),
            false => item.bad("no AVX2"),
        };
    }
    let value = |hertz: u64| format!("AVX2, {:.2} GHz", hertz as f64 / 1e9);
    // What the clock may reach is decided by the limit. Without one there is an estimate, which other
    // work on the CPU can only lower.
    match (cpu.max_khz.map(|khz| khz * 1000), cpu.measured_clock_hz) {
        (Some(hertz), _) if hertz > CLOCK_ABOVE_HZ => item.ok(value(hertz)),
        (Some(hertz), _) => item.bad(value(hertz)),
        (None, Some(hertz)) if hertz > CLOCK_ABOVE_HZ => item.ok(value(hertz)),
        (None, Some(hertz)) => item.unknown(format!("{} or more", value(hertz))),
        (None, None) => item.unknown("AVX2; the clock is not known"),
    }
}

/// Rows that this processor cannot run are skipped, and that is said before the run.
pub(super) fn cpu_features(seen: &Seen) -> Finding {
    let item = Item::advice(
        "cpu_features",
        "/proc/cpuinfo, requires of campaign.toml",
        "measure on a processor that has them, or leave these rows skipped (reason cpu_feature)",
    );
    let Some(needs) = seen.needs else {
        return item.not_applicable("no campaign.toml here");
    };
    let mut by_features: BTreeMap<String, usize> = BTreeMap::new();
    for need in needs {
        *by_features.entry(need.features.join(" ")).or_default() += 1;
    }
    if by_features.is_empty() {
        return item.ok("every implementation can run");
    }
    let parts: Vec<String> = by_features
        .iter()
        .map(|(features, n)| format!("{n} need {features}"))
        .collect();
    item.bad(format!(
        "implementations lack features: {}",
        parts.join("; ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_in_the_first_line_of_a_compiler() {
        for (line, expected) in [
            ("gcc (Debian 12.2.0-14) 12.2.0", Some(vec![12, 2, 0])),
            (
                "gcc (GCC) 8.5.0 20210514 (Red Hat 8.5.0-4)",
                Some(vec![8, 5, 0]),
            ),
            (
                "aarch64-linux-gnu-gcc (Ubuntu 11.4.0-1ubuntu1~22.04) 11.4.0",
                Some(vec![11, 4, 0]),
            ),
            (
                "gcc-10 (SUSE Linux) 10.3.1 20210707 [revision 0]",
                Some(vec![10, 3, 1]),
            ),
            ("cc: no version", None),
        ] {
            assert_eq!(gcc_version(line), expected, "{line}");
        }
    }

    #[test]
    fn versions_compare_as_numbers() {
        let at_least = |text: &str| version(text).map(|found| found[..] >= KERNEL[..]);
        for (text, expected) in [
            ("4.19.0-27-amd64", Some(true)),
            ("4.9.0", Some(false)),
            ("4.18.0-553.el8", Some(false)),
            ("5.4", Some(true)),
            ("10.0-rc1", Some(true)),
            ("next", None),
        ] {
            assert_eq!(at_least(text), expected, "{text}");
        }
        assert!(version("8.5.0").unwrap()[..] >= GCC[..]);
        assert!(version("8.4.99").unwrap()[..] < GCC[..]);
    }
}

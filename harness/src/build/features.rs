//! What a CPU can do, in the words of `/proc/cpuinfo`, so that code that needs more is skipped with
//! the reason and never meets SIGILL.
//!
//! On the system's own architecture the words are the host's. Under a runner they are those of the
//! CPU that its `-cpu` names, from a table here: `/proc/cpuinfo` is then the host's and says nothing.

use std::collections::BTreeSet;

/// The features of a CPU, or why they are not known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Features {
    /// Known.
    Known {
        /// Whose: a model name or the runner's CPU.
        cpu: String,
        /// The words.
        words: BTreeSet<String>,
    },
    /// Not known: what needs a feature is skipped, with this text.
    Unknown(String),
    /// Not asked: everything is built, for a machine that will decide itself (packs).
    NotAsked,
}

impl Features {
    /// Which of `needed` are missing, as a sentence; `None` when nothing is.
    pub fn lacking<'a>(&self, needed: impl IntoIterator<Item = &'a String>) -> Option<String> {
        let needed: BTreeSet<&String> = needed.into_iter().collect();
        if needed.is_empty() {
            return None;
        }
        match self {
            Features::NotAsked => None,
            Features::Unknown(why) => Some(format!("needs {}, and {why}", join(needed))),
            Features::Known { cpu, words } => {
                let missing: Vec<&String> =
                    needed.into_iter().filter(|n| !words.contains(*n)).collect();
                (!missing.is_empty()).then(|| format!("needs {}, which {cpu} lacks", join(missing)))
            }
        }
    }

    /// From the text of `/proc/cpuinfo`: what all CPUs have in common. Lines `flags` (x86) or
    /// `Features` (ARM).
    pub fn of_cpuinfo(cpuinfo: &str) -> Features {
        let mut common: Option<BTreeSet<String>> = None;
        for line in cpuinfo.lines() {
            let Some((key, value)) = line.split_once(':') else {
                continue;
            };
            if matches!(key.trim(), "flags" | "Features") {
                let words = value.split_whitespace().map(str::to_owned).collect();
                common = Some(match common {
                    None => words,
                    Some(so_far) => so_far.intersection(&words).cloned().collect(),
                });
            }
        }
        match common {
            Some(words) => Features::Known {
                cpu: cpu_model(cpuinfo).unwrap_or_else(|| "this CPU".to_owned()),
                words,
            },
            None => Features::Unknown("/proc/cpuinfo does not tell the features".to_owned()),
        }
    }

    /// Of the CPU that a QEMU user-mode runner emulates.
    pub fn of_runner(runner: &[String]) -> Features {
        let cpu = runner
            .iter()
            .position(|word| word == "-cpu")
            .and_then(|at| runner.get(at + 1))
            .and_then(|value| value.split(',').next());
        let Some(cpu) = cpu else {
            return Features::Unknown(
                "the runner names no CPU: add `-cpu NAME` to `runner` of the system".to_owned(),
            );
        };
        match EMULATED.iter().find(|(name, _)| *name == cpu) {
            Some((name, words)) => Features::Known {
                cpu: format!("the runner's CPU {name}"),
                words: words.split_whitespace().map(str::to_owned).collect(),
            },
            None => Features::Unknown(format!(
                "the features of the runner's CPU `{cpu}` are not in the table of this tool"
            )),
        }
    }
}

fn join<'a>(words: impl IntoIterator<Item = &'a String>) -> String {
    words
        .into_iter()
        .map(String::as_str)
        .collect::<Vec<_>>()
        .join(", ")
}

/// Words of x86 flags that name instructions which a compiler may use once `-march=native` finds them;
/// other flags are about the kernel, errata and virtualisation, and differ without consequence. Families
/// come by their beginnings in [`FAMILIES`].
const INSTRUCTIONS: &str =
    "3dnowprefetch abm adx aes bmi1 bmi2 cldemote clflushopt clwb clzero cmpccxadd cx16 enqcmd \
    f16c fma fma4 fsgsbase fxsr gfni hle lahf_lm lwp mmx movbe movdir64b movdiri mwaitx \
    pclmulqdq pku pni popcnt prefetchi ptwrite raoint rdpid rdrand rdseed rtm serialize sha512 \
    sha_ni sm3 sm4 ssse3 tbm tsxldtrk user_msr vaes vpclmulqdq waitpkg wbnoinvd xop";
/// Beginnings of the names of families of instructions.
const FAMILIES: &[&str] = &["amx_", "avx", "sse", "xsave"];

/// Instruction sets that all CPUs of a machine have in common, sorted. ARM kernels list little else than
/// those under `Features`.
pub fn instruction_sets(cpuinfo: &str) -> Vec<String> {
    let is_x86 = cpuinfo.lines().any(|line| line.starts_with("flags"));
    let is_instruction = |word: &String| {
        let word = word.as_str();
        let of_x86 = INSTRUCTIONS.split(' ').any(|known| known == word)
            || FAMILIES.iter().any(|f| word.starts_with(f));
        word != "cpuid" && (!is_x86 || of_x86)
    };
    match Features::of_cpuinfo(cpuinfo) {
        Features::Known { words, .. } => words.into_iter().filter(is_instruction).collect(),
        Features::Unknown(_) | Features::NotAsked => Vec::new(),
    }
}

/// The processor's name: `model name`, or implementer and part where ARM gives none.
pub fn cpu_model(cpuinfo: &str) -> Option<String> {
    let value = |wanted: &str| {
        cpuinfo.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            (key.trim() == wanted).then(|| value.trim().to_owned())
        })
    };
    value("model name").or_else(|| {
        Some(format!(
            "CPU implementer {} part {}",
            value("CPU implementer")?,
            value("CPU part")?
        ))
    })
}

/// CPUs of QEMU's user mode and the words that the Linux kernel has for what they can do; a test
/// compares each ARM line with what the emulator itself reports through AT_HWCAP and AT_HWCAP2.
pub const EMULATED: &[(&str, &str)] = &[
    ("cortex-a53", "fp asimd aes pmull sha1 sha2 crc32 cpuid"),
    ("cortex-a57", "fp asimd aes pmull sha1 sha2 crc32 cpuid"),
    ("cortex-a72", "fp asimd aes pmull sha1 sha2 crc32 cpuid"),
    (
        "cortex-a76",
        "fp asimd aes pmull sha1 sha2 crc32 atomics fphp asimdhp cpuid asimdrdm lrcpc dcpop asimddp",
    ),
    (
        "neoverse-n1",
        "fp asimd aes pmull sha1 sha2 crc32 atomics fphp asimdhp cpuid asimdrdm lrcpc dcpop asimddp",
    ),
    (
        "a64fx",
        "fp asimd aes pmull sha1 sha2 crc32 atomics fphp asimdhp cpuid asimdrdm fcma dcpop sve",
    ),
    ("Haswell", "sse4_2 popcnt aes avx avx2 bmi1 bmi2 fma"),
    ("Skylake-Client", "sse4_2 popcnt aes avx avx2 bmi1 bmi2 fma adx"),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn needs(words: &[&str]) -> Vec<String> {
        words.iter().map(|w| (*w).to_owned()).collect()
    }

    #[test]
    fn only_what_all_cpus_have_counts() {
        let cpuinfo = "processor\t: 0\nmodel name\t: Big\nflags\t\t: sse avx2 popcnt\n\n\
                       processor\t: 1\nmodel name\t: Small\nflags\t\t: sse popcnt\n";
        let features = Features::of_cpuinfo(cpuinfo);
        assert_eq!(features.lacking(&needs(&["popcnt"])), None);
        assert_eq!(
            features.lacking(&needs(&["avx2", "popcnt"])).unwrap(),
            "needs avx2, which Big lacks"
        );
    }

    #[test]
    fn an_arm_machine_without_model_name_is_named_by_its_part() {
        let cpuinfo =
            "processor : 0\nFeatures : fp asimd\nCPU implementer : 0x41\nCPU part : 0xd0c\n";
        let features = Features::of_cpuinfo(cpuinfo);
        assert_eq!(
            features.lacking(&needs(&["sve"])).unwrap(),
            "needs sve, which CPU implementer 0x41 part 0xd0c lacks"
        );
    }

    #[test]
    fn a_runner_is_judged_by_the_cpu_it_emulates() {
        let runner = |cpu: &str| needs(&["qemu-aarch64-static", "-cpu", cpu, "-L", "/x"]);
        let n1 = Features::of_runner(&runner("neoverse-n1"));
        assert_eq!(n1.lacking(&needs(&["asimd"])), None);
        assert!(n1.lacking(&needs(&["sha3"])).unwrap().contains("lacks"));
        let odd = Features::of_runner(&runner("z80"));
        assert_eq!(odd.lacking(&[]), None);
        assert!(odd.lacking(&needs(&["sha3"])).unwrap().contains("`z80`"));
        let none = Features::of_runner(&needs(&["qemu-aarch64-static"]));
        assert!(none.lacking(&needs(&["sve"])).unwrap().contains("-cpu"));
    }

    #[test]
    fn instruction_sets_are_those_that_a_compiler_may_use() {
        let x86 =
            "model name\t: X\nflags\t\t: fpu sse4_2 avx512f amx_tile md_clear flush_l1d gfni vmx\n";
        assert_eq!(
            instruction_sets(x86),
            ["amx_tile", "avx512f", "gfni", "sse4_2"]
        );
        let arm = "Features\t: fp asimd sve cpuid\nCPU part\t: 0xd0c\n";
        assert_eq!(instruction_sets(arm), ["asimd", "fp", "sve"]);
        assert_eq!(instruction_sets(""), [""; 0]);
    }

    #[test]
    fn a_pack_builds_everything() {
        assert_eq!(Features::NotAsked.lacking(&needs(&["sve"])), None);
    }
}

//! Names of ARM processors, which their kernel gives as numbers only.
//!
//! Numbers are those of MIDR_EL1 (ARM DDI 0487, "Main ID Register"); names are from the kernel's
//! `arch/arm64/include/asm/cputype.h` and from `lscpu` of util-linux. A number that is not here keeps
//! its digits, so that two processors are never taken for one.

/// Who made a processor: bits 31-24 of MIDR_EL1.
const IMPLEMENTERS: [(u32, &str); 17] = [
    (0x41, "ARM"),
    (0x42, "Broadcom"),
    (0x43, "Cavium"),
    (0x46, "Fujitsu"),
    (0x48, "HiSilicon"),
    (0x49, "Infineon"),
    (0x4d, "Motorola"),
    (0x4e, "NVIDIA"),
    (0x50, "APM"),
    (0x51, "Qualcomm"),
    (0x53, "Samsung"),
    (0x56, "Marvell"),
    (0x61, "Apple"),
    (0x69, "Intel"),
    (0x6d, "Microsoft"),
    (0x70, "Phytium"),
    (0xc0, "Ampere"),
];

/// Part numbers, bits 15-4 of MIDR_EL1, by implementer.
const PARTS: [(u32, u32, &str); 92] = [
    (0x41, 0xd01, "Cortex-A32"),
    (0x41, 0xd02, "Cortex-A34"),
    (0x41, 0xd03, "Cortex-A53"),
    (0x41, 0xd04, "Cortex-A35"),
    (0x41, 0xd05, "Cortex-A55"),
    (0x41, 0xd06, "Cortex-A65"),
    (0x41, 0xd07, "Cortex-A57"),
    (0x41, 0xd08, "Cortex-A72"),
    (0x41, 0xd09, "Cortex-A73"),
    (0x41, 0xd0a, "Cortex-A75"),
    (0x41, 0xd0b, "Cortex-A76"),
    (0x41, 0xd0c, "Neoverse-N1"),
    (0x41, 0xd0d, "Cortex-A77"),
    (0x41, 0xd0e, "Cortex-A76AE"),
    (0x41, 0xd40, "Neoverse-V1"),
    (0x41, 0xd41, "Cortex-A78"),
    (0x41, 0xd42, "Cortex-A78AE"),
    (0x41, 0xd43, "Cortex-A65AE"),
    (0x41, 0xd44, "Cortex-X1"),
    (0x41, 0xd46, "Cortex-A510"),
    (0x41, 0xd47, "Cortex-A710"),
    (0x41, 0xd48, "Cortex-X2"),
    (0x41, 0xd49, "Neoverse-N2"),
    (0x41, 0xd4a, "Neoverse-E1"),
    (0x41, 0xd4b, "Cortex-A78C"),
    (0x41, 0xd4c, "Cortex-X1C"),
    (0x41, 0xd4d, "Cortex-A715"),
    (0x41, 0xd4e, "Cortex-X3"),
    (0x41, 0xd4f, "Neoverse-V2"),
    (0x41, 0xd80, "Cortex-A520"),
    (0x41, 0xd81, "Cortex-A720"),
    (0x41, 0xd82, "Cortex-X4"),
    (0x41, 0xd83, "Neoverse-V3AE"),
    (0x41, 0xd84, "Neoverse-V3"),
    (0x41, 0xd85, "Cortex-X925"),
    (0x41, 0xd87, "Cortex-A725"),
    (0x41, 0xd8e, "Neoverse-N3"),
    (0x42, 0x100, "Brahma-B53"),
    (0x42, 0x516, "ThunderX2"),
    (0x43, 0x0a0, "ThunderX"),
    (0x43, 0x0a1, "ThunderX-88XX"),
    (0x43, 0x0a2, "ThunderX-81XX"),
    (0x43, 0x0a3, "ThunderX-83XX"),
    (0x43, 0x0af, "ThunderX2-99XX"),
    (0x43, 0x0b8, "ThunderX3-T110"),
    (0x46, 0x001, "A64FX"),
    (0x48, 0xd01, "Kunpeng-920"),
    (0x4e, 0x003, "Denver 2"),
    (0x4e, 0x004, "Carmel"),
    (0x50, 0x000, "X-Gene"),
    (0x51, 0x001, "Oryon"),
    (0x51, 0x200, "Kryo"),
    (0x51, 0x201, "Kryo"),
    (0x51, 0x205, "Kryo"),
    (0x51, 0x211, "Kryo"),
    (0x51, 0x800, "Kryo-2XX-Gold"),
    (0x51, 0x801, "Kryo-2XX-Silver"),
    (0x51, 0x802, "Kryo-3XX-Gold"),
    (0x51, 0x803, "Kryo-3XX-Silver"),
    (0x51, 0x804, "Kryo-4XX-Gold"),
    (0x51, 0x805, "Kryo-4XX-Silver"),
    (0x51, 0xc00, "Falkor"),
    (0x51, 0xc01, "Saphira"),
    (0x53, 0x001, "exynos-m1"),
    (0x53, 0x002, "exynos-m3"),
    (0x53, 0x003, "exynos-m4"),
    (0x53, 0x004, "exynos-m5"),
    (0x61, 0x020, "Icestorm-A14"),
    (0x61, 0x021, "Firestorm-A14"),
    (0x61, 0x022, "Icestorm-M1"),
    (0x61, 0x023, "Firestorm-M1"),
    (0x61, 0x024, "Icestorm-M1-Pro"),
    (0x61, 0x025, "Firestorm-M1-Pro"),
    (0x61, 0x028, "Icestorm-M1-Max"),
    (0x61, 0x029, "Firestorm-M1-Max"),
    (0x61, 0x030, "Blizzard-A15"),
    (0x61, 0x031, "Avalanche-A15"),
    (0x61, 0x032, "Blizzard-M2"),
    (0x61, 0x033, "Avalanche-M2"),
    (0x61, 0x034, "Blizzard-M2-Pro"),
    (0x61, 0x035, "Avalanche-M2-Pro"),
    (0x61, 0x038, "Blizzard-M2-Max"),
    (0x61, 0x039, "Avalanche-M2-Max"),
    (0x6d, 0xd49, "Azure-Cobalt-100"),
    (0x70, 0x660, "FTC660"),
    (0x70, 0x661, "FTC661"),
    (0x70, 0x662, "FTC662"),
    (0x70, 0x663, "FTC663"),
    (0x70, 0x664, "FTC664"),
    (0x70, 0x862, "FTC862"),
    (0xc0, 0xac3, "Ampere-1"),
    (0xc0, 0xac4, "Ampere-1A"),
];

/// MIDR_EL1 of one CPU, its fields apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Midr {
    /// Bits 31-24.
    pub implementer: u32,
    /// Bits 23-20, the `r` of a revision.
    pub variant: u32,
    /// Bits 15-4.
    pub part: u32,
    /// Bits 3-0, the `p` of a revision.
    pub revision: u32,
}

impl Midr {
    /// From the register's value.
    pub fn from_register(value: u64) -> Self {
        let bits = |low: u32, n: u32| (value >> low) as u32 & ((1 << n) - 1);
        Midr {
            implementer: bits(24, 8),
            variant: bits(20, 4),
            part: bits(4, 12),
            revision: bits(0, 4),
        }
    }

    /// From the text of the register, as `regs/identification/midr_el1` has it.
    pub fn from_text(text: &str) -> Option<Self> {
        number(text).map(Midr::from_register)
    }

    /// From the four lines of `/proc/cpuinfo`.
    pub fn from_cpuinfo(value: impl Fn(&str) -> Option<String>) -> Option<Self> {
        let field = |key: &str| u32::try_from(number(&value(key)?)?).ok();
        Some(Midr {
            implementer: field("CPU implementer")?,
            variant: field("CPU variant")?,
            part: field("CPU part")?,
            revision: field("CPU revision")?,
        })
    }

    /// The register, as the kernel prints it. Bits 19-16 are 15 in every processor that Linux runs on
    /// (features are in registers of their own).
    pub fn text(&self) -> String {
        let value = u64::from(self.implementer) << 24
            | u64::from(self.variant) << 20
            | 0xf << 16
            | u64::from(self.part) << 4
            | u64::from(self.revision);
        format!("0x{value:016x}")
    }

    /// Maker and part, as far as they are known.
    pub fn name(&self) -> String {
        let maker = IMPLEMENTERS
            .iter()
            .find(|(number, _)| *number == self.implementer)
            .map_or_else(
                || format!("implementer {:#04x}", self.implementer),
                |(_, name)| (*name).to_owned(),
            );
        let part = PARTS
            .iter()
            .find(|(maker, part, _)| (*maker, *part) == (self.implementer, self.part));
        match part {
            Some((_, _, part)) => format!("{maker} {part}"),
            None => format!("{maker} part {:#05x}", self.part),
        }
    }
}

/// `0x51`, or `0`.
fn number(text: &str) -> Option<u64> {
    let text = text.trim();
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_have_names() {
        for (register, name) in [
            ("0x00000000410fd0c1", "ARM Neoverse-N1"),
            ("0x00000000410fd034", "ARM Cortex-A53"),
            ("0x00000000410fd083", "ARM Cortex-A72"),
            ("0x00000000511f0011", "Qualcomm Oryon"),
            ("0x00000000611f0230", "Apple Firestorm-M1"),
            ("0x00000000c00fac30", "Ampere Ampere-1"),
            ("0x00000000410fdff0", "ARM part 0xdff"),
            ("0x00000000990f1230", "implementer 0x99 part 0x123"),
        ] {
            let midr = Midr::from_text(register).unwrap();
            assert_eq!(midr.name(), name);
            assert_eq!(midr.text(), register);
        }
    }

    #[test]
    fn the_register_is_put_together_from_cpuinfo() {
        let lines = |key: &str| {
            let value = match key {
                "CPU implementer" => "0x51",
                "CPU variant" => "0x1",
                "CPU part" => "0x001",
                "CPU revision" => "1",
                _ => return None,
            };
            Some(value.to_owned())
        };
        let midr = Midr::from_cpuinfo(lines).unwrap();
        assert_eq!(midr.text(), "0x00000000511f0011");
        assert_eq!(Midr::from_cpuinfo(|_| None), None);
        assert_eq!(Midr::from_text("none"), None);
    }

    #[test]
    fn no_number_has_two_names() {
        let mut numbers: Vec<(u32, u32)> = PARTS.iter().map(|(m, p, _)| (*m, *p)).collect();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), PARTS.len());
        for (maker, ..) in PARTS {
            assert!(IMPLEMENTERS.iter().any(|(number, _)| *number == maker));
        }
    }
}

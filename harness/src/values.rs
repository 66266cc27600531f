//! Single values of the command line and the configuration that are more than a word: CPU lists
//! and sizes.

use std::fmt;
use std::str::FromStr;

/// CPUs as the kernel lists them: `2`, `0-3`, `2,4-6`. In the order given, without repetition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CpuList(pub Vec<u32>);

/// Highest CPU number that a list may hold: eight times the kernel's largest configuration (8192).
const CPU_MAX: u32 = 65535;

/// A value that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ValueError {
    /// Not a CPU list.
    #[error("`{0}` is no list of CPUs: write numbers and ranges, as in 2 or 0-3,8 (the largest number is {CPU_MAX})")]
    Cpus(String),
    /// Not a size.
    #[error("`{0}` is no size: write whole bytes with or without a unit, as in 4096, 64KiB, 100MB or 1GB")]
    Size(String),
}

impl FromStr for CpuList {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        let bad = || ValueError::Cpus(text.to_owned());
        let mut cpus = Vec::new();
        let mut seen = std::collections::BTreeSet::new();
        for part in text.split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last) = (cpu(first).ok_or_else(bad)?, cpu(last).ok_or_else(bad)?);
            if first > last {
                return Err(bad());
            }
            cpus.extend((first..=last).filter(|cpu| seen.insert(*cpu)));
        }
        Ok(CpuList(cpus))
    }
}

/// Digits only: `parse` alone would take `+3`.
fn cpu(text: &str) -> Option<u32> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    text.parse()
        .ok()
        .filter(|&number| digits && number <= CPU_MAX)
}

/// Numbers of CPUs or the like in the order given: `2,4,5`.
pub fn number_list(numbers: &[u32]) -> String {
    let words: Vec<String> = numbers.iter().map(u32::to_string).collect();
    words.join(",")
}

/// A number of bytes: `kB`, `MB`, `GB` are powers of 1000, `KiB`, `MiB`, `GiB` of 1024.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size(pub u64);

impl fmt::Display for Size {
    /// With the largest unit that leaves a whole number, decimal units first; reads back as the same
    /// size.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [
            ("GB", 1_000_000_000),
            ("MB", 1_000_000),
            ("kB", 1000),
            ("GiB", 1 << 30),
            ("MiB", 1 << 20),
            ("KiB", 1 << 10),
        ];
        match units
            .iter()
            .find(|(_, unit)| self.0 > 0 && self.0.is_multiple_of(*unit))
        {
            Some((name, unit)) => write!(f, "{} {name}", self.0 / unit),
            None => write!(f, "{} B", self.0),
        }
    }
}

impl FromStr for Size {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        let bad = || ValueError::Size(text.to_owned());
        let end = text
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(text.len());
        let number: u64 = text[..end].parse().map_err(|_| bad())?;
        let unit: u64 = match text[end..].trim_start() {
            "" | "B" => 1,
            "k" | "kB" | "KB" => 1000,
            "M" | "MB" => 1_000_000,
            "G" | "GB" => 1_000_000_000,
            "KiB" => 1 << 10,
            "MiB" => 1 << 20,
            "GiB" => 1 << 30,
            _ => return Err(bad()),
        };
        number.checked_mul(unit).map(Size).ok_or_else(bad)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_lists_are_read_as_the_kernel_writes_them() {
        for (text, cpus) in [
            ("2", vec![2]),
            ("0-3", vec![0, 1, 2, 3]),
            ("5,0-1,5", vec![5, 0, 1]),
            ("7-7", vec![7]),
        ] {
            assert_eq!(text.parse(), Ok(CpuList(cpus)), "{text}");
        }
    }

    #[test]
    fn what_is_no_cpu_list_is_refused() {
        for text in [
            "",
            ",",
            "1,",
            "3-1",
            "a",
            "-1",
            "1-",
            "+1",
            " 1",
            "65536",
            "0-99999999999",
            "1--2",
        ] {
            assert!(text.parse::<CpuList>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn sizes_have_decimal_and_binary_units() {
        for (text, bytes) in [
            ("0", 0),
            ("4096", 4096),
            ("64KiB", 65536),
            ("100MB", 100_000_000),
            ("1 GB", 1_000_000_000),
            ("1GiB", 1 << 30),
        ] {
            assert_eq!(text.parse(), Ok(Size(bytes)), "{text}");
        }
        for bytes in [0, 1, 999, 1000, 64_000, 1_500_000, 2_000_000_000, 65536] {
            assert_eq!(Size(bytes).to_string().parse(), Ok(Size(bytes)));
        }
        assert_eq!(Size(1_500_000).to_string(), "1500 kB");
        assert_eq!(Size(65536).to_string(), "64 KiB");
        for text in ["", "MB", "-1", "1.5MB", "1mb", "99999999999GB", "1MBx"] {
            assert!(text.parse::<Size>().is_err(), "{text:?}");
        }
    }
}

//! What a program or library asks of the machine that it is carried to: its architecture, the dynamic
//! loader's libraries, and the oldest glibc that will do. Read from the file itself.

use crate::build::ElfError;
use object::elf::{self, FileHeader64};
use object::read::elf::{Dyn, FileHeader};
use object::Endianness;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Needs of one file, or of several together.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Needs {
    /// Oldest glibc that has all symbol versions, `2.34`; null where none is needed (static).
    pub glibc: Option<Version>,
    /// Shared libraries.
    pub libraries: BTreeSet<String>,
}

/// `2.34`, compared as numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Version(pub u32, pub u32);

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.0, self.1)
    }
}

impl From<Version> for String {
    fn from(version: Version) -> String {
        version.to_string()
    }
}

impl TryFrom<String> for Version {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        version(&text).ok_or_else(|| format!("`{text}` is no version like 2.34"))
    }
}

/// `2.34`, or `2.2.5`, whose last part does not matter here.
fn version(text: &str) -> Option<Version> {
    let mut parts = text.split('.').map(str::parse::<u32>);
    Some(Version(parts.next()?.ok()?, parts.next()?.ok()?))
}

/// Libraries of glibc and gcc, which every machine that runs programs of ours has.
const EVERYWHERE: [&str; 8] = [
    "libc.so.6",
    "libm.so.6",
    "libdl.so.2",
    "libpthread.so.0",
    "librt.so.1",
    "libgcc_s.so.1",
    "ld-linux-x86-64.so.2",
    "ld-linux-aarch64.so.1",
];

impl Needs {
    /// Needs of the file with this content.
    pub fn of(data: &[u8]) -> Result<Self, ElfError> {
        Ok(Self::read(data)?)
    }

    fn read(data: &[u8]) -> object::Result<Self> {
        let header = FileHeader64::<Endianness>::parse(data)?;
        let endian = header.endian()?;
        let sections = header.sections(endian, data)?;
        let mut needs = Needs::default();
        if let Some((dynamics, link)) = sections.dynamic(endian, data)? {
            let strings = sections.strings(endian, data, link)?;
            let needed = dynamics
                .iter()
                .filter(|entry| entry.d_tag(endian) == elf::DT_NEEDED);
            for entry in needed {
                let offset = u32::try_from(entry.d_val(endian)).unwrap_or(u32::MAX);
                let name = strings.get(offset).unwrap_or(b"?");
                needs
                    .libraries
                    .insert(String::from_utf8_lossy(name).into_owned());
            }
        }
        if let Some((mut files, link)) = sections.gnu_verneed(endian, data)? {
            let strings = sections.strings(endian, data, link)?;
            while let Some((_, mut versions)) = files.next()? {
                while let Some(needed) = versions.next()? {
                    needs.note(&String::from_utf8_lossy(needed.name(endian, strings)?));
                }
            }
        }
        Ok(needs)
    }

    fn note(&mut self, symbol_version: &str) {
        let glibc = symbol_version.strip_prefix("GLIBC_").and_then(version);
        self.glibc = self.glibc.max(glibc);
    }

    /// Needs of both.
    pub fn and(mut self, other: Needs) -> Needs {
        self.glibc = self.glibc.max(other.glibc);
        self.libraries.extend(other.libraries);
        self
    }

    /// Libraries that a machine need not have.
    pub fn foreign(&self) -> Vec<&str> {
        let names = self.libraries.iter().map(String::as_str);
        names.filter(|name| !EVERYWHERE.contains(name)).collect()
    }

    /// In words: `glibc 2.34 or later`.
    pub fn text(&self) -> String {
        match self.glibc {
            Some(version) => format!("glibc {version} or later"),
            None => "no C library".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_as_numbers_and_only_glibcs_count() {
        let mut needs = Needs::default();
        for name in [
            "GLIBC_2.2.5",
            "GLIBC_2.34",
            "GCC_3.0",
            "GLIBC_2.4",
            "GLIBC_PRIVATE",
        ] {
            needs.note(name);
        }
        assert_eq!(needs.glibc, Some(Version(2, 34)));
        assert_eq!(needs.text(), "glibc 2.34 or later");
        let json = serde_json::to_string(&needs).unwrap();
        assert_eq!(json, r#"{"glibc":"2.34","libraries":[]}"#);
        assert_eq!(serde_json::from_str::<Needs>(&json).unwrap(), needs);
    }

    #[test]
    fn this_test_program_needs_a_glibc_and_nothing_foreign() {
        let data = std::fs::read("/proc/self/exe").unwrap();
        let needs = Needs::of(&data).unwrap();
        assert!(needs.libraries.contains("libc.so.6"), "{needs:?}");
        assert!(needs.glibc >= Some(Version(2, 17)), "{needs:?}");
        assert!(needs.foreign().is_empty(), "{needs:?}");
        assert!(Needs::of(b"#!/bin/sh\n").is_err());
    }

    #[test]
    fn a_library_that_is_not_everywhere_is_named() {
        let needs = Needs {
            glibc: None,
            libraries: ["libc.so.6", "libssl.so.3"].map(str::to_owned).into(),
        };
        let both = Needs::default().and(needs);
        assert_eq!(both.foreign(), ["libssl.so.3"]);
    }
}

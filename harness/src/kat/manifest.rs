//! The KAT manifest: published digests, one line for each stream of a parameter set.
//!
//! A line is `<sha256> <mode>[:N] <label>/<file name>`. Blank lines and lines that begin with `#` are
//! skipped. Modes: `strict` and `nolen` for the ICCS flow, `nistkat`, `rsp` and `all` for the NIST
//! flow; `:N` covers the first N records only. The file name is that of the published file; its stem
//! heads an `rsp` stream.

use protocol::{KatFlow, KatMode};
use std::path::Path;

/// A manifest, read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Manifest {
    /// Lines in order.
    pub entries: Vec<Entry>,
    /// SHA-256 of the file.
    pub sha256: String,
}

/// One published digest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Line of the file, from 1.
    pub line: usize,
    /// SHA-256, 64 hex digits in lower case.
    pub sha256: String,
    /// Stream that it is of.
    pub mode: KatMode,
    /// Parameter set.
    pub label: String,
    /// Name of the published file.
    pub file: String,
}

impl Entry {
    /// Name in the first line of an `rsp` stream: the file's without its extension.
    pub fn name(&self) -> &str {
        match self.file.rsplit_once('.') {
            Some((stem, _)) if !stem.is_empty() => stem,
            _ => &self.file,
        }
    }
}

/// A line that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub struct LineError {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// What is wrong.
    pub what: String,
    /// What it should be like.
    pub expected: &'static str,
}

/// A manifest that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    /// The file cannot be read.
    #[error("cannot read the KAT manifest {}", .path.display())]
    Read {
        /// Which file.
        path: std::path::PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// Some of its lines are wrong; all of them are here.
    #[error("the KAT manifest {} has lines that cannot be used", .path.display())]
    Lines {
        /// Which file.
        path: std::path::PathBuf,
        /// Each with its place.
        lines: Vec<LineError>,
    },
}

/// The whole of a line, as an example.
pub const LINE: &str = "<64 hex digits> <mode> <label>/<file name>, as in: c11313...fef2 strict dove_classic_128/KAT_SIG_dove_classic_128.txt";
const MODES: &str =
    "`strict`, `nolen` (ICCS flow), `nistkat`, `rsp` or `all` (NIST flow), with or without `:N`";

impl Manifest {
    /// Reads a file.
    pub fn read(path: &Path) -> Result<Manifest, ManifestError> {
        let bytes = std::fs::read(path).map_err(|source| ManifestError::Read {
            path: path.to_owned(),
            source,
        })?;
        Manifest::parse(&bytes).map_err(|lines| ManifestError::Lines {
            path: path.to_owned(),
            lines,
        })
    }

    /// Reads the bytes of a file; all bad lines are reported together.
    pub fn parse(bytes: &[u8]) -> Result<Manifest, Vec<LineError>> {
        let mut manifest = Manifest {
            entries: Vec::new(),
            sha256: crate::hash::sha256(bytes),
        };
        let mut errors = Vec::new();
        for (index, line) in bytes.split(|&byte| byte == b'\n').enumerate() {
            match entry(index + 1, line) {
                Ok(Some(entry)) => manifest.add(entry, &mut errors),
                Ok(None) => {}
                Err(error) => errors.push(error),
            }
        }
        if errors.is_empty() {
            Ok(manifest)
        } else {
            Err(errors)
        }
    }

    fn add(&mut self, entry: Entry, errors: &mut Vec<LineError>) {
        let same = |known: &&Entry| known.label == entry.label && known.mode == entry.mode;
        match self.entries.iter().find(same) {
            Some(known) => errors.push(LineError {
                line: entry.line,
                column: 1,
                what: format!(
                    "line {} has this mode of `{}` already",
                    known.line, entry.label
                ),
                expected: "one line for each mode of a label",
            }),
            None => self.entries.push(entry),
        }
    }

    /// The digests of a parameter set; none means NOKAT.
    pub fn of<'m>(&'m self, label: &'m str) -> impl Iterator<Item = &'m Entry> + 'm {
        self.entries
            .iter()
            .filter(move |entry| entry.label == label)
    }
}

/// The flow that a mode belongs to.
pub fn flow_of(mode: &str) -> Option<KatFlow> {
    match mode {
        "strict" | "nolen" => Some(KatFlow::Iccs),
        "nistkat" | "rsp" | "all" => Some(KatFlow::Nist),
        _ => None,
    }
}

/// One line; `None` for an empty one and for a comment.
fn entry(number: usize, line: &[u8]) -> Result<Option<Entry>, LineError> {
    let error = |column, what: String, expected| LineError {
        line: number,
        column,
        what,
        expected,
    };
    let Ok(text) = std::str::from_utf8(line) else {
        return Err(error(1, "the line is no UTF-8 text".to_owned(), LINE));
    };
    let text = text.trim_end();
    if text.is_empty() || text.starts_with('#') {
        return Ok(None);
    }
    let Some((digest, mode, place)) = three(text) else {
        return Err(error(
            1,
            "the line has not its three parts".to_owned(),
            LINE,
        ));
    };
    let column = |part: &str| {
        let offset = part.as_ptr() as usize - text.as_ptr() as usize; // parts are slices of `text`
        text[..offset].chars().count() + 1
    };
    if digest.len() != 64 || !digest.bytes().all(|b| b.is_ascii_hexdigit()) {
        let what = format!("`{digest}` is no SHA-256");
        return Err(error(column(digest), what, "64 hex digits"));
    }
    let Some(kat_mode) = read_mode(mode) else {
        return Err(error(column(mode), format!("`{mode}` is no mode"), MODES));
    };
    let parts = place.split_once('/');
    let Some((label, file)) = parts.filter(|(label, file)| both_are_names(label, file)) else {
        let what = format!("`{place}` is no label and file name");
        return Err(error(column(place), what, "<label>/<file name>"));
    };
    Ok(Some(Entry {
        line: number,
        sha256: digest.to_ascii_lowercase(),
        mode: kat_mode,
        label: label.to_owned(),
        file: file.to_owned(),
    }))
}

/// Digest, mode, and the rest, which may hold blanks.
fn three(text: &str) -> Option<(&str, &str, &str)> {
    let (digest, rest) = text.split_once([' ', '\t'])?;
    let rest = rest.trim_start();
    let (mode, place) = rest.split_once([' ', '\t'])?;
    Some((digest, mode, place.trim_start()))
}

fn both_are_names(label: &str, file: &str) -> bool {
    crate::identity::is_part(label) && crate::identity::is_part(file)
}

fn read_mode(text: &str) -> Option<KatMode> {
    let (mode, count) = match text.split_once(':') {
        Some((mode, count)) => (mode, Some(count)),
        None => (text, None),
    };
    flow_of(mode)?;
    let digits = count.is_none_or(|count| count.bytes().all(|b| b.is_ascii_digit()));
    let first = match count {
        Some(count) => Some(count.parse().ok().filter(|&n: &u32| digits && n > 0)?),
        None => None,
    };
    Some(KatMode {
        mode: mode.to_owned(),
        first,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const DIGEST: &str = "c11313e4b5047abbc4a881eee0394c33258e1d29daf1a93dadb936225c6cfef2";

    fn mode(mode: &str, first: Option<u32>) -> KatMode {
        KatMode {
            mode: mode.to_owned(),
            first,
        }
    }

    #[test]
    fn lines_of_all_modes_are_read() {
        let text = format!(
            "# a comment\n\n{DIGEST} strict a/KAT_SIG_a.txt\r\n{DIGEST}  nolen:3\ta/my file.txt  \n{} rsp b/Dilithium2.rsp",
            DIGEST.to_uppercase()
        );
        let manifest = Manifest::parse(text.as_bytes()).unwrap();
        let read: Vec<_> = manifest
            .entries
            .iter()
            .map(|e| {
                (
                    e.line,
                    e.mode.clone(),
                    e.label.as_str(),
                    e.file.as_str(),
                    e.name(),
                )
            })
            .collect();
        assert_eq!(
            read,
            [
                (3, mode("strict", None), "a", "KAT_SIG_a.txt", "KAT_SIG_a"),
                (4, mode("nolen", Some(3)), "a", "my file.txt", "my file"),
                (5, mode("rsp", None), "b", "Dilithium2.rsp", "Dilithium2"),
            ]
        );
        assert!(manifest.entries.iter().all(|e| e.sha256 == DIGEST));
        assert_eq!(manifest.of("a").count(), 2);
        assert_eq!(manifest.of("c").count(), 0);
    }

    #[test]
    fn bad_lines_are_all_reported_with_their_place() {
        let text = format!(
            "{DIGEST} strict a/x\n\
             {DIGEST} strict a/y\n\
             zz {DIGEST} strict\n\
             {} strict a/x\n\
             {DIGEST} strct b/x\n\
             {DIGEST} strict:0 b/x\n\
             {DIGEST} strict:+1 b/x\n\
             {DIGEST} strict: b/x\n\
             {DIGEST} strict b\n\
             {DIGEST} strict ../x\n\
             {DIGEST} strict b/c/d\n\
             {DIGEST}\n",
            &DIGEST[1..]
        );
        let mut bytes = text.into_bytes();
        bytes.extend(b"\xff\xff");
        let errors = Manifest::parse(&bytes).unwrap_err();
        let places: Vec<_> = errors.iter().map(|e| (e.line, e.column)).collect();
        assert_eq!(
            places,
            [
                (2, 1),
                (3, 1),
                (4, 1),
                (5, 66),
                (6, 66),
                (7, 66),
                (8, 66),
                (9, 73),
                (10, 73),
                (11, 73),
                (12, 1),
                (13, 1)
            ]
        );
    }

    #[test]
    fn an_empty_manifest_has_no_digest_for_anything() {
        assert_eq!(Manifest::parse(b"").unwrap().entries, []);
    }

    fn line() -> impl Strategy<Value = Entry> {
        (
            "[0-9a-f]{64}",
            prop::sample::select(vec!["strict", "nolen", "nistkat", "rsp", "all"]),
            prop::option::of(1..=u32::MAX),
            "[a-z][a-z0-9_-]{0,20}",
            "[A-Za-z0-9_][A-Za-z0-9_. -]{0,20}[a-z]",
        )
            .prop_map(|(sha256, mode, first, label, file)| Entry {
                line: 0,
                sha256,
                mode: KatMode {
                    mode: mode.to_owned(),
                    first,
                },
                label,
                file,
            })
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(entry in line()) {
            let count = entry.mode.first.map(|n| format!(":{n}")).unwrap_or_default();
            let text = format!(
                "{} {}{count} {}/{}\n",
                entry.sha256, entry.mode.mode, entry.label, entry.file
            );
            let manifest = Manifest::parse(text.as_bytes()).unwrap();
            prop_assert_eq!(&manifest.entries[0], &Entry { line: 1, ..entry });
        }

        #[test]
        fn no_bytes_make_the_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            if let Err(errors) = Manifest::parse(&bytes) {
                prop_assert!(!errors.is_empty());
            }
        }

        #[test]
        fn no_text_near_the_format_makes_the_reader_panic(
            text in "([0-9a-f]{0,65}[ \t:#/é]{0,2}(strict|rsp|all)?[ :]?[0-9]{0,2}[ /a-z.]{0,8}\n?){0,6}"
        ) {
            let lines = text.lines().count();
            if let Err(errors) = Manifest::parse(text.as_bytes()) {
                prop_assert!(errors.iter().all(|e| e.line <= lines && e.column >= 1));
            }
        }
    }
}

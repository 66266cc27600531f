//! `MANIFEST.sha256` and the seal: what makes a run a closed book.
//!
//! The manifest lists every file but the journal, itself, the pages, and what never leaves a run
//! (`lib/`, `keys/`), in the form of `sha256sum`, so that `sha256sum -c` checks it. Its digest is in
//! the journal's last line, and the digest of that line is the seal.
//!
//! `audit` verifies all of this with code of its own.

use super::journal::{self, Journal, JournalError, JournalEvent, JOURNAL};
use super::store::{self, StoreError};
use crate::audit;
use crate::hash;
use rayon::prelude::*;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Name of the manifest in a run or dataset.
pub const MANIFEST: &str = "MANIFEST.sha256";

/// Bytes of a seal file that are read.
const LONGEST_SEAL: u64 = 256;

/// What the manifest does not cover, in the top folder.
const NOT_COVERED: [&str; 5] = [MANIFEST, JOURNAL, "pages", "lib", "keys"];

/// A run cannot be sealed, or its manifest not be read.
#[derive(Debug, thiserror::Error)]
pub enum SealError {
    /// A file or folder cannot be read.
    #[error("{path}: cannot be read for the manifest", path = path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Something that a manifest cannot list.
    #[error("{path}: {what}; take it out of the run", path = path.display())]
    Foreign {
        /// Which.
        path: PathBuf,
        /// What it is.
        what: &'static str,
    },
    /// A line of the manifest is malformed.
    #[error("{MANIFEST}: line {line}: {what}")]
    Malformed {
        /// Number of the line, from 1.
        line: usize,
        /// What is wrong with it.
        what: &'static str,
    },
    /// Files are not what was sealed.
    #[error("`{}` is not what was sealed: {what}; `campaign audit` says more", .path.display())]
    Broken {
        /// The run or dataset.
        path: PathBuf,
        /// The first difference.
        what: String,
    },
    /// Manifest or seal cannot be written.
    #[error(transparent)]
    Write(#[from] StoreError),
    /// The sealing line cannot be written.
    #[error(transparent)]
    Journal(#[from] JournalError),
}

/// One line of a manifest.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    /// Path below the dataset, `/` between parts.
    pub path: String,
    /// SHA-256 of the file.
    pub sha256: String,
}

/// The files that a manifest covers, sorted by the bytes of their paths.
pub fn covered(dir: &Path) -> Result<Vec<String>, SealError> {
    files(dir, &NOT_COVERED)
}

/// All files below a folder but what `without` names at its top, sorted by the bytes of their paths.
fn files(dir: &Path, without: &[&str]) -> Result<Vec<String>, SealError> {
    let mut files = Vec::new();
    collect(dir, "", without, &mut files)?;
    files.sort();
    Ok(files)
}

fn collect(
    dir: &Path,
    prefix: &str,
    without: &[&str],
    files: &mut Vec<String>,
) -> Result<(), SealError> {
    let read = |source| SealError::Read {
        path: dir.to_owned(),
        source,
    };
    for entry in std::fs::read_dir(dir).map_err(read)? {
        let entry = entry.map_err(read)?;
        let path = entry.path();
        let foreign = |what| SealError::Foreign {
            path: path.clone(),
            what,
        };
        let name = entry.file_name();
        let name = name
            .to_str()
            .ok_or_else(|| foreign("its name is not UTF-8"))?;
        if prefix.is_empty() && without.contains(&name) {
            continue;
        }
        if store::is_temporary(name) {
            return Err(foreign("it is left over from a write that was cut off"));
        }
        if name.contains(['\n', '\r']) {
            return Err(foreign("its name holds a line end"));
        }
        let kind = entry.file_type().map_err(read)?;
        if kind.is_dir() {
            collect(&path, &format!("{prefix}{name}/"), without, files)?;
        } else if kind.is_file() {
            files.push(format!("{prefix}{name}"));
        } else {
            return Err(foreign("it is neither a file nor a folder"));
        }
    }
    Ok(())
}

/// Digests of the covered files.
pub fn entries(dir: &Path) -> Result<Vec<Entry>, SealError> {
    entries_of(dir, &NOT_COVERED)
}

/// Digests of all files below a folder but what `without` names at its top.
pub fn entries_of(dir: &Path, without: &[&str]) -> Result<Vec<Entry>, SealError> {
    files(dir, without)?
        .into_par_iter()
        .map(|path| {
            let file = dir.join(&path);
            match hash::sha256_file(&file) {
                Ok(sha256) => Ok(Entry { path, sha256 }),
                Err(source) => Err(SealError::Read { path: file, source }),
            }
        })
        .collect()
}

/// The text of a manifest, as `sha256sum` writes it: a backslash in a name is doubled and the line
/// begins with one.
pub fn manifest_text(entries: &[Entry]) -> String {
    let mut text = String::new();
    for Entry { path, sha256 } in entries {
        let (mark, path) = match path.contains('\\') {
            true => ("\\", path.replace('\\', "\\\\")),
            false => ("", path.clone()),
        };
        text.push_str(&format!("{mark}{sha256}  {path}\n"));
    }
    text
}

/// Reads a manifest. Paths that lead out of the dataset, repeated paths and comment lines are errors.
pub fn parse_manifest(text: &str) -> Result<Vec<Entry>, SealError> {
    let mut entries: Vec<Entry> = Vec::new();
    for (index, line) in text.split_inclusive('\n').enumerate() {
        let malformed = |what| SealError::Malformed {
            line: index + 1,
            what,
        };
        let line = line
            .strip_suffix('\n')
            .ok_or_else(|| malformed("it has no line end"))?;
        let entry = entry(line).map_err(malformed)?;
        if entries.last().is_some_and(|last| last.path >= entry.path) {
            return Err(malformed(
                "its path is not after the path of the line before",
            ));
        }
        entries.push(entry);
    }
    Ok(entries)
}

fn entry(line: &str) -> Result<Entry, &'static str> {
    let (escaped, line) = match line.strip_prefix('\\') {
        Some(rest) => (true, rest),
        None => (false, line),
    };
    let (sha256, path) = line
        .split_once("  ")
        .ok_or("expected a SHA-256, two blanks and a path")?;
    if !hash::is_sha256(sha256) {
        return Err("expected 64 lower-case hex digits first");
    }
    let path = match escaped {
        true => path.replace("\\\\", "\\"),
        false => path.to_owned(),
    };
    if path.split('/').any(|part| matches!(part, "" | "." | "..")) {
        return Err("its path is not a plain path below the dataset");
    }
    Ok(Entry {
        path,
        sha256: sha256.to_owned(),
    })
}

/// Where the seal of a run or dataset lies: beside it.
pub fn seal_path(dir: &Path) -> PathBuf {
    // A slash at the end would become part of the name.
    let dir: PathBuf = dir.components().collect();
    let mut name = dir.into_os_string();
    name.push(".seal");
    PathBuf::from(name)
}

/// Writes the manifest, the sealing line and the seal file; returns the seal. Nothing may be written
/// to the run afterwards but pages.
pub fn seal(dir: &Path, journal: &mut Journal) -> Result<String, SealError> {
    let text = manifest_text(&entries(dir)?);
    store::write_atomic(&dir.join(MANIFEST), text.as_bytes())?;
    journal.append(JournalEvent::Sealed {
        manifest_sha256: hash::sha256(text.as_bytes()),
    })?;
    let seal = journal.last_sha256().to_owned();
    write_seal(dir, &seal)?;
    Ok(seal)
}

/// Writes the seal file; alone only for a run that was killed right after its sealing line.
pub fn write_seal(dir: &Path, seal: &str) -> Result<(), StoreError> {
    store::write_atomic(&seal_path(dir), format!("{seal}\n").as_bytes())
}

/// A closed run or dataset, as its seal vouches for it.
#[derive(Debug)]
pub struct Closed {
    /// The seal: the digest of the journal's last line.
    pub seal: String,
    /// The bytes of the journal.
    pub journal: Vec<u8>,
    /// Where it is a part: [`journal::Chain::subsets`].
    pub subsets: Vec<(String, String)>,
    /// The bytes of the manifest.
    pub manifest: Vec<u8>,
    /// The files of the manifest, sorted. Whether they hold what was sealed is compared by those who read
    /// them, so that each is read once, and what is used is what was compared.
    pub entries: Vec<Entry>,
}

/// Why a folder is no closed run or dataset.
#[derive(Debug, thiserror::Error)]
pub enum NotClosed {
    /// The journal cannot be read, or is damaged.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// It may go on.
    #[error("its journal does not end in a seal")]
    Open,
    /// The seal file does not say what the journal says.
    #[error("the seal beside it is missing or not that of its journal")]
    Seal,
    /// The manifest is not the one that the journal names, or not there.
    #[error("{MANIFEST}: {0}")]
    Manifest(String),
    /// The manifest was sealed so, and is none.
    #[error(transparent)]
    Malformed(#[from] SealError),
}

/// The run or dataset in a folder, if it is closed: its journal is whole and ends in the seal that lies
/// beside the folder, and names the manifest that is there.
pub fn closed(dir: &Path) -> Result<Closed, NotClosed> {
    let path = dir.join(JOURNAL);
    let journal = std::fs::read(&path).map_err(|source| JournalError::Io {
        path: path.clone(),
        action: "read",
        source,
    })?;
    let chain = journal::verify_from(&path, &journal[..])?;
    let sealed = chain.sealed().ok_or(NotClosed::Open)?;
    // A path like `runs/.` has its seal elsewhere.
    let place = dir.canonicalize().unwrap_or_else(|_| dir.to_owned());
    if read_seal(&place).as_ref() != Some(&chain.last_sha256) {
        return Err(NotClosed::Seal);
    }
    let manifest =
        audit::files::read(dir, MANIFEST, audit::files::LARGEST).map_err(NotClosed::Manifest)?;
    if hash::sha256(&manifest) != sealed {
        let why = "it is not the manifest that was sealed";
        return Err(NotClosed::Manifest(why.to_owned()));
    }
    Ok(Closed {
        entries: parse_manifest(&String::from_utf8_lossy(&manifest))?,
        manifest,
        journal,
        subsets: chain.subsets(),
        seal: chain.last_sha256,
    })
}

/// The seal beside a run or dataset; `None` where there is no such file or it holds something else.
pub fn read_seal(dir: &Path) -> Option<String> {
    // A digest and its line end; what is longer is no seal, and need not be read.
    let mut text = String::new();
    let file = std::fs::File::open(seal_path(dir)).ok()?;
    file.take(LONGEST_SEAL).read_to_string(&mut text).ok()?;
    let seal = text.strip_suffix('\n')?;
    hash::is_sha256(seal).then(|| seal.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run with files in and outside of what the manifest covers.
    fn run() -> (tempfile::TempDir, PathBuf, Journal) {
        let home = tempfile::tempdir().unwrap();
        let dir = home.path().join("x86_1-quick-1");
        for folder in ["records/c", "pages", "lib", "keys"] {
            std::fs::create_dir_all(dir.join(folder)).unwrap();
        }
        for file in [
            "campaign.json",
            "records/c/a b.json",
            "records/c/back\\slash.json",
            "records/c/\u{e9}.json",
            "pages/index.md",
            "lib/x.so",
            "keys/k",
        ] {
            std::fs::write(dir.join(file), file).unwrap();
        }
        let journal = Journal::create(&dir.join(JOURNAL)).unwrap();
        (home, dir, journal)
    }

    #[test]
    fn sha256sum_accepts_the_manifest_and_the_seal_is_the_last_lines_digest() {
        let (_home, dir, mut journal) = run();
        let seal = seal(&dir, &mut journal).unwrap();
        let text = std::fs::read_to_string(dir.join(MANIFEST)).unwrap();
        let paths: Vec<_> = parse_manifest(&text).unwrap();
        let paths: Vec<&str> = paths.iter().map(|e| e.path.as_str()).collect();
        assert_eq!(
            paths,
            [
                "campaign.json",
                "records/c/a b.json",
                "records/c/back\\slash.json",
                "records/c/\u{e9}.json"
            ]
        );
        let check = std::process::Command::new("sha256sum")
            .args(["-c", "--strict", "--quiet", MANIFEST])
            .current_dir(&dir)
            .output()
            .unwrap();
        assert!(check.status.success(), "{check:?}");
        let lines = std::fs::read(dir.join(JOURNAL)).unwrap();
        let last = lines.strip_suffix(b"\n").unwrap();
        assert_eq!(seal, hash::sha256(last));
        assert_eq!(read_seal(&dir), Some(seal));
    }

    #[test]
    fn what_a_manifest_cannot_list_is_named() {
        let (_home, dir, mut journal) = run();
        std::os::unix::fs::symlink("/etc/passwd", dir.join("records/link")).unwrap();
        let error = seal(&dir, &mut journal).unwrap_err().to_string();
        assert!(error.contains("records/link"), "{error}");
    }

    #[test]
    fn malformed_manifests_are_refused_with_their_line() {
        let digest = hash::sha256(b"");
        for bad in [
            format!("{digest}  a\n{digest}  a\n"),
            format!("{digest}  b\n{digest}  a\n"),
            format!("{digest}  a\n# comment\n"),
            format!("{digest}  a\n{digest} b\n"),
            format!("{digest}  a\n{}  b\n", digest.to_uppercase()),
            format!("{digest}  a\n{digest}  ../b\n"),
            format!("{digest}  a\n{digest}  /b\n"),
            format!("{digest}  a\n{digest}  b"),
        ] {
            let error = parse_manifest(&bad).unwrap_err();
            assert!(
                matches!(error, SealError::Malformed { line: 2, .. }),
                "{bad}"
            );
        }
    }
}

//! Reading a directory that somebody else filled: no link is followed, nothing but plain files is
//! opened, and no file is larger than evidence can be.

use super::finding::{Finding, Findings};
use rustix::fs::{Mode, OFlags};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Largest file that is read: an evidence JSON of 512 samples in each of 100 trials has 2 MB.
pub const LARGEST: u64 = 64 << 20;

/// Largest journal: 100 bytes a line, 200 lines for each of 30000 records, and room.
pub const LARGEST_JOURNAL: u64 = 2 << 30;

/// Folders deeper than this hold no evidence.
const DEEPEST: usize = 12;

/// Files below a directory: path with `/`, and size in bytes.
#[derive(Debug, Default)]
pub struct Listing {
    /// By path.
    pub files: BTreeMap<String, u64>,
    /// What is there and must not be.
    pub findings: Vec<Finding>,
}

/// Lists a directory. `skip` names folders and files of its top that are not looked into.
pub fn list(root: &Path, skip: &[&str]) -> Listing {
    let mut listing = Listing::default();
    visit(root, "", skip, 0, &mut listing);
    listing
}

fn visit(dir: &Path, prefix: &str, skip: &[&str], depth: usize, listing: &mut Listing) {
    let place = if prefix.is_empty() { "." } else { prefix };
    let mut findings = Findings::of(place.trim_end_matches('/'));
    match std::fs::read_dir(dir) {
        Err(error) => findings.error("", "a folder can be listed", "", error),
        Ok(_) if depth > DEEPEST => {
            findings.error(
                "",
                "folders are not nested deeper than evidence",
                DEEPEST,
                depth,
            );
        }
        Ok(entries) => {
            for entry in entries.flatten() {
                item(&entry, prefix, skip, depth, listing);
            }
        }
    }
    listing.findings.append(&mut findings.list);
}

fn item(
    entry: &std::fs::DirEntry,
    prefix: &str,
    skip: &[&str],
    depth: usize,
    listing: &mut Listing,
) {
    let name = entry.file_name();
    let path = format!("{prefix}{}", name.to_string_lossy());
    let mut refuse = |rule: &str, found: &str| {
        let mut findings = Findings::of(&path);
        findings.error("", rule, "", found);
        listing.findings.append(&mut findings.list);
    };
    if name.to_str().is_none() {
        return refuse("a name is UTF-8", "other bytes");
    }
    if prefix.is_empty() && skip.iter().any(|skipped| name == *skipped) {
        return;
    }
    // The type of the entry itself: a link is not followed.
    let Ok(metadata) = entry.metadata() else {
        return refuse("a file can be looked at", "an error");
    };
    let kind = metadata.file_type();
    if kind.is_dir() {
        visit(&entry.path(), &format!("{path}/"), skip, depth + 1, listing);
    } else if kind.is_file() {
        listing.files.insert(path, metadata.len());
    } else if kind.is_symlink() {
        refuse("a dataset holds no links", "a symbolic link");
    } else {
        refuse("a dataset holds plain files", "a special file");
    }
}

/// Whether a path of the evidence stays below the dataset.
pub fn is_below(path: &str) -> bool {
    !path.is_empty() && path.split('/').all(|part| !matches!(part, "" | "." | ".."))
}

/// Reads a plain file below `root` whole; the reason in words where that cannot be.
pub fn read(root: &Path, path: &str, largest: u64) -> Result<Vec<u8>, String> {
    let (mut file, size) = open(root, path, largest)?;
    let mut bytes = Vec::with_capacity(size as usize);
    // One byte more than announced is a file that grows while it is read.
    match (&mut file).take(largest + 1).read_to_end(&mut bytes) {
        Ok(read) if read as u64 > largest => Err(too_large(read as u64, largest)),
        Ok(_) => Ok(bytes),
        Err(error) => Err(error.to_string()),
    }
}

/// Opens a plain file below `root` without following a link in its last part.
pub fn open(root: &Path, path: &str, largest: u64) -> Result<(File, u64), String> {
    if !is_below(path) {
        return Err("the path leads out of the dataset".to_owned());
    }
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let descriptor = rustix::fs::open(root.join(path), flags, Mode::empty())
        .map_err(|error| std::io::Error::from(error).to_string())?;
    let file = File::from(descriptor);
    let metadata = file.metadata().map_err(|error| error.to_string())?;
    match (metadata.is_file(), metadata.len()) {
        (false, _) => Err("it is no plain file".to_owned()),
        (true, size) if size > largest => Err(too_large(size, largest)),
        (true, size) => Ok((file, size)),
    }
}

fn too_large(size: u64, largest: u64) -> String {
    format!("{size} bytes or more, evidence has at most {largest}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn links_and_special_files_are_findings_and_are_not_read() {
        let home = tempfile::tempdir().unwrap();
        let dir = home.path().join("d");
        std::fs::create_dir_all(dir.join("a/b")).unwrap();
        std::fs::write(home.path().join("secret"), "x").unwrap();
        std::fs::write(dir.join("a/b/c.json"), "{}").unwrap();
        symlink("../secret", dir.join("link")).unwrap();
        symlink("..", dir.join("a/up")).unwrap();
        rustix::fs::mknodat(
            rustix::fs::CWD,
            dir.join("pipe"),
            rustix::fs::FileType::Fifo,
            Mode::from_raw_mode(0o600),
            0,
        )
        .unwrap();
        let listing = list(&dir, &[]);
        assert_eq!(listing.files.keys().collect::<Vec<_>>(), ["a/b/c.json"]);
        let mut places: Vec<_> = listing.findings.iter().map(|f| f.file.as_str()).collect();
        places.sort_unstable();
        assert_eq!(places, ["a/up", "link", "pipe"]);
        for path in ["link", "pipe", "../secret", "/etc/passwd", "a/../link", "a"] {
            assert!(read(&dir, path, LARGEST).is_err(), "{path}");
        }
        assert_eq!(read(&dir, "a/b/c.json", LARGEST).unwrap(), b"{}");
    }

    #[test]
    fn a_file_beyond_all_evidence_is_not_read() {
        let home = tempfile::tempdir().unwrap();
        let file = File::create(home.path().join("big")).unwrap();
        file.set_len(2 << 30).unwrap();
        let error = read(home.path(), "big", LARGEST).unwrap_err();
        assert!(error.contains("2147483648"), "{error}");
    }
}

//! The file of a library: opened once, hashed through the descriptor, looked at before the dynamic
//! loader is, so that a refusal says what the file is and not only that it did not load.

use crate::error::{Result, WorkerError};
use protocol::LibraryFile;
use sha2::{Digest, Sha256};
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::FileExt;

/// An opened library whose content has the digest that was asked for.
#[derive(Debug)]
pub struct LibraryHandle {
    file: File,
    name: String,
}

impl LibraryHandle {
    /// Opens `wanted`, compares its digest and looks at its ELF header.
    pub fn open(wanted: &LibraryFile) -> Result<LibraryHandle> {
        let file = open_identified(wanted).map_err(|error| match error {
            WorkerError::Io { what, source } => WorkerError::Load(format!("{what}: {source}")),
            other => other,
        })?;
        let mut header = [0u8; 20];
        let read = file
            .read_at(&mut header, 0)
            .map_err(|e| WorkerError::Load(format!("{} cannot be read: {e}", wanted.path)))?;
        match unfit(&header[..read]).or_else(|| cut_short(&file)) {
            Some(reason) => Err(WorkerError::Load(format!("{} {reason}", wanted.path))),
            None => Ok(LibraryHandle {
                file,
                name: wanted.path.clone(),
            }),
        }
    }

    /// Name by which the loader opens the same file again, whatever happened to its path: what is loaded
    /// is what was hashed. (A copy in memory would hold against writes in place, too, but would lie in other
    /// pages in each attempt; writes in place are found by the next worker's hash.)
    pub fn descriptor_path(&self) -> String {
        format!("/proc/self/fd/{}", self.file.as_raw_fd())
    }

    /// Path as the request gave it, for messages.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl AsFd for LibraryHandle {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// Opens a file that is named by path and digest; another digest is a `Load` error.
pub fn open_identified(wanted: &LibraryFile) -> Result<File> {
    let path = protocol::text_to_path(&wanted.path)
        .ok_or_else(|| WorkerError::Request(format!("`{}` is not an escaped path", wanted.path)))?;
    let file = File::open(&path).map_err(WorkerError::io(format!("opening {}", wanted.path)))?;
    let kind = file
        .metadata()
        .map_err(WorkerError::io(format!("looking at {}", wanted.path)))?;
    if !kind.is_file() {
        return Err(WorkerError::Load(format!(
            "{} is not a regular file",
            wanted.path
        )));
    }
    let (found, _) =
        hash_file(&file).map_err(WorkerError::io(format!("reading {}", wanted.path)))?;
    if found != wanted.sha256 {
        return Err(WorkerError::Load(format!(
            "{} is another file than the one named: its SHA-256 is {found}, not {}",
            wanted.path, wanted.sha256
        )));
    }
    Ok(file)
}

/// SHA-256 of a file's content, as hex, and its length; the file's position stays where it is.
pub fn hash_file(file: &File) -> std::io::Result<(String, u64)> {
    let mut hash = Sha256::new();
    let mut chunk = vec![0u8; 64 << 10];
    let mut offset = 0;
    loop {
        let read = file.read_at(&mut chunk, offset)?;
        if read == 0 {
            return Ok((const_hex::encode(hash.finalize()), offset));
        }
        hash.update(&chunk[..read]);
        offset += read as u64;
    }
}

/// Machine number and name of this worker's architecture (ELF gABI, e_machine).
const MACHINE: (u16, &str) = if cfg!(target_arch = "x86_64") {
    (62, "x86-64")
} else {
    (183, "AArch64")
};

/// Why the start of a file shows that it is no library for this worker.
fn unfit(header: &[u8]) -> Option<String> {
    const SHARED_OBJECT: u16 = 3;
    if header.is_empty() {
        return Some("is empty".to_owned());
    }
    if !header.starts_with(b"\x7fELF") {
        let text = header
            .iter()
            .all(|b| b.is_ascii_graphic() || b.is_ascii_whitespace());
        let what = if text {
            "a text file"
        } else {
            "not an ELF file"
        };
        return Some(format!("is {what}, no shared library"));
    }
    if header.len() < 20 {
        return Some("ends within its ELF header".to_owned());
    }
    if header[4] != 2 {
        return Some("is of the wrong ELF class: 32-bit, where 64-bit is needed".to_owned());
    }
    if header[5] != 1 {
        return Some("is big-endian, where little-endian is needed".to_owned());
    }
    let half = |at: usize| u16::from_le_bytes([header[at], header[at + 1]]);
    if half(16) != SHARED_OBJECT {
        return Some(format!(
            "is an ELF file of type {}, no shared library",
            half(16)
        ));
    }
    let (machine, name) = MACHINE;
    (half(18) != machine).then(|| {
        format!(
            "is for another architecture (ELF machine {}), where {name} ({machine}) is needed",
            half(18)
        )
    })
}

/// Whether a segment that is loaded lies beyond the end of the file: the loader would map it, and
/// the first touch would end the process (ELF gABI: e_phoff, e_phentsize, e_phnum, PT_LOAD).
fn cut_short(file: &File) -> Option<String> {
    const LOAD: u32 = 1;
    let end = file.metadata().ok()?.len();
    let read = |offset: u64, bytes: &mut [u8]| file.read_exact_at(bytes, offset).ok();
    let cut = |needed: u64| {
        Some(format!(
            "is cut short: {end} bytes, its segments need {needed}"
        ))
    };
    let mut header = [0; 64];
    if read(0, &mut header).is_none() {
        return cut(64);
    }
    let long = |bytes: &[u8], at: usize| {
        u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"))
    };
    let half = |at: usize| u64::from(u16::from_le_bytes([header[at], header[at + 1]]));
    for number in 0..half(56) {
        let offset = long(&header, 32).checked_add(number * half(54))?;
        let mut entry = [0; 56];
        if read(offset, &mut entry).is_none() {
            return cut(offset.saturating_add(56));
        }
        let needed = long(&entry, 8).saturating_add(long(&entry, 32));
        if u32::from_le_bytes(entry[..4].try_into().expect("4 bytes")) == LOAD && needed > end {
            return cut(needed);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(class: u8, data: u8, kind: u8, machine: u16) -> Vec<u8> {
        let mut bytes = vec![0u8; 20];
        bytes[..4].copy_from_slice(b"\x7fELF");
        bytes[4] = class;
        bytes[5] = data;
        bytes[16] = kind;
        bytes[18..].copy_from_slice(&machine.to_le_bytes());
        bytes
    }

    #[test]
    fn a_file_that_is_no_library_is_named_for_what_it_is() {
        let cases: [(Vec<u8>, Option<&str>); 8] = [
            (vec![], Some("empty")),
            (b"int main(void)".to_vec(), Some("text file")),
            (vec![0x80, 0, 3], Some("not an ELF")),
            (b"\x7fELF\x02".to_vec(), Some("ends within")),
            (header(1, 1, 3, 3), Some("wrong ELF class")),
            (header(2, 1, 1, MACHINE.0), Some("type 1")),
            (header(2, 1, 3, 243), Some("another architecture")),
            (header(2, 1, 3, MACHINE.0), None),
        ];
        for (bytes, expected) in cases {
            match (unfit(&bytes), expected) {
                (None, None) => {}
                (Some(text), Some(part)) => assert!(text.contains(part), "{text}"),
                other => panic!("{bytes:?}: {other:?}"),
            }
        }
    }

    #[test]
    fn another_content_than_the_named_one_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.so");
        std::fs::write(&path, b"abc").unwrap();
        let mut wanted = LibraryFile {
            path: protocol::path_to_text(&path),
            // SHA-256("abc"), FIPS 180-4 example
            sha256: "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad".into(),
        };
        open_identified(&wanted).unwrap();
        wanted.sha256.replace_range(..1, "c");
        let error = open_identified(&wanted).unwrap_err();
        assert_eq!(error.code(), protocol::FailureCode::LoadFail);
        assert!(error.to_string().contains("another file"));
    }
}

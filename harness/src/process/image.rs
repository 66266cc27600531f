//! A program as bytes that nobody can change any more: what was hashed is what runs.
//!
//! Between the hashing of a file and its start by path, another file can be put there, or other bytes
//! into the same file. An image is a copy in memory, sealed against every change, and is started by its
//! descriptor.

use rustix::fs::{MemfdFlags, SealFlags};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;

/// Lowest number of its descriptor: above all that a [`super::Command`] gives to a child, which would
/// otherwise take its place before the start.
const LOWEST: i32 = 16;

/// The copy. Clones share it.
#[derive(Debug, Clone)]
pub struct Image {
    sealed: Arc<OwnedFd>,
}

impl Image {
    /// The copy of `bytes`. Linux only starts ELF files this way: the interpreter of a script would have
    /// to open a descriptor that is closed by then. Refused where the machine forbids programs in memory
    /// (`vm.memfd_noexec`).
    pub fn of(bytes: &[u8]) -> io::Result<Self> {
        if !bytes.starts_with(b"\x7fELF") {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let mut copy = File::from(executable()?);
        copy.write_all(bytes)?;
        let seals = SealFlags::SEAL | SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE;
        rustix::fs::fcntl_add_seals(&copy, seals)?;
        Ok(Image {
            sealed: Arc::new(rustix::io::fcntl_dupfd_cloexec(&copy, LOWEST)?),
        })
    }

    /// The path by which a child starts it, before the descriptor closes.
    pub(super) fn path(&self) -> PathBuf {
        format!("/proc/self/fd/{}", self.sealed.as_raw_fd()).into()
    }
}

/// An empty file in memory that may be executed.
fn executable() -> rustix::io::Result<OwnedFd> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let make = |flags| rustix::fs::memfd_create("program", flags);
    match make(flags | MemfdFlags::EXEC) {
        // Before Linux 6.3 every such file may be executed, and the flag is unknown.
        Err(Errno::INVAL) => make(flags),
        made => made,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_cannot_be_written_to() {
        let program = std::fs::read("/proc/self/exe").unwrap();
        let image = Image::of(&program).unwrap();
        assert_eq!(std::fs::read(image.path()).unwrap(), program);
        let changed = rustix::io::pwrite(&*image.sealed, b"x", 0);
        assert_eq!(changed, Err(Errno::PERM));
        assert!(std::fs::OpenOptions::new()
            .write(true)
            .open(image.path())
            .and_then(|mut file| file.write_all(b"x"))
            .is_err());
        assert!(rustix::fs::ftruncate(&*image.sealed, 0).is_err());
    }

    #[test]
    fn a_script_has_no_image() {
        assert!(Image::of(b"#!/bin/sh\n").is_err());
    }
}

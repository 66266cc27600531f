//! A private anonymous mapping with a safe view of its bytes.

use std::ptr::NonNull;

/// Size of the pages that protections are set in: the largest page size of the architectures.
pub const PAGE: usize = 65536;

/// Private zeroed memory, page-aligned, given back when dropped.
#[derive(Debug)]
pub struct Mapping {
    start: NonNull<u8>,
    bytes: usize,
}

impl Mapping {
    /// Maps `bytes` (at least one), rounded up to whole pages. Untouched pages cost nothing.
    pub fn new(bytes: usize) -> std::io::Result<Mapping> {
        let bytes = bytes
            .max(1)
            .checked_next_multiple_of(PAGE)
            .ok_or_else(|| std::io::Error::from_raw_os_error(libc::ENOMEM))?;
        // SAFETY: an anonymous private mapping at an address of the kernel's choice touches no
        // memory that exists; the arguments hold no pointers.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(std::io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).expect("the kernel never maps address 0 unasked");
        Ok(Mapping { start, bytes })
    }

    /// Maps a file of `bytes`, copy-on-write: the pages are the page cache's until something writes
    /// to them.
    pub fn of_file(file: &std::fs::File, bytes: usize) -> std::io::Result<Mapping> {
        use std::os::fd::AsRawFd;
        // SAFETY: a mapping at an address of the kernel's choice; it is private, so that nothing
        // but a truncation of the file can change it, and that ends the process by SIGBUS.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes.max(1),
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_NORESERVE,
                file.as_raw_fd(),
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(std::io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).expect("the kernel never maps address 0 unasked");
        Ok(Mapping {
            start,
            bytes: bytes.max(1),
        })
    }

    /// Takes all access from the first `bytes` (whole pages), so that a touch is a fault.
    pub fn forbid_start(&mut self, bytes: usize) -> std::io::Result<()> {
        assert!(bytes.is_multiple_of(PAGE) && bytes <= self.bytes);
        // SAFETY: the range lies in this mapping; views of it are made by `bytes_from` only, which
        // callers keep above the forbidden part.
        let code = unsafe { libc::mprotect(self.start.as_ptr().cast(), bytes, libc::PROT_NONE) };
        if code == 0 {
            Ok(())
        } else {
            Err(std::io::Error::last_os_error())
        }
    }

    /// Address of the first byte.
    pub fn address(&self) -> usize {
        self.start.as_ptr() as usize
    }

    /// Bytes mapped.
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// Never: a mapping has at least one page.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// First byte, for a call that takes a pointer.
    pub fn as_mut_ptr(&mut self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// All bytes. The mapping must not have a forbidden part.
    pub fn as_slice(&self) -> &[u8] {
        // SAFETY: the mapping is `bytes` long, initialised (zeroed by the kernel), lives as long as
        // `self`, and is written only through `&mut self`.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.bytes) }
    }

    /// All bytes, to write. The mapping must not have a forbidden part.
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: as in `as_slice`, and `&mut self` makes this the only view.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.bytes) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the range was mapped by `new` and no view outlives `self`.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mapping_is_zeroed_whole_pages_and_too_much_is_an_error() {
        let mut mapping = Mapping::new(1).unwrap();
        assert_eq!(mapping.len(), PAGE);
        assert!(mapping.as_slice().iter().all(|&b| b == 0));
        mapping.as_mut_slice()[PAGE - 1] = 7;
        assert_eq!(mapping.as_slice()[PAGE - 1], 7);
        let too_much = Mapping::new(usize::MAX).unwrap_err();
        assert_eq!(too_much.raw_os_error(), Some(libc::ENOMEM));
    }
}

//! What a child wrote: everything counted and hashed, the beginning kept.

use crate::evidence::Captured;
use sha2::{Digest, Sha256};

/// Output of one descriptor. The memory it takes is bounded by `keep`, whatever the child writes.
#[derive(Debug, Clone)]
pub struct Capture {
    keep: usize,
    head: Vec<u8>,
    bytes: u64,
    hash: Sha256,
}

impl Capture {
    /// Keeps at most the first `keep` bytes.
    pub fn new(keep: usize) -> Self {
        Capture {
            keep,
            head: Vec::new(),
            bytes: 0,
            hash: Sha256::new(),
        }
    }

    /// The most bytes that are kept.
    pub fn keep(&self) -> usize {
        self.keep
    }

    /// Adds what was read.
    pub fn push(&mut self, data: &[u8]) {
        self.bytes += data.len() as u64;
        self.hash.update(data);
        let room = self.keep - self.head.len();
        self.head.extend_from_slice(&data[..data.len().min(room)]);
    }

    /// The first bytes, at most as many as are kept.
    pub fn head(&self) -> &[u8] {
        &self.head
    }

    /// The first bytes as text, with a replacement character for what is not UTF-8.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.head).into_owned()
    }

    /// Bytes written in all.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether more was written than is kept.
    pub fn is_cut(&self) -> bool {
        self.bytes > self.head.len() as u64
    }

    /// SHA-256 of all bytes, 64 lower-case hex digits.
    pub fn sha256(&self) -> String {
        const_hex::encode(self.hash.clone().finalize())
    }

    /// The form that evidence files hold: control characters and bytes that are not UTF-8 are escaped,
    /// line ends and tabs stay.
    pub fn evidence(&self) -> Captured {
        Captured {
            bytes: self.bytes,
            sha256: self.sha256(),
            head: escape(&self.head),
        }
    }
}

/// Text with every control character but line end and tab, and every byte outside UTF-8, as `\xNN`,
/// and the backslash doubled: reversible, and harmless on a terminal.
fn escape(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\n' | '\t' => out.push(c),
                '\\' => out.push_str("\\\\"),
                c if c.is_control() => {
                    for byte in c.encode_utf8(&mut [0; 4]).bytes() {
                        out.push_str(&format!("\\x{byte:02x}"));
                    }
                }
                c => out.push(c),
            }
        }
        for byte in chunk.invalid() {
            out.push_str(&format!("\\x{byte:02x}"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_head_is_bounded_and_the_rest_is_counted_and_hashed() {
        let mut capture = Capture::new(4);
        capture.push(b"abc");
        assert!(!capture.is_cut());
        capture.push(b"def");
        assert_eq!((capture.head(), capture.bytes()), (&b"abcd"[..], 6));
        assert!(capture.is_cut());
        assert_eq!(
            capture.sha256(),
            const_hex::encode(Sha256::digest(b"abcdef"))
        );
    }

    #[test]
    fn evidence_escapes_what_a_terminal_would_obey() {
        let mut capture = Capture::new(64);
        capture.push(b"a\x1b[2J\\\n\xffz\xc2\x9b");
        assert_eq!(capture.evidence().head, "a\\x1b[2J\\\\\n\\xffz\\xc2\\x9b");
    }
}

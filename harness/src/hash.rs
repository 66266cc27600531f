//! SHA-256 as lower-case hex text: the digest of all evidence.

use sha2::{Digest, Sha256};
use std::io::{self, Read};
use std::path::Path;

/// SHA-256 of `bytes`, 64 hex digits.
pub fn sha256(bytes: &[u8]) -> String {
    const_hex::encode(Sha256::digest(bytes))
}

/// SHA-256 of all that `reader` gives, and how many bytes that was.
pub fn sha256_reader(mut reader: impl Read) -> io::Result<(String, u64)> {
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 256 * 1024];
    let mut bytes = 0;
    loop {
        match reader.read(&mut buffer) {
            Ok(0) => return Ok((const_hex::encode(hash.finalize()), bytes)),
            Ok(n) => {
                hash.update(&buffer[..n]);
                bytes += n as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// SHA-256 of a file's content.
pub fn sha256_file(path: &Path) -> io::Result<String> {
    Ok(sha256_reader(std::fs::File::open(path)?)?.0)
}

/// Whether `text` is a SHA-256 as the evidence writes it.
pub fn is_sha256(text: &str) -> bool {
    text.len() == 64
        && text
            .bytes()
            .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// FIPS 180-4, example of one block.
    const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

    #[test]
    fn bytes_and_readers_give_the_digest_of_the_standard() {
        assert_eq!(sha256(b"abc"), ABC);
        assert_eq!(sha256_reader(&b"abc"[..]).unwrap(), (ABC.into(), 3));
        assert!(is_sha256(ABC));
        assert!(!is_sha256(&ABC.to_uppercase()));
        assert!(!is_sha256(&ABC[1..]));
    }
}

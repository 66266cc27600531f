//! The programme's DRNG: Hash_DRBG of SP 800-90A with SM3, seed length 440 bits, without reseeding.
//!
//! Messages are drawn from it by the worker itself, so that a library's generator is left to the
//! library. A request is one `fill`, whole bytes only.

use sm3::{Digest, Sm3};

/// Bytes of V and C: 440 bits (SP 800-90A, table 2, for a 256-bit hash).
const SEED_BYTES: usize = 55;

/// A big-endian number modulo 2^440.
type Number = [u8; SEED_BYTES];

/// State of a generator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HashDrbg {
    v: Number,
    c: Number,
    counter: u64,
}

impl HashDrbg {
    /// A generator started from `seed`.
    pub fn new(seed: &[u8]) -> HashDrbg {
        let v = derive(&[seed]);
        HashDrbg {
            v,
            c: derive(&[&[0], &v]),
            counter: 1,
        }
    }

    /// One request: fills `out`, then moves the state on.
    pub fn fill(&mut self, out: &mut [u8]) {
        let mut counter = self.v;
        for chunk in out.chunks_mut(32) {
            chunk.copy_from_slice(&Sm3::digest(counter)[..chunk.len()]);
            add(&mut counter, &[1]);
        }
        let mut hash = Sm3::new();
        hash.update([3]);
        hash.update(self.v);
        add(&mut self.v, &hash.finalize());
        let c = self.c;
        add(&mut self.v, &c);
        add(&mut self.v, &self.counter.to_be_bytes());
        self.counter += 1;
    }
}

/// Hash_df for 440 bits: two blocks, truncated.
fn derive(parts: &[&[u8]]) -> Number {
    let bits = (SEED_BYTES as u32 * 8).to_be_bytes();
    let mut out = [0; SEED_BYTES];
    for (block, chunk) in (1u8..).zip(out.chunks_mut(32)) {
        let mut hash = Sm3::new();
        hash.update([block]);
        hash.update(bits);
        parts.iter().for_each(|part| hash.update(part));
        chunk.copy_from_slice(&hash.finalize()[..chunk.len()]);
    }
    out
}

/// `number += term` modulo 2^440; both big-endian, the term at most as long.
fn add(number: &mut Number, term: &[u8]) {
    let mut carry = 0u16;
    let padded = term.iter().rev().copied().chain(std::iter::repeat(0));
    for (digit, add) in number.iter_mut().rev().zip(padded) {
        let sum = u16::from(*digit) + u16::from(add) + carry;
        *digit = sum as u8;
        carry = sum >> 8;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Vectors of an independent model of the programme's helper functions (tests/vectors).
    #[test]
    fn the_published_streams_come_out() {
        let vectors: serde_json::Value =
            serde_json::from_str(include_str!("../../tests/vectors/iccs-drng.json")).unwrap();
        let cases = vectors["drng"].as_array().unwrap();
        let mut compared = 0;
        for case in cases {
            let seed = const_hex::decode(case["seed"].as_str().unwrap()).unwrap();
            let mut drbg = HashDrbg::new(&seed);
            for request in case["requests"].as_array().unwrap() {
                let bits = request["bits"].as_u64().unwrap() as usize;
                let mut out = vec![0; bits.div_ceil(8)];
                drbg.fill(&mut out);
                if !bits.is_multiple_of(8) {
                    *out.last_mut().unwrap() &= 0xff << (8 - bits % 8);
                }
                assert_eq!(const_hex::encode(out), request["out"].as_str().unwrap());
                compared += 1;
            }
        }
        assert_eq!(compared, 32, "four generators with eight requests each");
    }

    #[test]
    fn addition_carries_through_all_bytes_and_wraps() {
        let mut number = [0xff; SEED_BYTES];
        add(&mut number, &[1]);
        assert_eq!(number, [0; SEED_BYTES]);
        add(&mut number, &[1, 0xff]);
        add(&mut number, &[1]);
        assert_eq!(number[SEED_BYTES - 2..], [2, 0]);
    }
}

//! AES-256 CTR_DRBG of SP 800-90A without derivation function and without reseeding: the generator
//! of the NIST known-answer tests.

use aes::cipher::{Array, BlockCipherEncrypt, KeyInit};
use aes::Aes256;

/// Bytes of a seed: key and counter block.
pub const SEED_BYTES: usize = 48;

/// State of a generator.
#[derive(Debug, Clone)]
pub struct CtrDrbg {
    cipher: Aes256,
    v: u128,
}

impl CtrDrbg {
    /// A generator started from 48 bytes of entropy.
    pub fn new(entropy: &[u8; SEED_BYTES]) -> CtrDrbg {
        let mut drbg = CtrDrbg {
            cipher: Aes256::new(&Array::from([0; 32])),
            v: 0,
        };
        drbg.update(entropy);
        drbg
    }

    /// One request: fills `out`, then moves the state on.
    pub fn fill(&mut self, out: &mut [u8]) {
        for chunk in out.chunks_mut(16) {
            chunk.copy_from_slice(&self.block()[..chunk.len()]);
        }
        self.update(&[0; SEED_BYTES]);
    }

    /// CTR_DRBG_Update: key and V become the next three blocks, with `provided` added.
    fn update(&mut self, provided: &[u8; SEED_BYTES]) {
        let mut next = [0; SEED_BYTES];
        for chunk in next.chunks_mut(16) {
            chunk.copy_from_slice(&self.block());
        }
        for (byte, add) in next.iter_mut().zip(provided) {
            *byte ^= add;
        }
        let (key, v) = next.split_at(32);
        self.cipher = Aes256::new(&Array::from(<[u8; 32]>::try_from(key).expect("32 bytes")));
        self.v = u128::from_be_bytes(v.try_into().expect("16 bytes"));
    }

    fn block(&mut self) -> [u8; 16] {
        self.v = self.v.wrapping_add(1);
        let mut block = Array::from(self.v.to_be_bytes());
        self.cipher.encrypt_block(&mut block);
        block.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::FIXED_SEED;

    /// First vector of the NIST flow (seed and message), as published with the round-3 submissions.
    #[test]
    fn the_first_seed_and_message_of_the_nist_flow_come_out() {
        let mut drbg = CtrDrbg::new(&FIXED_SEED);
        let (mut seed, mut message) = ([0; 48], [0; 33]);
        drbg.fill(&mut seed);
        drbg.fill(&mut message);
        assert_eq!(
            const_hex::encode_upper(seed),
            "061550234D158C5EC95595FE04EF7A25767F2E24CC2BC479D09D86DC9ABCFDE7\
             056A8C266F9EF97ED08541DBD2E1FFA1"
        );
        assert_eq!(
            const_hex::encode_upper(message),
            "D81C4D8D734FCBFBEADE3D3F8A039FAA2A2C9957E835AD55B22E75BF57BB556AC8"
        );
    }
}

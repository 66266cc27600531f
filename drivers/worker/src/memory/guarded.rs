//! A buffer for a library's output or input, with guard bytes on both sides and a known pattern in
//! it, so that a write outside, and an output that was not written, are seen.

use super::Mapping;
use crate::error::{Result, WorkerError};

/// Guard bytes on each side: a page.
pub const GUARD: usize = 4096;

/// Longest run of unwritten bytes that an output may contain by chance: each byte of a random
/// output equals the pattern with probability 1/256, so a run of 16 has 2^-128.
const UNTOUCHED_RUN: usize = 16;

/// A buffer of a claimed length between two guards.
#[derive(Debug)]
pub struct Guarded {
    name: &'static str,
    memory: Mapping,
    capacity: usize,
    len: usize,
}

/// What a look at the guards and the pattern found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Touched {
    /// Bytes before the buffer were changed; distance of the farthest from its start.
    Before(usize),
    /// Bytes after the buffer were changed; distance of the farthest from its end, from 1.
    After(usize),
}

impl Guarded {
    /// A buffer for `capacity` bytes, aligned to 64 at its start, guards laid.
    pub fn new(name: &'static str, capacity: usize) -> Result<Guarded> {
        let memory = Mapping::new(capacity + 2 * GUARD).map_err(|source| WorkerError::Memory {
            what: name,
            bytes: capacity as u64,
            source,
        })?;
        let mut buffer = Guarded {
            name,
            memory,
            capacity,
            len: 0,
        };
        buffer.lay_guards();
        Ok(buffer)
    }

    /// A buffer that holds a copy of `content`.
    pub fn with(name: &'static str, content: &[u8]) -> Result<Guarded> {
        let mut buffer = Guarded::new(name, content.len())?;
        buffer.all_mut().copy_from_slice(content);
        buffer.len = content.len();
        Ok(buffer)
    }

    /// What it holds, in messages.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Bytes between the guards.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// The bytes in use.
    pub fn bytes(&self) -> &[u8] {
        &self.memory.as_slice()[GUARD..GUARD + self.len]
    }

    /// The bytes in use, to change.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.memory.as_mut_slice()[GUARD..GUARD + self.len]
    }

    /// All bytes between the guards, to fill.
    pub fn all_mut(&mut self) -> &mut [u8] {
        &mut self.memory.as_mut_slice()[GUARD..GUARD + self.capacity]
    }

    /// First byte, for a call that takes a pointer.
    pub fn as_mut_ptr(&mut self) -> *mut u8 {
        self.memory.as_mut_slice()[GUARD..].as_mut_ptr()
    }

    /// Sets how many bytes are in use; at most the capacity.
    pub fn set_len(&mut self, len: usize) {
        assert!(
            len <= self.capacity,
            "{} is longer than its buffer",
            self.name
        );
        self.len = len;
    }

    /// Fills the buffer with a pattern that [`Guarded::check_written`] knows again.
    pub fn lay_pattern(&mut self) {
        for (index, byte) in self.all_mut().iter_mut().enumerate() {
            *byte = pattern(index);
        }
    }

    /// The farthest guard byte that was changed, on the side where there is one.
    pub fn touched(&self) -> Option<Touched> {
        let all = self.memory.as_slice();
        if let Some(first) = (0..GUARD).find(|&i| all[i] != pattern(i)) {
            return Some(Touched::Before(GUARD - first));
        }
        let end = GUARD + self.capacity;
        (0..GUARD)
            .rev()
            .find(|&i| all[end + i] != pattern(i))
            .map(|last| Touched::After(last + 1))
    }

    /// An `Overflow` error when a guard was changed by `call`.
    pub fn check_guards(&self, call: &str) -> Result<()> {
        let text = match self.touched() {
            None => return Ok(()),
            Some(Touched::Before(bytes)) => format!("{bytes} bytes before its start"),
            Some(Touched::After(bytes)) => format!("{bytes} bytes beyond its end"),
        };
        Err(WorkerError::Overflow(format!(
            "{call} wrote outside {} ({} bytes): {text}",
            self.name, self.capacity
        )))
    }

    /// Takes over the length that `call` returned, after the guards were found whole. A length
    /// above the capacity is an overflow; bytes that still show the pattern break the contract.
    pub fn accept(&mut self, call: &str, returned: u64) -> Result<()> {
        self.check_guards(call)?;
        if returned > self.capacity as u64 {
            return Err(WorkerError::Overflow(format!(
                "{call} returned {returned} bytes of {}, more than the claimed {}",
                self.name, self.capacity
            )));
        }
        self.len = returned as usize;
        self.check_written(call)
    }

    fn check_written(&self, call: &str) -> Result<()> {
        let longest = longest_untouched(self.bytes());
        if longest < UNTOUCHED_RUN && (longest < self.len || self.len == 0) {
            return Ok(());
        }
        Err(WorkerError::Contract(format!(
            "{call} reported success and left {longest} of the {} bytes of {} unwritten",
            self.len, self.name
        )))
    }

    fn lay_guards(&mut self) {
        let end = GUARD + self.capacity;
        let all = self.memory.as_mut_slice();
        for index in 0..GUARD {
            all[index] = pattern(index);
            all[end + index] = pattern(index);
        }
    }
}

/// Longest run of bytes that equal the pattern laid there.
fn longest_untouched(bytes: &[u8]) -> usize {
    let (mut longest, mut run) = (0, 0);
    for (index, &byte) in bytes.iter().enumerate() {
        run = if byte == pattern(index) { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    longest
}

/// A byte that depends on its place, so that neither a constant nor a copy from elsewhere looks
/// like it (multiplier: 2^32 over the golden ratio).
fn pattern(index: usize) -> u8 {
    ((index as u32).wrapping_mul(0x9e37_79b1) >> 24) as u8 ^ 0xa5
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fresh(capacity: usize) -> Guarded {
        let mut buffer = Guarded::new("signature", capacity).unwrap();
        buffer.lay_pattern();
        buffer
    }

    #[test]
    fn a_write_of_one_byte_outside_is_seen_on_both_sides() {
        for capacity in [1, 24, 4096, 100_000] {
            let mut buffer = fresh(capacity);
            assert_eq!(buffer.touched(), None);
            buffer.memory.as_mut_slice()[GUARD - 1] ^= 1;
            assert_eq!(buffer.touched(), Some(Touched::Before(1)));
            buffer.memory.as_mut_slice()[GUARD - 1] ^= 1;
            buffer.memory.as_mut_slice()[GUARD + capacity] ^= 1;
            assert_eq!(buffer.touched(), Some(Touched::After(1)));
            let error = buffer.accept("sig_sign", 1).unwrap_err();
            assert_eq!(error.code(), protocol::FailureCode::Overflow);
            assert!(error.to_string().contains("1 bytes beyond its end"));
        }
    }

    #[test]
    fn a_longer_returned_length_is_an_overflow() {
        let error = fresh(24).accept("sig_sign", 25).unwrap_err();
        assert_eq!(error.code(), protocol::FailureCode::Overflow);
        assert!(error.to_string().contains("returned 25 bytes"));
    }

    #[test]
    fn an_output_that_was_not_written_breaks_the_contract() {
        for capacity in [1, 8, 24, 5000] {
            let error = fresh(capacity).accept("sig_sign", capacity as u64);
            assert_eq!(
                error.unwrap_err().code(),
                protocol::FailureCode::Contract,
                "{capacity}"
            );
        }
        let mut half = fresh(64);
        half.all_mut()[..32].fill(0);
        assert!(half.accept("sig_sign", 64).is_err());
    }

    #[test]
    fn written_outputs_of_any_length_are_accepted() {
        for (capacity, returned) in [(1, 1), (24, 24), (5000, 4999), (24, 0)] {
            let mut buffer = fresh(capacity);
            for byte in buffer.all_mut() {
                *byte = !*byte;
            }
            buffer.accept("sig_sign", returned).unwrap();
            assert_eq!(buffer.bytes().len() as u64, returned);
        }
    }

    proptest::proptest! {
        #[test]
        fn any_change_of_a_guard_is_seen(capacity in 1usize..9000, at in 0usize..2 * GUARD, flip in 1u8..) {
            let mut buffer = fresh(capacity);
            let place = if at < GUARD { at } else { at + capacity };
            buffer.memory.as_mut_slice()[place] ^= flip;
            proptest::prop_assert!(buffer.touched().is_some());
        }
    }
}

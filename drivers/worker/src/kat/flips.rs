//! What a verifier must reject: flipped bits of message, signature and key, and wrong lengths.

use crate::error::{Result, WorkerError};
use crate::library::{Candidate, Verdict};
use crate::memory::{Guarded, OnStack};
use protocol::{FlipCount, Flips};

/// Bits flipped in each kind: enough to reach all parts of a signature, few enough for verifiers
/// that take a third of a second. The number for the key is the rule's own.
const MESSAGE_FLIPS: usize = 16;
const SIGNATURE_FLIPS: usize = 32;
const KEY_FLIPS: usize = 64;

/// Of the key's flips, 90 in 100 must be rejected: some schemes have bits that a given signature
/// does not touch.
const KEY_REJECTED_PERCENT: usize = 90;

/// A signed message, valid as it is.
#[derive(Debug)]
pub struct Signed<'a> {
    /// Public key.
    pub pk: &'a mut Guarded,
    /// Signature.
    pub sn: &'a mut Guarded,
    /// Message.
    pub message: &'a mut Guarded,
}

impl Signed<'_> {
    /// Verifies as it is, after filling the stack below with `fill`: a verifier that looks at what
    /// an earlier call left there answers differently.
    pub fn verify(&mut self, on: &OnStack<'_>, candidate: &Candidate, fill: u8) -> Result<Verdict> {
        scrub(fill);
        candidate.verify(on, self.pk, self.sn, self.message)
    }

    /// A `NotVerified` error unless the signature verifies, whatever the stack holds.
    pub fn must_verify(&mut self, on: &OnStack<'_>, candidate: &Candidate, fill: u8) -> Result<()> {
        match self.verify(on, candidate, fill)? {
            Verdict::Valid => Ok(()),
            Verdict::Rejected(code) => Err(WorkerError::NotVerified(format!(
                "the signature did not verify (sig_verify returned {code})"
            ))),
        }
    }

    /// A `NotVerified` error if the signature verifies with one bit of the message flipped.
    pub fn must_reject_message(
        &mut self,
        on: &OnStack<'_>,
        candidate: &Candidate,
        bit: usize,
        fill: u8,
    ) -> Result<()> {
        flip(self.message, bit);
        let verdict = self.verify(on, candidate, fill);
        flip(self.message, bit);
        match verdict? {
            Verdict::Rejected(_) => Ok(()),
            Verdict::Valid => Err(WorkerError::NotVerified(format!(
                "the signature verified with bit {bit} of the message flipped"
            ))),
        }
    }
}

/// Tries all flips and wrong lengths. `exempt` are the ranges of signature bytes that the candidate
/// declares unauthenticated. An error says which modified input verified; `counted` is set then too.
pub fn try_all(
    on: &OnStack<'_>,
    candidate: &Candidate,
    signed: &mut Signed<'_>,
    exempt: &[(u64, u64)],
    counted: &mut Option<Flips>,
    log: &mut Vec<String>,
) -> Result<()> {
    for fill in [0x00, 0xff, 0x5a] {
        signed.must_verify(on, candidate, fill)?;
    }
    let is_exempt = |byte: usize| {
        exempt
            .iter()
            .any(|&(from, to)| (from..to).contains(&(byte as u64)))
    };
    let mut accepted = Vec::new();
    let message = try_flips(
        on,
        candidate,
        signed,
        Part::Message,
        |_| false,
        &mut accepted,
    )?;
    let signature = try_flips(
        on,
        candidate,
        signed,
        Part::Signature,
        is_exempt,
        &mut accepted,
    )?;
    let must_reject = accepted.len();
    let key = try_flips(on, candidate, signed, Part::Key, |_| false, &mut accepted)?;
    let flips = Flips {
        message,
        signature,
        key,
    };
    *counted = Some(flips);
    log.extend(describe(&flips));
    for bit in &accepted {
        log.push(format!("verified although changed: {bit}"));
    }
    if must_reject > 0 {
        return Err(WorkerError::NotVerified(format!(
            "a modified input verified: {}",
            accepted[0]
        )));
    }
    if (key.rejected as usize) * 100 < key.tried as usize * KEY_REJECTED_PERCENT {
        return Err(WorkerError::NotVerified(format!(
            "of {} single-bit flips of the public key only {} were rejected, below {KEY_REJECTED_PERCENT}%",
            key.tried, key.rejected
        )));
    }
    try_lengths(on, candidate, signed, is_exempt, log)?;
    signed.must_verify(on, candidate, 0x00)
}

/// Which input is changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Message,
    Signature,
    Key,
}

impl Part {
    fn of<'a>(self, signed: &'a mut Signed<'_>) -> &'a mut Guarded {
        match self {
            Part::Message => signed.message,
            Part::Signature => signed.sn,
            Part::Key => signed.pk,
        }
    }

    fn flips(self) -> usize {
        match self {
            Part::Message => MESSAGE_FLIPS,
            Part::Signature => SIGNATURE_FLIPS,
            Part::Key => KEY_FLIPS,
        }
    }
}

fn try_flips(
    on: &OnStack<'_>,
    candidate: &Candidate,
    signed: &mut Signed<'_>,
    part: Part,
    exempt: impl Fn(usize) -> bool,
    accepted: &mut Vec<String>,
) -> Result<FlipCount> {
    let mut count = FlipCount {
        tried: 0,
        rejected: 0,
        exempt: 0,
    };
    let bits = 8 * part.of(signed).bytes().len();
    for (index, bit) in spread(bits, part.flips()).enumerate() {
        if exempt(bit / 8) {
            count.exempt += 1;
            continue;
        }
        flip(part.of(signed), bit);
        let fill = if index.is_multiple_of(2) { 0x00 } else { 0xff };
        let verdict = signed.verify(on, candidate, fill);
        flip(part.of(signed), bit);
        count.tried += 1;
        match verdict? {
            Verdict::Rejected(_) => count.rejected += 1,
            Verdict::Valid => {
                let name = part.of(signed).name();
                accepted.push(format!("bit {bit} of {name} ({bits} bits)"));
            }
        }
    }
    Ok(count)
}

/// Wrong lengths: each part without its last byte, and with one byte more. The byte that is cut is
/// changed too, so that a verifier that ignores the length and reads on meets a changed byte.
fn try_lengths(
    on: &OnStack<'_>,
    candidate: &Candidate,
    signed: &mut Signed<'_>,
    exempt: impl Fn(usize) -> bool,
    log: &mut Vec<String>,
) -> Result<()> {
    for part in [Part::Message, Part::Signature, Part::Key] {
        let buffer = part.of(signed);
        let (name, len) = (buffer.name(), buffer.bytes().len());
        if part == Part::Signature && exempt(len - 1) {
            log.push(format!(
                "lengths of {name} not tried: its last byte is exempt"
            ));
            continue;
        }
        buffer.bytes_mut()[len - 1] ^= 0xff;
        buffer.set_len(len - 1);
        let verdict = signed.verify(on, candidate, 0xff);
        let buffer = part.of(signed);
        buffer.set_len(len);
        buffer.bytes_mut()[len - 1] ^= 0xff;
        judge_length(verdict?, &format!("{name} cut by its last byte"), log)?;
        let verdict = verify_longer(on, candidate, signed, part)?;
        judge_length(verdict, &format!("{name} with one byte more"), log)?;
    }
    Ok(())
}

/// Verifies with a copy of one part that has a zero byte at its end.
fn verify_longer(
    on: &OnStack<'_>,
    candidate: &Candidate,
    signed: &mut Signed<'_>,
    part: Part,
) -> Result<Verdict> {
    let original = part.of(signed);
    let mut longer = Guarded::new(original.name(), original.bytes().len() + 1)?;
    let len = longer.capacity();
    longer.all_mut()[..len - 1].copy_from_slice(original.bytes());
    longer.all_mut()[len - 1] = 0;
    longer.set_len(len);
    let mut changed = Signed {
        pk: signed.pk,
        sn: signed.sn,
        message: signed.message,
    };
    match part {
        Part::Message => changed.message = &mut longer,
        Part::Signature => changed.sn = &mut longer,
        Part::Key => changed.pk = &mut longer,
    }
    changed.verify(on, candidate, 0x00)
}

fn judge_length(verdict: Verdict, what: &str, log: &mut Vec<String>) -> Result<()> {
    match verdict {
        Verdict::Rejected(code) => {
            log.push(format!("{what}: rejected with {code}"));
            Ok(())
        }
        Verdict::Valid => Err(WorkerError::NotVerified(format!(
            "the signature verified with {what}"
        ))),
    }
}

fn describe(flips: &Flips) -> [String; 3] {
    [
        ("message", flips.message),
        ("signature", flips.signature),
        ("key", flips.key),
    ]
    .map(|(name, count)| {
        format!(
            "flips of the {name}: {} tried, {} rejected, {} exempt",
            count.tried, count.rejected, count.exempt
        )
    })
}

fn flip(buffer: &mut Guarded, bit: usize) {
    buffer.bytes_mut()[bit / 8] ^= 1 << (bit % 8);
}

/// At most `count` different bits of `bits`, evenly spread, first and last among them.
fn spread(bits: usize, count: usize) -> impl Iterator<Item = usize> {
    let count = count.min(bits);
    let steps = count.saturating_sub(1).max(1);
    (0..count).map(move |index| index * (bits - 1) / steps)
}

/// Fills a stretch of the stack below this frame.
#[inline(never)]
fn scrub(fill: u8) {
    let block = [fill; 128 << 10];
    std::hint::black_box(&block);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flips_are_spread_over_all_bits_without_repeats() {
        for (bits, count) in [(448, 16), (8, 64), (1, 4), (182_664_416, 64), (64, 64)] {
            let chosen: Vec<usize> = spread(bits, count).collect();
            assert_eq!(chosen.len(), count.min(bits));
            assert!(chosen.windows(2).all(|w| w[0] < w[1]), "{chosen:?}");
            assert_eq!(chosen[0], 0);
            assert!(bits == 1 || chosen[chosen.len() - 1] == bits - 1);
        }
    }
}

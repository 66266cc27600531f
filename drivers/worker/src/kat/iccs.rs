//! The signature flow of the programme: ten records, inputs and randomness from the helper DRNG.

use super::flow::{Flow, Outputs, Vector};
use super::streams::Streams;
use crate::error::Result;
use crate::library::Candidate;
use crate::memory::OnStack;
use crate::random::HashDrbg;

/// Records of a full run.
const RECORDS: u32 = 10;

/// State of the flow: the two generators that run through all records.
#[derive(Debug)]
pub struct Iccs {
    seeds: HashDrbg,
    messages: HashDrbg,
    next: u32,
}

impl Iccs {
    /// The flow at its start.
    pub fn new() -> Iccs {
        let mut message_seed = b"msg".repeat(21);
        message_seed.push(b'm');
        Iccs {
            seeds: HashDrbg::new(&b"seed".repeat(16)),
            messages: HashDrbg::new(&message_seed),
            next: 0,
        }
    }
}

impl Default for Iccs {
    fn default() -> Self {
        Iccs::new()
    }
}

impl Flow for Iccs {
    fn vectors(&self) -> u32 {
        RECORDS
    }

    fn next(&mut self) -> Vector {
        let mut vector = Vector {
            number: self.next,
            seed: vec![0; 64],
            message: vec![0; 56 + 8 * self.next as usize],
        };
        self.seeds.fill(&mut vector.seed);
        self.messages.fill(&mut vector.message);
        self.next += 1;
        vector
    }

    fn serve(
        &self,
        on: &OnStack<'_>,
        candidate: &Candidate,
        vector: &Vector,
        work: &mut dyn FnMut() -> Result<()>,
    ) -> Result<()> {
        candidate.seed(on, &vector.seed)?;
        work()
    }

    fn write(&self, vector: &Vector, outputs: Outputs<'_>, text: &mut Streams) -> Result<()> {
        text.line("Count", vector.number)?;
        let fields = [
            ("Seed", &vector.seed[..]),
            ("PK", outputs.pk),
            ("SK", outputs.sk),
            ("M", &vector.message[..]),
            ("Sn", outputs.sn),
        ];
        for (name, bytes) in fields {
            text.line(&format!("{name}_Len"), bytes.len())?;
            text.hex(name, &[bytes])?;
        }
        Ok(())
    }
}

//! NIST's PQCsignKAT flow: a hundred vectors, inputs and randomness from the AES-256 CTR_DRBG.

use super::flow::{Flow, Outputs, Vector};
use super::streams::Streams;
use crate::error::Result;
use crate::library::Candidate;
use crate::memory::OnStack;
use crate::random::{CtrDrbg, FIXED_SEED};

/// Vectors of a full run.
const VECTORS: u32 = 100;

/// State of the flow: the outer generator.
#[derive(Debug)]
pub struct Nist {
    outer: CtrDrbg,
    next: u32,
}

impl Nist {
    /// The flow at its start.
    pub fn new() -> Nist {
        Nist {
            outer: CtrDrbg::new(&FIXED_SEED),
            next: 0,
        }
    }
}

impl Default for Nist {
    fn default() -> Self {
        Nist::new()
    }
}

impl Flow for Nist {
    fn vectors(&self) -> u32 {
        VECTORS
    }

    fn next(&mut self) -> Vector {
        let mut vector = Vector {
            number: self.next,
            seed: vec![0; 48],
            message: vec![0; 33 * (self.next as usize + 1)],
        };
        self.outer.fill(&mut vector.seed);
        self.outer.fill(&mut vector.message);
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
        let seed = vector.seed.as_slice().try_into().expect("48 bytes");
        let mut inner = CtrDrbg::new(seed);
        // A candidate that draws from the helper DRNG itself is not reached by the generator; its
        // stream starts anew with each vector all the same.
        candidate.seed(on, &vector.seed)?;
        candidate.with_generator(on, &mut |out| inner.fill(out), work)
    }

    fn write(&self, vector: &Vector, outputs: Outputs<'_>, text: &mut Streams) -> Result<()> {
        text.line("count", vector.number)?;
        text.hex("seed", &[&vector.seed])?;
        text.line("mlen", vector.message.len())?;
        text.hex("msg", &[&vector.message])?;
        text.hex("pk", &[outputs.pk])?;
        text.hex("sk", &[outputs.sk])?;
        text.line("smlen", outputs.sn.len() + vector.message.len())?;
        text.hex("sm", &[outputs.sn, &vector.message])
    }
}

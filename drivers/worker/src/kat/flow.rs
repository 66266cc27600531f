//! The one interface of all generation flows.

use super::streams::Streams;
use crate::error::Result;
use crate::library::Candidate;
use crate::memory::OnStack;

/// Inputs of one vector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vector {
    /// Number, from 0.
    pub number: u32,
    /// Seed of the candidate's randomness.
    pub seed: Vec<u8>,
    /// Message.
    pub message: Vec<u8>,
}

/// Outputs of one vector.
#[derive(Debug, Clone, Copy)]
pub struct Outputs<'a> {
    /// Public key.
    pub pk: &'a [u8],
    /// Secret key.
    pub sk: &'a [u8],
    /// Signature.
    pub sn: &'a [u8],
}

/// A generation flow: where inputs come from, where the candidate's randomness comes from, and
/// what the text looks like.
pub trait Flow {
    /// Vectors of a full run.
    fn vectors(&self) -> u32;

    /// Draws the inputs of the next vector.
    fn next(&mut self) -> Vector;

    /// Runs `work` (key generation and signing) with the randomness of `vector`.
    fn serve(
        &self,
        on: &OnStack<'_>,
        candidate: &Candidate,
        vector: &Vector,
        work: &mut dyn FnMut() -> Result<()>,
    ) -> Result<()>;

    /// Writes the lines of one vector.
    fn write(&self, vector: &Vector, outputs: Outputs<'_>, text: &mut Streams) -> Result<()>;
}

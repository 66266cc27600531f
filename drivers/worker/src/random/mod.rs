//! Recorded randomness: the seed rule of the inputs, and the two generators that the worker needs
//! itself. Nothing is drawn from the system.

mod ctr_drbg;
mod hash_drbg;
mod seed;

pub use ctr_drbg::CtrDrbg;
pub use hash_drbg::HashDrbg;
pub use seed::{seed, Role, FIXED_SEED};

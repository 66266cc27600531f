//! What a worker can be asked to do with a loaded library, one file a task.

mod calibrate;
mod generate;
mod inputs;
mod measure;
mod memory;
mod message;
mod passes;
mod prepare;
mod profile;
mod single;
mod study;

pub use calibrate::calibrate;
pub use generate::generate;
pub use inputs::{Inputs, KeyPair, Messages, Signatures};
pub use measure::{measure, Meters};
pub use memory::{memory, MemoryTask};
pub use prepare::prepare;
pub use profile::{profile, tick_hz, ProfileTask};
pub use study::study;

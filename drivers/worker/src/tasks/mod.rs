//! What a worker can be asked to do with a loaded library, one file a task.

mod calibrate;
mod inputs;
mod measure;
mod prepare;

pub use calibrate::calibrate;
pub use inputs::{Inputs, KeyPair, Messages, Signatures};
pub use measure::{measure, Meters};
pub use prepare::prepare;

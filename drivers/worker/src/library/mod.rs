//! The candidate library: opened once, identified by its digest, loaded, and called.
//!
//! [`file`] decides whether the file may be loaded, [`candidate`] loads it and makes checked calls
//! (guard bytes, patterns, return codes, unchanged inputs), [`symbols`] holds the C types and the
//! bare calls, which only the timing loop uses directly.

mod candidate;
mod file;
mod symbols;

pub use candidate::{Candidate, Verdict};
pub use file::{hash_file, open_identified, LibraryHandle};
pub use symbols::{
    DrngState, KeygenCall, MemorySymbols, Message, ProfileRowRaw, ProfileSymbols, SignCall,
    StreamSymbols, Symbols, VerifyCall,
};

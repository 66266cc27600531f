//! Child processes: the only module that spawns, drains, times out and ends them.
//!
//! A child is described by a [`Command`] (clean environment, input, extra descriptors, time limit),
//! carried out by [`run`], and comes back as an [`Outcome`]: how it ended, and what it wrote, as
//! count, digest and first bytes. Every pipe is drained while the child runs, so that a flood of
//! messages neither blocks it nor fills our memory.
//!
//! Ending a child means ending its whole process group and session: a polite signal, a grace period,
//! SIGKILL, and a sweep for what it left behind, after a normal end too. What escapes into a session
//! of its own (a daemon) is out of reach; the worker forbids new processes altogether.
//!
//! Left to the callers: what an exit status means, what to tell the user, and which descriptors carry
//! what.

mod capture;
pub mod cgroup;
mod command;
mod group;
mod image;
mod outcome;
mod run;
mod stop;

pub use capture::Capture;
pub use command::{Command, Input, Own};
pub use image::Image;
pub use outcome::{End, Outcome, Survivors};
pub use run::{run, run_blocking, run_observed};
pub use stop::{Stop, StopLevel};

/// Keeps other processes of this user, workers among them, from reading or tracing this one, on kernels
/// where nothing else does. Programs that it starts are not affected.
pub fn hide() {
    // No more than a further layer: where it is refused, the others remain.
    let _ = nix::sys::prctl::set_dumpable(false);
}

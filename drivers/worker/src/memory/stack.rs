//! The dedicated stack that every call of a library runs on.
//!
//! The worker switches the stack pointer (crate `psm`) instead of starting a thread with a stack of
//! its own: the process stays single-threaded, so that libc keeps the code paths it has in a plain
//! program (its allocator takes locks once a second thread exists), and counters, resource usage
//! and affinity belong to one thread. The stack is a mapping above a wide guard without access, and
//! a fault in the guard becomes the failure `stack exhausted at N` on an alternate stack.

use super::mapping::{Mapping, PAGE};
use crate::error::{Result, WorkerError};
use crate::events::LastWords;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::OnceLock;

/// Guard below the stack: frames of up to this size cannot step over it.
const GUARD: usize = 16 << 20;

/// Stack of the handler.
const HANDLER_STACK: usize = 1 << 20;

/// Word that paint starts from; each word is this times its address, so that no constant that a
/// library may leave looks like paint.
const PAINT: usize = 0x9e37_79b9_7f4a_7c15_u64 as usize;

/// A dedicated stack.
#[derive(Debug)]
pub struct Stack {
    memory: Mapping,
    bytes: usize,
    handler: Mapping,
}

/// Proof that the code runs on the dedicated stack: only [`Stack::run`] makes one, and every call
/// of a library asks for it.
#[derive(Debug)]
pub struct OnStack<'a>(PhantomData<&'a Stack>);

impl Stack {
    /// A stack of `bytes` (rounded up to whole pages).
    pub fn new(bytes: u64) -> Result<Stack> {
        let memory_error = |source| WorkerError::Memory {
            what: "the dedicated stack",
            bytes,
            source,
        };
        let bytes = usize::try_from(bytes)
            .ok()
            .filter(|&b| b >= PAGE && b <= isize::MAX as usize / 4)
            .ok_or_else(|| {
                WorkerError::Request(format!("a stack of {bytes} bytes: give 64 KiB or more"))
            })?
            .next_multiple_of(PAGE);
        let mut memory = Mapping::new(GUARD + bytes).map_err(memory_error)?;
        memory.forbid_start(GUARD).map_err(memory_error)?;
        let handler = Mapping::new(HANDLER_STACK).map_err(memory_error)?;
        Ok(Stack {
            memory,
            bytes,
            handler,
        })
    }

    /// Bytes of the stack.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// From now on a fault in the guard ends the process with `words` as its last event, where
    /// [`crate::faults::install`] was called.
    pub fn arm(&mut self, words: LastWords) -> Result<()> {
        let _ = LAST_WORDS.set(words); // set once: one stack of one worker is armed
        GUARD_START.store(self.memory.address(), Ordering::SeqCst);
        GUARD_END.store(self.memory.address() + GUARD, Ordering::SeqCst);
        let alternate = libc::stack_t {
            ss_sp: self.handler.as_mut_ptr().cast(),
            ss_flags: 0,
            ss_size: self.handler.len(),
        };
        // SAFETY: the alternate stack is memory that lives as long as `self`, which the worker keeps
        // until the process ends.
        let code = unsafe { libc::sigaltstack(&alternate, std::ptr::null_mut()) };
        if code == 0 {
            Ok(())
        } else {
            Err(WorkerError::io(
                "installing the stack of the handler of faults",
            )(std::io::Error::last_os_error()))
        }
    }

    /// Runs `work` on this stack.
    pub fn run<R>(&self, work: impl FnOnce(&OnStack<'_>) -> R) -> R {
        let base = (self.memory.address() + GUARD) as *mut u8;
        let guarded = || {
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| work(&OnStack(PhantomData))))
        };
        // SAFETY: `base` and `bytes` are page-aligned and the `bytes` above `base` are accessible
        // memory of this mapping that nothing else uses while `self` is borrowed; the closure
        // does not unwind (it catches) and returns normally.
        let result = unsafe { psm::on_stack(base, self.bytes, guarded) };
        match result {
            Ok(value) => value,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }

    /// Fills the whole stack with paint; call it from another stack.
    pub fn paint(&mut self) {
        let start = self.memory.address() + GUARD;
        for (index, word) in self.words_mut().iter_mut().enumerate() {
            *word = paint(start, index);
        }
    }

    /// Deepest use since [`Stack::paint`], bytes from the top, a multiple of 16.
    pub fn high_water(&mut self) -> usize {
        let start = self.memory.address() + GUARD;
        let bytes = self.bytes;
        let clean = self
            .words_mut()
            .iter()
            .enumerate()
            .take_while(|&(index, &word)| word == paint(start, index))
            .count();
        (bytes - clean * size_of::<usize>()).next_multiple_of(16)
    }

    fn words_mut(&mut self) -> &mut [usize] {
        let base = (self.memory.address() + GUARD) as *mut usize;
        // SAFETY: the part above the guard is accessible, page-aligned, initialised memory of
        // `bytes` bytes; `&mut self` excludes `run`, so nothing is on this stack.
        unsafe { std::slice::from_raw_parts_mut(base, self.bytes / size_of::<usize>()) }
    }
}

fn paint(start: usize, index: usize) -> usize {
    (start + index).wrapping_mul(PAINT) | 1
}

static GUARD_START: AtomicUsize = AtomicUsize::new(0);
static GUARD_END: AtomicUsize = AtomicUsize::new(0);
static LAST_WORDS: OnceLock<LastWords> = OnceLock::new();

/// Ends the process with its last words if `address`, of a fault, lies in the guard.
/// Async-signal-safe: atomics, write, _exit.
pub fn contain(address: usize) {
    let guard = GUARD_START.load(Ordering::SeqCst)..GUARD_END.load(Ordering::SeqCst);
    if guard.contains(&address) {
        if let Some(words) = LAST_WORDS.get() {
            words.speak();
        }
        // SAFETY: `_exit` is async-signal-safe and does not return.
        unsafe { libc::_exit(0) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_runs_on_the_dedicated_stack_and_its_panic_comes_back() {
        let stack = Stack::new(1 << 20).unwrap();
        let inside = stack.run(|_| psm::stack_pointer() as usize);
        let base = stack.memory.address() + GUARD;
        assert!((base..base + stack.bytes()).contains(&inside));
        let panicked = std::panic::catch_unwind(|| stack.run(|_| panic!("inside")));
        assert!(panicked.is_err());
    }

    #[test]
    fn the_high_water_mark_sees_what_was_written() {
        let mut stack = Stack::new(1 << 20).unwrap();
        stack.paint();
        assert_eq!(stack.high_water(), 0);
        stack.run(|_| ());
        stack.paint();
        let use_of = |stack: &mut Stack, bytes: usize| {
            stack.paint();
            stack.run(|_| burn(bytes));
            stack.high_water()
        };
        let small = use_of(&mut stack, 1);
        let large = use_of(&mut stack, 200);
        assert!(large - small >= 150 * 1024, "{small} {large}");
        assert!(large - small <= 400 * 1024, "{small} {large}");
    }

    /// Uses at least a KiB of stack for each level.
    fn burn(levels: usize) -> u8 {
        let block = std::hint::black_box([levels as u8; 1024]);
        if levels == 0 {
            return block[7];
        }
        burn(levels - 1).wrapping_add(block[9])
    }

    #[test]
    fn a_stack_that_cannot_be_is_refused() {
        assert!(Stack::new(10).is_err());
        assert!(Stack::new(u64::MAX).is_err());
    }
}

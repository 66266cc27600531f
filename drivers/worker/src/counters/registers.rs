//! Hardware counter registers, read by an instruction that the kernel may forbid at any moment.
//!
//! Where an administrator withdraws the right to read them (`rdpmc` of the PMU on x86, where the
//! processor raises #GP; `kernel.perf_user_access` on arm64, where it traps), the page that the kernel
//! shares still promises it. The fault is ours and must not be taken for a crash of the library: all
//! reading instructions lie between two symbols, and [`contain`], asked by the handler of
//! `crate::faults`, sends a fault in there to a return that says so. From then on nothing is read
//! this way any more.

use std::sync::atomic::{AtomicBool, Ordering};

/// Whether a reading has faulted in this process.
static WITHDRAWN: AtomicBool = AtomicBool::new(false);

/// Result of the assembly below, in two registers by both calling conventions.
#[repr(C)]
struct Outcome {
    value: u64,
    faulted: u64,
}

extern "C" {
    /// Reads counter `number` after everything before it and before everything after it. No memory is
    /// touched and the stack pointer stays, so a fault inside can go on at [`campaign_counter_refused`].
    fn campaign_counter_read(number: u64) -> Outcome;
    /// End of the instructions that may fault, and the return of those that did.
    fn campaign_counter_refused() -> Outcome;
}

#[cfg(target_arch = "x86_64")]
std::arch::global_asm!(
    r#"
    .text
    .p2align 4
    .globl campaign_counter_read
    .hidden campaign_counter_read
    .type campaign_counter_read, @function
campaign_counter_read:
    mov ecx, edi
    lfence
    rdpmc
    lfence
    shl rdx, 32
    or rax, rdx
    xor edx, edx
    ret
    .size campaign_counter_read, . - campaign_counter_read
    .globl campaign_counter_refused
    .hidden campaign_counter_refused
    .type campaign_counter_refused, @function
campaign_counter_refused:
    xor eax, eax
    mov edx, 1
    ret
    .size campaign_counter_refused, . - campaign_counter_refused
"#
);

// One branch into a table of registers, two instructions (8 bytes) each: a system register cannot be
// named by a number at run time.
#[cfg(target_arch = "aarch64")]
std::arch::global_asm!(
    r#"
    .text
    .p2align 4
    .globl campaign_counter_read
    .hidden campaign_counter_read
    .type campaign_counter_read, @function
campaign_counter_read:
    adr x1, 2f
    add x1, x1, x0, lsl #3
    isb
    br x1
2:
    .irp counter, 0, 1, 2, 3, 4, 5, 6, 7
    mrs x0, pmevcntr\counter\()_el0
    b 3f
    .endr
    mrs x0, pmccntr_el0
3:
    isb
    mov x1, #0
    ret
    .size campaign_counter_read, . - campaign_counter_read
    .globl campaign_counter_refused
    .hidden campaign_counter_refused
    .type campaign_counter_refused, @function
campaign_counter_refused:
    mov x0, #0
    mov x1, #1
    ret
    .size campaign_counter_refused, . - campaign_counter_refused
"#
);

/// Place of a counter in the assembly: on x86 the number that RDPMC takes.
#[cfg(target_arch = "x86_64")]
fn place(number: u32) -> Option<u64> {
    Some(u64::from(number))
}

/// Place of a counter in the assembly: the first eight event counters, then PMCCNTR_EL0, which the
/// kernel numbers 31 (Arm ARM, PMUSERENR_EL0; linux/arch/arm64 perf_event.c). A kernel that uses
/// others is read by `read()`.
#[cfg(target_arch = "aarch64")]
fn place(number: u32) -> Option<u64> {
    match number {
        31 => Some(8),
        0..=7 => Some(u64::from(number)),
        _ => None,
    }
}

/// Counter `number`; `None` where this program cannot name it, or may not read it any more.
#[inline]
pub fn read(number: u32) -> Option<u64> {
    if WITHDRAWN.load(Ordering::Relaxed) {
        return None;
    }
    let place = place(number)?;
    // SAFETY: the function keeps to the calling convention and touches no memory; the kernel has just
    // declared the register readable, and where that is no longer so the fault comes back as a result
    // (or ends the throw-away child, which has no handler).
    let outcome = unsafe { campaign_counter_read(place) };
    match outcome.faulted {
        0 => Some(outcome.value),
        _ => {
            WITHDRAWN.store(true, Ordering::Relaxed);
            None
        }
    }
}

/// Where to go on after a fault at `instruction`, if that is one of the reading instructions.
/// Async-signal-safe.
pub fn contain(instruction: usize) -> Option<usize> {
    let first = campaign_counter_read as *const () as usize;
    let refused = campaign_counter_refused as *const () as usize;
    (first..refused).contains(&instruction).then_some(refused)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn withdrawn() -> bool {
        WITHDRAWN.load(Ordering::Relaxed)
    }

    #[test]
    fn only_a_fault_at_a_reading_instruction_is_contained() {
        let first = campaign_counter_read as *const () as usize;
        let refused = campaign_counter_refused as *const () as usize;
        assert_eq!(contain(first), Some(refused));
        assert_eq!(contain(refused - 1), Some(refused));
        for other in [0, first - 1, refused, contain as *const () as usize] {
            assert_eq!(contain(other), None, "{other:#x}");
        }
    }

    /// A counter that no processor has faults here and everywhere: the process lives, and nothing is
    /// read this way afterwards.
    #[test]
    fn a_reading_that_faults_gives_nothing_and_is_the_last() {
        let (first, second, known) =
            crate::counters::contained(std::time::Duration::from_secs(60), || {
                crate::faults::install().expect("the handlers can be installed");
                let before = withdrawn();
                (read(FORBIDDEN), (before, read(FORBIDDEN)), withdrawn())
            })
            .expect("the fault is contained");
        assert_eq!((first, second, known), (None, (false, None), true));
    }

    /// RDPMC raises #GP for it with and without the right to read.
    #[cfg(target_arch = "x86_64")]
    const FORBIDDEN: u32 = 0x0fff_fff0;
    /// Readable only by a process with an event that asks for it.
    #[cfg(target_arch = "aarch64")]
    const FORBIDDEN: u32 = 7;
}

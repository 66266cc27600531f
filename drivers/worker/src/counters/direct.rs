//! Reading a counter from user mode by the kernel's seqlock protocol (linux/perf_event.h, comment of
//! `struct perf_event_mmap_page`).
//!
//! The kernel publishes in a shared page which hardware counter an event is on and what to add to it;
//! a sequence number says whether both belong together. A reading that is not permitted, or does not
//! settle, is `None`: the caller then takes the kernel's reading for the whole span.

use super::registers;
use perf_event_open_sys::bindings::perf_event_mmap_page;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;
use std::sync::atomic::{compiler_fence, Ordering};

/// Tries before a page that keeps changing is given up.
const TRIES: u32 = 64;
/// `cap_user_rdpmc` in `capabilities`.
const CAP_USER_RDPMC: u64 = 1 << 2;

/// What the page says at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct State {
    /// Whether the hardware counter may be read from user mode.
    pub permitted: bool,
    /// Number of the hardware counter plus one; 0 while the event is on none.
    pub index: u32,
    /// To be added to the hardware counter.
    pub offset: i64,
    /// Bits of the hardware counter.
    pub width: u16,
}

/// The shared page and the counters it points to.
pub trait Page {
    /// The sequence number.
    fn sequence(&self) -> u32;
    /// The rest.
    fn state(&self) -> State;
    /// The hardware counter `index - 1`; `None` where this program cannot name it or may not read it.
    fn counter(&self, index: u32) -> Option<u64>;
}

/// Reads the event, or says that it cannot be read this way now.
#[inline]
pub fn read(page: &impl Page) -> Option<u64> {
    for _ in 0..TRIES {
        let sequence = page.sequence();
        compiler_fence(Ordering::SeqCst);
        let state = page.state();
        let value = readable(&state).then(|| page.counter(state.index));
        compiler_fence(Ordering::SeqCst);
        if page.sequence() == sequence {
            return value
                .flatten()
                .map(|raw| combine(state.offset, raw, state.width));
        }
    }
    None
}

fn readable(state: &State) -> bool {
    state.permitted && state.index > 0 && (1..=64).contains(&state.width)
}

/// Value of an event whose hardware counter of `width` bits (1 to 64) reads `raw`. The kernel starts
/// a counter at a negative number, so its highest bit is a sign.
fn combine(offset: i64, raw: u64, width: u16) -> u64 {
    let unused = 64 - u32::from(width);
    let signed = (raw << unused) as i64 >> unused;
    offset.wrapping_add(signed) as u64
}

/// The page of an open event, mapped for reading.
#[derive(Debug)]
pub struct Mapped {
    page: NonNull<perf_event_mmap_page>,
    bytes: usize,
}

impl Mapped {
    /// Maps the page of `event`; the error is that of `mmap`.
    pub fn new(event: BorrowedFd<'_>) -> std::io::Result<Mapped> {
        // SAFETY: sysconf has no preconditions.
        let bytes = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096);
        // SAFETY: a new read-only mapping at an address of the kernel's choice touches no memory of ours.
        let page = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ,
                libc::MAP_SHARED,
                event.as_raw_fd(),
                0,
            )
        };
        if page == libc::MAP_FAILED {
            return Err(std::io::Error::last_os_error());
        }
        let page = NonNull::new(page.cast()).expect("mmap without MAP_FIXED never returns null");
        Ok(Mapped { page, bytes })
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, of this length, and no reference into it outlives `self`.
        unsafe { libc::munmap(self.page.as_ptr().cast(), self.bytes) };
    }
}

impl Page for Mapped {
    #[inline]
    fn sequence(&self) -> u32 {
        // SAFETY: the mapping lives as long as `self` and is larger than the structure; the kernel
        // writes it at any time, hence volatile.
        unsafe { (&raw const (*self.page.as_ptr()).lock).read_volatile() }
    }

    #[inline]
    fn state(&self) -> State {
        let page = self.page.as_ptr();
        // SAFETY: as in `sequence`; `capabilities` is plain integers in every variant of its union.
        unsafe {
            let capabilities = (&raw const (*page).__bindgen_anon_1.capabilities).read_volatile();
            State {
                permitted: capabilities & CAP_USER_RDPMC != 0,
                index: (&raw const (*page).index).read_volatile(),
                offset: (&raw const (*page).offset).read_volatile(),
                width: (&raw const (*page).pmc_width).read_volatile(),
            }
        }
    }

    #[inline]
    fn counter(&self, index: u32) -> Option<u64> {
        registers::read(index - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::cell::Cell;

    /// A kernel that rewrites the page while the first `busy` readings are under way.
    struct Fake {
        busy: u32,
        sequence: Cell<u32>,
        readings: Cell<u32>,
        early: State,
        settled: State,
    }

    impl Fake {
        fn new(busy: u32, early: State, settled: State) -> Fake {
            Fake {
                busy,
                sequence: Cell::new(8),
                readings: Cell::new(0),
                early,
                settled,
            }
        }
    }

    impl Page for Fake {
        fn sequence(&self) -> u32 {
            self.sequence.get()
        }
        fn state(&self) -> State {
            let reading = self.readings.get() + 1;
            self.readings.set(reading);
            if reading <= self.busy {
                self.sequence.set(self.sequence.get() + 2);
                return self.early;
            }
            self.settled
        }
        fn counter(&self, index: u32) -> Option<u64> {
            Some(u64::from(index) * 1000)
        }
    }

    const ON: State = State {
        permitted: true,
        index: 1,
        offset: 7,
        width: 48,
    };

    #[test]
    fn a_page_at_rest_is_read_at_once() {
        let page = Fake::new(0, ON, ON);
        assert_eq!((read(&page), page.readings.get()), (Some(1007), 1));
    }

    #[test]
    fn a_page_that_changes_is_read_again_and_the_torn_value_dropped() {
        let moved = State {
            index: 2,
            offset: 5,
            ..ON
        };
        let page = Fake::new(3, ON, moved);
        assert_eq!((read(&page), page.readings.get()), (Some(2005), 4));
    }

    #[test]
    fn a_page_that_never_settles_is_given_up() {
        let page = Fake::new(u32::MAX, ON, ON);
        assert_eq!((read(&page), page.readings.get()), (None, TRIES));
    }

    #[test]
    fn what_is_not_permitted_on_no_counter_or_of_unknown_width_is_not_read() {
        for state in [
            State {
                permitted: false,
                ..ON
            },
            State { index: 0, ..ON },
            State { width: 0, ..ON },
            State { width: 65, ..ON },
        ] {
            assert_eq!(read(&Fake::new(0, state, state)), None, "{state:?}");
        }
    }

    #[test]
    fn permission_that_vanishes_between_two_tries_ends_the_reading() {
        let gone = State {
            permitted: false,
            ..ON
        };
        assert_eq!(read(&Fake::new(1, ON, gone)), None);
    }

    proptest! {
        /// The kernel's own arithmetic (perf_event_update_userpage): a counter is started at
        /// -`left`, and the offset is the count so far less that start.
        #[test]
        fn any_width_gives_the_count_until_the_overflow(
            width in 1u16..=64, count: u64, left: u64, share in 0u64..=u64::MAX,
        ) {
            let half = 1u64 << (width - 1);
            let left = left % half + 1;
            let steps = share % left;
            let start = (left as i64).wrapping_neg();
            let offset = (count as i64).wrapping_sub(start);
            let mask = u64::MAX >> (64 - width);
            let raw = start.wrapping_add(steps as i64) as u64 & mask;
            prop_assert_eq!(combine(offset, raw, width), count.wrapping_add(steps));
        }

        #[test]
        fn differences_survive_a_sum_that_wraps(offset: i64, raw in 0u64..1 << 47, steps in 0u64..1 << 40) {
            prop_assume!(raw + steps < 1 << 47);
            let first = combine(offset, raw, 48);
            let last = combine(offset, raw + steps, 48);
            prop_assert_eq!(last.wrapping_sub(first), steps);
        }
    }
}

//! C types of a library's functions, their lookup by name, and the bare calls.
//!
//! Everything that crosses into C is here. A bare call checks nothing: `candidate` does, and the
//! timing loop looks at the return code.

use super::file::open_identified;
use crate::error::{Result, WorkerError};
use crate::memory::{Guarded, OnStack};
use libloading::os::unix::Library;
use protocol::LibraryFile;
use std::ffi::{c_char, c_int, c_uint, c_ulonglong, c_void, CStr};
use std::marker::PhantomData;
use std::os::fd::{AsRawFd, BorrowedFd};

type LengthFn = unsafe extern "C" fn() -> c_ulonglong;
type KeygenFn = unsafe extern "C" fn(*mut u8, *mut c_ulonglong, *mut u8, *mut c_ulonglong) -> c_int;
type SignFn = unsafe extern "C" fn(
    *mut u8,
    c_ulonglong,
    *mut u8,
    c_ulonglong,
    *mut u8,
    *mut c_ulonglong,
) -> c_int;
type VerifyFn =
    unsafe extern "C" fn(*mut u8, c_ulonglong, *mut u8, c_ulonglong, *mut u8, c_ulonglong) -> c_int;
type TextFn = unsafe extern "C" fn() -> *const c_char;
type SeedFn = unsafe extern "C" fn(*const u8, c_ulonglong) -> c_int;
type Generator = unsafe extern "C" fn(*mut c_void, *mut u8, c_ulonglong) -> c_int;
type RandomFn = unsafe extern "C" fn(Option<Generator>, *mut c_void);
type NumberFn = unsafe extern "C" fn() -> c_ulonglong;
type VoidFn = unsafe extern "C" fn();
type CountFn = unsafe extern "C" fn() -> c_uint;
type NameFn = unsafe extern "C" fn(c_uint) -> *const c_char;
type StreamOpenFn = unsafe extern "C" fn(c_int, c_ulonglong, c_ulonglong) -> c_int;
type PointerFn = unsafe extern "C" fn() -> *mut u8;
type CodeFn = unsafe extern "C" fn() -> c_int;
type RowsFn = unsafe extern "C" fn(*mut ProfileRowRaw, c_uint) -> c_uint;

/// `DRNG_ctx` of `drng.h`: V, C and the counter, 55 bytes each.
pub type DrngState = [u8; 165];

/// Functions that every library has.
#[derive(Debug)]
pub struct Symbols {
    pk_len: LengthFn,
    sk_len: LengthFn,
    sn_len: LengthFn,
    keygen: KeygenFn,
    sign: SignFn,
    verify: VerifyFn,
    meta: TextFn,
    seed: SeedFn,
    random: RandomFn,
    rejected: Option<NumberFn>,
    drng: *mut DrngState,
}

/// Looks names up and remembers the missing ones.
struct Lookup<'a> {
    library: &'a Library,
    missing: Vec<&'static str>,
}

impl Lookup<'_> {
    /// The function `name`, whose type must be `T`.
    ///
    /// # Safety
    /// `T` must be a function or data pointer type that fits the symbol's definition in C.
    unsafe fn get<T: Copy>(&mut self, name: &'static str) -> Option<T> {
        // SAFETY: as this function's own condition.
        let found = unsafe { self.library.get::<T>(name.as_bytes()) };
        match found {
            Ok(symbol) => Some(*symbol),
            Err(_) => {
                self.missing.push(name);
                None
            }
        }
    }

    fn error(&self, library: &str) -> WorkerError {
        WorkerError::Load(format!(
            "{library} misses {}: a candidate library exports the ICCS signature API and the \
             symbols of drivers/abi/adapter.c",
            self.missing.join(", ")
        ))
    }
}

/// Unwraps the lookups of a block, or names all that are missing.
macro_rules! all_or_missing {
    ($lookup:ident, $name:expr, $type:ident { $($field:ident: $symbol:literal),+ $(,)? } $(+ $rest:ident: $value:expr),*) => {{
        let path = $name;
        // SAFETY: the types of the fields are those of drivers/abi/include/sig_api.h and
        // drivers/abi/campaign_abi.h for these names; a library that defines them otherwise is
        // outside what can be checked from here.
        $(let $field = unsafe { $lookup.get($symbol) };)+
        match ($($field),+) {
            ($(Some($field)),+) => Ok($type { $($field,)+ $($rest: $value,)* }),
            _ => Err($lookup.error(path)),
        }
    }};
}

impl Symbols {
    /// Looks all functions up; an error names every one that is missing.
    pub fn find(library: &Library, name: &str) -> Result<Symbols> {
        let mut lookup = Lookup {
            library,
            missing: Vec::new(),
        };
        // SAFETY: type of campaign_abi.h. Optional: a candidate may count nothing.
        let rejected = unsafe { lookup.get("campaign_rejected") };
        lookup.missing.clear();
        all_or_missing!(lookup, name, Symbols {
            pk_len: "sig_get_pk_len_bytes",
            sk_len: "sig_get_sk_len_bytes",
            sn_len: "sig_get_sn_len_bytes",
            keygen: "sig_keygen",
            sign: "sig_sign",
            verify: "sig_verify",
            meta: "campaign_meta",
            seed: "campaign_seed",
            random: "campaign_random",
            drng: "drng_algorithm",
        } + rejected: rejected)
    }

    /// The same operations, empty: what calling costs without a library.
    pub fn with_empty_operations(&self) -> Symbols {
        Symbols {
            keygen: empty_keygen,
            sign: empty_sign,
            verify: empty_verify,
            ..*self
        }
    }

    /// Claimed lengths of public key, secret key and signature.
    pub fn lengths(&self, _on: &OnStack<'_>) -> [u64; 3] {
        // SAFETY: functions without arguments of the loaded library, types as looked up.
        unsafe { [(self.pk_len)(), (self.sk_len)(), (self.sn_len)()] }
    }

    /// Text of `campaign_meta`, at most 64 KiB of it.
    pub fn meta(&self, _on: &OnStack<'_>) -> String {
        // SAFETY: the function returns null or a static text (campaign_abi.h).
        unsafe { text((self.meta)()) }.unwrap_or_default()
    }

    /// `campaign_seed`.
    pub fn seed(&self, _on: &OnStack<'_>, seed: &[u8]) -> i32 {
        // SAFETY: `seed` is valid for its length during the call.
        unsafe { (self.seed)(seed.as_ptr(), seed.len() as u64) }
    }

    /// Puts `generator` in place of the recorded stream while `work` runs.
    pub fn with_generator<R>(
        &self,
        _on: &OnStack<'_>,
        generator: &mut dyn FnMut(&mut [u8]),
        work: impl FnOnce() -> R,
    ) -> R {
        let mut context: &mut dyn FnMut(&mut [u8]) = generator;
        // SAFETY: `draw` expects exactly this context, which outlives `work`; the recorded stream is
        // put back before it goes.
        unsafe {
            (self.random)(Some(draw), (&raw mut context).cast());
            let result = work();
            (self.random)(None, std::ptr::null_mut());
            result
        }
    }

    /// `campaign_rejected`, 0 where the library has none.
    pub fn rejected(&self, _on: &OnStack<'_>) -> u64 {
        // SAFETY: a function without arguments of the loaded library.
        self.rejected.map_or(0, |f| unsafe { f() })
    }

    /// State of the recorded stream.
    pub fn drng_state(&self) -> DrngState {
        // SAFETY: `drng_algorithm` is a DRNG_ctx of the loaded library: 165 bytes, no padding, and
        // no call of the library is under way.
        unsafe { self.drng.read_unaligned() }
    }

    /// Puts the recorded stream back to an earlier state.
    pub fn set_drng_state(&self, state: &DrngState) {
        // SAFETY: as in `drng_state`.
        unsafe { self.drng.write_unaligned(*state) }
    }

    /// `sig_keygen` into these buffers.
    pub fn keygen_call<'a>(&self, pk: &'a mut Guarded, sk: &'a mut Guarded) -> KeygenCall<'a> {
        KeygenCall {
            keygen: self.keygen,
            claimed: (pk.capacity() as u64, sk.capacity() as u64),
            returned: (0, 0),
            pk,
            sk,
        }
    }

    /// `sig_sign` with this key into this buffer.
    pub fn sign_call<'a>(&self, sk: &'a mut Guarded, sn: &'a mut Guarded) -> SignCall<'a> {
        SignCall {
            sign: self.sign,
            sk_len: sk.bytes().len() as u64,
            claimed: sn.capacity() as u64,
            returned: 0,
            sk,
            sn,
        }
    }

    /// `sig_verify` with this key.
    pub fn verify_call<'a>(&self, pk: &'a mut Guarded) -> VerifyCall<'a> {
        VerifyCall {
            verify: self.verify,
            pk_len: pk.bytes().len() as u64,
            pk,
        }
    }
}

unsafe extern "C" fn empty_keygen(
    _pk: *mut u8,
    _pk_len: *mut c_ulonglong,
    _sk: *mut u8,
    _sk_len: *mut c_ulonglong,
) -> c_int {
    0
}

unsafe extern "C" fn empty_sign(
    _sk: *mut u8,
    _sk_len: c_ulonglong,
    _m: *mut u8,
    _m_len: c_ulonglong,
    _sn: *mut u8,
    _sn_len: *mut c_ulonglong,
) -> c_int {
    0
}

unsafe extern "C" fn empty_verify(
    _pk: *mut u8,
    _pk_len: c_ulonglong,
    _sn: *mut u8,
    _sn_len: c_ulonglong,
    _m: *mut u8,
    _m_len: c_ulonglong,
) -> c_int {
    0
}

/// What C calls for randomness. An unwinding panic must not cross into C: it ends the process.
unsafe extern "C" fn draw(context: *mut c_void, out: *mut u8, bits: c_ulonglong) -> c_int {
    let Ok(bytes) = usize::try_from(bits.div_ceil(8)) else {
        return -1;
    };
    if out.is_null() || bytes > isize::MAX as usize {
        return -1;
    }
    // SAFETY: `context` is the one that `with_generator` passes; `out` has room for the bits asked
    // for, rounded up to whole bytes (campaign_abi.h).
    unsafe {
        let generator = &mut *context.cast::<&mut dyn FnMut(&mut [u8])>();
        generator(std::slice::from_raw_parts_mut(out, bytes));
    }
    0
}

/// The C text at `start`, if there is one, up to 64 KiB.
///
/// # Safety
/// `start` is null or points to a text that ends in NUL and stays.
unsafe fn text(start: *const c_char) -> Option<String> {
    if start.is_null() {
        return None;
    }
    // SAFETY: this function's own condition.
    let bytes = unsafe { CStr::from_ptr(start) }.to_bytes();
    let bytes = &bytes[..bytes.len().min(64 << 10)];
    Some(String::from_utf8_lossy(bytes).into_owned())
}

/// Key generation, ready to be called again and again.
#[derive(Debug)]
pub struct KeygenCall<'a> {
    keygen: KeygenFn,
    claimed: (u64, u64),
    returned: (c_ulonglong, c_ulonglong),
    pk: &'a mut Guarded,
    sk: &'a mut Guarded,
}

impl KeygenCall<'_> {
    /// One call; its return code.
    #[inline(always)]
    pub fn call(&mut self, _on: &OnStack<'_>) -> i32 {
        self.returned = self.claimed;
        // SAFETY: both buffers have the claimed lengths and guards beyond them, and are borrowed
        // mutably; the lengths are this struct's own.
        unsafe {
            (self.keygen)(
                self.pk.as_mut_ptr(),
                &mut self.returned.0,
                self.sk.as_mut_ptr(),
                &mut self.returned.1,
            )
        }
    }

    /// Lengths that the last call returned.
    pub fn returned(&self) -> (u64, u64) {
        self.returned
    }

    /// Takes the outputs of the last call over, checked.
    pub fn accept(self) -> Result<()> {
        self.pk.accept("sig_keygen", self.returned.0)?;
        self.sk.accept("sig_keygen", self.returned.1)
    }
}

/// Signing, ready to be called again and again.
#[derive(Debug)]
pub struct SignCall<'a> {
    sign: SignFn,
    sk_len: u64,
    claimed: u64,
    returned: c_ulonglong,
    sk: &'a mut Guarded,
    sn: &'a mut Guarded,
}

impl SignCall<'_> {
    /// One call; its return code.
    #[inline(always)]
    pub fn call<'m>(&mut self, _on: &OnStack<'_>, message: impl Into<Message<'m>>) -> i32 {
        let message = message.into();
        self.returned = self.claimed;
        // SAFETY: key and signature buffer have the lengths given and are borrowed mutably; the
        // message is as `Message` says.
        unsafe {
            (self.sign)(
                self.sk.as_mut_ptr(),
                self.sk_len,
                message.start,
                message.bytes,
                self.sn.as_mut_ptr(),
                &mut self.returned,
            )
        }
    }

    /// Length that the last call returned.
    pub fn returned(&self) -> u64 {
        self.returned
    }

    /// Takes the signature of the last call over, checked.
    pub fn accept(self) -> Result<()> {
        self.sn.accept("sig_sign", self.returned)
    }
}

/// Verification, ready to be called again and again.
#[derive(Debug)]
pub struct VerifyCall<'a> {
    verify: VerifyFn,
    pk_len: u64,
    pk: &'a mut Guarded,
}

impl VerifyCall<'_> {
    /// One call; 0 is valid.
    #[inline(always)]
    pub fn call<'m>(
        &mut self,
        _on: &OnStack<'_>,
        signature: &mut [u8],
        message: impl Into<Message<'m>>,
    ) -> i32 {
        let message = message.into();
        // SAFETY: as for signing.
        unsafe {
            (self.verify)(
                self.pk.as_mut_ptr(),
                self.pk_len,
                signature.as_mut_ptr(),
                signature.len() as u64,
                message.start,
                message.bytes,
            )
        }
    }
}

/// A message as C takes it: memory that is borrowed mutably (the API has no `const`), or the
/// sentinel of a stream library, which nothing reads through.
#[derive(Debug)]
pub struct Message<'a> {
    start: *mut u8,
    bytes: u64,
    memory: PhantomData<&'a mut [u8]>,
}

impl<'a> From<&'a mut [u8]> for Message<'a> {
    #[inline(always)]
    fn from(bytes: &'a mut [u8]) -> Self {
        Message {
            start: bytes.as_mut_ptr(),
            bytes: bytes.len() as u64,
            memory: PhantomData,
        }
    }
}

/// Functions of a stream library.
#[derive(Debug)]
pub struct StreamSymbols {
    open: StreamOpenFn,
    pointer: PointerFn,
    error: CodeFn,
    bytes_read: NumberFn,
    read_ns: NumberFn,
    hash_ns: NumberFn,
}

impl StreamSymbols {
    /// Looks them up; an error when the library is of another kind.
    pub fn find(library: &Library, name: &str) -> Result<StreamSymbols> {
        let mut lookup = Lookup {
            library,
            missing: Vec::new(),
        };
        all_or_missing!(
            lookup,
            name,
            StreamSymbols {
                open: "campaign_stream_open",
                pointer: "campaign_stream_pointer",
                error: "campaign_stream_error",
                bytes_read: "campaign_stream_bytes_read",
                read_ns: "campaign_stream_read_ns",
                hash_ns: "campaign_stream_hash_ns",
            }
        )
    }

    /// The message of the next calls is this file; counters start at 0.
    pub fn open(&self, file: BorrowedFd<'_>, bytes: u64, chunk: u64) -> i32 {
        // SAFETY: a function of drivers/dilithium/stream.c; it keeps the number and reads by offset
        // during calls only, while the caller keeps the file open.
        unsafe { (self.open)(file.as_raw_fd(), bytes, chunk) }
    }

    /// The file as a message of `bytes`.
    pub fn message(&self, bytes: u64) -> Message<'_> {
        Message {
            // SAFETY: a function without arguments of the library.
            start: unsafe { (self.pointer)() },
            bytes,
            memory: PhantomData,
        }
    }

    /// First error since the file was opened; 0 when none.
    pub fn error(&self) -> i32 {
        // SAFETY: as above.
        unsafe { (self.error)() }
    }

    /// Bytes read, nanoseconds of reading and of absorbing since the file was opened.
    pub fn figures(&self) -> [u64; 3] {
        // SAFETY: as above.
        unsafe { [(self.bytes_read)(), (self.read_ns)(), (self.hash_ns)()] }
    }
}

/// Functions of a memory library.
#[derive(Debug)]
pub struct MemorySymbols {
    reset: VoidFn,
    peak: NumberFn,
    live: NumberFn,
    allocations: NumberFn,
    overflow: NumberFn,
}

impl MemorySymbols {
    /// Looks them up; an error when the library is of another kind.
    pub fn find(library: &Library, name: &str) -> Result<MemorySymbols> {
        let mut lookup = Lookup {
            library,
            missing: Vec::new(),
        };
        all_or_missing!(
            lookup,
            name,
            MemorySymbols {
                reset: "campaign_memory_reset",
                peak: "campaign_memory_peak",
                live: "campaign_memory_live",
                allocations: "campaign_memory_allocations",
                overflow: "campaign_memory_overflow",
            }
        )
    }

    /// Those of the library that this process was started with, which must be the file named.
    pub fn interposed(wanted: &LibraryFile) -> Result<MemorySymbols> {
        open_identified(wanted)?;
        MemorySymbols::find(&Library::this(), &wanted.path).map_err(|_| {
            WorkerError::Load(format!(
                "{} was not loaded before everything else: a worker that is linked statically has no \
                 LD_PRELOAD, and a runner must pass it on",
                wanted.path
            ))
        })
    }

    /// Starts counting.
    pub fn reset(&self) {
        // SAFETY: a function without arguments that may be called at any time (campaign_abi.h).
        unsafe { (self.reset)() }
    }

    /// Peak of live bytes, live bytes, allocations since the reset, and blocks without a slot.
    pub fn figures(&self) -> [u64; 4] {
        // SAFETY: as for `reset`.
        unsafe {
            [
                (self.peak)(),
                (self.live)(),
                (self.allocations)(),
                (self.overflow)(),
            ]
        }
    }
}

/// Rows that are read at most: as many as the table of profile.c has.
const PROFILE_ROWS: usize = 256;

/// `campaign_profile_row`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ProfileRowRaw {
    /// Number of the function.
    pub function: c_uint,
    reserved: c_uint,
    /// Input bits.
    pub in_bits: c_ulonglong,
    /// Output bits.
    pub out_bits: c_ulonglong,
    /// Calls.
    pub calls: c_ulonglong,
    /// Ticks as read.
    pub ticks: c_ulonglong,
}

/// Functions of a profile library.
#[derive(Debug)]
pub struct ProfileSymbols {
    functions: CountFn,
    name: NameFn,
    group: NameFn,
    tick_source: TextFn,
    tick_hz: NumberFn,
    reset: VoidFn,
    rows: RowsFn,
    overflow: NumberFn,
    ticks: NumberFn,
    cost: NumberFn,
    cost_inside: NumberFn,
    cost_around: NumberFn,
}

impl ProfileSymbols {
    /// Looks them up; an error when the library is of another kind.
    pub fn find(library: &Library, name: &str) -> Result<ProfileSymbols> {
        let mut lookup = Lookup {
            library,
            missing: Vec::new(),
        };
        all_or_missing!(
            lookup,
            name,
            ProfileSymbols {
                functions: "campaign_profile_functions",
                name: "campaign_profile_name",
                group: "campaign_profile_group",
                tick_source: "campaign_profile_tick_source",
                tick_hz: "campaign_profile_tick_hz",
                reset: "campaign_profile_reset",
                rows: "campaign_profile_rows",
                overflow: "campaign_profile_overflow",
                ticks: "campaign_profile_ticks",
                cost: "campaign_profile_cost",
                cost_inside: "campaign_profile_cost_inside",
                cost_around: "campaign_profile_cost_around",
            }
        )
    }

    /// Name and group of each wrapped function.
    pub fn names(&self) -> Vec<(String, String)> {
        // SAFETY: functions of drivers/abi/profile.c; they return static texts, or null for a number
        // that is too large.
        unsafe {
            (0..(self.functions)())
                .map(|number| {
                    let name = text((self.name)(number)).unwrap_or_default();
                    (name, text((self.group)(number)).unwrap_or_default())
                })
                .collect()
        }
    }

    /// `tsc` or `cntvct`, and its rate where the processor tells it.
    pub fn tick_source(&self) -> (String, Option<u64>) {
        // SAFETY: as above.
        unsafe {
            let name = text((self.tick_source)()).unwrap_or_default();
            (name, Some((self.tick_hz)()).filter(|&hz| hz > 0))
        }
    }

    /// Forgets all rows.
    pub fn reset(&self) {
        // SAFETY: as above.
        unsafe { (self.reset)() }
    }

    /// Reads the counter that the wrappers read.
    #[inline(always)]
    pub fn ticks(&self) -> u64 {
        // SAFETY: as above.
        unsafe { (self.ticks)() }
    }

    /// All rows, and the calls that found no slot.
    pub fn rows(&self) -> (Vec<ProfileRowRaw>, u64) {
        let mut rows = vec![ProfileRowRaw::default(); PROFILE_ROWS];
        // SAFETY: the library writes at most `max` rows of this layout.
        unsafe {
            let count = (self.rows)(rows.as_mut_ptr(), rows.len() as c_uint) as usize;
            let unread = count.saturating_sub(PROFILE_ROWS) as u64;
            rows.truncate(count);
            (rows, (self.overflow)() + unread)
        }
    }

    /// Cost of one wrapper: whole ticks, and thousandths inside its row and around it.
    pub fn costs(&self) -> [u64; 3] {
        // SAFETY: as above.
        unsafe { [(self.cost)(), (self.cost_inside)(), (self.cost_around)()] }
    }
}

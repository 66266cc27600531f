//! A loaded library and its checked calls: guard bytes, patterns, return codes, inputs unchanged.

use super::file::LibraryHandle;
use super::symbols::{
    DrngState, KeygenCall, MemorySymbols, ProfileSymbols, SignCall, StreamSymbols, Symbols,
    VerifyCall,
};
use crate::error::{Result, WorkerError};
use crate::memory::{Guarded, OnStack};
use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use protocol::{Loaded, Sizes};
use sha2::{Digest, Sha256};

/// Largest length that a getter may claim, bytes.
const LARGEST: u64 = 1 << 30;

/// Times that the lengths are asked for: a library whose answers change is refused.
const LENGTH_READS: usize = 3;

/// What verification said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// 0.
    Valid,
    /// Anything else; the code.
    Rejected(i32),
}

/// A loaded library.
#[derive(Debug)]
pub struct Candidate {
    // Declared before `library`, which they point into.
    symbols: Symbols,
    sizes: Sizes,
    library: Library,
    name: String,
}

impl Candidate {
    /// Loads the file: all symbols bound now, none of them visible to others; constructors run on
    /// the dedicated stack.
    pub fn load(on: &OnStack<'_>, handle: &LibraryHandle) -> Result<Candidate> {
        // SAFETY: loading runs the library's constructors, which is the purpose of this process; the
        // isolation layers bound what they can do, and a crash is seen by the orchestrator.
        let library =
            unsafe { Library::open(Some(handle.descriptor_path()), RTLD_NOW | RTLD_LOCAL) }
                .map_err(|error| refused(handle, &error))?;
        let symbols = Symbols::find(&library, handle.name())?;
        let sizes = read_sizes(on, &symbols)?;
        Ok(Candidate {
            symbols,
            sizes,
            library,
            name: handle.name().to_owned(),
        })
    }

    /// What the library says of itself.
    pub fn loaded(&self, on: &OnStack<'_>) -> Loaded {
        let meta = self.symbols.meta(on);
        let lines = meta.lines().filter_map(|line| line.split_once('='));
        Loaded {
            meta: lines.map(|(k, v)| (k.to_owned(), v.to_owned())).collect(),
            sizes: self.sizes,
            layers: Vec::new(),
        }
    }

    /// Claimed lengths, bytes.
    pub fn sizes(&self) -> Sizes {
        self.sizes
    }

    /// A `Contract` error when the getters give other lengths than at first.
    pub fn check_sizes(&self, on: &OnStack<'_>) -> Result<()> {
        let now = read_sizes(on, &self.symbols)?;
        if now == self.sizes {
            return Ok(());
        }
        Err(WorkerError::Contract(format!(
            "the claimed lengths changed from {:?} to {now:?}",
            self.sizes
        )))
    }

    /// An empty buffer for a public key.
    pub fn pk_buffer(&self) -> Result<Guarded> {
        Guarded::new("the public key", self.sizes.pk as usize)
    }

    /// An empty buffer for a secret key.
    pub fn sk_buffer(&self) -> Result<Guarded> {
        Guarded::new("the secret key", self.sizes.sk as usize)
    }

    /// An empty buffer for a signature.
    pub fn sn_buffer(&self) -> Result<Guarded> {
        Guarded::new("the signature", self.sizes.sn as usize)
    }

    /// Starts the recorded stream.
    pub fn seed(&self, on: &OnStack<'_>, seed: &[u8]) -> Result<()> {
        accept_code("campaign_seed", self.symbols.seed(on, seed))
    }

    /// State of the recorded stream.
    pub fn drng_state(&self) -> DrngState {
        self.symbols.drng_state()
    }

    /// Puts the recorded stream back.
    pub fn set_drng_state(&self, state: &DrngState) {
        self.symbols.set_drng_state(state);
    }

    /// Runs `work` with `generator` in place of the recorded stream.
    pub fn with_generator<R>(
        &self,
        on: &OnStack<'_>,
        generator: &mut dyn FnMut(&mut [u8]),
        work: impl FnOnce() -> R,
    ) -> R {
        self.symbols.with_generator(on, generator, work)
    }

    /// Draws that the candidate rejected so far.
    pub fn rejected(&self, on: &OnStack<'_>) -> u64 {
        self.symbols.rejected(on)
    }

    /// Bare key generation for the timing loop.
    pub fn keygen_call<'a>(&self, pk: &'a mut Guarded, sk: &'a mut Guarded) -> KeygenCall<'a> {
        self.symbols.keygen_call(pk, sk)
    }

    /// Bare signing for the timing loop.
    pub fn sign_call<'a>(&self, sk: &'a mut Guarded, sn: &'a mut Guarded) -> SignCall<'a> {
        self.symbols.sign_call(sk, sn)
    }

    /// Bare verification for the timing loop.
    pub fn verify_call<'a>(&self, pk: &'a mut Guarded) -> VerifyCall<'a> {
        self.symbols.verify_call(pk)
    }

    /// One key pair, checked.
    pub fn keygen(&self, on: &OnStack<'_>, pk: &mut Guarded, sk: &mut Guarded) -> Result<()> {
        pk.lay_pattern();
        sk.lay_pattern();
        let mut call = self.symbols.keygen_call(pk, sk);
        let code = call.call(on);
        accept_code("sig_keygen", code)?;
        call.accept()
    }

    /// One signature, checked; key and message must be as before.
    pub fn sign(
        &self,
        on: &OnStack<'_>,
        sk: &mut Guarded,
        message: &mut Guarded,
        sn: &mut Guarded,
    ) -> Result<()> {
        let before = (Fingerprint::of(sk), Fingerprint::of(message));
        sn.lay_pattern();
        let mut call = self.symbols.sign_call(sk, sn);
        let code = call.call(on, message.bytes_mut());
        accept_code("sig_sign", code)?;
        call.accept()?;
        before.0.same(sk, "sig_sign")?;
        before.1.same(message, "sig_sign")
    }

    /// One verification, checked; all inputs must be as before.
    pub fn verify(
        &self,
        on: &OnStack<'_>,
        pk: &mut Guarded,
        sn: &mut Guarded,
        message: &mut Guarded,
    ) -> Result<Verdict> {
        let before = [&*pk, &*sn, &*message].map(Fingerprint::of);
        let code = self
            .symbols
            .verify_call(pk)
            .call(on, sn.bytes_mut(), message.bytes_mut());
        for (print, buffer) in before.iter().zip([&*pk, &*sn, &*message]) {
            print.same(buffer, "sig_verify")?;
        }
        Ok(match code {
            0 => Verdict::Valid,
            other => Verdict::Rejected(other),
        })
    }

    /// Functions of a memory library.
    pub fn memory_symbols(&self) -> Result<MemorySymbols> {
        MemorySymbols::find(&self.library, &self.name)
    }

    /// Functions of a profile library.
    pub fn profile_symbols(&self) -> Result<ProfileSymbols> {
        ProfileSymbols::find(&self.library, &self.name)
    }

    /// Functions of a stream library.
    pub fn stream_symbols(&self) -> Result<StreamSymbols> {
        StreamSymbols::find(&self.library, &self.name)
    }

    /// The bare functions.
    pub fn symbols(&self) -> &Symbols {
        &self.symbols
    }

    /// Unloads the library, destructors included, on the dedicated stack.
    pub fn unload(self, _on: &OnStack<'_>) {
        drop(self);
    }
}

/// Content and guards of an input before a call.
struct Fingerprint([u8; 32]);

impl Fingerprint {
    fn of(buffer: &Guarded) -> Fingerprint {
        Fingerprint(Sha256::digest(buffer.bytes()).into())
    }

    fn same(&self, buffer: &Guarded, call: &str) -> Result<()> {
        buffer.check_guards(call)?;
        if Fingerprint::of(buffer).0 == self.0 {
            return Ok(());
        }
        Err(WorkerError::Contract(format!(
            "{call} changed its input {}",
            buffer.name()
        )))
    }
}

fn accept_code(call: &'static str, code: i32) -> Result<()> {
    if code == 0 {
        return Ok(());
    }
    Err(WorkerError::Call {
        call,
        code,
        place: String::new(),
    })
}

fn read_sizes(on: &OnStack<'_>, symbols: &Symbols) -> Result<Sizes> {
    let first = symbols.lengths(on);
    for _ in 1..LENGTH_READS {
        let again = symbols.lengths(on);
        if again != first {
            return Err(WorkerError::Contract(format!(
                "the claimed lengths change from call to call: {first:?}, then {again:?}"
            )));
        }
    }
    let names = ["public key", "secret key", "signature"];
    for (name, bytes) in names.iter().zip(first) {
        if bytes == 0 || bytes > LARGEST {
            return Err(WorkerError::Contract(format!(
                "the claimed length of the {name} is {bytes} bytes: 1 to {LARGEST} are accepted"
            )));
        }
    }
    let [pk, sk, sn] = first;
    Ok(Sizes { pk, sk, sn })
}

/// The loader's message, in terms of the file asked for and with the cause that is most common.
fn refused(handle: &LibraryHandle, error: &libloading::Error) -> WorkerError {
    let mut text = error.to_string();
    if let Some(source) = std::error::Error::source(error) {
        text = format!("{text}: {source}");
    }
    let text = text.replace(&handle.descriptor_path(), handle.name());
    let hint = if text.contains("undefined symbol: drng_algorithm") {
        " (the driver defines drng_algorithm: link the library with drivers/abi/adapter.c)"
    } else {
        ""
    };
    WorkerError::Load(format!("{} does not load: {text}{hint}", handle.name()))
}

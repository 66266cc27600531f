//! One operation at a time, with a key and a message of its own: what the memory and profile phases
//! run. Everything that the operation needs is made before it, so that it can be looked at alone.

use super::inputs::{Inputs, KeyPair, Messages};
use crate::error::{Result, WorkerError};
use crate::library::{Candidate, DrngState, Symbols, Verdict};
use crate::memory::{Guarded, OnStack};
use crate::random::Role;
use protocol::Operation;

/// An operation ready to run once.
#[derive(Debug)]
pub struct Single {
    operation: Operation,
    key: KeyPair,
    message: Guarded,
    sn: Guarded,
    returned: u64,
}

impl Single {
    /// Prepares run `number`: its key (signing, verifying), its message, its signature (verifying).
    pub fn prepare(
        on: &OnStack<'_>,
        candidate: &Candidate,
        operation: Operation,
        inputs: &mut Inputs<'_>,
        messages: &mut Messages,
        number: u64,
    ) -> Result<Single> {
        let key = match operation {
            Operation::Keygen => inputs.empty_key()?,
            _ => inputs.next_key(on, number)?,
        };
        let mut single = Single {
            operation,
            key,
            message: messages.guarded(number)?,
            sn: candidate.sn_buffer()?,
            returned: 0,
        };
        match operation {
            Operation::Keygen => inputs.enter(on, Role::Key)?,
            Operation::Sign => inputs.enter(on, Role::Random)?,
            Operation::Verify => {
                inputs.enter(on, Role::Random)?;
                let (sk, message) = (&mut single.key.sk, &mut single.message);
                candidate.sign(on, sk, message, &mut single.sn)?;
            }
        }
        single.key.lay_patterns_if(operation == Operation::Keygen);
        if operation == Operation::Sign {
            single.sn.lay_pattern();
        }
        Ok(single)
    }

    /// Makes it ready to run once more, on the same inputs. Only the first run of a phase may be run
    /// again: the stream that the operation draws from starts anew.
    pub fn again(&mut self, on: &OnStack<'_>, inputs: &mut Inputs<'_>) -> Result<()> {
        let role = match self.operation {
            Operation::Keygen => Role::Key,
            Operation::Sign => Role::Random,
            Operation::Verify => return Ok(()),
        };
        inputs.forget(role);
        inputs.enter(on, role)?;
        self.key
            .lay_patterns_if(self.operation == Operation::Keygen);
        if self.operation == Operation::Sign {
            self.sn.lay_pattern();
        }
        Ok(())
    }

    /// Makes it ready to run once more, with the library's stream where it was when this was prepared.
    pub fn rewind(&mut self, candidate: &Candidate, stream: &DrngState) {
        candidate.set_drng_state(stream);
        self.key
            .lay_patterns_if(self.operation == Operation::Keygen);
        if self.operation == Operation::Sign {
            self.sn.lay_pattern();
        }
    }

    /// The operation alone, by `symbols`; its return code. Never inlined: the empty operation must
    /// use the same frames.
    #[inline(never)]
    pub fn call(&mut self, on: &OnStack<'_>, symbols: &Symbols) -> i32 {
        match self.operation {
            Operation::Keygen => {
                let mut call = symbols.keygen_call(&mut self.key.pk, &mut self.key.sk);
                let code = call.call(on);
                self.key.returned = call.returned();
                code
            }
            Operation::Sign => {
                let mut call = symbols.sign_call(&mut self.key.sk, &mut self.sn);
                let code = call.call(on, self.message.bytes_mut());
                self.returned = call.returned();
                code
            }
            Operation::Verify => symbols.verify_call(&mut self.key.pk).call(
                on,
                self.sn.bytes_mut(),
                self.message.bytes_mut(),
            ),
        }
    }

    /// Accepts the outputs of a call that returned `code`, and verifies them.
    pub fn check(&mut self, on: &OnStack<'_>, candidate: &Candidate, code: i32) -> Result<()> {
        let name = match self.operation {
            Operation::Keygen => "sig_keygen",
            Operation::Sign => "sig_sign",
            Operation::Verify => "sig_verify",
        };
        if code != 0 {
            return Err(WorkerError::Call {
                call: name,
                code,
                place: String::new(),
            });
        }
        if self.operation == Operation::Keygen {
            self.key.accept(name)?;
            // The check must not move the stream: the next key is the next draw of it.
            let stream = candidate.drng_state();
            let (sk, message) = (&mut self.key.sk, &mut self.message);
            let signed = candidate.sign(on, sk, message, &mut self.sn);
            candidate.set_drng_state(&stream);
            signed?;
        } else if self.operation == Operation::Sign {
            self.sn.accept(name, self.returned)?;
        }
        let (pk, sn) = (&mut self.key.pk, &mut self.sn);
        match candidate.verify(on, pk, sn, &mut self.message)? {
            Verdict::Valid => Ok(()),
            Verdict::Rejected(code) => Err(WorkerError::NotVerified(format!(
                "the output did not verify (sig_verify returned {code})"
            ))),
        }
    }
}

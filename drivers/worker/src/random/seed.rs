//! The seed rule: every stream of inputs starts from a hash of what it is for.

use protocol::{Operation, INPUT_DOMAIN};
use sha2::{Digest, Sha256};

/// What a stream is drawn for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Key generation.
    Key,
    /// Messages.
    Message,
    /// Randomness of signing.
    Random,
}

impl Role {
    /// The word that enters the hash and the record.
    pub fn name(self) -> &'static str {
        match self {
            Role::Key => "key",
            Role::Message => "message",
            Role::Random => "random",
        }
    }
}

/// Seed of the rule `fixed`: bytes 00 to 2f.
pub const FIXED_SEED: [u8; 48] = {
    let mut bytes = [0; 48];
    let mut index = 0;
    while index < bytes.len() {
        bytes[index] = index as u8;
        index += 1;
    }
    bytes
};

/// `SHA-256("campaign/1" || 00 || subject || 00 || operation || 00 || LE32(trial) || role)`;
/// `subject` is `candidate/label`.
pub fn seed(subject: &str, operation: Operation, trial: u32, role: Role) -> [u8; 32] {
    let mut hash = Sha256::new();
    for part in [
        INPUT_DOMAIN,
        subject.as_bytes(),
        operation.name().as_bytes(),
    ] {
        hash.update(part);
        hash.update([0]);
    }
    hash.update(trial.to_le_bytes());
    hash.update(role.name());
    hash.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_seed_is_the_hash_of_the_rule_written_out() {
        let found = seed(
            "sign-09/dove_classic_128",
            Operation::Sign,
            258,
            Role::Message,
        );
        let text = b"campaign/1\0sign-09/dove_classic_128\0sign\0\x02\x01\0\0message";
        assert_eq!(found, <[u8; 32]>::from(Sha256::digest(text)));
    }

    #[test]
    fn streams_differ_in_every_part() {
        let all = [
            seed("a/b", Operation::Sign, 0, Role::Key),
            seed("a/c", Operation::Sign, 0, Role::Key),
            seed("a/b", Operation::Verify, 0, Role::Key),
            seed("a/b", Operation::Sign, 1, Role::Key),
            seed("a/b", Operation::Sign, 0, Role::Random),
        ];
        for (index, one) in all.iter().enumerate() {
            assert!(!all[..index].contains(one));
        }
    }
}

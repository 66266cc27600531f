//! Signatures of a seal with the user's own SSH key: `ssh-keygen -Y sign` makes them, `-Y verify` checks
//! them against a file of allowed signers (see ssh-keygen(1)). The signed text is the seal file.

use crate::evidence::journal::JournalError;
use crate::evidence::seal::{self, NotClosed};
use crate::evidence::store::{self, StoreError};
use crate::process::{run_blocking, Command, Outcome, Stop};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What a signature is for: one made for another purpose does not count.
const NAMESPACE: &str = "campaign-seal";
/// The program.
const PROGRAM: &str = "ssh-keygen";
/// A key on a token may wait for a touch.
const LIMIT: Duration = Duration::from_secs(120);

/// A seal cannot be signed, or its signature does not hold.
#[derive(Debug, thiserror::Error)]
pub enum SignatureError {
    /// No seal, or one that is not the journal's.
    #[error("{}: it is not sealed, so there is nothing to sign", .0.display())]
    NotSealed(PathBuf),
    /// No signature beside the seal.
    #[error("{}: the seal is not signed", .0.display())]
    NotSigned(PathBuf),
    /// `ssh-keygen` refuses.
    #[error("{PROGRAM} cannot {what} (a key with a passphrase needs an agent): {text}")]
    Refused {
        /// What was asked for.
        what: &'static str,
        /// What it says.
        text: String,
    },
    /// A file cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The journal.
    #[error(transparent)]
    Journal(#[from] JournalError),
}

/// Where the signature of a run or dataset lies: beside its seal.
pub fn path(dir: &Path) -> PathBuf {
    let mut name = seal::seal_path(dir).into_os_string();
    name.push(".sig");
    name.into()
}

/// Signs the seal of a sealed run or dataset with an SSH key; returns the path of the signature.
pub fn sign(dir: &Path, key: &Path) -> Result<PathBuf, SignatureError> {
    seal::closed(dir).map_err(|why| match why {
        NotClosed::Journal(error) => error.into(),
        _ => SignatureError::NotSealed(dir.to_owned()),
    })?;
    let command = Command::new(PROGRAM)
        .args(["-Y", "sign", "-n", NAMESPACE, "-f"])
        .arg(key);
    let outcome = ask(command, &text(dir)?);
    if !outcome.end.is_success() || outcome.stdout.bytes() == 0 {
        return Err(refused("sign", &outcome));
    }
    let path = path(dir);
    store::write_atomic(&path, outcome.stdout.head())?;
    Ok(path)
}

/// Checks the signature of a seal; returns the allowed signer whose it is.
pub fn verify(dir: &Path, allowed: &Path) -> Result<String, SignatureError> {
    let signature = path(dir);
    if !signature.is_file() {
        return Err(SignatureError::NotSigned(dir.to_owned()));
    }
    let with = |command: Command| command.arg("-f").arg(allowed).arg("-s").arg(&signature);
    let seal = text(dir)?;
    let found = ask(
        with(Command::new(PROGRAM).args(["-Y", "find-principals"])),
        &[],
    );
    let signer = found
        .stdout
        .text()
        .lines()
        .next()
        .unwrap_or_default()
        .to_owned();
    if !found.end.is_success() || signer.is_empty() {
        return Err(refused("find the signer among those allowed", &found));
    }
    let command = Command::new(PROGRAM).args(["-Y", "verify", "-n", NAMESPACE, "-I", &signer]);
    let verified = ask(with(command), &seal);
    match verified.end.is_success() {
        true => Ok(signer),
        false => Err(refused("verify the signature", &verified)),
    }
}

fn text(dir: &Path) -> Result<Vec<u8>, SignatureError> {
    let path = seal::seal_path(dir);
    std::fs::read(&path).map_err(|source| StoreError::Read { path, source }.into())
}

/// Agents and askpass programs are found through the environment.
fn ask(command: Command, input: &[u8]) -> Outcome {
    run_blocking(
        command.inherit_env().input(input).deadline(LIMIT),
        &Stop::new(),
    )
}

fn refused(what: &'static str, outcome: &Outcome) -> SignatureError {
    let said = format!("{}{}", outcome.stderr.text(), outcome.stdout.text());
    let text = match said.trim() {
        "" => format!("{:?}", outcome.end),
        said => said.to_owned(),
    };
    SignatureError::Refused { what, text }
}

//! `campaign.toml`: from typed text to a checked campaign.
//!
//! [`model`] is what the rest of the program sees: everything is validated, defaults are filled in,
//! and paths are relative to [`model::Campaign::root`]. A file is read in two steps: [`text`] gives every
//! value its type and place, [`check`] resolves names, fills in defaults and looks for files. Both
//! collect what is wrong, so that all mistakes of a file are reported together, each with its place,
//! what is accepted, and a hint.
//!
//! What the words of a flag or a regular expression do is left to the phases that use them; files
//! inside registry crates (`{crate}` in a path) are looked for by the build phase.

pub mod check;
pub mod defaults;
pub mod mistake;
pub mod model;
pub mod paths;
pub mod reader;
pub mod text;
mod words;

#[cfg(test)]
mod tests;

pub use mistake::{ConfigError, Mistake, Mistakes};
pub use model::*;

use mistake::Collector;
use reader::Section;
use std::path::{Path, PathBuf};
use toml::de::DeTable;

/// Name of the file.
pub const FILE: &str = "campaign.toml";

/// Whether source files must be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sources {
    /// A checkout: every pattern must match a file.
    Required,
    /// An unpacked campaign: libraries are built already, and sources are not carried along.
    Absent,
}

/// The nearest `campaign.toml` in a folder or above it.
pub fn find(start: &Path) -> Result<PathBuf, ConfigError> {
    start
        .ancestors()
        .map(|folder| folder.join(FILE))
        .find(|file| file.is_file())
        .ok_or_else(|| ConfigError::NotFound(start.to_owned()))
}

/// Reads and checks a file.
pub fn load(path: &Path, sources: Sources) -> Result<Campaign, ConfigError> {
    let read = |source| ConfigError::Read {
        path: path.to_owned(),
        source,
    };
    let bytes = std::fs::read(path).map_err(read)?;
    let absolute = std::path::absolute(path).map_err(read)?;
    let root = absolute.parent().unwrap_or(Path::new("/"));
    Ok(parse(&bytes, path, root, sources)?)
}

/// Checks the bytes of a file: `shown` is its name in messages, `root` its folder.
pub fn parse(
    bytes: &[u8],
    shown: &Path,
    root: &Path,
    sources: Sources,
) -> Result<Campaign, Mistakes> {
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => return Err(no_text(bytes, error.valid_up_to(), shown)),
    };
    let (table, syntax) = DeTable::parse_recoverable(text);
    let mistakes = Collector::new(shown, text);
    let typed = text::campaign(Section::root(table.get_ref(), &mistakes));
    if !syntax.is_empty() {
        return Err(broken(text, shown, &syntax, mistakes));
    }
    let context = check::Context {
        root,
        shown_root: shown.parent().unwrap_or(Path::new("")),
        sources: sources == Sources::Required,
        mistakes: &mistakes,
    };
    let campaign = check::campaign(typed, crate::hash::sha256(bytes), &context);
    match campaign {
        Some(campaign) => Ok(campaign),
        None => Err(Mistakes(mistakes.into_mistakes())),
    }
}

/// The mistake of a file that is no text.
fn no_text(bytes: &[u8], at: usize, shown: &Path) -> Mistakes {
    let good = String::from_utf8_lossy(&bytes[..at]);
    let mistakes = Collector::new(shown, &good);
    mistakes.add(
        at..at,
        format!("byte {at} is no UTF-8"),
        Some("a text file in UTF-8".to_owned()),
        None,
    );
    Mistakes(mistakes.into_mistakes())
}

/// Mistakes of a file that is no TOML. What could be read has been read, and its mistakes are kept,
/// except on lines that the parser had to guess at. Nothing is said about what seems to be missing.
fn broken(text: &str, shown: &Path, syntax: &[toml::de::Error], typed: Collector<'_>) -> Mistakes {
    let mistakes = Collector::new(shown, text);
    for (index, error) in syntax.iter().enumerate() {
        let rest = "what stands beyond this is checked as far as it can be read";
        let hint = (index == 0).then(|| rest.to_owned());
        let what = format!("not TOML: {}", error.message());
        mistakes.add(error.span().unwrap_or(0..0), what, None, hint);
    }
    let guessed = mistakes.lines();
    for (at, mistake) in typed.into_sorted() {
        // A value that the parser made up has no extent.
        let real = !at.is_empty() && !guessed.contains(&mistake.line);
        if real && !mistake.absence {
            mistakes.add_foreign(at, mistake);
        }
    }
    Mistakes(mistakes.into_mistakes())
}

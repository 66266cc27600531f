//! `campaign untune`: restores the host exactly as `tune` found it.

use super::exit::{Failure, Outcome};
use super::options::Global;
use super::output;
use crate::host::tune::{self, Restored, JOURNAL};
use crate::host::Root;
use std::fmt::Write;
use std::path::PathBuf;

/// Arguments of `untune`.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// Write /proc and /sys below this folder, for tests
    #[arg(long, value_name = "DIR")]
    pub sysroot: Option<PathBuf>,
}

/// Restores; status 1 when a value could not be brought back.
pub fn run(args: &Args, global: &Global) -> Result<Outcome, Failure> {
    let root = Root::from_option(args.sysroot.as_deref());
    let left = tune::left(&root);
    let restored = tune::restore(&root)?;
    match global.json {
        true => output::print_json(&restored)?,
        false => {
            let left = left.map(|left| format!("{left}\n")).unwrap_or_default();
            output::print(&(left + &text(&restored)))?;
        }
    }
    Ok(Outcome::found(!restored.open.is_empty()))
}

/// What was restored, and what not.
fn text(restored: &Restored) -> String {
    if !restored.was_tuned {
        return "this host is not tuned: nothing to restore\n".to_owned();
    }
    let mut text = String::new();
    for path in &restored.written {
        let _ = writeln!(text, "  restored /{path}");
    }
    for open in &restored.open {
        let _ = writeln!(
            text,
            "  NOT restored /{} to {}: {}",
            open.path, open.value, open.why
        );
    }
    text += &match (restored.open.is_empty(), restored.restarted) {
        (true, true) if restored.written.is_empty() => {
            "the restart had restored everything already\n".to_owned()
        }
        (true, _) => "the host is as it was before\n".to_owned(),
        (false, _) => format!(
            "the values are kept in /{JOURNAL}: see to what is in the way and run `campaign untune` again, or remove that file\n"
        ),
    };
    text
}

//! `campaign`: parse the command line, run one subcommand, say what went wrong, choose the exit
//! status. Everything else is the library's.
#![forbid(unsafe_code)]

use clap::Parser;
use harness::cli::{self, Cli};
use std::io::Write;
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let result = cli::dispatch(&cli);
    if let Err(failure) = &result {
        // Where nobody can be told, the status still tells.
        let _ = writeln!(std::io::stderr(), "{}", cli::exit::chain(failure));
    }
    cli::exit::code(&result).into()
}

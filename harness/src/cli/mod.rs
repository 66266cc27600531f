//! The command line: words in, one call per subcommand, an exit status out.
//!
//! A subcommand is one file here with a `pub struct Args` (what was typed, checked word by word) and
//! a `pub fn run(args: &Args, global: &Global) -> Result<Outcome, Failure>` (which calls the library
//! and prints). What the words mean is the library's business, and it can be tested without this
//! module.
//!
//! **To add a subcommand**: its file and its `Args` are most likely here already, for the command
//! line was designed as a whole. Write its `run`, then add one variant to [`Command`] and one arm to
//! [`dispatch`]. A command without a `run` has no variant, so that `--help` promises nothing that
//! does not work. To add an error type, see [`exit`].
//!
//! | files | hold |
//! |---|---|
//! | `options.rs` | groups of options that several commands share |
//! | `exit.rs` | how a command ends: [`Outcome`], [`Failure`], exit status |
//! | `named.rs` | runs and datasets as they are named on the command line |
//! | `output.rs` | writing to standard output |
//! | `prepare.rs` | what `plan`, `run` and each phase do first: configuration, system, plan, CPUs, rows |
//! | all others | one subcommand each |

pub mod carry;
pub mod exit;
pub mod named;
pub mod options;
pub mod output;

pub mod audit;
pub mod build;
pub mod calibrate;
pub mod check;
pub mod collect;
pub mod compare;
pub mod export;
pub mod import;
pub mod kat;
pub mod measure;
pub mod memory;
pub mod pack;
pub mod plan;
pub mod prepare;
pub mod profile;
pub mod publish;
pub mod report;
pub mod run;
pub mod schema;
pub mod seal;
pub mod study;
pub mod templates;
pub mod tune;
pub mod tune_guard;
pub mod untune;

pub use exit::{Failure, Outcome};
pub use options::Global;

use clap::{Parser, Subcommand};

/// What was typed.
#[derive(Debug, Parser)]
#[command(
    name = "campaign",
    version,
    about = "Measures signature candidates and publishes pages that anybody can check down to the raw evidence",
    after_help = exit::HELP,
    disable_help_subcommand = true
)]
pub struct Cli {
    /// Options of every subcommand.
    #[command(flatten)]
    pub global: Global,
    /// The subcommand.
    #[command(subcommand)]
    pub command: Command,
}

/// The subcommands that work, in the order of a campaign.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Say whether this machine is fit to measure on, item by item, and what to do
    Check(check::Args),
    /// Fix the clock, turbo, SMT and interrupts of this machine for measuring
    Tune(tune::Args),
    /// Restore this machine exactly as `tune` found it
    Untune(untune::Args),
    /// Measure the campaign: all phases, from source to sealed evidence and pages; resumes
    Run(run::Args),
    /// Compile the libraries of every identity
    Build(build::Args),
    /// Check every library against its known answers
    Kat(kat::Args),
    /// Find out what one call of each operation costs
    Calibrate(calibrate::Args),
    /// Time every operation
    Measure(measure::Args),
    /// Measure stack, heap and static memory
    Memory(memory::Args),
    /// Measure the share of hash functions and DRNG
    Profile(profile::Args),
    /// Close a run: manifest, journal, seal
    Seal(seal::Args),
    /// Measure how operations depend on something: so far, on the size of the message
    Study(study::Args),
    /// Show what would be measured, how often and how long; measures nothing
    Plan(plan::Args),
    /// Render the pages of runs and datasets, or compare them with those that are there
    Report(report::Args),
    /// Compare datasets row by row: two systems, or two runs of one
    Compare(compare::Args),
    /// Write out the built-in page templates
    Templates(templates::Args),
    /// Copy a sealed run into performance/data
    Publish(publish::Args),
    /// Recompute every published number from the raw evidence
    Audit(audit::Args),
    /// Pack the campaign for a machine without a toolchain
    Pack(pack::Args),
    /// Take back what a packed campaign has measured
    Collect(collect::Args),
    /// Write a dataset as tables for other programs
    Export(export::Args),
    /// Bring evidence of another tool, or published cells, into performance/data
    Import(import::Args),
    /// What `run --tune` starts to tune, watch and restore
    #[command(hide = true)]
    TuneGuard(tune_guard::Args),
    /// Print the JSON schema of an evidence file
    Schema(schema::Args),
}

/// Runs the subcommand.
pub fn dispatch(cli: &Cli) -> Result<Outcome, Failure> {
    let global = &cli.global;
    match &cli.command {
        Command::Check(args) => check::run(args, global),
        Command::Tune(args) => tune::run(args, global),
        Command::Untune(args) => untune::run(args, global),
        Command::TuneGuard(args) => tune_guard::run(args),
        Command::Run(args) => run::run(args, global),
        Command::Build(args) => build::run(args, global),
        Command::Kat(args) => kat::run(args, global),
        Command::Calibrate(args) => calibrate::run(args, global),
        Command::Measure(args) => measure::run(args, global),
        Command::Memory(args) => memory::run(args, global),
        Command::Profile(args) => profile::run(args, global),
        Command::Seal(args) => seal::run(args, global),
        Command::Study(args) => study::run(args, global),
        Command::Plan(args) => plan::run(args, global),
        Command::Report(args) => report::run(args, global),
        Command::Compare(args) => compare::run(args, global),
        Command::Templates(args) => templates::run(args, global),
        Command::Publish(args) => publish::run(args, global),
        Command::Audit(args) => audit::run(args, global),
        Command::Pack(args) => pack::run(args, global),
        Command::Collect(args) => collect::run(args, global),
        Command::Export(args) => export::run(args, global),
        Command::Import(args) => import::run(args, global),
        Command::Schema(args) => schema::run(args, global),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;
    use std::collections::BTreeSet;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_designed_form_is_accepted_and_its_misuse_refused() {
        use clap::error::ErrorKind::*;
        let good = [
            "run --plan guide --system x86_1 --cpu 2 --only ^dil --new --tune --allow-unfixed-host --no-deferred --wait",
            "run --run runs/x --pack packed --config other.toml --worker w --json --quiet",
            "check --sysroot t", "tune --dry-run --sysroot t", "untune --sysroot t",
            "build --run r --only x", "calibrate --run r", "memory --run r", "profile --run r",
            "seal --run r --sign k", "plan --plan guide --cpu 2 --json",
            "kat --keep-text d --run r --system s --only x --plan quick --cpu 0-3",
            "measure --run r --system s --only x --plan quick --cpu 0-3",
            "study message-size --sizes 1MB,100MB --full", "study message-size --file f",
            "study message-size --trials 3 --new --wait --allow-unfixed-host",
            "publish r --id i --current --partial x --allow-unfixed-host",
            "import d --system s", "import --aggregate f --system s",
            "report a b --check --templates t --charts png", "templates export", "schema timing",
            "audit a b", "compare a b c", "export a --csv", "pack --system s", "collect x.tar",
        ];
        for line in good {
            let words = std::iter::once("campaign").chain(line.split(' '));
            Cli::try_parse_from(words).unwrap_or_else(|error| panic!("{line}: {error}"));
        }
        let first = |line: &str| line.split(' ').next().map(str::to_owned);
        let formed: BTreeSet<String> = good.into_iter().filter_map(first).collect();
        let command = Cli::command();
        let there = command.get_subcommands().filter(|sub| !sub.is_hide_set());
        let there: BTreeSet<String> = there.map(|sub| sub.get_name().to_owned()).collect();
        assert_eq!(formed, there, "a form of each command");
        let bad = [
            ("run --new --run r", ArgumentConflict),
            ("run --only (", ValueValidation),
            ("run --cpu 3-1", ValueValidation),
            ("import --system s", MissingRequiredArgument),
            ("import d", MissingRequiredArgument),
            ("import d --aggregate f --system s", ArgumentConflict),
            ("compare a", MissingRequiredArgument),
            ("report", MissingRequiredArgument),
            ("export a", MissingRequiredArgument),
            ("schema nonsense", InvalidValue),
            ("study message-size --file f --sizes 1MB", ArgumentConflict),
            ("study message-size --file f --full", ArgumentConflict),
            ("study message-size --sizes 0", ValueValidation),
            ("study message-size --trials 0", ValueValidation),
            ("study message-size --new --run r", ArgumentConflict),
            ("study", DisplayHelpOnMissingArgumentOrSubcommand),
            ("report a --charts gif", InvalidValue),
        ];
        for (line, kind) in bad {
            let words = std::iter::once("campaign").chain(line.split(' '));
            let refused = Cli::try_parse_from(words).expect_err(line);
            assert_eq!(refused.kind(), kind, "{line}: {refused}");
        }
    }

    #[test]
    fn every_option_and_subcommand_has_a_help_text() {
        fn check(command: &clap::Command) {
            for argument in command.get_arguments() {
                let named = argument.get_long().is_some() || argument.is_positional();
                assert!(
                    !named || argument.get_help().is_some(),
                    "{} of {}",
                    argument.get_id(),
                    command.get_name()
                );
            }
            for sub in command.get_subcommands() {
                assert!(sub.get_about().is_some(), "{}", sub.get_name());
                check(sub);
            }
        }
        check(&Cli::command());
    }
}

//! The compiler of a system: whether it is there and fit, what it is, and a digest of all its parts.

use super::error::BuildError;
use crate::config::{Arch, System};
use crate::hash;
use crate::process::{run_blocking, Command, End, Outcome, Stop};
use std::ffi::OsStr;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

/// Time limit of a question to the compiler.
const LIMIT: Duration = Duration::from_secs(60);

/// Programs that a compiler driver runs.
const PROGRAMS: [&str; 6] = ["cc1", "as", "ld", "collect2", "lto-wrapper", "lto1"];
/// Files that a link takes from the toolchain and the C library.
const FILES: [&str; 9] = [
    "crti.o",
    "crtbeginS.o",
    "crtendS.o",
    "crtn.o",
    "libgcc.a",
    "libc.so",
    "libc.so.6",
    "libc_nonshared.a",
    "libm.so.6",
];

/// Enough to need the C library's headers, its start files and the linker.
const TRIVIAL: &str = "#include <stdlib.h>\n#include <string.h>\n\
    void *campaign_fit(unsigned n) { void *p = malloc(n); if (p) memset(p, 0, n); return p; }\n";

/// A compiler that works.
#[derive(Debug, Clone)]
pub struct Toolchain {
    /// The command, words.
    pub command: Vec<String>,
    /// The command as recorded, the program without its folder.
    pub name: String,
    /// First line of `--version`.
    pub version: String,
    /// Digest over the version's whole text, and path, size and time of every program and file that a
    /// compile or link takes from the machine: another one means another result is possible.
    pub digest: String,
}

/// What `native` means to a compiler on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Native {
    /// The values of `-march`, `-mtune` and `-mcpu`, as options.
    pub resolved: Vec<String>,
    /// Digest of everything that the compiler tells about its target.
    pub digest: String,
}

/// The Debian packages of a compiler and of the C library it needs.
fn packages(program: &str, arch: Arch) -> (&'static str, &'static str) {
    let cross = Arch::host() != Some(arch);
    let clang = program.contains("clang");
    match (arch, cross) {
        (_, false) if clang => ("clang", "libc6-dev"),
        (_, false) => ("gcc", "libc6-dev"),
        (Arch::Aarch64, true) if clang => ("clang", "libc6-dev-arm64-cross"),
        (Arch::Aarch64, true) => ("gcc-aarch64-linux-gnu", "libc6-dev-arm64-cross"),
        (Arch::X86_64, true) if clang => ("clang", "libc6-dev-amd64-cross"),
        (Arch::X86_64, true) => ("gcc-x86-64-linux-gnu", "libc6-dev-amd64-cross"),
    }
}

impl Toolchain {
    /// Finds and tests the compiler of `system`. On the system's own architecture, plain `gcc` stands
    /// in for GCC's cross compiler of that architecture (`aarch64-linux-gnu-gcc`) that is not there: it
    /// is the same compiler under another name. Nothing stands in for any other.
    pub fn probe(system: &System, stop: &Stop) -> Result<Toolchain, BuildError> {
        let mut commands = vec![words(&system.cc)];
        let cross = format!("{}-linux-gnu-gcc", system.arch.word());
        if Arch::host() == Some(system.arch) && system.cc == cross {
            commands.push(words("gcc"));
        }
        for command in commands {
            if let Some(toolchain) = Self::probe_command(command, system, stop)? {
                return Ok(toolchain);
            }
        }
        Err(BuildError::MissingCompiler {
            command: system.cc.clone(),
            package: packages(&system.cc, system.arch).0.to_owned(),
        })
    }

    /// `None` when the program is not there.
    fn probe_command(
        command: Vec<String>,
        system: &System,
        stop: &Stop,
    ) -> Result<Option<Toolchain>, BuildError> {
        let Some(program) = command.first() else {
            return Ok(None);
        };
        let name = recorded_name(&command);
        let version = ask(&command, ["--version"], stop)?;
        if version.end.is_missing_program() {
            return Ok(None);
        }
        let target = ask(&command, ["-dumpmachine"], stop)?;
        let unfit = |outcome: &Outcome| BuildError::UnfitCompiler {
            command: name.clone(),
            package: packages(program, system.arch).1.to_owned(),
            log: format!("it {}\n{}", outcome.end, outcome.stderr.text().trim()),
        };
        for outcome in [&version, &target] {
            if !outcome.end.is_success() {
                return Err(unfit(outcome));
            }
        }
        let target = target.stdout.text().trim().to_owned();
        if !target.starts_with(system.arch.word()) {
            return Err(BuildError::WrongTarget {
                command: name,
                target,
                arch: system.arch.word(),
            });
        }
        let trial = trial(&command, stop)?;
        if !trial.end.is_success() {
            return Err(unfit(&trial));
        }
        let text = version.stdout.text();
        Ok(Some(Toolchain {
            digest: digest(&command, &text, &target, stop)?,
            version: text.lines().next().unwrap_or_default().trim().to_owned(),
            command,
            name,
        }))
    }

    /// What `-march=native` and its like among `flags` mean on this machine. `None` when the compiler
    /// does not tell.
    pub fn resolve_native(
        &self,
        flags: &[String],
        stop: &Stop,
    ) -> Result<Option<Native>, BuildError> {
        let questions = ["-Q", "--help=target"].map(str::to_owned);
        let outcome = ask(&self.command, questions.iter().chain(flags), stop)?;
        if !outcome.end.is_success() {
            return Ok(None);
        }
        let text = outcome.stdout.text();
        Ok(Some(Native {
            resolved: target_options(&text),
            digest: outcome.stdout.sha256(),
        }))
    }
}

/// `-march=skylake` from the lines of `--help=target`.
fn target_options(text: &str) -> Vec<String> {
    text.lines()
        .filter_map(|line| {
            let (option, value) = line.trim().split_once(char::is_whitespace)?;
            let wanted = matches!(option, "-march=" | "-mtune=" | "-mcpu=");
            let value = value.trim();
            (wanted && !value.is_empty()).then(|| format!("{option}{value}"))
        })
        .collect()
}

fn words(command: &str) -> Vec<String> {
    command.split_whitespace().map(str::to_owned).collect()
}

fn recorded_name(command: &[String]) -> String {
    let mut words = command.to_vec();
    if let Some(program) = words.first_mut() {
        if let Some(name) = Path::new(program).file_name() {
            *program = name.to_string_lossy().into_owned();
        }
    }
    words.join(" ")
}

fn ask<S: AsRef<OsStr>>(
    command: &[String],
    args: impl IntoIterator<Item = S>,
    stop: &Stop,
) -> Result<Outcome, BuildError> {
    let question = Command::from_words(command)
        .expect("a command has a program")
        .args(args);
    answer_of(question, stop)
}

fn answer_of(question: Command, stop: &Stop) -> Result<Outcome, BuildError> {
    let outcome = run_blocking(question.deadline(LIMIT), stop);
    match outcome.end {
        End::Interrupted => Err(BuildError::Interrupted),
        _ => Ok(outcome),
    }
}

/// Builds a trivial library.
fn trial(command: &[String], stop: &Stop) -> Result<Outcome, BuildError> {
    let io = |path: &Path| {
        let path = path.to_owned();
        move |source| BuildError::Cache { path, source }
    };
    let dir = tempfile::tempdir().map_err(io(&std::env::temp_dir()))?;
    let source = dir.path().join("fit.c");
    std::fs::write(&source, TRIVIAL).map_err(io(&source))?;
    let question = Command::from_words(command)
        .expect("a command has a program")
        .args(["-fPIC", "-shared", "fit.c", "-o", "fit.so"])
        .cwd(dir.path())
        .env("TMPDIR", dir.path());
    answer_of(question, stop)
}

fn digest(
    command: &[String],
    version: &str,
    target: &str,
    stop: &Stop,
) -> Result<String, BuildError> {
    let mut text = format!("{}\n{version}\n{target}\n", command.join(" "));
    if let Some(program) = command.first().and_then(|name| which(name)) {
        text += &stamp(&program);
    }
    for name in PROGRAMS {
        text += &answer(command, &format!("-print-prog-name={name}"), stop)?;
    }
    for name in FILES {
        text += &answer(command, &format!("-print-file-name={name}"), stop)?;
    }
    Ok(hash::sha256(text.as_bytes()))
}

/// The stamp of the file that the compiler names; its bare answer where that is no path.
fn answer(command: &[String], question: &str, stop: &Stop) -> Result<String, BuildError> {
    let outcome = ask(command, [question], stop)?;
    let path = outcome.stdout.text();
    Ok(stamp(Path::new(path.trim())))
}

fn stamp(path: &Path) -> String {
    match path.metadata() {
        Ok(m) => format!(
            "{} {} {}.{}\n",
            path.display(),
            m.size(),
            m.mtime(),
            m.mtime_nsec()
        ),
        Err(_) => format!("{} -\n", path.display()),
    }
}

/// The file that a program's name stands for.
fn which(program: &str) -> Option<std::path::PathBuf> {
    if program.contains('/') {
        return Some(program.into());
    }
    std::env::split_paths(&std::env::var_os("PATH")?)
        .map(|dir| dir.join(program))
        .find(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_resolved_target_is_read_from_the_compilers_help() {
        let help = "The following options are target specific:\n  -m64    \t\t[enabled]\n  \
                    -march=                     \t\tskylake-avx512\n  -mcpu=                      \t\t\n  \
                    -mtune=                     \t\tskylake\n  Known valid arguments for -march= option:\n";
        assert_eq!(
            target_options(help),
            ["-march=skylake-avx512", "-mtune=skylake"]
        );
    }

    #[test]
    fn the_recorded_name_has_no_folder() {
        assert_eq!(
            recorded_name(&words("/opt/x/bin/gcc-12 -m64")),
            "gcc-12 -m64"
        );
    }

    #[test]
    fn packages_follow_compiler_and_machine() {
        let (host, other) = match Arch::host().unwrap() {
            Arch::X86_64 => (Arch::X86_64, Arch::Aarch64),
            Arch::Aarch64 => (Arch::Aarch64, Arch::X86_64),
        };
        assert_eq!(packages("gcc", host).0, "gcc");
        assert!(packages("x-gcc", other).0.starts_with("gcc-"));
        assert!(packages("x-gcc", other).1.ends_with("-cross"));
    }
}

//! Compiles C code of `drivers/` with a program of `tests/c`, and runs the result. For tests of
//! the C code itself: libraries of a campaign are built by the orchestrator.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use super::root;

/// The flags of the guide's reference build.
pub const REFERENCE: &[&str] = &["-std=c99", "-Wpedantic", "-Wall", "-Wextra", "-O2"];

/// More warnings than the guide asks for, all of them errors.
pub const STRICT: &[&str] = &[
    "-Werror",
    "-Wconversion",
    "-Wsign-conversion",
    "-Wshadow",
    "-Wmissing-prototypes",
    "-Wstrict-prototypes",
];

/// Address and undefined-behaviour sanitizers, ending the program at the first finding.
pub const SANITIZE: &[&str] = &[
    "-g",
    "-fsanitize=address,undefined",
    "-fno-sanitize-recover=all",
];

/// The cross compiler of the AArch64 systems, with its Debian package.
pub const AARCH64_GCC: (&str, &str) = ("aarch64-linux-gnu-gcc", "gcc-aarch64-linux-gnu");

/// The emulator that runs its static programs, with its Debian package.
pub const AARCH64_QEMU: (&str, &str) = ("qemu-aarch64-static", "qemu-user-static");

/// One compilation: compiler, flags, sources. Flags come before sources, in the order of the calls.
pub struct Build {
    compiler: String,
    args: Vec<String>,
    sources: Vec<PathBuf>,
}

impl Build {
    /// A compilation with the include folders of the helper functions.
    pub fn new(compiler: &str) -> Self {
        let build = Self {
            compiler: compiler.to_owned(),
            args: Vec::new(),
            sources: Vec::new(),
        };
        build
            .include(&root().join("drivers/iccs"))
            .include(&root().join("drivers/abi/include"))
    }

    /// Appends flags.
    pub fn flags(mut self, flags: &[&str]) -> Self {
        self.args.extend(flags.iter().map(|f| (*f).to_owned()));
        self
    }

    /// Adds an include folder.
    pub fn include(mut self, dir: &Path) -> Self {
        self.args.push(format!("-I{}", dir.display()));
        self
    }

    /// Adds every `.c` file of a folder, in the order of their names.
    pub fn folder(mut self, dir: &Path) -> Self {
        let mut files: Vec<PathBuf> = std::fs::read_dir(dir)
            .unwrap_or_else(|e| panic!("{}: {e}", dir.display()))
            .map(|entry| entry.expect("a folder entry").path())
            .filter(|path| path.extension().is_some_and(|ext| ext == "c"))
            .collect();
        assert!(!files.is_empty(), "no C file in {}", dir.display());
        files.sort();
        self.sources.extend(files);
        self
    }

    /// Adds a file of `tests/c`.
    pub fn program(self, name: &str) -> Self {
        let path = root().join("harness/tests/c").join(name);
        self.source(path)
    }

    /// Adds one source file.
    pub fn source(mut self, path: PathBuf) -> Self {
        self.sources.push(path);
        self
    }

    /// Compiles and links to `dir/name`; a warning is a failure, as is an error.
    pub fn link(&self, dir: &Path, name: &str, libraries: &[&str]) -> PathBuf {
        let path = dir.join(name);
        let output = Command::new(&self.compiler)
            .args(&self.args)
            .args(&self.sources)
            .args(libraries)
            .arg("-o")
            .arg(&path)
            .output()
            .unwrap_or_else(|e| panic!("{}: {e}", self.compiler));
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success() && said.is_empty(),
            "{} {:?}:\n{said}",
            self.compiler,
            self.args
        );
        path
    }
}

/// What a program printed on stdout, which must have ended with 0.
pub fn stdout_of(command: &mut Command) -> String {
    let output = run(command, "");
    assert!(
        output.status.success(),
        "{command:?} ended with {}:\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).expect("the programs print ASCII")
}

/// Runs a program with a text on its stdin. The text is written by a thread of its own: program
/// and test would else wait for each other once both pipes are full.
pub fn run(command: &mut Command, input: &str) -> Output {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|e| panic!("{command:?}: {e}"));
    let mut stdin = child.stdin.take().expect("stdin is a pipe");
    std::thread::scope(|scope| {
        // A program that ends early closes the pipe: its status says more than the write error.
        scope.spawn(move || drop(stdin.write_all(input.as_bytes())));
        child
            .wait_with_output()
            .expect("the program can be waited for")
    })
}

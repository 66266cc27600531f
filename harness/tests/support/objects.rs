//! Builds C object by object, so that calls between objects can be wrapped at link time, and runs
//! the result: the tests call no C themselves, so that all `unsafe` stays in the worker. (`cc` is
//! the shorter way where one compilation is enough.)

use std::path::{Path, PathBuf};
use std::process::Command;

use object::{Object, ObjectSymbol};

use super::cc::{AARCH64_GCC, AARCH64_QEMU, REFERENCE};
use super::{have, root};

/// A compiler, where its programs run, and a directory that goes with the value.
pub struct Toolchain {
    compiler: &'static str,
    runner: &'static [&'static str],
    dir: tempfile::TempDir,
}

impl Toolchain {
    /// The compiler of this machine; `None` (said) when it is missing.
    pub fn host() -> Option<Self> {
        have("gcc", "gcc").then(|| Self::new("gcc", &[]))
    }

    /// The cross compiler for AArch64, its programs run emulated; `None` (said) when one is
    /// missing.
    pub fn aarch64() -> Option<Self> {
        let tools = [AARCH64_GCC, AARCH64_QEMU];
        let here = tools
            .iter()
            .all(|(program, package)| have(program, package));
        if !here {
            return None;
        }
        let runner = &[
            "qemu-aarch64-static",
            "-cpu",
            "neoverse-n1",
            "-L",
            "/usr/aarch64-linux-gnu",
        ];
        Some(Self::new(AARCH64_GCC.0, runner))
    }

    fn new(compiler: &'static str, runner: &'static [&'static str]) -> Self {
        let dir = tempfile::tempdir().expect("a temporary directory");
        Self {
            compiler,
            runner,
            dir,
        }
    }

    /// A path in the directory.
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Compiles one source; a warning fails the test, with the compiler's text.
    pub fn object(&self, source: &Path, args: &[String]) -> PathBuf {
        let count = std::fs::read_dir(self.dir.path()).unwrap().count();
        let stem = source.file_name().unwrap().to_string_lossy().into_owned();
        let object = self.path(&format!("{count}-{stem}.o"));
        let mut command = Command::new(self.compiler);
        command
            .args(REFERENCE)
            .args(["-fPIC", "-pthread"])
            .args(args);
        command.arg("-c").arg(source).arg("-o").arg(&object);
        quiet(&mut command);
        object
    }

    /// Links objects; `--wrap` for each wrapper that one of them defines.
    pub fn link(&self, name: &str, objects: &[PathBuf], args: &[String]) -> PathBuf {
        let output = self.path(name);
        let mut command = Command::new(self.compiler);
        command.arg("-pthread").args(args).args(objects);
        for object in objects {
            for symbol in defined(object) {
                if let Some(wrapped) = symbol.strip_prefix("__wrap_") {
                    command.arg(format!("-Wl,--wrap={wrapped}"));
                }
            }
        }
        command.arg("-ldl").arg("-o").arg(&output);
        quiet(&mut command);
        output
    }

    /// Links a shared library the way that drivers/abi/README.md says.
    pub fn library(&self, name: &str, objects: &[PathBuf]) -> PathBuf {
        let map = root().join("drivers/abi/export.map");
        let args = [
            "-shared".to_owned(),
            "-Wl,-z,noexecstack".to_owned(),
            "-Wl,-z,defs".to_owned(),
            format!("-Wl,--version-script={}", map.display()),
        ];
        self.link(name, objects, &args)
    }

    /// Runs a program to its end and returns what it printed; failure fails the test.
    pub fn run(&self, program: &Path, args: &[&str]) -> String {
        self.run_with(program, args, &[])
    }

    /// The same with environment variables.
    pub fn run_with(&self, program: &Path, args: &[&str], env: &[(&str, &Path)]) -> String {
        let mut words = self.runner.iter().map(Path::new).chain([program]);
        let mut command = Command::new(words.next().unwrap());
        command.args(words).args(args).envs(env.iter().copied());
        let output = command.output().expect("the program starts");
        let text = String::from_utf8(output.stdout).expect("text");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success(),
            "{command:?}: {}\n{text}\n{errors}",
            output.status
        );
        text
    }
}

/// Runs a compiler or linker that must succeed and say nothing.
fn quiet(command: &mut Command) {
    let output = command
        .env("LC_ALL", "C")
        .output()
        .expect("the compiler starts");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && text.is_empty(),
        "{command:?}: {}\n{text}",
        output.status
    );
}

/// `-I` for each folder of the checkout.
pub fn include(folders: &[&str]) -> Vec<String> {
    folders
        .iter()
        .map(|folder| format!("-I{}", root().join(folder).display()))
        .collect()
}

/// Flags of the adapter.
pub fn adapter_defines(label: &str, kind: &str) -> Vec<String> {
    vec![
        format!("-DCAMPAIGN_LABEL=\"{label}\""),
        format!("-DCAMPAIGN_KIND=\"{kind}\""),
    ]
}

/// Global symbols that an object defines, sorted.
pub fn defined(file: &Path) -> Vec<String> {
    names(file, |object| {
        filtered(object.symbols(), |s| s.is_global() && s.is_definition())
    })
}

/// Symbols that an object leaves undefined, sorted.
pub fn undefined(file: &Path) -> Vec<String> {
    names(file, |object| {
        filtered(object.symbols(), |s| s.is_undefined())
    })
}

/// Symbols that a library shows to the loader, sorted.
pub fn exported(file: &Path) -> Vec<String> {
    names(file, |object| {
        filtered(object.dynamic_symbols(), |s| s.is_definition())
    })
}

fn names(file: &Path, read: impl Fn(&object::File<'_>) -> Vec<String>) -> Vec<String> {
    let bytes = std::fs::read(file).expect("a file");
    let mut names = read(&object::File::parse(&*bytes).expect("an ELF file"));
    names.sort();
    names
}

fn filtered<'a, S: ObjectSymbol<'a>>(
    symbols: impl Iterator<Item = S>,
    wanted: impl Fn(&S) -> bool,
) -> Vec<String> {
    symbols
        .filter(wanted)
        .map(|symbol| symbol.name().expect("a name").to_owned())
        .filter(|name| !name.is_empty())
        .collect()
}

//! `drivers/dilithium`: the pinned sources are found, every code builds without a warning, the
//! table of wrappable functions has no gap, and the adapter keeps its promises at the edges.

use std::path::{Path, PathBuf};
use std::process::Command;

use regex::Regex;
use serde::Deserialize;

use crate::support::objects::{adapter_defines, defined, include, undefined, Toolchain};
use crate::support::root;

// ---- sources ----

fn manifest() -> PathBuf {
    root().join("drivers/dilithium/sources/Cargo.toml")
}

/// `cargo metadata` of the detached manifest; `None` when cargo fails, which it does offline with
/// an empty home.
fn metadata(more: &[&str]) -> Option<serde_json::Value> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--format-version", "1", "--locked"])
        .args(more)
        .arg("--manifest-path")
        .arg(manifest())
        .output()
        .expect("cargo starts");
    output
        .status
        .success()
        .then(|| serde_json::from_slice(&output.stdout).expect("JSON"))
}

/// Folder of a pinned crate.
fn crate_folder(name: &str, version: &str) -> PathBuf {
    let metadata = metadata(&["--offline"])
        .or_else(|| metadata(&[]))
        .expect("cargo finds or fetches the pinned crates");
    let packages = metadata["packages"].as_array().expect("packages");
    let package = packages
        .iter()
        .find(|package| package["name"] == name)
        .unwrap_or_else(|| panic!("{name} is pinned"));
    assert_eq!(package["version"], version, "{name}");
    let path = package["manifest_path"].as_str().expect("a path");
    Path::new(path).parent().expect("a folder").to_owned()
}

#[test]
fn the_sources_are_pinned_and_apart_from_the_workspace() {
    let lock = std::fs::read_to_string(manifest().with_file_name("Cargo.lock")).unwrap();
    let lock: toml::Table = lock.parse().unwrap();
    for (name, version) in [("pqcrypto-dilithium", "0.4.6"), ("pqcrypto-mldsa", "0.1.2")] {
        let packages = lock["package"].as_array().unwrap();
        let locked = packages
            .iter()
            .find(|package| package["name"].as_str() == Some(name))
            .unwrap_or_else(|| panic!("{name} is locked"));
        assert_eq!(locked["version"].as_str(), Some(version));
        assert_eq!(locked["checksum"].as_str().map(str::len), Some(64));
        let ours = std::fs::read_to_string(root().join("Cargo.lock")).unwrap();
        assert!(
            !ours.contains(name),
            "{name} must stay out of the main lock file"
        );
    }
}

// ---- builds ----

/// One code of one parameter set.
struct Code {
    /// Parameter set, which is also its folder.
    label: &'static str,
    /// `clean`, `avx2`, `aarch64`.
    code: &'static str,
    /// The guide's version: what stands before the extra flags.
    flags: &'static [&'static str],
}

const REFERENCE: &[&str] = &[];
/// The performance flags beyond the reference ones, without `-flto` (wrapping needs objects).
const PERFORMANCE: &[&str] = &[
    "-O3",
    "-march=x86-64",
    "-mavx2",
    "-mtune=native",
    "-fomit-frame-pointer",
];

const LABELS: [&str; 6] = [
    "dilithium2",
    "dilithium3",
    "dilithium5",
    "ml-dsa-44",
    "ml-dsa-65",
    "ml-dsa-87",
];

impl Code {
    fn is_ml_dsa(&self) -> bool {
        self.label.starts_with("ml-dsa")
    }

    fn pqclean(&self) -> PathBuf {
        let folder = if self.is_ml_dsa() {
            crate_folder("pqcrypto-mldsa", "0.1.2")
        } else {
            crate_folder("pqcrypto-dilithium", "0.4.6")
        };
        folder.join("pqclean")
    }

    fn extra(&self) -> &'static [&'static str] {
        match self.code {
            "avx2" => &["-mpopcnt"],
            "aarch64" if self.is_ml_dsa() => &["-march=armv8.2-a+sha3"],
            _ => &[],
        }
    }

    /// The objects of the scheme, with its adapter, and the flags for more.
    fn build(&self, tools: &Toolchain) -> (Vec<PathBuf>, Vec<String>) {
        let pqclean = self.pqclean();
        let folder = pqclean.join("crypto_sign").join(self.label).join(self.code);
        let common = pqclean.join("common");
        let mut sources = files(&folder, &["c", "S"]);
        sources.push(common.join("fips202.c"));
        if self.code == "aarch64" && self.is_ml_dsa() {
            sources.push(common.join("keccak2x/fips202x2.c"));
            sources.push(common.join("keccak2x/feat.S"));
        }
        sources.push(root().join("drivers/dilithium/adapter.c"));
        let mut flags: Vec<String> = self
            .flags
            .iter()
            .chain(self.extra())
            .map(|f| (*f).to_owned())
            .collect();
        flags.push(format!(
            "-DSCHEME={}",
            self.label.to_uppercase().replace('-', "")
        ));
        flags.push(format!("-DIMPL={}", self.code.to_uppercase()));
        flags.extend([&folder, &common].map(|path| format!("-I{}", path.display())));
        flags.extend(include(&["drivers/abi", "drivers/abi/include"]));
        let objects = sources
            .iter()
            .map(|source| tools.object(source, &flags))
            .collect();
        (objects, flags)
    }

    /// Adapter of the library and the helper functions.
    fn rest(&self, tools: &Toolchain, flags: &[String], kind: &str, more: &[&str]) -> Vec<PathBuf> {
        let mut flags = flags.to_vec();
        flags.extend(adapter_defines(self.label, kind));
        [
            "drivers/abi/adapter.c",
            "drivers/iccs/sm3.c",
            "drivers/iccs/drng.c",
        ]
        .iter()
        .chain(more)
        .map(|source| tools.object(&root().join(source), &flags))
        .collect()
    }
}

/// Files of a folder with one of these extensions, sorted.
fn files(folder: &Path, extensions: &[&str]) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            path.extension()
                .is_some_and(|e| extensions.iter().any(|wanted| e == *wanted))
        })
        .collect();
    files.sort();
    files
}

// ---- wrappable.toml ----

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    derive: String,
    exclude: String,
    function: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    pattern: String,
    prototype: String,
    in_bits: String,
    out_bits: String,
    name: String,
    group: String,
}

fn table() -> Table {
    let text = std::fs::read_to_string(root().join("drivers/dilithium/wrappable.toml")).unwrap();
    toml::from_str(&text).unwrap()
}

/// Reported names of the functions that cross the link of these objects, each with its entry.
fn wrapped(objects: &[PathBuf]) -> Vec<String> {
    let table = table();
    let (derive, exclude) = (
        Regex::new(&table.derive).unwrap(),
        Regex::new(&table.exclude).unwrap(),
    );
    let provided: Vec<String> = objects.iter().flat_map(|object| defined(object)).collect();
    let mut needed: Vec<String> = objects
        .iter()
        .flat_map(|object| undefined(object))
        .collect();
    needed.sort();
    needed.dedup();
    needed
        .iter()
        .filter(|symbol| provided.contains(symbol))
        .filter(|symbol| derive.is_match(symbol) && !exclude.is_match(symbol))
        .map(|symbol| {
            let entries = table.function.iter();
            let (entry, found) = entries
                .map(|entry| (entry, Regex::new(&entry.pattern).unwrap()))
                .find_map(|(entry, pattern)| pattern.captures(symbol).map(|found| (entry, found)))
                .unwrap_or_else(|| panic!("no entry for {symbol}"));
            let mut name = String::new();
            found.expand(&entry.name, &mut name);
            name
        })
        .collect()
}

const SPONGE: [&str; 12] = [
    "drng",
    "shake128_inc_absorb",
    "shake128_inc_ctx_release",
    "shake128_inc_finalize",
    "shake128_inc_init",
    "shake128_inc_squeeze",
    "shake256",
    "shake256_inc_absorb",
    "shake256_inc_ctx_release",
    "shake256_inc_finalize",
    "shake256_inc_init",
    "shake256_inc_squeeze",
];

/// The functions of one sponge must be found, without `less`, and `more`; nothing else.
fn expect_wrapped(objects: &[PathBuf], less: &[&str], more: &[&str]) {
    let sponge = SPONGE.iter().filter(|name| !less.contains(name));
    let mut expected: Vec<&str> = sponge.chain(more).copied().collect();
    let mut found = wrapped(objects);
    expected.sort_unstable();
    found.sort_unstable();
    assert_eq!(found, expected);
}

#[test]
fn every_entry_of_the_wrap_table_is_complete() {
    let entries = table().function;
    assert!(entries.len() > 10, "{}", entries.len());
    for entry in entries {
        let at = &entry.pattern;
        assert!(
            at.starts_with('^') && at.ends_with('$'),
            "{at}: must match whole names"
        );
        assert!(
            entry.prototype.contains(" {symbol}("),
            "{at}: {}",
            entry.prototype
        );
        assert!(
            ["hash", "drng"].contains(&entry.group.as_str()),
            "{at}: {}",
            entry.group
        );
        assert!(
            !entry.name.is_empty() && !entry.in_bits.is_empty() && !entry.out_bits.is_empty(),
            "{at}"
        );
    }
}

// ---- what each code must do ----

const X4: [&str; 5] = [
    "f1600x4",
    "shake128x4_absorb_once",
    "shake128x4_squeezeblocks",
    "shake256x4_absorb_once",
    "shake256x4_squeezeblocks",
];
const X2: [&str; 4] = [
    "shake128x2_absorb",
    "shake128x2_squeezeblocks",
    "shake256x2_absorb",
    "shake256x2_squeezeblocks",
];

/// Lengths of public key, secret key, signature: spec of each scheme.
fn lengths(label: &str) -> &'static str {
    match label {
        "dilithium2" => "1312 2528 2420",
        "dilithium3" => "1952 4000 3293",
        "dilithium5" => "2592 4864 4595",
        "ml-dsa-44" => "1312 2560 2420",
        "ml-dsa-65" => "1952 4032 3309",
        "ml-dsa-87" => "2592 4896 4627",
        _ => panic!("unknown label {label}"),
    }
}

/// What `dilithium_calls.c` prints; `heap` is the peak of keygen, sign and verify.
fn calls(code: &Code, heap: [u32; 3]) -> String {
    let [keygen, sign, verify] = heap;
    // round 3 signs without randomness
    let sign_random = if code.is_ml_dsa() { -5 } else { 0 };
    format!(
        "lengths {}\nkeygen 0\nheap {keygen} 0\nsign 0\nheap {sign} 0\nverify 0\nheap {verify} 0\n\
         written 1\nguards 1\nmessage flip -1\nsignature flip -1\nkey flip -1\nshort signature -1\n\
         long signature -1\nshort key -3\nno key -2\nno message -2\nstill valid 0\nempty message 0 0\n\
         sign room -4 0 1\nsign key length -3 0 1\nsign nothing -2\nkeygen room -4 0 0 1\n\
         keygen other 0\nsign random {sign_random}\nkeygen random -5 0 0 1\nkeygen again 0\n",
        lengths(code.label)
    )
}

fn check_calls(tools: &Toolchain, code: &Code, heap: [u32; 3]) -> Vec<PathBuf> {
    let (objects, flags) = code.build(tools);
    let more = ["drivers/abi/memory.c", "harness/tests/c/dilithium_calls.c"];
    let mut all = code.rest(tools, &flags, "memory", &more);
    all.extend_from_slice(&objects);
    let program = tools.link("dilithium_calls", &all, &["-Wl,-z,noexecstack".to_owned()]);
    assert_eq!(
        tools.run(&program, &[]),
        calls(code, heap),
        "{}",
        code.label
    );
    objects
}

#[test]
fn clean_code_builds_quietly_wraps_fully_and_keeps_the_api() {
    let Some(tools) = Toolchain::host() else {
        return;
    };
    for label in LABELS {
        let code = Code {
            label,
            code: "clean",
            flags: REFERENCE,
        };
        let objects = check_calls(&tools, &code, [208, 208, 208]);
        expect_wrapped(&objects, &[], &[]);
    }
}

#[test]
fn avx2_code_builds_quietly_wraps_fully_and_keeps_the_api() {
    if !cfg!(target_arch = "x86_64") {
        return crate::support::skip("avx2 code needs an x86-64 machine");
    }
    let Some(tools) = Toolchain::host() else {
        return;
    };
    for label in LABELS {
        let code = Code {
            label,
            code: "avx2",
            flags: PERFORMANCE,
        };
        // poly_uniform of ML-DSA, which nothing calls, does not release its state
        let less: &[&str] = if code.is_ml_dsa() {
            &["shake128_inc_ctx_release"]
        } else {
            &[]
        };
        if avx2_here() {
            let objects = check_calls(&tools, &code, [200, 208, 208]);
            expect_wrapped(&objects, less, &X4);
        } else {
            crate::support::skip("avx2 code needs a processor with AVX2");
            expect_wrapped(&code.build(&tools).0, less, &X4);
        }
    }
}

fn avx2_here() -> bool {
    let cpu = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    cpu.split_whitespace().any(|word| word == "avx2")
}

#[test]
fn aarch64_code_builds_quietly_and_wraps_fully() {
    let Some(tools) = Toolchain::aarch64() else {
        return;
    };
    // one of each family: the parameter sets differ in constants only
    let round3 = Code {
        label: "dilithium2",
        code: "aarch64",
        flags: REFERENCE,
    };
    expect_wrapped(&check_calls(&tools, &round3, [208, 208, 208]), &[], &X2);
    let ml_dsa = Code {
        label: "ml-dsa-44",
        code: "aarch64",
        flags: REFERENCE,
    };
    let mut more = X2.to_vec();
    more.push("f1600x2");
    expect_wrapped(&ml_dsa.build(&tools).0, &[], &more);
}

// ---- stream.c ----

#[test]
fn a_streamed_file_gives_the_signature_of_the_whole_message() {
    let Some(tools) = Toolchain::host() else {
        return;
    };
    for label in ["dilithium2", "ml-dsa-44"] {
        let code = Code {
            label,
            code: "clean",
            flags: REFERENCE,
        };
        let (mut objects, flags) = code.build(&tools);
        let more = [
            "drivers/dilithium/stream.c",
            "harness/tests/c/stream_calls.c",
        ];
        objects.extend(code.rest(&tools, &flags, "stream", &more));
        let program = tools.link("stream_calls", &objects, &[]);
        let file = tools.path("message");
        let text = tools.run(&program, &[file.to_str().expect("a UTF-8 path")]);
        assert_eq!(text, stream_lines(), "{label}");
    }
}

/// What `stream_calls.c` prints: codes of `campaign_abi.h`.
fn stream_lines() -> String {
    let chunk = |n: u32| format!("chunk {n}: 0 0 1 0 {}\n", 2 * 200_003);
    let chunks: String = [0, 1, 136, 4096, 65_536, 1_048_576].map(chunk).concat();
    format!(
        "nothing opened -40\n{chunks}\
         chunk too large -40 -40\nanother length -44 -44\nnot a file -41 -41 -41\n\
         message of another length -40\nwhich stays -40 -40\nopened again 0\n\
         changed -44\nshort -43 0 0\nverify short -43\nmemory still works 0\nempty file 0 0\n"
    )
}

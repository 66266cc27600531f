//! The DOVE candidate in `drivers/dove`: known answers, right and wrong use, constant time.
//!
//! Known answers of all six instances are compared here (the 512-bit sets by their first record:
//! the orchestrator's KAT phase runs them whole). Behaviour is tested on the two 128-bit sets,
//! compiled with sanitizers and debug assertions; constant time on the same sets under valgrind,
//! with the flags of each build of the guide.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use sha2::{Digest, Sha256};

use crate::support::cc::{self, Build};
use crate::support::{have, root, skip};

/// A variant and a level; the six of them are the instances of the candidate.
#[derive(Clone, Copy)]
struct Instance {
    variant: &'static str,
    level: u32,
}

const CLASSIC_128: Instance = Instance {
    variant: "classic",
    level: 128,
};
const PKC_SKC_128: Instance = Instance {
    variant: "pkc_skc",
    level: 128,
};

impl Instance {
    fn label(self) -> String {
        format!("dove_{}_{}", self.variant, self.level)
    }

    /// The defines that select it.
    fn defines(self) -> [String; 2] {
        [
            format!("-DDOVE_{}", self.variant.to_uppercase()),
            format!("-DDOVE_LEVEL={}", self.level),
        ]
    }

    /// A compilation of the instance, its sources taken from `dove` instead of `drivers/dove`.
    fn build_from(self, dove: &Path, compiler: &str, flags: &[&str]) -> Build {
        let [variant, level] = self.defines();
        Build::new(compiler)
            .flags(flags)
            .flags(&[&variant, &level])
            .include(dove)
            .folder(dove)
            .folder(&root().join("drivers/iccs"))
    }

    fn build(self, compiler: &str, flags: &[&str]) -> Build {
        self.build_from(&root().join("drivers/dove"), compiler, flags)
    }
}

fn strict() -> Vec<&'static str> {
    [cc::REFERENCE, cc::STRICT].concat()
}

fn temp() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

// ---- known answers ----

/// Digest and mode that a manifest gives for an instance.
fn expected(manifest: &str, instance: Instance) -> (String, String) {
    let path = root().join(manifest);
    let lines =
        std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let label = instance.label();
    let file = format!("{label}/KAT_SIG_{label}.txt");
    let line = lines.lines().find(|line| line.ends_with(&file));
    let line = line.unwrap_or_else(|| panic!("{file} in {manifest}"));
    let mut words = line.split(' ').map(str::to_owned);
    let digest = words.next().expect("a digest");
    (digest, words.next().expect("a mode"))
}

/// SHA-256 of the canonical form of what a program prints: no trailing blanks, no empty lines.
fn canonical_digest(command: &mut Command) -> String {
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap_or_else(|e| panic!("{command:?}: {e}"));
    let mut text = BufReader::with_capacity(1 << 20, child.stdout.take().expect("a pipe"));
    let mut hash = Sha256::new();
    let mut line = Vec::new();
    while text
        .read_until(b'\n', &mut line)
        .expect("the pipe can be read")
        > 0
    {
        let content = line.trim_ascii_end();
        if !content.is_empty() {
            hash.update(content);
            hash.update(b"\n");
        }
        line.clear();
    }
    let status = child.wait().expect("the program can be waited for");
    assert!(status.success(), "{command:?} ended with {status}");
    const_hex::encode(hash.finalize())
}

/// Compiles natively with every warning an error, and compares `records` records.
fn known_answers_reproduce(variant: &'static str, level: u32, manifest: &str, records: u32) {
    if !have("gcc", "gcc") {
        return;
    }
    let instance = Instance { variant, level };
    let dir = temp();
    let program =
        instance
            .build("gcc", &strict())
            .program("dove_kat.c")
            .link(dir.path(), "dove_kat", &[]);
    let (digest, mode) = expected(manifest, instance);
    assert_eq!(mode, if records == 10 { "strict" } else { "strict:1" });
    let found = canonical_digest(Command::new(program).arg(records.to_string()));
    assert_eq!(found, digest, "{}", instance.label());
}

const PUBLISHED: &str = "performance/kat/sign-09.sha256";
const FIRST_RECORDS: &str = "harness/tests/data/sign-09-first-records.sha256";

#[test]
fn known_answers_of_classic_128_reproduce() {
    known_answers_reproduce("classic", 128, PUBLISHED, 10);
}

#[test]
fn known_answers_of_classic_256_reproduce() {
    known_answers_reproduce("classic", 256, PUBLISHED, 10);
}

#[test]
fn the_first_known_answer_of_classic_512_reproduces() {
    known_answers_reproduce("classic", 512, FIRST_RECORDS, 1);
}

#[test]
fn known_answers_of_pkc_skc_128_reproduce() {
    known_answers_reproduce("pkc_skc", 128, PUBLISHED, 10);
}

#[test]
fn known_answers_of_pkc_skc_256_reproduce() {
    known_answers_reproduce("pkc_skc", 256, PUBLISHED, 10);
}

#[test]
fn the_first_known_answer_of_pkc_skc_512_reproduces() {
    known_answers_reproduce("pkc_skc", 512, FIRST_RECORDS, 1);
}

#[test]
fn all_instances_compile_without_a_warning_for_aarch64_and_the_small_ones_reproduce() {
    let (gcc, gcc_package) = cc::AARCH64_GCC;
    let (qemu, qemu_package) = cc::AARCH64_QEMU;
    if !have(gcc, gcc_package) || !have(qemu, qemu_package) {
        return;
    }
    let dir = temp();
    for variant in ["classic", "pkc_skc"] {
        for level in [128, 256, 512] {
            let instance = Instance { variant, level };
            let program = instance
                .build(gcc, &strict())
                .flags(&["-static"])
                .program("dove_kat.c")
                .link(dir.path(), &instance.label(), &[]);
            if level == 128 {
                let found = canonical_digest(Command::new(qemu).arg(program));
                assert_eq!(
                    found,
                    expected(PUBLISHED, instance).0,
                    "{}",
                    instance.label()
                );
            }
        }
    }
}

// ---- right and wrong use ----

/// What `dove_checks` wraps.
const WRAPPED: [&str; 6] = [
    "malloc",
    "calloc",
    "realloc",
    "free",
    "pseudoXOF",
    "get_random_number",
];

/// Counts that depend on the variant.
struct Counts {
    /// pseudoXOF calls of keygen, sign and verify, as the scheme's public facts state them.
    xof: [u32; 3],
    /// Allocations of keygen, sign and verify.
    allocations: [u32; 3],
    /// Claimed lengths of public key, secret key and signature, in bytes.
    lengths: [u32; 3],
}

/// One line for each operation, in the form of `dove_checks`.
fn failures(what: &str, counts: [u32; 3], code: i32) -> String {
    ["keygen", "sign", "verify"]
        .iter()
        .zip(counts)
        .map(|(operation, n)| {
            let code = if n == 0 { 0 } else { code };
            format!("{operation} {what} failures={n} rc={code} wrong=0\n")
        })
        .collect()
}

/// Command of `dove_checks`, and what it must print.
fn expectations(instance: Instance, counts: &Counts) -> Vec<(&'static str, String)> {
    let [pk, sk, sn] = counts.lengths;
    let [keygen, sign, verify] = counts.xof;
    // A second draw costs one more call, and no other.
    let again = sign + 1;
    vec![
        ("sizes", format!("{} {pk} {sk} {sn}\n", instance.label())),
        (
            "counts",
            format!(
                "keygen xof={keygen} drng=1\nsign xof={sign} drng=0\nverify xof={verify} drng=0\n"
            ),
        ),
        ("rejected", format!("rejected=1 xof={again} verify=0\n")),
        (
            "flips",
            "message tried=64 invalid=64 valid=0\n\
             signature tried=112 invalid=112 valid=0\n\
             salt tried=24 invalid=0 valid=24\n\
             seed_pk tried=16 invalid=16 valid=0\n\
             key tried=64 invalid=64 valid=0\n"
                .to_owned(),
        ),
        (
            "unaligned",
            (1..8)
                .map(|at| format!("offset {at} pk=1 sk=1 sn=1\n"))
                .collect(),
        ),
        ("lengths", wrong_lengths()),
        ("memory", failures("memory", counts.allocations, -3)),
        ("xof", failures("xof", counts.xof, -6)),
        ("random", failures("random", [1, 0, 0], -7)),
        ("singular", "rc=-8 zero=1 rejected=256\n".to_owned()),
    ]
}

/// What `dove_checks lengths` prints: an argument error everywhere, and no byte written.
fn wrong_lengths() -> String {
    let untouched = |what: &str| format!("{what} rc=-2 untouched=1 len=0\n");
    let sign = untouched("sign sk_len") + &untouched("sign sn_len");
    let keygen = untouched("keygen pk_len").repeat(2) + &untouched("keygen sk_len").repeat(2);
    [
        "verify rc=-2 -2 -2 -2 -2 -2\n",
        &sign.repeat(2),
        &untouched("sign m=NULL"),
        "sign m_len=2^61 rc=-2 zero=1 len=0\n",
        "empty message sign=0 verify=0 other=-1\n",
        "null keygen rc=-2 -2 -2 -2\nnull sign rc=-2 -2 -2\nnull verify rc=-2 -2\n",
        &keygen.repeat(2),
    ]
    .concat()
}

/// Runs every command of `dove_checks`, and reports all that differ.
fn behaves_as_documented(instance: Instance, counts: &Counts) {
    if !have("gcc", "gcc") {
        return;
    }
    let wrap = WRAPPED.map(|f| format!("-Wl,--wrap={f}"));
    let dir = temp();
    let program = instance
        .build("gcc", &strict())
        .flags(cc::SANITIZE)
        .flags(&["-DDOVE_DEBUG"])
        .flags(&wrap.each_ref().map(String::as_str))
        .program("dove_checks.c")
        .link(dir.path(), "dove_checks", &[]);
    let wrong: Vec<String> = expectations(instance, counts)
        .into_iter()
        .filter_map(|(command, expected)| {
            let output = cc::run(Command::new(&program).arg(command), "");
            let said = String::from_utf8_lossy(&output.stderr);
            let printed = String::from_utf8_lossy(&output.stdout);
            let right = output.status.success() && printed == expected;
            (!right).then(|| {
                format!(
                    "{command}: {}\n{printed}{said}\nexpected:\n{expected}",
                    output.status
                )
            })
        })
        .collect();
    assert!(
        wrong.is_empty(),
        "{}\n{}",
        instance.label(),
        wrong.join("\n")
    );
}

#[test]
fn classic_128_keeps_its_promises_in_right_and_wrong_use() {
    let counts = Counts {
        xof: [140, 3, 1],
        allocations: [1, 3, 2],
        lengths: [191_646, 192_990, 136],
    };
    behaves_as_documented(CLASSIC_128, &counts);
}

#[test]
fn pkc_skc_128_keeps_its_promises_in_right_and_wrong_use() {
    let counts = Counts {
        xof: [52, 55, 52],
        allocations: [1, 4, 3],
        lengths: [43_576, 24, 136],
    };
    behaves_as_documented(PKC_SKC_128, &counts);
}

/// The larger sets: names and lengths, by the preprocessor alone.
#[test]
fn names_and_lengths_of_all_instances_are_the_published_ones() {
    if !have("gcc", "gcc") {
        return;
    }
    let published = [
        ("classic", 128, [191_646, 192_990, 136]),
        ("classic", 256, [2_050_352, 1_925_976, 296]),
        ("classic", 512, [22_833_052, 20_181_508, 648]),
        ("pkc_skc", 128, [43_576, 24, 136]),
        ("pkc_skc", 256, [446_992, 40, 296]),
        ("pkc_skc", 512, [5_062_192, 72, 648]),
    ];
    for (variant, level, [pk, sk, sn]) in published {
        let instance = Instance { variant, level };
        let [variant, level] = instance.defines();
        // An array of negative size does not compile: the check is the compilation.
        let label = instance.label();
        let program = format!(
            "#include \"SIG_AlgorithmInstance.h\"\n\
             #define MUST(what, x) typedef char what[(x) ? 1 : -1]\n\
             MUST(pk, DOVE_PK_BYTES == {pk}); MUST(sk, DOVE_SK_BYTES == {sk});\n\
             MUST(sn, DOVE_SIG_BYTES == {sn}); MUST(name, sizeof ALGORITHM_INSTANCE == {});\n\
             MUST(l, (DOVE_L - 1) * (DOVE_L - 1) < DOVE_O && DOVE_O <= DOVE_L * DOVE_L);\n",
            label.len() + 1
        );
        let mut gcc = Command::new("gcc");
        gcc.args(["-std=c99", "-fsyntax-only", "-xc", "-", &variant, &level])
            .arg(format!("-I{}", root().join("drivers/dove").display()))
            .arg(format!(
                "-I{}",
                root().join("drivers/abi/include").display()
            ));
        let output = cc::run(&mut gcc, &program);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{label}:\n{said}");
    }
}

// ---- constant time ----

/// The guide's builds on x86-64. The `-mtune=native` of the performance build is left out: what
/// is tested must not depend on the machine that tests.
const BUILDS: [(&str, &[&str]); 3] = [
    ("reference", &["-O2"]),
    (
        "performance",
        &[
            "-O3",
            "-march=x86-64",
            "-mavx2",
            "-flto",
            "-fomit-frame-pointer",
        ],
    ),
    (
        "resource",
        &[
            "-Os",
            "-march=x86-64",
            "-mavx2",
            "-flto",
            "-fomit-frame-pointer",
        ],
    ),
];

/// Whether valgrind can run what `gcc` makes with these flags; says why not.
fn can_check(flags: &[&str]) -> bool {
    let avx2 = flags.contains(&"-mavx2");
    if avx2 && !cfg!(target_arch = "x86_64") {
        return false; // another architecture has no such build: nothing is skipped
    }
    let cpu = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    if avx2 && !cpu.contains(" avx2") {
        skip("this processor has no AVX2");
        return false;
    }
    true
}

/// Runs `dove_ct` under valgrind; returns whether it was clean, and what both said.
fn secrets_stay_secret(instance: Instance, dove: &Path, flags: &[&str]) -> (bool, String) {
    let dir = temp();
    let program: PathBuf = instance
        .build_from(dove, "gcc", &["-std=c99", "-g", "-DDOVE_CT_TEST"])
        .flags(flags)
        .program("dove_ct.c")
        .link(dir.path(), "dove_ct", &[]);
    // A message whose first draw is rejected: that path handles secrets too.
    let message = cc::stdout_of(Command::new(&program).arg("find"));
    let mut valgrind = Command::new("valgrind");
    valgrind
        .args(["--quiet", "--error-exitcode=99"])
        .arg(&program)
        .args(["secret", message.trim()]);
    let output = cc::run(&mut valgrind, "");
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        printed.contains("valgrind=1 rejected=1"),
        "it did not run to its end:\n{printed}{said}"
    );
    match output.status.code() {
        Some(0) => assert!(printed.contains("errors=0"), "{printed}"),
        Some(99) => assert!(!printed.contains("errors=0"), "{printed}"),
        _ => panic!("valgrind ended with {}:\n{said}", output.status),
    }
    (output.status.success(), printed + &said)
}

fn have_checker() -> bool {
    have("gcc", "gcc") && have("valgrind", "valgrind")
}

fn no_branch_or_index_depends_on_a_secret(instance: Instance) {
    if !have_checker() {
        return;
    }
    for (name, flags) in BUILDS.iter().filter(|(_, flags)| can_check(flags)) {
        let (clean, said) = secrets_stay_secret(instance, &root().join("drivers/dove"), flags);
        assert!(clean, "{} {name}:\n{said}", instance.label());
    }
}

#[test]
fn no_branch_or_index_of_classic_128_depends_on_a_secret() {
    no_branch_or_index_depends_on_a_secret(CLASSIC_128);
}

#[test]
fn no_branch_or_index_of_pkc_skc_128_depends_on_a_secret() {
    no_branch_or_index_depends_on_a_secret(PKC_SKC_128);
}

/// A copy of `drivers/dove` in which `old`, found exactly once, is `new`.
fn planted(dir: &Path, file: &str, old: &str, new: &str) {
    for entry in std::fs::read_dir(root().join("drivers/dove")).expect("drivers/dove") {
        let path = entry.expect("a folder entry").path();
        let name = path.file_name().expect("a file name");
        std::fs::copy(&path, dir.join(name)).expect("a file can be copied");
    }
    let path = dir.join(file);
    let code = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{file}: {e}"));
    assert_eq!(code.matches(old).count(), 1, "`{old}` in {file}");
    std::fs::write(&path, code.replace(old, new)).expect("a file can be written");
}

/// The checker must see each of these, or its silence above means nothing.
#[test]
fn a_planted_branch_index_or_missing_mark_is_found() {
    if !have_checker() {
        return;
    }
    let plants = [
        (
            "an early end of the elimination",
            "solve.c",
            "singular |= dove_ct_zero_mask(pivot);",
            "if (pivot == 0) return 0;",
        ),
        (
            "a table indexed by an element of L",
            "gf256.c",
            "unsigned square = a, inverse = 1, i;",
            "static volatile unsigned char table[256]; unsigned square = a | table[a], inverse = 1, i;",
        ),
        (
            "a branch on a coefficient of the secret matrix",
            "matrix.c",
            "        dove_row_add_multiple(&acc[i], dove_row_at(left, i), &mult);",
            "        if (dove_row_at(left, i) != 0) \
                 dove_row_add_multiple(&acc[i], dove_row_at(left, i), &mult);",
        ),
        (
            "the invertibility of L, not declassified",
            "sign.c",
            "DOVE_DECLASSIFY(&invertible, sizeof invertible);",
            "",
        ),
    ];
    for (what, file, old, new) in plants {
        let dir = temp();
        planted(dir.path(), file, old, new);
        let (clean, said) = secrets_stay_secret(CLASSIC_128, dir.path(), &["-O2"]);
        assert!(!clean, "not found: {what}\n{said}");
        assert!(said.contains("uninitialised"), "{what}:\n{said}");
    }
}

// ---- as a library ----

/// Links an instance with the adapter, as a campaign does.
fn library(instance: Instance, dir: &Path) -> PathBuf {
    let abi = root().join("drivers/abi");
    let export = format!("-Wl,--version-script={}", abi.join("export.map").display());
    let label = format!("-DCAMPAIGN_LABEL=\"{}\"", instance.label());
    instance
        .build("gcc", cc::REFERENCE)
        .flags(&[
            "-fPIC",
            "-shared",
            "-Wl,-z,defs",
            "-Wl,-z,noexecstack",
            &export,
        ])
        .flags(&[
            &label,
            "-DCAMPAIGN_KIND=\"timed\"",
            "-DCAMPAIGN_REJECTED=dove_rejected_draws",
        ])
        .source(abi.join("adapter.c"))
        .link(dir, &format!("{}.so", instance.label()), &[])
}

#[test]
fn two_instances_in_one_process_do_not_touch_each_other() {
    if !have("gcc", "gcc") {
        return;
    }
    let dir = temp();
    let program = Build::new("gcc")
        .flags(&strict())
        .program("two_instances.c")
        .link(dir.path(), "two_instances", &["-ldl"]);
    let printed = cc::stdout_of(
        Command::new(program)
            .arg(library(CLASSIC_128, dir.path()))
            .arg(library(PKC_SKC_128, dir.path())),
    );
    assert_eq!(
        printed,
        "pk_len=191646 same=1 counts_alone=1\npk_len=43576 same=1 counts_alone=1\n"
    );
}

/// Global symbols of one relocatable object made of all sources.
fn global_symbols(object: &Path) -> Vec<String> {
    use object::{Object as _, ObjectSymbol as _};
    let bytes = std::fs::read(object).expect("the object can be read");
    let file = object::File::parse(&*bytes).expect("an object file");
    file.symbols()
        .filter(|symbol| symbol.is_global() && !symbol.is_undefined())
        .map(|symbol| symbol.name().expect("a name").to_owned())
        .collect()
}

#[test]
fn global_symbols_carry_the_prefix_of_their_owner() {
    if !have("gcc", "gcc") {
        return;
    }
    let api = [
        "sm3hash",
        "pseudohash",
        "pseudoXOF",
        "init_random_number",
        "get_random_number",
    ];
    let dir = temp();
    let object = CLASSIC_128
        .build("gcc", cc::REFERENCE)
        .flags(&["-r", "-nostdlib"])
        .link(dir.path(), "all.o", &[]);
    let symbols = global_symbols(&object);
    for name in ["sig_sign", "dove_rejected_draws", "pseudoXOF"] {
        assert!(symbols.iter().any(|s| s == name), "{name} is missing");
    }
    let stray: Vec<&String> = symbols
        .iter()
        .filter(|s| {
            !["dove_", "sig_", "iccs_"]
                .iter()
                .any(|prefix| s.starts_with(prefix))
        })
        .filter(|s| !api.contains(&s.as_str()))
        .collect();
    assert!(stray.is_empty(), "{stray:?}");
}

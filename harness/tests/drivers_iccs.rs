//! The helper functions of `drivers/iccs` against published vectors, compiled natively with the
//! sanitizers and for AArch64. `tests/data/README.md` says where the vectors come from.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::support::cc::{self, Build};
use crate::support::{have, root};

/// A request to `iccs_vectors`, and the line that must answer it.
struct Case {
    request: String,
    answer: String,
}

/// The rule by which the vectors' messages are made: byte i is (131 i + length) mod 256.
fn message_hex(bits: u64) -> String {
    let length = bits.div_ceil(8);
    let hex: String = (0..length)
        .map(|i| format!("{:02x}", (i * 131 + length) % 256))
        .collect();
    if hex.is_empty() {
        "-".to_owned()
    } else {
        hex
    }
}

fn number(value: &Value, key: &str) -> u64 {
    value[key]
        .as_u64()
        .unwrap_or_else(|| panic!("{key} in {value}"))
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key]
        .as_str()
        .unwrap_or_else(|| panic!("{key} in {value}"))
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key]
        .as_array()
        .unwrap_or_else(|| panic!("{key} in {value}"))
}

fn hash_case(kind: &str, out_bits: u64, vector: &Value, answer: &str) -> Case {
    let m_bits = number(vector, "m_bits");
    Case {
        request: format!("{kind} {out_bits} {m_bits} {}", message_hex(m_bits)),
        answer: format!("0 {}", text(vector, answer)),
    }
}

/// One generator: its seed, then its requests in order.
fn drng_cases(vector: &Value) -> Vec<Case> {
    let seed = Case {
        request: format!("seed {}", text(vector, "seed")),
        answer: "0 ".to_owned(),
    };
    let draws = list(vector, "requests").iter().map(|request| Case {
        request: format!("draw {}", number(request, "bits")),
        answer: format!("0 {}", text(request, "out")),
    });
    std::iter::once(seed).chain(draws).collect()
}

/// All published vectors.
fn cases() -> Vec<Case> {
    let path = root().join("harness/tests/data/iccs-vectors.json");
    let json = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let vectors: Value = serde_json::from_str(&json).expect("the vectors are JSON");
    let mut cases = Vec::new();
    cases.extend(
        list(&vectors, "sm3hash")
            .iter()
            .map(|v| hash_case("sm3", 256, v, "digest")),
    );
    cases.extend(
        list(&vectors, "pseudohash")
            .iter()
            .map(|v| hash_case("hash", number(v, "digest_bits"), v, "digest")),
    );
    cases.extend(
        list(&vectors, "pseudoXOF")
            .iter()
            .map(|v| hash_case("xof", number(v, "out_bits"), v, "out")),
    );
    cases.extend(list(&vectors, "drng").iter().flat_map(drng_cases));
    // 12 + 36 + 60 vectors, 4 generators with 8 requests each: none may be lost on the way.
    assert_eq!(cases.len(), 12 + 36 + 60 + 4 * (1 + 8));
    cases
}

fn build(compiler: &str, flags: &[&str], dir: &Path) -> std::path::PathBuf {
    Build::new(compiler)
        .flags(cc::REFERENCE)
        .flags(cc::STRICT)
        .flags(flags)
        .folder(&root().join("drivers/iccs"))
        .program("iccs_vectors.c")
        .link(dir, "iccs_vectors", &[])
}

/// Sends all requests in one go and compares answer by answer.
fn compare(command: &mut Command, cases: &[Case]) {
    let requests: String = cases.iter().map(|c| c.request.clone() + "\n").collect();
    let output = cc::run(command, &requests);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {said}", output.status);
    let answers = String::from_utf8(output.stdout).expect("answers are hex");
    let answers: Vec<&str> = answers.lines().collect();
    assert_eq!(answers.len(), cases.len(), "one answer a request");
    for (case, answer) in cases.iter().zip(answers) {
        assert_eq!(answer, case.answer, "request: {}", case.request);
    }
}

#[test]
fn vectors_of_every_helper_reproduce_under_the_sanitizers() {
    if !have("gcc", "gcc") {
        return;
    }
    let dir = tempfile::tempdir().expect("a temporary folder");
    let program = build("gcc", cc::SANITIZE, dir.path());
    compare(&mut Command::new(program), &cases());
}

#[test]
fn vectors_of_every_helper_reproduce_on_aarch64() {
    let (gcc, gcc_package) = cc::AARCH64_GCC;
    let (qemu, qemu_package) = cc::AARCH64_QEMU;
    if !have(gcc, gcc_package) || !have(qemu, qemu_package) {
        return;
    }
    let dir = tempfile::tempdir().expect("a temporary folder");
    let program = build(gcc, &["-static"], dir.path());
    compare(Command::new(qemu).arg(program), &cases());
}

#[test]
fn sm3_gives_the_examples_of_its_standard_and_helpers_refuse_wrong_lengths() {
    if !have("gcc", "gcc") {
        return;
    }
    let dir = tempfile::tempdir().expect("a temporary folder");
    let program = build("gcc", cc::SANITIZE, dir.path());
    // GB/T 32905-2016, appendix A: "abc", and "abcd" sixteen times.
    let examples = [
        (
            format!("sm3 256 24 {}", const_hex::encode("abc")),
            "0 66c7f0f462eeedd9d1f2d46bdc10e4e24167c4875cf2f7a2297da02b8f4ba8e0",
        ),
        (
            format!("sm3 256 512 {}", const_hex::encode("abcd".repeat(16))),
            "0 debe9ff92275b8a138604889c18e5a4d6fdb70e5387e5765293dcba39c0c5732",
        ),
    ];
    // A refusal leaves the output alone: the program fills it with ee before.
    let refusals = [
        ("sm3 8 0 -".to_owned(), "-4 ee"),
        ("sm3 16 0 -".to_owned(), "-4 eeee"),
        ("hash 8 0 -".to_owned(), "-4 ee"),
        ("hash 16 0 -".to_owned(), "-4 eeee"),
        ("toolong".to_owned(), "-5 ee"),
    ];
    let requests: Vec<String> = examples
        .iter()
        .chain(&refusals)
        .map(|c| c.0.clone())
        .collect();
    let output = cc::run(&mut Command::new(program), &(requests.join("\n") + "\n"));
    let answers: Vec<&str> = examples.iter().chain(&refusals).map(|c| c.1).collect();
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        answers.join("\n") + "\n"
    );
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(
        said.lines().count(),
        4,
        "one line for each -4, none for -5:\n{said}"
    );
}

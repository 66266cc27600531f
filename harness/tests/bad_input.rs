//! Every kind of bad input is a finding with its place, never a panic, never a pass: of `audit` in a
//! sealed dataset, of `import` in evidence of the public campaign's format. What reads datasets beside
//! them (pages, tables, publication) refuses or goes on, and does not panic either.

use crate::support::datasets::{seal_of, small};
use crate::support::{copy_tree, files, root};
use harness::audit::{audit, Finding};
use harness::dataset::Dataset;
use harness::publish::{publish, Request};
use harness::report::{self, templates::Templates, view::Place};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::Path;

const RECORD: &str = "records/sign-09/dove_a_128.ref.reference__sign.json";
const OTHER: &str = "records/sign-09/dove_a_128.ref.reference__verify.json";
const KAT: &str = "kat/sign-09/dove_a_128.ref.reference.timed.json";
const LOG: &str = "kat/sign-09/dove_a_128.ref.reference.timed.log";
const JOURNAL: &str = "journal.jsonl";
const MANIFEST: &str = "MANIFEST.sha256";
/// As findings name it.
const SEAL: &str = "../x86_1-guide-1.seal";

/// A size that no evidence has; the file has holes and takes no room.
const HUGE: u64 = 2 << 30;

/// Where nesting is given up.
const NESTED: &str = concat!(
    "/derived/mean_s",
    "/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0",
    "/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0",
);

/// One bad input: its name, what makes it, and file, place and a part of the rule of a finding.
struct Bad {
    name: &'static str,
    make: fn(&Path),
    finding: (&'static str, &'static str, &'static str),
}

/// Changes the bytes of a file; they must change.
fn bytes(file: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let before = fs::read(file).unwrap();
    let mut after = before.clone();
    change(&mut after);
    assert_ne!(before, after, "{}", file.display());
    fs::write(file, after).unwrap();
}

/// Replaces the first `from` of a file.
fn text(file: &Path, from: &str, to: &str) {
    let before = fs::read_to_string(file).unwrap();
    assert!(before.contains(from), "{from} in {}", file.display());
    fs::write(file, before.replacen(from, to, 1)).unwrap();
}

/// Another value for the first member of that name.
fn member(file: &Path, key: &str, value: &str) {
    let before = fs::read_to_string(file).unwrap();
    let start = before.find(&format!("\"{key}\": ")).expect(key) + key.len() + 4;
    let end = start + before[start..].find([',', '\n']).unwrap();
    let after = format!("{}{value}{}", &before[..start], &before[end..]);
    assert_ne!(before, after);
    fs::write(file, after).unwrap();
}

fn another_digit(digit: &mut u8) {
    *digit = if *digit == b'0' { b'1' } else { b'0' };
}

fn huge(file: &Path) {
    let file = fs::File::create(file).unwrap();
    file.set_len(HUGE).unwrap();
}

/// Puts a link in place of a file or folder, to the same content outside of the dataset.
fn link(path: &Path, outside: &Path) {
    fs::rename(path, outside).unwrap();
    symlink(outside, path).unwrap();
}

fn swap(dir: &Path, a: &str, b: &str) {
    let third = dir.join("third");
    for (from, to) in [
        (dir.join(a), third.clone()),
        (dir.join(b), dir.join(a)),
        (third, dir.join(b)),
    ] {
        fs::rename(from, to).unwrap();
    }
}

const BAD: &[Bad] = &[
    Bad {
        name: "a flipped byte",
        make: |dir| bytes(&dir.join(RECORD), |b| b[100] ^= 4),
        finding: (RECORD, "", "the digest of a file is that of the manifest"),
    },
    Bad {
        name: "a flipped byte of a log",
        make: |dir| bytes(&dir.join(LOG), |b| b[3] ^= 1),
        finding: (LOG, "", "the digest of a file is that of the manifest"),
    },
    Bad {
        name: "a digit",
        make: |dir| member(&dir.join(RECORD), "n", "106"),
        finding: (
            RECORD,
            "/derived/n",
            "derived values follow from the counted attempts",
        ),
    },
    Bad {
        name: "a digest of the manifest",
        make: |dir| bytes(&dir.join(MANIFEST), |b| another_digit(&mut b[0])),
        finding: (MANIFEST, "", "the sealing line holds the manifest's digest"),
    },
    Bad {
        name: "a digest of the journal",
        make: |dir| {
            let key = b"\"sha256\":\"";
            bytes(&dir.join(JOURNAL), |b| {
                let at = b.windows(key.len()).position(|w| w == key).unwrap() + key.len();
                another_digit(&mut b[at]);
            });
        },
        finding: (JOURNAL, "line 4", "prev is the SHA-256 of the line before"),
    },
    Bad {
        name: "a digest of a record",
        make: |dir| {
            member(
                &dir.join(RECORD),
                "timed",
                &format!("\"{}\"", "0".repeat(64)),
            )
        },
        finding: (
            RECORD,
            "/libraries/timed",
            "the library is the one of build.json",
        ),
    },
    Bad {
        name: "the seal",
        make: |dir| fs::write(seal_of(dir), "0".repeat(64) + "\n").unwrap(),
        finding: (
            SEAL,
            "",
            "the seal is the SHA-256 of the journal's last line",
        ),
    },
    Bad {
        name: "an added record",
        make: |dir| {
            fs::copy(
                dir.join(RECORD),
                dir.join("records/sign-09/x.ref.reference__sign.json"),
            )
            .map(drop)
            .unwrap();
        },
        finding: (
            "records/sign-09/x.ref.reference__sign.json",
            "",
            "every file is in the manifest",
        ),
    },
    Bad {
        name: "an added text",
        make: |dir| fs::write(dir.join("README"), "").unwrap(),
        finding: ("README", "", "a dataset holds evidence only"),
    },
    Bad {
        name: "two files swapped",
        make: |dir| swap(dir, RECORD, OTHER),
        finding: (OTHER, "/identity", "a file lies where its identity says"),
    },
    Bad {
        name: "a repeated key",
        make: |dir| {
            text(
                &dir.join(RECORD),
                "  \"cpu\": 2,\n",
                "  \"cpu\": 2,\n  \"cpu\": 2,\n",
            )
        },
        finding: (RECORD, "/cpu", "strict JSON"),
    },
    Bad {
        name: "NaN",
        make: |dir| member(&dir.join(RECORD), "mean_s", "NaN"),
        finding: (RECORD, "/derived/mean_s", "strict JSON"),
    },
    Bad {
        name: "1e400",
        make: |dir| member(&dir.join(RECORD), "mean_s", "1e400"),
        finding: (RECORD, "/derived/mean_s", "strict JSON"),
    },
    Bad {
        name: "a number beyond all integers",
        make: |dir| member(&dir.join(RECORD), "calls", "123456789012345678901234567890"),
        finding: (
            RECORD,
            "/trials/0/attempts/0/calls",
            "a file conforms to its schema",
        ),
    },
    Bad {
        name: "a negative count",
        make: |dir| member(&dir.join(RECORD), "calls", "-21"),
        finding: (
            RECORD,
            "/trials/0/attempts/0/calls",
            "a file conforms to its schema",
        ),
    },
    Bad {
        name: "no calls",
        make: |dir| member(&dir.join(RECORD), "calls", "0"),
        finding: (
            RECORD,
            "/trials/0/attempts/0/calls",
            "an attempt makes the planned calls",
        ),
    },
    Bad {
        name: "deep nesting",
        make: |dir| member(&dir.join(RECORD), "mean_s", &"[".repeat(100_000)),
        finding: (RECORD, NESTED, "strict JSON"),
    },
    Bad {
        name: "a huge record",
        make: |dir| huge(&dir.join(RECORD)),
        finding: (RECORD, "", "a file can be read"),
    },
    Bad {
        name: "a huge campaign",
        make: |dir| huge(&dir.join("campaign.json")),
        finding: ("campaign.json", "", "a file can be read"),
    },
    Bad {
        name: "a huge log",
        make: |dir| huge(&dir.join(LOG)),
        finding: (LOG, "", "a file can be read"),
    },
    Bad {
        name: "a huge journal",
        make: |dir| huge(&dir.join(JOURNAL)),
        finding: (JOURNAL, "line 1", "whole"),
    },
    Bad {
        name: "a huge manifest",
        make: |dir| huge(&dir.join(MANIFEST)),
        finding: (MANIFEST, "", "the manifest can be read"),
    },
    Bad {
        name: "a huge seal",
        make: |dir| huge(&seal_of(dir)),
        finding: (SEAL, "", "the seal lies beside the dataset"),
    },
    Bad {
        name: "a huge file added",
        make: |dir| huge(&dir.join("records/sign-09/y.ref.reference__sign.json")),
        finding: (
            "records/sign-09/y.ref.reference__sign.json",
            "",
            "a file can be read",
        ),
    },
    Bad {
        name: "a path of the manifest that leads out",
        make: |dir| text(&dir.join(MANIFEST), "  build.json", "  ../build.json"),
        finding: (MANIFEST, "line 1", "a path stays below the dataset"),
    },
    Bad {
        name: "a path of the journal that leads out",
        make: |dir| {
            text(
                &dir.join(JOURNAL),
                "\"path\":\"build.json\"",
                "\"path\":\"../build.json\"",
            )
        },
        finding: (JOURNAL, "line 5", "a written file has a path below the run"),
    },
    Bad {
        name: "a path of a record that leads out",
        make: |dir| member(&dir.join(RECORD), "file", "\"../../etc/passwd\""),
        finding: (RECORD, "/kat/file", "the KAT evidence is there"),
    },
    Bad {
        name: "a path of KAT evidence that leads out",
        make: |dir| member(&dir.join(KAT), "log", "\"../../../../../etc/passwd\""),
        finding: (KAT, "/log", "the log of a KAT is there"),
    },
    Bad {
        name: "a link in place of a file",
        make: |dir| link(&dir.join(RECORD), &dir.with_file_name("outside")),
        finding: (RECORD, "", "a dataset holds no links"),
    },
    Bad {
        name: "a link in place of a folder",
        make: |dir| link(&dir.join("records"), &dir.with_file_name("outside")),
        finding: ("records", "", "a dataset holds no links"),
    },
    Bad {
        name: "a link to itself",
        make: |dir| symlink("loop", dir.join("loop")).unwrap(),
        finding: ("loop", "", "a dataset holds no links"),
    },
    Bad {
        name: "no UTF-8 in a record",
        make: |dir| bytes(&dir.join(RECORD), |b| b.insert(100, 0xff)),
        finding: (RECORD, "", "strict JSON"),
    },
    Bad {
        name: "no UTF-8 in the journal",
        make: |dir| bytes(&dir.join(JOURNAL), |b| b.insert(10, 0xff)),
        finding: (JOURNAL, "line 1", "strict JSON"),
    },
    Bad {
        name: "no UTF-8 in the manifest",
        make: |dir| bytes(&dir.join(MANIFEST), |b| b[70] = 0xff),
        finding: (
            MANIFEST,
            "line 1",
            "a line is a SHA-256, two blanks and a path",
        ),
    },
    Bad {
        name: "no UTF-8 in a log",
        make: |dir| bytes(&dir.join(LOG), |b| b[3] = 0xff),
        finding: (LOG, "", "a log is UTF-8"),
    },
    Bad {
        name: "no UTF-8 in the seal",
        make: |dir| bytes(&seal_of(dir), |b| b[3] = 0xff),
        finding: (
            SEAL,
            "",
            "the seal is the SHA-256 of the journal's last line",
        ),
    },
    Bad {
        name: "no UTF-8 in a name",
        make: |dir| fs::write(dir.join(OsStr::from_bytes(b"a\xff")), "").unwrap(),
        finding: ("a\u{fffd}", "", "a name is UTF-8"),
    },
];

fn is_found(findings: &[Finding], (file, place, rule): (&str, &str, &str)) -> bool {
    findings
        .iter()
        .any(|f| f.file == file && f.pointer == place && f.rule.contains(rule))
}

fn shown(findings: &[Finding]) -> String {
    findings.iter().map(|f| format!("{f}\n")).collect()
}

#[test]
fn an_audit_finds_each_bad_input_and_says_where() {
    let mut missed = String::new();
    for bad in BAD {
        let (_home, dir) = small();
        (bad.make)(&dir);
        let report = audit(&dir);
        if !report.is_refuted() || !is_found(&report.findings, bad.finding) {
            missed += &format!("{}:\n{}", bad.name, shown(&report.findings));
        }
    }
    assert_eq!(missed, "");
}

#[test]
fn every_file_that_is_missing_is_named() {
    let (_home, whole) = small();
    let all = files(&whole);
    assert!(all.len() > 15, "{all:?}");
    for file in &all {
        let (_home, dir) = small();
        fs::remove_file(dir.join(file)).unwrap();
        let report = audit(&dir);
        let file = file.display().to_string();
        assert!(report.is_refuted(), "{file}");
        let named = report.findings.iter().any(|f| f.file == file);
        assert!(named, "{file}: {}", shown(&report.findings));
    }
    fs::remove_file(seal_of(&whole)).unwrap();
    assert!(is_found(
        &audit(&whole).findings,
        (SEAL, "", "the seal lies beside the dataset")
    ));
}

#[test]
fn lines_of_the_journal_out_of_order_are_named_by_the_first_of_them() {
    let (_home, whole) = small();
    let journal = fs::read_to_string(whole.join(JOURNAL)).unwrap();
    let lines: Vec<&str> = journal.lines().collect();
    for (a, b) in [(0, 1), (1, 2), (5, 20), (lines.len() - 2, lines.len() - 1)] {
        let mut swapped = lines.clone();
        swapped.swap(a, b);
        fs::write(whole.join(JOURNAL), swapped.join("\n") + "\n").unwrap();
        let place = format!("line {}", a + 1);
        let report = audit(&whole);
        assert!(
            is_found(&report.findings, (JOURNAL, &place, "")),
            "{}",
            shown(&report.findings)
        );
    }
}

#[test]
fn a_file_that_ends_too_early_is_found_wherever_it_was_cut() {
    let (_home, dir) = small();
    for (file, name) in [RECORD, KAT, LOG, "campaign.json", JOURNAL, MANIFEST]
        .map(|name| (dir.join(name), name))
        .into_iter()
        .chain([(seal_of(&dir), SEAL)])
    {
        let whole = fs::read(&file).unwrap();
        let ends = whole
            .iter()
            .enumerate()
            .filter(|(_, b)| **b == b'\n')
            .map(|(at, _)| at);
        let cuts: BTreeSet<usize> = (0..whole.len())
            .step_by(whole.len() / 10 + 1)
            .chain(
                ends.flat_map(|at| [at, at + 1])
                    .step_by(whole.len() / 1000 + 1),
            )
            .chain([whole.len() - 1])
            .filter(|cut| *cut < whole.len())
            .collect();
        for cut in cuts {
            fs::write(&file, &whole[..cut]).unwrap();
            let report = audit(&dir);
            assert!(report.is_refuted(), "{name} cut at {cut}");
            let named = report.findings.iter().any(|f| f.file == name);
            assert!(named, "{name} cut at {cut}: {}", shown(&report.findings));
        }
        fs::write(&file, &whole).unwrap();
    }
    assert_eq!(shown(&audit(&dir).findings), "", "it is whole again");
}

#[test]
fn pages_tables_and_publication_of_bad_input_never_panic() {
    let templates = Templates::new(None).unwrap();
    let names = BTreeSet::new();
    let (mut rendered, mut published) = (Vec::new(), Vec::new());
    for bad in BAD {
        let (home, dir) = small();
        (bad.make)(&dir);
        let done = publish(&Request {
            root: home.path(),
            run: &dir,
            id: None,
            current: false,
            partial: None,
            allow_unfixed_host: false,
            names: &names,
        });
        // What is no part of the sealed run is not carried along.
        if let Ok(done) = done {
            let report = audit(&done.path);
            assert_eq!(shown(&report.findings), "", "{}", bad.name);
            published.push(bad.name);
        }
        // Other values than the sound ones, where no seal forbids to show them: pages and tables are made
        // of whatever can be read.
        let _ = fs::remove_file(seal_of(&dir));
        match Dataset::read(&dir) {
            Ok(dataset) if bad.finding.0 == RECORD => {
                let _ = report::render(&dataset, &Place::default(), &templates);
                let _ = harness::export::tables(&dataset);
                rendered.push(bad.name);
            }
            _ => {}
        }
    }
    assert_eq!(
        rendered,
        [
            "a digit",
            "a digest of a record",
            "no calls",
            "a path of a record that leads out",
        ]
    );
    assert_eq!(
        published,
        [
            "an added record",
            "an added text",
            "a huge file added",
            "a link in place of a folder",
            "a link to itself",
            "no UTF-8 in a name",
        ]
    );
}

/// A record of the public campaign's format, a profile, a log.
const THEIRS: &str = "records/sign-09/dove_classic_256__sign.json";
const PROFILE: &str = "profile/sign-09/dove_classic_256__sign.json";
const THEIR_LOG: &str = "kat/sign-09/dove_classic_256.log";

const BAD_SOURCE: &[Bad] = &[
    Bad {
        name: "a digit",
        make: |dir| member(&dir.join(THEIRS), "measurements", "391"),
        finding: (THEIRS, "/trials", "the trials are those of the processes"),
    },
    Bad {
        name: "a digest",
        make: |dir| {
            member(
                &dir.join(THEIRS),
                "library_sha256",
                &format!("\"{}\"", "0".repeat(64)),
            )
        },
        finding: (THEIRS, "/library_sha256", "a record repeats build.json"),
    },
    Bad {
        name: "ticks of a profile",
        make: |dir| member(&dir.join(PROFILE), "ticks", "1"),
        finding: (
            PROFILE,
            "/total/ticks",
            "no more ticks in functions than in all",
        ),
    },
    Bad {
        name: "a path of a machine in a record",
        make: |dir| member(&dir.join(THEIRS), "architecture", "\"/home/ada/worker\""),
        finding: (
            THEIRS,
            "/environment/architecture",
            "no file holds a path of a machine",
        ),
    },
    Bad {
        name: "a path of a machine in a log",
        make: |dir| bytes(&dir.join(THEIR_LOG), |b| b.extend(b"\n/home/ada/worker\n")),
        finding: (THEIR_LOG, "", "no file holds a path of a machine"),
    },
    Bad {
        name: "a byte of a log",
        make: |dir| bytes(&dir.join(THEIR_LOG), |b| b[0] ^= 1),
        finding: (
            "build.json",
            "/instances/sign-09~1dove_classic_256/kat_log_sha256",
            "the digest is that of the KAT log",
        ),
    },
    Bad {
        name: "no campaign",
        make: |dir| fs::remove_file(dir.join("campaign.json")).unwrap(),
        finding: ("campaign.json", "", "the evidence is whole"),
    },
    Bad {
        name: "no log",
        make: |dir| fs::remove_file(dir.join(THEIR_LOG)).unwrap(),
        finding: (
            "build.json",
            "/instances/sign-09~1dove_classic_256/kat_log",
            "the KAT log is there",
        ),
    },
    Bad {
        name: "two records swapped",
        make: |dir| swap(dir, THEIRS, "records/sign-09/dove_classic_256__verify.json"),
        finding: (THEIRS, "", "a file lies where its content says"),
    },
    Bad {
        name: "an end too early",
        make: |dir| bytes(&dir.join(THEIRS), |b| b.truncate(1000)),
        finding: (THEIRS, "", "strict JSON"),
    },
    Bad {
        name: "a repeated key",
        make: |dir| {
            text(
                &dir.join(THEIRS),
                "\"kat\": \"PASS\"",
                "\"kat\": \"PASS\", \"kat\": \"PASS\"",
            )
        },
        finding: (THEIRS, "/kat", "strict JSON"),
    },
    Bad {
        name: "NaN",
        make: |dir| member(&dir.join(THEIRS), "mean_seconds", "NaN"),
        finding: (THEIRS, "/mean_seconds", "strict JSON"),
    },
    Bad {
        name: "1e400",
        make: |dir| member(&dir.join(THEIRS), "mean_seconds", "1e400"),
        finding: (THEIRS, "/mean_seconds", "strict JSON"),
    },
    Bad {
        name: "a huge record",
        make: |dir| huge(&dir.join(THEIRS)),
        finding: (THEIRS, "", "a file can be read"),
    },
    Bad {
        name: "a huge log",
        make: |dir| huge(&dir.join(THEIR_LOG)),
        finding: (THEIR_LOG, "", "a file can be read"),
    },
    Bad {
        name: "a path that leads out",
        make: |dir| member(&dir.join("build.json"), "kat_log", "\"../../etc/passwd\""),
        finding: (
            "build.json",
            "/instances/sign-09~1dove_classic_128/kat_log",
            "the KAT log is there",
        ),
    },
    Bad {
        name: "a link out of the evidence",
        make: |dir| link(&dir.join(THEIRS), &dir.with_file_name("outside")),
        finding: (THEIRS, "", "a dataset holds no links"),
    },
    Bad {
        name: "no UTF-8",
        make: |dir| bytes(&dir.join(THEIRS), |b| b.insert(100, 0xff)),
        finding: (THEIRS, "", "strict JSON"),
    },
    Bad {
        name: "no UTF-8 in a log",
        make: |dir| bytes(&dir.join(THEIR_LOG), |b| b.insert(1, 0xff)),
        finding: (THEIR_LOG, "", "a log is UTF-8"),
    },
];

#[test]
fn an_import_refuses_each_bad_input_and_says_where() {
    let mut missed = String::new();
    for bad in BAD_SOURCE {
        let home = tempfile::tempdir().unwrap();
        let dir = home.path().join("evidence");
        copy_tree(&root().join("harness/tests/data/arm_1"), &dir, &[]);
        (bad.make)(&dir);
        let (_, findings) = harness::import::read::read(&dir, &|_, _| Ok(()));
        if !is_found(&findings, bad.finding) {
            missed += &format!(
                "{}:
{}",
                bad.name,
                shown(&findings)
            );
        }
    }
    assert_eq!(missed, "");
}

/// Bytes that are no UTF-8 in an argument: an error that tells them exactly, and never a panic.
#[test]
fn arguments_that_are_not_utf_8_are_told_byte_for_byte() {
    let here = tempfile::tempdir().unwrap();
    let odd = OsStr::from_bytes(b"a\xffb");
    let config = root().join("campaign.toml");
    // A folder of that name that is no run.
    fs::create_dir(here.path().join(odd)).unwrap();
    fs::write(here.path().join(odd).join("notes"), "mine").unwrap();
    let missing = OsStr::from_bytes(b"gone\xff");
    for (words, argument, told) in [
        (&["run", "--run"][..], odd, r"a\xffb: it is not empty"),
        (&["audit"], odd, r"`a\xffb` is no run"),
        (&["audit"], missing, r"`gone\xff` is no run"),
        (&["export", "--csv"], missing, r"`gone\xff` is no run"),
        (&["plan", "--only"], odd, r"`a\xffb` is not UTF-8"),
        (&["run", "--only"], odd, r"`a\xffb` is not UTF-8"),
        (
            &["publish", "x", "--partial"],
            odd,
            r"`a\xffb` is not UTF-8",
        ),
        (&["plan", "--config"], missing, r"cannot read gone\xff"),
    ] {
        let mut command = assert_cmd::Command::cargo_bin("campaign").unwrap();
        command.current_dir(&here).args(words).arg(argument);
        if words[1..] != ["--config"] {
            command.arg("--config").arg(&config);
        }
        let output = command.output().unwrap();
        let text = String::from_utf8(output.stderr).expect("what is said is UTF-8");
        assert_eq!(output.status.code(), Some(2), "{words:?}: {text}");
        assert!(text.contains(told), "{words:?}: {text}");
        assert!(!text.contains("panicked"), "{words:?}: {text}");
    }
    assert_eq!(fs::read_dir(&here).unwrap().count(), 1, "nothing was begun");
}

/// A reader that has gone, or a full disk behind standard error, changes no status.
#[test]
fn an_error_that_nobody_can_be_told_keeps_its_status() {
    let (reader, gone) = std::io::pipe().unwrap();
    drop(reader);
    let full = fs::OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .unwrap();
    for stderr in [std::process::Stdio::from(gone), full.into()] {
        let status = std::process::Command::new(assert_cmd::cargo::cargo_bin("campaign"))
            .current_dir(root())
            .args(["audit", "no/such/run"])
            .stdout(std::process::Stdio::null())
            .stderr(stderr)
            .status()
            .unwrap();
        assert_eq!(status.code(), Some(2));
    }
}

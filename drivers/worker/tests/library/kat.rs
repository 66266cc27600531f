//! Known-answer tests: the text of a library that works, and libraries that must not pass.

use crate::drive::{isolated, request, run, run_with};
use crate::toy::{build, toy, Kind, Toy};
use protocol::{Body, FailureCode, KatFlow, KatMode, KatOutcome, KatTask, Task};
use sha2::{Digest, Sha256};

fn mode(mode: &str, first: Option<u32>) -> KatMode {
    KatMode {
        mode: mode.into(),
        first,
    }
}

fn task(flow: KatFlow, modes: &[KatMode]) -> KatTask {
    KatTask {
        flow,
        name: "Toy".into(),
        modes: modes.to_vec(),
        vectors: None,
        flips: true,
        unauthenticated_signature_bytes: Vec::new(),
        keep_text: false,
    }
}

fn kat(toy: &Toy, task: KatTask) -> KatOutcome {
    let run = run(&isolated(request(Task::Kat(task), Some(toy.file()))));
    match run.answer() {
        Body::Kat(outcome) => outcome.clone(),
        other => panic!("{other:?}"),
    }
}

fn sha256(text: &[u8]) -> String {
    const_hex::encode(Sha256::digest(text))
}

#[test]
fn the_iccs_text_is_what_its_digests_say() {
    let Some(toy) = toy("CORRECT") else { return };
    let modes = [
        mode("strict", None),
        mode("nolen", None),
        mode("strict", Some(2)),
    ];
    let mut task = task(KatFlow::Iccs, &modes);
    task.keep_text = true;
    let wanted = request(Task::Kat(task), Some(toy.file()));
    let run = run_with(&wanted, Some(protocol::TEXT_FD));
    let Body::Kat(outcome) = run.answer() else {
        panic!("{run:#?}")
    };
    assert_eq!(outcome.failure, None);
    assert!(
        outcome.log[0].ends_with(", little-endian, 64-bit words"),
        "{:?}",
        outcome.log
    );
    assert_eq!(outcome.text_bytes, run.extra.len() as u64);
    let text = String::from_utf8(run.extra.clone()).unwrap();
    let records: Vec<&str> = text.split("\n\n").collect();
    assert_eq!(records.len(), 11, "ten records, an empty line after each");
    let lines: Vec<&str> = records[3].lines().collect();
    let names = [
        "Count", "Seed_Len", "Seed", "PK_Len", "PK", "SK_Len", "SK", "M_Len", "M", "Sn_Len", "Sn",
    ];
    assert_eq!(lines.len(), names.len());
    for (line, name) in lines.iter().zip(names) {
        assert!(line.starts_with(&format!("{name} = ")), "{line}");
    }
    assert_eq!((lines[0], lines[7]), ("Count = 3", "M_Len = 80"));
    // First draws of the generators "seed" x 16 and "msg" x 21 "m", as every published KAT file of
    // the programme has them.
    assert!(records[0].contains("\nSeed_Len = 64\nSeed = "));

    let canonical = text.replace("\n\n", "\n");
    let without = |text: &str| -> String {
        let kept = text.lines().filter(|line| !line.contains("_Len = "));
        kept.map(|line| format!("{line}\n")).collect()
    };
    let expected = [
        (canonical.clone(), 10),
        (without(&canonical), 10),
        (records[..2].join("\n") + "\n", 2),
    ];
    assert_eq!(outcome.digests.len(), expected.len());
    for (digest, (text, count)) in outcome.digests.iter().zip(expected) {
        assert_eq!(
            (digest.sha256.clone(), digest.records),
            (sha256(text.as_bytes()), count)
        );
    }
}

#[test]
fn the_nist_text_draws_from_its_own_generator() {
    let Some(toy) = toy("CORRECT") else { return };
    let modes = [mode("nistkat", None), mode("rsp", None), mode("all", None)];
    let mut task = task(KatFlow::Nist, &modes);
    task.keep_text = true;
    let wanted = request(Task::Kat(task), Some(toy.file()));
    let run = run_with(&wanted, Some(protocol::TEXT_FD));
    let Body::Kat(outcome) = run.answer() else {
        panic!("{run:#?}")
    };
    assert_eq!((&outcome.failure, outcome.records), (&None, 100));
    let text = String::from_utf8(run.extra.clone()).unwrap();
    let vectors: Vec<&str> = text
        .strip_prefix("# Toy\n\n")
        .unwrap()
        .split("\n\n")
        .collect();
    assert_eq!((vectors.len(), vectors[100]), (101, ""));
    let expected = [
        vectors[0].to_owned() + "\n",
        text.clone(),
        vectors[..100].join("\n\n") + "\n",
    ];
    assert_eq!(outcome.digests.len(), expected.len());
    for (digest, text) in outcome.digests.iter().zip(expected) {
        assert_eq!(digest.sha256, sha256(text.as_bytes()), "{}", digest.mode);
    }
    // The toy's secret key starts with its first draw: the vector's generator must serve it.
    for (number, vector) in vectors[..100].iter().enumerate() {
        let field = |name: &str| {
            let line = vector
                .lines()
                .find_map(|l| l.strip_prefix(name)?.strip_prefix(" = "));
            const_hex::decode(line.unwrap()).unwrap()
        };
        let mut drbg = worker::random::CtrDrbg::new(&field("seed").try_into().unwrap());
        let mut draw = [0; 32];
        drbg.fill(&mut draw);
        assert_eq!(field("sk")[..32], draw, "vector {number}");
        assert_eq!(field("sm")[48..], field("msg"));
        assert_eq!(field("msg").len(), 33 * (number + 1));
    }
}

#[test]
fn flips_are_counted_and_exempt_bytes_left_alone() {
    let Some(toy) = toy("CORRECT") else { return };
    let modes = [mode("strict", Some(1))];
    let outcome = kat(&toy, task(KatFlow::Iccs, &modes));
    assert_eq!((outcome.failure.clone(), outcome.records), (None, 1));
    let flips = outcome.flips.unwrap();
    for count in [flips.message, flips.signature, flips.key] {
        assert!(count.tried > 0 && count.rejected == count.tried && count.exempt == 0);
    }
    assert_eq!(flips.key.tried, 64);
    let mut exempting = task(KatFlow::Iccs, &modes);
    exempting.unauthenticated_signature_bytes = vec![(24, 48)];
    let half = kat(&toy, exempting).flips.unwrap().signature;
    assert_eq!(half.tried + half.exempt, flips.signature.tried);
    assert!(half.exempt > 0 && half.tried > 0);
}

#[test]
fn a_vector_limit_cuts_the_run() {
    let Some(toy) = toy("CORRECT") else { return };
    let mut one = task(
        KatFlow::Iccs,
        &[mode("strict", Some(1)), mode("nolen", None)],
    );
    one.vectors = Some(1);
    one.flips = false;
    let outcome = kat(&toy, one);
    assert_eq!((outcome.records, outcome.flips), (1, None));
    assert_eq!(outcome.digests[0].records, 1);
}

#[test]
fn a_library_that_misbehaves_does_not_pass() {
    let cases = [
        (
            "SIGN_OUTSIDE",
            FailureCode::Overflow,
            "1 bytes beyond its end",
        ),
        (
            "SIGN_BEFORE",
            FailureCode::Overflow,
            "1 bytes before its start",
        ),
        ("SIGN_LONGER", FailureCode::Overflow, "returned 49 bytes"),
        ("SIGN_UNTOUCHED", FailureCode::Contract, "unwritten"),
        (
            "SIGN_CHANGES_MESSAGE",
            FailureCode::Contract,
            "changed its input the message",
        ),
        (
            "SIGN_CHANGES_KEY",
            FailureCode::Contract,
            "changed its input the secret key",
        ),
        (
            "VERIFY_CHANGES_KEY",
            FailureCode::Contract,
            "changed its input the public key",
        ),
        (
            "SIGN_UNSTABLE",
            FailureCode::Contract,
            "another signature the second time",
        ),
        ("SIGN_WRONG", FailureCode::NotVerified, "did not verify"),
        ("SIGN_HALF", FailureCode::NotVerified, "did not verify"),
        ("VERIFY_NONE", FailureCode::NotVerified, "did not verify"),
        ("VERIFY_ALL", FailureCode::NotVerified, "message flipped"),
        ("VERIFY_STALE", FailureCode::NotVerified, ""),
        ("VERIFY_PREFIX", FailureCode::NotVerified, "flipped"),
        (
            "KEYGEN_SAME",
            FailureCode::Contract,
            "again, with another seed",
        ),
        (
            "KEYGEN_FAILS",
            FailureCode::CallFailed,
            "sig_keygen returned -7 in vector 0",
        ),
        (
            "SIGN_FAILS",
            FailureCode::CallFailed,
            "sig_sign returned -6 in vector",
        ),
        (
            "KEYGEN_RECURSES",
            FailureCode::StackExhausted,
            "stack exhausted at",
        ),
    ];
    for (behaviour, code, part) in cases {
        let Some(toy) = toy(behaviour) else { return };
        let modes = [mode("strict", None)];
        let wanted = request(Task::Kat(task(KatFlow::Iccs, &modes)), Some(toy.file()));
        let run = run(&isolated(wanted));
        println!("{behaviour}");
        run.fails_with(code, part);
        let digests = run.events.iter().find_map(|body| match body {
            Body::Kat(outcome) => Some(outcome.digests.as_slice()),
            _ => None,
        });
        // Where the stack ends so does the process, and nothing but the failure is said.
        let none_of_a_text_that_is_not_whole =
            (code != FailureCode::StackExhausted).then_some(&[][..]);
        assert_eq!(digests, none_of_a_text_that_is_not_whole, "{behaviour}");
    }
}

#[test]
fn a_text_of_any_length_needs_no_more_memory_than_its_keys() {
    // Keys of 8 MB: a text of 160 MB.
    let Some(toy) = build("CORRECT", Kind::Timed, &["-DPADDING=8000000L"]) else {
        return;
    };
    let mut long = task(KatFlow::Iccs, &[mode("strict", None), mode("nolen", None)]);
    long.flips = false;
    let outcome = kat(&toy, long);
    assert_eq!((outcome.failure, outcome.records), (None, 10));
    assert!(outcome.text_bytes > 160_000_000);
    let line = outcome
        .log
        .iter()
        .find(|line| line.starts_with("largest resident set"));
    let peak: u64 = line.unwrap().split(' ').nth(3).unwrap().parse().unwrap();

    let measure = Task::Measure(protocol::MeasureTask {
        operation: protocol::Operation::Sign,
        inputs: crate::drive::inputs(),
        iterations: 1,
        warmups: 0,
        cost_ns: 1_000_000,
        sources: Vec::new(),
    });
    let run = run(&isolated(request(measure, Some(toy.file()))));
    let Body::Measured(one) = run.answer() else {
        panic!("{run:#?}")
    };
    assert!(
        peak < one.peak_rss_bytes + 4_000_000,
        "{peak}, {}",
        one.peak_rss_bytes
    );
}

//! The message-size study: one file, five ways to the library.

use crate::drive::{inputs, is_emulated, isolated, request, run_on_file};
use crate::toy::{build, Kind, Toy};
use protocol::{
    Body, FailureCode, MeasureTask, Operation, SourceKind, StudyMode, StudyOutcome, StudyTask, Task,
};
use sha2::{Digest, Sha256};
use std::fs::File;
use std::path::PathBuf;

const BYTES: usize = 300_001;

struct Message {
    _folder: tempfile::TempDir,
    path: PathBuf,
    sha256: String,
}

fn message(bytes: usize) -> Message {
    let folder = tempfile::tempdir().unwrap();
    let content: Vec<u8> = (0..bytes).map(|i| (i * 31 % 251) as u8).collect();
    let path = folder.path().join("message");
    std::fs::write(&path, &content).unwrap();
    Message {
        _folder: folder,
        path,
        sha256: const_hex::encode(Sha256::digest(content)),
    }
}

fn task(operation: Operation, mode: StudyMode, message: &Message, chunk_bytes: u64) -> StudyTask {
    StudyTask {
        measure: MeasureTask {
            operation,
            inputs: inputs(),
            iterations: 5,
            warmups: 2,
            cost_ns: 1_000_000,
            sources: vec![SourceKind::None],
        },
        mode,
        size_bytes: message.path.metadata().unwrap().len(),
        file_sha256: message.sha256.clone(),
        chunk_bytes,
    }
}

fn study(toy: &Toy, task: StudyTask, message: &Message) -> StudyOutcome {
    let wanted = isolated(request(Task::Study(task), Some(toy.file())));
    let file = File::open(&message.path).unwrap();
    let run = run_on_file(&wanted, protocol::FILE_FD, file);
    match run.answer() {
        Body::Study(outcome) => outcome.as_ref().clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_signature_is_the_same_in_every_mode_and_for_every_chunk() {
    let (Some(timed), Some(stream)) = (
        build("CORRECT", Kind::Timed, &[]),
        build("CORRECT", Kind::Stream, &[]),
    ) else {
        return;
    };
    let message = message(BYTES);
    let sign =
        |toy, mode, chunk| study(toy, task(Operation::Sign, mode, &message, chunk), &message);
    let buffer = sign(&timed, StudyMode::Buffer, 0);
    let signature = buffer.signature_sha256.clone().unwrap();
    assert_eq!((buffer.bytes_read, buffer.hash_ns), (BYTES as u64, None));
    assert_eq!(buffer.file_sha256, message.sha256);
    let mapped = sign(&timed, StudyMode::Mmap, 0);
    assert_eq!(mapped.signature_sha256.as_ref(), Some(&signature));
    assert_eq!((mapped.bytes_read, mapped.read_ns), (0, None));
    for chunk in [0, 1000, 4099, 65536, 1 << 20] {
        let streamed = sign(&stream, StudyMode::Stream, chunk);
        assert_eq!(
            streamed.signature_sha256.as_ref(),
            Some(&signature),
            "{chunk}"
        );
        assert_eq!(streamed.bytes_read, 5 * BYTES as u64, "of the timed calls");
        assert!(streamed.hash_ns.unwrap() > 0 && streamed.read_ns.unwrap() > 0);
    }
    let prehashed = sign(&timed, StudyMode::PrehashSha256, 0);
    let other = sign(&timed, StudyMode::PrehashSha3, 0);
    assert_ne!(prehashed.signature_sha256.as_ref(), Some(&signature));
    assert_ne!(prehashed.signature_sha256, other.signature_sha256);
    assert_eq!(prehashed.bytes_read, 5 * BYTES as u64);
}

#[test]
fn verification_and_key_generation_are_points_too() {
    let Some(timed) = build("CORRECT", Kind::Timed, &[]) else {
        return;
    };
    let message = message(BYTES);
    let verify = |mode| study(&timed, task(Operation::Verify, mode, &message, 0), &message);
    let verified = verify(StudyMode::Mmap);
    assert_eq!(verified.measured.calls, 5);
    assert_eq!(
        verified.signature_sha256,
        verify(StudyMode::Buffer).signature_sha256
    );
    let keygen = task(Operation::Keygen, StudyMode::Buffer, &message, 0);
    let keygen = study(&timed, keygen, &message);
    assert_eq!((keygen.signature_sha256, keygen.hash_ns), (None, None));
}

#[test]
fn a_stream_holds_a_chunk_and_not_the_file() {
    let (Some(timed), Some(stream)) = (
        build("CORRECT", Kind::Timed, &[]),
        build("CORRECT", Kind::Stream, &[]),
    ) else {
        return;
    };
    let message = message(8_000_000);
    let peak = |toy, mode| {
        let mut task = task(Operation::Verify, mode, &message, 0);
        task.measure.iterations = 1;
        task.measure.warmups = 0;
        let measured = study(toy, task, &message).measured;
        assert!(
            measured.baseline_rss_bytes < 8_000_000,
            "before the message"
        );
        (measured.peak_rss_bytes, measured.baseline_rss_bytes)
    };
    let (buffered, baseline) = peak(&timed, StudyMode::Buffer);
    assert!(
        buffered > baseline + 7_000_000,
        "the baseline is from before the message"
    );
    let (streamed, _) = peak(&stream, StudyMode::Stream);
    assert!(is_emulated() || streamed < 8_000_000, "{streamed}");
    assert!(buffered > streamed + 7_000_000, "{buffered}, {streamed}");
}

#[test]
fn an_empty_message_and_another_file_than_planned() {
    let Some(timed) = build("CORRECT", Kind::Timed, &[]) else {
        return;
    };
    let empty = message(0);
    for mode in [StudyMode::Buffer, StudyMode::Mmap, StudyMode::PrehashSha256] {
        let outcome = study(&timed, task(Operation::Sign, mode, &empty, 0), &empty);
        assert!(outcome.signature_sha256.is_some());
    }
    let planned = message(BYTES);
    let fails = |task: StudyTask, file: File, code, part: &str| {
        let wanted = request(Task::Study(task), Some(timed.file()));
        run_on_file(&wanted, protocol::FILE_FD, file).fails_with(code, part);
    };
    let other = message(BYTES - 1);
    let plan = || task(Operation::Sign, StudyMode::Buffer, &planned, 0);
    fails(
        plan(),
        File::open(&other.path).unwrap(),
        FailureCode::Io,
        "no regular file of 300001",
    );
    let folder = planned.path.parent().unwrap();
    fails(
        plan(),
        File::open(folder).unwrap(),
        FailureCode::Io,
        "no regular file",
    );
    let mut wrong = plan();
    wrong.file_sha256 = other.sha256.clone();
    fails(
        wrong,
        File::open(&planned.path).unwrap(),
        FailureCode::Io,
        "was planned",
    );
    let mut large = plan();
    large.chunk_bytes = 1 << 21;
    fails(
        large,
        File::open(&planned.path).unwrap(),
        FailureCode::BadRequest,
        "at most",
    );
    let mut streaming = plan();
    streaming.mode = StudyMode::Stream;
    let file = File::open(&planned.path).unwrap();
    fails(
        streaming,
        file,
        FailureCode::LoadFail,
        "campaign_stream_open",
    );
}

#[test]
fn a_message_that_a_call_changes_is_found_out() {
    let Some(toy) = build("SIGN_CHANGES_MESSAGE", Kind::Timed, &[]) else {
        return;
    };
    let message = message(BYTES);
    for mode in [StudyMode::Buffer, StudyMode::Mmap] {
        let mut task = task(Operation::Sign, mode, &message, 0);
        task.measure.iterations = 2; // with warm-ups and preparation an odd number of changes
        let wanted = request(Task::Study(task), Some(toy.file()));
        let file = File::open(&message.path).unwrap();
        let run = run_on_file(&wanted, protocol::FILE_FD, file);
        assert!(matches!(
            run.failure().code,
            FailureCode::Contract | FailureCode::NotVerified
        ));
        let now = std::fs::read(&message.path).unwrap();
        assert_eq!(const_hex::encode(Sha256::digest(now)), message.sha256);
    }
}

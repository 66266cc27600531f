//! Requests, loading, and libraries that misbehave before anything is asked of them.

use crate::drive::{isolated, request, run, start};
use crate::toy::{named, toy};
use protocol::{Body, FailureCode, Task};
use std::os::unix::process::ExitStatusExt;
use std::process::Command;

#[test]
fn a_library_says_what_it_is() {
    let Some(toy) = toy("CORRECT") else { return };
    for wanted in [
        request(Task::Load, Some(toy.file())),
        isolated(request(Task::Load, Some(toy.file()))),
    ] {
        let run = run(&wanted);
        assert!(run.done() && run.status.success(), "{run:#?}");
        let [Body::Hello(hello), Body::Loaded(loaded), Body::Done] = run.events.as_slice() else {
            panic!("{run:#?}")
        };
        assert_eq!(hello.build_id, protocol::BUILD_ID);
        assert_eq!(
            (loaded.sizes.pk, loaded.sizes.sk, loaded.sizes.sn),
            (64, 96, 48)
        );
        let meta = |key: &str| {
            let line = loaded.meta.iter().find(|(name, _)| name == key);
            line.map(|(_, value)| value.as_str())
        };
        assert_eq!(
            (meta("instance"), meta("kind")),
            (Some("toy"), Some("timed"))
        );
    }
}

#[test]
fn the_cpu_asked_for_is_the_cpu_found() {
    let Some(toy) = toy("CORRECT") else { return };
    let mut wanted = request(Task::Load, Some(toy.file()));
    let allowed = nix::sched::sched_getaffinity(nix::unistd::Pid::from_raw(0)).unwrap();
    let cpus = (0..nix::sched::CpuSet::count()).filter(|&cpu| allowed.is_set(cpu).unwrap());
    for cpu in cpus {
        wanted.cpu = Some(cpu as u32);
        let run = run(&wanted);
        let Some(Body::Hello(hello)) = run.events.first() else {
            panic!("{run:#?}")
        };
        assert_eq!(hello.cpu, wanted.cpu);
    }
    wanted.cpu = Some(1000);
    run(&wanted).fails_with(FailureCode::Pin, "CPU 1000 cannot be used");
}

#[test]
fn files_that_are_no_library_are_refused_for_what_they_are() {
    let Some(toy) = toy("CORRECT") else { return };
    let library = std::fs::read(&toy.path).unwrap();
    let mut narrow = library.clone();
    narrow[4] = 1;
    let cases: [(&str, Vec<u8>, &str); 4] = [
        ("empty.so", Vec::new(), "is empty"),
        ("text.so", b"int main(void);\n".to_vec(), "text file"),
        ("narrow.so", narrow, "wrong ELF class"),
        (
            "cut.so",
            library[..library.len() / 3].to_vec(),
            "is cut short",
        ),
    ];
    for (name, content, part) in cases {
        let path = toy.folder().join(name);
        std::fs::write(&path, content).unwrap();
        let run = run(&isolated(request(Task::Load, Some(named(&path)))));
        run.fails_with(FailureCode::LoadFail, part);
    }
    run(&request(
        Task::Load,
        Some(protocol::LibraryFile {
            path: "/no/such/file.so".into(),
            sha256: "0".repeat(64),
        }),
    ))
    .fails_with(FailureCode::LoadFail, "No such file");
}

#[test]
fn a_library_that_was_replaced_is_refused() {
    let Some(toy) = toy("CORRECT") else { return };
    let wanted = request(Task::Load, Some(toy.file()));
    let mut content = std::fs::read(&toy.path).unwrap();
    *content.last_mut().unwrap() ^= 1;
    std::fs::write(&toy.path, content).unwrap();
    run(&wanted).fails_with(FailureCode::LoadFail, "another file than the one named");
}

#[test]
fn every_missing_symbol_is_named() {
    let Some(toy) = toy("MISSES_SYMBOL") else {
        return;
    };
    let run1 = run(&request(Task::Load, Some(toy.file())));
    run1.fails_with(FailureCode::LoadFail, "misses sig_sign:");

    // A foreign library: no adapter, so drng_algorithm is undefined and nothing else is there.
    let source = toy.folder().join("foreign.c");
    let text = "extern unsigned char drng_algorithm[165]; unsigned char f(void) { return *drng_algorithm; }";
    std::fs::write(&source, text).unwrap();
    let path = toy.folder().join("foreign.so");
    let made = Command::new(crate::toy::compiler())
        .args(["-shared", "-fPIC", "-o"])
        .arg(&path)
        .arg(&source)
        .status();
    assert!(made.unwrap().success());
    let run2 = run(&request(Task::Load, Some(named(&path))));
    run2.fails_with(FailureCode::LoadFail, "undefined symbol: drng_algorithm");
    assert!(run2.failure().text.contains("adapter.c"), "{run2:?}");
}

#[test]
fn impossible_lengths_break_the_contract() {
    for (behaviour, part) in [
        ("LENGTH_ZERO", "public key is 0 bytes"),
        ("LENGTH_HUGE", "secret key is 9223372036854775808 bytes"),
        ("LENGTH_CHANGES", "change from call to call"),
    ] {
        let Some(toy) = toy(behaviour) else { return };
        let run = run(&isolated(request(Task::Load, Some(toy.file()))));
        run.fails_with(FailureCode::Contract, part);
    }
}

#[test]
fn a_crash_while_loading_is_a_crash_and_endless_recursion_is_said() {
    let Some(toy) = toy("LOAD_CRASHES") else {
        return;
    };
    let crashed = run(&isolated(request(Task::Load, Some(toy.file()))));
    crashed.crashed();
    assert_eq!(crashed.status.signal(), Some(libc::SIGSEGV));

    let Some(toy) = crate::toy::toy("LOAD_RECURSES") else {
        return;
    };
    let run = run(&isolated(request(Task::Load, Some(toy.file()))));
    run.fails_with(
        FailureCode::StackExhausted,
        "stack exhausted at 67108864 bytes",
    );
}

#[test]
fn a_crash_while_unloading_leaves_no_last_event() {
    let Some(toy) = toy("UNLOAD_CRASHES") else {
        return;
    };
    let run = run(&isolated(request(Task::Load, Some(toy.file()))));
    run.crashed();
    assert_eq!(run.status.signal(), Some(libc::SIGSEGV));
}

#[test]
fn a_request_that_cannot_be_met_is_answered() {
    let mut other_version = request(Task::Empty { iterations: 10 }, None);
    other_version.version += 1;
    run(&other_version).fails_with(FailureCode::BadRequest, "protocol version");
    run(&request(Task::Load, None)).fails_with(FailureCode::BadRequest, "needs a library");

    let run = start(b"{ no request", None, None);
    assert_eq!(run.status.code(), Some(2));
    assert!(
        run.events.is_empty() && run.stderr.contains("bad request"),
        "{run:#?}"
    );
}

#[test]
fn tasks_without_a_library_answer() {
    let empty = run(&isolated(request(Task::Empty { iterations: 1000 }, None)));
    let Body::Empty(overhead) = empty.answer() else {
        panic!("{empty:#?}")
    };
    assert_eq!(overhead.iterations, 1000);
    assert!(overhead.clock_read_ps > 0);
    let probe = run(&isolated(request(Task::Probe { loop_adds: 1 << 16 }, None)));
    assert!(matches!(probe.answer(), Body::Probe(_)));
}

#[test]
fn the_build_id_is_printed_without_a_request() {
    let out = crate::drive::worker().arg("--build-id").output().unwrap();
    assert_eq!(
        String::from_utf8(out.stdout).unwrap().trim(),
        protocol::BUILD_ID
    );
}

//! What a library could try, tried in a child process under the worker's layers: as root where the
//! tests run as root, and as an ordinary user. Without the layers the harmless attempts succeed,
//! which shows that the tests can fail.

mod support;

use nix::sys::resource::{getrlimit, setrlimit, Resource};
use nix::unistd::{setgroups, setresgid, setresuid, Gid, Uid};
use protocol::{Isolation, Layer};
use serde::{de::DeserializeOwned, Serialize};
use std::fs::{File, OpenOptions};
use std::io;
use std::net::{TcpListener, UdpSocket};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::time::Duration;
use worker::counters::contained;
use worker::isolation;

const LIMIT: Duration = Duration::from_secs(120);

/// A number without a user behind it. 65534 would be `nobody`, which owns things on some systems.
const ORDINARY: u32 = 65000;

const ALL: Isolation = Isolation {
    drop_privileges: true,
    landlock: true,
    seccomp: true,
    namespaces: true,
    address_space_bytes: Some(8 << 30),
    cpu_seconds: Some(600),
    file_bytes: Some(1 << 20),
};

/// Who tries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum User {
    Own,
    Ordinary,
}

impl User {
    /// Root and an ordinary user; without root, whoever runs the tests.
    fn all() -> Vec<User> {
        match Uid::effective().is_root() {
            true => vec![User::Own, User::Ordinary],
            false => vec![User::Own],
        }
    }

    fn become_it(self) {
        if self == User::Ordinary {
            let (user, group) = (Uid::from_raw(ORDINARY), Gid::from_raw(ORDINARY));
            setgroups(&[]).unwrap();
            setresgid(group, group, group).unwrap();
            setresuid(user, user, user).unwrap();
        }
    }
}

/// What lies on the ground.
const FILES: [&str; 2] = ["file", "spare"];

/// A folder that every user may write to, with files that every user may change.
struct Ground {
    folder: tempfile::TempDir,
    parent: i32,
}

impl Ground {
    fn new() -> Ground {
        let folder = tempfile::tempdir().unwrap();
        let open_to_all = |path: &Path, mode| {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
        };
        open_to_all(folder.path(), 0o777);
        for name in FILES {
            std::fs::write(folder.path().join(name), "content").unwrap();
            open_to_all(&folder.path().join(name), 0o666);
        }
        Ground {
            folder,
            parent: std::process::id() as i32,
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.folder.path()).unwrap();
        let name = |entry: io::Result<std::fs::DirEntry>| entry.unwrap().file_name();
        let mut names: Vec<String> = entries
            .map(|entry| name(entry).to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }
}

/// Runs `work` in a child that has become `user` and has `wanted` installed.
fn isolated<T: Serialize + DeserializeOwned>(
    user: User,
    wanted: &Isolation,
    work: impl FnOnce(&[Layer]) -> T,
) -> T {
    let child = || {
        user.become_it();
        let layers = isolation::install(wanted, &[]);
        work(&layers)
    };
    contained(LIMIT, child).unwrap_or_else(|error| panic!("{user:?}: {error}"))
}

/// Outcome of a system call by its returned number.
fn returned(value: i64) -> io::Result<()> {
    match value {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// A system call that is tried by number. Only calls go here that change nothing when they are
/// permitted by mistake: with arguments that are wrong, absent, or what is there already.
fn call(number: i64, arguments: [i64; 4]) -> io::Result<()> {
    let [a, b, c, d] = arguments;
    // SAFETY: the callers pass numbers, null, or pointers to memory that outlives the call.
    returned(unsafe { libc::syscall(number, a, b, c, d) })
}

type Attempt = fn(&Ground) -> io::Result<()>;

/// What an ordinary program may do and a library in a worker may not.
const HARMLESS: [(&str, Attempt); 16] = [
    ("make a file", |g| File::create(g.path("made")).map(drop)),
    ("append to a file", |g| {
        OpenOptions::new()
            .append(true)
            .open(g.path("file"))
            .map(drop)
    }),
    ("open a file to read and write", |g| {
        OpenOptions::new()
            .read(true)
            .write(true)
            .open(g.path("file"))
            .map(drop)
    }),
    ("truncate a file", |g| {
        let path = std::ffi::CString::new(g.path("file").as_os_str().as_encoded_bytes())?;
        // SAFETY: the path ends with a zero byte and outlives the call.
        returned(unsafe { libc::truncate(path.as_ptr(), 3) }.into())
    }),
    ("make a folder", |g| std::fs::create_dir(g.path("folder"))),
    ("make a link", |g| {
        std::os::unix::fs::symlink("file", g.path("link"))
    }),
    ("rename a file", |g| {
        std::fs::rename(g.path("file"), g.path("renamed"))
    }),
    ("unlink a file", |g| std::fs::remove_file(g.path("spare"))),
    ("read a file of the system", |_| {
        File::open("/etc/passwd").map(drop)
    }),
    ("open a TCP socket", |_| {
        TcpListener::bind("127.0.0.1:0").map(drop)
    }),
    ("open a UDP socket", |_| {
        UdpSocket::bind("127.0.0.1:0").map(drop)
    }),
    ("open a Unix socket", |_| UnixDatagram::unbound().map(drop)),
    ("fork", |_| fork()),
    ("run a program", |_| {
        std::process::Command::new("/bin/true").status().map(drop)
    }),
    ("signal the parent", |g| {
        call(libc::SYS_kill, [g.parent.into(), 0, 0, 0])
    }),
    ("change the affinity", |_| set_affinity()),
];

/// What is refused to ordinary programs as well, or would disturb the machine.
const HARMFUL: [(&str, Attempt); 29] = [
    ("signal the group", |_| call(libc::SYS_kill, [0, 0, 0, 0])),
    ("signal a thread of the parent", |g| {
        call(libc::SYS_tgkill, [g.parent.into(), g.parent.into(), 0, 0])
    }),
    ("trace the parent", |g| {
        call(libc::SYS_ptrace, [0x4206, g.parent.into(), 0, 0])
    }), // PTRACE_SEIZE
    ("read memory of the parent", |g| read_memory_of(g.parent)),
    ("open the parent's memory", |g| {
        File::open(format!("/proc/{}/mem", g.parent)).map(drop)
    }),
    ("open the parent's memory for writing", |g| {
        OpenOptions::new()
            .write(true)
            .open(format!("/proc/{}/mem", g.parent))
            .map(drop)
    }),
    ("limit the parent", |g| {
        // A limit at an address that is not mapped: EFAULT if it gets so far.
        call(
            libc::SYS_prlimit64,
            [g.parent.into(), libc::RLIMIT_CORE as i64, 8, 0],
        )
    }),
    ("set the clock", |_| {
        call(libc::SYS_clock_settime, [0, 8, 0, 0])
    }),
    ("set the time of day", |_| {
        call(libc::SYS_settimeofday, [8, 0, 0, 0])
    }),
    ("adjust the clock", |_| {
        call(libc::SYS_adjtimex, [8, 0, 0, 0])
    }),
    ("mount", |_| call(libc::SYS_mount, [8, 8, 8, 0])),
    ("leave its namespaces", |_| {
        call(libc::SYS_unshare, [libc::CLONE_NEWNS as i64, 0, 0, 0])
    }),
    ("enter other namespaces", |_| {
        call(libc::SYS_setns, [-1, 0, 0, 0])
    }),
    ("load a BPF program", |_| call(libc::SYS_bpf, [5, 0, 0, 0])),
    ("open a counter", |_| {
        call(libc::SYS_perf_event_open, [8, 0, -1, -1])
    }),
    ("use keys", |_| call(libc::SYS_keyctl, [-1, 0, 0, 0])),
    ("watch page faults", |_| {
        call(libc::SYS_userfaultfd, [-1, 0, 0, 0])
    }),
    ("set up io_uring", |_| {
        call(libc::SYS_io_uring_setup, [0, 8, 0, 0])
    }),
    ("load a kernel", |_| {
        call(libc::SYS_kexec_load, [0, -1, 0, 0])
    }),
    ("load a module", |_| {
        call(libc::SYS_init_module, [8, 0, 8, 0])
    }),
    ("reboot", |_| call(libc::SYS_reboot, [0, 0, 0, 0])), // not the numbers that it wants
    ("open a process", |g| {
        call(libc::SYS_pidfd_open, [g.parent.into(), -1, 0, 0])
    }),
    ("make a file in memory", |_| {
        call(libc::SYS_memfd_create, [8, 0, 0, 0])
    }),
    ("put input into a terminal", |_| {
        call(libc::SYS_ioctl, [-1, libc::TIOCSTI as i64, 8, 0])
    }),
    ("change the priority", |_| {
        call(libc::SYS_setpriority, [-1, 0, 0, 0])
    }),
    ("become another user", |_| {
        call(libc::SYS_setresuid, [1, 1, 1, 0])
    }),
    ("get capabilities", |_| call(libc::SYS_capset, [8, 8, 0, 0])),
    ("become dumpable", |_| {
        call(libc::SYS_prctl, [libc::PR_SET_DUMPABLE.into(), 1, 0, 0])
    }),
    ("survive the orchestrator", |_| {
        call(libc::SYS_prctl, [libc::PR_SET_PDEATHSIG.into(), 0, 0, 0])
    }),
];

fn fork() -> io::Result<()> {
    // SAFETY: the child ends at once; the parent waits for it.
    match unsafe { libc::fork() } {
        0 => unsafe { libc::_exit(0) },
        -1 => Err(io::Error::last_os_error()),
        // SAFETY: no status is asked for.
        child => returned(unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) }.into()),
    }
}

/// Asks for the set that it has.
fn set_affinity() -> io::Result<()> {
    let set = nix::sched::sched_getaffinity(nix::unistd::Pid::from_raw(0))?;
    Ok(nix::sched::sched_setaffinity(
        nix::unistd::Pid::from_raw(0),
        &set,
    )?)
}

fn read_memory_of(process: i32) -> io::Result<()> {
    let mut byte = 0u8;
    let to = libc::iovec {
        iov_base: (&raw mut byte).cast(),
        iov_len: 1,
    };
    let from = libc::iovec {
        iov_base: (&raw mut byte).cast(),
        iov_len: 1,
    };
    // SAFETY: both descriptions are of one byte of ours; the parent has the same address mapped,
    // being what this process was forked from, and is only read.
    returned(unsafe { libc::process_vm_readv(process, &to, 1, &from, 1, 0) } as i64)
}

/// Name and errno (0: it worked) of each attempt.
fn tried(ground: &Ground, attempts: &[(&str, Attempt)]) -> Vec<(String, i32)> {
    let errno =
        |result: io::Result<()>| result.map_or_else(|e| e.raw_os_error().unwrap_or(-1), |()| 0);
    attempts
        .iter()
        .map(|(name, attempt)| (name.to_string(), errno(attempt(ground))))
        .collect()
}

fn names(layers: &[Layer]) -> Vec<&str> {
    layers.iter().map(|layer| layer.name.as_str()).collect()
}

fn active(layers: &[Layer], name: &str) -> bool {
    layers
        .iter()
        .any(|layer| layer.name == name && layer.active)
}

/// Whether the layer can be had here; says why not, once, and skips.
fn available(user: User, wanted: &Isolation, name: &str) -> bool {
    let layers = isolated(user, wanted, |layers| layers.to_vec());
    if active(&layers, name) {
        return true;
    }
    let layer = layers.iter().find(|layer| layer.name == name);
    support::skip(&format!(
        "{name} for {user:?}: {:?}",
        layer.map(|layer| &layer.detail)
    ));
    false
}

#[test]
fn without_layers_the_harmless_attempts_succeed() {
    for user in User::all() {
        let ground = Ground::new();
        let outcomes = isolated(user, &Isolation::NONE, |_| tried(&ground, &HARMLESS));
        for (name, errno) in outcomes {
            // A process of another user may not be signalled by an ordinary one anyway.
            let expected = match (user, name.as_str()) {
                (User::Ordinary, "signal the parent") => libc::EPERM,
                _ => 0,
            };
            assert_eq!(errno, expected, "{user:?}: {name}");
        }
        assert!(ground.names().contains(&"made".to_owned()));
    }
}

#[test]
fn under_all_layers_every_attempt_is_refused() {
    for user in User::all() {
        if !available(user, &ALL, "seccomp") {
            continue;
        }
        let ground = Ground::new();
        let outcomes = isolated(user, &ALL, |_| {
            [tried(&ground, &HARMLESS), tried(&ground, &HARMFUL)].concat()
        });
        assert_eq!(outcomes.len(), HARMLESS.len() + HARMFUL.len());
        for (name, errno) in outcomes {
            assert!(
                [libc::EPERM, libc::EACCES].contains(&errno),
                "{user:?}: {name}: errno {errno}"
            );
        }
        assert_eq!(ground.names(), FILES);
        assert_eq!(
            std::fs::read_to_string(ground.path("file")).unwrap(),
            "content"
        );
    }
}

#[test]
fn landlock_alone_keeps_files() {
    let wanted = Isolation {
        landlock: true,
        ..Isolation::NONE
    };
    for user in User::all() {
        if !available(user, &wanted, "landlock") {
            continue;
        }
        let ground = Ground::new();
        let (layers, outcomes) = isolated(user, &wanted, |layers| {
            (layers.to_vec(), tried(&ground, &HARMLESS[..9]))
        });
        for (name, errno) in outcomes {
            // Truncating by path came with ABI 3; before it, the layer says that it does not cover it.
            let expected = match name == "truncate a file" && leaves_open(&layers, "truncating") {
                true => 0,
                false => libc::EACCES,
            };
            assert_eq!(errno, expected, "{user:?}: {name}");
        }
        assert_eq!(ground.names(), FILES);
    }
}

/// Whether the landlock layer says that `what` is left to other layers.
fn leaves_open(layers: &[Layer], what: &str) -> bool {
    let landlock = layers.iter().find(|layer| layer.name == "landlock");
    let open = landlock.and_then(|layer| layer.detail.split_once("left to the other layers"));
    open.is_some_and(|(_, open)| open.contains(what))
}

#[test]
fn the_filter_alone_keeps_files_sockets_and_processes() {
    let wanted = Isolation {
        seccomp: true,
        ..Isolation::NONE
    };
    for user in User::all() {
        if !available(user, &wanted, "seccomp") {
            continue;
        }
        let ground = Ground::new();
        let outcomes = isolated(user, &wanted, |_| tried(&ground, &HARMLESS));
        for (name, errno) in outcomes {
            // Reading is landlock's part, so that kernels without it still load libraries.
            let expected = if name == "read a file of the system" {
                0
            } else {
                libc::EPERM
            };
            assert_eq!(errno, expected, "{user:?}: {name}");
        }
        assert_eq!(ground.names(), FILES);
    }
}

#[test]
fn a_network_namespace_alone_leads_nowhere() {
    let wanted = Isolation {
        namespaces: true,
        ..Isolation::NONE
    };
    for user in User::all() {
        if !available(user, &wanted, "namespaces") {
            continue;
        }
        let outside = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = outside.local_addr().unwrap();
        let sent = isolated(user, &wanted, |_| {
            let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
            let sent = socket.send_to(b"x", address);
            sent.map(drop).map_err(|error| error.raw_os_error())
        });
        assert_eq!(sent, Err(Some(libc::ENETUNREACH)), "{user:?}");
    }
}

#[test]
fn every_layer_is_in_force_or_says_why_not() {
    for user in User::all() {
        let layers = isolated(user, &ALL, |layers| layers.to_vec());
        assert_eq!(
            names(&layers),
            [
                "session",
                "namespaces",
                "no_new_privs",
                "capabilities",
                "not_dumpable",
                "rlimits",
                "landlock",
                "seccomp",
            ]
        );
        for layer in &layers {
            assert!(layer.detail.len() > 2, "{layer:?}");
            // The session is made by the worker's main, which does not run here.
            if !layer.active && layer.name != "session" {
                support::skip(&format!(
                    "{user:?}: {} is not available: {}",
                    layer.name, layer.detail
                ));
            }
        }
    }
}

#[test]
fn what_a_computation_needs_still_works() {
    let outcomes = |_: &[Layer]| {
        let memory = vec![1u8; 64 << 20];
        let thread = std::thread::spawn(|| 6 * 7).join().ok();
        let status = std::fs::read_to_string("/proc/self/status").is_ok();
        // SAFETY: sends nothing to itself; asks whether it may.
        let own_signal = unsafe { libc::kill(libc::getpid(), 0) };
        let mut random = [0u8; 16];
        // SAFETY: the buffer is of this length.
        let drawn = unsafe { libc::getrandom(random.as_mut_ptr().cast(), random.len(), 0) };
        std::thread::sleep(Duration::from_millis(1));
        (memory.len(), thread, status, own_signal, drawn)
    };
    for user in User::all() {
        assert_eq!(
            isolated(user, &ALL, outcomes),
            (64 << 20, Some(42), true, 0, 16),
            "{user:?}"
        );
    }
}

#[test]
fn a_library_loads_through_its_descriptor_under_all_layers() {
    let ground = Ground::new();
    let source = "#include <math.h>\ndouble half(double x) { return floor(sqrt(x) / 2.0); }\n";
    let Some(path) = support::library(ground.folder.path(), "half.so", source, &["-lm"]) else {
        return;
    };
    for user in User::all() {
        let answer = contained(LIMIT, || {
            user.become_it();
            let file = File::open(&path).unwrap();
            let layers = isolation::install(&ALL, &[file.as_fd()]);
            let by_path = File::open(ground.path("half.so.c"))
                .map(drop)
                .map_err(|e| e.raw_os_error());
            let link = format!("/proc/self/fd/{}", file.as_raw_fd());
            // SAFETY: our own library, without constructors; the symbol has this type.
            let half = unsafe {
                let library = libloading::Library::new(&link).map_err(|error| error.to_string());
                library.and_then(|library| {
                    let half = library.get::<unsafe extern "C" fn(f64) -> f64>(b"half");
                    half.map(|half| half(170.0))
                        .map_err(|error| error.to_string())
                })
            };
            (half, by_path, active(&layers, "landlock"))
        });
        let (half, by_path, landlock) = answer.unwrap();
        assert_eq!(half, Ok(6.0), "{user:?}");
        let expected = if landlock {
            Err(Some(libc::EACCES))
        } else {
            Ok(())
        };
        assert_eq!(
            by_path, expected,
            "{user:?}: a file beside it stays closed by landlock"
        );
    }
}

#[test]
fn a_sealed_copy_in_memory_loads_as_well() {
    let ground = Ground::new();
    let Some(path) = support::library(
        ground.folder.path(),
        "seven.so",
        "int seven(void) { return 7; }\n",
        &[],
    ) else {
        return;
    };
    let seven = contained(LIMIT, || {
        let flags = nix::sys::memfd::MFdFlags::MFD_CLOEXEC;
        let mut copy = File::from(nix::sys::memfd::memfd_create(c"seven", flags).unwrap());
        io::copy(&mut File::open(&path).unwrap(), &mut copy).unwrap();
        isolation::install(&ALL, &[copy.as_fd()]);
        let link = format!("/proc/self/fd/{}", copy.as_raw_fd());
        // SAFETY: as above.
        unsafe {
            let library = libloading::Library::new(&link).unwrap();
            library
                .get::<unsafe extern "C" fn() -> i32>(b"seven")
                .unwrap()()
        }
    });
    assert_eq!(seven.unwrap(), 7);
}

/// Soft and hard limits of what [`ALL`] limits: core files, memory, CPU time, size of files.
fn limits() -> [(u64, u64); 4] {
    [
        Resource::RLIMIT_CORE,
        Resource::RLIMIT_AS,
        Resource::RLIMIT_CPU,
        Resource::RLIMIT_FSIZE,
    ]
    .map(|resource| getrlimit(resource).unwrap())
}

/// What [`ALL`] asks of them.
const WANTED: [u64; 4] = [0, 8 << 30, 600, 1 << 20];

#[test]
fn limits_bind_and_closing_stops_files_and_leaves_threads() {
    for user in User::all() {
        if !available(user, &ALL, "rlimits") {
            continue;
        }
        let before = limits();
        let (after, memory, raised, layers, file, thread) = isolated(user, &ALL, |_| {
            let after = limits();
            let memory = Vec::<u8>::new().try_reserve_exact(9 << 30).is_err();
            let raised = setrlimit(Resource::RLIMIT_AS, u64::MAX, u64::MAX).is_err();
            let layers = isolation::close(&ALL);
            let file = File::open("/proc/self/status")
                .map(drop)
                .map_err(|error| error.raw_os_error());
            let thread = std::thread::Builder::new()
                .spawn(|| ())
                .map(|thread| thread.join().is_ok());
            let thread = thread.unwrap_or(false);
            (after, memory, raised, layers, file, thread)
        });
        // Soft and hard alike; what was lower already stays so.
        let expected = std::array::from_fn(|i| WANTED[i].min(before[i].1));
        assert_eq!(after, expected.map(|limit| (limit, limit)), "{user:?}");
        assert_eq!((memory, raised), (true, true), "{user:?}");
        assert_eq!(file, Err(Some(libc::EMFILE)), "{user:?}");
        assert_eq!(names(&layers), ["open_files", "processes"]);
        let filtered =
            active(&layers, "processes") && !layers[1].detail.contains("there is no filter");
        assert_eq!(thread, filtered, "{user:?}: {layers:?}");
    }
}

#[test]
fn the_limits_of_the_test_itself_are_untouched() {
    let all = || {
        let files = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
        (limits(), files)
    };
    let before = all();
    isolated(User::Own, &ALL, |_| drop(isolation::close(&ALL)));
    assert_eq!(all(), before, "layers belong to the child");
}

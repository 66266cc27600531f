//! A campaign carried to a machine without a toolchain, and back: the pack runs in an empty folder, what
//! comes back is taken over only as it was sealed.

use crate::support::lab::{self, json, End, Lab, FINE};
use crate::support::{copy_tree, files, root};
use harness::audit::audit;
use harness::config::{self, Sources};
use harness::testing::{sealed, Synthetic};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Packs the lab's campaign and unpacks it into a folder of its own, as a lab engineer would.
fn unpacked(lab: &Lab, arguments: &[&str]) -> tempfile::TempDir {
    let pack = [
        &["pack", "--system", "local", "--out", "pack.tar"][..],
        arguments,
    ]
    .concat();
    lab.campaign(&pack).expect(0);
    let elsewhere = tempfile::tempdir().unwrap();
    let tar = fs::File::open(lab.path("pack.tar")).unwrap();
    tar::Archive::new(tar).unpack(elsewhere.path()).unwrap();
    elsewhere
}

/// The pack's own program in the pack's folder, on a machine that has nothing: an empty PATH.
fn there(elsewhere: &Path, arguments: &[&str]) -> End {
    let pack = elsewhere.join("pack-local");
    let output = Command::new(pack.join("campaign"))
        .args(arguments)
        .current_dir(&pack)
        .env_clear()
        .env("PATH", elsewhere.join("nothing"))
        .env("CAMPAIGN_LOCK_DIR", elsewhere)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    End {
        status: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

#[test]
fn a_pack_runs_where_there_is_neither_cargo_nor_gcc_and_its_run_comes_back() {
    let lab = Lab::new(&[FINE], "");
    let elsewhere = unpacked(&lab, &[]);
    let pack = elsewhere.path().join("pack-local");
    let check = Command::new("sha256sum")
        .args(["-c", "--strict", "--quiet", "DIGESTS.sha256"])
        .current_dir(&pack)
        .output()
        .unwrap();
    assert!(check.status.success(), "{check:?}");
    assert!(!pack.join("sources").exists(), "no source is needed");

    there(elsewhere.path(), &["run", "--pack", "."]).expect(0);
    let run = pack.join("runs/local-quick-1");
    lab::check_complete(&run);
    let of_pack = json(&pack, "build.json");
    let of_run = json(&run, "build.json");
    assert_eq!(of_pack["rows"].as_array().unwrap().len(), 1);
    assert_eq!(of_pack["rows"], of_run["rows"]);
    let again = there(elsewhere.path(), &["run", "--pack", "."]).expect(0);
    assert!(again.stdout.contains("is complete already"), "{again}");

    let tar = Command::new("tar")
        .args(["-cf", "back.tar", "runs"])
        .current_dir(&pack)
        .status();
    assert!(tar.unwrap().success());
    let back = pack.join("back.tar").display().to_string();
    let end = lab.campaign(&["collect", &back]).expect(0);
    let home = lab.run_dir(1);
    assert!(end.stdout.contains("audit"), "{end}");
    lab::check_complete(&home);
    let report = audit(&home);
    assert_eq!(report.findings, []);
    assert_eq!(home.metadata().unwrap().permissions().mode() & 0o777, 0o700);
    for behind in ["lib", "keys"] {
        assert!(!home.join(behind).exists(), "{behind} stays there");
    }
    let once_more = lab.campaign(&["collect", &back]).expect(0);
    assert!(once_more.stdout.contains("is here already"), "{once_more}");
    assert!(!lab.run_dir(2).exists());
    // The folder itself serves as well as its archive.
    let folder = pack.display().to_string();
    let end = lab.campaign(&["collect", &folder]).expect(0);
    assert!(end.stdout.contains("is here already"), "{end}");
}

/// The project's own campaign, where only what a pack carries is there.
#[test]
fn the_configuration_of_a_pack_needs_no_source() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("campaign.toml");
    fs::copy(root().join("campaign.toml"), &file).unwrap();
    let manifests = "performance/kat";
    copy_tree(&root().join(manifests), &folder.path().join(manifests), &[]);
    let load = |sources| config::load(&file, sources);
    assert_eq!(load(Sources::Absent).unwrap().candidates.len(), 3);
    assert!(load(Sources::Required).is_err());
}

#[test]
fn the_same_campaign_gives_the_same_archive_to_the_byte() {
    let lab = Lab::new(&[FINE], "");
    let pack = |out: &str| {
        lab.campaign(&["pack", "--system", "local", "--out", out])
            .expect(0);
        fs::read(lab.path(out)).unwrap()
    };
    assert!(pack("one.tar") == pack("two.tar"));
}

#[test]
fn a_pack_whose_files_were_changed_is_refused_by_name_and_measures_nothing() {
    let lab = Lab::new(&[FINE], "");
    let elsewhere = unpacked(&lab, &[]);
    let pack = elsewhere.path().join("pack-local");
    let library = files(&pack.join("lib")).remove(0);
    for file in [
        PathBuf::from("campaign.toml"),
        PathBuf::from("lab.sha256"),
        PathBuf::from("lib").join(library),
    ] {
        let path = pack.join(&file);
        let whole = fs::read(&path).unwrap();
        let mut changed = whole.clone();
        changed.push(b'\n');
        fs::write(&path, changed).unwrap();
        let end = there(elsewhere.path(), &["run", "--pack", "."]).expect(1);
        assert!(end.stderr.contains(&*file.to_string_lossy()), "{end}");
        assert!(!pack.join("runs").exists());
        fs::write(&path, whole).unwrap();
    }
}

#[test]
fn a_run_of_what_was_not_packed_is_a_wrong_request() {
    let two = [
        FINE,
        lab::Instance {
            label: "lab-2",
            ..FINE
        },
    ];
    let lab = Lab::new(&two, "");
    let elsewhere = unpacked(&lab, &["--only", "lab-1/", "--plan", "quick"]);
    let end = there(
        elsewhere.path(),
        &["run", "--pack", ".", "--only", "lab-2/"],
    )
    .expect(2);
    assert!(end.stderr.contains("lab/lab-2/ref/reference"), "{end}");
    let empty = tempfile::tempdir().unwrap();
    let folder = empty.path().display().to_string();
    let end = there(elsewhere.path(), &["run", "--pack", &folder]).expect(2);
    assert!(end.stderr.contains("pack.json"), "{end}");
}

#[test]
fn a_worker_that_could_not_run_there_is_not_shipped() {
    let lab = Lab::new(&[FINE], "");
    let script = lab.path("script");
    fs::write(&script, "#!/bin/sh\n").unwrap();
    let script = script.display().to_string();
    let pack = ["--worker", &script, "pack", "--system", "local"];
    let end = lab.campaign(&pack).expect(3);
    assert!(end.stderr.contains("`worker` cannot be shipped"), "{end}");
    let foreign = ["pack", "--system", "local", "--program", "/bin/sh"];
    let end = lab.campaign(&foreign).expect(3);
    assert!(end.stderr.contains("of another version"), "{end}");
    assert!(!lab.path("pack-local.tar").exists());
}

#[test]
fn an_archive_takes_the_place_of_a_file_only() {
    use std::os::unix::fs::FileTypeExt;
    let lab = Lab::new(&[FINE], "");
    let (pipe, link, target) = (lab.path("pipe"), lab.path("link"), lab.path("target"));
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
    fs::write(&target, "mine").unwrap();
    std::os::unix::fs::symlink(&target, &link).unwrap();
    fs::create_dir(lab.path("folder")).unwrap();
    for name in ["pipe", "link", "folder"] {
        let end = lab
            .campaign(&["pack", "--system", "local", "--out", name])
            .expect(2);
        assert!(end.stderr.contains("no regular file"), "{name}: {end}");
    }
    assert!(fs::symlink_metadata(&pipe).unwrap().file_type().is_fifo());
    assert_eq!(fs::read_link(&link).unwrap(), target);
    assert_eq!(fs::read_to_string(&target).unwrap(), "mine");
}

// --- what comes back ---

const RECORD: &str = "records/sign-09/dove_a_128.ref.reference__sign.json";
const RUN: &str = "runs/x86_1-guide-1";

/// A folder with a campaign to collect into, and another with a sealed run.
struct Home {
    lab: Lab,
    away: tempfile::TempDir,
}

/// A campaign that is read and never run.
fn bare() -> Lab {
    let lab = Lab::bare();
    lab.configure(&[FINE], "");
    lab
}

impl Home {
    fn new() -> Home {
        let away = tempfile::tempdir().unwrap();
        sealed::write(&Synthetic::default(), &away.path().join(RUN)).unwrap();
        Home { lab: bare(), away }
    }

    fn run(&self) -> PathBuf {
        self.away.path().join(RUN)
    }

    /// An archive of the run, to which `more` adds.
    fn archive(&self, more: impl FnOnce(&mut tar::Builder<fs::File>)) -> String {
        let path = self.away.path().join("back.tar");
        let mut tar = tar::Builder::new(fs::File::create(&path).unwrap());
        tar.append_dir_all("runs", self.away.path().join("runs"))
            .unwrap();
        more(&mut tar);
        tar.finish().unwrap();
        path.display().to_string()
    }

    /// Collects, and expects that this fails with `status`, these words, and nothing taken over.
    fn refuses(&self, from: &str, status: i32, words: &str) {
        let end = self.lab.campaign(&["collect", from]).expect(status);
        assert!(end.stderr.contains(words), "{words}: {end}");
        let left = fs::read_dir(self.lab.path("runs")).unwrap().count();
        assert_eq!(left, 0, "{words}: something was taken over");
    }
}

#[test]
fn a_run_that_is_here_under_the_same_name_is_not_touched() {
    let home = Home::new();
    let other = home.lab.path(RUN);
    copy_tree(&home.run(), &other, &[]);
    let archive = home.archive(|_| {});
    home.lab.campaign(&["collect", &archive]).expect(0);
    let taken = home.lab.path("runs/x86_1-guide-2");
    assert_eq!(audit(&taken).findings, []);
    assert!(!other.join("pages").exists());
    assert!(taken.join("pages/index.html").is_file());
}

#[test]
fn a_run_is_taken_over_only_as_it_was_sealed() {
    type Tamper = fn(&Path);
    let cases: [(Tamper, &str); 7] = [
        (
            |run| append(&run.join(RECORD), " "),
            "it was changed after the run was sealed",
        ),
        (
            |run| fs::remove_file(run.join(RECORD)).unwrap(),
            "it is missing",
        ),
        (
            |run| fs::write(run.join("records/more.json"), "{}").unwrap(),
            "it was not there when the run was sealed",
        ),
        (
            |run| append(&run.join("MANIFEST.sha256"), "\n"),
            "it is not the manifest that was sealed",
        ),
        (
            |run| fs::remove_file(run.with_extension("seal")).unwrap(),
            "the seal beside it",
        ),
        (
            |run| {
                let path = run.join("journal.jsonl");
                let text = fs::read_to_string(&path).unwrap();
                fs::write(path, text.replacen("guide", "quick", 1)).unwrap();
            },
            "journal",
        ),
        (
            |run| {
                fs::remove_file(run.join(RECORD)).unwrap();
                std::os::unix::fs::symlink("/etc/hostname", run.join(RECORD)).unwrap();
            },
            "neither a file nor a folder",
        ),
    ];
    for (tamper, words) in cases {
        let home = Home::new();
        tamper(&home.run());
        let folder = home.away.path().display().to_string();
        home.refuses(&folder, 1, words);
    }
}

fn append(path: &Path, more: &str) {
    let text = fs::read_to_string(path).unwrap() + more;
    fs::write(path, text).unwrap();
}

#[test]
fn an_archive_cannot_write_beside_its_place_or_bring_what_is_no_file() {
    type More = fn(&mut tar::Builder<fs::File>);
    let cases: [(More, &str); 6] = [
        (|tar| raw(tar, "../escaped", b'0', ""), "leads elsewhere"),
        (
            |tar| raw(tar, "runs/../../escaped", b'0', ""),
            "leads elsewhere",
        ),
        (|tar| raw(tar, "/tmp/escaped", b'0', ""), "leads elsewhere"),
        (
            |tar| raw(tar, "runs/link", b'2', "/etc"),
            "neither a file nor a folder",
        ),
        (
            |tar| raw(tar, "runs/hard", b'1', "/etc/passwd"),
            "neither a file nor a folder",
        ),
        (
            |tar| raw(tar, &format!("{RUN}/campaign.json"), b'0', ""),
            "it is there twice",
        ),
    ];
    for (more, words) in cases {
        let home = Home::new();
        let archive = home.archive(more);
        home.refuses(&archive, 1, words);
        assert!(!home.lab.path("escaped").exists());
        assert!(!home.lab.path("runs/escaped").exists());
    }
}

/// An entry as a crafted archive has it: the library that writes archives would refuse the name.
fn raw(tar: &mut tar::Builder<fs::File>, name: &str, kind: u8, link: &str) {
    let mut header = tar::Header::new_gnu();
    let bytes = header.as_mut_bytes();
    bytes[..name.len()].copy_from_slice(name.as_bytes());
    bytes[157..157 + link.len()].copy_from_slice(link.as_bytes());
    header.set_entry_type(tar::EntryType::new(kind));
    let content: &[u8] = if kind == b'0' { b"escaped" } else { b"" };
    header.set_size(content.len() as u64);
    header.set_mode(0o644);
    header.set_cksum();
    tar.append(&header, content).unwrap();
}

#[test]
fn what_holds_no_run_or_none_that_is_finished_is_a_wrong_request() {
    let home = Home::new();
    let path = home.away.path().join("nothing");
    fs::create_dir(&path).unwrap();
    home.refuses(&path.display().to_string(), 2, "holds no run");
    // What a checkout has published did not come back.
    let checkout = home.away.path().join("checkout");
    let data = checkout.join("performance/data/x86_1");
    copy_tree(&home.run(), &data.join("public-2026"), &[]);
    fs::copy(
        home.run().with_extension("seal"),
        data.join("public-2026.seal"),
    )
    .unwrap();
    home.refuses(&checkout.display().to_string(), 2, "holds no run");
    fs::remove_dir_all(&checkout).unwrap();
    let text = home.away.path().join("text");
    fs::write(&text, "no archive").unwrap();
    home.refuses(&text.display().to_string(), 2, "tar archive");
    let journal = home.run().join("journal.jsonl");
    let lines = fs::read_to_string(&journal).unwrap();
    let open: Vec<&str> = lines
        .lines()
        .filter(|l| !l.contains("\"sealed\""))
        .collect();
    fs::write(&journal, open.join("\n") + "\n").unwrap();
    let folder = home.away.path().display().to_string();
    home.refuses(&folder, 2, "is not sealed");
}

//! The build phase on small candidates in folders of their own, and on the real ones.

use crate::support::lab::{self, FINE};
use crate::support::{have, root, skip};
use harness::build::{
    build_all, cpu_model, elf_figures, features_for, refuses, BuildError, Context, Features,
    Progress, EMULATED,
};
use harness::config::{
    self, Arch, Build, Campaign, Candidate, Code, Instance, Kat, KeyPer, Report, ReportKind,
    System, Wrap, WrapFunction,
};
use harness::evidence::{BuildFile, BuildRow, FlagsKind, Origin, ReasonCode, Status};
use harness::identity::Identity;
use harness::process::Stop;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// A whole candidate in one file: it hashes and draws through the helper functions.
const CANDIDATE: &str = r#"
#include <assert.h>
#include <string.h>
#include "auxfunc.h"
#include "drng.h"
#include "sig_api.h"
#include "sizes.h"
unsigned long long sig_get_pk_len_bytes(void) { return PK; }
unsigned long long sig_get_sk_len_bytes(void) { return SK; }
unsigned long long sig_get_sn_len_bytes(void) { return SN; }
int sig_keygen(unsigned char *pk, unsigned long long *pk_len, unsigned char *sk, unsigned long long *sk_len)
{
    assert(pk_len != 0); /* __FILE__ ends up in the library */
    *pk_len = PK;
    *sk_len = SK;
    if (get_random_number(&drng_algorithm, sk, 8 * SK) != 0)
        return -2;
    return pseudoXOF(8 * PK, sk, 8 * SK, pk);
}
int sig_sign(unsigned char *sk, unsigned long long sk_len, unsigned char *m, unsigned long long m_len,
             unsigned char *sn, unsigned long long *sn_len)
{
    (void)m; (void)m_len;
    *sn_len = SN;
    return pseudoXOF(8 * SN, sk, 8 * sk_len, sn);
}
int sig_verify(unsigned char *pk, unsigned long long pk_len, unsigned char *sn, unsigned long long sn_len,
               unsigned char *m, unsigned long long m_len)
{
    (void)pk_len; (void)sn_len; (void)m; (void)m_len;
    return pk[0] == sn[0] ? 0 : -1;
}
"#;

const SIZES: &str = "#define PK 32\n#define SK 32\n#define SN 64\n";

/// A campaign in a folder of its own; its cache lies there too.
struct Lab {
    dir: tempfile::TempDir,
    campaign: Campaign,
}

impl Lab {
    /// A campaign with the candidate above under the name `toy`, and no builds yet.
    fn new() -> Lab {
        Lab::below("root")
    }

    /// The same, with its root at `path` below the temporary folder.
    fn below(path: &str) -> Lab {
        let dir = tempfile::tempdir().unwrap();
        let root_dir = dir.path().join(path);
        for file in ["auxfunc.c", "drng.c", "sm3.c", "sm3.h"] {
            let to = root_dir.join("iccs").join(file);
            std::fs::create_dir_all(to.parent().unwrap()).unwrap();
            std::fs::copy(root().join("drivers/iccs").join(file), to).unwrap();
        }
        let lab = Lab {
            dir,
            campaign: campaign(root_dir),
        };
        lab.write("toy/toy.c", CANDIDATE);
        lab.write("toy/sizes.h", SIZES);
        lab
    }

    fn root(&self) -> &Path {
        &self.campaign.root
    }

    fn run_dir(&self) -> PathBuf {
        self.dir.path().join("run")
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.root().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// Adds a build by its flags, and lets every code have it.
    fn with_build(mut self, name: &str, cflags: &str) -> Lab {
        let flags: Vec<String> = cflags.split_whitespace().map(str::to_owned).collect();
        self.campaign.builds.insert(
            name.to_owned(),
            Build {
                name: name.to_owned(),
                cflags: [Arch::X86_64, Arch::Aarch64]
                    .map(|arch| (arch, flags.clone()))
                    .into(),
                requires: BTreeMap::new(),
            },
        );
        for code in &mut self.campaign.candidates[0].instances[0].codes {
            code.builds.push(name.to_owned());
        }
        self
    }

    fn code(&mut self) -> &mut Code {
        &mut self.campaign.candidates[0].instances[0].codes[0]
    }

    fn candidate(&mut self) -> &mut Candidate {
        &mut self.campaign.candidates[0]
    }

    /// Builds everything for this machine.
    fn build(&self) -> BuildFile {
        self.try_build(&self.native_system(), Features::NotAsked, &Stop::new())
            .unwrap()
    }

    /// The only row.
    fn row(&self) -> BuildRow {
        let file = self.build();
        assert_eq!(file.rows.len(), 1);
        file.rows[0].clone()
    }

    /// The only row, which must have been built.
    fn complete_row(&self) -> BuildRow {
        let row = self.row();
        assert_eq!(
            row.status,
            Status::Complete,
            "{:?}\n{:?}",
            row.reason,
            row.log
        );
        row
    }

    fn native_system(&self) -> System {
        native_system()
    }

    fn try_build(
        &self,
        system: &System,
        features: Features,
        stop: &Stop,
    ) -> Result<BuildFile, BuildError> {
        self.observed_build(system, features, stop).0
    }

    /// Result, files reported as written, and the number of rows that had to be built.
    fn observed_build(
        &self,
        system: &System,
        features: Features,
        stop: &Stop,
    ) -> (Result<BuildFile, BuildError>, Vec<String>, usize) {
        std::fs::create_dir_all(self.run_dir()).unwrap();
        let written = RefCell::new(Vec::new());
        let planned = Mutex::new(0);
        let result = build_all(
            &self.campaign,
            system,
            &self.campaign.identities(system.arch),
            &mut Context {
                run_dir: &self.run_dir(),
                features,
                streams: false,
                jobs: None,
                stop,
                before_writing: &mut |path, sha256| {
                    written
                        .borrow_mut()
                        .push((path.to_owned(), sha256.to_owned()));
                    Ok(())
                },
                on_progress: &|progress| {
                    if let Progress::Planned(rows) = progress {
                        *planned.lock().unwrap() = rows;
                    }
                },
            },
        );
        let planned = *planned.lock().unwrap();
        // The journal hears of a file before it is there: the digest is that of what then came.
        let (files, digests): (Vec<String>, Vec<String>) = written.into_inner().into_iter().unzip();
        if result.is_ok() {
            for (path, sha256) in files.iter().zip(digests) {
                let file = std::fs::read(self.run_dir().join(path)).unwrap();
                assert_eq!(harness::hash::sha256(&file), sha256);
            }
        }
        (result, files, planned)
    }

    /// Content of a library of the row.
    fn library(&self, row: &BuildRow, kind: &str) -> Vec<u8> {
        let library = &row.libraries[kind];
        let bytes = std::fs::read(self.run_dir().join(&library.file)).unwrap();
        assert_eq!(harness::hash::sha256(&bytes), library.sha256);
        assert_eq!(bytes.len() as u64, library.bytes.unwrap());
        bytes
    }

    /// Throws the run away; the cache stays.
    fn forget_run(&self) {
        std::fs::remove_dir_all(self.run_dir()).unwrap();
    }
}

/// This machine with its own compiler.
fn native_system() -> System {
    System {
        id: "here".into(),
        arch: Arch::host().unwrap(),
        cpu_model: ".".into(),
        cc: "gcc".into(),
        runner: vec![],
        description: None,
    }
}

fn campaign(root: PathBuf) -> Campaign {
    let helper = |group: &str, symbol: &str| WrapFunction {
        symbol: symbol.into(),
        group: group.into(),
        name: if group == "drng" { "drng" } else { symbol }.into(),
        prototype: None,
        in_bits: None,
        out_bits: None,
    };
    Campaign {
        root,
        sha256: "0".repeat(64),
        report: Report {
            kind: ReportKind::Independent,
            title: "test".into(),
            reference: None,
        },
        systems: vec![],
        builds: BTreeMap::new(),
        candidates: vec![Candidate {
            id: "toy".into(),
            name: "Toy".into(),
            category: "public-key algorithm".into(),
            function: "digital signature".into(),
            origin: Origin::Independent,
            specification: None,
            links: BTreeMap::new(),
            source_crates: None,
            kat: Kat {
                flow: protocol::KatFlow::Iccs,
                manifest: "kat".into(),
            },
            wrap: Wrap::Listed(vec![
                helper("hash", "pseudohash"),
                helper("hash", "pseudoXOF"),
                helper("hash", "sm3hash"),
                helper("drng", "get_random_number"),
            ]),
            kat_issues: vec![],
            instances: vec![Instance {
                label: "toy_1".into(),
                security_bits: None,
                key_per: KeyPer::Trial,
                unauthenticated_signature_bytes: vec![],
                rejected_counter: None,
                codes: vec![Code {
                    name: "ref".into(),
                    sources: vec!["toy/*.c".into(), "iccs/*.c".into()],
                    include: vec!["toy".into(), "iccs".into()],
                    defines: vec!["TOY=1".into()],
                    extra_cflags: vec![],
                    fallback_cflags: None,
                    archs: vec![],
                    requires: vec![],
                    builds: vec![],
                    library: None,
                }],
            }],
        }],
        plans: BTreeMap::new(),
        study: None,
    }
}

const REFERENCE: &str = "-std=c99 -Wpedantic -Wall -Wextra -O2";

/// Names that a library exports.
fn exports(library: &[u8]) -> BTreeSet<String> {
    use object::{Object, ObjectSymbol};
    object::File::parse(library)
        .unwrap()
        .dynamic_symbols()
        .filter(|s| s.is_definition())
        .map(|s| s.name().unwrap().to_owned())
        .collect()
}

fn contains(haystack: &[u8], needle: &str) -> bool {
    haystack
        .windows(needle.len())
        .any(|window| window == needle.as_bytes())
}

#[test]
fn an_identity_gets_three_libraries_from_its_objects() {
    let lab = Lab::new().with_build("reference", REFERENCE);
    let row = lab.complete_row();
    assert_eq!(row.identity.to_string(), "toy/toy_1/ref/reference");
    assert_eq!(row.compiler, "gcc");
    assert!(
        row.compiler_version.contains("gcc"),
        "{}",
        row.compiler_version
    );
    assert!(
        row.flags
            .starts_with("-std=c99 -Wpedantic -Wall -Wextra -O2 -fPIC -DTOY=1"),
        "{}",
        row.flags
    );
    assert!(
        row.flags
            .ends_with("-I toy -I iccs -I drivers/abi -I drivers/abi/include"),
        "{}",
        row.flags
    );
    assert!(row
        .link_flags
        .as_ref()
        .unwrap()
        .contains("-Wl,-z,noexecstack -Wl,-z,defs -Wl,--version-script=drivers/abi/export.map"));
    assert_eq!(row.flags_kind, FlagsKind::Guide);
    assert_eq!(row.warnings, Some(vec![]));
    assert_eq!(row.log, None);
    assert_eq!(row.native, None);
    assert_eq!(row.lto_removed, Some(false));
    // toy.c, sizes.h, sm3.c, sm3.h, auxfunc.c, drng.c; adapter.c and its four headers
    assert_eq!(row.source_files, Some(11));

    let kinds: Vec<_> = row.libraries.keys().map(String::as_str).collect();
    assert_eq!(kinds, ["memory", "profile", "timed"]);
    let timed = lab.library(&row, "timed");
    let names = exports(&timed);
    for name in [
        "sig_keygen",
        "sig_sign",
        "sig_verify",
        "drng_algorithm",
        "campaign_meta",
        "campaign_seed",
    ] {
        assert!(names.contains(name), "{name} is not in {names:?}");
    }
    for hidden in [
        "campaign_draw",
        "pseudoXOF",
        "get_random_number",
        "iccs_sm3_init",
    ] {
        assert!(!names.contains(hidden), "{hidden} is exported");
    }
    assert!(contains(&timed, "instance=toy_1\nkind=timed\n"));
    let profile = lab.library(&row, "profile");
    assert!(exports(&profile).contains("campaign_profile_rows"));
    assert!(contains(&profile, "kind=profile\n"));
    let memory = lab.library(&row, "memory");
    assert!(exports(&memory).contains("campaign_memory_peak"));
    assert!(contains(&memory, "kind=memory\n"));

    let wrapped: Vec<_> = row
        .wrapped
        .iter()
        .map(|w| (w.symbol.as_str(), w.name.as_str()))
        .collect();
    assert_eq!(
        wrapped,
        [("get_random_number", "drng"), ("pseudoXOF", "pseudoXOF")]
    );
    assert_eq!(row.not_wrapped, ["pseudohash", "sm3hash"]);
    let elf = row.elf.unwrap();
    assert_eq!(elf, elf_figures(&timed).unwrap());
    assert_eq!(elf.needed.unwrap(), ["libc.so.6"]);
}

#[test]
fn a_run_that_is_built_is_left_alone_and_a_lost_library_is_made_again() {
    let lab = Lab::new().with_build("reference", REFERENCE);
    let (first, written, planned) =
        lab.observed_build(&lab.native_system(), Features::NotAsked, &Stop::new());
    assert_eq!(
        (written.as_slice(), planned),
        (&["build.json".to_owned()][..], 1)
    );
    let first = first.unwrap();
    // Not even the compiler is asked for.
    let system = System {
        cc: "no-such-compiler".into(),
        ..lab.native_system()
    };
    let (second, written, planned) = lab.observed_build(&system, Features::NotAsked, &Stop::new());
    assert_eq!((written.len(), planned), (0, 0));
    assert_eq!(second.unwrap(), first);

    std::fs::remove_file(lab.run_dir().join(&first.rows[0].libraries["memory"].file)).unwrap();
    let (third, written, planned) =
        lab.observed_build(&lab.native_system(), Features::NotAsked, &Stop::new());
    assert_eq!(
        (third.unwrap(), written.len(), planned),
        (first.clone(), 0, 1)
    );
    lab.library(&first.rows[0], "memory");
}

/// Files of the cache with their times.
fn cached(lab: &Lab) -> BTreeMap<PathBuf, std::time::SystemTime> {
    fn walk(dir: &Path, into: &mut BTreeMap<PathBuf, std::time::SystemTime>) {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(&path, into);
            } else {
                let time = path.metadata().unwrap().modified().unwrap();
                into.insert(path, time);
            }
        }
    }
    let mut files = BTreeMap::new();
    walk(&lab.root().join("target/campaign-cache/made"), &mut files);
    files
}

#[test]
fn the_cache_serves_what_is_unchanged_and_never_what_is_not() {
    let mut lab = Lab::new().with_build("reference", REFERENCE);
    lab.code().include.insert(0, "early".into());
    std::fs::create_dir_all(lab.root().join("early")).unwrap();
    let original = lab.complete_row();
    let digest = |row: &BuildRow| row.libraries["timed"].sha256.clone();
    let files = cached(&lab);

    // A new run from the same sources compiles and links nothing.
    lab.forget_run();
    assert_eq!(lab.complete_row(), original);
    assert_eq!(cached(&lab), files);

    // A changed header.
    lab.write("toy/sizes.h", &SIZES.replace("SN 64", "SN 96"));
    lab.forget_run();
    let changed = lab.complete_row();
    assert_ne!(digest(&changed), digest(&original));
    assert_ne!(changed.source_sha256, original.source_sha256);
    // The unchanged files are not compiled again: one object, three libraries, a label for each.
    assert_eq!(cached(&lab).len() - files.len(), 2 * 4);

    // The old header back: the old library, from the cache.
    lab.write("toy/sizes.h", SIZES);
    lab.forget_run();
    let before = cached(&lab);
    assert_eq!(lab.complete_row(), original);
    assert_eq!(cached(&lab), before);

    // A header of that name in an earlier folder: nothing that was read last time has changed.
    // (The one beside the source still comes first, so that it has to go.)
    std::fs::rename(
        lab.root().join("toy/sizes.h"),
        lab.root().join("iccs/sizes.h"),
    )
    .unwrap();
    lab.forget_run();
    assert_eq!(digest(&lab.complete_row()), digest(&original));
    lab.write("early/sizes.h", &SIZES.replace("SN 64", "SN 128"));
    lab.forget_run();
    assert_ne!(digest(&lab.complete_row()), digest(&original));

    // Other flags.
    std::fs::remove_file(lab.root().join("early/sizes.h")).unwrap();
    lab.code().extra_cflags = vec!["-O1".into()];
    lab.forget_run();
    assert_ne!(digest(&lab.complete_row()), digest(&original));
}

#[test]
fn a_file_that_only_the_assembler_reads_is_noticed() {
    let mut lab = Lab::new().with_build("reference", REFERENCE);
    lab.code().sources.push("toy/table.S".into());
    lab.write("toy/table.S", ".section .rodata\n.globl table\n.hidden table\ntable:\n.include \"table.inc\"\n.section .note.GNU-stack,\"\",%progbits\n");
    lab.write("toy/table.inc", ".byte 1\n");
    let first = lab.complete_row();
    lab.write("toy/table.inc", ".byte 2\n");
    lab.forget_run();
    let second = lab.complete_row();
    assert_ne!(
        first.libraries["timed"].sha256,
        second.libraries["timed"].sha256
    );
    assert_ne!(first.source_sha256, second.source_sha256);
}

#[test]
fn a_source_that_does_not_compile_is_a_row_with_its_log_and_the_rest_goes_on() {
    let mut lab = Lab::new().with_build("reference", REFERENCE);
    let mut broken = lab.campaign.candidates[0].instances[0].clone();
    broken.label = "broken".into();
    broken.codes[0].sources.push("broken/*.c".into());
    lab.write(
        "broken/b.c",
        "#include \"sizes.h\"\nint f(void) { return undeclared; }\n",
    );
    lab.campaign.candidates[0].instances.push(broken);
    let mut missing = lab.campaign.candidates[0].instances[0].clone();
    missing.label = "missing".into();
    missing.codes[0].sources = vec!["nowhere/*.c".into()];
    lab.campaign.candidates[0].instances.push(missing);
    let mut unlinked = lab.campaign.candidates[0].instances[0].clone();
    unlinked.label = "unlinked".into();
    unlinked.codes[0].sources = vec!["toy/*.c".into()];
    lab.campaign.candidates[0].instances.push(unlinked);

    let rows = lab.build().rows;
    let row = |label: &str| rows.iter().find(|r| r.identity.label == label).unwrap();
    assert_eq!(row("toy_1").status, Status::Complete);

    let broken = row("broken");
    assert_eq!(broken.status, Status::Failed);
    let reason = broken.reason.as_ref().unwrap();
    assert_eq!(reason.code, ReasonCode::BuildFailed);
    assert!(
        reason.text.contains("compiling broken/b.c failed"),
        "{}",
        reason.text
    );
    let log = broken.log.as_ref().unwrap();
    assert!(
        log.contains("broken/b.c:2") && log.contains("undeclared"),
        "{log}"
    );
    assert!(!log.contains(lab.dir.path().to_str().unwrap()), "{log}");
    assert!(broken.libraries.is_empty());
    let missing = lab.build().missing;
    let place = rows
        .iter()
        .position(|r| r.identity.label == "broken")
        .unwrap();
    assert_eq!(
        missing[&format!("/rows/{place}/elf")].code,
        ReasonCode::BuildFailed
    );

    let missing = row("missing").reason.as_ref().unwrap();
    assert_eq!(missing.text, "no file matches the source `nowhere/*.c`");

    let unlinked = row("unlinked");
    let log = unlinked.log.as_ref().unwrap();
    assert!(log.contains("linking the timed library failed"), "{log}");
    assert!(log.contains("pseudoXOF"), "{log}");
    assert!(!log.contains(lab.dir.path().to_str().unwrap()), "{log}");
}

#[test]
fn a_row_that_failed_is_tried_again_once_its_source_is_mended() {
    let lab = Lab::new().with_build("reference", REFERENCE);
    lab.write("toy/more.c", "#error not yet\n");
    assert_eq!(lab.row().status, Status::Failed);
    lab.write("toy/more.c", "typedef int more;\n");
    assert_eq!(lab.complete_row().reason, None);
}

#[test]
fn warnings_are_recorded_without_paths_of_this_machine() {
    let lab = Lab::new().with_build("reference", REFERENCE);
    lab.write(
        "toy/w.c",
        "int w(int unused);\nint w(int unused) { int never; return 0; }\n",
    );
    let row = lab.complete_row();
    let text = row.warnings.as_ref().unwrap().join("\n");
    assert!(text.contains("toy/w.c:2:"), "{text}");
    assert!(
        text.contains("[-Wunused-parameter]") && text.contains("[-Wunused-variable]"),
        "{text}"
    );
    assert!(!text.contains(lab.dir.path().to_str().unwrap()), "{text}");
    // They are kept with the object: a build from the cache has them too.
    lab.forget_run();
    assert_eq!(lab.complete_row().warnings, row.warnings);
}

#[test]
fn a_candidate_that_does_not_build_with_the_guides_flags_gets_its_own_and_says_so() {
    let mut lab = Lab::new().with_build("reference", REFERENCE);
    lab.write(
        "toy/gnu.c",
        "#ifdef __STRICT_ANSI__\n#error GNU C is needed\n#endif\ntypedef int gnu;\n",
    );
    assert_eq!(lab.row().status, Status::Failed);
    lab.code().fallback_cflags = Some(vec!["-std=gnu99".into(), "-O1".into()]);
    let row = lab.complete_row();
    assert_eq!(row.flags_kind, FlagsKind::HarnessDefault);
    assert!(
        row.flags.starts_with("-std=gnu99 -O1 -fPIC"),
        "{}",
        row.flags
    );
    assert!(row.log.unwrap().contains("GNU C is needed"));
    assert_eq!(row.libraries.len(), 3);
}

#[test]
fn a_compiler_that_is_missing_is_named_with_its_package() {
    let lab = Lab::new().with_build("reference", REFERENCE);
    let other = match Arch::host().unwrap() {
        Arch::X86_64 => (Arch::Aarch64, "gcc-aarch64-linux-gnu"),
        Arch::Aarch64 => (Arch::X86_64, "gcc-x86-64-linux-gnu"),
    };
    // On the machine's own architecture too: the compiler that was asked for, or none.
    for (arch, package) in [other, (Arch::host().unwrap(), "gcc")] {
        let system = System {
            arch,
            cc: "no-such-compiler".into(),
            ..lab.native_system()
        };
        let error = lab
            .try_build(&system, Features::NotAsked, &Stop::new())
            .unwrap_err();
        let text = error.to_string();
        assert!(
            matches!(error, BuildError::MissingCompiler { .. }),
            "{text}"
        );
        assert!(
            text.contains("`no-such-compiler`") && text.contains(package),
            "{text}"
        );
        assert!(!lab.run_dir().join("build.json").exists());
    }
}

#[test]
fn a_compiler_of_another_machine_is_refused() {
    let lab = Lab::new().with_build("reference", REFERENCE);
    let arch = match Arch::host().unwrap() {
        Arch::X86_64 => Arch::Aarch64,
        Arch::Aarch64 => Arch::X86_64,
    };
    let system = System {
        arch,
        ..lab.native_system()
    };
    let error = lab
        .try_build(&system, Features::NotAsked, &Stop::new())
        .unwrap_err();
    assert!(matches!(error, BuildError::WrongTarget { .. }), "{error}");
}

#[test]
fn a_compiler_that_cannot_build_a_library_is_unfit() {
    let lab = Lab::new().with_build("reference", REFERENCE);
    let fake = lab.root().join("half-a-gcc");
    let script = "#!/bin/sh\nfor a; do case $a in --version) echo gcc 0;; -dumpmachine) echo ARCH-linux-gnu;; \
                  -shared) echo stdlib.h: No such file >&2; exit 1;; esac; done\n";
    lab.write(
        "half-a-gcc",
        &script.replace("ARCH", Arch::host().unwrap().word()),
    );
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(&fake, std::fs::Permissions::from_mode(0o755)).unwrap();
    let system = System {
        cc: fake.to_str().unwrap().into(),
        ..lab.native_system()
    };
    let error = lab
        .try_build(&system, Features::NotAsked, &Stop::new())
        .unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, BuildError::UnfitCompiler { .. }), "{text}");
    assert!(
        text.contains("stdlib.h: No such file") && text.contains("libc6-dev"),
        "{text}"
    );
}

#[test]
fn what_the_cpu_cannot_run_is_skipped_with_the_reason() {
    let mut lab = Lab::new().with_build("reference", REFERENCE);
    lab.code().requires = vec!["warp_drive".into()];
    let features = features_for(&lab.native_system());
    let file = lab
        .try_build(&lab.native_system(), features, &Stop::new())
        .unwrap();
    let row = &file.rows[0];
    assert_eq!(row.status, Status::Skipped);
    let reason = row.reason.as_ref().unwrap();
    assert_eq!(reason.code, ReasonCode::CpuFeature);
    assert!(
        reason.text.starts_with("needs warp_drive, which "),
        "{}",
        reason.text
    );
    assert!(row.libraries.is_empty());
}

#[test]
fn link_time_optimisation_is_for_the_timed_library_only() {
    let lab = Lab::new()
        .with_build("performance", "-O3 -flto -fomit-frame-pointer -std=c99")
        .with_build("plain", "-O3 -fomit-frame-pointer -std=c99");
    let rows = lab.build().rows;
    let [fast, plain] = &rows[..] else {
        panic!("{rows:?}")
    };
    assert_eq!(
        (fast.lto_removed, plain.lto_removed),
        (Some(true), Some(false))
    );
    assert!(fast.flags.contains("-flto") && fast.link_flags.as_ref().unwrap().contains("-flto"));
    assert_eq!(fast.wrapped, plain.wrapped);
    assert_eq!(fast.wrapped.len(), 2);
    // Without -flto the two builds are the same: so are their wrapped libraries.
    assert_eq!(fast.libraries["profile"], plain.libraries["profile"]);
    assert_eq!(fast.libraries["memory"], plain.libraries["memory"]);
    assert_ne!(fast.libraries["timed"], plain.libraries["timed"]);
}

#[test]
fn libraries_are_the_same_in_every_checkout() {
    let labs = [
        Lab::below("a"),
        Lab::below("somewhere else/with a = sign/and much deeper"),
        Lab::below("a much longer name of a checkout than the first one has"),
    ]
    .map(|lab| {
        lab.with_build("reference", REFERENCE)
            .with_build("performance", "-O3 -flto -std=c99")
            .with_build("debug", "-O2 -g -std=c99")
    });
    let [first, odd, long] = labs.each_ref().map(|lab| lab.build().rows);
    assert_eq!((first.len(), odd.len()), (3, 3));
    for row in &first {
        assert_eq!(row.status, Status::Complete, "{:?}", row.log);
        assert_eq!(row.libraries.len(), 3, "{}", row.identity);
        let path = labs[0].dir.path().to_str().unwrap();
        for kind in row.libraries.keys() {
            let bytes = labs[0].library(row, kind);
            assert!(!contains(&bytes, path), "{} {kind}", row.identity);
        }
    }
    assert_eq!(first, long);
    // gcc cannot map a folder with `=`, which matters to debug information alone.
    for (a, b) in first
        .iter()
        .zip(&odd)
        .filter(|(a, _)| a.identity.build != "debug")
    {
        assert_eq!(a.libraries, b.libraries);
    }
}

#[test]
fn static_figures_do_not_depend_on_the_linkers_page_alignment() {
    let mut lab = Lab::new();
    // What could move: relocated constants, aligned data of several kinds, a large bss.
    lab.write(
        "toy/data.c",
        "extern int a, b; int b = 2;\n\
         static const int *const table[] = {&a, &b};\n\
         static char aligned[100] __attribute__((aligned(64))) = {1};\n\
         static char page[5000] __attribute__((aligned(4096)));\n\
         static const char text[777] = {3};\n\
         static __thread int per_thread; static __thread int initialised = 5;\n\
         int a = 1;\n\
         const void *data(int n);\n\
         const void *data(int n) { per_thread++; initialised++; page[n]++; aligned[n % 100]++; return n ? (const void *)table[n % 2] : text + n; }\n",
    );
    let sizes = ["0x1000", "0x10000", "0x200000"];
    lab.code().sources.push("toy/data.c".into());
    for size in sizes {
        for (name, flags) in [("plain", ""), ("joined", "-Wl,-z,noseparate-code")] {
            lab = lab.with_build(
                &format!("{name}{size}"),
                &format!("-O2 -Wl,-z,max-page-size={size} {flags}"),
            );
        }
    }
    assert_same_figures(&lab.build().rows, sizes.len());
    if Arch::host() == Some(Arch::X86_64) && have("aarch64-linux-gnu-gcc", "gcc-aarch64-linux-gnu")
    {
        // There text and constants share a segment, and pages of 64 KiB are the usual alignment.
        lab.forget_run();
        let system = arm_system(&lab);
        let file = lab.try_build(&system, Features::NotAsked, &Stop::new());
        assert_same_figures(&file.unwrap().rows, sizes.len());
    }
}

/// The figures of the builds `plain...` are the same, and so are those of `joined...`.
fn assert_same_figures(rows: &[BuildRow], sizes: usize) {
    let digests: BTreeSet<_> = rows.iter().map(|r| &r.libraries["timed"].sha256).collect();
    assert!(
        digests.len() >= sizes,
        "the alignment must have reached the linker"
    );
    for name in ["plain", "joined"] {
        let figures: Vec<_> = rows
            .iter()
            .filter(|r| r.identity.build.starts_with(name))
            .map(|r| r.elf.clone().unwrap())
            .collect();
        assert_eq!(figures.len(), sizes);
        assert!(figures.iter().all(|f| *f == figures[0]), "{figures:#?}");
        let f = &figures[0];
        assert!(f.bss >= Some(5000) && f.data >= Some(116) && f.rodata >= Some(777));
        let parts = [f.text, f.rodata, f.data, f.bss, f.headers_and_tables];
        assert_eq!(parts.iter().map(|p| p.unwrap()).sum::<u64>(), f.load_bytes);
    }
}

#[test]
fn a_derived_hash_function_without_a_prototype_fails_the_row_and_is_named() {
    let mut lab = Lab::new().with_build("reference", REFERENCE);
    lab.write(
        "toy/keccak.c",
        "int toy_keccak(int x); int toy_keccak(int x) { return x + 1; }\n",
    );
    lab.write(
        "toy/user.c",
        "int toy_keccak(int x); int user(int x); int user(int x) { return toy_keccak(x); }\n",
    );
    lab.write("table.toml", "derive = '(^|_)keccak'\nfunction = []\n");
    lab.candidate().wrap = Wrap::Derived("table.toml".into());
    let row = lab.row();
    assert_eq!(row.status, Status::Failed);
    let text = &row.reason.as_ref().unwrap().text;
    assert!(
        text.contains("`toy_keccak`") && text.contains("`table.toml`"),
        "{text}"
    );
    lab.write(
        "table.toml",
        "derive = '(^|_)keccak'\n[[function]]\npattern = 'keccak$'\nprototype = \"int {symbol}(int x)\"\n\
         in_bits = \"32\"\nout_bits = \"32\"\nname = \"$0\"\ngroup = \"hash\"\n",
    );
    let row = lab.complete_row();
    assert_eq!(row.wrapped.len(), 1);
    assert_eq!(row.wrapped[0].name, "toy_keccak");
}

#[test]
fn any_function_can_be_listed_with_its_prototype() {
    let mut lab = Lab::new().with_build("reference", REFERENCE);
    lab.write("toy/own.c", "#include <stddef.h>\nint own(unsigned char *o, const unsigned char *i, size_t n); int own(unsigned char *o, const unsigned char *i, size_t n) { o[0] = i[n]; return 0; }\n");
    lab.write("toy/user.c", "#include <stddef.h>\nint own(unsigned char *o, const unsigned char *i, size_t n); int user(unsigned char *x); int user(unsigned char *x) { return own(x, x, 3); }\n");
    lab.candidate().wrap = Wrap::Listed(vec![WrapFunction {
        symbol: "own".into(),
        group: "other".into(),
        name: "own".into(),
        prototype: Some("int own(unsigned char *o, const unsigned char *i, size_t n)".into()),
        in_bits: Some("8ULL * n".into()),
        out_bits: Some("8".into()),
    }]);
    let row = lab.complete_row();
    assert_eq!(row.wrapped.len(), 1);
    assert_eq!(row.wrapped[0].group, "other");
    assert_eq!(row.not_wrapped, Vec::<String>::new());
}

#[test]
fn native_flags_tie_the_libraries_to_this_machine() {
    let lab = Lab::new().with_build("performance", "-O2 -mtune=native");
    let row = lab.complete_row();
    let native = row.native.clone().unwrap();
    assert_eq!(native.options, ["-mtune=native"]);
    assert!(
        native
            .resolved
            .iter()
            .any(|o| o.starts_with("-mtune=") && o != "-mtune=native"),
        "{native:?}"
    );
    let here = std::fs::read_to_string("/proc/cpuinfo").unwrap();
    assert_eq!(native.cpu, cpu_model(&here));
    assert_eq!(refuses(&row, &here), None);
    // The same processor with some of its instructions masked.
    let set = native.features.first().expect("every CPU has some");
    let masked: String = here
        .lines()
        .map(|line| match line.split_once(':') {
            Some((key, words)) if matches!(key.trim(), "flags" | "Features") => {
                let words = words.split_whitespace().filter(|word| word != set);
                format!("{key}: {}\n", words.collect::<Vec<_>>().join(" "))
            }
            _ => format!("{line}\n"),
        })
        .collect();
    let text = refuses(&row, &masked).expect("what was compiled for it ends in SIGILL");
    assert!(
        text.contains(&format!("without {set}: build it here")),
        "{text}"
    );
    let mut old = row.clone();
    old.native.as_mut().unwrap().features.clear();
    assert_eq!(refuses(&old, &masked), None, "not recorded then");
    let text = refuses(&row, "model name : Another CPU\n").unwrap();
    assert!(
        text.contains("-mtune=native") && text.contains("Another CPU"),
        "{text}"
    );
}

#[test]
fn a_stop_ends_the_phase_and_leaves_no_half_evidence() {
    let lab = Lab::new().with_build("reference", REFERENCE);
    let stop = Stop::new();
    stop.request();
    let error = lab
        .try_build(&lab.native_system(), Features::NotAsked, &stop)
        .unwrap_err();
    assert!(matches!(error, BuildError::Interrupted), "{error}");
    assert_eq!(std::fs::read_dir(lab.run_dir()).unwrap().count(), 0);
}

#[test]
fn a_library_that_comes_already_built_is_taken_as_it_is() {
    let mut lab = Lab::new().with_build("reference", REFERENCE);
    let row = lab.complete_row();
    let bytes = lab.library(&row, "timed");
    std::fs::write(lab.root().join("ready.so"), &bytes).unwrap();
    lab.forget_run();
    lab.code().library = Some("ready.so".into());
    let taken = lab.complete_row();
    assert_eq!(
        taken.libraries["timed"].sha256,
        row.libraries["timed"].sha256
    );
    assert_eq!(taken.elf, row.elf);
    assert_eq!(taken.compiler, "already built");
    assert_eq!(taken.warnings, Some(Vec::new()));
    let interpose = exports(&lab.library(&taken, harness::build::INTERPOSE));
    assert!(
        interpose.contains("malloc") && interpose.contains("campaign_memory_peak"),
        "{interpose:?}"
    );
    std::fs::write(lab.root().join("ready.so"), b"text").unwrap();
    lab.forget_run();
    let refused = lab.row();
    assert_eq!(refused.status, Status::Failed);
    assert!(refused
        .reason
        .unwrap()
        .text
        .contains("`ready.so` cannot be read as ELF"));
}

#[test]
fn without_a_compiler_the_command_is_status_3_and_names_the_package() {
    let worker = assert_cmd::cargo::cargo_bin("campaign").with_file_name("worker");
    let id = std::process::Command::new(&worker)
        .arg("--build-id")
        .output();
    if !id.is_ok_and(|out| String::from_utf8_lossy(&out.stdout).trim() == protocol::BUILD_ID) {
        return skip(
            "there is no worker of this version beside the program; run cargo test --workspace",
        );
    }
    let lab = lab::Lab::new(&[FINE], "");
    let output = lab
        .command(&["build"])
        .env("PATH", lab.path("sources"))
        .output()
        .unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(3), "{text}");
    let expected = "compiler `gcc` is not here: install the package gcc (Debian, Ubuntu)";
    assert!(text.contains(expected), "{text}");
    assert!(!lab.run_dir(1).join("build.json").exists());
}

#[test]
fn a_row_that_does_not_build_is_status_1_and_the_other_is_there() {
    let broken = lab::Instance {
        label: "lab-2",
        defines: &["LAB_KEY_BYTES=undeclared", "sig_keygen=1"],
        ..FINE
    };
    let lab = lab::Lab::new(&[FINE, broken], "");
    let end = lab.campaign(&["build"]).expect(1);
    let said = format!("{}{}", end.stdout, end.stderr);
    assert!(said.contains("lab/lab-2/ref/reference"), "{end}");
    let file = lab::json(&lab.run_dir(1), "build.json");
    assert_eq!(file["rows"][0]["status"], "complete");
    assert_eq!(file["rows"][1]["status"], "failed");
    assert_eq!(file["rows"][1]["reason"]["code"], "build_failed");
    assert!(file["rows"][1]["log"]
        .as_str()
        .unwrap()
        .contains("sources/lab_candidate.c"));
}

#[test]
fn a_cache_that_cannot_be_used_is_status_3_and_says_where_to_turn() {
    let lab = lab::Lab::new(&[FINE], "");
    std::fs::write(lab.path("occupied"), "").unwrap();
    let output = lab
        .command(&["build"])
        .env("CAMPAIGN_CACHE", lab.path("occupied/cache"))
        .output()
        .unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(3), "{text}");
    assert!(text.contains("CAMPAIGN_CACHE"), "{text}");
}

fn arm_system(lab: &Lab) -> System {
    System {
        id: "arm_1".into(),
        arch: Arch::Aarch64,
        cc: "aarch64-linux-gnu-gcc".into(),
        runner: ["qemu-aarch64-static", "-cpu", "neoverse-n1"]
            .map(str::to_owned)
            .to_vec(),
        ..lab.native_system()
    }
}

#[test]
fn libraries_are_built_for_another_architecture() {
    if !have("aarch64-linux-gnu-gcc", "gcc-aarch64-linux-gnu") {
        return;
    }
    let mut lab = Lab::new().with_build("performance", "-O3 -flto -std=c99 -march=armv8.2-a");
    lab.campaign.builds.get_mut("performance").unwrap().requires =
        BTreeMap::from([(Arch::Aarch64, vec!["atomics".into()])]);
    let system = arm_system(&lab);
    let features = match Arch::host() {
        Some(Arch::Aarch64) => Features::NotAsked,
        _ => features_for(&system),
    };
    let file = lab.try_build(&system, features, &Stop::new()).unwrap();
    let row = &file.rows[0];
    assert_eq!(row.status, Status::Complete, "{:?}", row.log);
    assert_eq!(row.compiler, "aarch64-linux-gnu-gcc");
    let bytes = lab.library(row, "timed");
    assert_eq!(harness::build::elf_machine(&bytes).unwrap(), "aarch64");
    assert_eq!(row.wrapped.len(), 2);
}

/// Words of the Linux kernel for the bits of AT_HWCAP and AT_HWCAP2 that the table knows.
const HWCAP: &[(&str, u32)] = &[
    ("fp", 0),
    ("asimd", 1),
    ("aes", 3),
    ("pmull", 4),
    ("sha1", 5),
    ("sha2", 6),
    ("crc32", 7),
    ("atomics", 8),
    ("fphp", 9),
    ("asimdhp", 10),
    ("cpuid", 11),
    ("asimdrdm", 12),
    ("fcma", 14),
    ("lrcpc", 15),
    ("dcpop", 16),
    ("sha3", 17),
    ("sha512", 19),
    ("asimddp", 20),
    ("sve", 22),
];

#[test]
fn the_table_of_emulated_cpus_is_what_the_emulator_offers() {
    if !have("aarch64-linux-gnu-gcc", "gcc-aarch64-linux-gnu")
        || !have("qemu-aarch64-static", "qemu-user-static")
    {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let source = "#include <stdio.h>\n#include <sys/auxv.h>\nint main(void) { printf(\"%lu\", getauxval(AT_HWCAP)); return 0; }\n";
    std::fs::write(dir.path().join("h.c"), source).unwrap();
    let run = |program: &str, args: &[&str]| {
        let output = std::process::Command::new(program)
            .args(args)
            .current_dir(dir.path())
            .output()
            .unwrap();
        assert!(output.status.success(), "{program} {args:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    run("aarch64-linux-gnu-gcc", &["-static", "h.c", "-o", "h"]);
    let mut compared = 0;
    let help = std::process::Command::new("qemu-aarch64-static")
        .args(["-cpu", "help"])
        .output()
        .unwrap();
    let known = String::from_utf8(help.stdout).unwrap();
    for (cpu, words) in EMULATED {
        if !known.split_whitespace().any(|name| name == *cpu) {
            continue; // one of another architecture, or newer than this emulator
        }
        let bits: u64 = run("qemu-aarch64-static", &["-cpu", cpu, "./h"])
            .parse()
            .unwrap();
        let offered: BTreeSet<&str> = HWCAP
            .iter()
            .filter(|(_, bit)| bits >> bit & 1 == 1)
            .map(|(word, _)| *word)
            .collect();
        assert_eq!(
            words.split_whitespace().collect::<BTreeSet<_>>(),
            offered,
            "{cpu}"
        );
        compared += 1;
    }
    assert!(compared >= 5, "only {compared} CPUs were compared");
}

/// Identities of the project's own configuration, built in the checkout itself.
fn real(system: &System, identities: &[&str]) -> (tempfile::TempDir, BuildFile) {
    let campaign = config::load(&root().join(config::FILE), config::Sources::Required).unwrap();
    let identities: Vec<Identity> = identities.iter().map(|i| i.parse().unwrap()).collect();
    let dir = tempfile::tempdir().unwrap();
    let file = build_all(
        &campaign,
        system,
        &identities,
        &mut Context {
            run_dir: dir.path(),
            features: Features::NotAsked,
            streams: false,
            jobs: None,
            stop: &Stop::new(),
            before_writing: &mut |_, _| Ok(()),
            on_progress: &|_| {},
        },
    )
    .unwrap();
    (dir, file)
}

/// Whether the registry crates of the rows are neither here nor to be had; says so then.
fn no_crates(file: &BuildFile) -> bool {
    let refused = |row: &BuildRow| {
        row.log
            .as_ref()
            .is_some_and(|log| log.contains("cargo cannot find the source crates"))
    };
    let none = file.rows.iter().any(refused);
    if none {
        skip("the source crates are not here and the registry cannot be reached");
    }
    none
}

fn names(row: &BuildRow) -> BTreeSet<&str> {
    row.wrapped.iter().map(|w| w.name.as_str()).collect()
}

/// What holds for every real row.
fn assert_sound(dir: &Path, row: &BuildRow) {
    assert_eq!(
        row.status,
        Status::Complete,
        "{:?}\n{:?}",
        row.reason,
        row.log
    );
    assert_eq!(row.flags_kind, FlagsKind::Guide, "{}", row.identity);
    assert_eq!(row.warnings, Some(vec![]), "{}", row.identity);
    let json = serde_json::to_string(row).unwrap();
    for (kind, library) in &row.libraries {
        let bytes = std::fs::read(dir.join(&library.file)).unwrap();
        for private in ["/registry/", root().to_str().unwrap()] {
            assert!(
                !contains(&bytes, private),
                "{} {kind}: {private}",
                row.identity
            );
            assert!(!json.contains(private), "{json}");
        }
        assert!(!needs_executable_stack(&bytes), "{}", row.identity);
    }
}

#[test]
fn dove_builds_without_a_warning_and_its_helpers_are_wrapped() {
    let x86 = Arch::host() == Some(Arch::X86_64);
    let mut identities = vec![
        "sign-09/dove_classic_128/ref/reference",
        "sign-09/dove_pkc_skc_128/ref/reference",
    ];
    if x86 {
        identities.push("sign-09/dove_classic_128/ref/performance");
    }
    let (dir, file) = real(&native_system(), &identities);
    assert_eq!(file.rows.len(), identities.len());
    for row in &file.rows {
        assert_sound(dir.path(), row);
        assert_eq!(names(row), BTreeSet::from(["drng", "pseudoXOF"]));
        assert_eq!(row.not_wrapped, ["pseudohash", "sm3hash"]);
        assert!(
            !row.libraries.contains_key("stream"),
            "it does not read its message once"
        );
    }
}

#[test]
fn dilithium_builds_from_its_pinned_crates_and_its_hash_functions_are_found() {
    let x86 = Arch::host() == Some(Arch::X86_64);
    let mut identities = vec![
        "dilithium/dilithium2/clean/reference",
        "ml-dsa/ml-dsa-44/clean/reference",
    ];
    if x86 {
        identities.push("dilithium/dilithium2/avx2/performance");
    }
    let (dir, file) = real(&native_system(), &identities);
    if no_crates(&file) {
        return;
    }
    assert_eq!(file.rows.len(), identities.len());
    for row in &file.rows {
        assert_sound(dir.path(), row);
        let source = &row.source_crates[0];
        let expected = match row.identity.candidate.as_str() {
            "dilithium" => ("pqcrypto-dilithium", "0.4.6", "{r3}"),
            _ => ("pqcrypto-mldsa", "0.1.2", "{mldsa}"),
        };
        assert_eq!(
            (source.name.as_str(), source.version.as_str()),
            (expected.0, expected.1)
        );
        assert_eq!(source.checksum.len(), 64);
        let include = format!("-I {}/pqclean/crypto_sign/", expected.2);
        assert!(row.flags.contains(&include), "{}", row.flags);
        let names = names(row);
        for name in ["drng", "shake256_inc_absorb", "shake256_inc_squeeze"] {
            assert!(names.contains(name), "{name} is not in {names:?}");
        }
        assert!(!names.iter().any(|n| n.ends_with("_stream_init")));
        let studied = row.identity.candidate == "dilithium" && row.identity.code == "clean";
        assert_eq!(
            row.libraries.contains_key("stream"),
            studied,
            "{}",
            row.identity
        );
    }
    if x86 {
        let avx2 = &file
            .rows
            .iter()
            .find(|r| r.identity.code == "avx2")
            .unwrap();
        let names = names(avx2);
        assert!(
            names.contains("f1600x4") && names.contains("shake256x4_squeezeblocks"),
            "{names:?}"
        );
        assert_eq!(avx2.lto_removed, Some(true));
        assert_eq!(avx2.native.as_ref().unwrap().options, ["-mtune=native"]);
    }
}

#[test]
fn the_real_candidates_cross_compile() {
    if !have("aarch64-linux-gnu-gcc", "gcc-aarch64-linux-gnu") {
        return;
    }
    let campaign = config::load(&root().join(config::FILE), config::Sources::Required).unwrap();
    let identities = [
        "dilithium/dilithium2/aarch64/reference",
        "ml-dsa/ml-dsa-44/aarch64/reference",
        "sign-09/dove_classic_128/ref/performance",
    ];
    let (dir, file) = real(campaign.system("arm_1").unwrap(), &identities);
    if no_crates(&file) {
        return;
    }
    assert_eq!(file.rows.len(), identities.len());
    for row in &file.rows {
        assert_sound(dir.path(), row);
        let bytes = std::fs::read(dir.path().join(&row.libraries["timed"].file)).unwrap();
        assert_eq!(harness::build::elf_machine(&bytes).unwrap(), "aarch64");
        let two_at_once = names(row).contains("shake256x2_squeezeblocks");
        assert_eq!(
            two_at_once,
            row.identity.code == "aarch64",
            "{:?}",
            names(row)
        );
    }
}

/// Whether PT_GNU_STACK asks for an executable stack, or is missing.
fn needs_executable_stack(library: &[u8]) -> bool {
    use object::elf;
    use object::read::elf::{FileHeader, ProgramHeader};
    let header = elf::FileHeader64::<object::Endianness>::parse(library).unwrap();
    let endian = header.endian().unwrap();
    header
        .program_headers(endian, library)
        .unwrap()
        .iter()
        .find(|segment| segment.p_type(endian) == elf::PT_GNU_STACK)
        .is_none_or(|segment| segment.p_flags(endian).0 & elf::PF_X.0 != 0)
}

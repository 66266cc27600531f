//! Whole files: the checkout's own, broken ones with what is said about each, and arbitrary text.

use super::*;
use crate::identity::Identity;
use proptest::prelude::*;

/// A small campaign without mistakes. Below [`fixture`] all of its paths exist.
const GOOD: &str = r#"
[[system]]
id = "x86_1"
arch = "x86_64"
cpu_model = "i7-12700"

[[system]]
id = "arm_1"
arch = "aarch64"
cpu_model = "Oryon|X1E"
cc = "aarch64-linux-gnu-gcc"
runner = ["qemu-aarch64-static", "-cpu", "neoverse-n1"]

[build.reference]
cflags = "-std=c99 -O2"

[build.performance]
cflags.x86_64 = "-O3 -mavx2"
cflags.aarch64 = ["-O3", "-march=armv8.2-a+sve"]
requires.x86_64 = ["avx2"]
requires.aarch64 = ["sve"]

[[candidate]]
id = "toy"
name = "TOY"
origin = "independent"
source_crates = "sources/Cargo.toml"
kat = { flow = "iccs", manifest = "toy.sha256" }
wrap = { hash = ["pseudoXOF"], drng = ["get_random_number"] }

[[candidate.code]]
name = "ref"
sources = ["src/*.c", "{r3}/{label}/*.c"]
include = ["src"]
defines = ["SCHEME={LABEL}"]
builds = ["reference", "performance"]

[[candidate.instance]]
label = "toy-1"
security_bits = 128
defines = ["LEVEL=1"]

[[candidate.instance]]
label = "toy-2"
key_per = "run"
unauthenticated_signature_bytes = ["3..7", "112.."]

[[candidate.instance.code]]
name = "avx2"
sources = ["my dir/x.c"]
extra_cflags = "-mpopcnt"
archs = ["x86_64"]
requires = ["popcnt"]
builds = ["performance"]

[[candidate.kat_issue]]
instance = "toy-2"
result = "NOKAT"
reason = "no vectors"

[plan.guide]
trials = 10
defer = ["toy-2/ref"]

[study.message-size]
instances = ["^toy/"]
"#;

fn fixture() -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    let digest = "0".repeat(64);
    let files = [
        ("src/a.c", ""),
        ("my dir/x.c", ""),
        ("sources/Cargo.toml", "[dependencies]\nr3 = \"1\"\n"),
        (
            "toy.sha256",
            &format!("{digest} strict toy-1/KAT_SIG_toy-1.txt\n"),
        ),
        ("bad.sha256", "zz strict a/b\n"),
        ("nist.sha256", &format!("{digest} rsp toy-1/x.rsp\n")),
    ];
    for (name, text) in files {
        let path = root.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    root
}

fn read(text: &str) -> Result<Campaign, Mistakes> {
    let root = fixture();
    parse(
        text.as_bytes(),
        Path::new(FILE),
        root.path(),
        Sources::Required,
    )
}

/// The good file with one text replaced, which must be there.
fn edited(from: &str, to: &str) -> String {
    assert!(GOOD.contains(from), "{from}");
    GOOD.replacen(from, to, 1)
}

#[test]
fn a_good_file_becomes_the_campaign_that_it_describes() {
    let campaign = read(GOOD).unwrap();
    let names = |arch| -> Vec<String> {
        let all = campaign.identities(arch);
        all.iter().map(Identity::to_string).collect()
    };
    assert_eq!(
        names(Arch::X86_64),
        [
            "toy/toy-1/ref/reference",
            "toy/toy-1/ref/performance",
            "toy/toy-2/avx2/performance",
            "toy/toy-2/ref/reference",
            "toy/toy-2/ref/performance"
        ]
    );
    assert_eq!(names(Arch::Aarch64).len(), 4);

    let identity: Identity = "toy/toy-1/ref/performance".parse().unwrap();
    let (candidate, instance, code, build) = campaign.find(&identity).unwrap();
    assert_eq!(code.sources, ["src/*.c", "{r3}/toy-1/*.c"]);
    assert_eq!(code.defines, ["SCHEME=TOY1", "LEVEL=1"]);
    assert_eq!(instance.key_per, KeyPer::Trial);
    assert_eq!(build.cflags[&Arch::X86_64], ["-O3", "-mavx2"]);
    assert_eq!(
        build.cflags[&Arch::Aarch64],
        ["-O3", "-march=armv8.2-a+sve"]
    );
    assert_eq!(campaign.builds["reference"].cflags.len(), 2);
    assert_eq!(candidate.kat_issues[0].instance, "toy-2");
    let Wrap::Listed(wrapped) = &candidate.wrap else {
        panic!("{:?}", candidate.wrap)
    };
    let reported: Vec<_> = wrapped
        .iter()
        .map(|f| (f.symbol.as_str(), f.group.as_str(), f.name.as_str()))
        .collect();
    assert_eq!(
        reported,
        [
            ("pseudoXOF", "hash", "pseudoXOF"),
            ("get_random_number", "drng", "drng")
        ]
    );
    let toy2 = &candidate.instances[1];
    assert_eq!(toy2.key_per, KeyPer::Run);
    assert_eq!(
        toy2.unauthenticated_signature_bytes,
        [(3, 7), (112, u64::MAX)]
    );
    assert_eq!(campaign.systems[0].cc, "gcc");
    assert_eq!(campaign.plans["guide"].trials, 10);
    assert_eq!(campaign.plans["guide"].target_s, 0.35);
    assert_eq!(campaign.report.title, "Signature candidates");
    // The default reference is not an identity of this campaign.
    assert_eq!(campaign.report.reference, None);
}

#[test]
fn a_new_plan_starts_from_quick_or_from_the_plan_that_it_names() {
    let text = format!(
        "{GOOD}\n[plan.mine]\nrepeats = 1\n[plan.long]\nlike = \"public\"\niterations = 10\n"
    );
    let plans = read(&text).unwrap().plans;
    let (mine, long) = (&plans["mine"], &plans["long"]);
    assert_eq!(
        (mine.name.as_str(), mine.trials, mine.repeats),
        ("mine", 5, 1)
    );
    assert_eq!(
        (long.target_s, long.iterations, long.repeats),
        (1.0, Some(10), 2)
    );
}

#[test]
fn an_unpacked_campaign_needs_no_sources() {
    let root = fixture();
    std::fs::remove_file(root.path().join("src/a.c")).unwrap();
    std::fs::remove_dir_all(root.path().join("src")).unwrap();
    let check = |sources| parse(GOOD.as_bytes(), Path::new(FILE), root.path(), sources);
    assert!(check(Sources::Required).is_err());
    assert!(check(Sources::Absent).is_ok());
}

/// Broken files by name: what is replaced in the good one. The snapshot beside this file holds what
/// is said.
const BROKEN: &[(&str, &str, &str)] = &[
    ("unknown_key", "security_bits = 128", "security_bit = 128"),
    ("unknown_table", "[plan.guide]", "[plans.guide]"),
    ("missing_keys", "id = \"toy\"\nname = \"TOY\"\norigin = \"independent\"", ""),
    ("wrong_types", "label = \"toy-1\"\nsecurity_bits = 128\ndefines = [\"LEVEL=1\"]", "label = 1\nsecurity_bits = \"128\"\ndefines = [1, \"LEVEL=1\"]"),
    ("wrong_word", "origin = \"independent\"", "origin = \"independant\""),
    ("two_systems_of_one_id", "id = \"arm_1\"", "id = \"x86_1\""),
    ("two_candidates_of_one_id", "[plan.guide]", "[[candidate]]\nid = \"toy\"\nname = \"T\"\norigin = \"upstream\"\nkat = { flow = \"iccs\", manifest = \"toy.sha256\" }\n[[candidate.instance]]\nlabel = \"x\"\n[plan.guide]"),
    ("two_instances_of_one_label", "label = \"toy-2\"", "label = \"toy-1\""),
    ("two_codes_of_one_name", "name = \"avx2\"", "name = \"ref\""),
    ("label_with_a_slash", "label = \"toy-1\"", "label = \"toy/1\""),
    ("label_too_long", "label = \"toy-1\"", "label = \"toytoytoytoytoytoytoytoytoytoytoytoytoytoytoytoytoytoytoytoytoytoytoytoytoytoytoytoytoytoytoytoytoytoytoytoytoytoytoytoytoytoytoytoytoytoytoytoytoytoytoytoytoytoytoytoytoytoytoytoy\""),
    (
        "same_file_names",
        "\n[[candidate.instance]]\nlabel = \"toy-2\"",
        "\n[[candidate.instance.code]]\nname = \"x.avx2\"\nsources = [\"src/a.c\"]\nbuilds = [\"performance\"]\n\n[[candidate.instance]]\nlabel = \"toy-1.x\"",
    ),
    ("reserved_names", "id = \"toy\"", "id = \"index\""),
    ("reserved_system", "id = \"arm_1\"", "id = \"local\""),
    ("unknown_build", "builds = [\"reference\", \"performance\"]", "builds = [\"reference\", \"perfomance\", \"reference\"]"),
    ("build_without_flags_for_a_system", "cflags.aarch64 = [\"-O3\", \"-march=armv8.2-a+sve\"]", ""),
    ("source_without_a_file", "sources = [\"src/*.c\"", "sources = [\"src/*.cc\", \"scr/*.c\", \"/etc/*.c\", \"src/[.c\""),
    ("crate_that_is_not_pinned", "{r3}/{label}", "{r4}/{label}"),
    ("brace_without_partner", "{r3}/{label}", "{r3/{label}"),
    ("crates_without_manifest", "source_crates = \"sources/Cargo.toml\"", ""),
    ("crates_manifest_missing", "sources/Cargo.toml", "source/Cargo.toml"),
    ("include_missing", "include = [\"src\"]", "include = [\"scr\", \"/usr/include\"]"),
    ("no_sources_at_all", "sources = [\"my dir/x.c\"]", ""),
    ("library_missing", "sources = [\"my dir/x.c\"]", "library = \"lib/x.so\""),
    ("no_code_at_all", "[[candidate.code]]", "[[candidate.cod]]"),
    ("bad_define", "defines = [\"LEVEL=1\"]", "defines = [\"-DLEVEL=1\", \"A B\"]"),
    ("zero_trials", "trials = 10", "trials = 0"),
    ("negative_numbers", "trials = 10", "trials = -3\ntarget_s = -0.5\nrepeats = -1"),
    ("huge_numbers", "trials = 10", "trials = 100000000000\ntarget_s = 1e300\nbudget_s = inf\nkat_timeout_s = nan\nmin_total = 99999999999999999999999"),
    ("numbers_that_are_none", "trials = 10", "trials = 2.5\ntarget_s = \"1\"\nverdicts = 1\nbuilds = \"some\""),
    ("bad_threshold", "trials = 10", "disturbed = { min_cpu_per_wall = 98, steal_percent = -1, sibling_busy_percent = 101 }"),
    ("like_in_a_built_in_plan", "trials = 10", "like = \"quick\""),
    ("like_an_unknown_plan", "[plan.guide]", "[plan.mine]\nlike = \"guied\""),
    ("bad_regular_expressions", "cpu_model = \"i7-12700\"", "cpu_model = \"i7(\""),
    ("defer_that_matches_nothing", "toy-2/ref", "toy-3/ref"),
    ("runner_empty", "runner = [\"qemu-aarch64-static\", \"-cpu\", \"neoverse-n1\"]", "runner = []"),
    ("runner_with_an_empty_word", "\"-cpu\"", "\"\""),
    ("compiler_empty", "cc = \"aarch64-linux-gnu-gcc\"", "cc = \" \""),
    ("kat_manifest_missing", "toy.sha256", "toi.sha256"),
    ("kat_manifest_malformed", "toy.sha256", "bad.sha256"),
    ("kat_manifest_of_the_other_flow", "toy.sha256", "nist.sha256"),
    ("kat_issue_of_nothing", "instance = \"toy-2\"", "instance = \"toy2\""),
    ("kat_issue_that_excuses_a_pass", "result = \"NOKAT\"", "result = \"PASS\""),
    ("reference_that_does_not_exist", "[[system]]", "[report]\nreference = \"toy/toy-1/ref/referense\"\n[[system]]"),
    ("reference_of_the_wrong_shape", "[[system]]", "[report]\nreference = \"toy-1\"\n[[system]]"),
    ("bad_ranges", "[\"3..7\", \"112..\"]", "[\"7..3\", \"112\", \"..5\", 4]"),
    ("bad_features", "requires = [\"popcnt\"]", "requires = [\"POPCNT\"]"),
    ("unknown_architecture", "archs = [\"x86_64\"]", "archs = [\"x86-64\"]"),
    ("flags_with_an_open_quote", "cflags = \"-std=c99 -O2\"", "cflags = \"-std=c99 '-O2\""),
    ("wrap_twice", "hash = [\"pseudoXOF\"]", "hash = [\"pseudoXOF\", \"pseudoXOF\", \"a-b\"]"),
    ("wrap_two_ways", "hash = [\"pseudoXOF\"]", "derive = \"table.toml\", hash = [\"pseudoXOF\"]"),
    ("wrap_function_without_prototype", "wrap = { hash = [\"pseudoXOF\"], drng = [\"get_random_number\"] }", "wrap = { function = [{ symbol = \"f\", group = \"hsh\" }] }"),
    ("bad_sizes", "instances = [\"^toy/\"]", "instances = [\"^toy/\"]\nsizes = [0, \"1 XB\", 1.5]\nchunk = \"1 GB\"\nmodes = [\"bufer\"]"),
    ("bad_link", "kat = {", "links = { x = \"javascript:alert(1)\" }\nkat = {"),
    ("not_toml", "id = \"arm_1\"\narch = \"aarch64\"", "id = arm_1\narch = \"aarch64"),
    ("not_toml_and_more", "trials = 10\n", "trials = 0\ntarget_s = = 1\nrepeat = 1\n"),
    ("a_key_twice", "id = \"toy\"", "id = \"toy\"\nid = \"toy\""),
];

#[test]
fn every_mistake_is_said_with_its_place_and_what_is_accepted() {
    let mut said = String::new();
    for (name, from, to) in BROKEN {
        let mistakes = read(&edited(from, to)).expect_err(name);
        said += &format!("==== {name} ====\n{mistakes}\n\n");
    }
    insta::assert_snapshot!("broken_files", said);
}

#[test]
fn all_mistakes_of_a_file_are_reported_together() {
    let mut text = GOOD.to_owned();
    let edits = [
        ("arch = \"x86_64\"", "arch = \"x86\""),
        ("cflags = \"-std=c99 -O2\"", "cflag = \"-std=c99 -O2\""),
        ("label = \"toy-2\"", "label = \"toy-1\""),
        ("my dir/x.c", "my dir/y.c"),
        ("trials = 10", "trials = 0"),
    ];
    for (from, to) in edits {
        text = text.replacen(from, to, 1);
    }
    let Mistakes(mistakes) = read(&text).unwrap_err();
    let line_of = |part: &str| text.lines().position(|line| line.contains(part)).unwrap() + 1;
    for part in ["arch = \"x86\"", "cflag = ", "my dir/y.c", "trials = 0"] {
        let line = line_of(part);
        assert!(mistakes.iter().any(|m| m.line == line), "{part}");
    }
    assert!(mistakes
        .iter()
        .any(|m| m.what.contains("two instances are called `toy-1`")));
    assert!(mistakes.is_sorted_by_key(|m| m.line));
}

#[test]
fn a_file_that_is_no_text_is_a_mistake_with_its_place() {
    let root = fixture();
    let bytes = b"[report]\ntitle = \"\xff\"\n";
    let error = parse(bytes, Path::new(FILE), root.path(), Sources::Required).unwrap_err();
    let mistake = &error.0[0];
    assert_eq!((error.0.len(), mistake.line, mistake.column), (1, 2, 10));
}

#[test]
fn the_file_is_found_in_the_folder_or_above_and_read_with_its_digest() {
    let root = fixture();
    std::fs::write(root.path().join(FILE), GOOD).unwrap();
    let below = root.path().join("my dir");
    let found = find(&below).unwrap();
    assert_eq!(found, root.path().join(FILE));
    let campaign = load(&found, Sources::Required).unwrap();
    assert_eq!(campaign.root, root.path());
    assert_eq!(campaign.sha256, crate::hash::sha256(GOOD.as_bytes()));
    let nowhere = load(&below, Sources::Required).unwrap_err();
    assert!(matches!(nowhere, ConfigError::Read { .. }));
}

/// The checkout's own file.
fn own() -> (PathBuf, Campaign) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(FILE);
    let campaign = match load(&path, Sources::Required) {
        Ok(campaign) => campaign,
        Err(error) => panic!("{error}"),
    };
    (path, campaign)
}

#[test]
fn the_campaign_of_the_checkout_has_no_mistake_and_holds_what_it_should() {
    let (_, campaign) = own();
    let count = |arch, candidate: &str| {
        let all = campaign.identities(arch);
        all.iter().filter(|i| i.candidate == candidate).count()
    };
    // Six instances in three builds; three instances as clean in two builds and avx2 or aarch64 in one.
    for (candidate, expected) in [("sign-09", 18), ("dilithium", 9), ("ml-dsa", 9)] {
        assert_eq!(count(Arch::X86_64, candidate), expected, "{candidate}");
        assert_eq!(count(Arch::Aarch64, candidate), expected, "{candidate}");
    }
    for candidate in &campaign.candidates {
        for instance in &candidate.instances {
            for code in &instance.codes {
                let helpers = |source: &String| source == "drivers/iccs/*.c";
                assert!(
                    code.sources.iter().any(helpers),
                    "{} {}",
                    instance.label,
                    code.name
                );
                assert!(code.fallback_cflags.is_some());
            }
        }
    }
    let reference = campaign.report.reference.as_ref().unwrap();
    assert_eq!(
        reference.to_string(),
        "dilithium/dilithium2/clean/reference"
    );
}

#[test]
fn the_builds_of_the_checkout_are_the_guides_to_the_letter() {
    let (_, campaign) = own();
    let flags = |build: &str, arch| campaign.builds[build].cflags[&arch].join(" ");
    let reference = "-std=c99 -Wpedantic -Wall -Wextra -O2";
    let tail = "-flto -fomit-frame-pointer -std=c99 -Wpedantic -Wall -Wextra";
    assert_eq!(flags("reference", Arch::X86_64), reference);
    assert_eq!(flags("reference", Arch::Aarch64), reference);
    assert_eq!(
        flags("performance", Arch::X86_64),
        format!("-O3 -march=x86-64 -mavx2 -mtune=native {tail}")
    );
    assert_eq!(
        flags("performance", Arch::Aarch64),
        format!("-O3 -march=armv8.2-a+sve {tail}")
    );
    assert_eq!(
        flags("resource", Arch::X86_64),
        format!("-Os -march=x86-64 -mavx2 {tail}")
    );
    assert_eq!(
        flags("resource", Arch::Aarch64),
        format!("-Os -march=armv8.2-a {tail}")
    );
}

#[test]
fn every_instance_of_the_checkout_has_its_digests() {
    let (_, campaign) = own();
    for candidate in &campaign.candidates {
        let manifest =
            crate::kat::manifest::Manifest::read(&campaign.root.join(&candidate.kat.manifest));
        let manifest = manifest.unwrap();
        for instance in &candidate.instances {
            let modes: Vec<_> = manifest
                .of(&instance.label)
                .map(|e| e.mode.mode.clone())
                .collect();
            let expected: &[&str] = match candidate.id.as_str() {
                "sign-09" => &["strict"],
                "dilithium" => &["nistkat", "rsp"],
                _ => &["nistkat", "all"],
            };
            assert_eq!(modes, expected, "{}", instance.label);
        }
    }
}

/// Pieces of which files near a real one are made.
fn piece() -> impl Strategy<Value = String> {
    let lines: Vec<String> = GOOD.lines().map(str::to_owned).collect();
    prop_oneof![
        6 => prop::sample::select(lines),
        1 => "[a-z_]{1,8} = (-?[0-9]{1,25}|\"[^\"\n]{0,9}\"|\\[\\]|\\{\\}|true|nan|[0-9.e+-]{1,9})",
        1 => "\\[{1,2}[a-z.\"]{0,12}\\]{0,2}",
        1 => "[\\x00-\\x7fé]{0,12}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, ..ProptestConfig::default() })]

    #[test]
    fn no_text_makes_the_reader_panic(text in any::<String>()) {
        if let Err(Mistakes(mistakes)) = read(&text) {
            prop_assert!(!mistakes.is_empty());
        }
    }

    #[test]
    fn no_text_near_a_real_one_makes_the_reader_panic(
        pieces in prop::collection::vec(piece(), 0..60),
    ) {
        let text = pieces.join("\n");
        if let Err(Mistakes(mistakes)) = read(&text) {
            prop_assert!(!mistakes.is_empty());
            let lines = text.lines().count().max(1) + 1;
            for mistake in &mistakes {
                prop_assert!(mistake.line <= lines && mistake.column >= 1 && mistake.width >= 1);
            }
        }
    }

    #[test]
    fn a_cut_in_the_real_file_never_makes_the_reader_panic(
        start in 0..GOOD.len(), length in 0..200usize, filler in "[\\[\\]{}=\"'.,a-z0-9\n]{0,5}",
    ) {
        let end = (start + length).min(GOOD.len());
        let text = format!("{}{filler}{}", &GOOD[..start], &GOOD[end..]);
        if let Err(Mistakes(mistakes)) = read(&text) {
            prop_assert!(!mistakes.is_empty());
        }
    }
}

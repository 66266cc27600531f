//! `drivers/abi`: the adapter, the counted allocator, the wrappers and the version script, on small
//! C fixtures with known behaviour. Nothing here measures: counts and sizes are exact.

use std::path::PathBuf;

use minijinja::{context, Environment, UndefinedBehavior};

use crate::support::objects::{adapter_defines, defined, exported, include, Toolchain};
use crate::support::root;

fn fixture(name: &str) -> PathBuf {
    root().join("harness/tests/c").join(name)
}

fn abi(name: &str) -> PathBuf {
    root().join("drivers/abi").join(name)
}

fn includes() -> Vec<String> {
    include(&["drivers/abi", "drivers/abi/include", "harness/tests/c"])
}

// ---- memory.c ----

/// The lines that `memory_calls.c` must print.
fn memory_lines() -> String {
    // every block of `many` lives at once: sizes 0 to 96 in turn
    let many: u64 = (0..20_000).map(|i| i % 97).sum();
    let cases: &[(&str, u64, u64, u64)] = &[
        // name, peak, live, allocations
        ("malloc", 1000 + 20_480, 0, 3),
        ("malloc_of_nothing", 0, 0, 1),
        ("calloc", 3000, 0, 1),
        ("calloc_overflow", 0, 0, 0),
        ("leak", 160, 160, 5),
        ("realloc", 5000, 0, 3),
        ("realloc_to_nothing", 70, 0, 1),
        ("realloc_refused", 100, 100, 1),
        ("reallocarray", 100, 100, 1), // from 100 bytes, live before, to 200
        ("aligned", 640 + 96 + 1234, 0, 3),
        ("aligned_refused", 0, 0, 0),
        ("strings", 13 + 7, 0, 2),
        ("mmap", 3_000_001, 0, 1),
    ];
    let later: &[(&str, u64, u64, u64)] = &[
        ("mremap", 200_000, 200_000, 2),
        ("mremap_older", 0, 0, 0),
        ("mmap_refused", 0, 0, 0),
    ];
    let last: &[(&str, u64, u64, u64)] = &[
        ("older_replaced", 1000, 0, 1),
        ("older_freed", 0, 0, 0),
        ("foreign", 0, 0, 0),
        ("many", many, 0, 20_000),
    ];
    let lines = |cases: &[(&str, u64, u64, u64)]| -> String {
        cases
            .iter()
            .map(|(name, peak, live, n)| format!("{name} {peak} {live} {n}\n"))
            .collect()
    };
    [
        lines(cases),
        "live in pages 5\nlive in pages 0\n".to_owned(),
        lines(later),
        format!("base {}\n", 5 * 32 + 1000), // what `leak` left, and the block
        lines(last),
        "threads 0 40000\noverflow 0\n".to_owned(),
    ]
    .concat()
}

fn check_memory(tools: &Toolchain) {
    let objects = [
        tools.object(&fixture("memory_calls.c"), &includes()),
        tools.object(&abi("memory.c"), &includes()),
    ];
    let program = tools.link("memory_calls", &objects, &[]);
    assert_eq!(tools.run(&program, &[]), memory_lines());
}

#[test]
fn the_counted_allocator_is_exact() {
    if let Some(tools) = Toolchain::host() {
        check_memory(&tools);
    }
}

#[test]
fn the_counted_allocator_is_exact_on_aarch64() {
    if let Some(tools) = Toolchain::aarch64() {
        check_memory(&tools);
    }
}

#[test]
fn the_counted_allocator_can_be_preloaded() {
    let Some(tools) = Toolchain::host() else {
        return;
    };
    let mut flags = includes();
    flags.push("-DCAMPAIGN_INTERPOSE".to_owned());
    let memory = tools.object(&abi("memory.c"), &flags);
    let library = tools.link("libmemory.so", &[memory], &["-shared".to_owned()]);
    let program = tools.object(&fixture("memory_interposed.c"), &includes());
    let program = tools.link("memory_interposed", &[program], &[]);
    let text = tools.run_with(&program, &[], &[("LD_PRELOAD", &library)]);
    // 250 bytes, 5 of the copied text, the mapping; the text leaks; malloc, realloc, strdup, mmap
    assert_eq!(text, format!("{} 5 4\n", 250 + 5 + 10_000));
}

// ---- wrap.c.in, profile.c ----

/// Fills the template with the functions of `profile_functions.h`.
fn wrap_source() -> String {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    let template = std::fs::read_to_string(abi("wrap.c.in")).unwrap();
    environment.add_template("wrap.c", &template).unwrap();
    let function = |symbol, name, group, returns, parameters, arguments, in_bits, out_bits| {
        context! {symbol, name, group, returns, parameters, arguments, in_bits, out_bits}
    };
    let bytes = "unsigned char *out, const unsigned char *in, size_t n";
    let functions = [
        function(
            "mix",
            "mixer",
            "hash",
            "int",
            bytes,
            "out, in, n",
            "8ULL * n",
            "64",
        ),
        function(
            "twice",
            "twice",
            "other",
            "void",
            bytes,
            "out, in, n",
            "8ULL * n",
            "8ULL * n",
        ),
        function(
            "half",
            "drng",
            "drng",
            "unsigned long long",
            "unsigned long long bits",
            "bits",
            "0",
            "bits",
        ),
        function(
            "spin",
            "spin",
            "hash",
            "void",
            "unsigned units",
            "units",
            "8ULL * units",
            "0",
        ),
    ];
    let filled = environment.get_template("wrap.c").unwrap();
    filled.render(context! {functions}).unwrap()
}

fn profile_program(tools: &Toolchain) -> PathBuf {
    let wrap = tools.path("wrap.c");
    std::fs::write(&wrap, wrap_source()).unwrap();
    let sources = [
        fixture("profile_calls.c"),
        fixture("profile_twice.c"),
        fixture("profile_functions.c"),
        abi("profile.c"),
        wrap,
    ];
    let objects = sources.map(|source| tools.object(&source, &includes()));
    tools.link("profile_calls", &objects, &[])
}

#[test]
fn a_profile_counts_each_outermost_call_by_its_shape() {
    let Some(tools) = Toolchain::host() else {
        return;
    };
    let program = profile_program(&tools);
    let expected = "row mixer 64 64 4\n\
                    row drng 0 10 3\n\
                    row mixer 128 64 1\n\
                    row twice 64 64 1\n\
                    overflow 0\n\
                    overflow 0\n";
    assert_eq!(tools.run(&program, &["shapes"]), expected);
}

#[test]
fn a_profile_lists_symbols_names_and_groups() {
    let Some(tools) = Toolchain::host() else {
        return;
    };
    let program = profile_program(&tools);
    let source = if cfg!(target_arch = "aarch64") {
        "cntvct"
    } else {
        "tsc"
    };
    let expected =
        format!("mix mixer hash\ntwice twice other\nhalf drng drng\nspin spin hash\n{source}\n");
    assert_eq!(tools.run(&program, &["list"]), expected);
}

#[test]
fn a_full_profile_table_counts_what_it_could_not_take() {
    let Some(tools) = Toolchain::host() else {
        return;
    };
    let program = profile_program(&tools);
    let expected = "rows 256 overflow 44\n\
                    row mixer 8 64 2\n\
                    row mixer 16 64 1\n\
                    row mixer 24 64 1\n\
                    row mixer 32 64 1\n";
    assert_eq!(tools.run(&program, &["overflow"]), expected);
}

#[test]
fn a_profile_loses_no_call_of_any_thread() {
    let Some(tools) = Toolchain::host() else {
        return;
    };
    let program = profile_program(&tools);
    let text = tools.run(&program, &["threads"]);
    let mut rows: Vec<&str> = text.lines().collect();
    rows.sort_unstable();
    // 4 threads, 5000 rounds: lengths i % 32, where 0 to 7 come once more, and length 8 each time
    let mut expected: Vec<String> = (0..32)
        .map(|n| {
            let turns = (0..5000).filter(|i| i % 32 == n).count() + if n == 8 { 5000 } else { 0 };
            format!("row mixer {} 64 {}", 8 * n, 4 * turns)
        })
        .collect();
    expected.push(format!("row twice 32 32 {}", 4 * 5000));
    expected.push("overflow 0".to_owned());
    expected.sort_unstable();
    assert_eq!(rows, expected);
}

#[test]
fn calibrating_the_wrapper_leaves_the_profile_alone() {
    let Some(tools) = Toolchain::host() else {
        return;
    };
    let program = profile_program(&tools);
    let expected = "row mixer 64 64 1\noverflow 0\n";
    assert_eq!(tools.run(&program, &["cost"]), expected);
}

#[test]
fn a_known_share_is_found_once_the_cost_of_the_wrapper_is_taken_out() {
    let Some(tools) = Toolchain::host() else {
        return;
    };
    let program = profile_program(&tools);
    let text = tools.run(&program, &["share"]);
    let tenths: u32 = text
        .trim()
        .parse()
        .unwrap_or_else(|e| panic!("{text}: {e}"));
    assert!(
        (280..=320).contains(&tenths),
        "{tenths} tenths of a percent, not 30%"
    );
}

#[test]
fn a_profile_counts_on_aarch64_too() {
    let Some(tools) = Toolchain::aarch64() else {
        return;
    };
    let program = profile_program(&tools);
    let expected = "row mixer 64 64 4\n\
                    row drng 0 10 3\n\
                    row mixer 128 64 1\n\
                    row twice 64 64 1\n\
                    overflow 0\n\
                    overflow 0\n";
    assert_eq!(tools.run(&program, &["shapes"]), expected);
    let text = tools.run(&program, &["list"]);
    assert!(text.ends_with("\ncntvct\n"), "{text}");
}

#[test]
fn a_template_without_functions_is_valid_c() {
    let Some(tools) = Toolchain::host() else {
        return;
    };
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    let template = std::fs::read_to_string(abi("wrap.c.in")).unwrap();
    let none: [&str; 0] = [];
    let text = environment
        .render_str(
            &template,
            context! {functions => none, includes => ["stdio.h"]},
        )
        .unwrap();
    assert!(text.contains("#include \"stdio.h\"\n"), "{text}");
    let wrap = tools.path("wrap.c");
    std::fs::write(&wrap, text).unwrap();
    tools.object(&wrap, &includes());
}

// ---- adapter.c ----

const SEEDED: &str = "seed 0\ndrng 0\nuntouched 1\ndraw 0\ndraw 0\nequal 1\n\
                      other 0\nbytes 0001020304050607\nfailing -7\n\
                      seed 0\nrestored 0\nequal 1\nnull seed -1\n";

/// Runs `adapter_calls.c`; `counter` is what `-DCAMPAIGN_REJECTED` names.
fn adapter_text(tools: &Toolchain, counter: Option<&str>, more: &[&str]) -> String {
    let mut flags = includes();
    flags.extend(include(&["drivers/iccs"]));
    let mut adapter = flags.clone();
    adapter.extend(adapter_defines("a_label", "timed"));
    adapter.extend(counter.map(|name| format!("-DCAMPAIGN_REJECTED={name}")));
    let mut objects = vec![tools.object(&abi("adapter.c"), &adapter)];
    let helpers = ["sm3.c", "drng.c"].map(|name| root().join("drivers/iccs").join(name));
    let fixtures = ["adapter_calls.c"].iter().chain(more);
    for source in fixtures.map(|name| fixture(name)).chain(helpers) {
        objects.push(tools.object(&source, &flags));
    }
    let program = tools.link("adapter_calls", &objects, &[]);
    tools.run(&program, &[])
}

#[test]
fn the_adapter_seeds_draws_and_swaps_its_generator() {
    let Some(tools) = Toolchain::host() else {
        return;
    };
    let text = adapter_text(&tools, None, &[]);
    let (meta, rest) = text.split_once("rejected ").expect("two parts");
    let keys: Vec<_> = meta
        .lines()
        .filter_map(|line| line.split_once('='))
        .collect();
    assert_eq!(keys.len(), meta.lines().count(), "{meta}");
    assert_eq!(
        keys[..3],
        [("abi", "1"), ("instance", "a_label"), ("kind", "timed")]
    );
    assert!(
        keys[3].0 == "compiler" && keys[3].1.starts_with("gcc "),
        "{meta}"
    );
    assert_eq!(keys[4..], [("long_bits", "64"), ("endian", "little")]);
    assert_eq!(rest, format!("0\n{SEEDED}"));
}

#[test]
fn the_adapter_reads_the_counter_of_rejected_draws_if_there_is_one() {
    let Some(tools) = Toolchain::host() else {
        return;
    };
    let absent = adapter_text(&tools, Some("fixture_rejected"), &[]);
    assert!(absent.contains("\nrejected 0\n"), "{absent}");
    let Some(tools) = Toolchain::host() else {
        return;
    };
    let present = adapter_text(&tools, Some("fixture_rejected"), &["counter.c"]);
    assert!(present.contains("\nrejected 42\n"), "{present}");
}

// ---- export.map ----

const API: [&str; 7] = [
    "drng_algorithm",
    "sig_get_pk_len_bytes",
    "sig_get_sk_len_bytes",
    "sig_get_sn_len_bytes",
    "sig_keygen",
    "sig_sign",
    "sig_verify",
];

/// What `campaign_abi.h` declares as exported for a kind of library.
fn declared(kind: &str) -> Vec<String> {
    let header = std::fs::read_to_string(abi("campaign_abi.h")).unwrap();
    let pattern = regex::Regex::new(r"CAMPAIGN_EXPORT[^;]*?\b(campaign_\w+)\(").unwrap();
    let kinds = ["profile", "memory", "stream"];
    let belongs = |name: &str| match kinds
        .iter()
        .find(|k| name.starts_with(&format!("campaign_{k}_")))
    {
        Some(of) => *of == kind,
        None => true,
    };
    let names = pattern
        .captures_iter(&header)
        .map(|found| found[1].to_owned());
    names.filter(|name| belongs(name)).collect()
}

fn stub_library(tools: &Toolchain, kind: &str) -> PathBuf {
    let mut flags = includes();
    flags.extend(include(&["drivers/iccs"]));
    flags.extend(adapter_defines("stub", kind));
    let mut sources = vec![
        fixture("stub_candidate.c"),
        root().join("drivers/iccs/sm3.c"),
        root().join("drivers/iccs/drng.c"),
        abi("adapter.c"),
    ];
    match kind {
        "memory" => sources.push(abi("memory.c")),
        "profile" => {
            let wrap = tools.path("wrap.c");
            std::fs::write(&wrap, wrap_source()).unwrap();
            // the functions that this source wraps
            sources.extend([
                wrap,
                abi("profile.c"),
                fixture("profile_functions.c"),
                fixture("profile_twice.c"),
            ]);
        }
        _ => {}
    }
    let objects: Vec<_> = sources
        .iter()
        .map(|source| tools.object(source, &flags))
        .collect();
    tools.library(&format!("{kind}.so"), &objects)
}

#[test]
fn a_library_exports_the_api_and_its_own_symbols_only() {
    let Some(tools) = Toolchain::host() else {
        return;
    };
    for kind in ["timed", "profile", "memory"] {
        let mut expected: Vec<String> = API.map(str::to_owned).into();
        expected.extend(declared(kind));
        expected.sort();
        let library = stub_library(&tools, kind);
        assert_eq!(exported(&library), expected, "kind {kind}");
    }
    // the fixture did try: without the script these would be seen
    let object = tools.object(&fixture("stub_candidate.c"), &includes());
    for hidden in ["sig_private", "shared_helper", "shared_table"] {
        assert!(defined(&object).contains(&hidden.to_owned()), "{hidden}");
    }
}

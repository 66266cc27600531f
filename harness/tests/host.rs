//! `check`, `tune` and `untune` on the files of six machines, behind which a model of the kernel
//! works: what is found is what was written down beforehand, and what was changed is as it was,
//! whatever happens in between.

use crate::support::host::{data, Killed, Machine, Model, Tree, MACHINES};
use crate::support::lab::{self, Instance, Lab, FINE};
use crate::support::{copy_tree, have, root, skip};
use assert_cmd::Command;
use harness::evidence::FindingState;
use harness::host::tune::guard::Guard;
use harness::host::tune::{self, How, Plan, Target, TuneError, JOURNAL};
use harness::host::{affinity, look, readiness, Root};
use nix::sys::signal::Signal;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

const BOOT_ID: &str = "proc/sys/kernel/random/boot_id";

fn expected(name: &str) -> Value {
    serde_json::from_slice(&fs::read(data(name, "expected.json")).unwrap()).unwrap()
}

fn texts(value: &Value) -> Vec<String> {
    let values = value.as_array().expect("a list").iter();
    values.map(|v| v.as_str().unwrap().to_owned()).collect()
}

fn cpus(name: &str) -> Vec<u32> {
    serde_json::from_value(expected(name)["cpus"].clone()).unwrap()
}

/// The program on a copy of a machine, started where no campaign is.
fn campaign(arguments: &[&str], machine: &Machine) -> (i32, String, String) {
    let elsewhere = tempfile::tempdir().unwrap();
    let output = Command::cargo_bin("campaign")
        .unwrap()
        .current_dir(&elsewhere)
        .args(arguments)
        .arg("--sysroot")
        .arg(machine.folder())
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (
        output.status.code().unwrap(),
        text(&output.stdout),
        text(&output.stderr),
    )
}

/// A finding as the expected lists have it.
fn short(finding: &Value) -> Value {
    let state = finding["state"].as_str().unwrap();
    let open = matches!(state, "bad" | "unknown");
    let state = match (open, finding["advice"].as_bool()) {
        (true, Some(true)) => format!("{state} advice"),
        _ => state.to_owned(),
    };
    serde_json::json!([finding["item"], finding["cpu"], state, finding["value"]])
}

/// What holds for an item on every machine: `hosts/items.toml`, which explains the keys.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Item {
    name: String,
    is: String,
    each: Each,
    from: Vec<String>,
    remedies: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Each {
    Machine,
    Cpu,
}

fn items() -> Vec<Item> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Items {
        item: Vec<Item>,
    }
    let text = fs::read_to_string(root().join("harness/tests/data/hosts/items.toml")).unwrap();
    toml::from_str::<Items>(&text).unwrap().item
}

impl Item {
    /// Where the value is from, and what is to be done if that is not fine.
    fn holds_for(&self, machine: &str, finding: &Value) {
        let cpu = finding["cpu"].to_string();
        let of_cpu = |texts: &[String]| -> Vec<String> {
            texts
                .iter()
                .map(|text| text.replace("{cpu}", &cpu))
                .collect()
        };
        let text = |key: &str| finding[key].as_str().unwrap_or_default().to_owned();
        let place = format!("{machine}: {finding}");
        assert!(of_cpu(&self.from).contains(&text("source")), "{place}");
        let remedy = text("remedy");
        let is_open = matches!(finding["state"].as_str(), Some("bad" | "unknown"));
        match is_open {
            false => assert_eq!(remedy, "", "{place}"),
            true => {
                let known = of_cpu(&self.remedies);
                assert!(known.iter().any(|part| remedy.contains(part)), "{place}");
            }
        }
    }
}

#[test]
fn every_item_of_the_list_is_expected_of_every_machine() {
    let items = items();
    for item in &items {
        assert!(!item.is.is_empty() && !item.from.is_empty(), "{item:?}");
        assert!(!item.remedies.is_empty(), "{item:?}");
    }
    for name in MACHINES {
        let expected = expected(name);
        assert_ne!(
            texts(&serde_json::json!([expected["from"]]))[0],
            "",
            "{name}"
        );
        let mut found: Vec<(String, Option<u64>)> = expected["findings"]
            .as_array()
            .unwrap()
            .iter()
            .map(|row| (row[0].as_str().unwrap().to_owned(), row[1].as_u64()))
            .collect();
        let mut listed: Vec<(String, Option<u64>)> = Vec::new();
        for item in &items {
            match item.each {
                Each::Machine => listed.push((item.name.clone(), None)),
                Each::Cpu => listed.extend(
                    cpus(name)
                        .into_iter()
                        .map(|cpu| (item.name.clone(), Some(cpu.into()))),
                ),
            }
        }
        found.sort();
        listed.sort();
        assert_eq!(found, listed, "{name}");
    }
}

/// No run that ends in SIGILL: what the campaign of this repository needs is held against each machine.
#[test]
fn implementations_that_a_machine_cannot_run_are_known_beforehand() {
    let config = root().join("campaign.toml");
    let config = config.to_str().unwrap();
    let needs = |machine: &Machine| {
        let (_, out, err) = campaign(&["check", "--json", "--config", config], machine);
        let report: Value = serde_json::from_str(&out).expect(&err);
        let mut findings = report["findings"].as_array().unwrap().iter();
        let found = findings.find(|f| f["item"] == "cpu_features").unwrap();
        serde_json::json!([short(found)[2], found["value"]])
    };
    for name in MACHINES {
        assert_eq!(
            needs(&Machine::new(name)),
            expected(name)["needs"],
            "{name}"
        );
    }
    let without = Machine::new("virtual-machine");
    let cpuinfo = without.path("proc/cpuinfo");
    let text = fs::read_to_string(&cpuinfo).unwrap();
    fs::write(&cpuinfo, text.replace(" avx2", "")).unwrap();
    let expected = serde_json::json!(["bad advice", "implementations lack features: 24 need avx2"]);
    assert_eq!(needs(&without), expected);
}

/// The system is that of the CPUs that are measured, whichever comes first in the machine's files.
#[test]
fn a_machine_of_two_clusters_is_the_system_of_the_measured_one() {
    let elsewhere = tempfile::tempdir().unwrap();
    let text = fs::read_to_string(root().join("campaign.toml")).unwrap();
    let big = text.replace("Oryon|X1E", "Cortex-A72");
    assert_ne!(big, text);
    let little = "\n[[system]]\nid = \"little\"\narch = \"aarch64\"\ncpu_model = \"Cortex-A53\"\n\
                  description = \"the small cores\"\ncc = \"gcc\"\n";
    let manifests = "performance/kat";
    copy_tree(
        &root().join(manifests),
        &elsewhere.path().join(manifests),
        &[],
    );
    let config = elsewhere.path().join("campaign.toml");
    fs::write(&config, big + little).unwrap();
    let machine = Machine::new("arm-big-little");
    let report = |cpu: &[&str]| -> Value {
        let mut arguments = vec!["check", "--json", "--config", config.to_str().unwrap()];
        arguments.extend(cpu);
        let (_, out, err) = campaign(&arguments, &machine);
        serde_json::from_str(&out).expect(&err)
    };
    let (a53, a72) = ("ARM Cortex-A53", "ARM Cortex-A72");
    let both = format!("{a53} + {a72}");
    for (cpu, system, class, processor) in [
        (&[][..], "arm_1", "registered", a72),
        (&["--cpu", "4"], "arm_1", "registered", a72),
        (&["--cpu", "0"], "little", "registered", a53),
        // Figures of both would be neither system's.
        (&["--cpu", "0,4"], "local", "local", &both),
    ] {
        let report = report(cpu);
        assert_eq!(report["system"], system, "{cpu:?}");
        assert_eq!(report["class"], class, "{cpu:?}");
        assert_eq!(report["processor"], processor, "{cpu:?}");
    }
    // What only the big cores can do, the small ones cannot.
    let cpuinfo = machine.path("proc/cpuinfo");
    let text = fs::read_to_string(&cpuinfo).unwrap();
    let (small, large) = text.split_once("\n\n").unwrap();
    let large = large.replace(" sha2 ", " sha2 sha3 sve ");
    fs::write(&cpuinfo, format!("{small}\n\n{large}")).unwrap();
    let needs = |cpu: &str| {
        let report = report(&["--cpu", cpu]);
        let mut findings = report["findings"].as_array().unwrap().iter();
        let found = findings.find(|f| f["item"] == "cpu_features").unwrap();
        found["value"].as_str().unwrap().to_owned()
    };
    assert_eq!(needs("4"), "every implementation can run");
    for cpus in ["0", "0,4", "4,0"] {
        assert!(needs(cpus).contains("need sve"), "{cpus}: {}", needs(cpus));
    }
}

#[test]
fn every_machine_has_the_findings_that_were_written_down() {
    for name in MACHINES {
        let machine = Machine::new(name);
        let before = machine.tree();
        let (status, out, err) = campaign(&["check", "--json"], &machine);
        assert_eq!((status, err.as_str()), (1, ""), "{name}");
        let report: Value = serde_json::from_str(&out).unwrap();
        let expected = expected(name);
        assert_eq!(report["cpus"], expected["cpus"], "{name}");
        assert_eq!(report["ready"], false, "{name}: unknown is never ok");
        let findings = report["findings"].as_array().unwrap();
        let found: Vec<Value> = findings.iter().map(short).collect();
        let listed = expected["findings"].as_array().unwrap();
        for (found, expected) in found.iter().zip(listed) {
            assert_eq!(found, expected, "{name}");
        }
        assert_eq!(found.len(), listed.len(), "{name}");
        let items = items();
        for finding in findings {
            let item = items.iter().find(|item| finding["item"] == *item.name);
            item.unwrap().holds_for(name, finding);
        }
        assert_eq!(machine.tree(), before, "{name}: a check changes nothing");
    }
}

#[test]
fn arm_processors_are_named_and_every_table_says_whether_the_machine_is_ready() {
    for (name, processor) in [
        ("arm-big-little", "ARM Cortex-A72, CPU 4."),
        ("snapdragon-laptop", "Qualcomm Oryon, CPU 11."),
        (
            "intel-hybrid",
            "12th Gen Intel(R) Core(TM) i7-12700, CPU 14.",
        ),
    ] {
        let (_, out, _) = campaign(&["check"], &Machine::new(name));
        assert!(out.contains(processor), "{name}: {out}");
        assert!(out.contains("\nnot ready: "), "{name}: {out}");
    }
    let (status, _, err) = campaign(&["check", "--cpu", "3"], &Machine::new("arm-big-little"));
    assert_eq!(status, 2);
    assert!(
        err.contains("CPU 3 cannot be measured on: it is offline"),
        "{err}"
    );
    let (status, _, err) = campaign(&["check", "--cpu", "5"], &Machine::new("arm-big-little"));
    assert_eq!(status, 2);
    assert!(err.contains("these can: 0,1,2,4"), "{err}");
}

/// The changes as text, with what each file will hold.
fn changes(plan: &Plan, root: &Root) -> Vec<String> {
    let mut will: BTreeMap<&str, String> = BTreeMap::new();
    let mut lines = Vec::new();
    for step in &plan.steps {
        let to = match &step.to {
            Target::Value(value) => value.clone(),
            Target::SameAs(path) => match will.get(path.as_str()) {
                Some(value) => value.clone(),
                None => root.text(path).unwrap(),
            },
        };
        lines.push(format!("{}: {} -> {to}", step.path, step.from));
        will.insert(&step.path, to);
    }
    lines
}

#[test]
fn every_machine_is_changed_as_was_written_down_and_a_dry_run_changes_nothing() {
    for name in MACHINES {
        let machine = Machine::new(name);
        let before = machine.tree();
        let root = Root::at(machine.folder());
        let plan = tune::plan(&root, &cpus(name)).unwrap();
        assert_eq!(
            changes(&plan, &root),
            texts(&expected(name)["tune"]),
            "{name}"
        );
        assert_eq!(plan.notes, [""; 0], "{name}");
        let (status, out, _) = campaign(&["tune", "--dry-run"], &machine);
        assert_eq!(status, 0, "{name}");
        for step in &plan.steps {
            assert!(
                out.contains(&format!("/{}: {}", step.path, step.from)),
                "{out}"
            );
        }
        assert_eq!(machine.tree(), before, "{name}");
    }
}

/// Items that are bad on a machine now.
fn bad(root: &Root, cpus: &[u32]) -> Vec<String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let allowed = affinity::allowed_on(root).unwrap();
    let look = look::Look {
        root,
        cpus,
        allowed: &allowed,
        compiler: None,
        needs: None,
        prober: Err("nobody".to_owned()),
    };
    let state = runtime.block_on(look.look()).unwrap();
    let bad = |f: &&harness::evidence::Finding| f.state == FindingState::Bad;
    let items = state.findings.iter().filter(bad);
    items.map(|finding| finding.item.clone()).collect()
}

#[test]
fn a_tuned_machine_is_as_it_should_be_and_an_untuned_one_as_it_was() {
    for name in MACHINES {
        let machine = Machine::new(name);
        let (before, kernel) = (machine.tree(), machine.kernel());
        let root = machine.root(&kernel);
        let cpus = cpus(name);
        let plan = tune::plan(&root, &cpus).unwrap();
        let applied = tune::apply(&root, &plan, &cpus).unwrap();
        let refused: Vec<&String> = applied.refused.iter().map(|r| &r.path).collect();
        let expected = expected(name);
        assert_eq!(
            refused,
            texts(&expected["refused"]).iter().collect::<Vec<_>>()
        );
        assert_eq!(
            bad(&root, &cpus),
            texts(&expected["bad_when_tuned"]),
            "{name}"
        );
        let left = tune::left(&root).map(|left| left.how);
        let was_changed = !applied.changes.is_empty();
        assert_eq!(left, was_changed.then_some(How::Tuned), "{name}");
        if was_changed {
            let again = tune::apply(&root, &plan, &cpus).unwrap_err();
            assert!(matches!(again, TuneError::Tuned(_)), "{name}: {again}");
        }
        let restored = tune::restore(&root).unwrap();
        assert_eq!(
            (restored.was_tuned, restored.open.len()),
            (was_changed, 0),
            "{name}"
        );
        assert_same(&machine.tree(), &before, name);
        assert_eq!(tune::left(&root), None);
        assert!(!tune::restore(&root).unwrap().was_tuned);
    }
}

fn assert_same(now: &Tree, before: &Tree, name: &str) {
    for (path, value) in before {
        assert_eq!(now.get(path), Some(value), "{name}: {path}");
    }
    for path in now.keys() {
        assert!(before.contains_key(path), "{name}: {path} is new");
    }
}

/// Runs `act` in a process that is killed at write `at`; whether it came so far.
fn killed(kernel: &Model, at: usize, after: bool, act: impl FnOnce()) -> bool {
    kernel.kill_at(at, after);
    let ended = catch_unwind(AssertUnwindSafe(act));
    kernel.kill_nobody();
    match ended {
        Ok(()) => false,
        Err(cause) => match cause.downcast::<Killed>() {
            Ok(_) => true,
            Err(cause) => std::panic::resume_unwind(cause),
        },
    }
}

/// Kills do not fill the output of the tests; other panics do.
fn quiet_kills() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !info.payload().is::<Killed>() {
                usual(info);
            }
        }));
    });
}

/// A machine that is begun anew, its kernel, its files, and what they were.
fn fresh(name: &str) -> (Machine, Arc<Model>, Root, Tree) {
    let machine = Machine::new(name);
    let (kernel, before) = (machine.kernel(), machine.tree());
    let root = machine.root(&kernel);
    (machine, kernel, root, before)
}

fn tune_now(root: &Root, name: &str) {
    let cpus = cpus(name);
    let plan = tune::plan(root, &cpus).unwrap();
    tune::apply(root, &plan, &cpus).unwrap();
}

#[test]
fn a_kill_at_any_step_of_tuning_leaves_what_restores_everything() {
    quiet_kills();
    for name in MACHINES {
        let (machine, _, root, before) = fresh(name);
        tune_now(&root, name);
        let journal = fs::read_to_string(machine.path(JOURNAL)).unwrap_or_default();
        let writes = journal.matches("{\"line\":\"write\"").count();
        tune::restore(&root).unwrap();
        let mut kills = 0;
        for after in [false, true] {
            for at in 0.. {
                // The machine is as it was: only its kernel begins anew.
                let kernel = machine.kernel();
                let root = machine.root(&kernel);
                if !killed(&kernel, at, after, || tune_now(&root, name)) {
                    tune::restore(&root).unwrap();
                    break;
                }
                kills += 1;
                let left = tune::left(&root).expect("the journal is there");
                assert_eq!(left.how, How::CutOff, "{name} at {at}");
                let restored = tune::restore(&root).unwrap();
                assert_eq!(restored.open, [], "{name} at {at}");
                assert_same(&machine.tree(), &before, &format!("{name} at {at}"));
            }
        }
        // Where the kernel refuses the only change, no journal is left to count.
        assert_eq!(
            kills,
            2 * writes.max(1),
            "{name}: before and after every write"
        );
    }
}

#[test]
fn a_kill_at_any_step_of_restoring_leaves_what_restores_the_rest() {
    quiet_kills();
    for name in MACHINES {
        let (machine, _, _, before) = fresh(name);
        for after in [false, true] {
            for at in 0.. {
                let kernel = machine.kernel();
                let root = machine.root(&kernel);
                tune_now(&root, name);
                if !killed(&kernel, at, after, || drop(tune::restore(&root).unwrap())) {
                    assert_same(&machine.tree(), &before, name);
                    assert!(
                        at > 0 || name == "container",
                        "{name}: nothing was restored"
                    );
                    break;
                }
                let restored = tune::restore(&root).unwrap();
                assert_eq!(restored.open, [], "{name} at {at}");
                assert_same(&machine.tree(), &before, &format!("{name} at {at}"));
            }
        }
    }
}

#[test]
fn a_line_of_the_journal_that_is_torn_announced_nothing() {
    quiet_kills();
    let name = "arm-big-little";
    // Killed before the second write: its line is the last.
    let journal = || {
        let (machine, kernel, root, before) = fresh(name);
        assert!(killed(&kernel, 1, false, || tune_now(&root, name)));
        (machine, root, before)
    };
    let (machine, ..) = journal();
    let whole = fs::read(machine.path(JOURNAL)).unwrap();
    let last = whole[..whole.len() - 1]
        .iter()
        .rposition(|b| *b == b'\n')
        .unwrap()
        + 1;
    for length in last..whole.len() {
        let (machine, root, before) = journal();
        // Its head differs in time alone, so the length is the same.
        let text = fs::read(machine.path(JOURNAL)).unwrap();
        fs::write(machine.path(JOURNAL), &text[..length]).unwrap();
        assert_eq!(tune::restore(&root).unwrap().open, []);
        assert_same(&machine.tree(), &before, &format!("{length} bytes"));
    }
}

#[test]
fn a_journal_that_ends_before_the_first_change_is_no_obstacle_and_a_damaged_one_is() {
    let name = "virtual-machine";
    let (machine, _, root, before) = fresh(name);
    tune_now(&root, name);
    let text = fs::read_to_string(machine.path(JOURNAL)).unwrap();
    let saved = text.find("{\"line\":\"saved\"}").unwrap();
    tune::restore(&root).unwrap();
    for length in [0, 10, saved - 1, saved + 5] {
        fs::create_dir_all(machine.path(JOURNAL).parent().unwrap()).unwrap();
        fs::write(machine.path(JOURNAL), &text[..length]).unwrap();
        assert_eq!(tune::left(&root), None, "{length}");
        assert!(!tune::restore(&root).unwrap().was_tuned);
        assert_same(&machine.tree(), &before, &format!("{length} bytes"));
        // Nor does it keep another from tuning.
        fs::create_dir_all(machine.path(JOURNAL).parent().unwrap()).unwrap();
        fs::write(machine.path(JOURNAL), &text[..length]).unwrap();
        tune_now(&root, name);
        tune::restore(&root).unwrap();
    }
    tune_now(&root, name);
    let damaged = text.replacen("{\"line\":\"value\"", "{\"line\":\"valu\"", 1);
    fs::write(machine.path(JOURNAL), damaged).unwrap();
    let error = tune::restore(&root).unwrap_err();
    assert!(
        matches!(error, TuneError::Damaged { line: 2, .. }),
        "{error}"
    );
    assert!(tune::left(&root).is_some());
}

#[test]
fn what_the_kernel_refuses_is_named_and_the_rest_is_changed_and_restored() {
    let (mut machine, ..) = fresh("intel-hybrid");
    let smt = "sys/devices/system/cpu/smt/control";
    let governor = "sys/devices/system/cpu/cpufreq/policy14/scaling_governor";
    machine.fail(smt, 16);
    machine.fail(governor, 22);
    let (kernel, before) = (machine.kernel(), machine.tree());
    let root = machine.root(&kernel);
    let plan = tune::plan(&root, &[14]).unwrap();
    let applied = tune::apply(&root, &plan, &[14]).unwrap();
    let refused: Vec<(&str, bool)> = applied
        .refused
        .iter()
        .map(|r| (r.path.as_str(), r.why.contains("busy")))
        .collect();
    assert_eq!(refused, [(governor, false), (smt, true)]);
    assert_eq!(applied.failed().count(), 2);
    // Without boost, the maximum is where it should be already.
    assert_eq!(applied.changes.len(), plan.steps.len() - 3);
    assert_eq!(tune::restore(&root).unwrap().open, []);
    assert_same(&machine.tree(), &before, "intel-hybrid");
}

#[test]
fn a_value_that_cannot_be_brought_back_keeps_the_journal_until_it_can() {
    let (mut machine, _, root, before) = fresh("snapdragon-laptop");
    tune_now(&root, "snapdragon-laptop");
    let boost = "sys/devices/system/cpu/cpufreq/boost";
    machine.fail(boost, 16);
    let busy = machine.root(&machine.kernel());
    let restored = tune::restore(&busy).unwrap();
    assert_eq!(restored.open[0].path, boost);
    assert_eq!(restored.open[0].value, "1");
    assert!(
        restored.open[0].why.contains("it holds 0"),
        "{:?}",
        restored.open
    );
    assert!(machine.path(JOURNAL).is_file());
    // The first kernel knows what boost was, and is not busy.
    assert_eq!(tune::restore(&root).unwrap().open, []);
    assert_same(&machine.tree(), &before, "snapdragon-laptop");
}

#[test]
fn a_restart_in_between_is_noticed_and_interrupts_are_left_alone_then() {
    let (machine, _, root, before) = fresh("arm-big-little");
    tune_now(&root, "arm-big-little");
    fs::write(
        machine.path(BOOT_ID),
        "77777777-7777-4777-8777-777777777777\n",
    )
    .unwrap();
    // The kernel has its own values again; number 31 is another device now.
    let irq = "proc/irq/31/smp_affinity_list";
    fs::write(machine.path(irq), "5\n").unwrap();
    let left = tune::left(&root).unwrap();
    assert_eq!(left.how, How::Restarted);
    assert!(
        left.to_string().contains("started again in the meantime"),
        "{left}"
    );
    let (_, out, _) = campaign(&["check"], &machine);
    assert!(out.contains("not restored, and was started again"), "{out}");
    let restored = tune::restore(&root).unwrap();
    assert!(restored.restarted && restored.open.is_empty());
    let now = machine.tree();
    assert_eq!(now[irq], "644 5\n");
    let governor = "sys/devices/system/cpu/cpufreq/policy4/scaling_governor";
    assert_eq!(now[governor], before[governor]);
}

#[test]
fn the_commands_say_what_they_did_and_what_was_left() {
    let machine = Machine::new("snapdragon-laptop");
    let before = machine.tree();
    let (status, out, _) = campaign(&["tune", "--cpu", "8"], &machine);
    assert_eq!(status, 0, "{out}");
    assert!(
        out.contains("policy8/scaling_governor: schedutil -> performance"),
        "{out}"
    );
    assert!(out.contains("`campaign untune` restores them"), "{out}");
    let (status, _, err) = campaign(&["tune", "--cpu", "8"], &machine);
    assert_eq!(status, 3);
    assert!(err.contains("this host is tuned since"), "{err}");
    let (_, out, _) = campaign(&["check", "--cpu", "8"], &machine);
    assert!(out.contains("this host is tuned since"), "{out}");
    let (status, out, _) = campaign(&["untune"], &machine);
    assert_eq!(status, 0);
    assert!(out.ends_with("the host is as it was before\n"), "{out}");
    assert_same(&machine.tree(), &before, "snapdragon-laptop");
    let (status, out, _) = campaign(&["untune"], &machine);
    assert_eq!(
        (status, out.as_str()),
        (0, "this host is not tuned: nothing to restore\n")
    );
    let (status, _, err) = campaign(&["tune", "--cpu", "15"], &Machine::new("intel-hybrid"));
    assert_eq!(status, 2);
    assert!(err.contains("--cpu 14"), "{err}");
}

#[test]
fn a_machine_on_which_nothing_can_be_kept_is_not_changed() {
    let (machine, _, root, _) = fresh("arm-big-little");
    fs::write(machine.path("var/lib/campaign"), "in the way").unwrap();
    let before = machine.tree();
    let plan = tune::plan(&root, &[4]).unwrap();
    let error = tune::apply(&root, &plan, &[4]).unwrap_err();
    assert!(matches!(error, TuneError::NoJournal { .. }), "{error}");
    assert_same(&machine.tree(), &before, "arm-big-little");
}

#[test]
fn a_compiler_and_a_probe_are_all_that_a_tuned_machine_lacks() {
    let (_machine, _, root, _) = fresh("snapdragon-laptop");
    tune_now(&root, "snapdragon-laptop");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let look = look::Look {
        root: &root,
        cpus: &[11],
        allowed: &[11],
        compiler: Some("gcc (GCC) 13.2.0".to_owned()),
        needs: Some(&[]),
        prober: Err("nobody".to_owned()),
    };
    let state = runtime.block_on(look.look()).unwrap();
    let against: Vec<&str> = state
        .findings
        .iter()
        .filter(|finding| readiness::stands_against(finding))
        .map(|finding| finding.item.as_str())
        .collect();
    assert_eq!(against, ["cycle_counter"]);
}

// ---- the supervisor -----------------------------------------------------------------------------

fn program() -> std::path::PathBuf {
    assert_cmd::cargo::cargo_bin("campaign")
}

#[test]
fn a_supervisor_tunes_and_restores() {
    let machine = Machine::new("arm-big-little");
    let before = machine.tree();
    let root = Root::at(machine.folder());
    let (guard, applied) = Guard::start(&program(), &[4], Some(machine.folder())).unwrap();
    assert_eq!(applied.changes.len(), 4);
    let left = tune::left(&root).unwrap();
    assert_eq!(left.how, How::InUse);
    let (status, _, err) = campaign(&["untune"], &machine);
    assert_eq!(status, 3);
    assert!(err.contains("wait for its end"), "{err}");
    let (status, _, err) = campaign(&["tune"], &machine);
    assert_eq!(status, 3, "{err}");
    let restored = guard.finish().unwrap();
    assert_eq!(restored.open, []);
    assert_same(&machine.tree(), &before, "arm-big-little");
    // One that is let go without a word restores as well.
    let (guard, _) = Guard::start(&program(), &[4], Some(machine.folder())).unwrap();
    drop(guard);
    assert_same(&machine.tree(), &before, "arm-big-little");
}

#[test]
fn a_supervisor_that_cannot_tune_says_why() {
    let machine = Machine::new("arm-big-little");
    fs::write(machine.path("var/lib/campaign"), "in the way").unwrap();
    let error = Guard::start(&program(), &[4], Some(machine.folder())).unwrap_err();
    assert!(error.to_string().contains("nothing was changed"), "{error}");
}

/// Names the folder of the machine to the process that [`orchestrator_stand_in`] is run in.
const STAND_IN: &str = "CAMPAIGN_TEST_ORCHESTRATOR";

/// No test: an orchestrator that starts a supervisor, says so, and works for ever.
#[test]
#[ignore = "run by orchestrators_that_are_killed_leave_a_restored_host"]
fn orchestrator_stand_in() {
    let Some(folder) = std::env::var_os(STAND_IN) else {
        return;
    };
    let _guard = Guard::start(&program(), &[4], Some(Path::new(&folder))).unwrap();
    loop {
        std::thread::sleep(Duration::from_secs(3600));
    }
}

/// Waits for something that happens soon, and fails the test when it does not.
fn wait_until(what: &str, mut happened: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(120);
    while !happened() {
        assert!(Instant::now() < end, "{what}: not within two minutes");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn orchestrators_that_are_killed_leave_a_restored_host() {
    let machine = Machine::new("arm-big-little");
    let before = machine.tree();
    let root = Root::at(machine.folder());
    let mut orchestrator = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "host::orchestrator_stand_in"])
        .env(STAND_IN, machine.folder())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let is_tuned = || {
        fs::read_to_string(machine.path(JOURNAL)).is_ok_and(|text| text.contains("\"complete\""))
    };
    wait_until("tuned", is_tuned);
    assert_eq!(tune::left(&root).unwrap().how, How::InUse);
    assert_ne!(machine.tree(), before);
    // SIGKILL, to the orchestrator alone.
    orchestrator.kill().unwrap();
    orchestrator.wait().unwrap();
    wait_until("restored", || !machine.path("var/lib/campaign").exists());
    assert_same(&machine.tree(), &before, "arm-big-little");
}

#[test]
fn a_supervisor_that_is_killed_itself_leaves_the_journal_and_the_next_command_says_so() {
    let machine = Machine::new("arm-big-little");
    let before = machine.tree();
    let mut supervisor = std::process::Command::new(program())
        .args(["tune-guard", "--cpu", "4", "--sysroot"])
        .arg(machine.folder())
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let is_tuned = || {
        fs::read_to_string(machine.path(JOURNAL)).is_ok_and(|text| text.contains("\"complete\""))
    };
    wait_until("tuned", is_tuned);
    supervisor.kill().unwrap();
    supervisor.wait().unwrap();
    let (_, out, _) = campaign(&["check", "--cpu", "4"], &machine);
    assert!(out.contains("which ended without restoring it"), "{out}");
    let (status, out, _) = campaign(&["untune"], &machine);
    assert_eq!(status, 0, "{out}");
    assert_same(&machine.tree(), &before, "arm-big-little");
}

// ---- whole runs ---------------------------------------------------------------------------------

const RECORD: &str = "records/lab/lab-1.ref.reference__sign.json";

#[test]
fn a_run_with_tune_leaves_a_restored_machine_at_its_end_and_when_it_is_killed() {
    if !have("gcc", "gcc") {
        return;
    }
    let machine = Machine::new("snapdragon-laptop");
    let cpu = affinity::allowed().unwrap()[0];
    if !machine
        .path(&format!("sys/devices/system/cpu/cpu{cpu}"))
        .is_dir()
    {
        return skip("the first CPU of this process has a number that the fixture has not");
    }
    let before = machine.tree();
    let slow = Instance {
        defines: &["LAB_SPIN_MS=100"],
        ..FINE
    };
    let lab = Lab::new(&[slow], "");
    let (cpu, folder) = (cpu.to_string(), machine.folder().to_str().unwrap());
    let run = [
        "run",
        "--only",
        "/sign$",
        "--cpu",
        &cpu,
        "--tune",
        "--sysroot",
        folder,
    ];
    let mut running = lab.start(&run);
    let signs = [("event", "attempt_begun"), ("record", RECORD)];
    let directory = lab.run_dir(1);
    let has_begun = || lab::has_event(&directory, &signs);
    assert!(lab::wait_until(&mut running, has_begun));
    let boost = "sys/devices/system/cpu/cpufreq/boost";
    assert_eq!(machine.tree()[boost], "644 0\n", "tuned while it measures");
    running.signal(Signal::SIGKILL);
    let end = running.end();
    assert!(end.stderr.contains("killed; the host is restored"), "{end}");
    assert_same(&machine.tree(), &before, "killed");
    let end = lab.campaign(&run).expect(0);
    assert!(
        end.stderr.contains("tune: the host is as it was before"),
        "{end}"
    );
    assert_same(&machine.tree(), &before, "ended");
}

#[test]
fn plans_with_verdicts_refuse_a_host_that_is_not_ready_unless_told_otherwise() {
    if !have("gcc", "gcc") {
        return;
    }
    let guide = "[plan.guide]\ntrials = 3\ntarget_s = 0.002\nmin_total = 3\nbudget_s = 5\nkeys = 2";
    let lab = Lab::new(&[FINE], guide);
    let run = ["run", "--plan", "guide"];
    let checked = lab.campaign(&["check", "--json"]);
    let checked: Value = serde_json::from_str(&checked.stdout).unwrap();
    if checked["ready"].as_bool().unwrap() {
        lab.campaign(&run).expect(0);
        return skip("this host is ready, so that nothing refuses it");
    }
    let end = lab.campaign(&run).expect(1);
    assert!(end.stderr.contains("not ready for the plan guide"), "{end}");
    let directory = lab.path("runs/local-guide-1");
    assert!(!directory.exists(), "nothing was begun");
    let end = lab.campaign(&[&run[..], &["--allow-unfixed-host"]].concat());
    let end = end.expect(0);
    assert!(end.stdout.contains("the host is not fixed"), "{end}");
    assert_eq!(
        lab::json(&directory, "campaign.json")["allow_unfixed_host"],
        true
    );
    let environment = lab::json(&directory, "environment/0.json");
    assert_eq!(environment["ready"], false);
    let record = "records/lab/lab-1.ref.reference__verify.json";
    assert_eq!(lab::json(&directory, record)["host_ready"], false);
    let page = fs::read_to_string(directory.join("pages/lab.md")).unwrap();
    assert!(
        page.contains("The host was not fixed while this was measured"),
        "{page}"
    );
}

//! Machines as folders, and a model of the kernel behind their files.
//!
//! A machine is one text file, `tests/data/hosts/<name>/machine.txt`:
//!
//! | line | makes |
//! |---|---|
//! | `path = value` | a file with that line |
//! | `path <<`, lines, `>>` | a file with these lines |
//! | `read-only path = value` | one that cannot be written |
//! | `folder path` | an empty folder |
//! | `link path -> target` | a symbolic link |
//! | `fail EBUSY path` | nothing: writing to the path fails that way |
//!
//! `{0-3,8}` in a path stands for each of these numbers, and `{}` after it for the number itself.

use harness::host::root::Kernel;
use harness::host::Root;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::{symlink, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// All fixtures.
pub const MACHINES: [&str; 6] = [
    "intel-hybrid",
    "amd-server",
    "arm-big-little",
    "snapdragon-laptop",
    "container",
    "virtual-machine",
];

const CPU: &str = "sys/devices/system/cpu";

/// A machine in a temporary folder.
pub struct Machine {
    dir: tempfile::TempDir,
    fails: BTreeMap<String, i32>,
}

/// What a folder holds, by path: content and mode of files, targets of links.
pub type Tree = BTreeMap<String, String>;

impl Machine {
    /// The fixture of that name.
    pub fn new(name: &str) -> Machine {
        let path = data(name, "machine.txt");
        let text = fs::read_to_string(&path).unwrap();
        // In memory where there is a place for that: hundreds of files, and many waits for the disk.
        let memory = Path::new("/dev/shm");
        let dir = match tempfile::tempdir_in(memory) {
            Ok(dir) => dir,
            Err(_) => tempfile::tempdir().unwrap(),
        };
        let mut machine = Machine {
            dir,
            fails: BTreeMap::new(),
        };
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            machine.line(line, &mut lines);
        }
        fs::create_dir_all(machine.path("var/lib")).unwrap();
        machine
    }

    fn line<'a>(&mut self, line: &str, rest: &mut impl Iterator<Item = &'a str>) {
        if line.trim().is_empty() || line.starts_with('#') {
            return;
        }
        if let Some(path) = line.strip_suffix(" <<") {
            let lines: Vec<&str> = rest.take_while(|line| *line != ">>").collect();
            return self.file(path, &lines.join("\n"), 0o644);
        }
        match line.split_once(' ').unwrap() {
            ("folder", path) => fs::create_dir_all(self.path(path)).unwrap(),
            ("fail", rest) => {
                let (name, path) = rest.split_once(' ').unwrap();
                let number = match name {
                    "EIO" => 5,
                    "EBUSY" => 16,
                    "EINVAL" => 22,
                    other => panic!("no number for {other}"),
                };
                self.fails.insert(path.to_owned(), number);
            }
            ("link", rest) => {
                let (path, target) = rest.split_once(" -> ").unwrap();
                for (path, target) in expand(path, target) {
                    let path = self.path(&path);
                    fs::create_dir_all(path.parent().unwrap()).unwrap();
                    symlink(target, path).unwrap();
                }
            }
            ("read-only", rest) => self.assignment(rest, 0o444),
            _ => self.assignment(line, 0o644),
        }
    }

    fn assignment(&self, line: &str, mode: u32) {
        let (path, value) = line.split_once(" =").expect(line);
        for (path, value) in expand(path, value.trim()) {
            self.file(&path, &value, mode);
        }
    }

    fn file(&self, path: &str, text: &str, mode: u32) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, format!("{text}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    }

    /// Its folder.
    pub fn folder(&self) -> &Path {
        self.dir.path()
    }

    /// Where a file lies.
    pub fn path(&self, path: &str) -> PathBuf {
        self.dir.path().join(path)
    }

    /// Writing to `path` fails from now on.
    pub fn fail(&mut self, path: &str, errno: i32) {
        self.fails.insert(path.to_owned(), errno);
    }

    /// Its kernel, at work.
    pub fn kernel(&self) -> Arc<Model> {
        Arc::new(Model {
            folder: self.folder().to_owned(),
            fails: self.fails.clone(),
            state: Mutex::default(),
        })
    }

    /// Its files, written through `kernel`.
    pub fn root(&self, kernel: &Arc<Model>) -> Root {
        Root::with(self.folder(), kernel.clone())
    }

    /// Everything in it.
    pub fn tree(&self) -> Tree {
        let mut tree = Tree::new();
        walk(self.folder(), "", &mut tree);
        tree
    }
}

/// A file of a fixture.
pub fn data(name: &str, file: &str) -> PathBuf {
    let folder = super::root().join("harness/tests/data/hosts");
    folder.join(name).join(file)
}

fn walk(folder: &Path, below: &str, tree: &mut Tree) {
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let name = format!("{below}{}", entry.file_name().to_str().unwrap());
        let kind = entry.file_type().unwrap();
        let path = entry.path();
        if kind.is_symlink() {
            let target = fs::read_link(&path).unwrap();
            tree.insert(name, format!("link {}", target.display()));
        } else if kind.is_dir() {
            tree.insert(name.clone(), "folder".to_owned());
            walk(&path, &format!("{name}/"), tree);
        } else {
            let mode = fs::metadata(&path).unwrap().permissions().mode() & 0o7777;
            let text = fs::read_to_string(&path).unwrap();
            tree.insert(name, format!("{mode:o} {text}"));
        }
    }
}

/// All paths that a path with braces stands for, each with its text.
fn expand(path: &str, text: &str) -> Vec<(String, String)> {
    let Some((before, rest)) = path.split_once('{') else {
        return vec![(path.to_owned(), text.to_owned())];
    };
    let (list, after) = rest.split_once('}').unwrap();
    let number = |n: &u32| {
        let text = text.replace("{}", &n.to_string());
        (format!("{before}{n}{after}"), text)
    };
    cpus(list).iter().map(number).collect()
}

fn cpus(list: &str) -> Vec<u32> {
    harness::host::facts::parse_cpu_list(list)
}

fn list(cpus: &[u32]) -> String {
    let mut words: Vec<String> = Vec::new();
    let mut at = 0;
    while at < cpus.len() {
        let mut end = at;
        while end + 1 < cpus.len() && cpus[end + 1] == cpus[end] + 1 {
            end += 1;
        }
        words.push(match at == end {
            true => cpus[at].to_string(),
            false => format!("{}-{}", cpus[at], cpus[end]),
        });
        at = end + 1;
    }
    words.join(",")
}

/// A kernel behind the files of a machine. What it does is what the kernel's documentation says
/// (Documentation/admin-guide/pm, core-api/cpu_hotplug.rst, core-api/irq/irq-affinity.rst): it refuses
/// minimum above maximum, as it did until 5.3; switching boost sets the limits of all policies; an
/// offline CPU loses its frequency files and gets the driver's own values when it comes back; an
/// interrupt whose last CPU goes is moved to all others.
#[derive(Debug)]
pub struct Model {
    folder: PathBuf,
    fails: BTreeMap<String, i32>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    writes: usize,
    /// Number of the write at which the process ends, and whether it is carried out first.
    kill: Option<(usize, bool)>,
    /// What an offline CPU has lost: its files by path, and its link.
    lost: BTreeMap<u32, Vec<(String, String)>>,
    /// Highest frequency with boost, by policy.
    boosted: BTreeMap<String, String>,
}

/// What a killed process unwinds with.
pub struct Killed;

const EPERM: i32 = 1;
const ENOENT: i32 = 2;
const EACCES: i32 = 13;
const EBUSY: i32 = 16;
const EINVAL: i32 = 22;
const ENODEV: i32 = 19;

type Result<T = ()> = std::result::Result<T, i32>;

impl Kernel for Model {
    fn write(&self, file: &Path, value: &[u8]) -> io::Result<()> {
        let file = self.folder.join(file);
        let folder = self.folder.canonicalize().unwrap();
        let real = file.canonicalize()?;
        let path = real.strip_prefix(folder).unwrap().to_str().unwrap();
        let mut state = self.state.lock().unwrap_or_else(|e| e.into_inner());
        let number = state.writes;
        state.writes += 1;
        let kill = state.kill.filter(|(at, _)| *at == number);
        if let Some((_, false)) = kill {
            drop(state);
            std::panic::panic_any(Killed);
        }
        let value = std::str::from_utf8(value).unwrap().trim();
        let done = self.take(&mut state, path, value);
        drop(state);
        if kill.is_some() {
            std::panic::panic_any(Killed);
        }
        done.map_err(io::Error::from_raw_os_error)
    }
}

impl Model {
    /// The process ends at write `at` (from 0), before or after it is carried out.
    pub fn kill_at(&self, at: usize, after: bool) {
        let mut state = self.state.lock().unwrap();
        (state.writes, state.kill) = (0, Some((at, after)));
    }

    /// Nobody is killed any more.
    pub fn kill_nobody(&self) {
        self.state.lock().unwrap_or_else(|e| e.into_inner()).kill = None;
    }

    fn text(&self, path: &str) -> Result<String> {
        let text = fs::read_to_string(self.folder.join(path)).map_err(|_| ENOENT)?;
        Ok(text.trim_end_matches('\n').to_owned())
    }

    fn number(&self, path: &str) -> Result<u64> {
        self.text(path)?.parse().map_err(|_| EINVAL)
    }

    fn set(&self, path: &str, value: &str) {
        fs::write(self.folder.join(path), format!("{value}\n")).unwrap();
    }

    fn exists(&self, path: &str) -> bool {
        self.folder.join(path).exists()
    }

    fn cpus(&self, path: &str) -> Vec<u32> {
        self.text(path).map(|text| cpus(&text)).unwrap_or_default()
    }

    fn take(&self, state: &mut State, path: &str, value: &str) -> Result {
        if let Some(errno) = self.fails.get(path) {
            return Err(*errno);
        }
        let mode = fs::metadata(self.folder.join(path)).unwrap().permissions();
        if mode.mode() & 0o200 == 0 {
            return Err(EACCES);
        }
        let (folder, name) = path.rsplit_once('/').unwrap();
        match name {
            "perf_event_paranoid" => {
                value.parse::<i64>().map_err(|_| EINVAL)?;
                self.set(path, value);
            }
            "scaling_governor" => self.governor(folder, value)?,
            "energy_performance_preference" => self.preference(folder, value)?,
            "scaling_min_freq" | "scaling_max_freq" => self.limit(folder, name, value)?,
            "boost" | "no_turbo" => self.boost(state, path, value)?,
            "control" => self.smt(state, value)?,
            "online" => self.hotplug(state, folder, value)?,
            "smp_affinity_list" => self.affinity(path, value)?,
            other => panic!("nobody should write to {other}"),
        }
        Ok(())
    }

    fn governor(&self, policy: &str, value: &str) -> Result {
        let offered = self.text(&format!("{policy}/scaling_available_governors"))?;
        if !offered.split_whitespace().any(|word| word == value) {
            return Err(EINVAL);
        }
        self.set(&format!("{policy}/scaling_governor"), value);
        let preference = format!("{policy}/energy_performance_preference");
        if value == "performance" && self.exists(&preference) {
            self.set(&preference, "performance");
        }
        Ok(())
    }

    fn preference(&self, policy: &str, value: &str) -> Result {
        let governor = self.text(&format!("{policy}/scaling_governor"))?;
        if governor == "performance" && value != "performance" {
            return Err(EBUSY);
        }
        let offered = self.text(&format!(
            "{policy}/energy_performance_available_preferences"
        ))?;
        if !offered.split_whitespace().any(|word| word == value) {
            return Err(EINVAL);
        }
        self.set(&format!("{policy}/energy_performance_preference"), value);
        Ok(())
    }

    fn limit(&self, policy: &str, name: &str, value: &str) -> Result {
        let value: u64 = value.parse().map_err(|_| EINVAL)?;
        let file = |name: &str| format!("{policy}/{name}");
        let value = value.clamp(
            self.number(&file("cpuinfo_min_freq"))?,
            self.number(&file("cpuinfo_max_freq"))?,
        );
        let fits = match name {
            "scaling_min_freq" => value <= self.number(&file("scaling_max_freq"))?,
            _ => value >= self.number(&file("scaling_min_freq"))?,
        };
        if !fits {
            return Err(EINVAL);
        }
        self.set(&file(name), &value.to_string());
        Ok(())
    }

    /// Limits of all policies change; a minimum above the new maximum goes with it.
    fn boost(&self, state: &mut State, path: &str, value: &str) -> Result {
        let off = match (path.ends_with("no_turbo"), value) {
            (true, "1") | (false, "0") => true,
            (true, "0") | (false, "1") => false,
            _ => return Err(EINVAL),
        };
        if self.text(path)? == value {
            return Ok(());
        }
        self.set(path, value);
        for policy in self.policies() {
            let file = |name: &str| format!("{policy}/{name}");
            if off {
                let highest = self.text(&file("cpuinfo_max_freq"))?;
                state.boosted.insert(policy.clone(), highest);
            }
            let highest = match off {
                true => self.without_boost(&policy)?,
                false => match state.boosted.get(&policy) {
                    Some(highest) => highest.clone(),
                    None => self.text(&file("cpuinfo_max_freq"))?,
                },
            };
            self.set(&file("cpuinfo_max_freq"), &highest);
            self.set(&file("scaling_max_freq"), &highest);
            if self.number(&file("scaling_min_freq"))? > highest.parse().unwrap() {
                self.set(&file("scaling_min_freq"), &highest);
            }
        }
        Ok(())
    }

    fn without_boost(&self, policy: &str) -> Result<String> {
        if let Ok(base) = self.text(&format!("{policy}/base_frequency")) {
            return Ok(base);
        }
        let table = self.text(&format!("{policy}/scaling_available_frequencies"))?;
        let highest = table
            .split_whitespace()
            .max_by_key(|f| f.parse::<u64>().unwrap());
        Ok(highest.unwrap().to_owned())
    }

    fn policies(&self) -> Vec<String> {
        let folder = format!("{CPU}/cpufreq");
        let names = Root::at(&self.folder).names(&folder);
        names
            .into_iter()
            .filter(|name| name.starts_with("policy"))
            .map(|name| format!("{folder}/{name}"))
            .collect()
    }

    fn smt(&self, state: &mut State, value: &str) -> Result {
        let control = format!("{CPU}/smt/control");
        match self.text(&control)?.as_str() {
            "notsupported" | "notimplemented" => return Err(ENODEV),
            "forceoff" => return Err(EPERM),
            _ => {}
        }
        match value {
            "off" => {
                for cpu in self.cpus(&format!("{CPU}/online")) {
                    let threads = self.cpus(&threads_of(cpu));
                    if threads.iter().any(|&other| other < cpu) {
                        self.take_down(state, cpu);
                    }
                }
                self.set(&format!("{CPU}/smt/active"), "0");
            }
            "on" => {
                let online = self.cpus(&format!("{CPU}/online"));
                for cpu in self.cpus(&format!("{CPU}/present")) {
                    if !online.contains(&cpu) {
                        self.bring_up(state, cpu);
                    }
                }
                self.set(&format!("{CPU}/smt/active"), "1");
            }
            _ => return Err(EINVAL),
        }
        self.set(&control, value);
        Ok(())
    }

    fn hotplug(&self, state: &mut State, folder: &str, value: &str) -> Result {
        let cpu = folder.strip_prefix(&format!("{CPU}/cpu")).unwrap();
        let cpu: u32 = cpu.parse().unwrap();
        let online = self.cpus(&format!("{CPU}/online")).contains(&cpu);
        match (value, online) {
            ("0", true) => self.take_down(state, cpu),
            ("1", false) => self.bring_up(state, cpu),
            ("0" | "1", _) => {}
            _ => return Err(EINVAL),
        }
        Ok(())
    }

    fn take_down(&self, state: &mut State, cpu: u32) {
        let threads = self.cpus(&threads_of(cpu));
        let mut lost = vec![(threads_of(cpu), list(&threads))];
        fs::remove_dir_all(self.folder.join(topology(cpu))).unwrap();
        for other in threads.iter().filter(|other| **other != cpu) {
            let rest: Vec<u32> = threads.iter().copied().filter(|c| *c != cpu).collect();
            self.set(&threads_of(*other), &list(&rest));
        }
        let link = format!("{CPU}/cpu{cpu}/cpufreq");
        let policy = format!("{CPU}/cpufreq/policy{cpu}");
        if self.exists(&policy) {
            for name in Root::at(&self.folder).names(&policy) {
                let path = format!("{policy}/{name}");
                lost.push((path.clone(), self.text(&path).unwrap()));
            }
            fs::remove_dir_all(self.folder.join(policy)).unwrap();
            fs::remove_file(self.folder.join(link)).unwrap();
        }
        state.lost.insert(cpu, lost);
        self.set_online(cpu, false);
        let online = self.cpus(&format!("{CPU}/online"));
        for (irq, cpus) in harness::host::facts::irqs(&Root::at(&self.folder)) {
            let path = harness::host::facts::irq_file(irq);
            // One that its driver manages is switched off and keeps its affinity.
            let is_managed = self.fails.contains_key(&path);
            if !is_managed && !cpus.iter().any(|cpu| online.contains(cpu)) {
                self.set(&path, &list(&online));
            }
        }
    }

    fn bring_up(&self, state: &mut State, cpu: u32) {
        self.set_online(cpu, true);
        let lost = state.lost.remove(&cpu).unwrap_or_else(|| never_seen(cpu));
        let (_, threads) = &lost[0];
        let online = self.cpus(&format!("{CPU}/online"));
        let mut threads = cpus(threads);
        threads.retain(|cpu| online.contains(cpu));
        fs::create_dir_all(self.folder.join(topology(cpu))).unwrap();
        for thread in &threads {
            self.set(&threads_of(*thread), &list(&threads));
        }
        let value = |name: &str| {
            let of = |(path, _): &&(String, String)| path.ends_with(&format!("/{name}"));
            lost.iter().find(of).map(|(_, value)| value.clone())
        };
        for (path, old) in &lost[1..] {
            let path = Path::new(path);
            fs::create_dir_all(self.folder.join(path.parent().unwrap())).unwrap();
            let new = match path.file_name().unwrap().to_str().unwrap() {
                "scaling_governor" => "performance".to_owned(),
                "energy_performance_preference" => "performance".to_owned(),
                "scaling_min_freq" => value("cpuinfo_min_freq").unwrap(),
                "scaling_max_freq" => value("cpuinfo_max_freq").unwrap(),
                _ => old.clone(),
            };
            self.set(path.to_str().unwrap(), &new);
        }
        if lost.len() > 1 {
            let link = format!("{CPU}/cpu{cpu}/cpufreq");
            symlink(format!("../cpufreq/policy{cpu}"), self.folder.join(link)).unwrap();
        }
    }

    fn set_online(&self, cpu: u32, is_online: bool) {
        self.set(
            &format!("{CPU}/cpu{cpu}/online"),
            if is_online { "1" } else { "0" },
        );
        let mut online = self.cpus(&format!("{CPU}/online"));
        online.retain(|other| *other != cpu);
        if is_online {
            online.push(cpu);
            online.sort_unstable();
        }
        let mut offline = self.cpus(&format!("{CPU}/present"));
        offline.retain(|cpu| !online.contains(cpu));
        self.set(&format!("{CPU}/online"), &list(&online));
        self.set(&format!("{CPU}/offline"), &list(&offline));
    }

    fn affinity(&self, path: &str, value: &str) -> Result {
        let wanted = cpus(value);
        let online = self.cpus(&format!("{CPU}/online"));
        if !wanted.iter().any(|cpu| online.contains(cpu)) {
            return Err(EINVAL);
        }
        self.set(path, &list(&wanted));
        Ok(())
    }
}

/// Holds the list of threads alone in fixtures whose CPUs can go offline.
fn topology(cpu: u32) -> String {
    format!("{CPU}/cpu{cpu}/topology")
}

fn threads_of(cpu: u32) -> String {
    format!("{}/thread_siblings_list", topology(cpu))
}

/// A CPU that was offline from the start: the other thread of a core of the AMD server.
fn never_seen(cpu: u32) -> Vec<(String, String)> {
    vec![(threads_of(cpu), list(&[cpu - 8, cpu]))]
}

//! The phase: all identities of a campaign, in parallel, into a run directory.

use super::abi;
use super::cache::{self, Cache, Product};
use super::crates::{self, CratesError, SourceCrates};
use super::error::BuildError;
use super::features::{self, Features};
use super::row::{self, Built, Request};
use super::toolchain::Toolchain;
use super::workshop::Workshop;
use crate::config::{Arch, Campaign, System};
use crate::evidence::store::{self, StoreError};
use crate::evidence::{
    explain, BuildFile, BuildRow, BuiltLibrary, Kind, Reason, ReasonCode, Status, BUILD_FILE,
    SCHEMA,
};
use crate::hash;
use crate::identity::Identity;
use crate::process::Stop;
use crate::progress::{self, Event, StepEnd};
use regex::Regex;
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Name of the phase.
pub const NAME: &str = "build";

/// Where the phase works, and whom it tells.
pub struct Context<'a> {
    /// The run directory: `build.json` and `lib/` go there.
    pub run_dir: &'a Path,
    /// What the CPU of the system can do; [`features_for`] finds out.
    pub features: Features,
    /// Stream libraries for all identities that can have one, not only for those of the
    /// configuration's study.
    pub streams: bool,
    /// Compiles at a time; all CPUs unless given.
    pub jobs: Option<NonZeroUsize>,
    /// The wish to stop.
    pub stop: &'a Stop,
    /// Called with path below the run directory and SHA-256 before an evidence file is written.
    pub before_writing: &'a mut dyn FnMut(&str, &str) -> Result<(), Failed>,
    /// Called from several threads as rows come and go.
    pub on_progress: &'a (dyn Fn(Progress) + Sync),
}

/// An error of the caller's.
pub type Failed = Box<dyn std::error::Error + Send + Sync>;

/// What happens.
#[derive(Debug)]
pub enum Progress<'a> {
    /// So many rows have to be built.
    Planned(usize),
    /// A row is begun.
    Begun(&'a Identity),
    /// A row is done.
    Done(&'a BuildRow),
}

impl Progress<'_> {
    /// Tells a reader of all phases; a row that failed is worth a line.
    pub fn tell(&self, reader: &dyn progress::Progress) {
        match self {
            Progress::Planned(steps) => reader.event(Event::Begin {
                phase: NAME,
                steps: *steps,
                planned: Duration::ZERO,
            }),
            Progress::Begun(_) => {}
            Progress::Done(row) => reader.event(Event::Step {
                label: &row.identity.to_string(),
                planned: Duration::ZERO,
                end: match (&row.reason, row.status) {
                    (Some(reason), Status::Failed) => StepEnd::Bad(&reason.text),
                    _ => StepEnd::Silent,
                },
            }),
        }
    }
}

/// The features that count for `system`: this machine's, or those of the CPU that the runner emulates.
pub fn features_for(system: &System) -> Features {
    match Arch::host() == Some(system.arch) {
        true => Features::of_cpuinfo(&cpuinfo()),
        false => Features::of_runner(&system.runner),
    }
}

fn cpuinfo() -> String {
    std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default()
}

/// Why the libraries of `row` must not run on a machine whose `/proc/cpuinfo` is `cpuinfo`: they were
/// compiled for the machine that compiled them, and this is another one, or the same one with features
/// masked (a virtual machine, a kernel parameter).
pub fn refuses(row: &BuildRow, cpuinfo: &str) -> Option<String> {
    let native = row.native.as_ref()?;
    let here = features::cpu_model(cpuinfo);
    let difference = match native.cpu != here {
        true => here.unwrap_or_else(|| "an unknown CPU".to_owned()),
        false => {
            let sets = features::instruction_sets(cpuinfo);
            let lacking = native.features.iter().filter(|set| !sets.contains(set));
            let lacking: Vec<&str> = lacking.map(String::as_str).collect();
            match lacking.is_empty() {
                true => return None,
                false => format!("one without {}", lacking.join(", ")),
            }
        }
    };
    Some(format!(
        "it was built with {} on {}, and this machine is {difference}: build it here",
        native.options.join(" "),
        native.cpu.as_deref().unwrap_or("an unknown CPU"),
    ))
}

/// Builds what `build.json` of the run does not have yet, and writes it. Rows that failed before are
/// tried again.
pub fn build_all(
    campaign: &Campaign,
    system: &System,
    identities: &[Identity],
    context: &mut Context,
) -> Result<BuildFile, BuildError> {
    let path = context.run_dir.join(BUILD_FILE);
    let before = match path.exists() {
        true => Some(store::read_json::<BuildFile>(&path)?),
        false => None,
    };
    let (mut rows, foreign) = earlier_rows(before.as_ref(), system, context.run_dir);
    let open: BTreeSet<&Identity> = identities
        .iter()
        .filter(|i| !rows.contains_key(*i))
        .collect();
    (context.on_progress)(Progress::Planned(open.len()));
    if !open.is_empty() {
        let open: Vec<&Identity> = open.into_iter().collect();
        let built = build_rows(campaign, system, &open, context);
        let built = or_foreign(built, &open, foreign)?;
        rows.extend(built.into_iter().map(|row| (row.identity.clone(), row)));
    }
    let mut file = BuildFile {
        schema: SCHEMA.to_owned(),
        kind: Kind::Build,
        system: system.id.clone(),
        rows: rows.into_values().collect(),
        missing: BTreeMap::new(),
    };
    explain_rows(&mut file);
    if before.as_ref() != Some(&file) {
        // The journal first: then nothing lies in a run that it does not know.
        let bytes = store::json(&path, &file)?;
        (context.before_writing)(BUILD_FILE, &hash::sha256(&bytes)).map_err(BuildError::Journal)?;
        store::write_atomic(&path, &bytes)?;
    }
    Ok(file)
}

/// Gives each null of the rows its reason, as they stand now.
pub fn explain_rows(file: &mut BuildFile) {
    file.missing = reasons_of_rows(&file.rows);
    explain(file);
}

/// What a row without libraries lacks, it lacks for the reason of the row.
fn reasons_of_rows(rows: &[BuildRow]) -> BTreeMap<String, Reason> {
    let mut reasons = BTreeMap::new();
    for (index, row) in rows.iter().enumerate() {
        let Some(reason) = &row.reason else { continue };
        let nulls = [
            ("link_flags", row.link_flags.is_none()),
            ("lto_removed", row.lto_removed.is_none()),
            ("warnings", row.warnings.is_none()),
            ("source_sha256", row.source_sha256.is_none()),
            ("source_files", row.source_files.is_none()),
            ("elf", row.elf.is_none()),
        ];
        for (key, _) in nulls.into_iter().filter(|(_, is_null)| *is_null) {
            reasons.insert(format!("/rows/{index}/{key}"), reason.clone());
        }
    }
    reasons
}

type Rows = BTreeMap<Identity, BuildRow>;

/// Rows of an earlier session that need nothing more: built with their libraries in place, or skipped;
/// and, as skipped rows, those whose libraries are for another machine.
fn earlier_rows(before: Option<&BuildFile>, system: &System, run_dir: &Path) -> (Rows, Rows) {
    let cpuinfo = match Arch::host() == Some(system.arch) {
        true => Some(cpuinfo()),
        false => None,
    };
    let (mut kept, mut foreign) = (Rows::new(), Rows::new());
    let rows = before
        .filter(|file| file.system == system.id)
        .into_iter()
        .flat_map(|file| &file.rows)
        .filter(|row| match row.status {
            Status::Complete => row.libraries.values().all(|library| {
                hash::sha256_file(&run_dir.join(&library.file)).is_ok_and(|d| d == library.sha256)
            }),
            Status::Skipped => true,
            Status::Failed | Status::Partial => false,
        });
    for row in rows {
        match cpuinfo.as_deref().and_then(|cpuinfo| refuses(row, cpuinfo)) {
            Some(why) => foreign.insert(row.identity.clone(), skipped(row, why)),
            None => kept.insert(row.identity.clone(), row.clone()),
        };
    }
    (kept, foreign)
}

/// Carried here without a compiler, what was built for another machine is skipped, not an error.
fn or_foreign(
    built: Result<Vec<BuildRow>, BuildError>,
    open: &[&Identity],
    foreign: Rows,
) -> Result<Vec<BuildRow>, BuildError> {
    match built {
        Err(BuildError::MissingCompiler { .. })
            if open.iter().all(|identity| foreign.contains_key(*identity)) =>
        {
            Ok(foreign.into_values().collect())
        }
        other => other,
    }
}

/// The row without its libraries.
pub fn skipped(row: &BuildRow, why: String) -> BuildRow {
    BuildRow {
        status: Status::Skipped,
        reason: Some(Reason::new(ReasonCode::CpuFeature, why)),
        libraries: BTreeMap::new(),
        ..row.clone()
    }
}

/// Builds the given identities, several at a time; the rows are in the same order.
fn build_rows(
    campaign: &Campaign,
    system: &System,
    identities: &[&Identity],
    context: &Context,
) -> Result<Vec<BuildRow>, BuildError> {
    let toolchain = Toolchain::probe(system, context.stop)?;
    let cache = Cache::open(&cache::folder(&campaign.root))?;
    let abi = abi::unfold(cache.dir())?;
    let root = campaign
        .root
        .canonicalize()
        .map_err(|source| StoreError::Read {
            path: campaign.root.clone(),
            source,
        })?;
    let crates = source_crates(campaign, &root, identities, context.stop)?;
    let shop = Workshop::new(root, cache, abi, toolchain, context.stop);
    let cpu = features::cpu_model(&cpuinfo());
    let sets = features::instruction_sets(&cpuinfo());
    let streams = stream_patterns(campaign);
    let (features, run_dir, on_progress) =
        (&context.features, context.run_dir, context.on_progress);
    let all_stream = context.streams;
    let one = |identity: &&Identity| {
        let identity: &Identity = identity;
        let (candidate, instance, code, build) = campaign
            .find(identity)
            .ok_or_else(|| BuildError::UnknownIdentity(identity.clone()))?;
        let request = Request {
            identity,
            candidate,
            instance,
            code,
            build,
            arch: system.arch,
            crates: &crates[&candidate.id],
            stream: all_stream || streams.iter().any(|p| p.is_match(&identity.to_string())),
            features,
            cpu: cpu.as_deref(),
            instruction_sets: &sets,
        };
        on_progress(Progress::Begun(identity));
        let row = deliver(row::build(&shop, &request)?, run_dir)?;
        on_progress(Progress::Done(&row));
        Ok(row)
    };
    in_parallel(identities, context.jobs, one)
}

/// Runs `work` on each item with `jobs` threads; the first error ends it.
fn in_parallel<T: Sync, R: Send>(
    items: &[T],
    jobs: Option<NonZeroUsize>,
    work: impl Fn(&T) -> Result<R, BuildError> + Sync,
) -> Result<Vec<R>, BuildError> {
    let cpus = jobs.map_or_else(available_cpus, NonZeroUsize::get);
    let next = AtomicUsize::new(0);
    let failed = AtomicBool::new(false);
    let results: Vec<Mutex<Option<Result<R, BuildError>>>> =
        items.iter().map(|_| Mutex::new(None)).collect();
    std::thread::scope(|scope| {
        for _ in 0..cpus.min(items.len()) {
            scope.spawn(|| loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                if at >= items.len() || failed.load(Ordering::Relaxed) {
                    return;
                }
                let result = work(&items[at]);
                failed.fetch_or(result.is_err(), Ordering::Relaxed);
                *results[at].lock().unwrap_or_else(|e| e.into_inner()) = Some(result);
            });
        }
    });
    let mut done = Vec::new();
    let mut error = None;
    for result in results {
        match result.into_inner().unwrap_or_else(|e| e.into_inner()) {
            Some(Ok(row)) => done.push(row),
            // An error of a thread that only heard of the stop does not hide the first one.
            Some(Err(e)) => error = Some(error.unwrap_or(e)),
            None => {}
        }
    }
    match error {
        Some(error) => Err(error),
        None => Ok(done),
    }
}

fn available_cpus() -> usize {
    std::thread::available_parallelism().map_or(1, NonZeroUsize::get)
}

/// Puts the libraries of a row into the run directory and names them in the row.
fn deliver((mut row, products): Built, run_dir: &Path) -> Result<BuildRow, BuildError> {
    for (kind, product) in products {
        row.libraries
            .insert(kind, deliver_library(&product, run_dir)?);
    }
    Ok(row)
}

fn deliver_library(product: &Product, run_dir: &Path) -> Result<BuiltLibrary, BuildError> {
    let file = format!("lib/{}.so", product.sha256);
    let path = run_dir.join(&file);
    let bytes = std::fs::read(&product.path).map_err(|source| StoreError::Read {
        path: product.path.clone(),
        source,
    })?;
    if !hash::sha256_file(&path).is_ok_and(|there| there == product.sha256) {
        if hash::sha256(&bytes) != product.sha256 {
            return Err(BuildError::Cache {
                path: product.path.clone(),
                source: std::io::Error::other("it changed after it was linked"),
            });
        }
        store::write_atomic(&path, &bytes)?;
    }
    Ok(BuiltLibrary {
        file,
        sha256: product.sha256.clone(),
        bytes: Some(bytes.len() as u64),
    })
}

type CratesByCandidate = BTreeMap<String, Result<SourceCrates, Arc<CratesError>>>;

/// Source crates of the candidates of `identities`; each manifest is asked for once.
fn source_crates(
    campaign: &Campaign,
    root: &Path,
    identities: &[&Identity],
    stop: &Stop,
) -> Result<CratesByCandidate, BuildError> {
    let mut by_manifest: BTreeMap<&PathBuf, Result<SourceCrates, Arc<CratesError>>> =
        BTreeMap::new();
    let mut all = CratesByCandidate::new();
    for candidate in &campaign.candidates {
        if !identities.iter().any(|i| i.candidate == candidate.id) {
            continue;
        }
        let found = match &candidate.source_crates {
            None => Ok(SourceCrates::new()),
            Some(manifest) => by_manifest
                .entry(manifest)
                .or_insert_with(|| crates::find(root, manifest, stop).map_err(Arc::new))
                .clone(),
        };
        if matches!(&found, Err(error) if matches!(**error, CratesError::Interrupted)) {
            return Err(BuildError::Interrupted);
        }
        all.insert(candidate.id.clone(), found);
    }
    Ok(all)
}

/// Identities for which the file-size study streams its messages.
fn stream_patterns(campaign: &Campaign) -> Vec<Regex> {
    let study = campaign.study.as_ref();
    study
        .filter(|study| study.modes.contains(&protocol::StudyMode::Stream))
        .into_iter()
        .flat_map(|study| &study.instances)
        .filter_map(|pattern| Regex::new(pattern).ok()) // checked with the configuration
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_compiler_only_what_others_have_built_is_skipped() {
        let missing = || BuildError::MissingCompiler {
            command: "gcc".into(),
            package: "gcc".into(),
        };
        let dataset = crate::testing::Synthetic::default().build();
        let row = dataset.build.expect("a whole dataset").value.rows[0].clone();
        let own = row.identity.clone();
        let other: Identity = "a/b/c/d".parse().unwrap();
        let foreign = || Rows::from([(own.clone(), skipped(&row, "built elsewhere".into()))]);
        let rows = or_foreign(Err(missing()), &[&own], foreign()).unwrap();
        assert_eq!(rows[0].status, Status::Skipped);
        assert!(rows[0].libraries.is_empty());
        let reason = rows[0].reason.as_ref().unwrap();
        assert_eq!(reason.code, ReasonCode::CpuFeature);
        assert!(or_foreign(Err(missing()), &[&own, &other], foreign()).is_err());
        let built = or_foreign(Ok(vec![row.clone()]), &[&own], foreign()).unwrap();
        assert_eq!(built, std::slice::from_ref(&row));
    }

    #[test]
    fn all_items_are_worked_on_in_order_and_the_first_error_ends_it() {
        let items: Vec<usize> = (0..100).collect();
        let done = in_parallel(&items, NonZeroUsize::new(7), |n| Ok(n * 2)).unwrap();
        assert_eq!(done, items.iter().map(|n| n * 2).collect::<Vec<_>>());
        let failing = in_parallel(&items, NonZeroUsize::new(2), |n| match n {
            3 => Err(BuildError::Interrupted),
            n => Ok(*n),
        });
        assert!(matches!(failing, Err(BuildError::Interrupted)));
        assert!(in_parallel(&[] as &[usize], None, |n| Ok(*n))
            .unwrap()
            .is_empty());
    }
}

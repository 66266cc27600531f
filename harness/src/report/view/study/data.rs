//! The points of a study, found by what they are about, and which of them the figures are of.

use crate::dataset::{Dataset, Entry, Key};
use crate::evidence::{FitEvidence, ModeFit, Status, StudyDerived, StudyRecord, StudySettings};
use crate::identity::Identity;
use crate::report::view::environment::record_cpus;
use protocol::{Operation, StudyMode};
use std::collections::{BTreeMap, BTreeSet};

/// Size of the published figures of levels, bytes.
const LEVEL_SIZE: u64 = 1_000_000;

/// A study.
pub struct Data<'a> {
    /// The dataset.
    pub dataset: &'a Dataset,
    /// What was asked for.
    pub settings: &'a StudySettings,
    /// Identities that have records, in page order.
    pub identities: Vec<&'a Identity>,
    points: BTreeMap<PointKey<'a>, &'a Entry<StudyRecord>>,
}

type PointKey<'a> = (&'a Identity, Operation, StudyMode, u64);

impl<'a> Data<'a> {
    /// The study of a dataset.
    pub fn of(dataset: &'a Dataset, settings: &'a StudySettings) -> Self {
        let key = |entry: &'a Entry<StudyRecord>| {
            let record = &entry.value;
            let timing = &record.timing;
            let key = (
                &timing.head.identity,
                timing.operation,
                record.mode,
                record.size_bytes,
            );
            (key, entry)
        };
        let points: BTreeMap<_, _> = dataset.studies.iter().map(key).collect();
        let identities: BTreeSet<&Identity> = points.keys().map(|key| key.0).collect();
        Data {
            dataset,
            settings,
            identities: identities.into_iter().collect(),
            points,
        }
    }

    /// A point.
    pub fn entry(
        &self,
        identity: &Identity,
        operation: Operation,
        mode: StudyMode,
        size: u64,
    ) -> Option<&'a Entry<StudyRecord>> {
        self.points.get(&(identity, operation, mode, size)).copied()
    }

    /// The record of a point that is complete.
    pub fn complete(
        &self,
        identity: &Identity,
        operation: Operation,
        mode: StudyMode,
        size: u64,
    ) -> Option<&'a StudyRecord> {
        let record = &self.entry(identity, operation, mode, size)?.value;
        (record.timing.head.status == Status::Complete).then_some(record)
    }

    /// All points of an identity in the order of operation, mode and size.
    pub fn points_of(&self, identity: &Identity) -> Vec<&'a Entry<StudyRecord>> {
        let own = self.points.iter().filter(|(key, _)| key.0 == identity);
        own.map(|(_, entry)| *entry).collect()
    }

    /// Operations that were measured.
    pub fn operations(&self) -> Vec<Operation> {
        let all: BTreeSet<Operation> = self.points.keys().map(|key| key.1).collect();
        all.into_iter().collect()
    }

    /// Modes of an operation.
    pub fn modes(&self, operation: Operation) -> Vec<StudyMode> {
        self.settings.modes_of(operation)
    }

    /// The mode that figures of an operation are of: the whole message in memory, as the published
    /// figures are, else the first that was measured.
    pub fn main_mode(&self, operation: Operation) -> StudyMode {
        let modes = self.modes(operation);
        let buffer = modes.contains(&StudyMode::Buffer);
        match buffer {
            true => StudyMode::Buffer,
            false => modes.first().copied().unwrap_or(StudyMode::Buffer),
        }
    }

    /// The parameter sets that figures are of: one code and build of one candidate, the reference
    /// build where there is one.
    pub fn family(&self) -> Vec<&'a Identity> {
        let rank = |identity: &Identity| {
            let published = identity.candidate != "dilithium";
            (published, identity.build != "reference")
        };
        let Some(first) = self.identities.iter().min_by_key(|id| (rank(id), **id)) else {
            return Vec::new();
        };
        let same = |id: &&&'a Identity| {
            (&id.candidate, &id.code, &id.build) == (&first.candidate, &first.code, &first.build)
        };
        self.identities.iter().filter(same).copied().collect()
    }

    /// Every code and build of every candidate, each with its parameter sets.
    pub fn families(&self) -> Vec<Vec<&'a Identity>> {
        let mut families: BTreeMap<(&str, &str, &str), Vec<&'a Identity>> = BTreeMap::new();
        for identity in &self.identities {
            families
                .entry((&identity.candidate, &identity.code, &identity.build))
                .or_default()
                .push(identity);
        }
        families.into_values().collect()
    }

    /// The measured size that is nearest to that of the published figures of levels.
    pub fn level_size(&self) -> u64 {
        let far = |size: &u64| size.abs_diff(LEVEL_SIZE);
        let nearest = self.settings.sizes.iter().min_by_key(|size| far(size));
        nearest.copied().unwrap_or(LEVEL_SIZE)
    }

    /// The models of an operation.
    pub fn fit(&self, identity: &Identity, operation: Operation) -> Option<&'a Entry<FitEvidence>> {
        let key: Key = (identity.clone(), operation);
        self.dataset.fits.get(&key)
    }

    /// The model of one mode.
    pub fn mode_fit(
        &self,
        identity: &Identity,
        operation: Operation,
        mode: StudyMode,
    ) -> Option<&'a ModeFit> {
        let fit = self.fit(identity, operation)?;
        fit.value.modes.iter().find(|fit| fit.mode == mode)
    }

    /// Counted attempts whose CPU was taken away for part of the time (flag `min_cpu_per_wall`), and
    /// all counted attempts.
    pub fn taken(&self) -> (usize, usize) {
        let trials = self.points.values().flat_map(|e| &e.value.timing.trials);
        let counted = trials.filter_map(|trial| trial.counted_attempt());
        counted.fold((0, 0), |(taken, all), attempt| {
            let flag = attempt.flags.iter().any(|f| f.name == "min_cpu_per_wall");
            (taken + usize::from(flag), all + 1)
        })
    }

    /// Whether the machine had other things to do: a quarter of the counted attempts did not have
    /// their CPU all the time. Times and uses of the CPU then say little about the candidates.
    pub fn is_busy(&self) -> bool {
        let (taken, all) = self.taken();
        4 * taken > all
    }

    /// CPUs that were measured on.
    pub fn cpus(&self) -> BTreeSet<u32> {
        let records = self.points.values().map(|entry| &entry.value.timing);
        records.flat_map(record_cpus).collect()
    }

    /// CPUs online.
    pub fn online(&self) -> Option<u32> {
        let first = self.points.values().next()?;
        Some(first.value.online_cpus)
    }

    /// Largest measured size of an operation of an identity in a mode.
    pub fn largest(
        &self,
        identity: &Identity,
        operation: Operation,
        mode: StudyMode,
    ) -> Option<u64> {
        let sizes = self.settings.sizes.iter().rev().copied();
        sizes
            .into_iter()
            .find(|&size| self.complete(identity, operation, mode, size).is_some())
    }
}

/// Mean of a call, seconds.
pub fn mean_s(record: &StudyRecord) -> Option<f64> {
    Some(record.timing.derived.as_ref()?.mean_s)
}

/// A value of what follows from a study's record.
pub fn value<T>(record: &StudyRecord, of: impl Fn(&StudyDerived) -> T) -> Option<T> {
    record.study.as_ref().map(of)
}

/// Means of the counted trials, seconds.
pub fn trial_means(record: &StudyRecord) -> Vec<f64> {
    let trials = record.timing.trials.iter();
    let counted = trials.filter_map(|trial| trial.counted_attempt());
    counted.map(|a| a.mean_s()).collect()
}

//! The checked configuration.

use crate::evidence::{Origin, PlanSettings};
use crate::identity::Identity;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// A checked `campaign.toml`.
#[derive(Debug, Clone, PartialEq)]
pub struct Campaign {
    /// Folder of the file: paths are relative to it.
    pub root: PathBuf,
    /// SHA-256 of the file's bytes; decides whether a run is of this campaign.
    pub sha256: String,
    /// `[report]`.
    pub report: Report,
    /// `[[system]]`, in file order, ids unique.
    pub systems: Vec<System>,
    /// `[build.*]` by name.
    pub builds: BTreeMap<String, Build>,
    /// `[[candidate]]`, in file order, ids unique.
    pub candidates: Vec<Candidate>,
    /// `[plan.*]` with the defaults of `quick`, `guide` and `public` filled in.
    pub plans: BTreeMap<String, PlanSettings>,
    /// `[study.message-size]`.
    pub study: Option<MessageSizeStudy>,
}

/// `[report]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// Independent measurement or a submitter's self-assessment.
    pub kind: ReportKind,
    /// Title of the pages.
    pub title: String,
    /// Reference of ratios on one system.
    pub reference: Option<Identity>,
}

/// Who speaks on a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReportKind {
    /// An evaluator's.
    Independent,
    /// A submitter's.
    SelfAssessment,
}

impl ReportKind {
    /// The word of the configuration.
    pub fn word(self) -> &'static str {
        match self {
            ReportKind::Independent => "independent",
            ReportKind::SelfAssessment => "self-assessment",
        }
    }
}

/// A registered machine.
#[derive(Debug, Clone, PartialEq)]
pub struct System {
    /// `x86_1`.
    pub id: String,
    /// Architecture.
    pub arch: Arch,
    /// Regular expression on the processor's name.
    pub cpu_model: String,
    /// Compiler command.
    pub cc: String,
    /// Command that runs this system's programs on another architecture.
    pub runner: Vec<String>,
    /// For pages.
    pub description: Option<String>,
}

/// Architectures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Arch {
    /// 64-bit x86.
    X86_64,
    /// 64-bit ARM.
    Aarch64,
}

impl Arch {
    /// The word of the configuration, of `uname -m`, and of Rust.
    pub fn word(self) -> &'static str {
        match self {
            Arch::X86_64 => "x86_64",
            Arch::Aarch64 => "aarch64",
        }
    }

    /// The architecture that this program was built for.
    pub fn host() -> Option<Arch> {
        match std::env::consts::ARCH {
            "x86_64" => Some(Arch::X86_64),
            "aarch64" => Some(Arch::Aarch64),
            _ => None,
        }
    }
}

/// One of the guide's versions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Build {
    /// `reference`.
    pub name: String,
    /// Flags by architecture, split into words.
    pub cflags: BTreeMap<Arch, Vec<String>>,
    /// CPU features that the flags need, by architecture.
    pub requires: BTreeMap<Arch, Vec<String>>,
}

/// One submission or scheme.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    /// `sign-09`.
    pub id: String,
    /// `DOVE`.
    pub name: String,
    /// `public-key algorithm`.
    pub category: String,
    /// `digital signature`.
    pub function: String,
    /// Whose code.
    pub origin: Origin,
    /// Where the algorithm is specified.
    pub specification: Option<String>,
    /// Name to address, for pages.
    pub links: BTreeMap<String, String>,
    /// Detached manifest that pins registry crates with C sources, relative to the root.
    pub source_crates: Option<PathBuf>,
    /// KAT flow and manifest.
    pub kat: Kat,
    /// What the profile phase wraps.
    pub wrap: Wrap,
    /// Deviations that are allowed for.
    pub kat_issues: Vec<KatIssue>,
    /// Parameter sets.
    pub instances: Vec<Instance>,
}

/// KAT of a candidate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kat {
    /// Generation flow.
    pub flow: protocol::KatFlow,
    /// Manifest, relative to the root.
    pub manifest: PathBuf,
}

/// What the profile phase wraps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wrap {
    /// Nothing.
    None,
    /// Functions named here.
    Listed(Vec<WrapFunction>),
    /// Derived from the objects with a table of prototypes, relative to the root.
    Derived(PathBuf),
}

/// A function to wrap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrapFunction {
    /// Symbol.
    pub symbol: String,
    /// `hash`, `drng` or `other`.
    pub group: String,
    /// Reported name (`drng` for the DRNG).
    pub name: String,
    /// C prototype; null for the ICCS helpers, which are known.
    pub prototype: Option<String>,
    /// C expression of the input bits in terms of the parameters.
    pub in_bits: Option<String>,
    /// C expression of the output bits.
    pub out_bits: Option<String>,
}

/// An allowed deviation from the KAT.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KatIssue {
    /// Label.
    pub instance: String,
    /// Result that is allowed.
    pub result: crate::evidence::KatResult,
    /// Why; shown on every page.
    pub reason: String,
}

/// One parameter set.
#[derive(Debug, Clone, PartialEq)]
pub struct Instance {
    /// Label.
    pub label: String,
    /// Classical security target, bits.
    pub security_bits: Option<u32>,
    /// A fresh key for each trial, or one for the run.
    pub key_per: KeyPer,
    /// Ranges of signature bytes (first, end exclusive; `u64::MAX` = to the end) that the scheme
    /// does not authenticate.
    pub unauthenticated_signature_bytes: Vec<(u64, u64)>,
    /// Symbol of a counter of rejected draws in the candidate's source.
    pub rejected_counter: Option<String>,
    /// Sources of it.
    pub codes: Vec<Code>,
}

/// How often a key is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyPer {
    /// One key a trial.
    Trial,
    /// Trial 0's key for all.
    Run,
}

/// One source of a parameter set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Code {
    /// `ref`, `clean`, `avx2`, `aarch64`.
    pub name: String,
    /// Glob patterns relative to the root; `{crate}` stands for a crate of `source_crates`.
    pub sources: Vec<String>,
    /// Include folders, same rule.
    pub include: Vec<String>,
    /// Macros (`NAME` or `NAME=VALUE`).
    pub defines: Vec<String>,
    /// Flags after the build's.
    pub extra_cflags: Vec<String>,
    /// Flags instead of the guide's where it does not build with them.
    pub fallback_cflags: Option<Vec<String>>,
    /// Architectures that it exists for; empty = all.
    pub archs: Vec<Arch>,
    /// CPU features that it needs beside the build's.
    pub requires: Vec<String>,
    /// Names of builds, in order.
    pub builds: Vec<String>,
    /// Already built library instead of sources, relative to the root.
    pub library: Option<PathBuf>,
}

/// `[study.message-size]`.
#[derive(Debug, Clone, PartialEq)]
pub struct MessageSizeStudy {
    /// Identities by regular expression.
    pub instances: Vec<String>,
    /// Sizes, bytes.
    pub sizes: Vec<u64>,
    /// Sizes that `--full` adds, bytes.
    pub full_sizes: Vec<u64>,
    /// Modes.
    pub modes: Vec<protocol::StudyMode>,
    /// Trials of each point.
    pub trials: u32,
    /// Most memory that a point may need, bytes.
    pub memory_guard_bytes: u64,
    /// Chunk of stream mode, bytes.
    pub chunk_bytes: u64,
}

impl Campaign {
    /// All identities that exist for an architecture, in page order.
    pub fn identities(&self, arch: Arch) -> Vec<Identity> {
        let mut all = Vec::new();
        for candidate in &self.candidates {
            for instance in &candidate.instances {
                for code in &instance.codes {
                    if !code.archs.is_empty() && !code.archs.contains(&arch) {
                        continue;
                    }
                    for build in &code.builds {
                        all.push(Identity {
                            candidate: candidate.id.clone(),
                            label: instance.label.clone(),
                            code: code.name.clone(),
                            build: build.clone(),
                        });
                    }
                }
            }
        }
        all.sort();
        all
    }

    /// The parts of the configuration that an identity names.
    pub fn find(&self, identity: &Identity) -> Option<(&Candidate, &Instance, &Code, &Build)> {
        let candidate = self
            .candidates
            .iter()
            .find(|c| c.id == identity.candidate)?;
        let instance = candidate
            .instances
            .iter()
            .find(|i| i.label == identity.label)?;
        let code = instance.codes.iter().find(|c| c.name == identity.code)?;
        Some((candidate, instance, code, self.builds.get(&identity.build)?))
    }

    /// The system of that id.
    pub fn system(&self, id: &str) -> Option<&System> {
        self.systems.iter().find(|s| s.id == id)
    }
}

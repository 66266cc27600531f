//! One session of a run, from a start or a resume to its end: the machine as it found it.

use super::book::{Book, BookError};
use super::directory::DirectoryError;
use crate::clock;
use crate::config::{Arch, Campaign, System};
use crate::evidence::journal::JournalEvent;
use crate::evidence::{
    self, environment_file, CpuProbe, EnvironmentFile, Kind, Reason, SessionRef, StableFacts,
};
use crate::host::facts::{self, Root};
use crate::host::{look, readiness};
use crate::process::Stop;
use crate::worker::{self, Worker};
use protocol::{Layer, SourceKind};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::path::Path;

/// The machine as this session found it, before it has a number and a token.
#[derive(Debug)]
pub struct Machine {
    environment: EnvironmentFile,
    identity: String,
}

/// A session that has begun.
#[derive(Debug)]
pub struct Session {
    /// All sessions of the run, this one last.
    pub sessions: Vec<SessionRef>,
    /// The machine, salted.
    pub host_token: String,
    /// Its environment file.
    pub environment: EnvironmentFile,
}

/// What is looked at.
#[derive(Debug, Clone, Copy)]
pub struct Look<'a> {
    /// The campaign.
    pub campaign: &'a Campaign,
    /// The system.
    pub system: &'a System,
    /// CPUs to measure on.
    pub cpus: &'a [u32],
    /// CPUs that this process may use.
    pub allowed: &'a [u32],
    /// Folder that the probing worker starts in.
    pub folder: &'a Path,
    /// Protections of a worker on this machine, tried out.
    pub layers: &'a [Layer],
}

impl Machine {
    /// Reads the facts and probes the counters of each CPU to be measured; of an emulated system's
    /// counters nothing is asked.
    pub async fn look(
        look: Look<'_>,
        worker: &Worker,
        stop: &Stop,
    ) -> Result<Self, worker::WorkerError> {
        let root = Root::default();
        let is_own = Some(look.system.arch) == Arch::host();
        let features = facts::features(&root, look.cpus);
        let needs = is_own.then(|| readiness::needs(look.campaign, look.system.arch, &features));
        let state = look::Look {
            root: &root,
            cpus: look.cpus,
            allowed: look.allowed,
            compiler: look::compiler_version(&compilers(look.system), stop).await,
            needs: needs.as_deref(),
            prober: match is_own {
                true => Ok(look::Prober {
                    worker,
                    folder: look.folder,
                    stop,
                }),
                false => Err("the system is emulated, nothing is timed".to_owned()),
            },
        }
        .look()
        .await?;
        let machine_id = root.text("etc/machine-id");
        Ok(Machine {
            identity: identity(machine_id.as_deref(), &state.stable),
            environment: EnvironmentFile {
                schema: evidence::SCHEMA.to_owned(),
                kind: Kind::Environment,
                k: 0,
                started_utc: clock::utc_now(),
                host_token: None,
                ready: readiness::is_ready(&state.findings),
                stable: state.stable,
                volatile: state.volatile,
                cpus: state.cpus,
                check: state.findings,
                layers: look
                    .layers
                    .iter()
                    .cloned()
                    .chain([worker.cgroup_layer()])
                    .collect(),
                probes: state.probes,
                missing: BTreeMap::new(),
            },
        })
    }

    /// What was found.
    pub fn environment(&self) -> &EnvironmentFile {
        &self.environment
    }

    /// Fixed core clocks of the measured CPUs, hertz: minimum = maximum.
    pub fn fixed_clocks(&self) -> BTreeMap<u32, f64> {
        self.environment
            .cpus
            .iter()
            .filter(|cpu| cpu.min_khz == cpu.max_khz)
            .filter_map(|cpu| Some((cpu.cpu, cpu.max_khz? as f64 * 1000.0)))
            .collect()
    }

    /// Why core cycles cannot be counted, of the CPUs where they cannot.
    pub fn no_cycles(&self) -> BTreeMap<u32, Reason> {
        let reason = |of: &CpuProbe| {
            let perf = of
                .probe
                .sources
                .iter()
                .find(|s| s.kind == SourceKind::Perf)?;
            let (code, text) = perf.reason.as_ref().filter(|_| perf.source.is_none())?;
            Some((of.cpu, Reason::of_worker(code, text)))
        };
        self.environment.probes.iter().filter_map(reason).collect()
    }

    /// Sibling threads of the measured CPUs.
    pub fn siblings(&self) -> BTreeMap<u32, Vec<u32>> {
        let cpus = self.environment.cpus.iter();
        cpus.map(|cpu| (cpu.cpu, cpu.siblings.clone())).collect()
    }

    /// Begins a session of the run on this machine, which must be the one that the run was begun on.
    pub fn begin(self, book: &Book) -> Result<Session, BookError> {
        let token = token(book.directory().salt(), &self.identity);
        let mut sessions = Vec::new();
        let mut last = None;
        // A session that was killed before its file was there has left no evidence, and its number.
        while let Some(stored) =
            book.read::<EnvironmentFile>(&environment_file(sessions.len() as u32))?
        {
            sessions.push(SessionRef {
                k: sessions.len() as u32,
                environment_sha256: stored.sha256,
            });
            last = Some(stored.value);
        }
        let k = sessions.len() as u32;
        let mut environment = self.environment;
        environment.k = k;
        environment.host_token = Some(token.clone());
        evidence::explain(&mut environment);
        if last
            .as_ref()
            .is_some_and(|last| last.host_token.as_ref() != Some(&token))
        {
            return Err(DirectoryError::AnotherHost {
                path: book.directory().path().to_owned(),
            }
            .into());
        }
        book.log(JournalEvent::SessionBegun {
            session: k,
            host_token: token.clone(),
        })?;
        let facts = last
            .map(|last| changes(&last, &environment))
            .unwrap_or_default();
        if !facts.is_empty() {
            book.log(JournalEvent::HostChange { session: k, facts })?;
        }
        let environment_sha256 = book.write(&environment_file(k), &environment)?;
        sessions.push(SessionRef {
            k,
            environment_sha256,
        });
        Ok(Session {
            sessions,
            host_token: token,
            environment,
        })
    }
}

/// What tells machines apart: machine-id or `-`, CPU model or MIDR, memory total.
fn identity(machine_id: Option<&str>, stable: &StableFacts) -> String {
    let cpu = stable.cpu_model.as_ref().or(stable.midr.as_ref());
    let memory = stable.memory_total_kib.map(|kib| kib.to_string());
    format!(
        "{}{}{}",
        machine_id.unwrap_or("-").trim(),
        cpu.map_or("-", String::as_str),
        memory.as_deref().unwrap_or("-")
    )
}

/// First 16 hex digits of SHA-256(salt || identity).
fn token(salt: &[u8; 32], identity: &str) -> String {
    let mut hash = Sha256::new();
    hash.update(salt);
    hash.update(identity.as_bytes());
    const_hex::encode(&hash.finalize()[..8])
}

/// Facts that differ between two sessions, in words. The load and the like always do.
fn changes(before: &EnvironmentFile, now: &EnvironmentFile) -> Vec<String> {
    let facts = |file: &EnvironmentFile| {
        let mut value = serde_json::json!({
            "stable": file.stable,
            "volatile": file.volatile,
            "cpus": file.cpus,
        });
        for (group, fact) in [("volatile", "load_average"), ("volatile", "swap_used_kib")] {
            value[group][fact] = serde_json::Value::Null;
        }
        for cpu in value["cpus"].as_array_mut().into_iter().flatten() {
            cpu["measured_clock_hz"] = serde_json::Value::Null;
        }
        value
    };
    let (before, now) = (facts(before), facts(now));
    let mut found = Vec::new();
    for group in ["stable", "volatile", "cpus"] {
        compare(group, &before[group], &now[group], &mut found);
    }
    found
}

fn compare(
    name: &str,
    before: &serde_json::Value,
    now: &serde_json::Value,
    found: &mut Vec<String>,
) {
    use serde_json::Value;
    match (before, now) {
        (Value::Object(before), Value::Object(now)) => {
            for (key, value) in before {
                let other = now.get(key).unwrap_or(&Value::Null);
                compare(&format!("{name}.{key}"), value, other, found);
            }
        }
        (Value::Array(before), Value::Array(now)) if before.len() == now.len() => {
            for (n, (before, now)) in before.iter().zip(now).enumerate() {
                compare(&format!("{name}.{n}"), before, now, found);
            }
        }
        _ if before != now => found.push(format!("{name}: {before} -> {now}")),
        _ => {}
    }
}

/// Commands for the compiler of a system: on its own architecture, `gcc` stands in for a cross compiler.
fn compilers(system: &System) -> Vec<&str> {
    let own = Some(system.arch) == Arch::host();
    let also = own.then_some("gcc");
    std::iter::once(system.cc.as_str()).chain(also).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stable() -> StableFacts {
        StableFacts {
            cpu_model: Some("CPU".into()),
            memory_total_kib: Some(1000),
            ..StableFacts::default()
        }
    }

    #[test]
    fn the_token_is_the_documented_digest() {
        let salt = [7; 32];
        let text = identity(Some("0123abcd\n"), &stable());
        assert_eq!(text, "0123abcdCPU1000");
        let bytes = [&salt[..], b"0123abcdCPU1000"].concat();
        assert_eq!(token(&salt, &text), crate::hash::sha256(&bytes)[..16]);
        assert_eq!(identity(None, &StableFacts::default()), "---");
    }

    #[test]
    fn what_changed_between_sessions_is_said() {
        let file = |governor: &str, load: f64| EnvironmentFile {
            schema: String::new(),
            kind: Kind::Environment,
            k: 0,
            started_utc: String::new(),
            host_token: None,
            stable: stable(),
            volatile: evidence::VolatileFacts {
                load_average: Some(load),
                ..Default::default()
            },
            cpus: vec![evidence::CpuFacts {
                governor: Some(governor.into()),
                ..Default::default()
            }],
            check: Vec::new(),
            ready: true,
            layers: Vec::new(),
            probes: Vec::new(),
            missing: BTreeMap::new(),
        };
        let before = file("performance", 0.1);
        assert_eq!(changes(&before, &file("performance", 2.0)), [""; 0]);
        assert_eq!(
            changes(&before, &file("powersave", 0.1)),
            ["cpus.0.governor: \"performance\" -> \"powersave\""]
        );
    }
}

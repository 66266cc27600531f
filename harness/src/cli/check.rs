//! `campaign check`: readiness of the host, item by item.

use super::exit::{Failure, Outcome};
use super::options::Global;
use super::{output, prepare};
use crate::config::{self, Arch, Campaign, Sources};
use crate::evidence::{Class, Finding, FindingState};
use crate::host::affinity::{self, AffinityError};
use crate::host::look::{self, Look, Prober};
use crate::host::readiness::{self, Need};
use crate::host::{cross, facts, tune, Root};
use crate::process::Stop;
use crate::progress::{self, Event};
use crate::select::{self, Chosen, Machine, LOCAL};
use crate::values::{number_list, CpuList};
use crate::worker::{binary, Worker};
use serde::Serialize;
use std::fmt::Write;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

/// Arguments of `check`.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// CPUs that would be measured on [default: chosen from this machine]
    #[arg(long, value_name = "LIST")]
    pub cpu: Option<CpuList>,
    /// System that the machine should be [default: the one that matches]
    #[arg(long, value_name = "ID")]
    pub system: Option<String>,
    /// Read /proc and /sys below this folder, for tests
    #[arg(long, value_name = "DIR")]
    pub sysroot: Option<PathBuf>,
}

/// A system was named where there is no configuration.
#[derive(Debug, thiserror::Error)]
#[error("--system {0}: there is no campaign.toml here that could say what that is; name one with --config")]
struct NoCampaign(String);

/// What `check` found.
#[derive(Debug, Serialize)]
struct Report {
    /// What `tune` left, in words.
    tuned: Option<String>,
    ready: bool,
    system: String,
    class: Class,
    processor: Option<String>,
    cpus: Vec<u32>,
    findings: Vec<Finding>,
}

/// Prints the findings; status 1 unless everything that matters is fine.
pub fn run(args: &Args, global: &Global) -> Result<Outcome, Failure> {
    let root = Root::from_option(args.sysroot.as_deref());
    let campaign = campaign(args, global)?;
    let cpus = Cpus::choose(args, &root)?;
    let report = match &campaign {
        Some(campaign) => {
            let chosen = chosen(args, campaign, &root, &cpus)?;
            match chosen.class {
                Class::Emulated => emulated(campaign, &chosen, global)?,
                _ => registered(global, &root, &cpus, Some((campaign, &chosen)))?,
            }
        }
        None => registered(global, &root, &cpus, None)?,
    };
    match global.json {
        true => output::print_json(&report)?,
        false => output::print(&text(&report, width(), colours()))?,
    }
    Ok(Outcome::found(!report.ready))
}

/// The configuration, if there is one; one that is named must be there.
fn campaign(args: &Args, global: &Global) -> Result<Option<Campaign>, Failure> {
    let here = std::env::current_dir().map_err(|e| Failure::could_not(prepare::NoFolder(e)))?;
    match (&global.config, config::find(&here), &args.system) {
        (None, Err(_), Some(system)) => Err(Failure::request(NoCampaign(system.clone()))),
        (None, Err(_), None) => Ok(None),
        _ => prepare::campaign(global, Sources::Absent).map(Some),
    }
}

/// CPUs that this process may use, and those of them that would be measured.
#[derive(Debug)]
struct Cpus {
    allowed: Vec<u32>,
    measured: Vec<u32>,
}

impl Cpus {
    fn choose(args: &Args, root: &Root) -> Result<Cpus, Failure> {
        let allowed = affinity::allowed_on(root).map_err(AffinityError::Unknown)?;
        let asked = args.cpu.as_ref().map(|list| &list.0[..]);
        let measured = affinity::choose(root, &allowed, asked)?;
        Ok(Cpus { allowed, measured })
    }
}

/// The system that the measured CPUs are of: on a machine of several kinds not the first CPU decides.
fn chosen(args: &Args, campaign: &Campaign, root: &Root, cpus: &Cpus) -> Result<Chosen, Failure> {
    let architecture = facts::architecture_of(root);
    let arch = [Arch::X86_64, Arch::Aarch64]
        .into_iter()
        .find(|arch| arch.word() == architecture)
        .ok_or_else(|| Failure::could_not(prepare::UnsupportedArch))?;
    let machine = Machine {
        arch,
        cpu_models: facts::models(root, &cpus.measured),
    };
    Ok(select::system(campaign, args.system.as_deref(), &machine)?)
}

/// The tools that stand in for a machine of that kind.
fn emulated(campaign: &Campaign, chosen: &Chosen, global: &Global) -> Result<Report, Failure> {
    let stop = Stop::new();
    let has_worker = global.worker.is_some();
    let findings = cross::findings(&chosen.system, &campaign.root, has_worker, &stop);
    Ok(Report {
        tuned: None,
        ready: readiness::is_ready(&findings),
        system: chosen.system.id.clone(),
        class: chosen.class,
        processor: None,
        cpus: Vec::new(),
        findings,
    })
}

/// This machine, or the copy of one.
fn registered(
    global: &Global,
    root: &Root,
    cpus: &Cpus,
    campaign: Option<(&Campaign, &Chosen)>,
) -> Result<Report, Failure> {
    let (allowed, cpus) = (&cpus.allowed[..], &cpus.measured[..]);
    let stop = Stop::new();
    let worker = worker(global, root, campaign, &stop);
    let folder = std::env::temp_dir();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Failure::could_not)?;
    let state = runtime.block_on(async {
        let compiler = match root.is_live() {
            true => look::compiler_version(&compilers(campaign), &stop).await,
            false => None,
        };
        let needs = campaign.map(|(campaign, chosen)| needs(campaign, chosen, root, cpus));
        let look = Look {
            root,
            cpus,
            allowed,
            compiler,
            needs: needs.as_deref(),
            prober: worker.as_ref().map_err(String::clone).map(|worker| Prober {
                worker,
                folder: &folder,
                stop: &stop,
            }),
        };
        look.look().await
    });
    let state = state.map_err(Failure::could_not)?;
    Ok(Report {
        tuned: tune::left(root).map(|left| format!("{left}; `campaign untune` restores it")),
        ready: readiness::is_ready(&state.findings),
        system: campaign.map_or(LOCAL.to_owned(), |(_, chosen)| chosen.system.id.clone()),
        class: campaign.map_or(Class::Local, |(_, chosen)| chosen.class),
        processor: state.stable.cpu_model,
        cpus: cpus.to_vec(),
        findings: state.findings,
    })
}

fn compilers<'a>(campaign: Option<(&'a Campaign, &'a Chosen)>) -> Vec<&'a str> {
    let own = campaign.map(|(_, chosen)| chosen.system.cc.as_str());
    own.into_iter().chain(["gcc"]).collect()
}

fn needs(campaign: &Campaign, chosen: &Chosen, root: &Root, cpus: &[u32]) -> Vec<Need> {
    let features = facts::features(root, cpus);
    readiness::needs(campaign, chosen.system.arch, &features)
}

/// The worker that probes, or why there is none. A missing one leaves the counters unknown, and the
/// rest of the check is worth having all the same.
fn worker(
    global: &Global,
    root: &Root,
    campaign: Option<(&Campaign, &Chosen)>,
    stop: &Stop,
) -> Result<Worker, String> {
    if !root.is_live() {
        return Err("files of another machine are read (--sysroot)".to_owned());
    }
    let arch = Arch::host().ok_or_else(|| prepare::UnsupportedArch.to_string())?;
    let progress = progress::reader(global.quiet);
    let wanted = binary::Wanted {
        explicit: global.worker.as_deref(),
        pack: None,
        root: campaign.map_or(Path::new("/"), |(campaign, _)| &campaign.root),
        system_id: campaign.map_or(LOCAL, |(_, chosen)| &chosen.system.id),
        arch,
        runner: &[],
    };
    binary::find(wanted, stop, &|text| progress.event(Event::Note(text)))
        .map_err(|error| error.to_string())
}

/// Columns of the terminal; without one, of a page.
fn width() -> usize {
    let columns = std::env::var("COLUMNS").ok().and_then(|n| n.parse().ok());
    columns.unwrap_or(100).clamp(60, 160)
}

fn colours() -> bool {
    std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty())
}

/// The findings as a table, then what to do.
fn text(report: &Report, width: usize, colours: bool) -> String {
    let mut text = head(report);
    if let Some(tuned) = &report.tuned {
        let _ = writeln!(text, "{tuned}.\n");
    }
    let item_width = report
        .findings
        .iter()
        .map(|f| f.item.len())
        .max()
        .unwrap_or(0);
    let cpu_width = report
        .findings
        .iter()
        .map(|finding| cpu(finding).len())
        .max()
        .unwrap_or(0);
    let indent = 9 + item_width + 2 + cpu_width + 2;
    for finding in &report.findings {
        let (word, colour) = word(finding);
        let word = format!("{word:<9}");
        let word = match colours {
            true => format!("\x1b[{colour}m{word}\x1b[0m"),
            false => word,
        };
        let cpu = cpu(finding);
        let value = wrap(&finding.value, width.saturating_sub(indent), indent);
        let _ = writeln!(
            text,
            "{word}{:<item_width$}  {cpu:<cpu_width$}  {value}",
            finding.item
        );
    }
    let against = |f: &&Finding| readiness::stands_against(f);
    let advice = |f: &&Finding| f.advice && !readiness::is_fine(f);
    text += &to_do(
        "Stands against measuring:",
        report.findings.iter().filter(against),
        width,
    );
    text += &to_do(
        "Could be better:",
        report.findings.iter().filter(advice),
        width,
    );
    text += &verdict(report);
    text
}

fn head(report: &Report) -> String {
    let processor = report
        .processor
        .as_deref()
        .unwrap_or("a processor without a name");
    match report.class {
        Class::Emulated => format!(
            "System {}: another architecture, emulated here. Nothing is timed; these tools are needed.\n\n",
            report.system
        ),
        Class::Registered => format!("System {}: {processor}, {}.\n\n", report.system, cpus(report)),
        _ => format!(
            "A machine that is not registered ({}): {processor}, {}.\n\n",
            report.system,
            cpus(report)
        ),
    }
}

fn cpus(report: &Report) -> String {
    format!("CPU {}", number_list(&report.cpus))
}

fn cpu(finding: &Finding) -> String {
    finding
        .cpu
        .map(|cpu| format!("CPU {cpu}"))
        .unwrap_or_default()
}

/// The state as a word, and its colour (SGR).
fn word(finding: &Finding) -> (&'static str, u8) {
    match (finding.state, finding.advice) {
        (FindingState::Ok, _) => ("ok", 32),
        (FindingState::NotApplicable, _) => ("-", 2),
        (FindingState::Bad, false) => ("BAD", 31),
        (FindingState::Unknown, false) => ("UNKNOWN", 31),
        (FindingState::Bad, true) => ("bad", 33),
        (FindingState::Unknown, true) => ("unknown", 33),
    }
}

fn to_do<'a>(title: &str, findings: impl Iterator<Item = &'a Finding>, width: usize) -> String {
    let mut text = String::new();
    for finding in findings {
        let on = finding
            .cpu
            .map(|cpu| format!(" of CPU {cpu}"))
            .unwrap_or_default();
        let line = format!(
            "{}{on} ({}): {}",
            finding.item,
            finding.source,
            finding.remedy.as_deref().unwrap_or("no remedy is known")
        );
        let _ = writeln!(text, "  {}", wrap(&line, width.saturating_sub(4), 4));
    }
    match text.is_empty() {
        true => text,
        false => format!("\n{title}\n{text}"),
    }
}

fn verdict(report: &Report) -> String {
    let count = |state| {
        let against = report
            .findings
            .iter()
            .filter(|f| readiness::stands_against(f));
        against.filter(|f| f.state == state).count()
    };
    match report.ready {
        true => "\nready\n".to_owned(),
        false => format!(
            "\nnot ready: of what matters, {} bad and {} unknown\n",
            count(FindingState::Bad),
            count(FindingState::Unknown)
        ),
    }
}

/// Breaks at blanks; lines after the first begin at `indent`.
fn wrap(text: &str, width: usize, indent: usize) -> String {
    let width = width.max(20);
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("there is a first line");
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > width {
            lines.push(word.to_owned());
        } else {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines.join(&format!("\n{:indent$}", ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(item: &str, cpu: Option<u32>, advice: bool, state: FindingState) -> Finding {
        let fine = matches!(state, FindingState::Ok | FindingState::NotApplicable);
        Finding {
            item: item.to_owned(),
            cpu,
            advice,
            state,
            value: format!("the value of {item}, which is long enough for a second line here"),
            source: format!("/sys/{item}"),
            remedy: (!fine).then(|| format!("do something about {item}")),
        }
    }

    fn report(findings: Vec<Finding>) -> Report {
        Report {
            tuned: None,
            ready: readiness::is_ready(&findings),
            system: "x86_1".to_owned(),
            class: Class::Registered,
            processor: Some("Some CPU".to_owned()),
            cpus: vec![2, 3],
            findings,
        }
    }

    #[test]
    fn the_table_says_what_stands_against_measuring_and_what_to_do() {
        use FindingState::*;
        let report = report(vec![
            finding("virtualization", None, false, Ok),
            finding("smt", None, false, NotApplicable),
            finding("governor", Some(2), false, Bad),
            finding("frequency", Some(12), false, Unknown),
            finding("isolation", Some(2), true, Bad),
            finding("load", None, true, Unknown),
        ]);
        insta::assert_snapshot!(text(&report, 72, false));
        assert!(text(&report, 72, true).contains("\x1b[31mBAD      \x1b[0mgovernor"));
    }

    #[test]
    fn advice_alone_leaves_a_host_ready() {
        let advice = finding("isolation", Some(2), true, FindingState::Bad);
        assert!(report(vec![advice.clone()]).ready);
        let text = text(&report(vec![advice]), 100, false);
        assert!(text.ends_with("\nready\n"), "{text}");
        assert!(!text.contains("Stands against"), "{text}");
    }
}

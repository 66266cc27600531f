//! What pages need to know of an imported campaign that its evidence does not say: names and links of
//! the candidates, from our configuration. An audit takes it from the dataset itself.

use super::read::Evidence;
use crate::config::model::{Campaign, Candidate, Wrap};
use crate::evidence::{CampaignFile, CandidateInfo, InstanceInfo, KatIssueInfo, Origin};
use crate::identity::{natural_order, Identity};
use std::collections::BTreeMap;

/// Facts that are stated, not measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Context {
    /// Description of the system.
    pub system_description: Option<String>,
    /// `independent` or `self-assessment`.
    pub report_kind: String,
    /// Title of the pages.
    pub title: String,
    /// Reference instance of ratios.
    pub reference_instance: Option<Identity>,
    /// Candidates of the evidence.
    pub candidates: Vec<CandidateInfo>,
    /// Keys that were dropped, with the number of places.
    pub dropped: BTreeMap<String, u64>,
}

impl Context {
    /// From the configuration.
    pub fn of(config: &Campaign, system: &str, evidence: &Evidence) -> Self {
        let mut labels = BTreeMap::<&str, Vec<&str>>::new();
        for instance in evidence.build.instances.values() {
            labels
                .entry(&instance.candidate)
                .or_default()
                .push(&instance.label);
        }
        let dropped = BTreeMap::from([(super::read::DROPPED.to_owned(), evidence.dropped)]);
        Context::new(config, system, labels, dropped)
    }

    /// From the configuration, for these labels of each candidate.
    pub fn new(
        config: &Campaign,
        system: &str,
        labels: BTreeMap<&str, Vec<&str>>,
        dropped: BTreeMap<String, u64>,
    ) -> Self {
        Context {
            system_description: config.system(system).and_then(|s| s.description.clone()),
            report_kind: config.report.kind.word().to_owned(),
            title: config.report.title.clone(),
            reference_instance: config.report.reference.clone(),
            candidates: labels
                .into_iter()
                .map(|(id, mut labels)| {
                    labels.sort_by(|a, b| natural_order(a, b));
                    candidate(config.candidates.iter().find(|c| c.id == id), id, &labels)
                })
                .collect(),
            dropped,
        }
    }

    /// As a dataset states it.
    pub fn stated(file: &CampaignFile) -> Self {
        Context {
            system_description: file.system_description.clone(),
            report_kind: file.report_kind.clone(),
            title: file.title.clone(),
            reference_instance: file.reference_instance.clone(),
            candidates: file.candidates.clone(),
            dropped: file
                .provenance
                .as_ref()
                .map(|p| p.dropped.clone())
                .unwrap_or_default(),
        }
    }
}

/// What the configuration says of a candidate; of an unknown one its id.
fn candidate(known: Option<&Candidate>, id: &str, labels: &[&str]) -> CandidateInfo {
    let bits = |label: &str| {
        known?
            .instances
            .iter()
            .find(|i| i.label == label)?
            .security_bits
    };
    let text = |value: fn(&Candidate) -> &String, unknown: &str| {
        known.map_or(unknown.to_owned(), |c| value(c).clone())
    };
    CandidateInfo {
        id: id.to_owned(),
        name: text(|c| &c.name, id),
        category: text(|c| &c.category, "public-key algorithm"),
        function: text(|c| &c.function, "digital signature"),
        origin: Origin::Submission,
        specification: known.and_then(|c| c.specification.clone()),
        links: known.map(|c| c.links.clone()).unwrap_or_default(),
        instances: labels
            .iter()
            .map(|label| InstanceInfo {
                label: (*label).to_owned(),
                security_bits: bits(label),
            })
            .collect(),
        kat_issues: known.map_or_else(Vec::new, |c| issues(c, labels)),
        wrap_column: wrap_column(known),
    }
}

fn issues(candidate: &Candidate, labels: &[&str]) -> Vec<KatIssueInfo> {
    let ours = candidate.kat_issues.iter();
    ours.filter(|issue| labels.contains(&issue.instance.as_str()))
        .map(|issue| KatIssueInfo {
            instance: issue.instance.clone(),
            result: issue.result.word().to_owned(),
            reason: issue.reason.clone(),
        })
        .collect()
}

/// The public campaign wraps the programme's helper functions and nothing else.
fn wrap_column(known: Option<&Candidate>) -> String {
    match known.map(|c| &c.wrap) {
        Some(Wrap::None) => "none wrapped".to_owned(),
        _ => "pseudohash/XOF/sm3".to_owned(),
    }
}

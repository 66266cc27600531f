//! The common head of evidence files, against the campaign, the sessions and the file's place.

use super::facts::{text, Facts, Reason};
use super::finding::Findings;
use super::shape::Form;
use crate::json::Value;

/// What a head says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Head {
    /// `candidate/label/code/build`
    pub identity: String,
    /// `candidate/label`
    pub subject: String,
    /// How far the evidence goes.
    pub status: String,
    /// Why it is not complete.
    pub reason: Option<Reason>,
    /// Operation, where the file is about one.
    pub operation: Option<String>,
    /// Numbers of the sessions that contributed.
    pub sessions: Vec<u64>,
}

/// Checks the head of a file.
pub fn check(form: Form, path: &str, value: &Value, facts: &Facts, f: &mut Findings) -> Head {
    let identity = text(value, "identity").unwrap_or_default();
    let parts: Vec<&str> = identity.split('/').collect();
    let candidate = parts.first().copied().unwrap_or_default();
    let head = Head {
        subject: parts.iter().take(2).copied().collect::<Vec<_>>().join("/"),
        status: text(value, "status").unwrap_or_default(),
        reason: Reason::of(value),
        operation: text(value, "operation"),
        sessions: Vec::new(),
        identity: identity.clone(),
    };
    let expected = place(form, &parts, value);
    if expected.as_deref() != Some(path) {
        f.error(
            "/identity",
            "a file lies where its identity says",
            expected.unwrap_or_default(),
            path,
        );
    }
    if !facts.rows.contains_key(&identity) {
        f.error(
            "/identity",
            "an identity is a row of campaign.json",
            "",
            &identity,
        );
    }
    for (key, expected) in [
        (
            "origin",
            facts.origins.get(candidate).cloned().unwrap_or_default(),
        ),
        ("class", facts.class.clone()),
        ("system", facts.system.clone()),
    ] {
        let found = text(value, key).unwrap_or_default();
        if found != expected {
            f.error(
                format!("/{key}"),
                "a head repeats campaign.json",
                expected,
                found,
            );
        }
    }
    if (head.status == "complete") != head.reason.is_none() {
        f.error(
            "/reason",
            "what is not complete has a reason",
            &head.status,
            format!("{:?}", head.reason),
        );
    }
    let sessions = sessions(value, facts, f);
    Head { sessions, ..head }
}

/// Path of a file by its content.
fn place(form: Form, parts: &[&str], value: &Value) -> Option<String> {
    let [candidate, label, code, build] = *parts else {
        return None;
    };
    let stem = format!("{candidate}/{label}.{code}.{build}");
    let operation = text(value, "operation");
    Some(match form {
        Form::Kat => format!(
            "kat/{stem}.{}.json",
            value.get("library").and_then(|l| text(l, "kind"))?
        ),
        Form::Timing if value.get("aa")?.bool()? => {
            format!("records/{stem}__{}.aa.json", operation?)
        }
        Form::Timing => format!("records/{stem}__{}.json", operation?),
        Form::Calibrate | Form::Memory | Form::Profile => {
            format!("{}/{stem}__{}.json", form.kind(), operation?)
        }
        Form::Study => format!(
            "study/message-size/{stem}__{}__{}__{}.json",
            operation?,
            text(value, "mode")?,
            value.get("size_bytes")?.u64()?
        ),
        Form::Fit => format!("study/message-size/{stem}__{}.fit.json", operation?),
        _ => return None,
    })
}

fn sessions(value: &Value, facts: &Facts, f: &mut Findings) -> Vec<u64> {
    let token = text(value, "host_token");
    let mut numbers = Vec::new();
    for (index, session) in value
        .get("sessions")
        .map_or(&[][..], Value::items)
        .iter()
        .enumerate()
    {
        let number = session.get("k").and_then(Value::u64).unwrap_or(u64::MAX);
        let digest = text(session, "environment_sha256").unwrap_or_default();
        let Some(known) = facts.sessions.get(&number) else {
            f.error(
                format!("/sessions/{index}/k"),
                "a session has its environment file",
                "",
                number,
            );
            continue;
        };
        if known.sha256 != digest {
            f.error(
                format!("/sessions/{index}/environment_sha256"),
                "the digest is that of the environment file",
                &known.sha256,
                digest,
            );
        }
        if known.host_token != token {
            f.error(
                "/host_token",
                "all evidence of a session is of one host",
                format!("{:?}", known.host_token),
                format!("{token:?}"),
            );
        }
        numbers.push(number);
    }
    if numbers.is_empty()
        && value
            .get("status")
            .and_then(|s| s.str())
            .is_some_and(|s| s == "complete")
    {
        f.error(
            "/sessions",
            "complete evidence is of a session",
            "at least one",
            "none",
        );
    }
    numbers
}

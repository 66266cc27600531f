//! What an audit finds.

use serde::Serialize;
use std::fmt;

/// One thing that is not as it must be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// How bad.
    pub severity: Severity,
    /// File below the dataset; `.` for the dataset itself.
    pub file: String,
    /// JSON pointer in it; empty for the whole file. In a file of lines: `line N`.
    pub pointer: String,
    /// What must hold, as a sentence.
    pub rule: String,
    /// What should be there.
    pub expected: String,
    /// What is there.
    pub found: String,
}

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The evidence does not support what it says.
    Error,
    /// A reader should know, and nothing is refuted.
    Note,
}

impl Severity {
    /// The word of reports.
    pub fn word(self) -> &'static str {
        match self {
            Severity::Error => "error",
            Severity::Note => "note",
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = match self.pointer.is_empty() {
            true => printable(&self.file),
            false => printable(&format!("{} {}", self.file, self.pointer)),
        };
        write!(f, "{}: {place}: {}", self.severity.word(), self.rule)?;
        if !self.expected.is_empty() || !self.found.is_empty() {
            write!(f, " (expected {}, found {})", self.expected, self.found)?;
        }
        Ok(())
    }
}

/// A text of somebody else's for a terminal: one line, without control characters.
pub fn printable(text: &str) -> String {
    let shown = |c: char| match c.is_control() {
        true => c.escape_default().to_string(),
        false => c.to_string(),
    };
    text.chars().map(shown).collect()
}

/// Findings about one file, with what is common to them.
#[derive(Debug)]
pub struct Findings {
    file: String,
    /// In the order of the search.
    pub list: Vec<Finding>,
}

/// Findings of one file that are kept; more say nothing new.
const MOST: usize = 100;

impl Findings {
    /// None yet.
    pub fn of(file: &str) -> Self {
        Findings {
            file: file.to_owned(),
            list: Vec::new(),
        }
    }

    /// Adds an error.
    pub fn error<P: Into<String>, R: Into<String>, E: fmt::Display, F: fmt::Display>(
        &mut self,
        pointer: P,
        rule: R,
        expected: E,
        found: F,
    ) {
        self.add(
            Severity::Error,
            pointer.into(),
            rule.into(),
            expected,
            found,
        );
    }

    /// Adds a note.
    pub fn note<P: Into<String>, R: Into<String>, E: fmt::Display, F: fmt::Display>(
        &mut self,
        pointer: P,
        rule: R,
        expected: E,
        found: F,
    ) {
        self.add(Severity::Note, pointer.into(), rule.into(), expected, found);
    }

    fn add(
        &mut self,
        severity: Severity,
        pointer: String,
        rule: String,
        expected: impl fmt::Display,
        found: impl fmt::Display,
    ) {
        if self.list.len() < MOST {
            self.list.push(Finding {
                severity,
                file: self.file.clone(),
                pointer,
                rule,
                expected: short(&expected.to_string()),
                found: short(&found.to_string()),
            });
        }
    }
}

/// A hostile file must not fill a terminal: texts are cut, and what no terminal should see is escaped.
fn short(text: &str) -> String {
    const LONGEST: usize = 200;
    let mut cut: String = text
        .chars()
        .take(LONGEST)
        .flat_map(|c| match c.is_control() {
            true => c.escape_default().collect::<Vec<_>>(),
            false => vec![c],
        })
        .collect();
    if text.chars().nth(LONGEST).is_some() {
        cut.push('…');
    }
    cut
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_reads_as_a_sentence_and_hides_control_characters() {
        let mut findings = Findings::of("records/a.json");
        findings.error("/derived/n", "n is the sum of the calls", 20, "2\u{1b}1");
        assert_eq!(
            findings.list[0].to_string(),
            "error: records/a.json /derived/n: n is the sum of the calls (expected 20, found 2\\u{1b}1)"
        );
    }

    #[test]
    fn a_hostile_text_is_cut_and_so_is_a_flood() {
        let mut findings = Findings::of("x");
        for _ in 0..1000 {
            findings.note("", "r", "e".repeat(1000), "");
        }
        assert_eq!(findings.list.len(), MOST);
        assert_eq!(findings.list[0].expected.chars().count(), 201);
    }
}

//! Identity of what is measured: `candidate/label/code/build`, the key of everything, and the file
//! names that follow from it. Validation happens here, once; later code takes the parts as given.

use protocol::Operation;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

/// One measured thing: a candidate's parameter set, from one source, built with one set of flags.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Identity {
    /// Submission or scheme (`sign-09`).
    pub candidate: String,
    /// Parameter set (`dove_classic_128`).
    pub label: String,
    /// Which source of it (`ref`, `clean`, `avx2`, `aarch64`).
    pub code: String,
    /// The guide's version by its flags (`reference`, `performance`, `resource`).
    pub build: String,
}

/// An identity that cannot be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdentityError {
    /// Wrong number of parts.
    #[error("`{0}` is no identity: expected candidate/label/code/build")]
    Shape(String),
    /// A part with a character that cannot be in a file name, or an empty or long one.
    #[error("`{0}` cannot be a part of an identity: use 1 to 300 characters, none of them `/`, NUL or a line end, and neither `.` nor `..`")]
    Part(String),
}

/// Whether `part` may be one of the four parts.
pub fn is_part(part: &str) -> bool {
    let length = part.chars().count();
    (1..=300).contains(&length)
        && part != "."
        && part != ".."
        && !part.contains(['/', '\0', '\n', '\r'])
}

impl Identity {
    /// Builds an identity from its parts.
    pub fn new(
        candidate: &str,
        label: &str,
        code: &str,
        build: &str,
    ) -> Result<Self, IdentityError> {
        for part in [candidate, label, code, build] {
            if !is_part(part) {
                return Err(IdentityError::Part(part.to_owned()));
            }
        }
        Ok(Identity {
            candidate: candidate.to_owned(),
            label: label.to_owned(),
            code: code.to_owned(),
            build: build.to_owned(),
        })
    }

    /// `candidate/label`, the subject of every input seed.
    pub fn subject(&self) -> String {
        format!("{}/{}", self.candidate, self.label)
    }

    /// `<label>.<code>.<build>`, the stem of file names below `<candidate>/`.
    pub fn stem(&self) -> String {
        format!("{}.{}.{}", self.label, self.code, self.build)
    }

    /// `<candidate>/<label>.<code>.<build>__<operation>.json`, below `records/` and its like.
    pub fn operation_file(&self, operation: Operation) -> String {
        format!("{}/{}__{operation}.json", self.candidate, self.stem())
    }

    /// File of the second timing of the noise floor.
    pub fn aa_file(&self) -> String {
        format!("{}/{}__verify.aa.json", self.candidate, self.stem())
    }

    /// Operation key: the identity and the operation; what `--only` matches.
    pub fn operation_key(&self, operation: Operation) -> String {
        format!("{self}/{operation}")
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}/{}/{}/{}",
            self.candidate, self.label, self.code, self.build
        )
    }
}

impl FromStr for Identity {
    type Err = IdentityError;
    fn from_str(text: &str) -> Result<Self, IdentityError> {
        let parts: Vec<&str> = text.split('/').collect();
        match parts[..] {
            [candidate, label, code, build] => Identity::new(candidate, label, code, build),
            _ => Err(IdentityError::Shape(text.to_owned())),
        }
    }
}

impl Serialize for Identity {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Identity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for Identity {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Identity".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "string",
            "description": "candidate/label/code/build",
            "pattern": "^[^/\\x00\\n\\r]{1,300}(/[^/\\x00\\n\\r]{1,300}){3}$"
        })
    }
}

impl PartialOrd for Identity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Identity {
    /// Page order: candidates by id, labels in natural order, then code and build.
    fn cmp(&self, other: &Self) -> Ordering {
        self.candidate
            .cmp(&other.candidate)
            .then_with(|| natural_order(&self.label, &other.label))
            .then_with(|| self.code.cmp(&other.code))
            .then_with(|| build_rank(&self.build).cmp(&build_rank(&other.build)))
            .then_with(|| self.build.cmp(&other.build))
    }
}

/// The guide's order of its versions; others after them.
fn build_rank(build: &str) -> u8 {
    match build {
        "reference" => 0,
        "performance" => 1,
        "resource" => 2,
        _ => 3,
    }
}

/// Natural order of names: digit runs compare as numbers, ties are settled byte by byte.
pub fn natural_order(a: &str, b: &str) -> Ordering {
    let (mut rest_a, mut rest_b) = (a, b);
    loop {
        let (run_a, number_a, next_a) = next_run(rest_a);
        let (run_b, number_b, next_b) = next_run(rest_b);
        let order = match (number_a, number_b) {
            (true, true) => compare_digits(run_a, run_b),
            _ => run_a.cmp(run_b),
        };
        if order != Ordering::Equal {
            return order;
        }
        if next_a.is_empty() || next_b.is_empty() {
            return next_a.len().cmp(&next_b.len()).then_with(|| a.cmp(b));
        }
        (rest_a, rest_b) = (next_a, next_b);
    }
}

/// Splits off the first run of digits or of other characters: run, whether digits, remainder.
fn next_run(text: &str) -> (&str, bool, &str) {
    let digits = text.starts_with(|c: char| c.is_ascii_digit());
    let end = text
        .find(|c: char| c.is_ascii_digit() != digits)
        .unwrap_or(text.len());
    (&text[..end], digits, &text[end..])
}

fn compare_digits(a: &str, b: &str) -> Ordering {
    let (a, b) = (a.trim_start_matches('0'), b.trim_start_matches('0'));
    a.len().cmp(&b.len()).then_with(|| a.cmp(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identity_survives_the_trip_through_text() {
        let text = "sign-09/dove_classic_128/ref/reference";
        let identity: Identity = text.parse().unwrap();
        assert_eq!(identity.to_string(), text);
        assert_eq!(
            identity.operation_file(Operation::Sign),
            "sign-09/dove_classic_128.ref.reference__sign.json"
        );
        assert_eq!(
            identity.aa_file(),
            "sign-09/dove_classic_128.ref.reference__verify.aa.json"
        );
    }

    #[test]
    fn parts_that_cannot_be_file_names_are_refused() {
        for bad in ["a/b/c", "a//c/d", "../b/c/d", "a/b/c/d/e", "a/b\n/c/d"] {
            assert!(bad.parse::<Identity>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn labels_are_in_natural_order() {
        let mut labels = [
            "dove_pkc_skc_128",
            "dove_classic_1024",
            "dove_classic_128",
            "a10",
            "a9",
            "a09",
        ];
        labels.sort_by(|a, b| natural_order(a, b));
        assert_eq!(
            labels,
            [
                "a09",
                "a9",
                "a10",
                "dove_classic_128",
                "dove_classic_1024",
                "dove_pkc_skc_128"
            ]
        );
    }
}

//! The shape of a file: strict JSON, of its schema, in the one form that this format writes, every
//! `null` with its reason, no path of a machine.
//!
//! The schemas are generated from the types of the evidence, so conformance is: the file can be read
//! as its type, and written again gives the same bytes. Unknown keys, other spellings of a number and
//! keys in another order are differences.

use super::finding::Findings;
use super::text;
use crate::evidence::*;
use crate::json::{self, escape_key, Value};
use serde::de::DeserializeOwned;
use serde::Serialize;
use std::collections::BTreeSet;

/// Kinds of files, by their place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)] // the kinds of the evidence
pub enum Form {
    Campaign,
    Build,
    Environment,
    Cells,
    Kat,
    Calibrate,
    Timing,
    Memory,
    Profile,
    Study,
    Fit,
    Log,
    Source,
    Unknown,
}

impl Form {
    /// What a file must be, by its path.
    pub fn of(path: &str) -> Form {
        let parts: Vec<&str> = path.split('/').collect();
        let json = path.ends_with(".json");
        match parts[..] {
            ["campaign.json"] => Form::Campaign,
            ["build.json"] => Form::Build,
            ["cells.json"] => Form::Cells,
            ["environment", _] if json => Form::Environment,
            ["kat", _, _] if json => Form::Kat,
            ["kat", _, name] if name.ends_with(".log") => Form::Log,
            ["calibrate", _, _] if json => Form::Calibrate,
            ["records", _, _] if json => Form::Timing,
            ["memory", _, _] if json => Form::Memory,
            ["profile", _, _] if json => Form::Profile,
            ["study", _, _, name] if name.ends_with("fit.json") => Form::Fit,
            ["study", _, _, _] if json => Form::Study,
            ["source", ..] => Form::Source,
            _ => Form::Unknown,
        }
    }

    /// The `kind` of such a file.
    pub fn kind(self) -> &'static str {
        match self {
            Form::Campaign => "campaign",
            Form::Build => "build",
            Form::Environment => "environment",
            Form::Cells => "cells",
            Form::Kat => "kat",
            Form::Calibrate => "calibrate",
            Form::Timing => "timing",
            Form::Memory => "memory",
            Form::Profile => "profile",
            Form::Study => "study",
            Form::Fit => "fit",
            Form::Log | Form::Source | Form::Unknown => "",
        }
    }
}

/// Checks the shape of an evidence file and returns it as a tree; `None` when it is no JSON.
pub fn check<'a>(form: Form, bytes: &'a [u8], f: &mut Findings) -> Option<Value<'a>> {
    let value = match json::parse(bytes) {
        Ok(value) => value,
        Err(error) => {
            f.error(error.pointer.clone(), "a file is strict JSON", "", error);
            return None;
        }
    };
    conforms(form, bytes, &value, f);
    nulls(&value, f);
    if let Some((pointer, path)) = text::local_path_in(&value) {
        f.error(pointer, "no file holds a path of a machine", "", path);
    }
    let kind = value.get("kind").and_then(|k| k.str()).unwrap_or_default();
    if kind != form.kind() {
        f.error(
            "/kind",
            "a file's kind is that of its place",
            form.kind(),
            kind,
        );
    }
    Some(value)
}

fn conforms(form: Form, bytes: &[u8], value: &Value, f: &mut Findings) {
    let again = match form {
        Form::Campaign => again::<CampaignFile>(bytes),
        Form::Build => again::<BuildFile>(bytes),
        Form::Environment => again::<EnvironmentFile>(bytes),
        Form::Cells => again::<CellsFile>(bytes),
        Form::Kat => again::<KatEvidence>(bytes),
        Form::Calibrate => again::<CalibrateEvidence>(bytes),
        Form::Timing => again::<TimingRecord>(bytes),
        Form::Memory => again::<MemoryEvidence>(bytes),
        Form::Profile => again::<ProfileEvidence>(bytes),
        Form::Study => again::<StudyRecord>(bytes),
        Form::Fit => again::<FitEvidence>(bytes),
        Form::Log | Form::Source | Form::Unknown => return,
    };
    match again {
        Err(error) => {
            let pointer = json::pointer_at(bytes, error.line(), error.column());
            f.error(pointer, "a file conforms to its schema", "", error);
        }
        Ok(again) if again == bytes => {}
        Ok(again) => {
            let (pointer, expected, found) = json::parse(&again)
                .ok()
                .and_then(|again| difference(&again, value))
                .unwrap_or_else(|| {
                    (
                        String::new(),
                        "two blanks a level, keys in order".into(),
                        "another".into(),
                    )
                });
            f.error(
                pointer,
                "a file is written as its schema writes it",
                expected,
                found,
            );
        }
    }
    let schema = value
        .get("schema")
        .and_then(|s| s.str())
        .unwrap_or_default();
    if schema != SCHEMA {
        f.error("/schema", "the schema is known", SCHEMA, schema);
    }
}

/// The file read as its type and written again.
fn again<T: DeserializeOwned + Serialize>(bytes: &[u8]) -> Result<Vec<u8>, serde_json::Error> {
    let value: T = serde_json::from_slice(bytes)?;
    let mut again = Vec::with_capacity(bytes.len() + 1);
    serde_json::to_writer_pretty(&mut again, &value)?;
    again.push(b'\n');
    Ok(again)
}

/// The first difference of two trees: JSON pointer, what is expected, what is found.
fn difference(expected: &Value, found: &Value) -> Option<(String, String, String)> {
    let here = |e: &Value, f: &Value| Some((String::new(), shown(e), shown(f)));
    match (expected, found) {
        (Value::Object(a), Value::Object(b)) => {
            for (key, item) in b {
                let key = key.decode();
                let Some(other) = expected.get(&key) else {
                    return Some((
                        format!("/{}", escape_key(&key)),
                        "no such key".into(),
                        shown(item),
                    ));
                };
                if let Some((below, e, f)) = difference(other, item) {
                    return Some((format!("/{}{below}", escape_key(&key)), e, f));
                }
            }
            let lacking = a.iter().find(|(key, _)| found.get(&key.decode()).is_none());
            lacking.map(|(key, item)| {
                (
                    format!("/{}", escape_key(&key.decode())),
                    shown(item),
                    "no such key".into(),
                )
            })
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            a.iter().zip(b).enumerate().find_map(|(index, (e, f))| {
                let (below, e, f) = difference(e, f)?;
                Some((format!("/{index}{below}"), e, f))
            })
        }
        (e, f) if e == f => None,
        (e, f) => here(e, f),
    }
}

/// The first difference of two texts that should be one document.
pub fn first_difference(expected: &[u8], found: &[u8]) -> (String, String, String) {
    let trees = json::parse(expected).ok().zip(json::parse(found).ok());
    trees
        .and_then(|(expected, found)| difference(&expected, &found))
        .unwrap_or_else(|| (String::new(), "another text".into(), "this one".into()))
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => "null".into(),
        Value::Bool(value) => value.to_string(),
        Value::Number(text) => (*text).to_owned(),
        Value::String(text) => format!("\"{}\"", text.decode()),
        Value::Array(items) => format!("{} items", items.len()),
        Value::Object(members) => format!("{} members", members.len()),
    }
}

/// Every null has its reason, and every reason its null.
fn nulls(value: &Value, f: &mut Findings) {
    let Some(missing) = value.get("missing") else {
        return;
    };
    let keys: Vec<String> = missing
        .members()
        .iter()
        .map(|(k, _)| k.decode().into_owned())
        .collect();
    let known: BTreeSet<&str> = keys.iter().map(String::as_str).collect();
    let mut walk = Nulls {
        known,
        used: BTreeSet::new(),
        pointer: String::new(),
        pattern: String::new(),
        f,
    };
    for (key, item) in value.members() {
        if !key.is("missing") {
            walk.member(&key.decode(), item);
        }
    }
    let (used, f) = (walk.used, walk.f);
    for key in keys.iter().filter(|key| !used.contains(key.as_str())) {
        let pointer = format!("/missing/{}", escape_key(key));
        f.error(
            pointer,
            "a reason belongs to a null",
            "a null",
            "none there",
        );
    }
}

/// A walk over a tree with the pointer of the current value, and its pattern with `*` for indices.
struct Nulls<'a, 'f> {
    known: BTreeSet<&'a str>,
    used: BTreeSet<String>,
    pointer: String,
    pattern: String,
    f: &'f mut Findings,
}

/// What another format says is kept as it is.
const FOREIGN: &str = "/provenance/source";
/// Keys whose null says that there is nothing to say.
const PLAIN: [&str; 4] = ["reason", "detail", "quantity", "native"];

impl Nulls<'_, '_> {
    fn member(&mut self, key: &str, value: &Value) {
        if matches!(value, Value::Null) && PLAIN.contains(&key) {
            return;
        }
        let (pointer, pattern) = (self.pointer.len(), self.pattern.len());
        let key = escape_key(key);
        for text in [&mut self.pointer, &mut self.pattern] {
            text.push('/');
            text.push_str(&key);
        }
        if self.pointer != FOREIGN {
            self.value(value);
        }
        self.pointer.truncate(pointer);
        self.pattern.truncate(pattern);
    }

    fn value(&mut self, value: &Value) {
        match value {
            Value::Null => self.null(),
            Value::Object(members) => {
                for (key, item) in members {
                    self.member(&key.decode(), item);
                }
            }
            // Most arrays hold numbers only.
            Value::Array(items) if items.iter().any(|i| !matches!(i, Value::Number(_))) => {
                for (index, item) in items.iter().enumerate() {
                    let (pointer, pattern) = (self.pointer.len(), self.pattern.len());
                    self.pointer.push_str(&format!("/{index}"));
                    self.pattern.push_str("/*");
                    self.value(item);
                    self.pointer.truncate(pointer);
                    self.pattern.truncate(pattern);
                }
            }
            _ => {}
        }
    }

    fn null(&mut self) {
        // A reason of its own comes before the one that it shares with others.
        if self.known.contains(self.pointer.as_str()) {
            self.used.insert(self.pointer.clone());
            return;
        }
        if self.known.contains(self.pattern.as_str()) {
            if !self.used.contains(&self.pattern) {
                self.used.insert(self.pattern.clone());
            }
            return;
        }
        let pointer = &self.pointer;
        match self.known.iter().find(|key| covers(key, pointer)) {
            Some(key) => {
                self.used.insert((*key).to_owned());
            }
            None => self.f.error(
                pointer.clone(),
                "every null has a reason in `missing`",
                "a reason",
                "none",
            ),
        }
    }
}

/// Whether a key of `missing` is about the value at a pointer: equal but for `*`, which stands for an
/// index.
fn covers(key: &str, pointer: &str) -> bool {
    let (key, pointer): (Vec<&str>, Vec<&str>) =
        (key.split('/').collect(), pointer.split('/').collect());
    key.len() == pointer.len()
        && key.iter().zip(&pointer).all(|(k, p)| {
            k == p || (*k == "*" && !p.is_empty() && p.bytes().all(|b| b.is_ascii_digit()))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nulls_and_reasons_belong_together() {
        let reason = r#"{"code":"not_recorded","text":"x"}"#;
        let text = format!(
            r#"{{"a":null,"reason":null,"b":[{{"c":null}},{{"c":1}},{{"c":null}}],"d":null,
            "missing":{{"/a":{reason},"/b/*/c":{reason},"/b/2/c":{reason},"/gone":{reason}}}}}"#
        );
        let mut f = Findings::of("x");
        nulls(&json::parse(text.as_bytes()).unwrap(), &mut f);
        let mut places: Vec<&str> = f.list.iter().map(|f| f.pointer.as_str()).collect();
        places.sort_unstable();
        assert_eq!(places, ["/d", "/missing/~1gone"]);
    }

    #[test]
    fn the_first_difference_has_its_pointer() {
        for (a, b, pointer) in [
            (r#"{"a":[1,{"b":2}]}"#, r#"{"a":[1,{"b":3}]}"#, "/a/1/b"),
            (r#"{"a":1}"#, r#"{"a":1,"x":2}"#, "/x"),
            (r#"{"a":1,"x":2}"#, r#"{"a":1}"#, "/x"),
            (r#"{"a":1.0}"#, r#"{"a":1.00}"#, "/a"),
            (r#"{"a":[1]}"#, r#"{"a":[1,2]}"#, "/a"),
        ] {
            let (a, b) = (
                json::parse(a.as_bytes()).unwrap(),
                json::parse(b.as_bytes()).unwrap(),
            );
            assert_eq!(difference(&a, &b).unwrap().0, pointer);
            assert_eq!(difference(&a, &a), None);
        }
    }

    #[test]
    fn files_are_known_by_their_place() {
        for (path, form) in [
            ("campaign.json", Form::Campaign),
            ("environment/0.json", Form::Environment),
            ("records/c/x__sign.json", Form::Timing),
            ("kat/c/x.timed.log", Form::Log),
            ("study/message-size/c/x__sign__mmap__1.json", Form::Study),
            ("study/message-size/c/x__sign.fit.json", Form::Fit),
            ("source/campaign.json", Form::Source),
            ("records/x.json", Form::Unknown),
            ("notes.txt", Form::Unknown),
        ] {
            assert_eq!(Form::of(path), form, "{path}");
        }
    }
}

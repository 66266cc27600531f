//! Strict reading of JSON that others wrote: what `audit` and `import` see the evidence through.
//!
//! Beside the grammar of RFC 8259 it refuses what readers disagree about: a repeated key, a number
//! that is no finite double (`1e400`), half a surrogate pair, and more nesting than any evidence has.
//! Numbers keep their text, so that no digit is lost before somebody decides what the number is.
//! Every refusal names line, column and JSON pointer. Sizes of files are limited by the caller.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt::Write as _;

/// Deepest nesting that is read.
const DEEPEST: usize = 64;

/// A value that borrows from the text.
#[derive(Debug, Clone, PartialEq)]
pub enum Value<'a> {
    /// `null`
    Null,
    /// `true`, `false`
    Bool(bool),
    /// A number as written.
    Number(&'a str),
    /// A string.
    String(Text<'a>),
    /// `[...]`
    Array(Vec<Value<'a>>),
    /// `{...}` in the order of the text.
    Object(Vec<(Text<'a>, Value<'a>)>),
}

/// A string as written, between its quotes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Text<'a> {
    raw: &'a str,
    escaped: bool,
}

impl<'a> Text<'a> {
    /// The text that is meant.
    pub fn decode(&self) -> Cow<'a, str> {
        match self.escaped {
            false => Cow::Borrowed(self.raw),
            true => Cow::Owned(unescape(self.raw)),
        }
    }

    /// Whether it means `text`.
    pub fn is(&self, text: &str) -> bool {
        match self.escaped {
            false => self.raw == text,
            true => unescape(self.raw) == text,
        }
    }
}

/// JSON that cannot be trusted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {fault}")]
pub struct JsonError {
    /// Line, from 1.
    pub line: usize,
    /// Byte in it, from 1.
    pub column: usize,
    /// JSON pointer of the value that was being read.
    pub pointer: String,
    /// What is wrong.
    pub fault: Fault,
}

/// What is wrong with a text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// Not the grammar.
    #[error("expected {0}")]
    Expected(&'static str),
    /// The text ends too early.
    #[error("the text ends too early")]
    End,
    /// Bytes that are no UTF-8.
    #[error("bytes that are no UTF-8")]
    Encoding,
    /// Two members with one key.
    #[error("the key `{0}` is there twice")]
    Duplicate(String),
    /// A number that no double holds.
    #[error("the number {0} is beyond all doubles")]
    Range(String),
    /// A lone surrogate or an unknown escape.
    #[error("an escape that stands for no character")]
    Escape,
    /// Nested deeper than any evidence.
    #[error("nested deeper than {DEEPEST} levels")]
    Depth,
}

/// Reads one document.
pub fn parse(bytes: &[u8]) -> Result<Value<'_>, JsonError> {
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => {
            let (line, column) = place(bytes, error.valid_up_to());
            return Err(JsonError {
                line,
                column,
                pointer: String::new(),
                fault: Fault::Encoding,
            });
        }
    };
    let mut parser = Parser {
        text,
        bytes,
        at: 0,
        path: Vec::new(),
        stop: usize::MAX,
    };
    parser.document().map_err(|fault| parser.error(fault))
}

/// JSON pointer of the value at a line and column (from 1) of a document.
pub fn pointer_at(bytes: &[u8], line: usize, column: usize) -> String {
    let start: usize = bytes
        .split_inclusive(|&b| b == b'\n')
        .take(line.saturating_sub(1))
        .map(<[u8]>::len)
        .sum();
    let Ok(text) = std::str::from_utf8(bytes) else {
        return String::new();
    };
    let mut parser = Parser {
        text,
        bytes,
        at: 0,
        path: Vec::new(),
        stop: start + column.saturating_sub(1),
    };
    match parser.document() {
        Ok(_) => String::new(),
        Err(fault) => parser.error(fault).pointer,
    }
}

/// Line and column of a byte, from 1.
fn place(bytes: &[u8], at: usize) -> (usize, usize) {
    let before = &bytes[..at.min(bytes.len())];
    let line = before.iter().filter(|&&b| b == b'\n').count() + 1;
    let start = before
        .iter()
        .rposition(|&b| b == b'\n')
        .map_or(0, |end| end + 1);
    (line, before.len() - start + 1)
}

/// Where the parser is.
#[derive(Debug, Clone, Copy)]
enum Step<'a> {
    Index(usize),
    Key(Text<'a>),
}

struct Parser<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    path: Vec<Step<'a>>,
    /// Byte at which reading ends with [`Fault::End`].
    stop: usize,
}

impl<'a> Parser<'a> {
    fn error(&self, fault: Fault) -> JsonError {
        let (line, column) = place(self.bytes, self.at);
        let mut pointer = String::new();
        for step in &self.path {
            match step {
                Step::Index(index) => {
                    let _ = write!(pointer, "/{index}");
                }
                Step::Key(key) => {
                    pointer.push('/');
                    pointer.push_str(&escape_key(&key.decode()));
                }
            }
        }
        JsonError {
            line,
            column,
            pointer,
            fault,
        }
    }

    fn document(&mut self) -> Result<Value<'a>, Fault> {
        self.blanks();
        let value = self.value()?;
        self.blanks();
        match self.at == self.bytes.len() {
            true => Ok(value),
            false => Err(Fault::Expected("the end of the text")),
        }
    }

    fn blanks(&mut self) {
        while matches!(self.bytes.get(self.at), Some(b' ' | b'\n' | b'\r' | b'\t')) {
            self.at += 1;
        }
    }

    fn peek(&self) -> Result<u8, Fault> {
        self.bytes.get(self.at).copied().ok_or(Fault::End)
    }

    fn value(&mut self) -> Result<Value<'a>, Fault> {
        let value = self.value_before()?;
        match self.at > self.stop {
            true => Err(Fault::End),
            false => Ok(value),
        }
    }

    fn value_before(&mut self) -> Result<Value<'a>, Fault> {
        match self.peek()? {
            b'{' => self.object(),
            b'[' => self.array(),
            b'"' => self.string().map(Value::String),
            b'-' | b'0'..=b'9' => self.number(),
            b't' => self.word("true", Value::Bool(true)),
            b'f' => self.word("false", Value::Bool(false)),
            b'n' => self.word("null", Value::Null),
            _ => Err(Fault::Expected("a value")),
        }
    }

    fn word(&mut self, word: &'static str, value: Value<'a>) -> Result<Value<'a>, Fault> {
        match self.bytes[self.at..].starts_with(word.as_bytes()) {
            true => {
                self.at += word.len();
                Ok(value)
            }
            false => Err(Fault::Expected("a value")),
        }
    }

    fn deeper(&self) -> Result<(), Fault> {
        match self.path.len() < DEEPEST {
            true => Ok(()),
            false => Err(Fault::Depth),
        }
    }

    fn array(&mut self) -> Result<Value<'a>, Fault> {
        self.deeper()?;
        self.at += 1;
        let mut items = Vec::new();
        self.blanks();
        if self.peek()? == b']' {
            self.at += 1;
            return Ok(Value::Array(items));
        }
        loop {
            self.path.push(Step::Index(items.len()));
            self.blanks();
            items.push(self.value()?);
            self.path.pop();
            self.blanks();
            match self.peek()? {
                b',' => self.at += 1,
                b']' => {
                    self.at += 1;
                    return Ok(Value::Array(items));
                }
                _ => return Err(Fault::Expected("`,` or `]`")),
            }
        }
    }

    fn object(&mut self) -> Result<Value<'a>, Fault> {
        self.deeper()?;
        self.at += 1;
        let mut members: Vec<(Text<'a>, Value<'a>)> = Vec::new();
        let mut many: Option<HashSet<Cow<'a, str>>> = None;
        self.blanks();
        if self.peek()? == b'}' {
            self.at += 1;
            return Ok(Value::Object(members));
        }
        loop {
            self.blanks();
            if self.peek()? != b'"' {
                return Err(Fault::Expected("a key"));
            }
            let start = self.at;
            let key = self.string()?;
            if repeated(&members, &mut many, key) {
                self.at = start;
                self.path.push(Step::Key(key));
                return Err(Fault::Duplicate(key.decode().into_owned()));
            }
            self.blanks();
            if self.peek()? != b':' {
                return Err(Fault::Expected("`:`"));
            }
            self.at += 1;
            self.blanks();
            self.path.push(Step::Key(key));
            let value = self.value()?;
            self.path.pop();
            members.push((key, value));
            self.blanks();
            match self.peek()? {
                b',' => self.at += 1,
                b'}' => {
                    self.at += 1;
                    return Ok(Value::Object(members));
                }
                _ => return Err(Fault::Expected("`,` or `}`")),
            }
        }
    }

    fn string(&mut self) -> Result<Text<'a>, Fault> {
        self.at += 1;
        let start = self.at;
        let mut escaped = false;
        loop {
            match self.peek()? {
                b'"' => break,
                b'\\' => {
                    escaped = true;
                    self.escape()?;
                }
                0..=0x1f => return Err(Fault::Expected("no control character in a string")),
                _ => self.at += 1,
            }
        }
        let raw = &self.text[start..self.at];
        self.at += 1;
        Ok(Text { raw, escaped })
    }

    /// Steps over one escape, or over a surrogate pair.
    fn escape(&mut self) -> Result<(), Fault> {
        self.at += 1;
        match self.peek()? {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => self.at += 1,
            b'u' => {
                let unit = self.hex4()?;
                match unit {
                    0xd800..=0xdbff => {
                        if self.bytes.get(self.at..self.at + 2) != Some(b"\\u") {
                            return Err(Fault::Escape);
                        }
                        self.at += 1;
                        if !(0xdc00..=0xdfff).contains(&self.hex4()?) {
                            return Err(Fault::Escape);
                        }
                    }
                    0xdc00..=0xdfff => return Err(Fault::Escape),
                    _ => {}
                }
            }
            _ => return Err(Fault::Escape),
        }
        Ok(())
    }

    /// Reads `uXXXX`.
    fn hex4(&mut self) -> Result<u32, Fault> {
        let digits = self.bytes.get(self.at + 1..self.at + 5).ok_or(Fault::End)?;
        let mut unit = 0;
        for &digit in digits {
            let value = char::from(digit).to_digit(16).ok_or(Fault::Escape)?;
            unit = unit * 16 + value;
        }
        self.at += 5;
        Ok(unit)
    }

    fn number(&mut self) -> Result<Value<'a>, Fault> {
        let start = self.at;
        if self.peek()? == b'-' {
            self.at += 1;
        }
        match self.peek()? {
            b'0' => self.at += 1,
            _ => self.digits()?,
        }
        let mut whole = true;
        if self.bytes.get(self.at) == Some(&b'.') {
            whole = false;
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.bytes.get(self.at), Some(b'e' | b'E')) {
            whole = false;
            self.at += 1;
            if matches!(self.bytes.get(self.at), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits()?;
        }
        let text = &self.text[start..self.at];
        // An integer of up to 19 digits is finite without a look.
        if (!whole || text.len() > 19) && !text.parse::<f64>().is_ok_and(f64::is_finite) {
            self.at = start;
            return Err(Fault::Range(text.chars().take(40).collect()));
        }
        Ok(Value::Number(text))
    }

    fn digits(&mut self) -> Result<(), Fault> {
        let start = self.at;
        while matches!(self.bytes.get(self.at), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        match self.at > start {
            true => Ok(()),
            false => Err(Fault::Expected("a digit")),
        }
    }
}

/// Objects up to this size are searched, larger ones get a set.
const SEARCHED: usize = 48;

fn repeated<'a>(
    members: &[(Text<'a>, Value<'a>)],
    many: &mut Option<HashSet<Cow<'a, str>>>,
    key: Text<'a>,
) -> bool {
    if members.len() < SEARCHED {
        let plain = |k: &Text| match k.escaped || key.escaped {
            false => k.raw == key.raw,
            true => k.decode() == key.decode(),
        };
        return members.iter().any(|(k, _)| plain(k));
    }
    let set = many.get_or_insert_with(|| members.iter().map(|(k, _)| k.decode()).collect());
    !set.insert(key.decode())
}

/// Decodes a string whose escapes are known to be good.
fn unescape(raw: &str) -> String {
    let mut text = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(at) = rest.find('\\') {
        text.push_str(&rest[..at]);
        let escape = rest.as_bytes()[at + 1];
        rest = &rest[at + 2..];
        if escape != b'u' {
            text.push(match escape {
                b'b' => '\u{8}',
                b'f' => '\u{c}',
                b'n' => '\n',
                b'r' => '\r',
                b't' => '\t',
                other => char::from(other),
            });
            continue;
        }
        let mut unit = u32::from_str_radix(&rest[..4], 16).unwrap_or(0xfffd);
        rest = &rest[4..];
        if (0xd800..0xdc00).contains(&unit) {
            let low = u32::from_str_radix(&rest[2..6], 16).unwrap_or(0xdc00);
            unit = 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
            rest = &rest[6..];
        }
        text.push(char::from_u32(unit).unwrap_or('\u{fffd}'));
    }
    text.push_str(rest);
    text
}

/// A key as a part of a JSON pointer (RFC 6901).
pub fn escape_key(key: &str) -> Cow<'_, str> {
    match key.contains(['~', '/']) {
        false => Cow::Borrowed(key),
        true => Cow::Owned(key.replace('~', "~0").replace('/', "~1")),
    }
}

impl<'a> Value<'a> {
    /// Member of an object.
    pub fn get(&self, key: &str) -> Option<&Value<'a>> {
        match self {
            Value::Object(members) => members.iter().find(|(k, _)| k.is(key)).map(|(_, v)| v),
            _ => None,
        }
    }

    /// Value at a path of keys.
    pub fn at(&self, path: &[&str]) -> Option<&Value<'a>> {
        path.iter().try_fold(self, |value, key| value.get(key))
    }

    /// Items of an array; none of anything else.
    pub fn items(&self) -> &[Value<'a>] {
        match self {
            Value::Array(items) => items,
            _ => &[],
        }
    }

    /// Members of an object; none of anything else.
    pub fn members(&self) -> &[(Text<'a>, Value<'a>)] {
        match self {
            Value::Object(members) => members,
            _ => &[],
        }
    }

    /// Text of a string.
    pub fn str(&self) -> Option<Cow<'a, str>> {
        match self {
            Value::String(text) => Some(text.decode()),
            _ => None,
        }
    }

    /// An integer from 0 up.
    pub fn u64(&self) -> Option<u64> {
        match self {
            Value::Number(text) => text.parse().ok(),
            _ => None,
        }
    }

    /// The double nearest to a number.
    pub fn f64(&self) -> Option<f64> {
        match self {
            Value::Number(text) => text.parse().ok(),
            _ => None,
        }
    }

    /// A truth value.
    pub fn bool(&self) -> Option<bool> {
        match self {
            Value::Bool(value) => Some(*value),
            _ => None,
        }
    }

    /// Whether it is `null`.
    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }

    /// The document again, indented by `indent` blanks a level, every number and string as it was
    /// written, without the members of that key; adds their number to `dropped`.
    pub fn text_without(&self, key: &str, indent: usize, dropped: &mut u64) -> String {
        let mut text = String::new();
        self.write(&mut text, key, indent, 0, dropped);
        text.push('\n');
        text
    }

    fn write(&self, out: &mut String, key: &str, indent: usize, level: usize, dropped: &mut u64) {
        match self {
            Value::Null => out.push_str("null"),
            Value::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
            Value::Number(text) => out.push_str(text),
            Value::String(text) => quoted(out, text),
            Value::Array(items) => {
                out.push('[');
                for (index, item) in items.iter().enumerate() {
                    line(out, index > 0, indent * (level + 1));
                    item.write(out, key, indent, level + 1, dropped);
                }
                close(out, ']', !items.is_empty(), indent * level);
            }
            Value::Object(members) => {
                out.push('{');
                let mut written = 0;
                for (name, item) in members {
                    if name.is(key) {
                        *dropped += 1;
                        continue;
                    }
                    line(out, written > 0, indent * (level + 1));
                    quoted(out, name);
                    out.push_str(": ");
                    item.write(out, key, indent, level + 1, dropped);
                    written += 1;
                }
                close(out, '}', written > 0, indent * level);
            }
        }
    }
}

fn quoted(out: &mut String, text: &Text) {
    out.push('"');
    out.push_str(text.raw);
    out.push('"');
}

fn line(out: &mut String, comma: bool, blanks: usize) {
    out.push_str(if comma { ",\n" } else { "\n" });
    out.extend(std::iter::repeat_n(' ', blanks));
}

fn close(out: &mut String, end: char, lines: bool, blanks: usize) {
    if lines {
        line(out, false, blanks);
    }
    out.push(end);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn values_keep_what_was_written() {
        let value = parse(br#" {"a": [1, -2.50, 1e3, true, null], "\u0062": "x\n\ud83d\ude00"} "#);
        let value = value.unwrap();
        let texts: Vec<Option<f64>> = value
            .get("a")
            .unwrap()
            .items()
            .iter()
            .map(Value::f64)
            .collect();
        assert_eq!(texts, [Some(1.0), Some(-2.5), Some(1000.0), None, None]);
        assert_eq!(value.get("b").unwrap().str().unwrap(), "x\n\u{1f600}");
        assert_eq!(value.get("a").unwrap().items()[1], Value::Number("-2.50"));
    }

    #[test]
    fn what_readers_disagree_about_is_refused_with_its_place() {
        for (text, pointer, fault) in [
            (
                r#"{"a":{"x":1,"x":1}}"#,
                "/a/x",
                Fault::Duplicate("x".into()),
            ),
            (r#"{"a":1,"\u0061":1}"#, "/a", Fault::Duplicate("a".into())),
            (r#"{"a":[0,1e400]}"#, "/a/1", Fault::Range("1e400".into())),
            (r#"[NaN]"#, "/0", Fault::Expected("a value")),
            (r#"[Infinity]"#, "/0", Fault::Expected("a value")),
            (r#"[01]"#, "", Fault::Expected("`,` or `]`")),
            (r#"[1.]"#, "/0", Fault::Expected("a digit")),
            (r#"[+1]"#, "/0", Fault::Expected("a value")),
            (r#"["\ud800"]"#, "/0", Fault::Escape),
            (r#"["\x"]"#, "/0", Fault::Escape),
            (
                "[\"\n\"]",
                "/0",
                Fault::Expected("no control character in a string"),
            ),
            (r#"[1,]"#, "/1", Fault::Expected("a value")),
            (r#"{"a":1}}"#, "", Fault::Expected("the end of the text")),
            (r#"{"a/b":tru"#, "/a~1b", Fault::Expected("a value")),
            (r#"{"a":[1"#, "/a", Fault::End),
            ("", "", Fault::End),
        ] {
            let error = parse(text.as_bytes()).unwrap_err();
            assert_eq!(
                (error.pointer.as_str(), error.fault),
                (pointer, fault),
                "{text}"
            );
        }
        let deep = parse("[".repeat(100).as_bytes()).unwrap_err();
        assert_eq!(
            (deep.pointer, deep.fault),
            ("/0".repeat(DEEPEST), Fault::Depth)
        );
        let error = parse(b"{\n \"a\": \xff}").unwrap_err();
        assert_eq!(
            (error.line, error.column, error.fault),
            (2, 7, Fault::Encoding)
        );
    }

    #[test]
    fn a_place_in_the_text_has_a_pointer() {
        let text = b"{\n \"a\": [1,\n  {\"b\": true}],\n \"c\": 2\n}";
        for (line, column, pointer) in [(2, 8, "/a/0"), (3, 10, "/a/1/b"), (4, 7, "/c"), (9, 9, "")]
        {
            assert_eq!(pointer_at(text, line, column), pointer, "{line} {column}");
        }
    }

    #[test]
    fn a_repeated_key_of_a_large_object_is_found() {
        let members: Vec<String> = (0..200).map(|n| format!("\"k{n}\":0")).collect();
        let text = format!("{{{},\"k7\":0}}", members.join(","));
        let error = parse(text.as_bytes()).unwrap_err();
        assert_eq!(error.fault, Fault::Duplicate("k7".into()));
    }

    #[test]
    fn a_document_is_written_again_token_by_token_without_a_key() {
        let text = "{\n \"a\": {\n  \"b\": [],\n  \"c\": {}\n },\n \"d\": [\n  4.65e-05,\n  \"\\u00e9\"\n ]\n}\n";
        let mut dropped = 0;
        let value = parse(text.as_bytes()).unwrap();
        assert_eq!(value.text_without("hostname", 1, &mut dropped), text);
        assert_eq!(dropped, 0);
        let less = value.text_without("c", 1, &mut dropped);
        assert_eq!(less, text.replace(",\n  \"c\": {}", ""));
        assert_eq!(dropped, 1);
    }

    /// A string as it may be written: plain, escaped, or half of each.
    fn string() -> impl Strategy<Value = String> {
        let part =
            r#"[a-z0-9 ~/é\u{1f600}]|\\["\\/bfnrt]|\\u00[0-7][0-9a-fA-F]|\\ud83d\\ude0[0-9]"#;
        prop::collection::vec(part, 0..6).prop_map(|parts| format!("\"{}\"", parts.concat()))
    }

    /// A document with blanks anywhere; its keys differ.
    fn document() -> impl Strategy<Value = String> {
        let blank = || "[ \n\r\t]{0,2}";
        let leaf = prop_oneof![
            Just("null".to_owned()),
            any::<bool>().prop_map(|b| b.to_string()),
            "-?(0|[1-9][0-9]{0,25})(\\.[0-9]{1,20})?([eE][+-]?[0-9]{1,2})?",
            string(),
        ];
        leaf.prop_recursive(4, 24, 4, move |inner| {
            let spaced = (blank(), inner, blank()).prop_map(|(a, value, b)| a + &value + &b);
            let member = (blank(), string(), blank(), spaced.clone());
            let members = prop::collection::vec(member, 0..4).prop_map(|members| {
                let numbered = members.iter().enumerate();
                let keyed = numbered
                    .map(|(n, (a, key, b, value))| format!("{a}\"{n}{}{b}:{value}", &key[1..]));
                keyed.collect::<Vec<_>>().join(",")
            });
            let items = prop::collection::vec(spaced, 0..4).prop_map(|items| items.join(","));
            prop_oneof![
                items.prop_map(|items| format!("[{items}]")),
                members.prop_map(|members| format!("{{{members}}}")),
            ]
        })
    }

    /// What is meant, in the words of another reader.
    fn meant(value: &Value) -> serde_json::Value {
        match value {
            Value::Null => serde_json::Value::Null,
            Value::Bool(value) => (*value).into(),
            Value::Number(text) => serde_json::from_str(text).unwrap(),
            Value::String(text) => text.decode().into_owned().into(),
            Value::Array(items) => items.iter().map(meant).collect(),
            Value::Object(members) => members
                .iter()
                .map(|(key, value)| (key.decode().into_owned(), meant(value)))
                .collect(),
        }
    }

    /// Whether this reader takes a text; another one must take it then, with the same meaning, and so
    /// after it was written again.
    fn agrees(text: &str) -> Result<bool, TestCaseError> {
        let Ok(value) = parse(text.as_bytes()) else {
            return Ok(false);
        };
        let other: serde_json::Value = serde_json::from_str(text).unwrap();
        prop_assert_eq!(meant(&value), other);
        let again = value.text_without("no such key", 1, &mut 0);
        prop_assert_eq!(parse(again.as_bytes()), Ok(value));
        Ok(true)
    }

    proptest! {
        #[test]
        fn every_document_is_read_as_another_reader_reads_it(text in document()) {
            prop_assert!(agrees(&text)?, "{}", parse(text.as_bytes()).unwrap_err());
        }

        /// What is near a document is a document to both or refused by this reader.
        #[test]
        fn what_it_takes_near_a_document_another_reader_takes(
            text in document(), at in any::<prop::sample::Index>(), put in r#"[\[\]{}",:0-9eE.+ \\untrfase-]{0,2}"#,
        ) {
            let places: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
            let at = *at.get(&places);
            let rest = text[at..].chars().next().map_or(0, char::len_utf8);
            agrees(&format!("{}{put}{}", &text[..at], &text[at + rest..]))?;
        }

        #[test]
        fn never_panics(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse(&bytes);
        }
    }
}

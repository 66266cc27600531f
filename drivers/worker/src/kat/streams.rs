//! The text of a KAT as it is produced, and the digests of the forms that a manifest names.

use super::canonical::Canonical;
use crate::error::{Result, WorkerError};
use protocol::{KatDigest, KatFlow, KatMode};
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::Write;

/// Bytes that are turned into hex at a time: text and input stay in the second-level cache.
const CHUNK: usize = 32 << 10;

/// All streams of one run.
#[derive(Debug)]
pub struct Streams {
    streams: Vec<Stream>,
    kept: Option<File>,
    hex: Vec<u8>,
    bytes: u64,
    records: u32,
    flow: KatFlow,
}

/// One digest in the making.
#[derive(Debug)]
struct Stream {
    mode: KatMode,
    form: Form,
    records: u32,
}

/// How text enters a digest.
#[derive(Debug)]
enum Form {
    /// `strict` and `nolen`.
    Canonical(Box<Canonical<Sha256>>),
    /// `nistkat`, `rsp`, `all`: as it is, with separators of its own.
    Plain(Sha256),
}

impl Stream {
    fn new(flow: KatFlow, name: &str, mode: &KatMode) -> Result<Stream> {
        let form = match (flow, mode.mode.as_str()) {
            (KatFlow::Iccs, "strict") => canonical(false),
            (KatFlow::Iccs, "nolen") => canonical(true),
            (KatFlow::Nist, "nistkat" | "all") => Form::Plain(Sha256::new()),
            (KatFlow::Nist, "rsp") => Form::Plain(Sha256::new_with_prefix(format!("# {name}\n\n"))),
            (flow, other) => {
                return Err(WorkerError::Request(format!(
                "mode `{other}` does not belong to the flow {flow:?}: iccs has strict and nolen, \
                     nist has nistkat, rsp and all"
            )))
            }
        };
        Ok(Stream {
            mode: mode.clone(),
            form,
            records: 0,
        })
    }

    /// Records that the stream takes at most.
    fn limit(&self) -> u32 {
        match self.mode.mode.as_str() {
            "nistkat" => 1,
            _ => self.mode.first.unwrap_or(u32::MAX),
        }
    }

    fn open(&self) -> bool {
        self.records < self.limit()
    }

    fn take(&mut self, text: &[u8]) {
        match &mut self.form {
            Form::Canonical(filter) => filter.take(text),
            Form::Plain(hash) => hash.update(text),
        }
    }

    fn word(&self) -> String {
        match self.mode.first {
            Some(first) => format!("{}:{first}", self.mode.mode),
            None => self.mode.mode.clone(),
        }
    }

    fn digest(self) -> KatDigest {
        let mode = self.word();
        let hash = match self.form {
            Form::Canonical(filter) => filter.finish(),
            Form::Plain(hash) => hash,
        };
        KatDigest {
            mode,
            sha256: const_hex::encode(hash.finalize()),
            records: self.records,
        }
    }
}

fn canonical(drop_lengths: bool) -> Form {
    Form::Canonical(Box::new(Canonical::new(Sha256::new(), drop_lengths)))
}

impl Streams {
    /// Streams for `modes`; the text itself goes to `kept` too, if given.
    pub fn new(
        flow: KatFlow,
        name: &str,
        modes: &[KatMode],
        kept: Option<File>,
    ) -> Result<Streams> {
        let mut streams = Streams {
            streams: modes
                .iter()
                .map(|mode| Stream::new(flow, name, mode))
                .collect::<Result<_>>()?,
            kept,
            hex: vec![0; 2 * CHUNK],
            bytes: 0,
            records: 0,
            flow,
        };
        if flow == KatFlow::Nist {
            streams.keep(format!("# {name}\n\n").as_bytes())?;
        }
        Ok(streams)
    }

    /// Vectors that the streams need: as many as the longest takes, of `full`.
    pub fn needed(&self, full: u32) -> u32 {
        let longest = self.streams.iter().map(Stream::limit).max();
        longest.unwrap_or(full).min(full)
    }

    /// Starts a vector.
    pub fn begin(&mut self) {
        for stream in self.streams.iter_mut().filter(|s| s.open()) {
            if stream.mode.mode == "all" && stream.records > 0 {
                stream.take(b"\n");
            }
        }
    }

    /// A line `name = value`.
    pub fn line(&mut self, name: &str, value: impl std::fmt::Display) -> Result<()> {
        self.take(format!("{name} = {value}\n").as_bytes())
    }

    /// A line `name = HEX` over the parts, joined.
    pub fn hex(&mut self, name: &str, parts: &[&[u8]]) -> Result<()> {
        self.take(format!("{name} = ").as_bytes())?;
        let mut text = std::mem::take(&mut self.hex);
        for chunk in parts.iter().flat_map(|part| part.chunks(CHUNK)) {
            let text = &mut text[..2 * chunk.len()];
            const_hex::encode_to_slice_upper(chunk, text).expect("room for two digits a byte");
            self.take(text)?;
        }
        self.hex = text;
        self.take(b"\n")
    }

    /// Ends a vector.
    pub fn end(&mut self) -> Result<()> {
        for stream in self.streams.iter_mut().filter(|s| s.open()) {
            if matches!(stream.mode.mode.as_str(), "rsp") {
                stream.take(b"\n");
            }
            stream.records += 1;
        }
        self.records += 1;
        self.keep(b"\n")
    }

    /// Bytes of text so far.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Digests of the streams that have all they can have of `planned` vectors; after a failure the
    /// others are left out.
    pub fn digests(self, planned: u32) -> Vec<KatDigest> {
        let done = |s: &Stream| s.records >= s.limit().min(planned);
        self.streams
            .into_iter()
            .filter(done)
            .map(Stream::digest)
            .collect()
    }

    /// The flow whose text this is.
    pub fn flow(&self) -> KatFlow {
        self.flow
    }

    fn take(&mut self, text: &[u8]) -> Result<()> {
        for stream in self.streams.iter_mut().filter(|s| s.open()) {
            stream.take(text);
        }
        self.keep(text)
    }

    fn keep(&mut self, text: &[u8]) -> Result<()> {
        self.bytes += text.len() as u64;
        match &mut self.kept {
            None => Ok(()),
            Some(file) => file
                .write_all(text)
                .map_err(WorkerError::io("writing the KAT text")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(word: &str) -> KatMode {
        let (mode, first) = match word.split_once(':') {
            Some((mode, n)) => (mode, Some(n.parse().unwrap())),
            None => (word, None),
        };
        KatMode {
            mode: mode.into(),
            first,
        }
    }

    /// Digests of three small vectors in the given modes.
    fn digests(flow: KatFlow, words: &[&str]) -> Vec<KatDigest> {
        let modes: Vec<_> = words.iter().map(|w| mode(w)).collect();
        let mut streams = Streams::new(flow, "Name", &modes, None).unwrap();
        for count in 0..3u8 {
            streams.begin();
            streams.line("count", count).unwrap();
            streams.line("PK_Len", 2).unwrap();
            streams.hex("PK", &[&[0xab], &[count]]).unwrap();
            streams.end().unwrap();
        }
        streams.digests(3)
    }

    fn sha256(text: &str) -> String {
        const_hex::encode(Sha256::digest(text))
    }

    fn vector(count: u8) -> String {
        format!("count = {count}\nPK_Len = 2\nPK = AB0{count}\n")
    }

    #[test]
    fn each_mode_hashes_its_form_and_its_number_of_records() {
        let v: Vec<String> = (0..3).map(vector).collect();
        let found = digests(KatFlow::Iccs, &["strict", "strict:2", "nolen", "strict:7"]);
        let expected = [
            (v.concat(), 3, "strict"),
            (v[..2].concat(), 2, "strict:2"),
            (v.concat().replace("PK_Len = 2\n", ""), 3, "nolen"),
            (v.concat(), 3, "strict:7"),
        ];
        assert_eq!(found.len(), expected.len());
        for (found, (text, records, word)) in found.iter().zip(&expected) {
            assert_eq!(found.sha256, sha256(text), "{word}");
            assert_eq!((found.records, found.mode.as_str()), (*records, *word));
        }
    }

    #[test]
    fn the_three_streams_of_the_nist_flow_differ_in_their_separators() {
        let v: Vec<String> = (0..3).map(vector).collect();
        let found = digests(KatFlow::Nist, &["nistkat", "rsp", "all", "rsp:1"]);
        let expected = [
            v[0].clone(),
            format!("# Name\n\n{}\n", v.join("\n")),
            v.join("\n"),
            format!("# Name\n\n{}\n", v[0]),
        ];
        assert_eq!(found.len(), expected.len());
        for (found, text) in found.iter().zip(&expected) {
            assert_eq!(found.sha256, sha256(text), "{}", found.mode);
        }
        assert_eq!(found[0].records, 1);
        assert_eq!(found[2].records, 3);
    }

    #[test]
    fn a_mode_of_the_other_flow_is_a_bad_request() {
        for (flow, word) in [(KatFlow::Iccs, "rsp"), (KatFlow::Nist, "strict")] {
            let error = Streams::new(flow, "", &[mode(word)], None).unwrap_err();
            assert_eq!(error.code(), protocol::FailureCode::BadRequest);
        }
    }

    #[test]
    fn only_as_many_vectors_are_needed_as_the_longest_mode_takes() {
        let needed = |flow, words: &[&str], full| {
            let modes: Vec<_> = words.iter().map(|w| mode(w)).collect();
            Streams::new(flow, "", &modes, None).unwrap().needed(full)
        };
        assert_eq!(needed(KatFlow::Iccs, &["strict:3", "nolen:2"], 10), 3);
        assert_eq!(needed(KatFlow::Iccs, &["strict:3", "nolen"], 10), 10);
        assert_eq!(needed(KatFlow::Nist, &["nistkat"], 100), 1);
        assert_eq!(needed(KatFlow::Nist, &[], 100), 100);
    }
}

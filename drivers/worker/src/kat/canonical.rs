//! The canonical form of a KAT text: carriage returns and trailing blanks and tabs taken from each
//! line, empty lines dropped, every remaining line followed by one LF; `nolen` drops the
//! `X_Len = ...` lines too. Works on a stream: lines may be hundreds of megabytes long.

/// Where canonical text goes.
pub trait Sink {
    /// Takes the next bytes.
    fn take(&mut self, bytes: &[u8]);
}

impl Sink for sha2::Sha256 {
    fn take(&mut self, bytes: &[u8]) {
        sha2::Digest::update(self, bytes);
    }
}

impl Sink for Vec<u8> {
    fn take(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

/// Bytes of a line that decide whether it is a length line; names are far shorter.
const HEAD: usize = 64;

/// A filter in front of a sink.
#[derive(Debug)]
pub struct Canonical<S> {
    sink: S,
    drop_lengths: bool,
    line: Line,
    /// Start of the line, while it is not known whether it stays.
    head: Vec<u8>,
    /// Blanks that are trailing unless more of the line follows.
    blanks: Vec<u8>,
}

/// What is known of the current line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Line {
    /// Nothing but blanks so far.
    Empty,
    /// Something, held in `head`.
    Undecided,
    /// It stays, and its bytes go out as they come.
    Kept,
    /// A length line.
    Dropped,
}

impl<S: Sink> Canonical<S> {
    /// A filter; `drop_lengths` is the mode `nolen`.
    pub fn new(sink: S, drop_lengths: bool) -> Canonical<S> {
        Canonical {
            sink,
            drop_lengths,
            line: Line::Empty,
            head: Vec::with_capacity(HEAD),
            blanks: Vec::new(),
        }
    }

    /// The next piece of text, cut anywhere.
    pub fn take(&mut self, mut text: &[u8]) {
        while let Some(at) = memchr::memchr2(b'\n', b'\r', text) {
            self.piece(&text[..at]);
            if text[at] == b'\n' {
                self.end_line();
            }
            text = &text[at + 1..];
        }
        self.piece(text);
    }

    /// Ends the text (a last line without LF counts as a line) and gives the sink back.
    pub fn finish(mut self) -> S {
        self.end_line();
        self.sink
    }

    fn piece(&mut self, piece: &[u8]) {
        let blank = |b: &u8| *b == b' ' || *b == b'\t';
        let used = piece.iter().rposition(|b| !blank(b)).map_or(0, |at| at + 1);
        if used > 0 {
            let blanks = std::mem::take(&mut self.blanks);
            self.content(&blanks);
            self.content(&piece[..used]);
        }
        self.blanks.extend_from_slice(&piece[used..]);
    }

    fn content(&mut self, mut bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        if self.line == Line::Empty {
            self.line = if self.drop_lengths {
                Line::Undecided
            } else {
                Line::Kept
            };
        }
        if self.line == Line::Undecided {
            let taken = bytes.len().min(HEAD - self.head.len());
            self.head.extend_from_slice(&bytes[..taken]);
            bytes = &bytes[taken..];
            if self.head.contains(&b'=') || self.head.len() == HEAD {
                self.decide();
            }
        }
        if self.line == Line::Kept {
            self.sink.take(bytes);
        }
    }

    fn decide(&mut self) {
        self.line = if is_length_line(&self.head) {
            Line::Dropped
        } else {
            self.sink.take(&self.head);
            Line::Kept
        };
        self.head.clear();
    }

    fn end_line(&mut self) {
        if self.line == Line::Undecided {
            self.decide();
        }
        if self.line == Line::Kept {
            self.sink.take(b"\n");
        }
        self.line = Line::Empty;
        self.blanks.clear();
    }
}

/// Whether a line starts like `PK_Len =`.
fn is_length_line(head: &[u8]) -> bool {
    let Some(equals) = memchr::memchr(b'=', head) else {
        return false;
    };
    head[..equals].trim_ascii().ends_with(b"_Len")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn canonical(text: &[u8], drop_lengths: bool) -> Vec<u8> {
        let mut filter = Canonical::new(Vec::new(), drop_lengths);
        filter.take(text);
        filter.finish()
    }

    #[test]
    fn the_canonical_form_ignores_what_an_editor_changes() {
        let cases: [(&str, &str, &str); 10] = [
            ("a = 1\r\nb\r\n", "a = 1\nb\n", "a = 1\nb\n"),
            ("a \t \nb\t\n", "a\nb\n", "a\nb\n"),
            ("\n\na\n \t\n\r\n\nb", "a\nb\n", "a\nb\n"),
            ("a b\tc \r\n", "a b\tc\n", "a b\tc\n"),
            ("  a\n", "  a\n", "  a\n"),
            (
                "PK_Len = 3\nPK = 00\n",
                "PK_Len = 3\nPK = 00\n",
                "PK = 00\n",
            ),
            ("PK_Len =  \r\nPK_Len=4\n", "PK_Len =\nPK_Len=4\n", ""),
            ("PK_Len\n", "PK_Len\n", "PK_Len\n"),
            ("X = _Len\n", "X = _Len\n", "X = _Len\n"),
            ("", "", ""),
        ];
        for (text, strict, nolen) in cases {
            let text = text.as_bytes();
            assert_eq!(canonical(text, false), strict.as_bytes(), "{text:?}");
            assert_eq!(canonical(text, true), nolen.as_bytes(), "{text:?}");
        }
    }

    /// The definition, line by line.
    fn reference(text: &str, drop_lengths: bool) -> String {
        let mut out = String::new();
        for line in text.split('\n') {
            let line = line.replace('\r', "");
            let line = line.trim_end_matches([' ', '\t']);
            let name = line.split_once('=').map(|(name, _)| name.trim());
            let length = name.is_some_and(|name| name.ends_with("_Len"));
            let dropped = line.is_empty() || (drop_lengths && length);
            if !dropped {
                out += line;
                out += "\n";
            }
        }
        out
    }

    proptest! {
        #[test]
        fn any_cut_of_the_stream_gives_the_same_form(
            lines in prop::collection::vec("[ \t\r]{0,3}(PK_Len|Sn|M)?[ \t]{0,2}=?[ A-F0-9\t\r]{0,9}\n{0,2}", 0..12),
            cuts in prop::collection::vec(1usize..9, 1..40),
            drop_lengths: bool,
        ) {
            let text = lines.concat();
            let mut filter = Canonical::new(Vec::new(), drop_lengths);
            let mut rest = text.as_bytes();
            for cut in cuts.iter().cycle() {
                if rest.is_empty() { break; }
                let (piece, after) = rest.split_at((*cut).min(rest.len()));
                filter.take(piece);
                rest = after;
            }
            prop_assert_eq!(
                String::from_utf8(filter.finish()).unwrap(),
                reference(&text, drop_lengths)
            );
        }
    }
}

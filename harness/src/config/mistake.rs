//! What is wrong with a configuration: one [`Mistake`] per place, all of a file together.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// A configuration that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// No `campaign.toml` where it was looked for.
    #[error(
        "there is no campaign.toml in {folder} or above it: change into the checkout, or name the file with --config",
        folder = .0.display()
    )]
    NotFound(PathBuf),
    /// The file cannot be read.
    #[error("cannot read {}: see that it is a file, and who may read it", protocol::path_to_text(.path))]
    Read {
        /// Which file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The file has mistakes.
    #[error(transparent)]
    Mistakes(#[from] Mistakes),
}

/// All mistakes of a configuration, in the order of the text. Never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistakes(pub Vec<Mistake>);

/// One mistake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// File as the user named it.
    pub file: PathBuf,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// The text of that line.
    pub excerpt: String,
    /// Characters that are meant, at least 1.
    pub width: usize,
    /// What is wrong.
    pub what: String,
    /// Forms that are accepted, as an example.
    pub expected: Option<String>,
    /// What may have been meant, or what to do.
    pub hint: Option<String>,
    /// Whether something is missing, as opposed to wrong.
    pub absence: bool,
}

impl std::error::Error for Mistakes {}

impl fmt::Display for Mistakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.len() {
            1 => writeln!(f, "one mistake in the configuration; nothing was done")?,
            n => writeln!(f, "{n} mistakes in the configuration; nothing was done")?,
        }
        for (index, mistake) in self.0.iter().enumerate() {
            if index > 0 {
                writeln!(f)?;
            }
            write!(f, "\n{mistake}")?;
        }
        Ok(())
    }
}

/// Longest line that is shown; the place is what matters in a longer one.
const EXCERPT_MAX: usize = 160;

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}:{}:{}: {}",
            self.file.display(),
            self.line,
            self.column,
            self.what
        )?;
        let shown = self.excerpt.chars().count() <= EXCERPT_MAX;
        if shown && !self.excerpt.trim().is_empty() {
            let number = self.line.to_string();
            let gap = " ".repeat(number.len());
            let indent = " ".repeat(self.column - 1);
            let marks = "^".repeat(self.width);
            write!(
                f,
                "\n  {number} | {}\n  {gap} | {indent}{marks}",
                self.excerpt
            )?;
        }
        if let Some(expected) = &self.expected {
            write!(f, "\n  expected: {expected}")?;
        }
        if let Some(hint) = &self.hint {
            write!(f, "\n  hint: {hint}")?;
        }
        Ok(())
    }
}

/// Where a byte of a text is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// The line, control characters replaced by blanks.
    pub excerpt: String,
    /// Characters of the span on that line, at least 1.
    pub width: usize,
}

/// Finds a span in its text. A span beyond the text is at its end.
pub fn place(text: &str, span: &Range<usize>) -> Place {
    let boundary = |mut at: usize| {
        at = at.min(text.len());
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        at
    };
    let (start, end) = (boundary(span.start), boundary(span.end));
    let line_start = text[..start].rfind('\n').map_or(0, |at| at + 1);
    let line_end = text[start..].find('\n').map_or(text.len(), |at| start + at);
    let marked = &text[start..end.clamp(start, line_end)];
    let clean = |c: char| if c.is_control() { ' ' } else { c };
    Place {
        line: text[..start].matches('\n').count() + 1,
        column: text[line_start..start].chars().count() + 1,
        excerpt: text[line_start..line_end]
            .chars()
            .map(clean)
            .collect::<String>()
            .trim_end()
            .to_owned(),
        width: marked.chars().count().max(1),
    }
}

/// Collects the mistakes of one file while it is read.
#[derive(Debug)]
pub struct Collector<'t> {
    file: &'t Path,
    text: &'t str,
    found: std::cell::RefCell<Vec<(Range<usize>, Mistake)>>,
}

impl<'t> Collector<'t> {
    /// For a file and its text.
    pub fn new(file: &'t Path, text: &'t str) -> Self {
        Collector {
            file,
            text,
            found: Default::default(),
        }
    }

    /// Adds a mistake; the same one at the same place is added once.
    pub fn add(
        &self,
        span: Range<usize>,
        what: impl Into<String>,
        expected: Option<String>,
        hint: Option<String>,
    ) {
        let place = place(self.text, &span);
        let mistake = Mistake {
            file: self.file.to_owned(),
            line: place.line,
            column: place.column,
            excerpt: place.excerpt,
            width: place.width,
            what: what.into(),
            expected,
            hint,
            absence: false,
        };
        self.push(span, mistake);
    }

    /// Adds that something is missing in the table at a place.
    pub fn add_absence(&self, span: Range<usize>, what: String, expected: String) {
        let place = place(self.text, &span);
        let mistake = Mistake {
            file: self.file.to_owned(),
            line: place.line,
            column: place.column,
            excerpt: place.excerpt,
            width: place.width,
            what,
            expected: Some(expected),
            hint: None,
            absence: true,
        };
        self.push(span, mistake);
    }

    /// Adds a mistake of another file, shown where this file names that one.
    pub fn add_foreign(&self, named_at: Range<usize>, mistake: Mistake) {
        self.push(named_at, mistake);
    }

    fn push(&self, at: Range<usize>, mistake: Mistake) {
        let mut found = self.found.borrow_mut();
        if !found.iter().any(|(_, known)| *known == mistake) {
            found.push((at, mistake));
        }
    }

    /// Whether nothing was added.
    pub fn is_empty(&self) -> bool {
        self.found.borrow().is_empty()
    }

    /// Line of a byte of the text, from 1.
    pub fn line(&self, at: usize) -> usize {
        place(self.text, &(at..at)).line
    }

    /// Lines with mistakes so far.
    pub fn lines(&self) -> Vec<usize> {
        self.found.borrow().iter().map(|(_, m)| m.line).collect()
    }

    /// All mistakes in the order of the text, with the bytes where each is.
    pub fn into_sorted(self) -> Vec<(Range<usize>, Mistake)> {
        let mut found = self.found.into_inner();
        found.sort_by_key(|(at, _)| at.start);
        found
    }

    /// All mistakes in the order of the text.
    pub fn into_mistakes(self) -> Vec<Mistake> {
        self.into_sorted().into_iter().map(|(_, m)| m).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_counted_in_characters_and_never_leaves_the_text() {
        let text = "a = 1\né\tü = 2\r\nlast";
        for (span, line, column, width, excerpt) in [
            (0..1, 1, 1, 1, "a = 1"),
            (5..5, 1, 6, 1, "a = 1"),
            (9..11, 2, 3, 1, "é ü = 2"),
            (10..12, 2, 3, 2, "é ü = 2"),
            (0..9, 1, 1, 5, "a = 1"),
            (17..21, 3, 1, 4, "last"),
            (400..500, 3, 5, 1, "last"),
        ] {
            let found = place(text, &span);
            assert_eq!(
                (
                    found.line,
                    found.column,
                    found.width,
                    found.excerpt.as_str()
                ),
                (line, column, width, excerpt),
                "{span:?}"
            );
        }
        assert_eq!(place("", &(3..4)).line, 1);
    }
}

//! The size catalogue, `performance/external_sizes.csv`: published sizes, independent of what is
//! measured. A size audit sets them against what the API claims; that is the report's.
//!
//! The format is the public campaign's: a header, then one row for each instance, separated by
//! semicolons; lines that begin with `#` are comments. A comment `# Source: ...` holds for the rows
//! below it, and a row without one is an error: a size that nobody can check is worth nothing.

use std::path::{Path, PathBuf};

/// The catalogue below the root of a campaign.
pub const FILE: &str = "performance/external_sizes.csv";

const COLUMNS: [&str; 6] = [
    "ID",
    "Instance",
    "PublicKeyBytes",
    "CiphertextBytes",
    "SignatureBytes",
    "Basis",
];

/// All rows, in the order of the file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Catalogue {
    /// One for each instance.
    pub rows: Vec<Row>,
}

/// Published sizes of one instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// Candidate.
    pub candidate: String,
    /// Label.
    pub label: String,
    /// Public key, bytes.
    pub public_key_bytes: Option<u64>,
    /// Ciphertext, bytes.
    pub ciphertext_bytes: Option<u64>,
    /// Signature, bytes.
    pub signature_bytes: Option<u64>,
    /// What the sizes are.
    pub basis: Basis,
    /// Where they were published.
    pub source: String,
}

/// What a published size is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Basis {
    /// The format that is shipped.
    Encoded,
    /// The longest of a format of varying length.
    MaximumVariable,
    /// A representative length of a format of varying length.
    NominalVariable,
}

impl Basis {
    /// All, in the order of the format.
    pub const ALL: [Basis; 3] = [
        Basis::Encoded,
        Basis::MaximumVariable,
        Basis::NominalVariable,
    ];

    /// The word of the file.
    pub fn word(self) -> &'static str {
        match self {
            Basis::Encoded => "encoded",
            Basis::MaximumVariable => "maximum-variable",
            Basis::NominalVariable => "nominal-variable",
        }
    }
}

/// A catalogue that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CatalogueError {
    /// The file cannot be read.
    #[error("cannot read the size catalogue {}", .path.display())]
    Read {
        /// Which file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// Some of its lines are wrong; all of them are named.
    #[error("the size catalogue has lines that cannot be used:{}", lines_of(.path, .lines))]
    Lines {
        /// Which file.
        path: PathBuf,
        /// Number of each line, from 1, and what is wrong with it.
        lines: Vec<(usize, String)>,
    },
}

fn lines_of(path: &Path, lines: &[(usize, String)]) -> String {
    lines
        .iter()
        .map(|(line, what)| format!("\n{}:{line}: {what}", path.display()))
        .collect()
}

impl Catalogue {
    /// Reads a file.
    pub fn read(path: &Path) -> Result<Self, CatalogueError> {
        let text = std::fs::read_to_string(path).map_err(|source| CatalogueError::Read {
            path: path.to_owned(),
            source,
        })?;
        Catalogue::parse(&text).map_err(|lines| CatalogueError::Lines {
            path: path.to_owned(),
            lines,
        })
    }

    /// Reads the text of a file; all bad lines are reported together.
    pub fn parse(text: &str) -> Result<Self, Vec<(usize, String)>> {
        let mut reader = Reader::default();
        for (index, line) in text.lines().enumerate() {
            if let Err(what) = reader.line(line) {
                reader.errors.push((index + 1, what));
            }
        }
        if !reader.header {
            let what = format!("there is no header; it must be {}", COLUMNS.join(";"));
            reader.errors.push((1, what));
        }
        match reader.errors.is_empty() {
            true => Ok(reader.catalogue),
            false => Err(reader.errors),
        }
    }

    /// The row of an instance.
    pub fn find(&self, candidate: &str, label: &str) -> Option<&Row> {
        self.rows
            .iter()
            .find(|row| row.candidate == candidate && row.label == label)
    }
}

#[derive(Default)]
struct Reader {
    header: bool,
    source: Option<String>,
    catalogue: Catalogue,
    errors: Vec<(usize, String)>,
}

impl Reader {
    fn line(&mut self, line: &str) -> Result<(), String> {
        let line = line.trim_end();
        if let Some(comment) = line.strip_prefix('#') {
            if let Some(source) = comment.trim().strip_prefix("Source:") {
                self.source = Some(source.trim().to_owned()).filter(|text| !text.is_empty());
            }
            return Ok(());
        }
        if line.trim().is_empty() {
            return Ok(());
        }
        let cells = cells(line)?;
        if !self.header {
            self.header = true;
            return match cells == COLUMNS {
                true => Ok(()),
                false => Err(format!("the header must be {}", COLUMNS.join(";"))),
            };
        }
        let row = row(&cells, self.source.as_deref())?;
        if self.catalogue.find(&row.candidate, &row.label).is_some() {
            return Err(format!("{} {} has a row already", row.candidate, row.label));
        }
        self.catalogue.rows.push(row);
        Ok(())
    }
}

fn cells(line: &str) -> Result<Vec<String>, String> {
    let mut reader = csv::ReaderBuilder::new()
        .delimiter(b';')
        .has_headers(false)
        .from_reader(line.as_bytes());
    match reader.records().next() {
        Some(Ok(record)) => Ok(record.iter().map(|cell| cell.trim().to_owned()).collect()),
        Some(Err(error)) => Err(error.to_string()),
        None => Err("the line has no cells".to_owned()),
    }
}

fn row(cells: &[String], source: Option<&str>) -> Result<Row, String> {
    let [candidate, label, public_key, ciphertext, signature, basis] = cells else {
        return Err(format!(
            "{} cells instead of {}: {}",
            cells.len(),
            COLUMNS.len(),
            COLUMNS.join(";")
        ));
    };
    for (cell, column) in [(candidate, COLUMNS[0]), (label, COLUMNS[1])] {
        if !crate::identity::is_part(cell) {
            return Err(format!("{column} cannot be `{cell}`"));
        }
    }
    let basis_of = |word: &String| Basis::ALL.into_iter().find(|basis| basis.word() == word);
    Ok(Row {
        candidate: candidate.clone(),
        label: label.clone(),
        public_key_bytes: bytes(public_key, COLUMNS[2])?,
        ciphertext_bytes: bytes(ciphertext, COLUMNS[3])?,
        signature_bytes: bytes(signature, COLUMNS[4])?,
        basis: basis_of(basis).ok_or_else(|| {
            let words = Basis::ALL.map(Basis::word).join(", ");
            format!("Basis cannot be `{basis}`; it is one of {words}")
        })?,
        source: source
            .ok_or("the row has no source: write a line `# Source: ...` above it")?
            .to_owned(),
    })
}

/// An empty cell is no size; 0 is none that anybody publishes.
fn bytes(cell: &str, column: &str) -> Result<Option<u64>, String> {
    if cell.is_empty() {
        return Ok(None);
    }
    let digits = cell.bytes().all(|b| b.is_ascii_digit());
    match cell.parse() {
        Ok(bytes) if digits && bytes > 0 => Ok(Some(bytes)),
        _ => Err(format!(
            "{column} cannot be `{cell}`; it is a number of bytes, or empty"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HEADER: &str =
        "ID;Instance;PublicKeyBytes;CiphertextBytes;SignatureBytes;Basis\n# Source: a book\n";

    #[test]
    fn the_catalogue_of_the_checkout_has_a_row_with_a_source_for_every_instance() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let catalogue = Catalogue::read(&root.join(FILE)).unwrap();
        let campaign = crate::config::load(
            &root.join(crate::config::FILE),
            crate::config::Sources::Required,
        )
        .unwrap();
        let mut expected = 0;
        for candidate in &campaign.candidates {
            for instance in &candidate.instances {
                let row = catalogue.find(&candidate.id, &instance.label);
                let row = row.unwrap_or_else(|| panic!("no row for {}", instance.label));
                assert!(row.public_key_bytes.is_some() && row.signature_bytes.is_some());
                assert_eq!((row.basis, row.ciphertext_bytes), (Basis::Encoded, None));
                expected += 1;
            }
        }
        assert_eq!((catalogue.rows.len(), expected), (12, 12));
    }

    /// Sizes of the formats: UOV polynomials for DOVE, the packing of the standard for ML-DSA.
    #[test]
    fn published_sizes_follow_from_the_formats() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let catalogue = Catalogue::read(&root.join(FILE)).unwrap();
        let sizes = |candidate: &str, label: &str| {
            let row = catalogue.find(candidate, label).unwrap();
            (row.public_key_bytes.unwrap(), row.signature_bytes.unwrap())
        };
        let upper = |n: u64| n * (n + 1) / 2;
        // Level, o = m, v, salt; l = ceil(sqrt(m)) base matrices; 16 bytes of public seed.
        for (level, o, v, salt, l) in [
            (128, 44, 68, 24, 7),
            (256, 96, 160, 40, 10),
            (512, 216, 360, 72, 15),
        ] {
            let compressed = 16 + o * upper(o);
            let expanded = compressed + l * upper(v) + o * v * o;
            let signature = v + o + salt;
            assert_eq!(
                sizes("sign-09", &format!("dove_pkc_skc_{level}")),
                (compressed, signature)
            );
            assert_eq!(
                sizes("sign-09", &format!("dove_classic_{level}")),
                (expanded, signature)
            );
        }
        // k, l, bits of a z coefficient, omega, bytes of the challenge hash: 32 + 320 k and
        // c + 32 l bits + omega + k (FIPS 204, algorithms 22 and 26).
        for (label, k, l, bits, omega, c) in [
            ("ml-dsa-44", 4, 4, 18, 80, 32),
            ("ml-dsa-65", 6, 5, 20, 55, 48),
            ("ml-dsa-87", 8, 7, 20, 75, 64),
        ] {
            let expected = (32 + 320 * k, c + 32 * l * bits + omega + k);
            assert_eq!(sizes("ml-dsa", label), expected, "{label}");
        }
        // Round 3: the same with a challenge hash of 32 bytes at every level.
        for (label, k, l, bits, omega) in [
            ("dilithium2", 4, 4, 18, 80),
            ("dilithium3", 6, 5, 20, 55),
            ("dilithium5", 8, 7, 20, 75),
        ] {
            let expected = (32 + 320 * k, 32 + 32 * l * bits + omega + k);
            assert_eq!(sizes("dilithium", label), expected, "{label}");
        }
    }

    #[test]
    fn all_bad_lines_are_reported_together() {
        let text = format!(
            "{HEADER}a;x;1;;2;encoded\na;x;1;;2;encoded\na;y;-1;;2;encoded\na;z;1;;2\na;u;1;;2;exact\n#\n/;v;1;;2;encoded\na;w;0;;;encoded\n"
        );
        let errors = Catalogue::parse(&text).unwrap_err();
        let lines: Vec<usize> = errors.iter().map(|(line, _)| *line).collect();
        assert_eq!(lines, [4, 5, 6, 7, 9, 10]);
        assert_eq!(errors[0].1, "a x has a row already");
        assert!(errors[3]
            .1
            .contains("encoded, maximum-variable, nominal-variable"));
    }

    #[test]
    fn a_file_without_header_or_a_row_without_source_is_refused() {
        assert_eq!(Catalogue::parse("").unwrap_err().len(), 1);
        assert_eq!(Catalogue::parse("a;b\n").unwrap_err()[0].0, 1);
        let no_source = HEADER.replace("# Source: a book\n", "a;x;1;;2;encoded\n");
        assert!(Catalogue::parse(&no_source).unwrap_err()[0]
            .1
            .contains("no source"));
        let error = Catalogue::read(Path::new("/no/such/file")).unwrap_err();
        assert!(matches!(error, CatalogueError::Read { .. }));
    }

    #[test]
    fn an_error_names_the_file_and_every_line() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("sizes.csv");
        std::fs::write(&path, format!("{HEADER}a;x;q;;2;encoded\na;y;1\n")).unwrap();
        let text = Catalogue::read(&path).unwrap_err().to_string();
        assert!(
            text.contains("sizes.csv:3: PublicKeyBytes cannot be `q`"),
            "{text}"
        );
        assert!(text.contains("sizes.csv:4: 3 cells instead of 6"), "{text}");
    }

    proptest! {
        #[test]
        fn no_text_makes_the_reader_panic(lines in prop::collection::vec("[a-z;#\"0-9 é]{0,20}", 0..8)) {
            let _ = Catalogue::parse(&format!("{HEADER}{}", lines.join("\n")));
        }
    }
}

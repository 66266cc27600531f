//! The templates: built in, or a folder of the user's. Markdown templates escape everything that
//! comes from data by themselves, names that do not exist are errors, and number formats and tables
//! are filters.

use super::table::{Note, Table};
use super::view::ChartView;
use super::{escape, format};
use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{
    AutoEscape, Environment, Error, ErrorKind, Output, State, UndefinedBehavior, Value,
};
use serde::Serialize;
use std::borrow::Cow;
use std::path::{Path, PathBuf};

/// The built-in templates: name and text.
pub const BUILT_IN: [(&str, &str); 20] = [
    (
        "candidate.md",
        include_str!("../../../templates/candidate.md"),
    ),
    ("index.md", include_str!("../../../templates/index.md")),
    ("summary.md", include_str!("../../../templates/summary.md")),
    ("method.md", include_str!("../../../templates/method.md")),
    ("sizes.md", include_str!("../../../templates/sizes.md")),
    (
        "symmetric.md",
        include_str!("../../../templates/symmetric.md"),
    ),
    ("ranking.md", include_str!("../../../templates/ranking.md")),
    ("systems.md", include_str!("../../../templates/systems.md")),
    ("compare.md", include_str!("../../../templates/compare.md")),
    (
        "study-message-size.md",
        include_str!("../../../templates/study-message-size.md"),
    ),
    ("iccs.md", include_str!("../../../templates/iccs.md")),
    ("crumbs.md", include_str!("../../../templates/crumbs.md")),
    ("top.md", include_str!("../../../templates/top.md")),
    (
        "warnings.md",
        include_str!("../../../templates/warnings.md"),
    ),
    (
        "left-out.md",
        include_str!("../../../templates/left-out.md"),
    ),
    ("foot.md", include_str!("../../../templates/foot.md")),
    ("shell.html", include_str!("../../../templates/shell.html")),
    ("style.css", include_str!("../../../templates/style.css")),
    ("tables.js", include_str!("../../../templates/tables.js")),
    ("README.txt", include_str!("../../../templates/README.txt")),
];

/// A template that cannot be read, or that cannot be rendered.
#[derive(Debug, thiserror::Error)]
pub enum TemplateError {
    /// The folder has none of them.
    #[error("`{}` holds no template: `campaign templates export DIR` writes the built-in ones there", .0.display())]
    NoTemplates(PathBuf),
    /// A file of the user's folder.
    #[error("cannot read the template `{}`: `campaign templates export` writes the built-in ones", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// The template is wrong, or names something that does not exist.
    #[error("the template `{name}` cannot be rendered: {}", place(.source))]
    Render {
        /// Which.
        name: String,
        /// The cause.
        source: Error,
    },
    /// A folder or file that cannot be written.
    #[error("cannot write `{}`", .path.display())]
    Write {
        /// The path.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// The folder of an export has something in it.
    #[error("`{}` is not empty: name an empty folder, or one that is not there yet", .0.display())]
    NotEmpty(PathBuf),
}

fn place(error: &Error) -> String {
    match error.line() {
        Some(line) => format!("line {line}: {error}"),
        None => error.to_string(),
    }
}

/// Templates, ready to render.
#[derive(Debug)]
pub struct Templates {
    environment: Environment<'static>,
}

impl Templates {
    /// The built-in templates, each replaced by the file of that name in `folder` where there is one.
    pub fn new(folder: Option<&Path>) -> Result<Self, TemplateError> {
        if let Some(folder) = folder {
            let is_own = |(name, _): &(&str, &str)| folder.join(name).is_file();
            if !BUILT_IN.iter().any(is_own) {
                return Err(TemplateError::NoTemplates(folder.to_owned()));
            }
        }
        let mut environment = Environment::new();
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        environment.set_syntax(syntax());
        environment.set_auto_escape_callback(auto_escape);
        environment.set_formatter(write_value);
        add_filters(&mut environment);
        for (name, built_in) in BUILT_IN {
            let text = match folder {
                Some(folder) => own(&folder.join(name), built_in)?,
                None => Cow::Borrowed(built_in),
            };
            environment
                .add_template_owned(name, text.into_owned())
                .map_err(|source| TemplateError::Render {
                    name: name.to_owned(),
                    source,
                })?;
        }
        Ok(Templates { environment })
    }

    /// Renders one page. Line ends are LF, and there is exactly one at the end.
    pub fn render<T: Serialize>(&self, name: &str, page: &T) -> Result<String, TemplateError> {
        let wrap = |source| TemplateError::Render {
            name: name.to_owned(),
            source,
        };
        let template = self.environment.get_template(name).map_err(wrap)?;
        let text = template.render(Value::from(Serde(page))).map_err(wrap)?;
        Ok(tidy(&text))
    }

    /// The HTML file around a page's body, which is HTML already.
    pub fn shell(&self, title: &str, body: &str) -> Result<String, TemplateError> {
        self.render("shell.html", &Shell { title, body })
    }
}

#[derive(Serialize)]
struct Shell<'a> {
    title: &'a str,
    body: &'a str,
}

/// Writes the built-in templates to an empty folder.
pub fn export(folder: &Path) -> Result<Vec<PathBuf>, TemplateError> {
    let wrap = |path: &Path| {
        let path = path.to_owned();
        move |source| TemplateError::Write { path, source }
    };
    std::fs::create_dir_all(folder).map_err(wrap(folder))?;
    if std::fs::read_dir(folder)
        .map_err(wrap(folder))?
        .next()
        .is_some()
    {
        return Err(TemplateError::NotEmpty(folder.to_owned()));
    }
    let mut written = Vec::new();
    for (name, text) in BUILT_IN {
        let path = folder.join(name);
        std::fs::write(&path, text).map_err(wrap(&path))?;
        written.push(path);
    }
    Ok(written)
}

/// Lines that hold only a tag leave no empty line.
fn syntax() -> SyntaxConfig {
    SyntaxConfig::builder()
        .trim_blocks(true)
        .lstrip_blocks(true)
        .keep_trailing_newline(true)
        .build()
        .expect("the usual delimiters are valid")
}

/// A file of the user's, or the built-in text where there is none.
fn own(path: &Path, built_in: &'static str) -> Result<Cow<'static, str>, TemplateError> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Cow::Owned(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Cow::Borrowed(built_in)),
        Err(source) => Err(TemplateError::Read {
            path: path.to_owned(),
            source,
        }),
    }
}

fn auto_escape(name: &str) -> AutoEscape {
    match name.rsplit_once('.') {
        Some((_, "md")) => AutoEscape::Custom("markdown".into()),
        Some((_, "html")) => AutoEscape::Html,
        _ => AutoEscape::None,
    }
}

/// In Markdown every text that no filter has made safe is escaped.
fn write_value(out: &mut Output, state: &mut State, value: &Value) -> Result<(), Error> {
    let markdown = matches!(state.auto_escape(), AutoEscape::Custom(_));
    if !markdown {
        return minijinja::escape_formatter(out, state, value);
    }
    if value.is_undefined() || value.is_none() {
        return Err(Error::new(
            ErrorKind::UndefinedError,
            "a value that does not exist cannot be printed",
        ));
    }
    match value.as_str() {
        Some(text) if !value.is_safe() => write!(out, "{}", escape::text(text)),
        _ => write!(out, "{value}"),
    }
    .map_err(Error::from)
}

fn add_filters(environment: &mut Environment<'static>) {
    environment.add_filter("cycles", format::cycles);
    environment.add_filter("time", format::time);
    environment.add_filter("general", format::general3);
    environment.add_filter("share", format::share);
    environment.add_filter("share_seed", format::share_seed);
    environment.add_filter("kib", format::kib);
    environment.add_filter("date", |text: String| format::date(&text));
    environment.add_filter("initial", |text: String| format::initial(&text));
    environment.add_filter("digest", |text: String| format::digest16(&text));
    environment.add_filter("code", |text: String| {
        Value::from_safe_string(escape::code(&text, false))
    });
    environment.add_filter("link", |label: &Value, target: String| {
        let text = label.to_string();
        let label = if label.is_safe() {
            text
        } else {
            escape::text(&text)
        };
        Value::from_safe_string(escape::link(&label, &target))
    });
    environment.add_filter("table", |table: Serde<Table>, caption: String| {
        Value::from_safe_string(table.0.markdown(&caption))
    });
    environment.add_filter("chart", |chart: Serde<ChartView>| {
        let ChartView { file, alt, .. } = chart.0;
        Value::from_safe_string(format!("!{}", escape::link(&escape::text(&alt), &file)))
    });
    environment.add_filter("notes", |notes: Serde<Vec<Note>>| {
        Value::from_safe_string(notes_markdown(&notes.0))
    });
}

fn notes_markdown(notes: &[Note]) -> String {
    notes
        .iter()
        .map(|note| format!("[^{}]: {}\n", note.number, escape::text(&note.text)))
        .collect()
}

/// At most one empty line in a row, no blanks at line ends, one line end at the end.
fn tidy(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut empty = 1;
    for line in text.lines() {
        let line = line.trim_end();
        empty = if line.is_empty() { empty + 1 } else { 0 };
        if empty <= 1 {
            out += line;
            out.push('\n');
        }
    }
    while out.ends_with("\n\n") {
        out.pop();
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn render(template: &str, page: &BTreeMap<&str, &str>) -> Result<String, TemplateError> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("index.md"), template).unwrap();
        Templates::new(Some(folder.path()))?.render("index.md", page)
    }

    #[test]
    fn data_is_escaped_without_being_asked() {
        let page = BTreeMap::from([("name", "<b>*x*|`")]);
        assert_eq!(
            render("{{ name }} {{ name|code }}", &page).unwrap(),
            "\\<b\\>\\*x\\*\\|\\` `` <b>*x*|` ``\n"
        );
    }

    #[test]
    fn a_name_that_does_not_exist_is_an_error_that_says_where() {
        let error = render("one\n{{ nmae }}", &BTreeMap::from([("name", "x")])).unwrap_err();
        let text = error.to_string();
        assert!(
            text.contains("index.md") && text.contains("line 2"),
            "{text}"
        );
    }

    #[test]
    fn the_built_in_templates_are_exported_once() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(export(folder.path()).unwrap().len(), BUILT_IN.len());
        assert!(matches!(
            export(folder.path()),
            Err(TemplateError::NotEmpty(_))
        ));
        Templates::new(Some(folder.path())).unwrap();
    }

    #[test]
    fn empty_lines_are_single() {
        assert_eq!(tidy("\n\na  \n\n\n\nb\n\n\n"), "a\n\nb\n");
    }
}

//! Compiling one file and linking one library, through the cache.
//!
//! An object's key is the digest of the toolchain, of the options, and of the *preprocessed* text: that
//! text is what the compiler proper sees, so no header, and no header that appears in an earlier
//! include folder, can change without changing the key. A list of the files that were read last time
//! would be faster and could not promise that. What the assembler includes by itself is added. A file
//! that changes between the two looks at it is noticed by looking again after the compile.
//!
//! Everything runs in the root of the campaign with relative paths, and other folders are mapped to
//! names, so that two checkouts give the same bytes.

use super::cache::{Cache, Product};
use super::error::{BuildError, RowError};
use super::flags;
use super::names::Names;
use super::preprocessed;
use super::sources::Source;
use super::toolchain::{Native, Toolchain};
use crate::hash;
use crate::process::{run_blocking, Capture, Command, End, Stop};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::{OsStr, OsString};
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Version of what the keys are made of; raised when the way in which products are made changes.
const KEY_VERSION: &str = "campaign-build/1";
/// Time limit of one compile or link.
const LIMIT: Duration = Duration::from_secs(30 * 60);
/// A preprocessed file: some MiB with vector intrinsics.
const KEEP_TEXT: usize = 256 << 20;
/// Messages of a compile that are kept.
const KEEP_MESSAGES: usize = 16 << 10;
/// Compiles of a file that keeps changing.
const TRIES: usize = 3;

/// What one file is compiled with.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The configured flags, and `-fPIC`.
    pub flags: Vec<String>,
    /// Macros and path maps: what shows in the preprocessed text, if it matters at all.
    pub others: Vec<OsString>,
    /// Include folders.
    pub include: Vec<PathBuf>,
}

impl Options {
    fn arguments(&self) -> impl Iterator<Item = &OsStr> {
        let include = self.include.iter();
        self.flags
            .iter()
            .map(OsStr::new)
            .chain(self.others.iter().map(OsString::as_os_str))
            .chain(include.flat_map(|dir| [OsStr::new("-I"), dir.as_os_str()]))
    }
}

/// A compiled file.
#[derive(Debug, Clone)]
pub struct Object {
    /// The object.
    pub product: Product,
    /// Recorded name and SHA-256 of every file that it was made of, system headers left out.
    pub files: BTreeMap<String, String>,
}

/// All that compiling and linking share; used by several threads at once.
#[derive(Debug)]
pub struct Workshop<'a> {
    /// Root of the campaign.
    pub root: PathBuf,
    /// The cache.
    pub cache: Cache,
    /// Folder of the C that this program brings along.
    pub abi: PathBuf,
    /// The compiler.
    pub toolchain: Toolchain,
    /// The wish to stop.
    pub stop: &'a Stop,
    natives: Mutex<HashMap<Vec<String>, Option<Native>>>,
    busy: Mutex<HashMap<String, Arc<Mutex<()>>>>,
    digests: Mutex<HashMap<PathBuf, String>>,
}

impl<'a> Workshop<'a> {
    /// A workshop for the campaign in `root`.
    pub fn new(
        root: PathBuf,
        cache: Cache,
        abi: PathBuf,
        toolchain: Toolchain,
        stop: &'a Stop,
    ) -> Self {
        Workshop {
            root,
            cache,
            abi,
            toolchain,
            natives: Mutex::default(),
            stop,
            busy: Mutex::default(),
            digests: Mutex::default(),
        }
    }

    /// A file of the C that this program brings along.
    pub fn own(&self, name: &str) -> Source {
        Source {
            name: name.to_owned(),
            path: self.abi.join(name),
        }
    }

    /// Compiles `source`, or finds the object.
    pub fn compile(
        &self,
        source: &Source,
        options: &Options,
        names: &Names,
    ) -> Result<Object, RowError> {
        for _ in 0..TRIES {
            let seen = self.look(source, options, names)?;
            if let Some(product) = self.compile_seen(&seen, source, options, names)? {
                let files = self.files(&seen, names)?;
                return Ok(Object { product, files });
            }
        }
        Err(RowError::Unsteady(source.name.clone()))
    }

    /// Finds or makes the object of what was seen. `None` when the file changed meanwhile.
    fn compile_seen(
        &self,
        seen: &Seen,
        source: &Source,
        options: &Options,
        names: &Names,
    ) -> Result<Option<Product>, RowError> {
        let one_at_a_time = self.one_at_a_time(&seen.key);
        let _held = one_at_a_time.lock().unwrap_or_else(|e| e.into_inner());
        if seen.cacheable {
            if let Some(product) = self.cache.find(&seen.key, ".o") {
                return Ok(Some(product));
            }
        }
        let tmp = self.cache.temporary()?;
        let out = tmp.path().join("made.o");
        let mut arguments: Vec<&OsStr> = options.arguments().collect();
        arguments.extend([
            OsStr::new("-c"),
            source.path.as_os_str(),
            OsStr::new("-o"),
            out.as_os_str(),
        ]);
        let what = format!("compiling {}", source.name);
        let (_, messages) = self.tool(&what, &arguments, tmp.path(), KEEP_MESSAGES, names)?;
        if self.look(source, options, names)?.key != seen.key {
            return Ok(None);
        }
        Ok(Some(self.cache.keep(&seen.key, ".o", &out, messages)?))
    }

    /// Links a library from `objects`, in their order, or finds it. `what` names it in messages.
    pub fn link(
        &self,
        what: &str,
        objects: &[&Product],
        flags: &[OsString],
        names: &Names,
    ) -> Result<Product, RowError> {
        let mut key = Key::new("library", &self.toolchain.digest);
        flags
            .iter()
            .for_each(|flag| key.add(flag.as_encoded_bytes()));
        key.add(super::abi::EXPORT_MAP.as_bytes()); // the path among the flags holds its digest
        objects.iter().for_each(|o| key.add(o.sha256.as_bytes()));
        let key = key.finish();
        if let Some(product) = self.cache.find(&key, ".so") {
            return Ok(product);
        }
        let tmp = self.cache.temporary()?;
        let out = tmp.path().join("made.so");
        let mut arguments: Vec<&OsStr> = flags.iter().map(OsString::as_os_str).collect();
        arguments.extend([OsStr::new("-o"), out.as_os_str()]);
        arguments.extend(objects.iter().map(|object| object.path.as_os_str()));
        arguments.extend(LIBRARIES.map(OsStr::new));
        let what = format!("linking {what}");
        let (_, messages) = self.tool(&what, &arguments, tmp.path(), KEEP_MESSAGES, names)?;
        Ok(self.cache.keep(&key, ".so", &out, messages)?)
    }

    /// Runs the compiler; its standard output, and its messages as lines.
    fn tool(
        &self,
        what: &str,
        arguments: &[&OsStr],
        tmp: &Path,
        keep: usize,
        names: &Names,
    ) -> Result<(Capture, Vec<String>), RowError> {
        let command = Command::from_words(&self.toolchain.command)
            .expect("a toolchain has a command")
            .args(arguments)
            .cwd(&self.root)
            .env("TMPDIR", tmp)
            .keep(keep)
            .deadline(LIMIT);
        let words = command.words();
        let outcome = run_blocking(command, self.stop);
        outcome.proven_empty().map_err(BuildError::from)?;
        match outcome.end {
            End::Finished { status: 0 } => {
                let messages = outcome.stderr.text();
                Ok((
                    outcome.stdout,
                    messages.lines().map(str::to_owned).collect(),
                ))
            }
            End::Interrupted => Err(BuildError::Interrupted.into()),
            ref end => {
                let text = outcome.stderr.text();
                let text: String = text.chars().take(KEEP_MESSAGES).collect();
                let more = match outcome.stderr.bytes() as usize > text.len() {
                    true => format!("\n... {} bytes in all", outcome.stderr.bytes()),
                    false => String::new(),
                };
                let shown = words.iter().map(|word| names.message(word));
                Err(RowError::Tool {
                    what: what.to_owned(),
                    log: format!(
                        "{}\n{}{more}\nthe compiler {end}",
                        flags::line(shown),
                        names.message(text.trim_end())
                    ),
                })
            }
        }
    }

    /// Preprocesses `source` and derives the object's key.
    fn look(&self, source: &Source, options: &Options, names: &Names) -> Result<Seen, RowError> {
        let (text, digest) = self.preprocess(source, options, names)?;
        let mut key = Key::new("object", &self.toolchain.digest);
        options
            .flags
            .iter()
            .for_each(|flag| key.add(flag.as_bytes()));
        if flags::records_command_line(&options.flags) {
            options
                .arguments()
                .for_each(|a| key.add(a.as_encoded_bytes()));
            key.add(self.root.as_os_str().as_encoded_bytes());
        }
        if let Some(native) = self.native(&flags::native(&options.flags))? {
            key.add(native.digest.as_bytes());
        }
        key.add(extension(&source.path).as_bytes());
        key.add(digest.as_bytes());
        let assembled = preprocessed::assembled_files(&text).and_then(|names| {
            preprocessed::assembled_contents(&self.root, &options.include, names)
        });
        let mut dependencies = preprocessed::dependencies(&text);
        dependencies.insert(source.path.clone());
        for (place, content) in assembled.iter().flatten() {
            key.add(place.as_os_str().as_encoded_bytes());
            key.add(&[u8::from(content.is_some())]);
            key.add(content.as_deref().unwrap_or_default());
            if content.is_some() {
                dependencies.insert(place.clone());
            }
        }
        Ok(Seen {
            key: key.finish(),
            cacheable: assembled.is_some(),
            dependencies,
        })
    }

    /// The text that the compiler proper sees, and its SHA-256.
    fn preprocess(
        &self,
        source: &Source,
        options: &Options,
        names: &Names,
    ) -> Result<(Vec<u8>, String), RowError> {
        if extension(&source.path) == "s" {
            let text = self.read(&source.path, &source.name)?;
            let digest = hash::sha256(&text);
            return Ok((text, digest));
        }
        let tmp = self.cache.temporary()?;
        let mut arguments: Vec<&OsStr> = options.arguments().collect();
        arguments.extend([OsStr::new("-E"), source.path.as_os_str()]);
        let what = format!("preprocessing {}", source.name);
        let (text, _) = self.tool(&what, &arguments, tmp.path(), KEEP_TEXT, names)?;
        match text.is_cut() {
            true => Err(RowError::Tool {
                what,
                log: format!("it is {} bytes long", text.bytes()),
            }),
            false => Ok((text.head().to_vec(), text.sha256())),
        }
    }

    fn read(&self, path: &Path, name: &str) -> Result<Vec<u8>, RowError> {
        std::fs::read(self.root.join(path)).map_err(|source| RowError::Read {
            name: name.to_owned(),
            source,
        })
    }

    /// What `native` options mean here, asked once.
    pub fn native(&self, options: &[String]) -> Result<Option<Native>, BuildError> {
        if options.is_empty() {
            return Ok(None);
        }
        let mut natives = self.natives.lock().unwrap_or_else(|e| e.into_inner());
        if let Some(known) = natives.get(options) {
            return Ok(known.clone());
        }
        let answer = self.toolchain.resolve_native(options, self.stop)?;
        natives.insert(options.to_vec(), answer.clone());
        Ok(answer)
    }

    /// Names and digests of the files behind an object.
    fn files(&self, seen: &Seen, names: &Names) -> Result<BTreeMap<String, String>, RowError> {
        let mut files = BTreeMap::new();
        for path in &seen.dependencies {
            let path = tidy(path);
            let full = self.root.join(&path);
            if !full.is_file() {
                continue; // a generated file that names its own source with #line
            }
            let name = names.path(&path);
            let digest = match self.known_digest(&full) {
                Some(digest) => digest,
                None => {
                    let digest = hash::sha256(&self.read(&path, &name)?);
                    let mut digests = self.digests.lock().unwrap_or_else(|e| e.into_inner());
                    digests.insert(full, digest.clone());
                    digest
                }
            };
            files.insert(name, digest);
        }
        Ok(files)
    }

    fn known_digest(&self, path: &Path) -> Option<String> {
        let digests = self.digests.lock().unwrap_or_else(|e| e.into_inner());
        digests.get(path).cloned()
    }

    /// The lock of a key: two rows that share a file do not compile it twice.
    fn one_at_a_time(&self, key: &str) -> Arc<Mutex<()>> {
        let mut busy = self.busy.lock().unwrap_or_else(|e| e.into_inner());
        busy.entry(key.to_owned()).or_default().clone()
    }
}

/// Linked in where it is used, and only then: `math.h` is a part of C.
pub const LIBRARIES: [&str; 2] = ["-Wl,--as-needed", "-lm"];

/// One look at a source.
struct Seen {
    key: String,
    cacheable: bool,
    dependencies: BTreeSet<PathBuf>,
}

fn extension(path: &Path) -> &str {
    path.extension().and_then(OsStr::to_str).unwrap_or("")
}

/// `a/b/../c` as `a/c`: a compiler names a header by the way it was included.
fn tidy(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match (part, out.components().next_back()) {
            (Component::CurDir, _) => {}
            (Component::ParentDir, Some(Component::Normal(_))) => {
                out.pop();
            }
            (part, _) => out.push(part),
        }
    }
    out
}

/// A digest over parts, each with its length before it, so that no two lists of parts are alike.
struct Key(Vec<u8>);

impl Key {
    fn new(kind: &str, toolchain: &str) -> Self {
        let mut key = Key(Vec::new());
        key.add(KEY_VERSION.as_bytes());
        key.add(kind.as_bytes());
        key.add(toolchain.as_bytes());
        key
    }

    fn add(&mut self, part: &[u8]) {
        self.0.extend((part.len() as u64).to_le_bytes());
        self.0.extend(hash::sha256(part).into_bytes());
    }

    fn finish(self) -> String {
        hash::sha256(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_tidied_without_asking_the_disk() {
        let table = [
            ("drivers/dove/../iccs/./sm3.h", "drivers/iccs/sm3.h"),
            ("../x.h", "../x.h"),
            ("../../x.h", "../../x.h"),
            ("/a/../b", "/b"),
        ];
        for (path, expected) in table {
            assert_eq!(tidy(Path::new(path)), Path::new(expected), "{path}");
        }
    }

    #[test]
    fn keys_tell_lists_of_parts_apart() {
        let key = |parts: &[&str]| {
            let mut key = Key::new("object", "t");
            parts.iter().for_each(|p| key.add(p.as_bytes()));
            key.finish()
        };
        assert_ne!(key(&["ab", "c"]), key(&["a", "bc"]));
        assert_ne!(key(&["a"]), key(&["a", ""]));
        assert_eq!(key(&["a"]), key(&["a"]));
    }
}

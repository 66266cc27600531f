//! One identity: its objects, its libraries, its row.

use super::abi;
use super::cache::Product;
use super::crates::{CratesError, SourceCrates};
use super::elf::{self, Symbols};
use super::error::{BuildError, RowError};
use super::features::Features;
use super::flags;
use super::names::Names;
use super::sources::{self, Source, Sources};
use super::workshop::{self, Object, Options, Workshop};
use super::wrap;
use crate::config::{Arch, Build, Candidate, Code, Instance};
use crate::evidence::{
    BuildRow, ElfFigures, FlagsKind, LibraryKind, NativeTarget, Reason, ReasonCode, SourceCrate,
    Status, Wrapped,
};
use crate::hash;
use crate::identity::Identity;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Log lines of a row, bounded.
const LOG_BYTES: usize = 32 << 10;
/// Warnings of a row that are kept.
const WARNING_LINES: usize = 400;
/// Flags of the object that counts the allocations of a library which comes already built.
const INTERPOSE_FLAGS: [&str; 3] = ["-std=c99", "-O2", "-fPIC"];
/// Key of that object's library among the libraries of a row.
pub const INTERPOSE: &str = "interpose";

/// The configuration of one identity, and what is known about its candidate.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// Which.
    pub identity: &'a Identity,
    /// Its candidate.
    pub candidate: &'a Candidate,
    /// Its parameter set.
    pub instance: &'a Instance,
    /// Its source.
    pub code: &'a Code,
    /// Its flags.
    pub build: &'a Build,
    /// Architecture of the system.
    pub arch: Arch,
    /// Source crates of the candidate, or why there are none.
    pub crates: &'a Result<SourceCrates, Arc<CratesError>>,
    /// The file-size study wants a stream library.
    pub stream: bool,
    /// What the CPU of the system can do.
    pub features: &'a Features,
    /// Name of this machine's CPU.
    pub cpu: Option<&'a str>,
    /// Its instruction sets, for the same.
    pub instruction_sets: &'a [String],
}

/// A row and the products that it names, by the key in its `libraries`.
pub type Built = (BuildRow, BTreeMap<String, Product>);

/// Builds one identity. Whatever is wrong with it becomes its row.
pub fn build(shop: &Workshop, request: &Request) -> Result<Built, BuildError> {
    let mut row = empty_row(shop, request);
    let needed = request.build.requires.get(&request.arch);
    let needed = needed.into_iter().flatten().chain(&request.code.requires);
    if let Some(text) = request.features.lacking(needed) {
        row.status = Status::Skipped;
        row.reason = Some(Reason::new(ReasonCode::CpuFeature, text));
        return Ok((row, BTreeMap::new()));
    }
    match try_flags(shop, request, &mut row) {
        Ok(products) => {
            row.status = Status::Complete;
            Ok((row, products))
        }
        Err(RowError::Fatal(error)) => Err(error),
        Err(error) => {
            let text = match &error {
                RowError::Tool { .. } => {
                    format!("{error}; `log` of its row in build.json has the compiler's messages")
                }
                other => other.text(),
            };
            row.reason = Some(Reason::new(ReasonCode::BuildFailed, text));
            add_log(&mut row, &error.text());
            Ok((row, BTreeMap::new()))
        }
    }
}

/// The guide's flags, then the candidate's fallback.
fn try_flags(
    shop: &Workshop,
    request: &Request,
    row: &mut BuildRow,
) -> Result<BTreeMap<String, Product>, RowError> {
    if let Some(library) = &request.code.library {
        return prebuilt(shop, request, library, row);
    }
    let guide = match request.build.cflags.get(&request.arch) {
        Some(flags) => attempt(shop, request, flags, row),
        None => Err(RowError::NoFlags {
            build: request.build.name.clone(),
            arch: request.arch.word(),
        }),
    };
    match (guide, &request.code.fallback_cflags) {
        (Err(error), Some(fallback)) if error.is_about_flags() => {
            add_log(row, &error.text());
            row.flags_kind = FlagsKind::HarnessDefault;
            attempt(shop, request, fallback, row)
        }
        (result, _) => result,
    }
}

/// All libraries with one set of flags.
fn attempt(
    shop: &Workshop,
    request: &Request,
    cflags: &[String],
    row: &mut BuildRow,
) -> Result<BTreeMap<String, Product>, RowError> {
    let bench = Bench::new(shop, request, cflags, row)?;
    let timed = bench.objects(&bench.options)?;
    let mut objects = timed.clone();
    objects.push(bench.adapter(LibraryKind::Timed, &bench.options)?);
    let library = bench.link(LibraryKind::Timed, &bench.options, &objects, &[])?;
    record_sources(row, &objects);
    row.warnings = Some(warnings(&objects, &library, &bench.names));
    row.elf = Some(figures(&library)?);

    let without = Options {
        flags: flags::without_lto(&bench.options.flags),
        ..bench.options.clone()
    };
    let lto = flags::has_lto(&bench.options.flags);
    row.lto_removed = Some(lto);
    let plain = match lto {
        true => bench.objects(&without)?,
        false => timed,
    };
    let mut products = BTreeMap::from([(LibraryKind::Timed.name().to_owned(), library)]);
    for (kind, added) in bench.additions(&without, &plain, row)? {
        let mut objects = plain.clone();
        objects.push(bench.adapter(kind, &without)?);
        let library = bench.link(kind, &without, &objects, &added)?;
        products.insert(kind.name().to_owned(), library);
    }
    Ok(products)
}

/// What one attempt works with.
struct Bench<'a> {
    shop: &'a Workshop<'a>,
    request: &'a Request<'a>,
    sources: Sources,
    names: Names,
    options: Options,
}

impl<'a> Bench<'a> {
    /// Expands sources and flags, and records both.
    fn new(
        shop: &'a Workshop<'a>,
        request: &'a Request<'a>,
        cflags: &[String],
        row: &mut BuildRow,
    ) -> Result<Self, RowError> {
        let none = SourceCrates::new();
        let crates = match request.crates {
            Ok(crates) => crates,
            Err(error) if names_a_crate(request.code) => return Err(Arc::clone(error).into()),
            Err(_) => &none,
        };
        let mut names = Names::default();
        for (name, found) in crates {
            names.add(&found.dir, &format!("{{{name}}}"));
        }
        names.add(&shop.root, "");
        names.add(&shop.abi, "");
        let sources = sources::expand(&shop.root, request.code, crates, &names)?;
        let mut flags = cflags.to_vec();
        flags.extend(request.code.extra_cflags.iter().cloned());
        flags.push("-fPIC".to_owned());
        let defines = request.code.defines.iter().map(|d| format!("-D{d}"));
        let mut shown: Vec<String> = flags.iter().cloned().chain(defines.clone()).collect();
        let mut others: Vec<OsString> = defines.map(OsString::from).collect();
        for (given, recorded) in path_maps(shop, &sources.crates) {
            others.push(given);
            shown.push(recorded);
        }
        let own = abi::INCLUDE.map(|dir| shop.own(dir));
        let include: Vec<&Source> = sources.include.iter().chain(&own).collect();
        shown.extend(
            include
                .iter()
                .flat_map(|dir| ["-I".to_owned(), dir.name.clone()]),
        );
        row.flags = flags::line(&shown);
        row.source_crates = sources
            .crates
            .values()
            .map(|c| SourceCrate {
                name: c.name.clone(),
                version: c.version.clone(),
                checksum: c.checksum.clone(),
            })
            .collect();
        let native = flags::native(&flags);
        row.native = match native.is_empty() {
            true => None,
            false => Some(NativeTarget {
                resolved: shop
                    .native(&native)?
                    .map(|n| n.resolved)
                    .unwrap_or_default(),
                options: native,
                cpu: request.cpu.map(str::to_owned),
                features: request.instruction_sets.to_vec(),
            }),
        };
        let options = Options {
            flags,
            others,
            include: include.into_iter().map(|dir| dir.path.clone()).collect(),
        };
        row.link_flags = Some(flags::line(
            link_flags(&shop.abi, &options, &BTreeSet::new())
                .iter()
                .map(|flag| names.word(&flag.to_string_lossy()))
                .chain(workshop::LIBRARIES.map(str::to_owned)),
        ));
        Ok(Bench {
            shop,
            request,
            sources,
            names,
            options,
        })
    }

    fn compile(&self, source: &Source, options: &Options) -> Result<Object, RowError> {
        self.shop.compile(source, options, &self.names)
    }

    /// The candidate's own objects.
    fn objects(&self, options: &Options) -> Result<Vec<Object>, RowError> {
        let files = self.sources.files.iter();
        files.map(|source| self.compile(source, options)).collect()
    }

    /// The adapter of a kind of library.
    fn adapter(&self, kind: LibraryKind, options: &Options) -> Result<Object, RowError> {
        let mut options = options.clone();
        options.others.extend([
            flags::string_define("CAMPAIGN_LABEL", &self.request.instance.label),
            flags::string_define("CAMPAIGN_KIND", kind.name()),
        ]);
        if let Some(symbol) = &self.request.instance.rejected_counter {
            let define = format!("-DCAMPAIGN_REJECTED={symbol}");
            options.others.push(define.into());
        }
        self.compile(&self.shop.own(abi::ADAPTER), &options)
    }

    /// What each kind of library but the timed one adds to the candidate's objects.
    fn additions(
        &self,
        options: &Options,
        objects: &[Object],
        row: &mut BuildRow,
    ) -> Result<Vec<(LibraryKind, Vec<Object>)>, RowError> {
        let adapter = self.adapter(LibraryKind::Profile, options)?;
        let mut symbols = symbols(objects)?;
        symbols.push(symbols_of(&adapter)?);
        let crossing = wrap::crossing(&symbols);
        let wrapping = wrap::decide(&self.request.candidate.wrap, &self.shop.root, &crossing)?;
        row.wrapped = wrapping
            .functions
            .iter()
            .map(wrap::Function::recorded)
            .collect::<Vec<Wrapped>>();
        row.not_wrapped = wrapping.not_wrapped;
        let wrappers = self.generated("wrap.c", &wrap::source(&wrapping.functions)?)?;
        let own = |name: &str| self.compile(&self.shop.own(name), options);
        let mut additions = vec![
            (
                LibraryKind::Profile,
                vec![self.compile(&wrappers, options)?, own(abi::PROFILE)?],
            ),
            (LibraryKind::Memory, vec![own(abi::MEMORY)?]),
        ];
        if self.request.stream && crossing.contains(abi::STREAM_FUNCTION) {
            additions.push((LibraryKind::Stream, vec![own(abi::STREAM)?]));
        }
        Ok(additions)
    }

    /// A generated source, in the cache under the digest of its text.
    fn generated(&self, name: &str, text: &str) -> Result<Source, RowError> {
        let digest = hash::sha256(text.as_bytes());
        let path = self
            .shop
            .cache
            .dir()
            .join("generated")
            .join(&digest[..32])
            .join(name);
        super::cache::put(&path, text.as_bytes())?;
        Ok(Source {
            name: name.to_owned(),
            path,
        })
    }

    fn link(
        &self,
        kind: LibraryKind,
        options: &Options,
        objects: &[Object],
        added: &[Object],
    ) -> Result<Product, RowError> {
        let wraps = wrap::wrapped_by(&symbols(added)?);
        let flags = link_flags(&self.shop.abi, options, &wraps);
        let products: Vec<&Product> = objects.iter().chain(added).map(|o| &o.product).collect();
        let what = format!("the {} library", kind.name());
        self.shop.link(&what, &products, &flags, &self.names)
    }
}

/// Options that keep the places of this machine's folders out of the objects, as given and as recorded.
/// Of several that fit, gcc takes the last.
fn path_maps(shop: &Workshop, crates: &SourceCrates) -> Vec<(OsString, String)> {
    let own = [
        (&*shop.root, "root", "."),
        (shop.cache.dir(), "cache", "."),
        (&*shop.abi, "abi", "."),
    ];
    let theirs = crates
        .iter()
        .map(|(name, found)| (&*found.dir, name.as_str(), name.as_str()));
    own.into_iter()
        .chain(theirs)
        // gcc cuts such an option at its first `=`.
        .filter(|(folder, ..)| !folder.as_os_str().as_encoded_bytes().contains(&b'='))
        .map(|(folder, name, to)| {
            let mut given = OsString::from("-ffile-prefix-map=");
            given.push(folder);
            given.push(format!("={to}"));
            (given, format!("-ffile-prefix-map={{{name}}}={to}"))
        })
        .collect()
}

/// Flags of a link, before the objects. The compile's flags are among them, because link-time
/// optimisation compiles here.
fn link_flags(abi_dir: &Path, options: &Options, wraps: &BTreeSet<String>) -> Vec<OsString> {
    let mut all: Vec<OsString> = options.flags.iter().map(OsString::from).collect();
    all.extend(["-shared", "-Wl,-z,noexecstack", "-Wl,-z,defs"].map(OsString::from));
    let mut script = OsString::from("-Wl,--version-script=");
    script.push(abi_dir.join(abi::EXPORT_MAP));
    all.push(script);
    all.extend(
        wraps
            .iter()
            .map(|f| OsString::from(format!("-Wl,--wrap={f}"))),
    );
    all
}

fn symbols_of(object: &Object) -> Result<Symbols, RowError> {
    let path = &object.product.path;
    let data = read(path, "an object of the cache")?;
    elf::symbols(&data).map_err(|source| RowError::Elf {
        what: "an object of the cache".to_owned(),
        source,
    })
}

fn symbols(objects: &[Object]) -> Result<Vec<Symbols>, RowError> {
    objects.iter().map(symbols_of).collect()
}

fn figures(library: &Product) -> Result<ElfFigures, RowError> {
    let data = read(&library.path, "the timed library")?;
    elf::figures(&data).map_err(|source| RowError::Elf {
        what: "the timed library".to_owned(),
        source,
    })
}

fn read(path: &Path, name: &str) -> Result<Vec<u8>, RowError> {
    std::fs::read(path).map_err(|source| RowError::Read {
        name: name.to_owned(),
        source,
    })
}

/// Whether a pattern of the code begins with `{name}`.
fn names_a_crate(code: &Code) -> bool {
    code.sources
        .iter()
        .chain(&code.include)
        .any(|pattern| pattern.starts_with('{'))
}

/// Enters the digest over all files that the objects were made of.
fn record_sources(row: &mut BuildRow, objects: &[Object]) {
    let mut files = BTreeMap::new();
    for object in objects {
        files.extend(object.files.iter());
    }
    let list: String = files
        .iter()
        .map(|(name, digest)| format!("{digest}  {name}\n"))
        .collect();
    row.source_sha256 = Some(hash::sha256(list.as_bytes()));
    row.source_files = u32::try_from(files.len()).ok();
}

/// Messages of the compiles and of the link, in order, without paths of this machine.
fn warnings(objects: &[Object], library: &Product, names: &Names) -> Vec<String> {
    let products = objects.iter().map(|o| &o.product).chain([library]);
    let mut lines: Vec<String> = products
        .flat_map(|product| &product.messages)
        .map(|line| names.message(line))
        .collect();
    if lines.len() > WARNING_LINES {
        let more = lines.len() - WARNING_LINES;
        lines.truncate(WARNING_LINES);
        lines.push(format!("... and {more} lines more"));
    }
    lines
}

/// A library that comes already built: taken as it is; its memory is counted by interposition.
fn prebuilt(
    shop: &Workshop,
    request: &Request,
    library: &PathBuf,
    row: &mut BuildRow,
) -> Result<BTreeMap<String, Product>, RowError> {
    let name = library.display().to_string();
    let path = shop.root.join(library);
    let data = read(&path, &name)?;
    let elf_error = |source| RowError::Elf {
        what: format!("`{name}`"),
        source,
    };
    let machine = elf::machine(&data).map_err(elf_error)?;
    if machine != request.arch.word() {
        return Err(RowError::Tool {
            what: format!(
                "taking `{name}`, which is for {machine}, on {}",
                request.arch.word()
            ),
            log: "a library that comes already built must be of the system's architecture"
                .to_owned(),
        });
    }
    row.compiler = "already built".to_owned();
    row.compiler_version = "unknown".to_owned();
    row.elf = Some(elf::figures(&data).map_err(elf_error)?);
    row.warnings = Some(stray_names(&elf::exports(&data).map_err(elf_error)?));
    row.source_sha256 = Some(hash::sha256(
        format!("{}  {name}\n", hash::sha256(&data)).as_bytes(),
    ));
    row.source_files = Some(1);
    let options = Options {
        flags: INTERPOSE_FLAGS.map(str::to_owned).to_vec(),
        others: vec!["-DCAMPAIGN_INTERPOSE".into()],
        include: abi::INCLUDE.map(|dir| shop.abi.join(dir)).to_vec(),
    };
    let names = Names::default();
    let object = shop.compile(&shop.own(abi::MEMORY), &options, &names)?;
    let flags: Vec<OsString> = INTERPOSE_FLAGS
        .iter()
        .chain(&["-shared"])
        .map(OsString::from)
        .collect();
    let interpose = shop.link(
        "the interposed allocator",
        &[&object.product],
        &flags,
        &names,
    )?;
    let taken = Product {
        sha256: hash::sha256(&data),
        path,
        messages: Vec::new(),
    };
    Ok(BTreeMap::from([
        (LibraryKind::Timed.name().to_owned(), taken),
        (INTERPOSE.to_owned(), interpose),
    ]))
}

/// What a library exports beside the contract, as a warning. In the libraries made here the version
/// script hides it; in a library that comes built it could be taken for the function of that name of
/// another one. It is loaded so that it is not.
fn stray_names(exports: &BTreeSet<String>) -> Vec<String> {
    const CONTRACT: [&str; 4] = ["sig_", "kem_", "kex_", "campaign_"];
    let strays: Vec<&str> = exports
        .iter()
        .map(String::as_str)
        .filter(|name| !CONTRACT.iter().any(|own| name.starts_with(own)))
        .filter(|name| !matches!(*name, "CryptHash" | "drng_algorithm"))
        .collect();
    match strays.is_empty() {
        true => Vec::new(),
        false => vec![format!(
            "exports names beside the API: {}",
            strays.join(", ")
        )],
    }
}

fn empty_row(shop: &Workshop, request: &Request) -> BuildRow {
    let flags = request.build.cflags.get(&request.arch);
    BuildRow {
        identity: request.identity.clone(),
        status: Status::Failed,
        reason: None,
        compiler: shop.toolchain.name.clone(),
        compiler_version: shop.toolchain.version.clone(),
        flags: flags::line(flags.into_iter().flatten()),
        link_flags: None,
        flags_kind: FlagsKind::Guide,
        lto_removed: None,
        warnings: None,
        source_sha256: None,
        source_files: None,
        source_crates: Vec::new(),
        libraries: BTreeMap::new(),
        elf: None,
        wrapped: Vec::new(),
        not_wrapped: Vec::new(),
        native: None,
        log: None,
    }
}

/// Adds to the log of the row, up to its bound.
fn add_log(row: &mut BuildRow, text: &str) {
    let log = row.log.get_or_insert_default();
    if !log.is_empty() {
        log.push('\n');
    }
    log.push_str(text);
    if log.len() > LOG_BYTES {
        let mut end = LOG_BYTES;
        while !log.is_char_boundary(end) {
            end -= 1;
        }
        log.truncate(end);
        log.push_str("\n... cut");
    }
}

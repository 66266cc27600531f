//! Writes a pack. Libraries are built for every feature that the codes may need: the machine that it is
//! carried to leaves out what it cannot run.

use super::needs::Needs;
use super::{PackError, PackFile, DIGESTS, FILE, PROGRAM, VERSION, WORKER};
use crate::build::{self, BuildError};
use crate::catalogue;
use crate::config::{self, Campaign, System};
use crate::evidence::seal::{self, SealError};
use crate::evidence::store::{self, StoreError};
use crate::evidence::BuildFile;
use crate::identity::Identity;
use crate::process::Stop;
use crate::report::templates::{self, TemplateError};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Component, Path, PathBuf};

/// What is packed.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// The campaign.
    pub campaign: &'a Campaign,
    /// Its file.
    pub config: &'a Path,
    /// The system that it is for.
    pub system: &'a System,
    /// `--plan`.
    pub plan: Option<&'a str>,
    /// `--only`.
    pub only: Option<&'a str>,
    /// What is built.
    pub identities: &'a [Identity],
    /// The program for the system's architecture.
    pub program: &'a Path,
    /// The worker for it.
    pub worker: &'a Path,
    /// The archive to write.
    pub out: &'a Path,
}

/// What was packed.
#[derive(Debug, Clone)]
pub struct Packed {
    /// Folder in the archive.
    pub folder: String,
    /// What the pack is for.
    pub file: PackFile,
    /// What was built.
    pub build: BuildFile,
    /// Its files.
    pub files: usize,
}

/// A pack cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum MakeError {
    /// The pack itself.
    #[error(transparent)]
    Pack(#[from] PackError),
    /// The libraries.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// The templates.
    #[error(transparent)]
    Templates(#[from] TemplateError),
    /// The list of digests.
    #[error(transparent)]
    Digests(#[from] SealError),
}

impl From<StoreError> for MakeError {
    fn from(error: StoreError) -> Self {
        MakeError::Pack(error.into())
    }
}

/// Builds the libraries and writes the archive, whole or not at all.
pub fn make(
    request: &Request,
    stop: &Stop,
    on_progress: &(dyn Fn(build::Progress) + Sync),
) -> Result<Packed, MakeError> {
    // A rename would put the archive in the place of a device, a pipe or a link.
    if std::fs::symlink_metadata(request.out).is_ok_and(|there| !there.is_file()) {
        return Err(PackError::Special(request.out.to_owned()).into());
    }
    let place = request.out.parent().filter(|p| !p.as_os_str().is_empty());
    let place = place.unwrap_or(Path::new("."));
    let archive = |source| PackError::Archive {
        path: request.out.to_owned(),
        source,
    };
    let workshop = tempfile::Builder::new()
        .prefix(store::TEMPORARY)
        .tempdir_in(place)
        .map_err(archive)?;
    let dir = workshop.path();
    let needs = programs(request, dir)?;
    let build = libraries(request, dir, stop, on_progress)?;
    let needs = needs_of_libraries(&build, dir, needs)?;
    let file = PackFile {
        version: VERSION,
        system: request.system.id.clone(),
        arch: request.system.arch.word().to_owned(),
        plan: request.plan.map(str::to_owned),
        only: request.only.map(str::to_owned),
        tool_version: env!("CARGO_PKG_VERSION").to_owned(),
        build_id: protocol::BUILD_ID.to_owned(),
        needs,
    };
    store::write_json(&dir.join(FILE), &file)?;
    texts(request, &file, dir)?;
    let entries = seal::entries_of(dir, &[])?;
    let list = seal::manifest_text(&entries);
    store::write_atomic(&dir.join(DIGESTS), list.as_bytes())?;
    let folder = format!("pack-{}", request.system.id);
    let mut paths: Vec<&str> = entries.iter().map(|entry| entry.path.as_str()).collect();
    paths.push(DIGESTS);
    write_archive(dir, &folder, &paths, request.out, place).map_err(archive)?;
    Ok(Packed {
        files: paths.len(),
        folder,
        file,
        build,
    })
}

/// Copies the program and the worker, which must be for the system and ask for nothing unusual.
fn programs(request: &Request, dir: &Path) -> Result<Needs, MakeError> {
    let mut needs = Needs::default();
    for (from, name) in [(request.program, PROGRAM), (request.worker, WORKER)] {
        let data = read(from)?;
        needs = needs.and(fit(name, &data, request.system)?);
        let to = dir.join(name);
        store::write_atomic(&to, &data)?;
        set_mode(&to, 0o755)?;
    }
    Ok(needs)
}

/// Needs of a program of ours, if it may be shipped.
fn fit(name: &str, data: &[u8], system: &System) -> Result<Needs, PackError> {
    let unfit = |why: String| PackError::Unfit {
        program: name.to_owned(),
        why,
    };
    let arch = build::elf_machine(data).map_err(|error| unfit(error.to_string()))?;
    if arch != system.arch.word() {
        let wanted = system.arch.word();
        return Err(unfit(format!(
            "it is for {arch}, and the system is {wanted}"
        )));
    }
    // Every program of ours has its build id among its constants.
    let id = protocol::BUILD_ID.as_bytes();
    if !data.windows(id.len()).any(|window| window == id) {
        let text = "it is of another version than this program: build it from the same sources";
        return Err(unfit(text.to_owned()));
    }
    let needs = Needs::of(data).map_err(|error| unfit(error.to_string()))?;
    match &needs.foreign()[..] {
        [] => Ok(needs),
        names => Err(unfit(format!(
            "it needs {}, which that machine may not have; link it statically",
            names.join(", ")
        ))),
    }
}

fn libraries(
    request: &Request,
    dir: &Path,
    stop: &Stop,
    on_progress: &(dyn Fn(build::Progress) + Sync),
) -> Result<BuildFile, MakeError> {
    Ok(build::build_all(
        request.campaign,
        request.system,
        request.identities,
        &mut build::Context {
            run_dir: dir,
            features: build::Features::NotAsked,
            streams: false,
            jobs: None,
            stop,
            before_writing: &mut |_, _| Ok(()),
            on_progress,
        },
    )?)
}

fn needs_of_libraries(build: &BuildFile, dir: &Path, needs: Needs) -> Result<Needs, MakeError> {
    let files: BTreeSet<&str> = build
        .rows
        .iter()
        .flat_map(|row| row.libraries.values())
        .map(|library| library.file.as_str())
        .collect();
    files.into_iter().try_fold(needs, |needs, file| {
        let of = Needs::of(&read(&dir.join(file))?).map_err(|error| PackError::Unfit {
            program: file.to_owned(),
            why: error.to_string(),
        })?;
        Ok(needs.and(of))
    })
}

/// Configuration, KAT manifests, size catalogue, templates, and what to do with all of it.
fn texts(request: &Request, file: &PackFile, dir: &Path) -> Result<(), MakeError> {
    store::write_atomic(&dir.join(config::FILE), &read(request.config)?)?;
    let root = &request.campaign.root;
    let mut carried: BTreeSet<PathBuf> = BTreeSet::new();
    let candidates = request.campaign.candidates.iter();
    carried.extend(candidates.map(|candidate| PathBuf::from(&candidate.kat.manifest)));
    carried.extend(
        Some(PathBuf::from(catalogue::FILE)).filter(|catalogue| root.join(catalogue).is_file()),
    );
    for below in carried {
        if !below
            .components()
            .all(|part| matches!(part, Component::Normal(_) | Component::CurDir))
        {
            return Err(PackError::Outside(below).into());
        }
        store::write_atomic(&dir.join(&below), &read(&root.join(&below))?)?;
    }
    templates::export(&dir.join("templates"))?;
    store::write_atomic(&dir.join("README.txt"), readme(file).as_bytes())?;
    Ok(())
}

fn readme(file: &PackFile) -> String {
    let PackFile { system, arch, .. } = file;
    let needs = file.needs.text();
    format!(
        "A measurement campaign for the system {system} ({arch}), ready to run: it needs {needs}, and\n\
         neither a compiler nor Rust.\n\
         \n\
         \x20   sha256sum -c {DIGESTS}        all files are as they were packed\n\
         \x20   ./campaign check --system {system}         is the machine ready, and what to do\n\
         \x20   ./campaign run --pack .       measures; after an interruption, the same again\n\
         \x20   tar -cf back.tar runs         to be carried home\n\
         \n\
         At home, in the checkout: campaign collect back.tar\n"
    )
}

fn read(path: &Path) -> Result<Vec<u8>, StoreError> {
    std::fs::read(path).map_err(|source| StoreError::Read {
        path: path.to_owned(),
        source,
    })
}

fn set_mode(path: &Path, mode: u32) -> Result<(), StoreError> {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).map_err(|source| {
        StoreError::Write {
            path: path.to_owned(),
            source,
        }
    })
}

/// The archive holds no times, users or groups of this machine: the same content gives the same bytes.
fn write_archive(
    dir: &Path,
    folder: &str,
    paths: &[&str],
    out: &Path,
    place: &Path,
) -> io::Result<()> {
    let draft = tempfile::Builder::new()
        .prefix(store::TEMPORARY)
        .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644))
        .tempfile_in(place)?;
    let mut builder = tar::Builder::new(io::BufWriter::new(draft.as_file()));
    for path in paths {
        let mut file = File::open(dir.join(path))?;
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(tar::EntryType::Regular);
        header.set_size(file.metadata()?.len());
        let program = matches!(*path, PROGRAM | WORKER);
        header.set_mode(if program { 0o755 } else { 0o644 });
        header.set_mtime(0);
        header.set_uid(0);
        header.set_gid(0);
        builder.append_data(&mut header, Path::new(folder).join(path), &mut file)?;
    }
    builder.into_inner()?.flush()?;
    draft.as_file().sync_all()?;
    draft.persist(out).map_err(|error| error.error)?;
    Ok(())
}

//! Where the pages of a run or of a published dataset stand, and what they link to.
//!
//! A run keeps its pages in its own `pages/`. The current dataset of a system has its pages in
//! `reports/<system>/`, an older one of the same system in `reports/<system>/<id>/`; above them is the
//! index of systems.

use super::escape;
use super::pages::ReportError;
use super::view::{self, Place, SystemLink, SystemRow};
use crate::catalogue::{self, Catalogue, CatalogueError};
use crate::dataset::{DatasetError, Shelf};
use crate::evidence::{store, CampaignFile, CAMPAIGN_FILE};
use std::path::{Path, PathBuf};

pub use crate::place::{CURRENT, DATA};

/// Pages of published datasets below the root of a campaign.
pub const REPORTS: &str = "reports";

/// The size catalogue of this version, for runs outside a checkout.
const BUILT_IN: &str = include_str!("../../../performance/external_sizes.csv");

/// The size catalogue for a dataset: that of the nearest folder above it which has one, else the
/// built-in one.
pub fn catalogue_for(dataset: &Path) -> Result<Catalogue, CatalogueError> {
    let path = dataset
        .canonicalize()
        .unwrap_or_else(|_| dataset.to_owned());
    let found = path
        .ancestors()
        .map(|folder| folder.join(catalogue::FILE))
        .find(|file| file.is_file());
    match found {
        Some(file) => Catalogue::read(&file),
        None => Ok(Catalogue::parse(BUILT_IN).expect("the built-in catalogue is tested")),
    }
}

/// A published dataset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Published {
    /// Root of the campaign.
    pub root: PathBuf,
    /// Id of the system.
    pub system: String,
    /// Id of the dataset.
    pub id: String,
}

impl Published {
    /// The dataset at `path`, if it is a published one.
    pub fn at(path: &Path) -> Option<Self> {
        let path = path.canonicalize().ok()?;
        let name = |path: &Path| Some(path.file_name()?.to_str()?.to_owned());
        let system = path.parent()?;
        let data = system.parent()?;
        let root = data.parent()?.parent()?;
        (root.join(DATA) == data).then_some(Published {
            root: root.to_owned(),
            system: name(system)?,
            id: name(&path)?,
        })
    }

    /// Its directory.
    pub fn path(&self) -> PathBuf {
        self.root.join(DATA).join(&self.system).join(&self.id)
    }

    /// Whether it is its system's current one.
    pub fn is_current(&self) -> bool {
        current_id(&self.root, &self.system).as_ref() == Some(&self.id)
    }

    /// Folder of its pages below `reports/`.
    pub fn folder(&self) -> PathBuf {
        let system = PathBuf::from(&self.system);
        if self.is_current() {
            system
        } else {
            system.join(&self.id)
        }
    }

    /// Ids of the other datasets of its system.
    pub fn siblings(&self) -> Vec<String> {
        let mut ids = datasets_of(&self.root, &self.system);
        ids.retain(|id| *id != self.id);
        ids
    }

    /// From a page of it to `reports/`.
    fn up(&self) -> &'static str {
        if self.is_current() {
            "../"
        } else {
            "../../"
        }
    }
}

fn current_id(root: &Path, system: &str) -> Option<String> {
    current_in(&root.join(DATA).join(system))
}

/// The current dataset of the folder of a system: the id in its `current`, or that of its only dataset.
pub fn current_in(folder: &Path) -> Option<String> {
    if let Ok(text) = std::fs::read_to_string(folder.join(CURRENT)) {
        return Some(text.trim().to_owned());
    }
    match &datasets_in(folder)[..] {
        [only] => Some(only.clone()),
        _ => None,
    }
}

fn datasets_of(root: &Path, system: &str) -> Vec<String> {
    datasets_in(&root.join(DATA).join(system))
}

/// Names of the runs or datasets in a folder, sorted.
pub fn datasets_in(folder: &Path) -> Vec<String> {
    let mut ids = names(folder);
    ids.retain(|id| folder.join(id).join(CAMPAIGN_FILE).is_file());
    ids
}

/// Every published dataset of a root as `SYSTEM/ID`, sorted.
pub fn published(root: &Path) -> Vec<String> {
    names(&root.join(DATA))
        .into_iter()
        .flat_map(|system| {
            let ids = datasets_of(root, &system);
            ids.into_iter().map(move |id| format!("{system}/{id}"))
        })
        .collect()
}

/// Names in a folder, sorted; none where it is not there.
fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    names.sort();
    names
}

/// The current dataset of every system of a root, by system.
pub fn current(root: &Path) -> Vec<Published> {
    names(&root.join(DATA))
        .into_iter()
        .filter_map(|system| {
            Some(Published {
                id: current_id(root, &system)?,
                root: root.to_owned(),
                system,
            })
        })
        .filter(|published| published.path().join(CAMPAIGN_FILE).is_file())
        .collect()
}

/// Where the pages of a dataset go, and what they link to.
#[derive(Debug, Clone)]
pub struct Target {
    /// Folder of the pages.
    pub folder: PathBuf,
    /// What they link to.
    pub place: Place,
    /// The dataset, if it is a published one.
    pub published: Option<Published>,
}

/// The target of a run or of a published dataset.
pub fn target(dataset: &Path) -> Result<Target, ReportError> {
    let catalogue = catalogue_for(dataset)?;
    let Some(published) = Published::at(dataset) else {
        return Ok(Target {
            folder: dataset.join("pages"),
            place: Place {
                evidence: "../".to_owned(),
                catalogue,
                ..Place::default()
            },
            published: None,
        });
    };
    let up = published.up();
    let part = escape::path_part;
    let evidence = format!(
        "{up}../{DATA}/{}/{}/",
        part(&published.system),
        part(&published.id)
    );
    let systems = current(&published.root)
        .into_iter()
        .map(|other| system_link(&other, up))
        .collect::<Result<_, _>>()?;
    Ok(Target {
        folder: published.root.join(REPORTS).join(published.folder()),
        place: Place {
            evidence,
            home: Some(format!("{up}index.md")),
            systems,
            catalogue,
        },
        published: Some(published),
    })
}

/// A system as the pages of another one link to it.
fn system_link(published: &Published, up: &str) -> Result<SystemLink, ReportError> {
    let path = published.path().join(CAMPAIGN_FILE);
    let campaign: CampaignFile = store::read_json(&path).map_err(DatasetError::from)?;
    Ok(SystemLink {
        folder: format!("{up}{}/", escape::path_part(&published.system)),
        candidates: view::candidates_with_page(&campaign),
        targets: view::targets(&campaign).into_iter().collect(),
        id: campaign.system,
    })
}

/// Comparisons below the pages of published datasets.
pub const COMPARE: &str = "compare";

/// Name of a dataset in comparisons: its system for a current one, with its id for another, and the
/// folder's name for a run.
pub fn name_of(path: &Path) -> String {
    match Published::at(path) {
        Some(published) if published.is_current() => published.system,
        Some(published) => format!("{}-{}", published.system, published.id),
        None => {
            let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
            let name = path.file_name().unwrap_or_default();
            name.to_string_lossy().into_owned()
        }
    }
}

/// Where the comparison of two datasets goes, and the page above it: below `reports/` for two
/// published ones of a root, else beside the first.
pub fn comparison_place(a: &Path, b: &Path) -> (PathBuf, Option<String>) {
    match (Published::at(a), Published::at(b)) {
        (Some(x), Some(y)) if x.root == y.root => {
            let folder = x.root.join(REPORTS).join(COMPARE);
            (folder, Some("../index.md".to_owned()))
        }
        // Beside the first that is a run: nothing but datasets belongs into the tree of the published ones.
        (x, y) => {
            let run = [(a, x), (b, y)].into_iter().find(|(_, at)| at.is_none());
            let beside =
                run.map(|(path, _)| path.canonicalize().unwrap_or_else(|_| path.to_owned()));
            let folder = beside.as_deref().and_then(Path::parent);
            (folder.unwrap_or(Path::new(".")).join(COMPARE), None)
        }
    }
}

/// Comparisons that have a page below `reports/`, by stem, with their two datasets where both are
/// published ones.
pub fn comparisons(root: &Path) -> Vec<(String, Option<[PathBuf; 2]>)> {
    let mut by_name = std::collections::BTreeMap::new();
    for system in names(&root.join(DATA)) {
        for id in datasets_of(root, &system) {
            let path = root.join(DATA).join(&system).join(id);
            by_name.insert(name_of(&path), path);
        }
    }
    let files = names(&root.join(REPORTS).join(COMPARE));
    files
        .iter()
        .filter_map(|file| file.strip_suffix(".md"))
        .map(|stem| {
            // A name may hold `--` itself: every split is tried.
            let splits = stem
                .match_indices("--")
                .map(|(at, _)| (&stem[..at], &stem[at + 2..]));
            let found = splits
                .into_iter()
                .find_map(|(a, b)| Some([by_name.get(a)?.clone(), by_name.get(b)?.clone()]));
            (stem.to_owned(), found)
        })
        .collect()
}

/// The current dataset of every system, for the index of systems.
pub fn system_rows(root: &Path, shelf: &mut Shelf) -> Result<Vec<SystemRow>, ReportError> {
    current(root)
        .into_iter()
        .map(|published| {
            let dataset = shelf.take(&published.path())?;
            Ok(SystemRow::of(
                &dataset,
                &escape::path_part(&published.system),
            ))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_outside_a_checkout_has_the_built_in_catalogue() {
        let folder = tempfile::tempdir().unwrap();
        let catalogue = catalogue_for(folder.path()).unwrap();
        assert!(catalogue.find("sign-09", "dove_classic_128").is_some());
    }

    #[test]
    fn the_current_dataset_of_a_system_has_its_folder() {
        let root = tempfile::tempdir().unwrap();
        let data = root.path().join(DATA).join("arm_1");
        for id in ["old", "new"] {
            std::fs::create_dir_all(data.join(id)).unwrap();
            std::fs::write(data.join(id).join("campaign.json"), "{}").unwrap();
        }
        assert_eq!(current(root.path()), [], "two, and none is named");
        std::fs::write(data.join("current"), "new\n").unwrap();
        let new = Published::at(&data.join("new")).unwrap();
        let old = Published::at(&data.join("old")).unwrap();
        let real = root.path().canonicalize().unwrap();
        assert_eq!(current(&real), std::slice::from_ref(&new));
        assert_eq!(new.folder(), Path::new("arm_1"));
        assert_eq!(old.folder(), Path::new("arm_1/old"));
        assert_eq!(Published::at(root.path()), None);
    }
}

//! View models: what each page shows, decided here down to the last cell, footnote and missing mark,
//! as plain data that templates only arrange.

mod aggregate;
mod candidate;
mod charts;
mod common;
mod comparison;
mod environment;
pub mod figures;
mod index;
pub mod memory;
mod method;
mod performance;
mod sizes;
mod study;
mod summary;
mod survey;
mod symmetric;
mod systems;

pub use candidate::CandidatePage;
pub use charts::ChartView;
pub use common::{candidates_with_page, page_name, Place, SystemLink};
pub use comparison::ComparisonPage;
pub use index::IndexPage;
pub use method::MethodPage;
pub use sizes::SizesPage;
pub use study::{StudyPage, STUDY_PAGE};
pub use summary::{targets, RankingPage, SummaryPage};
pub use survey::SymmetricPage;
pub use symmetric::calls_text;
pub use systems::{SystemRow, SystemsPage};

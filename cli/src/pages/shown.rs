//! One result on a page, and which load ran when.

use punctual_analysis::plot::thinned::Thinned;

use crate::report::Report;

/// A load that ran next to a loop, from one cycle to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Loaded {
    /// Its name.
    pub(crate) load: String,
    /// The first cycle that was recorded meanwhile.
    pub(crate) first: u64,
    /// The last one.
    pub(crate) last: u64,
}

/// One result on a page.
#[derive(Debug)]
pub(crate) struct Shown {
    /// Its name on the page: "before", the directory's name, "this run".
    pub(crate) label: String,
    /// Where it was, as the reader may look for it.
    pub(crate) place: String,
    /// A link to a page of its own, relative to this page.
    pub(crate) link: Option<String>,
    /// What it says.
    pub(crate) report: Report,
    /// The time series of each run, where there are samples.
    pub(crate) series: Vec<Option<Thinned>>,
    /// Of each run whose loads took turns: which load ran when, as far as samples show it.
    pub(crate) loaded: Vec<Vec<Loaded>>,
    /// Why a time series is missing, or ends early.
    pub(crate) notes: Vec<String>,
}

impl Shown {
    /// What ran next to a cycle of a run; `None` where that was not recorded.
    pub(crate) fn load_at(&self, run: usize, cycle: u64) -> Option<String> {
        let setup = &self.report.body.runs()[run].setup;
        match self.loaded.get(run).map_or(&[][..], Vec::as_slice) {
            [] if setup.load.len() > 1 => None,
            [] if setup.load.is_empty() => setup.wait.as_ref().map(|_| "none".to_owned()),
            [] => setup.load.first().cloned(),
            // A missed release may lie just after the last sample of a load.
            turns => turns.iter().rfind(|turn| turn.first <= cycle).map(|turn| turn.load.clone()),
        }
    }
}

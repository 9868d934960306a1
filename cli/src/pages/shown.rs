//! One result on a page, and how many of its cycles count there.

use punctual_analysis::plot::thinned::Thinned;

use crate::report::{Report, Run};

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
    /// Why a time series is missing, or ends early.
    pub(crate) notes: Vec<String>,
}

/// Cycles behind the figures of a run: those that were judged, cold ones not.
pub(crate) fn judged(run: &Run) -> u64 {
    let view = &run.outcome.histogram;
    view.buckets.iter().map(|bucket| bucket.2).fold(view.overflow, u64::saturating_add)
}

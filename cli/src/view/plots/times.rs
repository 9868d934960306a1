//! A time series on an axis of seconds.
//!
//! For the drawings, the tables behind them and the axes that all share.

use punctual_analysis::plot::envelope::{Envelope, EnvelopeBin};
use punctual_analysis::plot::thinned::Thinned;

use crate::pages::{Line, Loaded, Page};

/// A time series with its cycles as seconds from the first release.
pub(crate) struct Times<'a> {
    /// The series.
    pub(crate) thinned: &'a Thinned,
    /// What a release without a sample was.
    pub(crate) gaps: &'static str,
    period_s: f64,
}

/// A bin in seconds: its middle, and its bin.
type Placed<'a> = (f64, &'a EnvelopeBin);

impl<'a> Times<'a> {
    /// The time series of a line; `None` without samples.
    pub(crate) fn of(page: &'a Page, line: &Line) -> Option<Self> {
        let run = page.run(line);
        let period_s = run.setup.period_ns? as f64 / 1e9;
        let gaps = if run.outcome.unrecorded > 0 { "missed or unrecorded" } else { "missed" };
        Some(Self { thinned: page.series(line)?, gaps, period_s })
    }

    /// When a cycle was released.
    pub(crate) fn at_s(&self, cycle: u64) -> f64 {
        cycle as f64 * self.period_s
    }

    /// The width of a bin.
    pub(crate) fn width_s(&self, envelope: &Envelope) -> f64 {
        envelope.width() as f64 * self.period_s
    }

    /// Bins with their middles; `None` where the loop did not run in between.
    pub(crate) fn placed<'e>(&self, envelope: &'e Envelope) -> Vec<Option<Placed<'e>>> {
        let mut placed: Vec<Option<Placed<'e>>> = Vec::new();
        let mut next = None;
        for bin in envelope.bins() {
            let far = envelope.width().saturating_mul(2).max(8);
            if next.is_some_and(|next: u64| bin.first > next.saturating_add(far)) {
                placed.push(None);
            }
            let middle = self.at_s(bin.first) + self.width_s(envelope) / 2.0;
            placed.push(Some((middle, bin)));
            next = bin.first.checked_add(envelope.width());
        }
        placed
    }

    /// From when to when which load ran, in seconds.
    pub(crate) fn loads(&self, loaded: &[Loaded]) -> Vec<(f64, f64, String)> {
        let span = |of: &Loaded| {
            (self.at_s(of.first), self.at_s(of.last.saturating_add(1)), of.load.clone())
        };
        loaded.iter().map(span).collect()
    }

    pub(super) fn end_s(&self) -> f64 {
        let envelope = &self.thinned.envelope;
        let last = envelope.bins().last().map_or(0, |bin| bin.first);
        self.at_s(last) + self.width_s(envelope)
    }

    pub(super) fn lowest_ns(&self) -> f64 {
        let all = self.thinned.envelope.bins().iter().map(|bin| bin.min_ns as f64);
        all.filter(|ns| *ns > 0.0).fold(f64::INFINITY, f64::min)
    }

    pub(super) fn highest_ns(&self) -> f64 {
        let all = self.thinned.envelope.bins().iter().map(|bin| bin.max_ns as f64);
        all.fold(1.0, f64::max)
    }
}

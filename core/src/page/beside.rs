//! A page kept beside what else a single loop keeps.
//!
//! For loops of one grid, whose record hears of wakes. Changes nothing of what the record hears.

use super::{At, Page};
use crate::dispatch::Overruns;
use crate::executive::Record;
use crate::releases::Releases;
use crate::sample::Sample;

/// A record, and a page that hears the same.
#[derive(Debug)]
pub struct Beside<'a, R> {
    /// Hears everything first.
    pub record: R,
    /// Keeps counters and histogram.
    pub page: Page<'a>,
    /// The loop's, for the instants of releases.
    pub grid: Releases,
}

impl<R: Record> Record for Beside<'_, R> {
    #[inline]
    fn push(&mut self, sample: Sample) {
        self.record.push(sample);
        let at = At { release: self.grid.release(sample.cycle), cycle: sample.cycle };
        self.page.keep(at, sample.lateness, 0, Overruns::default());
    }

    #[inline]
    fn miss(&mut self, releases: u64) {
        self.record.miss(releases);
        self.page.missed(releases);
    }
}

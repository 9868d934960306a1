//! A distribution as counts: what the histogram formats are written from.
//!
//! For the formats that are histograms. Plain data; computes nothing that the counts do not hold.

use punctual_analysis::histogram::{Bucket, Histogram};

/// The columns of a table of histograms, in order.
pub const COLUMNS: [&str; 5] = ["run", "cpu", "lower_ns", "upper_ns", "count"];

/// The lateness of one run, counted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LatenessHistogram {
    /// The run's name; a plain one, unlike that of any other ([`crate::name`]).
    pub run: String,
    /// CPU it ran on, where that is known.
    pub cpu: Option<u32>,
    /// Smallest value, exact, ns; `None` without values.
    pub min_ns: Option<i64>,
    /// Largest value, exact, ns; `None` without values.
    pub max_ns: Option<i64>,
    /// Mean, ns.
    pub mean_ns: Option<f64>,
    /// The buckets that hold a value, in rising order.
    pub buckets: Vec<Bucket>,
    /// Values of magnitude 2⁴² ns (73 min) or more, which are in no bucket.
    pub overflow: u64,
}

impl LatenessHistogram {
    /// All values.
    pub fn count(&self) -> u64 {
        let counts = self.buckets.iter().map(|bucket| bucket.count);
        counts.fold(self.overflow, u64::saturating_add)
    }

    /// Sets counts and range from a histogram in full resolution.
    #[must_use]
    pub fn with(self, histogram: &Histogram) -> Self {
        Self {
            min_ns: histogram.min(),
            max_ns: histogram.max(),
            buckets: histogram.buckets().collect(),
            overflow: histogram.overflow(),
            ..self
        }
    }
}

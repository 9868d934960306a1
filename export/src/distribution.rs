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
    /// Values that are in no bucket: of magnitude 2⁴² ns (73 min) or more, or not known.
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

    /// Makes the overflow a bucket of its own, where it is what lies beyond another program's
    /// histogram, which ends at `limit_ns` or else with its last bucket, and no value is above
    /// `most_ns`. Not for values of unknown lateness: those may be larger.
    #[must_use]
    pub fn with_bounded_overflow(mut self, limit_ns: Option<i64>, most_ns: i64) -> Self {
        let last_end_ns = self.buckets.last().map(|last| last.highest_ns.saturating_add(1));
        if self.overflow > 0
            && let Some(lowest_ns) = limit_ns.max(last_end_ns)
            && lowest_ns <= most_ns
        {
            self.buckets.push(Bucket { lowest_ns, highest_ns: most_ns, count: self.overflow });
            self.overflow = 0;
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hdr::{self, IntervalHistogram};
    use crate::openmetrics::{self, Labels, MetricFamily, Points};
    use std::time::Duration;

    /// 20 values in a histogram that ends at 100 µs, and 11 beyond it; the largest is 147 µs.
    fn imported() -> LatenessHistogram {
        LatenessHistogram {
            run: "r".to_owned(),
            min_ns: Some(3_000),
            max_ns: Some(147_000),
            buckets: vec![Bucket { lowest_ns: 3_000, highest_ns: 3_999, count: 20 }],
            overflow: 11,
            ..LatenessHistogram::default()
        }
    }

    fn table(run: LatenessHistogram) -> String {
        let mut out = Vec::new();
        crate::csv::histograms(&mut out, &[run]).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_bounded_overflow_has_its_bounds_in_every_format() {
        let bounded = imported().with_bounded_overflow(Some(100_000), 147_999);
        assert_eq!(bounded.count(), 31);
        let mut out = Vec::new();
        let lateness = bounded.clone();
        let runs = [IntervalHistogram { lateness, duration: Duration::ZERO }];
        hdr::write(&mut out, &runs, None, &[]).unwrap();
        let log = String::from_utf8(out).unwrap();
        assert!(log.contains("n = 31, exact min_ns = 3000, exact max_ns = 147000\n"), "{log}");
        let mut out = Vec::new();
        let points = Points::Histograms(vec![(Labels::new(), bounded.clone())]);
        let family = MetricFamily { name: "a_seconds", unit: "seconds", help: "A.", points };
        openmetrics::write(&mut out, &[family]).unwrap();
        let metrics = String::from_utf8(out).unwrap();
        for line in ["le=\"0.000131071\"} 20\n", "le=\"0.000196607\"} 31\n", "le=\"+Inf\"} 31\n"] {
            assert!(metrics.contains(line), "{line} in {metrics}");
        }
        let rows = table(bounded);
        assert!(rows.ends_with("\nr,,3000,4000,20\nr,,100000,148000,11\n"), "{rows}");
    }

    #[test]
    fn without_a_maximum_above_the_end_an_overflow_stays_open() {
        for run in [imported(), imported().with_bounded_overflow(Some(100_000), 99_999)] {
            assert!(table(run).ends_with("\nr,,,,11\n"));
        }
        let without_limit = table(imported().with_bounded_overflow(None, 147_999));
        assert!(without_limit.ends_with("\nr,,4000,148000,11\n"), "{without_limit}");
    }
}

//! What a campaign counted of the event of a claim.
//!
//! Exact where its threshold was watched from the first cycle on. Otherwise between the nearest
//! watched thresholds or by the buckets of the histogram, whichever is narrower. Reads nothing.

use super::total::Total;
use crate::claim::ask::{Ask, ClaimEvent};
use crate::claim::dependence::{Separate, Tails};
use crate::claim::judge::EventCount;
use crate::histogram::Histogram;
use crate::recording::MISSED;

/// Thresholds to watch in addition to the ladder, ns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WatchedThresholds {
    /// Of lateness.
    pub lateness_ns: Vec<i64>,
    /// Of the distance of intervals from zero.
    pub interval_ns: Vec<i64>,
}

impl Total {
    /// What was counted of the event of a claim.
    pub fn counted(&self, ask: &Ask) -> EventCount {
        let tails = self.tails();
        let unrecorded = self.effort().unrecorded;
        match ask.event() {
            ClaimEvent::Lateness { above_ns } => {
                let known = self.lateness().known();
                let seen = buckets(known.histogram(), above_ns, false);
                narrowed(tails.counted(above_ns), &seen, self.lateness().unknown())
            }
            ClaimEvent::Interval { above_ns } => {
                let of = self.interval().histogram();
                let seen = buckets(of, above_ns, true);
                let watched = self.interval_tails().map(|watched| watched.counted(above_ns));
                // A campaign of a version that did not watch intervals has their histogram alone.
                let counted = watched.map_or(seen, |counted| narrowed(counted, &seen, 0));
                counted.with_unseen(unrecorded)
            }
            ClaimEvent::Missed => match self.release_tails() {
                Some(releases) => releases.counted(MISSED),
                None => missed_of(&tails, self.effort().missed),
            },
        }
    }
}

/// The releases of a campaign that did not watch which of them were missed.
fn missed_of(tails: &Tails, missed: u64) -> EventCount {
    let n = tails.n() - tails.unrecorded();
    let (least, most, separate) = (missed, missed, Separate::Unknown);
    EventCount { n, least, most, theta: 1.0, separate, ordered: false }
}

/// Narrows the counts of a threshold by the buckets of the same values; `without` more values are
/// in no bucket.
fn narrowed(counted: EventCount, buckets: &EventCount, without: u64) -> EventCount {
    let least = counted.least.max(buckets.least);
    let most = counted.most.min(buckets.most.saturating_add(without));
    EventCount { least, most: most.max(least), ..counted }
}

/// Counts from the buckets; with `both`, of the distance from zero.
fn buckets(values: &Histogram, above_ns: i64, both: bool) -> EventCount {
    let cut = values.buckets().map(|bucket| match both && bucket.highest_ns < 0 {
        true => (-bucket.highest_ns, -bucket.lowest_ns, bucket.count),
        false => (bucket.lowest_ns, bucket.highest_ns, bucket.count),
    });
    EventCount::of_buckets(above_ns, cut, values.overflow())
}

#[cfg(test)]
mod tests {
    use punctual_core::sample::{Flags, Sample};
    use punctual_core::time::{Instant, Period, Span};

    use super::super::{Effort, Start};
    use super::*;
    use crate::recording::{Recording, RecordingConfig};

    const ASKS: [&str; 4] =
        ["p(lateness>50us)<0.1", "p(lateness>61us)<0.1", "p(|interval|>30us)<0.1", "p(missed)<0.1"];

    /// Cycles of 1 ms, bursts of late ones, a missed release now and then.
    fn samples(seed: u64) -> Vec<Sample> {
        let mut cycle = 0;
        let sample = |k: u64| {
            let mixed = (seed * 9_000 + k).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
            let late = (k / 5).wrapping_mul(0x9e37_79b9) >> 8 & 63 == 0;
            cycle += if mixed.is_multiple_of(400) { 3 } else { 1 };
            let ns = if late { 40_000 } else { 5_000 } + (mixed % 30_000) as i64;
            let flags = if k == 0 { Flags::FIRST } else { Flags::NONE };
            Sample { cycle, lateness: Span::from_ns(ns), flags }
        };
        (0..6_000).map(sample).collect()
    }

    fn start() -> Start {
        Start {
            period: Period::from_ns(1_000_000).expect("positive"),
            epoch: Instant::from_ns(0),
            time_of_day_ns: 0,
            leave_out_cold: true,
            boot: 1,
        }
    }

    #[test]
    fn a_campaign_counts_as_one_recording_of_it_does() {
        let asks = ASKS.map(|text| Ask::parse(text).expect("a claim"));
        let watched = WatchedThresholds { lateness_ns: vec![61_000], interval_ns: vec![30_000] };
        let mut total = Total::default();
        let setup = RecordingConfig {
            period: Period::from_ns(1_000_000),
            thresholds_ns: vec![61_000],
            ..RecordingConfig::default()
        };
        let mut whole = Recording::new(setup).watching(&asks);
        for seed in 0..4 {
            let mut batch = total.collector(start(), &watched);
            batch.extend(&samples(seed));
            whole.extend(&samples(seed));
            let missed = batch.gaps();
            total.add(batch, &Effort { missed, ..Effort::default() });
        }
        let whole = whole.finish(0);
        for ask in &asks {
            let (counted, one) = (total.counted(ask), whole.counted(ask).expect("watched"));
            assert_eq!((counted.n, counted.least, counted.most), (one.n, one.least, one.most));
            assert!(counted.least > 0 && counted.ordered, "{ask}: {counted:?}");
            assert!((counted.theta - one.theta).abs() < 0.1, "{ask}: {counted:?} {one:?}");
        }
        assert!(total.counted(&asks[2]).theta < 1.0, "one late wake makes two intervals");
        let text = serde_json::to_string(&total).expect("JSON");
        let back: Total = serde_json::from_str(&text).expect("a total");
        assert_eq!(back, total);
    }

    #[test]
    fn what_was_not_watched_lies_between_and_what_was_lost_counts() {
        let mut total = Total::default();
        let mut batch = total.collector(start(), &WatchedThresholds::default());
        batch.extend(&samples(1));
        let missed = batch.gaps() - 7;
        total.add(batch, &Effort { missed, unrecorded: 7, ..Effort::default() });
        let requested = |text| total.counted(&Ask::parse(text).expect("a claim"));
        let late = requested("p(lateness>61us)<0.1");
        let exact = samples(1).iter().filter(|s| s.lateness.as_ns() > 61_000).count() as u64;
        // A missed release was later than this; one that nobody saw may have been.
        assert!(late.least <= exact + missed, "{late:?} {exact}");
        assert!((exact + missed + 7..exact + missed + 67).contains(&late.most), "{late:?} {exact}");
        let missed = requested("p(missed)<0.1");
        assert_eq!((missed.least, missed.most), (total.effort().missed, total.effort().missed));
        let interval = requested("p(|interval|>30us)<0.1");
        assert!(interval.most >= interval.least + 7);
    }
}

//! The events that claims ask about, counted exactly while samples stream by.
//!
//! Lateness is watched anyway, with the requested thresholds among its own; |interval| and missed
//! releases only when a claim asks, so that nobody else pays. Constant memory.

use crate::claim::ask::{Ask, ClaimEvent};
use crate::claim::dependence::{Exceedances, Tails};
use crate::claim::judge::EventCount;
use crate::release::ReleaseGap;

/// What is watched beside lateness.
#[derive(Clone, Debug, Default)]
pub(super) struct Requested {
    /// |interval|.
    interval: Option<Exceedances>,
    /// Releases: 0 for each that ran, beyond any threshold for each that did not.
    missed: Option<Exceedances>,
}

/// The exceedances of the quantities that claims ask about other than lateness, counted.
#[derive(Clone, Debug, Default)]
pub struct RequestedTails {
    /// Distances of intervals from zero.
    interval: Option<Tails>,
    /// Releases, as [`Requested`] has them.
    missed: Option<Tails>,
}

impl RequestedTails {
    /// From what was watched; `None` of what was not.
    pub fn of(interval: Option<Tails>, missed: Option<Tails>) -> Self {
        Self { interval, missed }
    }
}

/// Any threshold between a release that ran and one that did not.
pub(crate) const MISSED: i64 = 1;

impl Requested {
    pub(super) fn new(asks: &[Ask]) -> Self {
        let thresholds: Vec<i64> = asks.iter().filter_map(|ask| ask.interval_ns()).collect();
        let missed = asks.iter().any(|ask| ask.event() == ClaimEvent::Missed);
        Self {
            interval: (!thresholds.is_empty()).then(|| Exceedances::new(0, &thresholds)),
            missed: missed.then(|| Exceedances::new(0, &[MISSED])),
        }
    }

    #[inline]
    pub(super) fn push_interval(&mut self, interval_ns: i64) {
        if let Some(interval) = &mut self.interval {
            interval.push(interval_ns.saturating_abs(), 0, 0);
        }
    }

    /// One release that ran.
    #[inline]
    pub(super) fn push_release(&mut self) {
        if let Some(releases) = &mut self.missed {
            releases.push(0, 0, 0);
        }
    }

    /// Releases that did not.
    pub(super) fn miss(&mut self, missed: u64) {
        if let Some(releases) = &mut self.missed {
            releases.miss(ReleaseGap::new(missed, 0, 0, 0));
        }
    }

    /// Intervals of releases that ran, with none missed between.
    #[inline]
    pub(super) fn extend(&mut self, interval_ns: &[i64]) {
        if self.interval.is_some() || self.missed.is_some() {
            for &ns in interval_ns {
                self.push_interval(ns);
                self.push_release();
            }
        }
    }

    pub(super) fn finish(self, missed: u64) -> RequestedTails {
        RequestedTails {
            interval: self.interval.map(|interval| interval.finish(0)),
            missed: self.missed.map(|releases| releases.finish(missed)),
        }
    }

    /// What [`Self::finish`] would give now; the run goes on.
    pub(super) fn so_far(&self, missed: u64) -> RequestedTails {
        self.clone().finish(missed)
    }
}

/// What was counted of the event of a claim: of lateness by `lateness`, which holds `latenesses`
/// recorded ones of `cycles`. `unrecorded` more cycles ran: any of them may have been late.
///
/// # Errors
/// In one line, why the data do not show it.
pub(super) fn counted(
    ask: &Ask,
    lateness: &Tails,
    (latenesses, cycles, unrecorded): (u64, u64, u64),
    requested: &RequestedTails,
) -> Result<EventCount, String> {
    match ask.event() {
        ClaimEvent::Lateness { .. } if latenesses == 0 && cycles > 0 => {
            Err("it is about lateness, and this run holds none".to_owned())
        }
        ClaimEvent::Lateness { above_ns } => Ok(lateness.counted(above_ns)),
        ClaimEvent::Interval { above_ns } => match &requested.interval {
            Some(interval) => Ok(interval.counted(above_ns).with_unseen(unrecorded)),
            None => Err("it is about intervals, and these data do not hold them".to_owned()),
        },
        ClaimEvent::Missed => match &requested.missed {
            Some(releases) => Ok(releases.counted(MISSED)),
            None => Err("these data do not record which releases were missed".to_owned()),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Recording, RecordingConfig, ReleaseInstants};
    use super::*;
    use proptest::prelude::*;
    use punctual_core::sample::{Flags, Sample};
    use punctual_core::time::{Period, Span};

    fn ask(text: &str) -> Ask {
        Ask::parse(text).unwrap()
    }

    fn asks() -> [Ask; 3] {
        ["p(lateness>777ns)<0.1", "p(|interval|>777ns)<0.1", "p(missed)<0.1"].map(ask)
    }

    fn recording(cycles: &[(u64, i64)], releases: ReleaseInstants) -> Recording {
        let setup = RecordingConfig {
            period: Period::from_ns(10_000),
            thresholds_ns: vec![777],
            releases,
            ..RecordingConfig::default()
        };
        let mut recording = Recording::new(setup).watching(&asks());
        for &(cycle, ns) in cycles {
            let lateness = Span::from_ns(ns);
            recording.push(&Sample { cycle, lateness, flags: Flags::NONE });
        }
        recording
    }

    #[test]
    fn what_was_not_watched_or_not_recorded_is_an_error() {
        let samples = [(0, 5), (1, 900), (2, 5)];
        let [lateness, interval, missed] = asks();
        let instants = recording(&samples, ReleaseInstants::Unknown).finish(0);
        assert!(instants.counted(&lateness).unwrap_err().contains("holds none"));
        assert_eq!(instants.counted(&interval).map(|c| (c.least, c.n)), Ok((2, 2)));
        assert_eq!(instants.counted(&missed).map(|c| (c.least, c.n)), Ok((0, 3)));
        let plain = Recording::new(RecordingConfig::default()).finish(0);
        assert!(plain.counted(&missed).is_err() && plain.counted(&interval).is_err());
        assert_eq!(plain.counted(&lateness).map(|c| c.n), Ok(0));
        // A threshold between two that were watched.
        let recorded = recording(&samples, ReleaseInstants::Known).finish(0);
        let between = recorded.counted(&ask("p(lateness>600ns)<0.1")).unwrap();
        assert_eq!((between.least, between.most), (1, 1));
        let near = recording(&[(0, 5), (1, 900), (2, 760)], ReleaseInstants::Known).finish(0);
        let between = near.counted(&ask("p(lateness>700ns)<0.1")).unwrap();
        assert_eq!((between.least, between.most), (1, 2));
    }

    #[test]
    fn what_went_unrecorded_may_have_been_late_and_was_not_missed() {
        let samples: Vec<(u64, i64)> = (0..100).map(|k| (k, 5)).collect();
        let outcome = recording(&samples, ReleaseInstants::Known).finish_with(0, 30);
        let [lateness, interval, missed] = asks().map(|ask| outcome.counted(&ask).unwrap());
        assert_eq!((lateness.n, lateness.least, lateness.most), (130, 0, 30));
        assert_eq!((interval.n, interval.least, interval.most), (129, 0, 30));
        assert_eq!((missed.n, missed.least, missed.most), (100, 0, 0));
    }

    #[test]
    fn releases_missed_after_the_last_cycle_count() {
        let outcome = recording(&[(0, 5), (3, 5)], ReleaseInstants::Known).finish_with(6, 0);
        let missed = outcome.counted(&asks()[2]).unwrap();
        assert_eq!((missed.n, missed.least, missed.most), (8, 6, 6));
    }

    proptest! {
        // Each case finishes whole recordings, histograms and all.
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn every_count_is_exact_at_every_time(
            steps in prop::collection::vec((1u64..4, 0i64..2_000), 1..400),
            cut in 0usize..400,
        ) {
            let mut cycle = 0;
            let cycles: Vec<(u64, i64)> = steps
                .iter()
                .map(|&(step, ns)| {
                    cycle += step;
                    (cycle, ns)
                })
                .collect();
            let cut = &cycles[..cut.clamp(1, cycles.len())];
            let gaps: u64 = cut.windows(2).map(|pair| pair[1].0 - pair[0].0 - 1).sum();
            let late = cut.iter().filter(|cycle| cycle.1 > 777).count() as u64;
            let far = cut.windows(2).filter(|pair| {
                let apart = (pair[1].0 - pair[0].0 - 1) as i64 * 10_000;
                (pair[1].1 - pair[0].1 + apart).abs() > 777
            });
            // A missed release is a period late at least, which is beyond the threshold.
            let expected = [
                (late + gaps, cut.len() as u64 + gaps),
                (far.count() as u64, cut.len() as u64 - 1),
                (gaps, cut.len() as u64 + gaps),
            ];
            let running = recording(cut, ReleaseInstants::Known);
            for (ask, (count, n)) in asks().iter().zip(expected) {
                let so_far = running.counted_so_far(ask).unwrap();
                let finished = running.clone().finish(0).counted(ask).unwrap();
                for counted in [so_far, finished] {
                    prop_assert_eq!((counted.least, counted.most, counted.n), (count, count, n));
                    prop_assert!(counted.theta > 0.0 && counted.theta <= 1.0);
                }
            }
        }
    }
}

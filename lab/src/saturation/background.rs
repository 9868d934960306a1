//! The work behind: polygons of a thread without privilege on the measured CPU, and what of their
//! rate is left at a frequency.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use punctual::session::ThreadSession;
use punctual_os::scheduler::SchedPolicy;

use super::outcome::{BackgroundRow, TrialRow};
use crate::load::Polygons;

/// Trials with a smaller share of the background left do not say what a stimulus costs: the floor
/// that the kernel guarantees bends the line.
const LINEAR: f64 = 0.5;

/// The thread's counter, and its end.
#[derive(Debug, Default)]
pub(super) struct Background {
    drawn: AtomicU64,
    over: AtomicBool,
}

impl Background {
    /// Draws on `cpu` until [`Background::end`].
    pub(super) fn draw(&self, cpu: u32) {
        let _session = ThreadSession::enter(Some(cpu), SchedPolicy::Other);
        let mut polygons = Polygons::new(0);
        while !self.over.load(Ordering::Relaxed) {
            polygons.draw();
            self.drawn.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The polygons so far.
    pub(super) fn drawn(&self) -> &AtomicU64 {
        &self.drawn
    }

    pub(super) fn end(&self) {
        self.over.store(true, Ordering::Relaxed);
    }
}

/// What the trials beside the background show; `rate` is its own without stimuli.
pub(super) fn row(trials: &[TrialRow], rate: f64) -> BackgroundRow {
    let known: Vec<(f64, f64)> =
        trials.iter().filter_map(|trial| Some((trial.hz, trial.background_share?))).collect();
    let first_below = |share: f64| {
        let below = known.iter().filter(|(_, left)| *left < share).map(|(hz, _)| *hz);
        below.min_by(f64::total_cmp)
    };
    let linear = || known.iter().filter(|(_, left)| *left >= LINEAR);
    let taken: f64 = linear().map(|(hz, left)| hz * (1.0 - left)).sum();
    let squares: f64 = linear().map(|(hz, _)| hz * hz).sum();
    let cost_s = (squares > 0.0).then_some(taken / squares).filter(|cost| *cost > 0.0);
    BackgroundRow {
        rate,
        sf50_hz: first_below(0.5),
        sf10_hz: first_below(0.1),
        dead_hz: first_below(f64::MIN_POSITIVE),
        least_share: known.iter().map(|(_, left)| *left).min_by(f64::total_cmp),
        cost_ns: cost_s.map(|cost| cost * 1e9),
        predicted_hz: cost_s.map(|cost| 1.0 / cost),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trial(hz: f64, share: Option<f64>) -> TrialRow {
        TrialRow { hz, background_share: share, ..TrialRow::default() }
    }

    #[test]
    fn the_cost_of_a_stimulus_is_the_slope_of_what_is_taken() {
        // 20 µs a stimulus, and 5 % that the kernel guarantees.
        let at = |hz: f64| trial(hz, Some((1.0 - hz * 20e-6).max(0.05)));
        let all = [1_000.0, 5_000.0, 20_000.0, 26_000.0, 46_000.0, 60_000.0].map(at);
        let row = row(&all, 7.0);
        assert!(row.cost_ns.is_some_and(|ns| (ns - 20_000.0).abs() < 1.0), "{row:?}");
        assert!(row.predicted_hz.is_some_and(|hz| (hz - 50_000.0).abs() < 5.0), "{row:?}");
        assert_eq!((row.sf50_hz, row.sf10_hz), (Some(26_000.0), Some(46_000.0)));
        assert_eq!((row.least_share, row.rate, row.dead_hz), (Some(0.05), 7.0, None));
    }

    #[test]
    fn the_background_is_dead_where_nothing_is_left() {
        let all = [(1_000.0, 0.9), (2_000.0, 0.001), (4_000.0, 0.0), (8_000.0, 0.0)];
        let row = row(&all.map(|(hz, left)| trial(hz, Some(left))), 7.0);
        assert_eq!((row.dead_hz, row.sf10_hz), (Some(4_000.0), Some(2_000.0)));
    }

    #[test]
    fn without_trials_nothing_is_known() {
        let row = row(&[trial(1_000.0, None)], 7.0);
        assert_eq!((row.cost_ns, row.sf50_hz, row.least_share), (None, None, None));
    }
}

//! The settings that make a loop less late, found by trying: each alone in blocks that alternate
//! with blocks without any, then those that helped again on fresh blocks, then all that are left
//! together.
//!
//! Decides what is measured and what counts; [`Measure`] changes settings and runs loops. Pure.

use punctual_analysis::compare::exceedances;
use punctual_analysis::compare::series::LatenessSeries;
use punctual_analysis::compare::{RateRatio, Verdict};
use punctual_core::time::Span;

/// The parts of the time, in percent: for the threshold, for each setting alone, for those that
/// helped once more, for all of these together.
const SHARES: [i64; 4] = [10, 50, 25, 15];
/// So often each set of settings has its turn, at least: fewer blocks would not show how they
/// scatter.
const ROUNDS_MIN: i64 = 4;
/// Each set of settings has its turn no more often than this.
const ROUNDS_MAX: i64 = 40;
/// The least time of a block.
const BLOCK_MIN: Span = Span::from_ms(500);
/// The time of a block where there is enough.
const BLOCK: Span = Span::from_ms(2_000);

/// A tail of the lateness.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum CountedTail {
    /// Releases that are later than this, ns.
    Above(i64),
    /// Releases that are later than this quantile without any of the settings; in (0, 1).
    Quantile(f64),
}

/// Sets of settings by their numbers, to be measured in turn; the empty one is the reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingSets {
    /// The sets.
    pub sets: Vec<Vec<usize>>,
    /// Turns of each set.
    pub rounds: i64,
    /// Time of all turns together.
    pub length: Span,
    /// Releases that are later than this count, ns; `None` where that is to be found out.
    pub threshold_ns: Option<i64>,
}

/// The caller's part of a search: it changes settings and measures.
pub trait Measure {
    /// Why nothing was measured.
    type Error;

    /// The lateness under each set; `None` where it was stopped.
    ///
    /// # Errors
    /// Why nothing was measured.
    fn measure(&mut self, sets: &SettingSets) -> Result<Option<Vec<LatenessSeries>>, Self::Error>;
}

/// The result of one setting.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SettingTrial {
    /// With it (B) and without (A), in the first blocks.
    pub first: Option<RateRatio>,
    /// Its ratio in fresh blocks, where it helped in the first.
    pub again: Option<RateRatio>,
}

impl SettingTrial {
    /// Returns true where it was better both times.
    pub fn helps(&self) -> bool {
        let is_better = |ratio: &Option<RateRatio>| {
            ratio.as_ref().is_some_and(|ratio| ratio.verdict == Verdict::Better)
        };
        is_better(&self.first) && is_better(&self.again)
    }
}

/// The results of all settings.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TuningTrials {
    /// Later than this counts, ns.
    pub threshold_ns: i64,
    /// The result of each setting, in the order of the settings.
    pub settings: Vec<SettingTrial>,
    /// All that help at once (B) and none (A).
    pub together: Option<RateRatio>,
    /// True where it was stopped early.
    pub stopped: bool,
}

impl TuningTrials {
    /// The settings to keep: those that help, unless all of them together do harm.
    pub fn kept(&self) -> Vec<usize> {
        let harms = self.together.as_ref().is_some_and(|ratio| ratio.verdict == Verdict::Worse);
        if harms || self.stopped {
            return Vec::new();
        }
        (0..self.settings.len()).filter(|&at| self.settings[at].helps()).collect()
    }
}

/// The least time in which so many settings can be tried.
pub fn least(settings: usize) -> Span {
    let sets = i64::try_from(settings).unwrap_or(i64::MAX).saturating_add(1);
    let blocks = sets.saturating_mul(ROUNDS_MIN);
    Span::from_ns(blocks.saturating_mul(BLOCK_MIN.as_ns()).saturating_mul(100) / SHARES[1])
}

/// Tries `settings` settings in `length` altogether.
///
/// # Errors
/// As [`Measure::measure`].
pub fn try_settings<M: Measure>(
    settings: usize,
    (tail, length): (CountedTail, Span),
    bench: &mut M,
) -> Result<TuningTrials, M::Error> {
    let share = |at: usize| Span::from_ns(length.as_ns() / 100 * SHARES[at]);
    let mut trials = TuningTrials {
        settings: vec![SettingTrial::default(); settings],
        stopped: true,
        ..TuningTrials::default()
    };
    trials.threshold_ns = match tail {
        CountedTail::Above(ns) => ns,
        CountedTail::Quantile(p) => {
            let Some(found) = bench.measure(&sets(Vec::new(), share(0), None))? else {
                return Ok(trials);
            };
            found.first().and_then(|series| series.quantile_ns(p)).unwrap_or_default()
        }
    };
    let threshold_ns = trials.threshold_ns;
    let mut compared = |combinations: Vec<Vec<usize>>, length: Span| {
        let found = bench.measure(&sets(combinations, length, Some(threshold_ns)))?;
        Ok(found.map(|found| {
            let pairs: Vec<[&LatenessSeries; 2]> = match found.split_first() {
                Some((reference, tried)) => {
                    tried.iter().map(|series| [reference, series]).collect()
                }
                None => Vec::new(),
            };
            exceedances(&pairs, threshold_ns)
        }))
    };
    let each = (0..settings).map(|at| vec![at]).collect();
    let Some(found) = compared(each, share(1))? else { return Ok(trials) };
    for (trial, first) in trials.settings.iter_mut().zip(found) {
        trial.first = first;
    }
    let is_better = |ratio: &RateRatio| ratio.verdict == Verdict::Better;
    let helped = |at: &usize| trials.settings[*at].first.as_ref().is_some_and(is_better);
    let helped: Vec<usize> = (0..settings).filter(helped).collect();
    if !helped.is_empty() {
        let alone = helped.iter().map(|&at| vec![at]).collect();
        let Some(found) = compared(alone, share(2))? else { return Ok(trials) };
        for (at, again) in helped.into_iter().zip(found) {
            trials.settings[at].again = again;
        }
    }
    let left: Vec<usize> = (0..settings).filter(|&at| trials.settings[at].helps()).collect();
    if left.len() > 1 {
        let Some(found) = compared(vec![left], share(3))? else { return Ok(trials) };
        trials.together = found.into_iter().next().flatten();
    }
    trials.stopped = false;
    Ok(trials)
}

/// The reference and these sets, in blocks of about [`BLOCK`].
fn sets(combinations: Vec<Vec<usize>>, length: Span, threshold_ns: Option<i64>) -> SettingSets {
    let mut sets = vec![Vec::new()];
    sets.extend(combinations);
    let count = i64::try_from(sets.len()).unwrap_or(i64::MAX);
    let rounds = length.as_ns() / BLOCK.as_ns().saturating_mul(count);
    SettingSets { sets, rounds: rounds.clamp(ROUNDS_MIN, ROUNDS_MAX), length, threshold_ns }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use punctual_analysis::compare::series::Builder;
    use punctual_analysis::rng::Rng;
    use punctual_core::sample::Sample;

    use super::*;

    /// Loops whose late cycles come in bursts; `factors` say how much rarer each setting makes
    /// them.
    struct Bench<'a> {
        factors: &'a [f64],
        rng: Rng,
        measured: Vec<SettingSets>,
        stops_after: usize,
    }

    impl<'a> Bench<'a> {
        fn new(factors: &'a [f64], seed: u64) -> Self {
            Self { factors, rng: Rng::new(seed), measured: Vec::new(), stops_after: usize::MAX }
        }

        fn uniform(&mut self) -> f64 {
            (self.rng.bits() >> 11) as f64 / (1u64 << 53) as f64
        }

        fn series(&mut self, share: f64, cycles: u64) -> LatenessSeries {
            let mut builder = Builder::new(1_000_000, false);
            let mut late = 0;
            for cycle in 0..cycles {
                // Bursts of three.
                if late == 0 && self.uniform() < share / 3.0 {
                    late = 3;
                }
                let lateness_ns = if late > 0 { 200_000 } else { 30_000 };
                late = u64::saturating_sub(late, 1);
                let lateness = Span::from_ns(lateness_ns);
                builder.push(&Sample { cycle, lateness, ..Sample::default() });
            }
            builder.finish(0)
        }
    }

    impl Measure for Bench<'_> {
        type Error = Infallible;

        fn measure(
            &mut self,
            sets: &SettingSets,
        ) -> Result<Option<Vec<LatenessSeries>>, Infallible> {
            self.measured.push(sets.clone());
            if self.measured.len() > self.stops_after {
                return Ok(None);
            }
            let cycles = sets.length.as_ns() / 1_000_000 / i64::try_from(sets.sets.len()).unwrap();
            let factor = |set: &Vec<usize>| set.iter().map(|&at| self.factors[at]).product();
            let factors: Vec<f64> = sets.sets.iter().map(factor).collect();
            let series = |factor: &f64| self.series(0.02 * factor, cycles.unsigned_abs());
            Ok(Some(factors.iter().map(series).collect()))
        }
    }

    fn run(factors: &[f64], seed: u64) -> (TuningTrials, Vec<SettingSets>) {
        let mut bench = Bench::new(factors, seed);
        let ask = (CountedTail::Above(100_000), Span::from_ms(100_000));
        let Ok(trials) = try_settings(factors.len(), ask, &mut bench);
        (trials, bench.measured)
    }

    #[test]
    fn what_helps_is_kept_what_harms_or_does_nothing_is_not() {
        let (trials, measured) = run(&[0.3, 1.0, 2.0, 0.25], 7);
        assert_eq!(trials.kept(), [0, 3]);
        let first = |at: usize| trials.settings[at].first.clone().unwrap();
        assert_eq!(first(2).verdict, Verdict::Worse);
        assert!(first(0).upper.is_some_and(|upper| upper < 1.0));
        assert!(trials.settings[1].again.is_none(), "measured again for nothing");
        let together = trials.together.clone().unwrap();
        assert!(together.ratio.is_some_and(|ratio| ratio < 0.3), "{together:?}");
        let lengths = measured.iter().map(|sets| sets.length.as_ns());
        assert_eq!(lengths.sum::<i64>(), 90_000_000_000, "without the part for the threshold");
        assert!(measured.iter().all(|sets| sets.threshold_ns == Some(trials.threshold_ns)));
        assert_eq!(measured[1].sets, [vec![], vec![0], vec![3]]);
        assert_eq!(measured[2].sets, [vec![], vec![0, 3]]);
    }

    #[test]
    fn of_settings_that_do_nothing_hardly_any_is_kept() {
        let (mut kept, mut passed) = (0, 0);
        const SERIES: u64 = 60;
        for seed in 0..SERIES {
            let (trials, _) = run(&[1.0; 6], 1_000 + seed);
            let is_better = |ratio: &RateRatio| ratio.verdict == Verdict::Better;
            let first = trials.settings.iter().filter_map(|trial| trial.first.as_ref());
            passed += u64::from(first.filter(|ratio| is_better(ratio)).count() > 0);
            kept += u64::from(!trials.kept().is_empty());
        }
        // 5 % of the series by the level of the family, a half of that on this side; and of these
        // again as many the second time.
        assert!(passed <= 5, "{passed} of {SERIES} series found something that helps");
        assert_eq!(kept, 0);
    }

    #[test]
    fn settings_that_harm_together_are_not_kept() {
        let ratio = |verdict| {
            let series = Bench::new(&[], 1).series(0.02, 4_000);
            let ratios = exceedances(&[[&series; 2]], 100_000);
            RateRatio { verdict, ..ratios[0].clone().unwrap() }
        };
        let helps = SettingTrial {
            first: Some(ratio(Verdict::Better)),
            again: Some(ratio(Verdict::Better)),
        };
        let mut trials =
            TuningTrials { settings: vec![helps.clone(), helps], ..TuningTrials::default() };
        assert_eq!(trials.kept(), [0, 1]);
        trials.together = Some(ratio(Verdict::Worse));
        assert!(trials.kept().is_empty());
        (trials.together, trials.stopped) = (None, true);
        assert!(trials.kept().is_empty(), "half of it says nothing");
    }

    #[test]
    fn a_stop_keeps_what_was_found() {
        let mut bench = Bench { stops_after: 2, ..Bench::new(&[0.2, 1.0], 3) };
        let ask = (CountedTail::Quantile(0.9), Span::from_ms(100_000));
        let Ok(trials) = try_settings(2, ask, &mut bench);
        assert!(trials.stopped && trials.kept().is_empty());
        assert!(trials.settings[0].first.is_some() && trials.settings[0].again.is_none());
        assert!((30_000..31_000).contains(&trials.threshold_ns), "{}", trials.threshold_ns);
        let is_decided: Vec<bool> =
            bench.measured.iter().map(|sets| sets.threshold_ns.is_some()).collect();
        assert!(
            !is_decided[0] && is_decided[1..].iter().all(|decided| *decided),
            "the first finds it: {is_decided:?}"
        );
    }

    #[test]
    fn the_least_time_has_room_for_a_block_of_each_set_in_each_round() {
        assert_eq!(least(4), Span::from_ms(20_000));
        let sets = sets(vec![vec![0]], Span::from_ms(20_000), None);
        assert_eq!((sets.sets.len(), sets.rounds), (2, 5));
    }
}

//! The period of a series by folding: samples that lie a whole number of periods apart are put
//! together, whatever shape the pattern has.
//!
//! A sine finds waves and sawteeth; of one sample in 512 that stands out it explains less than one
//! per cent. Folding at P gives P means, and the share of the variance that they explain is 1 for
//! any pattern that repeats (epoch folding, as astronomers search for pulsars; Leahy et al. 1983).
//! By chance they explain (P − 1)/(n − 1) of it, which is taken off as in an adjusted R². Whether
//! the best of all P is more than chance is found by shuffling the same values, so that no law is
//! assumed of them. Only whole P are tried: a pattern that drifts through one sample in an eighth
//! of the series is blurred. [`crate::repetition`] is for events at any time, of which it needs
//! more.

use crate::rng::Rng;

/// Times that a pattern must be there: also the largest values that are taken as equal, so that
/// fewer of them, which no pattern can have made, hide none.
const TURNS_MIN: usize = 8;
/// Shuffles of which none may look as periodic: chance does in one of a hundred.
const SHUFFLES: usize = 99;
/// Samples that are folded at most: of a longer series the first ones.
const SAMPLES_MAX: usize = 8_192;
/// Of periods that explain about as much the shortest: the others are its multiples.
const FUNDAMENTAL: f64 = 0.95;

/// A period of a series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FoldedPeriod {
    /// In samples.
    pub samples: usize,
    /// The share of the variance that the mean pattern explains beyond what chance would, in
    /// (0, 1]; of values of which the eight largest are taken as equal.
    pub share: f64,
}

impl FoldedPeriod {
    /// The longest period that is looked for in so many samples.
    pub fn longest(samples: usize) -> usize {
        samples.min(SAMPLES_MAX) / TURNS_MIN
    }

    /// The period that explains most of a series in the order of time; `None` where that is less
    /// than `least_share`, or no more than chance.
    pub fn of(series: &[i64], least_share: f64) -> Option<Self> {
        let mut values = clipped(&series[..series.len().min(SAMPLES_MAX)])?;
        let best = best(&values)?;
        if best.share < least_share {
            return None;
        }
        // The same seed always: the same series has the same answer.
        let mut rng = Rng::new(values.len() as u64);
        for _ in 0..SHUFFLES {
            for last in (1..values.len()).rev() {
                values.swap(last, rng.below(last + 1));
            }
            if self::best(&values).is_some_and(|chance| chance.share >= best.share) {
                return None;
            }
        }
        Some(best)
    }
}

/// The values as far as a pattern can have made them, less their mean; `None` where they are too
/// few or all the same.
fn clipped(series: &[i64]) -> Option<Vec<f64>> {
    let mut largest = series.to_vec();
    largest.sort_unstable_by(|a, b| b.cmp(a));
    let most = *largest.get(TURNS_MIN - 1)?;
    let values = || series.iter().map(|&value| value.min(most) as f64);
    let mean = values().sum::<f64>() / series.len() as f64;
    let values: Vec<f64> = values().map(|value| value - mean).collect();
    let is_long = series.len() >= 2 * TURNS_MIN;
    (is_long && values.iter().any(|&value| value != 0.0)).then_some(values)
}

/// The best period of values whose mean is 0.
fn best(values: &[f64]) -> Option<FoldedPeriod> {
    let power = values.iter().map(|value| value * value).sum::<f64>();
    let mut sums = Vec::new();
    let mut share = |samples: usize| {
        sums.clear();
        sums.resize(samples, 0.0);
        for turn in values.chunks(samples) {
            turn.iter().zip(&mut sums).for_each(|(value, sum)| *sum += value);
        }
        let (turns, rest) = (values.len() / samples, values.len() % samples);
        let of_phase =
            |(phase, sum): (usize, &f64)| sum * sum / (turns + usize::from(phase < rest)) as f64;
        let explained = sums.iter().enumerate().map(of_phase).sum::<f64>() / power;
        let by_chance = (samples - 1) as f64 / (values.len() - 1) as f64;
        (explained - by_chance) / (1.0 - by_chance)
    };
    let tried = 2..=FoldedPeriod::longest(values.len());
    let shares: Vec<(usize, f64)> = tried.map(|samples| (samples, share(samples))).collect();
    let most = shares.iter().map(|(_, share)| *share).fold(0.0, f64::max);
    let &(samples, share) =
        shares.iter().find(|(_, share)| *share > 0.0 && *share >= FUNDAMENTAL * most)?;
    Some(FoldedPeriod { samples, share: share.min(1.0) })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Noise of 0 to 99, and what is added to each.
    fn noise(count: usize, seed: u64, added: impl Fn(usize) -> i64) -> Vec<i64> {
        let mut rng = Rng::new(seed);
        (0..count).map(|at| rng.below(100) as i64 + added(at)).collect()
    }

    fn samples(series: &[i64]) -> Option<usize> {
        FoldedPeriod::of(series, 0.05).map(|found| found.samples)
    }

    #[test]
    fn one_spike_in_512_samples_is_found_among_noise() {
        let spike = |at: usize| if at % 512 == 77 { 900 } else { 0 };
        let found = FoldedPeriod::of(&noise(4_096, 1, spike), 0.05).expect("eight spikes");
        assert_eq!(found.samples, 512);
        assert!((0.5..1.0).contains(&found.share), "{found:?}");
    }

    #[test]
    fn a_stall_hides_no_spikes() {
        let spike = |at: usize| if at % 256 == 3 { 2_000 } else { 0 };
        let stall = |at: usize| if at == 1_000 { 40_000_000 } else { 0 };
        assert_eq!(samples(&noise(4_096, 2, |at| spike(at) + stall(at))), Some(256));
    }

    #[test]
    fn any_shape_has_its_shortest_period() {
        assert_eq!(samples(&noise(2_000, 3, |at| (at % 31) as i64 * 40)), Some(31));
        assert_eq!(samples(&noise(2_000, 4, |at| [0, 500, 90, 700, 20][at % 5])), Some(5));
        assert_eq!(samples(&noise(800, 5, |at| (at % 2) as i64 * 300)), Some(2));
    }

    #[test]
    fn noise_bursts_and_what_drifts_have_none() {
        for seed in 10..20 {
            assert_eq!(samples(&noise(1_024, seed, |_| 0)), None, "{seed}");
            // As many spikes, where chance put them.
            let mut rng = Rng::new(seed);
            let at: Vec<usize> = (0..8).map(|_| rng.below(1_024)).collect();
            let spike = |number: usize| if at.contains(&number) { 5_000 } else { 0 };
            assert_eq!(samples(&noise(1_024, seed, spike)), None, "{seed}: {at:?}");
        }
        assert_eq!(samples(&noise(1_024, 7, |at| if at == 500 { 9_000 } else { 0 })), None);
    }

    #[test]
    fn too_few_or_equal_values_have_none() {
        assert_eq!(samples(&[]), None);
        assert_eq!(samples(&[1, 9, 1, 9, 1, 9, 1, 9]), None);
        assert_eq!(samples(&[5; 1_000]), None);
        assert_eq!(samples(&[i64::MAX, i64::MIN, 3].repeat(20)), Some(3));
    }

    #[test]
    fn the_longest_that_is_looked_for_is_there_eight_times() {
        assert_eq!(FoldedPeriod::longest(4_096), 512);
        assert_eq!(FoldedPeriod::longest(1_000_000), 1_024);
        assert_eq!(FoldedPeriod::longest(0), 0);
    }
}

//! Errors of sweeps over target offsets: their quantiles, their curve and its period.
//!
//! Pure arithmetic over memory that was allocated before, however many sweeps there are.

use std::f64::consts::TAU;

use punctual_analysis::rng::Rng;

/// Frequencies that are tried for each that the sweep resolves.
const OVERSAMPLE: usize = 8;
/// The shortest period that is looked for, in offsets.
const SHORTEST: f64 = 3.0;
/// A sine that explains less of the variance than this is no period: among noise alone one of 512
/// offsets reaches it once in some thousand sweeps (256·(1−s)²⁵⁴).
pub const SHARE_MIN: f64 = 0.05;

/// The errors at each offset: counts and extremes of all sweeps; of more sweeps than there is room
/// for, a sample for the quantiles, each as likely to be in it (Vitter's algorithm R).
#[derive(Debug)]
pub(super) struct Sweep {
    offsets: usize,
    /// Whole sweeps, one after the other.
    errors: Vec<f64>,
    room: usize,
    /// Sweeps that were begun.
    swept: u64,
    /// Where the next error goes; `None` where its sweep is not in the sample.
    at: Option<usize>,
    random: Rng,
    count: u64,
    min: f64,
    max: f64,
}

/// The errors in short, in their own unit.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Spread {
    pub(super) min: f64,
    pub(super) p5: f64,
    pub(super) p50: f64,
    pub(super) p95: f64,
    pub(super) max: f64,
}

impl Sweep {
    /// Of so many offsets, with room for so many sweeps, at least one.
    pub(super) fn new(offsets: usize, sweeps: usize) -> Self {
        let room = offsets * sweeps;
        Self {
            offsets,
            errors: Vec::with_capacity(room),
            room,
            swept: 0,
            at: None,
            random: Rng::new(0),
            count: 0,
            min: f64::INFINITY,
            max: f64::NEG_INFINITY,
        }
    }

    /// Begins a sweep: an error at each offset follows, from the first on.
    pub(super) fn begin(&mut self) {
        self.swept += 1;
        let rooms = self.room / self.offsets;
        self.at = match self.errors.len() < self.room {
            true => Some(self.errors.len()),
            false => {
                let place = self.random.below(usize::try_from(self.swept).unwrap_or(usize::MAX));
                (place < rooms).then_some(place * self.offsets)
            }
        };
    }

    /// Takes the error at the next offset; NaN for a sample that is told apart.
    #[inline]
    pub(super) fn push(&mut self, error: f64) {
        if error.is_finite() {
            self.count += 1;
            self.min = self.min.min(error);
            self.max = self.max.max(error);
        }
        let Some(at) = self.at else { return };
        match self.errors.get_mut(at) {
            Some(place) => *place = error,
            None => self.errors.push(error),
        }
        self.at = Some(at + 1);
    }

    /// How many sweeps were begun.
    pub(super) fn swept(&self) -> u64 {
        self.swept
    }

    /// How many errors there are, without those that are told apart.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// The errors in short; `None` where there are none.
    pub(super) fn spread(&self) -> Option<Spread> {
        let mut errors: Vec<f64> =
            self.errors.iter().copied().filter(|error| error.is_finite()).collect();
        errors.sort_by(f64::total_cmp);
        let last = errors.len().checked_sub(1)?;
        let at = |share: f64| errors[(share * last as f64).round() as usize];
        Some(Spread { min: self.min, p5: at(0.05), p50: at(0.5), p95: at(0.95), max: self.max })
    }

    /// The median error at each offset, from the first on; NaN where there is none.
    pub(super) fn curve(&self) -> Vec<f64> {
        let middle = |offset: usize| {
            let at = self.errors.iter().skip(offset).step_by(self.offsets).copied();
            let mut errors: Vec<f64> = at.filter(|error| error.is_finite()).collect();
            errors.sort_by(f64::total_cmp);
            errors.get(errors.len() / 2).copied().unwrap_or(f64::NAN)
        };
        (0..self.offsets).map(middle).collect()
    }
}

/// The period of a curve in its steps, and the share of the variance that a sine of that period
/// explains; `None` where no period stands out.
pub(super) fn period(curve: &[f64]) -> Option<(f64, f64)> {
    let known: Vec<(f64, f64)> = curve
        .iter()
        .enumerate()
        .filter(|(_, error)| error.is_finite())
        .map(|(at, &error)| (at as f64, error))
        .collect();
    let n = known.len() as f64;
    let mean = known.iter().map(|(_, error)| error).sum::<f64>() / n;
    let power = known.iter().map(|(_, error)| (error - mean).powi(2)).sum::<f64>();
    if curve.len() < 16 || known.len() * 2 < curve.len() || power <= 0.0 {
        return None;
    }
    let share = |period: f64| {
        let (mut cosine, mut sine) = (0.0, 0.0);
        for (at, error) in &known {
            let angle = TAU * at / period;
            cosine += (error - mean) * angle.cos();
            sine += (error - mean) * angle.sin();
        }
        2.0 * (cosine * cosine + sine * sine) / (n * power)
    };
    let length = curve.len() as f64;
    // From four periods in the sweep on.
    let steps = 4 * OVERSAMPLE..=(length / SHORTEST) as usize * OVERSAMPLE;
    let tried = steps.map(|step| length * OVERSAMPLE as f64 / step as f64);
    let (period, share) =
        tried.map(|period| (period, share(period))).max_by(|a, b| a.1.total_cmp(&b.1))?;
    (share >= SHARE_MIN).then_some((period, share.min(1.0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The errors of a loop that polls every `poll`, entered at the same phase each time.
    fn sawtooth(poll: f64, noise: f64) -> Vec<f64> {
        let mut seed = 7u64;
        let mut random = || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) as f64 / (1u64 << 31) as f64 - 0.5
        };
        (0..512u32).map(|offset| poll - f64::from(offset) % poll + noise * random()).collect()
    }

    #[test]
    fn the_period_of_a_polling_loop_is_found_in_its_errors() {
        for poll in [9.5, 31.0, 32.0, 36.7, 100.0] {
            let (found, share) = period(&sawtooth(poll, 4.0)).expect("a period");
            // Within a step of the frequencies that are tried.
            assert!((found - poll).abs() <= poll * poll / 512.0 / 4.0, "{found} for {poll}");
            assert!((0.3..=1.0).contains(&share), "{share}");
        }
    }

    #[test]
    fn noise_and_too_little_have_no_period() {
        assert_eq!(period(&sawtooth(1.0, 30.0)), None);
        assert_eq!(period(&[1.0, 2.0, 1.0, 2.0]), None);
        assert_eq!(period(&[f64::NAN; 512]), None);
        assert_eq!(period(&[5.0; 512]), None);
    }

    #[test]
    fn quantiles_and_curve_leave_out_what_is_told_apart() {
        let mut sweep = Sweep::new(2, 3);
        assert_eq!(sweep.spread(), None);
        for errors in [[1.0, 10.0], [f64::NAN, 12.0], [3.0, 14.0]] {
            sweep.begin();
            errors.into_iter().for_each(|error| sweep.push(error));
        }
        let spread = sweep.spread().expect("five errors");
        assert_eq!((spread.min, spread.p50, spread.max), (1.0, 10.0, 14.0));
        assert_eq!(sweep.curve(), [3.0, 12.0]);
        assert_eq!((sweep.swept(), sweep.count()), (3, 5));
    }

    #[test]
    fn sweeps_beyond_the_room_count_and_each_is_as_likely_in_the_quantiles() {
        let (offsets, rooms, sweeps) = (4, 400, 40_000);
        let mut sweep = Sweep::new(offsets, rooms);
        let memory = sweep.errors.capacity();
        for number in 0..sweeps {
            sweep.begin();
            for offset in 0..offsets {
                // The machine changes half way, and is interrupted now and then; one is a stall.
                let level = if number < sweeps / 2 { 10.0 } else { 30.0 };
                let told_apart = number % 10 == 0 && offset == 3;
                let stall = if number == 31_111 && offset == 1 { 500.0 } else { 0.0 };
                let error = level + offset as f64 + stall;
                sweep.push(if told_apart { f64::NAN } else { error });
            }
        }
        assert_eq!(sweep.errors.capacity(), memory);
        let apart = sweeps / 10;
        assert_eq!((sweep.swept(), sweep.count()), (sweeps, sweeps * 4 - apart));
        let spread = sweep.spread().expect("errors");
        // The extremes are of all; the quantiles are of both halves.
        assert_eq!((spread.min, spread.max), (10.0, 531.0));
        assert!(spread.p5 < 14.0 && spread.p95 >= 30.0, "{spread:?}");
        let late = sweep.errors.iter().filter(|error| **error >= 30.0).count();
        let known = sweep.errors.iter().filter(|error| error.is_finite()).count();
        // Of 400 in two halves: six standard deviations.
        assert!((0.35..0.65).contains(&(late as f64 / known as f64)), "{late} of {known}");
    }
}

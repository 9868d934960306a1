//! An axis: its range, its ticks, where a value lies on it.
//!
//! Arithmetic only; words at ticks are the caller's.

/// A mark on an axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Tick {
    /// Where.
    pub at: f64,
    /// Its words; none for a small mark between others.
    pub label: Option<String>,
}

/// An axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// Its label: the quantity, with its unit.
    pub label: String,
    /// Its lower end; positive for a log scale.
    pub low: f64,
    /// Its upper end, above the lower.
    pub high: f64,
    /// True for a log scale.
    pub log: bool,
    /// Its marks.
    pub ticks: Vec<Tick>,
}

impl Axis {
    /// A log scale from `low` to `high` (made positive and apart), a mark at each power of ten,
    /// small ones between.
    pub fn log(label: &str, low: f64, high: f64, words: impl Fn(f64) -> String) -> Self {
        let low = if low.is_finite() { low.max(1e-9) } else { 1.0 };
        let high = if high.is_finite() { high.max(low * 1.01) } else { low * 10.0 };
        let (first, last) = (low.log10().floor() as i32, high.log10().ceil() as i32);
        let every = ((last - first) / 8 + 1).max(1);
        // Few powers of ten lie on a short scale: twos and fives get words too.
        let narrow = high / low < 2e3;
        let mut ticks = Vec::new();
        for power in first..=last {
            for times in 1..10 {
                let at = f64::from(times) * 10f64.powi(power);
                if at < low * (1.0 - 1e-9) || at > high * (1.0 + 1e-9) {
                    continue;
                }
                let named = (times == 1 && (power - first) % every == 0)
                    || (narrow && (times == 2 || times == 5));
                let label = named.then(|| words(at));
                if label.is_some() || every == 1 {
                    ticks.push(Tick { at, label });
                }
            }
        }
        Self { label: label.to_owned(), low, high, log: true, ticks }
    }

    /// An even scale, marked at about `marks` round places.
    pub fn even(
        label: &str,
        low: f64,
        high: f64,
        marks: u32,
        words: impl Fn(f64) -> String,
    ) -> Self {
        let low = if low.is_finite() { low } else { 0.0 };
        let high = if high.is_finite() && high > low { high } else { low + 1.0 };
        let step = round_step((high - low) / f64::from(marks.max(1)));
        let first = (low / step).ceil() as i64;
        let count = (((high - low) / step).floor() as i64).clamp(0, 100);
        let ticks = (0..=count + 1)
            .map(|k| (first + k) as f64 * step)
            .filter(|at| *at <= high + step * 1e-6)
            .map(|at| Tick { at, label: Some(words(at)) })
            .collect();
        Self { label: label.to_owned(), low, high, log: false, ticks }
    }

    /// Where a value lies: 0 at the lower end, 1 at the upper; beyond an end, at the end.
    pub fn place(&self, value: f64) -> f64 {
        let place = if self.log {
            (value.max(self.low) / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        };
        if place.is_nan() { 0.0 } else { place.clamp(0.0, 1.0) }
    }
}

/// The round number at or above `step`: 1, 2 or 5 times a power of ten.
fn round_step(step: f64) -> f64 {
    let power = 10f64.powf(step.max(1e-12).log10().floor());
    let times = [1.0, 2.0, 5.0].into_iter().find(|times| times * power >= step * (1.0 - 1e-9));
    times.unwrap_or(10.0) * power
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: &Axis) -> Vec<&str> {
        axis.ticks.iter().filter_map(|tick| tick.label.as_deref()).collect()
    }

    #[test]
    fn powers_of_ten_are_named() {
        let axis = Axis::log("x", 500.0, 2e6, |at| at.to_string());
        assert_eq!(labels(&axis), ["1000", "10000", "100000", "1000000"]);
        assert_eq!((axis.place(500.0), axis.place(2e6)), (0.0, 1.0));
        assert_eq!((axis.place(-5.0), axis.place(f64::INFINITY)), (0.0, 1.0));
        assert_eq!(labels(&Axis::log("x", 15.0, 90.0, |at| at.to_string())), ["20", "50"]);
    }

    #[test]
    fn even_marks_are_round() {
        let axis = Axis::even("x", 0.0, 59.8, 6, |at| format!("{at:.0}"));
        assert_eq!(labels(&axis), ["0", "10", "20", "30", "40", "50"]);
        assert_eq!(axis.place(29.9), 0.5);
    }

    #[test]
    fn no_range_is_too_strange() {
        for (low, high) in [(0.0, 0.0), (f64::NAN, 1.0), (5.0, -5.0), (1.0, f64::INFINITY)] {
            let (log, even) = (Axis::log("", low, high, |_| String::new()), |marks| {
                Axis::even("", low, high, marks, |_| String::new())
            });
            for axis in [log, even(0), even(7)] {
                assert!(axis.high > axis.low && axis.ticks.len() < 400, "{axis:?}");
                assert!((0.0..=1.0).contains(&axis.place(f64::NAN)));
            }
        }
    }
}

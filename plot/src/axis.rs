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

/// The scale on which values lie on an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Equal steps add the same.
    Even,
    /// As [`Scale::Even`], of seconds: marks at round minutes and hours.
    Clock,
    /// Equal steps multiply by the same.
    Log,
    /// Names beside each other, the first at 0, the next at 1 and so on; on a vertical axis from
    /// top to bottom.
    Names,
}

/// An axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// Its label: the quantity, with its unit; empty where its ticks say all.
    pub label: String,
    /// Its lower end; positive for a log scale.
    pub low: f64,
    /// Its upper end, above the lower.
    pub high: f64,
    /// The scale between its ends.
    pub scale: Scale,
    /// Its marks, rising.
    pub ticks: Vec<Tick>,
}

impl Axis {
    /// A log scale from `low` to `high` (made positive and apart), a mark at each power of ten,
    /// small ones between. A mark for which there are no words is a small one.
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
                let label = named.then(|| words(at)).filter(|label| !label.is_empty());
                if label.is_some() || every == 1 {
                    ticks.push(Tick { at, label });
                }
            }
        }
        if ticks.iter().filter(|tick| tick.label.is_some()).count() < 2 {
            // Too short for any of these: round steps, as on an even scale.
            ticks = Self::even(label, low, high, 4, words).ticks;
        }
        Self { label: label.to_owned(), low, high, scale: Scale::Log, ticks }
    }

    /// Names beside each other, each with as much room as the next.
    pub fn names(label: &str, names: impl IntoIterator<Item = String>) -> Self {
        let tick = |(at, name)| Tick { at: at as f64, label: Some(name) };
        let ticks: Vec<Tick> = names.into_iter().enumerate().map(tick).collect();
        let high = ticks.len().max(1) as f64 - 0.5;
        Self { label: label.to_owned(), low: -0.5, high, scale: Scale::Names, ticks }
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
        let first = (low / step).ceil();
        let count = ((high - low) / step).floor().clamp(0.0, 100.0) as u32;
        let mut ticks: Vec<Tick> = (0..=count + 1)
            .map(|k| (first + f64::from(k)) * step)
            .filter(|at| (low - step * 1e-6..=high + step * 1e-6).contains(at))
            .map(|at| (at, words(at)))
            .map(|(at, label)| (at.clamp(low, high), Some(label).filter(|label| !label.is_empty())))
            .map(|(at, label)| Tick { at, label })
            .collect();
        ticks.dedup_by_key(|tick| tick.at);
        Self { label: label.to_owned(), low, high, scale: Scale::Even, ticks }.told_apart()
    }

    /// An even scale of seconds from 0 on, marked at about `marks` round minutes and hours: `2:30`.
    pub fn clock(label: &str, high_s: f64, marks: u32) -> Self {
        let high = if high_s.is_finite() && high_s > 0.0 { high_s } else { 1.0 };
        let least = high / f64::from(marks.max(1));
        let steps = CLOCK_STEPS_S.into_iter().find(|step| *step >= least * (1.0 - 1e-9));
        let step = steps.unwrap_or_else(|| 86_400.0 * round_step(least / 86_400.0));
        let count = (high / step * (1.0 + 1e-9)).floor().clamp(0.0, 100.0) as u32;
        let tick = |k: u32| {
            let at = f64::from(k) * step;
            Tick { at: at.min(high), label: Some(clock_words(at, step)) }
        };
        let ticks = (0..=count).map(tick).collect();
        Self { label: label.to_owned(), low: 0.0, high, scale: Scale::Clock, ticks }
    }

    /// Without the words of ticks that are those of the tick before: where steps are finer than
    /// the words tell.
    fn told_apart(mut self) -> Self {
        let mut last: Option<String> = None;
        for tick in &mut self.ticks {
            match tick.label == last {
                true => tick.label = None,
                false => last.clone_from(&tick.label),
            }
        }
        self
    }

    /// Both as one, for charts that are compared: the longer one's marks, and those of the other
    /// beyond its ends. Axes of other quantities, scales or names stay as they are.
    pub fn joined(&self, other: &Self) -> Self {
        let is_like = self.label == other.label && self.scale == other.scale;
        let extent = |axis: &Self| match axis.scale {
            Scale::Log => axis.high / axis.low,
            Scale::Even | Scale::Clock | Scale::Names => axis.high - axis.low,
        };
        let [longer, shorter] =
            if extent(self) >= extent(other) { [self, other] } else { [other, self] };
        let has_other_names = longer.scale == Scale::Names && longer.ticks != shorter.ticks;
        if !is_like || has_other_names {
            return self.clone();
        }
        let beyond = shorter.ticks.iter().filter(|tick| !longer.holds(tick.at));
        let mut ticks: Vec<Tick> = longer.ticks.iter().chain(beyond).cloned().collect();
        ticks.sort_by(|a, b| a.at.total_cmp(&b.at));
        let (low, high) = (self.low.min(other.low), self.high.max(other.high));
        Self { label: self.label.clone(), low, high, scale: self.scale, ticks }
    }

    /// Returns true where values lie on it, its ends included.
    pub fn holds(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }

    /// Where a value lies: 0 at the lower end, 1 at the upper; beyond an end, at the end.
    pub fn place(&self, value: f64) -> f64 {
        let place = if self.scale == Scale::Log {
            (value.max(self.low) / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        };
        if place.is_nan() { 0.0 } else { place.clamp(0.0, 1.0) }
    }
}

/// Round steps of a clock, s: from a second to a day.
const CLOCK_STEPS_S: [f64; 18] = [
    1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0, 1_800.0, 3_600.0, 7_200.0,
    10_800.0, 21_600.0, 43_200.0, 86_400.0,
];

/// Hours and minutes, and seconds where steps are shorter: `2:30`, `0:00:15`.
fn clock_words(at_s: f64, step_s: f64) -> String {
    let seconds = at_s.round() as u64;
    let (hours, minutes) = (seconds / 3_600, seconds / 60 % 60);
    match step_s < 60.0 {
        true => format!("{hours}:{minutes:02}:{:02}", seconds % 60),
        false => format!("{hours}:{minutes:02}"),
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
    use proptest::prelude::*;

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
        let short = Axis::log("x", 15.0, 18.0, |at| at.to_string());
        assert_eq!(labels(&short), ["15", "16", "17", "18"]);
    }

    #[test]
    fn even_marks_are_round() {
        let axis = Axis::even("x", 0.0, 59.8, 6, |at| format!("{at:.0}"));
        assert_eq!(labels(&axis), ["0", "10", "20", "30", "40", "50"]);
        assert_eq!(axis.place(29.9), 0.5);
    }

    #[test]
    fn a_clock_is_marked_at_round_minutes_and_hours() {
        let night = Axis::clock("time", 28_800.0, 8);
        assert_eq!(
            labels(&night),
            ["0:00", "1:00", "2:00", "3:00", "4:00", "5:00", "6:00", "7:00", "8:00"]
        );
        assert_eq!((night.place(14_400.0), night.scale), (0.5, Scale::Clock));
        assert_eq!(
            labels(&Axis::clock("time", 90.0, 4)),
            ["0:00:00", "0:00:30", "0:01:00", "0:01:30"]
        );
        let weeks = Axis::clock("time", 40.0 * 86_400.0, 8);
        assert_eq!(labels(&weeks)[..3], ["0:00", "120:00", "240:00"]);
        assert!(Axis::clock("time", f64::NAN, 0).high > 0.0);
    }

    #[test]
    fn names_have_equal_room_and_their_numbers_are_their_places() {
        let axis = Axis::names("path", ["sleep", "timerfd", "posix"].map(str::to_owned));
        assert_eq!(labels(&axis), ["sleep", "timerfd", "posix"]);
        let places: Vec<f64> = axis.ticks.iter().map(|tick| axis.place(tick.at)).collect();
        assert!((places[1] - 0.5).abs() < 1e-9 && (places[0] - 1.0 / 6.0).abs() < 1e-9);
        let none = Axis::names("", Vec::new());
        assert!(none.ticks.is_empty() && none.high > none.low);
    }

    #[test]
    fn axes_of_one_quantity_are_joined_and_others_stay() {
        let log = |low, high| Axis::log("x", low, high, |at| at.to_string());
        let joined = log(900.0, 2e6).joined(&log(9.0, 1_100.0));
        assert_eq!((joined.low, joined.high), (9.0, 2e6));
        assert_eq!(
            labels(&joined),
            ["10", "20", "50", "100", "200", "500", "1000", "10000", "100000", "1000000"]
        );
        assert_eq!(joined, log(9.0, 1_100.0).joined(&log(900.0, 2e6)));
        let even = Axis::even("y", 0.0, 1.0, 4, |at| at.to_string());
        assert_eq!(log(1.0, 9.0).joined(&even), log(1.0, 9.0));
        let names = |names: [&str; 2]| Axis::names("", names.map(str::to_owned));
        assert_eq!(names(["a", "b"]).joined(&names(["a", "c"])), names(["a", "b"]));
        assert_eq!(names(["a", "b"]).joined(&names(["a", "b"])), names(["a", "b"]));
    }

    #[test]
    fn words_that_tell_no_difference_stand_once() {
        let axis = Axis::even("x", 1_000.0, 1_000.4, 5, |at| format!("{at:.0}"));
        assert!(axis.ticks.len() > 3);
        assert_eq!(labels(&axis), ["1000"]);
    }

    #[test]
    fn no_range_is_too_strange() {
        for (low, high) in [(0.0, 0.0), (f64::NAN, 1.0), (5.0, -5.0), (1.0, f64::INFINITY)] {
            let (log, even) = (Axis::log("", low, high, |_| String::new()), |marks| {
                Axis::even("", low, high, marks, |_| String::new())
            });
            for axis in [log, even(0), even(7), Axis::clock("", high, 7)] {
                assert!(axis.high > axis.low && axis.ticks.len() < 400, "{axis:?}");
                assert!((0.0..=1.0).contains(&axis.place(f64::NAN)));
            }
        }
    }

    proptest! {
        #[test]
        fn ticks_rise_within_the_range_and_some_have_words(
            low in -1e12f64..1e12,
            length in 1e-6f64..1e12,
            marks in 1u32..12,
        ) {
            let words = |at: f64| format!("{at:e}");
            let even = Axis::even("", low, low + length, marks, words);
            let log = Axis::log("", low.abs().max(1e-6), low.abs().max(1e-6) + length, words);
            for axis in [even, log, Axis::clock("", length, marks)] {
                let (low, high) = (axis.low * 0.999_999_99, axis.high * 1.000_000_01);
                let room = (axis.high - axis.low) * 1e-6;
                for pair in axis.ticks.windows(2) {
                    prop_assert!(pair[0].at < pair[1].at, "{:?}", axis);
                }
                for tick in &axis.ticks {
                    prop_assert!(tick.at >= low.min(axis.low) - room, "{:?}", axis);
                    prop_assert!(tick.at <= high.max(axis.high) + room, "{:?}", axis);
                }
                prop_assert!(axis.ticks.len() < 400);
            }
        }
    }
}

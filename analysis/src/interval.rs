//! A value and the interval that its evidence leaves it: sums, differences and ratios of such, and
//! whether a bound holds.
//!
//! For claims about numbers that are no probability of one run. Arithmetic only; an end that is not
//! known stays unknown, and a bound that an interval contains is undecided.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::claim::bound::{independent_share, quantile_ranks_at};
use crate::claim::judge::Holds;
use crate::plain::significant;
use crate::quantile::Probability;

/// The confidence of one interval: four of them hold together at 95 % (Bonferroni).
pub const EACH: f64 = 1.0 - (1.0 - crate::claim::bound::CONFIDENCE) / 4.0;

/// A value with the ends of its interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Interval {
    /// The value.
    pub value: f64,
    /// The lower end, at most the value; null where too few samples leave it open.
    pub low: Option<f64>,
    /// The upper end, at least the value; null where too few samples leave it open.
    pub high: Option<f64>,
}

impl Interval {
    /// A value that is known exactly: a count, or a calculated one.
    pub fn exact(value: f64) -> Self {
        Self { value, low: Some(value), high: Some(value) }
    }

    /// A value between two ends.
    pub fn between(low: f64, value: f64, high: f64) -> Self {
        Self { value, low: Some(low), high: Some(high) }
    }

    /// The median of values that are independent of each other, by order statistics; `None` without
    /// any.
    pub fn median(values: &[f64]) -> Option<Self> {
        let mut sorted: Vec<f64> = values.iter().copied().filter(|v| v.is_finite()).collect();
        sorted.sort_by(f64::total_cmp);
        let (lower, upper) = quantile_ranks_at(Probability::P50, (sorted.len() as u64, 1.0), EACH);
        let at = |rank: u64| sorted.get(usize::try_from(rank).ok()?.checked_sub(1)?).copied();
        let value = at(Probability::P50.rank(sorted.len() as u64))?;
        Some(Self { value, low: lower.and_then(at), high: upper.and_then(at) })
    }

    /// The sum of both.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        let sum = |a: Option<f64>, b: Option<f64>| Some(a? + b?);
        Self {
            value: self.value + other.value,
            low: sum(self.low, other.low),
            high: sum(self.high, other.high),
        }
    }

    /// The difference of both.
    #[must_use]
    pub fn minus(self, other: Self) -> Self {
        self.plus(other.times(-1.0))
    }

    /// The same in another unit.
    #[must_use]
    pub fn times(self, factor: f64) -> Self {
        self.rising(|value| value * factor.abs()).turned(factor < 0.0)
    }

    /// Minus the value, where `is_turned`.
    fn turned(self, is_turned: bool) -> Self {
        match is_turned {
            true => Self {
                value: -self.value,
                low: self.high.map(|end| -end),
                high: self.low.map(|end| -end),
            },
            false => self,
        }
    }

    /// The image of it under a function that never falls.
    #[must_use]
    pub fn rising(self, function: impl Fn(f64) -> f64) -> Self {
        Self {
            value: function(self.value),
            low: self.low.map(&function),
            high: self.high.map(&function),
        }
    }

    /// The ratio to one that is above 0; `None` where it is not. An end of the divisor that is 0
    /// or below leaves an end of the ratio open.
    pub fn over(self, divisor: Self) -> Option<Self> {
        if divisor.value <= 0.0 {
            return None;
        }
        // Away from zero the ratio to the least is the farthest, towards it that to the most.
        let farthest = |end: f64| Some(end / divisor.low.filter(|low| *low > 0.0)?);
        let nearest = |end: f64| divisor.high.map_or(0.0, |high| end / high);
        let (low, high) = (self.low, self.high);
        Some(Self {
            value: self.value / divisor.value,
            low: low.and_then(|low| if low < 0.0 { farthest(low) } else { Some(nearest(low)) }),
            high: high
                .and_then(|high| if high < 0.0 { Some(nearest(high)) } else { farthest(high) }),
        })
    }

    /// Judges that the value is at least `bound`.
    pub fn at_least(self, bound: f64) -> Holds {
        match (self.low, self.high) {
            (Some(low), _) if low >= bound => Holds::Yes,
            (_, Some(high)) if high < bound => Holds::No,
            _ => Holds::Undecided,
        }
    }

    /// Judges that the value is at most `bound`.
    pub fn at_most(self, bound: f64) -> Holds {
        self.times(-1.0).at_least(-bound)
    }

    /// The factor by which the samples must grow to move the end that contains a bound up to it, if
    /// the interval narrows as the root of their number: 1 or more; `None` where the end is open,
    /// or the value is the bound.
    pub fn more(self, bound: f64) -> Option<f64> {
        let end = if bound < self.value { self.low } else { self.high };
        let (half, distance) = ((end? - self.value).abs(), (bound - self.value).abs());
        (distance > 0.0).then(|| (half / distance).powi(2).max(1.0))
    }
}

/// More samples than this many times are no advice.
const MORE_MOST: f64 = 200.0;

/// Data that would show on which side of a bound a value lies; of several the last takes most.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub enum Takes {
    /// So many times as many samples.
    More(f64),
    /// More samples: they are too few to say how many.
    Longer,
    /// Values that scatter less, or lie elsewhere.
    Quieter,
}

impl Takes {
    /// For a value that does not show on which side of the bound it lies.
    pub fn of(value: Interval, bound: Option<f64>) -> Self {
        match (value.low, value.high, bound.and_then(|bound| value.more(bound))) {
            (None, ..) | (_, None, _) => Self::Longer,
            (.., Some(more)) if more <= MORE_MOST => Self::More(more),
            _ => Self::Quieter,
        }
    }

    /// In two or three words, for a page of few lines.
    pub fn in_short(self) -> String {
        match self {
            Self::More(more) => format!("needs {:.0} × as many", more.ceil().max(2.0)),
            Self::Longer => "too few samples".to_owned(),
            Self::Quieter => "too near to tell".to_owned(),
        }
    }

    /// As a clause.
    pub fn words(self) -> String {
        match self {
            // Rounded up: an estimate that is kept is better than one that is not.
            Self::More(more) => {
                format!("about {:.0} times as many samples would tell", more.ceil().max(2.0))
            }
            Self::Longer => "too few samples for an interval: a longer run would tell".to_owned(),
            Self::Quieter => {
                "too near to tell, for its scatter: it takes a quieter machine or another load"
                    .to_owned()
            }
        }
    }
}

impl std::fmt::Display for Interval {
    /// `3.60 [3.41, 3.82]`; the value alone where it is exact.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&significant(self.value))?;
        if self.low == self.high && self.low == Some(self.value) {
            return Ok(());
        }
        let end = |end: Option<f64>| end.map_or_else(|| "?".to_owned(), significant);
        write!(f, " [{}, {}]", end(self.low), end(self.high))
    }
}

/// The independent ones among n samples, as far as their extremal index shows them.
pub(crate) fn independent(n: u64, theta: f64) -> u64 {
    (n as f64 * independent_share(theta)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(value: f64, low: Option<f64>, high: Option<f64>) -> Interval {
        Interval { value, low, high }
    }

    #[test]
    fn a_bound_inside_is_undecided_and_an_open_end_decides_nothing_on_its_side() {
        let interval = Interval::between(3.0, 4.0, 6.0);
        let answers = [2.0, 3.0, 4.0, 6.0, 6.1].map(|bound| interval.at_least(bound));
        let (yes, no, open_) = (Holds::Yes, Holds::No, Holds::Undecided);
        assert_eq!(answers, [yes, yes, open_, open_, no]);
        let answers = [2.9, 3.0, 6.0, 7.0].map(|bound| interval.at_most(bound));
        assert_eq!(answers, [no, open_, yes, yes]);
        assert_eq!(open(4.0, Some(3.0), None).at_least(2.0), yes);
        assert_eq!(open(4.0, Some(3.0), None).at_least(9.0), open_);
        assert_eq!(open(4.0, None, Some(6.0)).at_most(7.0), yes);
        assert_eq!(open(4.0, None, None).at_most(7.0), open_);
    }

    #[test]
    fn arithmetic_takes_the_ends_that_are_farthest() {
        let (a, b) = (Interval::between(8.0, 10.0, 12.0), Interval::between(1.0, 2.0, 4.0));
        assert_eq!(a.plus(b), Interval::between(9.0, 12.0, 16.0));
        assert_eq!(a.minus(b), Interval::between(4.0, 8.0, 11.0));
        assert_eq!(a.over(b), Some(Interval::between(2.0, 5.0, 12.0)));
        assert_eq!(b.times(-2.0), Interval::between(-8.0, -4.0, -2.0));
        assert_eq!(b.rising(|value| value * value), Interval::between(1.0, 4.0, 16.0));
        assert_eq!(a.over(Interval::exact(0.0)), None);
        // Around zero and below it the ends are where they should be.
        let around = Interval::between(-2.0, -1.0, 4.0);
        assert_eq!(around.over(b), Some(Interval::between(-2.0, -0.5, 4.0)));
        let below = Interval::between(-8.0, -4.0, -2.0);
        assert_eq!(below.over(b), Some(Interval::between(-8.0, -2.0, -0.5)));
        assert_eq!(a.over(open(2.0, Some(0.0), None)), Some(open(5.0, Some(0.0), None)));
        assert_eq!(open(1.0, None, Some(2.0)).minus(b), open(-1.0, None, Some(1.0)));
    }

    #[test]
    fn medians_have_the_interval_of_their_number() {
        let values: Vec<f64> = (1..=101).map(f64::from).collect();
        let median = Interval::median(&values).expect("values");
        assert_eq!(median.value, 51.0);
        assert!(median.low.is_some_and(|low| (36.0..41.0).contains(&low)), "{median:?}");
        assert!(median.high.is_some_and(|high| (61.0..66.0).contains(&high)), "{median:?}");
        // One that is beyond all others moves nothing.
        let mut stalled = values.clone();
        stalled[100] = 1e9;
        assert_eq!(Interval::median(&stalled), Some(median));
        let few = Interval::median(&values[..4]).expect("values");
        assert_eq!((few.value, few.low, few.high), (2.0, None, None));
        assert_eq!(Interval::median(&[]), None);
    }

    #[test]
    fn more_samples_narrow_an_interval_up_to_the_bound() {
        let interval = Interval::between(30.0, 40.0, 60.0);
        assert_eq!(interval.more(35.0), Some(4.0));
        assert_eq!(interval.more(50.0), Some(4.0));
        assert_eq!(interval.more(40.0), None);
        assert_eq!(open(40.0, Some(30.0), None).more(50.0), None);
        assert_eq!(independent(1_000, 1.0), 1_000);
        assert_eq!(independent(1_000, 0.5), 333);
    }

    #[test]
    fn it_is_shown_with_its_ends() {
        assert_eq!(Interval::between(3.412, 3.6, 38.23).to_string(), "3.60 [3.41, 38.2]");
        assert_eq!(open(3.6, Some(3.0), None).to_string(), "3.60 [3.00, ?]");
        assert_eq!(Interval::exact(100.0).to_string(), "100");
    }
}

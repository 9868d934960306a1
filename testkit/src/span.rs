//! The releases of a span, one after the other: a model of what is counted in it.
//!
//! For tests of counts. Slow, and nothing in it that could be clever.

use punctual::Period;

/// Where a span is over, ns on the clock of its releases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// Before this instant: its time was up then.
    Before(u64),
    /// EndCase this instant, a release at it included: it ended then.
    UpTo(u64),
}

impl Until {
    /// Returns true where the span has this release.
    fn has(self, release_ns: u64) -> bool {
        match self {
            Self::Before(end_ns) => release_ns < end_ns,
            Self::UpTo(end_ns) => release_ns <= end_ns,
        }
    }
}

/// A grid of releases that never moves: number k is k periods after the phase.
#[derive(Clone, Copy, Debug)]
pub struct ReleaseGrid {
    /// Its period.
    pub period: Period,
    /// The instant of release 0, ns.
    pub phase_ns: u64,
}

impl ReleaseGrid {
    fn release_ns(self, k: u64) -> u64 {
        let periods = u128::from(k) * u128::from(self.period.num_ns());
        self.phase_ns + u64::try_from(periods / u128::from(self.period.den())).expect("a test")
    }

    /// All its releases, the first one at or after `from_ns`.
    fn from(self, from_ns: u64) -> impl Iterator<Item = u64> {
        (0..).map(move |k| self.release_ns(k)).skip_while(move |at_ns| *at_ns < from_ns)
    }

    /// The first release at or after `from_ns`.
    pub fn first_ns(self, from_ns: u64) -> u64 {
        self.from(from_ns).next().expect("they never end")
    }

    /// 1 where its release 0 is in the span, else 0.
    pub fn count_first(self, until: Until) -> u64 {
        u64::from(until.has(self.release_ns(0)))
    }

    /// Releases in the span from `from_ns` on.
    pub fn count(self, from_ns: u64, until: Until) -> u64 {
        self.from(from_ns).take_while(|at_ns| until.has(*at_ns)).count() as u64
    }
}

/// Releases of a task that moves its phase: one a finish, a period after the release, or after the
/// finish where that is later.
pub fn moving(first_ns: u64, period_ns: u64, finishes_ns: &[u64], until: Until) -> u64 {
    let (mut at_ns, mut count) = (first_ns, u64::from(until.has(first_ns)));
    for finish_ns in finishes_ns {
        at_ns += period_ns;
        if *finish_ns >= at_ns {
            at_ns = finish_ns + period_ns;
        }
        count += u64::from(until.has(at_ns));
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_has_its_first_release_and_none_at_the_end_of_its_time() {
        let grid = ReleaseGrid { period: Period::ratio(10, 3).expect("in range"), phase_ns: 1 };
        // 1, 4, 7, 11, 14, 17, 21
        assert_eq!(grid.first_ns(5), 7);
        assert_eq!([3, 4, 5].map(|from_ns| grid.count(from_ns, Until::UpTo(14))), [4, 4, 3]);
        assert_eq!([13, 14, 15].map(|end_ns| grid.count(4, Until::Before(end_ns))), [3, 3, 4]);
        // Released at 100, 110; the second one ends at 125, so that the third comes at 135.
        assert_eq!(moving(100, 10, &[105, 125], Until::UpTo(134)), 2);
        assert_eq!(moving(100, 10, &[105, 125], Until::UpTo(135)), 3);
    }
}

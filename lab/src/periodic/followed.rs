//! A clock that the grids of an experiment follow, and what became of that.
//!
//! For whoever sets one up. The steering itself is `punctual::follow`.

use punctual::clocks::Vdso;
use punctual::follow::{Follow, Follower, Reference, ServoStatus, Settings};
use punctual_core::time::{Instant, Span};
use punctual_os::clock::{ClockId, now_ns};

use super::plan::PeriodicPlan;

/// A bend is published so many times the longest period before it comes, and readings are so many
/// times as far apart as that.
const LEAD_PERIODS: i64 = 2;
const READING_LEADS: i64 = 5;

/// How the experiment's grids followed their clock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FollowedFigures {
    /// What the last reading left.
    pub status: ServoStatus,
    /// How often it could not be read.
    pub unread: u64,
    /// Bends that were known only after they came.
    pub late: u64,
    /// How it was followed.
    pub settings: Settings,
    /// Both timescales at the start.
    pub began: Moment,
    /// And at the end.
    pub ended: Moment,
}

/// One moment on CLOCK_MONOTONIC and on the grid's timescale.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// CLOCK_MONOTONIC.
    pub monotonic: Instant,
    /// The grid's time.
    pub grid: Instant,
}

impl Moment {
    /// Now.
    pub(super) fn now(follower: &Follower) -> Self {
        let monotonic = Instant::from_ns(now_ns(ClockId::Monotonic));
        Self { monotonic, grid: follower.over(Vdso).map().grid(monotonic) }
    }
}

impl FollowedFigures {
    pub(super) fn of(follower: &Follower, began: Moment) -> Self {
        Self {
            status: follower.status(),
            unread: follower.unread(),
            late: follower.late(),
            settings: follower.settings(),
            began,
            ended: Moment::now(follower),
        }
    }
}

/// How `reference` is followed by the grids of a plan: each loop knows a bend before it comes, of a
/// step only what is left over whole periods of all of them is slewed in, and the thread that reads
/// keeps to the housekeeping CPUs.
pub fn follow(reference: Reference, plan: &PeriodicPlan) -> Follow {
    let periods = || plan.streams.iter().map(|stream| stream.period.as_ns());
    let longest_ns = i64::try_from(periods().max().unwrap_or(0)).unwrap_or(i64::MAX);
    let lead = Span::from_ns(longest_ns.saturating_mul(LEAD_PERIODS)).max(Span::from_ms(100));
    let every = Span::from_ns(lead.as_ns().saturating_mul(READING_LEADS));
    let period_ns = periods().try_fold(1, common_multiple);
    Follow::new(reference)
        .settings(Settings { period_ns, ..Settings::default() })
        .every(every, lead)
        .cpus(plan.housekeeping.iter().copied())
}

/// `None` where it is beyond the clock's end.
fn common_multiple(a: u64, b: u64) -> Option<u64> {
    let (mut divisor, mut rest) = (a, b);
    while rest > 0 {
        (divisor, rest) = (rest, divisor % rest);
    }
    (a / divisor.max(1)).checked_mul(b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grids_of_several_periods_have_a_common_one_or_none() {
        assert_eq!(
            [1_000_000, 1_500_000, 3].into_iter().try_fold(1, common_multiple),
            Some(3_000_000)
        );
        assert_eq!([u64::MAX, u64::MAX - 1].into_iter().try_fold(1, common_multiple), None);
    }
}

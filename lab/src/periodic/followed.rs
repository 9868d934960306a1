//! FollowedFigures: the clock that the grids of an experiment follow, and how well they did.

use punctual::follow::{Follow, Follower, Reference, ServoStatus, Settings};
use punctual_core::time::{Instant, Span};
use punctual_engine::clocks::Vdso;
use punctual_os::clock::{ClockId, now_ns};

use super::plan::PeriodicPlan;

/// A bend is published so many times the longest period before it comes, and readings are so many
/// times as far apart as that.
const LEAD_PERIODS: i64 = 2;
const READING_LEADS: i64 = 5;

/// The errors of the experiment's grids against the clock that they followed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FollowedFigures {
    /// Drift and errors up to the last reading.
    pub status: ServoStatus,
    /// Readings that failed.
    pub unread: u64,
    /// Bends that were known only after they came.
    pub late: u64,
    /// The settings of the follower.
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

/// The way in which the grids of a plan follow `reference`: each loop knows a bend before it comes,
/// of a step only what is left over whole periods of all of them is slewed in, and the thread that
/// reads keeps to the housekeeping CPUs.
pub fn follow(reference: Reference, plan: &PeriodicPlan) -> Follow {
    let periods = || plan.streams.iter().map(|stream| stream.period.as_ns());
    let longest_ns = i64::try_from(periods().max().unwrap_or(0)).unwrap_or(i64::MAX);
    let lead = Span::from_ns(longest_ns.saturating_mul(LEAD_PERIODS)).max(Span::from_ms(100));
    let every = Span::from_ns(lead.as_ns().saturating_mul(READING_LEADS));
    let period_ns = periods().try_fold(1, common_multiple);
    Follow::new(reference)
        .settings(Settings::default().with_period_ns(period_ns))
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

//! The ways to wait, as a person chooses one: a name and its parameters.
//!
//! For programs that take the way from their user, and for [`crate::lone`]. Turns a choice into a
//! strategy for a period; runs nothing itself.

use punctual_core::time::{Period, Span};
use punctual_core::wait::adaptive::Aim;
use punctual_core::wait::{Adaptive, Rearm, Sleep, Spin, Strategy};

/// A way to wait for releases.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Way {
    /// An absolute sleep.
    Sleep,
    /// A sleep of a tenth of the period, and 20 µs at least, then a spin.
    Spin,
    /// A sleep that ends this much before the release, then a spin.
    Fixed(Span),
    /// NIST's: early calls this far apart, √(T·S) if that is not said, then a spin.
    Rearm(Option<Period>),
    /// Learned: hops and margin, for this share of the CPU at most.
    Adaptive(f64),
}

/// The share of each period in which a spinning loop sleeps: twice what Linux's real-time
/// throttling keeps for others by default (5 %, `sched_rt_runtime_us`).
const SPIN_REST: f64 = 0.1;

/// The shortest such sleep: a shorter one is over before the thread has left the CPU.
const SPIN_REST_MIN: Span = Span::from_us(20);

/// The shortest period that a spinning loop can have: half of it rest.
pub const SPIN_PERIOD_MIN: Span = Span::from_us(40);

impl Way {
    /// Whether it spins before a release.
    ///
    /// # Real-time: setup only
    pub const fn spins(self) -> bool {
        !matches!(self, Self::Sleep)
    }

    /// Its name on the command line and in results.
    ///
    /// # Real-time: setup only
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sleep => "sleep",
            Self::Spin => "spin",
            Self::Fixed(_) => "fixed",
            Self::Rearm(_) => "rearm",
            Self::Adaptive(_) => "adaptive",
        }
    }

    /// The strategy behind it, for a loop of this period. `cost` measures what a sleep and wake
    /// cost ([`crate::clocks::wake_cost`]), and is called where that is needed.
    ///
    /// # Real-time: setup only
    pub fn strategy(self, period: Period, cost: impl FnOnce() -> Span) -> Strategy {
        match self {
            Self::Sleep => Strategy::Sleep(Sleep),
            Self::Spin => Strategy::Spin(Spin::new(margin_of_spin(period))),
            Self::Fixed(margin) => Strategy::Spin(Spin::new(margin)),
            Self::Rearm(every) => {
                let every = every.unwrap_or_else(|| Rearm::best(period, cost()));
                Strategy::Rearm(Rearm::new(every))
            }
            Self::Adaptive(budget) => {
                let aim = Aim { budget, wake_cost: cost(), ..Aim::of(period) };
                Strategy::Adaptive(Adaptive::new(aim))
            }
        }
    }

    /// The share of a CPU that it takes by its plan, at most; for a sleeping loop next to nothing.
    ///
    /// # Real-time: setup only
    pub fn cpu_share(self, period: Period) -> f64 {
        let period_ns = period.as_ns() as f64;
        match self {
            Self::Sleep => 0.0,
            Self::Spin => margin_of_spin(period).as_ns() as f64 / period_ns,
            Self::Fixed(margin) => (margin.as_ns() as f64 / period_ns).min(1.0),
            Self::Rearm(every) => every.map_or(0.5, |a| (a.as_ns() as f64 / period_ns).min(1.0)),
            Self::Adaptive(budget) => budget,
        }
    }
}

/// For a spinning loop, how long before each release its sleep ends.
fn margin_of_spin(period: Period) -> Span {
    let period_ns = i64::try_from(period.as_ns()).unwrap_or(i64::MAX);
    let rest_ns = ((period_ns as f64 * SPIN_REST) as i64).max(SPIN_REST_MIN.as_ns());
    Span::from_ns(period_ns.saturating_sub(rest_ns).max(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spin_rests_a_tenth_of_its_period_and_never_less_than_a_sleep_takes() {
        let period = |ns| Period::from_ns(ns).expect("positive");
        let share = |ns| Way::Spin.cpu_share(period(ns));
        assert!((share(1_000_000) - 0.9).abs() < 1e-9);
        assert!((share(40_000) - 0.5).abs() < 1e-9);
        assert_eq!((share(5_000), Way::Sleep.cpu_share(period(5_000))), (0.0, 0.0));
    }

    #[test]
    fn the_cost_of_a_wake_is_measured_only_where_it_is_needed() {
        let period = Period::from_ns(500_000).expect("positive");
        let measured = |way: Way| {
            let mut asked = false;
            let _strategy = way.strategy(period, || {
                asked = true;
                Span::from_us(5)
            });
            asked
        };
        assert!(measured(Way::Rearm(None)) && measured(Way::Adaptive(0.1)));
        assert!(!measured(Way::Rearm(Some(period))));
        assert!(!measured(Way::Sleep) && !measured(Way::Spin));
        assert!(!measured(Way::Fixed(Spin::FIXED)));
    }
}

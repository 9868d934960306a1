//! What is checked before real-time threads start, whoever starts them.
//!
//! For loops, executives and supervisors. The rules are in [`crate::safety`]; here they are
//! applied to this machine and this clock. Changes nothing.

use punctual_core::clock::Clock;
use punctual_core::time::Period;

use crate::clocks::{MachineClock, StampCost};
use crate::error::{Error, Kind};
use crate::safety::{self, Caution, Demand, Machine};

/// Shorter periods than this are checked against the clock: the slowest clocks, which are read over
/// a bus, take 5 µs a stamp.
const CLOCK_MATTERS_NS: u64 = 100_000;

/// Whether threads with these demands can run on this machine; where throttling will stop them.
///
/// # Errors
/// They would leave no CPU to others, and nothing could stop them.
///
/// # Real-time: setup only
pub fn check_demands(demands: &[Demand]) -> Result<Vec<Caution>, Error> {
    safety::judge(demands, &Machine::here()).map_err(|why| Kind::NoCpuLeft(why).into())
}

/// Whether loops of this shortest period can be stamped with this clock.
///
/// # Errors
/// The clock's own stamps would fill the period.
///
/// # Real-time: setup only
pub fn check_period(period: Period, clock: &mut impl Clock) -> Result<(), Error> {
    if period.as_ns() >= CLOCK_MATTERS_NS {
        return Ok(());
    }
    let stamp_ns = StampCost::measure(clock).wake_ns;
    match safety::is_too_short(period, stamp_ns) {
        true => Err(Kind::ShortPeriod(period, stamp_ns).into()),
        false => Ok(()),
    }
}

/// The same with the machine's clock, calibrated where it matters.
///
/// # Real-time: setup only
pub fn check_period_here(period: Period) -> Result<(), Error> {
    match period.as_ns() >= CLOCK_MATTERS_NS {
        true => Ok(()),
        false => check_period(period, &mut MachineClock::best()),
    }
}

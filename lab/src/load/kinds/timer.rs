//! Load `timer`: sleeps until each multiple of 100 µs, on several threads: 10 kHz of timer
//! interrupts each.

use punctual_os::clock::{ClockId, now_ns, sleep_until_ns};
use punctual_os::process;

use super::{LoadRow, Start};
use crate::load::child::{Prepared, Work};
use crate::load::protocol::Setup;

/// Its row in the table of loads.
pub(super) const ROW: LoadRow = LoadRow {
    name: "timer",
    unit: "wakes",
    help: "sleeps for short times on several threads",
    args: None,
    start: Start::Own(prepare),
};

/// Between two wakes of a worker, in ns.
const PERIOD_NS: u64 = 100_000;
/// Workers at most.
const WORKERS_MAX: usize = 8;

/// Instants that lie a period apart; those that have passed are left out.
pub(super) struct Pace {
    period_ns: u64,
    next_ns: u64,
}

impl Pace {
    /// The first instant is a period from now; `period_ns` > 0.
    pub(super) fn new(period_ns: u64) -> Self {
        Self { period_ns, next_ns: now_ns(ClockId::Monotonic) + period_ns }
    }

    /// Sleeps until the next instant.
    pub(super) fn wait(&mut self) {
        // Woken early by a signal a load only works a little sooner.
        let _ = sleep_until_ns(self.next_ns);
        self.next_ns = after(self.next_ns, self.period_ns, now_ns(ClockId::Monotonic));
    }
}

/// The first of `next_ns + k·period_ns`, k ≥ 1, that is later than `now_ns`.
fn after(next_ns: u64, period_ns: u64, now_ns: u64) -> u64 {
    next_ns + (now_ns.saturating_sub(next_ns) / period_ns + 1) * period_ns
}

/// Sets it up.
fn prepare(setup: &Setup) -> Result<Prepared, String> {
    let worker = |_| -> Work {
        Box::new(|ticket| {
            // Else the kernel would let wakes of several workers fall together.
            process::set_timer_slack_ns(1).map_err(|why| format!("timer slack: {why}"))?;
            let mut pace = Pace::new(PERIOD_NS);
            while ticket.going() {
                pace.wait();
                ticket.add(1);
            }
            Ok(())
        })
    };
    Ok(Prepared::new((0..setup.workers.min(WORKERS_MAX)).map(worker).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_that_passed_are_left_out() {
        assert_eq!(after(1000, 100, 900), 1100);
        assert_eq!(after(1000, 100, 1000), 1100);
        assert_eq!(after(1000, 100, 1099), 1100);
        assert_eq!(after(1000, 100, 1100), 1200);
        assert_eq!(after(1000, 100, 1950), 2000);
    }

    #[test]
    fn a_pace_never_returns_early() {
        let mut pace = Pace::new(50_000);
        for _ in 0..5 {
            let next_ns = pace.next_ns;
            pace.wait();
            let now_ns = now_ns(ClockId::Monotonic);
            assert!(now_ns >= next_ns && pace.next_ns > next_ns);
        }
    }
}

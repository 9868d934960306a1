//! Load `timer`: sleeps until each multiple of 100 µs, on several threads: 10 kHz of timer
//! interrupts each.

use std::sync::atomic::AtomicBool;

use punctual_core::gate::Gate;
use punctual_core::releases::Releases;
use punctual_core::time::{Instant, Period};
use punctual_core::wait::Sleep;
use punctual_engine::clocks::Vdso;
use punctual_os::clock::{ClockId, now_ns};
use punctual_os::process;

use crate::load::protocol::Setup;
use crate::load::row::{LoadRow, Start};
use crate::load::worker::{Prepared, Work};

/// Its row in the table of loads.
pub(super) const ROW: LoadRow = LoadRow {
    name: "timer",
    unit: "wakes",
    help: "sleeps for short times on several threads",
    args: None,
    workers_max: None,
    start: Start::Own(prepare),
};

/// Between two wakes of a worker, in ns.
const PERIOD_NS: u64 = 100_000;
/// Workers at most.
const WORKERS_MAX: usize = 8;

/// The loop of a load's worker: one release a period, those that passed left out.
///
/// Without an end of its own: the worker looks at its ticket between two releases.
pub(super) struct WorkerLoop(Gate<Vdso, Sleep, ()>);

impl WorkerLoop {
    /// The first release is a period from now; `period_ns` > 0.
    pub(super) fn new(period_ns: u64) -> Self {
        let period = Period::from_ns(period_ns).expect("a load's period");
        let first = Instant::from_ns(now_ns(ClockId::Monotonic) + period_ns);
        Self(Gate::new(Vdso, Sleep, (), Releases::new(first, period), 0))
    }

    /// Sleeps until the next release.
    pub(super) fn wait(&mut self) {
        static NEVER: AtomicBool = AtomicBool::new(false);
        let _cycle = self.0.wait(&NEVER);
    }
}

/// Sets it up.
fn prepare(setup: &Setup) -> Result<Prepared, String> {
    let worker = |_| -> Work {
        Box::new(|ticket| {
            // Else the kernel would let wakes of several workers fall together.
            process::set_timer_slack_ns(1).map_err(|why| format!("timer slack: {why}"))?;
            let mut releases = WorkerLoop::new(PERIOD_NS);
            while ticket.going() {
                releases.wait();
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
    fn a_release_is_never_early_and_those_that_passed_are_left_out() {
        let begun_ns = now_ns(ClockId::Monotonic);
        let mut releases = WorkerLoop::new(50_000);
        for number in 1..=5 {
            releases.wait();
            assert!(now_ns(ClockId::Monotonic) >= begun_ns + number * 50_000);
        }
        while now_ns(ClockId::Monotonic) < begun_ns + 1_000_000 {}
        releases.wait();
        assert!(now_ns(ClockId::Monotonic) >= begun_ns + 1_050_000);
    }
}

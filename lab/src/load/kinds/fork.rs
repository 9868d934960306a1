//! Load `fork`: processes that end in their first instruction, each awaited.
//!
//! A worker has one such process at a time, so that at most [`WORKERS_MAX`] live.

use punctual_os::clock::{ClockId, now_ns, sleep_until_ns};
use punctual_os::process::fork_and_wait;

use crate::load::protocol::Setup;
use crate::load::row::{LoadRow, Start};
use crate::load::worker::{Prepared, Work};

/// Its row in the table of loads.
pub(super) const ROW: LoadRow = LoadRow {
    name: "fork",
    unit: "forks",
    help: "forks and reaps child processes, at most four at a time",
    args: None,
    start: Start::Own(prepare),
};

/// Workers, and thereby processes alive, at most.
const WORKERS_MAX: usize = 4;
/// After a refusal (no room for a process just now) the next try comes so much later, in ns.
const RETRY_NS: u64 = 10_000_000;
/// After so many refusals in a row a worker gives up.
const REFUSALS_MAX: u32 = 100;

/// Sets it up.
fn prepare(setup: &Setup) -> Result<Prepared, String> {
    let worker = |_| -> Work {
        Box::new(|ticket| {
            let mut refusals = 0;
            while ticket.going() {
                match fork_and_wait() {
                    Ok(()) => {
                        refusals = 0;
                        ticket.add(1);
                    }
                    Err(why) if refusals == REFUSALS_MAX => return Err(format!("fork: {why}")),
                    Err(_) => {
                        refusals += 1;
                        // Woken early by a signal it only tries again sooner.
                        let _ = sleep_until_ns(now_ns(ClockId::Monotonic) + RETRY_NS);
                    }
                }
            }
            Ok(())
        })
    };
    Ok(Prepared::new((0..setup.workers.min(WORKERS_MAX)).map(worker).collect()))
}

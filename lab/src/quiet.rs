//! The quiet place for a loop on one CPU, found before it starts.
//!
//! For `--phase quiet`. Runs a thread as the loop will run; never prints.

use std::io;
use std::sync::atomic::AtomicBool;

use punctual_core::time::Period;
use punctual_engine::clocks::MachineClock;
use punctual_engine::quiet::{Gap, LISTEN, Quiet, listen, place};
use punctual_engine::session::ThreadSession;
use punctual_engine::spawn;
use punctual_os::scheduler::SchedPolicy;

/// The quiet place for a grid of `period` on `cpu`; `None` where the grid comes near the tick at
/// any phase.
///
/// # Errors
/// No thread could be had.
pub fn find(cpu: Option<u32>, policy: SchedPolicy, period: Period) -> io::Result<Option<Quiet>> {
    let find = move || -> Vec<Gap> {
        let _session = ThreadSession::enter(cpu, policy);
        listen(&mut MachineClock::best(), LISTEN, &AtomicBool::new(false))
    };
    let gaps = spawn::plain("punctual-quiet", find)?.join();
    Ok(place(&gaps.unwrap_or_default(), period))
}

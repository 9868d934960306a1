//! An experiment of one thread, which measures by itself and looks at the stop flag.
//!
//! Its thread is described by an [`RtThread`]. Never prints.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use punctual::RtThread;
use punctual::safety::is_real_time;
use punctual::session::Refusal;
use punctual::spawn;
use punctual_core::time::Period;
use punctual_os::affinity;

use super::{ClockFacts, Demand, ExperimentEnd, ExperimentError, Measured};

/// What a thread that computes for `share` of each period could take of its CPU.
pub(crate) fn demand(thread: &RtThread, period: Period, share: f64) -> Demand {
    let real_time = is_real_time(thread.policy());
    Demand { cpu: thread.pinned_to(), real_time, period, share }
}

/// The CPU that it is pinned to; where it is to none, the first that this process may use.
pub(crate) fn cpu_of(thread: &RtThread) -> u32 {
    let first = || affinity::get(0).ok().and_then(|mask| mask.iter().next()).unwrap_or(0);
    thread.pinned_to().unwrap_or_else(first)
}

/// Runs `measure` on a thread of its own, to its end or until it saw `stop`.
///
/// # Errors
/// The thread could not be started, or panicked.
pub(crate) fn on_one_thread<T: Send>(
    stop: &AtomicBool,
    measure: impl FnOnce() -> (T, ClockFacts, Vec<Refusal>) + Send,
) -> Result<Measured<T>, ExperimentError> {
    let (outcome, clock, refused) = thread::scope(|scope| {
        let measuring = spawn::scoped(scope, "punctual-measure", measure)?;
        measuring.join().map_err(|_| ExperimentError::Panic)
    })?;
    let end =
        if stop.load(Ordering::Relaxed) { ExperimentEnd::Stopped } else { ExperimentEnd::Finished };
    let (disturbances, taken) = (Vec::new(), Vec::new());
    Ok(Measured { outcome, end, clock, refused, disturbances, taken })
}

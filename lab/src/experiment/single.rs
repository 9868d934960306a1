//! An experiment of one thread, which measures by itself and looks at the stop flag.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use punctual::session::Refusal;

use super::{ClockFacts, ExperimentEnd, ExperimentError, Measured};

/// Runs `measure` on a thread of its own, to its end or until it saw `stop`.
///
/// # Errors
/// The thread could not be started, or panicked.
pub(crate) fn on_one_thread<T: Send>(
    stop: &AtomicBool,
    measure: impl FnOnce() -> (T, ClockFacts, Vec<Refusal>) + Send,
) -> Result<Measured<T>, ExperimentError> {
    let (outcome, clock, refused) = thread::scope(|scope| {
        let measuring = thread::Builder::new().spawn_scoped(scope, measure)?;
        measuring.join().map_err(|_| ExperimentError::Panic)
    })?;
    let end =
        if stop.load(Ordering::Relaxed) { ExperimentEnd::Stopped } else { ExperimentEnd::Finished };
    let (disturbances, taken) = (Vec::new(), Vec::new());
    Ok(Measured { outcome, end, clock, refused, disturbances, taken })
}

//! The quiet place for a loop on one CPU, found before it starts.
//!
//! For `--phase quiet`, and for the loop of the library beside others. Runs a thread as the loop
//! will run, and does what `punctual::Loop` does at its start; never prints.

use std::io;
use std::time::Duration;

use punctual_core::time::Period;
use punctual_engine::clocks::MachineClock;
use punctual_engine::quiet::{LISTEN, Quiet, listen, place};
use punctual_engine::rt_thread::{RtThread, run_before};
use punctual_engine::wait_policy::{LearnPlace, WaitPolicy, WarmUp};
use punctual_os::signal;

/// Far more than it takes on a busy machine: a second and a half on an idle one.
const BOUND: Duration = Duration::from_secs(6);

/// The quiet place for a grid of `period` on `cpu`: beside the tick that is detected there, or
/// that a wait met which learned there; `None` where the grid comes near the tick at any phase, or
/// where others keep the CPU.
///
/// # Errors
/// No thread could be had.
pub fn find(thread: &RtThread, period: Period) -> io::Result<Option<Quiet>> {
    let find = move || -> Option<Quiet> {
        // Whoever asks for an end meanwhile does not wait for what is no longer needed.
        let (mut clock, stop) = (MachineClock::best(), signal::stop_flag());
        let quiet = place(&listen(&mut clock, LISTEN, stop), period)?;
        let place = LearnPlace { period, phase_ns: quiet.phase_ns, quiet: Some((quiet, period)) };
        let wait = WaitPolicy::adaptive();
        let ready = WarmUp::until(stop).ready(&wait, place, &mut clock, MachineClock::discipline);
        Some(ready.moved.unwrap_or(quiet))
    };
    Ok(run_before(thread, "punctual-quiet", BOUND, find)?.flatten())
}

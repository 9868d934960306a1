//! The quiet place for a loop on one CPU, found before it starts.
//!
//! For `--phase quiet`, and for the loop of the library beside others. Runs a thread as the loop
//! will run, and does what `punctual::Loop` does at its start; never prints.

use std::io;

use punctual_core::time::Period;
use punctual_engine::clocks::MachineClock;
use punctual_engine::quiet::{LISTEN, Quiet, listen, place};
use punctual_engine::session::ThreadSession;
use punctual_engine::spawn;
use punctual_engine::wait_policy::{LearnPlace, WaitPolicy, WarmUp};
use punctual_os::scheduler::SchedPolicy;
use punctual_os::signal;

/// The quiet place for a grid of `period` on `cpu`: beside the tick that is detected there, or
/// that a wait met which learned there; `None` where the grid comes near the tick at any phase.
///
/// # Errors
/// No thread could be had.
pub fn find(cpu: Option<u32>, policy: SchedPolicy, period: Period) -> io::Result<Option<Quiet>> {
    let find = move || -> Option<Quiet> {
        let _session = ThreadSession::enter(cpu, policy);
        // Whoever asks for an end meanwhile does not wait for what is no longer needed.
        let (mut clock, stop) = (MachineClock::best(), signal::stop_flag());
        let quiet = place(&listen(&mut clock, LISTEN, stop), period)?;
        let place = LearnPlace { period, phase_ns: quiet.phase_ns, quiet: Some((quiet, period)) };
        let wait = WaitPolicy::adaptive();
        let ready = WarmUp::until(stop).ready(&wait, place, &mut clock, MachineClock::discipline);
        Some(ready.moved.unwrap_or(quiet))
    };
    Ok(spawn::plain("punctual-quiet", find)?.join().ok().flatten())
}

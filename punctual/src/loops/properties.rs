//! What a loop has: its phase, its policy, what the kernel refused, what its wait learned.
//!
//! For the loop's own thread. Reads; changes nothing.

use punctual_core::clock::Clock;
use punctual_core::wait::{Wait, WaitStatus};
use punctual_os::scheduler::SchedPolicy;

use super::Loop;
use crate::quiet::Quiet;
use crate::session::Refusal;

impl<C: Clock> Loop<C> {
    /// The offset of its releases from multiples of the period on its clock, ns.
    ///
    /// # Real-time: in loop
    pub fn phase_ns(&self) -> u64 {
        self.phase_ns
    }

    /// The quiet phase that it took; `None` where none was requested, or found.
    ///
    /// # Real-time: in loop
    #[doc(hidden)]
    pub fn quiet(&self) -> Option<Quiet> {
        self.quiet
    }

    /// What its wait does at present, and what it learned of this machine.
    ///
    /// # Real-time: in loop
    #[doc(hidden)]
    pub fn wait_status(&self) -> WaitStatus {
        Wait::<C>::status(&self.gate.wait)
    }

    /// The policy that its thread has now: the watchdog may have taken it away. In a child that
    /// fork(2) made that of the calling thread.
    ///
    /// # Real-time: in loop
    pub fn policy(&self) -> SchedPolicy {
        let of_caller = || punctual_os::scheduler::get(0).unwrap_or(SchedPolicy::Other);
        match self.handle.forced() {
            None if !self.handle.control.is_forked() => self.session.policy(),
            _ => of_caller(),
        }
    }

    /// What the kernel refused its thread and its process.
    ///
    /// # Real-time: setup only
    pub fn refused(&self) -> &[Refusal] {
        &self.refused
    }

    /// Which settings cannot be kept on this machine, and why.
    ///
    /// # Real-time: setup only
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Whether its memory is locked.
    ///
    /// # Real-time: setup only
    #[doc(hidden)]
    pub fn memory_locked(&self) -> bool {
        self.process.memory_locked()
    }
}

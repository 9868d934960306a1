//! The functions of the caller's: bodies, triggers and background work, and what they return.
//!
//! In the loop: calls what C gave, allocates nothing, follows no pointer itself.

use std::ffi::{c_int, c_void};

use punctual::Flow;
use punctual_core::executive::many;

use crate::current_cycle;
use crate::stats::Cycle;

/// The body of a task.
pub(crate) type Body = unsafe extern "C" fn(*mut c_void, *const Cycle) -> c_int;

/// A trigger or background work.
pub(crate) type Plain = unsafe extern "C" fn(*mut c_void) -> c_int;

const CONTINUE: c_int = 0;
const BREAK: c_int = 2;

/// A function of the caller's and its argument.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Callback<F> {
    run: F,
    data: *mut c_void,
}

// SAFETY: the header says which thread calls the function with that pointer, so that the caller
// knows it. Nothing here follows the pointer.
unsafe impl<F: Send> Send for Callback<F> {}

impl<F> Callback<F> {
    /// A function of the caller's, and what it is called with.
    pub(crate) fn new(run: F, data: *mut c_void) -> Self {
        Self { run, data }
    }
}

/// What a number says that a body or background work returned.
fn flow(answer: c_int) -> Flow {
    match answer {
        CONTINUE => Flow::Continue,
        BREAK => Flow::Break,
        _ => Flow::Stop,
    }
}

impl Callback<Body> {
    /// Whether it is the same one, with the same argument.
    pub(crate) fn is(&self, other: &Self) -> bool {
        std::ptr::fn_addr_eq(self.run, other.run) && std::ptr::eq(self.data, other.data)
    }

    /// Calls the body: what follows of what it returned, and that.
    pub(crate) fn cycle(&self, cycle: &many::Cycle<'_>) -> (Flow, c_int) {
        let ours = Cycle::of(cycle);
        // SAFETY: the header says what the function must take, and that it neither throws nor
        // jumps out.
        let answer =
            current_cycle::during(cycle, || unsafe { (self.run)(self.data, &raw const ours) });
        (flow(answer), answer)
    }
}

impl Callback<Plain> {
    /// Calls background work: what follows of what it returned, and that.
    pub(crate) fn slice(&self) -> (Flow, c_int) {
        let answer = self.wait();
        (flow(answer), answer)
    }

    /// Calls a trigger: above 0 for a cycle, 0 for none any more, or −errno.
    pub(crate) fn wait(&self) -> c_int {
        // SAFETY: as above.
        unsafe { (self.run)(self.data) }
    }
}

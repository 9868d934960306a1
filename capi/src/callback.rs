//! The functions of the caller's: bodies, triggers and background work, and what they return.
//!
//! In the loop: calls what C gave, allocates nothing, follows no pointer itself.

use std::cell::Cell;
use std::ffi::{c_int, c_void};

use punctual::Flow;

use crate::ffi;
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

/// The meaning of a number that a body or background work returned.
fn flow(answer: c_int) -> Flow {
    match answer {
        CONTINUE => Flow::Continue,
        BREAK => Flow::Break,
        _ => Flow::Stop,
    }
}

impl Callback<Body> {
    /// True for the same function with the same argument.
    pub(crate) fn is(&self, known: &Self) -> bool {
        std::ptr::fn_addr_eq(self.run, known.run) && std::ptr::eq(self.data, known.data)
    }

    /// Calls the body: what follows of what it returned, and that.
    pub(crate) fn cycle(&self, cycle: &punctual_core::cycle::Cycle<'_>) -> (Flow, c_int) {
        let ours = Cycle::of(cycle);
        // SAFETY: the header says what the function must take, and that it neither throws nor
        // jumps out.
        let answer = during(cycle, || unsafe { (self.run)(self.data, &raw const ours) });
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

thread_local! {
    static TURN: Cell<*const punctual_core::cycle::Cycle<'static>> =
        const { Cell::new(std::ptr::null()) };
}

/// Runs a body with this as the calling thread's cycle, of which the body may ask: it holds a
/// `punctual_cycle` and no more, so that a copy of that, or one that is over, leads nowhere.
fn during<R>(cycle: &punctual_core::cycle::Cycle<'_>, body: impl FnOnce() -> R) -> R {
    /// Gives the cycle before it back on every way out: a body may run an executive of its own.
    struct Before(*const punctual_core::cycle::Cycle<'static>);
    impl Drop for Before {
        fn drop(&mut self) {
            TURN.set(self.0);
        }
    }
    let _before = Before(TURN.replace(std::ptr::from_ref(cycle).cast()));
    body()
}

#[unsafe(no_mangle)]
extern "C" fn punctual_cycle_cancelled() -> c_int {
    ffi::value(0, || {
        // SAFETY: null, or the cycle that `during` of this thread holds on to while it is set.
        let cycle = unsafe { TURN.get().as_ref() };
        c_int::from(cycle.is_some_and(punctual_core::cycle::Cycle::cancelled))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outside_of_a_task_nothing_is_cancelled() {
        assert_eq!(punctual_cycle_cancelled(), 0);
        ffi::tests::panic_next();
        assert_eq!(punctual_cycle_cancelled(), 0);
    }
}

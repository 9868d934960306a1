//! The cycle that a thread runs, and what its body may ask of it.
//!
//! For the bodies of tasks, which hold a `punctual_cycle` and no more: what is read here is read
//! of the thread, so that a copy of a cycle, or one that is over, leads nowhere.

use std::cell::Cell;
use std::ffi::c_int;

use punctual_core::executive::many::Cycle;

use crate::ffi;

thread_local! {
    static TURN: Cell<*const Cycle<'static>> = const { Cell::new(std::ptr::null()) };
}

/// Runs a body with this as the calling thread's cycle.
pub(crate) fn during<R>(cycle: &Cycle<'_>, body: impl FnOnce() -> R) -> R {
    /// Gives the cycle before it back on every way out: a body may run an executive of its own.
    struct Before(*const Cycle<'static>);
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
        c_int::from(cycle.is_some_and(Cycle::cancelled))
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

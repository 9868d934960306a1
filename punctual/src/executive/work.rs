//! The work of a task: a body, a body that a device triggers, or a process.
//!
//! Bodies run in loops, guarded: one that panics ends the executive in order.

use std::any::Any;
use std::fmt;
use std::os::fd::{AsFd, AsRawFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};

use punctual_core::cycle::{Cycle, Flow, IntoFlow};
use punctual_core::time::Span;
use punctual_os::Errno;
use punctual_os::clock::{ClockId, now_ns};
use punctual_os::events::{Interest, wait_until};

use super::ending::Ending;
use super::process::Process;

/// The work of a task.
pub(super) enum Work<'env> {
    Body(Body<'env>),
    Triggered(Trigger<'env>, Body<'env>),
    Process(Box<Process>),
}

/// The body of a task, which runs in each cycle.
pub(super) type Body<'env> = Box<dyn FnMut(&mut Cycle<'_>) -> Flow + Send + 'env>;

/// A body as the executive has it.
pub(super) fn boxed<'env, R: IntoFlow>(
    mut body: impl FnMut(&mut Cycle<'_>) -> R + Send + 'env,
) -> Body<'env> {
    Box::new(move |cycle| body(cycle).into_flow())
}

/// Runs a function of the caller's in a loop, a body's cycle say; where it panics the executive
/// goes on to its end in order.
#[inline]
pub(super) fn guarded(
    ending: &Ending,
    name: impl FnOnce() -> String,
    function: impl FnOnce() -> Flow,
) -> Flow {
    // Only its owner uses it again, who learns of the panic by the end.
    let ended = catch_unwind(AssertUnwindSafe(|| ending.callback(function)));
    match ended {
        Ok(flow) => flow,
        Err(panic) => {
            ending.panicked(&name(), panic_text(&*panic));
            Flow::Stop
        }
    }
}

/// The text of a panic.
pub(super) fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a payload that is no text")
}

/// The longest time that a wait for a descriptor goes without a look at the stop.
const FD_LOOK: Span = Span::from_ms(100);

/// Blocks until the next cycle; false for none any more.
type Waits<'env> = Box<dyn FnMut(&AtomicBool) -> bool + Send + 'env>;

/// The wait by which a device triggers a task: for [`ExecutiveBuilder::triggered`].
///
/// [`ExecutiveBuilder::triggered`]: crate::ExecutiveBuilder::triggered
pub struct Trigger<'env>(Waits<'env>);

impl fmt::Debug for Trigger<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Trigger").finish_non_exhaustive()
    }
}

impl<'env> Trigger<'env> {
    /// Blocks until the next cycle; false for none any more.
    pub(super) fn next(&mut self, stop: &AtomicBool) -> bool {
        (self.0)(stop)
    }

    /// A cycle each time that this descriptor is readable, or has an error to be read, until it is
    /// closed at its other end. The body reads what is there, also from a socket's error queue: as
    /// long as it does not, the next cycle follows at once.
    ///
    /// # Real-time: setup only
    pub fn fd(descriptor: impl AsFd + Send + 'env) -> Self {
        Self(Box::new(move |stop| {
            let mut interest = [Interest::new(descriptor.as_fd().as_raw_fd())];
            while !stop.load(Ordering::Relaxed) {
                let until_ns = now_ns(ClockId::Monotonic) + FD_LOOK.as_ns().unsigned_abs();
                match wait_until(&mut interest, until_ns) {
                    Ok(0) => {}
                    Ok(_) => return interest[0].is_readable() || interest[0].has_error(),
                    Err(Errno::INTR) => {}
                    Err(_) => return false,
                }
            }
            false
        }))
    }

    /// A cycle each time that `wait` returns true; it blocks until then. False ends the task: at
    /// the latest when the executive is to stop, which `wait` finds out by itself.
    ///
    /// # Real-time: setup only
    pub fn wait(mut wait: impl FnMut() -> bool + Send + 'env) -> Self {
        Self(Box::new(move |_| wait()))
    }
}

//! What triggers a task that has no period: a device.
//!
//! For tasks whose device says when: a sound card, a bus, a blocking read. A loop of a period
//! beside it would lose a cycle whenever the two drift past each other.

use std::fmt;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::{AtomicBool, Ordering};

use punctual_core::time::Span;
use punctual_os::Errno;
use punctual_os::clock::{ClockId, now_ns};
use punctual_os::poll::{Interest, wait_until};

/// How often a wait for a descriptor looks whether it is to stop.
const LOOK: Span = Span::from_ms(100);

/// Blocks until the next cycle; false for none any more.
type Waits<'env> = Box<dyn FnMut(&AtomicBool) -> bool + Send + 'env>;

/// What triggers a task.
pub struct Trigger<'env>(pub(super) Waits<'env>);

impl fmt::Debug for Trigger<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Trigger").finish_non_exhaustive()
    }
}

impl<'env> Trigger<'env> {
    /// A cycle each time that this descriptor is readable, until it is closed at its other end. The
    /// body reads what is there: as long as it does not, the next cycle follows at once.
    ///
    /// # Real-time: setup only
    pub fn fd(descriptor: impl AsFd + Send + 'env) -> Self {
        Self(Box::new(move |stop| {
            let mut interest = [Interest::new(descriptor.as_fd().as_raw_fd())];
            while !stop.load(Ordering::Relaxed) {
                let until_ns = now_ns(ClockId::Monotonic) + LOOK.as_ns().unsigned_abs();
                match wait_until(&mut interest, until_ns) {
                    Ok(0) => {}
                    Ok(_) => return interest[0].is_readable(),
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

//! A value that only the thread that made it may touch.
//!
//! For loops: their thread has the session. Costs a load and a compare, no locked instruction.

use std::cell::{Cell, UnsafeCell};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::failure::Failure;

static MARKS: AtomicU64 = AtomicU64::new(1);

thread_local! {
    static MARK: Cell<u64> = const { Cell::new(0) };
}

/// A number that no other thread of the process has or had; 0 for a thread that is ending.
fn mark() -> u64 {
    let own = |mark: &Cell<u64>| {
        if mark.get() == 0 {
            mark.set(MARKS.fetch_add(1, Ordering::Relaxed));
        }
        mark.get()
    };
    MARK.try_with(own).unwrap_or(0)
}

/// A value that the thread which made it may touch, and no other.
#[derive(Debug)]
pub(crate) struct ThreadBound<T> {
    owner: u64,
    busy: Cell<bool>,
    inside: UnsafeCell<T>,
}

// SAFETY: all that is behind the first line of `with` is the owner's thread alone; what others may
// do is to read `owner`, which never changes.
unsafe impl<T> Sync for ThreadBound<T> {}

impl<T> ThreadBound<T> {
    /// Binds a value to the calling thread.
    pub(crate) fn new(inside: T) -> Self {
        Self { owner: mark(), busy: Cell::new(false), inside: UnsafeCell::new(inside) }
    }

    /// The value, bound no more.
    pub(crate) fn into_inner(self) -> T {
        self.inside.into_inner()
    }

    /// True in the thread that made it.
    pub(crate) fn is_mine(&self) -> bool {
        self.owner != 0 && self.owner == mark()
    }

    /// Runs `inner` on the inside: EPERM on another thread, EBUSY from within itself, as in a
    /// signal handler.
    pub(crate) fn with<R>(
        &self,
        inner: impl FnOnce(&mut T) -> Result<R, Failure>,
    ) -> Result<R, Failure> {
        /// Gives it back on every way out, a panic's too.
        struct Busy<'a>(&'a Cell<bool>);
        impl Drop for Busy<'_> {
            fn drop(&mut self) {
                self.0.set(false);
            }
        }
        if !self.is_mine() {
            return Err(Failure::bare(libc::EPERM));
        }
        if self.busy.replace(true) {
            return Err(Failure::bare(libc::EBUSY));
        }
        let _busy = Busy(&self.busy);
        // SAFETY: this is the owner's thread, and it is not inside already.
        inner(unsafe { &mut *self.inside.get() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_thread_and_a_second_call_are_refused() {
        let owned = ThreadBound::new(1);
        let refused = std::thread::scope(|scope| {
            let thread = scope.spawn(|| owned.with(|inside| Ok(*inside)).map_err(|f| f.errno));
            thread.join().expect("no panic")
        });
        assert_eq!(refused, Err(libc::EPERM));
        let nested = owned.with(|_| owned.with(|_| Ok(())));
        assert_eq!(nested.expect_err("inside").errno, libc::EBUSY);
        assert_eq!(owned.with(|inside| Ok(*inside)).expect("free again"), 1);
    }
}

//! A mutex whose owner runs with the priority of whoever waits for it.
//!
//! For data that a real-time loop shares with a thread below it: what the owner does inside delays
//! the loop, and a thread between the two does not. The kernel lends the priority. Free and taken
//! are a number in memory; the kernel is called where somebody waits, and once in each thread for
//! its number.

use core::cell::UnsafeCell;
use core::ffi::c_long;
use core::fmt;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};
use core::sync::atomic::{AtomicU32, Ordering, fence};

use crate::Errno;
use crate::fork::known_tid;

/// A mutex with priority inheritance (`FUTEX_LOCK_PI`), for the threads of one process.
///
/// While a thread waits for it, its owner has at least that thread's priority, and so has whoever
/// that owner waits for. Waiters sleep; when it is given back the one of the highest priority has
/// it next. What a waiter may wait is the longest that anybody holds it, and of each thread above
/// the waiter what that runs.
///
/// **No poisoning**: a panic inside gives it back, with the data as the panic left them. In a loop
/// nobody could act on a poisoned lock; whoever must know keeps a flag beside the data.
///
/// ```
/// # mod punctual { pub use punctual_os::pi_mutex::PiMutex; }
/// use punctual::PiMutex;
///
/// static TARGET: PiMutex<(f64, f64)> = PiMutex::new((0.0, 0.0));
/// TARGET.lock().0 = 0.5;
/// assert_eq!(*TARGET.lock(), (0.5, 0.0));
/// ```
pub struct PiMutex<T: ?Sized> {
    /// As futex(2) has it: the owner's thread number, and whether somebody waits; 0 while free.
    word: AtomicU32,
    data: UnsafeCell<T>,
}

// SAFETY: one thread at a time has the data, and gets them by value or by exclusive reference.
unsafe impl<T: ?Sized + Send> Send for PiMutex<T> {}
// SAFETY: as above: `lock` gives the data to one thread at a time.
unsafe impl<T: ?Sized + Send> Sync for PiMutex<T> {}

impl<T> PiMutex<T> {
    /// A free one.
    ///
    /// # Real-time: setup only
    pub const fn new(data: T) -> Self {
        Self { word: AtomicU32::new(0), data: UnsafeCell::new(data) }
    }

    /// The data, of a mutex that is no longer shared.
    ///
    /// # Real-time: setup only
    pub fn into_inner(self) -> T {
        self.data.into_inner()
    }
}

impl<T: ?Sized> PiMutex<T> {
    /// Waits until it is free, and takes it until the guard is dropped.
    ///
    /// # Panics
    /// When the calling thread has it already; when its owner ended without giving it back; when
    /// the kernel has no memory for the waiter, or no such mutexes.
    ///
    /// # Real-time: in loop, waits
    #[inline]
    pub fn lock(&self) -> PiGuard<'_, T> {
        let guard = self.try_lock();
        guard.unwrap_or_else(|| self.lock_slowly())
    }

    /// Takes it where it is free; `None` where a thread has it, the calling one too.
    ///
    /// # Real-time: in loop
    #[inline]
    pub fn try_lock(&self) -> Option<PiGuard<'_, T>> {
        let owner = known_tid().cast_unsigned();
        let taken = self.word.compare_exchange(0, owner, Ordering::Acquire, Ordering::Relaxed);
        taken.ok().map(|_| PiGuard { mutex: self, owner, of_thread: PhantomData })
    }

    /// `futex(FUTEX_LOCK_PI)`, which sleeps until the calling thread is the owner.
    #[cold]
    fn lock_slowly(&self) -> PiGuard<'_, T> {
        loop {
            match self.call(libc::FUTEX_LOCK_PI) {
                Ok(()) => break,
                // The owner is about to end, or a signal came.
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(why) => refused(why),
            }
        }
        // Who had it before gave it back to the kernel, behind a fence of its own.
        fence(Ordering::Acquire);
        PiGuard { mutex: self, owner: known_tid().cast_unsigned(), of_thread: PhantomData }
    }

    /// The data, of a mutex that nobody else has.
    ///
    /// # Real-time: in loop
    pub fn get_mut(&mut self) -> &mut T {
        self.data.get_mut()
    }

    /// `futex(word, operation | FUTEX_PRIVATE_FLAG, 0, NULL)`.
    fn call(&self, operation: i32) -> Result<(), Errno> {
        // SAFETY: the word is a live one, aligned to 4; no time-out.
        let result = unsafe {
            libc::syscall(
                libc::SYS_futex,
                self.word.as_ptr(),
                c_long::from(operation | libc::FUTEX_PRIVATE_FLAG),
                0_u32,
                core::ptr::null::<libc::timespec>(),
            )
        };
        Errno::check(result).map(drop)
    }
}

#[cold]
fn refused(why: Errno) -> ! {
    match why.0 {
        libc::EDEADLK => panic!(
            "this thread has the mutex already, or waits for it in a circle: drop its guard \
             before the next lock"
        ),
        libc::ESRCH => panic!("the mutex's owner ended without dropping its guard"),
        _ => panic!("the kernel refused to wait for the mutex: {why}"),
    }
}

impl<T: Default> Default for PiMutex<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for PiMutex<T> {
    /// Does not wait: `<locked>` where a thread has it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("PiMutex");
        match self.try_lock() {
            Some(guard) => shown.field("data", &&*guard),
            None => shown.field("data", &format_args!("<locked>")),
        };
        shown.finish()
    }
}

/// The data of a [`PiMutex`] that the calling thread has; dropping it gives the mutex back.
///
/// It stays in its thread, which is the one that the kernel lends the priority.
#[must_use = "the mutex is given back when this is dropped"]
pub struct PiGuard<'m, T: ?Sized> {
    mutex: &'m PiMutex<T>,
    owner: u32,
    of_thread: PhantomData<*const ()>,
}

// SAFETY: a shared guard gives shared references to the data alone.
unsafe impl<T: ?Sized + Sync> Sync for PiGuard<'_, T> {}

impl<T: ?Sized> Deref for PiGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the guard's thread owns the mutex, and nobody else has a reference to the data.
        unsafe { &*self.mutex.data.get() }
    }
}

impl<T: ?Sized> DerefMut for PiGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as for `deref`; the guard is borrowed exclusively.
        unsafe { &mut *self.mutex.data.get() }
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for PiGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: ?Sized> Drop for PiGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        let word = &self.mutex.word;
        if word.compare_exchange(self.owner, 0, Ordering::Release, Ordering::Relaxed).is_err() {
            // For whoever the kernel gives it to.
            fence(Ordering::Release);
            // Fails in a child of fork(2) alone, whose copy nobody waits for.
            let _given = self.mutex.call(libc::FUTEX_UNLOCK_PI);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    #[test]
    fn no_addition_is_lost_between_threads() {
        let sum = PiMutex::new(0_u64);
        std::thread::scope(|threads| {
            for _ in 0..4 {
                threads.spawn(|| {
                    for _ in 0..20_000 {
                        *sum.lock() += 1;
                    }
                });
            }
        });
        assert_eq!(sum.into_inner(), 80_000);
    }

    #[test]
    fn a_second_lock_of_the_owner_is_refused_in_words_and_the_first_goes_on() {
        let mutex = PiMutex::new(5);
        let guard = mutex.lock();
        assert!(mutex.try_lock().is_none());
        let again = catch_unwind(AssertUnwindSafe(|| drop(mutex.lock())));
        let why = again.expect_err("refused");
        let text = why.downcast_ref::<&str>().expect("words");
        assert!(text.contains("has the mutex already"), "{text}");
        assert_eq!(*guard, 5);
        drop(guard);
        assert_eq!(*mutex.lock(), 5);
    }

    #[test]
    fn a_panic_inside_gives_it_back_with_the_data_as_they_are() {
        let mutex = PiMutex::new(1);
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            *mutex.lock() = 2;
            let mut guard = mutex.lock();
            *guard = 3;
            panic!("inside");
        }));
        assert!(panicked.is_err());
        assert_eq!(mutex.try_lock().map(|guard| *guard), Some(3));
    }

    #[test]
    fn an_owner_that_ended_with_it_is_named() {
        let mutex = PiMutex::new(());
        std::thread::scope(|threads| {
            let owner = threads.spawn(|| core::mem::forget(mutex.lock()));
            owner.join().expect("no panic");
        });
        let why = catch_unwind(AssertUnwindSafe(|| drop(mutex.lock()))).expect_err("refused");
        let text = why.downcast_ref::<&str>().expect("words");
        assert!(text.contains("ended without dropping its guard"), "{text}");
    }
}

//! Which process this is, without a system call: whether a fork(2) lies between.
//!
//! For what belongs to one process and cannot go on in its child: threads, locks, memory that is
//! shared with others. A page that the kernel wipes in a child holds the process's mark, so that a
//! look is two loads, and also a child of the raw system call is seen, which no handler of
//! pthread_atfork(3) would be. Before Linux 4.14 the kernel wipes no page, and no child is seen. A
//! thread's number, which is asked for once, is kept beside the mark.

use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use crate::process;

/// The page, of which the first word is the mark of this process; 0 in a child that has none yet.
static PAGE: AtomicPtr<AtomicU64> = AtomicPtr::new(ptr::null_mut());
/// The last mark that this process or one above it took. A child inherits it, and takes others.
static MARKS: AtomicU64 = AtomicU64::new(0);
/// Where there is no page: no child is seen.
static NO_PAGE: AtomicU64 = AtomicU64::new(0);
/// No more than a page on any processor.
const BYTES: usize = 4_096;

/// EX_SOFTWARE of sysexits.h: the exit status of a child that comes back from a callback.
const FORKED_STATUS: i32 = 70;

/// The process in which something was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin(u64);

impl Default for Origin {
    fn default() -> Self {
        Self::here()
    }
}

impl Origin {
    /// The calling process. The first call maps the page:
    /// `mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)`,
    /// `madvise(page, 4096, MADV_WIPEONFORK)`.
    ///
    /// # Real-time: setup only
    pub fn here() -> Self {
        let word = page();
        let mark = word.load(Ordering::Acquire);
        if mark != 0 {
            return Self(mark);
        }
        let own = MARKS.fetch_add(1, Ordering::Relaxed) + 1;
        // Of threads that come at once one is first.
        match word.compare_exchange(0, own, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => Self(own),
            Err(first) => Self(first),
        }
    }

    /// True in that process itself; false in a child that fork(2) made of it since.
    ///
    /// # Real-time: in loop
    #[inline]
    pub fn is_here(self) -> bool {
        let page = PAGE.load(Ordering::Relaxed);
        // SAFETY: never null where there is an `Origin`; what it points to is mapped for good.
        unsafe { &*page }.load(Ordering::Relaxed) == self.0
    }

    /// Runs a function that knows nothing of its caller's threads. A child that fork(2) made in it
    /// and that comes back from it, by a panic too, is ended by `_exit(70)`.
    ///
    /// # Real-time: in loop
    #[inline]
    pub fn callback<R>(self, run: impl FnOnce() -> R) -> R {
        let _ends = EndsChild(self);
        run()
    }
}

/// The mark of this process, which no child of it has; `None` where no child is seen.
pub(crate) fn mark() -> Option<u64> {
    let Origin(own) = Origin::here();
    let is_wiped = !ptr::eq(PAGE.load(Ordering::Relaxed), &raw const NO_PAGE);
    is_wiped.then_some(own)
}

/// Ends a child of this process when it is dropped there.
struct EndsChild(Origin);

impl Drop for EndsChild {
    #[inline]
    fn drop(&mut self) {
        if !self.0.is_here() {
            process::exit_at_once(FORKED_STATUS);
        }
    }
}

/// The word with the mark.
fn page() -> &'static AtomicU64 {
    let known = PAGE.load(Ordering::Acquire);
    let page = if known.is_null() { map() } else { known };
    // SAFETY: mapped for good, or a static; nobody makes a mutable reference of it.
    unsafe { &*page }
}

#[cold]
fn map() -> *mut AtomicU64 {
    let (protection, flags) =
        (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: new memory at an address of the kernel's choice.
    let mapped = unsafe { libc::mmap(ptr::null_mut(), BYTES, protection, flags, -1, 0) };
    let mut page = ptr::from_ref(&NO_PAGE).cast_mut();
    if mapped != libc::MAP_FAILED {
        // SAFETY: advice on the memory that was mapped above, which is nobody's yet.
        if unsafe { libc::madvise(mapped, BYTES, libc::MADV_WIPEONFORK) } == 0 {
            page = mapped.cast();
        }
    }
    let first = PAGE.compare_exchange(ptr::null_mut(), page, Ordering::AcqRel, Ordering::Acquire);
    let kept = first.map_or_else(|first| first, |_| page);
    if mapped != libc::MAP_FAILED && kept.cast() != mapped {
        // SAFETY: mapped above, and known to nobody else.
        let _unmapped = unsafe { libc::munmap(mapped, BYTES) };
    }
    kept
}

/// Where each thread keeps its number ([`known_tid`]): the key and one; 0 before it is made.
static KEY: AtomicU64 = AtomicU64::new(0);

/// As [`process::tid`], which is called once a thread, and anew in a child of fork(2), whose thread
/// has its parent's memory and a number of its own: `pthread_getspecific(key)`,
/// `pthread_setspecific(key)`. The first call makes the key: `pthread_key_create()`.
///
/// # Real-time: in loop
pub(crate) fn known_tid() -> i32 {
    // A number of 32 bits and as many of the process's mark in one word: a signal handler finds
    // both or neither.
    let Some(mark) = mark().filter(|_| usize::BITS == 64) else { return process::tid() };
    let Some(key) = key() else { return process::tid() };
    // SAFETY: a key that was made and is never deleted.
    let known = unsafe { libc::pthread_getspecific(key) }.addr() as u64;
    if known >> 32 == mark & u64::from(u32::MAX) {
        return (known as u32).cast_signed();
    }
    let own = process::tid();
    let word = mark << 32 | u64::from(own.cast_unsigned());
    // SAFETY: as above; the value is a number that nobody follows, and the key has no destructor.
    // One that cannot be kept is read again.
    let _kept = unsafe { libc::pthread_setspecific(key, ptr::without_provenance(word as usize)) };
    own
}

/// The key; `None` where the process has as many as can be.
fn key() -> Option<libc::pthread_key_t> {
    let known = KEY.load(Ordering::Acquire);
    if known != 0 {
        return libc::pthread_key_t::try_from(known - 1).ok();
    }
    let mut made = 0;
    // SAFETY: `made` is writable.
    if unsafe { libc::pthread_key_create(&raw mut made, None) } != 0 {
        return None;
    }
    match KEY.compare_exchange(0, u64::from(made) + 1, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => Some(made),
        Err(first) => {
            // SAFETY: made above, and known to nobody else.
            let _deleted = unsafe { libc::pthread_key_delete(made) };
            libc::pthread_key_t::try_from(first - 1).ok()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Calls `child` in a child process, and returns its answer.
    fn in_child(raw: bool, child: impl FnOnce() -> bool) -> bool {
        let fork = || match raw {
            // SAFETY: as fork(2): SIGCHLD, and no memory of the parent's is shared.
            true => unsafe {
                libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) as libc::pid_t
            },
            // SAFETY: the child calls nothing that another thread might hold a lock of.
            false => unsafe { libc::fork() },
        };
        let pid = fork();
        assert!(pid >= 0, "no child");
        if pid == 0 {
            // SAFETY: ends the child.
            unsafe { libc::_exit(i32::from(!child())) };
        }
        let mut status = 0;
        // SAFETY: `status` is writable.
        assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, 0) }, pid);
        libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0
    }

    #[test]
    fn a_child_and_another_thread_know_their_own_number() {
        let is_own = || known_tid() == process::tid();
        assert!(is_own() && is_own());
        for raw in [false, true] {
            assert!(in_child(raw, || is_own() && is_own()), "raw: {raw}");
        }
        assert!(std::thread::spawn(move || is_own() && is_own()).join().expect("no panic"));
    }

    #[test]
    fn a_child_is_not_its_parent_and_has_a_mark_of_its_own() {
        let parent = Origin::here();
        assert!(parent.is_here() && parent == Origin::here());
        for raw in [false, true] {
            let child = || {
                let before = parent.is_here();
                let own = Origin::here();
                let grandchild = in_child(raw, || !own.is_here() && !parent.is_here());
                !before && own.is_here() && own != parent && !parent.is_here() && grandchild
            };
            assert!(in_child(raw, child), "raw: {raw}");
            assert!(parent.is_here());
        }
    }
}

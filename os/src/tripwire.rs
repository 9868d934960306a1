//! A tripwire for tests: an allocator that counts what one thread allocates.
//!
//! For the tests that hold the loop to "zero allocation". It stands here because an allocator is
//! unsafe to write; no program of the project installs it.

use core::alloc::{GlobalAlloc, Layout};
use core::sync::atomic::{AtomicI32, AtomicU64, Ordering};

/// An allocator that counts the allocations, and releases, of the thread that armed it.
#[derive(Debug)]
pub struct Counting<A> {
    inner: A,
    tid: AtomicI32,
    count: AtomicU64,
}

impl<A> Counting<A> {
    /// Counts nothing until armed; allocates by `inner`.
    ///
    /// # Real-time: setup only
    pub const fn new(inner: A) -> Self {
        Self { inner, tid: AtomicI32::new(0), count: AtomicU64::new(0) }
    }

    /// Counts, from zero, what the calling thread does from now on.
    ///
    /// # Real-time: setup only
    pub fn arm(&self) {
        self.count.store(0, Ordering::Relaxed);
        self.tid.store(crate::process::tid(), Ordering::Release);
    }

    /// Stops counting; how often the thread allocated or released.
    ///
    /// # Real-time: setup only
    pub fn disarm(&self) -> u64 {
        self.tid.store(0, Ordering::Release);
        self.count.load(Ordering::Relaxed)
    }

    fn note(&self) {
        let tid = self.tid.load(Ordering::Acquire);
        if tid != 0 && tid == crate::process::tid() {
            self.count.fetch_add(1, Ordering::Relaxed);
        }
    }
}

// SAFETY: hands every call to `inner` unchanged and only counts beside it, without allocating.
unsafe impl<A: GlobalAlloc> GlobalAlloc for Counting<A> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        self.note();
        // SAFETY: the caller's promises are those of `inner`.
        unsafe { self.inner.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        self.note();
        // SAFETY: the caller's promises are those of `inner`, which gave the pointer.
        unsafe { self.inner.dealloc(pointer, layout) }
    }
}

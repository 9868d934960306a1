//! Tripwires for tests: allocators that count what one thread allocates, and what all hold.
//!
//! For the tests that hold the loop to "zero allocation". It stands here because an allocator is
//! unsafe to write; no program of the project installs it.

use core::alloc::{GlobalAlloc, Layout};
use core::sync::atomic::{AtomicI32, AtomicU64, AtomicUsize, Ordering};

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

/// An allocator that knows how many bytes the whole process holds, and held at most.
#[derive(Debug)]
pub struct Weighing<A> {
    inner: A,
    held: AtomicUsize,
    most: AtomicUsize,
}

impl<A> Weighing<A> {
    /// Holds nothing yet; allocates by `inner`.
    ///
    /// # Real-time: setup only
    pub const fn new(inner: A) -> Self {
        Self { inner, held: AtomicUsize::new(0), most: AtomicUsize::new(0) }
    }

    /// Bytes that are allocated now.
    ///
    /// # Real-time: reader side
    pub fn held_bytes(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }

    /// The most bytes that were allocated at once since the last call of this.
    ///
    /// # Real-time: reader side
    pub fn most_bytes(&self) -> usize {
        self.most.swap(self.held_bytes(), Ordering::Relaxed)
    }
}

// SAFETY: hands every call to `inner` unchanged and only counts beside it, without allocating.
unsafe impl<A: GlobalAlloc> GlobalAlloc for Weighing<A> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let held = self.held.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        self.most.fetch_max(held, Ordering::Relaxed);
        // SAFETY: the caller's promises are those of `inner`.
        unsafe { self.inner.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        self.held.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promises are those of `inner`, which gave the pointer.
        unsafe { self.inner.dealloc(pointer, layout) }
    }
}

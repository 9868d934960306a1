//! The memory that a table or a state lies in, slice by slice.
//!
//! For callers that bring it into the caches before a release, lock it, or flush it before a
//! measurement. Read only.

/// Receives slices of memory.
pub trait Visit {
    /// One of them.
    ///
    /// # Real-time: in loop
    fn part<T>(&mut self, part: &[T]);
}

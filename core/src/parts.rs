//! The memory that a table or a state lies in, slice by slice.
//!
//! For whoever brings it near before a release, locks it, or sends it away before a measurement.
//! Shows it, and lets nobody change it.

/// Is shown slices of memory.
pub trait Visit {
    /// One of them.
    ///
    /// # Real-time: in loop
    fn part<T>(&mut self, part: &[T]);
}

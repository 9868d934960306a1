//! `punctual_source_fn`: the function of the caller's that blocks until a device wants a cycle.

use std::ffi::{c_int, c_void};

/// Blocks until the next cycle.
pub(crate) type Blocks = unsafe extern "C" fn(*mut c_void) -> c_int;

/// The caller's function and its argument, that of its task.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Source {
    blocks: Blocks,
    data: *mut c_void,
}

// SAFETY: the header says that the task's own thread calls the function with that pointer. Nothing
// here follows the pointer.
unsafe impl Send for Source {}
// SAFETY: as above; a shared one is read only.
unsafe impl Sync for Source {}

impl Source {
    /// A function of the caller's, and what it is called with.
    pub(super) fn new(blocks: Blocks, data: *mut c_void) -> Self {
        Self { blocks, data }
    }

    /// Blocks: above 0 for a cycle, 0 for none any more, or −errno.
    pub(super) fn wait(&self) -> c_int {
        // SAFETY: the header says what the function must take, and that it neither throws nor
        // jumps out.
        unsafe { (self.blocks)(self.data) }
    }
}

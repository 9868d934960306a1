//! A wait's knowledge of this machine, as bytes that the caller keeps from one start to the next.
//!
//! For loops and executives alike: taken from options, and given. Bytes of no use are no failure:
//! the wait learns as without them.

use std::ffi::{CStr, c_void};

use punctual::Period;
use punctual::learned::{self, BYTES, FromBytesError};
use punctual_core::wait::adaptive::LearnPhase;
use punctual_core::wait::{Learned, WaitStatus};

use crate::failure::{Failure, null};
use crate::ffi;

/// Bytes of the caller's; of another length none are of use, and none are read.
#[derive(Clone, Debug)]
pub(crate) struct LearnedBytes(Result<[u8; BYTES], FromBytesError>);

impl LearnedBytes {
    /// The bytes at `bytes`, of which there are `size`.
    ///
    /// # Safety
    /// `size` bytes can be read there.
    pub(crate) unsafe fn read(bytes: *const c_void, size: usize) -> Self {
        if size != BYTES {
            return Self(Err(FromBytesError::Length(size)));
        }
        // SAFETY: as many bytes, says the caller; bytes are aligned.
        Self(Ok(unsafe { bytes.cast::<[u8; BYTES]>().read() }))
    }

    /// The knowledge in the bytes, for releases of this period; or, in words, the reason against
    /// them.
    pub(crate) fn known(self, period: Period) -> Result<Learned, String> {
        let known = self.0.and_then(|bytes| learned::from_bytes(&bytes, period));
        known.map_err(|why| format!("learned: {why}"))
    }
}

/// The knowledge of a wait on releases of this period, as bytes; `None` where it has not yet, or
/// never does.
pub(crate) fn to_bytes(status: &WaitStatus, period: Period) -> Option<[u8; BYTES]> {
    let known = status.learned.filter(|known| known.phase != LearnPhase::Calibrating)?;
    Some(learned::to_bytes(&known, period))
}

/// Gives the bytes that `read` finds: ENODATA where it finds none, ERANGE where there is no room.
///
/// # Safety
/// `to` is null, or `size` bytes can be written there.
pub(crate) unsafe fn give(
    to: *mut c_void,
    size: usize,
    read: impl FnOnce() -> Result<Option<[u8; BYTES]>, Failure>,
) -> Result<(), Failure> {
    let null = null!("bytes", "room for PUNCTUAL_LEARNED_BYTES bytes");
    if to.is_null() {
        return Err(Failure::fixed(libc::EINVAL, null));
    }
    if size < BYTES {
        let text = format!("bytes must be room for {BYTES} bytes (got {size})");
        return Err(Failure::new(libc::ERANGE, text));
    }
    const NONE: &CStr = c"its wait has learned nothing yet, or never does: set options.wait to \
                          PUNCTUAL_WAIT_ADAPTIVE";
    let bytes = read()?.ok_or(Failure::fixed(libc::ENODATA, NONE))?;
    // SAFETY: not null, and then so many writable bytes, says the caller; bytes are aligned.
    unsafe { ffi::put(to.cast(), null, bytes) }
}

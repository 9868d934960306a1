//! Anonymous memory whose pages come, go, and change their protection at will.
//!
//! For injections: a page that is touched first faults, and one that goes or loses a right makes
//! the kernel interrupt the other CPUs that may know it (their TLBs).

use core::fmt;
use core::ptr::NonNull;

use crate::Errno;
use crate::fork::Origin;

/// Bytes from one touch to the next: no more than a page on any processor.
const STEP: usize = 4_096;

/// Memory of its own, zeroed; unmapped when dropped.
pub struct Pages {
    at: NonNull<u8>,
    bytes: usize,
    origin: Origin,
}

// SAFETY: the mapping belongs to the process, not to a thread, and is written through `&mut` alone.
unsafe impl Send for Pages {}

impl fmt::Debug for Pages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pages").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

impl Pages {
    /// `mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)`,
    /// `madvise(pages, bytes, MADV_NOHUGEPAGE)`: no page is there yet, unless memory is locked;
    /// each comes by a fault of its own.
    ///
    /// Errors: `EINVAL` for 0 bytes, `ENOMEM`, `EAGAIN` beyond RLIMIT_MEMLOCK with locked memory.
    ///
    /// # Real-time: setup only
    pub fn new(bytes: usize) -> Result<Self, Errno> {
        // SAFETY: a new mapping where the kernel chooses.
        let at = unsafe {
            libc::mmap(
                core::ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if at == libc::MAP_FAILED {
            return Err(Errno::last());
        }
        // SAFETY: the mapping made above. A kernel without huge pages refuses it, which is as good.
        unsafe { libc::madvise(at, bytes, libc::MADV_NOHUGEPAGE) };
        let at = NonNull::new(at.cast()).ok_or(Errno::INVAL)?;
        Ok(Self { at, bytes, origin: Origin::here() })
    }

    /// Writes to each page: those that are not there fault. How many.
    ///
    /// # Real-time: in loop
    pub fn touch(&mut self) -> usize {
        for offset in (0..self.bytes).step_by(STEP) {
            let byte = self.at.as_ptr().wrapping_add(offset);
            // SAFETY: within this mapping, which may be written whenever a method of it returned.
            unsafe { byte.write_volatile(1) };
        }
        self.bytes.div_ceil(STEP)
    }

    /// `madvise(pages, bytes, MADV_DONTNEED)`: the kernel takes every page back, and the next
    /// [`Self::touch`] faults again.
    ///
    /// # Real-time: in loop
    pub fn discard(&mut self) -> Result<(), Errno> {
        // SAFETY: this mapping's own range; what it held is not wanted.
        let result =
            unsafe { libc::madvise(self.at.as_ptr().cast(), self.bytes, libc::MADV_DONTNEED) };
        Errno::check(result.into()).map(drop)
    }

    /// `mprotect(pages, bytes, PROT_READ)`, `mprotect(pages, bytes, PROT_READ | PROT_WRITE)`: takes
    /// a right away and gives it back.
    ///
    /// # Real-time: in loop
    pub fn reprotect(&mut self) -> Result<(), Errno> {
        let at = self.at.as_ptr().cast();
        // SAFETY: this mapping's own range, which nobody writes to meanwhile.
        let taken = unsafe { libc::mprotect(at, self.bytes, libc::PROT_READ) };
        Errno::check(taken.into())?;
        // SAFETY: as above.
        let given = unsafe { libc::mprotect(at, self.bytes, libc::PROT_READ | libc::PROT_WRITE) };
        Errno::check(given.into()).map(drop)
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // A child has a copy of its own, which ends with it.
        if self.origin.is_here() {
            // SAFETY: the range is this mapping's own, and nothing borrows from it any more.
            unsafe { libc::munmap(self.at.as_ptr().cast(), self.bytes) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::threads::usage;

    fn faults() -> u64 {
        usage().expect("own").minor_faults
    }

    #[test]
    fn each_page_faults_once_until_it_is_discarded() {
        let mut pages = Pages::new(64 * STEP).expect("memory");
        // The kernel may have larger pages, or fault around: at least one a touch of new ones.
        let before = faults();
        assert_eq!(pages.touch(), 64);
        let first = faults();
        assert!(first > before);
        pages.reprotect().expect("own");
        pages.discard().expect("own");
        let second = faults();
        pages.touch();
        assert!(faults() > second);
        assert_eq!(Pages::new(0).map(drop), Err(Errno::INVAL));
    }
}

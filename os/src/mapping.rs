//! Memory that processes share: a file without a name, sealed in size, mapped as words.
//!
//! For pages and task blocks. All access is by atomic words, so that what another process writes at
//! the same time, or has left there, can be wrong but never undefined.

use core::ffi::{CStr, c_int};
use core::fmt;
use core::ptr::NonNull;
use core::sync::atomic::AtomicU64;

use crate::Errno;
use crate::descriptor::Descriptor;

/// The access that a mapping permits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Loads alone: a store would end the process.
    Read,
    /// Loads and stores.
    Write,
}

/// Words that are shared with every process that has mapped the same file; unmapped when dropped.
pub struct Mapping {
    words: NonNull<AtomicU64>,
    count: usize,
    access: Access,
}

// SAFETY: the mapping belongs to the process, not to a thread; access is by atomics alone.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl fmt::Debug for Mapping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mapping")
            .field("words", &self.count)
            .field("access", &self.access)
            .finish_non_exhaustive()
    }
}

/// `memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING)`, `ftruncate(8 · words)`,
/// `fcntl(F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW)`, `fchmod(0400)`: a descriptor of zeroed memory
/// whose size cannot change any more, so that no access to a mapping of it can fail. Opened again
/// by its path in /proc it can be read alone, but for root. [`seal`] makes that final.
///
/// Errors: `EMFILE`, `ENFILE`, `ENOMEM`; `EINVAL` for a name above 249 bytes or no words.
///
/// # Real-time: setup only
pub fn create(name: &CStr, words: usize) -> Result<Descriptor, Errno> {
    let bytes = bytes_of(words)?;
    // SAFETY: `name` ends with a zero and outlives the call.
    let made =
        unsafe { libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING) };
    let descriptor = Descriptor::new(Errno::check(made.into())? as c_int);
    size(descriptor.number(), bytes)?;
    add_seals(&descriptor, SEALS)?;
    // SAFETY: takes numbers only.
    Errno::check(unsafe { libc::fchmod(descriptor.number(), 0o400) }.into())?;
    Ok(descriptor)
}

/// Who may write to memory from now on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writers {
    /// Whoever has a descriptor that was opened for writing.
    Holders,
    /// The mappings that there are: those of who made it.
    Maker,
}

/// `fcntl(F_ADD_SEALS, F_SEAL_SEAL)`, for [`Writers::Maker`] with `F_SEAL_FUTURE_WRITE` (Linux 5.1;
/// without it where the kernel does not know that).
///
/// # Real-time: setup only
pub fn seal(descriptor: &Descriptor, writers: Writers) -> Result<(), Errno> {
    if writers == Writers::Maker {
        match add_seals(descriptor, libc::F_SEAL_FUTURE_WRITE) {
            Err(Errno::INVAL) | Ok(()) => {}
            Err(why) => return Err(why),
        }
    }
    add_seals(descriptor, libc::F_SEAL_SEAL)
}

fn bytes_of(words: usize) -> Result<i64, Errno> {
    let bytes = words.checked_mul(size_of::<AtomicU64>()).filter(|&bytes| bytes > 0);
    bytes.and_then(|bytes| i64::try_from(bytes).ok()).ok_or(Errno::INVAL)
}

fn size(descriptor: c_int, bytes: i64) -> Result<(), Errno> {
    // SAFETY: takes numbers only.
    Errno::check(unsafe { libc::ftruncate(descriptor, bytes) }.into()).map(drop)
}

/// The seals that make accesses within the size safe for ever.
const SEALS: c_int = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW;

fn add_seals(descriptor: &Descriptor, seals: c_int) -> Result<(), Errno> {
    // SAFETY: takes numbers only.
    let result = unsafe { libc::fcntl(descriptor.number(), libc::F_ADD_SEALS, seals) };
    Errno::check(result.into()).map(drop)
}

impl Mapping {
    /// `fcntl(F_GET_SEALS)`, `fstat`, `mmap(MAP_SHARED | MAP_POPULATE)`: the first `words` words of
    /// what the descriptor names; all of them for `None`.
    ///
    /// Errors: `EINVAL` when it is no memory of [`create`]'s kind, sealed in size (a file that
    /// another process can shorten would end its readers), or is smaller; `EACCES` for a descriptor
    /// that cannot be written; `EBADF`, `ENOMEM`.
    ///
    /// # Real-time: setup only
    pub fn of(descriptor: c_int, words: Option<usize>, access: Access) -> Result<Self, Errno> {
        // SAFETY: takes numbers only; what has no seals gives EINVAL.
        let seals = unsafe { libc::fcntl(descriptor, libc::F_GET_SEALS) };
        if Errno::check(seals.into())? as c_int & SEALS != SEALS {
            return Err(Errno::INVAL);
        }
        // SAFETY: all-zero is a valid stat.
        let mut stat: libc::stat = unsafe { core::mem::zeroed() };
        // SAFETY: `stat` is writable.
        Errno::check(unsafe { libc::fstat(descriptor, &raw mut stat) }.into())?;
        let held = usize::try_from(stat.st_size).unwrap_or(0) / size_of::<AtomicU64>();
        let count = words.unwrap_or(held);
        if count == 0 || count > held {
            return Err(Errno::INVAL);
        }
        Self::map(descriptor, count, access)
    }

    fn map(descriptor: c_int, count: usize, access: Access) -> Result<Self, Errno> {
        let protection = match access {
            Access::Read => libc::PROT_READ,
            Access::Write => libc::PROT_READ | libc::PROT_WRITE,
        };
        // SAFETY: a new mapping where the kernel chooses, of a length within the sealed file.
        let at = unsafe {
            libc::mmap(
                core::ptr::null_mut(),
                count * size_of::<AtomicU64>(),
                protection,
                libc::MAP_SHARED | libc::MAP_POPULATE,
                descriptor,
                0,
            )
        };
        if at == libc::MAP_FAILED {
            return Err(Errno::last());
        }
        let words = NonNull::new(at.cast()).ok_or(Errno::INVAL)?;
        Ok(Self { words, count, access })
    }

    /// The words, which others may change at any time. With [`Access::Read`] they may be loaded,
    /// not stored to.
    ///
    /// # Real-time: in loop
    #[inline]
    pub fn words(&self) -> &[AtomicU64] {
        // SAFETY: page-aligned, `count` words long, mapped until dropped; the file cannot become
        // shorter; any bits are an AtomicU64.
        unsafe { core::slice::from_raw_parts(self.words.as_ptr(), self.count) }
    }

    /// The access that it permits.
    ///
    /// # Real-time: setup only
    pub fn access(&self) -> Access {
        self.access
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the range is this mapping's own, and nothing borrows from it any more.
        unsafe { libc::munmap(self.words.as_ptr().cast(), self.count * size_of::<AtomicU64>()) };
    }
}

#[cfg(test)]
mod tests {
    use core::sync::atomic::Ordering;
    use std::fs::File;
    use std::os::fd::AsRawFd;

    use super::*;

    fn memory(words: usize) -> Descriptor {
        create(c"punctual-test", words).expect("memory")
    }

    #[test]
    fn two_mappings_are_one_memory() {
        let memory = memory(600);
        let fd = memory.number();
        let writer = Mapping::of(fd, None, Access::Write).expect("mapped");
        let two = Mapping::of(fd, Some(599), Access::Read).expect("mapped");
        assert_eq!((writer.words().len(), two.words().len()), (600, 599));
        writer.words()[598].store(77, Ordering::Relaxed);
        assert_eq!(two.words()[598].load(Ordering::Relaxed), 77);
        assert_eq!((writer.access(), two.access()), (Access::Write, Access::Read));
        drop(memory);
        assert_eq!(two.words()[598].load(Ordering::Relaxed), 77);
    }

    #[test]
    fn the_size_is_for_ever() {
        let memory = memory(8);
        let fd = memory.number();
        assert!(size(fd, 0).is_err() && size(fd, 1 << 20).is_err());
        seal(&memory, Writers::Holders).expect("once");
        assert!(seal(&memory, Writers::Holders).is_err() && size(fd, 0).is_err());
    }

    #[test]
    fn who_may_read_cannot_write() {
        let memory = memory(8);
        let read = crate::descriptor::read_only(&memory).expect("procfs is mounted");
        assert!(Mapping::of(read.number(), None, Access::Read).is_ok());
        let refused = Mapping::of(read.number(), None, Access::Write).map(drop);
        assert_eq!(refused, Err(Errno(libc::EACCES)));
        let again = crate::descriptor::duplicate(memory.number()).expect("open");
        assert!(again != memory && Mapping::of(again.number(), None, Access::Write).is_ok());
        assert!(crate::descriptor::duplicate(-1).is_err());
    }

    #[test]
    fn what_is_its_makers_alone_is_written_through_no_path() {
        let memory = memory(8);
        let own = Mapping::of(memory.number(), None, Access::Write).expect("mapped");
        seal(&memory, Writers::Maker).expect("sealed");
        let write = |path: &str, at: u64| -> std::io::Result<()> {
            use std::os::unix::fs::FileExt;
            let file = File::options().read(true).write(true).open(path)?;
            file.write_all_at(&7u64.to_ne_bytes(), at)
        };
        // A reader's descriptor by its path, and the maker's own.
        let read = crate::descriptor::read_only(&memory).expect("procfs is mounted");
        for number in [read.number(), memory.number()] {
            let path = std::format!("/proc/self/fd/{number}");
            assert!(write(&path, 0).is_err(), "{path}");
            if let Ok(again) = File::options().read(true).write(true).open(&path) {
                // Root may open it; the seal holds all the same.
                let refused = Mapping::of(again.as_raw_fd(), None, Access::Write).map(drop);
                assert_eq!(refused, Err(Errno(libc::EPERM)));
            }
        }
        own.words()[0].store(9, Ordering::Relaxed);
        let seen = Mapping::of(read.number(), None, Access::Read).expect("it may read");
        assert_eq!(seen.words()[0].load(Ordering::Relaxed), 9);
    }

    #[test]
    fn what_could_become_shorter_is_refused() {
        let refused = |fd, words| Mapping::of(fd, words, Access::Read).map(drop);
        let path = std::env::temp_dir().join(std::format!("punctual-map-{}", std::process::id()));
        std::fs::write(&path, [0; 4096]).expect("writable");
        let file = File::open(&path).expect("readable");
        assert!(refused(file.as_raw_fd(), None).is_err(), "a plain file");
        std::fs::remove_file(&path).expect("it was made here");
        let memory = memory(8);
        assert_eq!(refused(memory.number(), Some(9)), Err(Errno::INVAL));
        assert_eq!(refused(memory.number(), Some(0)), Err(Errno::INVAL));
        assert_eq!(refused(-1, None), Err(Errno(libc::EBADF)));
        assert_eq!(create(c"none", 0), Err(Errno::INVAL));
        assert_eq!(create(c"far", usize::MAX), Err(Errno::INVAL));
    }
}

//! Memory that a supervisor shares with the processes of its tasks, and with who reads them.
//!
//! For supervisors and for counts that others read. Makes a file without a name, maps and seals it.

use std::ffi::CString;
use std::sync::atomic::AtomicU64;

use punctual_os::Errno;
use punctual_os::descriptor::{self, Descriptor};
use punctual_os::mapping::{self, Access, Mapping, Writers};

/// A task block or a page in memory of its own, with the descriptors by which others get it.
///
/// Sealed in size, so that nobody can make an access fail. A page is sealed against writes by all
/// but its maker (F_SEAL_FUTURE_WRITE). A block cannot be: each process that is started for its
/// task maps it anew. Its file has mode 0400 instead, so that a reader who opens it again through
/// /proc gets no right to write; root, and a process of the same user that changes the mode first,
/// can still get that.
#[derive(Debug)]
pub struct SharedMemory {
    descriptor: Descriptor,
    mapping: Mapping,
}

impl SharedMemory {
    /// New memory of so many words, zeroed, that processes it is handed to may write; the name is
    /// for /proc.
    pub(super) fn block(name: &str, words: usize) -> Result<Self, Errno> {
        Self::new(name, words, Writers::Holders)
    }

    /// New memory of so many words, zeroed, that this process alone writes.
    ///
    /// # Real-time: setup only
    pub fn page(name: &str, words: usize) -> Result<Self, Errno> {
        Self::new(name, words, Writers::Maker)
    }

    fn new(name: &str, words: usize, writers: Writers) -> Result<Self, Errno> {
        let name = CString::new(format!("punctual:{name}")).map_err(|_| Errno::INVAL)?;
        let descriptor = mapping::create(&name, words)?;
        let mapping = Mapping::of(descriptor.number(), Some(words), Access::Write)?;
        mapping::seal(&descriptor, writers)?;
        Ok(Self { descriptor, mapping })
    }

    /// All of its words, for this process.
    ///
    /// # Real-time: setup only
    pub fn words(&self) -> &[AtomicU64] {
        self.mapping.words()
    }

    /// The descriptor for a process that may write to it.
    pub(super) fn descriptor(&self) -> &Descriptor {
        &self.descriptor
    }

    /// A descriptor for a process that may only read it.
    pub(super) fn read_only(&self) -> Result<Descriptor, Errno> {
        descriptor::read_only(&self.descriptor)
    }
}

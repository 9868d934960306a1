//! A task block or a page in memory of its own, with the descriptors by which others get it.
//!
//! For supervisors. Sealed in size, so that nobody can make an access fail.

use std::ffi::CString;

use punctual_os::Errno;
use punctual_os::descriptor::{self, Descriptor};
use punctual_os::mapping::{self, Access, Mapping};

/// Memory that can be handed out.
#[derive(Debug)]
pub(crate) struct Memory {
    descriptor: Descriptor,
    pub(crate) mapping: Mapping,
}

impl Memory {
    /// New memory of so many words, zeroed; the name is for /proc.
    pub(crate) fn new(name: &str, words: usize) -> Result<Self, Errno> {
        let name = CString::new(format!("punctual:{name}")).map_err(|_| Errno::INVAL)?;
        let descriptor = mapping::create(&name, words)?;
        let mapping = Mapping::of(descriptor.number(), Some(words), Access::Write)?;
        Ok(Self { descriptor, mapping })
    }

    /// For who may write to it.
    pub(crate) fn descriptor(&self) -> &Descriptor {
        &self.descriptor
    }

    /// For who may only read.
    pub(crate) fn read_only(&self) -> Result<Descriptor, Errno> {
        descriptor::read_only(&self.descriptor)
    }
}

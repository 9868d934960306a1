//! What drivers of ours do to the CPUs of a guest, for a requested time.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use punctual_os::Errno;

use super::{InjectedInterval, InjectionRefused, by_number};

/// A driver that is made for a guest, and loads in a virtual machine alone (`xtask/src/vm/NAME.c`):
/// no other machine has its files.
#[derive(Debug)]
pub(super) struct GuestDriver {
    /// Takes CPUs for so many us, written from the CPU that is to be taken, or all.
    take_us: File,
    /// From when to when it took the first of them, ns of CLOCK_MONOTONIC.
    took: PathBuf,
}

impl GuestDriver {
    /// Finds the driver of this name, which the guest of this scenario loads.
    ///
    /// # Errors
    /// It is not loaded.
    pub(super) fn find(name: &str, scenario: &str) -> Result<Self, InjectionRefused> {
        let parameters = Path::new("/sys/module").join(name).join("parameters");
        let path = parameters.join("take_us");
        let take_us = OpenOptions::new().write(true).open(&path);
        let refused = |why| InjectionRefused::Machine {
            why: format!(
                "{}: {why}: the guest of `cargo xtask vm {scenario}` has it",
                path.display()
            ),
        };
        Ok(Self { take_us: take_us.map_err(refused)?, took: parameters.join("took") })
    }

    /// Once; when the CPUs were away, as the driver saw it.
    ///
    /// # Errors
    /// EINVAL beyond 50 ms, and what the driver says.
    pub(super) fn once(&self, cpu: u32, length_ns: u64) -> Result<InjectedInterval, Errno> {
        let us = (length_ns / 1_000).to_string();
        self.take_us.write_all_at(us.as_bytes(), 0).map_err(|why| by_number(&why))?;
        let took = fs::read_to_string(&self.took).map_err(|why| by_number(&why))?;
        let numbers = took.trim().split_once(' ');
        let numbers = numbers.and_then(|(start, end)| start.parse().ok().zip(end.parse().ok()));
        let (start_ns, end_ns) = numbers.ok_or(Errno::IO)?;
        Ok(InjectedInterval { start_ns, end_ns, cpu })
    }
}

//! System management interrupts of a requested length.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;

use punctual_os::Errno;

use super::{InjectedInterval, InjectionRefused, by_number};

/// Takes all CPUs for so many us.
const TAKE_US: &str = "/sys/module/smi/parameters/take_us";
/// From when to when it took the first CPU, ns of CLOCK_MONOTONIC.
const TOOK: &str = "/sys/module/smi/parameters/took";

/// System management interrupts of all CPUs, by a driver that loads in a guest of QEMU alone
/// (xtask/src/vm/smi.c): no other machine has such files.
#[derive(Debug)]
pub(super) struct ManagementInterrupts {
    take_us: File,
}

impl ManagementInterrupts {
    /// Finds the driver.
    ///
    /// # Errors
    /// It is not loaded.
    pub(super) fn find() -> Result<Self, InjectionRefused> {
        let take_us = OpenOptions::new().write(true).open(TAKE_US);
        let refused = |why| InjectionRefused::Machine {
            why: format!("{TAKE_US}: {why}: the guest of `cargo xtask vm firmware` has it"),
        };
        Ok(Self { take_us: take_us.map_err(refused)? })
    }

    /// One of them; when all CPUs were away, by the first one's counter.
    ///
    /// # Errors
    /// ETIMEDOUT where the CPU did not answer, EINVAL beyond 50 ms.
    pub(super) fn once(&self, cpu: u32, length_ns: u64) -> Result<InjectedInterval, Errno> {
        let us = (length_ns / 1_000).to_string();
        self.take_us.write_all_at(us.as_bytes(), 0).map_err(|why| by_number(&why))?;
        let took = fs::read_to_string(TOOK).map_err(|why| by_number(&why))?;
        let numbers = took.trim().split_once(' ');
        let numbers = numbers.and_then(|(start, end)| start.parse().ok().zip(end.parse().ok()));
        let (start_ns, end_ns) = numbers.ok_or(Errno::IO)?;
        Ok(InjectedInterval { start_ns, end_ns, cpu })
    }
}

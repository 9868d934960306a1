//! The bounds that all loads stay within: time, CPUs, memory, files.
//!
//! For who starts loads, and for each load. Plain data; [`LoadBounds::check`] is pure.

use std::path::PathBuf;
use std::time::Duration;

use super::error::LoadError;

/// The longest limit of time: a week.
pub const LIMIT_MAX: Duration = Duration::from_secs(7 * 24 * 3600);
/// Memory that one load may hold, all its workers together, in bytes.
pub(super) const MEMORY_BYTES: usize = 256 << 20;

/// LoadBounds of all loads that run at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadBounds {
    /// After so long a load ends by itself, in (0, [`LIMIT_MAX`]]. A safety net: give the length of
    /// the run and some seconds more, and call [`RunningLoads::stop`](super::RunningLoads::stop).
    pub limit: Duration,
    /// The CPUs that loads run on, at least one; as many workers, at most, does a load have.
    pub cpus: Vec<u32>,
    /// Number of CPUs that are not isolated: the N of load `linuxcnc`; in [1, length of `cpus`].
    pub unisolated: usize,
    /// The directory in which load `disk` has its (nameless) file.
    pub temp: PathBuf,
}

impl LoadBounds {
    /// On `cpus`, of which none is isolated, with files in the system's temporary directory.
    pub fn new(limit: Duration, cpus: Vec<u32>) -> Self {
        Self { limit, unisolated: cpus.len(), cpus, temp: std::env::temp_dir() }
    }

    /// Checks that a load can run in them.
    ///
    /// # Errors
    /// [`LoadError::Bounds`].
    pub(super) fn check(&self) -> Result<(), LoadError> {
        let refuse = |why: &str| Err(LoadError::Bounds { why: why.to_owned() });
        if self.limit.is_zero() || self.limit > LIMIT_MAX {
            return refuse("the time limit must be greater than 0 and at most 7 days");
        }
        if self.cpus.is_empty() || self.cpus.len() > punctual_os::affinity::CPUS_MAX as usize {
            return refuse("there must be at least one CPU to run on, and at most 8192");
        }
        if self.unisolated == 0 || self.unisolated > self.cpus.len() {
            return refuse("the number of CPUs not isolated must be within the CPUs given");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_usable_bounds_pass() {
        let good = LoadBounds::new(Duration::from_secs(1), vec![0, 1]);
        assert_eq!(good.check(), Ok(()));
        for bad in [
            LoadBounds { limit: Duration::ZERO, ..good.clone() },
            LoadBounds { limit: LIMIT_MAX + Duration::from_nanos(1), ..good.clone() },
            LoadBounds { cpus: Vec::new(), ..good.clone() },
            LoadBounds { unisolated: 3, ..good.clone() },
            LoadBounds { unisolated: 0, ..good },
        ] {
            assert!(matches!(bad.check(), Err(LoadError::Bounds { .. })), "{bad:?}");
        }
    }
}

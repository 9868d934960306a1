//! The bounds that all loads stay within: time, CPUs, memory, files.
//!
//! For who starts loads, and for each load. Plain data, but for the choice of the directory of
//! their files, which asks the kernel where it lies; [`LoadBounds::check`] is pure.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{Access, FsWord, access, statfs};

use super::error::LoadError;
use super::supervisor::READY_MAX;

/// A load ends by itself this much after its block, whatever becomes of its parent: as long as the
/// others of its block may take to be ready, and half a minute for a machine that is behind.
pub const LIMIT_GRACE: Duration = READY_MAX.saturating_add(Duration::from_secs(30));
/// The longest block: a week.
const BLOCK_MAX: Duration = Duration::from_secs(7 * 24 * 3600);
/// The longest limit of time: that of the longest block.
pub const LIMIT_MAX: Duration = BLOCK_MAX.saturating_add(LIMIT_GRACE);
/// Memory that one load may hold, all its workers together, in bytes.
pub(super) const MEMORY_BYTES: usize = 256 << 20;

/// LoadBounds of all loads that run at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadBounds {
    /// After so long a load ends by itself, in (0, [`LIMIT_MAX`]]. A safety net: give the length of
    /// the run and some seconds more, and call [`RunningLoads::stop`](super::RunningLoads::stop).
    pub limit: Duration,
    /// The CPUs that loads run on, at least one; a load has as many workers of each kind at most.
    pub cpus: Vec<u32>,
    /// Number of CPUs that are not isolated: the N of load `linuxcnc`; in [1, length of `cpus`].
    pub unisolated: usize,
    /// The directory in which load `disk` has its (nameless) file.
    pub temp: PathBuf,
}

impl LoadBounds {
    /// On `cpus`, of which none is isolated, with files in the system's temporary directory: that
    /// of `TMPDIR` where it is set, else one on a device, where there is one.
    pub fn new(limit: Duration, cpus: Vec<u32>) -> Self {
        let is_writable = |path: &Path| access(path, Access::WRITE_OK | Access::EXEC_OK).is_ok();
        let is_in_memory = |path: &Path| memory_system(path).is_some();
        let temp = temp_directory(std::env::var_os("TMPDIR"), is_in_memory, is_writable);
        Self { limit, unisolated: cpus.len(), cpus, temp }
    }

    /// Checks that a load can run in them.
    ///
    /// # Errors
    /// [`LoadError::Bounds`].
    pub(super) fn check(&self) -> Result<(), LoadError> {
        let refuse = |why: &str| Err(LoadError::Bounds { why: why.to_owned() });
        if self.limit.is_zero() {
            return refuse("the time limit must be greater than 0");
        }
        if self.limit > LIMIT_MAX {
            let block_s = self.limit.saturating_sub(LIMIT_GRACE).as_secs_f64();
            return refuse(&format!(
                "they can run for at most 7 days at a time ({} s; got {block_s} s): measure for a \
                 shorter time, or without loads",
                BLOCK_MAX.as_secs()
            ));
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

/// The directory for files of loads: `requested` as it is, else /tmp; /var/tmp where /tmp lies in
/// memory, as it does on many distributions, and that does not and may be written to.
fn temp_directory(
    requested: Option<OsString>,
    is_in_memory: impl Fn(&Path) -> bool,
    is_writable: impl Fn(&Path) -> bool,
) -> PathBuf {
    if let Some(requested) = requested {
        return requested.into();
    }
    let (usual, lasting) = (Path::new("/tmp"), Path::new("/var/tmp"));
    let is_better = is_in_memory(usual) && !is_in_memory(lasting) && is_writable(lasting);
    if is_better { lasting } else { usual }.to_owned()
}

/// The file system in memory that a directory lies on: a sync there does nothing. `None` where it
/// lies on another one, or cannot be looked at. Numbers as in linux/magic.h.
pub(super) fn memory_system(path: &Path) -> Option<&'static str> {
    const TMPFS: u32 = 0x0102_1994;
    const RAMFS: u32 = 0x8584_58f6;
    let magic: FsWord = statfs(path).ok()?.f_type;
    // Its type differs among architectures, and the number has 32 bits on each.
    match magic as u32 {
        TMPFS => Some("tmpfs"),
        RAMFS => Some("ramfs"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_lie_on_a_device_where_that_can_be() {
        let choose = |requested: Option<&str>, in_memory: &[&str], writable: &[&str]| {
            let is_among = |paths: &[&str], path: &Path| paths.iter().any(|p| Path::new(p) == path);
            temp_directory(
                requested.map(OsString::from),
                |path| is_among(in_memory, path),
                |path| is_among(writable, path),
            )
        };
        let both = ["/tmp", "/var/tmp"];
        for (requested, in_memory, writable, chosen) in [
            (None, &[][..], &both[..], "/tmp"),
            (None, &both[..1], &both, "/var/tmp"),
            (None, &both, &both, "/tmp"),
            (None, &both[..1], &both[..1], "/tmp"),
            (Some("/run/x"), &["/run/x"], &both, "/run/x"),
            (Some("/tmp"), &both[..1], &both, "/tmp"),
        ] {
            assert_eq!(choose(requested, in_memory, writable), Path::new(chosen));
        }
    }

    #[test]
    fn a_file_system_in_memory_is_known() {
        assert_eq!(memory_system(Path::new("/proc")), None);
        assert_eq!(memory_system(Path::new("/nonexistent")), None);
        // By the kernel's list, where it is a mount of its own; what is mounted last lies there.
        let mounts = std::fs::read_to_string("/proc/self/mounts").expect("procfs");
        let mut shared = mounts.lines().filter(|line| line.split(' ').nth(1) == Some("/dev/shm"));
        if let Some(line) = shared.next_back() {
            let is_memory = line.contains(" tmpfs ");
            assert_eq!(memory_system(Path::new("/dev/shm")), is_memory.then_some("tmpfs"));
        }
    }

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
        let of_block = |block: Duration| LoadBounds::new(block + LIMIT_GRACE, vec![0]).check();
        assert_eq!(of_block(BLOCK_MAX), Ok(()));
        let why = of_block(BLOCK_MAX + Duration::from_secs(1)).expect_err("longer").to_string();
        assert!(why.contains("at most 7 days") && why.contains("got 604801 s"), "{why}");
    }
}

//! Scheduling attributes as the kernel has them, for tools that show and set those of any thread.
//!
//! Unlike [`crate::scheduler`], which guards the policies of this project's own loops: here every
//! policy is a number, and what a thread starts inherits it unless the flag says otherwise.

use crate::Errno;

/// SCHED_OTHER of <linux/sched.h>.
pub const OTHER: u32 = 0;
/// SCHED_FIFO.
pub const FIFO: u32 = 1;
/// SCHED_RR.
pub const ROUND_ROBIN: u32 = 2;
/// SCHED_BATCH.
pub const BATCH: u32 = 3;
/// SCHED_IDLE.
pub const IDLE: u32 = 5;
/// SCHED_DEADLINE.
pub const DEADLINE: u32 = 6;
/// SCHED_EXT.
pub const EXT: u32 = 7;

/// SCHED_FLAG_RESET_ON_FORK: what the thread starts begins as SCHED_OTHER.
pub const RESET_ON_FORK: u64 = 1;

/// `struct sched_attr` of sched_setattr(2) and sched_getattr(2), in its first version (48 bytes).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct SchedAttributes {
    /// Its size in bytes; [`set`] writes it itself.
    pub size: u32,
    /// One of the policies here, or a later one.
    pub policy: u32,
    /// Flags, such as [`RESET_ON_FORK`].
    pub flags: u64,
    /// The nice value, of SCHED_OTHER and SCHED_BATCH.
    pub nice: i32,
    /// The priority, of SCHED_FIFO and SCHED_RR: 1 to 99.
    pub priority: u32,
    /// Of SCHED_DEADLINE: time in each period, in ns.
    pub runtime_ns: u64,
    /// Of SCHED_DEADLINE: its end after the start of the period, in ns.
    pub deadline_ns: u64,
    /// Of SCHED_DEADLINE: the period, in ns.
    pub period_ns: u64,
}

/// SCHED_ATTR_SIZE_VER0 of include/uapi/linux/sched/types.h.
const BYTES: u32 = 48;
const _: () = assert!(size_of::<SchedAttributes>() == BYTES as usize);

impl SchedAttributes {
    /// Those of a policy, all else 0.
    ///
    /// # Real-time: setup only
    pub const fn of(policy: u32) -> Self {
        let (flags, nice, priority) = (0, 0, 0);
        let (runtime_ns, deadline_ns, period_ns) = (0, 0, 0);
        Self { size: BYTES, policy, flags, nice, priority, runtime_ns, deadline_ns, period_ns }
    }
}

/// `sched_getattr(tid, &attr, sizeof(attr), 0)`: those of thread `tid`, 0 for the calling one.
///
/// Errors: `ESRCH`; `EPERM` by a security module.
///
/// # Real-time: setup only
pub fn get(tid: i32) -> Result<SchedAttributes, Errno> {
    let mut attributes = SchedAttributes::of(OTHER);
    // SAFETY: `attributes` is writable for the `BYTES` bytes that are stated.
    let result =
        unsafe { libc::syscall(libc::SYS_sched_getattr, tid, &raw mut attributes, BYTES, 0) };
    Errno::check(result).map(|_| attributes)
}

/// `sched_setattr(tid, &attr, 0)`: gives them to thread `tid`, 0 for the calling one.
///
/// Errors: `EPERM` without CAP_SYS_NICE and beyond RLIMIT_RTPRIO, in a cgroup without real-time
/// runtime, or for SCHED_DEADLINE with an affinity; `EBUSY` for SCHED_DEADLINE beyond the free
/// bandwidth; `EINVAL`, `ESRCH`.
///
/// # Real-time: setup only
pub fn set(tid: i32, attributes: &SchedAttributes) -> Result<(), Errno> {
    let attributes = SchedAttributes { size: BYTES, ..*attributes };
    // SAFETY: `attributes` is a sched_attr of the size that it states.
    let result = unsafe { libc::syscall(libc::SYS_sched_setattr, tid, &raw const attributes, 0) };
    Errno::check(result).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_come_back_and_bad_ones_are_refused() {
        std::thread::spawn(|| {
            let before = get(0).expect("own");
            assert_eq!(before.policy, OTHER);
            let batch = SchedAttributes { nice: before.nice, ..SchedAttributes::of(BATCH) };
            set(0, &batch).expect("always allowed");
            assert_eq!(get(0).map(|now| (now.policy, now.nice)), Ok((BATCH, before.nice)));
            let wrong = SchedAttributes { priority: 100, ..SchedAttributes::of(FIFO) };
            assert!(matches!(set(0, &wrong), Err(Errno::INVAL | Errno::PERM)));
            let reversed = SchedAttributes {
                runtime_ns: 2_000_000,
                deadline_ns: 1_000_000,
                period_ns: 1_000_000,
                ..SchedAttributes::of(DEADLINE)
            };
            assert!(matches!(set(0, &reversed), Err(Errno::INVAL | Errno::PERM)));
            assert!(get(-1).is_err());
        })
        .join()
        .expect("no panic");
    }
}

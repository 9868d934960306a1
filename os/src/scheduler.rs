//! The scheduling policy of a thread.
//!
//! For sessions and watchdogs. Priorities are the kernel's own numbers.

use crate::Errno;

/// A scheduling policy, see sched(7). All of them: one that is not named is `Unknown`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchedPolicy {
    /// SCHED_OTHER: the default, no real-time policy.
    Other,
    /// SCHED_FIFO: runs until it blocks; priority in [1, 99], 99 first.
    Fifo(u8),
    /// SCHED_RR: as FIFO, in turns with equals; priority in [1, 99].
    RoundRobin(u8),
    /// Any other policy that the thread has been given; can be read, not set.
    Unknown(u32),
}

impl SchedPolicy {
    /// As the kernel names it, without its priority; "unknown" where [`policy_name`] knows no name.
    ///
    /// # Real-time: in loop
    pub const fn name(self) -> &'static str {
        match policy_name(self.number()) {
            Some(name) => name,
            None => "unknown",
        }
    }

    const fn number(self) -> u32 {
        match self {
            Self::Other => OTHER,
            Self::Fifo(_) => FIFO,
            Self::RoundRobin(_) => ROUND_ROBIN,
            Self::Unknown(number) => number,
        }
    }

    /// [`SchedAttributes::kernel_priority`] of a thread of nice value 0.
    ///
    /// # Real-time: in loop
    pub const fn kernel_priority(self) -> i32 {
        let priority = match self.priority() {
            Some(priority) => priority as u32,
            None => 0,
        };
        SchedAttributes { priority, ..SchedAttributes::of(self.number()) }.kernel_priority()
    }

    /// Its priority in [1, 99], where it has one.
    ///
    /// # Real-time: in loop
    pub const fn priority(self) -> Option<u8> {
        match self {
            Self::Fifo(priority) | Self::RoundRobin(priority) => Some(priority),
            Self::Other | Self::Unknown(_) => None,
        }
    }
}

/// Its name and its priority: "SCHED_FIFO 90"; "policy 9" of one without a name.
impl core::fmt::Display for SchedPolicy {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match (self, self.priority()) {
            (Self::Unknown(number), _) if policy_name(*number).is_none() => {
                write!(f, "policy {number}")
            }
            (_, Some(priority)) => write!(f, "{} {priority}", self.name()),
            (_, None) => f.write_str(self.name()),
        }
    }
}

/// The kernel's name of a policy by its number; `None` for one that Linux 7.0 does not have.
///
/// # Real-time: in loop
pub const fn policy_name(number: u32) -> Option<&'static str> {
    Some(match number {
        OTHER => "SCHED_OTHER",
        FIFO => "SCHED_FIFO",
        ROUND_ROBIN => "SCHED_RR",
        BATCH => "SCHED_BATCH",
        IDLE => "SCHED_IDLE",
        DEADLINE => "SCHED_DEADLINE",
        EXT => "SCHED_EXT",
        _ => return None,
    })
}

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

/// SCHED_FLAG_RESET_ON_FORK of <linux/sched.h>: what the thread starts, threads and processes,
/// begins as SCHED_OTHER.
pub const RESET_ON_FORK: u64 = 1;

/// `struct sched_attr` of sched_setattr(2) and sched_getattr(2), in its first version (48 bytes):
/// the policy of any thread as the kernel has it, also one that [`SchedPolicy`] cannot name.
///
/// For tools that show and set those of any thread. Unlike [`set`], which guards the policies of
/// this project's own loops, [`SchedAttributes::give`] does as it is told: what the thread starts
/// inherits the policy unless the flag says otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct SchedAttributes {
    /// Its size in bytes; [`Self::give`] writes it itself.
    pub size: u32,
    /// [`OTHER`], [`FIFO`] … [`EXT`], or a later one.
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
const _: () = assert!(core::mem::offset_of!(SchedAttributes, priority) == 20);

impl SchedAttributes {
    /// Those of a policy, all else 0.
    ///
    /// # Real-time: setup only
    pub const fn of(policy: u32) -> Self {
        let (flags, nice, priority) = (0, 0, 0);
        let (runtime_ns, deadline_ns, period_ns) = (0, 0, 0);
        Self { size: BYTES, policy, flags, nice, priority, runtime_ns, deadline_ns, period_ns }
    }

    /// The priority as the kernel counts in its events, `prio`: -1 for SCHED_DEADLINE, 99 less the
    /// priority of SCHED_FIFO and SCHED_RR, 120 and the nice value for all else. Below is first.
    ///
    /// # Real-time: in loop
    pub const fn kernel_priority(&self) -> i32 {
        match self.policy {
            DEADLINE => -1,
            FIFO | ROUND_ROBIN => 99 - self.priority as i32,
            _ => 120 + self.nice,
        }
    }

    /// `sched_getattr(tid, &attr, sizeof(attr), 0)`: those of thread `tid`, 0 for the calling one.
    ///
    /// Errors: `ESRCH`; `EPERM` by a security module.
    ///
    /// # Real-time: setup only
    pub fn get(tid: i32) -> Result<Self, Errno> {
        let mut attributes = Self::of(OTHER);
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
    pub fn give(&self, tid: i32) -> Result<(), Errno> {
        let attributes = Self { size: BYTES, ..*self };
        // SAFETY: `attributes` is a sched_attr of the size that it states.
        let result =
            unsafe { libc::syscall(libc::SYS_sched_setattr, tid, &raw const attributes, 0) };
        Errno::check(result).map(drop)
    }
}

/// The attributes of a thread from sched_getattr(2), to be restored later.
#[derive(Clone, Copy, Debug)]
pub struct Saved(SchedAttributes);

/// `sched_setattr(tid, &attr, 0)`: thread `tid`, 0 for the calling one, whose nice value stays.
///
/// A real-time policy is for that thread alone (SCHED_FLAG_RESET_ON_FORK): nothing that it starts
/// inherits it, since that would run without a watchdog. Only CAP_SYS_NICE may clear the flag, so
/// that SCHED_OTHER keeps it.
///
/// Errors: `EPERM` without CAP_SYS_NICE and beyond RLIMIT_RTPRIO, or in a cgroup without real-time
/// runtime; `EINVAL` for a priority outside [1, 99] or an unknown policy; `ESRCH`.
///
/// # Real-time: setup only
pub fn set(tid: i32, policy: SchedPolicy) -> Result<(), Errno> {
    let (number, priority, flags) = match policy {
        SchedPolicy::Other => {
            (libc::SCHED_OTHER, 0, SchedAttributes::get(tid)?.flags & RESET_ON_FORK)
        }
        SchedPolicy::Fifo(priority) => (libc::SCHED_FIFO, priority, RESET_ON_FORK),
        SchedPolicy::RoundRobin(priority) => (libc::SCHED_RR, priority, RESET_ON_FORK),
        SchedPolicy::Unknown(_) => return Err(Errno::INVAL),
    };
    let nice = nice(tid)?;
    let (number, priority) = (number.cast_unsigned(), u32::from(priority));
    SchedAttributes { flags, nice, priority, ..SchedAttributes::of(number) }.give(tid)
}

/// Takes thread `tid` its real-time policy: SCHED_OTHER. One that has ended has none.
///
/// Errors: `EPERM` where the thread is another user's.
///
/// # Real-time: setup only
pub fn demote(tid: i32) -> Result<(), Errno> {
    match set(tid, SchedPolicy::Other) {
        Err(Errno::SRCH) => Ok(()),
        demoted => demoted,
    }
}

/// `getpriority(PRIO_PROCESS, tid)`: the nice value, which real-time threads keep too. The raw
/// system call gives 20 − nice, so that no value is an error.
fn nice(tid: i32) -> Result<i32, Errno> {
    // SAFETY: takes numbers only.
    let result = unsafe { libc::syscall(libc::SYS_getpriority, libc::PRIO_PROCESS, tid) };
    Errno::check(result).map(|raw| i32::try_from(20 - raw).unwrap_or(0))
}

/// `sched_getattr(tid, &attr, sizeof(attr), 0)`: everything, to be given to [`restore`].
///
/// # Real-time: setup only
pub fn save(tid: i32) -> Result<Saved, Errno> {
    let mut saved = Saved(SchedAttributes::get(tid)?);
    saved.0.nice = nice(tid)?;
    Ok(saved)
}

/// `sched_setattr(tid, &saved, 0)`: as it was when it was saved. Without CAP_SYS_NICE what a
/// real-time policy of [`set`] left stays: that what the thread starts begins as SCHED_OTHER.
///
/// # Real-time: setup only
pub fn restore(tid: i32, saved: &Saved) -> Result<(), Errno> {
    match saved.0.give(tid) {
        Err(Errno::PERM) => {
            SchedAttributes { flags: saved.0.flags | RESET_ON_FORK, ..saved.0 }.give(tid)
        }
        result => result,
    }
}

/// `sched_getattr(tid, &attr, sizeof(attr), 0)`: thread `tid`, 0 for the calling one.
///
/// # Real-time: setup only
pub fn get(tid: i32) -> Result<SchedPolicy, Errno> {
    let attr = SchedAttributes::get(tid)?;
    let priority = u8::try_from(attr.priority).unwrap_or(u8::MAX);
    Ok(match attr.policy.cast_signed() {
        libc::SCHED_OTHER => SchedPolicy::Other,
        libc::SCHED_FIFO => SchedPolicy::Fifo(priority),
        libc::SCHED_RR => SchedPolicy::RoundRobin(priority),
        _ => SchedPolicy::Unknown(attr.policy),
    })
}

/// `sched_rr_get_interval(tid, &slice)`: how long thread `tid`, 0 for the calling one, keeps its
/// CPU from equals of SCHED_RR, ns; of SCHED_FIFO 0, of SCHED_OTHER 0 or a slice.
///
/// # Real-time: setup only
pub fn slice_ns(tid: i32) -> Result<u64, Errno> {
    let mut slice = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `slice` is a timespec that is writable.
    let result = unsafe { libc::sched_rr_get_interval(tid, &raw mut slice) };
    let ns = slice.tv_sec * 1_000_000_000 + slice.tv_nsec;
    Errno::check(result.into()).map(|_| ns.max(0).unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns true where a thread that this one starts begins as SCHED_OTHER.
    fn resets_on_fork(tid: i32) -> Result<bool, Errno> {
        SchedAttributes::get(tid).map(|attr| attr.flags & RESET_ON_FORK != 0)
    }

    #[test]
    fn the_kernel_counts_priorities_from_the_highest() {
        let policies =
            [SchedPolicy::Fifo(90), SchedPolicy::RoundRobin(1), SchedPolicy::Other].into_iter();
        assert!(policies.map(SchedPolicy::kernel_priority).eq([9, 98, 120]));
        assert_eq!(SchedPolicy::Unknown(DEADLINE).kernel_priority(), -1);
        let nice = SchedAttributes { nice: -5, ..SchedAttributes::of(OTHER) };
        assert_eq!(nice.kernel_priority(), 115);
    }

    #[test]
    fn policies_are_named_as_the_kernel_does() {
        let shown = |policy: SchedPolicy| std::format!("{policy}");
        assert_eq!(shown(SchedPolicy::Fifo(90)), "SCHED_FIFO 90");
        assert_eq!(shown(SchedPolicy::RoundRobin(1)), "SCHED_RR 1");
        assert_eq!(shown(SchedPolicy::Other), "SCHED_OTHER");
        assert_eq!(shown(SchedPolicy::Unknown(BATCH)), "SCHED_BATCH");
        assert_eq!(shown(SchedPolicy::Unknown(99)), "policy 99");
        assert_eq!(SchedPolicy::Unknown(99).name(), "unknown");
        assert_eq!((FIFO, ROUND_ROBIN), (libc::SCHED_FIFO as u32, libc::SCHED_RR as u32));
    }

    #[test]
    fn a_slice_is_the_kernels_and_a_thread_that_is_none_has_none() {
        assert!(slice_ns(0).is_ok());
        assert_eq!(slice_ns(-1), Err(Errno::INVAL));
    }

    #[test]
    fn a_thread_that_is_gone_is_demoted() {
        // Beyond the largest number that the kernel gives.
        assert_eq!(demote(i32::MAX), Ok(()));
        assert_eq!(set(i32::MAX, SchedPolicy::Other), Err(Errno::SRCH));
    }

    #[test]
    fn nice_and_any_policy_come_back_as_they_were() {
        std::thread::spawn(|| {
            // SCHED_BATCH, which `SchedPolicy` cannot name, with a nice value. The tests may run
            // under a higher one already, and only root may go below that.
            let mut batch = Saved(SchedAttributes::get(0).expect("own"));
            let nice = batch.0.nice.max(5);
            (batch.0.policy, batch.0.nice) = (libc::SCHED_BATCH.cast_unsigned(), nice);
            restore(0, &batch).expect("lower is always allowed");
            let before = save(0).expect("own");
            assert_eq!(get(0), Ok(SchedPolicy::Unknown(libc::SCHED_BATCH.cast_unsigned())));
            let granted = set(0, SchedPolicy::Fifo(3)).is_ok();
            assert_eq!(get(0) == Ok(SchedPolicy::Fifo(3)), granted);
            restore(0, &before).expect("it was its own");
            let after = save(0).expect("own");
            assert_eq!((after.0.policy, after.0.nice), (before.0.policy, nice));
        })
        .join()
        .expect("no panic");
    }

    #[test]
    fn what_a_real_time_thread_starts_is_not_real_time() {
        std::thread::spawn(|| {
            let before = save(0).expect("own");
            let granted = set(0, SchedPolicy::Fifo(1)).is_ok();
            assert_eq!(resets_on_fork(0), Ok(granted));
            let of_thread = std::thread::spawn(|| get(0)).join().expect("no panic");
            assert_eq!(of_thread, Ok(SchedPolicy::Other));
            let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("there");
            let of_child = get(child.id().cast_signed());
            child.kill().expect("ours");
            child.wait().expect("ours");
            assert_eq!(of_child, Ok(SchedPolicy::Other));
            // Taken back also by who may not clear the flag, and cleared by who may.
            set(0, SchedPolicy::Other).expect("lower is always allowed");
            assert_eq!((get(0), resets_on_fork(0)), (Ok(SchedPolicy::Other), Ok(granted)));
            restore(0, &before).expect("it was its own");
            assert_eq!(get(0), Ok(SchedPolicy::Other));
        })
        .join()
        .expect("no panic");
    }

    #[test]
    fn the_policy_reads_back_and_bad_ones_are_refused() {
        assert_eq!(get(0), Ok(SchedPolicy::Other));
        set(0, SchedPolicy::Other).expect("always allowed");
        assert_eq!(set(0, SchedPolicy::Unknown(99)), Err(Errno::INVAL));
        assert!(matches!(set(0, SchedPolicy::Fifo(0)), Err(Errno::INVAL | Errno::PERM)));
        assert!(matches!(set(0, SchedPolicy::Fifo(100)), Err(Errno::INVAL | Errno::PERM)));
        assert!(set(-1, SchedPolicy::Other).is_err(), "no such thread");
    }

    #[test]
    fn attributes_come_back_and_bad_ones_are_refused() {
        std::thread::spawn(|| {
            let before = SchedAttributes::get(0).expect("own");
            assert_eq!(before.policy, OTHER);
            let batch = SchedAttributes { nice: before.nice, ..SchedAttributes::of(BATCH) };
            batch.give(0).expect("always allowed");
            assert_eq!(
                SchedAttributes::get(0).map(|now| (now.policy, now.nice)),
                Ok((BATCH, before.nice))
            );
            let wrong = SchedAttributes { priority: 100, ..SchedAttributes::of(FIFO) };
            assert!(matches!(wrong.give(0), Err(Errno::INVAL | Errno::PERM)));
            let reversed = SchedAttributes {
                runtime_ns: 2_000_000,
                deadline_ns: 1_000_000,
                period_ns: 1_000_000,
                ..SchedAttributes::of(DEADLINE)
            };
            assert!(matches!(reversed.give(0), Err(Errno::INVAL | Errno::PERM)));
            assert!(SchedAttributes::get(-1).is_err());
        })
        .join()
        .expect("no panic");
    }
}

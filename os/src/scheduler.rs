//! The scheduling policy of a thread.
//!
//! For sessions and watchdogs. Priorities are the kernel's own numbers.

use crate::Errno;

/// A scheduling policy, see sched(7).
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

/// The kernel's struct sched_attr as of its first version (sched_setattr(2), Linux 3.14).
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct Attr {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
}

/// The attributes of a thread from sched_getattr(2), to be restored later.
#[derive(Clone, Copy, Debug)]
pub struct Saved(Attr);

/// SCHED_ATTR_SIZE_VER0 in include/uapi/linux/sched/types.h.
const ATTR_BYTES: u32 = 48;
const _: () = assert!(size_of::<Attr>() == ATTR_BYTES as usize);
const _: () = assert!(core::mem::offset_of!(Attr, priority) == 20);

/// SCHED_FLAG_RESET_ON_FORK in include/uapi/linux/sched.h: what the thread starts, threads and
/// processes, begins as SCHED_OTHER.
const RESET_ON_FORK: u64 = 1;

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
        SchedPolicy::Other => (libc::SCHED_OTHER, 0, read(tid)?.flags & RESET_ON_FORK),
        SchedPolicy::Fifo(priority) => (libc::SCHED_FIFO, priority, RESET_ON_FORK),
        SchedPolicy::RoundRobin(priority) => (libc::SCHED_RR, priority, RESET_ON_FORK),
        SchedPolicy::Unknown(_) => return Err(Errno::INVAL),
    };
    let attr = Attr {
        size: ATTR_BYTES,
        policy: number.cast_unsigned(),
        flags,
        nice: nice(tid)?,
        priority: u32::from(priority),
        runtime: 0,
        deadline: 0,
        period: 0,
    };
    write(tid, &attr)
}

fn write(tid: i32, attr: &Attr) -> Result<(), Errno> {
    // SAFETY: `attr` is a sched_attr of the size that it states.
    let result = unsafe { libc::syscall(libc::SYS_sched_setattr, tid, &raw const *attr, 0) };
    Errno::check(result).map(drop)
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
    let mut saved = Saved(read(tid)?);
    saved.0.nice = nice(tid)?;
    Ok(saved)
}

/// `sched_setattr(tid, &saved, 0)`: as it was when it was saved. Without CAP_SYS_NICE what a
/// real-time policy of [`set`] left stays: that what the thread starts begins as SCHED_OTHER.
///
/// # Real-time: setup only
pub fn restore(tid: i32, saved: &Saved) -> Result<(), Errno> {
    match write(tid, &saved.0) {
        Err(Errno::PERM) => write(tid, &Attr { flags: saved.0.flags | RESET_ON_FORK, ..saved.0 }),
        result => result,
    }
}

/// `sched_getattr(tid, &attr, sizeof(attr), 0)`: whether what the thread starts begins as
/// SCHED_OTHER.
///
/// # Real-time: setup only
pub fn resets_on_fork(tid: i32) -> Result<bool, Errno> {
    read(tid).map(|attr| attr.flags & RESET_ON_FORK != 0)
}

/// `sched_getattr(tid, &attr, sizeof(attr), 0)`: thread `tid`, 0 for the calling one.
///
/// # Real-time: setup only
pub fn get(tid: i32) -> Result<SchedPolicy, Errno> {
    let attr = read(tid)?;
    let priority = u8::try_from(attr.priority).unwrap_or(u8::MAX);
    Ok(match attr.policy.cast_signed() {
        libc::SCHED_OTHER => SchedPolicy::Other,
        libc::SCHED_FIFO => SchedPolicy::Fifo(priority),
        libc::SCHED_RR => SchedPolicy::RoundRobin(priority),
        _ => SchedPolicy::Unknown(attr.policy),
    })
}

fn read(tid: i32) -> Result<Attr, Errno> {
    let mut attr = Attr {
        size: ATTR_BYTES,
        policy: 0,
        flags: 0,
        nice: 0,
        priority: 0,
        runtime: 0,
        deadline: 0,
        period: 0,
    };
    // SAFETY: `attr` is writable for the `ATTR_BYTES` bytes that are stated.
    let result =
        unsafe { libc::syscall(libc::SYS_sched_getattr, tid, &raw mut attr, ATTR_BYTES, 0) };
    Errno::check(result).map(|_| attr)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nice_and_any_policy_come_back_as_they_were() {
        std::thread::spawn(|| {
            // SCHED_BATCH, which `SchedPolicy` cannot name, with a nice value. The tests may run
            // under a higher one already, and only root may go below that.
            let mut batch = Saved(read(0).expect("own"));
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
        assert_eq!(set(0, SchedPolicy::Unknown(9)), Err(Errno::INVAL));
        assert!(matches!(set(0, SchedPolicy::Fifo(0)), Err(Errno::INVAL | Errno::PERM)));
        assert!(matches!(set(0, SchedPolicy::Fifo(100)), Err(Errno::INVAL | Errno::PERM)));
        assert!(set(-1, SchedPolicy::Other).is_err(), "no such thread");
    }
}

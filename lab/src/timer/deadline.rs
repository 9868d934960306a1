//! SCHED_DEADLINE for the length of a block, and what there was before after it.
//!
//! The kernel admits such a thread only where it may run on all CPUs of its root domain
//! (Documentation/scheduler/sched-deadline.rst, §5): so it is pinned to none meanwhile.

use punctual_os::Errno;
use punctual_os::affinity::{self, CpuMask};
use punctual_os::sched_attr::{self, SchedAttributes};

/// The shortest period that the kernel admits by default: /proc/sys/kernel/
/// sched_deadline_period_min_us.
pub(super) const PERIOD_MIN_NS: u64 = 100_000;

/// Runs `wait` with half of each period reserved.
///
/// # Errors
/// `EPERM` without rights or where `cpus` are not all of a root domain, `EBUSY` where the bandwidth
/// is taken.
pub(super) fn within<T>(
    cpus: &CpuMask,
    period_ns: u64,
    wait: impl FnOnce() -> T,
) -> Result<T, Errno> {
    let (policy, pinned) = (sched_attr::get(0)?, affinity::get(0)?);
    affinity::set(0, cpus)?;
    let reserved = SchedAttributes {
        runtime_ns: period_ns / 2,
        deadline_ns: period_ns,
        period_ns,
        flags: sched_attr::RESET_ON_FORK,
        ..SchedAttributes::of(sched_attr::DEADLINE)
    };
    let waited = sched_attr::set(0, &reserved).map(|()| wait());
    // What was once the thread's own is always allowed again.
    let _restored = sched_attr::set(0, &policy);
    let _pinned = affinity::set(0, &pinned);
    waited
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policy_and_cpus_are_as_before_whether_it_was_admitted_or_not() {
        std::thread::spawn(|| {
            let cpus = affinity::get(0).expect("own");
            affinity::set(0, &CpuMask::one(affinity::current_cpu())).expect("allowed");
            let before = (sched_attr::get(0), affinity::get(0));
            let policy = || sched_attr::get(0).expect("own").policy;
            match within(&cpus, 1_000_000, policy) {
                Ok(inside) => assert_eq!(inside, sched_attr::DEADLINE),
                Err(why) => assert!(matches!(why, Errno::PERM | Errno::BUSY), "{why}"),
            }
            assert_eq!((sched_attr::get(0), affinity::get(0)), before);
            // No runtime at all is never admitted.
            assert!(within(&cpus, 0, policy).is_err());
            assert_eq!((sched_attr::get(0), affinity::get(0)), before);
        })
        .join()
        .expect("no panic");
    }
}

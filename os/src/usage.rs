//! The costs of a thread up to now: page faults and context switches.
//!
//! For experiments, before and after a loop. Never samples on its own.

use crate::Errno;

/// Counters of the calling thread since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Page faults that needed no input.
    pub minor_faults: u64,
    /// Page faults that did.
    pub major_faults: u64,
    /// Context switches because it waited.
    pub voluntary_switches: u64,
    /// Context switches because it was preempted.
    pub involuntary_switches: u64,
}

/// `getrusage(RUSAGE_THREAD, &usage)`.
///
/// # Real-time: setup only
pub fn of_thread() -> Result<Usage, Errno> {
    // SAFETY: all-zero is a valid rusage.
    let mut usage: libc::rusage = unsafe { core::mem::zeroed() };
    // SAFETY: `usage` is writable.
    let result = unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) };
    Errno::check(result.into())?;
    Ok(Usage {
        minor_faults: usage.ru_minflt.cast_unsigned(),
        major_faults: usage.ru_majflt.cast_unsigned(),
        voluntary_switches: usage.ru_nvcsw.cast_unsigned(),
        involuntary_switches: usage.ru_nivcsw.cast_unsigned(),
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn touching_new_memory_counts_faults() {
        let before = super::of_thread().expect("own usage");
        let pages = std::vec![1u8; 1 << 20];
        core::hint::black_box(&pages);
        assert!(super::of_thread().expect("own usage").minor_faults > before.minor_faults);
    }
}

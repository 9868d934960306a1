//! On which CPUs a thread may run.
//!
//! For sessions, drains and watchdogs. Never chooses a CPU.

use crate::Errno;

/// Words of a mask, of 8 192 CPUs, the most that a Linux kernel can be built for.
const WORDS: usize = 128;
/// The largest number of CPUs that a mask can hold.
pub const CPUS_MAX: u32 = (WORDS * 64) as u32;

/// A set of CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuMask([u64; WORDS]);

impl CpuMask {
    /// No CPU.
    pub const EMPTY: Self = Self([0; WORDS]);

    /// Only `cpu`; nothing when it is `CPUS_MAX` or more.
    ///
    /// # Real-time: setup only
    pub fn one(cpu: u32) -> Self {
        let mut mask = Self::EMPTY;
        mask.insert(cpu);
        mask
    }

    /// Adds `cpu`; ignored from `CPUS_MAX` on.
    ///
    /// # Real-time: setup only
    pub fn insert(&mut self, cpu: u32) {
        if let Some(word) = self.0.get_mut(cpu as usize / 64) {
            *word |= 1 << (cpu % 64);
        }
    }

    /// Removes `cpu`.
    ///
    /// # Real-time: setup only
    pub fn remove(&mut self, cpu: u32) {
        if let Some(word) = self.0.get_mut(cpu as usize / 64) {
            *word &= !(1 << (cpu % 64));
        }
    }

    /// It without `cpus`; `None` where that leaves no CPU.
    ///
    /// # Real-time: setup only
    pub fn without(mut self, cpus: impl IntoIterator<Item = u32>) -> Option<Self> {
        cpus.into_iter().for_each(|cpu| self.remove(cpu));
        (self.count() > 0).then_some(self)
    }

    /// True where `cpu` is in it.
    ///
    /// # Real-time: in loop
    pub fn contains(&self, cpu: u32) -> bool {
        self.0.get(cpu as usize / 64).is_some_and(|word| word >> (cpu % 64) & 1 == 1)
    }

    /// The number of CPUs in it.
    ///
    /// # Real-time: setup only
    pub fn count(&self) -> u32 {
        self.0.iter().map(|word| word.count_ones()).sum()
    }

    /// All CPUs in it, in order.
    ///
    /// # Real-time: setup only
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        (0..CPUS_MAX).filter(|&cpu| self.contains(cpu))
    }
}

/// `sched_setaffinity(tid, sizeof(mask), &mask)`: thread `tid`, 0 for the calling one.
///
/// Errors: `EINVAL` when no CPU of the mask is online or allowed by the cpuset; `ESRCH`, `EPERM`.
///
/// # Real-time: setup only
pub fn set(tid: i32, mask: &CpuMask) -> Result<(), Errno> {
    // SAFETY: the pointer is to `size_of_val(mask)` readable bytes.
    let result = unsafe {
        libc::syscall(libc::SYS_sched_setaffinity, tid, size_of_val(mask), mask.0.as_ptr())
    };
    Errno::check(result).map(drop)
}

/// `sched_getaffinity(tid, sizeof(mask), &mask)`: thread `tid`, 0 for the calling one.
///
/// # Real-time: setup only
pub fn get(tid: i32) -> Result<CpuMask, Errno> {
    let mut mask = CpuMask::EMPTY;
    // SAFETY: the pointer is to `size_of_val(&mask)` writable bytes.
    let result = unsafe {
        libc::syscall(libc::SYS_sched_getaffinity, tid, size_of_val(&mask), mask.0.as_mut_ptr())
    };
    Errno::check(result).map(|_| mask)
}

/// `getcpu(&cpu, NULL, NULL)`: the CPU that the calling thread runs on, by the vDSO.
///
/// # Real-time: in loop
pub fn current_cpu() -> u32 {
    // SAFETY: takes no argument and cannot fail on Linux with a known CPU.
    let cpu = unsafe { libc::sched_getcpu() };
    u32::try_from(cpu).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_are_sets() {
        let mut mask = CpuMask::one(70);
        mask.insert(3);
        mask.insert(CPUS_MAX);
        assert!(mask.iter().eq([3, 70]));
        mask.remove(3);
        assert_eq!((mask.count(), mask.contains(70), mask.contains(CPUS_MAX)), (1, true, false));
        mask.insert(9);
        assert_eq!(mask.without([70, 11]), Some(CpuMask::one(9)));
        assert_eq!(mask.without([9, 70]), None);
    }

    #[test]
    fn affinity_is_read_back_and_restored() {
        let before = get(0).expect("own affinity");
        let cpu = before.iter().last().expect("at least one");
        set(0, &CpuMask::one(cpu)).expect("an allowed CPU");
        assert_eq!(get(0), Ok(CpuMask::one(cpu)));
        assert_eq!(current_cpu(), cpu);
        set(0, &before).expect("restored");
        assert_eq!(get(0), Ok(before));
        assert_eq!(set(0, &CpuMask::EMPTY), Err(Errno::INVAL));
    }
}

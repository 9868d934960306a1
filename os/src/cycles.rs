//! The processor's own counter: TSC on x86-64, CNTVCT_EL0 on AArch64.
//!
//! For the cycle clock of crate `punctual`. Knows only the frequency that the processor reports;
//! whether the counter may be trusted is decided elsewhere.

/// What this processor's counter is called.
#[cfg(target_arch = "x86_64")]
pub const NAME: &str = "tsc";
/// What this processor's counter is called.
#[cfg(target_arch = "aarch64")]
pub const NAME: &str = "cntvct";

/// `rdtsc` / `mrs CNTVCT_EL0`: the counter now, in no order with other instructions.
///
/// # Real-time: in loop
#[inline(always)]
pub fn unordered() -> u64 {
    #[cfg(target_arch = "x86_64")]
    {
        // SAFETY: RDTSC exists on every x86-64; Linux does not trap it in user mode by default.
        unsafe { core::arch::x86_64::_rdtsc() }
    }
    #[cfg(target_arch = "aarch64")]
    {
        let count: u64;
        // SAFETY: reads a register that Linux lets user mode read; touches no memory.
        unsafe {
            core::arch::asm!("mrs {}, cntvct_el0", out(reg) count, options(nomem, nostack));
        }
        count
    }
}

/// `lfence; rdtsc; lfence` / `isb; mrs CNTVCT_EL0; isb`: the counter, after all that stands before
/// and before all that stands after (Intel SDM vol. 2 RDTSC; Arm ARM D12.1).
///
/// # Real-time: in loop
#[inline(always)]
pub fn ordered() -> u64 {
    fence();
    let count = unordered();
    fence();
    count
}

#[inline(always)]
fn fence() {
    #[cfg(target_arch = "x86_64")]
    {
        // SAFETY: LFENCE is SSE2, which every x86-64 has.
        unsafe { core::arch::x86_64::_mm_lfence() };
    }
    #[cfg(target_arch = "aarch64")]
    {
        // SAFETY: orders instructions only.
        unsafe { core::arch::asm!("isb", options(nostack)) };
    }
}

/// `pause` / `yield`: tells the processor that this is a spin.
///
/// # Real-time: in loop
#[inline(always)]
pub fn relax() {
    core::hint::spin_loop();
}

/// `mrs CNTFRQ_EL0` on AArch64: the counter's frequency in Hz as firmware set it. `None` on x86-64,
/// where no instruction says it without trapping to the hypervisor or being wrong in guests.
///
/// # Real-time: setup only
pub fn stated_hz() -> Option<u64> {
    #[cfg(target_arch = "x86_64")]
    {
        None
    }
    #[cfg(target_arch = "aarch64")]
    {
        let hz: u64;
        // SAFETY: reads a register that Linux lets user mode read; touches no memory.
        unsafe {
            core::arch::asm!("mrs {}, cntfrq_el0", out(reg) hz, options(nomem, nostack));
        }
        (hz > 0).then_some(hz)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordered_stamps_do_not_go_back_on_one_cpu() {
        let mut last = ordered();
        for _ in 0..10_000 {
            let now = ordered();
            // A thread that moves to another CPU may see its counter a little behind.
            assert!(now.wrapping_add(1_000_000) >= last);
            last = now;
        }
        assert!(unordered() > 0);
    }
}

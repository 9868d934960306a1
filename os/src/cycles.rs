//! The processor's own counter: TSC on x86-64, CNTVCT_EL0 on AArch64.
//!
//! For the cycle clock of crate `punctual-engine`. Knows only the frequency that the processor
//! reports; whether the counter may be trusted is decided elsewhere.

/// The name of this processor's counter.
#[cfg(target_arch = "x86_64")]
pub const NAME: &str = "tsc";
/// The name of this processor's counter.
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

/// `nop`, 64 of them: work that leaves everything as it is.
///
/// # Real-time: in loop
#[inline]
pub fn idle_work() {
    for _ in 0..64 {
        // SAFETY: does nothing.
        unsafe { core::arch::asm!("nop", options(nomem, nostack, preserves_flags)) };
    }
}

/// `cpuid` / `isb; dsb sy`: waits until all that stands before is complete, stores included. In a
/// virtual machine CPUID goes to the host and back.
///
/// # Real-time: in loop
#[inline]
pub fn serialise_heavily() {
    #[cfg(target_arch = "x86_64")]
    {
        #[allow(unused_unsafe, reason = "__cpuid is unsafe before Rust 1.93")]
        // SAFETY: CPUID exists on every x86-64.
        let leaf = unsafe { core::arch::x86_64::__cpuid(0) };
        core::hint::black_box(leaf);
    }
    #[cfg(target_arch = "aarch64")]
    {
        // SAFETY: orders instructions and memory only.
        unsafe { core::arch::asm!("isb", "dsb sy", options(nostack)) };
    }
}

/// A processor that has the instruction SERIALIZE, or is AArch64.
#[derive(Clone, Copy, Debug)]
pub struct Serialise(());

impl Serialise {
    /// `cpuid`: where the processor has it.
    ///
    /// # Real-time: setup only
    pub fn detect() -> Option<Self> {
        #[cfg(target_arch = "x86_64")]
        {
            // CPUID 07h, sub-leaf 0, EDX bit 14 (Intel SDM vol. 2 CPUID).
            #[allow(unused_unsafe, reason = "__cpuid is unsafe before Rust 1.93")]
            // SAFETY: CPUID exists on every x86-64; leaf 0 says whether leaf 7 does.
            let has = unsafe {
                core::arch::x86_64::__cpuid(0).eax >= 7
                    && core::arch::x86_64::__cpuid_count(7, 0).edx & 1 << 14 != 0
            };
            has.then_some(Self(()))
        }
        #[cfg(target_arch = "aarch64")]
        {
            Some(Self(()))
        }
    }

    /// `serialize` / `isb`: waits until all that stands before is complete, without leaving a
    /// virtual machine.
    ///
    /// # Real-time: in loop
    #[inline]
    pub fn run(self) {
        #[cfg(target_arch = "x86_64")]
        {
            // SAFETY: the processor has SERIALIZE (0F 01 E8), which changes no register.
            unsafe { core::arch::asm!(".byte 0x0f, 0x01, 0xe8", options(nostack)) };
        }
        #[cfg(target_arch = "aarch64")]
        {
            // SAFETY: orders instructions only.
            unsafe { core::arch::asm!("isb", options(nostack)) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn serialising_leaves_everything_as_it_is() {
        let before = unordered();
        serialise_heavily();
        if let Some(serialise) = Serialise::detect() {
            serialise.run();
        }
        idle_work();
        assert!(unordered().wrapping_add(1_000_000) >= before);
    }

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

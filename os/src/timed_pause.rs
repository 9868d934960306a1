//! Instructions that pause a processor until its counter has reached a value: TPAUSE and MWAITX on
//! x86-64, WFET on AArch64.
//!
//! For spins of crate `punctual-engine`, which measures whether they keep to their deadline. User
//! mode may execute all of them; a hypervisor may intercept them, and then they cost an exit.

/// A timed pause. An interrupt ends any of them early, and so may the processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimedPause {
    /// TPAUSE into C0.2: saves more, comes back later, and speeds the core's other thread up.
    #[cfg(target_arch = "x86_64")]
    TpauseC02,
    /// TPAUSE into C0.1.
    #[cfg(target_arch = "x86_64")]
    TpauseC01,
    /// MWAITX with its timer, in C0 as the kernel's own delays use it.
    #[cfg(target_arch = "x86_64")]
    Mwaitx,
    /// WFET, which any event ends early: Linux has one each 100 µs.
    #[cfg(target_arch = "aarch64")]
    Wfet,
}

impl TimedPause {
    /// All of this architecture, the one that saves most first.
    #[cfg(target_arch = "x86_64")]
    pub const ALL: &[Self] = &[Self::TpauseC02, Self::TpauseC01, Self::Mwaitx];
    /// All of this architecture.
    #[cfg(target_arch = "aarch64")]
    pub const ALL: &[Self] = &[Self::Wfet];

    /// As results name it.
    ///
    /// # Real-time: setup only
    pub const fn name(self) -> &'static str {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::TpauseC02 => "TPAUSE C0.2",
            #[cfg(target_arch = "x86_64")]
            Self::TpauseC01 => "TPAUSE C0.1",
            #[cfg(target_arch = "x86_64")]
            Self::Mwaitx => "MWAITX",
            #[cfg(target_arch = "aarch64")]
            Self::Wfet => "WFET",
        }
    }

    /// `cpuid` / `getauxval(AT_HWCAP2)`: whether the processor says that it has it.
    ///
    /// # Real-time: setup only
    #[allow(unused_unsafe, reason = "__cpuid is unsafe before Rust 1.93")]
    pub fn is_supported(self) -> bool {
        #[cfg(target_arch = "x86_64")]
        {
            use core::arch::x86_64::{__cpuid, __cpuid_count};
            match self {
                // WAITPKG: CPUID 07h, sub-leaf 0, ECX bit 5 (Intel SDM vol. 2 TPAUSE).
                Self::TpauseC02 | Self::TpauseC01 => {
                    // SAFETY: CPUID exists on every x86-64.
                    let leaves = unsafe { __cpuid(0) }.eax;
                    // SAFETY: as above; without that leaf it is not called.
                    leaves >= 7 && unsafe { __cpuid_count(7, 0) }.ecx & 1 << 5 != 0
                }
                // CPUID 8000_0001h ECX bit 29 (AMD APM vol. 3 MWAITX).
                Self::Mwaitx => {
                    // SAFETY: CPUID exists on every x86-64, and so does this leaf.
                    unsafe { __cpuid(0x8000_0001) }.ecx & 1 << 29 != 0
                }
            }
        }
        #[cfg(target_arch = "aarch64")]
        {
            // Linux, arch/arm64/include/uapi/asm/hwcap.h.
            const HWCAP2_WFXT: libc::c_ulong = 1 << 31;
            // SAFETY: reads the process's auxiliary vector.
            unsafe { libc::getauxval(libc::AT_HWCAP2) & HWCAP2_WFXT != 0 }
        }
    }

    /// `tpause` / `monitorx; mwaitx` / `wfet`: pauses until the processor's counter
    /// ([`cycles`](crate::cycles)) has reached `deadline`, or something ends that early; at once
    /// where that has passed. A processor without the instruction raises SIGILL.
    ///
    /// # Real-time: in loop, waits
    // One copy of each instruction, which a test can find.
    #[inline(never)]
    pub fn until(self, deadline: u64) {
        #[cfg(target_arch = "x86_64")]
        match self {
            Self::TpauseC02 | Self::TpauseC01 => {
                // SAFETY: changes the flags alone; reserved bits of the state are 0. The carry
                // tells that the kernel's limit ended it, as any early end is seen by the counter.
                unsafe {
                    core::arch::asm!(
                        ".byte 0x66, 0x0f, 0xae, 0xf1",
                        in("ecx") u32::from(self == Self::TpauseC01),
                        in("edx") (deadline >> 32) as u32,
                        in("eax") deadline as u32,
                        options(nomem, nostack),
                    );
                }
            }
            Self::Mwaitx => mwaitx(deadline),
        }
        #[cfg(target_arch = "aarch64")]
        // SAFETY: changes nothing; `wfet x0`.
        unsafe {
            core::arch::asm!(
                ".inst 0xd5031000",
                in("x0") deadline,
                options(nomem, nostack, preserves_flags),
            );
        }
    }
}

/// MONITORX on a line that nothing writes to, then MWAITX for the ticks that are left.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn mwaitx(deadline: u64) {
    #[repr(align(64))]
    struct Line([u8; 64]);
    static UNWRITTEN: Line = Line([0; 64]);
    // SAFETY: reads a line that lives as long as the program, and changes no register.
    unsafe {
        core::arch::asm!(
            ".byte 0x0f, 0x01, 0xfa",
            in("rax") UNWRITTEN.0.as_ptr(),
            in("ecx") 0,
            in("edx") 0,
            options(nostack, readonly, preserves_flags),
        );
    }
    let left = deadline.wrapping_sub(crate::cycles::unordered());
    if left.cast_signed() <= 0 {
        return;
    }
    // SAFETY: touches no memory and changes no register; RBX, which the compiler keeps for itself,
    // is put back. Hint F0h is C0, extension bit 1 the timer in EBX.
    unsafe {
        core::arch::asm!(
            "xchg rbx, {ticks}",
            ".byte 0x0f, 0x01, 0xfb",
            "xchg rbx, {ticks}",
            ticks = in(reg) left.min(u64::from(u32::MAX)),
            in("eax") 0xf0,
            in("ecx") 2,
            options(nomem, nostack, preserves_flags),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cycles;

    #[test]
    fn what_the_processor_has_returns_and_leaves_the_registers_alone() {
        for pause in TimedPause::ALL.iter().filter(|pause| pause.is_supported()) {
            let kept: [u64; 4] = core::array::from_fn(|at| cycles::unordered() + at as u64);
            for ticks in [0, 1_000, 10_000] {
                pause.until(cycles::unordered().wrapping_add(ticks));
            }
            pause.until(cycles::unordered().wrapping_sub(1 << 40));
            assert!(kept.is_sorted(), "{pause:?}");
        }
    }
}

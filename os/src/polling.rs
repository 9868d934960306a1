//! Loops that poll the processor's counter until a target and stamp their exit, each of known code.
//!
//! For the experiment with waits (Maruti, *Temporal accuracy on the Pentium Pro*, fig. 2): the read
//! and the place of the loop in its cache lines are chosen, which no compiler promises. The target
//! is compared as a signed difference of 64 bits, where the paper's loop compares 32.

use crate::memory;
use loops::{fenced, fenced_split, unordered, unordered_split};
#[cfg(target_arch = "x86_64")]
use loops::{with_processor, with_processor_split};

/// The way in which a loop reads the counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CounterRead {
    /// `rdtsc` / `mrs CNTVCT_EL0`.
    Unordered,
    /// `lfence; rdtsc` / `isb; mrs CNTVCT_EL0`: after all that stands before.
    Fenced,
    /// `rdtscp`: waits for all loads that stand before, and reads the processor's number too.
    #[cfg(target_arch = "x86_64")]
    WithProcessor,
}

/// Where the loop lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alignment {
    /// It begins at a multiple of 64 bytes.
    Aligned,
    /// It begins 12 bytes before one, so that it lies in two cache lines.
    Split,
}

/// The exit of a loop: its stamp, and the polls before it.
#[derive(Clone, Copy, Debug)]
pub struct PolledExit {
    /// The counter right after the exit.
    pub stamp: u64,
    /// The counter at the last poll.
    pub polled: u64,
    /// The number of polls.
    pub polls: u64,
    code: (usize, usize),
}

impl PolledExit {
    /// [`memory::flush`] for the code of the loop and of what follows it.
    ///
    /// # Real-time: setup only
    pub fn flush_code(&self) {
        memory::flush_between(self.code.0, self.code.1);
    }
}

impl CounterRead {
    /// `cpuid`: whether the processor has it.
    ///
    /// # Real-time: setup only
    #[allow(unused_unsafe, reason = "__cpuid is unsafe before Rust 1.93")]
    pub fn is_supported(self) -> bool {
        match self {
            Self::Unordered | Self::Fenced => true,
            #[cfg(target_arch = "x86_64")]
            Self::WithProcessor => {
                // CPUID 8000_0001h EDX bit 27 (Intel SDM vol. 2 CPUID).
                // SAFETY: CPUID exists on every x86-64, and so does this leaf.
                unsafe { core::arch::x86_64::__cpuid(0x8000_0001) }.edx & 1 << 27 != 0
            }
        }
    }
}

/// Polls until the counter has reached `from + offset`, then reads it once more, unordered. The
/// offset is read from memory at the entry.
///
/// # Real-time: in loop, waits
#[inline(always)]
pub fn leave_at(read: CounterRead, alignment: Alignment, from: u64, offset: &u64) -> PolledExit {
    match (read, alignment) {
        (CounterRead::Unordered, Alignment::Aligned) => unordered(from, offset),
        (CounterRead::Unordered, Alignment::Split) => unordered_split(from, offset),
        (CounterRead::Fenced, Alignment::Aligned) => fenced(from, offset),
        (CounterRead::Fenced, Alignment::Split) => fenced_split(from, offset),
        #[cfg(target_arch = "x86_64")]
        (CounterRead::WithProcessor, Alignment::Aligned) => with_processor(from, offset),
        #[cfg(target_arch = "x86_64")]
        (CounterRead::WithProcessor, Alignment::Split) => with_processor_split(from, offset),
    }
}

#[cfg(target_arch = "x86_64")]
macro_rules! polling {
    ($name:ident, $read:literal, $skip:literal) => {
        #[inline(never)]
        pub(super) fn $name(from: u64, offset: &u64) -> PolledExit {
            let (stamp, polled, polls, begin, end): (u64, u64, u64, usize, usize);
            // SAFETY: reads the counter and the live `offset`; touches no other memory and no
            // stack. A processor without RDTSCP is not given it: `is_supported` tells.
            unsafe {
                core::arch::asm!(
                    "lea {begin}, [rip + 2f]",
                    "lea {end}, [rip + 3f]",
                    "xor {polls:e}, {polls:e}",
                    "mov {target}, [{line}]",
                    "add {target}, {from}",
                    ".p2align 6",
                    $skip,
                    "2:",
                    $read,
                    "inc {polls}",
                    "shl rdx, 32",
                    "or rax, rdx",
                    "mov {polled}, rax",
                    "sub rax, {target}",
                    "js 2b",
                    "rdtsc",
                    "shl rdx, 32",
                    "or rax, rdx",
                    "3:",
                    from = in(reg) from,
                    line = in(reg) offset,
                    target = out(reg) _,
                    polled = out(reg) polled,
                    polls = out(reg) polls,
                    begin = out(reg) begin,
                    end = out(reg) end,
                    out("rax") stamp,
                    out("rdx") _,
                    out("rcx") _,
                    options(nostack, readonly),
                );
            }
            PolledExit { stamp, polled, polls, code: (begin, end) }
        }
    };
}

#[cfg(target_arch = "aarch64")]
macro_rules! polling {
    ($name:ident, $read:literal, $skip:literal) => {
        #[inline(never)]
        pub(super) fn $name(from: u64, offset: &u64) -> PolledExit {
            let (stamp, polled, polls, begin, end): (u64, u64, u64, usize, usize);
            // SAFETY: reads the counter, which Linux lets user mode read, and the live `offset`;
            // touches no other memory and no stack.
            unsafe {
                core::arch::asm!(
                    "adr {begin}, 2f",
                    "adr {end}, 3f",
                    "mov {polls}, xzr",
                    "ldr {target}, [{line}]",
                    "add {target}, {target}, {from}",
                    ".p2align 6",
                    $skip,
                    "2:",
                    $read,
                    "mrs {polled}, cntvct_el0",
                    "add {polls}, {polls}, #1",
                    "subs {stamp}, {polled}, {target}",
                    "b.mi 2b",
                    "mrs {stamp}, cntvct_el0",
                    "3:",
                    from = in(reg) from,
                    line = in(reg) offset,
                    target = out(reg) _,
                    polled = out(reg) polled,
                    polls = out(reg) polls,
                    begin = out(reg) begin,
                    end = out(reg) end,
                    stamp = out(reg) stamp,
                    options(nostack, readonly),
                );
            }
            PolledExit { stamp, polled, polls, code: (begin, end) }
        }
    };
}

#[cfg(target_arch = "x86_64")]
mod loops {
    use super::PolledExit;

    polling!(unordered, "rdtsc", "");
    polling!(unordered_split, "rdtsc", ".skip 52, 0x90");
    polling!(fenced, "lfence\nrdtsc", "");
    polling!(fenced_split, "lfence\nrdtsc", ".skip 52, 0x90");
    polling!(with_processor, "rdtscp", "");
    polling!(with_processor_split, "rdtscp", ".skip 52, 0x90");
}

#[cfg(target_arch = "aarch64")]
mod loops {
    use super::PolledExit;

    polling!(unordered, "", "");
    polling!(unordered_split, "", ".rept 13\nnop\n.endr");
    polling!(fenced, "isb", "");
    polling!(fenced_split, "isb", ".rept 13\nnop\n.endr");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cycles;

    #[test]
    fn every_loop_is_left_at_its_target_and_not_before() {
        let reads = [
            CounterRead::Unordered,
            CounterRead::Fenced,
            #[cfg(target_arch = "x86_64")]
            CounterRead::WithProcessor,
        ];
        for read in reads.into_iter().filter(|read| read.is_supported()) {
            for alignment in [Alignment::Aligned, Alignment::Split] {
                let from = cycles::ordered();
                let exit = leave_at(read, alignment, from, &5_000);
                assert!(exit.polled >= from + 5_000 && exit.polls > 0, "{read:?} {exit:?}");
                let (begin, end) = exit.code;
                assert!((1..=64).contains(&(end - begin)), "{} bytes of code", end - begin);
                let place = if alignment == Alignment::Aligned { 0 } else { 52 };
                assert_eq!(begin % 64, place, "{read:?} {alignment:?}");
                exit.flush_code();
                let past = leave_at(read, alignment, from, &5_000);
                assert_eq!(past.polls, 1, "a target that is past is left at the first poll");
            }
        }
    }

    #[test]
    fn targets_beyond_32_bits_away_are_waited_for_on_their_side() {
        let past = cycles::ordered().wrapping_sub(3 << 32);
        let exit = leave_at(CounterRead::Unordered, Alignment::Aligned, past, &5_000);
        assert_eq!(exit.polls, 1);
    }
}

//! The processor's data caches: sending lines away.
//!
//! For measurements of what a first touch costs. Changes no data.

/// `clflush`, then `mfence` / `dc civac`, then `dsb`: every cache line of `part` goes back to
/// memory, out of all caches of the machine (Intel SDM vol. 2 CLFLUSH; Arm ARM DC CIVAC, which
/// Linux lets user mode use).
///
/// # Real-time: setup only
pub fn flush<T>(part: &[T]) {
    // What holds no byte lies nowhere.
    if size_of_val(part) == 0 {
        return;
    }
    let range = part.as_ptr_range();
    flush_between(range.start as usize, range.end as usize);
}

/// As [`flush`]; from `start` to `end` is data or code of this program.
pub(crate) fn flush_between(start: usize, end: usize) {
    let line = line_bytes();
    let mut at = start / line * line;
    while at < end {
        flush_line(at);
        at += line;
    }
    barrier();
}

#[cfg(target_arch = "x86_64")]
fn line_bytes() -> usize {
    64
}

#[cfg(target_arch = "aarch64")]
fn line_bytes() -> usize {
    let ctr: u64;
    // SAFETY: reads a register that Linux lets user mode read, or reads for it; touches no memory.
    unsafe { core::arch::asm!("mrs {}, ctr_el0", out(reg) ctr, options(nomem, nostack)) };
    // DminLine: the logarithm of the words of 4 bytes in the smallest line.
    4 << (ctr >> 16 & 15)
}

/// `at` lies in a line that holds a part of a live slice, or of this program's code.
fn flush_line(at: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        // SAFETY: the line overlaps live data or code, so its page is mapped; CLFLUSH is SSE2,
        // and changes no data.
        unsafe { core::arch::x86_64::_mm_clflush(at as *const u8) };
    }
    #[cfg(target_arch = "aarch64")]
    {
        // SAFETY: the line overlaps live data or code, so its page is mapped; writes the line
        // back and drops it, which changes no data.
        unsafe { core::arch::asm!("dc civac, {}", in(reg) at, options(nostack)) };
    }
}

fn barrier() {
    #[cfg(target_arch = "x86_64")]
    {
        // SAFETY: MFENCE is SSE2; orders memory only.
        unsafe { core::arch::x86_64::_mm_mfence() };
    }
    #[cfg(target_arch = "aarch64")]
    {
        // SAFETY: orders memory only.
        unsafe { core::arch::asm!("dsb ish", options(nostack)) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    #[test]
    fn what_is_flushed_is_still_there() {
        let data: Vec<u32> = (0..10_000).collect();
        flush(&data);
        flush(&data[1..2]);
        flush::<u8>(&[]);
        flush(&[(), ()]);
        assert!(data.iter().copied().eq(0..10_000));
    }
}

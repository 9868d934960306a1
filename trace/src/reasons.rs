//! The reasons for which CPUs interrupt each other, by the addresses of the kernel's texts of them.
//!
//! Pure. Where an architecture has no vector for each kind of interrupt (AArch64), its kernel tells
//! the kind by `ipi:ipi_entry`, with the address of a text. Tracefs' `printk_formats` has those
//! texts; captures that have formats hold it. Nothing else of it is kept.

use crate::event::Vector;

/// Longest text of `printk_formats` that is read, bytes. That of a kernel has some hundred
/// thousand.
pub const TEXTS_BYTES_MAX: usize = 16 << 20;

/// Most reasons that are kept. Kernels have up to ten.
const REASONS_MAX: usize = 256;

/// The reasons of one kernel.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IpiReasons {
    /// By the address of the text.
    known: Vec<(u64, Vector)>,
}

impl IpiReasons {
    /// Reads the text of `printk_formats`: lines `0xADDRESS : "TEXT"`. Those of other texts are
    /// passed over.
    #[must_use]
    pub fn parse(printk_formats: &[u8]) -> Self {
        let lines = printk_formats.split(|&byte| byte == b'\n');
        Self { known: lines.filter_map(reason).take(REASONS_MAX).collect() }
    }

    /// Returns true where none is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// The vector of the reason at an address; `None` where no text is known there.
    #[must_use]
    pub fn vector(&self, address: u64) -> Option<Vector> {
        self.known.iter().find(|(known, _)| *known == address).map(|&(_, vector)| vector)
    }
}

/// The reason of a line.
fn reason(line: &[u8]) -> Option<(u64, Vector)> {
    let (address, text) = str::from_utf8(line).ok()?.split_once(" : ")?;
    let address = u64::from_str_radix(address.trim().strip_prefix("0x")?, 16).ok()?;
    let text = text.trim().strip_prefix('"')?.strip_suffix('"')?;
    Some((address, vector_named(text)?))
}

/// The vector of a reason in the kernel's words (`ipi_types` of arch/arm64/kernel/smp.c and
/// arch/arm/kernel/smp.c); `None` where they are none.
pub(crate) fn vector_named(text: &str) -> Option<Vector> {
    match text {
        "Rescheduling interrupts" => Some(Vector::Reschedule),
        // One for calls of one CPU and of many. Who is woken or moved is brought by the former, and
        // hardly anything sends the latter: the processor itself tells others of changed mappings.
        "Function call interrupts" => Some(Vector::CallFunctionSingle),
        "IRQ work interrupts" => Some(Vector::IrqWork),
        // The timer of a CPU whose own one stops where it idles.
        "Timer broadcast interrupts" => Some(Vector::LocalTimer),
        _ if text.ends_with(" interrupts") || text.ends_with(" NMIs") => Some(Vector::Platform),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::{any, proptest};

    use super::{IpiReasons, REASONS_MAX};
    use crate::event::Vector;

    /// As Linux 6.12 has them on AArch64, between two other texts.
    const TEXTS: &[u8] = b"0xffff94d498d20000 : \"rcu_preempt\"\n\
        0xffff94d498d22268 : \"Rescheduling interrupts\"\n\
        0xffff94d498d22280 : \"Function call interrupts\"\n\
        0xffff94d498d222a0 : \"CPU stop interrupts\"\n\
        0xffff94d498d222b8 : \"CPU stop NMIs\"\n\
        0xffff94d498d222c8 : \"Timer broadcast interrupts\"\n\
        0xffff94d498d222e8 : \"IRQ work interrupts\"\n\
        0xffff94d498d30000 : \"%s: \\\"a\\\" : b\\n\"\n";

    #[test]
    fn reasons_are_found_by_their_address() {
        let reasons = IpiReasons::parse(TEXTS);
        let vector = |low: u64| reasons.vector(0xffff_94d4_98d0_0000 + low);
        assert_eq!(vector(0x2_2268), Some(Vector::Reschedule));
        assert_eq!(vector(0x2_2280), Some(Vector::CallFunctionSingle));
        assert_eq!(vector(0x2_22e8), Some(Vector::IrqWork));
        assert_eq!(vector(0x2_22c8), Some(Vector::LocalTimer));
        for other in [0x2_22a0, 0x2_22b8] {
            assert_eq!(vector(other), Some(Vector::Platform));
        }
        for none in [0x2_0000, 0x2_2269, 0x3_0000] {
            assert_eq!(vector(none), None);
        }
    }

    #[test]
    fn lines_that_are_none_are_passed_over_and_the_rest_is_bounded() {
        let damaged = b"\n : \"IRQ work interrupts\"\n0xg : \"IRQ work interrupts\"\n\
            0x5 : IRQ work interrupts\n0x6: \"IRQ work interrupts\"\n7 : \"IRQ work interrupts\"\n";
        assert_eq!(IpiReasons::parse(damaged), IpiReasons::default());
        let many = "0x5 : \"IRQ work interrupts\"\n".repeat(REASONS_MAX + 1);
        assert_eq!(IpiReasons::parse(many.as_bytes()).known.len(), REASONS_MAX);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(bytes in vec(any::<u8>(), 0..200), at in 0..TEXTS.len()) {
            let _ = IpiReasons::parse(&bytes);
            let _ = IpiReasons::parse(&[&TEXTS[..at], &bytes].concat());
        }
    }
}

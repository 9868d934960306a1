//! The 64-bit atomics that pages, rings, blocks and stops are made of.
//!
//! The processor's own where it has them. Where it has none (Cortex-M, RISC-V without A, other
//! 32-bit machines) those of `portable-atomic`: a lock where it can compare and swap, else a
//! critical section that the program provides (crate `critical-section`). There an access takes
//! longer, and is no longer wait-free. Their words are as wide and lie as on any other machine.

#[cfg(target_has_atomic = "64")]
pub use core::sync::atomic::{AtomicI64, AtomicU64};
#[cfg(not(target_has_atomic = "64"))]
pub use portable_atomic::{AtomicI64, AtomicU64};

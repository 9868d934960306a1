//! Every system call and special processor instruction that punctual uses.
//!
//! `no_std`, libc only. All unsafe code of the project but that of the C interface (`capi`) is
//! here, behind safe functions whose first doc line is the call that they make. What keeps it
//! sound: every pointer handed to the kernel points to a local variable or to a slice that outlives
//! the call, lengths are taken from the same value as the pointer, and no function returns memory
//! that the kernel owns.
//!
//! Nothing here makes decisions: no retry beyond what a contract states, no default, no message;
//! what a message is made of, as the name of a policy or what grants a right, is here.
#![no_std]

#[cfg(test)]
extern crate std;

pub mod affinity;
pub mod child;
pub mod clock;
pub mod cycles;
pub mod descriptor;
#[cfg(target_arch = "x86_64")]
#[doc(hidden)]
pub mod emulated_pause;
mod errno;
pub mod events;
pub mod file;
pub mod fork;
pub mod futex;
pub mod gpio;
pub mod kernel_log;
pub mod mapping;
pub mod memory;
pub mod pages;
pub mod parport;
pub mod perf;
pub mod pi_mutex;
pub mod pidfd;
pub mod polling;
pub mod process;
pub mod ptp;
pub mod rights;
pub mod scheduler;
pub mod serial;
pub mod signal;
pub mod socket;
pub mod threads;
pub mod timed_pause;
pub mod tripwire;
pub mod user;

pub use errno::Errno;

//! The facts of this machine, the choice of a measuring CPU, the reason why the kernel refused
//! something.
//!
//! The way through it: a [`root::Root`] opens paths (of this machine, or of a captured tree),
//! [`facts::MachineFacts::collect`] reads them, [`mod@choose`] and [`mod@explain`] judge them,
//! [`mod@capture`] writes them down for others. Only `root`, `capture` and `tracefs` touch files;
//! everything else is pure. No system call is made here beyond those of files and of mounting for
//! this process alone: what needs more lives in crate `os`.
//!
//! | module | what it holds |
//! |---|---|
//! | [`root`] | where paths are opened; the only file that reads the machine |
//! | [`fact`] | a value with its origin, or the reason why there is none |
//! | [`facts`] | everything that is known about the machine, one file a group |
//! | [`cpulist`], [`cmdline`] | the kernel's own grammars |
//! | [`counts`] | interrupts and steal by CPU |
//! | [`mod@choose`] | which CPU to measure on, which one helps, which cores loops get |
//! | [`mod@explain`] | a refused attempt plus the facts: why, and what to do |
//! | [`mod@baseline`] | which facts a baseline is about, their digest, what changed |
//! | [`settings`], [`rules`] | what can be tuned as it is, and what rules make of it |
//! | [`plan`] | what would be changed, runtime first, boot second |
//! | [`tracefs`] | where the kernel's events lie, mounted or attached to this process alone |
//! | [`mod@capture`], [`scrub`] | the facts' files as a tree, without secrets |
#![forbid(unsafe_code)]

pub mod baseline;
pub mod capture;
pub mod choose;
pub mod cmdline;
pub mod counts;
pub mod cpulist;
pub mod explain;
pub mod fact;
pub mod facts;
pub mod identity;
pub mod plan;
pub mod program;
pub mod root;
pub mod rules;
pub mod scrub;
pub mod settings;
#[cfg(test)]
mod testing;
pub mod threads;
pub mod tracefs;

pub use choose::{Choice, CpuError, LoopCores, check_cpus, choose, helper_cpu, parse_cpus};
pub use cpulist::{CpuFormat, CpuList};
pub use explain::{Explanation, RefusedCall, explain};
pub use fact::Fact;
pub use facts::MachineFacts;
pub use root::Root;

//! Writers of captures: `perf.data`, NDJSON, ftrace's text, and Perfetto's trace.
//!
//! Pure: events in, bytes out into whatever can be written. What they write is read again by
//! `capture`, but for Perfetto's.

pub mod ndjson;
pub mod perf_data;
pub mod perfetto;
pub mod text;

use crate::capture::{CaptureClock, KeptWakes, KernelName};
use crate::symbols::Symbols;

/// What is known of a capture before its events; a form leaves out what it has no place for.
#[derive(Debug)]
pub struct CaptureHead<'a> {
    /// The clock of its times.
    pub clock: &'a CaptureClock,
    /// The kernel that was recorded: by its release Perfetto reads the states of threads, by its
    /// architecture it names system calls. Without, it takes a kernel of 4.4, which has other
    /// states: those that differ are written as the nearest that do not.
    pub kernel: &'a KernelName,
    /// The names of functions.
    pub symbols: Symbols,
    /// The late wakes that it was cut down to.
    pub kept: &'a KeptWakes,
}

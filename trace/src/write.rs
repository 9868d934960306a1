//! Writers of captures: `perf.data`, NDJSON, ftrace's text, and Perfetto's trace.
//!
//! Pure: events in, bytes out into whatever can be written. What they write is read again by
//! `capture`, but for Perfetto's.

pub mod ndjson;
pub mod perf_data;
pub mod perfetto;
pub mod text;

//! Recordings of kernels and tracers, as events of one kind.
//!
//! Pure: bytes or text in, events or an error of one line out. Opens no file, reads no clock.

#![forbid(unsafe_code)]

pub mod capture;
pub mod decode;
pub mod encode;
pub mod event;
pub mod format;
pub mod merge;
pub mod perf_record;
pub mod perf_stream;
pub mod reasons;
pub mod symbols;
pub mod wanted;
pub mod write;

//! Bytes → samples: the project's own sample files, and CSV from anywhere.
//!
//! Readers take any [`std::io::Read`]; they open nothing. Whatever the bytes are, a reader neither
//! panics nor grows beyond fixed buffers.

pub mod csv;
pub mod info;
pub mod samples;

//! Bytes → samples and figures: the project's own sample files, CSV, and the files of other
//! programs, which are recognised by content.
//!
//! Readers take any [`std::io::Read`]; they open nothing. Whatever the bytes are, a reader neither
//! panics nor grows beyond fixed limits, and what contradicts itself is refused with its place.
//!
//! | module | what it reads |
//! |---|---|
//! | [`samples`], [`csv`] | the project's own files; one instant or lateness a line |
//! | [`formats`] | the files of other programs: the table of formats, a reader for each |
//! | `text` | lines and numbers of text files, within limits |
#![forbid(unsafe_code)]

pub mod csv;
pub mod formats;
pub mod samples;
mod text;

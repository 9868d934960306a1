//! Bytes → samples and figures: the project's own sample files, CSV, and the files of other
//! programs, which are recognised by content.
//!
//! Readers take any [`std::io::Read`]; they open nothing. Whatever the bytes are, a reader neither
//! panics nor grows beyond fixed limits, and what contradicts itself is refused with its place.
//!
//! | room | what it reads |
//! |---|---|
//! | [`csv`], [`info`], [`samples`] | one instant or lateness a line; the project's own files |
//! | [`formats`] | the table of other programs' formats, and a reader for each |
//! | [`detect`], [`foreign`] | which format a file is in; all of its runs |
//! | `reading`, `text`, `json` | what the readers of single formats share |
//! | `run` | one run as another program counted it, and its figures |

pub mod csv;
pub mod detect;
mod ending;
mod error;
pub mod foreign;
pub mod format;
pub mod formats;
pub mod info;
mod json;
mod reading;
mod run;
pub mod samples;
mod text;

//! Bytes → samples and figures: the project's own sample files, CSV, and the files of other
//! programs, which are recognised by content.
//!
//! Readers take any [`std::io::Read`]; they open nothing. Whatever the bytes are, a reader neither
//! panics nor grows beyond fixed limits, and what contradicts itself is refused with its place.
//!
//! | room | what it reads |
//! |---|---|
//! | [`csv`], [`info`], [`samples`] | one instant or lateness a line; the project's own files |
//! | [`detect`], [`foreign`] | which program wrote a file; all of its runs |
//! | `cyclictest`, `jitterdebugger`, `rtla`, `stress_ng` | one program each |
//! | `latmus`, `xenomai`, `linuxcnc`, `hdr` | likewise |
//! | `threads` | the JSON of rt-tests and jitterdebugger |
//! | `told`, [`imported`] | one run as it was told, and what is known of it |

pub mod csv;
mod cyclictest;
pub mod detect;
mod error;
pub mod foreign;
mod hdr;
pub mod imported;
pub mod info;
mod jitterdebugger;
mod json;
mod latmus;
mod linuxcnc;
mod rtla;
pub mod samples;
mod stress_ng;
mod text;
mod threads;
mod told;
mod xenomai;

//! Parts that the tests of punctual share. Never part of a program.
//!
//! [`browser`]: a headless Chromium for pages. [`sim`]: simulated clocks. [`random`]: numbers that
//! a seed decides. [`parsers`]: bodies of the fuzz targets. [`control_group`]: a group of a test's
//! own. [`skip`]: tests that lack a part say so. [`python`]: the interpreter that has their
//! packages. [`task`]: a test program as a task of its own. [`span`]: the releases of a span, one
//! after the other. [`ends`]: counts by the kind of the work, the way it ended and its disturbance.
//! Depends on the crates under test, never the other way round but as a dev-dependency.
#![forbid(unsafe_code)]

pub mod browser;
pub mod control_group;
pub mod ends;
pub mod parsers;
pub mod python;
pub mod random;
pub mod sim;
pub mod skip;
pub mod span;
pub mod task;

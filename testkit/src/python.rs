//! The Python that has the packages with which tests read foreign formats.
//!
//! `cargo xtask test --install` makes it, in `target/python`. Finds it; installs nothing.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Names another Python that has the packages.
pub const PYTHON: &str = "PUNCTUAL_PYTHON";

/// The interpreter, unless it is missing, which is counted as a skip.
///
/// # Panics
/// As [`crate::skip::need`] does.
#[track_caller]
#[must_use = "a test without the interpreter must return"]
pub fn need() -> Option<PathBuf> {
    let python = std::env::var_os(PYTHON).map_or_else(made, PathBuf::from);
    let runs = Command::new(&python)
        .args(["-c", "import duckdb, hdrh, pandas, perfetto.protos.perfetto.trace"])
        .output();
    let runs = runs.is_ok_and(|output| output.status.success());
    let part = "Python packages (`cargo xtask test --install` gets them)";
    crate::skip::need(part, runs).then_some(python)
}

/// Where the project's own is, or would be.
fn made() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/python/bin/python")
}

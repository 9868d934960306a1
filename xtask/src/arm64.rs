//! `cargo xtask arm64 [--install] [TEST-ARGUMENT…]`: the tests of AArch64, on any processor.
//!
//! Builds libraries, command and tests for AArch64 and runs them under qemu-aarch64, in a Debian
//! system of its own below `target/arm64` (made once, about 2 GB), in namespaces of its own:
//! nothing of it stays registered with the kernel or running. Needs root and mmdebstrap. Tests that
//! need real timing or a real kernel skip themselves by `punctual_testkit::skip::need_native`,
//! counted and named as every other skip.

mod enter;
mod system;

use std::path::{Path, PathBuf};

use crate::test::{Counts, Outcome, Skip, judge};
use crate::{process, root};

/// Everything but what only a developer's own machine runs.
const CRATES: &[&str] = &["--workspace", "--exclude", "xtask"];

/// Where things are kept from run to run.
struct Places {
    /// The clone.
    clone: PathBuf,
    /// The Debian system.
    system: PathBuf,
    /// The sources of all dependencies.
    vendor: PathBuf,
    /// Cargo's home in the system.
    home: PathBuf,
    /// The lines of skipped tests.
    skips: PathBuf,
}

impl Places {
    fn of(clone: &Path) -> Self {
        let kept = clone.join("target/arm64");
        Self {
            clone: clone.to_owned(),
            system: kept.join("system"),
            vendor: kept.join("vendor"),
            home: kept.join("cargo"),
            skips: kept.join("skips"),
        }
    }
}

/// Runs the subcommand.
pub(crate) fn run(args: &[String]) -> Result<(), String> {
    let (install, args) = match args {
        [flag, rest @ ..] if flag == "--install" => (true, rest),
        rest => (false, rest),
    };
    if install {
        crate::test::install_one("mmdebstrap")?;
    }
    if let Some(missing) = missing() {
        return Err(missing);
    }
    let outcome = tests(&root::root(), args)?;
    for Skip { test, what, .. } in &outcome.skips {
        println!("SKIPPED {test}: {what}");
    }
    let Counts { passed, failed, skipped } = outcome.counts;
    println!("arm64: {passed} passed, {failed} failed, {skipped} skipped");
    judge(&outcome, false)
}

/// What all of this lacks on this machine; `None` when nothing.
pub(crate) fn missing() -> Option<String> {
    if !process::is_root() {
        return Some("arm64 needs root, to make a Debian system and to enter it".to_owned());
    }
    let programs = ["mmdebstrap", "setpriv", "unshare", "mount", "chroot", "apt-get"];
    let missing = programs.into_iter().find(|name| !process::on_path(name))?;
    Some(format!("arm64 needs {missing} (`cargo xtask arm64 --install` gets mmdebstrap)"))
}

/// Builds and runs the tests; `args` go to `cargo test`.
pub(crate) fn tests(clone: &Path, args: &[String]) -> Result<Outcome, String> {
    let places = Places::of(clone);
    system::make(&places.system)?;
    system::vendor(&places.clone, &places.vendor, &places.home)?;
    // Warnings are shown and do not fail: that system's Rust gets newer, and so do its lints.
    enter::run(&places, &["clippy", "--package", "punctual-os", "--all-targets", "--locked"])?;
    let mut words = vec!["test"];
    words.extend(CRATES);
    words.extend(["--locked", "--no-fail-fast"]);
    words.extend(args.iter().map(String::as_str));
    let log = &places.skips;
    std::fs::write(log, "").map_err(|error| format!("{}: {error}", log.display()))?;
    crate::test::count(enter::start(&places, &words)?, log, &clone.join("target/tests-arm64.log"))
}

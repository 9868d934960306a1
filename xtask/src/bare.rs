//! `punctual-core`, and the stimulator's firmware, built for processors without an operating system
//! and without 64-bit atomics.
//!
//! A step of `cargo xtask test`, which with `--install` gets the targets' core library by rustup.
//! Only builds: nothing runs there.

use std::path::Path;
use std::process::Command;

use crate::process;

/// Cortex-M0+ (no compare and swap), Cortex-M4 (32 bits of it), RISC-V without A (none).
const TARGETS: [&str; 3] =
    ["thumbv6m-none-eabi", "thumbv7em-none-eabi", "riscv32imc-unknown-none-elf"];

/// Gets the core library of each target.
pub(crate) fn install() -> Result<(), String> {
    process::run(Command::new("rustup").args(["target", "add"]).args(TARGETS))
}

/// The target or tool that this machine lacks; `None` when nothing.
pub(crate) fn lacking() -> Option<&'static str> {
    let mut rustup = Command::new("rustup");
    let listed = process::output(rustup.args(["target", "list", "--installed"])).ok();
    let listed = String::from_utf8(listed.unwrap_or_default()).unwrap_or_default();
    let has = |target: &&str| listed.lines().any(|line| line == *target);
    (!TARGETS.iter().all(has))
        .then_some("a target's core library (`cargo xtask test --install` gets it)")
}

/// Builds the firmware, and the crate for each target.
pub(crate) fn check(root: &Path) -> Result<(), String> {
    // The firmware's own configuration names its target.
    let args = ["build", "--locked", "--release"];
    process::run(process::cargo(root, &args).current_dir(root.join("stimulator/board")))?;
    let each = TARGETS.map(|target| {
        let args = ["build", "--locked", "--package", "punctual-core", "--target", target];
        process::run(&mut process::cargo(root, &args))
    });
    each.into_iter().collect()
}

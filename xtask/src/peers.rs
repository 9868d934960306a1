//! `cargo xtask peers [OPTION…]`: punctual's ways to wait and other crates and programs, in turns
//! on one CPU.
//!
//! Builds `peers/`, a workspace of its own so that what it compares with is no dependency of ours,
//! and runs it with the options as they are (`--help` lists them). docs/peers.md says what is
//! compared with what.

use std::path::Path;
use std::process::Command;

use crate::{process, root};

const MANIFEST: &str = "peers/Cargo.toml";

/// Builds it and runs it.
pub(crate) fn run(args: &[String]) -> Result<(), String> {
    let root = root::root();
    let build = ["build", "--release", "--locked", "--manifest-path", MANIFEST];
    process::run(&mut process::cargo(&root, &build))?;
    process::run(Command::new(root.join("peers/target/release/punctual-peers")).args(args))
}

/// Builds it and runs its tests, where its crates can be had; without them it says so, but for CI.
pub(crate) fn check(root: &Path) -> Result<(), String> {
    let fetch = ["fetch", "--locked", "--manifest-path", MANIFEST];
    if let Err(why) = process::run(&mut process::cargo(root, &fetch)) {
        if process::in_ci() {
            return Err(why);
        }
        println!("peers: its crates cannot be had here, so it is not built ({why})");
        return Ok(());
    }
    let test = ["test", "--locked", "--manifest-path", MANIFEST];
    process::run(&mut process::cargo(root, &test))
}

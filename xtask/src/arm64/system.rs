//! The Debian system that builds and runs AArch64 programs, and the sources it builds from.
//!
//! Made by mmdebstrap from the mirror that this machine's own apt uses; reused while the list of
//! packages stays the same. Downloads only here.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::{debian, process};

/// Debian's release: the oldest whose Rust is new enough is still the one in the making.
const SUITE: &str = "sid";
/// What it holds: Rust with both standard libraries, a linker, the emulator.
const PACKAGES: &str = "cargo,rust-clippy,libstd-rust-dev:arm64,gcc-aarch64-linux-gnu,\
                        libc6-dev-arm64-cross,libc6:arm64,qemu-user,util-linux";

/// Makes the system unless one of the same packages stands there.
pub(super) fn make(system: &Path) -> Result<(), String> {
    let stamp = system.with_extension("made");
    let wanted = format!("{SUITE} {PACKAGES}\n");
    if fs::read_to_string(&stamp).is_ok_and(|made| made == wanted) && system.is_dir() {
        return Ok(());
    }
    println!("arm64: making a Debian {SUITE} in {}", system.display());
    let mut mmdebstrap = Command::new("mmdebstrap");
    mmdebstrap.args(["--quiet", "--variant=apt", "--architectures=amd64,arm64"]);
    mmdebstrap.arg(format!("--include={PACKAGES}"));
    mmdebstrap.arg("--format=directory");
    debian::unpack(&mut mmdebstrap, SUITE, system)?;
    fs::write(&stamp, wanted).map_err(|error| format!("{}: {error}", stamp.display()))
}

/// Cargo's configuration there: a file, because its subcommands pass no `--config` on.
const CONFIG: &str = r#"[source.crates-io]
replace-with = "vendored"
[source.vendored]
directory = "/punctual/target/arm64/vendor"
"#;

/// Copies the sources of all locked dependencies to `vendor`, unless those of this lock file are
/// there, and makes `home` cargo's home that knows of them: the system itself reaches no registry.
pub(super) fn vendor(clone: &Path, vendor: &Path, home: &Path) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{}: {error}", home.display());
    fs::create_dir_all(home).map_err(failed)?;
    fs::write(home.join("config.toml"), CONFIG).map_err(failed)?;
    let stamp = vendor.with_extension("lock");
    let lock =
        fs::read(clone.join("Cargo.lock")).map_err(|error| format!("Cargo.lock: {error}"))?;
    if fs::read(&stamp).is_ok_and(|vendored| vendored == lock) && vendor.is_dir() {
        return Ok(());
    }
    let mut cargo = process::cargo(clone, &["vendor", "--quiet", "--locked", "--versioned-dirs"]);
    // What it prints is that configuration, with the folder as it is called out here.
    process::output(cargo.arg(vendor))?;
    fs::write(&stamp, lock).map_err(|error| format!("{}: {error}", stamp.display()))
}

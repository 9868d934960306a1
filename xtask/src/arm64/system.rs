//! The Debian system that builds and runs AArch64 programs, and the sources it builds from.
//!
//! Made by mmdebstrap from the mirror that this machine's own apt uses; reused while the list of
//! packages stays the same. Downloads only here.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::process;

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
    let mirror = mirror()?;
    println!("arm64: making a Debian {SUITE} in {}", system.display());
    let failed = |error: std::io::Error| format!("{}: {error}", system.display());
    if system.exists() {
        fs::remove_dir_all(system).map_err(failed)?;
    }
    fs::create_dir_all(system.parent().unwrap_or(system)).map_err(failed)?;
    let mut mmdebstrap = Command::new("mmdebstrap");
    mmdebstrap.args(["--quiet", "--variant=apt", "--architectures=amd64,arm64"]);
    mmdebstrap.arg(format!("--include={PACKAGES}"));
    // A mirror that is no longer refreshed serves as well.
    mmdebstrap.arg("--aptopt=Acquire::Check-Valid-Until \"false\"");
    mmdebstrap.args(["--aptopt=Acquire::Retries \"3\"", "--format=directory", SUITE]);
    process::run(mmdebstrap.arg(system).arg(mirror))?;
    fs::write(&stamp, wanted).map_err(|error| format!("{}: {error}", stamp.display()))
}

/// The mirror that this machine's apt reads packages from.
fn mirror() -> Result<String, String> {
    let mut targets = Command::new("apt-get");
    targets.args(["indextargets", "--format", "$(SITE) $(RELEASE)", "Created-By: Packages"]);
    let listed = process::output(&mut targets)?;
    main_site(&String::from_utf8_lossy(&listed))
        .ok_or_else(|| "apt has no source of Debian's main archive".to_owned())
}

/// The first site that is not one of updates alone: lines of `SITE RELEASE`.
fn main_site(listed: &str) -> Option<String> {
    let sites = listed.lines().filter_map(|line| line.split_once(' '));
    let main = |(_, release): &(&str, &str)| !release.contains('-');
    sites.filter(|(site, _)| !site.contains("security")).find(main).map(|(site, _)| site.to_owned())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mirror_is_that_of_the_main_archive() {
        let listed = "http://a/debian-security stable-security\nhttp://b/debian stable-updates\n\
                      http://c/debian stable\nhttp://d/debian stable\n";
        assert_eq!(main_site(listed).as_deref(), Some("http://c/debian"));
        assert_eq!(main_site("http://a/debian-security stable\n"), None);
        assert_eq!(main_site(""), None);
    }
}

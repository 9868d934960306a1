//! QEMU, a kernel and its drivers, from Debian's packages, unpacked and not installed.
//!
//! Made by mmdebstrap; reused while the list of packages stays the same. Downloads only here. Its
//! programs are started by its own loader, so that none needs a root of its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{debian, process};

/// Debian's release: the first whose QEMU has a card with a clock that goes.
const SUITE: &str = "trixie";
const PACKAGES: &str = "base-files,qemu-system-x86,linux-image-rt-amd64,busybox-static,xz-utils";

/// Where it all lies.
pub(super) struct System(PathBuf);

impl System {
    /// Unpacks the packages unless they lie there.
    pub(super) fn make(at: &Path) -> Result<Self, String> {
        if !cfg!(target_arch = "x86_64") {
            return Err("the kernel and its emulator are those of x86-64".to_owned());
        }
        let stamp = at.with_extension("made");
        let wanted = format!("{SUITE} {PACKAGES}\n");
        if !(fs::read_to_string(&stamp).is_ok_and(|made| made == wanted) && at.is_dir()) {
            println!("ptp: unpacking QEMU and a kernel of Debian {SUITE} in {}", at.display());
            let mut mmdebstrap = Command::new("mmdebstrap");
            mmdebstrap.args(["--quiet", "--variant=extract", "--format=directory"]);
            mmdebstrap.arg(format!("--include={PACKAGES}"));
            debian::unpack(&mut mmdebstrap, SUITE, at)?;
            fs::write(&stamp, wanted).map_err(|error| format!("{}: {error}", stamp.display()))?;
        }
        Ok(Self(at.to_owned()))
    }

    /// A program of it.
    pub(super) fn program(&self, name: &str) -> Command {
        let Self(at) = self;
        let libraries = at.join("usr/lib/x86_64-linux-gnu");
        let mut command = Command::new(at.join("usr/lib64/ld-linux-x86-64.so.2"));
        command.env("QEMU_MODULE_DIR", libraries.join("qemu"));
        command.arg("--library-path").arg(libraries).arg(at.join("usr/bin").join(name));
        command
    }

    /// A path in it.
    pub(super) fn path(&self, path: &str) -> PathBuf {
        self.0.join(path)
    }

    /// A file of it.
    pub(super) fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        let path = self.path(path);
        fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))
    }

    /// The kernel.
    pub(super) fn kernel(&self) -> Result<PathBuf, String> {
        only(&self.path("boot"), "vmlinuz-")
    }

    /// A driver, unpacked: its path below the kernel's `drivers`, without `.ko.xz`.
    pub(super) fn driver(&self, name: &str) -> Result<Vec<u8>, String> {
        let modules = only(&self.path("usr/lib/modules"), "")?;
        let packed = modules.join(format!("kernel/drivers/{name}.ko.xz"));
        process::output(self.program("xz").args(["--decompress", "--stdout"]).arg(packed))
    }
}

/// What lies in a folder and begins so.
fn only(folder: &Path, begins: &str) -> Result<PathBuf, String> {
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    let entries = fs::read_dir(folder).map_err(failed)?.flatten();
    let named = |entry: &fs::DirEntry| entry.file_name().to_string_lossy().starts_with(begins);
    let mut paths: Vec<PathBuf> = entries.filter(named).map(|entry| entry.path()).collect();
    paths.sort();
    paths.pop().ok_or_else(|| format!("{}: no {begins}*", folder.display()))
}

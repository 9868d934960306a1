//! QEMU, kernels and their drivers, from Debian's packages, unpacked and not installed.
//!
//! Made by mmdebstrap in the user's cache, outside the clone, so that every clone uses them; made
//! again when the list of packages changes. Downloads only here. Programs are started by the
//! loader that lies beside them, so that none needs a root of its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{debian, process};

/// Packages of one Debian release.
pub(crate) struct Packages {
    pub suite: &'static str,
    pub include: &'static str,
}

/// The emulator: the first release whose QEMU has a card with a clock that keeps time.
pub(crate) const EMULATOR: Packages =
    Packages { suite: "trixie", include: "base-files,qemu-system-x86,busybox-static,xz-utils" };

/// A kernel with PREEMPT_RT, as Debian builds it.
pub(crate) struct Kernel {
    /// Its version as people name it.
    pub name: &'static str,
    pub packages: Packages,
}

/// One of each age: the oldest that is supported, the stable one, the newest.
pub(crate) const KERNELS: [Kernel; 3] =
    [kernel("6.1", "bookworm"), kernel("6.12", "trixie"), kernel("7.2", "sid")];

const fn kernel(name: &'static str, suite: &'static str) -> Kernel {
    Kernel { name, packages: Packages { suite, include: "base-files,linux-image-rt-amd64" } }
}

/// Packages, unpacked in a folder.
pub(crate) struct System(PathBuf);

impl System {
    /// Unpacks the packages unless they lie in the cache.
    pub(crate) fn of(packages: &Packages) -> Result<Self, String> {
        let Packages { suite, include } = packages;
        let short = include.split(',').nth(1).unwrap_or(include);
        let at = cache()?.join(format!("{suite}-{short}"));
        let stamp = at.with_extension("made");
        let wanted = format!("{suite} {include}\n");
        if !(fs::read_to_string(&stamp).is_ok_and(|made| made == wanted) && at.is_dir()) {
            println!("vm: unpacking {short} of Debian {suite} in {}", at.display());
            let failed = |error: std::io::Error| format!("{}: {error}", at.display());
            // Beside it first: another clone may be making the same.
            let new = at.with_extension(format!("{}.new", std::process::id()));
            let mut mmdebstrap = Command::new("mmdebstrap");
            mmdebstrap.args(["--quiet", "--variant=extract", "--format=directory"]);
            mmdebstrap.arg(format!("--include={include}"));
            debian::unpack(&mut mmdebstrap, suite, &new)?;
            if at.exists() {
                fs::remove_dir_all(&at).map_err(failed)?;
            }
            fs::rename(&new, &at).map_err(failed)?;
            fs::write(&stamp, wanted).map_err(failed)?;
        }
        Ok(Self(at))
    }

    /// A program of it.
    pub(crate) fn program(&self, name: &str) -> Command {
        let Self(at) = self;
        let libraries = at.join("usr/lib/x86_64-linux-gnu");
        let mut command = Command::new(at.join("usr/lib64/ld-linux-x86-64.so.2"));
        command.env("QEMU_MODULE_DIR", libraries.join("qemu"));
        command.arg("--library-path").arg(libraries).arg(at.join("usr/bin").join(name));
        command
    }

    /// A path in it.
    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.0.join(path)
    }

    /// A file of it.
    pub(crate) fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        let path = self.path(path);
        fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))
    }

    /// The kernel: in `boot`, or beside its modules where the package has no installer.
    pub(crate) fn kernel(&self) -> Result<PathBuf, String> {
        only(&self.path("boot"), "vmlinuz-").or_else(|_| only(&self.modules()?, "vmlinuz"))
    }

    /// A driver, unpacked by `emulator`'s xz where it is packed: its path below the kernel's
    /// `drivers`, without its ending.
    pub(crate) fn driver(&self, emulator: &Self, name: &str) -> Result<Vec<u8>, String> {
        let plain = self.modules()?.join(format!("kernel/drivers/{name}.ko"));
        if plain.is_file() {
            return fs::read(&plain).map_err(|error| format!("{}: {error}", plain.display()));
        }
        let packed = plain.with_extension("ko.xz");
        process::output(emulator.program("xz").args(["--decompress", "--stdout"]).arg(packed))
    }

    fn modules(&self) -> Result<PathBuf, String> {
        let merged = self.path("usr/lib/modules");
        only(&if merged.is_dir() { merged } else { self.path("lib/modules") }, "")
    }
}

/// Where unpacked systems lie: `$XDG_CACHE_HOME/punctual-vm`, below `~/.cache` without it.
pub(super) fn cache() -> Result<PathBuf, String> {
    let named = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let home = || std::env::var_os("HOME").map(|home| Path::new(&home).join(".cache"));
    let cache = named.filter(|path| path.is_absolute()).or_else(home);
    cache
        .map(|cache| cache.join("punctual-vm"))
        .ok_or_else(|| "neither XDG_CACHE_HOME nor HOME is set: nowhere to keep guests".to_owned())
}

/// What lies in a folder and begins so.
pub(super) fn only(folder: &Path, begins: &str) -> Result<PathBuf, String> {
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    let entries = fs::read_dir(folder).map_err(failed)?.flatten();
    let named = |entry: &fs::DirEntry| entry.file_name().to_string_lossy().starts_with(begins);
    let mut paths: Vec<PathBuf> = entries.filter(named).map(|entry| entry.path()).collect();
    paths.sort();
    paths.pop().ok_or_else(|| format!("{}: no {begins}*", folder.display()))
}

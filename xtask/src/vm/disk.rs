//! A whole Debian system on a disk: systemd, GRUB's tools, a PREEMPT_RT kernel and other tools.
//!
//! Made once by mmdebstrap, in the user's cache; each run works on a copy. QEMU boots its kernel
//! directly, with the command line that the scenario gives. A second disk carries the command and
//! the steps, which a unit of the guest runs once all else has started.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::system::cache;
use crate::{debian, process};

const SUITE: &str = "trixie";
const PACKAGES: &str = "linux-image-rt-amd64,systemd-sysv,udev,grub2-common,grub-pc-bin,\
                        initramfs-tools,rt-tests,rtla,iproute2,kmod,perl,tuned,irqbalance";

/// Runs the steps of the second disk; what they print goes to the second serial port.
const UNIT: &str = "[Unit]
Description=Steps
After=multi-user.target
[Service]
Type=oneshot
Environment=HOME=/root
ExecStart=/bin/sh -c 'mount /dev/vdb /mnt && exec /bin/sh /mnt/steps'
ExecStopPost=/bin/systemctl --no-block poweroff
StandardOutput=file:/dev/ttyS1
StandardError=inherit
";

/// What is changed in the system before it becomes a disk. The root is named by its device: the
/// guest has no udev links while grub-mkconfig runs.
const CHANGE: &str = "set -e
cp \"$1/usr/share/grub/default/grub\" \"$1/etc/default/grub\"
printf '%s\\n' GRUB_DISABLE_LINUX_UUID=true 'GRUB_CMDLINE_LINUX=\"rw\"' >>\"$1/etc/default/grub\"
mkdir -p \"$1/boot/grub\" \"$1/etc/systemd/system/graphical.target.wants\"
printf '%s' \"$UNIT\" >\"$1/etc/systemd/system/steps.service\"
ln -sf ../steps.service \"$1/etc/systemd/system/graphical.target.wants/steps.service\"
ln -sf /dev/null \"$1/etc/systemd/system/serial-getty@ttyS0.service\"
rm -rf \"$1/var/lib/apt/lists\" \"$1/var/cache/apt\"
";

/// A prepared system: its disk, kernel and first root.
pub(crate) struct Disk {
    pub root: PathBuf,
    pub kernel: PathBuf,
    pub initrd: PathBuf,
}

impl Disk {
    /// Makes the system unless it lies in the cache.
    pub(crate) fn make() -> Result<Self, String> {
        let at = cache()?.join("debian");
        let disk = Self {
            root: at.join("root.ext4"),
            kernel: at.join("vmlinuz"),
            initrd: at.join("initrd"),
        };
        let stamp = at.join("made");
        let wanted = format!("{SUITE} {PACKAGES}\n{UNIT}{CHANGE}");
        if fs::read_to_string(&stamp).is_ok_and(|made| made == wanted) {
            return Ok(disk);
        }
        println!("vm: making a Debian {SUITE} in {}", at.display());
        let failed = |error: std::io::Error| format!("{}: {error}", at.display());
        fs::create_dir_all(&at).map_err(failed)?;
        // Where another clone makes the same meanwhile, each in its own.
        let tree = at.join(format!("tree.{}", std::process::id()));
        let mut mmdebstrap = Command::new("mmdebstrap");
        mmdebstrap.args(["--quiet", "--variant=minbase", "--format=directory"]);
        mmdebstrap.arg("--aptopt=APT::Install-Recommends \"false\"");
        mmdebstrap.arg(format!("--include={PACKAGES}"));
        debian::unpack(&mut mmdebstrap, SUITE, &tree)?;
        let mut change = Command::new("sh");
        change.args(["-c", CHANGE, "sh"]).arg(&tree).env("UNIT", UNIT);
        process::run(&mut change)?;
        for (name, to) in [("vmlinuz-", &disk.kernel), ("initrd.img-", &disk.initrd)] {
            fs::copy(super::system::only(&tree.join("boot"), name)?, to).map_err(failed)?;
        }
        format(&tree, &disk.root, "1500M")?;
        fs::remove_dir_all(&tree).map_err(failed)?;
        fs::write(&stamp, wanted).map_err(failed)?;
        Ok(disk)
    }
}

/// Makes a disk of the files below `tree`.
fn format(tree: &Path, disk: &Path, size: &str) -> Result<(), String> {
    if disk.exists() {
        fs::remove_file(disk).map_err(|error| format!("{}: {error}", disk.display()))?;
    }
    let mut mke2fs = Command::new("/sbin/mke2fs");
    mke2fs.args(["-q", "-t", "ext4", "-d"]).arg(tree).arg(disk).arg(size);
    process::run(&mut mke2fs)
}

/// The disk that carries the steps and programs, made in `folder`.
pub(crate) fn carrier(
    folder: &Path,
    steps: &str,
    programs: &[(String, Vec<u8>)],
) -> Result<PathBuf, String> {
    use std::os::unix::fs::PermissionsExt;

    let tree = folder.join("carrier");
    let failed = |error: std::io::Error| format!("{}: {error}", tree.display());
    if tree.exists() {
        fs::remove_dir_all(&tree).map_err(failed)?;
    }
    fs::create_dir_all(&tree).map_err(failed)?;
    fs::write(tree.join("steps"), steps).map_err(failed)?;
    for (path, bytes) in programs {
        let to = tree.join(Path::new(path).file_name().ok_or("a program without a name")?);
        fs::write(&to, bytes).map_err(failed)?;
        fs::set_permissions(&to, fs::Permissions::from_mode(0o755)).map_err(failed)?;
    }
    let disk = folder.join("carrier.ext4");
    format(&tree, &disk, "400M")?;
    fs::remove_dir_all(&tree).map_err(failed)?;
    Ok(disk)
}

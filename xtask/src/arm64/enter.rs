//! Running cargo in the Debian system, so that AArch64 programs start like any other.
//!
//! In a user namespace of its own the kernel lets a handler for foreign programs be registered for
//! that namespace alone (binfmt_misc, Linux 6.7), so a test can start the command under test, and
//! that one itself. All mounts and processes end with the namespaces. The environment is
//! not passed on.

use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::Places;

/// The target, as Rust names it.
const TARGET: &str = "aarch64-unknown-linux-gnu";

/// Outside: waits until its user ids are mapped, mounts, enters. $1 is the system, $2 the clone.
const OUTSIDE: &str = r#"
read -r mapped
set -e
system=$1 clone=$2
shift 2
mkdir -p "$system/punctual"
mount --rbind /sys "$system/sys"
mount --rbind /dev "$system/dev"
mount -t proc proc "$system/proc"
mount -t binfmt_misc binfmt_misc "$system/proc/sys/fs/binfmt_misc"
mount --bind "$clone" "$system/punctual"
mount -t tmpfs tmpfs "$system/tmp"
mount -t tmpfs tmpfs "$system/run"
exec chroot "$system" /bin/sh -c "$INSIDE" arm64 "$@" </dev/null
"#;

/// Inside: registers the emulator ($HANDLER), then runs cargo. As a child: the first process of a
/// namespace must reap what others leave behind.
const INSIDE: &str = r#"
set -e
printf '%s' "$HANDLER" >/proc/sys/fs/binfmt_misc/register
cd /punctual
ended=0
cargo "$@" || ended=$?
exit "$ended"
"#;

/// For binfmt_misc: 64-bit little-endian ELF files of machine 183 (AArch64) and of the types 2 and
/// 3, by magic and mask; P keeps `argv[0]`, F opens the emulator at once.
fn handler() -> String {
    let magic = r"\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00";
    let ones = r"\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff";
    format!(r":qemu-aarch64:M::{magic}:{ones}\xfe\xff\xff\xff:/usr/bin/qemu-aarch64:PF")
}

/// Runs cargo in the system and waits for it.
pub(super) fn run(places: &Places, args: &[&str]) -> Result<(), String> {
    let status = start(places, args)?.wait().map_err(|error| format!("unshare: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("cargo {}: {status}", args.join(" "))) }
}

/// Starts cargo in the system; of `cargo test`, standard output is left for the caller to read.
pub(super) fn start(places: &Places, args: &[&str]) -> Result<Child, String> {
    // Whatever ends this ends that, and with it all that runs in the namespaces.
    let mut unshare = Command::new("setpriv");
    unshare.args(["--pdeathsig", "KILL", "unshare"]);
    unshare.args(["--user", "--mount", "--pid", "--fork", "--kill-child"]);
    unshare.args(["--propagation", "private", "sh", "-c", OUTSIDE, "arm64"]);
    unshare.arg(&places.system).arg(&places.clone).args(args);
    unshare.env_clear().envs(environment()).stdin(Stdio::piped());
    if args.first() == Some(&"test") {
        unshare.stdout(Stdio::piped());
    }
    let mut child = unshare.spawn().map_err(|error| format!("unshare: {error}"))?;
    if let Err(error) = map_ids(&mut child) {
        // It waits for a line that will not come; ended here whatever state it is in.
        let _ = child.kill();
        let _ = child.wait();
        return Err(error);
    }
    Ok(child)
}

/// What cargo and the tests get to see.
fn environment() -> Vec<(&'static str, String)> {
    let linker = "CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER";
    vec![
        ("PATH", "/usr/sbin:/usr/bin:/sbin:/bin".to_owned()),
        ("HOME", "/root".to_owned()),
        ("LANG", "C.UTF-8".to_owned()),
        ("INSIDE", INSIDE.to_owned()),
        ("HANDLER", handler()),
        ("CARGO_HOME", "/punctual/target/arm64/cargo".to_owned()),
        ("CARGO_TARGET_DIR", "/punctual/target/arm64/build".to_owned()),
        ("CARGO_BUILD_TARGET", TARGET.to_owned()),
        ("CARGO_NET_OFFLINE", "true".to_owned()),
        // Half the time of a build, and nobody debugs here.
        ("CARGO_PROFILE_DEV_DEBUG", "0".to_owned()),
        (linker, "aarch64-linux-gnu-gcc".to_owned()),
        ("RUST_BACKTRACE", "1".to_owned()),
        // Far quicker where each instruction is emulated; overflow is checked all the same.
        ("CARGO_PROFILE_DEV_OPT_LEVEL", "1".to_owned()),
        // An emulated processor takes ten times as long for each.
        ("PROPTEST_CASES", "32".to_owned()),
        ("PUNCTUAL_EMULATED", "1".to_owned()),
        ("PUNCTUAL_SKIP_LOG", "/punctual/target/arm64/skips".to_owned()),
    ]
}

/// Maps all user and group ids to themselves once the child has its namespace, and lets it go on.
fn map_ids(child: &mut Child) -> Result<(), String> {
    let own = std::fs::read_link("/proc/self/ns/user").map_err(|error| error.to_string())?;
    let of = format!("/proc/{}", child.id());
    let start = Instant::now();
    while std::fs::read_link(format!("{of}/ns/user")).is_ok_and(|its| its == own) {
        let ended = child.try_wait().map_err(|error| format!("unshare: {error}"))?;
        if let Some(status) = ended {
            return Err(format!("unshare: {status} (are user namespaces allowed here?)"));
        }
        if start.elapsed() > Duration::from_secs(10) {
            return Err("unshare made no user namespace within 10 s".to_owned());
        }
        std::thread::yield_now();
    }
    for map in ["uid_map", "gid_map"] {
        let file = Path::new(&of).join(map);
        std::fs::write(&file, "0 0 4294967295\n")
            .map_err(|error| format!("{}: {error}", file.display()))?;
    }
    let mut stdin = child.stdin.take().ok_or("unshare: no standard input")?;
    stdin.write_all(b"mapped\n").map_err(|error| format!("unshare: {error}"))
}

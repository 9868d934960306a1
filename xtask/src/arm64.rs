//! `cargo xtask arm64 [--install] [TEST-ARGUMENT…]`: the tests of AArch64, on any processor.
//!
//! Builds libraries, command and tests for AArch64 and runs them under qemu-aarch64, in a Debian
//! system of its own below `target/arm64` (made once, about 2 GB), in namespaces of its own:
//! nothing of it stays registered with the kernel or running. Needs root and mmdebstrap. Tests that
//! need real timing or a real kernel skip themselves by `punctual_testkit::skip::need_native`,
//! counted and named as every other skip.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::test::{Counts, Outcome, Skip, judge};
use crate::{debian, process, workspace};

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
        crate::packages::install_one("mmdebstrap")?;
    }
    if let Some(missing) = missing() {
        return Err(missing);
    }
    let outcome = tests(&workspace::root(), args)?;
    for Skip { test, lacks, .. } in &outcome.skips {
        println!("SKIPPED {test}: {lacks}");
    }
    let Counts { passed, failed, skipped } = outcome.counts;
    println!("arm64: {passed} passed, {failed} failed, {skipped} skipped");
    judge(&outcome, false)
}

/// The first requirement that this machine lacks; `None` when nothing.
fn missing() -> Option<String> {
    if !process::is_root() {
        return Some("arm64 needs root, to make a Debian system and to enter it".to_owned());
    }
    let programs = ["mmdebstrap", "setpriv", "unshare", "mount", "chroot", "apt-get"];
    let missing = programs.into_iter().find(|name| !process::on_path(name))?;
    Some(format!("arm64 needs {missing} (`cargo xtask arm64 --install` gets mmdebstrap)"))
}

/// Builds and runs the tests; `args` go to `cargo test`.
fn tests(clone: &Path, args: &[String]) -> Result<Outcome, String> {
    let places = Places::of(clone);
    make_system(&places.system)?;
    vendor(&places.clone, &places.vendor, &places.home)?;
    // Warnings are shown and do not fail: that system's Rust gets newer, and so do its lints.
    cargo(&places, &["clippy", "--package", "punctual-os", "--all-targets", "--locked"])?;
    let mut words = vec!["test"];
    words.extend(CRATES);
    words.extend(["--locked", "--no-fail-fast"]);
    words.extend(args.iter().map(String::as_str));
    let log = &places.skips;
    fs::write(log, "").map_err(|error| format!("{}: {error}", log.display()))?;
    crate::test::count(start(&places, &words)?, log, &clone.join("target/tests-arm64.log"))
}

/// The target, as Rust names it.
pub(crate) const TARGET: &str = "aarch64-unknown-linux-gnu";
/// The linker, and the variable by which cargo takes it.
pub(crate) const LINKER: &str = "aarch64-linux-gnu-gcc";
pub(crate) const LINKER_VARIABLE: &str = "CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER";

// Cargo runs in the Debian system so that AArch64 programs start like any other: in a user
// namespace of its own the kernel lets a handler for foreign programs be registered for that
// namespace alone (binfmt_misc, Linux 6.7), so a test can start the command under test, and that
// one itself. All mounts and processes end with the namespaces. The environment is not passed on.

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
fn cargo(places: &Places, args: &[&str]) -> Result<(), String> {
    let status = start(places, args)?.wait().map_err(|error| format!("unshare: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("cargo {}: {status}", args.join(" "))) }
}

/// Starts cargo in the system; of `cargo test`, standard output is left for the caller to read.
fn start(places: &Places, args: &[&str]) -> Result<Child, String> {
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

/// The environment variables of cargo and the tests.
fn environment() -> Vec<(&'static str, String)> {
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
        (LINKER_VARIABLE, LINKER.to_owned()),
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
    let own = fs::read_link("/proc/self/ns/user").map_err(|error| error.to_string())?;
    let process = format!("/proc/{}", child.id());
    let start = Instant::now();
    while fs::read_link(format!("{process}/ns/user")).is_ok_and(|its| its == own) {
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
        let file = Path::new(&process).join(map);
        fs::write(&file, "0 0 4294967295\n")
            .map_err(|error| format!("{}: {error}", file.display()))?;
    }
    let mut stdin = child.stdin.take().ok_or("unshare: no standard input")?;
    stdin.write_all(b"mapped\n").map_err(|error| format!("unshare: {error}"))
}

/// Debian's release: the oldest whose Rust is new enough is still the one in the making.
const SUITE: &str = "sid";
/// The packages of the system: Rust with both standard libraries, a linker, the emulator.
const PACKAGES: &str = "cargo,rust-clippy,libstd-rust-dev:arm64,gcc-aarch64-linux-gnu,\
                        libc6-dev-arm64-cross,libc6:arm64,qemu-user,util-linux";

/// Makes the system unless one of the same packages stands there.
fn make_system(system: &Path) -> Result<(), String> {
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
fn vendor(clone: &Path, vendor: &Path, home: &Path) -> Result<(), String> {
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

//! The Debian packages that tests need, and how they get here.
//!
//! Runs apt-get, as root or through sudo, and only when one is missing. A machine that has the
//! programs from elsewhere needs none of this.

use std::path::Path;
use std::process::Command;

use crate::process;

/// Package, what of it is used, by which tests.
const PACKAGES: &[(&str, &str, &str)] = &[
    ("chromium", "chromium", "the page of a result, clicked and looked at"),
    ("chromium-driver", "chromedriver", "the same, driven over WebDriver"),
    ("gcc", "gcc", "the C library, its examples and its programs"),
    ("g++", "g++", "the same in C++"),
    ("clang", "clang, clang++", "the same by another compiler"),
    ("binutils", "nm, readelf, strip", "what the C library exports; programs for guests"),
    ("mmdebstrap", "mmdebstrap", "QEMU and the kernels of the guests"),
    ("pkg-config", "pkg-config", "the build lines of its examples"),
    ("valgrind", "valgrind", "that the C library touches no byte that is not its caller's"),
    ("strace", "strace", "the system calls of a loop, as the kernel sees them"),
    ("stress-ng", "stress-ng", "the load that passes its arguments on"),
    ("xvfb", "Xvfb", "a screen for glxgears, of the linuxcnc load"),
    ("mesa-utils", "glxgears", "the linuxcnc load"),
    ("iproute2", "ip", "the net load between two network namespaces"),
    ("prometheus", "promtool", "what reads exported metrics; its server is not used"),
    ("python3-venv", "python3", "the packages that read exports back"),
    ("systemd", "systemd-analyze", "whether the service unit is one"),
    ("git", "git", "the commit that `--version` names"),
    ("zsh", "zsh", "its completions"),
    ("fish", "fish", "its completions"),
    ("tmux", "tmux", "what a person sees in a terminal: progress line, keys"),
    ("util-linux", "setpriv, taskset, unshare", "runs without rights, on few CPUs, in namespaces"),
];

/// Installs what is missing.
pub(crate) fn install() -> Result<(), String> {
    install_those(&PACKAGES.iter().map(|(name, ..)| *name).collect::<Vec<_>>())
}

/// Installs a package that no step of `test` needs, if it is missing.
pub(crate) fn install_one(name: &str) -> Result<(), String> {
    install_those(&[name])
}

fn install_those(names: &[&str]) -> Result<(), String> {
    let missing: Vec<&str> = names.iter().copied().filter(|name| !installed(name)).collect();
    if missing.is_empty() {
        println!("packages: all {} are here", names.len());
        return Ok(());
    }
    for (name, programs, what_for) in PACKAGES.iter().filter(|(name, ..)| missing.contains(name)) {
        println!("packages: {name} ({programs}): {what_for}");
    }
    if !process::on_path("apt-get") {
        let names = missing.join(", ");
        return Err(format!(
            "no apt-get here: install what your system calls {names}, then run without --install \
             (a test whose program is missing is skipped and named)"
        ));
    }
    process::run(&mut apt_get(&["update"]))
        .map_err(|error| format!("{error} (no network, or a broken list of sources)"))?;
    let mut args = vec!["install", "--yes", "--no-install-recommends"];
    args.extend(&missing);
    process::run(&mut apt_get(&args))?;
    match missing.iter().find(|name| !installed(name)) {
        Some(name) => Err(format!("apt-get succeeded, but {name} is not installed")),
        None => Ok(()),
    }
}

/// Whether dpkg has the package in full.
fn installed(name: &str) -> bool {
    let query = Command::new("dpkg-query").args(["-W", "-f=${Status}", name]).output();
    query.is_ok_and(|output| output.stdout == b"install ok installed")
}

/// apt-get without questions, waiting for another one to finish, as root.
fn apt_get(args: &[&str]) -> Command {
    let mut words = Vec::new();
    if !process::is_root() && process::on_path("sudo") {
        words.extend(["sudo", "-n"]);
    }
    words.extend(["env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-q"]);
    words.extend(["-o", "DPkg::Lock::Timeout=300", "-o", "Acquire::Retries=3"]);
    words.extend(args);
    let mut command = Command::new(words[0]);
    command.args(&words[1..]);
    command
}

/// What is installed, as it was written when it was.
const STAMP: &str = "installed.txt";
/// Where the list is.
const LIST: &str = "xtask/src/test/python.txt";

/// Makes the environment, unless it has what the list says.
pub(crate) fn install_python(root: &Path) -> Result<(), String> {
    let list = root.join(LIST);
    let wanted = std::fs::read_to_string(&list).map_err(|error| format!("{LIST}: {error}"))?;
    let home = root.join("target/python");
    let stamp = home.join(STAMP);
    if std::fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        println!("python: {} is as {LIST} says", home.display());
        return Ok(());
    }
    process::run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&home))?;
    let mut pip = Command::new(home.join("bin/python"));
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
    pip.args(["--only-binary", ":all:", "--require-hashes", "--requirement"]).arg(&list);
    process::run(&mut pip).map_err(|error| {
        format!("{error} (no network, or no wheel for this Python: tests that need it are skipped)")
    })?;
    std::fs::write(&stamp, wanted).map_err(|error| format!("{}: {error}", stamp.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::root;

    #[test]
    fn apt_get_never_asks() {
        let shown = process::show(&apt_get(&["update"]));
        assert!(shown.contains("DEBIAN_FRONTEND=noninteractive"), "{shown}");
        assert!(shown.ends_with(" update"), "{shown}");
    }

    #[test]
    fn each_package_stands_once_with_its_reason() {
        for (index, (name, programs, what_for)) in PACKAGES.iter().enumerate() {
            assert!(!programs.is_empty() && !what_for.is_empty(), "{name}");
            assert!(PACKAGES[..index].iter().all(|(other, ..)| other != name), "{name} twice");
        }
    }

    #[test]
    fn every_package_has_an_exact_version_and_a_hash() {
        let text = std::fs::read_to_string(root::root().join(LIST)).unwrap();
        let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        let packages = lines.iter().filter(|line| !line.starts_with(' ')).count();
        assert!(packages > 0);
        for (index, line) in lines.iter().enumerate().filter(|(_, line)| !line.starts_with(' ')) {
            assert!(line.contains("=="), "{line}");
            assert!(lines[index + 1].trim_start().starts_with("--hash=sha256:"), "{line}");
        }
    }
}

//! The Debian packages that tests need, and how they get here.
//!
//! Runs apt-get, as root or through sudo, and only when one is missing. A machine that has the
//! programs from elsewhere needs none of this.

use std::path::Path;
use std::process::Command;

use crate::process;

/// All that `--install` installs.
const PACKAGES: &[Package] = &[
    Package {
        name: "chromium",
        programs: "chromium",
        purpose: "the page of a result, clicked and looked at",
    },
    Package {
        name: "chromium-driver",
        programs: "chromedriver",
        purpose: "the same, driven over WebDriver",
    },
    Package {
        name: "gcc",
        programs: "gcc",
        purpose: "the C library, its examples and its programs",
    },
    Package { name: "g++", programs: "g++", purpose: "the same in C++" },
    Package { name: "clang", programs: "clang, clang++", purpose: "the same by another compiler" },
    Package { name: "bsdutils", programs: "script", purpose: "a terminal for a single test" },
    Package {
        name: "binutils",
        programs: "nm, readelf, strip",
        purpose: "what the C library exports; programs for guests",
    },
    Package {
        name: "mmdebstrap",
        programs: "mmdebstrap",
        purpose: "QEMU and the kernels of the guests",
    },
    Package {
        name: "pkg-config",
        programs: "pkg-config",
        purpose: "the build lines of its examples",
    },
    Package {
        name: "valgrind",
        programs: "valgrind",
        purpose: "that the C library touches no byte that is not its caller's",
    },
    Package {
        name: "strace",
        programs: "strace",
        purpose: "the system calls of a loop, as the kernel sees them",
    },
    Package {
        name: "linux-perf",
        programs: "perf",
        purpose: "that perf opens the captures that are written",
    },
    Package {
        name: "stress-ng",
        programs: "stress-ng",
        purpose: "the load that passes its arguments on",
    },
    Package {
        name: "xvfb",
        programs: "Xvfb",
        purpose: "a screen for glxgears, of the linuxcnc load",
    },
    Package { name: "mesa-utils", programs: "glxgears", purpose: "the linuxcnc load" },
    Package {
        name: "iproute2",
        programs: "ip",
        purpose: "the net load between two network namespaces",
    },
    Package {
        name: "prometheus",
        programs: "promtool",
        purpose: "what reads exported metrics; its server is not used",
    },
    Package {
        name: "python3-venv",
        programs: "python3",
        purpose: "the packages that read exports back",
    },
    Package {
        name: "systemd",
        programs: "systemd-analyze",
        purpose: "whether the service unit is one",
    },
    Package { name: "git", programs: "git", purpose: "the commit that `--version` names" },
    Package { name: "zsh", programs: "zsh", purpose: "its completions" },
    Package { name: "fish", programs: "fish", purpose: "its completions" },
    Package {
        name: "tmux",
        programs: "tmux",
        purpose: "what a person sees in a terminal: progress line, keys",
    },
    Package {
        name: "util-linux",
        programs: "setpriv, taskset, unshare",
        purpose: "runs without rights, on few CPUs, in namespaces",
    },
];

/// A Debian package that steps need.
struct Package {
    name: &'static str,
    /// The programs of it that are looked for.
    programs: &'static str,
    /// The tests that need it.
    purpose: &'static str,
}

/// Installs what is missing.
pub(crate) fn install() -> Result<(), String> {
    install_those(&PACKAGES.iter().map(|package| package.name).collect::<Vec<_>>())
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
    for Package { name, programs, purpose } in
        PACKAGES.iter().filter(|package| missing.contains(&package.name))
    {
        println!("packages: {name} ({programs}): {purpose}");
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

/// Returns true where dpkg has the package in full.
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

/// The file with the version of Python and the list of what is installed, as the list was then.
const STAMP: &str = "installed.txt";
/// Where the list is.
const LIST: &str = "xtask/src/test/python.txt";

/// Makes the environment, unless it has what the list says.
pub(crate) fn install_python(root: &Path) -> Result<(), String> {
    let list = root.join(LIST);
    let wanted = std::fs::read_to_string(&list).map_err(|error| format!("{LIST}: {error}"))?;
    let home = root.join("target/python");
    let stamp = home.join(STAMP);
    let is_stamped = |state| std::fs::read_to_string(&stamp).is_ok_and(|then| then == state);
    if stamp_text(&home, &wanted).is_ok_and(is_stamped) {
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
    let text = stamp_text(&home, &wanted)?;
    std::fs::write(&stamp, text).map_err(|error| format!("{}: {error}", stamp.display()))
}

/// What the stamp of an environment says: the version that its packages are for, which an upgrade
/// of the system changes, and the list.
fn stamp_text(home: &Path, list: &str) -> Result<String, String> {
    let version = ["-c", "import sys; print(*sys.version_info[:2])"];
    let version = process::output(Command::new(home.join("bin/python")).args(version))?;
    Ok(format!("Python {}\n{list}", String::from_utf8_lossy(&version).trim()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace;

    #[test]
    fn apt_get_never_asks() {
        let shown = process::show(&apt_get(&["update"]));
        assert!(shown.contains("DEBIAN_FRONTEND=noninteractive"), "{shown}");
        assert!(shown.ends_with(" update"), "{shown}");
    }

    #[test]
    fn each_package_stands_once_with_its_reason() {
        for (index, Package { name, programs, purpose }) in PACKAGES.iter().enumerate() {
            assert!(!programs.is_empty() && !purpose.is_empty(), "{name}");
            assert!(PACKAGES[..index].iter().all(|earlier| earlier.name != *name), "{name} twice");
        }
    }

    #[test]
    fn the_stamp_of_an_environment_has_the_version_of_its_interpreter() {
        let home = std::env::temp_dir().join(format!("punctual-python-{}", std::process::id()));
        std::fs::create_dir_all(home.join("bin")).unwrap();
        let python = home.join("bin/python");
        assert!(stamp_text(&home, "a==1\n").is_err(), "it is gone");
        std::os::unix::fs::symlink("/bin/echo", &python).unwrap();
        let text = stamp_text(&home, "a==1\n").unwrap();
        assert!(text.starts_with("Python -c import sys") && text.ends_with("\na==1\n"), "{text}");
        std::fs::remove_dir_all(&home).unwrap();
    }

    #[test]
    fn every_package_has_an_exact_version_and_a_hash() {
        let text = std::fs::read_to_string(workspace::root().join(LIST)).unwrap();
        let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        let packages = lines.iter().filter(|line| !line.starts_with(' ')).count();
        assert!(packages > 0);
        for (index, line) in lines.iter().enumerate().filter(|(_, line)| !line.starts_with(' ')) {
            assert!(line.contains("=="), "{line}");
            assert!(lines[index + 1].trim_start().starts_with("--hash=sha256:"), "{line}");
        }
    }
}

//! The Python packages that tests read exports back with, in an environment of their own.
//!
//! Makes `target/python` from `python.txt` beside this file: exact versions, by hash. Touches
//! nothing outside it.

use std::path::Path;
use std::process::Command;

use crate::process;

/// What is installed, as it was written when it was.
const STAMP: &str = "installed.txt";
/// Where the list is.
const LIST: &str = "xtask/src/test/python.txt";

/// Makes the environment, unless it has what the list says.
pub(crate) fn install(root: &Path) -> Result<(), String> {
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
    use crate::root;

    #[test]
    fn every_package_has_an_exact_version_and_a_hash() {
        let text = std::fs::read_to_string(root::root().join(super::LIST)).unwrap();
        let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        let packages = lines.iter().filter(|line| !line.starts_with(' ')).count();
        assert!(packages > 0);
        for (index, line) in lines.iter().enumerate().filter(|(_, line)| !line.starts_with(' ')) {
            assert!(line.contains("=="), "{line}");
            assert!(lines[index + 1].trim_start().starts_with("--hash=sha256:"), "{line}");
        }
    }
}

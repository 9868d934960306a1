//! The program, and what goes with it: man pages, completions, the systemd unit.
//!
//! Man pages and completions are what the installed program writes. The unit names that program
//! by its path. Writes below the prefix alone.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::{Options, built, copy};
use crate::process;

/// The crate that the program is made of.
const PACKAGE: &[&str] = &["punctual-cli", "--bin", "punctual"];
/// Where each shell looks for completions, below the prefix.
const COMPLETIONS: &[(&str, &str)] = &[
    ("bash", "share/bash-completion/completions/punctual"),
    ("zsh", "share/zsh/site-functions/_punctual"),
    ("fish", "share/fish/vendor_completions.d/punctual.fish"),
];
/// The unit, in this tree below `packaging`, and below the prefix's `lib`.
const UNIT: &str = "systemd/system/punctual-soak@.service";

/// Builds and installs all of it.
pub(super) fn install(root: &Path, options: &Options) -> Result<(), String> {
    let binaries = options.prefix.join("bin");
    let unit = unit(root, &binaries)?;
    let program = make(options, "bin/punctual")?;
    copy(&built(root, PACKAGE, "punctual", options.dev)?, &program)?;
    let pages = options.place(&options.prefix.join("share/man/man1"));
    process::run(Command::new(&program).arg("man").arg(&pages))?;
    for (shell, path) in COMPLETIONS {
        let text = process::output(Command::new(&program).args(["completions", shell]))?;
        write(options, path, &text)?;
    }
    write(options, &format!("lib/{UNIT}"), unit.as_bytes())?;
    println!("install: punctual in {}", options.place(&binaries).display());
    Ok(())
}

/// The unit, with the path of the program.
fn unit(root: &Path, binaries: &Path) -> Result<String, String> {
    let file = root.join("packaging/systemd/punctual-soak@.service");
    let text = fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
    Ok(text.replace("@BINDIR@", &unit_word(binaries)?))
}

/// A path as a systemd unit has it: `%` begins a specifier, a space ends the word.
fn unit_word(path: &Path) -> Result<String, String> {
    let text = path.to_str().unwrap_or(" ");
    let is_special = |c: char| c.is_whitespace() || c.is_control() || "\"'\\$".contains(c);
    if text.chars().any(is_special) {
        let shown = path.display();
        return Err(format!(
            "--prefix: {shown} cannot be named in a systemd unit; use a path \
                            without spaces, quotes, `\\` and `$`"
        ));
    }
    Ok(text.replace('%', "%%"))
}

/// A path below the prefix whose directory exists.
fn make(options: &Options, path: &str) -> Result<std::path::PathBuf, String> {
    let path = options.place(&options.prefix.join(path));
    let folder = path.parent().unwrap_or(&path);
    fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    Ok(path)
}

fn write(options: &Options, path: &str, bytes: &[u8]) -> Result<(), String> {
    let path = make(options, path)?;
    fs::write(&path, bytes).map_err(|error| format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unit_starts_the_installed_program() {
        let unit = unit(&crate::root::root(), Path::new("/opt/100%/bin")).unwrap();
        assert!(unit.contains("\nExecStart=/opt/100%%/bin/punctual soak "), "{unit}");
        assert!(!unit.contains("@BINDIR@"));
        assert!(unit_word(Path::new("/opt/a b")).unwrap_err().contains("/opt/a b"));
    }
}

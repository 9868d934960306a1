//! The tests that guests run, built as cargo builds them, and what they load.
//!
//! Runs cargo and ldd. The command under test is looked for by its path here, so it lies at the
//! same one in the guest.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::process;

/// For cargo: no debugging information. With it the programs take 350 MB, and a guest of 1 GiB
/// cannot unpack them.
const SMALL: [&str; 2] = ["--config", "profile.dev.debug=0"];

/// Programs, and the command that one of them starts.
pub(super) struct Programs {
    library: PathBuf,
    commands: PathBuf,
    command: PathBuf,
}

/// Builds them all.
pub(super) fn build(clone: &Path) -> Result<Programs, String> {
    let tests = ["test", "--no-run", "--locked", "--message-format=json-render-diagnostics"];
    let built = |which: &[&str]| {
        let args: Vec<&str> = tests.iter().chain(&SMALL).chain(which).copied().collect();
        let lines = process::output(&mut process::cargo(clone, &args))?;
        Ok::<_, String>(String::from_utf8_lossy(&lines).into_owned())
    };
    let library = built(&["--package", "punctual", "--lib"])?;
    let commands = built(&["--package", "punctual-cli", "--test", "it"])?;
    Ok(Programs {
        library: executable(&library, "punctual", true)?,
        commands: executable(&commands, "it", true)?,
        command: executable(&commands, "punctual", false)?,
    })
}

/// The program of a target in what cargo printed, line by line.
fn executable(lines: &str, target: &str, test: bool) -> Result<PathBuf, String> {
    let artifacts = lines.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    artifacts
        .filter(|of| of["target"]["name"] == target && of["profile"]["test"] == test)
        .find_map(|of| of["executable"].as_str().map(PathBuf::from))
        .ok_or_else(|| format!("cargo built no program of {target}"))
}

impl Programs {
    /// Where each file is to be in the guest, and where it is here.
    pub(super) fn files(&self) -> Result<Vec<(String, PathBuf)>, String> {
        let mut files = vec![
            ("/bin/library".to_owned(), self.library.clone()),
            ("/bin/commands".to_owned(), self.commands.clone()),
            (self.command.to_string_lossy().into_owned(), self.command.clone()),
        ];
        for program in [&self.library, &self.commands, &self.command] {
            let loaded = process::output(Command::new("ldd").arg(program))?;
            for path in libraries(&String::from_utf8_lossy(&loaded)) {
                if files.iter().all(|(there, _)| *there != path) {
                    files.push((path.clone(), path.into()));
                }
            }
        }
        Ok(files)
    }
}

/// The paths in what ldd prints: `libc.so.6 => /lib/libc.so.6 (0x…)`, and the loader alone.
fn libraries(printed: &str) -> Vec<String> {
    let words = printed.lines().filter_map(|line| {
        let line = line.split_once("=>").map_or(line, |(_, path)| path);
        line.split_whitespace().next()
    });
    words.filter(|word| word.starts_with('/')).map(ToOwned::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_read_from_what_ldd_prints() {
        let printed = "\tlinux-vdso.so.1 (0x7ff)\n\tlibm.so.6 => /lib/m/libm.so.6 (0x7f)\n\
                       \t/lib64/ld-linux-x86-64.so.2 (0x7f)\n";
        assert_eq!(libraries(printed), ["/lib/m/libm.so.6", "/lib64/ld-linux-x86-64.so.2"]);
    }

    #[test]
    fn a_program_is_that_of_its_target_and_kind() {
        let line = |name: &str, test: bool, path: &str| {
            format!(
                "{{\"target\":{{\"name\":\"{name}\"}},\"profile\":{{\"test\":{test}}},\
                 \"executable\":{path}}}\n"
            )
        };
        let lines = line("punctual", false, "null")
            + &line("punctual", false, "\"/t/punctual\"")
            + &line("it", true, "\"/t/it-1\"");
        assert_eq!(executable(&lines, "punctual", false), Ok("/t/punctual".into()));
        assert_eq!(executable(&lines, "it", true), Ok("/t/it-1".into()));
        assert!(executable(&lines, "punctual", true).is_err());
    }
}

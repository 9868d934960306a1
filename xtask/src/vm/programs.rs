//! The command and the tests that guests run, as cargo builds them, and what they load.
//!
//! Runs cargo, strip and ldd. With debugging information the programs take 350 MB, and a guest of
//! 1 GiB cannot unpack them: guests get copies without it. For AArch64 there is the command alone,
//! which loads nothing.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use serde_json::Value;

use super::Architecture;
use crate::{arm64, process};

/// What takes debugging information off programs for AArch64.
pub(super) const STRIP: &str = "aarch64-linux-gnu-strip";

/// Gets what builds programs for AArch64: the linker, the library it links, Rust's target.
pub(super) fn install_arm64() -> Result<(), String> {
    for package in ["gcc-aarch64-linux-gnu", "libc6-dev-arm64-cross"] {
        crate::packages::install_one(package)?;
    }
    process::run(Command::new("rustup").args(["target", "add", arm64::TARGET]))
}

/// The programs that may be wanted in a guest.
#[derive(Clone, Copy)]
pub(crate) enum Program {
    /// The command, also at the path that the tests of the command know.
    Command,
    /// The unit tests of the library.
    Library,
    /// The tests of the command.
    Commands,
    /// The example that holds attribution against disturbances that are known.
    Confusion,
    /// The example that disturbs a loop.
    Inject,
}

/// A target of cargo that is built as a program.
#[derive(Clone, Copy)]
struct Target {
    package: &'static str,
    name: &'static str,
    /// True where it is the program of its tests.
    test: bool,
}

impl Program {
    const fn target(self) -> Target {
        let (package, name, test) = match self {
            Self::Command => ("punctual-cli", "punctual", false),
            Self::Library => ("punctual-engine", "punctual_engine", true),
            Self::Commands => ("punctual-cli", "it", true),
            Self::Confusion => ("punctual-lab", "confusion", false),
            Self::Inject => ("punctual-lab", "inject", false),
        };
        Target { package, name, test }
    }

    /// Its path in the guest.
    const fn path(self) -> &'static str {
        match self {
            Self::Command => "/bin/punctual",
            Self::Library => "/bin/library",
            Self::Commands => "/bin/commands",
            Self::Confusion => "/bin/confusion",
            Self::Inject => "/bin/inject",
        }
    }
}

/// The programs as they were built, for guests that boot one beside the other.
pub(crate) struct BuiltPrograms {
    architecture: Architecture,
    /// The text that cargo printed, line by line.
    lines: String,
    /// Where copies without debugging information are.
    kept: PathBuf,
    /// Those that were copied: a guest's neighbour may be running one.
    stripped: Mutex<BTreeMap<&'static str, Vec<u8>>>,
}

impl BuiltPrograms {
    /// Builds all tests as `cargo xtask test` does, so that nothing is built twice; for another
    /// processor the command.
    pub(super) fn build(
        architecture: Architecture,
        clone: &Path,
        kept: &Path,
    ) -> Result<Self, String> {
        let mut kept = kept.to_owned();
        let mut cargo = match architecture {
            Architecture::Amd64 => {
                process::cargo(clone, &["test", "--workspace", "--no-run", "--locked"])
            }
            Architecture::Arm64 => {
                kept.push("arm64");
                let package = Program::Command.target().package;
                let args = ["build", "--locked", "--package", package, "--target", arm64::TARGET];
                let mut cargo = process::cargo(clone, &args);
                cargo.env(arm64::LINKER_VARIABLE, arm64::LINKER);
                // Before those of this target alone.
                cargo.env_remove("RUSTFLAGS").env_remove("CARGO_ENCODED_RUSTFLAGS");
                let flags = "CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUSTFLAGS";
                cargo.env(flags, "-C target-feature=+crt-static");
                cargo
            }
        };
        fs::create_dir_all(&kept).map_err(|error| format!("{}: {error}", kept.display()))?;
        let lines = process::output(cargo.arg("--message-format=json-render-diagnostics"))?;
        let lines = String::from_utf8_lossy(&lines).into_owned();
        Ok(Self { architecture, lines, kept, stripped: Mutex::default() })
    }

    /// The programs, where each is to be in the guest, and with `libraries` what they load.
    pub(crate) fn files(
        &self,
        programs: &[Program],
        libraries: bool,
    ) -> Result<Vec<(String, Vec<u8>)>, String> {
        let mut files: Vec<(String, Vec<u8>)> = Vec::new();
        for &program in programs {
            let built = executable(&self.lines, program.target())?;
            let bytes = self.stripped(program.target().name, &built)?;
            files.push((program.path().to_owned(), bytes.clone()));
            if !libraries || self.architecture == Architecture::Arm64 {
                continue;
            }
            if matches!(program, Program::Command) {
                files.push((built.to_string_lossy().into_owned(), bytes));
            }
            let printed = process::output(Command::new("ldd").arg(&built))?;
            for path in loaded(&String::from_utf8_lossy(&printed)) {
                if files.iter().all(|(packed, _)| *packed != path) {
                    let bytes = fs::read(&path).map_err(|error| format!("{path}: {error}"))?;
                    files.push((path, bytes));
                }
            }
        }
        Ok(files)
    }

    /// A program without debugging information.
    fn stripped(&self, name: &'static str, built: &Path) -> Result<Vec<u8>, String> {
        let mut stripped = self.stripped.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bytes) = stripped.get(name) {
            return Ok(bytes.clone());
        }
        let tool = match self.architecture {
            Architecture::Amd64 => "strip",
            Architecture::Arm64 => STRIP,
        };
        let bytes = strip(tool, built, &self.kept.join(name))?;
        stripped.insert(name, bytes.clone());
        Ok(bytes)
    }
}

/// A copy without debugging information.
fn strip(tool: &str, program: &Path, copy: &Path) -> Result<Vec<u8>, String> {
    let mut strip = Command::new(tool);
    process::run(strip.arg("--strip-debug").arg("-o").arg(copy).arg(program))?;
    fs::read(copy).map_err(|error| format!("{}: {error}", copy.display()))
}

/// The program of a target in what cargo printed, line by line.
fn executable(lines: &str, target: Target) -> Result<PathBuf, String> {
    let Target { package, name: target, test } = target;
    let artifacts = lines.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let of_package = |artifact: &Value| {
        // `path+file:///clone/cli#punctual-cli@0.1.0`, without the name where the folder has it.
        let id = artifact["package_id"].as_str().unwrap_or_default();
        let name = id.rsplit(['/', '#']).find(|part| !part.starts_with(char::is_numeric));
        name.and_then(|name| name.split('@').next()) == Some(package)
    };
    artifacts
        .filter(|artifact| {
            artifact["target"]["name"] == target && artifact["profile"]["test"] == test
        })
        .filter(of_package)
        .find_map(|artifact| artifact["executable"].as_str().map(PathBuf::from))
        .ok_or_else(|| format!("cargo built no program {target} of {package}"))
}

/// The paths in what ldd prints: `libc.so.6 => /lib/libc.so.6 (0x…)`, and the loader alone.
fn loaded(printed: &str) -> Vec<String> {
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
        assert_eq!(loaded(printed), ["/lib/m/libm.so.6", "/lib64/ld-linux-x86-64.so.2"]);
    }

    #[test]
    fn a_program_is_that_of_its_package_target_and_kind() {
        let line = |id: &str, name: &str, test: bool, path: &str| {
            format!(
                "{{\"package_id\":\"path+file:///a/{id}\",\"target\":{{\"name\":\"{name}\"}},\
                 \"profile\":{{\"test\":{test}}},\"executable\":{path}}}\n"
            )
        };
        let lines = line("punctual#0.1.0", "punctual", false, "null")
            + &line("cli#punctual-cli@0.1.0", "punctual", false, "\"/t/punctual\"")
            + &line("punctual#0.1.0", "punctual", true, "\"/t/punctual-2\"")
            + &line("cli#punctual-cli@0.1.0", "it", true, "\"/t/it-1\"");
        let found = |package, name, test| executable(&lines, Target { package, name, test });
        assert_eq!(found("punctual-cli", "punctual", false), Ok("/t/punctual".into()));
        assert_eq!(found("punctual", "punctual", true), Ok("/t/punctual-2".into()));
        assert_eq!(found("punctual-cli", "it", true), Ok("/t/it-1".into()));
        assert!(found("punctual-cli", "punctual", true).is_err());
    }
}

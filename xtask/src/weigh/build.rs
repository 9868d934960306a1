//! How long the command takes to build from nothing, and how large it is.

use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::process;

/// The crate of the command.
const PACKAGE: &str = "punctual-cli";

/// The size of the program as the last build in `profile` left it, if there was one.
pub(super) fn size_bytes(root: &Path, profile: &str) -> Option<u64> {
    let program = root.join("target").join(profile).join("punctual");
    std::fs::metadata(program).ok().map(|file| file.len())
}

/// Builds the command in `profile` in a folder of its own, which is emptied before and removed
/// after, and shows how long that took, how much CPU time, and how large the program is.
pub(super) fn clean(root: &Path, profile: &str) -> Result<String, String> {
    let folder: PathBuf = root.join("target/weigh");
    let remove = || match std::fs::remove_dir_all(&folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(format!("{}: {error}", folder.display()))
        }
        _ => Ok(()),
    };
    remove()?;
    let build = ["build", "--locked", "--package", PACKAGE, "--profile", profile];
    let (start, cpu_before) = (Instant::now(), children_cpu_s()?);
    process::run(process::cargo(root, &build).env("CARGO_TARGET_DIR", &folder))?;
    let (took_s, cpu_s) = (start.elapsed().as_secs_f64(), children_cpu_s()? - cpu_before);
    let program = std::fs::metadata(folder.join(profile).join("punctual"));
    let bytes = program.map_err(|error| format!("{}: {error}", folder.display()))?.len();
    remove()?;
    Ok(format!("{took_s:.0} s, {cpu_s:.0} s of CPU time, {}", megabytes(bytes)))
}

/// A size as people write it.
pub(super) fn megabytes(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}

/// CPU time of all children that have ended, theirs too.
fn children_cpu_s() -> Result<f64, String> {
    let path = "/proc/self/stat";
    let stat = std::fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
    children_ticks(&stat).map(|ticks| ticks as f64 / 100.0).ok_or(format!("{path}: {stat:?}"))
}

/// The fields cutime and cstime (proc_pid_stat(5)), in ticks of 1/100 s on every architecture.
fn children_ticks(stat: &str) -> Option<u64> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(13);
    Some(fields.next()?.parse::<u64>().ok()? + fields.next()?.parse::<u64>().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cpu_time_of_children_is_read() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194304 1 2 3 4 50 60 700 80 20 0 1 0 9 9 9";
        assert_eq!(children_ticks(stat), Some(780));
        assert_eq!(children_ticks("7 (a) S 1"), None);
        assert!(children_cpu_s().is_ok());
    }

    #[test]
    fn a_program_that_was_not_built_has_no_size() {
        assert_eq!(size_bytes(Path::new("no-such-folder"), "release"), None);
        assert_eq!(megabytes(11_889_056), "11.9 MB");
    }
}

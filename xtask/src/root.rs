//! Where the workspace lies and which files belong to it.
//!
//! For every subcommand. Reads git's index and the folder; writes nothing.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The workspace's top folder: the one above this crate, wherever the clone was moved to.
pub(crate) fn root() -> PathBuf {
    let manifest = std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    manifest.parent().map_or_else(|| PathBuf::from("."), Path::to_path_buf)
}

/// Paths, relative to the root and sorted, of all files that are tracked or could be: untracked
/// ones count unless ignored, so that a check sees a file before its first commit.
pub(crate) fn files(root: &Path) -> Result<Vec<String>, String> {
    let listed = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output()
        .map_err(|error| {
            format!("git ls-files: {error} (tidy reads the list of files from git)")
        })?;
    if !listed.status.success() {
        let errors = String::from_utf8_lossy(&listed.stderr);
        return Err(format!("git ls-files in {}: {}", root.display(), errors.trim()));
    }
    let mut paths: Vec<String> = String::from_utf8_lossy(&listed.stdout)
        .split('\0')
        .filter(|path| !path.is_empty() && root.join(path).is_file())
        .map(str::to_owned)
        .collect();
    paths.sort();
    paths.dedup();
    Ok(paths)
}

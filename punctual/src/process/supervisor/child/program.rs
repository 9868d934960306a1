//! Where a task's program lies.
//!
//! As execvp(3) looks for it: a name with a slash is a path, any other one is looked for in PATH.
//! Looks at files, starts nothing.

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// What execvp(3) takes where the environment has no PATH (confstr(3), _CS_PATH).
const PATH: &str = "/bin:/usr/bin";

/// The file of the program of this name, where there is one that can be run.
///
/// # Real-time: setup only
pub fn program(name: &OsStr) -> Option<PathBuf> {
    if name.as_encoded_bytes().contains(&b'/') {
        return Some(PathBuf::from(name)).filter(|path| can_run(path));
    }
    let path = std::env::var_os("PATH").unwrap_or_else(|| PATH.into());
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|path| can_run(path))
}

fn can_run(path: &Path) -> bool {
    path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_looked_for_and_a_path_is_not() {
        let shell = program(OsStr::new("sh")).expect("every system has one");
        assert!(shell.is_absolute() && shell.ends_with("sh"));
        assert_eq!(program(shell.as_os_str()), Some(shell));
        for none in ["no-such-program", "no/such/program", "/tmp", "/etc/passwd", ""] {
            assert_eq!(program(OsStr::new(none)), None, "{none:?}");
        }
    }
}

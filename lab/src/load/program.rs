//! Other people's programs: where they are.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

/// Where system programs are that a user's `PATH` may leave out.
const SYSTEM: [&str; 2] = ["/usr/sbin", "/sbin"];

/// The first executable file called `name` on `PATH`, then in the system's directories.
pub(super) fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .filter(|directory| directory.is_absolute())
        .chain(SYSTEM.map(PathBuf::from))
        .map(|directory| directory.join(name))
        .find(|file| {
            file.metadata()
                .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
        })
}

#[cfg(test)]
mod tests {
    use super::find;

    #[test]
    fn programs_are_found_or_not() {
        assert!(find("sh").is_some_and(|path| path.is_absolute()));
        assert_eq!(find("no-such-program-anywhere"), None);
        assert_eq!(find(""), None, "a directory is no program");
    }
}

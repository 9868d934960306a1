//! Where a running supervisor is found by name.
//!
//! For both ends. A socket below the runtime directory: `/run/punctual` for root, else
//! `$XDG_RUNTIME_DIR/punctual`, else `/tmp/punctual-UID`; `PUNCTUAL_RUNTIME_DIR` says otherwise.
//! The directory is the user's alone.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use punctual_os::process;

/// The longest name of a supervisor or a task, bytes.
pub const NAME_MAX: usize = 48;

/// Says where supervisors are found, in place of the usual directory.
pub const DIR_VARIABLE: &str = "PUNCTUAL_RUNTIME_DIR";

/// Whether a name can be one of a supervisor or a task: letters, digits, `-`, `_` and `.`, not
/// first, and at most [`NAME_MAX`].
///
/// # Real-time: setup only
pub fn is_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    !name.is_empty() && name.len() <= NAME_MAX && !name.starts_with('.') && name.bytes().all(plain)
}

/// The directory of this user's supervisors.
///
/// # Real-time: setup only
pub fn directory() -> PathBuf {
    let variable = |name: &str| std::env::var_os(name).filter(|value: &OsString| !value.is_empty());
    if let Some(dir) = variable(DIR_VARIABLE) {
        return dir.into();
    }
    let uid = process::euid();
    match variable("XDG_RUNTIME_DIR") {
        _ if uid == 0 => PathBuf::from("/run/punctual"),
        Some(dir) => Path::new(&dir).join("punctual"),
        None => PathBuf::from(format!("/tmp/punctual-{uid}")),
    }
}

/// The socket of the supervisor of this name.
///
/// # Errors
///
/// `InvalidInput` for an invalid name.
///
/// # Real-time: setup only
pub fn socket(name: &str) -> io::Result<PathBuf> {
    if is_name(name) {
        return Ok(directory().join(format!("{name}.sock")));
    }
    Err(io::Error::new(io::ErrorKind::InvalidInput, invalid_name(name)))
}

/// Why a name is refused.
pub(in super::super) fn invalid_name(name: &str) -> String {
    format!(
        "invalid name {name:?}: use at most {NAME_MAX} letters, digits, '-', '_' and '.', with no \
         '.' first"
    )
}

/// Makes the directory, where it is not there; refuses one that another user can write to.
pub(in super::super) fn make(dir: &Path) -> io::Result<()> {
    match fs::DirBuilder::new().mode(0o700).create(dir) {
        Err(why) if why.kind() != io::ErrorKind::AlreadyExists => return Err(why),
        _ => {}
    }
    // The directory itself, not what a link points to.
    let meta = fs::symlink_metadata(dir)?;
    if !meta.is_dir() || meta.uid() != process::euid() || meta.mode() & 0o022 != 0 {
        let why = "the directory must belong to this user, who alone may write to it";
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn names_cannot_leave_the_directory() {
        for name in ["cell-1", "a", "x_2.b", &"n".repeat(NAME_MAX)] {
            assert!(is_name(name), "{name}");
        }
        for name in ["", ".", "..", "a/b", "../x", "a b", "ä", "a\n", &"n".repeat(NAME_MAX + 1)] {
            assert!(!is_name(name) && socket(name).is_err(), "{name:?}");
        }
    }

    #[test]
    fn a_directory_that_others_write_to_is_refused() {
        let dir = std::env::temp_dir().join(format!("punctual-place-{}", std::process::id()));
        make(&dir).expect("new");
        make(&dir).expect("there already");
        fs::set_permissions(&dir, fs::Permissions::from_mode(0o777)).expect("ours");
        assert!(make(&dir).is_err());
        fs::remove_dir(&dir).expect("empty");
        std::os::unix::fs::symlink("/tmp", &dir).expect("free");
        assert!(make(&dir).is_err(), "a link");
        fs::remove_file(&dir).expect("ours");
    }
}

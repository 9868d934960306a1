//! Names of supervisors and tasks, which are names of files and words of a line too.
//!
//! Plain text; touches nothing.

/// The longest name of a supervisor or a task, bytes.
pub const NAME_MAX: usize = 48;

/// Returns true for a name that a supervisor or a task can have: letters, digits, `-`, `_` and `.`,
/// the last not at its beginning, 1 to [`NAME_MAX`] bytes.
///
/// # Real-time: setup only
pub fn is_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    !name.is_empty() && name.len() <= NAME_MAX && !name.starts_with('.') && name.bytes().all(plain)
}

/// The refusal of a name, in words.
pub(super) fn invalid_name(name: &str) -> String {
    format!(
        "invalid name {name:?}: use at most {NAME_MAX} letters, digits, '-', '_' and '.', with no \
         '.' first"
    )
}

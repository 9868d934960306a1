//! What a file is called before it takes its place.
//!
//! For recordings, and for the program's other outputs: a file of such a name that no living
//! process has locked was left behind by a kill, and the program removes it when it next writes
//! into the directory. Knows names alone; opens nothing.

/// What stands before the random part of a name, and after it.
const BEFORE: &str = ".punctual-";
const AFTER: &str = ".new";
/// Digits of the random part.
const DIGITS: usize = 16;

/// The name with this random part.
///
/// # Real-time: setup only
pub fn name(random: u64) -> String {
    format!("{BEFORE}{random:0DIGITS$x}{AFTER}")
}

/// Whether a name is that of a temporary file.
///
/// # Real-time: setup only
pub fn is_name(name: &[u8]) -> bool {
    let random = name.strip_prefix(BEFORE.as_bytes());
    let random = random.and_then(|name| name.strip_suffix(AFTER.as_bytes()));
    let digit = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    random.is_some_and(|random| random.len() == DIGITS && random.iter().all(digit))
}

//! Inherent implementations that lie in another file than their type.
//!
//! Notes, not findings: a noun is one file, and a reader who looks for its methods looks there.
//! Types and implementations are matched by name within a crate; one that a macro makes is not
//! seen.

use std::collections::{BTreeMap, BTreeSet};

use super::File;
use super::items::items;

/// The words that declare a type that can have methods.
const TYPES: &[&str] = &["struct", "enum", "union"];

/// One note for each file that implements a type of its crate that other files declare.
pub(crate) fn notes(files: &[File]) -> Vec<String> {
    let sources = || files.iter().filter(|file| !file.is_test() && !file.is_data());
    let mut declared: BTreeMap<(&str, &str), BTreeSet<&str>> = BTreeMap::new();
    for file in sources() {
        for item in file.rust.iter().flat_map(items).filter(|item| TYPES.contains(&item.keyword)) {
            declared.entry((file.member(), item.name)).or_default().insert(&file.path);
        }
    }
    let mut notes = Vec::new();
    for file in sources() {
        let Some(rust) = &file.rust else { continue };
        let mut seen = BTreeSet::new();
        for (line, name) in implemented(&rust.code) {
            let Some(homes) = declared.get(&(file.member(), name)) else { continue };
            if !homes.contains(file.path.as_str()) && seen.insert(name) {
                let homes: Vec<&str> = homes.iter().copied().collect();
                let home = homes.join(" or ");
                notes.push(format!("{}:{line}: `impl {name}`, a type of {home}", file.path));
            }
        }
    }
    notes
}

/// The types of the file's inherent implementations, with the line of each, from 1.
fn implemented(code: &str) -> impl Iterator<Item = (usize, &str)> {
    code.lines().enumerate().filter_map(|(index, line)| {
        let head = line.strip_prefix("unsafe ").unwrap_or(line).strip_prefix("impl")?;
        let head = match head.strip_prefix('<') {
            Some(generics) => after_generics(generics)?,
            None => head,
        };
        let head = head.strip_prefix(' ')?;
        let end = head.find(|c: char| c != '_' && c != ':' && !c.is_alphanumeric());
        let name = head[..end.unwrap_or(head.len())].rsplit("::").next()?;
        (!name.is_empty() && !head.contains(" for ")).then_some((index + 1, name))
    })
}

/// What follows the generics whose `<` was taken off.
fn after_generics(head: &str) -> Option<&str> {
    let mut depth = 1_u32;
    for (at, byte) in head.bytes().enumerate() {
        match byte {
            b'<' => depth += 1,
            // Not the arrow of a function's type.
            b'>' if at == 0 || head.as_bytes()[at - 1] != b'-' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(&head[at + 1..]);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_away_from_their_type_are_noted() {
        let files = [
            File::new("a/src/b.rs", "pub struct B<T>(T);\nimpl<T: Fn(u8) -> u8> B<T> {\n}\n"),
            File::new("a/src/b/c.rs", "impl<T> super::B<T> {\n}\nimpl D for B<u8> {\n}\n"),
            File::new("e/src/f.rs", "impl B {\n}\n"),
            File::new("a/tests/g.rs", "impl B<u8> {\n}\n"),
        ];
        assert_eq!(notes(&files), ["a/src/b/c.rs:1: `impl B`, a type of a/src/b.rs"]);
    }
}

//! The manifest of a captured tree: what the machine did not have, or did not let be read.
//!
//! Text, one entry a line, parts separated by tabs, so that a person can read and edit it:
//! `absent PATH`, `unreadable PATH WHY`, `directory PATH` (it was there and was listed). Pure.

use std::collections::BTreeMap;
use std::fmt;
use thiserror::Error;

/// The name of the manifest in the tree.
pub const MANIFEST: &str = "MANIFEST";

const FIRST_LINE: &str = "punctual capture 1";

/// An entry of a manifest: the state of a path that is not a file in the tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Missing {
    /// The machine does not have it.
    Absent,
    /// The machine did not let it be read.
    Unreadable {
        /// Why.
        why: String,
    },
    /// A directory that was listed; it may be empty.
    Directory,
}

/// All that is missing, by path.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Manifest {
    /// By absolute path.
    pub missing: BTreeMap<String, Missing>,
}

/// A defect of a manifest.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ManifestError {
    /// Not a manifest of a kind that is known here.
    #[error("the first line must be '{FIRST_LINE}'")]
    Version,
    /// A line that is no entry.
    #[error("line {line} is not a manifest entry: {text:?}")]
    Line {
        /// Its number, from 1.
        line: usize,
        /// Its start.
        text: String,
    },
}

/// One line a fact, whatever the kernel's words were.
fn one_line(why: &str) -> String {
    why.replace(['\t', '\n', '\r'], " ")
}

impl Manifest {
    /// Reads a manifest.
    ///
    /// # Errors
    /// Names the first line that is wrong.
    pub fn parse(text: &str) -> Result<Self, ManifestError> {
        let mut lines = text.lines().enumerate();
        if lines.next().map(|(_, first)| first) != Some(FIRST_LINE) {
            return Err(ManifestError::Version);
        }
        let mut missing = BTreeMap::new();
        for (number, line) in lines.filter(|(_, line)| !line.is_empty()) {
            let parts: Vec<&str> = line.split('\t').collect();
            let entry = match parts.as_slice() {
                ["absent", path] => Some((path, Missing::Absent)),
                ["directory", path] => Some((path, Missing::Directory)),
                ["unreadable", path, why] => {
                    Some((path, Missing::Unreadable { why: one_line(why) }))
                }
                _ => None,
            };
            // A path with a carriage return at its end would lose it with the line's.
            let plain = |(path, _): &(&&str, Missing)| !path.contains(char::is_control);
            let Some((path, entry)) = entry.filter(plain) else {
                let text = line.chars().take(60).collect();
                return Err(ManifestError::Line { line: number + 1, text });
            };
            missing.insert((*path).to_owned(), entry);
        }
        Ok(Self { missing })
    }
}

impl fmt::Display for Manifest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{FIRST_LINE}")?;
        for (path, missing) in &self.missing {
            match missing {
                Missing::Absent => writeln!(f, "absent\t{path}")?,
                Missing::Directory => writeln!(f, "directory\t{path}")?,
                Missing::Unreadable { why } => {
                    writeln!(f, "unreadable\t{path}\t{}", one_line(why))?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_the_wrong_line() {
        assert_eq!(Manifest::parse(""), Err(ManifestError::Version));
        let error = Manifest::parse("punctual capture 1\nabsent\t/a\nabsent /b\n").unwrap_err();
        assert_eq!(error.to_string(), "line 3 is not a manifest entry: \"absent /b\"");
    }

    proptest! {
        #[test]
        fn shown_manifests_read_back(
            entries in proptest::collection::btree_map("/[a-z/]{1,9}", "[a-z ]{1,9}", 0..9)
        ) {
            let entry = |why: String| match why.len() % 3 {
                0 => Missing::Absent,
                1 => Missing::Directory,
                _ => Missing::Unreadable { why },
            };
            let missing = entries.into_iter().map(|(path, why)| (path, entry(why))).collect();
            let manifest = Manifest { missing };
            prop_assert_eq!(Manifest::parse(&manifest.to_string()), Ok(manifest));
        }

        #[test]
        fn any_text_is_survived(text in ".*") {
            let _ = Manifest::parse(&format!("{FIRST_LINE}\n{text}"));
        }
    }
}

//! The list of what the tree still owes, and the rule that it only shrinks.
//!
//! Reads `xtask/ratchet.txt`, and writes it with smaller numbers; the arithmetic is pure.

use std::collections::BTreeMap;
use std::path::Path;

use super::Finding;

/// Where the list lies.
const LIST: &str = "xtask/ratchet.txt";

/// Findings that the list does not bear, and one for each line of it that is out of date.
pub(crate) fn apply(root: &Path, found: Vec<Finding>) -> Result<Vec<Finding>, String> {
    judge(&read(root)?, found)
}

/// Writes the list with the numbers that are left, and without what is mended.
pub(crate) fn lower(root: &Path, found: &[Finding]) -> Result<(), String> {
    let list = lowered(&read(root)?, found)?;
    std::fs::write(root.join(LIST), list).map_err(|error| format!("{LIST}: {error}"))
}

fn read(root: &Path) -> Result<String, String> {
    match std::fs::read_to_string(root.join(LIST)) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(String::new()),
        list => list.map_err(|error| format!("{LIST}: {error}")),
    }
}

/// A check and a file.
type Key = (String, String);

fn counts(found: &[Finding]) -> BTreeMap<Key, usize> {
    let mut counts = BTreeMap::new();
    for finding in found {
        *counts.entry((finding.check.to_owned(), finding.path.clone())).or_default() += 1;
    }
    counts
}

/// A line of the list, with its number from 1; `None` for a comment.
fn entry(number: usize, line: &str) -> Result<Option<(Key, usize)>, String> {
    if line.trim().is_empty() || line.starts_with('#') {
        return Ok(None);
    }
    let [check, path, count] = line.split_whitespace().collect::<Vec<_>>()[..] else {
        return Err(format!("{LIST}:{number}: expected `check path count`, got {line:?}"));
    };
    let count =
        count.parse().map_err(|error| format!("{LIST}:{number}: count {count:?}: {error}"))?;
    Ok(Some(((check.to_owned(), path.to_owned()), count)))
}

fn lowered(list: &str, found: &[Finding]) -> Result<String, String> {
    let counts = counts(found);
    let mut lowered = String::new();
    for (index, line) in list.lines().enumerate() {
        match entry(index + 1, line)? {
            None => lowered += &format!("{line}\n"),
            Some((key, allowed)) => {
                let left = counts.get(&key).copied().unwrap_or(0).min(allowed);
                if left > 0 {
                    lowered += &format!("{} {} {left}\n", key.0, key.1);
                }
            }
        }
    }
    Ok(lowered)
}

fn judge(list: &str, found: Vec<Finding>) -> Result<Vec<Finding>, String> {
    let counts = counts(&found);
    let mut borne = BTreeMap::new();
    let mut stale = Vec::new();
    for (index, line) in list.lines().enumerate() {
        let Some((key, allowed)) = entry(index + 1, line)? else { continue };
        let (check, path) = &key;
        let have = counts.get(&key).copied().unwrap_or(0);
        if have < allowed {
            stale.push(Finding {
                check: "ratchet",
                path: LIST.to_owned(),
                line: index + 1,
                problem: format!("{check} in {path}: {allowed} borne, {have} left"),
                why: "what was mended must not come back",
                instead: format!("`cargo xtask tidy --lower` writes {have}"),
            });
        } else if have == allowed {
            borne.insert(key, ());
        }
    }
    let open = found
        .into_iter()
        .filter(|finding| !borne.contains_key(&(finding.check.to_owned(), finding.path.clone())));
    Ok(open.chain(stale).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(check: &'static str) -> Finding {
        Finding {
            check,
            path: "a/b.rs".to_owned(),
            line: 1,
            problem: String::new(),
            why: "",
            instead: String::new(),
        }
    }

    #[test]
    fn what_the_list_bears_is_borne_and_no_more() {
        let two = vec![finding("unsafe"), finding("unsafe"), finding("allow")];
        let open = judge("# owed\nunsafe a/b.rs 2\n", two.clone()).unwrap();
        assert_eq!(open, vec![finding("allow")]);
        assert_eq!(judge("unsafe a/b.rs 1\n", two).unwrap().len(), 3, "one more than borne");
    }

    #[test]
    fn a_list_that_bears_too_much_fails() {
        let open = judge("unsafe a/b.rs 2\n", vec![finding("unsafe")]).unwrap();
        assert!(open.iter().any(|finding| finding.check == "ratchet"), "{open:?}");
    }

    #[test]
    fn lowering_never_raises() {
        let list = "# owed\nunsafe a/b.rs 3\nallow a/b.rs 1\nword gone.rs 2\n";
        let found = [finding("unsafe"), finding("unsafe"), finding("allow"), finding("allow")];
        let lower = lowered(list, &found).unwrap();
        assert_eq!(lower, "# owed\nunsafe a/b.rs 2\nallow a/b.rs 1\n");
        assert_eq!(judge(&lower, found.to_vec()).unwrap().len(), 2, "the second `allow` is new");
        assert!(lowered("unsafe a/b.rs\n", &found).is_err());
    }

    #[test]
    fn a_broken_line_is_named() {
        assert!(judge("unsafe a/b.rs\n", Vec::new()).unwrap_err().contains(":1:"));
        assert!(judge("unsafe a/b.rs two\n", Vec::new()).unwrap_err().contains("two"));
    }
}

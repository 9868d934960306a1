//! The list of what the tree still owes, and the rule that it only shrinks.
//!
//! Reads `xtask/ratchet.txt`; the arithmetic is pure.

use std::collections::BTreeMap;
use std::path::Path;

use super::Finding;

/// Where the list lies.
const LIST: &str = "xtask/ratchet.txt";

/// Findings that the list does not bear, and one for each line of it that is out of date.
pub(crate) fn apply(root: &Path, found: Vec<Finding>) -> Result<Vec<Finding>, String> {
    let list = match std::fs::read_to_string(root.join(LIST)) {
        Ok(list) => list,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(format!("{LIST}: {error}")),
    };
    judge(&list, found)
}

fn judge(list: &str, found: Vec<Finding>) -> Result<Vec<Finding>, String> {
    let mut counts: BTreeMap<(String, String), usize> = BTreeMap::new();
    for finding in &found {
        *counts.entry((finding.check.to_owned(), finding.path.clone())).or_default() += 1;
    }
    let mut borne = BTreeMap::new();
    let mut stale = Vec::new();
    for (index, line) in list.lines().enumerate() {
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        let [check, path, count] = line.split_whitespace().collect::<Vec<_>>()[..] else {
            return Err(format!("{LIST}:{}: expected `check path count`, got {line:?}", index + 1));
        };
        let allowed: usize = count
            .parse()
            .map_err(|error| format!("{LIST}:{}: count {count:?}: {error}", index + 1))?;
        let key = (check.to_owned(), path.to_owned());
        let have = counts.get(&key).copied().unwrap_or(0);
        if have < allowed {
            stale.push(Finding {
                check: "ratchet",
                path: LIST.to_owned(),
                line: index + 1,
                what: format!("{check} in {path}: {allowed} borne, {have} left"),
                why: "what was mended must not come back",
                instead: format!("write {have}, or drop the line at 0"),
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
            what: String::new(),
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
    fn a_broken_line_is_named() {
        assert!(judge("unsafe a/b.rs\n", Vec::new()).unwrap_err().contains(":1:"));
        assert!(judge("unsafe a/b.rs two\n", Vec::new()).unwrap_err().contains("two"));
    }
}

//! `cargo xtask tidy`: the style of this project as a test.
//!
//! Reads every file that git tracks or could track, runs each check over it and prints what each
//! found as `file:line: what, why, what instead`.
//!
//! The debts of the tree stand in `xtask/ratchet.txt`, one `check path count` a line: so many
//! findings of that check are borne in that file. Fewer than that is a failure too, so that the
//! list only ever shrinks; `--lower` writes the smaller numbers, and is all that tidy ever writes.

mod crates;
mod fences;
mod functions;
mod source;
mod text;
mod tree;

use std::collections::BTreeMap;
use std::path::Path;

use crate::workspace;
use source::Source;
use text::Machine;

/// One violation.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Finding {
    /// The check's name, as the ratchet list spells it.
    check: &'static str,
    /// The file, relative to the root.
    path: String,
    /// The line, from 1.
    line: usize,
    /// The text or the fact that is refused.
    problem: String,
    /// Why that is refused.
    why: &'static str,
    /// The words or the code to write in its place.
    instead: String,
}

/// A file of the tree, read.
struct File {
    /// Where it lies, relative to the root, with forward slashes.
    path: String,
    /// All of it.
    text: String,
    /// Its parts, when it is Rust.
    rust: Option<Source>,
}

impl File {
    fn new(path: &str, text: &str) -> Self {
        let rust = path.ends_with(".rs").then(|| Source::new(text));
        Self { path: path.to_owned(), text: text.to_owned(), rust }
    }

    /// The crate's folder: the first part of the path.
    fn member(&self) -> &str {
        self.path.split('/').next().unwrap_or_default()
    }

    /// Returns true where all of it is built for tests, benchmarks or examples only.
    fn is_test(&self) -> bool {
        self.path.ends_with("/tests.rs")
            || self.path.ends_with("_tests.rs")
            || ["tests", "benches", "examples"]
                .iter()
                .any(|folder| self.path.split('/').rev().skip(1).any(|part| part == *folder))
    }

    /// Returns true where it is data, which is taken as it was found.
    fn is_data(&self) -> bool {
        ["fixtures/", "fuzz/corpus/", "docs/man/"].iter().any(|at| self.path.starts_with(at))
            || self.path.starts_with("LICENSE-")
            || self.path.starts_with("docs/schema-")
            || self.path.ends_with("Cargo.lock")
    }

    fn finding(
        &self,
        check: &'static str,
        line: usize,
        problem: impl Into<String>,
        why: &'static str,
        instead: impl Into<String>,
    ) -> Finding {
        Finding {
            check,
            path: self.path.clone(),
            line,
            problem: problem.into(),
            why,
            instead: instead.into(),
        }
    }
}

/// Runs every check and fails when one found something.
pub(crate) fn run(args: &[String]) -> Result<(), String> {
    let is_lowered = match args {
        [] => false,
        [flag] if flag == "--lower" => true,
        _ => return Err(format!("tidy takes [--lower], got {args:?}")),
    };
    let root = workspace::root();
    let files = read(&root)?;
    let found = findings(&root, &files)?;
    if is_lowered {
        lower(&root, &found)?;
    }
    let found = apply(&root, found)?;
    for finding in &found {
        println!(
            "{}:{}: {}: {}; {} [{}]",
            finding.path,
            finding.line,
            finding.problem,
            finding.why,
            finding.instead,
            finding.check
        );
    }
    for note in
        files.iter().flat_map(functions::long_functions).chain(functions::scattered_impls(&files))
    {
        println!("note: {note}");
    }
    match found.len() {
        0 => {
            println!("tidy: {} files, nothing found", files.len());
            Ok(())
        }
        count => Err(format!("tidy: {count} findings in {} files", files.len())),
    }
}

/// Reads the tree; what is no UTF-8 text is left out.
fn read(root: &Path) -> Result<Vec<File>, String> {
    let mut files = Vec::new();
    for path in workspace::files(root)? {
        let bytes = std::fs::read(root.join(&path)).map_err(|error| format!("{path}: {error}"))?;
        if let Ok(text) = String::from_utf8(bytes) {
            files.push(File::new(&path, &text));
        }
    }
    Ok(files)
}

fn findings(root: &Path, files: &[File]) -> Result<Vec<Finding>, String> {
    let mut found = Vec::new();
    let machine = Machine::of(root);
    for file in files {
        text::check(file, &machine, &mut found);
        if let Some(rust) = file.rust.as_ref().filter(|_| !file.is_data()) {
            functions::check(file, rust, &mut found);
            fences::check(file, rust, &mut found);
        }
    }
    fences::check_roots(files, &mut found);
    text::check_links(files, &mut found);
    text::check_glossary(files, &mut found);
    tree::check(files, &mut found);
    crates::check(root, files, &mut found)?;
    found.sort_by(|a, b| (&a.path, a.line, a.check).cmp(&(&b.path, b.line, b.check)));
    Ok(found)
}

/// Where the list lies.
const LIST: &str = "xtask/ratchet.txt";

/// Findings that the list does not bear, and one for each line of it that is out of date.
fn apply(root: &Path, found: Vec<Finding>) -> Result<Vec<Finding>, String> {
    judge(&read_list(root)?, found)
}

/// Writes the list with the numbers that are left, and without what is mended.
fn lower(root: &Path, found: &[Finding]) -> Result<(), String> {
    let list = lowered(&read_list(root)?, found)?;
    std::fs::write(root.join(LIST), list).map_err(|error| format!("{LIST}: {error}"))
}

fn read_list(root: &Path) -> Result<String, String> {
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

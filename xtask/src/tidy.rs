//! `cargo xtask tidy`: the style of this project as a test.
//!
//! Reads every file that git tracks or could track, runs each check over it and prints what each
//! found as `file:line: what, why, what instead`.
//!
//! What the tree still owes stands in `xtask/ratchet.txt`, one `check path count` a line: so many
//! findings of that check are borne in that file. Fewer than that is a failure too, so that the
//! list only ever shrinks; `--lower` writes the smaller numbers, and is all that tidy ever writes.

mod crates;
mod documents;
mod fences;
mod functions;
mod homonyms;
mod text;
mod messages;
mod places;
mod ratchet;
mod tree;
mod source;
mod terms;
mod words;

use std::path::Path;

use crate::root;
use source::Source;

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
    /// What to write instead.
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

    /// Whether all of it is built for tests, benchmarks or examples only.
    fn is_test(&self) -> bool {
        self.path.ends_with("/tests.rs")
            || self.path.ends_with("_tests.rs")
            || ["tests", "benches", "examples"]
                .iter()
                .any(|folder| self.path.split('/').rev().skip(1).any(|part| part == *folder))
    }

    /// Whether it is data, which is taken as it was found.
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
    let lower = match args {
        [] => false,
        [flag] if flag == "--lower" => true,
        _ => return Err(format!("tidy takes [--lower], got {args:?}")),
    };
    let root = root::root();
    let files = read(&root)?;
    let found = findings(&root, &files)?;
    if lower {
        ratchet::lower(&root, &found)?;
    }
    let found = ratchet::apply(&root, found)?;
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
    let paths = root::files(root)?;
    Ok(paths
        .iter()
        .filter_map(|path| {
            let text = std::fs::read_to_string(root.join(path)).ok()?;
            Some(File::new(path, &text))
        })
        .collect())
}

fn findings(root: &Path, files: &[File]) -> Result<Vec<Finding>, String> {
    let mut found = Vec::new();
    for file in files {
        places::check(file, &places::Machine::of(root), &mut found);
        if file.is_data() {
            continue;
        }
        words::check(file, &mut found);
        text::check(file, &mut found);
        documents::check(file, &mut found);
        if let Some(rust) = &file.rust {
            functions::check(file, rust, &mut found);
            fences::check(file, rust, &mut found);
            terms::check(file, rust, &mut found);
            messages::check(file, rust, &mut found);
        }
    }
    fences::check_roots(files, &mut found);
    documents::check_links(files, &mut found);
    tree::check(files, &mut found);
    homonyms::check(files, &mut found);
    crates::check(root, files, &mut found)?;
    found.sort_by(|a, b| (&a.path, a.line, a.check).cmp(&(&b.path, b.line, b.check)));
    Ok(found)
}

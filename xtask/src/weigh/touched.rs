//! How widely one thing is known: the files that name it.
//!
//! Counts by text. Recordings, and lists that name every file, are left out.

use crate::tidy::{self, File};

/// Files that name `word` as a word of its own or as a part of an identifier, in any case: all of
/// them, and those of them that are code of the product. Recordings and folders in `leave_out` do
/// not count.
pub(super) fn files(files: &[File], word: &str, leave_out: &[&str]) -> (usize, usize) {
    let is_letter = |c: char| c.is_alphanumeric();
    let names = |file: &&File| {
        tidy::split(&file.text, is_letter).iter().any(|(_, part)| part.eq_ignore_ascii_case(word))
    };
    let counts = |file: &&File| {
        let recorded = file.is_data() && !file.path.starts_with("docs/");
        !recorded && !leave_out.contains(&file.member()) && !LISTS.contains(&file.path.as_str())
    };
    let found: Vec<&File> = files.iter().filter(counts).filter(names).collect();
    let product = found.iter().filter(|file| is_product(file)).count();
    (found.len(), product)
}

/// Files outside of `own` in which one of the phrases stands: code, tests and generated pages, and
/// prose.
pub(super) fn outside(files: &[File], own: &str, phrases: &[&str]) -> [usize; 3] {
    let counts = |file: &&File| !file.path.starts_with(own) && file.member() != "xtask";
    let names = |file: &&File| phrases.iter().any(|phrase| file.text.contains(phrase));
    let mut found = [0; 3];
    for file in files.iter().filter(counts).filter(names) {
        let kind = match file {
            file if is_product(file) => 0,
            file if file.path.ends_with(".md") => 2,
            _ => 1,
        };
        found[kind] += 1;
    }
    found
}

/// Lists of files, which name every file.
const LISTS: &[&str] = &["xtask/ratchet.txt"];

fn is_product(file: &File) -> bool {
    file.rust.is_some() && !file.is_test() && !["fuzz", "testkit", "xtask"].contains(&file.member())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_name_a_word_are_counted() {
        let tree = [
            File::new("lab/src/load/fork.rs", "struct Fork;\n"),
            File::new("lab/src/load/mod.rs", "fn run_fork() {}\n"),
            File::new("lab/tests/a.rs", "\"fork\"\n"),
            File::new("docs/a.md", "The load fork.\n"),
            File::new("docs/b.md", "A forklift.\n"),
            File::new("fixtures/a.txt", "fork\n"),
            File::new("os/src/a.rs", "fork();\n"),
            File::new("xtask/ratchet.txt", "word lab/src/load/fork.rs 1\n"),
        ];
        assert_eq!(files(&tree, "fork", &["os"]), (4, 2));
        assert_eq!(files(&tree, "gears", &[]), (0, 0));
    }

    #[test]
    fn files_outside_its_folder_are_counted() {
        let tree = [
            File::new("lab/src/noise/mod.rs", "mod noise;\n"),
            File::new("lab/src/lib.rs", "pub mod noise;\n"),
            File::new("cli/tests/it/noise.rs", "run([\"measure noise\"])\n"),
            File::new("docs/man/a.1", "measure noise\n"),
            File::new("README.md", "measure noise\n"),
            File::new("analysis/src/a.rs", "// the noise of a signal\n"),
        ];
        assert_eq!(outside(&tree, "lab/src/noise/", &["mod noise", "measure noise"]), [1, 2, 1]);
    }
}

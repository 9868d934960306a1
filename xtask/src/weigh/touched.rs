//! How widely one thing is known: the files that name it, and types that describe the same thing.

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
        !recorded && !leave_out.contains(&file.room()) && !LISTS.contains(&file.path.as_str())
    };
    let found: Vec<&File> = files.iter().filter(counts).filter(names).collect();
    let product = found.iter().filter(|file| is_product(file)).count();
    (found.len(), product)
}

/// Lists of files, which name every file.
const LISTS: &[&str] = &["xtask/ratchet.txt"];

fn is_product(file: &File) -> bool {
    file.rust.is_some() && !file.is_test() && !["fuzz", "testkit", "xtask"].contains(&file.room())
}

/// Structs outside tests with a field for CPUs and one for a policy or priority: each describes
/// the thread of a loop.
pub(super) fn thread_descriptions(files: &[File]) -> Vec<String> {
    let mut found = Vec::new();
    for file in files.iter().filter(|file| is_product(file)) {
        let Some(rust) = &file.rust else { continue };
        for item in tidy::items(rust).filter(|item| item.keyword == "struct") {
            let Some(open) = tidy::item_open(&rust.code, item.at) else { continue };
            let body = &rust.code[open..tidy::block_end(&rust.code, open)];
            let has = |names: &[&str]| {
                body.lines().any(|line| {
                    let name = line.split(':').next().unwrap_or_default();
                    names.contains(&name.split_whitespace().next_back().unwrap_or_default())
                })
            };
            let described = has(&["cpu", "cpus"]) && has(&["policy", "priority", "fifo"]);
            if described && !rust.is_test(item.at) {
                found.push(format!("{}::{}", file.room(), item.name));
            }
        }
    }
    found
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
    fn a_description_of_a_thread_has_a_cpu_and_a_policy() {
        let text = "pub struct A {\n    pub cpu: u32,\n    priority: u8,\n}\n\
                    struct B {\n    cpu: u32,\n}\nstruct C;\n#[cfg(test)]\nmod tests {\n    \
                    struct D {\n        cpus: u32,\n        policy: u8,\n    }\n}\n";
        assert_eq!(thread_descriptions(&[File::new("a/src/b.rs", text)]), ["a::A"]);
    }
}

//! Homonyms: two public types of one name.
//!
//! Looks at the whole tree at once. What only its own crate sees (`pub(crate)`) may share a name;
//! what is plain `pub` is seen from outside, as `unreachable_pub` holds. Crates that only the
//! command uses share names with the others, not with each other: what a result has is named after
//! what it is the counterpart of.

use std::collections::BTreeMap;

use super::source::Source;
use super::source::items;
use super::{File, Finding};

/// The words that declare a type.
const TYPES: &[&str] = &["struct", "enum", "union", "trait", "type"];

/// Crates that only the command uses.
const OF_THE_COMMAND: &[&str] = &["document", "report"];

/// One finding for each public type whose name another public type has too.
pub(crate) fn check(files: &[File], found: &mut Vec<Finding>) {
    let mut places: BTreeMap<(&str, bool), Vec<(&File, usize)>> = BTreeMap::new();
    for file in files.iter().filter(|file| !file.is_test() && !file.is_data()) {
        let Some(rust) = &file.rust else { continue };
        for (name, at) in public_types(rust) {
            let is_inner = OF_THE_COMMAND.contains(&file.member());
            places.entry((name, is_inner)).or_default().push((file, rust.line(at)));
        }
    }
    for ((name, _), places) in places.iter().filter(|(_, places)| places.len() > 1) {
        for (file, line) in places {
            let others: Vec<String> = places
                .iter()
                .filter(|(twin, at)| (&twin.path, at) != (&file.path, line))
                .map(|(twin, at)| format!("{}:{at}", twin.path))
                .collect();
            let problem = format!("the public type `{name}`, as in {}", others.join(", "));
            let why = "one name is one thing in the whole workspace";
            let instead = "say which, use the other type, or make it `pub(crate)`";
            found.push(file.finding("homonym", *line, problem, why, instead));
        }
    }
}

/// Public types outside tests, with the offset of each name. An associated type of a trait or an
/// implementation is none: its line does not begin with `pub`.
fn public_types(rust: &Source) -> impl Iterator<Item = (&str, usize)> {
    items(rust)
        .filter(|item| item.public && TYPES.contains(&item.keyword) && !rust.is_test(item.at))
        .map(|item| (item.name, item.at))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whats(files: &[(&str, &str)]) -> Vec<String> {
        let files: Vec<File> = files.iter().map(|(path, text)| File::new(path, text)).collect();
        let mut found = Vec::new();
        check(&files, &mut found);
        found.into_iter().map(|f| format!("{}:{}: {}", f.path, f.line, f.problem)).collect()
    }

    #[test]
    fn each_of_two_names_the_other() {
        let files =
            [("a/src/lib.rs", "\npub struct Rate;\n"), ("b/src/lib.rs", "pub enum Rate {}\n")];
        assert_eq!(
            whats(&files),
            [
                "a/src/lib.rs:2: the public type `Rate`, as in b/src/lib.rs:1",
                "b/src/lib.rs:1: the public type `Rate`, as in a/src/lib.rs:2"
            ]
        );
    }

    #[test]
    fn crates_of_the_command_share_names_with_others_and_not_with_each_other() {
        let [of_core, of_report, of_document] =
            ["core", "report", "document"].map(|member| format!("{member}/src/lib.rs"));
        let text = "pub struct Rate;\n";
        assert_eq!(whats(&[(&of_core, text), (&of_report, text)]).len(), 0);
        assert_eq!(whats(&[(&of_document, text), (&of_report, text)]).len(), 2);
    }

    #[test]
    fn private_types_tests_and_associated_types_may_share_a_name() {
        let taken = ("a/src/lib.rs", "pub unsafe trait Rate { type Item; }\n");
        for text in [
            "pub(crate) struct Rate;\n",
            "struct Rate;\n",
            "#[cfg(test)]\nmod tests {\n    pub struct Rate;\n}\n",
            "impl X for Y {\n    type Rate = u8;\n}\n",
            "// pub struct Rate;\n",
            "pub use a::Rate;\n",
        ] {
            assert_eq!(whats(&[taken, ("b/src/lib.rs", text)]), Vec::<String>::new(), "{text}");
        }
        assert_eq!(whats(&[taken, ("b/src/lib.rs", "    pub type Rate = u8;\n")]).len(), 2);
        assert_eq!(whats(&[taken, ("b/tests/rate.rs", "pub struct Rate;\n")]).len(), 0);
    }
}

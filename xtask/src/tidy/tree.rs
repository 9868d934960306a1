//! The whole tree at once: dead files, which no `mod` leads to, and homonyms, two public types of
//! one name.
//!
//! Files are reached from the roots that cargo finds by itself, along `mod name;` and `#[path]`;
//! one that only a macro names is not, and none here is. What only its own crate sees
//! (`pub(crate)`) may share a name; what is plain `pub` is seen from outside, as `unreachable_pub`
//! holds.

use std::collections::{BTreeMap, BTreeSet};

use super::source::{Source, items};
use super::{File, Finding};

/// All checks of the tree.
pub(crate) fn check(files: &[File], found: &mut Vec<Finding>) {
    reach(files, found);
    homonyms(files, found);
}

/// One finding for each Rust file that is compiled into nothing.
fn reach(files: &[File], found: &mut Vec<Finding>) {
    let sources: BTreeMap<&str, &File> = files
        .iter()
        .filter(|file| file.rust.is_some() && !file.is_data())
        .map(|file| (file.path.as_str(), file))
        .collect();
    let manifests: Vec<&File> =
        files.iter().filter(|file| file.path.ends_with("Cargo.toml")).collect();
    let mut open: Vec<(String, bool)> = sources
        .keys()
        .filter(|path| is_root(path, &manifests))
        .map(|path| ((*path).to_owned(), true))
        .collect();
    let mut reached = BTreeSet::new();
    while let Some((path, is_root)) = open.pop() {
        let Some(file) = sources.get(path.as_str()) else { continue };
        if reached.insert(path) {
            open.extend(modules(file, is_root).into_iter().map(|path| (path, false)));
        }
    }
    for (path, file) in sources {
        if !reached.contains(path) {
            let why = "no `mod` leads to it, so it is compiled into nothing";
            found.push(file.finding("dead", 1, "the whole file", why, "declare it or delete it"));
        }
    }
}

/// Returns true where cargo starts a crate at `path`.
fn is_root(path: &str, manifests: &[&File]) -> bool {
    manifests.iter().any(|manifest| {
        let folder = manifest.path.strip_suffix("Cargo.toml").unwrap_or_default();
        let Some(inside) = path.strip_prefix(folder) else { return false };
        let parts: Vec<&str> = inside.split('/').collect();
        let found_by_cargo = matches!(
            parts[..],
            ["build.rs"]
                | ["src", "lib.rs" | "main.rs"]
                | ["src", "bin", _]
                | ["src", "bin", _, "main.rs"]
                | ["tests" | "benches" | "examples", _]
                | ["tests" | "benches" | "examples", _, "main.rs"]
        );
        found_by_cargo || manifest.text.contains(&format!("path = \"{inside}\""))
    })
}

/// The files that the declarations of `file` may mean.
fn modules(file: &File, is_root: bool) -> Vec<String> {
    let Some(rust) = &file.rust else { return Vec::new() };
    let (folder, name) = file.path.rsplit_once('/').unwrap_or(("", &file.path));
    let stem = name.trim_end_matches(".rs");
    let below =
        if is_root || name == "mod.rs" { folder.to_owned() } else { format!("{folder}/{stem}") };
    let mut paths = Vec::new();
    for (at, _) in rust.code.match_indices("mod ") {
        let rest = &rust.code[at + 4..];
        let Some((module, _)) = rest.split_once(';') else { continue };
        if !module.is_empty() && module.bytes().all(super::source::is_word) {
            paths.push(format!("{below}/{module}.rs"));
            paths.push(format!("{below}/{module}/mod.rs"));
        }
    }
    for (at, opening) in rust.code.match_indices("#[path = \"") {
        let start = at + opening.len();
        let end = rust.code[start..].find('"').map_or(start, |length| start + length);
        paths.push(format!("{folder}/{}", rust.strings[start..end].trim()));
    }
    paths
}

/// The words that declare a type.
const TYPES: &[&str] = &["struct", "enum", "union", "trait", "type"];

/// Crates whose types are the written form of what others compute, and share its name on purpose:
/// the report's names are those of the schema, the document's those of a page.
const WRITTEN_FORMS: [&str; 2] = ["document/", "report/"];

/// One finding for each public type whose name another public type has too, written forms aside.
fn homonyms(files: &[File], found: &mut Vec<Finding>) {
    let mut places: BTreeMap<&str, Vec<(&File, usize)>> = BTreeMap::new();
    let is_form = |file: &&File| WRITTEN_FORMS.iter().any(|form| file.path.starts_with(form));
    let computed = files.iter().filter(|file| !file.is_test() && !file.is_data() && !is_form(file));
    for file in computed {
        let Some(rust) = &file.rust else { continue };
        for (name, at) in public_types(rust) {
            places.entry(name).or_default().push((file, rust.line(at)));
        }
    }
    for (name, places) in places.iter().filter(|(_, places)| places.len() > 1) {
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

    fn dead(files: &[(&str, &str)]) -> Vec<String> {
        let files: Vec<File> = files.iter().map(|(path, text)| File::new(path, text)).collect();
        let mut found = Vec::new();
        reach(&files, &mut found);
        found.into_iter().map(|finding| finding.path).collect()
    }

    #[test]
    fn what_a_mod_leads_to_is_alive() {
        let files = [
            ("a/Cargo.toml", ""),
            ("a/src/lib.rs", "mod b;\npub mod c;\n#[path = \"odd.rs\"]\nmod d;\n"),
            ("a/src/b.rs", "mod e;\n"),
            ("a/src/b/e.rs", ""),
            ("a/src/c/mod.rs", "pub(crate) mod f;\n"),
            ("a/src/c/f.rs", ""),
            ("a/src/odd.rs", ""),
            ("a/tests/g.rs", "mod common;\n"),
            ("a/tests/common/mod.rs", ""),
        ];
        assert_eq!(dead(&files), Vec::<String>::new());
    }

    #[test]
    fn what_none_leads_to_is_dead() {
        let files = [
            ("a/Cargo.toml", ""),
            ("a/src/lib.rs", "// mod b;\nmod c { }\n"),
            ("a/src/b.rs", ""),
            ("a/src/c/d.rs", ""),
            ("loose.rs", ""),
        ];
        assert_eq!(dead(&files), ["a/src/b.rs", "a/src/c/d.rs", "loose.rs"]);
    }

    #[test]
    fn a_target_that_the_manifest_names_is_a_root() {
        let manifest = ("fuzz/Cargo.toml", "[[bin]]\npath = \"fuzz_targets/csv.rs\"\n");
        assert_eq!(dead(&[manifest, ("fuzz/fuzz_targets/csv.rs", "")]), Vec::<String>::new());
        assert_eq!(dead(&[manifest, ("fuzz/fuzz_targets/limit.rs", "")]).len(), 1);
    }

    fn homonyms_in(files: &[(&str, &str)]) -> Vec<String> {
        let files: Vec<File> = files.iter().map(|(path, text)| File::new(path, text)).collect();
        let mut found = Vec::new();
        homonyms(&files, &mut found);
        found.into_iter().map(|f| format!("{}:{}: {}", f.path, f.line, f.problem)).collect()
    }

    #[test]
    fn each_of_two_names_the_other() {
        let files =
            [("a/src/lib.rs", "\npub struct Rate;\n"), ("b/src/lib.rs", "pub enum Rate {}\n")];
        assert_eq!(
            homonyms_in(&files),
            [
                "a/src/lib.rs:2: the public type `Rate`, as in b/src/lib.rs:1",
                "b/src/lib.rs:1: the public type `Rate`, as in a/src/lib.rs:2"
            ]
        );
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
            assert_eq!(
                homonyms_in(&[taken, ("b/src/lib.rs", text)]),
                Vec::<String>::new(),
                "{text}"
            );
        }
        assert_eq!(homonyms_in(&[taken, ("b/src/lib.rs", "    pub type Rate = u8;\n")]).len(), 2);
        assert_eq!(homonyms_in(&[taken, ("b/tests/rate.rs", "pub struct Rate;\n")]).len(), 0);
        assert_eq!(homonyms_in(&[taken, ("report/src/rate.rs", "pub struct Rate;\n")]).len(), 0);
    }
}

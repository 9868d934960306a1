//! Dead files: Rust that no `mod` leads to.
//!
//! Walks from the roots that cargo finds by itself along `mod name;` and `#[path]`. A file that
//! only a macro names is not reached; none here is.

use std::collections::{BTreeMap, BTreeSet};

use super::{File, Finding};

/// One finding for each Rust file that is compiled into nothing.
pub(crate) fn check(files: &[File], found: &mut Vec<Finding>) {
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

/// Whether cargo starts a crate at `path`.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn dead(files: &[(&str, &str)]) -> Vec<String> {
        let files: Vec<File> = files.iter().map(|(path, text)| File::new(path, text)).collect();
        let mut found = Vec::new();
        check(&files, &mut found);
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
}

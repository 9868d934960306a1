//! Circles of imports: files of one crate that need each other.
//!
//! A file needs another when code of it outside tests names, by `use` or by a path from `crate` or
//! `super`, something that the other declares. A name that a module only passes on leads to where
//! it comes from: to pass on is no need, nor is `mod`, nor a call into a child by its bare name.

use std::collections::{BTreeMap, BTreeSet};

use super::paths::{self, Named};
use crate::tidy::{self, File};

/// One crate's modules: `["a", "b"]` of `src/a/b.rs`; the root's path is empty.
struct Modules<'f> {
    files: BTreeMap<Vec<String>, &'f File>,
    /// What each module brings into its namespace by `use`.
    brought: BTreeMap<Vec<String>, Vec<Named>>,
}

/// Every circle of the tree, the largest first, as the paths of its files.
pub(super) fn all(files: &[File]) -> Vec<Vec<String>> {
    let crates: BTreeSet<&str> = files
        .iter()
        .filter(|file| file.path.ends_with("/src/lib.rs") || file.path.ends_with("/src/main.rs"))
        .map(File::member)
        .collect();
    let mut circles: Vec<Vec<String>> =
        crates.iter().flat_map(|member| circles(&Modules::of(member, files).needs())).collect();
    circles.sort_by_key(|circle| (std::cmp::Reverse(circle.len()), circle.clone()));
    circles
}

impl<'f> Modules<'f> {
    fn of(member: &str, files: &'f [File]) -> Self {
        let mut modules = Self { files: BTreeMap::new(), brought: BTreeMap::new() };
        let folder = format!("{member}/src/");
        for file in files.iter().filter(|file| file.rust.is_some() && !file.is_test()) {
            let Some(inside) = file.path.strip_prefix(&folder) else { continue };
            let path = inside.trim_end_matches(".rs");
            let path = path.strip_suffix("/mod").unwrap_or(path);
            let path = match path {
                "lib" | "main" => Vec::new(),
                path => path.split('/').map(str::to_owned).collect(),
            };
            modules.files.insert(path, file);
        }
        for (module, file) in &modules.files {
            let Some(rust) = &file.rust else { continue };
            let uses = paths::uses(&rust.code).into_iter().filter(|found| !rust.is_test(found.at));
            let named = uses.flat_map(|found| found.names).collect();
            modules.brought.insert(module.clone(), named);
        }
        modules
    }

    /// Which file needs which others.
    fn needs(&self) -> BTreeMap<&'f str, BTreeSet<&'f str>> {
        let mut needs = BTreeMap::new();
        for (module, file) in &self.files {
            let Some(rust) = &file.rust else { continue };
            let uses = paths::uses(&rust.code);
            let in_use = |at: usize| uses.iter().any(|found| (found.at..found.end).contains(&at));
            let inline = paths::inline(&rust.code)
                .into_iter()
                .filter(|(at, path)| {
                    ["crate", "super"].contains(&path[0]) && !rust.is_test(*at) && !in_use(*at)
                })
                .map(|(_, path)| path.into_iter().map(str::to_owned).collect::<Vec<_>>());
            let words: BTreeSet<&str> =
                tidy::split(&rust.code, |c| c == '_' || c.is_alphanumeric())
                    .into_iter()
                    .filter(|(at, _)| !rust.is_test(*at) && !in_use(*at))
                    .map(|(_, word)| word)
                    .collect();
            let used = |named: &&Named| named.name == "*" || words.contains(named.name.as_str());
            let brought = self.brought[module].iter().filter(used).map(|named| named.path.clone());
            let targets = brought.chain(inline).filter_map(|path| self.find(module, &path, 0));
            let others = targets.map(|at| self.files[&at].path.as_str());
            let others = others.filter(|other| *other != file.path).collect();
            needs.insert(file.path.as_str(), others);
        }
        needs
    }

    /// The module that declares what `path`, as seen in `module`, names.
    fn find(&self, module: &[String], path: &[String], depth: usize) -> Option<Vec<String>> {
        let (first, rest) = path.split_first()?;
        let child = || [module, std::slice::from_ref(first)].concat();
        let (mut at, mut rest) = match first.as_str() {
            "crate" => (Vec::new(), rest),
            "self" => (module.to_vec(), rest),
            "super" => (module.split_last()?.1.to_vec(), rest),
            _ if self.files.contains_key(&child()) => (child(), rest),
            _ => return None,
        };
        while let Some((next, after)) = rest.split_first() {
            let below = [at.as_slice(), std::slice::from_ref(next)].concat();
            if next == "super" {
                at.pop()?;
            } else if self.files.contains_key(&below) {
                at = below;
            } else {
                break;
            }
            rest = after;
        }
        // A name that the module only passes on; two that pass on each other's end the search.
        let passed = rest.first().filter(|_| depth < 8).and_then(|name| {
            let brought = self.brought.get(&at)?.iter().find(|named| named.name == *name)?;
            let path: Vec<String> = brought.path.iter().chain(&rest[1..]).cloned().collect();
            self.find(&at, &path, depth + 1)
        });
        Some(passed.unwrap_or(at))
    }
}

/// The strongly connected parts of more than one node.
fn circles(needs: &BTreeMap<&str, BTreeSet<&str>>) -> Vec<Vec<String>> {
    let reached: BTreeMap<&str, BTreeSet<&str>> =
        needs.keys().map(|from| (*from, reach(needs, from))).collect();
    let mut left: BTreeSet<&str> = needs.keys().copied().collect();
    let mut circles = Vec::new();
    while let Some(from) = left.pop_first() {
        let back = |to: &&str| reached[from].contains(to) && reached[to].contains(from);
        let others: Vec<&str> = left.iter().copied().filter(|to| back(to)).collect();
        if !others.is_empty() {
            left.retain(|to| !others.contains(to));
            circles.push(std::iter::once(from).chain(others).map(str::to_owned).collect());
        }
    }
    circles
}

/// All that `from` needs, through others too.
fn reach<'f>(needs: &BTreeMap<&'f str, BTreeSet<&'f str>>, from: &'f str) -> BTreeSet<&'f str> {
    let mut reached = BTreeSet::new();
    let mut open: Vec<&str> = vec![from];
    while let Some(node) = open.pop() {
        open.extend(needs[node].iter().filter(|next| reached.insert(**next)));
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let files: Vec<File> = files.iter().map(|(path, text)| File::new(path, text)).collect();
        all(&files).into_iter().map(|circle| circle.join(" ")).collect()
    }

    #[test]
    fn files_that_need_each_other_are_a_circle() {
        let files = [
            ("x/src/lib.rs", "mod a;\nmod b;\nmod c;\npub use a::A;\n"),
            ("x/src/a.rs", "use crate::b::B;\nfn f(b: B) {}\n"),
            ("x/src/b.rs", "fn f() { super::c::g() }\n"),
            ("x/src/c.rs", "use crate::{a, b as d};\nfn f() { a::f(d::f) }\n"),
            ("y/src/lib.rs", "use x::a;\n"),
        ];
        assert_eq!(found(&files), ["x/src/a.rs x/src/b.rs x/src/c.rs"]);
    }

    #[test]
    fn a_name_that_is_passed_on_leads_to_where_it_comes_from() {
        let files = [
            ("x/src/lib.rs", "mod a;\nmod b;\npub use a::A;\npub use b::B;\n"),
            ("x/src/a.rs", "pub struct A;\n"),
            ("x/src/b.rs", "use crate::A;\npub struct B(A);\n"),
        ];
        assert_eq!(found(&files), Vec::<String>::new());
        let mut own = files;
        own[0].1 = "mod a;\nmod b;\npub struct A;\npub use b::B;\n";
        own[2].1 = "use crate::A;\npub struct B(A);\n";
        assert_eq!(found(&own), Vec::<String>::new());
        own[0].1 = "mod a;\nmod b;\npub struct A;\npub use b::B;\nfn f(b: B) {}\n";
        assert_eq!(found(&own), ["x/src/b.rs x/src/lib.rs"]);
    }

    #[test]
    fn tests_comments_and_declarations_are_no_need() {
        let files = [
            ("x/src/main.rs", "mod a;\nmod b;\n// crate::b::C\nfn main() { b::f() }\n"),
            ("x/src/a.rs", "use crate::b::B;\npub struct A(B, crate::M);\n"),
            ("x/src/b.rs", "mod d;\n#[cfg(test)]\nmod tests {\n    use crate::a::A;\n}\n"),
            ("x/src/b/d.rs", "pub struct D(super::B);\n"),
            ("x/tests/e.rs", "use crate::a;\n"),
        ];
        assert_eq!(found(&files), Vec::<String>::new());
    }

    #[test]
    fn two_modules_that_pass_on_each_others_name_end_the_search() {
        let files = [
            ("x/src/lib.rs", "mod a;\nmod b;\n"),
            ("x/src/a.rs", "pub use crate::b::X;\nfn f(x: X) {}\n"),
            ("x/src/b.rs", "pub use crate::a::X;\nfn f(x: X) {}\n"),
        ];
        assert_eq!(found(&files).len(), 1);
    }
}

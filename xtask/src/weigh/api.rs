//! What a user of the library meets: the public types and functions of crate `punctual`, and those
//! of `core` and `os` that it passes on.
//!
//! Counts by text, since what would know more needs a nightly compiler. Plain `pub` means seen from
//! outside, as the lint `unreachable_pub` holds; what `#[doc(hidden)]` hides, a module, an item or
//! a `pub use`, is counted apart, and what the root passes on from a hidden module is not hidden.

use std::collections::BTreeSet;

use super::paths;
use crate::tidy::{self, File, Source};

/// The crates whose names the library passes on, and their folders.
const BELOW: &[(&str, &str)] = &[("punctual_core", "core"), ("punctual_os", "os")];

/// Types and functions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Api {
    /// Names of types; two types of one name are two.
    pub(super) types: Vec<String>,
    /// How many functions: free ones, of types and of traits.
    pub(super) functions: usize,
}

/// The library's own, what it passes on, and what it hides from its documentation.
pub(super) struct Library {
    pub(super) own: Api,
    pub(super) passed_on: Api,
    pub(super) hidden: Api,
}

impl Api {
    /// The types that are errors.
    pub(super) fn errors(&self) -> usize {
        let is_error = |name: &&String| name.ends_with("Error") || name.ends_with("Errno");
        self.types.iter().filter(is_error).count()
    }

    fn add(&mut self, other: Self) {
        self.types.extend(other.types);
        self.functions += other.functions;
    }
}

/// Counts the library in the folder `punctual`.
pub(super) fn library(files: &[File]) -> Library {
    let mut library =
        Library { own: Api::default(), passed_on: Api::default(), hidden: Api::default() };
    let mut passed = BTreeSet::new();
    let hidden = hidden(files);
    let (shown, unshown) = root_names(files);
    for file in sources(files, "punctual") {
        let is_hidden = hidden.iter().any(|module| is_in(&file.path, module));
        let Some(rust) = &file.rust else { continue };
        let types: Vec<&str> = tidy::public_types(rust).map(|(name, _)| name).collect();
        let names = if is_hidden { &shown } else { &unshown };
        let (mut seen, mut unseen) = (declared(file, None, false), declared(file, None, true));
        for name in types.into_iter().filter(|name| names.contains(*name)) {
            // On the other side than the rest of its file.
            let moved = declared(file, Some(name), false);
            seen.types.retain(|own| own != name);
            seen.functions -= moved.functions;
            let other = if is_hidden { &mut library.own } else { &mut unseen };
            other.add(moved);
        }
        if is_hidden {
            unseen.add(std::mem::take(&mut seen));
        } else {
            passed.extend(passed_on(file));
        }
        library.own.add(seen);
        library.hidden.add(unseen);
    }
    for path in passed {
        library.passed_on.add(named(files, &path));
    }
    library
}

fn sources<'f>(files: &'f [File], member: &'f str) -> impl Iterator<Item = &'f File> {
    let folder = format!("{member}/src/");
    files.iter().filter(move |file| {
        file.rust.is_some() && !file.is_test() && file.path.starts_with(&folder)
    })
}

/// The public types and functions that a file declares, those that `#[doc(hidden)]` hides one by
/// one or the others: all, or those of the one type that `only` names.
fn declared(file: &File, only: Option<&str>, hidden: bool) -> Api {
    let Some(rust) = &file.rust else { return Api::default() };
    let wanted = |name: &str| only.is_none_or(|only| only == name);
    let types = tidy::public_types(rust)
        .filter(|(name, at)| wanted(name) && is_hidden_item(rust, *at) == hidden);
    let types = types.map(|(name, _)| name);
    let blocks: Vec<_> = only.map_or(Vec::new(), |only| blocks(&rust.code, only));
    let traits = tidy::public_traits(&rust.code);
    let functions = tidy::items(rust).filter(|item| {
        let inside = only.is_none() || blocks.iter().any(|block| block.contains(&item.at));
        let public = item.public || traits.iter().any(|block| block.contains(&item.at));
        let counted = public && inside && is_hidden_item(rust, item.at) == hidden;
        item.keyword == "fn" && counted && !rust.is_test(item.at)
    });
    Api { types: types.map(str::to_owned).collect(), functions: functions.count() }
}

/// The blocks of `impl NAME` and of `trait NAME`, without those that implement a trait.
fn blocks(code: &str, name: &str) -> Vec<std::ops::Range<usize>> {
    let mut blocks = Vec::new();
    let mut start = 0;
    for line in code.split_inclusive('\n') {
        let head = line.trim_start().trim_start_matches("pub ").trim_start_matches("unsafe ");
        if head.starts_with("impl") || head.starts_with("trait ") {
            let end = tidy::item_open(code, start).unwrap_or(start);
            let head = code[start..end].split(" where").next().unwrap_or_default();
            // The type is the last path outside of angle brackets.
            let mut depth = 0_i32;
            let outside: String = head
                .chars()
                .filter(|&c| {
                    depth += i32::from(c == '<');
                    let keep = depth == 0;
                    depth -= i32::from(c == '>');
                    keep
                })
                .collect();
            let subject = outside.split(':').next().unwrap_or_default();
            let is_it = subject.split_whitespace().next_back() == Some(name);
            if is_it && !outside.contains(" for ") {
                blocks.push(end..tidy::block_end(code, end));
            }
        }
        start += line.len();
    }
    blocks
}

/// The paths into the crates below that a file passes on, as `core/time/Span`.
fn passed_on(file: &File) -> Vec<Vec<String>> {
    let Some(rust) = &file.rust else { return Vec::new() };
    let public = paths::uses(&rust.code).into_iter().filter(|found| found.public);
    let named = public.flat_map(|found| found.names).filter_map(|named| {
        let (first, rest) = named.path.split_first()?;
        let (_, folder) = BELOW.iter().find(|(name, _)| name == first)?;
        let rest = rest.iter().filter(|part| *part != "*").cloned();
        Some(std::iter::once((*folder).to_owned()).chain(rest).collect())
    });
    named.collect()
}

/// What the path names: all of a crate or module, or one type or function of a module.
fn named(files: &[File], path: &[String]) -> Api {
    let (member, inside) = (&path[0], path[1..].join("/"));
    let module = |inside: &str| format!("{member}/src/{inside}");
    let mut api = Api::default();
    if path.len() == 1 || sources(files, member).any(|file| is_in(&file.path, &module(&inside))) {
        let within = |file: &&File| path.len() == 1 || is_in(&file.path, &module(&inside));
        sources(files, member).filter(within).for_each(|file| api.add(declared(file, None, false)));
        return api;
    }
    let name = path[path.len() - 1].as_str();
    let above = path[1..path.len() - 1].join("/");
    let home = |file: &&File| above.is_empty() || is_in(&file.path, &module(&above));
    for file in sources(files, member).filter(home) {
        api.add(declared(file, Some(name), false));
    }
    // No type of that name: a function, or a constant.
    if api.types.is_empty() {
        let function = format!("pub fn {name}");
        let has =
            |file: &File| file.rust.as_ref().is_some_and(|rust| rust.code.contains(&function));
        api.functions = usize::from(sources(files, member).filter(home).any(has));
    }
    api
}

/// The names that the root passes on from the library's own modules, and those that any module
/// passes on with `#[doc(hidden)]`.
fn root_names(files: &[File]) -> (BTreeSet<String>, BTreeSet<String>) {
    let (mut shown, mut hidden) = (BTreeSet::new(), BTreeSet::new());
    for file in sources(files, "punctual") {
        let Some(rust) = &file.rust else { continue };
        for found in paths::uses(&rust.code).into_iter().filter(|found| found.public) {
            let names = found.names.into_iter().map(|named| named.name);
            if is_hidden_item(rust, found.at) {
                hidden.extend(names);
            } else if file.path == "punctual/src/lib.rs" {
                shown.extend(names);
            }
        }
    }
    (shown, hidden)
}

/// Whether an attribute of the item at `at` is `doc(hidden)`.
fn is_hidden_item(rust: &Source, at: usize) -> bool {
    let above = rust.code[..rust.line_range(rust.line(at)).start].lines().rev();
    let attributes =
        above.map(str::trim).take_while(|line| line.is_empty() || line.starts_with("#["));
    attributes.into_iter().any(|line| line.contains("doc(hidden)"))
}

/// The modules of the library that `#[doc(hidden)]` hides, as `punctual/src/a/b`.
fn hidden(files: &[File]) -> Vec<String> {
    let mut hidden = Vec::new();
    for file in sources(files, "punctual") {
        let Some(rust) = &file.rust else { continue };
        for item in tidy::items(rust).filter(|item| item.keyword == "mod") {
            if is_hidden_item(rust, item.at) {
                let folder = file.path.trim_end_matches(".rs");
                let folder = ["/mod", "/lib"].iter().find_map(|end| folder.strip_suffix(end));
                let folder = folder.unwrap_or_else(|| file.path.trim_end_matches(".rs"));
                hidden.push(format!("{folder}/{}", item.name));
            }
        }
    }
    hidden
}

/// Whether the file is the module, or below it.
fn is_in(path: &str, module: &str) -> bool {
    path.strip_prefix(module).is_some_and(|rest| rest.starts_with('/') || rest == ".rs")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(files: &[(&str, &str)]) -> [(usize, usize); 3] {
        let files: Vec<File> = files.iter().map(|(path, text)| File::new(path, text)).collect();
        let library = library(&files);
        [library.own, library.passed_on, library.hidden].map(|api| (api.types.len(), api.functions))
    }

    const TIME: (&str, &str) = (
        "core/src/time.rs",
        "pub struct Span(u64);\nimpl Span {\n    pub fn ns(self) -> u64 { 0 }\n    fn own() {}\n}\n\
         impl From<u8> for Span {\n    fn from(a: u8) -> Self { Span(0) }\n}\n\
         pub trait Clock: Copy {\n    fn now(&self) -> u64;\n}\npub struct Grid<T>(T);\n\
         impl<T: Into<Span>> Grid<T> {\n    pub fn next(&self) {}\n    pub fn first(&self) {}\n}\n\
         pub fn free() {}\n#[cfg(test)]\nmod tests {\n    pub fn t() {}\n}\n",
    );

    #[test]
    fn public_types_and_functions_are_counted() {
        let lib = ("punctual/src/lib.rs", "pub(crate) struct A;\npub enum B {}\npub fn c() {}\n");
        assert_eq!(counted(&[lib, TIME]), [(1, 1), (0, 0), (0, 0)]);
        let lib = ("punctual/src/time.rs", TIME.1);
        assert_eq!(counted(&[lib]), [(3, 5), (0, 0), (0, 0)]);
    }

    #[test]
    fn a_crate_a_module_or_a_name_may_be_passed_on() {
        let passed = |text: &str| counted(&[("punctual/src/lib.rs", text), TIME])[1];
        assert_eq!(passed("pub use punctual_core as core;\n"), (3, 5));
        assert_eq!(passed("pub use punctual_core::time;\n"), (3, 5));
        assert_eq!(passed("pub use punctual_core::time::{Span, Clock};\n"), (2, 2));
        assert_eq!(passed("pub use punctual_core::time::Grid as G;\n"), (1, 2));
        assert_eq!(passed("pub use punctual_core::time::free;\n"), (0, 1));
        assert_eq!(passed("use punctual_core::time::Span;\n"), (0, 0));
        assert_eq!(passed("pub(crate) use punctual_core::time::Span;\n"), (0, 0));
    }

    #[test]
    fn what_is_passed_on_twice_counts_once() {
        let twice = [
            ("punctual/src/lib.rs", "pub use punctual_core::time::Span;\n"),
            ("punctual/src/a.rs", "pub use punctual_core::time::Span;\n"),
            TIME,
        ];
        assert_eq!(counted(&twice)[1], (1, 1));
    }

    #[test]
    fn hidden_modules_count_apart() {
        let files = [
            ("punctual/src/lib.rs", "#[doc(hidden)]\npub mod inner;\npub mod outer;\n"),
            ("punctual/src/inner/mod.rs", "pub use punctual_core::time;\npub struct A;\n"),
            ("punctual/src/outer.rs", "pub struct B;\n"),
            TIME,
        ];
        assert_eq!(counted(&files), [(1, 0), (0, 0), (1, 0)]);
    }

    #[test]
    fn what_the_root_passes_on_from_a_hidden_module_is_seen() {
        let files = [
            (
                "punctual/src/lib.rs",
                "#[doc(hidden)]\npub mod inner;\nmod own;\n\
              pub use inner::A;\n#[doc(hidden)]\npub use own::B;\n",
            ),
            (
                "punctual/src/inner.rs",
                "pub struct A;\nimpl A {\n    pub fn a() {}\n}\npub struct C;\n",
            ),
            (
                "punctual/src/own.rs",
                "pub struct B;\npub struct D;\nimpl D {\n    pub fn d() {}\n    \
              /// Words.\n    #[doc(hidden)]\n    #[must_use]\n    pub fn e() {}\n}\n",
            ),
        ];
        assert_eq!(counted(&files), [(2, 2), (0, 0), (2, 1)]);
    }

    #[test]
    fn errors_are_known_by_their_names() {
        let types = ["Errno", "BuildError", "Errors", "Error"].map(str::to_owned).to_vec();
        assert_eq!(Api { types, functions: 0 }.errors(), 3);
    }
}

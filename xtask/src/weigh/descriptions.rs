//! The public structs with which a caller says how a loop's thread runs.
//!
//! Counts by text. Handles, results, records of result files and what only its own crate makes are
//! no descriptions; the arguments of the command line are private to it.

use super::paths;
use crate::tidy::{self, File, Source};

/// The rule, as the table prints it.
pub(super) const RULE: &str = "structs with a field cpu or cpus and a field policy, priority or \
     fifo that a caller fills in: pub, not read or written by serde, and either with a public \
     constructor or made by a literal in another crate; or repr(C)";

/// Each such struct, as `crate::Name`.
pub(super) fn of_threads(files: &[File]) -> Vec<String> {
    let mut found = Vec::new();
    for file in files.iter().filter(|file| !file.is_test() && file.path.contains("/src/")) {
        let Some(rust) = &file.rust else { continue };
        for item in tidy::items(rust).filter(|item| item.keyword == "struct") {
            if rust.is_test(item.at) || !describes(rust, item.at) {
                continue;
            }
            let attributes = attributes(rust, item.at);
            let is_filled = item.public
                && !["Serialize", "Deserialize"].iter().any(|name| attributes.contains(name))
                && (has_constructor(rust, item.name) || is_made_elsewhere(files, file, item.name));
            if is_filled || attributes.contains("repr(C)") {
                found.push(format!("{}::{}", file.member(), item.name));
            }
        }
    }
    found
}

/// Whether the struct named at `at` has a field for CPUs and one for a policy or priority.
fn describes(rust: &Source, at: usize) -> bool {
    let Some(open) = tidy::item_open(&rust.code, at) else { return false };
    let body = &rust.code[open..tidy::block_end(&rust.code, open)];
    let has = |names: &[&str]| {
        body.lines().any(|line| {
            let name = line.split(':').next().unwrap_or_default();
            names.contains(&name.split_whitespace().next_back().unwrap_or_default())
        })
    };
    has(&["cpu", "cpus"]) && has(&["policy", "priority", "fifo"])
}

/// The attributes above the item named at `at`, in code: up to the line that ends another item.
fn attributes(rust: &Source, at: usize) -> &str {
    let head = rust.line_range(rust.line(at)).start;
    let before = &rust.code[..head];
    let start = before.rfind([';', '}', '{']).map_or(0, |end| end + 1);
    &before[start..]
}

/// Whether the file has a public function of `name` that takes no `self` and returns one.
fn has_constructor(rust: &Source, name: &str) -> bool {
    tidy::items(rust).filter(|item| item.keyword == "fn" && item.public).any(|item| {
        let Some(open) = tidy::item_open(&rust.code, item.at) else { return false };
        let (arguments, returned) = match rust.code[item.at..open].split_once("->") {
            Some(parts) => parts,
            None => return false,
        };
        let takes_self = words(arguments).any(|word| word == "self");
        let gives = words(returned).any(|word| word == "Self" || word == name);
        !takes_self && gives && block_of(&rust.code, item.at).is_some_and(|of| of == name)
    })
}

/// The type of the last `impl` block that is open at `at`.
fn block_of(code: &str, at: usize) -> Option<&str> {
    let start = code[..at].rfind("\nimpl")? + 1;
    let open = tidy::item_open(code, start)?;
    if tidy::block_end(code, open) < at {
        return None;
    }
    let head = code[start..open].trim_start_matches("impl").trim_start();
    let head = if head.starts_with('<') { head.split_once("> ")?.1 } else { head };
    words(head).next()
}

/// Whether a file of another crate imports `name` from the struct's crate and makes one.
fn is_made_elsewhere(files: &[File], home: &File, name: &str) -> bool {
    let library = match home.member() {
        "punctual" => "punctual".to_owned(),
        member => format!("punctual_{member}"),
    };
    files.iter().filter(|file| file.member() != home.member() && !file.is_test()).any(|file| {
        let Some(rust) = &file.rust else { return false };
        let named = paths::uses(&rust.code).into_iter().flat_map(|found| found.names);
        let called: Vec<String> = named
            .filter(|named| named.path.first() == Some(&library))
            .filter(|named| named.path.last().is_some_and(|last| last == name))
            .map(|named| named.name)
            .collect();
        called.iter().any(|called| has_literal(rust, called))
    })
}

/// Whether `name { … }` makes a value; `let name { … } =` takes one apart.
fn has_literal(rust: &Source, name: &str) -> bool {
    rust.code.match_indices(&format!("{name} {{")).any(|(at, _)| {
        let before = rust.code[..at].trim_end();
        let is_whole = !rust.code[..at].ends_with(|c: char| c == '_' || c.is_alphanumeric());
        let taken = before.ends_with("let") || before.ends_with("->") || before.ends_with("for");
        is_whole && !taken && !rust.is_test(at)
    })
}

fn words(code: &str) -> impl Iterator<Item = &str> {
    tidy::split(code, |c| c == '_' || c.is_alphanumeric()).into_iter().map(|(_, word)| word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let files: Vec<File> = files.iter().map(|(path, text)| File::new(path, text)).collect();
        of_threads(&files)
    }

    const PLAIN: &str = "pub struct A {\n    pub cpu: u32,\n    pub priority: u8,\n}\n";

    #[test]
    fn what_a_public_constructor_makes_is_a_description() {
        for (makes, counts) in [
            ("pub const fn any() -> Self { x }", true),
            ("pub fn new(cpu: u32) -> Result<Self, Error> { x }", true),
            ("fn new() -> Self { x }", false),
            ("pub fn with(self, cpu: u32) -> Self { x }", false),
            ("pub fn cpu(&self) -> u32 { x }", false),
        ] {
            let text = format!("{PLAIN}impl A {{\n    {makes}\n}}\n");
            assert_eq!(found(&[("lab/src/b.rs", &text)]).len(), usize::from(counts), "{makes}");
        }
        let other = format!("{PLAIN}impl B {{\n    pub fn new() -> Self {{ x }}\n}}\n");
        assert!(found(&[("lab/src/b.rs", &other)]).is_empty());
    }

    #[test]
    fn what_another_crate_makes_is_a_description() {
        let with = |text: &str| found(&[("lab/src/b.rs", PLAIN), ("cli/src/c.rs", text)]);
        assert_eq!(with("use punctual_lab::A;\nfn f() { g(A { cpu: 1 }) }\n"), ["lab::A"]);
        assert_eq!(with("use punctual_lab::b::A as S;\nfn f() { g(S { cpu: 1 }) }\n").len(), 1);
        assert!(with("use punctual_lab::A;\nfn f(a: A) { let A { cpu, .. } = a; }\n").is_empty());
        assert!(with("use crate::A;\nfn f() { g(A { cpu: 1 }) }\n").is_empty());
    }

    #[test]
    fn records_results_and_private_structs_are_none() {
        let made = "use punctual_lab::A;\nfn f() { g(A { cpu: 1 }) }\n";
        let with = |text: &str| found(&[("lab/src/b.rs", text), ("cli/src/c.rs", made)]);
        assert_eq!(with(PLAIN).len(), 1);
        assert!(with(&format!("#[derive(Clone, Serialize)]\n{PLAIN}")).is_empty());
        assert!(with(&PLAIN.replace("pub struct", "struct")).is_empty());
        assert!(with(&PLAIN.replace("priority", "count")).is_empty());
        assert!(found(&[("lab/src/b.rs", PLAIN)]).is_empty(), "only its crate makes it");
        let c = PLAIN.replace("pub struct", "#[repr(C)]\npub(crate) struct");
        assert_eq!(found(&[("capi/src/b.rs", &c)]), ["capi::A"]);
    }
}

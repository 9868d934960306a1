//! The paths that Rust code names: `a::b::{c, d as e}` taken apart.
//!
//! Works on masked code. What a macro builds from pieces is not seen.

/// A path in code, and the name by which the file calls its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Named {
    /// `["crate", "a", "B"]`; the last is `*` for all of a module.
    pub(super) path: Vec<String>,
    /// The last part, or what `as` calls it.
    pub(super) name: String,
}

/// A `use` and where it stands.
pub(super) struct Use {
    /// Byte offset of the word.
    pub(super) at: usize,
    /// Byte offset behind its semicolon.
    pub(super) end: usize,
    /// Whether other crates may see it: its line begins with plain `pub`.
    pub(super) public: bool,
    /// What it brings.
    pub(super) names: Vec<Named>,
}

/// Every `use` that begins a line.
pub(super) fn uses(code: &str) -> Vec<Use> {
    let mut uses = Vec::new();
    let mut start = 0;
    for line in code.split_inclusive('\n') {
        let head = line.trim_start();
        let rest = head.strip_prefix("pub").map_or(head, |rest| match rest.find(')') {
            Some(close) if rest.starts_with('(') => &rest[close + 1..],
            _ => rest,
        });
        if let Some(tree) = rest.trim_start().strip_prefix("use ") {
            let at = start + line.len() - tree.len();
            let end = code[at..].find(';').map_or(code.len(), |length| at + length);
            let mut names = Vec::new();
            expand(&code[at..end], &[], &mut names);
            uses.push(Use { at, end, public: head.starts_with("pub use"), names });
        }
        start += line.len();
    }
    uses
}

fn expand(tree: &str, before: &[String], names: &mut Vec<Named>) {
    let mut depth = 0_i32;
    let branches = tree.split(|c| {
        depth += i32::from(c == '{') - i32::from(c == '}');
        c == ',' && depth == 0
    });
    for branch in branches.map(str::trim).filter(|branch| !branch.is_empty()) {
        let (path, inner) = match branch.split_once('{') {
            Some((path, inner)) => (path, inner.rsplit_once('}').map(|(inner, _)| inner)),
            None => (branch, None),
        };
        let (path, alias) = path.split_once(" as ").unwrap_or((path, ""));
        let parts = path.split("::").map(str::trim).filter(|part| !part.is_empty());
        let mut path: Vec<String> =
            before.iter().cloned().chain(parts.map(str::to_owned)).collect();
        if let Some(inner) = inner {
            expand(inner, &path, names);
            continue;
        }
        path.pop_if(|last| last == "self" && !before.is_empty());
        let name = if alias.is_empty() { path.last() } else { Some(&alias.trim().to_owned()) };
        names.extend(name.cloned().map(|name| Named { path, name }));
    }
}

/// Every path of two parts or more in code, with its offset.
pub(super) fn inline(code: &str) -> Vec<(usize, Vec<&str>)> {
    let mut paths: Vec<(usize, Vec<&str>)> = Vec::new();
    let mut end = usize::MAX;
    let is_word = |c: char| c == '_' || c.is_alphanumeric();
    for (at, word) in crate::tidy::split(code, is_word) {
        let goes_on = end < at && code[end..at] == *"::";
        match paths.last_mut().filter(|_| goes_on) {
            Some((_, path)) => path.push(word),
            None => paths.push((at, vec![word])),
        }
        end = at + word.len();
    }
    paths.retain(|(_, path)| path.len() > 1);
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(code: &str) -> Vec<String> {
        let named = uses(code).into_iter().flat_map(|found| found.names);
        named.map(|named| format!("{} = {}", named.name, named.path.join("::"))).collect()
    }

    #[test]
    fn a_tree_of_uses_is_taken_apart() {
        let code = "use a::b;\npub(crate) use super::{\n    self, c::{D, self as e}, f::*,\n};\n";
        assert_eq!(
            shown(code),
            ["b = a::b", "super = super", "D = super::c::D", "e = super::c", "* = super::f::*"]
        );
        assert_eq!(shown("let a = b;\nfn use_it() {}\n"), Vec::<String>::new());
        let public: Vec<bool> = uses("pub use a::B;\npub(super) use a::C;\nuse a::D;\n")
            .iter()
            .map(|u| u.public)
            .collect();
        assert_eq!(public, [true, false, false]);
    }

    #[test]
    fn paths_in_code_are_found() {
        let found = inline("let a = crate::b::C::new(x.y, d::E);");
        let paths: Vec<String> = found.iter().map(|(_, path)| path.join("::")).collect();
        assert_eq!(paths, ["crate::b::C::new", "d::E"]);
        assert_eq!(found[0].0, 8);
    }
}

//! Places: what names the machine that the tree was written on, or a host nobody knows.
//!
//! Looks at every text file, data too. Which paths are this machine's is read from where the tree
//! lies and from `HOME`, so that this file names none.

use std::path::Path;

use super::{File, Finding};

/// Hosts that a link may lead to.
const HOSTS: &[&str] = &[
    "apache.org",
    "debian.org",
    "docs.rs",
    "doi.org",
    "example.com",
    "github.com",
    "json-schema.org",
    "kernel.org",
    "linuxcnc.org",
    "man7.org",
    "nist.gov",
    "rust-lang.org",
    "w3.org",
];
/// How cargo writes that a locked dependency comes from its own registry, not from a mirror.
const REGISTRY: &str = "registry+https://github.com/rust-lang/";

/// The folders that exist on this machine only.
pub(crate) struct Machine {
    folders: Vec<String>,
}

impl Machine {
    /// The machine on which the tree lies at `root`.
    pub(crate) fn of(root: &Path) -> Self {
        let home = std::env::var("HOME").unwrap_or_default();
        let shared =
            ["/", "/tmp", "/home", "/root", "/usr/src", "/var/tmp", "/opt", "/srv", "/mnt", ""];
        let above = root.ancestors().take(2).map(|folder| folder.display().to_string());
        let folders = above.chain([home]).filter(|at| !shared.contains(&at.as_str())).collect();
        Self { folders }
    }
}

/// All checks of this file.
pub(crate) fn check(file: &File, machine: &Machine, found: &mut Vec<Finding>) {
    let mut start = 0;
    for (index, line) in file.text.split_inclusive('\n').enumerate() {
        // Tests invent addresses.
        let is_test = file.rust.as_ref().is_some_and(|rust| file.is_test() || rust.is_test(start));
        paths(file, machine, index + 1, line, found);
        if file.path.ends_with("Cargo.lock") {
            locked(file, index + 1, line.trim_end(), found);
        } else if !is_test {
            hosts(file, index + 1, line, found);
        }
        start += line.len();
    }
}

fn paths(file: &File, machine: &Machine, number: usize, line: &str, found: &mut Vec<Finding>) {
    for folder in &machine.folders {
        let bytes = line.as_bytes();
        let names_it = line.match_indices(folder.as_str()).any(|(at, _)| {
            let part = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
            let before = at.checked_sub(1).is_some_and(|b| part(bytes[b]) || bytes[b] == b'/');
            !before && !bytes.get(at + folder.len()).is_some_and(|&after| part(after))
        });
        if names_it {
            let why = "that folder is on this machine only";
            let instead = "a path from the root of the tree";
            found.push(file.finding("place", number, format!("`{folder}`"), why, instead));
        }
    }
}

fn locked(file: &File, number: usize, line: &str, found: &mut Vec<Finding>) {
    if let Some(source) = line.strip_prefix("source = ")
        && !source.trim_matches('"').starts_with(REGISTRY)
    {
        let why = "everybody must be able to fetch it";
        found.push(file.finding("place", number, source, why, format!("`{REGISTRY}`")));
    }
}

fn hosts(file: &File, number: usize, line: &str, found: &mut Vec<Finding>) {
    for (at, scheme) in line.match_indices("https://").chain(line.match_indices("http://")) {
        let host: String = line[at + scheme.len()..]
            .chars()
            .take_while(|c| c.is_ascii_alphanumeric() || ".-".contains(*c))
            .collect();
        let known = |known: &str| {
            host.strip_suffix(known).is_some_and(|sub| sub.is_empty() || sub.ends_with('.'))
        };
        if !host.is_empty() && !HOSTS.iter().any(|host| known(host)) {
            let why = "a link must lead everybody to the same place";
            let instead = "a public host; if this is one, add it to xtask/src/tidy/places.rs";
            found.push(file.finding("place", number, format!("the host `{host}`"), why, instead));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whats(path: &str, text: &str) -> Vec<String> {
        let machine = Machine { folders: vec!["/data/tree".to_owned(), "/data".to_owned()] };
        let mut found = Vec::new();
        check(&File::new(path, text), &machine, &mut found);
        found.into_iter().map(|finding| finding.problem).collect()
    }

    #[test]
    fn a_path_of_this_machine_is_found() {
        assert_eq!(whats("a.md", "see /data/tree/core\n"), ["`/data/tree`", "`/data`"]);
        assert_eq!(whats("a.sh", "x=\"/data/x\"\n"), ["`/data`"]);
        assert!(whats("a.md", "see /sys/data/x, /database and other/data/x\n").is_empty());
    }

    #[test]
    fn shared_folders_belong_to_every_machine() {
        let machine = Machine::of(Path::new("/tmp/clone"));
        assert!(machine.folders.contains(&"/tmp/clone".to_owned()));
        assert!(!machine.folders.contains(&"/tmp".to_owned()));
    }

    #[test]
    fn an_unknown_host_is_found() {
        let link = |to: &str| whats("a.rs", &format!("// <https://{to}>\n"));
        assert!(link("man7.org/x").is_empty() && link("www.kernel.org/doc").is_empty());
        assert_eq!(link("mirror.invalid/x"), ["the host `mirror.invalid`"]);
        assert_eq!(link("notgithub.com"), ["the host `notgithub.com`"]);
        assert!(whats("a/tests/a.rs", "const A: &str = \"http://box/x\";\n").is_empty());
    }

    #[test]
    fn locked_sources_are_the_public_registry() {
        let locked = |from: &str| whats("fuzz/Cargo.lock", &format!("source = \"{from}\"\n"));
        assert!(locked(REGISTRY).is_empty());
        assert_eq!(locked("sparse+https://mirror.example.com/").len(), 1);
    }
}

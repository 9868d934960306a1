//! Which crate may depend on which.
//!
//! Asks cargo what the manifests say. The table below is the law; ARCHITECTURE.md draws it.

use std::path::Path;

use super::{File, Finding};
use crate::workspace::{self, Package, Scope};

/// Every crate of the workspace, and which of the others it may depend on.
const ARROWS: &[(&str, &[&str])] = &[
    ("punctual-core", &[]),
    ("punctual-os", &[]),
    ("punctual-engine", &["punctual-core", "punctual-os"]),
    ("punctual", &["punctual-core", "punctual-os", "punctual-engine"]),
    ("punctual-analysis", &["punctual-core"]),
    ("punctual-import", &["punctual-core", "punctual-analysis"]),
    ("punctual-host", &["punctual-core", "punctual-os"]),
    ("punctual-trace", &[]),
    ("punctual-blame", &["punctual-analysis", "punctual-trace"]),
    (
        "punctual-lab",
        &[
            "punctual-core",
            "punctual-os",
            "punctual-engine",
            "punctual",
            "punctual-analysis",
            "punctual-host",
            "punctual-trace",
            "punctual-blame",
        ],
    ),
    (
        "punctual-papers",
        &[
            "punctual-core",
            "punctual-os",
            "punctual-engine",
            "punctual",
            "punctual-analysis",
            "punctual-host",
            "punctual-lab",
            "punctual-trace",
        ],
    ),
    (
        "punctual-report",
        &[
            "punctual-core",
            "punctual-os",
            "punctual-engine",
            "punctual-analysis",
            "punctual-host",
            "punctual-lab",
        ],
    ),
    ("punctual-plot", &[]),
    ("punctual-document", &["punctual-analysis", "punctual-plot"]),
    ("punctual-export", &["punctual-core", "punctual-analysis"]),
    (
        "punctual-cli",
        &[
            "punctual-core",
            "punctual-os",
            "punctual-engine",
            "punctual",
            "punctual-analysis",
            "punctual-import",
            "punctual-host",
            "punctual-lab",
            "punctual-papers",
            "punctual-report",
            "punctual-plot",
            "punctual-document",
            "punctual-export",
            "punctual-trace",
            "punctual-blame",
        ],
    ),
    (
        "punctual-testkit",
        &[
            "punctual-core",
            "punctual-os",
            "punctual-engine",
            "punctual",
            "punctual-analysis",
            "punctual-import",
            "punctual-host",
            "punctual-lab",
            "punctual-trace",
        ],
    ),
    ("punctual-capi", &["punctual", "punctual-engine", "punctual-core", "punctual-os"]),
    ("xtask", &[]),
];
/// The crate that tests of any crate may use beside.
const TESTKIT: &str = "punctual-testkit";
/// Crates that may depend on nothing outside the workspace, beside what is named here.
const FENCED: &[(&str, &[&str])] =
    &[("punctual-core", &["portable-atomic"]), ("punctual-os", &["libc"])];

/// One finding for each arrow that points the wrong way.
pub(crate) fn check(root: &Path, files: &[File], found: &mut Vec<Finding>) -> Result<(), String> {
    let packages = workspace::packages(root, Scope::Ours)?;
    for Wrong { package, dependency, why, instead } in wrong(&packages) {
        let path = Path::new(&package.manifest)
            .strip_prefix(root)
            .map_or_else(|_| package.manifest.clone(), |path| path.display().to_string());
        let text = files.iter().find(|file| file.path == path).map_or("", |file| &file.text);
        let line = text.lines().position(|line| line.trim_start().starts_with(dependency));
        found.push(Finding {
            check: "crate",
            path,
            line: line.map_or(1, |index| index + 1),
            problem: format!("`{}` depends on `{dependency}`", package.name),
            why,
            instead,
        });
    }
    Ok(())
}

/// A dependency that no list allows.
struct Wrong<'a> {
    package: &'a Package,
    /// The package itself where it stands in no list.
    dependency: &'a str,
    why: &'static str,
    instead: String,
}

fn wrong(packages: &[Package]) -> Vec<Wrong<'_>> {
    let mut wrong = Vec::new();
    for package in packages {
        let Some((_, allowed)) = ARROWS.iter().find(|(name, _)| *name == package.name) else {
            let why = "a new crate needs its place in this list";
            let instead = "add it to ARROWS in xtask/src/tidy/crates.rs".to_owned();
            wrong.push(Wrong { package, dependency: package.name.as_str(), why, instead });
            continue;
        };
        for dependency in &package.dependencies {
            let name = dependency.name.as_str();
            let ours = packages.iter().any(|known| known.name == name);
            let fence = FENCED.iter().find(|(fenced, _)| *fenced == package.name);
            if ours && !(allowed.contains(&name) || (dependency.dev && name == TESTKIT)) {
                let why = "dependencies point one way";
                let instead = format!("it may use: {}", list(allowed));
                wrong.push(Wrong { package, dependency: name, why, instead });
            }
            if let Some((_, outside)) = fence
                && !(ours || dependency.dev || outside.contains(&name))
            {
                let why = "what the loop runs is this project's own";
                let instead = format!("it may use: {}", list(outside));
                wrong.push(Wrong { package, dependency: name, why, instead });
            }
        }
    }
    wrong
}

fn list(names: &[&str]) -> String {
    if names.is_empty() { "nothing".to_owned() } else { names.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::Dependency;

    fn package(name: &str, dependencies: &[(&str, bool)]) -> Package {
        Package {
            dependencies: dependencies
                .iter()
                .map(|(name, dev)| Dependency { name: (*name).to_owned(), dev: *dev })
                .collect(),
            ..Package::named(name)
        }
    }

    fn wrong_in(name: &str, dependencies: &[(&str, bool)]) -> usize {
        let others = ARROWS.iter().filter(|(known, _)| *known != name);
        let mut packages: Vec<Package> = others.map(|(name, _)| package(name, &[])).collect();
        packages.push(package(name, dependencies));
        wrong(&packages).len()
    }

    #[test]
    fn arrows_point_one_way() {
        assert_eq!(
            wrong_in("punctual-analysis", &[("punctual-core", false), ("thiserror", false)]),
            0
        );
        assert_eq!(wrong_in("punctual-analysis", &[("punctual-os", false)]), 1);
        assert_eq!(wrong_in("punctual-host", &[("punctual-cli", false)]), 1);
    }

    #[test]
    fn the_hot_room_uses_nothing() {
        assert_eq!(wrong_in("punctual-core", &[("libc", false)]), 1);
        assert_eq!(wrong_in("punctual-core", &[("proptest", true), (TESTKIT, true)]), 0);
        assert_eq!(wrong_in("punctual-os", &[("libc", false)]), 0);
        assert_eq!(wrong_in("punctual-os", &[("nix", false)]), 1);
    }

    #[test]
    fn a_crate_without_a_place_is_found() {
        assert_eq!(wrong_in("punctual-new", &[]), 1);
    }

    #[test]
    fn the_arrows_make_no_circle() {
        // Each crate's allowed dependencies stand before it, so the table is an order of building.
        for (index, (name, allowed)) in ARROWS.iter().enumerate() {
            for dependency in *allowed {
                let place = ARROWS.iter().position(|(name, _)| name == dependency);
                assert!(place.is_some_and(|place| place < index), "{name} on {dependency}");
            }
        }
    }
}

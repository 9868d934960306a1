//! `cargo xtask licences`: every dependency may be used, and every direct one has its reason.
//!
//! Reads `cargo metadata` and ARCHITECTURE.md, whose section "Dependencies" holds a table that
//! names each direct dependency in its first column. Changes nothing.

use crate::workspace::{self, Package, Scope};

/// Licences that both of this project's own allow to be linked with, as SPDX spells them.
const ALLOWED: &[&str] = &[
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "ISC",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Unicode-DFS-2016",
    "Unlicense",
    "Zlib",
];

/// Licences that bind whoever ships their files: for what only our tests, examples and benches see.
const ALLOWED_UNSHIPPED: &[&str] = &["MPL-2.0"];

/// Judges all locked packages and the table of reasons.
pub(crate) fn run(args: &[String]) -> Result<(), String> {
    if let Some(extra) = args.first() {
        return Err(format!("licences takes no argument, got {extra:?}"));
    }
    let root = workspace::root();
    let packages = workspace::packages(&root, Scope::All)?;
    // The fuzz targets are a workspace of their own: their reasons count, and nothing ships them.
    let fuzz = workspace::packages(&root.join("fuzz"), Scope::Ours)?;
    let path = "ARCHITECTURE.md";
    let document =
        std::fs::read_to_string(root.join(path)).map_err(|error| format!("{path}: {error}"))?;
    let mut wrong = unlicensed(&packages);
    let ours: Vec<&Package> = packages.iter().chain(&fuzz).filter(|package| package.ours).collect();
    wrong.extend(unreasoned(&ours, &document));
    for line in &wrong {
        println!("{line}");
    }
    if wrong.is_empty() {
        println!("licences: {} packages, all allowed and reasoned", packages.len());
        Ok(())
    } else {
        Err(format!("{} dependencies to mend", wrong.len()))
    }
}

fn unlicensed(packages: &[Package]) -> Vec<String> {
    packages
        .iter()
        .filter(|package| !allowed(&package.licence) && !allowed_unshipped(package, packages))
        .map(|package| {
            let Package { name, version, licence, .. } = package;
            format!("{name} {version}: licence {licence:?} is not on the list in licences.rs")
        })
        .collect()
}

/// Returns true where its licence is for what is not shipped, and nothing that is shipped depends
/// on it.
fn allowed_unshipped(package: &Package, packages: &[Package]) -> bool {
    let mut dependencies = packages.iter().flat_map(|dependent| &dependent.dependencies);
    ALLOWED_UNSHIPPED.contains(&package.licence.as_str())
        && dependencies.all(|dependency| dependency.dev || dependency.name != package.name)
}

fn unreasoned(ours: &[&Package], document: &str) -> Vec<String> {
    let reasons = reasons(document);
    let mut direct: Vec<&str> = ours
        .iter()
        .flat_map(|package| &package.dependencies)
        .map(|dependency| dependency.name.as_str())
        .filter(|name| !ours.iter().any(|package| package.name == *name))
        .collect();
    direct.sort_unstable();
    direct.dedup();
    let missing = direct.iter().filter(|name| !reasons.contains(name)).map(|name| {
        format!("{name}: no row under \"Dependencies\" in ARCHITECTURE.md says what it is for")
    });
    let left = reasons.iter().filter(|name| !direct.contains(name)).map(|name| {
        format!("{name}: a row under \"Dependencies\" in ARCHITECTURE.md, but nothing uses it")
    });
    missing.chain(left).collect()
}

/// The names in the first column of the table under "Dependencies", several in one row by commas.
fn reasons(document: &str) -> Vec<&str> {
    let section = document
        .lines()
        .skip_while(|line| !(line.starts_with('#') && line.contains("Dependencies")))
        .skip(1)
        .take_while(|line| !line.starts_with('#'));
    // The first two rows are the heading and the line under it.
    let rows = section.filter_map(|line| line.strip_prefix('|')).skip(2);
    rows.flat_map(|row| row.split('|').next().unwrap_or_default().split(','))
        .map(|name| name.trim().trim_matches('`'))
        .collect()
}

/// Returns true where an SPDX expression can be satisfied from the list; `/` is cargo's old `OR`.
fn allowed(expression: &str) -> bool {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let tokens: Vec<&str> = spaced.split_whitespace().collect();
    let mut at = 0;
    either(&tokens, &mut at) == Some(true) && at == tokens.len()
}

/// `A OR B …`; `None` when it is no expression, as in the two below.
fn either(tokens: &[&str], at: &mut usize) -> Option<bool> {
    let mut result = both(tokens, at)?;
    while tokens.get(*at) == Some(&"OR") {
        *at += 1;
        result |= both(tokens, at)?;
    }
    Some(result)
}

/// `A AND B …`.
fn both(tokens: &[&str], at: &mut usize) -> Option<bool> {
    let mut result = one(tokens, at)?;
    while tokens.get(*at) == Some(&"AND") {
        *at += 1;
        result &= one(tokens, at)?;
    }
    Some(result)
}

/// A licence, one with its exception, or an expression in parentheses.
fn one(tokens: &[&str], at: &mut usize) -> Option<bool> {
    let token = *tokens.get(*at)?;
    *at += 1;
    if token == "(" {
        let inner = either(tokens, at)?;
        *at += 1;
        return (tokens.get(*at - 1) == Some(&")")).then_some(inner);
    }
    if tokens.get(*at) != Some(&"WITH") {
        return Some(ALLOWED.contains(&token));
    }
    let exception = tokens.get(*at + 1)?;
    *at += 2;
    Some(ALLOWED.contains(&format!("{token} WITH {exception}").as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::Dependency;

    #[test]
    fn expressions_are_understood() {
        for yes in [
            "MIT",
            "MIT OR GPL-3.0-only",
            "MIT/Apache-2.0",
            "(MIT OR GPL-2.0) AND Unicode-3.0",
            "Apache-2.0 WITH LLVM-exception OR GPL-2.0",
        ] {
            assert!(allowed(yes), "{yes}");
        }
        for no in
            ["", "GPL-3.0-only", "MIT AND GPL-2.0", "MIT OR", "(MIT", "Apache-2.0 WITH", "MIT Zlib"]
        {
            assert!(!allowed(no), "{no}");
        }
    }

    fn package(name: &str, ours: bool, uses: &[&str]) -> Package {
        Package {
            licence: "MIT".to_owned(),
            ours,
            dependencies: uses
                .iter()
                .map(|name| Dependency { name: (*name).to_owned(), dev: false })
                .collect(),
            ..Package::named(name)
        }
    }

    #[test]
    fn direct_dependencies_and_reasons_match() {
        let (cli, core) =
            (package("cli", true, &["core", "clap", "serde"]), package("core", true, &[]));
        let table = |name: &str| {
            format!(
                "# A\n| `y` | no |\n## Dependencies\n\n| crate | for |\n|---|---|\n\
                 | `{name}`, serde | why |\n## B\n| `z` |\n"
            )
        };
        assert!(unreasoned(&[&cli, &core], &table("clap")).is_empty());
        assert_eq!(unreasoned(&[&cli, &core], &table("gone")).len(), 2);
    }

    #[test]
    fn a_licence_off_the_list_is_named() {
        let mut bad = package("bad", false, &[]);
        bad.licence = "GPL-3.0-only".to_owned();
        assert!(unlicensed(&[bad])[0].contains("GPL-3.0-only"));
        assert!(unlicensed(&[package("good", false, &[])]).is_empty());
    }

    #[test]
    fn what_binds_whoever_ships_it_is_for_tests_and_examples() {
        let beside = Package { licence: "MPL-2.0".to_owned(), ..package("beside", false, &[]) };
        let mut ours = package("ours", true, &["beside"]);
        assert!(unlicensed(&[ours.clone(), beside.clone()])[0].contains("beside"));
        ours.dependencies[0].dev = true;
        assert!(unlicensed(&[ours, beside]).is_empty());
    }
}

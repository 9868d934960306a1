//! `cargo xtask package`: the library's crates can be published, and no other crate can.
//!
//! Checks their manifests, packs them and builds them from what was packed, as
//! `cargo publish --dry-run` does (several crates at once: cargo 1.90 or newer). Writes below
//! `target` only and publishes nothing.

use std::path::Path;

use crate::metadata::{self, Package, Scope};
use crate::{process, root};

/// The crates of the library, in the order in which they must be published.
const PUBLISHED: &[&str] = &["punctual-core", "punctual-os", "punctual"];
/// What must be in each package beside its sources.
const FILES: &[&str] = &["Cargo.toml", "LICENSE-APACHE", "LICENSE-MIT", "README.md"];

/// Runs the subcommand.
pub(crate) fn run(args: &[String]) -> Result<(), String> {
    if let Some(extra) = args.first() {
        return Err(format!("package takes no argument, got {extra:?}"));
    }
    let root = root::root();
    let mut wrong = wrong(&metadata::packages(&root, Scope::Ours)?);
    for name in PUBLISHED {
        let list = ["package", "--list", "--locked", "--allow-dirty", "--package", name];
        let listed = process::output(&mut process::cargo(&root, &list))?;
        wrong.extend(unpacked(name, &String::from_utf8_lossy(&listed)));
    }
    for line in &wrong {
        println!("{line}");
    }
    if !wrong.is_empty() {
        return Err(format!("{} things to mend before publishing", wrong.len()));
    }
    pack(&root)?;
    println!("package: {} can be published", PUBLISHED.join(", "));
    Ok(())
}

/// Packs and builds the crates. Where the registry cannot be reached, the same without asking it
/// whether the versions are free: a network that is down says nothing about the crates.
fn pack(root: &Path) -> Result<(), String> {
    let selected = PUBLISHED.iter().flat_map(|name| ["--package", name]);
    let args = |start: &[&'static str]| -> Vec<&str> {
        start.iter().copied().chain(["--locked", "--allow-dirty"]).chain(selected.clone()).collect()
    };
    let dry_run = process::run(&mut process::cargo(root, &args(&["publish", "--dry-run"])));
    let Err(why) = dry_run else { return Ok(()) };
    println!("package: {why}; packing without the registry");
    process::run(&mut process::cargo(root, &args(&["package", "--offline"])))
}

/// What the manifests lack, and crates that could be published by mistake.
fn wrong(packages: &[Package]) -> Vec<String> {
    let ours = |package: &&Package| PUBLISHED.contains(&package.name.as_str());
    let lacking = packages.iter().filter(ours).flat_map(|package| {
        let publish = (!package.publish).then_some("publish (it is false)");
        let lacks = package.lacks.iter().copied().chain(publish);
        lacks.map(|key| format!("{}: its manifest has no {key}", package.name))
    });
    let open = packages
        .iter()
        .filter(|package| !ours(package) && package.publish)
        .map(|package| format!("{}: write `publish = false` into its manifest", package.name));
    let missing = PUBLISHED
        .iter()
        .filter(|name| packages.iter().all(|package| package.name != **name))
        .map(|name| format!("{name}: no such crate in the workspace"));
    lacking.chain(open).chain(missing).collect()
}

/// Files that the list of a package lacks.
fn unpacked(name: &str, listed: &str) -> Vec<String> {
    let has = |file: &str| listed.lines().any(|line| line == file);
    let missing = FILES.iter().filter(|file| !has(file));
    missing.map(|file| format!("{name}: {file} would not be packed")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, publish: bool, lacks: &[&'static str]) -> Package {
        Package { publish, lacks: lacks.to_vec(), ..Package::named(name) }
    }

    #[test]
    fn what_a_manifest_lacks_is_named() {
        let mut packages: Vec<Package> =
            PUBLISHED.iter().map(|name| package(name, true, &[])).collect();
        packages.push(package("xtask", false, &["readme"]));
        assert_eq!(wrong(&packages), Vec::<String>::new());
        packages[0] = package("punctual-core", false, &["keywords"]);
        assert_eq!(wrong(&packages).len(), 2);
        assert!(wrong(&packages)[0].contains("no keywords"));
    }

    #[test]
    fn only_the_library_can_be_published() {
        let library = PUBLISHED.iter().map(|name| package(name, true, &[]));
        let packages: Vec<Package> = library.chain([package("xtask", true, &[])]).collect();
        assert_eq!(wrong(&packages), ["xtask: write `publish = false` into its manifest"]);
        assert_eq!(wrong(&[]).len(), PUBLISHED.len());
    }

    #[test]
    fn a_file_that_is_not_packed_is_named() {
        let all = FILES.join("\n");
        assert_eq!(unpacked("a", &all), Vec::<String>::new());
        assert_eq!(unpacked("a", &all.replace("README", "X")).len(), 1);
        assert_eq!(unpacked("a", &format!("docs/{}", FILES.join("\ndocs/"))).len(), FILES.len());
    }
}

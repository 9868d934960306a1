//! `cargo xtask package`: the library's crates can be published, and no other crate can.
//!
//! Checks their manifests, packs them and builds them from what was packed, as
//! `cargo publish --dry-run` does (several crates at once: cargo 1.90 or newer). Writes below
//! `target`, removes what an earlier packing left in cargo's home, and publishes nothing.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::process;
use crate::workspace::{self, Package, Scope};

/// The crates of the library, in the order in which they must be published.
const PUBLISHED: &[&str] = &["punctual-core", "punctual-os", "punctual-engine", "punctual"];
/// The files that must be in each package beside its sources.
const FILES: &[&str] = &["Cargo.toml", "LICENSE-APACHE", "LICENSE-MIT", "README.md"];

/// Runs the subcommand.
pub(crate) fn run(args: &[String]) -> Result<(), String> {
    if let Some(extra) = args.first() {
        return Err(format!("package takes no argument, got {extra:?}"));
    }
    let root = workspace::root();
    let mut wrong = wrong(&workspace::packages(&root, Scope::Ours)?);
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
    // In a place of its own: cargo takes what it built from a registry for unchangeable.
    let place = root.join("target/published");
    remove(&place)?;
    remove_unpacked(&cargo_home().join("registry/src"))?;
    pack(&root, &place)?;
    println!("package: {} can be published", PUBLISHED.join(", "));
    Ok(())
}

/// Packs and builds the crates. Where the registry cannot be reached, the same without asking it
/// whether the versions are free: a network that is down says nothing about the crates.
fn pack(root: &Path, place: &Path) -> Result<(), String> {
    let place = place.to_string_lossy();
    let options = ["--locked", "--allow-dirty", "--target-dir", &*place];
    let selected = PUBLISHED.iter().flat_map(|name| ["--package", name]);
    let args = |start: &[&'static str]| -> Vec<&str> {
        start.iter().copied().chain(options).chain(selected.clone()).collect()
    };
    let dry_run = process::run(&mut process::cargo(root, &args(&["publish", "--dry-run"])));
    let Err(why) = dry_run else { return Ok(()) };
    println!("package: {why}; packing without the registry");
    process::run(&mut process::cargo(root, &args(&["package", "--offline"])))
}

/// Where cargo keeps its registries: `CARGO_HOME`, else `~/.cargo` (The Cargo Book, "Cargo Home").
fn cargo_home() -> PathBuf {
    let set = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    set.unwrap_or_else(|| Path::new(&std::env::var_os("HOME").unwrap_or_default()).join(".cargo"))
}

/// Removes our crates from the sources that cargo has unpacked.
///
/// To build several crates from their packages, cargo makes a registry below `target` and unpacks
/// it into a folder named after that registry's path. What stands there is never unpacked again:
/// the crates of the next packing at the same path would be built against those of the last one.
/// A registry with a path has no host, so its folder's name begins with a dash.
fn remove_unpacked(sources: &Path) -> Result<(), String> {
    let Ok(registries) = std::fs::read_dir(sources) else { return Ok(()) };
    for registry in registries.flatten() {
        if !registry.file_name().to_string_lossy().starts_with('-') {
            continue;
        }
        for name in PUBLISHED {
            remove(&registry.path().join(format!("{name}-{}", env!("CARGO_PKG_VERSION"))))?;
        }
    }
    Ok(())
}

/// Removes the folder `path`, if it is there.
fn remove(path: &Path) -> Result<(), String> {
    match std::fs::remove_dir_all(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(format!("{}: {error}", path.display()))
        }
        _ => Ok(()),
    }
}

/// The faults of the manifests: keys that are missing, and crates that could be published by
/// mistake.
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
    fn only_our_crates_of_a_registry_without_a_host_are_removed() {
        let version = env!("CARGO_PKG_VERSION");
        let place = std::env::temp_dir().join(format!("punctual-package-{}", std::process::id()));
        let folder = |registry: &str, name: &str| {
            let folder = place.join(registry).join(format!("{name}-{version}"));
            std::fs::create_dir_all(folder.join("src")).unwrap();
            folder
        };
        let old = folder("-14cd1cce6819ff87", PUBLISHED[0]);
        let kept = [folder("-14cd1cce6819ff87", "libc"), folder("a.host-1949cf8c", PUBLISHED[0])];
        let removed = remove_unpacked(&place);
        let exist = [&old, &kept[0], &kept[1]].map(|folder| folder.exists());
        std::fs::remove_dir_all(&place).unwrap();
        assert_eq!((removed, exist), (Ok(()), [false, true, true]));
        assert_eq!(remove_unpacked(&place), Ok(()));
    }

    #[test]
    fn a_file_that_is_not_packed_is_named() {
        let listing = FILES.join("\n");
        assert_eq!(unpacked("a", &listing), Vec::<String>::new());
        assert_eq!(unpacked("a", &listing.replace("README", "X")).len(), 1);
        assert_eq!(unpacked("a", &format!("docs/{}", FILES.join("\ndocs/"))).len(), FILES.len());
    }
}

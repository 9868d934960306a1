//! `cargo xtask msrv`: no locked dependency wants a newer Rust than the workspace promises.
//!
//! Reads `cargo metadata` alone: the old toolchain itself need not be there.

use crate::workspace::{self, Package, Scope};

/// Compares each package's `rust-version` with the workspace's.
pub(crate) fn run(args: &[String]) -> Result<(), String> {
    if let Some(extra) = args.first() {
        return Err(format!("msrv takes no argument, got {extra:?}"));
    }
    let packages = workspace::packages(&workspace::root(), Scope::All)?;
    let promised = promised(&packages)?;
    let newer = newer(&packages, promised);
    for line in &newer {
        println!("{line}");
    }
    let [major, minor] = promised;
    if newer.is_empty() {
        println!("msrv: {} packages build with Rust {major}.{minor}", packages.len());
        Ok(())
    } else {
        Err(format!("{} packages want more than Rust {major}.{minor}", newer.len()))
    }
}

/// The one version that all of the workspace's crates name.
fn promised(packages: &[Package]) -> Result<[u32; 2], String> {
    let mut ours = packages.iter().filter(|package| package.ours);
    let first = ours.next().and_then(|package| package.rust_version);
    match first {
        Some(version) if ours.all(|package| package.rust_version == first) => Ok(version),
        _ => Err("the workspace's crates do not all name one rust-version".to_owned()),
    }
}

fn newer(packages: &[Package], promised: [u32; 2]) -> Vec<String> {
    let wants = |package: &&Package| package.rust_version.is_some_and(|wanted| wanted > promised);
    let line = |package: &Package| {
        let [major, minor] = package.rust_version.unwrap_or_default();
        format!("{} {} wants Rust {major}.{minor}", package.name, package.version)
    };
    packages.iter().filter(wants).map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, ours: bool, rust_version: Option<[u32; 2]>) -> Package {
        Package { version: "1.0.0".to_owned(), rust_version, ours, ..Package::named(name) }
    }

    #[test]
    fn a_newer_dependency_is_named() {
        let packages = [
            package("a", true, Some([1, 88])),
            package("same", false, Some([1, 88])),
            package("newer", false, Some([1, 100])),
            package("silent", false, None),
        ];
        assert_eq!(promised(&packages), Ok([1, 88]));
        assert_eq!(newer(&packages, [1, 88]), ["newer 1.0.0 wants Rust 1.100"]);
    }

    #[test]
    fn the_workspace_promises_one_version() {
        let two = [package("a", true, Some([1, 88])), package("b", true, Some([1, 90]))];
        assert!(promised(&two).is_err());
        assert!(promised(&[package("a", true, None)]).is_err());
    }
}

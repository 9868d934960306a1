//! What cargo knows of the workspace: its crates, what each depends on, under which licence.
//!
//! For the checks of crates, licences and Rust versions. Runs `cargo metadata --locked`, so that
//! it may fetch what is locked but never changes the lock file.

use std::path::Path;

use serde_json::Value;

use crate::process;

/// A crate of the workspace, or one that it is built from.
pub(crate) struct Package {
    /// Its name.
    pub(crate) name: String,
    /// Its version.
    pub(crate) version: String,
    /// Its licence as an SPDX expression; empty when it names none.
    pub(crate) licence: String,
    /// The oldest Rust that it says it builds with, as `[major, minor]`.
    pub(crate) rust_version: Option<[u32; 2]>,
    /// Whether it belongs to the workspace.
    pub(crate) ours: bool,
    /// The path of its manifest.
    pub(crate) manifest: String,
    /// Whether its manifest lets it be published.
    pub(crate) publish: bool,
    /// Of the manifest's keys that a published crate should have, those that are missing.
    pub(crate) lacks: Vec<&'static str>,
    /// What it depends on directly.
    pub(crate) dependencies: Vec<Dependency>,
}

/// Keys of a manifest that tell a stranger what a crate is.
const PRESENTED: &[&str] = &[
    "description",
    "license",
    "rust_version",
    "keywords",
    "categories",
    "readme",
    "documentation",
];

/// One dependency of a package.
pub(crate) struct Dependency {
    /// The other package's name.
    pub(crate) name: String,
    /// Whether only tests, examples and benchmarks see it.
    pub(crate) dev: bool,
}

/// Which packages to list.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    /// The workspace's own.
    Ours,
    /// All that are locked.
    All,
}

/// Asks cargo about the workspace at `root`.
pub(crate) fn packages(root: &Path, scope: Scope) -> Result<Vec<Package>, String> {
    let mut command = process::cargo(root, &["metadata", "--format-version", "1", "--locked"]);
    if scope == Scope::Ours {
        command.arg("--no-deps");
    }
    let printed = process::output(&mut command)
        .map_err(|error| format!("{error} (is Cargo.lock up to date?)"))?;
    parse(&printed)
}

fn parse(json: &[u8]) -> Result<Vec<Package>, String> {
    let value: Value =
        serde_json::from_slice(json).map_err(|error| format!("cargo metadata: {error}"))?;
    let packages = value["packages"].as_array().ok_or("cargo metadata: no packages")?;
    Ok(packages.iter().map(package).collect())
}

fn package(value: &Value) -> Package {
    let text = |key: &str| value[key].as_str().unwrap_or_default().to_owned();
    let dependencies = value["dependencies"].as_array().map(Vec::as_slice).unwrap_or_default();
    Package {
        name: text("name"),
        version: text("version"),
        licence: text("license"),
        rust_version: value["rust_version"].as_str().and_then(rust_version),
        ours: value["source"].is_null(),
        manifest: text("manifest_path"),
        publish: value["publish"].is_null(),
        lacks: PRESENTED.iter().copied().filter(|key| is_empty(&value[key])).collect(),
        dependencies: dependencies
            .iter()
            .map(|dependency| Dependency {
                name: dependency["name"].as_str().unwrap_or_default().to_owned(),
                dev: dependency["kind"].as_str() == Some("dev"),
            })
            .collect(),
    }
}

/// Whether a key is missing, or has no text or no element.
fn is_empty(value: &Value) -> bool {
    let text = value.as_str().map(str::is_empty);
    text.or_else(|| value.as_array().map(Vec::is_empty)).unwrap_or(true)
}

/// `1.88` or `1.88.0` as numbers.
fn rust_version(text: &str) -> Option<[u32; 2]> {
    let mut parts = text.split('.').map(|part| part.parse().ok());
    Some([parts.next()??, parts.next()??])
}

#[cfg(test)]
impl Package {
    /// One of ours that says nothing but its name.
    pub(crate) fn named(name: &str) -> Self {
        package(&serde_json::json!({ "name": name, "publish": [] }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cargo_prints_is_read() {
        let json = br#"{"packages": [
            {"name": "a", "version": "0.1.0", "license": null, "rust_version": "1.88",
             "source": null, "manifest_path": "/x/a/Cargo.toml", "publish": [], "readme": "R",
             "keywords": ["k"], "categories": [],
             "dependencies": [{"name": "b", "kind": null}, {"name": "c", "kind": "dev"}]},
            {"name": "b", "version": "2.0.0", "license": "MIT", "rust_version": "1.56.1",
             "source": "registry", "manifest_path": "", "dependencies": []}]}"#;
        let packages = parse(json).unwrap();
        assert!(packages[0].ours && !packages[1].ours);
        assert!(!packages[0].publish && packages[1].publish);
        assert_eq!(packages[0].lacks, ["description", "license", "categories", "documentation"]);
        assert_eq!(packages[0].rust_version, Some([1, 88]));
        assert_eq!(packages[1].rust_version, Some([1, 56]));
        let kinds: Vec<(&str, bool)> =
            packages[0].dependencies.iter().map(|d| (d.name.as_str(), d.dev)).collect();
        assert_eq!(kinds, [("b", false), ("c", true)]);
    }

    #[test]
    fn what_is_no_metadata_is_refused() {
        assert!(parse(b"{}").is_err());
        assert!(parse(b"error").is_err());
    }
}

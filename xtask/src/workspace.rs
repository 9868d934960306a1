//! The workspace: where it lies, which files belong to it, and what cargo knows of its crates,
//! their dependencies and licences.
//!
//! For every subcommand. Reads git's index, and runs `cargo metadata --locked`, so that
//! it may fetch what is locked but never changes the lock file.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::process;

/// A crate of the workspace, or one that it is built from.
#[derive(Clone)]
pub(crate) struct Package {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Its licence as an SPDX expression; empty when it names none.
    pub licence: String,
    /// The oldest Rust that it says it builds with, as `[major, minor]`.
    pub rust_version: Option<[u32; 2]>,
    /// True where it belongs to the workspace.
    pub ours: bool,
    /// The path of its manifest.
    pub manifest: String,
    /// True where its manifest lets it be published.
    pub publish: bool,
    /// Of the manifest's keys that a published crate should have, those that are missing.
    pub lacks: Vec<&'static str>,
    /// Its direct dependencies.
    pub dependencies: Vec<Dependency>,
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
#[derive(Clone)]
pub(crate) struct Dependency {
    /// The other package's name.
    pub name: String,
    /// True where only tests, examples and benchmarks see it.
    pub dev: bool,
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

/// Returns true where a key is missing, or has no text or no element.
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

/// What the build of the workspace of `manifest` lacks: crates that no registry gives here. A lock
/// file or a manifest that is at fault is no such lack: the build says what it is.
pub(crate) fn lacking(root: &Path, manifest: &str) -> Option<&'static str> {
    let fetch = ["fetch", "--locked", "--manifest-path", manifest];
    let errors = |args: &[&str]| {
        let output = process::cargo(root, args).output().ok()?;
        (!output.status.success()).then(|| String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let online = errors(&fetch)?;
    let offline = errors(&[&fetch[..], &["--offline"]].concat())?;
    is_for_want_of_crates(&online, &offline).then_some("its crates, which no registry gives here")
}

/// Judges by what `cargo fetch --locked` says with a network, and with `--offline`, which cargo
/// names wherever it wants what only a registry has; it names `--locked` where the lock file is out
/// of date.
fn is_for_want_of_crates(online: &str, offline: &str) -> bool {
    let is_stale = |errors: &str| errors.contains("--locked was passed");
    !is_stale(online) && !is_stale(offline) && offline.contains("--offline")
}

/// The workspace's top folder: the one above this crate, wherever the clone was moved to.
pub(crate) fn root() -> PathBuf {
    let manifest = std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    manifest.parent().map_or_else(|| PathBuf::from("."), Path::to_path_buf)
}

/// Paths, relative to the root and sorted, of all files that are tracked or could be: untracked
/// ones count unless ignored, so that a check sees a file before its first commit.
pub(crate) fn files(root: &Path) -> Result<Vec<String>, String> {
    let listed = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output()
        .map_err(|error| {
            format!("git ls-files: {error} (tidy reads the list of files from git)")
        })?;
    if !listed.status.success() {
        let errors = String::from_utf8_lossy(&listed.stderr);
        return Err(format!("git ls-files in {}: {}", root.display(), errors.trim()));
    }
    let mut paths: Vec<String> = String::from_utf8_lossy(&listed.stdout)
        .split('\0')
        .filter(|path| !path.is_empty() && root.join(path).is_file())
        .map(str::to_owned)
        .collect();
    paths.sort();
    paths.dedup();
    // What another repository around this tree ignores is not listed.
    if paths.iter().all(|path| path != "Cargo.toml") {
        return Err(format!(
            "git ls-files in {}: no Cargo.toml among {} files (is this tree a clone of its own, or \
             in a folder that another repository ignores?)",
            root.display(),
            paths.len()
        ));
    }
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_files_without_the_manifest_is_none() {
        let why = files(&root().join("docs")).unwrap_err();
        assert!(why.contains("no Cargo.toml among "), "{why}");
        assert!(files(&root()).unwrap().contains(&"xtask/src/workspace.rs".to_owned()));
    }

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
    fn crates_are_lacking_where_only_a_registry_has_them() {
        let stale = "error: cannot update the lock file /a/Cargo.lock because --locked was passed \
                     to prevent this\nhelp: remove the --locked flag and use --offline instead.";
        let unreached = "Caused by: download of config.json failed";
        let unknown = "error: no matching package named `libc` found\nAs a reminder, you're using \
                       offline mode (--offline) which can cause resolution failures";
        let broken = "error: failed to read `/a/Cargo.toml`";
        assert!(is_for_want_of_crates(unreached, unknown));
        assert!(!is_for_want_of_crates(stale, unknown), "one more dependency");
        assert!(!is_for_want_of_crates(stale, stale));
        assert!(!is_for_want_of_crates(unreached, stale));
        assert!(!is_for_want_of_crates(broken, broken));
        assert_eq!(lacking(&root(), "no-such-folder/Cargo.toml"), None);
    }

    #[test]
    fn what_is_no_metadata_is_refused() {
        assert!(parse(b"{}").is_err());
        assert!(parse(b"error").is_err());
    }
}

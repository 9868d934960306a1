//! Says which commit the program is built from: `PUNCTUAL_COMMIT`, for results, and
//! `PUNCTUAL_VERSION`, for `punctual --version`.
//!
//! The commit is that of release builds of a git clone; there is none in a packaged source, and in
//! a build for development, which would be built again at each commit. Reads git; writes nothing.

use std::path::Path;
use std::process::Command;

/// The sources of the program. Its commit is looked up again when one of these changes.
const SOURCES: &[&str] = &[
    "Cargo.lock",
    "Cargo.toml",
    "analysis",
    "cli",
    "core",
    "document",
    "engine",
    "export",
    "host",
    "import",
    "lab",
    "os",
    "plot",
    "punctual",
    "report",
];

fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let is_release = std::env::var("PROFILE").is_ok_and(|profile| profile == "release");
    println!("cargo:rerun-if-changed=build.rs");
    let commit = if is_release { commit(&root, SOURCES) } else { None };
    if commit.is_some() {
        for source in SOURCES {
            println!("cargo:rerun-if-changed=../{source}");
        }
        if let Some(log) = git(&root, &["rev-parse", "--git-path", "logs/HEAD"]) {
            println!("cargo:rerun-if-changed={}", root.join(log).display());
        }
    }
    let commit = commit.unwrap_or_default();
    let shown = if commit.is_empty() { String::new() } else { format!(" ({commit})") };
    println!("cargo:rustc-env=PUNCTUAL_COMMIT={commit}");
    println!("cargo:rustc-env=PUNCTUAL_VERSION={}{shown}", env!("CARGO_PKG_VERSION"));
}

/// The commit of a clone, and whether `sources` differ from it; `None` where `root` is no clone of
/// its own, as a source package inside another one is.
pub(crate) fn commit(root: &Path, sources: &[&str]) -> Option<String> {
    let top = git(root, &["rev-parse", "--show-toplevel"])?;
    if Path::new(&top).canonicalize().ok()? != root.canonicalize().ok()? {
        return None;
    }
    let commit = git(root, &["rev-parse", "--short=12", "HEAD"])?;
    let args = [&["status", "--porcelain", "--untracked-files=no", "--"][..], sources].concat();
    let changed = git(root, &args)?;
    Some(if changed.is_empty() { commit } else { format!("{commit}, modified") })
}

/// The output of git, trimmed; `None` where it fails.
fn git(root: &Path, args: &[&str]) -> Option<String> {
    let output = Command::new("git").arg("-C").arg(root).args(args).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}

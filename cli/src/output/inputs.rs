//! Outputs that are inputs, refused before anything is read or measured.
//!
//! By what the names mean, not by how they are spelled. Looks at files; opens and writes none.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use crate::stored::{LOCK, RESULT, SAMPLES, STATES};

/// Refuses the output that `option` names where it is one of the inputs, or a file of the program's
/// in an input that is a directory, or beside one that is a result.
pub(crate) fn spare<'a>(
    option: &str,
    output: Option<&Path>,
    inputs: impl IntoIterator<Item = &'a Path>,
) -> Result<()> {
    let Some(output) = output else { return Ok(()) };
    for input in inputs {
        let is_read = |read: &PathBuf| read.exists() && same(output, read);
        if let Some(read) = read_of(input).into_iter().find(is_read) {
            bail!(
                "{option} {}: would overwrite an input ({}): name another file",
                output.display(),
                read.display()
            );
        }
    }
    Ok(())
}

/// Refuses the output that `option` names where it lies in a captured tree.
pub(crate) fn spare_tree(option: &str, output: Option<&Path>, tree: Option<&Path>) -> Result<()> {
    let (Some(output), Some(tree)) = (output, tree) else { return Ok(()) };
    let Ok(tree) = fs::canonicalize(tree) else { return Ok(()) };
    let inside = |path: &Path| fs::canonicalize(path).is_ok_and(|path| path.starts_with(&tree));
    if inside(output) || inside(parent(output)) {
        bail!(
            "{option} {}: is inside the captured tree {}: name a file elsewhere",
            output.display(),
            tree.display()
        );
    }
    Ok(())
}

/// Refuses the output that `option` names where it is another output of the same command too.
pub(crate) fn distinct(option: &str, output: Option<&Path>, other: Option<&Path>) -> Result<()> {
    let (Some(output), Some(other)) = (output, other) else { return Ok(()) };
    if output != Path::new("-") && same(output, other) {
        bail!("{option} {}: this file is already used for another output", output.display());
    }
    Ok(())
}

/// Files that a command may read which is given `input`.
fn read_of(input: &Path) -> Vec<PathBuf> {
    if input == Path::new("-") {
        return vec!["/dev/stdin".into()];
    }
    if input.is_dir() {
        let names = [RESULT, SAMPLES, LOCK].into_iter().chain(STATES);
        return names.map(|name| input.join(name)).collect();
    }
    vec![input.to_owned(), input.with_file_name(SAMPLES)]
}

/// Whether two names mean one regular file, or would.
fn same(one: &Path, other: &Path) -> bool {
    let identity = |path: &Path| fs::metadata(path).map(|meta| (meta.dev(), meta.ino()));
    let is_file = |path: &Path| fs::metadata(path).map_or(true, |meta| meta.is_file());
    match (identity(one), identity(other)) {
        (Ok(a), Ok(b)) => a == b && is_file(one),
        (Err(_), Err(_)) => {
            let around = (identity(parent(one)).ok(), identity(parent(other)).ok());
            around.0.is_some() && around.0 == around.1 && one.file_name() == other.file_name()
        }
        _ => false,
    }
}

/// The directory that a file is in, or would be.
fn parent(path: &Path) -> &Path {
    path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

//! `cargo xtask man [--update]`: the committed manual pages are what the tool says of itself.
//!
//! Builds the tool, lets it write its pages into a folder of the target directory
//! (`punctual man DIR`), and compares with docs/man; with `--update`, puts them there instead.

use std::collections::BTreeMap;
use std::path::Path;

use crate::{process, root, generated};

/// The pages as committed.
const COMMITTED: &str = "docs/man";

/// Compares or updates.
pub(crate) fn run(args: &[String]) -> Result<(), String> {
    let update = generated::wants_update("man", args)?;
    let root = root::root();
    let made = make(&root)?;
    let committed = read(&root.join(COMMITTED))?;
    let differences = compare(&committed, &made);
    if update {
        return write(&root.join(COMMITTED), &committed, &made);
    }
    for line in &differences {
        println!("{line}");
    }
    if differences.is_empty() {
        println!("man: {} pages of {COMMITTED} are what the tool writes", made.len());
        Ok(())
    } else {
        Err(format!("{} pages differ; `cargo xtask man --update` writes them", differences.len()))
    }
}

/// The pages by name, as the tool writes them.
fn make(root: &Path) -> Result<BTreeMap<String, Vec<u8>>, String> {
    let folder = std::env::temp_dir().join(format!("punctual-man-{}", std::process::id()));
    std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let written = process::run(&mut generated::tool(root, &["man", &folder.display().to_string()]));
    let pages = written.and_then(|()| read(&folder));
    // Left over in the temporary folder at worst.
    let _ = std::fs::remove_dir_all(&folder);
    match pages {
        Ok(pages) if pages.is_empty() => Err("`punctual man` wrote no page".to_owned()),
        pages => pages,
    }
}

fn read(folder: &Path) -> Result<BTreeMap<String, Vec<u8>>, String> {
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
        Err(error) => return Err(failed(error)),
    };
    let mut pages = BTreeMap::new();
    for entry in entries {
        let entry = entry.map_err(failed)?;
        let text = std::fs::read(entry.path()).map_err(failed)?;
        pages.insert(entry.file_name().to_string_lossy().into_owned(), text);
    }
    Ok(pages)
}

fn compare(committed: &BTreeMap<String, Vec<u8>>, made: &BTreeMap<String, Vec<u8>>) -> Vec<String> {
    let changed = made.iter().filter_map(|(name, text)| match committed.get(name) {
        None => Some(format!("{COMMITTED}/{name}: not committed")),
        Some(old) => generated::first_difference(old, text)
            .map(|line| format!("{COMMITTED}/{name}:{line}: the tool writes something else")),
    });
    let left = committed
        .keys()
        .filter(|name| !made.contains_key(*name))
        .map(|name| format!("{COMMITTED}/{name}: the tool writes no such page"));
    changed.chain(left).collect()
}

fn write(
    folder: &Path,
    committed: &BTreeMap<String, Vec<u8>>,
    made: &BTreeMap<String, Vec<u8>>,
) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    std::fs::create_dir_all(folder).map_err(failed)?;
    for name in committed.keys().filter(|name| !made.contains_key(*name)) {
        std::fs::remove_file(folder.join(name)).map_err(failed)?;
    }
    for (name, text) in made {
        std::fs::write(folder.join(name), text).map_err(failed)?;
    }
    println!("man: wrote {} pages to {COMMITTED}", made.len());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pages(list: &[(&str, &str)]) -> BTreeMap<String, Vec<u8>> {
        list.iter().map(|(name, text)| ((*name).to_owned(), text.as_bytes().to_vec())).collect()
    }

    #[test]
    fn each_kind_of_difference_is_named() {
        let committed = pages(&[("a.1", "x\n"), ("b.1", "x\n"), ("c.1", "x\ny\n")]);
        let made = pages(&[("a.1", "x\n"), ("c.1", "x\nz\n"), ("d.1", "x\n")]);
        let differences = compare(&committed, &made);
        assert_eq!(differences.len(), 3, "{differences:?}");
        assert!(differences.iter().any(|line| line.contains("c.1:2:")));
        assert!(compare(&made, &made).is_empty());
    }

    #[test]
    fn an_update_makes_them_equal() {
        let folder = std::env::temp_dir().join(format!("punctual-man-test-{}", std::process::id()));
        let (old, new) =
            (pages(&[("a.1", "x"), ("b.1", "y")]), pages(&[("b.1", "z"), ("c.1", "w")]));
        write(&folder, &BTreeMap::new(), &old).unwrap();
        write(&folder, &old, &new).unwrap();
        let result = read(&folder);
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!(result.unwrap(), new);
    }
}

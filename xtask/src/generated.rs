//! `cargo xtask schema [--update]` and `cargo xtask man [--update]`: the committed JSON schema and
//! manual pages are what the tool says of itself.
//!
//! Builds the tool, asks it, and compares with docs/schema-2.json or docs/man; with `--update`,
//! writes these instead.

use std::collections::BTreeMap;
use std::path::Path;

use crate::{process, workspace};

/// The schema as committed.
const SCHEMA: &str = "docs/schema-2.json";

/// Compares or updates the schema (`punctual schema`).
pub(crate) fn schema(args: &[String]) -> Result<(), String> {
    let update = wants_update("schema", args)?;
    let root = workspace::root();
    let printed = process::output(&mut tool(&root, &["schema"]))?;
    let path = root.join(SCHEMA);
    if update {
        std::fs::write(&path, printed).map_err(|error| format!("{SCHEMA}: {error}"))?;
        println!("schema: wrote {SCHEMA}");
        return Ok(());
    }
    let committed = std::fs::read(&path).map_err(|error| format!("{SCHEMA}: {error}"))?;
    match first_difference(&committed, &printed) {
        None => {
            println!("schema: {SCHEMA} is what the tool prints");
            Ok(())
        }
        Some(line) => Err(format!(
            "{SCHEMA}:{line}: the tool prints something else; `cargo xtask schema --update` \
             writes it, and a change that breaks readers needs a new schema number"
        )),
    }
}

/// The tool, as the tests build it.
fn tool(root: &Path, args: &[&str]) -> std::process::Command {
    let mut cargo =
        process::cargo(root, &["run", "--quiet", "--locked", "--package", "punctual-cli"]);
    cargo.args(["--bin", "punctual", "--"]).args(args);
    cargo
}

/// True with `--update`, the only argument that there is.
fn wants_update(name: &str, args: &[String]) -> Result<bool, String> {
    match args {
        [] => Ok(false),
        [flag] if flag == "--update" => Ok(true),
        _ => Err(format!("{name} takes [--update], got {args:?}")),
    }
}

/// The first line, from 1, in which the texts differ.
fn first_difference(committed: &[u8], made: &[u8]) -> Option<usize> {
    if committed == made {
        return None;
    }
    let lines = |text| <[u8]>::split(text, |&byte: &u8| byte == b'\n');
    let same = lines(committed).zip(lines(made)).take_while(|(a, b)| a == b).count();
    Some(same + 1)
}

/// The pages as committed.
const PAGES: &str = "docs/man";

/// Compares or updates the manual pages.
///
/// The tool writes its pages into a temporary folder (`punctual man DIR`).
pub(crate) fn man(args: &[String]) -> Result<(), String> {
    let update = wants_update("man", args)?;
    let root = workspace::root();
    let made = make(&root)?;
    let committed = read(&root.join(PAGES))?;
    let differences = compare(&committed, &made);
    if update {
        return write(&root.join(PAGES), &committed, &made);
    }
    for line in &differences {
        println!("{line}");
    }
    if differences.is_empty() {
        println!("man: {} pages of {PAGES} are what the tool writes", made.len());
        Ok(())
    } else {
        Err(format!("{} pages differ; `cargo xtask man --update` writes them", differences.len()))
    }
}

/// The pages by name, as the tool writes them.
fn make(root: &Path) -> Result<BTreeMap<String, Vec<u8>>, String> {
    let folder = std::env::temp_dir().join(format!("punctual-man-{}", std::process::id()));
    std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let written = process::run(&mut tool(root, &["man", &folder.display().to_string()]));
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
        None => Some(format!("{PAGES}/{name}: not committed")),
        Some(old) => first_difference(old, text)
            .map(|line| format!("{PAGES}/{name}:{line}: the tool writes something else")),
    });
    let left = committed
        .keys()
        .filter(|name| !made.contains_key(*name))
        .map(|name| format!("{PAGES}/{name}: the tool writes no such page"));
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
    println!("man: wrote {} pages to {PAGES}", made.len());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_difference_is_a_line() {
        assert_eq!(first_difference(b"a\nb\n", b"a\nb\n"), None);
        assert_eq!(first_difference(b"a\nb\n", b"a\nc\n"), Some(2));
        assert_eq!(first_difference(b"a\n", b"a\nb\n"), Some(2));
        assert_eq!(first_difference(b"", b"a"), Some(1));
    }

    #[test]
    fn only_update_is_an_option() {
        let args = |text: &[&str]| text.iter().map(|&arg| arg.to_owned()).collect::<Vec<_>>();
        assert_eq!(wants_update("schema", &args(&[])), Ok(false));
        assert_eq!(wants_update("schema", &args(&["--update"])), Ok(true));
        assert!(wants_update("schema", &args(&["--upgrade"])).unwrap_err().contains("--upgrade"));
    }

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

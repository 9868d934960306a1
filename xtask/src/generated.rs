//! `cargo xtask schema [--update]`: the committed JSON schema is what the tool's results follow.
//!
//! Builds the tool, asks it (`punctual schema`), and compares with docs/schema-2.json; with
//! `--update`, writes that file instead.

use std::path::Path;

use crate::{process, root};

/// The schema as committed.
const COMMITTED: &str = "docs/schema-2.json";

/// Compares or updates.
pub(crate) fn run(args: &[String]) -> Result<(), String> {
    let update = wants_update("schema", args)?;
    let root = root::root();
    let printed = process::output(&mut tool(&root, &["schema"]))?;
    let path = root.join(COMMITTED);
    if update {
        std::fs::write(&path, printed).map_err(|error| format!("{COMMITTED}: {error}"))?;
        println!("schema: wrote {COMMITTED}");
        return Ok(());
    }
    let committed = std::fs::read(&path).map_err(|error| format!("{COMMITTED}: {error}"))?;
    match first_difference(&committed, &printed) {
        None => {
            println!("schema: {COMMITTED} is what the tool prints");
            Ok(())
        }
        Some(line) => Err(format!(
            "{COMMITTED}:{line}: the tool prints something else; `cargo xtask schema --update` \
             writes it, and a change that breaks readers needs a new schema number"
        )),
    }
}

/// The tool, as the tests build it.
pub(crate) fn tool(root: &Path, args: &[&str]) -> std::process::Command {
    let mut cargo =
        process::cargo(root, &["run", "--quiet", "--locked", "--package", "punctual-cli"]);
    cargo.args(["--bin", "punctual", "--"]).args(args);
    cargo
}

/// Whether `--update` was asked for, and nothing else.
pub(crate) fn wants_update(name: &str, args: &[String]) -> Result<bool, String> {
    match args {
        [] => Ok(false),
        [flag] if flag == "--update" => Ok(true),
        _ => Err(format!("{name} takes [--update], got {args:?}")),
    }
}

/// The first line, from 1, in which the texts differ.
pub(crate) fn first_difference(committed: &[u8], made: &[u8]) -> Option<usize> {
    if committed == made {
        return None;
    }
    let lines = |text| <[u8]>::split(text, |&byte: &u8| byte == b'\n');
    let same = lines(committed).zip(lines(made)).take_while(|(a, b)| a == b).count();
    Some(same + 1)
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
}

//! `readme`, a step of `cargo xtask test`: a program that is made as the READMEs say builds.
//!
//! Each of them says what goes into the Cargo.toml of a program beside a checkout, and shows its
//! main.rs. Made so in `target/readme`, with the versions that this tree has locked, and checked by
//! cargo. What the registry has is not asked.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::symlink;
use std::path::Path;

use crate::process;

/// The pages that say how a program gets at the library.
const PAGES: &[&str] = &["README.md", "punctual/README.md"];

/// A program as a page shows it.
#[derive(Debug, PartialEq)]
struct ShownProgram<'p> {
    /// What it adds to its Cargo.toml.
    dependencies: &'p str,
    main: &'p str,
}

/// Builds the program of each page.
pub(crate) fn check(root: &Path) -> Result<(), String> {
    let place = root.join("target/readme");
    for page in PAGES {
        let failed = |why: String| format!("{page}: {why}");
        let text = fs::read_to_string(root.join(page)).map_err(|why| failed(why.to_string()))?;
        let program = ShownProgram::find(&text).map_err(failed)?;
        let folder = place.join("program");
        program.write(root, &folder).map_err(|why| failed(why.to_string()))?;
        let mut cargo = process::cargo(&folder, &["check", "--offline"]);
        process::run(cargo.env("CARGO_TARGET_DIR", place.join("target"))).map_err(failed)?;
    }
    Ok(())
}

impl<'p> ShownProgram<'p> {
    /// The program of a page: its first block of TOML with dependencies, and its first block of
    /// Rust.
    fn find(page: &'p str) -> Result<Self, String> {
        let dependencies = block(page, "toml", "[dependencies]").ok_or(
            "no block of toml with [dependencies]: nothing says how to depend on punctual",
        )?;
        let main = block(page, "rust", "fn main()").ok_or("no block of rust with fn main()")?;
        Ok(Self { dependencies, main })
    }

    /// Writes it into `folder`, beside a link to the tree of the name that it expects.
    fn write(&self, root: &Path, folder: &Path) -> std::io::Result<()> {
        fs::create_dir_all(folder.join("src"))?;
        let link = folder.with_file_name("punctual");
        // Of a clone that this one was copied from, it leads there.
        match fs::remove_file(&link) {
            Err(why) if why.kind() != ErrorKind::NotFound => return Err(why),
            _ => symlink(root, link)?,
        }
        // A workspace of its own: it is no member of the one that it lies in.
        let manifest = format!(
            "[package]\nname = \"program\"\nedition = \"2024\"\n\n{}\n[workspace]\n",
            self.dependencies
        );
        fs::write(folder.join("Cargo.toml"), manifest)?;
        fs::write(folder.join("src/main.rs"), self.main)?;
        fs::copy(root.join("Cargo.lock"), folder.join("Cargo.lock"))?;
        Ok(())
    }
}

/// The text of the first block of Markdown in `language` that has `wanted` in it.
fn block<'p>(page: &'p str, language: &str, wanted: &str) -> Option<&'p str> {
    let mut parts = page.split("```");
    // What stands between two fences is a block, with its language in the first line.
    let blocks = std::iter::from_fn(|| parts.next().and(parts.next()));
    let mut texts = blocks.filter_map(|block| {
        let (head, text) = block.split_once('\n')?;
        (head.split(',').next() == Some(language)).then_some(text)
    });
    texts.find(|text| text.contains(wanted))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_does_not_say_how_to_depend_on_the_library_is_found() {
        let page = "A loop:\n\n```rust,no_run\nfn main() {}\n```\n\nWith:\n\n```toml\n\
                    [dependencies]\npunctual = { path = \"../punctual/punctual\" }\n```\n";
        let program = ShownProgram::find(page).expect("both");
        assert_eq!(program.main, "fn main() {}\n");
        assert!(program.dependencies.ends_with("/punctual\" }\n"), "{}", program.dependencies);
        let without = page.replace("[dependencies]", "[profile.release]");
        assert!(ShownProgram::find(&without).expect_err("none").contains("[dependencies]"));
    }

    #[test]
    fn a_program_lies_beside_this_tree_whatever_lay_there() {
        let above = std::env::temp_dir().join(format!("punctual-readme-{}", std::process::id()));
        let root = crate::workspace::root();
        let program = ShownProgram { dependencies: "", main: "" };
        for tree in [Path::new("/"), &root] {
            fs::create_dir_all(above.join("program")).expect("writable");
            let _none = fs::remove_file(above.join("punctual"));
            symlink(tree, above.join("punctual")).expect("writable");
            program.write(&root, &above.join("program")).expect("writable");
            assert_eq!(fs::read_link(above.join("punctual")).expect("a link"), root);
        }
        fs::remove_dir_all(&above).expect("it was made here");
    }

    #[test]
    fn each_page_shows_a_program() {
        let root = crate::workspace::root();
        for page in PAGES {
            let text = fs::read_to_string(root.join(page)).expect(page);
            let program = ShownProgram::find(&text).unwrap_or_else(|why| panic!("{page}: {why}"));
            assert!(program.dependencies.contains("\npunctual = "), "{page}");
        }
    }
}

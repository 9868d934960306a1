//! Lines of Rust by what they are.

use crate::tidy::{self, File};

/// Lines of Rust; blank ones are none of these.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Lines {
    /// Code that is compiled into a program or library.
    pub(super) code: usize,
    /// Code of tests, benchmarks and examples.
    pub(super) tests: usize,
    /// Nothing but a comment, in either.
    pub(super) comments: usize,
}

/// Counts the lines of every Rust file that is not data.
pub(super) fn count(files: &[File]) -> Lines {
    let mut lines = Lines::default();
    for file in files.iter().filter(|file| !file.is_data()) {
        let Some(rust) = &file.rust else { continue };
        for number in 1..=file.text.lines().count() {
            let range = rust.line_range(number);
            let (code, comment) = (&rust.code[range.clone()], &rust.comments[range.clone()]);
            let is_code = !code.trim().is_empty() || !rust.strings[range.clone()].trim().is_empty();
            let is_test = file.is_test() || rust.is_test(range.start);
            lines.code += usize::from(is_code && !is_test);
            lines.tests += usize::from(is_code && is_test);
            lines.comments += usize::from(!is_code && !comment.trim().is_empty());
        }
    }
    lines
}

/// The lines of the function `main` of an example, from its head to its closing brace, without
/// blank lines and comments.
pub(super) fn of_main(example: &File) -> Option<usize> {
    let rust = example.rust.as_ref()?;
    let start = rust.code.find("fn main(")?;
    let end = tidy::block_end(&rust.code, tidy::item_open(&rust.code, start)?);
    let filled = |line: &usize| !rust.code[rust.line_range(*line)].trim().is_empty();
    Some((rust.line(start)..=rust.line(end - 1)).filter(filled).count())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_is_counted_once() {
        let text = "//! A.\n\nfn a() {\n    b(); // why\n    let c = \"\n      text\n\";\n}\n\
                    /* a\n   b */\n#[cfg(test)]\nmod tests {\n    // why\n    fn d() {}\n}\n";
        let files = [
            File::new("a/src/lib.rs", text),
            File::new("a/tests/b.rs", "//! B.\nfn e() {}\n"),
            File::new("fixtures/c.rs", "fn f() {}\n"),
            File::new("a.md", "fn g() {}\n"),
        ];
        assert_eq!(count(&files), Lines { code: 6, tests: 5, comments: 5 });
    }

    #[test]
    fn the_length_of_main_is_that_of_its_code() {
        let text = "//! A.\nuse a::b;\n\nfn main() {\n    // why\n    b();\n\n    c(\"}\");\n}\n";
        assert_eq!(of_main(&File::new("a/examples/b.rs", text)), Some(4));
        assert_eq!(of_main(&File::new("a/examples/b.rs", "fn other() {}\n")), None);
    }
}

//! The programs in C and C++ on docs/sharing.md and docs/migrating.md are programs, and as long as
//! those pages say. Those in Rust are doc tests of `peers`, which has their crates.
//!
//! Code that is marked `not-compiled` needs libraries that are not packaged: it is counted alone.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use punctual_testkit::skip;

/// The root of the tree.
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// A block of a page.
struct Block {
    /// The words behind its fence.
    language: String,
    text: String,
    /// The lines that the page says it has.
    stated: Option<usize>,
}

impl Block {
    /// Lines that are neither empty nor comments.
    fn lines(&self) -> usize {
        let is_code = |line: &&str| !line.is_empty() && !line.starts_with("//");
        self.text.lines().map(str::trim).filter(is_code).count()
    }
}

fn page(name: &str) -> String {
    fs::read_to_string(Path::new(ROOT).join("docs").join(name)).expect("a page")
}

fn blocks(page: &str) -> Vec<Block> {
    let (mut blocks, mut stated, mut open) = (Vec::new(), None, None::<Block>);
    for line in page.lines() {
        match (open.take(), line.strip_prefix("```")) {
            (Some(block), Some(_)) => blocks.push(block),
            (Some(mut block), None) => {
                block.text += &format!("{line}\n");
                open = Some(block);
            }
            (None, Some(language)) => {
                let (language, text) = (language.to_owned(), String::new());
                open = Some(Block { language, text, stated: stated.take() });
            }
            // "Before (40 lines):"; empty lines between do not matter.
            (None, None) if line.is_empty() => {}
            (None, None) => {
                let count =
                    line.split_once(" lines)").and_then(|(start, _)| start.rsplit_once('('));
                stated = count.and_then(|(_, count)| count.parse().ok());
            }
        }
    }
    blocks
}

/// Builds a file of C or C++ with every warning an error, and without a linker unless it is one of
/// a whole program.
fn build(name: &str, text: &str, compiler: &[&str], whole: bool) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let source = folder.join(name);
    let built = source.with_extension("built");
    fs::write(&source, text).expect("writable");
    let mut command = Command::new(compiler[0]);
    command.args(&compiler[1..]).args(["-O2", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]);
    command.arg("-I").arg(Path::new(ROOT).join("capi/include")).arg("-o").arg(&built).arg(&source);
    command.args(if whole { ["-pthread"] } else { ["-c"] });
    let output = command.output().expect("it starts");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name}: {errors}\n{text}");
    built
}

fn need_compilers() -> bool {
    skip::need_native("the compilers of this machine")
        && skip::need_program("gcc")
        && skip::need_program("g++")
}

#[test]
fn the_programs_in_c_and_cpp_are_programs() {
    if !need_compilers() {
        return;
    }
    for (name, expected) in [("sharing", 3), ("migrating", 4)] {
        let mut built = 0;
        for (index, block) in blocks(&page(&format!("{name}.md"))).iter().enumerate() {
            let (ending, compiler) = match block.language.as_str() {
                "c" => ("c", ["gcc", "-std=c11"]),
                "cpp" => ("cpp", ["g++", "-std=c++17"]),
                _ => continue,
            };
            build(&format!("{name}-{index}.{ending}"), &block.text, &compiler, false);
            built += 1;
        }
        assert_eq!(built, expected, "{name}.md");
    }
}

#[test]
fn the_latest_value_in_c_is_whole_and_never_older() {
    if !need_compilers() {
        return;
    }
    let page = page("sharing.md");
    let blocks = blocks(&page);
    let block = blocks.iter().find(|block| block.language == "c").expect("a block");
    let main = r#"
#include <pthread.h>
#include <stdio.h>

enum { VALUES = 200000 };
static struct latest latest;

static void *write_all(void *unused)
{
    for (int k = 1; k <= VALUES; k++) {
        struct state state = {k, -k};
        latest_write(&latest, &state);
    }
    return unused;
}

int main(void)
{
    struct state first = {0.0, 0.0};
    double before = 0.0;
    pthread_t writer;

    latest_init(&latest, &first);
    if (pthread_create(&writer, NULL, write_all, NULL) != 0)
        return 1;
    while (before < VALUES) {
        const struct state *state = latest_read(&latest);
        if (state->position != -state->velocity || state->position < before) {
            printf("%g and %g after %g\n", state->position, state->velocity, before);
            return 2;
        }
        before = state->position;
    }
    return pthread_join(writer, NULL) != 0;
}
"#;
    let text = format!("{}{main}", block.text);
    let built = build("latest.c", &text, &["gcc", "-std=c11"], true);
    let output = Command::new(built).output().expect("it starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

#[test]
fn the_programs_are_as_long_as_the_page_says() {
    let page = page("migrating.md");
    let sections: Vec<Vec<Block>> = page.split("\n## From ").skip(1).map(blocks).collect();
    let mut table = page.lines().filter(|line| line.starts_with("| [")).map(|line| {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        [2, 3].map(|column| cells.get(column).and_then(|cell| cell.parse::<usize>().ok()))
    });
    assert_eq!(sections.len(), 4);
    for section in &sections {
        let lines: Vec<usize> = section.iter().map(Block::lines).collect();
        for (block, lines) in section.iter().zip(&lines) {
            assert_eq!(block.stated, Some(*lines), "{}", block.text);
        }
        // The old program, and all of the new one.
        let [before, now] = [lines[0], lines[1..].iter().sum()];
        assert_eq!(table.next(), Some([Some(before), Some(now)]), "{lines:?}");
    }
    assert_eq!(table.next(), None);
}

//! `cargo xtask weigh [--build]`: what the tree weighs, before this design and now.
//!
//! Counts everything anew from the files that git tracks or could track; only what it counted at
//! commit 738e88f and what is aimed at are constants. With `--build` it builds the command from
//! nothing as well, which takes minutes. Changes nothing but `target/weigh`.

mod api;
mod build;
mod circles;
mod lines;
mod paths;
mod touched;

use crate::root;
use crate::tidy::{self, File};

/// One line of the table.
struct Row {
    what: &'static str,
    /// At 738e88f.
    before: &'static str,
    now: String,
    target: &'static str,
    /// What is counted, so that anyone can check it.
    rule: &'static str,
}

/// Circles of at most so many files are not listed.
const SMALL_CIRCLE: usize = 3;

/// Prints the table.
pub(crate) fn run(args: &[String]) -> Result<(), String> {
    let build = match args {
        [] => false,
        [flag] if flag == "--build" => true,
        _ => return Err(format!("weigh takes [--build], got {args:?}")),
    };
    let root = root::root();
    let files = tidy::read(&root)?;
    let mut rows = rows(&files);
    rows.push(Row {
        what: "size of the program",
        before: "11.9 MB",
        now: ["release", "dist"]
            .map(|profile| {
                let size = build::size_bytes(&root, profile).map(build::megabytes);
                format!("{profile} {}", size.unwrap_or_else(|| "not built".to_owned()))
            })
            .join(", "),
        target: "reported",
        rule: "target/PROFILE/punctual as the last build left it; before: release had thin LTO",
    });
    if build {
        rows.push(Row {
            what: "clean release build of the command",
            before: "138-157 s on 2 idle cores",
            now: build::clean(&root, "release")?,
            target: "<= 75 s",
            rule: "cargo build --locked --package punctual-cli --profile release, in target/weigh",
        });
    }
    rows.iter().for_each(show);
    Ok(())
}

/// All that is counted from the files.
fn rows(files: &[File]) -> Vec<Row> {
    let lines = lines::count(files);
    let library = api::library(files);
    let mut rows = vec![Row {
        what: "lines of code, of tests, of comments",
        before: "53427, 24638, 14075 (the design page: 54287, 26947, 13078)",
        now: format!("{}, {}, {}", lines.code, lines.tests, lines.comments),
        target: "reported",
        rule: "lines of Rust that are not blank; those of #[cfg(test)], tests, benches and \
               examples are tests",
    }];
    rows.extend(api_rows(&library));
    rows.push(circles_row(files));
    let described = touched::thread_descriptions(files);
    rows.push(Row {
        what: "descriptions of a loop's thread",
        before: "23 (the design page, without handles and results: 9)",
        now: listed(described.len(), &described),
        target: "1",
        rule: "structs with a field cpu or cpus and a field policy, priority or fifo",
    });
    rows.extend(programs(files));
    rows.push(touched_row(
        files,
        "files that name the load syscall",
        "11, 7 of them code (the design page: 10)",
        "syscall",
        &["os"],
    ));
    rows.push(touched_row(
        files,
        "files that name the format latmus",
        "13, 4 of them code (the design page: 14)",
        "latmus",
        &[],
    ));
    rows
}

fn api_rows(library: &api::Library) -> [Row; 3] {
    let errors = library.own.errors() + library.passed_on.errors();
    let counts = |own: usize, passed_on: usize, hidden: usize| {
        let hidden = if hidden == 0 { String::new() } else { format!(", {hidden} hidden") };
        format!("{own} + {passed_on} passed on{hidden}")
    };
    let api::Library { own, passed_on, hidden } = library;
    [
        Row {
            what: "public types of the library",
            before: "98 + 133 passed on (the design page: 97 + 124)",
            now: counts(own.types.len(), passed_on.types.len(), hidden.types.len()),
            target: "about 30",
            rule: "pub struct, enum, union, trait and type in punctual/src; passed on by `pub use` \
                   from core and os; hidden by #[doc(hidden)]",
        },
        Row {
            what: "public functions of the library",
            before: "244 + 301 passed on (the design page: 242 + 261)",
            now: counts(own.functions, passed_on.functions, hidden.functions),
            target: "about 110",
            rule: "pub fn in punctual/src, functions of its pub traits, and those of the types \
                   that are passed on",
        },
        Row {
            what: "public error types of the library",
            before: "13",
            now: errors.to_string(),
            target: "1",
            rule: "those of the public types whose names end in Error or Errno",
        },
    ]
}

fn circles_row(files: &[File]) -> Row {
    let circles = circles::all(files);
    let large: Vec<String> = circles
        .iter()
        .filter(|circle| circle.len() > SMALL_CIRCLE)
        .map(|circle| format!("{}: {}", circle.len(), circle.join(" ")))
        .collect();
    Row {
        what: "import circles of more than 3 files",
        before: "5: of 20, 14, 7, 5 and 4 files (the design page: 23, 14, 7, 6)",
        now: listed(large.len(), &large),
        target: "none",
        rule: "strongly connected files of one crate, by use and by paths from crate or super, \
               outside tests; a name that is passed on leads to where it is declared",
    }
}

/// One row for each example of the library.
fn programs(files: &[File]) -> Vec<Row> {
    let lengths: Vec<String> = files
        .iter()
        .filter(|file| file.path.starts_with("punctual/examples/"))
        .filter_map(|file| {
            let name = file.path.rsplit('/').next()?;
            Some(format!("{name} {}", lines::of_main(file)?))
        })
        .collect();
    vec![Row {
        what: "lengths of the library's examples",
        before: "act.rs 17, calendar.rs 61, each_ms.rs 30, follow.rs 32, sense.rs 11, \
                 synthesize.rs 28; a loop with a sample file: impossible",
        now: lengths.join(", "),
        target: "loop.rs <= 20, tasks.rs <= 35, calendar.rs <= 45",
        rule: "lines of code of main, head and closing brace included",
    }]
}

fn touched_row(
    files: &[File],
    what: &'static str,
    before: &'static str,
    word: &str,
    leave_out: &[&str],
) -> Row {
    let leave_out: Vec<&str> = leave_out.iter().copied().chain(["xtask"]).collect();
    let (all, product) = touched::files(files, word, &leave_out);
    Row {
        what,
        before,
        now: format!("{all}, {product} of them code"),
        target: "2 of code; a table or a test names the rest",
        rule: "files with that word, its own too; code is Rust outside tests and \
               testkit; recordings, xtask/ and, for system calls, os/ left out",
    }
}

/// A count and what was counted, one a line.
fn listed(count: usize, what: &[String]) -> String {
    let mut text = if count == 0 { "none".to_owned() } else { count.to_string() };
    for line in what {
        text += &format!("\n            {line}");
    }
    text
}

fn show(row: &Row) {
    let Row { what, before, now, target, rule } = row;
    println!(
        "{what}\n    before  {before}\n    now     {now}\n    target  {target}\n    rule    {rule}"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_counted_from_the_files() {
        let files = [
            File::new(
                "punctual/src/lib.rs",
                "//! A.\npub struct AError;\npub use punctual_os as os;\n",
            ),
            File::new("os/src/lib.rs", "pub struct Errno;\npub fn latmus() {}\n"),
            File::new("punctual/examples/loop.rs", "fn main() {\n}\n"),
        ];
        let shown: Vec<String> = rows(&files).into_iter().map(|row| row.now).collect();
        assert_eq!(
            shown,
            [
                "4, 2, 1",
                "1 + 1 passed on",
                "0 + 1 passed on",
                "2",
                "none",
                "none",
                "loop.rs 2",
                "0, 0 of them code",
                "1, 1 of them code"
            ]
        );
    }
}

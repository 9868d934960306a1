//! `cargo xtask weigh [--build]`: what the tree weighs, before this design and now.
//!
//! Counts everything anew from the files that git tracks or could track; only what it counted at
//! commit 738e88f and what is aimed at are constants. With `--build` it builds the command from
//! nothing as well, which takes minutes. Changes nothing but `target/weigh`.

mod api;
mod build;
mod circles;
mod descriptions;
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
    /// What was counted, one each, where a reader will want to see it.
    listed: Vec<String>,
    target: &'static str,
    /// What is counted, so that anyone can check it.
    rule: &'static str,
}

/// What names the experiment `noise`; the word alone also stands for the noise of a signal.
const NOISE: &[&str] = &[
    "mod noise",
    "noise::",
    "NoiseBody",
    "NoiseExperiment",
    "measure noise",
    "measure\\-noise",
    "measure-noise",
];
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
        listed: Vec::new(),
        target: "reported",
        rule: "target/PROFILE/punctual as the last build left it; before: release had thin LTO",
    });
    if build {
        rows.push(Row {
            what: "clean release build of the command",
            before: "138-157 s on 2 idle cores",
            now: build::clean(&root, "release")?,
            listed: Vec::new(),
            target: "<= 75 s",
            rule: "cargo build --locked --package punctual-cli --profile release, in target/weigh",
        });
    }
    print!("{}", table(&rows));
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
        listed: Vec::new(),
        target: "reported",
        rule: "lines of Rust that are not blank; those of #[cfg(test)], tests, benches and \
               examples are tests",
    }];
    rows.extend(api_rows(&library));
    rows.push(circles_row(files));
    let described = descriptions::of_threads(files);
    rows.push(Row {
        what: "descriptions of a loop's thread",
        before: "8 (the design page, by hand: 9)",
        now: count(described.len()),
        listed: described,
        target: "1",
        rule: descriptions::RULE,
    });
    rows.extend(programs(files));
    let [code, others, prose] = touched::outside(files, "lab/src/noise/", NOISE);
    rows.push(Row {
        what: "files that the experiment noise touches",
        before: "40, by the experiment executive",
        now: format!("{}, {code} of them code; and {prose} of prose", code + others),
        listed: Vec::new(),
        target: "<= 10",
        rule: "files outside lab/src/noise that name its module, its types or its command, tests \
               and generated pages included; prose is .md; xtask/ left out",
    });
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
            listed: Vec::new(),
            target: "about 30",
            rule: "pub struct, enum, union, trait and type in punctual/src; passed on by `pub use` \
                   from core and os; hidden by #[doc(hidden)], unless the root passes them on",
        },
        Row {
            what: "public functions of the library",
            before: "244 + 301 passed on (the design page: 242 + 261)",
            now: counts(own.functions, passed_on.functions, hidden.functions),
            listed: Vec::new(),
            target: "about 110",
            rule: "pub fn in punctual/src, functions of its pub traits, and those of the types \
                   that are passed on",
        },
        Row {
            what: "public error types of the library",
            before: "13",
            now: errors.to_string(),
            listed: Vec::new(),
            target: "1",
            rule: "those of the public types whose names end in Error or Errno",
        },
    ]
}

fn circles_row(files: &[File]) -> Row {
    let circles = circles::all(files);
    let large = circles.iter().filter(|circle| circle.len() > SMALL_CIRCLE);
    let (sizes, large): (Vec<String>, Vec<String>) = large
        .map(|circle| (circle.len().to_string(), format!("{}: {}", circle.len(), circle.join(" "))))
        .unzip();
    let sizes = sizes.join(", ");
    Row {
        what: "import circles of more than 3 files",
        before: "5: 20, 14, 7, 5, 4 files (the design page: 23, 14, 7, 6)",
        now: if large.is_empty() { count(0) } else { format!("{}: {sizes} files", large.len()) },
        listed: large,
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
        listed: Vec::new(),
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
        listed: Vec::new(),
        target: "2 of code; a table or a test names the rest",
        rule: "files with that word, its own too; code is Rust outside tests and \
               testkit; recordings, xtask/ and, for system calls, os/ left out",
    }
}

fn count(count: usize) -> String {
    if count == 0 { "none".to_owned() } else { count.to_string() }
}

/// The rows as a table in Markdown, then how each is counted and what was counted.
fn table(rows: &[Row]) -> String {
    let mut text = "| | before | now | target |\n|---|---|---|---|\n".to_owned();
    for Row { what, before, now, target, .. } in rows {
        text += &format!("| {what} | {before} | {now} | {target} |\n");
    }
    text += "\nHow each is counted:\n\n";
    for Row { what, rule, listed, .. } in rows {
        text += &format!("- {what}: {rule}\n");
        for line in listed {
            text += &format!("  - {line}\n");
        }
    }
    text
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
                "0, 0 of them code; and 0 of prose",
                "0, 0 of them code",
                "1, 1 of them code"
            ]
        );
    }

    #[test]
    fn the_table_is_markdown_with_the_rules_below() {
        let row = Row {
            what: "circles",
            before: "5",
            now: count(0),
            listed: vec!["2: a b".to_owned()],
            target: "none",
            rule: "by use",
        };
        let shown = table(&[row]);
        assert!(shown.starts_with("| | before | now | target |\n|---|---|---|---|\n"), "{shown}");
        assert!(shown.contains("\n| circles | 5 | none | none |\n"), "{shown}");
        assert!(shown.ends_with("\n- circles: by use\n  - 2: a b\n"), "{shown}");
    }
}

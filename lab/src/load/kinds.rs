//! The table of loads, and one file for each of them; `gears` is a part of `linuxcnc`.
//!
//! A new load is its file and its row here: names, help, errors and units come from the row.

mod cache;
mod cpu;
mod disk;
mod fork;
pub(super) mod gears;
mod linuxcnc;
mod memory;
mod net;
pub(super) mod stress_ng;
mod syscall;
mod timer;

use super::row::{LoadRow, Prepare, Start};

pub(crate) use cpu::Polygons;

/// Every load; those that need nothing installed first, in the order of `all`.
pub static LOADS: [LoadRow; 12] = [
    cpu::ROW,
    cache::ROW,
    memory::ROW,
    fork::ROW,
    disk::ROW,
    net::ROW,
    timer::ROW,
    syscall::ROW,
    disk::HEAVY,
    net::HEAVY,
    linuxcnc::ROW,
    stress_ng::ROW,
];

/// The load of this name.
pub(super) fn find(name: &str) -> Option<&'static LoadRow> {
    LOADS.iter().find(|row| row.name == name)
}

/// The row of a load that is a process of ours, and how that sets it up.
pub(super) fn own(name: &str) -> Option<(&'static LoadRow, Prepare)> {
    find(name).and_then(|row| match row.start {
        Start::Own(prepare) | Start::Heavy(prepare) => Some((row, prepare)),
        Start::Parts(_) | Start::Program(_) => None,
    })
}

/// The names that `--load` takes, as a person writes them: `none, cpu, …, stress-ng:"ARGS"`.
pub fn names() -> String {
    let names = LOADS.iter().map(|row| match row.args {
        Some(args) => format!("{}:{args}", row.name),
        None => row.name.to_owned(),
    });
    std::iter::once("none".to_owned()).chain(names).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documentation_has_the_table() {
        let text = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/measuring.md"));
        let section = text.split("\n## Loads\n").nth(1).expect("a section of loads");
        let section = section.split("\n## ").next().expect("its text");
        let documented: Vec<&str> =
            section.lines().filter(|line| line.starts_with("| `")).collect();
        assert_eq!(documented.len(), LOADS.len(), "{documented:?}");
        for (row, line) in LOADS.iter().zip(documented) {
            let name = row.args.map_or(row.name.to_owned(), |args| format!("{}:{args}", row.name));
            assert!(line.starts_with(&format!("| `{name}` |")), "{name}: {line}");
            assert!(line.contains(&format!("{}/s", row.unit)), "{}: {line}", row.unit);
        }
    }

    #[test]
    fn names_are_words_and_each_is_there_once() {
        for (at, row) in LOADS.iter().enumerate() {
            // One that is heavy is called as the one that has a limit.
            let word = row.name.strip_suffix(":heavy").unwrap_or(row.name);
            assert!(word.chars().all(|c| c.is_ascii_lowercase() || c == '-'), "{}", row.name);
            assert_eq!(word != row.name, matches!(row.start, Start::Heavy(_)), "{}", row.name);
            assert!(LOADS.iter().any(|row| row.name == word), "{word}");
            assert!(!["all", "none"].contains(&row.name));
            assert!(LOADS[..at].iter().all(|earlier| earlier.name != row.name), "{}", row.name);
            assert!(!row.help.is_empty() && !row.unit.is_empty() && !row.help.ends_with('.'));
        }
    }
}

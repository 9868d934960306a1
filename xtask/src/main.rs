//! What a developer of punctual runs beside cargo: `cargo xtask SUBCOMMAND`.
//!
//! One subcommand, one file; this page is their list. Nothing here is part of what users install.
#![forbid(unsafe_code)]

mod arm64;
mod attack;
mod debian;
mod fuzz;
mod install;
mod licences;
mod man;
mod metadata;
mod msrv;
mod package;
mod peers;
mod process;
mod root;
mod schema;
mod test;
mod tidy;
mod versus;
mod vm;

use std::process::ExitCode;

/// Runs a subcommand with its arguments.
type Run = fn(&[String]) -> Result<(), String>;

/// Every subcommand: name, arguments, what it does, what runs it.
const SUBCOMMANDS: &[(&str, &str, &str, Run)] = &[
    ("test", "[--install]", "all that must hold; with --install, Debian packages first", test::run),
    ("tidy", "[--lower]", "style, words, layers and documents of the tree", tidy::run),
    ("licences", "", "licence and reason of each dependency", licences::run),
    ("msrv", "", "no locked dependency wants a newer Rust than the workspace says", msrv::run),
    ("package", "", "the library's crates can be published, no other can", package::run),
    ("schema", "[--update]", "docs/schema-2.json against what the tool prints", schema::run),
    ("man", "[--update]", "docs/man against what the tool writes", man::run),
    ("fuzz", "[--install] [SECONDS] [TARGET…]", "each fuzz target for SECONDS (600)", fuzz::run),
    (
        "attack",
        "[--seconds N] [--seed N] [NAME…]",
        "faults, signals, neighbours, links, inputs (120 s)",
        attack::run,
    ),
    (
        "install",
        "[--prefix DIR] […]",
        "the program, man pages, completions, systemd unit; the C library",
        install::run,
    ),
    ("arm64", "[--install] [TEST-ARGUMENT…]", "AArch64's tests, under emulation", arm64::run),
    ("vm", "[--install] [SCENARIO…]", "other kernels and PTP clocks, in guests of QEMU", vm::run),
    ("peers", "[OPTION…]", "ways to wait against other crates and programs", peers::run),
    ("versus", "[BLOCKS] [SECONDS]", "punctual and cyclictest in alternating blocks", versus::run),
];

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let name = args.first().map_or("help", String::as_str);
    if ["help", "--help", "-h"].contains(&name) {
        print!("{}", usage());
        return ExitCode::SUCCESS;
    }
    let Some((_, _, _, run)) = SUBCOMMANDS.iter().find(|(known, ..)| *known == name) else {
        eprint!("xtask: no subcommand {name:?}\n\n{}", usage());
        return ExitCode::from(2);
    };
    match run(&args[1..]) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask {name}: {error}");
            ExitCode::FAILURE
        }
    }
}

fn usage() -> String {
    let mut usage = "Usage: cargo xtask SUBCOMMAND\n\n".to_owned();
    for (name, args, what, _) in SUBCOMMANDS {
        usage += &format!("  {:40} {what}\n", format!("{name} {args}"));
    }
    usage
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usage_lists_each_subcommand_once() {
        for (name, ..) in SUBCOMMANDS {
            assert_eq!(usage().matches(&format!("\n  {name} ")).count(), 1, "{name}");
        }
    }
}

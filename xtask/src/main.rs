//! What a developer of punctual runs beside cargo: `cargo xtask SUBCOMMAND`.
//!
//! One subcommand, one file; this page is their list. Nothing here is part of what users install.
#![forbid(unsafe_code)]

mod arm64;
mod attack;
mod bare;
mod debian;
mod fuzz;
mod generated;
mod install;
mod licences;
mod msrv;
mod package;
mod packages;
mod process;
mod test;
mod tidy;
mod versus;
mod vm;
mod workspace;

use std::process::ExitCode;

/// A row of the usage, and the function behind it.
struct Subcommand {
    name: &'static str,
    /// Its arguments, as the usage shows them; empty for none.
    args: &'static str,
    /// One line of the usage.
    summary: &'static str,
    /// Gets the arguments after the name.
    run: fn(&[String]) -> Result<(), String>,
}

/// Every subcommand, in the order of the usage.
const SUBCOMMANDS: &[Subcommand] = &[
    Subcommand {
        name: "test",
        args: "[--install]",
        summary: "all that must hold; with --install, Debian packages first",
        run: test::run,
    },
    Subcommand {
        name: "tidy",
        args: "[--lower]",
        summary: "style, words, layers and documents of the tree",
        run: tidy::run,
    },
    Subcommand {
        name: "licences",
        args: "",
        summary: "licence and reason of each dependency",
        run: licences::run,
    },
    Subcommand {
        name: "msrv",
        args: "",
        summary: "no locked dependency wants a newer Rust than the workspace says",
        run: msrv::run,
    },
    Subcommand {
        name: "package",
        args: "",
        summary: "the library's crates can be published, no other can",
        run: package::run,
    },
    Subcommand {
        name: "schema",
        args: "[--update]",
        summary: "docs/schema-2.json against what the tool prints",
        run: generated::schema,
    },
    Subcommand {
        name: "man",
        args: "[--update]",
        summary: "docs/man against what the tool writes",
        run: generated::man,
    },
    Subcommand {
        name: "fuzz",
        args: "[--install] [SECONDS] [TARGET…]",
        summary: "each fuzz target for SECONDS (600)",
        run: fuzz::run,
    },
    Subcommand {
        name: "attack",
        args: "[--seconds N] [--seed N] [NAME…]",
        summary: "faults, signals, neighbours, links, inputs (120 s)",
        run: attack::run,
    },
    Subcommand {
        name: "install",
        args: "[--prefix DIR] […]",
        summary: "the program, man pages, completions, systemd unit; the C library",
        run: install::run,
    },
    Subcommand {
        name: "arm64",
        args: "[--install] [TEST-ARGUMENT…]",
        summary: "AArch64's tests, under emulation",
        run: arm64::run,
    },
    Subcommand {
        name: "vm",
        args: "[--install] [SCENARIO…]",
        summary: "other kernels and PTP clocks, in guests of QEMU",
        run: vm::run,
    },
    Subcommand {
        name: "peers",
        args: "[OPTION…]",
        summary: "ways to wait against other crates and programs",
        run: versus::peers,
    },
    Subcommand {
        name: "versus",
        args: "[BLOCKS] [SECONDS]",
        summary: "punctual and cyclictest in alternating blocks",
        run: versus::versus,
    },
];

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let name = args.first().map_or("help", String::as_str);
    if ["help", "--help", "-h"].contains(&name) {
        print!("{}", usage());
        return ExitCode::SUCCESS;
    }
    let Some(subcommand) = SUBCOMMANDS.iter().find(|known| known.name == name) else {
        eprint!("xtask: no subcommand {name:?}\n\n{}", usage());
        return ExitCode::from(2);
    };
    match (subcommand.run)(&args[1..]) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask {name}: {error}");
            ExitCode::FAILURE
        }
    }
}

fn usage() -> String {
    let mut usage = "Usage: cargo xtask SUBCOMMAND\n\n".to_owned();
    for Subcommand { name, args, summary, .. } in SUBCOMMANDS {
        usage += &format!("  {:40} {summary}\n", format!("{name} {args}"));
    }
    usage
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usage_lists_each_subcommand_once() {
        for Subcommand { name, .. } in SUBCOMMANDS {
            assert_eq!(usage().matches(&format!("\n  {name} ")).count(), 1, "{name}");
        }
    }
}

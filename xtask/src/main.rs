//! Commands that a developer of punctual runs beside cargo: `cargo xtask SUBCOMMAND`.
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
mod readme;
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
    /// More of its arguments, for `--help`; `None` where another program answers that.
    details: Option<&'static str>,
    /// Gets the arguments after the name.
    run: fn(&[String]) -> Result<(), String>,
}

impl Subcommand {
    /// The help that these arguments, which stand behind its name, ask for: `--help` or `-h` among
    /// them, before a `--`. `None` without that, and where another program answers.
    fn help_wanted(&self, args: &[String]) -> Option<String> {
        let mut own = args.iter().map(String::as_str).take_while(|arg| *arg != "--");
        let is_wanted = own.any(|arg| ["--help", "-h"].contains(&arg));
        self.details.filter(|_| is_wanted).map(|details| self.help(details))
    }

    /// The text that `--help` behind its name prints.
    fn help(&self, details: &str) -> String {
        let Self { name, args, summary, .. } = self;
        let gap = if details.is_empty() { "" } else { "\n" };
        let usage = format!("Usage: cargo xtask {name} {args}");
        format!("{}\n\n{summary}\n{gap}{details}", usage.trim_end())
    }
}

/// Every subcommand, in the order of the usage.
const SUBCOMMANDS: &[Subcommand] = &[
    Subcommand {
        name: "test",
        args: "[--install]",
        summary: "all that must hold; with --install, Debian packages first",
        details: Some(test::DETAILS),
        run: test::run,
    },
    Subcommand {
        name: "tidy",
        args: "[--lower]",
        summary: "style, words, layers and documents of the tree",
        details: Some(""),
        run: tidy::run,
    },
    Subcommand {
        name: "licences",
        args: "",
        summary: "licence and reason of each dependency",
        details: Some(""),
        run: licences::run,
    },
    Subcommand {
        name: "msrv",
        args: "",
        summary: "no locked dependency wants a newer Rust than the workspace says",
        details: Some(""),
        run: msrv::run,
    },
    Subcommand {
        name: "package",
        args: "",
        summary: "the library's crates can be published, no other can",
        details: Some(""),
        run: package::run,
    },
    Subcommand {
        name: "schema",
        args: "[--update]",
        summary: "docs/schema-2.json against what the tool prints",
        details: Some(""),
        run: generated::schema,
    },
    Subcommand {
        name: "man",
        args: "[--update]",
        summary: "docs/man against what the tool writes",
        details: Some(""),
        run: generated::man,
    },
    Subcommand {
        name: "fuzz",
        args: "[--install] [SECONDS] [TARGET…]",
        summary: "each fuzz target for SECONDS (600)",
        details: Some(""),
        run: fuzz::run,
    },
    Subcommand {
        name: "attack",
        args: "[--seconds N] [--seed N] [NAME…]",
        summary: "faults, signals, neighbours, links, inputs (120 s)",
        details: Some(""),
        run: attack::run,
    },
    Subcommand {
        name: "install",
        args: "[--library] [--prefix DIR] […]",
        summary: "the program, man pages, completions, systemd unit; the C library, or it alone",
        details: Some(install::DETAILS),
        run: install::run,
    },
    Subcommand {
        name: "arm64",
        args: "[--install] [TEST-ARGUMENT…]",
        summary: "AArch64's tests, under emulation",
        details: Some(""),
        run: arm64::run,
    },
    Subcommand {
        name: "vm",
        args: "[--install] [SCENARIO…]",
        summary: "other kernels and PTP clocks, in guests of QEMU",
        details: Some(""),
        run: vm::run,
    },
    Subcommand {
        name: "peers",
        args: "[OPTION…]",
        summary: "ways to wait against other crates and programs",
        details: None,
        run: versus::peers,
    },
    Subcommand {
        name: "versus",
        args: "[BLOCKS] [SECONDS]",
        summary: "punctual and cyclictest in alternating blocks",
        details: Some(""),
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
    if let Some(help) = subcommand.help_wanted(&args[1..]) {
        print!("{help}");
        return ExitCode::SUCCESS;
    }
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
    usage + "\n`cargo xtask SUBCOMMAND --help` says more of one.\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn help_wanted(name: &str, args: &[&str]) -> Option<String> {
        let subcommand = SUBCOMMANDS.iter().find(|known| known.name == name).unwrap();
        subcommand.help_wanted(&args.iter().map(|&arg| arg.to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn help_may_stand_anywhere_among_the_arguments() {
        for args in [&["--library", "--help"][..], &["--prefix", "/usr", "-h"], &["-h", "--dev"]] {
            assert_eq!(
                help_wanted("install", args),
                help_wanted("install", &["--help"]),
                "{args:?}"
            );
        }
        assert_eq!(help_wanted("install", &["--library"]), None);
        assert_eq!(help_wanted("arm64", &["--", "--help"]), None, "the tests' own");
        assert_eq!(help_wanted("peers", &["--help"]), None, "another program answers");
    }

    #[test]
    fn the_help_of_a_subcommand_says_what_it_takes() {
        let help = |wanted: &str| help_wanted(wanted, &["--help"]).unwrap();
        assert!(help("install").starts_with("Usage: cargo xtask install [--library] "));
        assert!(help("install").contains("\n  --destdir DIR "));
        assert!(help("test").contains("\n  --install  "));
        assert_eq!(help("msrv").lines().count(), 3);
        let forwards = SUBCOMMANDS.iter().filter(|known| known.details.is_none());
        assert_eq!(forwards.map(|known| known.name).collect::<Vec<_>>(), ["peers"]);
    }

    #[test]
    fn the_usage_lists_each_subcommand_once() {
        for Subcommand { name, .. } in SUBCOMMANDS {
            assert_eq!(usage().matches(&format!("\n  {name} ")).count(), 1, "{name}");
        }
    }
}

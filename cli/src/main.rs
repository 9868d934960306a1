//! `punctual`: the contents page. Parses the command line, runs one subcommand, exits.
//!
//! The only crate that prints, exits and parses arguments. One subcommand is one file in `command`.
//! Exit 0: fine. 1: a limit or claim failed, or the watchdog ended the run. 2: could not run, or
//! unreadable input. 3: nothing failed, and not everything is decided. 130, 143, 129: SIGINT,
//! SIGTERM or SIGHUP ended it early, with results.
#![forbid(unsafe_code)]

mod args;
mod campaign;
mod command;
mod comparison;
mod experiment;
mod format;
mod live;
mod measuring;
mod output;
mod pages;
mod papers;
mod parse;
mod program;
mod progress;
mod question;
mod recorded;
mod settings;
mod stored;
mod subcommand;
mod terminal;
mod unpacked;
mod unthrottled;
mod view;
mod writing;

use std::process::ExitCode;

use clap::Parser;
use punctual_engine::spawn;
use punctual_os::{memory, signal};

use command::Cli;
use subcommand::Exit;

/// The stack of a thread that runs a command.
const STACK_BYTES: usize = 8 << 20;
/// With less in the first thread a command runs in one of its own: the parser of arguments alone
/// takes half a megabyte.
const STACK_BYTES_MIN: u64 = 4 << 20;

fn main() -> ExitCode {
    let words: Vec<String> =
        std::env::args_os().map(|w| w.to_string_lossy().into_owned()).collect();
    if let Some(code) = command::as_helper(words.get(1..).unwrap_or_default()) {
        return code;
    }
    let limit = memory::stack_limit_bytes().ok().flatten();
    let Some(bytes) = limit.filter(|&bytes| bytes < STACK_BYTES_MIN) else {
        return command_line();
    };
    match spawn::with_stack("punctual-main", STACK_BYTES, command_line) {
        Ok(thread) => {
            signal::leave_to_others();
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        }
        Err(why) => {
            output::message(&format!(
                "{why}; the stack limit of {} KiB needs one: raise it (ulimit -s {})",
                bytes >> 10,
                STACK_BYTES_MIN >> 10
            ));
            ExitCode::from(2)
        }
    }
}

/// Parses the command line and does what it says.
fn command_line() -> ExitCode {
    // A file beyond a limit is an error to report, not an end. Where that cannot be had, it ends.
    let _as_it_is = signal::catch_file_size();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(why) => return refuse(&why),
    };
    match cli.run() {
        Ok(Exit::Fine) => ended(signal::stop_signal(), ExitCode::SUCCESS),
        Ok(Exit::Failed) => ExitCode::from(1),
        // What was interrupted is undecided for that.
        Ok(Exit::Undecided) => ended(signal::stop_signal(), ExitCode::from(3)),
        Ok(Exit::Status(status)) => ExitCode::from(status),
        Err(why) => {
            output::message(&format!("{why:#}"));
            ExitCode::from(2)
        }
    }
}

/// The exit status of a command that wrote what it has: that of a signal where one ended it early.
fn ended(signal: Option<i32>, otherwise: ExitCode) -> ExitCode {
    signal.map_or(otherwise, |signal| {
        ExitCode::from(u8::try_from(signal).map_or(u8::MAX, |signal| signal.saturating_add(128)))
    })
}

/// Help and version go out as they are; anything else is one line and exit 2.
fn refuse(why: &clap::Error) -> ExitCode {
    if !why.use_stderr() {
        // Nothing is left to do when even the help cannot be written.
        let _unwritable = why.print();
        return ExitCode::SUCCESS;
    }
    if why.kind() == clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        let _unwritable = why.print();
        return ExitCode::from(2);
    }
    let text = why.to_string();
    let mut paragraphs = text.split("\n\n").map(|part| {
        part.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
    });
    let mut line = paragraphs.next().unwrap_or_default();
    // What was meant, where clap knows it; its other hints are about values that look like options.
    let tips = paragraphs.filter_map(|part| part.strip_prefix("tip: ").map(ToOwned::to_owned));
    for tip in tips.filter(|tip| tip.contains("similar")) {
        line += &format!("; {}", tip.split(" tip: ").next().unwrap_or_default());
    }
    output::message(line.strip_prefix("error: ").unwrap_or(&line));
    ExitCode::from(2)
}

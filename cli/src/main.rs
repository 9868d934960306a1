//! `punctual`: the contents page. Parses the command line, runs one subcommand, exits.
//!
//! The only crate that prints, exits and parses arguments. One subcommand is one file in `command`.
//! Exit 0: fine. 1: a limit or claim failed. 2: could not run, or unreadable input.
#![forbid(unsafe_code)]

mod args;
mod cli;
mod command;
mod comparison;
mod exit;
mod experiment;
mod format;
mod output;
mod pages;
mod parse;
mod progress;
mod report;
mod stored;
mod view;

use std::process::ExitCode;

use clap::Parser;

use cli::{Cli, Command};
use exit::Exit;

fn main() -> ExitCode {
    let words: Vec<String> =
        std::env::args_os().map(|w| w.to_string_lossy().into_owned()).collect();
    if words.get(1).is_some_and(|word| word == experiment::launcher::WORD) {
        return command::load::run(&words[2..]);
    }
    // A file beyond a limit is an error to report, not an end.
    punctual_os::signal::ignore_file_size();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(why) => return refuse(&why),
    };
    let done = output::Trust::set(&cli.trust_directory).and_then(|()| run(cli.command));
    match done {
        Ok(Exit::Fine) => ExitCode::SUCCESS,
        Ok(Exit::Failed) => ExitCode::from(1),
        Err(why) => {
            output::message(&format!("{why:#}"));
            ExitCode::from(2)
        }
    }
}

/// Runs the subcommand.
fn run(command: Command) -> anyhow::Result<Exit> {
    match command {
        Command::Check(args) => command::check::run(&args),
        Command::Measure { experiment } => command::measure::run(&experiment),
        Command::Soak(args) => command::soak::run(&args),
        Command::Run(args) => command::run::run(&args),
        Command::Analyse(args) => command::analyse::run(&args),
        Command::Report(args) => command::report::run(&args),
        Command::Compare(args) => command::compare::run(&args),
        Command::Baseline { command } => command::baseline::run(&command),
        Command::Export(args) => command::export::run(&args),
        Command::Impact { model } => command::impact::run(&model),
        Command::Facts(args) => command::facts::run(&args),
        Command::Capture(args) => command::capture::run(&args),
        Command::Schema => command::schema::run(),
        Command::Man(args) => command::man::run(&args),
    }
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
    let lines: Vec<&str> =
        text.lines().map(str::trim).take_while(|line| !line.is_empty()).collect();
    let line = lines.join(" ");
    output::message(line.strip_prefix("error: ").unwrap_or(&line));
    ExitCode::from(2)
}

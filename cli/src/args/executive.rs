//! What `punctual measure executive` takes.

use std::path::PathBuf;

use clap::Args;

use crate::parse;

/// `punctual measure executive`.
#[derive(Debug, Args)]
pub(crate) struct ExecutiveArgs {
    /// The CPU to measure on [default: an isolated one, else the last that is allowed]
    #[arg(long, value_name = "CPU")]
    pub(crate) cpu: Option<String>,
    /// How long to measure, in all; each number of tasks has an equal share of it, warm and cold.
    /// Three turns of each design are measured however long they take: about 10 s with all numbers
    #[arg(long, default_value = "30s", allow_hyphen_values = true, value_parser = parse::duration)]
    pub(crate) duration: parse::Duration,
    /// The numbers of tasks, all due at once: up to 100000 each
    #[arg(
        long,
        value_name = "N,…",
        value_delimiter = ',',
        default_value = "1,10,50,100,1000,10000,100000",
        value_parser = clap::value_parser!(u32).range(1..=100_000)
    )]
    pub(crate) tasks: Vec<u32>,
    /// Write the result as JSON to FILE, or to standard output alone for '-'
    #[arg(long, value_name = "FILE|-")]
    pub(crate) json: Option<PathBuf>,
}

//! What `punctual export` takes.

use std::path::PathBuf;

use clap::Args;

/// `punctual export`.
#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// A result: a directory of 'punctual check', a result.json, or a sample file of punctual's
    pub(crate) result: PathBuf,
    #[command(flatten)]
    pub(crate) format: FormatArgs,
    /// With --csv or --parquet: the histogram of each run instead of every sample
    #[arg(long, conflicts_with_all = ["hdr", "openmetrics"])]
    pub(crate) histogram: bool,
    /// Write to FILE, which is replaced once all is written, or to standard output for '-'
    #[arg(short, long, value_name = "FILE|-", default_value = "-")]
    pub(crate) output: PathBuf,
    /// Take the cold cycles into histograms made from samples, as 'punctual analyse' does
    #[arg(long)]
    pub(crate) keep_cold: bool,
}

/// The format of `punctual export`.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct FormatArgs {
    /// A table with a header line, for pandas and spreadsheets: one row a cycle
    #[arg(long)]
    pub(crate) csv: bool,
    /// The same table, typed and packed, for DuckDB and pandas
    #[arg(long)]
    pub(crate) parquet: bool,
    /// An HdrHistogram log (V2, compressed), one tagged histogram of lateness a run
    #[arg(long)]
    pub(crate) hdr: bool,
    /// OpenMetrics text for Prometheus, such as node_exporter's text files: lateness in seconds
    #[arg(long)]
    pub(crate) openmetrics: bool,
}

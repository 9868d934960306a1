//! What `punctual export` takes.

use std::path::PathBuf;

use clap::Args;

/// `punctual export`.
#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// A result: a directory of 'punctual check', a result.json, or a sample file
    pub(crate) result: PathBuf,
    #[command(flatten)]
    pub(crate) format: FormatArgs,
    /// With --csv or --parquet: write the histogram of each run instead of every sample
    #[arg(long, conflicts_with_all = ["hdr", "openmetrics"])]
    pub(crate) histogram: bool,
    /// Write to FILE, which is replaced once everything is written; '-' is standard output
    #[arg(short, long, value_name = "FILE|-", default_value = "-")]
    pub(crate) output: PathBuf,
    /// Include the cold cycles in histograms made from samples, as 'punctual analyse --keep-cold'
    /// does
    #[arg(long)]
    pub(crate) keep_cold: bool,
}

/// The format of `punctual export`.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct FormatArgs {
    /// A table with a header line, for pandas and spreadsheets: one row per cycle
    #[arg(long)]
    pub(crate) csv: bool,
    /// The same table as Parquet, for DuckDB and pandas
    #[arg(long)]
    pub(crate) parquet: bool,
    /// An HdrHistogram log (V2, compressed): one tagged histogram of lateness per run
    #[arg(long)]
    pub(crate) hdr: bool,
    /// OpenMetrics text for Prometheus, for instance for node_exporter's textfile collector:
    /// lateness in seconds
    #[arg(long)]
    pub(crate) openmetrics: bool,
}

//! Why an export failed.

/// Why an export ended before its end.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The writer failed.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// The Parquet library refused.
    #[error("Parquet: {0}")]
    Parquet(#[from] ::parquet::errors::ParquetError),
    /// The HdrHistogram library refused.
    #[error("HdrHistogram: {0}")]
    Hdr(String),
    /// An instant or a span of a sample is out of the range of CLOCK_MONOTONIC.
    #[error("run \"{run}\", cycle {cycle}: its release, wake or interval is beyond ±2⁶³ ns")]
    Range {
        /// The run, by its plain name.
        run: String,
        /// k of the sample.
        cycle: u64,
    },
    /// More releases were missed in a row than a table may have rows for.
    #[error(
        "run \"{run}\", before cycle {cycle}: {missed} releases were missed in a row; at most \
        10000000 can be written as rows"
    )]
    Gap {
        /// The run, by its plain name.
        run: String,
        /// k of the sample after them.
        cycle: u64,
        /// Missed releases.
        missed: u64,
    },
}

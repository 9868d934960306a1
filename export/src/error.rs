//! Why nothing, or not all, could be written.

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
    /// An instant or a span of a sample is none that CLOCK_MONOTONIC can have.
    #[error(
        "run \"{run}\", cycle {cycle}: its release, wake or interval is beyond ±2⁶³ ns: no such \
         time"
    )]
    Range {
        /// The run, by its plain name.
        run: String,
        /// k of the sample.
        cycle: u64,
    },
    /// More releases were missed at once than a table takes rows for.
    #[error(
        "run \"{run}\", before cycle {cycle}: {missed} releases missed in a row, which would be as \
         many rows; 10000000 are the most"
    )]
    Gap {
        /// The run, by its plain name.
        run: String,
        /// k of the sample after them.
        cycle: u64,
        /// How many.
        missed: u64,
    },
}

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
}

//! Samples and histograms in the formats of others: CSV, Parquet, HdrHistogram's log, OpenMetrics.
//!
//! A crate of its own, so that only the command line depends on these formats' libraries. Every
//! writer takes any [`std::io::Write`], streams, and holds no more than one row group. Opens
//! nothing, prints nothing, reads no clock; never writes NaN or infinity.
#![forbid(unsafe_code)]

pub mod csv;
pub mod distribution;
mod error;
pub mod hdr;
pub mod name;
pub mod openmetrics;
pub mod parquet;
pub mod row;

pub use error::ExportError;

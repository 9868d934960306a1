//! Tables as Parquet files, for DuckDB, Polars, Arrow and all others.
//!
//! Parquet 1.0 pages with the encodings of version 2 (DELTA_BINARY_PACKED, RLE) and no compression:
//! packed differences are as small as what a general compressor makes of plain numbers. One row
//! group is held at a time ([`GROUP_ROWS`] rows).

mod group;
mod histograms;
mod samples;
mod schema;

#[cfg(test)]
mod tests;

pub use group::GROUP_ROWS;
pub use histograms::histograms;
pub use samples::ParquetSamples;
pub use schema::FileMetadata;

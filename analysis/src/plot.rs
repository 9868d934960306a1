//! What a page draws, as plain data: bins, percentile curves, thinned time series.
//!
//! For the views, which only map these numbers to pixels. Streaming where samples come in, and of
//! bounded size whatever their number. Draws nothing, knows no pixel.

pub mod bins;
pub mod curve;
pub mod envelope;
pub mod thinned;

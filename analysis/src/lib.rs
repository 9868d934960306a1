//! Analysis of recorded cycles: pure, in one streaming pass and in memory that does not grow with
//! the number of samples.
//!
//! No clock, no file, no printing, nothing unsafe: bytes and samples come in, plain data goes out.
//! A number that its evidence does not support is `None`, never a guess.
//!
//! | module | what it holds |
//! |---|---|
//! | [`release`] | how late a release was, ran or missed: the one definition |
//! | [`recording`] | one run: [`recording::Recording`] → [`recording::RunFigures`] |
//! | [`summary`], [`quantile`], [`histogram`] | one distribution: moments, ranks, modes |
//! | [`interval`], [`scatter`] | a value between its ends; how far values lie apart, less stalls |
//! | [`gridfit`] | least squares over (k, wake), exact peak-to-peak, robust line; counting k |
//! | [`jitters`] | every measure that goes by the name "jitter", each under its own |
//! | [`claim`] | levels L0–L2, adjusted for dependence; requested claims: planned, judged |
//! | [`campaign`] | many recordings of the same loops as one: what a soak keeps |
//! | [`compare`] | two runs compared: rates, quantiles, cycles needed |
//! | [`extremes`] | level L3: a model's extrapolation to rarer cycles, or why it is refused |
//! | [`folding`], [`repetition`] | what repeats in a series, and among late cycles |
//! | [`verdict`], [`limit`] | what it is good for; whether it passes a gate |
//! | [`rng`] | repeatable pseudo-random numbers, for resampling |
//! | [`imported`] | what the recording of another program holds and does not record |
//! | [`plain`] | text from elsewhere, made safe to show |
//! | [`plot`] | what a page draws: bins, percentile curves, thinned time series |
//! | [`quantity`], [`impact`] | quantities with dimensions; what a lateness does to a machine |
#![forbid(unsafe_code)]

pub mod campaign;
pub mod claim;
pub mod compare;
pub mod extremes;
pub mod folding;
pub mod gridfit;
pub mod histogram;
pub mod impact;
pub mod imported;
pub mod interval;
pub mod jitters;
pub mod limit;
pub mod plain;
pub mod plot;
pub mod quantile;
pub mod quantity;
pub mod recording;
pub mod release;
pub mod repetition;
pub mod rng;
pub mod scatter;
mod special;
pub mod summary;
pub mod verdict;

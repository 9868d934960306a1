//! Charts as pictures: marks on two axes → lines, shapes and words → SVG or PNG.
//!
//! Pure: no file, no clock, no printing. Knows pixels and nothing of measurements; what is drawn
//! was computed elsewhere. Colours are the reader's to choose in an SVG inside a page, fixed in a
//! file of its own, and each series differs from the next also by its dashes.
#![forbid(unsafe_code)]

pub mod axis;
pub mod chart;
mod font;
mod labels;
pub mod png;
pub mod scene;
pub mod svg;

//! A part of the page, and what all parts are made from.

use crate::pages::Page;
use crate::view::plots::Axes;

/// A part of the page, with its place in the contents.
pub(super) struct Section {
    /// Unique in the page; what the contents link to.
    pub(super) id: &'static str,
    /// Its heading.
    pub(super) heading: &'static str,
    /// What is in it.
    pub(super) body: String,
}

/// Everything that sections are made from.
pub(super) struct Source<'a> {
    pub(super) page: &'a Page,
    pub(super) axes: Axes,
}

//! Sources of a page's sections: its results, and the axes that plots share.

use punctual_document::{Block, Section};

use crate::pages::{GRID_MAX, Page, Shown};
use crate::view::plots::Axes;

/// The results and axes that sections are made from.
pub(super) struct Source<'a> {
    /// The results, as the page has them.
    pub(super) page: &'a Page,
    /// The axes that the plots of a kind share.
    pub(super) axes: Axes,
    /// True where sections are made for the files of their plots, rather than for the page.
    is_for_files: bool,
}

impl<'a> Source<'a> {
    /// For the sections of a page.
    pub(super) fn of(page: &'a Page) -> Self {
        Self { page, axes: Axes::of(page), is_for_files: false }
    }

    /// For the files of a page's plots: those of every result, however many there are.
    pub(super) fn for_files(page: &'a Page) -> Self {
        Self { is_for_files: true, ..Self::of(page) }
    }

    /// The results, where there are few enough for details of each: one or two; for files all.
    pub(super) fn few(&self) -> &[Shown] {
        let results = &self.page.results;
        if results.len() > 2 && !self.is_for_files { &[] } else { results }
    }

    /// The results whose plots stand on the page: of many the first, whose tables and sentences
    /// stand on pages of their own.
    pub(super) fn drawn(&self) -> &[Shown] {
        match self.few() {
            [] => &self.page.results[..self.page.results.len().min(GRID_MAX)],
            few => few,
        }
    }

    /// True where only plots of each result stand on the page.
    pub(super) fn has_plots_alone(&self) -> bool {
        self.few().is_empty()
    }

    /// The id of a plot of the result at this place, unique in the page.
    pub(super) fn figure_id(&self, id: &str, at: usize) -> String {
        if self.page.results.len() > 1 { format!("{id}-of-{}", at + 1) } else { id.to_owned() }
    }

    /// The words before those of a result, where there are several: "before: ".
    pub(super) fn prefix(&self, shown: &Shown) -> String {
        if self.page.results.len() > 1 { format!("{}: ", shown.label) } else { String::new() }
    }

    /// The words behind a name in a result, where there are several: ", before".
    pub(super) fn suffix(&self, shown: &Shown) -> String {
        if self.page.results.len() > 1 { format!(", {}", shown.label) } else { String::new() }
    }
}

/// A section, where there is something in it.
pub(super) fn some(id: &'static str, heading: &'static str, blocks: Vec<Block>) -> Option<Section> {
    (!blocks.is_empty()).then_some(Section { id, heading, blocks })
}

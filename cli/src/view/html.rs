//! The page of one, two or many results: one file, offline, readable without scripts.
//!
//! HTML from a [`Page`] and nothing else. Every word that came from a result is escaped; scripts
//! and styles are this program's own, and the page's policy lets no other run, nor anything load.

mod compared;
mod data;
mod facts;
mod figures;
mod head;
mod markup;
mod overview;
mod parts;
mod plots;
mod policy;
mod provenance;
mod section;
mod setup;
mod tables;
mod waits;

use crate::pages::Page;
use crate::view::plots::Axes;
use markup::{escape, fill};
use section::{Section, Source};

const FRAME: &str = include_str!("html/assets/page.html");
const STYLE: &str = include_str!("html/assets/style.css");
const SCRIPT: &str = include_str!("html/assets/script.js");
const UPLOT: &str = include_str!("html/assets/vendor/uPlot.iife.min.js");
const UPLOT_STYLE: &str = include_str!("html/assets/vendor/uPlot.min.css");

/// The sections in their order; each is there when it has something to say. What later pages add
/// (causes, papers) is a line here.
const SECTIONS: &[fn(&Source<'_>) -> Option<Section>] = &[
    overview::section,
    head::verdicts,
    compared::section,
    head::warnings,
    provenance::imported,
    provenance::campaign,
    figures::section,
    parts::section,
    parts::drawn,
    waits::section,
    plots::histograms,
    plots::curves,
    plots::times,
    tables::worst,
    tables::loads,
    tables::claims,
    tables::limits,
    parts::behind,
    setup::section,
    facts::section,
];

/// The whole page.
pub(crate) fn page(page: &Page) -> String {
    let source = Source { page, axes: Axes::of(page) };
    let sections: Vec<Section> = SECTIONS.iter().filter_map(|section| section(&source)).collect();
    let contents: String = sections
        .iter()
        .map(|section| format!("<li><a href=\"#{}\">{}</a></li>", section.id, section.heading))
        .collect();
    let body: String = sections
        .iter()
        .map(|section| {
            let Section { id, heading, body } = section;
            format!(
                "<section id=\"{id}\" aria-labelledby=\"{id}-h\"><h2 id=\"{id}-h\">{heading}</h2>\
                 {body}</section>\n"
            )
        })
        .collect();
    let style = [UPLOT_STYLE, STYLE].concat();
    let title = head::title(page);
    fill(
        FRAME,
        &[
            ("policy", &policy::of(&[UPLOT, SCRIPT], &[&style])),
            ("title", &escape(&title)),
            ("style", &style),
            ("head", &head::of(page)),
            ("contents", &contents),
            ("sections", &body),
            ("data", &data::json(&source)),
            ("uplot", UPLOT),
            ("script", SCRIPT),
            ("version", env!("CARGO_PKG_VERSION")),
        ],
    )
}

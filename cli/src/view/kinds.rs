//! What of a result is shown alike in text and in HTML: tables and sentences.
//!
//! For kinds of results that have no runs: each has a file here and a row in [`of`].

mod accuracy;
pub(crate) mod executive;
mod noise;
mod outside;
mod reproduced;
mod response;
mod saturation;
mod timer;
mod trials;
mod tune;
mod work;

use crate::format;
use crate::report::measured::{Measured, ResponseBody};
use crate::report::reproduced::PaperFigure;
use crate::report::{Body, Load};

/// A part of what is shown.
pub(crate) enum Part {
    /// A table.
    Table(Table),
    /// A sentence.
    Words(String),
}

/// A table of words. A heading that begins with `>` is that of numbers; the first column heads its
/// row.
pub(crate) struct Table {
    /// What is in it.
    pub(crate) caption: String,
    /// Over the columns.
    pub(crate) heads: Vec<String>,
    /// The rows, a cell for each column.
    pub(crate) rows: Vec<Vec<String>>,
    /// What fits a terminal, where that is not all of it.
    pub(crate) brief: Option<Brief>,
}

/// A part of a table: what of it a terminal has, as far as there is room.
pub(crate) struct Brief {
    /// Its first columns.
    pub(crate) columns: usize,
    /// These rows, each once, the most telling first; they are shown in the order of the table.
    pub(crate) rows: Vec<usize>,
}

/// All parts of a result, under one heading.
pub(crate) struct Shown {
    /// Unique on a page.
    pub(crate) id: &'static str,
    /// The heading.
    pub(crate) heading: &'static str,
    /// The parts, in order.
    pub(crate) parts: Vec<Part>,
}

/// What is shown of a result; `None` for kinds with runs, which have pages of their own.
pub(crate) fn of(body: &Body) -> Option<Shown> {
    match body {
        Body::Measured(measured) => Some(of_measured(measured)),
        Body::Reproduce(body) => Some(reproduced::shown(body)),
        Body::Tune(body) => Some(tune::shown(body)),
        _ => None,
    }
}

/// What only a page shows of a result with runs: a terminal is too small for it.
pub(crate) fn on_page_alone(body: &Body) -> Option<Shown> {
    tune::found(body.headline()?)
}

/// Answers to stimuli as traces, to be drawn.
pub(crate) fn traces(body: &ResponseBody) -> Vec<PaperFigure> {
    response::traces(body)
}

/// What is shown of an experiment of the lab.
fn of_measured(measured: &Measured) -> Shown {
    match measured {
        Measured::Executive(body) => executive::shown(body),
        Measured::Noise(body) => noise::shown(body),
        Measured::Accuracy(body) => accuracy::shown(body),
        Measured::Timer(body) => timer::shown(body),
        Measured::Work(body) => work::shown(body),
        Measured::Saturation(body) => saturation::shown(body),
        Measured::Response(body) => response::shown(body),
        Measured::Stimulate(body) => outside::stimulated(body),
        Measured::Respond(body) => outside::responded(body),
        Measured::Trials(body) => trials::shown(body),
    }
}

/// A load and its rate.
fn rate(load: &Load) -> String {
    let note = load.note.as_ref().map(|note| format!(" ({note})")).unwrap_or_default();
    match load.rate {
        Some(rate) => format!("load {} {} {}{note}", load.name, format::rate(rate), load.unit),
        None => format!("load {} reported no rate{note}", load.name),
    }
}

impl Part {
    /// A table with these headings.
    fn table(caption: &str, heads: &[&str], rows: Vec<Vec<String>>) -> Self {
        let heads = heads.iter().map(|&head| head.to_owned()).collect();
        Self::Table(Table { caption: caption.to_owned(), heads, rows, brief: None })
    }

    /// The same, of which a terminal has as many rows, from the first on, and columns as fit.
    fn folded(caption: &str, heads: &[&str], rows: Vec<Vec<String>>) -> Self {
        let brief = Some(Brief { columns: heads.len(), rows: (0..rows.len()).collect() });
        let heads = heads.iter().map(|&head| head.to_owned()).collect();
        Self::Table(Table { caption: caption.to_owned(), heads, rows, brief })
    }
}

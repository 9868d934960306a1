//! Answers to stimuli as an oscilloscope shows them: a figure of averaged rising edges, and
//! of single ones.
//!
//! For `measure response` and for the paper that measured with one.

use punctual_lab::response::StageRow;

use super::reproduced::PaperFigure;

/// The averaged edges of these stages, each with its name.
pub(crate) fn averaged<'s>(
    id: &str,
    what: &str,
    stages: impl IntoIterator<Item = (String, &'s StageRow)>,
) -> PaperFigure {
    let (x, y) = ("µs after the stimulus", "share of answers that have started");
    let figure = PaperFigure::new(id, what, x, y);
    stages.into_iter().fold(figure, |figure, (name, stage)| {
        let Some(trace) = &stage.trace else { return figure };
        let at = |(point, share): (usize, &f64)| [point as f64 * trace.step_ns / 1e3, *share];
        let name = match trace.beyond {
            0 => name,
            late => format!("{name} ({late} later)"),
        };
        let end_us = trace.step_ns * trace.started.len() as f64 / 1e3;
        let single = trace.single_ns.iter().map(|ns| *ns as f64 / 1e3);
        let single = single.filter(|us| *us <= end_us).map(|us| [us, 0.0]);
        let edge = trace.started.iter().enumerate().map(at).collect();
        figure.line(&name, edge).rug("single ones", single.collect())
    })
}

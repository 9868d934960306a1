//! One section of several results: plots of the same title beside each other, on the same axes.

use punctual_document::{Block, Figure, Row, Section};
use punctual_report::Body;

use super::source::{Source, some};
use crate::pages::Shown;
use crate::view::plots::{ONE_OF_TWO, row};

/// One section of all results that have such a one. A plot of the first has those of the same
/// title of the others beside it; what else the others have comes behind.
pub(super) fn joined(
    source: &Source<'_>,
    section: fn(&Body) -> Option<Section>,
) -> Option<Section> {
    let side = |(at, shown)| Some((Side { at, source, shown }, section(&shown.report.body)?));
    let mut sides = source.drawn().iter().enumerate().filter_map(side);
    let (first, Section { id, heading, blocks: own }) = sides.next()?;
    let (mut plots, mut rest): (Vec<SidePlot>, Vec<Block>) = (Vec::new(), Vec::new());
    for (side, section) in sides {
        for block in section.blocks {
            match plots_alone(block) {
                Ok(figures) => plots.extend(figures.into_iter().map(|figure| side.plot(figure))),
                Err(block) => rest.push(side.named(block)),
            }
        }
    }
    let mut blocks: Vec<Block> = Vec::new();
    for block in own {
        match plots_alone(block) {
            Ok(figures) => {
                let with_others = |figure: Figure| {
                    let mut like = vec![first.plot(figure)];
                    let title = like[0].title.clone();
                    like.extend(plots.extract_if(.., |plot| plot.title == title));
                    on_one_scale(like)
                };
                blocks.extend(row(figures.into_iter().flat_map(with_others).collect()));
            }
            Err(block) => blocks.push(first.named(block)),
        }
    }
    blocks.extend(row(plots.into_iter().map(SidePlot::block).collect()));
    blocks.extend(rest);
    if source.has_plots_alone() {
        blocks.retain(Block::is_plot);
        let (drawn, results) = (source.drawn().len(), source.page.results.len());
        if drawn < results && !blocks.is_empty() {
            let text = format!("plots of the first {drawn} of {results} results");
            blocks.push(Block::muted(text));
        }
    }
    some(id, heading, blocks)
}

/// One result of several.
struct Side<'s> {
    at: usize,
    source: &'s Source<'s>,
    shown: &'s Shown,
}

/// A plot of one result, and the title that it has in each.
struct SidePlot {
    title: String,
    figure: Figure,
}

impl SidePlot {
    fn block(self) -> Block {
        Block::Figure(Box::new(self.figure))
    }
}

impl Side<'_> {
    /// A block, with whose it is.
    fn named(&self, mut block: Block) -> Block {
        let prefix = self.source.prefix(self.shown);
        match &mut block {
            Block::Table(table) => table.caption.insert_str(0, &prefix),
            Block::Words(words) => words.text.insert_str(0, &prefix),
            _ => {}
        }
        block.figures_mut().into_iter().for_each(|figure| self.name(figure));
        block
    }

    fn plot(&self, mut figure: Figure) -> SidePlot {
        let title = figure.title.clone();
        self.name(&mut figure);
        SidePlot { title, figure }
    }

    fn name(&self, figure: &mut Figure) {
        let prefix = self.source.prefix(self.shown);
        figure.id = self.source.figure_id(&figure.id, self.at);
        figure.title.insert_str(0, &prefix);
        figure.chart.title.insert_str(0, &prefix);
    }
}

/// The plots of a block that has plots alone; any other block as it is.
fn plots_alone(block: Block) -> Result<Vec<Figure>, Block> {
    let is_figure = |block: &Block| matches!(block, Block::Figure(_));
    let figure = |block| if let Block::Figure(figure) = block { Some(*figure) } else { None };
    match block {
        Block::Figure(figure) => Ok(vec![*figure]),
        Block::Row(Row::Plots, groups) if groups.iter().flatten().all(is_figure) => {
            Ok(groups.into_iter().flatten().filter_map(figure).collect())
        }
        other => Err(other),
    }
}

/// Plots of one title on the same axes, each as one of a row; one alone as it is.
fn on_one_scale(mut plots: Vec<SidePlot>) -> Vec<Block> {
    let charts = || plots.iter().map(|plot| &plot.figure.chart);
    let x = charts().map(|chart| chart.x.clone()).reduce(|joined, next| joined.joined(&next));
    let y = charts().map(|chart| chart.y.clone()).reduce(|joined, next| joined.joined(&next));
    if let (Some(x), Some(y), true) = (x, y, plots.len() > 1) {
        for plot in &mut plots {
            let chart = &mut plot.figure.chart;
            (chart.x, chart.y) = (chart.x.joined(&x), chart.y.joined(&y));
            chart.size.0 = ONE_OF_TWO.0;
        }
    }
    plots.into_iter().map(SidePlot::block).collect()
}

#[cfg(test)]
mod tests {
    use punctual_plot::axis::Axis;
    use punctual_plot::chart::Chart;

    use super::*;

    fn plot(title: &str, high: f64) -> SidePlot {
        let axis = |high: f64| Axis::even("x", 0.0, high, 4, |at| at.to_string());
        let chart = Chart {
            title: title.to_owned(),
            titled: false,
            description: String::new(),
            size: (880.0, 340.0),
            x: axis(high),
            y: axis(1.0),
            series: Vec::new(),
            notes: Vec::new(),
        };
        let Block::Figure(figure) = Figure::still(title.to_owned(), chart) else { unreachable!() };
        SidePlot { title: title.to_owned(), figure: *figure }
    }

    #[test]
    fn plots_that_are_compared_have_the_same_axes_and_half_the_width() {
        let ends = |plots: Vec<SidePlot>| -> Vec<(f64, f64)> {
            let blocks = on_one_scale(plots);
            let figures = blocks.iter().flat_map(Block::figures);
            figures.map(|figure| (figure.chart.x.high, figure.chart.size.0)).collect()
        };
        let two = ends(vec![plot("loss", 5.0), plot("loss", 20.0)]);
        assert_eq!(two, [(20.0, ONE_OF_TWO.0); 2]);
        assert_eq!(ends(vec![plot("loss", 5.0)]), [(5.0, 880.0)]);
    }

    #[test]
    fn only_blocks_of_nothing_but_plots_are_plots_alone() {
        let two = row(vec![plot("a", 1.0).block(), plot("b", 1.0).block()]).expect("two");
        assert_eq!(plots_alone(two).map(|figures| figures.len()).ok(), Some(2));
        assert!(plots_alone(Block::words("left")).is_err());
        assert!(row(Vec::new()).is_none());
    }
}

//! One section of several results: plots of the same title beside each other, on the same axes.

use punctual_document::{Block, Figure, Row, Section};
use punctual_report::Body;

use super::source::Source;
use crate::view::plots::ONE_OF_TWO;

/// One section of all results that have such a one. A plot of the first has those of the same
/// title of the others beside it; what else the others have comes behind.
pub(super) fn joined(
    source: &Source<'_>,
    section: fn(&Body) -> Option<Section>,
) -> Option<Section> {
    let own = source.few().iter().enumerate();
    let mut sides: Vec<Side> = own
        .filter_map(|(at, shown)| {
            let Section { id, heading, blocks } = section(&shown.report.body)?;
            Some(Side { id, heading, at, prefix: source.prefix(shown), blocks })
        })
        .collect();
    let others = sides.split_off(1.min(sides.len()));
    let mut first = sides.pop()?;
    let mut plots: Vec<SidePlot> = Vec::new();
    let mut rest: Vec<Block> = Vec::new();
    for mut side in others {
        for block in std::mem::take(&mut side.blocks) {
            match taken_apart(block) {
                Ok(figures) => plots.extend(figures.into_iter().map(|own| side.plot(source, own))),
                Err(block) => rest.push(side.named(source, block)),
            }
        }
    }
    let mut blocks: Vec<Block> = Vec::new();
    for block in std::mem::take(&mut first.blocks) {
        match taken_apart(block) {
            Ok(figures) => {
                let row = figures.into_iter().flat_map(|figure| {
                    let own = first.plot(source, figure);
                    let like = plots.extract_if(.., |plot| plot.title == own.title);
                    let same: Vec<SidePlot> = like.collect();
                    on_one_scale(std::iter::once(own).chain(same).collect())
                });
                blocks.extend(row_of(row.collect()));
            }
            Err(block) => blocks.push(first.named(source, block)),
        }
    }
    blocks.extend(row_of(plots.into_iter().map(|plot| plot.figure).collect()));
    blocks.extend(rest);
    Some(Section { id: first.id, heading: first.heading, blocks })
}

/// The section of one result of several.
struct Side {
    id: &'static str,
    heading: &'static str,
    /// Which result it is of.
    at: usize,
    /// What stands before its words.
    prefix: String,
    blocks: Vec<Block>,
}

/// A plot of one result, and the title that it has in each.
struct SidePlot {
    title: String,
    figure: Figure,
}

impl Side {
    /// Its words, with whose they are.
    fn named(&self, source: &Source<'_>, mut block: Block) -> Block {
        match &mut block {
            Block::Table(table) => table.caption.insert_str(0, &self.prefix),
            Block::Words(words) => words.text.insert_str(0, &self.prefix),
            _ => {}
        }
        for figure in block.figures_mut() {
            self.name(source, figure);
        }
        block
    }

    fn plot(&self, source: &Source<'_>, mut figure: Figure) -> SidePlot {
        let title = figure.title.clone();
        self.name(source, &mut figure);
        SidePlot { title, figure }
    }

    fn name(&self, source: &Source<'_>, figure: &mut Figure) {
        figure.id = source.figure_id(&figure.id, self.at);
        figure.title.insert_str(0, &self.prefix);
        figure.chart.title.insert_str(0, &self.prefix);
    }
}

/// The plots of a block of nothing else; any other block as it is.
fn taken_apart(block: Block) -> Result<Vec<Figure>, Block> {
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

/// Plots of one title on the same axes, each as one of two.
fn on_one_scale(plots: Vec<SidePlot>) -> Vec<Figure> {
    let mut figures: Vec<Figure> = plots.into_iter().map(|plot| plot.figure).collect();
    if figures.len() > 1 {
        let charts = || figures.iter().map(|figure| &figure.chart);
        let x = charts().map(|chart| chart.x.clone()).reduce(|all, next| all.joined(&next));
        let y = charts().map(|chart| chart.y.clone()).reduce(|all, next| all.joined(&next));
        for figure in &mut figures {
            let chart = &mut figure.chart;
            for (axis, joined) in [(&mut chart.x, &x), (&mut chart.y, &y)] {
                if let Some(joined) = joined {
                    *axis = axis.joined(joined);
                }
            }
            chart.size.0 = ONE_OF_TWO.0;
        }
    }
    figures
}

fn row_of(mut figures: Vec<Figure>) -> Option<Block> {
    match figures.len() {
        0 => None,
        1 => figures.pop().map(|figure| Block::Figure(Box::new(figure))),
        _ => {
            let groups = figures.into_iter().map(|figure| vec![Block::Figure(Box::new(figure))]);
            Some(Block::Row(Row::Plots, groups.collect()))
        }
    }
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
        let figures = on_one_scale(vec![plot("loss", 5.0), plot("loss", 20.0)]);
        let ends: Vec<f64> = figures.iter().map(|figure| figure.chart.x.high).collect();
        assert_eq!(ends, [20.0, 20.0]);
        assert!(figures.iter().all(|figure| figure.chart.size.0 == ONE_OF_TWO.0));
        let alone = on_one_scale(vec![plot("loss", 5.0)]);
        assert_eq!((alone[0].chart.x.high, alone[0].chart.size.0), (5.0, 880.0));
    }

    #[test]
    fn only_blocks_of_nothing_but_plots_are_taken_apart() {
        let row = row_of(vec![plot("a", 1.0).figure, plot("b", 1.0).figure]).expect("two");
        assert_eq!(taken_apart(row).map(|figures| figures.len()).ok(), Some(2));
        assert!(taken_apart(Block::words("left")).is_err());
        assert!(row_of(Vec::new()).is_none());
    }
}

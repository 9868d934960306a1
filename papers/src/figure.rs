//! A figure that a paper draws, drawn from today's data beside what the paper has.
//!
//! Plain data without a serialised form: results have a counterpart, of which charts are made.

use punctual_analysis::histogram::HistogramView;
use punctual_analysis::plot::bins;
use punctual_lab::response::StageRow;
use punctual_lab::timer::TimerRow;

/// A figure of a paper: its axes, what the paper has, what its formula gives, what was measured.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Drawing {
    /// Paper and figure: "nist.fig5".
    pub id: String,
    /// Its caption.
    pub title: String,
    /// The horizontal axis, with its unit.
    pub x: String,
    /// The vertical axis, with its unit.
    pub y: String,
    /// True for an axis with a log scale, x and y.
    pub log: [bool; 2],
    /// Names at 0, 1, 2 and so on of the horizontal axis; empty where it has numbers.
    pub names: Vec<String>,
    /// Traces below each other, as an oscilloscope shows them: their names, from top to bottom.
    pub channels: Vec<String>,
    /// True where it stands beside the figure before it, on the same scales.
    pub beside: bool,
    /// The series, in the order of the legend.
    pub series: Vec<Series>,
}

/// A series of a paper's figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// "published", "formula: …", "here: …".
    pub name: String,
    /// The mark that its points are drawn as.
    pub style: Style,
    /// Its points, x and y in the units of the axes.
    pub points: Vec<[f64; 2]>,
    /// A name for each point; empty where they have none.
    pub labels: Vec<String>,
    /// The number of its channel, where there are channels.
    pub channel: usize,
}

/// The mark that the points of a series are drawn as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Its points joined by a line.
    Line,
    /// Single points.
    Points,
    /// A small mark on the horizontal axis for the x of each.
    Rug,
    /// The columns of a histogram: the y of each point holds from its x to that of the next point;
    /// the last point only ends the last column.
    Steps,
    /// Columns up from the horizontal axis.
    Bars,
    /// A box for each three points of one x: its lowest, middle and highest.
    Range,
    /// A band with a line through it, by three points of each x: lowest, middle and highest.
    Band,
    /// A trace that was seen many times, in its channel: y is the share of them that are up from
    /// its x to that of the next point.
    Density,
}

/// The lowest, middle and highest at one x.
pub type RangeAt = (f64, [f64; 3]);

impl Drawing {
    /// One without series.
    pub fn new(id: impl Into<String>, title: &str, x: &str, y: &str) -> Self {
        let (id, title, x, y) = (id.into(), title.to_owned(), x.to_owned(), y.to_owned());
        Self { id, title, x, y, ..Self::default() }
    }

    /// On log scales, x and y.
    pub fn log(self, log: [bool; 2]) -> Self {
        Self { log, ..self }
    }

    /// With names along the horizontal axis: the first is at 0.
    pub fn named(self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { names: names.into_iter().map(Into::into).collect(), ..self }
    }

    /// With traces in channels, from top to bottom.
    pub fn channels(self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { channels: names.into_iter().map(Into::into).collect(), ..self }
    }

    /// Beside the figure before it, on the same scales.
    pub fn beside(self) -> Self {
        Self { beside: true, ..self }
    }

    /// With the series that was added last in this channel.
    pub fn in_channel(mut self, channel: usize) -> Self {
        if let Some(series) = self.series.last_mut() {
            series.channel = channel;
        }
        self
    }

    /// With columns, each with what stands above it.
    pub fn bars(self, name: &str, bars: impl IntoIterator<Item = ([f64; 2], String)>) -> Self {
        let (points, labels) = bars.into_iter().unzip();
        self.with(name, Style::Bars, points, labels)
    }

    /// With a box for each of these.
    pub fn ranges(self, name: &str, ranges: impl IntoIterator<Item = RangeAt>) -> Self {
        self.with(name, Style::Range, in_threes(ranges), Vec::new())
    }

    /// With a band.
    pub fn band(self, name: &str, band: impl IntoIterator<Item = RangeAt>) -> Self {
        self.with(name, Style::Band, in_threes(band), Vec::new())
    }

    /// With traces that were seen many times: the share that is up from each x on.
    pub fn density(self, name: &str, shares: Vec<[f64; 2]>) -> Self {
        self.with(name, Style::Density, shares, Vec::new())
    }

    /// With a line; none where there is no point.
    pub fn line(self, name: &str, points: Vec<[f64; 2]>) -> Self {
        self.with(name, Style::Line, points, Vec::new())
    }

    /// With small marks on the horizontal axis.
    pub fn rug(self, name: &str, points: Vec<[f64; 2]>) -> Self {
        self.with(name, Style::Rug, points, Vec::new())
    }

    /// With the columns of a histogram: counts between edges, of which there is one more.
    pub fn steps(self, name: &str, edges: &[f64], counts: &[u64]) -> Self {
        let counts = counts.iter().chain(counts.last()).map(|&count| count as f64);
        let points = edges.iter().zip(counts).map(|(edge, count)| [*edge, count]).collect();
        self.with(name, Style::Steps, points, Vec::new())
    }

    /// With single points, each with its name.
    pub fn points<'p>(
        self,
        name: &str,
        points: impl IntoIterator<Item = ([f64; 2], &'p str)>,
    ) -> Self {
        let (points, labels) = points.into_iter().map(|(at, label)| (at, label.to_owned())).unzip();
        self.with(name, Style::Points, points, labels)
    }

    /// With histograms of lateness in the same bins, each with its name: x in µs.
    pub fn histograms(self, named: &[(&str, &HistogramView)]) -> Self {
        let named = named.iter().map(|(name, view)| ((*name).to_owned(), *view)).collect();
        beside_each_other(vec![(self, named)]).remove(0)
    }

    fn with(
        mut self,
        name: &str,
        style: Style,
        points: Vec<[f64; 2]>,
        labels: Vec<String>,
    ) -> Self {
        if !points.is_empty() {
            self.series.push(Series { name: name.to_owned(), style, points, labels, channel: 0 });
        }
        self
    }
}

/// Three points for each.
fn in_threes(ends: impl IntoIterator<Item = RangeAt>) -> Vec<[f64; 2]> {
    ends.into_iter().flat_map(|(x, ends)| ends.map(|y| [x, y])).collect()
}

/// Histograms of lateness in figures beside each other, all in the same bins: x in µs. Each figure
/// comes with its own, and their names.
pub fn beside_each_other(figures: Vec<(Drawing, Vec<(String, &HistogramView)>)>) -> Vec<Drawing> {
    let views: Vec<&HistogramView> =
        figures.iter().flat_map(|(_, named)| named).map(|(_, view)| *view).collect();
    let bins = bins(&views, &[]);
    let edges_us: Vec<f64> = bins.edges_ns.iter().map(|ns| ns / 1e3).collect();
    let mut counts = bins.counts.iter();
    let figure = |(at, (figure, named)): (usize, (Drawing, Vec<(String, _)>))| {
        let drawn =
            named.into_iter().zip(&mut counts).fold(figure, |figure, ((name, _), counts)| {
                figure.steps(&format!("here: {name}"), &edges_us, counts)
            });
        Drawing { beside: at > 0, ..drawn }
    };
    figures.into_iter().enumerate().map(figure).collect()
}

/// The averaged edges of these stages, each with its name.
pub fn averaged<'s>(
    id: &str,
    title: &str,
    stages: impl IntoIterator<Item = (String, &'s StageRow)>,
) -> Drawing {
    let (x, y) = ("µs after the stimulus", "share of answers that have started");
    let figure = Drawing::new(id, title, x, y);
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

/// Quantiles of the lateness: x is one wake of so many, y the lateness that this share of wakes
/// exceeds, ns.
pub fn quantiles(row: &TimerRow) -> Vec<[f64; 2]> {
    let ns = &row.lateness_ns;
    let shares = [
        (1.0, ns.min),
        (2.0, ns.p50),
        (10.0, ns.p90),
        (100.0, ns.p99),
        (1e3, ns.p99_9),
        (row.n as f64, ns.max),
    ];
    shares.into_iter().filter_map(|(one_in, ns)| Some([one_in, ns?])).collect()
}

#[cfg(test)]
mod tests {
    use punctual_analysis::histogram::Histogram;

    use super::*;

    fn view(values: &[i64]) -> HistogramView {
        let mut histogram = Histogram::new();
        values.iter().for_each(|ns| histogram.push(*ns));
        HistogramView::of(&histogram)
    }

    #[test]
    fn histograms_have_the_same_bins_and_all_that_was_counted() {
        let (idle, loaded) = (view(&[2_000, 2_000, 5_000]), view(&[90_000, 4_000, 2_100]));
        let figure = Drawing::new("a.fig1", "times", "µs", "wakes");
        let drawn = figure.clone().histograms(&[("idle", &idle), ("loaded", &loaded)]);
        let edges = |at: usize| drawn.series[at].points.iter().map(|at| at[0]).collect::<Vec<_>>();
        assert_eq!(edges(0), edges(1));
        assert!(edges(0)[0] <= 2.0 && edges(0).last().is_some_and(|us| *us > 90.0));
        for series in &drawn.series {
            let columns = &series.points[..series.points.len() - 1];
            assert_eq!(columns.iter().map(|at| at[1]).sum::<f64>(), 3.0, "{series:?}");
        }
        assert!(figure.histograms(&[("none", &view(&[]))]).series.is_empty());
    }
}

//! A figure of a paper, drawn from today's data beside what the paper has.
//!
//! For the page.

use punctual_analysis::plain::concise;
use punctual_analysis::plot::{AxisExtent, extent};
use punctual_document::Block;
use punctual_lab::timer::{StampStore, TimerOutcome, TimerPath, TimerRow};
use punctual_plot::axis::Axis;
use punctual_plot::chart::{
    BandPoint, Bar, Chart, ChartSeries, DensityCell, Mark, NamedPoint, QuantileBox,
};
use punctual_report::Body;
use punctual_report::measured::Measured;
use punctual_report::reproduced::{Drawn, FigureSeries, PaperFigure};

use super::{ALONE, ONE_OF_TWO, beside};
use crate::format;
use crate::pages::Shown;
use crate::view::kinds;

/// The figures of papers, and the traces of answers, of these results; those that stand beside each
/// other in a row. Each has a name for files and pages: a result may call its figures anything.
pub(crate) fn drawn(results: &[Shown]) -> Vec<Block> {
    let mut laid: Vec<(usize, PaperFigure)> = Vec::new();
    for (at, shown) in results.iter().enumerate() {
        let figures = match &shown.report.body {
            Body::Reproduce(body) => body.figures.clone(),
            Body::Measured(Measured::Response(body)) => kinds::traces(body),
            Body::Measured(Measured::Timer(body)) => in_a_row(&body.timer),
            _ => continue,
        };
        let is_paper = matches!(shown.report.body, Body::Reproduce(_));
        for mut figure in figures {
            if !is_paper && results.len() > 1 {
                figure.what.insert_str(0, &format!("{}: ", shown.label));
            }
            let earlier = laid.iter().rposition(|(_, earlier)| earlier.id == figure.id);
            match earlier {
                // One that an earlier result has is laid over it.
                Some(place) if is_paper => laid[place].1.overlay(&figure, &shown.label),
                // Traces would hide each other: they stand beside those.
                Some(place) => laid.insert(place + 1, (at, PaperFigure { beside: true, ..figure })),
                None => laid.push((at, figure)),
            }
        }
    }
    laid.chunk_by(|_, (_, next)| next.beside).filter_map(blocks).collect()
}

/// Consecutive wakes by a sleep, a figure for each period with a series for each work behind.
fn in_a_row(timer: &TimerOutcome) -> Vec<PaperFigure> {
    let mut figures: Vec<PaperFigure> = Vec::new();
    let is_own = |row: &&TimerRow| {
        (row.path, row.store) == (TimerPath::Sleep, StampStore::Array) && !row.series.is_empty()
    };
    for row in timer.rows.iter().filter(is_own) {
        let period = format::period(row.period_ns);
        let id = format!("timer.{}", row.period_ns);
        let points = row.series.iter().flatten().zip(1u32..);
        let series = FigureSeries {
            name: format!("{} behind", row.background.name()),
            drawn: Drawn::Points,
            points: points.map(|(ns, at)| [f64::from(at), *ns as f64 / 1e3]).collect(),
            labels: Vec::new(),
            channel: 0,
        };
        match figures.iter_mut().find(|figure| figure.id == id) {
            Some(figure) => figure.series.push(series),
            None => figures.push(PaperFigure {
                id,
                what: format!("consecutive wakes by a sleep each {period}"),
                x: "consecutive wake".to_owned(),
                y: "lateness, µs".to_owned(),
                series: vec![series],
                ..PaperFigure::default()
            }),
        }
    }
    figures
}

/// The figures of a row, each with which result it is of. `None` where nothing can be drawn.
fn blocks(row: &[(usize, PaperFigure)]) -> Option<Block> {
    let figures: Vec<&PaperFigure> = row.iter().map(|(_, figure)| figure).collect();
    let drawn = |((at, figure), chart): (&(usize, PaperFigure), Option<Chart>)| {
        Some((name(&figure.id, *at), chart?))
    };
    beside(row.iter().zip(charts(&figures)).filter_map(drawn).collect())
}

/// A name of letters, figures and dashes, whatever the result calls it; `at`: which result.
fn name(id: &str, at: usize) -> String {
    let safe = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    let id: String = id.chars().take(ID_MOST).map(safe).collect();
    format!("{id}-{}", at + 1)
}

/// The most characters of a figure's name.
const ID_MOST: usize = 40;
/// The least room between the outermost points and the frame, of the range.
const ROOM: f64 = 0.06;
/// The most names and channels of a figure: more cannot be read.
const NAMES_MOST: usize = 40;
/// The height of a channel, and of all around the channels, pixels.
const CHANNEL: f64 = 78.0;
const AROUND: f64 = 110.0;
/// From the middle of a channel to each end of its trace.
const SWING: f64 = 0.36;
/// The share of a channel that a line of a density takes, and the least that is seen of a rise.
const LEVEL: f64 = 0.06;
const RISE_MIN: f64 = 0.12;
/// The share of a name's room that all its columns take together, in (0, 1).
const COLUMNS: f64 = 0.8;
/// The most numbers and letters of a tick before a power of ten stands for them.
const PLAIN_MOST: f64 = 1e6;

/// The range of an axis, and what lies beyond it.
#[derive(Clone, Copy, Debug)]
struct Range {
    low: f64,
    high: f64,
}

impl Range {
    fn joined(self, other: Self) -> Self {
        Self { low: self.low.min(other.low), high: self.high.max(other.high) }
    }
}

/// Which values of a series lie on an axis; a few that would stretch it are left beyond its end,
/// where a series is of many.
fn series_extent(series: &FigureSeries, axis: usize, is_log: bool) -> Option<AxisExtent> {
    let values = || series.points.iter().map(|at| at[axis]);
    let may_be_cut = match series.drawn {
        Drawn::Points => true,
        Drawn::Line | Drawn::Band => axis == 1,
        Drawn::Rug | Drawn::Steps | Drawn::Bars | Drawn::Range | Drawn::Density => false,
    };
    if may_be_cut {
        return extent(values(), is_log);
    }
    let shown = || values().filter(|value| value.is_finite() && (!is_log || *value > 0.0));
    Some(AxisExtent { low: shown().reduce(f64::min)?, high: shown().reduce(f64::max)?, beyond: 0 })
}

/// The ranges of x and y of a figure; `None` where it has nothing to be drawn.
fn ranges(figure: &PaperFigure) -> Option<[Range; 2]> {
    let range = |axis: usize| {
        // A rug has no height.
        let own = figure.series.iter().filter(|series| axis == 0 || series.drawn != Drawn::Rug);
        let extents = own.filter_map(|series| series_extent(series, axis, figure.log[axis]));
        extents.map(|own| Range { low: own.low, high: own.high }).reduce(Range::joined)
    };
    Some([range(0)?, range(1).unwrap_or(Range { low: 0.0, high: 1.0 })])
}

/// The charts of figures that stand in one row, on the same scales; `None` for one of which nothing
/// was measured and nothing published that can be drawn.
fn charts(row: &[&PaperFigure]) -> Vec<Option<Chart>> {
    let own: Vec<Option<[Range; 2]>> = row.iter().map(|figure| ranges(figure)).collect();
    let joined = own.iter().flatten().copied().reduce(|a, b| [0, 1].map(|at| a[at].joined(b[at])));
    let width = if own.iter().flatten().count() > 1 { ONE_OF_TWO.0 } else { ALONE.0 };
    let chart = |(figure, own): (&&PaperFigure, &Option<[Range; 2]>)| {
        own.as_ref()?;
        Some(chart(figure, joined?, width))
    };
    row.iter().zip(&own).map(chart).collect()
}

fn chart(figure: &PaperFigure, [x_range, y_range]: [Range; 2], width: f64) -> Chart {
    let has_bars = figure.series.iter().any(|series| series.drawn == Drawn::Bars);
    let names = |names: &[String]| names.iter().take(NAMES_MOST).cloned().collect::<Vec<_>>();
    let x = match figure.names.is_empty() {
        true => axis(&figure.x, x_range, figure.log[0], false),
        false => Axis::names(&figure.x, names(&figure.names)),
    };
    let y = match figure.channels.is_empty() {
        true => axis(&figure.y, y_range, figure.log[1], has_bars),
        false => Axis::names(&figure.y, names(&figure.channels)),
    };
    let is_rug = |series: &&FigureSeries| series.drawn == Drawn::Rug;
    let named = figure.series.iter().filter(|series| !is_rug(series));
    let mut legend: Vec<&str> = named.map(|series| series.name.as_str()).collect();
    legend.dedup();
    let mut rugs: Vec<&str> =
        figure.series.iter().filter(is_rug).map(|series| series.name.as_str()).collect();
    rugs.dedup();
    let marks = match rugs.is_empty() {
        true => String::new(),
        false => format!(" Marks on the axis: {}.", rugs.join(", ")),
    };
    let notes = beyond(figure, &x, &y);
    let note_sentences: String =
        notes.iter().map(|note| format!(" {}", format::sentence(note))).collect();
    let quantity = if figure.y.is_empty() { "Traces" } else { &figure.y };
    // Named columns have no axis to name.
    let over = if figure.x.is_empty() { String::new() } else { format!(" over {}", figure.x) };
    let height = match figure.channels.len().min(NAMES_MOST) {
        0 => ALONE.1,
        channels => AROUND + channels as f64 * CHANNEL,
    };
    Chart {
        title: figure.words(),
        titled: false,
        description: format!("{quantity}{over}: {}.{marks}{note_sentences}", legend.join(", ")),
        size: (width, height),
        series: all_series(figure, (&x, &y)),
        x,
        y,
        notes,
    }
}

/// An axis of numbers; `from_foot`: columns stand on it.
fn axis(label: &str, Range { low, high }: Range, is_log: bool, from_foot: bool) -> Axis {
    if is_log {
        // Columns have room below the smallest, and above the largest for its name.
        let (below, above) = if from_foot { (0.4, 2.5) } else { (0.7, 1.5) };
        return Axis::log(label, low * below, high * above, words);
    }
    let length = (high - low).max(f64::MIN_POSITIVE);
    // A scale that begins near zero begins there, and columns do.
    let is_near = low >= 0.0 && (low < high * 0.5 || from_foot);
    let low = if is_near { 0.0 } else { low - length * ROOM };
    let high = high + (high - low).max(f64::MIN_POSITIVE) * ROOM;
    let step = (high - low) / 6.0;
    let digits = (-step.max(1e-9).log10().floor()).clamp(0.0, 9.0) as usize;
    Axis::even(label, low, high, 6, |at| match at.abs() {
        size if size >= PLAIN_MOST || digits > 4 => format!("{at:.1e}"),
        _ => format!("{:.digits$}", if at == 0.0 { 0.0 } else { at }),
    })
}

/// The points that are left out because they would stretch an axis: one sentence for each series.
fn beyond(figure: &PaperFigure, x: &Axis, y: &Axis) -> Vec<String> {
    let channels = !figure.channels.is_empty();
    let is_beyond = |series: &FigureSeries, at: &[f64; 2]| match series.drawn {
        Drawn::Points => at[0] > x.high || (!channels && at[1] > y.high),
        Drawn::Line => !channels && at[1] > y.high,
        _ => false,
    };
    let note = |series: &FigureSeries| {
        let places = || series.points.iter().filter(|at| at.iter().all(|value| value.is_finite()));
        let count = places().filter(|at| is_beyond(series, at)).count();
        let largest = places().map(|at| at[1]).fold(f64::MIN, f64::max);
        let lie = if count == 1 { "lies" } else { "lie" };
        let far = if largest > y.high && !channels {
            format!(", the largest at {}", concise(largest))
        } else {
            String::new()
        };
        let name = &series.name;
        let of_all = format::count(places().count() as u64);
        (count > 0)
            .then(|| format!("{name}: {count} of {of_all} points {lie} beyond the axis{far}"))
    };
    figure.series.iter().filter_map(note).collect()
}

/// The series; a rug is a mark of the one before it, and series of one name are one.
fn all_series(figure: &PaperFigure, axes: (&Axis, &Axis)) -> Vec<ChartSeries> {
    let crowd = crowd(figure);
    let mut drawn: Vec<ChartSeries> = Vec::new();
    for series in &figure.series {
        let mark = mark(figure, series, axes, crowd);
        let joins =
            |last: &&mut ChartSeries| series.drawn == Drawn::Rug || last.name == series.name;
        match drawn.last_mut().filter(joins) {
            Some(last) => last.marks.push(mark),
            None => {
                let (name, ink) = (series.name.clone(), drawn.len());
                drawn.push(ChartSeries { name, ink, marks: vec![mark] });
            }
        }
    }
    drawn
}

/// The most columns or boxes that stand at one name.
fn crowd(figure: &PaperFigure) -> usize {
    let stands = |series: &&FigureSeries| matches!(series.drawn, Drawn::Bars | Drawn::Range);
    let mut places: Vec<f64> = Vec::new();
    for series in figure.series.iter().filter(stands) {
        let each = if series.drawn == Drawn::Range { 3 } else { 1 };
        let own = series.points.iter().step_by(each).map(|at| at[0]);
        places.extend(own.filter(|x| x.is_finite() && !figure.names.is_empty()));
    }
    places.sort_by(f64::total_cmp);
    places.dedup();
    let near = |name: &f64| places.iter().filter(|x| x.round() == name.round()).count();
    places.iter().map(near).max().unwrap_or(1)
}

fn mark(figure: &PaperFigure, series: &FigureSeries, (x, y): (&Axis, &Axis), crowd: usize) -> Mark {
    let has_place = |at: &[f64; 2]| {
        at.iter().zip(figure.log).all(|(value, log)| value.is_finite() && (!log || *value > 0.0))
    };
    let channel = (!figure.channels.is_empty()).then_some(series.channel as f64);
    // Up is towards the channel above, whose number is smaller.
    let at_channel =
        |level: f64| channel.map_or(level, |channel| channel + SWING * (1.0 - 2.0 * level));
    let shown = || series.points.iter().filter(|at| has_place(at));
    let half = COLUMNS / 2.0 / crowd as f64;
    let labels = || series.labels.iter().map(String::as_str).chain(std::iter::repeat(""));
    let in_threes = || series.points.chunks_exact(3).filter(|three| three.iter().all(has_place));
    match series.drawn {
        Drawn::Rug => Mark::Rug(shown().map(|at| at[0]).collect()),
        Drawn::Line => Mark::Line(shown().map(|at| (at[0], at_channel(at[1]))).collect()),
        Drawn::Steps => Mark::Steps {
            edges: series.points.iter().map(|at| at[0]).collect(),
            values: series.points.iter().rev().skip(1).rev().map(|at| at[1]).collect(),
        },
        Drawn::Points => {
            let points = series.points.iter().zip(labels()).filter(|(at, _)| has_place(at));
            let points = points.map(|(at, label)| NamedPoint {
                x: at[0],
                y: at_channel(at[1]),
                name: label.to_owned(),
            });
            Mark::Points(points.filter(|at| at.x <= x.high && at.y <= y.high).collect())
        }
        Drawn::Bars => {
            let bars = series.points.iter().zip(labels()).filter(|(at, _)| has_place(at));
            Mark::Bars(
                bars.map(|(&[place, value], name)| Bar {
                    place,
                    half: half * 0.85,
                    value,
                    name: name.to_owned(),
                })
                .collect(),
            )
        }
        Drawn::Range => Mark::Boxes(
            in_threes()
                .map(|three| {
                    let [low, middle, high] = [0, 1, 2].map(|at| three[at][1]);
                    let ends = (low, high);
                    QuantileBox {
                        place: three[0][0],
                        half: half * 0.85,
                        line: ends,
                        body: ends,
                        middle,
                        far: None,
                    }
                })
                .collect(),
        ),
        Drawn::Band => Mark::Band(
            in_threes()
                .map(|three| {
                    let [low, middle, high] = [0, 1, 2].map(|at| three[at][1]);
                    Some(BandPoint { x: three[0][0], low, middle, high })
                })
                .collect(),
        ),
        Drawn::Density => Mark::Cells(density(shown(), at_channel)),
    }
}

/// A trace that was seen many times: the darker, the more of them were at this level; between the
/// levels the more of them rose there.
fn density<'p>(
    shares: impl Iterator<Item = &'p [f64; 2]>,
    at_channel: impl Fn(f64) -> f64,
) -> Vec<DensityCell> {
    let shares: Vec<[f64; 2]> = shares.copied().collect();
    let rise = |pair: &[[f64; 2]]| (pair[1][1] - pair[0][1]).max(0.0);
    let steepest = shares.windows(2).map(rise).fold(0.0, f64::max);
    let mut cells = Vec::new();
    for pair in shares.windows(2) {
        let ([x, up], [next, _]) = (pair[0], pair[1]);
        let up = up.clamp(0.0, 1.0);
        let cell = |from: f64, to: f64, share: f64| DensityCell {
            from: (x, at_channel(from)),
            to: (next, at_channel(to)),
            share,
        };
        cells.push(cell(1.0, 1.0 - LEVEL, up));
        cells.push(cell(LEVEL, 0.0, 1.0 - up));
        let rise = rise(pair);
        if rise > 0.0 {
            // One of thousands is seen too.
            let share = (rise / steepest).max(RISE_MIN);
            cells.push(cell(1.0 - LEVEL, LEVEL, share));
        }
    }
    cells
}

/// A number at a tick of a log scale.
fn words(at: f64) -> String {
    match at.abs() {
        size if size >= 1e5 => format!("{at:.0e}"),
        size if size >= 10.0 || size == 0.0 => format::whole(at),
        size if size >= 0.01 => format!("{}", (at * 1e3).round() / 1e3),
        _ => format!("{at:.0e}"),
    }
}

#[cfg(test)]
mod tests {
    use punctual_papers::figure::Drawing;
    use punctual_plot::axis::Scale;

    use super::*;

    fn charts(row: &[Drawing]) -> Vec<Option<Chart>> {
        let row: Vec<PaperFigure> = row.iter().cloned().map(crate::papers::figure).collect();
        super::charts(&row.iter().collect::<Vec<_>>())
    }

    fn chart(figure: &Drawing) -> Option<Chart> {
        charts(std::slice::from_ref(figure)).remove(0)
    }

    fn labels(axis: &Axis) -> Vec<&str> {
        axis.ticks.iter().filter_map(|tick| tick.label.as_deref()).collect()
    }

    #[test]
    fn columns_with_names_are_over_no_axis() {
        let bars = |x: &str| {
            let figure = Drawing::new("a.fig1", "rates", x, "polygons/s").named(["one", "two"]);
            let bars = [([0.0, 3.0], "3".to_owned()), ([1.0, 4.0], "4".to_owned())];
            chart(&figure.bars("published", bars)).expect("two columns").description
        };
        assert_eq!(bars(""), "polygons/s: published.");
        assert_eq!(bars("system"), "polygons/s over system: published.");
    }

    #[test]
    fn what_cannot_be_drawn_is_left_out() {
        let empty = Drawing::new("a.fig1", "nothing", "x", "y");
        assert_eq!(chart(&empty), None);
        let figure =
            empty.log([true; 2]).line("here: a", vec![[1.0, 2.0], [0.0, 3.0], [f64::NAN, 1.0]]);
        let drawn = chart(&figure.points("published", [([10.0, 20.0], "b")])).expect("two points");
        assert_eq!(drawn.series.len(), 2);
        assert_eq!(drawn.series[0].marks, [Mark::Line(vec![(1.0, 2.0)])]);
        let point = NamedPoint { x: 10.0, y: 20.0, name: "b".to_owned() };
        assert_eq!(drawn.series[1].marks, [Mark::Points(vec![point])]);
        assert!(drawn.x.scale == Scale::Log && drawn.y.high >= 20.0);
        let line = Drawing::new("a.fig2", "edges", "x", "y").line("a", vec![[1.0, 2.0]]);
        let drawn = chart(&line.rug("where blocks began", vec![[3.0, 2.0]])).expect("points");
        assert_eq!(drawn.series.len(), 1);
        assert!(drawn.description.contains("Marks on the axis: where blocks began."));
        assert_eq!(drawn.series[0].marks[1], Mark::Rug(vec![3.0]));
        let figure = Drawing::new("a.fig3", "columns", "x", "y").log([true; 2]);
        let drawn = chart(&figure.steps("here: a", &[1.0, 10.0, 100.0, 1e3], &[7, 0, 2]));
        let drawn = drawn.expect("columns");
        let (edges, values) = (vec![1.0, 10.0, 100.0, 1e3], vec![7.0, 0.0, 2.0]);
        assert_eq!(drawn.series[0].marks, [Mark::Steps { edges, values }]);
        assert!(drawn.x.low <= 1.0 && drawn.x.high >= 1e3, "the last column has room");
    }

    #[test]
    fn consecutive_wakes_are_drawn_by_period_and_by_the_work_behind() {
        let text = include_str!("../../../tests/results/kinds/timer.json");
        let report = punctual_report::Report::parse(text).expect("a result");
        let Body::Measured(Measured::Timer(mut body)) = report.body else { panic!("of timers") };
        assert!(in_a_row(&body.timer).is_empty(), "a result of before has none");
        let sleeps = |timer: &TimerOutcome| {
            let own = timer
                .rows
                .iter()
                .filter(|row| (row.path, row.store) == (TimerPath::Sleep, StampStore::Array));
            own.count()
        };
        body.timer.rows.iter_mut().for_each(|row| row.series = vec![vec![4_000, 9_000], vec![1]]);
        let figures = in_a_row(&body.timer);
        let series: Vec<&FigureSeries> = figures.iter().flat_map(|figure| &figure.series).collect();
        assert_eq!(series.len(), sleeps(&body.timer));
        assert_eq!(series[0].points, [[1.0, 4.0], [2.0, 9.0], [3.0, 0.001]]);
    }

    #[test]
    fn names_stand_at_their_places_and_columns_beside_each_other_within_them() {
        let bar = |x: f64, y: f64| ([x, y], format!("{y}"));
        let drawn = Drawing::new("a.fig8", "by system", "", "kHz (log)")
            .log([false, true])
            .named(["CE 2.12", "CE 3.0", "here"])
            .bars("published", [bar(-0.2, 20.0), bar(0.8, 127e3)])
            .bars("here", [bar(2.0, 9e3)])
            .bars("second", [bar(0.2, 19.0)]);
        let drawn = chart(&drawn).expect("columns");
        assert_eq!(labels(&drawn.x), ["CE 2.12", "CE 3.0", "here"]);
        let bars: Vec<&Bar> = drawn
            .series
            .iter()
            .flat_map(|series| &series.marks)
            .flat_map(|mark| match mark {
                Mark::Bars(bars) => bars.iter(),
                _ => panic!("columns"),
            })
            .collect();
        assert_eq!(bars.len(), 4);
        assert!(bars.iter().all(|bar| bar.half < 0.2 && drawn.y.holds(bar.value)), "{bars:?}");
        assert_eq!(bars[1].name, "127000");
    }

    #[test]
    fn one_stall_does_not_stretch_an_axis_and_is_counted() {
        let usual = (0..127).map(|at| [f64::from(at), 20.0 + f64::from(at % 9)]);
        let points: Vec<[f64; 2]> = usual.chain([[127.0, 217_000.0]]).collect();
        let figure = Drawing::new("a.fig2", "stalls", "sample", "µs");
        let named = points.iter().map(|at| (*at, ""));
        for figure in [figure.clone().points("here", named), figure.line("here", points.clone())] {
            let drawn = chart(&figure).expect("points");
            assert!(drawn.y.high < 60.0, "{:?}", drawn.y);
            assert_eq!(drawn.notes.len(), 1);
            assert!(
                drawn.notes[0].contains("1 of 128 points lies beyond the axis, the largest at 217"),
                "{drawn:?}"
            );
            assert!(drawn.description.contains("beyond the axis"));
        }
        // What is published is never cut.
        let published = Drawing::new("a.fig3", "published", "x", "y")
            .points("published", [([1.0, 1.0], "a"), ([2.0, 1e6], "b")]);
        assert!(chart(&published).expect("points").notes.is_empty());
    }

    #[test]
    fn figures_beside_each_other_have_the_same_scales() {
        let line = |id: &str, most: f64| {
            Drawing::new(id, "released", "tick", "tasks")
                .line("here", vec![[0.0, 0.0], [99.0, most]])
        };
        let row = charts(&[line("a.fig11", 1.0), line("a.fig12", 5.0).beside()]);
        let [Some(left), Some(right)] = &row[..] else { panic!("both") };
        assert_eq!((&left.x, &left.y), (&right.x, &right.y));
        assert!(left.y.low == 0.0 && left.y.high >= 5.0);
        let empty = Drawing::new("a.fig13", "none", "x", "y").beside();
        assert!(matches!(&charts(&[line("a.fig11", 1.0), empty])[..], [Some(_), None]));
    }

    #[test]
    fn channels_are_read_from_the_top_and_a_trace_goes_up_in_its_own() {
        let figure = Drawing::new("a.fig5", "single shots", "µs", "")
            .channels(["stage 2", "stage 1", "stimulus"])
            .line("a shot", vec![[0.0, 0.0], [2.5, 0.0], [2.5, 1.0], [9.0, 1.0]])
            .in_channel(1)
            .density("all", vec![[0.0, 0.0], [1.0, 0.25], [2.0, 1.0]])
            .in_channel(0);
        let drawn = chart(&figure).expect("traces");
        assert_eq!(labels(&drawn.y), ["stage 2", "stage 1", "stimulus"]);
        let [Mark::Line(trace)] = &drawn.series[0].marks[..] else { panic!("a line") };
        assert!(trace.iter().all(|at| (at.1 - 1.0).abs() < 0.5), "{trace:?}");
        assert!(trace[3].1 < trace[0].1, "up is towards the channel above");
        let [Mark::Cells(cells)] = &drawn.series[1].marks[..] else { panic!("cells") };
        assert!(cells.iter().all(|cell| cell.from.1.abs() < 0.5 && cell.to.1.abs() < 0.5));
        let shares: Vec<f64> = cells.iter().map(|cell| cell.share).collect();
        assert_eq!(shares[..2], [0.0, 1.0], "none is up at first");
        assert!(shares.contains(&(1.0 / 3.0)) && shares.contains(&0.75), "{shares:?}");
    }

    #[test]
    fn no_result_chooses_where_a_file_of_its_figure_goes() {
        assert_eq!(name("nist.fig1a", 0), "nist-fig1a-1");
        assert_eq!(name("../../etc/x\u{0}\"", 1), "------etc-x---2");
        assert!(name(&"a".repeat(5_000), 0).len() < 50);
    }

    #[test]
    fn a_tick_has_no_more_digits_than_it_needs() {
        let shown = [0.0, 0.2, 2.5, 19.0, 250_000.0, 0.0001].map(words);
        assert_eq!(shown, ["0", "0.2", "2.5", "19", "2e5", "1e-4"]);
        let even = |low, high| axis("", Range { low, high }, false, false);
        assert_eq!(labels(&even(0.0, 59.0)), ["0", "20", "40", "60"]);
        let fine = even(1_000.0, 1_000.4);
        let mut words = labels(&fine);
        words.dedup();
        assert!(words.len() > 2 && words.len() == labels(&fine).len(), "{words:?}");
    }
}

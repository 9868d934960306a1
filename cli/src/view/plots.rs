//! Plots of a page as charts: axes with their words, marks in their units.
//!
//! For the page and for files of their own. The numbers come from `punctual_analysis::plot`.

pub(crate) mod boxes;
pub(crate) mod day;
pub(crate) mod paper;

use std::collections::BTreeMap;

use punctual_analysis::plot::{Envelope, EnvelopeBin, HeatColumn, HeatMap, Thinned, curve};
use punctual_analysis::recording::RunFigures;
use punctual_analysis::repetition::Repetition;
use punctual_document::{Block, Figure, Row};
use punctual_plot::axis::Axis;
use punctual_plot::chart::{
    BandPoint, Chart, ChartSeries, DensityCell, Mark, NamedPoint, NamedSpan, SHADES, ThresholdAxis,
};
use punctual_plot::scene::SERIES;
use punctual_report::strategies::StrategyRow;
use punctual_report::{Report, Run};

use super::kinds::peak;
use crate::format;
use crate::pages::{self, Line, Loaded, Page, Panel};

/// Width and height of a plot that stands alone, and of one of two side by side, pixels.
pub(crate) const ALONE: Size = (880.0, 340.0);
pub(crate) const ONE_OF_TWO: Size = (560.0, 320.0);

/// A kind of plot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Cycles by lateness.
    Histogram,
    /// Which lateness once in how many cycles.
    Curve,
    /// Lateness over time.
    Time,
    /// Cycles by lateness, over time.
    Heat,
}

impl Kind {
    /// All kinds, in the order of the page.
    pub(crate) const ALL: [Self; 4] = [Self::Histogram, Self::Curve, Self::Time, Self::Heat];

    /// In identifiers and names of files.
    pub(crate) fn id(self) -> &'static str {
        match self {
            Self::Histogram => "histogram",
            Self::Curve => "percentiles",
            Self::Time => "time",
            Self::Heat => "heat",
        }
    }

    /// Its heading on the page.
    pub(crate) fn heading(self) -> &'static str {
        match self {
            Self::Histogram => "Histogram of lateness",
            Self::Curve => "Percentile curve",
            Self::Time => "Lateness over time",
            Self::Heat => "Heat map of lateness",
        }
    }

    /// The page's rows of this kind.
    fn rows(self, page: &Page) -> &[pages::Row] {
        match self {
            Self::Histogram => &page.histograms,
            Self::Curve => &page.curves,
            Self::Time | Self::Heat => &page.times,
        }
    }
}

/// One plot, ready to be drawn.
pub(crate) struct Plot<'a> {
    /// Unique in the page.
    pub(crate) id: String,
    /// The kind of plot.
    pub(crate) kind: Kind,
    /// The panel that it draws.
    pub(crate) panel: &'a Panel,
    /// The picture.
    pub(crate) chart: Chart,
}

/// The plots of one kind, in rows.
pub(crate) fn of<'a>(page: &'a Page, axes: &Axes, kind: Kind) -> Vec<Vec<Plot<'a>>> {
    let rows = kind.rows(page).iter().enumerate();
    rows.map(|(number, row)| {
        let panels = row.panels.iter().enumerate();
        panels
            .map(|(column, panel)| {
                let id = format!("{}-{}-{}", kind.id(), number + 1, column + 1);
                let size = if row.panels.len() > 1 { ONE_OF_TWO } else { ALONE };
                let chart = match kind {
                    Kind::Histogram => histogram_chart(page, axes, panel, size),
                    Kind::Curve => curve_chart(page, axes, panel, size),
                    Kind::Time => time_chart(page, axes, panel, size),
                    Kind::Heat => heat_chart(page, axes, panel, size),
                };
                Plot { id, kind, panel, chart }
            })
            .collect()
    })
    .collect()
}

/// Charts that stand beside each other, each with its id; one alone has all the width.
pub(crate) fn beside(mut charts: Vec<(String, Chart)>) -> Option<Block> {
    if let [(_, chart)] = &mut charts[..] {
        chart.size.0 = ALONE.0;
    }
    row(charts.into_iter().map(|(id, chart)| Figure::still(id, chart)).collect())
}

/// Plots that stand beside each other, as they are; one needs no row.
pub(crate) fn row(mut plots: Vec<Block>) -> Option<Block> {
    match plots.len() {
        0 | 1 => plots.pop(),
        _ => Some(Block::Row(Row::Plots, plots.into_iter().map(|plot| vec![plot]).collect())),
    }
}

/// Width and height of a drawing, pixels.
type Size = (f64, f64);

/// Every axis of a page.
#[derive(Debug)]
pub(crate) struct Axes {
    /// Lateness, of histograms.
    bins: Axis,
    /// Cycles in a bin.
    count: Axis,
    /// One in so many cycles.
    one_in: Axis,
    /// Lateness, of curves.
    quantile: Axis,
    /// Seconds.
    time: Axis,
    /// Lateness, of time series.
    lateness: Axis,
}

impl Axes {
    /// The axes of a page.
    pub(crate) fn of(page: &Page) -> Self {
        let edges = &page.bins.edges_ns;
        let (first, last) = (edges.first().copied(), edges.last().copied());
        let lines = || page.curves.iter().flat_map(|row| &row.panels).flat_map(|p| &p.lines);
        let most = lines().map(|line| one_in(page, line)).fold(10.0, f64::max);
        let times = page.times.iter().flat_map(|row| &row.panels).flat_map(|p| &p.lines);
        let (mut seconds, mut low, mut high) = (0.0, f64::INFINITY, 0.0);
        for line in times {
            let Some(times) = Times::of(page, line) else { continue };
            seconds = times.end_s().max(seconds);
            low = times.lowest_ns().min(low);
            high = times.highest_ns().max(high);
        }
        let worst = lines().filter_map(|line| page.run(line).outcome.lateness_ns.max);
        let worst = worst.fold(0.0, f64::max);
        let label = "lateness (log)";
        let (first, last) = (first.unwrap_or(1.0), last.unwrap_or(10.0));
        Self {
            bins: Axis::log(label, first, last, ns),
            count: Axis::log("cycles in a bin (log)", 0.7, page.bins.most as f64 * 1.4, count),
            one_in: Axis::log("one cycle in … is later: 1/(1 − p) (log)", 1.0, most, count),
            quantile: Axis::log(label, first, if worst > first { worst } else { last } * 1.2, ns),
            time: time_axis(seconds),
            lateness: Axis::log(label, low.min(high).max(1.0) * 0.8, high * 1.25, ns),
        }
    }
}

/// The largest 1 / (1 − p) of a line's curve, in cycles; 1 without a curve.
fn one_in(page: &Page, line: &Line) -> f64 {
    let outcome = &page.run(line).outcome;
    let points = curve(&outcome.histogram, outcome.lateness_ns.max);
    points.last().map_or(1.0, |point| point.one_in)
}

/// A round time: `10 µs`, `500 ns`.
pub(crate) fn ns(at: f64) -> String {
    let unit = [(1e9, "s"), (1e6, "ms"), (1e3, "µs")];
    let (unit_ns, unit) = unit.into_iter().find(|(ns, _)| at >= ns * 0.999).unwrap_or((1.0, "ns"));
    // Ticks are round: three figures are all there are.
    let figures = (at / unit_ns * 1e3).round() / 1e3;
    format!("{figures} {unit}")
}

pub(crate) fn count(at: f64) -> String {
    if at < 1.0 { format!("{at:.1}") } else { format::count(at.round() as u64) }
}

/// From so long on the time since the first release is in hours and minutes.
const HOURS_FROM_S: f64 = 7_200.0;

/// The time of releases, in seconds from the first one on.
fn time_axis(last_s: f64) -> Axis {
    if last_s >= HOURS_FROM_S {
        return Axis::clock("time from the first release (hours:minutes)", last_s, 8);
    }
    Axis::even("seconds from the first release", 0.0, last_s, 8, seconds_of)
}

fn seconds_of(at: f64) -> String {
    format!("{}", (at * 1e6).round() / 1e6)
}

/// A time series with its cycles as seconds from the first release.
pub(crate) struct Times<'a> {
    /// The series, thinned for drawing.
    pub(crate) thinned: &'a Thinned,
    /// The state of a release without a sample: "missed", "missed or unrecorded".
    pub(crate) gaps: &'static str,
    period_s: f64,
}

/// A bin in seconds: its middle, and its bin.
type Placed<'a> = (f64, &'a EnvelopeBin);

impl<'a> Times<'a> {
    /// The time series of a line; `None` without samples.
    pub(crate) fn of(page: &'a Page, line: &Line) -> Option<Self> {
        let run = page.run(line);
        let period_s = run.setup.period_ns? as f64 / 1e9;
        let gaps = if run.outcome.unrecorded > 0 { "missed or unrecorded" } else { "missed" };
        Some(Self { thinned: page.series(line)?, gaps, period_s })
    }

    /// The release of a cycle, in s from the first release.
    pub(crate) fn at_s(&self, cycle: u64) -> f64 {
        cycle as f64 * self.period_s
    }

    /// The width of a bin.
    pub(crate) fn width_s(&self, envelope: &Envelope) -> f64 {
        envelope.width() as f64 * self.period_s
    }

    /// Bins with their middles; `None` where the loop did not run in between.
    pub(crate) fn placed<'e>(&self, envelope: &'e Envelope) -> Vec<Option<Placed<'e>>> {
        let mut placed: Vec<Option<Placed<'e>>> = Vec::new();
        let mut next = None;
        for bin in envelope.bins() {
            let far = envelope.width().saturating_mul(2).max(8);
            if next.is_some_and(|next: u64| bin.first > next.saturating_add(far)) {
                placed.push(None);
            }
            let middle = self.at_s(bin.first) + self.width_s(envelope) / 2.0;
            placed.push(Some((middle, bin)));
            next = bin.first.checked_add(envelope.width());
        }
        placed
    }

    /// From when to when which load ran, in seconds.
    pub(crate) fn loads(&self, loaded: &[Loaded]) -> Vec<NamedSpan> {
        let span = |load: &Loaded| NamedSpan {
            from: self.at_s(load.first),
            to: self.at_s(load.last.saturating_add(1)),
            name: load.load.clone(),
        };
        loaded.iter().map(span).collect()
    }

    fn end_s(&self) -> f64 {
        let envelope = &self.thinned.envelope;
        let last = envelope.bins().last().map_or(0, |bin| bin.first);
        self.at_s(last) + self.width_s(envelope)
    }

    fn lowest_ns(&self) -> f64 {
        let lowest = self.thinned.envelope.bins().iter().map(|bin| bin.min_ns as f64);
        lowest.filter(|ns| *ns > 0.0).fold(f64::INFINITY, f64::min)
    }

    fn highest_ns(&self) -> f64 {
        let highest = self.thinned.envelope.bins().iter().map(|bin| bin.max_ns as f64);
        highest.fold(1.0, f64::max)
    }
}

/// The deadlines of the loops of a panel, each once: ns, and its words.
pub(crate) fn deadlines(page: &Page, panel: &Panel) -> Vec<(f64, String)> {
    let mut deadlines: Vec<f64> = Vec::new();
    for line in &panel.lines {
        let run = page.run(line);
        let verdicts = page.result(line).report.body.verdicts().iter();
        let period_ns = run.setup.period_ns.map(|ns| ns as f64);
        let own = verdicts.filter(|verdict| period_ns.is_some() && verdict.period_ns == period_ns);
        for ns in own.filter_map(|verdict| verdict.deadline_ns) {
            if !deadlines.contains(&ns) {
                deadlines.push(ns);
            }
        }
    }
    deadlines.into_iter().map(|at| (at, format!("deadline {}", ns(at)))).collect()
}

/// The chart of a panel.
fn histogram_chart(page: &Page, axes: &Axes, panel: &Panel, size: Size) -> Chart {
    let deadlines = Mark::Thresholds(ThresholdAxis::X, deadlines(page, panel));
    let series = |line: &Line| {
        let steps = Mark::Steps {
            edges: page.bins.edges_ns.clone(),
            values: page.bins.counts[line.drawn].iter().map(|&count| count as f64).collect(),
        };
        let open = Mark::Spans(beyond(page).into_iter().collect());
        ChartSeries { name: line.name.clone(), ink: line.ink, marks: vec![open, steps] }
    };
    let mut series: Vec<ChartSeries> = panel.lines.iter().map(series).collect();
    if let Some(first) = series.first_mut() {
        first.marks.push(deadlines);
    }
    let parts: Vec<String> =
        panel.lines.iter().map(|line| described_histogram(page, line)).collect();
    Chart {
        title: format!("Histogram of lateness: {}", panel.title),
        titled: false,
        description: parts.join(" "),
        size,
        x: axes.bins.clone(),
        y: axes.count.clone(),
        series,
        notes: Vec::new(),
    }
}

/// The bin of what is beyond the end of a histogram.
pub(crate) fn beyond(page: &Page) -> Option<NamedSpan> {
    let name = format!("beyond {}", format::period(page.bins.open_ns?.round() as u64));
    let [.., from, to] = page.bins.edges_ns[..] else { return None };
    Some(NamedSpan { from, to, name })
}

fn described_histogram(page: &Page, line: &Line) -> String {
    let run = page.run(line);
    let early = match page.bins.not_positive[line.drawn] {
        0 => String::new(),
        early => format!(" {} were early or on time and are not drawn.", format::count(early)),
    };
    let far = match (page.bins.overflow[line.drawn], beyond(page)) {
        (0, _) | (_, None) => String::new(),
        (far, Some(NamedSpan { name, .. })) => {
            format!(" The last bar: {} {name}, with unknown values.", format::count(far))
        }
    };
    let clusters = run.outcome.histogram.clusters.iter();
    let clusters: Vec<String> = clusters.map(|cluster| peak(run, cluster)).collect();
    format!(
        "{}: {} releases, half of them at most {} late, the worst {}; {}.{early}{far}",
        line.name,
        format::count(run.outcome.releases()),
        format::ns(run.outcome.lateness_ns.p50),
        format::largest(run.outcome.lateness_ns.max, run.outcome.unknown()),
        match clusters.as_slice() {
            [] => "no separate peaks".to_owned(),
            [peak] => format!("one peak, at {peak}"),
            several => format!("peaks at {}", several.join(", ")),
        },
    )
}

/// The chart of a panel.
fn curve_chart(page: &Page, axes: &Axes, panel: &Panel, size: Size) -> Chart {
    let series = |line: &Line| {
        let outcome = &page.run(line).outcome;
        let points = curve(&outcome.histogram, outcome.lateness_ns.max);
        let stairs = points.iter().map(|point| (point.one_in, point.lateness_ns)).collect();
        let marks = vec![Mark::Stairs(stairs)];
        ChartSeries { name: line.name.clone(), ink: line.ink, marks }
    };
    let mut series: Vec<ChartSeries> = panel.lines.iter().map(series).collect();
    if let Some(first) = series.first_mut() {
        first.marks.push(Mark::Thresholds(ThresholdAxis::Y, deadlines(page, panel)));
    }
    let part = |line: &Line| described_curve(line, &page.run(line).outcome);
    Chart {
        title: format!("Percentile curve of lateness: {}", panel.title),
        titled: false,
        description: panel.lines.iter().map(part).collect::<Vec<_>>().join(" "),
        size,
        x: axes.one_in.clone(),
        y: axes.quantile.clone(),
        series,
        notes: Vec::new(),
    }
}

/// Only what n supports.
fn described_curve(line: &Line, outcome: &RunFigures) -> String {
    let lateness = &outcome.lateness_ns;
    let known = [("half", lateness.p50), ("99 %", lateness.p99), ("99.9 %", lateness.p99_9)];
    let known = known.iter().filter(|(_, ns)| ns.is_some());
    let shares: Vec<String> = known
        .map(|(share, ns)| format!("{share} of cycles at most {} late", format::ns(*ns)))
        .collect();
    let worst = format::largest(lateness.max, outcome.unknown());
    format!("{}: {}; the worst {worst}.", line.name, shares.join(", "))
}

/// Bins of a drawing that is not interactive: about two pixels each.
const DRAWN: usize = 400;

/// The chart of a panel.
fn time_chart(page: &Page, axes: &Axes, panel: &Panel, size: Size) -> Chart {
    let series = |line: &Line| {
        let marks = Times::of(page, line).map(|times| marks(&times, page.loaded(line)));
        let marks = marks.unwrap_or_default();
        ChartSeries { name: line.name.clone(), ink: line.ink, marks }
    };
    let mut series: Vec<ChartSeries> = panel.lines.iter().map(series).collect();
    if let Some(first) = series.first_mut() {
        first.marks.push(Mark::Thresholds(ThresholdAxis::Y, deadlines(page, panel)));
    }
    let part = |line: &Line| {
        let loads = if page.loaded(line).is_empty() { "" } else { " At the top: the load." };
        Times::of(page, line).map(|times| described_time(&times) + loads).unwrap_or_default()
    };
    Chart {
        title: format!("Lateness over time: {}", panel.title),
        titled: false,
        description: panel.lines.iter().map(part).collect::<Vec<_>>().join(" "),
        size,
        x: axes.time.clone(),
        y: axes.lateness.clone(),
        series,
        notes: Vec::new(),
    }
}

fn marks(times: &Times<'_>, loaded: &[Loaded]) -> Vec<Mark> {
    let envelope = times.thinned.envelope.thinned(DRAWN);
    let band = times.placed(&envelope).into_iter().map(|placed| {
        let (x, bin) = placed?;
        let (low, high) = (bin.min_ns as f64, bin.max_ns as f64);
        Some(BandPoint { x, low, middle: bin.mean_ns(), high })
    });
    let missed = envelope.bins().iter().filter(|bin| bin.missed > 0);
    let missed = missed.map(|bin| times.at_s(bin.first)).collect();
    let dots = times.thinned.outliers.iter();
    let dots = dots.map(|dot| (times.at_s(dot.cycle), dot.lateness_ns as f64)).collect();
    let spans = times.loads(loaded);
    vec![Mark::Spans(spans), Mark::Band(band.collect()), Mark::Dots(dots), Mark::Rug(missed)]
}

/// The key to the drawing, in words.
fn described_time(times: &Times<'_>) -> String {
    let thinned = times.thinned;
    let width = match thinned.envelope.width() {
        1 => "Every cycle".to_owned(),
        width => {
            format!("Band: smallest to largest of {} cycles each, line: mean", format::count(width))
        }
    };
    let dots = match (thinned.outlier_above_ns, thinned.outliers.len() as u64) {
        (None, _) => String::new(),
        (Some(above), shown) if shown < thinned.outliers_in_all => format!(
            "; dots: the {} latest of {} cycles later than {} (99.9 % are not)",
            format::count(shown),
            format::count(thinned.outliers_in_all),
            format::ns(Some(above as f64))
        ),
        (Some(above), shown) => format!(
            "; dots: {} later than {} (99.9 % are not)",
            if shown == 1 {
                "the one cycle".to_owned()
            } else {
                format!("all {} cycles", format::count(shown))
            },
            format::ns(Some(above as f64))
        ),
    };
    format!("{width}{dots}; marks at the foot: {} releases.", times.gaps)
}

/// The chart of a panel, which has one line: two maps over each other show neither.
fn heat_chart(page: &Page, axes: &Axes, panel: &Panel, size: Size) -> Chart {
    let mut time = time_chart(page, axes, panel, size);
    time.title = format!("{}: {}", Kind::Heat.heading(), panel.title);
    time.description = String::new();
    for (line, series) in panel.lines.iter().zip(&mut time.series) {
        let Some(times) = Times::of(page, line) else { continue };
        let (heat, cells) = drawn_heat(&times, axes, HEAT_CELLS / heat_maps(page));
        let is_marked =
            |mark: &Mark| matches!(mark, Mark::Spans(_) | Mark::Rug(_) | Mark::Thresholds(..));
        series.marks.retain(is_marked);
        series.marks.insert(0, Mark::Cells(cells));
        let run = page.run(line);
        let outliers = times.thinned.outliers.iter();
        let explained: Vec<_> = outliers
            .filter(|late| run.cause_of(late.cycle, late.lateness_ns).is_some())
            .map(|late| (times.at_s(late.cycle), late.lateness_ns as f64))
            .collect();
        let dots = match explained.len() {
            0 => "",
            _ => " dots: late cycles whose cause is known;",
        };
        series.marks.push(Mark::Dots(explained));
        time.description += &format!(
            "Each column: {} cycles; the darker, the more of them are so late (log);{dots} marks \
             at the foot: {} releases.",
            format::count(heat.width()),
            times.gaps
        );
    }
    time
}

/// The period at which late cycles of a run come again, if they do: a sentence, and the late cycles
/// by their place in that period. `None` under loads: those that take turns bring their own order.
pub(crate) fn repeated(page: &Page, axes: &Axes, line: &Line) -> Option<(String, Chart)> {
    let times = Times::of(page, line).filter(|_| page.loaded(line).is_empty())?;
    let outliers = times.thinned.outliers.iter();
    let late: Vec<(f64, f64)> =
        outliers.map(|late| (times.at_s(late.cycle), late.lateness_ns as f64)).collect();
    let found = Repetition::of(&late)?;
    let every = format::ns(Some(found.every * 1e9));
    let sentence = format!(
        "{} repeats every {every}: of {} times at which it was later than {}, {} lie at the same \
         place of it, and {} of the {} turns that passed had one there.",
        line.name,
        format::count(found.events as u64),
        format::ns(times.thinned.outlier_above_ns.map(|ns| ns as f64)),
        format::count(found.in_place as u64),
        format::count(found.turns_hit as u64),
        format::count(found.turns as u64),
    );
    // What repeats stands in the middle.
    let folded = |at: f64| (at - found.at + found.every / 2.0).rem_euclid(found.every);
    let dots = late.iter().map(|(at, late)| (folded(*at), *late)).collect();
    let label = format!("seconds within {every}; the middle is {:.3} s into the run", found.at);
    let chart = Chart {
        title: format!("What repeats every {every}: {}", line.name),
        titled: false,
        description: format!("Each dot: a late cycle, by its place within {every}. {sentence}"),
        size: ALONE,
        x: Axis::even(&label, 0.0, found.every, 8, seconds_of),
        y: axes.lateness.clone(),
        series: vec![ChartSeries {
            name: line.name.clone(),
            ink: line.ink,
            marks: vec![Mark::Dots(dots)],
        }],
        notes: Vec::new(),
    };
    Some((sentence, chart))
}

/// The worst cycles of runs as a strip each: when they were, and what made them late; over the
/// time of the page's series, where that reaches the last of them.
pub(crate) fn worst_strip(runs: &[(String, &Run)], axes: &Axes) -> Option<Chart> {
    let mut causes: Vec<&str> = Vec::new();
    let mut points: Vec<(usize, (f64, f64))> = Vec::new();
    for (lane, (_, run)) in runs.iter().enumerate() {
        let Some(period_ns) = run.setup.period_ns else { continue };
        for worst in &run.outcome.worst {
            let cause = worst.cause.as_deref().unwrap_or("cause not known");
            let cause = causes.iter().position(|known| *known == cause).unwrap_or_else(|| {
                causes.push(cause);
                causes.len() - 1
            });
            points.push((cause, (worst.cycle as f64 * period_ns as f64 / 1e9, lane as f64)));
        }
    }
    let last = points.iter().map(|(_, (at_s, _))| *at_s).reduce(f64::max)?;
    let dots_of = |cause: usize| points.iter().filter(|(number, _)| *number == cause).count();
    let dots: Vec<usize> = (0..causes.len()).map(dots_of).collect();
    let groups = by_colour(&causes, &dots);
    let series = groups.into_iter().enumerate().map(|(ink, (name, causes))| {
        let own = points.iter().filter(|(number, _)| causes.contains(number));
        let dot =
            |(_, (x, y)): &(usize, (f64, f64))| NamedPoint { x: *x, y: *y, name: String::new() };
        ChartSeries { name, ink, marks: vec![Mark::Points(own.map(dot).collect())] }
    });
    let names: Vec<String> = runs.iter().map(|(name, _)| name.clone()).collect();
    Some(Chart {
        title: "When the worst cycles were".to_owned(),
        titled: false,
        description: format!(
            "Each dot: one of the {} worst cycles, of each run its latest, by its cause.",
            format::count(points.len() as u64)
        ),
        size: (ALONE.0, 110.0 + 30.0 * names.len() as f64),
        x: if axes.time.holds(last) { axes.time.clone() } else { time_axis(last) },
        y: Axis::names("", names),
        series: series.collect(),
        notes: Vec::new(),
    })
}

/// Causes with so many dots each, as they have colours. Dots have no dashes, so that each cause has
/// a colour of its own; where there are more of them than colours the rarest have the last one
/// together. Each with its name and the numbers of its causes, the most dots first.
fn by_colour(causes: &[&str], dots: &[usize]) -> Vec<(String, Vec<usize>)> {
    let mut order: Vec<usize> = (0..causes.len()).collect();
    order.sort_by_key(|cause| std::cmp::Reverse(dots[*cause]));
    let alone = if causes.len() > SERIES { SERIES - 1 } else { causes.len() };
    let together = order.split_off(alone);
    let mut groups: Vec<(String, Vec<usize>)> =
        order.into_iter().map(|cause| (causes[cause].to_owned(), vec![cause])).collect();
    if !together.is_empty() {
        groups.push((format!("{} other causes", together.len()), together));
    }
    groups
}

/// Rectangles of all heat maps of a page together: some 30 bytes each.
const HEAT_CELLS: usize = 5_000;
/// Columns of a heat map that is drawn: some four pixels each.
const HEAT_COLUMNS: usize = 200;
/// Characters of all heat maps of a page that its script draws.
const HEAT_BRIEF: usize = 40_000;

/// A heat map with as many columns as `most` rectangles can show, and these.
fn drawn_heat(times: &Times<'_>, axes: &Axes, most: usize) -> (HeatMap, Vec<DensityCell>) {
    let mut heat = times.thinned.heat.thinned(HEAT_COLUMNS);
    loop {
        let cells = heat_cells(times, &heat, axes);
        if cells.len() <= most || heat.bins().len() <= 2 {
            return (heat, cells);
        }
        heat = heat.thinned(heat.bins().len() - 1);
    }
}

/// The heat map of a line for the page's script: in seconds how wide its columns are and where
/// each begins, and each as [`HeatColumn::brief`]; as many as there is room for.
pub(crate) fn brief_heat(page: &Page, times: &Times<'_>) -> (f64, Vec<f64>, Vec<String>) {
    let most = HEAT_BRIEF / heat_maps(page);
    let mut heat = times.thinned.heat.clone();
    loop {
        let columns: Vec<String> = heat.bins().iter().map(HeatColumn::brief).collect();
        if columns.iter().map(String::len).sum::<usize>() <= most || columns.len() <= 2 {
            let from = heat.bins().iter().map(|column| times.at_s(column.first)).collect();
            return (heat.width() as f64 * times.period_s, from, columns);
        }
        heat = heat.thinned(heat.bins().len() - 1);
    }
}

/// The heat maps of a page, at least 1.
fn heat_maps(page: &Page) -> usize {
    page.times.iter().map(|row| row.panels.len()).sum::<usize>().max(1)
}

/// The cells of a heat map in seconds.
fn heat_cells(times: &Times<'_>, heat: &HeatMap, axes: &Axes) -> Vec<DensityCell> {
    let width_s = heat.width() as f64 * times.period_s;
    let from_to = |column: &HeatColumn| {
        let from_s = times.at_s(column.first);
        (from_s, from_s + width_s)
    };
    let columns = heat.bins().iter().map(|column| (from_to(column), column));
    shaded(columns, (axes.lateness.low, axes.lateness.high))
}

/// Columns as rectangles: the darker, the more there are (log), those beside each other with the
/// same shade as one. `columns`: from and to on the lower axis, one after the other; `lateness`:
/// the ends of the other axis, ns.
fn shaded<'a>(
    columns: impl Iterator<Item = ((f64, f64), &'a HeatColumn)> + Clone,
    lateness: (f64, f64),
) -> Vec<DensityCell> {
    let counts = columns.clone().flat_map(|(_, column)| column.cells()).map(|cell| cell.count);
    let most = (counts.max().unwrap_or(1) as f64).ln_1p();
    let mut open: BTreeMap<u64, DensityCell> = BTreeMap::new();
    let mut drawn = Vec::new();
    for ((left, right), column) in columns {
        let mut continued = BTreeMap::new();
        for cell in column.cells() {
            let low = cell.from_ns.max(lateness.0).min(lateness.1);
            let high = cell.to_ns.min(lateness.1).max(low);
            // As many steps as there are shades: finer ones would be drawn as these.
            let share = ((cell.count as f64).ln_1p() / most * SHADES as f64).ceil() / SHADES as f64;
            let row = cell.from_ns.to_bits();
            match open.remove(&row) {
                Some(before) if before.share == share && before.to.0 >= left => {
                    let to = (right, before.to.1);
                    continued.insert(row, DensityCell { to, ..before });
                }
                before => {
                    drawn.extend(before);
                    let (from, to) = ((left, low), (right, high));
                    continued.insert(row, DensityCell { from, to, share });
                }
            }
        }
        drawn.extend(std::mem::replace(&mut open, continued).into_values());
    }
    drawn.extend(open.into_values());
    drawn
}

/// The chart of a result of `measure wait`; `None` for others, and where nothing can be drawn.
pub(crate) fn front(report: &Report) -> Option<Chart> {
    let rows = report.body.strategies();
    let p99 = points(rows, |row| row.lateness_ns.p99);
    let p99_9 = points(rows, |row| row.lateness_ns.p99_9);
    let points = || p99.iter().chain(&p99_9);
    let (left, right) = (least(points().map(|at| at.x))?, most(points().map(|at| at.x))?);
    let (low, high) = (least(points().map(|at| at.y))?, most(points().map(|at| at.y))?);
    let front = rows.iter().filter(|row| row.on_front);
    let mut front: Vec<(f64, f64)> =
        front.filter_map(|row| Some((cpu(row)?, row.lateness_ns.p99?.max(1.0)))).collect();
    front.sort_by(|a, b| a.0.total_cmp(&b.0));
    let names: Vec<String> =
        rows.iter().filter(|row| row.on_front).map(StrategyRow::label).collect();
    let series =
        |name: &str, ink, mark| ChartSeries { name: name.to_owned(), ink, marks: vec![mark] };
    let unnamed = |points: Vec<NamedPoint>| points.into_iter().map(|at| (at.x, at.y)).collect();
    Some(Chart {
        title: "Lateness against CPU of ways to wait".to_owned(),
        titled: false,
        description: format!(
            "{} ways to wait. On the front, where no other way is cheaper and has a lower p99: {}.",
            rows.len(),
            names.join(", ")
        ),
        size: ALONE,
        x: Axis::log("CPU of the loop\'s thread, % (log)", left * 0.8, right * 1.25, percent),
        y: Axis::log("lateness (log)", low * 0.7, high * 1.6, ns),
        series: vec![
            series("front", 2, Mark::Line(front)),
            series("1 in 100 later (p99)", 0, Mark::Points(p99)),
            series("1 in 1000 later (p99.9)", 1, Mark::Dots(unnamed(p99_9))),
        ],
        notes: Vec::new(),
    })
}

/// The ways with this quantile; those on the front have their name.
fn points(rows: &[StrategyRow], quantile: impl Fn(&StrategyRow) -> Option<f64>) -> Vec<NamedPoint> {
    let point = |row: &StrategyRow| {
        let name = if row.on_front { row.label() } else { String::new() };
        // A log scale has no place for a wait that is on time to the nanosecond.
        Some(NamedPoint { x: cpu(row)?, y: quantile(row)?.max(1.0), name })
    };
    rows.iter().filter_map(point).collect()
}

fn cpu(row: &StrategyRow) -> Option<f64> {
    row.cpu_load.map(|load| load * 100.0).filter(|percent| *percent > 0.0)
}

fn least(values: impl Iterator<Item = f64>) -> Option<f64> {
    values.reduce(f64::min)
}

fn most(values: impl Iterator<Item = f64>) -> Option<f64> {
    values.reduce(f64::max)
}

fn percent(at: f64) -> String {
    format::share(at / 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_causes_of_dots_have_one_colour_but_the_rarest_together() {
        let causes = ["a", "b", "c", "d", "e", "f", "g", "h", "i"];
        let dots = [1, 9, 2, 8, 3, 7, 3, 5, 4];
        let groups = by_colour(&causes, &dots);
        let names: Vec<&str> = groups.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["b", "d", "f", "h", "i", "4 other causes"]);
        assert_eq!(groups[5].1, [4, 6, 2, 0]);
        // As many as colours have one each.
        let groups = by_colour(&causes[..SERIES], &dots[..SERIES]);
        assert_eq!(groups.len(), SERIES);
        assert!(groups.iter().all(|(_, causes)| causes.len() == 1), "{groups:?}");
        assert!(by_colour(&[], &[]).is_empty());
    }
}

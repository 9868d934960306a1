//! A chart: two axes, series of marks, a legend.
//!
//! Plain data in the units of the axes. [`Chart::scene`] lays it out in pixels (margins, grid,
//! axes, marks, legend): it maps the units of the axes to pixels and does nothing else.

use crate::axis::{Axis, Scale};
use crate::labels::{self, Bounds, Labels};
use crate::scene::{self, Anchor, Ink, Item, Scene, ScenePoint};

/// The mark of a series; all numbers in the units of the axes.
#[derive(Clone, Debug, PartialEq)]
pub enum Mark {
    /// Steps: value k from edge k to edge k + 1 (one edge more than values), filled lightly down
    /// to the axis. A value at or below the axis is not drawn.
    Steps {
        /// The edges, rising.
        edges: Vec<f64>,
        /// The values between them.
        values: Vec<f64>,
    },
    /// Stairs through points: each value holds from the point before up to its own x.
    Stairs(Vec<(f64, f64)>),
    /// A filled band with a line through it. `None` is a gap.
    Band(Vec<Option<BandPoint>>),
    /// A line from point to point.
    Line(Vec<(f64, f64)>),
    /// Dots.
    Dots(Vec<(f64, f64)>),
    /// Larger dots, each with its name above it where there is room.
    Points(Vec<NamedPoint>),
    /// Columns up from the lower axis.
    Bars(Vec<Bar>),
    /// Distributions, each as a box across the axis of names.
    Boxes(Vec<QuantileBox>),
    /// Rectangles, the darker the more there is.
    Cells(Vec<DensityCell>),
    /// Small marks on the lower axis.
    Rug(Vec<f64>),
    /// Named spans of x, above the frame.
    Spans(Vec<NamedSpan>),
    /// Named values of one axis, each a dashed line through the frame; what is outside of it is not
    /// drawn.
    Thresholds(ThresholdAxis, Vec<(f64, String)>),
}

/// The axis that [`Mark::Thresholds`] are values of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThresholdAxis {
    /// The lower one: its lines are upright.
    X,
    /// The one to the left.
    Y,
}

/// A place of [`Mark::Band`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BandPoint {
    /// Where it is on the lower axis.
    pub x: f64,
    /// The lower end of the band.
    pub low: f64,
    /// The place of the line.
    pub middle: f64,
    /// The upper end of the band.
    pub high: f64,
}

/// A dot of [`Mark::Points`].
#[derive(Clone, Debug, PartialEq)]
pub struct NamedPoint {
    /// Where it is on the lower axis.
    pub x: f64,
    /// Its height.
    pub y: f64,
    /// Above it, where there is room; may be empty.
    pub name: String,
}

/// A span of [`Mark::Spans`].
#[derive(Clone, Debug, PartialEq)]
pub struct NamedSpan {
    /// Its begin on the lower axis.
    pub from: f64,
    /// Its end there.
    pub to: f64,
    /// Above it, where there is room; may be empty.
    pub name: String,
}

/// A column of [`Mark::Bars`].
#[derive(Clone, Debug, PartialEq)]
pub struct Bar {
    /// The middle of its foot.
    pub place: f64,
    /// From the middle to its side.
    pub half: f64,
    /// Its height.
    pub value: f64,
    /// Above it, where there is room; may be empty.
    pub name: String,
}

/// A distribution of [`Mark::Boxes`].
#[derive(Clone, Debug, PartialEq)]
pub struct QuantileBox {
    /// Where it stands on the axis of names.
    pub place: f64,
    /// From there to its side.
    pub half: f64,
    /// The ends of its thin line.
    pub line: (f64, f64),
    /// The ends of its box.
    pub body: (f64, f64),
    /// The thick line through the box.
    pub middle: f64,
    /// A dot beyond the thin line; `None`: there is none.
    pub far: Option<f64>,
}

/// A rectangle of [`Mark::Cells`].
#[derive(Clone, Debug, PartialEq)]
pub struct DensityCell {
    /// One corner.
    pub from: (f64, f64),
    /// The opposite one.
    pub to: (f64, f64),
    /// The density, in [0, 1]; nothing is drawn of 0.
    pub share: f64,
}

/// A series.
#[derive(Clone, Debug, PartialEq)]
pub struct ChartSeries {
    /// Its name in the legend.
    pub name: String,
    /// Its number: colour and dashes. Several may share one.
    pub ink: usize,
    /// Its mark.
    pub marks: Vec<Mark>,
}

/// A chart.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    /// The title of the picture, in one line.
    pub title: String,
    /// True where the title stands in the picture too: for files that travel alone.
    pub titled: bool,
    /// The picture in words, for who cannot see it.
    pub description: String,
    /// Width and height, pixels.
    pub size: (f64, f64),
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// The series, in the order in which they are drawn.
    pub series: Vec<ChartSeries>,
    /// Notes on the reading of its marks and on what is left out: a line each, below the legend.
    pub notes: Vec<String>,
}

impl Chart {
    /// The chart in pixels.
    pub fn scene(&self) -> Scene {
        scene(self)
    }
}

/// The height of letters at ticks and in the legend.
const SMALL: f64 = 11.5;
/// The height of letters of the axes' words.
const MEDIUM: f64 = 12.0;
/// The height of letters of a title.
const LARGE: f64 = 15.0;
/// More points than this are drawn as small as samples.
const MANY: usize = 200;
/// The radius of a sample, and of a point.
const DOT: f64 = 1.7;
const POINT: f64 = 3.2;
/// A line of the legend, of notes, of names below a frame.
const ROW: f64 = 18.0;
const NOTE: f64 = 16.0;
const NAME: f64 = 14.0;
/// The most lines of a name below a frame.
const NAME_LINES: usize = 5;
/// The most of the width that names to the left of a frame take.
const NAMES_SHARE: f64 = 0.36;
/// Below the frame: ticks, their words, the axis' own.
const BELOW: f64 = 50.0;
/// Steps in which cells are darker.
pub const SHADES: usize = 10;

/// The rectangle in which marks are drawn.
struct Frame<'a> {
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
    x: &'a Axis,
    y: &'a Axis,
}

impl Frame<'_> {
    fn x(&self, value: f64) -> f64 {
        self.left + self.x.place(value) * (self.right - self.left)
    }

    fn y(&self, value: f64) -> f64 {
        let height = self.y.place(value) * (self.bottom - self.top);
        // Names are read from the top.
        if self.y.scale == Scale::Names { self.top + height } else { self.bottom - height }
    }

    fn point(&self, (x, y): (f64, f64)) -> ScenePoint {
        (self.x(x), self.y(y))
    }

    /// A place on the axis of names, and a value on the other one.
    fn named(&self, place: f64, value: f64) -> ScenePoint {
        match self.y.scale {
            Scale::Names => self.point((value, place)),
            Scale::Even | Scale::Clock | Scale::Log => self.point((place, value)),
        }
    }

    /// A rectangle with these corners.
    fn rectangle(from: ScenePoint, to: ScenePoint) -> Vec<ScenePoint> {
        vec![from, (to.0, from.1), to, (from.0, to.1)]
    }

    /// The place that words in it may take.
    fn bounds(&self) -> Bounds {
        Bounds { left: self.left, right: self.right, top: self.top, bottom: self.bottom }
    }
}

/// The chart's picture.
fn scene(chart: &Chart) -> Scene {
    let (width, height) = chart.size;
    let (mut items, mut words) = (Vec::new(), Labels::new(chart.size));
    let mut top = 8.0;
    if chart.titled {
        let title = labels::fitted(&chart.title, LARGE, width - 20.0);
        words.place(text((10.0, 22.0), &title, LARGE, Anchor::Start, Ink::Text));
        top += 26.0;
    }
    let left = 30.0 + names_width(&chart.y, width);
    top = legend(chart, (left, top), &mut items, &mut words);
    for note in &chart.notes {
        let note = labels::fitted(note, SMALL, width - left - 4.0);
        words.place(text((left, top + 11.0), &note, SMALL, Anchor::Start, Ink::Muted));
        top += NOTE;
    }
    top += 6.0;
    let named = |mark: &Mark| matches!(mark, Mark::Spans(spans) if !spans.is_empty());
    if chart.series.iter().flat_map(|series| &series.marks).any(named) {
        top += SMALL;
    }
    let right = width - 16.0;
    let below = match chart.x.scale {
        Scale::Names => {
            let lines = names_below(&chart.x, right - left).into_iter().map(|lines| lines.len());
            BELOW + NAME * lines.max().unwrap_or(1).saturating_sub(1) as f64
        }
        Scale::Even | Scale::Clock | Scale::Log => BELOW,
    };
    let below = if chart.x.label.is_empty() { below - ROW } else { below };
    let bottom = (height - below).max(top + 10.0);
    let frame = Frame { left, right, top, bottom, x: &chart.x, y: &chart.y };
    grid(&frame, &mut items);
    let mut lines = Vec::new();
    axes(&frame, &mut lines, &mut words);
    for series in &chart.series {
        for mark in &series.marks {
            draw(&frame, series, mark, &mut items, &mut words);
        }
    }
    items.extend(lines);
    items.extend(words.finish());
    let (title, description) = (chart.title.clone(), chart.description.clone());
    Scene { width, height, title, description, items }
}

/// The width that the words at the ticks of a vertical axis take, pixels.
fn names_width(axis: &Axis, width: f64) -> f64 {
    let words = axis.ticks.iter().filter_map(|tick| tick.label.as_deref());
    let widest = words.map(|words| labels::width(words, SMALL)).fold(0.0, f64::max);
    widest.min(width * NAMES_SHARE)
}

/// The names below a frame of this width, each in lines.
fn names_below(axis: &Axis, width: f64) -> Vec<Vec<String>> {
    let room = width / axis.ticks.len().max(1) as f64 - 6.0;
    let lines = |name: &String| labels::wrapped(name, SMALL, room, NAME_LINES);
    axis.ticks.iter().filter_map(|tick| tick.label.as_ref()).map(lines).collect()
}

fn text(at: ScenePoint, words: &str, size: f64, anchor: Anchor, ink: Ink) -> Item {
    Item::Text { at, text: words.to_owned(), size, anchor, ink, upward: false }
}

fn line(from: ScenePoint, to: ScenePoint, ink: Ink) -> Item {
    Item::Line { strokes: vec![vec![from, to]], ink, width: 1.0, dash: &[] }
}

/// The names of the series in rows, where there are several; where the rows end.
fn legend(
    chart: &Chart,
    (left, top): ScenePoint,
    items: &mut Vec<Item>,
    words: &mut Labels,
) -> f64 {
    if chart.series.len() < 2 {
        return top;
    }
    let right = chart.size.0 - 4.0;
    let (mut x, mut y) = (left, top);
    for series in &chart.series {
        let name = labels::fitted(&series.name, SMALL, right - left - 34.0);
        let needs = 34.0 + labels::width(&name, SMALL);
        if x > left && x + needs > right {
            (x, y) = (left, y + ROW);
        }
        key(series, (x, y + 8.0), items);
        words.place(text((x + 34.0, y + 12.0), &name, SMALL, Anchor::Start, Ink::Text));
        x += needs + 18.0;
    }
    y + ROW
}

/// The mark that stands for a series in the legend: one of its own kind.
fn key(series: &ChartSeries, (x, y): ScenePoint, items: &mut Vec<Item>) {
    let ink = Ink::Series(series.ink);
    let radius = |mark: &Mark| match mark {
        Mark::Points(points) if points.len() <= MANY => Some(POINT),
        Mark::Points(_) | Mark::Dots(_) | Mark::Rug(_) => Some(DOT),
        _ => None,
    };
    let is_area = |mark: &Mark| matches!(mark, Mark::Bars(_) | Mark::Boxes(_) | Mark::Cells(_));
    let is_band = |mark: &Mark| matches!(mark, Mark::Band(_));
    let dots: Option<Vec<f64>> = series.marks.iter().map(radius).collect();
    if let Some(radius) = dots.and_then(|dots| dots.into_iter().reduce(f64::max)) {
        items.push(Item::Dots { at: vec![(x + 14.0, y)], radius, ink });
        return;
    }
    let is_line = !series.marks.iter().any(is_area);
    if !is_line || series.marks.iter().any(is_band) {
        let outlines = vec![Frame::rectangle((x, y - 5.0), (x + 28.0, y + 5.0))];
        let opacity = scene::opacity(series.ink);
        items.push(Item::Fill { outlines, ink, opacity, edge: 1.0 });
    }
    if is_line {
        let strokes = vec![vec![(x, y), (x + 28.0, y)]];
        items.push(Item::Line { strokes, ink, width: 2.5, dash: scene::dash(series.ink) });
    }
}

fn grid(frame: &Frame<'_>, items: &mut Vec<Item>) {
    let named = |axis: &Axis| -> Vec<f64> {
        axis.ticks.iter().filter(|tick| tick.label.is_some()).map(|tick| tick.at).collect()
    };
    let across = named(frame.y).into_iter().map(|at| frame.y(at));
    let mut strokes: Vec<Vec<ScenePoint>> =
        across.map(|y| vec![(frame.left, y), (frame.right, y)]).collect();
    if frame.x.scale != Scale::Names {
        let down = named(frame.x).into_iter().map(|at| frame.x(at));
        strokes.extend(down.map(|x| vec![(x, frame.top), (x, frame.bottom)]));
    }
    items.push(Item::Line { strokes, ink: Ink::Grid, width: 1.0, dash: &[] });
}

fn axes(frame: &Frame<'_>, items: &mut Vec<Item>, words: &mut Labels) {
    let &Frame { left, right, top, bottom, x, y } = frame;
    items.push(line((left, bottom), (right, bottom), Ink::Axis));
    items.push(line((left, top), (left, bottom), Ink::Axis));
    let mut strokes = Vec::new();
    let mut lines = 1;
    if x.scale == Scale::Names {
        for (tick, name) in x.ticks.iter().zip(names_below(x, right - left)) {
            lines = lines.max(name.len());
            for (row, line) in name.iter().enumerate() {
                let at = (frame.x(tick.at), bottom + 16.0 + row as f64 * NAME);
                words.place(text(at, line, SMALL, Anchor::Middle, Ink::Text));
            }
        }
    } else {
        for tick in &x.ticks {
            let at = frame.x(tick.at);
            let length = if tick.label.is_some() { 6.0 } else { 3.0 };
            strokes.push(vec![(at, bottom), (at, bottom + length)]);
            let Some(label) = &tick.label else { continue };
            words.place(text((at, bottom + 18.0), label, SMALL, Anchor::Middle, Ink::Muted));
        }
    }
    let (is_named, room) = (y.scale == Scale::Names, left - 30.0 + 1e-6);
    for tick in &y.ticks {
        let at = frame.y(tick.at);
        let length = if tick.label.is_some() { 6.0 } else { 3.0 };
        if !is_named {
            strokes.push(vec![(left - length, at), (left, at)]);
        }
        let Some(label) = &tick.label else { continue };
        let label = labels::fitted(label, SMALL, room);
        let ink = if is_named { Ink::Text } else { Ink::Muted };
        words.place(text((left - 8.0, at + 4.0), &label, SMALL, Anchor::End, ink));
    }
    items.push(Item::Line { strokes, ink: Ink::Axis, width: 1.0, dash: &[] });
    let label = labels::fitted(&x.label, MEDIUM, right - left);
    let middle = ((left + right) / 2.0, bottom + 38.0 + (lines - 1) as f64 * NAME);
    words.place(text(middle, &label, MEDIUM, Anchor::Middle, Ink::Text));
    let room = bottom + ROW - (top - ROW);
    words.place(Item::Text {
        at: (14.0, (top + bottom) / 2.0),
        text: labels::fitted(&y.label, MEDIUM, room),
        size: MEDIUM,
        anchor: Anchor::Middle,
        ink: Ink::Text,
        upward: true,
    });
}

fn draw(
    frame: &Frame<'_>,
    series: &ChartSeries,
    mark: &Mark,
    items: &mut Vec<Item>,
    words: &mut Labels,
) {
    let ink = Ink::Series(series.ink);
    let dash = scene::dash(series.ink);
    match mark {
        Mark::Steps { edges, values } => {
            let strokes = steps(frame, edges, values);
            let closed = |stroke: &Vec<ScenePoint>| {
                let ends = [stroke[stroke.len() - 1], stroke[0]].map(|p| (p.0, frame.bottom));
                stroke.iter().copied().chain(ends).collect()
            };
            let outlines = strokes.iter().map(closed).collect();
            items.push(Item::Fill { outlines, ink, opacity: 0.13, edge: 0.0 });
            items.push(Item::Line { strokes, ink, width: 1.8, dash });
        }
        Mark::Stairs(points) => {
            let mut stroke: Vec<ScenePoint> = Vec::new();
            for point in points.iter().map(|&point| frame.point(point)) {
                if let Some(&(x, _)) = stroke.last() {
                    stroke.push((x, point.1));
                }
                stroke.push(point);
            }
            items.push(Item::Line { strokes: vec![stroke], ink, width: 2.0, dash });
        }
        Mark::Line(points) => {
            let stroke = points.iter().map(|&point| frame.point(point)).collect();
            items.push(Item::Line { strokes: vec![stroke], ink, width: 1.6, dash });
        }
        Mark::Band(points) => band(frame, (ink, dash), points, items),
        Mark::Dots(points) => {
            let at = points.iter().map(|&point| frame.point(point)).collect();
            items.push(Item::Dots { at, radius: DOT, ink });
        }
        Mark::Points(named) => points(frame, ink, named, items, words),
        Mark::Spans(named) => spans(frame, named, items, words),
        Mark::Thresholds(axis, named) => thresholds(frame, *axis, named, items, words),
        Mark::Bars(columns) => bars(frame, series.ink, columns, items, words),
        Mark::Boxes(distributions) => boxes(frame, series.ink, distributions, items),
        Mark::Cells(rectangles) => cells(frame, ink, rectangles, items),
        Mark::Rug(places) => {
            let tall =
                |&x: &f64| vec![(frame.x(x), frame.bottom), (frame.x(x), frame.bottom - 9.0)];
            let strokes = places.iter().map(tall).collect();
            items.push(Item::Line { strokes, ink: Ink::Text, width: 1.0, dash: &[] });
        }
    }
}

/// Stretches of bins that hold something, each from the axis up and down to it again.
fn steps(frame: &Frame<'_>, edges: &[f64], values: &[f64]) -> Vec<Vec<ScenePoint>> {
    let mut strokes: Vec<Vec<ScenePoint>> = Vec::new();
    let mut stroke: Vec<ScenePoint> = Vec::new();
    for (pair, &value) in edges.windows(2).zip(values) {
        let (from, to) = (frame.x(pair[0]), frame.x(pair[1]));
        if value <= 0.0 {
            strokes.extend(finished(&mut stroke, frame.bottom));
            continue;
        }
        if stroke.is_empty() {
            stroke.push((from, frame.bottom));
        }
        // At least a hair above the axis, or a single one would not be seen.
        let y = frame.y(value).min(frame.bottom - 2.0);
        stroke.extend([(from, y), (to, y)]);
    }
    strokes.extend(finished(&mut stroke, frame.bottom));
    strokes
}

fn finished(stroke: &mut Vec<ScenePoint>, bottom: f64) -> Option<Vec<ScenePoint>> {
    let last = *stroke.last()?;
    stroke.push((last.0, bottom));
    Some(std::mem::take(stroke))
}

/// A line down at each end, and the name above where it has room.
fn spans(frame: &Frame<'_>, named: &[NamedSpan], items: &mut Vec<Item>, words: &mut Labels) {
    let mut strokes = Vec::new();
    for NamedSpan { from, to, name } in named {
        let (from, to) = (frame.x(*from), frame.x(*to));
        let above = frame.top - SMALL;
        strokes.extend([from, to].map(|x| vec![(x, above), (x, frame.bottom)]));
        if labels::width(name, SMALL) + 4.0 <= to - from {
            let at = ((from + to) / 2.0, frame.top - 3.0);
            words.place(text(at, name, SMALL, Anchor::Middle, Ink::Muted));
        }
    }
    items.push(Item::Line { strokes, ink: Ink::Grid, width: 1.0, dash: &[] });
}

/// Lines through the frame, each with its name where no other word stands.
fn thresholds(
    frame: &Frame<'_>,
    axis: ThresholdAxis,
    named: &[(f64, String)],
    items: &mut Vec<Item>,
    words: &mut Labels,
) {
    let range = match axis {
        ThresholdAxis::X => frame.x,
        ThresholdAxis::Y => frame.y,
    };
    let mut strokes = Vec::new();
    for (at, name) in named.iter().filter(|(at, _)| (range.low..=range.high).contains(at)) {
        let (stroke, place, anchor) = match axis {
            ThresholdAxis::X => {
                let x = frame.x(*at);
                let name_at = (x + 4.0, frame.top + SMALL);
                (vec![(x, frame.top), (x, frame.bottom)], name_at, Anchor::Start)
            }
            ThresholdAxis::Y => {
                let y = frame.point((frame.x.low, *at)).1;
                let name_at = (frame.right - 4.0, y - 4.0);
                (vec![(frame.left, y), (frame.right, y)], name_at, Anchor::End)
            }
        };
        strokes.push(stroke);
        words.place_within(frame.bounds(), text(place, name, SMALL, anchor, Ink::Muted));
    }
    items.push(Item::Line { strokes, ink: Ink::Text, width: 1.0, dash: &[6.0, 4.0] });
}

/// Dots, and the names that are in no other's way.
fn points(
    frame: &Frame<'_>,
    ink: Ink,
    named: &[NamedPoint],
    items: &mut Vec<Item>,
    words: &mut Labels,
) {
    let at: Vec<ScenePoint> = named.iter().map(|point| frame.point((point.x, point.y))).collect();
    for (&(x, y), NamedPoint { name, .. }) in at.iter().zip(named) {
        // Points near each other have names above each other.
        let named = [6.0, 6.0 + SMALL * 1.1, 6.0 + SMALL * 2.2]
            .map(|above| text((x, y - above), name, SMALL, Anchor::Middle, Ink::Muted));
        let place = named.into_iter().find(|name| words.has_room(frame.bounds(), name));
        place.into_iter().for_each(|name| words.place_within(frame.bounds(), name));
    }
    let radius = if at.len() > MANY { DOT } else { POINT };
    items.push(Item::Dots { at, radius, ink });
}

/// Columns, each with its name above it where there is room.
fn bars(
    frame: &Frame<'_>,
    number: usize,
    columns: &[Bar],
    items: &mut Vec<Item>,
    words: &mut Labels,
) {
    let mut outlines = Vec::new();
    for Bar { place, half, value, name } in columns {
        let (left, right) = (frame.x(place - half), frame.x(place + half));
        // At least a hair above the axis, or the smallest would not be seen.
        let top = frame.y(*value).min(frame.bottom - 1.0);
        outlines.push(Frame::rectangle((left, frame.bottom), (right, top)));
        // Columns beside each other may be as high, and their names wider than they: one of them
        // stands a line higher.
        let named = [4.0, 4.0 + SMALL * 1.1].map(|above| {
            text(((left + right) / 2.0, top - above), name, SMALL, Anchor::Middle, Ink::Muted)
        });
        let place = named.into_iter().find(|name| words.has_room(frame.bounds(), name));
        place.into_iter().for_each(|name| words.place_within(frame.bounds(), name));
    }
    let (ink, opacity) = (Ink::Series(number), scene::opacity(number));
    items.push(Item::Fill { outlines, ink, opacity, edge: 1.0 });
}

/// Thin lines with their ends, boxes over them, thick lines through these, dots beyond.
fn boxes(frame: &Frame<'_>, number: usize, distributions: &[QuantileBox], items: &mut Vec<Item>) {
    let (ink, opacity) = (Ink::Series(number), scene::opacity(number));
    let (mut thin, mut thick) = (Vec::new(), Vec::new());
    let (mut outlines, mut dots) = (Vec::new(), Vec::new());
    for QuantileBox { place, half, line, body, middle, far } in distributions {
        let at = |aside: f64, value: f64| frame.named(place + aside * half, value);
        thin.push(vec![at(0.0, line.0), at(0.0, line.1)]);
        thin.extend([line.0, line.1].map(|end| vec![at(-0.5, end), at(0.5, end)]));
        outlines.push(Frame::rectangle(at(-1.0, body.0), at(1.0, body.1)));
        thick.push(vec![at(-1.0, *middle), at(1.0, *middle)]);
        dots.extend(far.map(|far| at(0.0, far)));
    }
    items.push(Item::Line { strokes: thin, ink, width: 1.2, dash: &[] });
    items.push(Item::Fill { outlines, ink, opacity, edge: 1.0 });
    items.push(Item::Line { strokes: thick, ink, width: 2.6, dash: &[] });
    items.push(Item::Dots { at: dots, radius: 2.2, ink });
}

/// Rectangles of the same shade as one shape each.
fn cells(frame: &Frame<'_>, ink: Ink, rectangles: &[DensityCell], items: &mut Vec<Item>) {
    for shade in 1..=SHADES {
        let is_of = |cell: &&DensityCell| {
            (cell.share.clamp(0.0, 1.0) * SHADES as f64).ceil() as usize == shade
        };
        let shape =
            |cell: &DensityCell| Frame::rectangle(frame.point(cell.from), frame.point(cell.to));
        let outlines: Vec<_> = rectangles.iter().filter(is_of).map(shape).collect();
        if !outlines.is_empty() {
            let opacity = shade as f64 / SHADES as f64;
            items.push(Item::Fill { outlines, ink, opacity, edge: 0.0 });
        }
    }
}

fn band(
    frame: &Frame<'_>,
    (ink, dash): (Ink, &'static [f64]),
    points: &[Option<BandPoint>],
    items: &mut Vec<Item>,
) {
    let stretches: Vec<Vec<BandPoint>> = points
        .split(Option::is_none)
        .filter(|stretch| !stretch.is_empty())
        .map(|stretch| stretch.iter().flatten().copied().collect())
        .collect();
    let outline = |stretch: &Vec<BandPoint>| -> Vec<ScenePoint> {
        let above = stretch.iter().map(|p| frame.point((p.x, p.high)));
        let below = stretch.iter().rev().map(|p| frame.point((p.x, p.low)));
        above.chain(below).collect()
    };
    let outlines: Vec<Vec<ScenePoint>> = stretches.iter().map(outline).collect();
    // With an edge, so that a band of no height is seen too.
    items.push(Item::Fill { outlines, ink, opacity: 0.28, edge: 0.7 });
    let strokes = stretches
        .iter()
        .map(|s| s.iter().map(|p| frame.point((p.x, p.middle))).collect())
        .collect();
    items.push(Item::Line { strokes, ink, width: 1.6, dash });
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A chart of a line and of so many points.
    fn chart(points: usize) -> Chart {
        let words = |at: f64| format!("{at:.0}");
        let series =
            |name: &str, ink, mark| ChartSeries { name: name.to_owned(), ink, marks: vec![mark] };
        let dots = (0..points)
            .map(|at| NamedPoint { x: at as f64, y: 1.0, name: String::new() })
            .collect();
        Chart {
            title: "a chart".to_owned(),
            titled: false,
            description: "a line and points".to_owned(),
            size: (600.0, 300.0),
            x: Axis::even("x", 0.0, 10.0, 5, words),
            y: Axis::even("y", 0.0, 2.0, 5, words),
            series: vec![
                series("a line with a long name", 0, Mark::Line(vec![(0.0, 0.0), (9.0, 2.0)])),
                series("points", 1, Mark::Points(dots)),
            ],
            notes: Vec::new(),
        }
    }

    #[test]
    fn the_legend_shows_points_as_points_and_leaves_room_for_wider_letters() {
        let scene = chart(3).scene();
        let words = |wanted: &str| {
            scene.items.iter().find_map(|item| match item {
                Item::Text { at, text, .. } if text == wanted => Some(*at),
                _ => None,
            })
        };
        let (line, points) = (words("a line with a long name"), words("points"));
        let (line, points) = (line.expect("named"), points.expect("named"));
        assert_eq!(line.1, points.1, "both fit in a row");
        let end = line.0 + labels::width("a line with a long name", SMALL);
        let dots: Vec<&Vec<ScenePoint>> = scene
            .items
            .iter()
            .filter_map(|item| match item {
                Item::Dots { at, .. } => Some(at),
                _ => None,
            })
            .collect();
        assert_eq!(dots.iter().map(|at| at.len()).collect::<Vec<_>>(), [1, 3]);
        let key = dots[0][0];
        assert!(end < key.0 && key.0 < points.0, "{end} {key:?} {points:?}");
    }

    #[test]
    fn columns_as_high_as_those_beside_them_have_names_all_the_same() {
        let mut drawn = chart(3);
        let bar =
            |place: f64, name: &str| Bar { place, half: 0.1, value: 1.2, name: name.to_owned() };
        let bars = vec![bar(3.0, "0.0200001"), bar(3.2, "0.0190001")];
        let series =
            ChartSeries { name: "columns".to_owned(), ink: 2, marks: vec![Mark::Bars(bars)] };
        drawn.series.push(series);
        let named = |wanted: &str| {
            drawn.scene().items.iter().find_map(|item| match item {
                Item::Text { at, text, .. } if text == wanted => Some(*at),
                _ => None,
            })
        };
        let [first, second] = ["0.0200001", "0.0190001"].map(|name| named(name).expect(name));
        assert!(second.1 < first.1, "a line higher: {first:?} {second:?}");
    }

    #[test]
    fn no_two_series_look_alike() {
        let looks: Vec<(&str, &[f64])> =
            (0..12).map(|number| (Ink::Series(number).on_white(), scene::dash(number))).collect();
        for (at, look) in looks.iter().enumerate() {
            assert!(!looks[..at].contains(look), "{at}: {look:?}");
        }
        // Columns have no dashes: those of a colour that was there are hollow.
        let columns = |ink| {
            let bars = vec![Bar { place: 3.0, half: 0.1, value: 1.2, name: String::new() }];
            let series = ChartSeries { name: String::new(), ink, marks: vec![Mark::Bars(bars)] };
            let drawn = Chart { series: vec![series], ..chart(3) };
            let fill = |item: &Item| match item {
                Item::Fill { ink, opacity, .. } => Some((ink.on_white(), opacity.to_bits())),
                _ => None,
            };
            drawn.scene().items.iter().find_map(fill).expect("columns")
        };
        assert_eq!(columns(1).0, columns(7).0);
        assert_ne!(columns(1).1, columns(7).1);
    }

    #[test]
    fn points_near_each_other_have_names_above_each_other() {
        let point = |x: f64, name: &str| NamedPoint { x, y: 0.1, name: name.to_owned() };
        let points = vec![point(5.0, "minimum"), point(5.3, "average"), point(5.5, "median")];
        let mark = Mark::Points(points);
        let series = vec![ChartSeries { name: "published".to_owned(), ink: 0, marks: vec![mark] }];
        let words = words_of(&Chart { series, ..chart(3) }.scene());
        for name in ["minimum", "average", "median"] {
            assert!(words.iter().any(|(word, _)| word == name), "{name}: {words:?}");
        }
    }

    #[test]
    fn many_points_are_small() {
        let radius = |points| {
            let scene = chart(points).scene();
            let mut dots = scene.items.iter().filter_map(|item| match item {
                Item::Dots { at, radius, .. } if at.len() == points => Some(*radius),
                _ => None,
            });
            dots.next().expect("drawn")
        };
        assert!(radius(MANY + 1) < radius(MANY));
    }

    /// Every word of a scene, and what it takes.
    fn words_of(scene: &Scene) -> Vec<(String, Bounds)> {
        let word = |item: &Item| match item {
            Item::Text { text, .. } => Some((text.clone(), Bounds::of(item)?)),
            _ => None,
        };
        scene.items.iter().filter_map(word).collect()
    }

    /// A series of each kind of mark in turn, with names of all lengths.
    fn series(number: usize, name: &str) -> ChartSeries {
        let place = number as f64;
        let far = if number.is_multiple_of(2) { Some(9.0) } else { None };
        let mark = match number % 7 {
            0 => Mark::Line(vec![(0.0, 0.0), (place, 2.0)]),
            1 => {
                let point = |y: f64| NamedPoint { x: place, y, name: name.to_owned() };
                Mark::Points(vec![point(1.0), point(1.1)])
            }
            2 => Mark::Bars(vec![Bar { place, half: 0.4, value: 1.5, name: name.to_owned() }]),
            3 => {
                let (line, body, middle, half) = ((0.1, 1.9), (0.5, 1.0), 0.7, 0.3);
                Mark::Boxes(vec![QuantileBox { place, half, line, body, middle, far }])
            }
            4 if far.is_some() => Mark::Thresholds(ThresholdAxis::Y, vec![(1.0, name.to_owned())]),
            4 => Mark::Spans(vec![NamedSpan { from: 0.0, to: place, name: name.to_owned() }]),
            5 => {
                let point = |x: f64| Some(BandPoint { x, low: 0.5, middle: 1.0, high: 1.5 });
                Mark::Band(vec![point(0.0), None, point(3.0)])
            }
            _ => {
                let (from, to) = ((place, 0.0), (place + 1.0, 1.0));
                Mark::Cells(vec![DensityCell { from, to, share: 0.31 }])
            }
        };
        ChartSeries { name: name.to_owned(), ink: number, marks: vec![mark] }
    }

    proptest! {
        #[test]
        fn no_words_cover_others_or_leave_the_picture_and_each_series_has_its_own(
            names in prop::collection::vec("[a-zµ ]{1,70}", 2..9),
            places in prop::collection::vec("[a-z ,0-9]{1,40}", 1..12),
            (width, height) in (340.0f64..900.0, 420.0f64..700.0),
            axes in 0usize..4,
        ) {
            let words = |at: f64| format!("{at:.1} µs");
            let even = |label: &str| Axis::even(label, 0.0, 8.0, 6, words);
            let named = || Axis::names("name", places.clone());
            let (x, y) = match axes {
                0 => (even("a quantity"), even(&names.concat())),
                1 => (named(), even("a quantity")),
                2 => (even("a quantity"), named()),
                _ => (Axis::log(&names.concat(), 0.5, 9e3, words), even("")),
            };
            let series: Vec<ChartSeries> =
                names.iter().enumerate().map(|(at, name)| series(at, name)).collect();
            let chart = Chart {
                size: (width, height),
                titled: true,
                title: names.concat(),
                notes: vec!["box: all".to_owned(), names.concat()],
                x,
                y,
                series,
                ..chart(1)
            };
            let scene = chart.scene();
            let words = words_of(&scene);
            for (at, (text, bounds)) in words.iter().enumerate() {
                prop_assert!(bounds.left >= 0.0 && bounds.right <= width, "{} {:?}", text, bounds);
                prop_assert!(bounds.top >= 0.0 && bounds.bottom <= height, "{} {:?}", text, bounds);
                for (earlier, taken) in &words[..at] {
                    prop_assert!(!taken.covers(bounds), "{} covers {}", text, earlier);
                }
            }
            for name in names.iter().filter(|name| !name.trim().is_empty()) {
                let begin: String = name.trim_end().chars().take(12).collect();
                prop_assert!(words.iter().any(|(text, _)| text.starts_with(&begin)), "{}", name);
            }
        }
    }

    #[test]
    fn names_stand_below_or_beside_the_frame_and_are_read_from_the_top() {
        let names = ["sleep", "timerfd", "a posix timer with a signal"].map(str::to_owned);
        let tall = Chart { size: (600.0, 400.0), ..chart(1) };
        let beside = Chart { y: Axis::names("", names.clone()), ..tall.clone() };
        let below = Chart { x: Axis::names("", names.clone()), ..tall };
        let place = |scene: &Scene, name: &str| {
            words_of(scene).into_iter().find(|(text, _)| text == name).expect("named").1
        };
        let scene = beside.scene();
        let tops = names.clone().map(|name| place(&scene, &name).top);
        assert!(tops[0] < tops[1] && tops[1] < tops[2], "{tops:?}");
        let scene = below.scene();
        let lefts = [&names[0], &names[1]].map(|name| place(&scene, name).left);
        assert!(lefts[0] < lefts[1], "{lefts:?}");
    }

    #[test]
    fn a_box_lies_across_the_axis_of_names() {
        let (line, body, middle) = ((1.0, 9.0), (2.0, 6.0), 3.0);
        let distribution =
            QuantileBox { place: 1.0, half: 0.3, line, body, middle, far: Some(9.5) };
        let series = vec![ChartSeries {
            name: "a".to_owned(),
            ink: 0,
            marks: vec![Mark::Boxes(vec![distribution])],
        }];
        let names = ["a", "b"].map(str::to_owned);
        let even = Axis::even("", 0.0, 10.0, 5, |at| at.to_string());
        let wide = Chart { y: Axis::names("", names), x: even, series, ..chart(1) };
        let tall = Chart { x: wide.y.clone(), y: wide.x.clone(), ..wide.clone() };
        let outline = |chart: &Chart| {
            let scene = chart.scene();
            let body = scene.items.iter().find_map(|item| match item {
                Item::Fill { outlines, .. } => outlines.first().cloned(),
                _ => None,
            });
            let body = body.expect("a box");
            let range = |part: fn(&ScenePoint) -> f64| {
                let ends = body
                    .iter()
                    .map(part)
                    .fold((f64::MAX, f64::MIN), |ends, at| (ends.0.min(at), ends.1.max(at)));
                ends.1 - ends.0
            };
            (range(|at| at.0), range(|at| at.1))
        };
        let (wide, tall) = (outline(&wide), outline(&tall));
        assert!(wide.0 > wide.1 * 2.0, "{wide:?}");
        assert!(tall.1 > 60.0, "{tall:?}");
    }

    #[test]
    fn what_there_is_more_of_is_darker_and_nothing_is_not_drawn() {
        let cell = |at: f64, share| DensityCell { from: (at, 0.0), to: (at + 1.0, 1.0), share };
        let marks = vec![Mark::Cells(vec![cell(0.0, 0.0), cell(1.0, 0.2), cell(2.0, 1.0)])];
        let series = vec![ChartSeries { name: "a".to_owned(), ink: 0, marks }];
        let scene = Chart { series, ..chart(1) }.scene();
        let shades: Vec<f64> = scene
            .items
            .iter()
            .filter_map(|item| match item {
                Item::Fill { opacity, .. } => Some(*opacity),
                _ => None,
            })
            .collect();
        assert_eq!(shades, [0.2, 1.0]);
    }
}

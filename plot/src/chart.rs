//! A chart: two axes, series of marks, a legend.
//!
//! Plain data in the units of the axes. [`Chart::scene`] lays it out in pixels (margins, grid,
//! axes, marks, legend): it maps the units of the axes to pixels and does nothing else.

use crate::axis::Axis;
use crate::font;
use crate::scene::{Anchor, DASHES, Ink, Item, SERIES, Scene, ScenePoint};

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
    /// A filled band with a line through it: (x, lowest, middle, highest). `None` is a gap.
    Band(Vec<Option<(f64, f64, f64, f64)>>),
    /// A line from point to point.
    Line(Vec<(f64, f64)>),
    /// Dots.
    Dots(Vec<(f64, f64)>),
    /// Larger dots, each with its name above it where there is room; an empty name is none.
    Points(Vec<(f64, f64, String)>),
    /// Small marks on the lower axis.
    Rug(Vec<f64>),
    /// Named spans of x, above the frame: from, to, name.
    Spans(Vec<(f64, f64, String)>),
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
/// How much wider than the font of PNG files a reader's own may be, in which a page is shown.
const WIDER: f64 = 1.15;
/// More points than this are drawn as small as samples.
const MANY: usize = 200;
/// A line of the legend.
const ROW: f64 = 18.0;

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
        self.bottom - self.y.place(value) * (self.bottom - self.top)
    }

    fn point(&self, (x, y): (f64, f64)) -> ScenePoint {
        (self.x(x), self.y(y))
    }
}

/// The chart's picture.
fn scene(chart: &Chart) -> Scene {
    let (width, height) = chart.size;
    let mut items = Vec::new();
    let mut top = 8.0;
    if chart.titled {
        items.push(text((10.0, 22.0), &chart.title, LARGE, Anchor::Start, Ink::Text));
        top += 26.0;
    }
    let widest = chart.y.ticks.iter().filter_map(|tick| tick.label.as_deref());
    let widest = widest.map(|label| font::width(label, SMALL)).fold(0.0, f64::max);
    let left = 30.0 + widest;
    top = legend(chart, left, top, &mut items) + 6.0;
    let named = |mark: &Mark| matches!(mark, Mark::Spans(spans) if !spans.is_empty());
    if chart.series.iter().flat_map(|series| &series.marks).any(named) {
        top += SMALL;
    }
    let frame = Frame {
        left,
        right: width - 16.0,
        top,
        bottom: (height - 50.0).max(top + 10.0),
        x: &chart.x,
        y: &chart.y,
    };
    grid(&frame, &mut items);
    for series in &chart.series {
        for mark in &series.marks {
            draw(&frame, series, mark, &mut items);
        }
    }
    axes(&frame, &mut items);
    let (title, description) = (chart.title.clone(), chart.description.clone());
    Scene { width, height, title, description, items }
}

fn text(at: ScenePoint, words: &str, size: f64, anchor: Anchor, ink: Ink) -> Item {
    Item::Text { at, text: words.to_owned(), size, anchor, ink, upward: false }
}

fn line(from: ScenePoint, to: ScenePoint, ink: Ink) -> Item {
    Item::Line { strokes: vec![vec![from, to]], ink, width: 1.0, dash: &[] }
}

/// The names of the series in rows, where there are several; where the rows end.
fn legend(chart: &Chart, left: f64, top: f64, items: &mut Vec<Item>) -> f64 {
    if chart.series.len() < 2 {
        return top;
    }
    let (mut x, mut y) = (left, top);
    for series in &chart.series {
        let needs = 34.0 + font::width(&series.name, SMALL) * WIDER + 18.0;
        if x > left && x + needs > chart.size.0 {
            (x, y) = (left, y + ROW);
        }
        let (ink, middle) = (Ink::Series(series.ink), y + 8.0);
        let is_dots = series.marks.iter().all(|mark| matches!(mark, Mark::Points(_)));
        items.push(match is_dots {
            true => Item::Dots { at: vec![(x + 14.0, middle)], radius: 3.2, ink },
            false => {
                let strokes = vec![vec![(x, middle), (x + 28.0, middle)]];
                Item::Line { strokes, ink, width: 2.5, dash: DASHES[series.ink % SERIES] }
            }
        });
        items.push(text((x + 34.0, y + 12.0), &series.name, SMALL, Anchor::Start, Ink::Text));
        x += needs;
    }
    y + ROW
}

fn grid(frame: &Frame<'_>, items: &mut Vec<Item>) {
    let named = |axis: &Axis| -> Vec<f64> {
        axis.ticks.iter().filter(|tick| tick.label.is_some()).map(|tick| tick.at).collect()
    };
    let across = named(frame.y).into_iter().map(|at| frame.y(at));
    let mut strokes: Vec<Vec<ScenePoint>> =
        across.map(|y| vec![(frame.left, y), (frame.right, y)]).collect();
    let down = named(frame.x).into_iter().map(|at| frame.x(at));
    strokes.extend(down.map(|x| vec![(x, frame.top), (x, frame.bottom)]));
    items.push(Item::Line { strokes, ink: Ink::Grid, width: 1.0, dash: &[] });
}

fn axes(frame: &Frame<'_>, items: &mut Vec<Item>) {
    let &Frame { left, right, top, bottom, x, y } = frame;
    items.push(line((left, bottom), (right, bottom), Ink::Axis));
    items.push(line((left, top), (left, bottom), Ink::Axis));
    let mut strokes = Vec::new();
    let mut taken = f64::NEG_INFINITY;
    for tick in &x.ticks {
        let at = frame.x(tick.at);
        let length = if tick.label.is_some() { 6.0 } else { 3.0 };
        strokes.push(vec![(at, bottom), (at, bottom + length)]);
        let Some(label) = &tick.label else { continue };
        let half = font::width(label, SMALL) / 2.0;
        if at - half > taken && at + half < right + 16.0 {
            items.push(text((at, bottom + 18.0), label, SMALL, Anchor::Middle, Ink::Muted));
            taken = at + half + 6.0;
        }
    }
    let mut taken = f64::INFINITY;
    for tick in &y.ticks {
        let at = frame.y(tick.at);
        let length = if tick.label.is_some() { 6.0 } else { 3.0 };
        strokes.push(vec![(left - length, at), (left, at)]);
        let Some(label) = &tick.label else { continue };
        if at < taken {
            items.push(text((left - 8.0, at + 4.0), label, SMALL, Anchor::End, Ink::Muted));
            taken = at - SMALL;
        }
    }
    items.push(Item::Line { strokes, ink: Ink::Axis, width: 1.0, dash: &[] });
    let middle = ((left + right) / 2.0, bottom + 38.0);
    items.push(text(middle, &x.label, MEDIUM, Anchor::Middle, Ink::Text));
    items.push(Item::Text {
        at: (14.0, (top + bottom) / 2.0),
        text: y.label.clone(),
        size: MEDIUM,
        anchor: Anchor::Middle,
        ink: Ink::Text,
        upward: true,
    });
}

fn draw(frame: &Frame<'_>, series: &ChartSeries, mark: &Mark, items: &mut Vec<Item>) {
    let ink = Ink::Series(series.ink);
    let dash = DASHES[series.ink % SERIES];
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
        Mark::Band(points) => band(frame, ink, points, items),
        Mark::Dots(points) => {
            let at = points.iter().map(|&point| frame.point(point)).collect();
            items.push(Item::Dots { at, radius: 1.7, ink });
        }
        Mark::Points(named) => points(frame, ink, named, items),
        Mark::Spans(named) => spans(frame, named, items),
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
fn spans(frame: &Frame<'_>, named: &[(f64, f64, String)], items: &mut Vec<Item>) {
    let mut strokes = Vec::new();
    for (from, to, name) in named {
        let (from, to) = (frame.x(*from), frame.x(*to));
        let above = frame.top - SMALL;
        strokes.extend([from, to].map(|x| vec![(x, above), (x, frame.bottom)]));
        if font::width(name, SMALL) + 4.0 <= to - from {
            let at = ((from + to) / 2.0, frame.top - 3.0);
            items.push(text(at, name, SMALL, Anchor::Middle, Ink::Muted));
        }
    }
    items.push(Item::Line { strokes, ink: Ink::Grid, width: 1.0, dash: &[] });
}

/// Dots, and the names that are in no other's way.
fn points(frame: &Frame<'_>, ink: Ink, named: &[(f64, f64, String)], items: &mut Vec<Item>) {
    let at: Vec<ScenePoint> = named.iter().map(|point| frame.point((point.0, point.1))).collect();
    let mut taken: Vec<(f64, f64, f64)> = Vec::new();
    for ((x, y), (_, _, name)) in at.iter().copied().zip(named) {
        let half = font::width(name, SMALL) / 2.0;
        let (left, right, base) = (x - half, x + half, y - 6.0);
        let is_free = |&(from, to, taken_base): &(f64, f64, f64)| {
            right + 3.0 < from || to + 3.0 < left || (base - taken_base).abs() > SMALL
        };
        let fits = left > frame.left && right < frame.right && base - SMALL > frame.top;
        if !name.is_empty() && fits && taken.iter().all(is_free) {
            taken.push((left, right, base));
            items.push(text((x, base), name, SMALL, Anchor::Middle, Ink::Muted));
        }
    }
    let radius = if at.len() > MANY { 1.7 } else { 3.2 };
    items.push(Item::Dots { at, radius, ink });
}

type BandPoint = (f64, f64, f64, f64);

fn band(frame: &Frame<'_>, ink: Ink, points: &[Option<BandPoint>], items: &mut Vec<Item>) {
    let stretches: Vec<Vec<BandPoint>> = points
        .split(Option::is_none)
        .filter(|stretch| !stretch.is_empty())
        .map(|stretch| stretch.iter().flatten().copied().collect())
        .collect();
    let outline = |stretch: &Vec<BandPoint>| -> Vec<ScenePoint> {
        let above = stretch.iter().map(|p| frame.point((p.0, p.3)));
        let below = stretch.iter().rev().map(|p| frame.point((p.0, p.1)));
        above.chain(below).collect()
    };
    let outlines: Vec<Vec<ScenePoint>> = stretches.iter().map(outline).collect();
    // With an edge, so that a band of no height is seen too.
    items.push(Item::Fill { outlines, ink, opacity: 0.28, edge: 0.7 });
    let strokes =
        stretches.iter().map(|s| s.iter().map(|p| frame.point((p.0, p.2))).collect()).collect();
    items.push(Item::Line { strokes, ink, width: 1.6, dash: &[] });
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A chart of a line and of so many points.
    fn chart(points: usize) -> Chart {
        let words = |at: f64| format!("{at:.0}");
        let series =
            |name: &str, ink, mark| ChartSeries { name: name.to_owned(), ink, marks: vec![mark] };
        let dots = (0..points).map(|at| (at as f64, 1.0, String::new())).collect();
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
        let end = line.0 + font::width("a line with a long name", SMALL) * WIDER;
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
}

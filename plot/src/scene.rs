//! A picture as a list of lines, shapes and words: what both SVG and PNG are made from.
//!
//! Plain data in pixels, origin at the top left.

/// A point, in pixels.
pub type ScenePoint = (f64, f64);

/// The ink of a shape; the reader's theme decides which colour that is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ink {
    /// Words that matter.
    Text,
    /// Words beside: numbers at ticks.
    Muted,
    /// Axes and their ticks.
    Axis,
    /// Lines of the grid.
    Grid,
    /// The series of this number; its colour is that of the number less [`SERIES`], if it is not
    /// below that.
    Series(usize),
}

/// The number of colours of series.
pub const SERIES: usize = 6;

/// The colours of the series on white: distinguishable by colour-blind eyes (Okabe and Ito's
/// palette, its yellow left out, the light ones darkened for thin lines).
pub const SERIES_ON_WHITE: [&str; SERIES] =
    ["#0062a8", "#c24a00", "#00795a", "#a8447f", "#8f6400", "#4a5058"];

/// The dashes of the series, in pixels: line, gap, …; empty: a full line.
const DASHES: [&[f64]; SERIES] =
    [&[], &[7.0, 3.0], &[2.0, 2.0], &[9.0, 3.0, 2.0, 3.0], &[4.0, 2.0], &[12.0, 4.0]];

/// The dashes of the series of this number: of those of one colour none has those of another, up
/// to the square of [`SERIES`].
pub fn dash(series: usize) -> &'static [f64] {
    DASHES[(series + series / SERIES) % SERIES]
}

/// The opacity of the shapes of the series of this number, in [0, 1]: those that have the colour of
/// one before are nearly hollow.
pub fn opacity(series: usize) -> f64 {
    if series < SERIES { 0.3 } else { 0.05 }
}

impl Ink {
    /// Its name: `text`, `s0`, …
    pub fn name(self) -> &'static str {
        const NAMES: [&str; SERIES] = ["s0", "s1", "s2", "s3", "s4", "s5"];
        match self {
            Self::Text => "text",
            Self::Muted => "muted",
            Self::Axis => "axis",
            Self::Grid => "grid",
            Self::Series(number) => NAMES[number % SERIES],
        }
    }

    /// Its colour on white, `#rrggbb`.
    pub fn on_white(self) -> &'static str {
        match self {
            Self::Text => "#1c2024",
            Self::Muted => "#5a626b",
            Self::Axis => "#8b939c",
            Self::Grid => "#e3e6e9",
            Self::Series(number) => SERIES_ON_WHITE[number % SERIES],
        }
    }
}

/// Where a word stands about its point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    /// It begins there.
    Start,
    /// Its middle is there.
    Middle,
    /// It ends there.
    End,
}

/// One thing to draw.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// Lines from point to point; each inner list is one stroke.
    Line {
        /// The strokes.
        strokes: Vec<Vec<ScenePoint>>,
        /// Its ink.
        ink: Ink,
        /// Its width, pixels.
        width: f64,
        /// Dashes; empty: a full line.
        dash: &'static [f64],
    },
    /// Closed shapes, filled.
    Fill {
        /// The outlines.
        outlines: Vec<Vec<ScenePoint>>,
        /// Its ink.
        ink: Ink,
        /// In [0, 1].
        opacity: f64,
        /// Width of its edge, pixels, drawn in full; 0: none.
        edge: f64,
    },
    /// Round dots.
    Dots {
        /// Their middles.
        at: Vec<ScenePoint>,
        /// Their radius.
        radius: f64,
        /// Its ink.
        ink: Ink,
    },
    /// A word or a line of words.
    Text {
        /// Where: on the base line.
        at: ScenePoint,
        /// The words.
        text: String,
        /// Size of the letters, pixels.
        size: f64,
        /// About the point.
        anchor: Anchor,
        /// Its ink.
        ink: Ink,
        /// Turned by a quarter to the left.
        upward: bool,
    },
}

/// A picture.
#[derive(Clone, Debug, PartialEq)]
pub struct Scene {
    /// Its width, pixels.
    pub width: f64,
    /// Its height, pixels.
    pub height: f64,
    /// Its title: the quantity shown, in one line.
    pub title: String,
    /// The picture in words, for who cannot see it.
    pub description: String,
    /// The shapes, in the order in which they are drawn.
    pub items: Vec<Item>,
}

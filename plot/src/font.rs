//! The one font: how wide words are, and their outlines.
//!
//! Embedded (see `plot/font/README.md`), so that pictures are the same on every machine.

use ttf_parser::{Face, OutlineBuilder};

static FONT: &[u8] = include_bytes!("../font/Roboto-Regular-subset.ttf");

fn face() -> Option<Face<'static>> {
    // The font is part of the program; a test holds that it can be read.
    Face::parse(FONT, 0).ok()
}

/// The width of `text`, pixels, in letters of `size` pixels.
pub(crate) fn width(text: &str, size: f64) -> f64 {
    let Some(face) = face() else { return 0.0 };
    let scale = size / f64::from(face.units_per_em());
    text.chars().map(|c| advance(&face, c) * scale).sum()
}

fn advance(face: &Face<'_>, c: char) -> f64 {
    let glyph = face.glyph_index(c).unwrap_or_default();
    f64::from(face.glyph_hor_advance(glyph).unwrap_or_default())
}

/// Draws the outlines of `text` into `path`, from the origin along x, in letters of `size`
/// pixels, y downward. A character that the font does not have is drawn as an empty box.
pub(crate) fn outline(text: &str, size: f64, path: &mut tiny_skia::PathBuilder) {
    let Some(face) = face() else { return };
    let scale = (size / f64::from(face.units_per_em())) as f32;
    let mut pen = Pen { path, x: 0.0, scale };
    for c in text.chars() {
        let glyph = face.glyph_index(c).unwrap_or_default();
        let _empty = face.outline_glyph(glyph, &mut pen);
        pen.x += advance(&face, c) as f32 * scale;
    }
}

struct Pen<'a> {
    path: &'a mut tiny_skia::PathBuilder,
    x: f32,
    scale: f32,
}

impl Pen<'_> {
    fn at(&self, x: f32, y: f32) -> (f32, f32) {
        (self.x + x * self.scale, -y * self.scale)
    }
}

impl OutlineBuilder for Pen<'_> {
    fn move_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.at(x, y);
        self.path.move_to(x, y);
    }

    fn line_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.at(x, y);
        self.path.line_to(x, y);
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        let ((x1, y1), (x, y)) = (self.at(x1, y1), self.at(x, y));
        self.path.quad_to(x1, y1, x, y);
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        let ((x1, y1), (x2, y2), (x, y)) = (self.at(x1, y1), self.at(x2, y2), self.at(x, y));
        self.path.cubic_to(x1, y1, x2, y2, x, y);
    }

    fn close(&mut self) {
        self.path.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn has_every_letter_that_plots_use() {
        let face = face().expect("a readable font");
        for c in ('!'..='~').chain("µ·…×−±≤≥°²³–—\u{a0}\u{2009}".chars()) {
            assert!(face.glyph_index(c).is_some(), "{c:?}");
        }
        assert!(width("10 µs", 12.0) > width("1 µs", 12.0));
        assert_eq!(width("", 12.0), 0.0);
        assert!(width("字", 12.0) > 0.0, "an unknown one has a box");
    }
}

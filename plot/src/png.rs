//! A picture as a PNG file, on white, twice as fine as its pixels say.
//!
//! Drawn by tiny-skia, words as outlines of the embedded font: the same on every machine.

use tiny_skia::{
    Color, FillRule, LineJoin, Paint, PathBuilder, Pixmap, Stroke, StrokeDash, Transform,
};

use crate::font;
use crate::scene::{Anchor, Ink, Item, Scene, ScenePoint};

/// Pixels of the file to a pixel of the picture.
const SCALE: f32 = 2.0;

/// Why there is no PNG.
#[derive(Debug, thiserror::Error)]
pub enum PngError {
    /// It is empty or beyond memory.
    #[error("a picture of {0} by {1} pixels cannot be drawn")]
    Size(f64, f64),
    /// It could not be written as PNG.
    #[error("cannot make a PNG: {0}")]
    Encoding(String),
}

/// The picture's PNG file.
///
/// # Errors
/// A size that cannot be drawn.
pub fn file(scene: &Scene) -> Result<Vec<u8>, PngError> {
    let pixels = |length: f64| (length * f64::from(SCALE)).round().clamp(0.0, 16_384.0) as u32;
    let mut pixmap = Pixmap::new(pixels(scene.width), pixels(scene.height))
        .ok_or(PngError::Size(scene.width, scene.height))?;
    pixmap.fill(Color::WHITE);
    for item in &scene.items {
        draw(item, &mut pixmap);
    }
    pixmap.encode_png().map_err(|why| PngError::Encoding(why.to_string()))
}

fn draw(item: &Item, pixmap: &mut Pixmap) {
    let scale = Transform::from_scale(SCALE, SCALE);
    let mut path = PathBuilder::new();
    match item {
        Item::Line { strokes, ink, width, dash } => {
            strokes.iter().for_each(|stroke| trace(stroke, &mut path));
            let dash = dash.iter().map(|&length| length as f32).collect();
            let stroke = Stroke {
                width: *width as f32,
                line_join: LineJoin::Round,
                // None for an empty one: a full line.
                dash: StrokeDash::new(dash, 0.0),
                ..Stroke::default()
            };
            if let Some(path) = path.finish() {
                pixmap.stroke_path(&path, &paint(*ink, 1.0), &stroke, scale, None);
            }
        }
        Item::Fill { outlines, ink, opacity, edge } => {
            for outline in outlines {
                trace(outline, &mut path);
                path.close();
            }
            let Some(path) = path.finish() else { return };
            let inside = paint(*ink, *opacity);
            pixmap.fill_path(&path, &inside, FillRule::Winding, scale, None);
            if *edge > 0.0 {
                let stroke = Stroke { width: *edge as f32, ..Stroke::default() };
                pixmap.stroke_path(&path, &paint(*ink, 1.0), &stroke, scale, None);
            }
        }
        Item::Dots { at, radius, ink } => {
            for &(x, y) in at {
                path.push_circle(x as f32, y as f32, *radius as f32);
            }
            fill(path, &paint(*ink, 1.0), scale, pixmap);
        }
        Item::Text { at, text, size, anchor, ink, upward } => {
            font::outline(text, *size, &mut path);
            let before = match anchor {
                Anchor::Start => 0.0,
                Anchor::Middle => 0.5,
                Anchor::End => 1.0,
            };
            let shift = -(font::width(text, *size) * before) as f32;
            let turn = if *upward { -90.0 } else { 0.0 };
            let place = scale
                .pre_translate(at.0 as f32, at.1 as f32)
                .pre_rotate(turn)
                .pre_translate(shift, 0.0);
            fill(path, &paint(*ink, 1.0), place, pixmap);
        }
    }
}

fn fill(path: PathBuilder, paint: &Paint<'_>, at: Transform, pixmap: &mut Pixmap) {
    if let Some(path) = path.finish() {
        pixmap.fill_path(&path, paint, FillRule::Winding, at, None);
    }
}

fn trace(points: &[ScenePoint], path: &mut PathBuilder) {
    for (number, &(x, y)) in points.iter().enumerate() {
        if number == 0 {
            path.move_to(x as f32, y as f32);
        } else {
            path.line_to(x as f32, y as f32);
        }
    }
}

fn paint(ink: Ink, opacity: f64) -> Paint<'static> {
    let part = |from: usize| {
        let digits = ink.on_white().get(from..from + 2).unwrap_or_default();
        u8::from_str_radix(digits, 16).unwrap_or_default()
    };
    let mut paint = Paint { anti_alias: true, ..Paint::default() };
    let alpha = (opacity.clamp(0.0, 1.0) * 255.0).round() as u8;
    paint.set_color_rgba8(part(1), part(3), part(5), alpha);
    paint
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scene(items: Vec<Item>) -> Scene {
        let (title, description) = (String::new(), String::new());
        Scene { width: 60.0, height: 30.0, title, description, items }
    }

    fn pixels(items: Vec<Item>) -> Pixmap {
        let bytes = file(&scene(items)).expect("drawn");
        Pixmap::decode_png(&bytes).expect("a PNG")
    }

    #[test]
    fn words_and_lines_leave_ink_on_white() {
        let text = Item::Text {
            at: (30.0, 20.0),
            text: "10 µs".to_owned(),
            size: 12.0,
            anchor: Anchor::Middle,
            ink: Ink::Text,
            upward: false,
        };
        let dark = |pixmap: &Pixmap| pixmap.pixels().iter().filter(|p| p.red() < 128).count();
        assert_eq!(dark(&pixels(Vec::new())), 0);
        assert!(dark(&pixels(vec![text])) > 50);
        let wild = vec![vec![(f64::NAN, 0.0), (1e300, 5.0)], Vec::new()];
        let line = Item::Line { strokes: wild, ink: Ink::Series(9), width: 1.0, dash: &[] };
        pixels(vec![line]);
        let square = vec![vec![(0.0, 0.0), (60.0, 0.0), (60.0, 30.0), (0.0, 30.0)]];
        let full = Item::Fill { outlines: square, ink: Ink::Series(0), opacity: 1.0, edge: 0.0 };
        assert_eq!(pixels(vec![full]).pixel(60, 30).map(|p| (p.red(), p.blue())), Some((0, 168)));
    }

    #[test]
    fn an_empty_picture_is_refused() {
        let nothing = Scene { width: 0.0, ..scene(Vec::new()) };
        assert!(matches!(file(&nothing), Err(PngError::Size(..))));
    }
}

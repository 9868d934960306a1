//! A picture as SVG: for a page that has its own colours, or as a file that travels alone.
//!
//! Everything that came from outside is escaped: words are words wherever they stand. Which
//! characters act on a reader instead of being seen ([`Steers`]) the caller says.

use std::fmt::Write as _;

use crate::scene::{Anchor, Ink, Item, SERIES, Scene, ScenePoint};

/// True for a character that acts on a terminal or a reader instead of being seen, controls among
/// them.
pub type Steers = fn(char) -> bool;

/// A picture for a page: colours are classes (`ink-s0` strokes, `fill-s0` fills) that the page's
/// style sheet knows. `id` is unique in the page, of letters, digits and `-`.
pub fn inline(scene: &Scene, id: &str, steers: Steers) -> String {
    let (width, height) = (scene.width, scene.height);
    let mut svg = format!(
        "<svg class=\"chart\" viewBox=\"0 0 {width} {height}\" role=\"img\" \
         aria-labelledby=\"{id}-title {id}-desc\"><title id=\"{id}-title\">{}</title>\
         <desc id=\"{id}-desc\">{}</desc>",
        escape(&scene.title, steers),
        escape(&scene.description, steers)
    );
    items(scene, &mut svg, steers);
    svg + "</svg>"
}

/// A picture as a file of its own, on white.
pub fn file(scene: &Scene, steers: Steers) -> String {
    let (width, height) = (scene.width, scene.height);
    let mut svg = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" \
         width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" role=\"img\">\
         <title>{}</title><desc>{}</desc><style>text{{font-family:Roboto,Helvetica,Arial,\
         sans-serif}}.line{{fill:none;stroke-linejoin:round}}",
        escape(&scene.title, steers),
        escape(&scene.description, steers)
    );
    let inks = [Ink::Text, Ink::Muted, Ink::Axis, Ink::Grid];
    for ink in inks.into_iter().chain((0..SERIES).map(Ink::Series)) {
        let (name, colour) = (ink.name(), ink.on_white());
        // Writing to a String cannot fail.
        let _infallible =
            write!(svg, ".ink-{name}{{stroke:{colour}}}.fill-{name}{{fill:{colour}}}");
    }
    svg += "</style><rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>";
    items(scene, &mut svg, steers);
    svg + "</svg>\n"
}

fn items(scene: &Scene, svg: &mut String, steers: Steers) {
    for item in &scene.items {
        match item {
            Item::Line { strokes, ink, width, dash } => {
                let dashes: Vec<String> = dash.iter().map(ToString::to_string).collect();
                let dashes = match dashes.is_empty() {
                    true => String::new(),
                    false => format!(" stroke-dasharray=\"{}\"", dashes.join(" ")),
                };
                *svg += &format!(
                    "<path class=\"line ink-{}\" stroke-width=\"{width}\"{dashes} d=\"{}\"/>",
                    ink.name(),
                    path(strokes, "")
                );
            }
            Item::Fill { outlines, ink, opacity, edge } => {
                let name = ink.name();
                let edged = match *edge > 0.0 {
                    true => format!(" ink-{name}\" stroke-width=\"{edge}"),
                    false => String::new(),
                };
                *svg += &format!(
                    "<path class=\"fill-{name}{edged}\" fill-opacity=\"{opacity}\" d=\"{}\"/>",
                    path(outlines, "z")
                );
            }
            Item::Dots { at, radius, ink } => {
                // A line of no length with a round end is a dot.
                *svg += &format!(
                    "<path class=\"line ink-{}\" stroke-linecap=\"round\" stroke-width=\"{}\" d=\"",
                    ink.name(),
                    short(radius * 2.0)
                );
                for (x, y) in at {
                    let _infallible = write!(svg, "M{} {}h0", short(*x), short(*y));
                }
                *svg += "\"/>";
            }
            Item::Text { at, text, size, anchor, ink, upward } => {
                let (x, y) = (short(at.0), short(at.1));
                let turned = match upward {
                    true => format!(" transform=\"rotate(-90 {x} {y})\""),
                    false => String::new(),
                };
                let anchor = match anchor {
                    Anchor::Start => "start",
                    Anchor::Middle => "middle",
                    Anchor::End => "end",
                };
                *svg += &format!(
                    "<text class=\"fill-{}\" x=\"{x}\" y=\"{y}\" font-size=\"{size}\" \
                     text-anchor=\"{anchor}\"{turned}>{}</text>",
                    ink.name(),
                    escape(text, steers)
                );
            }
        }
    }
}

fn path(strokes: &[Vec<ScenePoint>], end: &str) -> String {
    let mut path = String::new();
    for stroke in strokes {
        let mut before: Option<[String; 2]> = None;
        for (x, y) in stroke {
            let at = [short(*x), short(*y)];
            // Along an axis one number is enough: most of a heat map is such lines.
            let _infallible = match &before {
                None => write!(path, "M{} {}", at[0], at[1]),
                Some([_, y]) if *y == at[1] => write!(path, "H{}", at[0]),
                Some([x, _]) if *x == at[0] => write!(path, "V{}", at[1]),
                Some(_) => write!(path, "L{} {}", at[0], at[1]),
            };
            before = Some(at);
        }
        path += end;
    }
    path
}

/// A tenth of a pixel is fine enough.
fn short(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

/// Words as they may stand in XML and HTML, between tags and in quoted attributes. What `steers` is
/// shown as an escape; what is no character of XML becomes a box.
pub fn escape(text: &str, steers: Steers) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            '\n' | '\t' => escaped.push(' '),
            c if steers(c) => escaped.extend(c.escape_unicode()),
            '\0'..='\x1f' | '\u{fffe}'..='\u{ffff}' => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::axis::Axis;
    use crate::chart::{BandPoint, Chart, ChartSeries, Mark};

    fn chart(name: &str) -> Chart {
        let words = |at: f64| at.to_string();
        let series = |ink, mark| ChartSeries { name: name.to_owned(), ink, marks: vec![mark] };
        let band = BandPoint { x: 1.0, low: 1.0, middle: 2.0, high: 3.0 };
        Chart {
            title: name.to_owned(),
            titled: true,
            description: name.to_owned(),
            size: (640.0, 300.0),
            x: Axis::log(name, 1.0, 1_000.0, words),
            y: Axis::even(name, 0.0, 10.0, 5, words),
            series: vec![
                series(0, Mark::Steps { edges: vec![1.0, 2.0, 4.0], values: vec![3.0, 0.0] }),
                series(1, Mark::Stairs(vec![(1.0, 1.0), (100.0, 9.0)])),
                series(2, Mark::Band(vec![Some(band), None])),
                series(7, Mark::Dots(vec![(f64::NAN, 5.0)])),
                series(7, Mark::Rug(vec![5.0])),
            ],
            notes: vec![name.to_owned()],
        }
    }

    fn steers(c: char) -> bool {
        c == '\u{202e}' || c == '\u{1b}'
    }

    #[test]
    fn words_stay_words() {
        let hostile = "</title><script>x</script><img onerror='\"&\u{1b}[2J\u{202e}";
        for svg in
            [inline(&chart(hostile).scene(), "a", steers), file(&chart(hostile).scene(), steers)]
        {
            assert!(!svg.contains("<script") && !svg.contains("<img"), "{svg}");
            assert!(!svg.contains('\u{1b}') && !svg.contains('\u{202e}'));
            assert!(svg.contains("\\u{1b}[2J\\u{202e}"), "{svg}");
        }
        assert_eq!(escape("\u{7}\u{ffff}\u{202e}", |_| false), "\u{fffd}\u{fffd}\u{202e}");
    }

    #[test]
    fn a_file_has_its_colours_and_series_differ_in_dashes() {
        let svg = file(&chart("a").scene(), steers);
        assert!(svg.starts_with("<?xml") && svg.contains(".ink-s0{stroke:#0062a8}"));
        assert!(svg.contains("stroke-dasharray=\"7 3\"") && svg.contains("<title>a</title>"));
        let page = inline(&chart("a").scene(), "p", steers);
        assert!(page.contains("aria-labelledby=\"p-title p-desc\"") && !page.contains("<style"));
        assert!(!page.contains("NaN") && !page.contains("inf"));
    }
}

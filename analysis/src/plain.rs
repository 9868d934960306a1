//! Text from files and from other machines, made safe to show, and counts as people read them.
//!
//! For every output that a person reads. May touch nothing but the text. Never cuts or removes:
//! what could act on a terminal or change the order of what is read is shown as an escape.

use std::ops::Range;

/// Returns true where a character acts on a terminal or a reader instead of being seen: controls
/// (C0, DEL, C1), line ends that only some readers know, marks of direction, and what has no width.
pub fn steers(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{ad}'
                | '\u{61c}'
                | '\u{180e}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

/// `text` as one plain line: what [`steers`] is escaped as in Rust (`\n`, `\u{1b}`).
pub fn plain(text: &str) -> String {
    escaped(text, steers)
}

/// As [`plain`], for a page of several lines: line ends stay.
pub fn plain_lines(text: &str) -> String {
    escaped(text, |c| c != '\n' && steers(c))
}

/// `text` with plain spaces in place of hard ones (no-break, narrow no-break, figure space), which
/// keep a number and its unit on one line: what searches a text does not know them.
pub fn plain_spaces(text: &str) -> String {
    text.replace(['\u{a0}', '\u{202f}', '\u{2007}'], " ")
}

/// A word for a shell: in single quotes, unless it needs none.
pub fn shell_word(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./,:=+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// Units that stay on the line of their number, as the tool prints them.
const UNITS: [&str; 16] = [
    "ns", "µs", "ms", "s", "min", "h", "days", "%", "Hz", "kHz", "MHz", "MB", "MiB", "KiB", "k",
    "M",
];

/// True for two words that stay on one line: a number and its unit, or its next three digits.
pub fn stays_with(before: &str, word: &str) -> bool {
    let digits = word.chars().take_while(char::is_ascii_digit).count();
    let unit = word.find(|c: char| !c.is_alphabetic() && c != '%').map_or(word, |end| &word[..end]);
    before.ends_with(|c: char| c.is_ascii_digit()) && (digits == 3 || UNITS.contains(&unit))
}

/// The parts of a text that stay on one line although they have spaces, as ranges of bytes: numbers
/// with their units, and numbers in groups of three.
pub fn figures(text: &str) -> Vec<Range<usize>> {
    let mut figures: Vec<Range<usize>> = Vec::new();
    let (mut before, mut begin) = (0..0, 0);
    for word in text.split(' ') {
        let at = begin..begin + word.len();
        begin = at.end + 1;
        if stays_with(&text[before.clone()], word) {
            match figures.last_mut().filter(|figure| figure.end == before.end) {
                Some(figure) => figure.end = at.end,
                None => figures.push(before.start..at.end),
            }
        }
        before = at;
    }
    figures
}

/// A text in ASCII alone, each character as one that stands for it, so that columns stay where they
/// are: for a terminal or a reader that knows no other.
pub fn ascii(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = plain_spaces(text);
    // Two for two.
    for (sign, letters) in [("\u{2265} ", ">="), ("\u{2264} ", "<=")] {
        rest = rest.replace(sign, letters);
    }
    for c in rest.chars() {
        plain.push(match c {
            c if c.is_ascii() => c,
            'µ' | 'μ' => 'u',
            '·' | '–' | '—' | '−' | '─' => '-',
            '…' => '~',
            '×' => 'x',
            '→' | '≥' => '>',
            '←' | '≤' => '<',
            '↑' => '^',
            '±' => '+',
            '°' => 'o',
            '’' | '‘' => '\'',
            '“' | '”' => '"',
            '█' | '▇' | '▓' => '#',
            '▆' | '▅' | '▒' => '*',
            '▄' | '▃' | '░' => ':',
            '▂' | '▁' => '.',
            '│' => '|',
            '⁰'..='⁹' => char::from_digit(c as u32 - '⁰' as u32, 10).unwrap_or('?'),
            '¹' => '1',
            '²' => '2',
            '³' => '3',
            '⁻' => '-',
            'θ' => 'O',
            _ => '?',
        });
    }
    plain
}

/// A count in groups of three, with hard spaces, so that no line breaks inside a number.
pub fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut shown = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            shown.push('\u{a0}');
        }
        shown.push(digit);
    }
    shown
}

/// A number with three figures: `3.60`, `1234`, `0.0980`, `2.3e-6`.
pub fn significant(value: f64) -> String {
    match value.abs() {
        // -0.4 would be shown as -0.
        size if size >= 99.95 => format!("{:.0}", value.round() + 0.0),
        size if size >= 9.995 => format!("{value:.1}"),
        size if size >= 0.9995 || size == 0.0 => format!("{value:.2}"),
        size if size >= 0.000_5 => format!("{value:.4}"),
        _ => format!("{value:.1e}"),
    }
}

/// A number that somebody chose: with three figures, without zeros that say nothing.
pub fn concise(value: f64) -> String {
    let text = significant(value);
    match text.contains('.') && !text.contains('e') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

fn escaped(text: &str, is_escaped: impl Fn(char) -> bool) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if is_escaped(c) { shown.extend(c.escape_default()) } else { shown.push(c) }
    }
    shown
}

/// JSON text in which no string holds what [`steers`]: it is escaped as JSON does (`\u202e`), so
/// that the text means the same. Line ends between values stay.
pub fn plain_json(json: &str) -> String {
    let mut shown = String::with_capacity(json.len());
    for c in json.chars() {
        if c != '\n' && steers(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                shown += &format!("\\u{unit:04x}");
            }
        } else {
            shown.push(c);
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_for_a_shell_are_quoted_where_they_need_it() {
        assert_eq!(shell_word("0-3,5"), "0-3,5");
        assert_eq!(shell_word("a b"), "'a b'");
        assert_eq!(shell_word("$(x)'"), "'$(x)'\\'''");
        assert_eq!(shell_word(""), "''");
    }

    #[test]
    fn ascii_keeps_its_columns() {
        let text = "25.0\u{a0}µs · ≥ 12 ≤ 3 · █▂ → 10⁻⁴ · é";
        let plain = ascii(text);
        assert_eq!(plain, "25.0 us - >=12 <=3 - #. > 10-4 - ?");
        assert_eq!(plain.chars().count(), text.chars().count());
        assert!(plain.is_ascii() && ascii("\u{1b}a\n") == "\u{1b}a\n");
    }
    use proptest::prelude::*;

    #[test]
    fn numbers_have_three_figures_and_small_ones_are_not_zero() {
        let shown = [0.0, 0.098, 3.6, 50.0, 1_234.4, -0.004, 2.3e-6].map(significant);
        assert_eq!(shown, ["0.00", "0.0980", "3.60", "50.0", "1234", "-0.0040", "2.3e-6"]);
        let shown = [0.0, 0.8, 36.73, 20.0, 100.0, 2.0e-6].map(concise);
        assert_eq!(shown, ["0", "0.8", "36.7", "20", "100", "2.0e-6"]);
    }

    #[test]
    fn figures_are_numbers_with_their_units_and_groups() {
        let shown = |text: &'static str| -> Vec<&str> {
            figures(text).into_iter().map(|figure| &text[figure]).collect()
        };
        let text = "µ: 742 of 1 607 977 releases over 100 µs late (20 %), 2 in 12.5 s; 3 hops";
        assert_eq!(shown(text), ["1 607 977", "100 µs", "(20 %),", "12.5 s;"]);
        assert_eq!(shown("11 125/239 945"), ["11 125/239 945"]);
        assert_eq!(shown(" 5 ms"), ["5 ms"]);
        assert_eq!(shown("check --cpu 1 --period 1ms, CPU 1, 25 and 1000 1234"), [""; 0]);
    }

    #[test]
    fn what_steers_is_shown_and_words_stay() {
        assert_eq!(plain("CPU 1, 25.0 µs · größer → 学"), "CPU 1, 25.0 µs · größer → 学");
        let shown = plain("a\n\u{1b}]0;x\u{7}\u{9b}2J\u{202e}b\u{2066}\u{200b}c");
        assert_eq!(shown, "a\\n\\u{1b}]0;x\\u{7}\\u{9b}2J\\u{202e}b\\u{2066}\\u{200b}c");
        assert_eq!(plain_lines("a\n\tb"), "a\n\\tb");
        assert_eq!(plain_spaces("1\u{a0}000\u{202f}µs,\u{2007}1 s"), "1 000 µs, 1 s");
    }

    proptest! {
        #[test]
        fn any_text_becomes_plain_and_any_json_stays_the_same(text in any::<String>()) {
            let text = text + "\u{202e}\u{1b}\u{9b}\u{e0041}";
            prop_assert!(!plain(&text).chars().any(steers));
            let json = serde_json::to_string(&text).expect("JSON");
            let shown = plain_json(&json);
            prop_assert!(!shown.chars().any(steers));
            prop_assert_eq!(serde_json::from_str::<String>(&shown).expect("JSON"), text);
        }
    }
}

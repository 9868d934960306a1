//! Text as a terminal takes it: lines of 80 columns, words with colours, commands as they can be
//! pasted.
//!
//! Asks standard output and the environment; writes nothing.

use std::fmt::{self, Display, Formatter};
use std::io::IsTerminal;
use std::ops::Range;
use std::os::fd::AsFd;
use std::sync::LazyLock;

use punctual_analysis::plain::{plain, stays_with};

use crate::Paint;

/// Columns of a page, where nothing is narrower.
const WIDTH: usize = 80;

/// Columns of the narrowest page.
const NARROWEST: usize = 40;

/// Columns of a page: those of the terminal, 80 at most, and elsewhere.
pub fn width() -> usize {
    static COLUMNS: LazyLock<usize> =
        LazyLock::new(|| columns(&std::io::stdout()).clamp(NARROWEST, WIDTH));
    *COLUMNS
}

/// Columns of a terminal; those of a page where it is none, or does not know.
pub fn columns(terminal: &(impl AsFd + IsTerminal)) -> usize {
    let size = terminal.is_terminal().then(|| rustix::termios::tcgetwinsize(terminal).ok());
    let columns = size.flatten().map(|size| usize::from(size.ws_col));
    columns.filter(|columns| *columns > 0).unwrap_or(WIDTH)
}

/// Text for a terminal, some words of which have a colour there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Styled {
    text: String,
    /// Places in the text, in order and apart.
    paints: Vec<(Range<usize>, Paint)>,
}

impl Styled {
    /// `text` with the first of these words in it coloured.
    pub fn painted(text: String, paint: Option<&(String, Paint)>) -> Self {
        let place = |(word, paint): &(String, Paint)| {
            let from = text.find(word.as_str()).filter(|_| !word.is_empty())?;
            Some((from..from + word.len(), *paint))
        };
        let paints = paint.and_then(place).into_iter().collect();
        Self { text, paints }
    }

    /// Adds text without a colour.
    pub fn push(&mut self, text: &str) {
        self.text += text;
    }

    /// Adds more of it.
    pub fn append(&mut self, more: Self) {
        let from = self.text.len();
        let moved =
            |(range, paint): (Range<usize>, Paint)| (range.start + from..range.end + from, paint);
        self.paints.extend(more.paints.into_iter().map(moved));
        self.text += &more.text;
    }

    /// The number of its lines.
    pub fn lines(&self) -> usize {
        self.text.lines().count()
    }

    /// For a terminal: each piece of the text as `plain` makes it, in its colour where there are
    /// `colours`. Only colours steer the terminal.
    pub fn written(&self, colours: bool, plain: impl Fn(&str) -> String) -> String {
        let (mut written, mut from) = (String::new(), 0);
        for (range, paint) in self.paints.iter().filter(|_| colours) {
            let (before, word) = (&self.text[from..range.start], &self.text[range.clone()]);
            written += &format!("{}{}{}\u{1b}[0m", plain(before), code(*paint), plain(word));
            from = range.end;
        }
        written + &plain(&self.text[from..])
    }
}

impl From<&str> for Styled {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl From<&String> for Styled {
    fn from(text: &String) -> Self {
        text.clone().into()
    }
}

impl From<String> for Styled {
    fn from(text: String) -> Self {
        Self { text, paints: Vec::new() }
    }
}

impl Display for Styled {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// The escape sequence that begins a colour in a terminal (ECMA-48, SGR).
fn code(paint: Paint) -> &'static str {
    match paint {
        Paint::Good => "\u{1b}[32m",
        Paint::Bad => "\u{1b}[31m",
        Paint::Open => "\u{1b}[33m",
    }
}

/// Returns true where standard output takes colours: not where NO_COLOR is set or TERM is dumb;
/// always where CLICOLOR_FORCE is.
pub fn has_colours() -> bool {
    let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let forced = set("CLICOLOR_FORCE") && std::env::var_os("CLICOLOR_FORCE") != Some("0".into());
    let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
    !set("NO_COLOR") && (forced || std::io::stdout().is_terminal() && !dumb)
}

/// A command of this program as it can be pasted here: by the name it was called by, by sudo where
/// that was used or where it is part of the command.
pub fn command(command: &str) -> String {
    let as_root = command.strip_prefix("sudo ");
    let rest = as_root.unwrap_or(command).strip_prefix("punctual ");
    let Some(rest) = rest else { return command.to_owned() };
    let name = std::env::args_os().next().map(|name| name.to_string_lossy().into_owned());
    let name = plain(name.as_deref().unwrap_or("punctual"));
    let is_sudo = as_root.is_some() || std::env::var_os("SUDO_UID").is_some();
    let sudo = if is_sudo { "sudo " } else { "" };
    format!("{sudo}{name} {rest}")
}

/// `text`, made plain, in lines of at most [`width`] columns, each after the first behind `indent`
/// spaces. Spaces at the start stay; a number and its unit stay together.
pub fn wrap(text: &str, indent: usize) -> String {
    let text = plain(text);
    let words = text.trim_start_matches(' ');
    let mut column = text.len() - words.len();
    let mut lines = " ".repeat(column);
    let mut begun = false;
    let mut split = words.split(' ').peekable();
    while let Some(first) = split.next() {
        let mut word = first.to_owned();
        while let Some(unit) = split.next_if(|next| stays_with(&word, next)) {
            word = word + " " + unit;
        }
        let width = word.chars().count();
        if begun && column + 1 + width > self::width() {
            // A path can be as long as the line: it stands further left then.
            column = indent.min(self::width().saturating_sub(width));
            lines.push('\n');
            lines.push_str(&" ".repeat(column));
        } else if begun {
            lines.push(' ');
            column += 1;
        }
        lines.push_str(&word);
        column += width;
        begun = true;
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_names_this_program_as_it_was_called() {
        let name = std::env::args().next().expect("this test");
        assert!(command("punctual top").ends_with(&format!("{name} top")));
        assert_eq!(command("sudo punctual top"), format!("sudo {name} top"));
        for other in ["sudo chrt -p 1", "punctual", "cat /proc/cmdline"] {
            assert_eq!(command(other), other);
        }
    }

    #[test]
    fn lines_end_within_the_page() {
        let text = "word ".repeat(60);
        let wrapped = wrap(text.trim(), 4);
        assert!(wrapped.lines().all(|line| line.chars().count() <= WIDTH));
        assert!(wrapped.lines().skip(1).all(|line| line.starts_with("    word")));
        assert_eq!(wrapped.split_whitespace().count(), 60);
        assert_eq!(wrap("  two  inside", 0), "  two  inside");
        for spaces in 60..90 {
            let wrapped = wrap(&format!("{}at 1.65 µs, or 20 % later", "a ".repeat(spaces / 2)), 2);
            assert!(wrapped.contains("1.65 µs,") && wrapped.contains("20 %"), "{wrapped}");
        }
        assert_eq!(wrap("  a\nb\u{1b}[2J", 0), "  a\\nb\\u{1b}[2J", "only this breaks lines");
    }

    #[test]
    fn colours_are_around_their_words_and_nothing_else_steers() {
        let mut page = Styled::from("no: \u{1b}[2J\n");
        let yes = ("yes".to_owned(), Paint::Good);
        page.append(Styled::painted("  1 kHz  yes: yes\n".to_owned(), Some(&yes)));
        page.push("end");
        let plain = |text: &str| punctual_analysis::plain::plain_lines(text);
        let black = "no: \\u{1b}[2J\n  1 kHz  yes: yes\nend";
        assert_eq!(page.written(false, plain), black);
        let green = black.replacen("yes", "\u{1b}[32myes\u{1b}[0m", 1);
        assert_eq!(page.written(true, plain), green);
        assert_eq!(page.lines(), 3);
    }
}

//! The standard streams: lines to standard error, pages to standard output, plain where nobody sees
//! a terminal.

use std::io::{self, IsTerminal, Write};

use anyhow::{Context, Result};
use punctual_analysis::plain::{ascii, plain, plain_lines, plain_spaces};

use crate::format::{self, Styled};

/// Writes one line to standard error, whatever the text holds. Where standard error is closed, the
/// line is dropped.
pub(crate) fn message(text: &str) {
    line(&format!("punctual: {text}"));
}

/// Writes one line to standard error, without the name of the program.
pub(crate) fn line(text: &str) {
    let _closed = writeln!(io::stderr(), "{}", spaced(plain(text), io::stderr().is_terminal()));
}

/// `text` for a terminal, or with plain spaces for whoever searches it; in ASCII where the locale
/// was set to one that has nothing else.
pub(crate) fn spaced(text: String, to_terminal: bool) -> String {
    match (is_ascii_alone(), to_terminal) {
        (true, _) => ascii(&text),
        (false, true) => text,
        (false, false) => plain_spaces(&text),
    }
}

/// Returns true where the locale of messages was set to one without UTF-8, such as C. Where none is
/// set, as in many containers, a terminal may know UTF-8 all the same.
fn is_ascii_alone() -> bool {
    let set = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().filter_map(std::env::var_os);
    let first = set.map(|value| value.to_string_lossy().to_lowercase()).find(|v| !v.is_empty());
    first.is_some_and(|locale| !locale.contains("utf-8") && !locale.contains("utf8"))
}

/// Writes a page of lines to standard output.
///
/// # Errors
/// It cannot be written; a reader that has seen enough is none.
pub(crate) fn page(text: impl Into<Styled>) -> io::Result<()> {
    let to_terminal = io::stdout().is_terminal();
    let plain = |text: &str| spaced(plain_lines(text), to_terminal);
    written(&text.into().written(format::has_colours(), plain))
}

/// Writes what a program reads to standard output: JSON, Markdown, completions, in UTF-8 whatever
/// the locale.
///
/// # Errors
/// It cannot be written, in words; a reader that has seen enough is none.
pub(crate) fn data(text: &str) -> Result<()> {
    written(&spaced_for_programs(text)).context("cannot write to standard output")
}

fn spaced_for_programs(text: &str) -> String {
    let text = plain_lines(text);
    if io::stdout().is_terminal() { text } else { plain_spaces(&text) }
}

fn written(text: &str) -> io::Result<()> {
    match io::stdout().write_all(text.as_bytes()).and_then(|()| io::stdout().flush()) {
        Err(why) if why.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

/// Writes a page of lines to standard output, as the end of a command.
///
/// # Errors
/// It cannot be written, in words.
pub(crate) fn show(text: impl Into<Styled>) -> Result<()> {
    page(text).context("cannot write to standard output")
}

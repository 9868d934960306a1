//! The standard streams: lines to standard error, pages to standard output, plain where nobody sees
//! a terminal.

use std::io::{self, IsTerminal, Write};

use anyhow::{Context, Result};
use punctual_analysis::plain::{plain, plain_lines, plain_spaces};

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

/// `text` for a terminal, or with plain spaces for whoever searches it.
pub(crate) fn spaced(text: String, to_terminal: bool) -> String {
    if to_terminal { text } else { plain_spaces(&text) }
}

/// Writes a page of lines to standard output.
///
/// # Errors
/// It cannot be written; a reader that has seen enough is none.
pub(crate) fn page(text: impl Into<Styled>) -> io::Result<()> {
    let to_terminal = io::stdout().is_terminal();
    let plain = |text: &str| spaced(plain_lines(text), to_terminal);
    let text = text.into().written(format::has_colours(), plain);
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

//! Where an export goes: a file that has its name once it is whole, or standard output.
//!
//! In large pieces. A reader that has seen enough is no error.

use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result};

use crate::output::Opened;

/// Bytes that are written at once.
const BUFFER_BYTES: usize = 1 << 18;

/// What the formats write to.
pub(super) type Out = BufWriter<Pipe>;

/// A writer that remembers whether its reader went away: the library behind a format may hide
/// which error it was.
pub(super) struct Pipe {
    inner: Box<dyn Write + Send>,
    gone: Arc<AtomicBool>,
}

impl Write for Pipe {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.noted(|inner| inner.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.noted(Write::flush)
    }
}

impl Pipe {
    fn noted<T>(
        &mut self,
        act: impl FnOnce(&mut Box<dyn Write + Send>) -> io::Result<T>,
    ) -> io::Result<T> {
        let done = act(&mut self.inner);
        if done.as_ref().is_err_and(|why| why.kind() == ErrorKind::BrokenPipe) {
            self.gone.store(true, Ordering::Relaxed);
        }
        done
    }
}

/// Writes what `body` writes to `path`, or to standard output for `-`.
pub(super) fn write(path: &Path, body: impl FnOnce(&mut Out) -> Result<()>) -> Result<()> {
    if path == Path::new("-") {
        return through(Box::new(io::stdout()), body).context("cannot write to standard output");
    }
    Opened::at(path)?.write(|file| through(Box::new(file.try_clone()?), body))
}

/// Passes the writer on, in large pieces.
fn through(writer: Box<dyn Write + Send>, body: impl FnOnce(&mut Out) -> Result<()>) -> Result<()> {
    let gone = Arc::new(AtomicBool::new(false));
    let pipe = Pipe { inner: writer, gone: Arc::clone(&gone) };
    let mut out = BufWriter::with_capacity(BUFFER_BYTES, pipe);
    let done = body(&mut out).and_then(|()| Ok(out.flush()?));
    // What is still in the buffer is not tried again.
    drop(out.into_parts());
    // Whoever reads has seen enough.
    if gone.load(Ordering::Relaxed) { Ok(()) } else { done }
}

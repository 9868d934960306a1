//! Where an export goes: a file that has its name once it is whole, or standard output.
//!
//! Replaces what had the name, as `--json` does. What is no regular file (a pipe, a device) is
//! written to directly. A reader that has seen enough is no error.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, bail};

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
    let shown = path.display();
    let there = fs::metadata(path).ok();
    if there.as_ref().is_some_and(fs::Metadata::is_dir) {
        bail!("cannot write {shown}: it is a directory");
    }
    let direct = there.as_ref().is_some_and(|meta| !meta.is_file());
    // One that may not be written is not replaced either.
    let opened = there.is_some().then(|| OpenOptions::new().write(true).open(path)).transpose();
    let opened = opened.with_context(|| format!("cannot write {shown}"))?;
    if let Some(device) = opened.filter(|_| direct) {
        return through(Box::new(device), body).with_context(|| format!("cannot write {shown}"));
    }
    // What a link points to is replaced, not the link.
    let target = if there.is_some() { fs::canonicalize(path)? } else { path.to_owned() };
    let aside = aside(&target);
    let written = whole(&aside, &target, there.as_ref(), body);
    if written.is_err() {
        // A half is of no use to anybody; the error below says why it is missing.
        let _gone = fs::remove_file(&aside);
    }
    written.with_context(|| format!("cannot write {shown}"))
}

/// The name under which `target` is written until it is whole, in the same directory.
fn aside(target: &Path) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(target.file_name().unwrap_or_default());
    name.push(format!(".{}.new", std::process::id()));
    target.with_file_name(name)
}

fn whole(
    aside: &Path,
    target: &Path,
    replaced: Option<&fs::Metadata>,
    body: impl FnOnce(&mut Out) -> Result<()>,
) -> Result<()> {
    let file = OpenOptions::new().write(true).create_new(true).open(aside)?;
    let handle = file.try_clone()?;
    if let Some(replaced) = replaced {
        file.set_permissions(replaced.permissions())?;
    }
    through(Box::new(file), body)?;
    handle.sync_all()?;
    Ok(fs::rename(aside, target)?)
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

/// Whether two names mean one file.
pub(super) fn same(one: &Path, other: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let identity = |path: &Path| fs::metadata(path).map(|meta| (meta.dev(), meta.ino())).ok();
    identity(one).is_some_and(|one| Some(one) == identity(other))
}

/// A regular file, opened.
pub(super) fn regular(path: &Path) -> Result<File> {
    let shown = path.display();
    // Looked at first: a pipe would be waited for.
    let meta = fs::metadata(path).with_context(|| format!("cannot read {shown}"))?;
    if !meta.is_file() {
        bail!("{shown}: neither a regular file nor a directory");
    }
    File::open(path).with_context(|| format!("cannot read {shown}"))
}

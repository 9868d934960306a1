//! A file that is written bit by bit, and whose length is watched meanwhile.
//!
//! For sample files. Before each write, and at the end, the file has to be as long as what was
//! written: another program that cuts it off or writes into it is an error at once. Never repairs.

use std::fs::File;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// How many bytes were written; shared with the code that checks it at the end.
#[derive(Clone, Debug, Default)]
pub struct BytesWritten(Arc<AtomicU64>);

impl BytesWritten {
    /// Whether `file` is still as long as what was written.
    ///
    /// # Errors
    /// It is shorter or longer, or its length cannot be read.
    ///
    /// # Real-time: setup only
    pub fn check(&self, file: &File) -> io::Result<()> {
        let (written, found) = (self.0.load(Ordering::Acquire), file.metadata()?.len());
        if written == found {
            return Ok(());
        }
        Err(io::Error::other(format!(
            "another program changed it while it was written: {found} bytes long, {written} were \
             written"
        )))
    }
}

/// The writer of such a file.
#[derive(Debug)]
pub struct GrowingFile {
    file: File,
    /// `None` for what has no length: a pipe, a terminal.
    length: Option<BytesWritten>,
}

impl GrowingFile {
    /// A new file, of which nothing was written yet.
    ///
    /// # Real-time: setup only
    pub fn new(file: File, length: BytesWritten) -> Self {
        Self { file, length: Some(length) }
    }

    /// Something without a length of its own.
    ///
    /// # Real-time: setup only
    pub fn stream(file: File) -> Self {
        Self { file, length: None }
    }
}

impl Write for GrowingFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(length) = &self.length {
            length.check(&self.file)?;
        }
        let written = self.file.write(bytes)?;
        if let Some(length) = &self.length {
            length.0.fetch_add(written as u64, Ordering::Release);
        }
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

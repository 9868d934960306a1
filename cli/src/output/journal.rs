//! The journals of `punctual tune` and `isolate`: a file that is locked, added to and synced.
//!
//! It has one place and is never replaced: what it says must be on the disk before a setting is
//! changed.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::fd::AsRawFd as _;
use std::path::Path;

use anyhow::{Context as _, Result, anyhow, bail};
use punctual_lab::tuning::TuningStore;
use punctual_os::{lock, process};

use super::Dir;

/// A journal, by its name in the directory of the program's state.
#[derive(Debug, Clone, Copy)]
pub(crate) struct JournalName(&'static str);

impl JournalName {
    /// Of settings of the running machine.
    pub(crate) const SETTINGS: Self = Self("tune.journal");
    /// Of what `punctual tune experiment` tries.
    pub(crate) const EXPERIMENT: Self = Self("experiment.journal");
    /// Of what `punctual isolate` changes while its command runs.
    pub(crate) const ISOLATION: Self = Self("isolate.journal");
    /// Of what `punctual measure saturation --unsafe-no-throttle` switches off.
    pub(crate) const THROTTLING: Self = Self("throttling.journal");
    /// Of files of the boot loader.
    pub(crate) const BOOT: Self = Self("boot.journal");
}

/// The most that is read of it: some thousand settings.
const BYTES_MAX: u64 = 16 << 20;

/// The journal, open and locked.
#[derive(Debug)]
pub(crate) struct JournalFile(File);

impl JournalFile {
    /// Opens it in `directory`, which is made if necessary, and locks it.
    ///
    /// # Errors
    /// Where it cannot be written, or another process has it.
    pub(crate) fn lock(directory: &Path, name: JournalName) -> Result<Self> {
        let dir = Dir::make(directory).map_err(with_way_out)?;
        let file = dir.shared(name.0).map_err(with_way_out)?;
        if !lock::try_exclusive(file.as_raw_fd())
            .map_err(|why| io::Error::from_raw_os_error(why.0))?
        {
            bail!(
                "another 'punctual tune' or 'punctual isolate' is changing settings; wait until it \
                 has ended"
            );
        }
        // Its name, where it is new.
        dir.sync();
        Ok(Self(file))
    }

    /// What is in it, without a lock; `None` where there is none.
    ///
    /// # Errors
    /// Where it cannot be read.
    pub(crate) fn read(directory: &Path, name: JournalName) -> Result<Option<Vec<u8>>> {
        if !directory.exists() {
            return Ok(None);
        }
        let shown = directory.join(name.0);
        let file = Dir::open(directory)?.read(name.0);
        let file = file.with_context(|| format!("cannot read {}", shown.display()))?;
        let bytes = file.map(|file| all_of(&file)).transpose();
        bytes.with_context(|| format!("cannot read {}", shown.display()))
    }
}

/// With what to do where this user may not change settings.
fn with_way_out(why: anyhow::Error) -> anyhow::Error {
    let is_refused = |cause: &io::Error| cause.kind() == io::ErrorKind::PermissionDenied;
    match why.root_cause().downcast_ref::<io::Error>() {
        Some(cause) if is_refused(cause) && process::euid() != 0 => {
            anyhow!("{why:#}: only root changes settings: use sudo")
        }
        _ => why,
    }
}

fn all_of(file: &File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(BYTES_MAX + 1).read_to_end(&mut bytes)?;
    // A part of it would be taken for all that was changed.
    if bytes.len() as u64 > BYTES_MAX {
        let why = format!("it has more than {} MiB", BYTES_MAX >> 20);
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
    }
    Ok(bytes)
}

impl TuningStore for JournalFile {
    fn load(&mut self) -> io::Result<Vec<u8>> {
        self.0.seek(SeekFrom::Start(0))?;
        all_of(&self.0)
    }

    fn append(&mut self, line: &[u8]) -> io::Result<()> {
        self.0.seek(SeekFrom::End(0))?;
        self.0.write_all(line)?;
        self.0.sync_all()
    }

    fn cut(&mut self, length: usize) -> io::Result<()> {
        self.0.set_len(length as u64)?;
        self.0.sync_all()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Scratch;
    use super::*;

    #[test]
    fn a_journal_that_is_too_large_is_not_read_in_part() {
        let dir = Scratch::new("journal");
        let mut journal =
            JournalFile::lock(&dir.path(""), JournalName::SETTINGS).expect("writable");
        journal.append(b"a\n").expect("writable");
        assert_eq!(journal.load().expect("readable"), b"a\n");
        journal.0.set_len(BYTES_MAX + 1).expect("writable");
        let error = journal.load().expect_err("too large");
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
        let error = JournalFile::read(&dir.path(""), JournalName::SETTINGS).expect_err("too large");
        assert!(format!("{error:#}").ends_with("it has more than 16 MiB"), "{error:#}");
    }
}

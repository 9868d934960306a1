//! Loads `disk` and `disk:heavy`: write pieces of a file and sync each to the device.
//!
//! The file loses its name before the first byte is written, so that nothing is left whatever ends
//! the process, and lies in the directory that the caller gives; where that is in memory, a note
//! names it. One worker: `disk` at most 1 000 syncs and 64 MB a second in a file of 16 MiB,
//! `disk:heavy` as fast as the device takes it.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use super::cpu::Numbers;
use super::timer::WorkerLoop;
use crate::load::bounds::memory_system;
use crate::load::protocol::Setup;
use crate::load::row::{LoadRow, Start};
use crate::load::worker::{Prepared, Work};

/// Its row in the table of loads.
pub(super) const ROW: LoadRow = LoadRow {
    name: "disk",
    unit: "fsyncs",
    help: "writes and syncs an unlinked file of 16 MiB in the temporary directory (TMPDIR), at a \
           limited rate",
    args: None,
    workers_max: None,
    start: Start::Own(|setup| writer(setup, &LIMITED)),
};

/// That of the one without a limit.
pub(super) const HEAVY: LoadRow = LoadRow {
    name: "disk:heavy",
    unit: "fsyncs",
    help: "writes and syncs an unlinked file of 64 MiB, 1 MiB a sync, as fast as the device takes \
           it",
    args: None,
    workers_max: None,
    start: Start::Heavy(|setup| writer(setup, &UNLIMITED)),
};

/// The way to write a file.
struct Writing {
    /// The size of the file, in bytes.
    file: u64,
    /// Bytes between two syncs.
    piece: usize,
    /// The least time between two syncs, in ns; `None` without a limit.
    period_ns: Option<u64>,
}

const LIMITED: Writing = Writing { file: 16 << 20, piece: 64 << 10, period_ns: Some(1_000_000) };
const UNLIMITED: Writing = Writing { file: 64 << 20, piece: 1 << 20, period_ns: None };

/// A file in `directory` that has no name any more.
fn nameless(directory: &Path) -> Result<File, String> {
    let path = directory.join(format!(".punctual-load-{}", std::process::id()));
    let failed = |why| format!("a file in {}: {why}", directory.display());
    let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path);
    let file = file.map_err(failed)?;
    std::fs::remove_file(&path).map_err(failed)?;
    Ok(file)
}

/// Sets it up.
///
/// # Errors
/// When there can be no file.
fn writer(setup: &Setup, writing: &'static Writing) -> Result<Prepared, String> {
    let file = nameless(&setup.temp)?;
    let note = memory_system(&setup.temp).map(|system| in_memory(&setup.temp, system));
    let work: Work = Box::new(move |ticket| {
        let mut piece = vec![0; writing.piece];
        let mut numbers = Numbers::new(0);
        let mut releases = writing.period_ns.map(WorkerLoop::new);
        for turn in 0u64.. {
            if !ticket.going() {
                break;
            }
            // Never the same twice, nor any smaller: a file system may compress it, and a device
            // spare itself what it already has.
            numbers.fill(&mut piece);
            let at = turn * writing.piece as u64 % writing.file;
            file.write_all_at(&piece, at).map_err(|why| format!("write: {why}"))?;
            file.sync_all().map_err(|why| format!("fsync: {why}"))?;
            ticket.add(1);
            if let Some(releases) = &mut releases {
                releases.wait();
            }
        }
        Ok(())
    });
    Ok(Prepared { work: vec![work], note })
}

/// The note on files that lie in memory.
fn in_memory(directory: &Path, system: &str) -> String {
    let directory = directory.display();
    format!("no device takes part: {directory} is {system}; TMPDIR may name another directory")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::LoadBounds;
    use std::time::Duration;

    #[test]
    fn the_file_has_no_name_and_a_missing_directory_is_said() {
        let own = std::env::temp_dir().join(format!("punctual-disk-test-{}", std::process::id()));
        std::fs::create_dir(&own).expect("a directory of our own");
        let file = nameless(&own).expect("a file");
        assert_eq!(std::fs::read_dir(&own).expect("readable").count(), 0);
        file.write_all_at(b"x", LIMITED.file - 1).expect("writable all the same");
        std::fs::remove_dir(&own).expect("empty");
        assert!(nameless(&own).expect_err("gone").contains("punctual-disk-test"));
    }

    #[test]
    fn a_directory_in_memory_is_noted() {
        let setup = |temp: &Path| {
            let bounds = LoadBounds::new(Duration::from_secs(1), vec![0]);
            Setup::new(ROW.name, &LoadBounds { temp: temp.to_owned(), ..bounds })
        };
        let memory = Path::new("/dev/shm");
        if memory_system(memory).is_some() {
            let note = writer(&setup(memory), &LIMITED).expect("a file").note.expect("a note");
            assert!(note.contains("no device takes part: /dev/shm is tmpfs"), "{note}");
        }
        let usual = &std::env::temp_dir();
        let prepared = writer(&setup(usual), &LIMITED).expect("a file");
        assert_eq!(prepared.note.is_some(), memory_system(usual).is_some());
    }
}

//! A campaign's directory: one process at a time, two state files that take turns.
//!
//! A state is put in the place of the older of the two, as every output is: whatever happens, one
//! of them is whole. While a campaign runs its directory is open, and what is in it is reached
//! through that, whatever becomes of the directory's name.

use std::fs::{self, File};
use std::io::ErrorKind::{NotADirectory, NotFound, PermissionDenied};
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use punctual_analysis::campaign::{Campaign, FILE_BYTES_MAX};
use punctual_os::{Errno, file};

use crate::output::{Dir, Opened};
use crate::stored::{LOCK, STATES, regular};

/// The tries of a lock that is held, and the time from one to the next.
const TRIES: u32 = 20;
const BETWEEN_TRIES: Duration = Duration::from_millis(50);

/// A state that was found in a campaign's directory.
#[derive(Debug)]
pub(crate) struct Found {
    /// The newest whole state.
    pub(crate) campaign: Campaign,
    /// The error of the other one.
    pub(crate) trouble: Option<String>,
    number: u64,
}

/// Returns true where there is a campaign in `dir`.
pub(crate) fn is_campaign(dir: &Path) -> bool {
    STATES.iter().any(|state| dir.join(state).is_file())
}

/// The number of the process that measures a campaign now; `None` where none does, or nobody here
/// may see that.
pub(crate) fn measured_by(dir: &Path) -> Option<String> {
    let mut lock = File::open(dir.join(LOCK)).ok()?;
    if file::try_lock(lock.as_raw_fd()) != Ok(false) {
        return None;
    }
    let mut holder = String::new();
    let _unknown = (&mut lock).take(20).read_to_string(&mut holder);
    Some(holder.trim().to_owned())
}

/// Reads the state of a campaign; `None` where there is none.
///
/// # Errors
/// No state there can be read, or nobody here may see whether there is one.
pub(crate) fn read(dir: &Path) -> Result<Option<Found>> {
    let mut present = Vec::new();
    for state in STATES {
        match dir.join(state).symlink_metadata() {
            Ok(_) => present.push(state),
            Err(why) if matches!(why.kind(), NotFound | NotADirectory) => {}
            Err(why) => {
                let way_out = match why.kind() {
                    PermissionDenied => " (where it is another user's campaign, use sudo)",
                    _ => "",
                };
                bail!("{}: cannot look for a campaign: {why}{way_out}", dir.display());
            }
        }
    }
    newest(dir, |state| present.contains(&state).then(|| regular(&dir.join(state))).transpose())
}

/// The newest whole state of those that `open` finds.
fn newest(dir: &Path, open: impl Fn(&str) -> Result<Option<File>>) -> Result<Option<Found>> {
    let mut whole: Option<Found> = None;
    let mut troubles = Vec::new();
    for name in STATES {
        match open(name).and_then(|file| file.map(state).transpose()) {
            Ok(None) => {}
            Ok(Some((campaign, number))) => {
                if whole.as_ref().is_none_or(|older| older.number < number) {
                    whole = Some(Found { campaign, trouble: None, number });
                }
            }
            Err(why) => troubles.push(format!("{}: {why:#}", dir.join(name).display())),
        }
    }
    let trouble = (!troubles.is_empty()).then(|| troubles.join("; "));
    match (whole, trouble) {
        (Some(found), trouble) => Ok(Some(Found { trouble, ..found })),
        (None, None) => Ok(None),
        (None, Some(why)) => Err(anyhow!(why)),
    }
}

/// The campaign in a state file, and its number.
fn state(file: File) -> Result<(Campaign, u64)> {
    let mut bytes = Vec::new();
    let most = FILE_BYTES_MAX as u64;
    file.take(most + 1).read_to_end(&mut bytes).context("cannot read")?;
    if bytes.len() as u64 > most {
        bail!("not a campaign of punctual: more than {} MiB", most >> 20);
    }
    Ok(Campaign::from_bytes(&bytes)?)
}

/// A campaign's directory, held by this process.
#[derive(Debug)]
pub(crate) struct Directory {
    dir: Dir,
    /// Locked as long as it is open.
    _lock: File,
    number: u64,
}

impl Directory {
    /// Takes the directory; makes it where it is not there and `make` says so. What is in it comes
    /// beside.
    ///
    /// # Errors
    /// It cannot be written, is another process's, or holds what is no campaign.
    pub(crate) fn take(path: &Path, make: bool) -> Result<(Self, Option<Found>)> {
        if fs::metadata(path).is_ok_and(|kind| !kind.is_dir()) {
            bail!("{}: not a directory, so not a campaign", path.display());
        }
        Self::lock(if make { Dir::make(path)? } else { Dir::open(path)? }, make)
    }

    /// Takes a directory that is open, which may be empty where `make` says so.
    ///
    /// # Errors
    /// As `take`.
    pub(crate) fn lock(dir: Dir, make: bool) -> Result<(Self, Option<Found>)> {
        let shown = dir.path().display();
        if !STATES.iter().any(|state| dir.has(state)) {
            if !make {
                bail!("{shown}: no campaign to resume");
            }
            refuse_foreign(&dir)?;
        }
        let lock = take_lock(&dir)?;
        let found = newest(dir.path(), |state| dir.read(state).context("cannot read"))?;
        let number = found.as_ref().map_or(0, |found| found.number + 1);
        Ok((Self { dir, _lock: lock, number }, found))
    }

    /// Where it is.
    pub(crate) fn dir(&self) -> &Dir {
        &self.dir
    }

    /// Writes the state in the place of the older one.
    ///
    /// # Errors
    /// The error of writing; the state before is then still there.
    pub(crate) fn save(&mut self, campaign: &Campaign) -> Result<()> {
        let state = STATES[(self.number % 2) as usize];
        Opened::replace(&self.dir, state, campaign.to_bytes(self.number))?;
        self.number += 1;
        Ok(())
    }
}

/// A directory with other things in it is somebody else's.
fn refuse_foreign(dir: &Dir) -> Result<()> {
    let shown = dir.path().display();
    let name = dir.first_name(&[LOCK]).with_context(|| format!("cannot read {shown}"))?;
    let Some(name) = name else { return Ok(()) };
    bail!(
        "{shown}: not a campaign, and not empty (it contains {name}): give a new or empty \
         directory"
    );
}

/// Returns true where the lock is ours now. A process that was killed holds it until its memory is
/// freed, so for a moment it is tried again.
fn held(lock: &File) -> Result<bool, Errno> {
    for _ in 0..TRIES {
        if file::try_lock(lock.as_raw_fd())? {
            return Ok(true);
        }
        // Nothing is measured yet: a little more or less does not matter.
        std::thread::sleep(BETWEEN_TRIES);
    }
    file::try_lock(lock.as_raw_fd())
}

fn take_lock(dir: &Dir) -> Result<File> {
    let mut lock = dir.private(LOCK)?;
    match held(&lock) {
        Ok(true) => {}
        Ok(false) => {
            let mut holder = String::new();
            // Who holds it is a help, no more.
            let _unknown = (&mut lock).take(20).read_to_string(&mut holder);
            let holder = holder.trim();
            let shown = dir.path().display();
            bail!("{shown}: process {holder} is already running this campaign");
        }
        Err(why) => bail!("cannot lock {}: {why}", dir.path().join(LOCK).display()),
    }
    let _told = lock.set_len(0).and_then(|()| writeln!(lock, "{}", std::process::id()));
    Ok(lock)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::PathBuf;

    use super::*;

    fn dir(name: &str) -> PathBuf {
        let path =
            std::env::temp_dir().join(format!("punctual-soak-{name}-{}", std::process::id()));
        let _new = fs::remove_dir_all(&path);
        path
    }

    #[test]
    fn the_newest_whole_state_is_read_and_a_torn_one_is_told() {
        let path = dir("slots");
        let (mut held, found) = Directory::take(&path, true).expect("new");
        assert!(found.is_none());
        let mut campaign = Campaign::new("a", BTreeMap::new(), BTreeMap::new(), 0);
        for n in 1..=5 {
            campaign.began_unix_s = n;
            held.save(&campaign).expect("writable");
        }
        assert!(Directory::take(&path, true).is_err(), "it is taken");
        // Nobody else can take it.
        let lock = fs::metadata(path.join(LOCK)).expect("there");
        assert_eq!(std::os::unix::fs::MetadataExt::mode(&lock) & 0o777, 0o600);
        let began = |path: &Path| read(path).expect("readable").map(|f| f.campaign.began_unix_s);
        assert_eq!(began(&path), Some(5));
        let newest = path.join(STATES[0]);
        let bytes = fs::read(&newest).expect("there");
        fs::write(&newest, &bytes[..bytes.len() - 9]).expect("writable");
        let found = read(&path).expect("readable").expect("the older one");
        assert_eq!(found.campaign.began_unix_s, 4);
        assert!(
            found
                .trouble
                .is_some_and(|why| why.contains("state-0") && why.contains("wrong length"))
        );
        drop(held);
        // What is written next goes in the place of the torn one.
        let (mut held, _) = Directory::take(&path, false).expect("free again");
        campaign.began_unix_s = 6;
        held.save(&campaign).expect("writable");
        assert!(read(&path).expect("readable").is_some_and(|f| f.trouble.is_none()));
        fs::write(path.join(STATES[0]), "x")
            .and_then(|()| fs::write(path.join(STATES[1]), "y"))
            .expect("writable");
        assert!(read(&path).is_err(), "none is whole: no new one begins over them");
        fs::remove_dir_all(&path).expect("it was made here");
    }

    #[test]
    fn where_nobody_may_look_there_may_be_a_campaign() {
        let path = dir("closed");
        assert!(read(&path).expect("absent").is_none());
        // As root there is no other place that cannot be looked into.
        std::os::unix::fs::symlink(&path, &path).expect("writable");
        let why = read(&path).expect_err("a loop").to_string();
        assert!(why.contains("cannot look for a campaign: Too many levels"), "{why}");
        fs::remove_file(&path).and_then(|()| fs::write(&path, "")).expect("writable");
        assert!(read(&path).expect("a file").is_none());
        fs::remove_file(&path).expect("it was made here");
    }

    #[test]
    fn who_measures_a_campaign_is_known_while_it_does() {
        let path = dir("measured");
        assert_eq!(measured_by(&path), None, "no campaign there");
        let (held, _) = Directory::take(&path, true).expect("new");
        assert_eq!(measured_by(&path), Some(std::process::id().to_string()));
        drop(held);
        assert_eq!(measured_by(&path), None);
        fs::remove_dir_all(&path).expect("ours");
    }

    #[test]
    fn a_lock_that_is_about_to_be_free_is_waited_for() {
        let path = dir("dying");
        let (held, _) = Directory::take(&path, true).expect("new");
        let dying = std::thread::spawn(move || {
            // Within what is waited for, however late it ends.
            std::thread::sleep(BETWEEN_TRIES);
            drop(held);
        });
        assert!(Directory::take(&path, true).is_ok());
        dying.join().expect("it ends");
        fs::remove_dir_all(&path).expect("it was made here");
    }

    #[test]
    fn somebody_elses_directory_is_not_written_to() {
        let path = dir("foreign");
        fs::create_dir_all(&path).expect("writable");
        fs::write(path.join("thesis.tex"), "x").expect("writable");
        let why = Directory::take(&path, true).expect_err("refused").to_string();
        assert!(why.contains("thesis.tex"), "{why}");
        assert_eq!(fs::read_dir(&path).expect("there").count(), 1);
        fs::remove_dir_all(&path).expect("it was made here");
    }
}

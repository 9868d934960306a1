//! The journal: what was there before, line by line, each with a checksum.
//!
//! The first line names the format and the boot. `old` says that a file is about to be written;
//! `took` what it became, and the error where the kernel refused it. A last line without its end
//! was being written when the power went: its file was not touched yet. Any other line that does
//! not check is damage.

use std::fmt;
use std::io;

use punctual_host::plan::value_part;
use punctual_os::Errno;

use super::{active, impossible, says};

/// The beginning of the first line.
const HEAD: &str = "punctual tuning journal 1";

/// The store of the journal.
pub trait TuningStore {
    /// All of it; empty where there is none.
    ///
    /// # Errors
    /// Where it cannot be read.
    fn load(&mut self) -> io::Result<Vec<u8>>;

    /// Adds to its end and waits until the disk has it.
    ///
    /// # Errors
    /// Where it could not be kept: what it says must then not be done.
    fn append(&mut self, line: &[u8]) -> io::Result<()>;

    /// Keeps its first `length` bytes, and waits until the disk has that.
    ///
    /// # Errors
    /// Where it could not be cut.
    fn cut(&mut self, length: usize) -> io::Result<()>;

    /// Empties it.
    ///
    /// # Errors
    /// As [`TuningStore::cut`].
    fn clear(&mut self) -> io::Result<()> {
        self.cut(0)
    }

    /// Cuts off a last line without its end, so that what is added next begins on a line of its
    /// own: what the cut line announces was not done.
    ///
    /// # Errors
    /// As [`TuningStore::load`] and [`TuningStore::cut`].
    fn end_last_line(&mut self) -> io::Result<()> {
        let bytes = self.load()?;
        match bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1) {
            whole if whole < bytes.len() => self.cut(whole),
            _ => Ok(()),
        }
    }
}

/// A setting that was changed, or was about to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalEntry {
    /// Its path.
    pub path: String,
    /// Its text before.
    pub old: String,
    /// The text to be written.
    pub new: String,
    /// Its text after; `None` where the program ended between.
    pub took: Option<String>,
    /// The error with which the kernel refused the value; `None` where it took it, where it gave no
    /// number, and in journals of versions that kept none.
    pub refusal: Option<Errno>,
}

impl JournalEntry {
    /// Returns true where its text may be another than before: not where it is known that the
    /// kernel refused the value.
    pub fn is_changed(&self) -> bool {
        self.took.as_ref() != Some(&self.old)
    }

    /// Returns true where it is known to have stayed as it was, though another value was written:
    /// the kernel refused that, or showed the old one again.
    pub fn could_not_be_set(&self) -> bool {
        !self.is_changed() && !says(&self.path, &self.old, &self.new)
    }

    /// The value that the setting has with this text.
    pub fn shown<'a>(&self, text: &'a str) -> &'a str {
        active(value_part(&self.path, text, &self.new))
    }

    /// Why no right and no second try sets this here; `None` where the kernel took it, or where the
    /// way is only closed now.
    pub fn impossible_here(&self) -> Option<&'static str> {
        impossible(&self.path, self.refusal?)
    }

    /// Returns true where `later`, about the same setting, was written over what this one left, so
    /// that nobody changed it between, and both texts that it may have now are known.
    fn leads_to(&self, later: &Self) -> bool {
        let is_over_it = *self.took.as_ref().unwrap_or(&self.old) == later.old;
        is_over_it && (later.took.is_some() || later.old == self.old)
    }

    /// This entry and a `later` one that it leads to as one: the text from before both, and the
    /// value that it has.
    fn and(self, later: Self) -> Self {
        // What was refused leaves the value that was there.
        let is_left = later.old != self.old && !later.is_changed();
        if is_left { self } else { Self { old: self.old, ..later } }
    }
}

/// The same changes with each setting once, at its first place. One that somebody else changed
/// between two of its entries keeps both: a revert sees that by the first.
fn each_once(entries: Vec<JournalEntry>) -> Vec<JournalEntry> {
    let mut settings: Vec<JournalEntry> = Vec::new();
    for later in entries {
        let earlier = settings.iter_mut().rfind(|earlier| earlier.path == later.path);
        match earlier.filter(|earlier| earlier.leads_to(&later)) {
            Some(earlier) => *earlier = earlier.clone().and(later),
            None => settings.push(later),
        }
    }
    settings
}

/// A journal that was read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TuningJournal {
    /// The boot that it is about; empty for a journal without lines.
    pub boot: String,
    /// The changes, in order; of a setting that was changed again, one that goes back to its first
    /// text.
    pub entries: Vec<JournalEntry>,
}

/// The reason for which a journal cannot be used.
#[derive(Debug)]
pub enum JournalError {
    /// It could not be read or written.
    Store(io::Error),
    /// It is of another program, or of a version that is not known.
    Foreign,
    /// This line is damaged.
    Line(usize),
}

impl fmt::Display for JournalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Store(why) => write!(f, "cannot use the journal: {why}"),
            Self::Foreign => write!(f, "not a journal of this program: it must begin '{HEAD}'"),
            Self::Line(number) => write!(
                f,
                "journal is corrupt: line {number} does not match its checksum; nothing was changed"
            ),
        }
    }
}

impl std::error::Error for JournalError {}

/// FNV-1a of 64 bits (Fowler, Noll, Vo): finds damage, keeps nobody from forging.
fn checksum(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('\t', "\\t").replace('\n', "\\n")
}

fn plain(text: &str) -> Option<String> {
    let mut plain = String::new();
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        plain.push(match letter {
            '\\' => match letters.next()? {
                't' => '\t',
                'n' => '\n',
                '\\' => '\\',
                _ => return None,
            },
            letter => letter,
        });
    }
    Some(plain)
}

/// A line of these parts, with its checksum and its end.
fn line(parts: &[&str]) -> Vec<u8> {
    let body = parts.iter().map(|part| escaped(part)).collect::<Vec<_>>().join("\t");
    format!("{body}\t{:016x}\n", checksum(&body)).into_bytes()
}

/// The parts of a line without its end, if it checks.
fn parts(line: &str) -> Option<Vec<String>> {
    let (body, sum) = line.rsplit_once('\t')?;
    let same = u64::from_str_radix(sum, 16).ok()? == checksum(body) && sum.len() == 16;
    same.then(|| body.split('\t').map(plain).collect()).flatten()
}

/// The first line of a journal about this boot.
pub(super) fn head(boot: &str) -> Vec<u8> {
    line(&[HEAD, boot])
}

/// That a file is about to be written.
pub(super) fn about_to(path: &str, old: &str, new: &str) -> Vec<u8> {
    line(&["old", path, old, new])
}

/// The line with the text that a file had after it was written, and the error of the write.
pub(super) fn took(path: &str, text: &str, refusal: Option<Errno>) -> Vec<u8> {
    match refusal {
        None => line(&["took", path, text]),
        Some(Errno(number)) => line(&["took", path, text, &number.to_string()]),
    }
}

impl TuningJournal {
    /// Reads a journal.
    ///
    /// # Errors
    /// Where it is not one, or damaged.
    pub fn parse(bytes: &[u8]) -> Result<Self, JournalError> {
        let text = String::from_utf8_lossy(bytes);
        let mut journal = Self::default();
        for (at, line) in text.split_inclusive('\n').enumerate() {
            let Some(line) = line.strip_suffix('\n') else {
                // Cut off: it was written last, and what it announces was not done.
                if at == 0 && !line.starts_with(HEAD) && !HEAD.starts_with(line) {
                    return Err(JournalError::Foreign);
                }
                break;
            };
            let parts = parts(line);
            let parts: Option<Vec<&str>> =
                parts.as_ref().map(|parts| parts.iter().map(String::as_str).collect());
            match (at, parts.as_deref()) {
                (0, Some([HEAD, boot])) => journal.boot = (*boot).to_owned(),
                (0, _) => return Err(JournalError::Foreign),
                (_, Some(["old", path, old, new])) => journal.entries.push(JournalEntry {
                    path: (*path).to_owned(),
                    old: (*old).to_owned(),
                    new: (*new).to_owned(),
                    took: None,
                    refusal: None,
                }),
                (_, Some(["took", path, text, refusal @ ..])) if refusal.len() < 2 => {
                    let damaged = || JournalError::Line(at + 1);
                    let number = |text: &&str| text.parse().map(Errno).map_err(|_| damaged());
                    let mut entries_of_path = journal.entries.iter_mut().rev();
                    let last = entries_of_path.find(|entry| entry.path == *path);
                    let last = last.ok_or_else(damaged)?;
                    last.took = Some((*text).to_owned());
                    last.refusal = refusal.first().map(number).transpose()?;
                }
                _ => return Err(JournalError::Line(at + 1)),
            }
        }
        journal.entries = each_once(journal.entries);
        Ok(journal)
    }

    /// The journal of a store.
    ///
    /// # Errors
    /// As [`TuningJournal::parse`], and where it cannot be read.
    pub fn load(store: &mut impl TuningStore) -> Result<Self, JournalError> {
        Self::parse(&store.load().map_err(JournalError::Store)?)
    }
}

//! The root: where paths of a machine are opened, and the only file that opens them.
//!
//! A root is this machine ([`Root::live`]) or a tree that was captured from one
//! ([`Root::captured`]). It reads whole small files and lists directories, both bounded; it never
//! writes, never waits on a FIFO or a device, and never leaves a captured tree. A root can record
//! what was asked of it ([`Root::recording`]), which is how a capture knows what to copy.

mod beneath;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use flate2::read::GzDecoder;
use rustix::fs::Dir;
use thiserror::Error;

use crate::capture::manifest::{MANIFEST, Manifest, ManifestError, Missing};
use beneath::{absolute, open_directory};

pub use beneath::{TreeDir, open_regular, read_text, read_whole};

/// The most that is read of one file, after decompression too. `/proc/cpuinfo` of a thousand CPUs
/// has about 1.5 MiB.
pub const MAX_BYTES: u64 = 4 << 20;

/// The most names that are taken from one directory.
pub const MAX_NAMES: usize = 4096;

/// Where paths are opened.
#[derive(Debug)]
pub struct Root {
    source: Source,
    tree: Option<PathBuf>,
    seen: Option<Mutex<BTreeMap<String, Seen>>>,
}

#[derive(Debug)]
enum Source {
    Live,
    /// The directory, and what the machine did not have, where that was written down.
    Captured(TreeDir, Option<Manifest>),
}

impl Root {
    /// This machine.
    pub fn live() -> Self {
        Self { source: Source::Live, tree: None, seen: None }
    }

    /// A captured tree: `dir/proc/cmdline` stands for `/proc/cmdline`. With a manifest, files that
    /// the capture did not look for are unreadable ("not captured") rather than absent.
    ///
    /// # Errors
    /// When the directory cannot be read or its manifest is damaged.
    pub fn captured(dir: impl AsRef<Path>) -> Result<Self, RootError> {
        let dir = dir.as_ref();
        let refused = |why| RootError::Directory { dir: dir.to_owned(), why };
        let tree = TreeDir::open(dir).map_err(|error| refused(words(&error)))?;
        let source = Source::Captured(tree, None);
        let mut root = Self { source, tree: Some(dir.to_owned()), seen: None };
        let manifest = match root.file(&format!("/{MANIFEST}")) {
            Ok(bytes) => Manifest::parse(&String::from_utf8_lossy(&bytes))
                .map(Some)
                .map_err(|source| RootError::Manifest { path: dir.join(MANIFEST), source })?,
            Err(Read::Unreadable { why }) => return Err(refused(format!("{MANIFEST}: {why}"))),
            Err(_) => None,
        };
        if let Source::Captured(_, known) = &mut root.source {
            *known = manifest;
        }
        Ok(root)
    }

    /// This root, recording every path that is read through it.
    #[must_use]
    pub fn recording(self) -> Self {
        Self { seen: Some(Mutex::default()), ..self }
    }

    /// The results of all reads so far, by path; empty unless [`Root::recording`].
    pub fn seen(&self) -> BTreeMap<String, Seen> {
        let seen = self.seen.as_ref().map(|seen| seen.lock().unwrap_or_else(|e| e.into_inner()));
        seen.map(|seen| seen.clone()).unwrap_or_default()
    }

    /// True for the machine itself, false for a captured tree.
    pub fn is_live(&self) -> bool {
        matches!(self.source, Source::Live)
    }

    /// The directory of a captured tree, as it was given.
    pub fn tree(&self) -> Option<&Path> {
        self.tree.as_deref()
    }

    /// Reads a file of at most [`MAX_BYTES`]. `path` is absolute, without `..`.
    pub fn read(&self, path: &str) -> Read {
        let read = self.read_unnoted(path);
        self.note(path, Seen::File(read.clone()));
        read
    }

    /// As [`Root::read`], and no recording has it: for a path that tells whose machine it is.
    pub(crate) fn read_unnoted(&self, path: &str) -> Read {
        text(self.file(path))
    }

    /// Reads a file that may be compressed by gzip; what it holds is bounded like a plain file.
    pub fn read_compressed(&self, path: &str) -> Read {
        let read = text(self.file(path).and_then(|bytes| match bytes.as_slice() {
            [0x1f, 0x8b, ..] => bounded(GzDecoder::new(bytes.as_slice())),
            _ => Ok(bytes),
        }));
        self.note(path, Seen::Compressed(read.clone()));
        read
    }

    /// Reads the first `bytes` bytes of a file, for a header.
    pub fn read_head(&self, path: &str, bytes: u64) -> Read {
        let read = text(self.open(path).and_then(|file| bounded(file.take(bytes))));
        self.note(path, Seen::File(read.clone()));
        read
    }

    /// Reads a model-specific register of a CPU, as decimal text. Live, it is 8 bytes at the
    /// register's offset in `/dev/cpu/N/msr` (msr(4)); captured, the text file `msr-0xREGISTER`
    /// in the same directory.
    pub fn read_msr(&self, cpu: u32, register: u32) -> Read {
        let device = format!("/dev/cpu/{cpu}/msr");
        let path = format!("{device}-{register:#x}");
        let read = if self.is_live() {
            let mut value = [0; 8];
            let got = File::open(&device)
                .and_then(|file| file.read_exact_at(&mut value, u64::from(register)));
            got.map_or_else(
                |error| refusal(&error),
                |()| Read::Text(u64::from_le_bytes(value).to_string()),
            )
        } else {
            text(self.file(&path))
        };
        self.note(&path, Seen::File(read.clone()));
        read
    }

    /// Reads a device that gives a signed number of four bytes, such as `/dev/cpu_dma_latency`, as
    /// decimal text; captured, it is a text file.
    pub fn read_device_number(&self, path: &str) -> Read {
        let read = if self.is_live() {
            let mut value = [0; 4];
            let got = File::open(path).and_then(|mut file| file.read_exact(&mut value));
            got.map_or_else(
                |error| refusal(&error),
                |()| Read::Text(i32::from_ne_bytes(value).to_string()),
            )
        } else {
            text(self.file(path))
        };
        self.note(path, Seen::File(read.clone()));
        read
    }

    /// Reads the kernel's log of this boot; captured, and where the kernel's ring buffer is refused
    /// or has lost its start, the file at `path`.
    pub fn read_kernel_log(&self, path: &str) -> Read {
        let file = || text(self.file(path));
        let read = match self.is_live().then(kernel_log) {
            None => file(),
            Some(Read::Text(log)) if log.contains(LOG_START) => Read::Text(log),
            Some(ring) => match file() {
                Read::Text(log) if log.contains(LOG_START) => Read::Text(log),
                _ => ring,
            },
        };
        self.note(path, Seen::File(read.clone()));
        read
    }

    /// Lists a directory: at most [`MAX_NAMES`] names, sorted.
    pub fn list(&self, path: &str) -> Listing {
        let listing = self.list_unnoted(path);
        self.note(path, Seen::Directory(listing.clone()));
        listing
    }

    /// Records what stands for a path in a capture.
    pub(crate) fn note(&self, path: &str, seen: Seen) {
        if let Some(record) = &self.seen {
            record.lock().unwrap_or_else(|e| e.into_inner()).insert(path.to_owned(), seen);
        }
    }

    /// As [`Root::list`], and no recording has it.
    pub(crate) fn list_unnoted(&self, path: &str) -> Listing {
        let entries = match self.entries(path) {
            Ok(entries) => entries,
            Err(Read::Absent) if self.missing(path) == Some(&Missing::Directory) => {
                return Listing::Names(Vec::new());
            }
            Err(Read::Unreadable { why }) => return Listing::Unreadable { why },
            Err(_) => return Listing::Absent,
        };
        let names = entries.flatten().filter_map(|entry| {
            let name = entry.file_name().to_str().ok()?;
            (name != "." && name != "..").then(|| name.to_owned())
        });
        let mut names: Vec<String> = names.take(MAX_NAMES).collect();
        names.sort();
        Listing::Names(names)
    }

    fn file(&self, path: &str) -> Result<Vec<u8>, Read> {
        bounded(self.open(path)?)
    }

    fn open(&self, path: &str) -> Result<File, Read> {
        absolute(path)?;
        match &self.source {
            Source::Live => open_regular(Path::new(path)).map_err(|error| refusal(&error)),
            Source::Captured(tree, _) => {
                tree.file(Path::new(path)).map_err(|error| self.refusal(path, &error))
            }
        }
    }

    fn entries(&self, path: &str) -> Result<Dir, Read> {
        absolute(path)?;
        let opened = match &self.source {
            Source::Live => open_directory(Path::new(path)),
            Source::Captured(tree, _) => tree.directory(Path::new(path)),
        };
        let entries = opened.and_then(|directory| Ok(Dir::new(directory)?));
        entries.map_err(|error| self.refusal(path, &error))
    }

    fn refusal(&self, path: &str, error: &io::Error) -> Read {
        match refusal(error) {
            Read::Absent => self.why_missing(path),
            refused => refused,
        }
    }

    fn missing(&self, path: &str) -> Option<&Missing> {
        match &self.source {
            Source::Captured(_, Some(manifest)) => manifest.missing.get(path),
            _ => None,
        }
    }

    fn why_missing(&self, path: &str) -> Read {
        match (self.missing(path), &self.source) {
            (Some(Missing::Unreadable { why }), _) => Read::Unreadable { why: why.clone() },
            (Some(_), _) | (None, Source::Live | Source::Captured(_, None)) => Read::Absent,
            (None, _) => Read::Unreadable { why: "not captured".to_owned() },
        }
    }
}

fn text(bytes: Result<Vec<u8>, Read>) -> Read {
    match bytes {
        Ok(bytes) => Read::Text(String::from_utf8_lossy(&bytes).into_owned()),
        Err(read) => read,
    }
}

/// The first line of a kernel's log has it.
const LOG_START: &str = "Linux version ";

/// The ring buffer of this machine's kernel.
fn kernel_log() -> Read {
    let refused = |errno: punctual_os::Errno| refusal(&io::Error::from_raw_os_error(errno.0));
    let size = match punctual_os::kernel_log::size() {
        Ok(size) => size.min(MAX_BYTES as usize),
        Err(errno) => return refused(errno),
    };
    let mut log = vec![0; size];
    match punctual_os::kernel_log::read_all(&mut log) {
        Ok(length) => Read::Text(String::from_utf8_lossy(&log[..length.min(size)]).into_owned()),
        Err(errno) => refused(errno),
    }
}

fn bounded(source: impl io::Read) -> Result<Vec<u8>, Read> {
    read_whole(source, MAX_BYTES).map_err(|error| refusal(&error))
}

fn refusal(error: &io::Error) -> Read {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Read::Absent,
        _ => Read::Unreadable { why: words(error) },
    }
}

/// The kernel's words for an error, without the number that the standard library appends.
fn words(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    let mut letters = text.chars();
    letters.next().map(|first| first.to_lowercase().chain(letters).collect()).unwrap_or_default()
}

/// The result of reading a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Read {
    /// Its text; bytes that are not UTF-8 are replaced.
    Text(String),
    /// There is no such file.
    Absent,
    /// There may be one, but it could not be read.
    Unreadable {
        /// Why, in the kernel's words where there are any.
        why: String,
    },
}

/// The result of listing a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Listing {
    /// Its names, sorted.
    Names(Vec<String>),
    /// There is no such directory.
    Absent,
    /// There may be one, but it could not be read.
    Unreadable {
        /// Why.
        why: String,
    },
}

/// One read through a recording root, and its result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Seen {
    /// A file, plain.
    File(Read),
    /// A file that may be compressed; the text is decompressed.
    Compressed(Read),
    /// A directory.
    Directory(Listing),
}

/// Why a directory cannot be a captured root.
#[derive(Debug, Error)]
pub enum RootError {
    /// It is not there, or no directory.
    #[error("cannot read the directory {}: {why}", dir.display())]
    Directory {
        /// The directory.
        dir: PathBuf,
        /// Why.
        why: String,
    },
    /// Its list of what was missing is damaged.
    #[error("{}: {source}", path.display())]
    Manifest {
        /// The list.
        path: PathBuf,
        /// The defect.
        source: ManifestError,
    },
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Tree;
    use std::collections::BTreeSet;
    use std::fs;
    use std::io::Write as _;
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;
    use std::time::{Duration, Instant};

    fn unreadable(why: &str) -> Read {
        Read::Unreadable { why: why.to_owned() }
    }

    #[test]
    fn reads_and_lists_below_the_tree() {
        let tree = Tree::of(&[("/proc/a", "x\n"), ("/proc/b/c", "")]);
        let root = tree.root();
        assert_eq!(root.read("/proc/a"), Read::Text("x\n".to_owned()));
        assert_eq!(root.read("/proc/none"), Read::Absent);
        assert_eq!(root.read("/proc/a/under"), Read::Absent);
        assert_eq!(root.list("/proc"), Listing::Names(vec!["a".to_owned(), "b".to_owned()]));
        assert_eq!(root.list("/none"), Listing::Absent);
    }

    #[test]
    fn never_leaves_the_tree() {
        let outside = Tree::of(&[("/secret", "x")]);
        let tree = Tree::of(&[("/proc/a", "inside")]);
        symlink(outside.path().join("secret"), tree.path().join("absolute")).unwrap();
        symlink("../../..", tree.path().join("up")).unwrap();
        symlink("proc/a", tree.path().join("within")).unwrap();
        symlink("loop", tree.path().join("loop")).unwrap();
        let root = tree.root();
        assert_eq!(root.read("/absolute"), unreadable("a link leaves the captured tree"));
        assert_eq!(root.read("/within"), Read::Text("inside".to_owned()));
        assert!(matches!(root.list("/up"), Listing::Unreadable { .. }));
        assert!(matches!(root.read("/loop"), Read::Unreadable { .. }));
        for path in ["/proc/../proc/a", "proc/a", "", "/../x"] {
            assert_eq!(root.read(path), unreadable("not an absolute path without '..'"), "{path}");
        }
    }

    #[test]
    fn a_link_that_is_turned_meanwhile_leads_nowhere_else() {
        let outside = Tree::of(&[("/knob", "outside")]);
        let tree = Tree::of(&[("/real/knob", "inside")]);
        let at = |name: &str| tree.path().join(name);
        symlink("real", at("within")).unwrap();
        symlink(outside.path(), at("out")).unwrap();
        symlink("real", at("turned")).unwrap();
        let root = tree.root();
        let done = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            let turner = scope.spawn(|| {
                for target in ["within", "out"].into_iter().cycle() {
                    if done.load(std::sync::atomic::Ordering::Relaxed) {
                        return;
                    }
                    let _raced = symlink(fs::read_link(at(target)).unwrap(), at("next"));
                    fs::rename(at("next"), at("turned")).unwrap();
                }
            });
            let (mut texts, mut refused) = (BTreeSet::new(), false);
            // At least 2 000 reads, and as many as it takes until the link was met both ways: the
            // other thread may be kept from its CPU.
            let until = Instant::now() + Duration::from_secs(60);
            let mut reads = 0;
            while reads < 2_000 || texts.is_empty() || !refused {
                match root.read("/turned/knob") {
                    Read::Text(text) => _ = texts.insert(text),
                    _ => refused = true,
                }
                reads += 1;
                if Instant::now() > until {
                    break;
                }
            }
            // Before anything can fail: the scope waits for the other thread.
            done.store(true, std::sync::atomic::Ordering::Relaxed);
            turner.join().unwrap();
            assert_eq!(texts, BTreeSet::from(["inside".to_owned()]));
        });
    }

    #[test]
    fn special_files_do_not_hang() {
        let tree = Tree::of(&[("/proc/a", "")]);
        let _socket = UnixListener::bind(tree.path().join("socket")).unwrap();
        let fifo = tree.path().join("fifo");
        let made = std::process::Command::new("mkfifo").arg(&fifo).status().unwrap();
        assert!(made.success());
        let root = tree.root();
        for path in ["/socket", "/fifo", "/proc"] {
            assert_eq!(root.read(path), unreadable("not a regular file"), "{path}");
            assert_eq!(root.read_compressed(path), unreadable("not a regular file"), "{path}");
        }
        assert!(!matches!(root.list("/fifo"), Listing::Names(_)));
    }

    #[test]
    fn sizes_are_bounded() {
        let tree = Tree::new();
        tree.write("/big", vec![b'x'; MAX_BYTES as usize + 1]);
        tree.write("/most", vec![b'x'; MAX_BYTES as usize]);
        let mut bomb = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        bomb.write_all(&vec![0; 2 * MAX_BYTES as usize]).unwrap();
        tree.write("/bomb.gz", bomb.finish().unwrap());
        let root = tree.root();
        assert!(matches!(root.read("/big"), Read::Unreadable { .. }));
        assert!(matches!(root.read("/most"), Read::Text(_)));
        assert!(matches!(root.read_compressed("/bomb.gz"), Read::Unreadable { .. }));
        assert_eq!(root.read_head("/big", 3), Read::Text("xxx".to_owned()));
    }

    #[test]
    fn compressed_files_are_decompressed_and_damaged_ones_refused() {
        let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gz.write_all(b"CONFIG_HZ=250\n").unwrap();
        let gz = gz.finish().unwrap();
        let tree = Tree::of(&[("/plain", "CONFIG_HZ=250\n")]);
        tree.write("/whole.gz", &gz);
        tree.write("/cut.gz", &gz[..gz.len() - 4]);
        let root = tree.root();
        let expected = Read::Text("CONFIG_HZ=250\n".to_owned());
        assert_eq!(root.read_compressed("/whole.gz"), expected);
        assert_eq!(root.read_compressed("/plain"), expected);
        assert!(matches!(root.read_compressed("/cut.gz"), Read::Unreadable { .. }));
    }

    #[test]
    fn a_manifest_tells_absent_from_never_looked_for() {
        let tree = Tree::of(&[(
            "/MANIFEST",
            "punctual capture 1\nabsent\t/a\nunreadable\t/b\tpermission denied\ndirectory\t/d\n",
        )]);
        let root = tree.root();
        assert_eq!(root.read("/a"), Read::Absent);
        assert_eq!(root.read("/b"), unreadable("permission denied"));
        assert_eq!(root.read("/c"), unreadable("not captured"));
        assert_eq!(root.list("/d"), Listing::Names(Vec::new()));
        tree.write("/MANIFEST", "something else\n");
        assert!(matches!(Root::captured(tree.path()), Err(RootError::Manifest { .. })));
    }

    #[test]
    fn a_root_must_be_a_directory() {
        let tree = Tree::of(&[("/file", "")]);
        let none = Root::captured(tree.path().join("none")).unwrap_err().to_string();
        assert!(none.ends_with("no such file or directory"), "{none}");
        assert!(Root::captured(tree.path().join("file")).is_err());
    }

    #[test]
    fn recording_keeps_every_answer() {
        let tree = Tree::of(&[("/a", "x")]);
        let root = tree.root().recording();
        let _ = (root.read("/a"), root.read("/b"), root.list("/"), root.read_msr(0, 0x34));
        let seen = root.seen();
        assert_eq!(seen["/a"], Seen::File(Read::Text("x".to_owned())));
        assert_eq!(seen["/b"], Seen::File(Read::Absent));
        assert_eq!(seen["/dev/cpu/0/msr-0x34"], Seen::File(Read::Absent));
        assert!(matches!(&seen["/"], Seen::Directory(Listing::Names(names)) if names == &["a"]));
    }
}

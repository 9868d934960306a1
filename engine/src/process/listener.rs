//! The supervisor's socket: accepts connections, identifies their processes, reads their requests
//! and answers them, without waiting for any.
//!
//! For the supervising thread, which looks in when it is called. A name is locked ([`NameLock`]):
//! the files that a killed supervisor left are replaced, those of a living one never.

use std::ffi::c_int;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use punctual_core::time::{Instant, Span};
use punctual_os::descriptor::Descriptor;
use punctual_os::fork::Origin;
use punctual_os::socket::{self, Peer};
use punctual_os::{Errno, file, pidfd, process};

use super::error::SetupError;
use super::request::{LINE_MAX, Request, answer, make_directory, socket};

/// The most connections that may be open without a request.
const GUESTS_MAX: usize = 128;

/// The longest time for which a connection may stay open without a request.
const PATIENCE: Span = Span::from_ms(1_000);

/// After so long a silent connection makes room for a new one where all places are taken: a program
/// sends its request as soon as it is connected.
const SILENT: Span = Span::from_ms(50);

/// The most connections that are accepted in a [`WINDOW`]: 12 800 a second, each some 10 µs.
const ACCEPTS_MAX: u32 = 64;

/// The time in which accepted connections are counted.
const WINDOW: Span = Span::from_ms(5);

/// The most times that a file may be removed between its opening and its locking before that is an
/// error.
const TRIES: usize = 100;

/// A process that connected.
#[derive(Debug)]
pub(super) struct Guest {
    socket: UnixStream,
    peer: Peer,
    since: Instant,
    line: Vec<u8>,
}

impl Guest {
    /// Answers, with descriptors where it is granted. One that is gone needs none.
    pub(super) fn answer(&self, refused: Option<&str>, descriptors: &[&Descriptor]) -> bool {
        let numbers: Vec<_> = descriptors.iter().map(|descriptor| descriptor.number()).collect();
        socket::send(self.socket.as_raw_fd(), answer(refused).as_bytes(), &numbers).is_ok()
    }

    /// The number of the process.
    pub(super) fn pid(&self) -> i32 {
        self.peer.pid
    }

    /// A descriptor of the process, which surely is the one that connected.
    pub(super) fn pidfd(&self) -> Result<Descriptor, Errno> {
        let socket = self.socket.as_raw_fd();
        match socket::peer_pidfd(socket) {
            Err(Errno(_)) => {
                // An older kernel: by number, and the connection still holds after that.
                let pidfd = pidfd::open(self.peer.pid)?;
                let mut byte = [0; 1];
                match socket::receive(socket, &mut byte) {
                    Ok(received) if received.bytes == 0 => Err(Errno(3)),
                    _ => Ok(pidfd),
                }
            }
            found => found,
        }
    }

    /// Keeps the connection: it ends with the supervisor, which its other end sees.
    pub(super) fn keep(self) -> UnixStream {
        self.socket
    }

    fn read(&mut self, now: Instant) -> Received {
        if self.line.contains(&b'\n') {
            return Received::Line;
        }
        let mut part = [0; LINE_MAX];
        match socket::receive(self.socket.as_raw_fd(), &mut part) {
            Ok(received) if received.bytes == 0 => Received::Gone,
            Ok(received) => {
                self.line.extend_from_slice(&part[..received.bytes]);
                if self.line.contains(&b'\n') || self.line.len() > LINE_MAX {
                    Received::Line
                } else {
                    Received::Nothing
                }
            }
            Err(_) if now - self.since <= PATIENCE => Received::Nothing,
            Err(_) => Received::Gone,
        }
    }
}

/// The outcome of reading from a connection without waiting.
enum Received {
    Nothing,
    Line,
    Gone,
}

/// Admits a connection of the same user, or of root.
fn admit(socket: UnixStream, now: Instant) -> Option<Guest> {
    let peer = socket::peer(socket.as_raw_fd()).ok()?;
    socket.set_nonblocking(true).ok()?;
    let guest = Guest { socket, peer, since: now, line: Vec::new() };
    if peer.uid != 0 && peer.uid != process::euid() {
        guest.answer(Some("it is another user's supervisor"), &[]);
        return None;
    }
    Some(guest)
}

/// The socket of a running supervisor; gone with it.
#[derive(Debug)]
pub(super) struct Listener {
    origin: Origin,
    socket: UnixListener,
    path: PathBuf,
    _held: NameLock,
    /// The connections without a request, the oldest first.
    guests: Vec<Guest>,
    /// The begin of the current window, and the number of connections that were accepted in it.
    window: (Instant, u32),
}

impl Listener {
    /// Takes the name.
    pub(super) fn open(name: &str) -> Result<Self, SetupError> {
        let path = socket(name).map_err(|_| SetupError::Name(name.to_owned()))?;
        let failed = |why| SetupError::Socket(path.display().to_string(), why);
        if let Some(dir) = path.parent() {
            make_directory(dir)
                .map_err(|why| SetupError::Socket(dir.display().to_string(), why))?;
        }
        let lock = path.with_extension("lock");
        let held = NameLock::take(&lock)
            .map_err(|why| SetupError::Socket(lock.display().to_string(), why))?
            .ok_or_else(|| SetupError::Running(name.to_owned()))?;
        // Ours alone now: what stands there was left by one that was killed.
        match fs::remove_file(&path) {
            Err(why) if why.kind() != io::ErrorKind::NotFound => return Err(failed(why)),
            _ => {}
        }
        let socket = UnixListener::bind(&path).map_err(failed)?;
        socket.set_nonblocking(true).map_err(failed)?;
        let window = (Instant::from_ns(0), 0);
        let origin = Origin::here();
        Ok(Self { origin, socket, path, _held: held, guests: Vec::new(), window })
    }

    /// The descriptors that have something to read when a connection or a request comes.
    pub(super) fn descriptors(&self) -> impl Iterator<Item = c_int> {
        let accepts = self.guests.len() < GUESTS_MAX && self.window.1 < ACCEPTS_MAX;
        let new = accepts.then_some(self.socket.as_raw_fd());
        new.into_iter().chain(self.guests.iter().map(|guest| guest.socket.as_raw_fd()))
    }

    /// Accepts connections, and calls `receive` with each complete request.
    pub(super) fn look(&mut self, now: Instant, mut receive: impl FnMut(Guest, Request)) {
        self.accept(now);
        for mut guest in std::mem::take(&mut self.guests) {
            match guest.read(now) {
                Received::Nothing => self.guests.push(guest),
                Received::Gone => {}
                Received::Line => match Request::parse(&guest.line) {
                    Ok(request) => receive(guest, request),
                    Err(why) => drop(guest.answer(Some(why), &[])),
                },
            }
        }
    }

    /// Accepts connections, within the bounds of number and rate.
    fn accept(&mut self, now: Instant) {
        if now - self.window.0 >= WINDOW {
            self.window = (now, 0);
        }
        while self.window.1 < ACCEPTS_MAX && self.make_room(now) {
            // None is there, or it is gone again.
            let Ok((socket, _)) = self.socket.accept() else { break };
            self.window.1 += 1;
            self.guests.extend(admit(socket, now));
        }
    }

    /// Returns true where one more connection can be accepted. Where all places are taken, one that
    /// has been silent for long enough is closed for it.
    fn make_room(&mut self, now: Instant) -> bool {
        if self.guests.len() < GUESTS_MAX {
            return true;
        }
        let silent = |guest: &Guest| now - guest.since >= SILENT;
        let Some(at) = self.guests.iter().position(silent) else { return false };
        let mut guest = self.guests.remove(at);
        match guest.read(now) {
            // Its request came just now: it is answered at this look.
            Received::Line => {
                self.guests.insert(0, guest);
                false
            }
            Received::Nothing | Received::Gone => {
                guest.answer(Some("too many connections without a request"), &[]);
                true
            }
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if !self.origin.is_here() {
            return;
        }
        // While the name is still held. Left behind it is in nobody's way.
        let _left = fs::remove_file(&self.path);
    }
}

/// A name that one supervisor has: a file that is locked, and gone with its holder.
///
/// The lock goes with the process however that ends, so that a file left by one that was killed
/// holds nothing. Who ends in good order removes the file while the lock still holds; a process
/// that opened the file before that then locks one without a name, detects this, and tries again
/// with the file that has the name.
#[derive(Debug)]
struct NameLock {
    origin: Origin,
    path: PathBuf,
    _lock: File,
}

impl NameLock {
    /// Takes the name that this file stands for; `None` where another process has it, until that
    /// has ended.
    fn take(path: &Path) -> io::Result<Option<Self>> {
        for _ in 0..TRIES {
            let file = File::options().create(true).truncate(false).write(true).open(path)?;
            let locked = file::try_lock(file.as_raw_fd());
            if !locked.map_err(|why| io::Error::from_raw_os_error(why.0))? {
                return Ok(None);
            }
            if is_at(&file, path)? {
                let origin = Origin::here();
                return Ok(Some(Self { origin, path: path.to_owned(), _lock: file }));
            }
        }
        Err(io::Error::other("it is removed again and again"))
    }
}

impl Drop for NameLock {
    fn drop(&mut self) {
        if !self.origin.is_here() {
            return;
        }
        // Left behind it is in nobody's way. The lock goes after this.
        let _left = fs::remove_file(&self.path);
    }
}

/// Returns true where `file` is the one that is at `path` now.
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let ours = file.metadata()?;
    match fs::symlink_metadata(path) {
        Ok(found) => Ok((found.dev(), found.ino()) == (ours.dev(), ours.ino())),
        Err(why) if why.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(why) => Err(why),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    use crate::process::request::exchange;

    #[test]
    fn a_request_is_heard_soon_among_many_silent_connections() {
        let name = format!("listener-{}", std::process::id());
        let mut listener = Listener::open(&name).expect("the name is free");
        let connect = || UnixStream::connect(&listener.path).expect("it listens");
        let silent: Vec<UnixStream> = (0..400).map(|_| connect()).collect();
        let joining = connect();
        socket::send(joining.as_raw_fd(), Request::Join("a".to_owned()).line().as_bytes(), &[])
            .expect("sent");
        let (mut heard, mut looks) = (Vec::new(), 0);
        while heard.is_empty() {
            // Time is made up: 10 ms from one look to the next.
            looks += 1;
            assert!(looks <= 40, "after 400 ms it is not heard");
            let now = Instant::from_ns(1_000_000_000 + looks * 10_000_000);
            listener.look(now, |_, request| heard.push(request));
            assert!(listener.guests.len() <= GUESTS_MAX && listener.window.1 <= ACCEPTS_MAX);
        }
        assert_eq!(heard, [Request::Join("a".to_owned())]);
        // A connection that had to go learns why, though its request comes too late.
        let why = exchange(&silent[0], &Request::Watch("a".to_owned())).expect("an answer");
        let why = super::super::request::answered(&why.0).expect_err("refused");
        assert_eq!(why, "too many connections without a request");
    }

    fn path(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("punctual-held-{name}-{}", std::process::id()))
    }

    #[test]
    fn a_name_is_one_holders_and_leaves_nothing() {
        let path = path("one");
        let held = NameLock::take(&path).expect("writable").expect("free");
        assert!(NameLock::take(&path).expect("writable").is_none());
        drop(held);
        assert!(!path.exists());
        // As one that was killed leaves it.
        drop(File::create(&path).expect("writable"));
        assert!(NameLock::take(&path).expect("writable").is_some());
        assert!(!path.exists());
    }

    #[test]
    fn a_file_that_lost_its_name_holds_nothing() {
        let path = path("lost");
        let file = File::create(&path).expect("writable");
        assert!(is_at(&file, &path).expect("readable"));
        fs::remove_file(&path).expect("ours");
        assert!(!is_at(&file, &path).expect("readable"));
        drop(File::create(&path).expect("writable"));
        assert!(!is_at(&file, &path).expect("readable"), "another one stands there");
        fs::remove_file(&path).expect("ours");
    }

    #[test]
    fn of_many_that_come_and_go_one_has_it_at_a_time() {
        let (path, inside, taken) = (path("many"), AtomicU32::new(0), AtomicU32::new(0));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..300 {
                        let Some(held) = NameLock::take(&path).expect("writable") else { continue };
                        assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                        taken.fetch_add(1, Ordering::SeqCst);
                        inside.fetch_sub(1, Ordering::SeqCst);
                        drop(held);
                    }
                });
            }
        });
        assert!(taken.load(Ordering::SeqCst) > 0 && !path.exists());
    }
}

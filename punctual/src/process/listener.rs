//! The supervisor's socket: accepts connections, identifies their processes, reads their requests
//! and answers them, without waiting for any.
//!
//! For the supervising thread, which looks in when it is called. A name is locked ([`NameLock`]):
//! the files that a killed supervisor left are replaced, those of a living one never.

mod name_lock;

use std::ffi::c_int;
use std::fs;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;

use punctual_core::time::{Instant, Span};
use punctual_os::descriptor::Descriptor;
use punctual_os::fork::Origin;
use punctual_os::local::{self, Peer};
use punctual_os::{Errno, pidfd, process};

use super::error::SetupError;
use super::request::place;
use super::request::{LINE_MAX, Request, answer};
use name_lock::NameLock;

/// How many connections may be open without a request.
const GUESTS_MAX: usize = 128;
/// How long a connection may stay open without a request.
const PATIENCE: Span = Span::from_ms(1_000);
/// After so long a silent connection makes room for a new one where all places are taken: a program
/// sends its request as soon as it is connected.
const SILENT: Span = Span::from_ms(50);
/// How many connections are accepted in a [`WINDOW`]: 12 800 a second, each some 10 µs.
const ACCEPTS_MAX: u32 = 64;
/// The time in which accepted connections are counted.
const WINDOW: Span = Span::from_ms(5);

/// A process that connected.
#[derive(Debug)]
pub(super) struct Guest {
    socket: UnixStream,
    pub(super) peer: Peer,
    since: Instant,
    said: Vec<u8>,
}

impl Guest {
    /// Answers, with descriptors where it is granted. One that is gone needs none.
    pub(super) fn answer(&self, refused: Option<&str>, descriptors: &[&Descriptor]) -> bool {
        let numbers: Vec<_> = descriptors.iter().map(|descriptor| descriptor.number()).collect();
        local::send(self.socket.as_raw_fd(), answer(refused).as_bytes(), &numbers).is_ok()
    }

    /// A descriptor of the process, which surely is the one that connected.
    pub(super) fn pidfd(&self) -> Result<Descriptor, Errno> {
        let socket = self.socket.as_raw_fd();
        match local::peer_pidfd(socket) {
            Err(Errno(_)) => {
                // An older kernel: by number, and the connection still holds after that.
                let pidfd = pidfd::open(self.peer.pid)?;
                let mut byte = [0; 1];
                match local::receive(socket, &mut byte) {
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
}

/// The socket of a running supervisor; gone with it.
#[derive(Debug)]
pub(super) struct Listener {
    origin: Origin,
    socket: UnixListener,
    path: PathBuf,
    _held: NameLock,
    /// The oldest first.
    guests: Vec<Guest>,
    /// When the current window began, and how many connections were accepted in it.
    window: (Instant, u32),
}

impl Listener {
    /// Takes the name.
    pub(super) fn open(name: &str) -> Result<Self, SetupError> {
        let path = place::socket(name).map_err(|_| SetupError::Name(name.to_owned()))?;
        let failed = |why| SetupError::Socket(path.display().to_string(), why);
        if let Some(dir) = path.parent() {
            place::make(dir).map_err(|why| SetupError::Socket(dir.display().to_string(), why))?;
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
        let door = accepts.then_some(self.socket.as_raw_fd());
        door.into_iter().chain(self.guests.iter().map(|guest| guest.socket.as_raw_fd()))
    }

    /// Accepts connections, and calls `receive` with each complete request.
    pub(super) fn look(&mut self, now: Instant, mut receive: impl FnMut(Guest, Request)) {
        self.accept(now);
        for mut guest in std::mem::take(&mut self.guests) {
            match guest.read(now) {
                Received::Nothing => self.guests.push(guest),
                Received::Gone => {}
                Received::Line => match Request::parse(&guest.said) {
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

    /// Whether there is room for one more connection. A silent one makes it, where one is there.
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

/// Who may come in: the same user, or root.
fn admit(socket: UnixStream, now: Instant) -> Option<Guest> {
    let peer = local::peer(socket.as_raw_fd()).ok()?;
    socket.set_nonblocking(true).ok()?;
    let guest = Guest { socket, peer, since: now, said: Vec::new() };
    if peer.uid != 0 && peer.uid != process::euid() {
        guest.answer(Some("it is another user's supervisor"), &[]);
        return None;
    }
    Some(guest)
}

/// What a connection had to read.
enum Received {
    Nothing,
    Line,
    Gone,
}

impl Guest {
    fn read(&mut self, now: Instant) -> Received {
        if self.said.contains(&b'\n') {
            return Received::Line;
        }
        let mut part = [0; LINE_MAX];
        match local::receive(self.socket.as_raw_fd(), &mut part) {
            Ok(received) if received.bytes == 0 => Received::Gone,
            Ok(received) => {
                self.said.extend_from_slice(&part[..received.bytes]);
                if self.said.contains(&b'\n') || self.said.len() > LINE_MAX {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::request::exchange;

    #[test]
    fn a_request_is_heard_soon_among_many_silent_connections() {
        let name = format!("listener-{}", std::process::id());
        let mut listener = Listener::open(&name).expect("the name is free");
        let connect = || UnixStream::connect(&listener.path).expect("it listens");
        let silent: Vec<UnixStream> = (0..400).map(|_| connect()).collect();
        let joining = connect();
        local::send(joining.as_raw_fd(), Request::Join("a".to_owned()).line().as_bytes(), &[])
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
        // A connection that had to go is told why, though its request comes too late.
        let why = exchange(&silent[0], &Request::Watch("a".to_owned())).expect("an answer");
        let why = super::super::request::answered(&why.0).expect_err("refused");
        assert_eq!(why, "too many connections without a request");
    }
}

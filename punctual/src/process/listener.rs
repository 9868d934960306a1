//! The supervisor's socket: who comes by name is known, heard and answered, and never waited for.
//!
//! For the supervising thread, which looks in when it is called. A name is held ([`NameLock`]), so
//! that what a killed supervisor left behind is in nobody's way, and a living one is never robbed.

use std::ffi::c_int;
use std::fs;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;

use punctual_core::time::{Instant, Span};
use punctual_os::descriptor::Descriptor;
use punctual_os::local::{self, Peer};
use punctual_os::{Errno, pidfd, process};

use super::error::SetupError;
use super::name_lock::NameLock;
use super::place;
use super::request::{LINE_MAX, Request, answer};

/// How many may wait for an answer.
const GUESTS_MAX: usize = 16;
/// How long one may take to say what it wants.
const PATIENCE: Span = Span::from_ms(1_000);

/// Somebody who connected.
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
    socket: UnixListener,
    path: PathBuf,
    _held: NameLock,
    guests: Vec<Guest>,
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
        Ok(Self { socket, path, _held: held, guests: Vec::new() })
    }

    /// What tells that somebody came, or that one who did says something.
    pub(super) fn descriptors(&self) -> impl Iterator<Item = c_int> {
        let door = (self.guests.len() < GUESTS_MAX).then_some(self.socket.as_raw_fd());
        door.into_iter().chain(self.guests.iter().map(|guest| guest.socket.as_raw_fd()))
    }

    /// Lets in who came, and gives each who said what it wants to `heard`, with the request.
    pub(super) fn look(&mut self, now: Instant, mut heard: impl FnMut(Guest, Request)) {
        while self.guests.len() < GUESTS_MAX {
            // None is there, or it is gone again.
            let Ok((socket, _)) = self.socket.accept() else { break };
            if let Some(guest) = admit(socket, now) {
                self.guests.push(guest);
            }
        }
        for mut guest in std::mem::take(&mut self.guests) {
            match guest.hear(now) {
                Heard::Nothing => self.guests.push(guest),
                Heard::Gone => {}
                Heard::Line => match Request::parse(&guest.said) {
                    Ok(request) => heard(guest, request),
                    Err(why) => drop(guest.answer(Some(why), &[])),
                },
            }
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
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

/// What came of listening to a guest.
enum Heard {
    Nothing,
    Line,
    Gone,
}

impl Guest {
    fn hear(&mut self, now: Instant) -> Heard {
        let mut part = [0; LINE_MAX];
        match local::receive(self.socket.as_raw_fd(), &mut part) {
            Ok(received) if received.bytes == 0 => Heard::Gone,
            Ok(received) => {
                self.said.extend_from_slice(&part[..received.bytes]);
                if self.said.contains(&b'\n') || self.said.len() > LINE_MAX {
                    Heard::Line
                } else {
                    Heard::Nothing
                }
            }
            Err(_) if now - self.since <= PATIENCE => Heard::Nothing,
            Err(_) => Heard::Gone,
        }
    }
}

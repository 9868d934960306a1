//! What ties a process to its supervisor: the parent of a started one, a connection of one that
//! came by name.
//!
//! For both kinds of visitors, tasks and watchers. Never waits for a supervisor for longer than
//! [`ANSWER`].

use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use punctual_os::descriptor::Descriptor;
use punctual_os::{Errno, local, process};

use super::place;
use super::{LINE_MAX, Request, answered};
use crate::process::TaskError;

/// How long a supervisor may take to answer.
const ANSWER: Duration = Duration::from_secs(5);

/// How a task knows that its supervisor lives.
#[derive(Debug)]
pub(in super::super) enum Tie {
    /// It is the parent, by this number.
    Parent(i32),
    /// A connection, which ends with it.
    Connection(UnixStream),
}

impl Tie {
    pub(in super::super) fn holds(&self) -> bool {
        match self {
            Self::Parent(pid) => process::parent() == *pid,
            // What a supervisor says after its answer is nothing; its end says all.
            Self::Connection(socket) => {
                let mut byte = [0; 1];
                local::receive(socket.as_raw_fd(), &mut byte).is_err()
            }
        }
    }
}

/// Asks a supervisor for something; what came with its answer.
pub(in super::super) fn ask(
    supervisor: &str,
    request: &Request,
) -> Result<(UnixStream, [Option<Descriptor>; 2]), TaskError> {
    let unreachable = |why| TaskError::Supervisor(supervisor.to_owned(), why);
    let path = place::socket(supervisor).map_err(unreachable)?;
    let socket = UnixStream::connect(path).map_err(unreachable)?;
    socket.set_read_timeout(Some(ANSWER)).map_err(unreachable)?;
    socket.set_write_timeout(Some(ANSWER)).map_err(unreachable)?;
    let errno = |why: Errno| unreachable(std::io::Error::from_raw_os_error(why.0));
    let peer = local::peer(socket.as_raw_fd()).map_err(errno)?;
    if peer.uid != 0 && peer.uid != process::euid() {
        return Err(TaskError::Stranger(peer.uid));
    }
    let (line, descriptors) = exchange(&socket, request).map_err(errno)?;
    answered(&line).map_err(TaskError::Refused)?;
    socket.set_nonblocking(true).map_err(unreachable)?;
    Ok((socket, descriptors))
}

/// Sends a request; the answer, and the descriptors that came with it.
pub(in super::super) fn exchange(
    socket: &UnixStream,
    request: &Request,
) -> Result<(Vec<u8>, [Option<Descriptor>; 2]), Errno> {
    let sent = local::send(socket.as_raw_fd(), request.line().as_bytes(), &[]);
    let mut line = [0; LINE_MAX];
    // A supervisor that refuses a connection answers and closes it without reading the request:
    // then the request cannot be sent, and the answer says why.
    let received = local::receive(socket.as_raw_fd(), &mut line);
    match (sent, received) {
        (_, Ok(received)) if received.bytes > 0 => {
            Ok((line[..received.bytes].to_vec(), received.descriptors))
        }
        (Err(why), _) | (Ok(_), Err(why)) => Err(why),
        (Ok(_), Ok(_)) => Err(Errno::CONNRESET),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::request::answer;

    #[test]
    fn a_refusal_is_shown_also_where_the_request_was_not_read() {
        let (near, far) = UnixStream::pair().expect("sockets");
        let refusal = answer(Some("it is another user's supervisor"));
        local::send(far.as_raw_fd(), refusal.as_bytes(), &[]).expect("open");
        drop(far);
        let (line, _) = exchange(&near, &Request::Join("a".to_owned())).expect("an answer");
        assert_eq!(answered(&line), Err("it is another user's supervisor".to_owned()));
        let (near, far) = UnixStream::pair().expect("sockets");
        drop(far);
        assert!(exchange(&near, &Request::Join("a".to_owned())).is_err());
    }
}

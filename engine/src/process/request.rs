//! The way by which a process reaches a running supervisor by its name: the socket, the request,
//! the answer, and the tie between the two.
//!
//! For both ends. A request and its answer are a line each; nothing but these lines and descriptors
//! goes through the socket.

use std::ffi::OsString;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, io};

use punctual_os::descriptor::Descriptor;
use punctual_os::{Errno, process, socket};

use super::name::{invalid_name, is_name};
use crate::process::TaskError;

/// The longest line, bytes.
pub const LINE_MAX: usize = 256;

/// Says where supervisors are found, in place of the usual directory.
pub const DIR_VARIABLE: &str = "PUNCTUAL_RUNTIME_DIR";

/// The longest time that a supervisor may take to answer.
const ANSWER: Duration = Duration::from_secs(5);

/// A request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// To register as this task.
    Join(String),
    /// To read the page and the outputs of this task.
    Watch(String),
}

impl Request {
    /// The line of the request.
    ///
    /// # Real-time: setup only
    pub fn line(&self) -> String {
        match self {
            Self::Join(task) => format!("punctual 1 join {task}\n"),
            Self::Watch(task) => format!("punctual 1 watch {task}\n"),
        }
    }

    /// Reads a request from its line, which ends with a newline.
    ///
    /// # Errors
    ///
    /// The fault of the line, in words for the one who sent it.
    ///
    /// # Real-time: setup only
    pub fn parse(line: &[u8]) -> Result<Self, &'static str> {
        let line = std::str::from_utf8(line).map_err(|_| "the request is not UTF-8")?;
        let words: Vec<&str> = line
            .strip_suffix('\n')
            .ok_or("the request does not end with a newline")?
            .split(' ')
            .collect();
        let &[tool, version, verb, task] = &words[..] else {
            return Err("the request must have four words");
        };
        if tool != "punctual" {
            return Err("the request must begin with 'punctual'");
        }
        if version != "1" {
            return Err("the request must be of version 1");
        }
        if !is_name(task) {
            return Err("the request names no valid task");
        }
        match verb {
            "join" => Ok(Self::Join(task.to_owned())),
            "watch" => Ok(Self::Watch(task.to_owned())),
            _ => Err("neither join nor watch"),
        }
    }
}

/// The line of an answer: `None` where the request is granted, else why not.
///
/// # Real-time: setup only
pub fn answer(refused: Option<&str>) -> String {
    match refused {
        None => "ok\n".to_owned(),
        Some(why) => {
            let why: String = why.chars().filter(|c| !c.is_control()).take(LINE_MAX / 4).collect();
            format!("no {why}\n")
        }
    }
}

/// Reads the line of an answer.
///
/// # Errors
///
/// The reason for which the request was refused.
///
/// # Real-time: setup only
pub fn answered(line: &[u8]) -> Result<(), String> {
    let line = String::from_utf8_lossy(line);
    let line = line.trim_end_matches('\n');
    match line.strip_prefix("no ") {
        _ if line == "ok" => Ok(()),
        Some(why) => Err(why.chars().filter(|c| !c.is_control()).collect()),
        None => Err("invalid answer".to_owned()),
    }
}

/// The directory of this user's supervisors, who alone may write to it: `/run/punctual` for root,
/// else `$XDG_RUNTIME_DIR/punctual`, else `/tmp/punctual-UID`; [`DIR_VARIABLE`] replaces it.
///
/// # Real-time: setup only
pub fn directory() -> PathBuf {
    let variable = |name: &str| std::env::var_os(name).filter(|value: &OsString| !value.is_empty());
    if let Some(dir) = variable(DIR_VARIABLE) {
        return dir.into();
    }
    let uid = process::euid();
    match variable("XDG_RUNTIME_DIR") {
        _ if uid == 0 => PathBuf::from("/run/punctual"),
        Some(dir) => Path::new(&dir).join("punctual"),
        None => PathBuf::from(format!("/tmp/punctual-{uid}")),
    }
}

/// The socket of the supervisor of this name.
///
/// # Errors
///
/// `InvalidInput` for an invalid name.
///
/// # Real-time: setup only
pub fn socket(name: &str) -> io::Result<PathBuf> {
    if is_name(name) {
        return Ok(directory().join(format!("{name}.sock")));
    }
    Err(io::Error::new(io::ErrorKind::InvalidInput, invalid_name(name)))
}

/// Makes the directory, where it is not there; refuses one that another user can write to.
pub(super) fn make_directory(dir: &Path) -> io::Result<()> {
    match fs::DirBuilder::new().mode(0o700).create(dir) {
        Err(why) if why.kind() != io::ErrorKind::AlreadyExists => return Err(why),
        _ => {}
    }
    // The directory itself, not what a link points to.
    let meta = fs::symlink_metadata(dir)?;
    if !meta.is_dir() || meta.uid() != process::euid() || meta.mode() & 0o022 != 0 {
        let why = "the directory must belong to this user, who alone may write to it";
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    }
    Ok(())
}

/// The tie of a process to its supervisor, by which it knows that the supervisor lives.
#[derive(Debug)]
pub(super) enum Tie {
    /// It is the parent, by this number.
    Parent(i32),
    /// A connection, which ends with it.
    Connection(UnixStream),
}

impl Tie {
    pub(super) fn holds(&self) -> bool {
        match self {
            Self::Parent(pid) => process::parent() == *pid,
            // What a supervisor says after its answer is nothing; its end says all.
            Self::Connection(socket) => {
                let mut byte = [0; 1];
                socket::receive(socket.as_raw_fd(), &mut byte).is_err()
            }
        }
    }
}

/// Sends a request to a supervisor; the connection, and the descriptors that came with the answer.
pub(super) fn ask(
    supervisor: &str,
    request: &Request,
) -> Result<(UnixStream, [Option<Descriptor>; 2]), TaskError> {
    let unreachable = |why| TaskError::Supervisor(supervisor.to_owned(), why);
    let path = socket(supervisor).map_err(unreachable)?;
    let socket = UnixStream::connect(path).map_err(unreachable)?;
    socket.set_read_timeout(Some(ANSWER)).map_err(unreachable)?;
    socket.set_write_timeout(Some(ANSWER)).map_err(unreachable)?;
    let errno = |why: Errno| unreachable(io::Error::from_raw_os_error(why.0));
    let peer = socket::peer(socket.as_raw_fd()).map_err(errno)?;
    if peer.uid != 0 && peer.uid != process::euid() {
        return Err(TaskError::Stranger(peer.uid));
    }
    let (line, descriptors) = exchange(&socket, request).map_err(errno)?;
    answered(&line).map_err(TaskError::Refused)?;
    socket.set_nonblocking(true).map_err(unreachable)?;
    Ok((socket, descriptors))
}

/// Sends a request; the answer, and the descriptors that came with it.
pub(super) fn exchange(
    socket: &UnixStream,
    request: &Request,
) -> Result<(Vec<u8>, [Option<Descriptor>; 2]), Errno> {
    let sent = socket::send(socket.as_raw_fd(), request.line().as_bytes(), &[]);
    let mut line = [0; LINE_MAX];
    // A supervisor that refuses a connection answers and closes it without reading the request:
    // then the request cannot be sent, and the answer says why.
    let received = socket::receive(socket.as_raw_fd(), &mut line);
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
    use std::os::unix::fs::PermissionsExt;

    use crate::process::request::answer;

    #[test]
    fn requests_come_back_and_others_are_refused() {
        for request in [Request::Join("a-1".to_owned()), Request::Watch("b".to_owned())] {
            assert_eq!(Request::parse(request.line().as_bytes()), Ok(request));
        }
        for line in [
            "",
            "\n",
            "join a\n",
            "punctual 1 join a",
            "punctual 2 join a\n",
            "punctual 1 eat a\n",
            "punctual 1 join ../a\n",
            "punctual 1 join a b\n",
            "x 1 join a\n",
            "punctual 1  a\n",
        ] {
            assert!(Request::parse(line.as_bytes()).is_err(), "{line:?}");
        }
        assert!(Request::parse(&[0xff, b'\n']).is_err());
    }

    #[test]
    fn answers_are_one_line() {
        assert_eq!(answered(answer(None).as_bytes()), Ok(()));
        let refusal = answer(Some("it is\n\u{1b}taken"));
        assert_eq!(refusal, "no it istaken\n");
        assert_eq!(answered(refusal.as_bytes()), Err("it istaken".to_owned()));
        assert!(answered(b"ok then\n").is_err() && answered(b"").is_err());
    }

    #[test]
    fn names_cannot_leave_the_directory() {
        use crate::process::NAME_MAX;

        for name in ["cell-1", "a", "x_2.b", &"n".repeat(NAME_MAX)] {
            assert!(is_name(name), "{name}");
        }
        for name in ["", ".", "..", "a/b", "../x", "a b", "ä", "a\n", &"n".repeat(NAME_MAX + 1)] {
            assert!(!is_name(name) && socket(name).is_err(), "{name:?}");
        }
    }

    #[test]
    fn a_directory_that_others_write_to_is_refused() {
        let dir = std::env::temp_dir().join(format!("punctual-place-{}", std::process::id()));
        make_directory(&dir).expect("new");
        make_directory(&dir).expect("there already");
        fs::set_permissions(&dir, fs::Permissions::from_mode(0o777)).expect("ours");
        assert!(make_directory(&dir).is_err());
        fs::remove_dir(&dir).expect("empty");
        std::os::unix::fs::symlink("/tmp", &dir).expect("free");
        assert!(make_directory(&dir).is_err(), "a link");
        fs::remove_file(&dir).expect("ours");
    }

    #[test]
    fn a_refusal_is_shown_also_where_the_request_was_not_read() {
        let (near, far) = UnixStream::pair().expect("sockets");
        let refusal = answer(Some("it is another user's supervisor"));
        socket::send(far.as_raw_fd(), refusal.as_bytes(), &[]).expect("open");
        drop(far);
        let (line, _) = exchange(&near, &Request::Join("a".to_owned())).expect("an answer");
        assert_eq!(answered(&line), Err("it is another user's supervisor".to_owned()));
        let (near, far) = UnixStream::pair().expect("sockets");
        drop(far);
        assert!(exchange(&near, &Request::Join("a".to_owned())).is_err());
    }
}

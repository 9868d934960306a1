//! The way between two machines: datagrams, or the bytes of a serial line.
//!
//! Opens what it is given by name. Waits on descriptors until an instant, never longer.

use std::fmt;
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, ToSocketAddrs, UdpSocket};
use std::os::fd::AsRawFd;
use std::str::FromStr;

use punctual_os::Errno;
use punctual_os::clock::{ClockId, now_ns};
use punctual_os::events::{self, Interest};
use punctual_os::serial::OnCarrierLoss;

use super::decoder::Decoder;
use super::frame::{Frame, LinkEvent, parse};
use crate::serial_line::SerialLine;

/// A link by name: `udp:HOST:PORT` or `serial:PATH`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkName {
    /// Datagrams to or at this address.
    Udp(SocketAddr),
    /// A serial line, by its device.
    Serial(String),
}

impl FromStr for LinkName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(path) = text.strip_prefix("serial:").filter(|path| !path.is_empty()) {
            return Ok(Self::Serial(path.to_owned()));
        }
        let Some(host) = text.strip_prefix("udp:") else {
            return Err(format!("unknown link {text:?}: udp:HOST:PORT or serial:PATH"));
        };
        let found = host.to_socket_addrs().map_err(|why| format!("{host:?}: {why}"))?;
        found.take(1).next().map(Self::Udp).ok_or_else(|| format!("{host:?} has no address"))
    }
}

impl fmt::Display for LinkName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Udp(address) => write!(f, "udp:{address}"),
            Self::Serial(path) => write!(f, "serial:{path}"),
        }
    }
}

/// A link that is open.
#[derive(Debug)]
pub struct Link(Open);

#[derive(Debug)]
enum Open {
    Udp(UdpSocket),
    Line { line: SerialLine, decoder: Decoder },
}

/// An arrival, when it was read on CLOCK_MONOTONIC in ns, and its sender.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    pub(super) received: LinkEvent,
    pub(super) at_ns: u64,
    pub(super) from: Option<SocketAddr>,
}

impl Link {
    /// To the one who responds.
    ///
    /// # Errors
    /// Why it cannot be had.
    pub fn to(name: &LinkName, baud: u32) -> Result<Self, String> {
        match name {
            LinkName::Udp(address) => {
                let any = if address.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
                let connected = UdpSocket::bind(any).and_then(|socket| {
                    socket.connect(address)?;
                    socket.set_nonblocking(true)?;
                    Ok(socket)
                });
                let socket = connected.map_err(|why| format!("{name}: {why}"))?;
                Ok(Self(Open::Udp(socket)))
            }
            LinkName::Serial(path) => Self::line(path, baud),
        }
    }

    /// Where the one who responds waits, and its name: a port 0 has become one that is free.
    ///
    /// # Errors
    /// Why it cannot be had: another program has the port, a device that is none or not permitted.
    pub fn at(name: &LinkName, baud: u32) -> Result<(Self, LinkName), String> {
        match name {
            LinkName::Udp(address) => {
                let bound = UdpSocket::bind(address).and_then(|socket| {
                    socket.set_nonblocking(true)?;
                    let address = socket.local_addr()?;
                    Ok((socket, address))
                });
                let (socket, address) = bound.map_err(|why| match why.kind() {
                    ErrorKind::AddrInUse => {
                        format!("{name}: another program has this port; choose another one")
                    }
                    _ => format!("{name}: {why}"),
                })?;
                Ok((Self(Open::Udp(socket)), LinkName::Udp(address)))
            }
            LinkName::Serial(path) => Ok((Self::line(path, baud)?, name.clone())),
        }
    }

    fn line(path: &str, baud: u32) -> Result<Self, String> {
        let line = SerialLine::open(path, baud, OnCarrierLoss::Ends);
        let line = line.map_err(|why| format!("serial:{path}: {why}"))?;
        Ok(Self(Open::Line { line, decoder: Decoder::default() }))
    }

    /// Two ends of the same kind in this machine: loopback, or a pseudo-terminal.
    pub(super) fn loopback(&self) -> io::Result<(Self, Self)> {
        match &self.0 {
            Open::Udp(_) => {
                let (near, far) =
                    (UdpSocket::bind("127.0.0.1:0")?, UdpSocket::bind("127.0.0.1:0")?);
                for (from, to) in [(&near, &far), (&far, &near)] {
                    from.connect(to.local_addr()?)?;
                    from.set_nonblocking(true)?;
                }
                Ok((Self(Open::Udp(near)), Self(Open::Udp(far))))
            }
            Open::Line { .. } => {
                let (near, far) = SerialLine::pair()?;
                let end = |line| Self(Open::Line { line, decoder: Decoder::default() });
                Ok((end(near), end(far)))
            }
        }
    }

    /// Sends a frame, to this address where it is no link to one alone.
    ///
    /// # Errors
    /// `WouldBlock` where the link takes no more at this time; else it is lost.
    pub(super) fn send(&self, frame: Frame, to: Option<SocketAddr>) -> io::Result<()> {
        let bytes = &frame.to_bytes()[..frame.length()];
        let sent = match (&self.0, to) {
            (Open::Udp(socket), Some(to)) => socket.send_to(bytes, to)?,
            (Open::Udp(socket), None) => socket.send(bytes)?,
            (Open::Line { line, .. }, _) => {
                events::write(line.descriptor(), bytes).map_err(io_error)?
            }
        };
        if sent == bytes.len() { Ok(()) } else { Err(ErrorKind::WouldBlock.into()) }
    }

    /// Waits until something comes, until `until_ns` on CLOCK_MONOTONIC at most; `None` where
    /// nothing did, or a signal ended the wait.
    ///
    /// # Errors
    /// The link is lost.
    pub(super) fn receive(&mut self, until_ns: u64) -> io::Result<Option<Arrival>> {
        loop {
            if let Open::Line { decoder, .. } = &mut self.0
                && let Some(received) = decoder.next()
            {
                let at_ns = now_ns(ClockId::Monotonic);
                return Ok(Some(Arrival { received, at_ns, from: None }));
            }
            let number = match &self.0 {
                Open::Udp(socket) => socket.as_raw_fd(),
                Open::Line { line, .. } => line.descriptor().number(),
            };
            match events::wait_until(&mut [Interest::new(number)], until_ns) {
                Ok(0) | Err(Errno::INTR) => return Ok(None),
                Ok(_) => {}
                Err(why) => return Err(io_error(why)),
            }
            let mut bytes = [0; 256];
            match &mut self.0 {
                Open::Udp(socket) => match socket.recv_from(&mut bytes) {
                    Ok((count, from)) => {
                        let at_ns = now_ns(ClockId::Monotonic);
                        let received = parse(&bytes[..count]);
                        return Ok(Some(Arrival { received, at_ns, from: Some(from) }));
                    }
                    Err(why) if is_nothing(&why) => return Ok(None),
                    Err(why) => return Err(why),
                },
                Open::Line { line, decoder } => {
                    match events::read(line.descriptor(), &mut bytes).map_err(io_error) {
                        Ok(0) => return Err(ended()),
                        Ok(count) => decoder.push(&bytes[..count]),
                        Err(why) if is_nothing(&why) => return Ok(None),
                        // EIO: the other end of a line is closed.
                        Err(why) if why.raw_os_error() == Some(5) => return Err(ended()),
                        Err(why) => return Err(why),
                    }
                }
            }
        }
    }
}

fn io_error(why: Errno) -> io::Error {
    io::Error::from_raw_os_error(why.0)
}

fn is_nothing(why: &io::Error) -> bool {
    matches!(why.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

fn ended() -> io::Error {
    io::Error::new(ErrorKind::UnexpectedEof, "the line was closed, or its carrier lost")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_and_what_is_none_is_refused() {
        let udp = "udp:127.0.0.1:7000".parse::<LinkName>().expect("a link");
        assert_eq!(udp.to_string(), "udp:127.0.0.1:7000");
        let line = "serial:/dev/ttyS0".parse::<LinkName>().expect("a link");
        assert_eq!(line, LinkName::Serial("/dev/ttyS0".to_owned()));
        for text in ["", "serial:", "tcp:127.0.0.1:1", "udp:127.0.0.1", "udp:127.0.0.1:99999"] {
            assert!(text.parse::<LinkName>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn what_cannot_be_opened_is_refused_with_the_reason() {
        let (_first, name) =
            Link::at(&"udp:127.0.0.1:0".parse().expect("a link"), 0).expect("free");
        let why = Link::at(&name, 0).expect_err("in use");
        assert!(why.contains("another program has this port"), "{why}");
        let serial = |path: &str, baud| Link::to(&LinkName::Serial(path.to_owned()), baud);
        let why = serial("/dev/null", 115_200).expect_err("no line");
        assert!(why.contains("is not a serial line"), "{why}");
        assert!(serial("/dev/null", 5).expect_err("no speed").contains("115200"));
        assert!(serial("/dev/none", 9_600).expect_err("absent").contains("No such file"));
    }
}

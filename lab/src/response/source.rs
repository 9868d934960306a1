//! Where stimuli come from: one row a source, and its two ends.
//!
//! Help texts, errors and the documentation's table follow the rows. A source that this machine
//! cannot have is refused with the reason.

use std::io::{self, ErrorKind};
use std::net::UdpSocket;
use std::sync::atomic::{AtomicU64, Ordering};

use punctual_os::descriptor::Descriptor;
use punctual_os::futex::{self, Scope};
use punctual_os::{Errno, events};

use crate::load::network;

/// The sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceKind {
    /// A futex that another CPU wakes.
    Futex,
    /// An eventfd that another CPU writes.
    Eventfd,
    /// A periodic timerfd.
    Timerfd,
    /// A datagram through a pair of virtual Ethernet devices.
    Udp,
    /// A byte through a pseudo-terminal.
    Pty,
}

/// One source.
#[derive(Debug)]
pub struct SourceRow {
    /// Its name on the command line.
    pub name: &'static str,
    /// Which it is.
    pub kind: SourceKind,
    /// What it is.
    pub help: &'static str,
    /// What a stimulus passes through, and what that leaves out.
    pub path: &'static str,
}

/// All of them.
pub const SOURCES: [SourceRow; 5] = [
    SourceRow {
        name: "eventfd",
        kind: SourceKind::Eventfd,
        help: "a thread on another CPU writes an eventfd",
        path: "scheduler and inter-processor interrupt; no device",
    },
    SourceRow {
        name: "futex",
        kind: SourceKind::Futex,
        help: "a thread on another CPU wakes a futex",
        path: "scheduler and inter-processor interrupt; no device, no file",
    },
    SourceRow {
        name: "timerfd",
        kind: SourceKind::Timerfd,
        help: "the kernel's timer expires",
        path: "timer interrupt of the measured CPU; the stimulus is the timer's own expiry",
    },
    SourceRow {
        name: "udp",
        kind: SourceKind::Udp,
        help: "a datagram between two network namespaces made for it (root and ip), else over \
               loopback",
        path: "network stack; virtual devices deliver in a softirq of the sender's CPU",
    },
    SourceRow {
        name: "pty",
        kind: SourceKind::Pty,
        help: "a byte through a pseudo-terminal, as a serial line has it",
        path: "terminal layer and a kernel worker, which has no real-time priority; no UART",
    },
];

impl SourceKind {
    /// Its row.
    pub fn row(self) -> &'static SourceRow {
        SOURCES.iter().find(|row| row.kind == self).unwrap_or(&SOURCES[0])
    }
}

/// A source that is there.
#[derive(Debug)]
pub(crate) enum Source {
    Futex(AtomicU64),
    Eventfd(Descriptor),
    Timerfd(Descriptor),
    Udp(UdpSocket, UdpSocket),
    Pty(Descriptor, Descriptor),
}

impl Source {
    /// Makes it; with a note where it is not quite what was requested.
    ///
    /// # Errors
    /// Why this machine cannot have it.
    pub(crate) fn open(kind: SourceKind) -> io::Result<(Self, Option<String>)> {
        let of = |why: Errno| io::Error::from_raw_os_error(why.0);
        Ok(match kind {
            SourceKind::Futex => (Self::Futex(AtomicU64::new(0)), None),
            SourceKind::Eventfd => (Self::Eventfd(events::counter().map_err(of)?), None),
            SourceKind::Timerfd => (Self::Timerfd(events::timer().map_err(of)?), None),
            SourceKind::Udp => {
                let pair = network::pair().map_err(io::Error::other)?;
                (Self::Udp(pair.sender, pair.receiver), Some(pair.note))
            }
            SourceKind::Pty => {
                let (near, far) = events::line().map_err(of)?;
                (Self::Pty(near, far), None)
            }
        })
    }

    /// Raises stimulus `number`, from 1 on. The kernel raises those of a timer.
    ///
    /// # Errors
    /// The source is gone.
    pub(super) fn raise(&self, number: u64) -> io::Result<()> {
        let of = |why: Errno| io::Error::from_raw_os_error(why.0);
        match self {
            Self::Futex(word) => {
                word.store(number, Ordering::Release);
                futex::wake(word, 1, Scope::Process).map(drop).map_err(of)
            }
            Self::Eventfd(counter) => events::add(counter, 1).map_err(of),
            Self::Timerfd(_) => Ok(()),
            Self::Udp(sender, _) => sender.send(&number.to_le_bytes()).map(drop),
            Self::Pty(near, _) => events::write(near, &[0x55]).map(drop).map_err(of),
        }
    }

    /// Waits for a stimulus after number `seen`; the number of the latest one. `seen` again where
    /// a signal or a limit of time ended the wait.
    ///
    /// # Errors
    /// The source is gone.
    pub(super) fn wait(&self, seen: u64) -> io::Result<u64> {
        let counted = |taken: Result<u64, Errno>| match taken {
            Ok(count) => Ok(seen.saturating_add(count)),
            Err(Errno::INTR) => Ok(seen),
            Err(why) => Err(io::Error::from_raw_os_error(why.0)),
        };
        match self {
            Self::Futex(word) => {
                // The low half alone is compared; runs are far shorter than 2³² stimuli.
                futex::wait(word, seen as u32, Scope::Process);
                Ok(word.load(Ordering::Acquire))
            }
            Self::Eventfd(of) | Self::Timerfd(of) => counted(events::take(of)),
            Self::Udp(_, receiver) => {
                let mut number = [0; 8];
                match receiver.recv(&mut number) {
                    // What is not eight bytes long, or is older, was not sent here.
                    Ok(8) => Ok(u64::from_le_bytes(number).max(seen)),
                    Ok(_) => Ok(seen),
                    Err(why) if why.kind() == ErrorKind::Interrupted => Ok(seen),
                    Err(why) if why.kind() == ErrorKind::WouldBlock => Ok(seen),
                    Err(why) => Err(why),
                }
            }
            Self::Pty(_, far) => {
                let mut bytes = [0; 64];
                match counted(events::read(far, &mut bytes).map(|count| count as u64)) {
                    Ok(number) if number == seen => Err(ErrorKind::UnexpectedEof.into()),
                    other => other,
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_source_passes_its_stimuli_in_order() {
        for row in &SOURCES {
            let (source, _) = Source::open(row.kind).expect(row.name);
            if let Source::Timerfd(timer) = &source {
                events::arm(timer, 1, 1_000_000_000_000_000).expect("armed");
            }
            source.raise(1).expect(row.name);
            let first = source.wait(0).expect(row.name);
            assert!(first >= 1, "{}", row.name);
            if row.kind != SourceKind::Timerfd {
                source.raise(2).expect(row.name);
                source.raise(3).expect(row.name);
                let mut seen = first;
                while seen < 3 {
                    seen = source.wait(seen).expect(row.name);
                }
                assert_eq!(seen, 3, "{}", row.name);
            }
        }
    }

    #[test]
    fn a_line_whose_other_end_is_closed_is_an_error_and_no_stimulus() {
        let (near, far) = events::line().expect("a pseudo-terminal");
        let unused = events::counter().expect("a descriptor");
        drop(near);
        assert!(Source::Pty(unused, far).wait(0).is_err());
    }
}

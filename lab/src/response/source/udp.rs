//! Datagrams between two sockets of this machine, which the kernel stamps on arrival.
//!
//! The stamps are on CLOCK_REALTIME, and all other times on CLOCK_MONOTONIC: the difference of the
//! two changes only where the time of day is set, which is looked for after each condition.

use std::io;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;
use std::thread;
use std::time::Duration;

use punctual::follow::{ClockReading, Reference};
use punctual_core::time::Span;
use punctual_os::clock::{ClockId, now_ns};
use punctual_os::socket::{self, Datagram};

use super::{Device, Opening, Source, SourceRow, Stimulus, io_error, is_nothing};
use crate::load::network::{self, SocketPair};

pub(super) const ROW: SourceRow = SourceRow {
    name: "udp",
    device: None,
    help: "a datagram between two network namespaces made for it (root and ip), else over loopback",
    path: "network stack (the kernel stamps the datagram where its device hands it over); virtual \
           devices deliver in a softirq of the sender's CPU",
    by_kernel: false,
    check: |_| Ok(()),
    open: |_| stamped(network::pair()?),
};

pub(super) const CABLE: SourceRow = SourceRow {
    name: "cable",
    device: Some("SENDER:RECEIVER"),
    help: "a datagram between two network devices of this machine, such as eth1:eth2, that a cable \
           joins (root and ip); they are switched off and without addresses before and after it",
    path: "network stack, driver and hardware of both devices, cable, interrupt of the receiving \
           one (the kernel stamps the datagram where its driver hands it over)",
    by_kernel: false,
    check: |name| devices(name).map(drop),
    open: |name| stamped(network::cabled(devices(name)?)?),
};

/// The two devices.
fn devices(name: &str) -> Result<[&str; 2], String> {
    let parts: Vec<&str> = name.split(':').collect();
    match parts[..] {
        [near, far] if near != far && is_device(near) && is_device(far) => Ok([near, far]),
        _ => Err(format!("{name:?}: two network devices, such as eth1:eth2")),
    }
}

/// As the kernel names network devices (net/core/dev.c, dev_valid_name).
fn is_device(name: &str) -> bool {
    let odd = |c: char| c == '/' || c == ':' || c.is_whitespace() || c.is_control();
    (1..16).contains(&name.len()) && !name.starts_with(['.', '-']) && !name.contains(odd)
}

fn stamped(pair: SocketPair) -> Opening {
    let stamped = StampedPair::new(pair.sender, pair.receiver).map_err(|why| why.to_string())?;
    let note = match stamped.offset {
        Some(_) => pair.note,
        None => format!("{}; the kernel stamps no arrivals, so there is no stage 0", pair.note),
    };
    Ok((Source::Device(Box::new(stamped)), Some(note)))
}

/// A datagram has arrived after so long.
const ARRIVES: Duration = Duration::from_millis(1);
/// Datagrams that are tried until one is stamped when it arrives.
const TRIES: u64 = 200;

/// Two sockets, and what turns the stamps of one into times on CLOCK_MONOTONIC.
#[derive(Debug)]
struct StampedPair {
    sender: UdpSocket,
    receiver: UdpSocket,
    /// `None` where the kernel stamps no arrivals.
    offset: Option<Offset>,
}

/// CLOCK_REALTIME − CLOCK_MONOTONIC, ns, and how far that may be off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Offset {
    ns: i64,
    within_ns: i64,
}

impl Offset {
    fn of(reading: &ClockReading) -> Self {
        let apart = reading.reference - reading.monotonic;
        Self { ns: apart.as_ns(), within_ns: reading.width.as_ns() / 2 + 1 }
    }

    fn read() -> io::Result<Self> {
        let reading = Reference::Realtime.read();
        reading.as_ref().map(Self::of).ok_or_else(|| io::Error::other("no time of day"))
    }

    /// By how much CLOCK_REALTIME was set between the two; `None` where it was not.
    fn step_to(self, later: Self) -> Option<Span> {
        let step = later.ns.saturating_sub(self.ns);
        let is_step = step.saturating_abs() > self.within_ns.saturating_add(later.within_ns);
        is_step.then(|| Span::from_ns(step))
    }

    /// A stamp on CLOCK_MONOTONIC.
    fn monotonic(self, realtime_ns: u64) -> Option<u64> {
        realtime_ns.checked_add_signed(self.ns.checked_neg()?)
    }
}

impl StampedPair {
    fn new(sender: UdpSocket, receiver: UdpSocket) -> io::Result<Self> {
        let pair = Self { sender, receiver, offset: None };
        if socket::stamp_arrivals(pair.receiver.as_raw_fd()).is_err() {
            return Ok(pair);
        }
        // A worker of the kernel switches it on (net/core/dev.c, netstamp_work). Until then a
        // datagram is stamped when it is read (net/core/sock.c, __sock_recv_timestamp).
        for number in 1..=TRIES {
            if pair.stamps_on_arrival(number)? {
                return Ok(Self { offset: Some(Offset::read()?), ..pair });
            }
        }
        Ok(pair)
    }

    /// Returns true where datagram `number`, the newest that is sent, has an earlier stamp when it
    /// is read late. One that does not come on a busy machine within the sockets' patience is taken
    /// with the next: none is left to be read as a stimulus.
    fn stamps_on_arrival(&self, number: u64) -> io::Result<bool> {
        self.raise(number)?;
        // Longer does not matter: it is read late on purpose.
        thread::sleep(ARRIVES);
        loop {
            let read_ns = now_ns(ClockId::Realtime);
            let mut bytes = [0; 8];
            match socket::receive_datagram(self.receiver.as_raw_fd(), &mut bytes).map_err(io_error)
            {
                Ok(_) if u64::from_le_bytes(bytes) != number => {}
                Ok(Datagram { arrived_ns, .. }) => {
                    return Ok(arrived_ns.is_some_and(|ns| ns < read_ns));
                }
                Err(why) if is_nothing(&why) => return Ok(false),
                Err(why) => return Err(why),
            }
        }
    }
}

impl Device for StampedPair {
    fn raise(&self, number: u64) -> io::Result<()> {
        self.sender.send(&number.to_le_bytes()).map(drop)
    }

    fn wait(&self, seen: u64) -> io::Result<Option<Stimulus>> {
        let mut number = [0; 8];
        match socket::receive_datagram(self.receiver.as_raw_fd(), &mut number).map_err(io_error) {
            Ok(Datagram { bytes: 8, arrived_ns }) => Ok(Some(Stimulus {
                number: u64::from_le_bytes(number),
                kernel_ns: arrived_ns
                    .zip(self.offset)
                    .and_then(|(ns, offset)| offset.monotonic(ns)),
            })),
            // What is not eight bytes long was not sent here.
            Ok(_) => Ok(Some(Stimulus::numbered(seen))),
            Err(why) if is_nothing(&why) => Ok(None),
            Err(why) => Err(why),
        }
    }

    fn end_wait(&self) {
        // A pair that is gone has ended the thread itself.
        let _gone = self.raise(u64::MAX);
    }

    /// CLOCK_REALTIME may have been set meanwhile.
    fn stamps_within(&self) -> Result<Option<Span>, String> {
        let Some(offset) = self.offset else { return Ok(None) };
        let now = Offset::read().map_err(|why| why.to_string())?;
        match offset.step_to(now) {
            None => Ok(Some(Span::from_ns(offset.within_ns))),
            Some(step) => Err(format!("CLOCK_REALTIME, which it is on, was set by {step}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_core::time::Instant;

    fn offset(monotonic: u64, reference: u64, width: i64) -> Offset {
        let (monotonic, reference) = (Instant::from_ns(monotonic), Instant::from_ns(reference));
        Offset::of(&ClockReading::new(monotonic, reference, Span::from_ns(width)))
    }

    #[test]
    fn a_stamp_of_the_time_of_day_is_a_time_on_the_monotonic_clock() {
        let stamped = offset(1_000, 1_000_001_000, 60);
        assert_eq!(stamped, Offset { ns: 1_000_000_000, within_ns: 31 });
        assert_eq!(stamped.monotonic(1_000_005_000), Some(5_000));
        // A machine whose time of day was set to before its start.
        assert_eq!(offset(5_000, 1_000, 60).monotonic(2_000), Some(6_000));
        assert_eq!(stamped.monotonic(0), None);
    }

    #[test]
    fn a_clock_that_was_set_is_noticed_and_a_wide_reading_is_no_step() {
        let first = offset(1_000, 2_000, 60);
        assert_eq!(first.step_to(offset(9_000, 10_040, 60)), None);
        assert_eq!(first.step_to(offset(9_000, 20_000, 30_000)), None);
        assert_eq!(first.step_to(offset(9_000, 1_010_000, 60)), Some(Span::from_ms(1)));
        assert_eq!(first.step_to(offset(9_000, 9_000, 60)), Some(Span::from_us(-1)));
        let (sender, receiver) = (UdpSocket::bind("127.0.0.1:0"), UdpSocket::bind("127.0.0.1:0"));
        let (sender, receiver) = (sender.expect("loopback"), receiver.expect("loopback"));
        let pair = StampedPair { sender, receiver, offset: Some(first) };
        let why = pair.stamps_within().expect_err("1970 is over");
        assert!(why.starts_with("CLOCK_REALTIME, which it is on, was set by "), "{why}");
    }

    #[test]
    fn two_devices_are_named_and_what_is_none_is_refused() {
        assert_eq!(devices("eth1:enp3s0f0"), Ok(["eth1", "enp3s0f0"]));
        for name in
            ["eth1", "eth1:", "a:a", "a:b:c", "../x:a", "-h:a", "a b:c", "sixteen-letters-x:b"]
        {
            assert!(devices(name).is_err(), "{name:?}");
        }
    }

    #[test]
    fn a_datagram_that_is_read_late_has_the_stamp_of_its_arrival() {
        let pair = network::pair().expect("sockets");
        let pair = StampedPair::new(pair.sender, pair.receiver).expect("stamps");
        let stamped = (1..=TRIES).find(|number| pair.stamps_on_arrival(*number).expect("sent"));
        assert_eq!(stamped.is_some(), pair.offset.is_some());
        // A socket without stamps.
        let (sender, receiver) = (UdpSocket::bind("127.0.0.1:0"), UdpSocket::bind("127.0.0.1:0"));
        let (sender, receiver) = (sender.expect("loopback"), receiver.expect("loopback"));
        sender.connect(receiver.local_addr().expect("bound")).expect("loopback");
        let pair = StampedPair { sender, receiver, offset: None };
        assert!(!pair.stamps_on_arrival(1).expect("sent"));
    }

    #[test]
    fn a_datagram_that_comes_after_its_turn_is_not_taken_for_the_next() {
        let pair = network::pair().expect("sockets");
        let pair = StampedPair::new(pair.sender, pair.receiver).expect("stamps");
        // As if two had been given up.
        pair.raise(7).expect("sent");
        pair.raise(8).expect("sent");
        pair.stamps_on_arrival(9).expect("sent");
        pair.raise(1).expect("sent");
        let found = std::iter::repeat_with(|| pair.wait(0).expect("there")).flatten().next();
        assert_eq!(found.map(|stimulus| stimulus.number), Some(1));
    }

    #[test]
    fn stamps_lie_between_the_stimulus_and_its_answer() {
        let pair = network::pair().expect("sockets");
        let pair = StampedPair::new(pair.sender, pair.receiver).expect("stamps");
        let now = || now_ns(ClockId::Monotonic);
        for number in 1..=20 {
            let before = now();
            pair.raise(number).expect("sent");
            let found = std::iter::repeat_with(|| pair.wait(0).expect("there")).flatten().next();
            let found = found.expect("it was sent");
            assert_eq!((found.number, found.kernel_ns.is_some()), (number, pair.offset.is_some()));
            let within = pair.offset.map_or(0, |offset| offset.within_ns.unsigned_abs());
            let stamp = found.kernel_ns.unwrap_or(before);
            assert!(stamp + within >= before && stamp <= now() + within, "{before} {stamp}");
        }
        let within = pair.offset.map(|offset| Span::from_ns(offset.within_ns));
        assert_eq!(pair.stamps_within(), Ok(within));
    }
}

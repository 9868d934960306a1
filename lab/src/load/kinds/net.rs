//! Loads `net` and `net:heavy`: UDP datagrams of 64 to 1 400 bytes, from one socket to another, at
//! most 50 000 a second, or as many as the sender's CPU makes.
//!
//! As root between two network namespaces of its own, joined by a pair of virtual Ethernet devices,
//! so that a whole network stack works twice; else over loopback, and the report says why. The
//! namespaces have no other device: nothing can leave them, and they vanish with the process. Over
//! loopback the receiver's port is one that the kernel chose, and it takes from the sender alone.

use std::io::ErrorKind;

use super::cpu::Numbers;
use super::timer::WorkerLoop;
use crate::load::network::{self, SocketPair};
use crate::load::row::{LoadRow, Start};
use crate::load::worker::{Prepared, Work};

/// Its row in the table of loads.
pub(super) const ROW: LoadRow = LoadRow {
    name: "net",
    unit: "datagrams",
    help: "sends UDP between two network namespaces (without root: over loopback), at a limited \
           rate",
    args: None,
    workers_max: None,
    start: Start::Own(|_| pair(Some(BURST_PERIOD_NS))),
};

/// That of the one without a limit.
pub(super) const HEAVY: LoadRow = LoadRow {
    name: "net:heavy",
    unit: "datagrams",
    help: "as net, as many as the sender's CPU makes",
    args: None,
    workers_max: None,
    start: Start::Heavy(|_| pair(None)),
};

/// Datagrams in one burst, and the time between two bursts.
const BURST: u32 = 50;
const BURST_PERIOD_NS: u64 = 1_000_000;
/// Bytes of payload: one frame of Ethernet at most.
const BYTES_MIN: u32 = 64;
const BYTES_MAX: u32 = 1_400;

/// Sets it up: a sender and a receiver, which take turns and so count as one worker. `period_ns` is
/// the time between two bursts.
///
/// # Errors
/// When not even loopback works.
fn pair(period_ns: Option<u64>) -> Result<Prepared, String> {
    let SocketPair { sender, receiver, note } = network::pair()?;
    let send: Work = Box::new(move |ticket| {
        let mut numbers = Numbers::new(0);
        let payload = [0x55; BYTES_MAX as usize];
        let mut releases = period_ns.map(WorkerLoop::new);
        while ticket.going() {
            for _ in 0..BURST {
                let bytes = BYTES_MIN + numbers.below(BYTES_MAX - BYTES_MIN + 1);
                // What was not sent is not received, and only that is counted.
                let _ = sender.send(&payload[..bytes as usize]);
            }
            if let Some(releases) = &mut releases {
                releases.wait();
            }
        }
        Ok(())
    });
    let receive: Work = Box::new(move |ticket| {
        let mut payload = [0; BYTES_MAX as usize];
        while ticket.going() {
            match receiver.recv(&mut payload) {
                Ok(_) => ticket.add(1),
                Err(why) if matches!(why.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
                Err(why) if why.kind() == ErrorKind::Interrupted => {}
                Err(why) => return Err(format!("receive: {why}")),
            }
        }
        Ok(())
    });
    Ok(Prepared { work: vec![send, receive], note: Some(note) })
}

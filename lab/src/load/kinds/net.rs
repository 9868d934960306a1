//! Load `net`: UDP datagrams of 64 to 1 400 bytes, from one socket to another, at most 50 000 a
//! second.
//!
//! As root between two network namespaces of its own, joined by a pair of virtual Ethernet devices,
//! so that a whole network stack works twice; else over loopback, and the report says why. The
//! namespaces have no other device: nothing can leave them, and they vanish with the process. Over
//! loopback the receiver's port is one that the kernel chose, and it takes from the sender alone.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

use punctual_os::namespace::unshare_network;
use punctual_os::process;

use super::cpu::Numbers;
use super::row::{LoadRow, Start};
use super::timer::Pace;
use crate::load::program;
use crate::load::setup::Setup;
use crate::load::work::{Prepared, Work};

/// Its row in the table of loads.
pub(super) const ROW: LoadRow = LoadRow {
    name: "net",
    unit: "datagrams",
    help: "sends UDP between two network namespaces (without root: over loopback), at a limited \
           rate",
    args: None,
    start: Start::Own(prepare),
};

/// Datagrams in one burst, and the time between two bursts.
const BURST: u32 = 50;
const BURST_PERIOD_NS: u64 = 1_000_000;
/// Bytes of payload: one frame of Ethernet at most.
const BYTES_MIN: u32 = 64;
const BYTES_MAX: u32 = 1_400;
/// A receiver looks at its flag so often.
const PATIENCE: Duration = Duration::from_millis(50);
/// For helpers that answer in no time or never.
const HELPER: Duration = Duration::from_secs(5);
/// RFC 5737, TEST-NET-1: never in use anywhere, and these namespaces have no way out.
const SENDER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const RECEIVER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);

/// Two sockets, each connected to the other.
struct Pair {
    sender: UdpSocket,
    receiver: UdpSocket,
}

/// Runs `ip` with `args` in the namespace of the calling thread.
fn ip(args: &str) -> Result<(), String> {
    let path = program::find("ip").ok_or("program ip (iproute2) is not installed")?;
    let mut command = Command::new(path);
    command.args(args.split(' ')).stdin(Stdio::null()).stdout(Stdio::null());
    let output = command.output().map_err(|why| format!("ip: {why}"))?;
    if output.status.success() {
        return Ok(());
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    Err(format!("ip {args}: {}", errors.lines().next().unwrap_or("failed")))
}

/// Gives `device` its address, switches it on and opens a socket, all in this thread's namespace.
fn open(device: &str, address: Ipv4Addr) -> Result<UdpSocket, String> {
    ip(&format!("addr add {address}/30 dev {device}"))?;
    ip(&format!("link set {device} up"))?;
    UdpSocket::bind((address, 0)).map_err(|why| format!("a socket in a namespace: {why}"))
}

/// Makes the two namespaces. Each is made by a thread of its own, which then ends: a socket stays
/// in the namespace it was opened in, and keeps it.
fn namespaces() -> Result<Pair, String> {
    if process::euid() != 0 {
        return Err("not root".to_owned());
    }
    let unshared = || unshare_network().map_err(|why| format!("a namespace: {why}"));
    let (to_near, far_tid) = channel();
    let (to_far, joined) = channel::<()>();
    let far = std::thread::spawn(move || {
        unshared()?;
        // A sender or receiver that is gone has told its reason itself.
        let _ = to_near.send(process::tid());
        joined.recv_timeout(HELPER).map_err(|_| "the devices were not made".to_owned())?;
        open("far", RECEIVER)
    });
    let near = std::thread::spawn(move || {
        let tid = far_tid.recv_timeout(HELPER).map_err(|_| "no second namespace".to_owned())?;
        unshared()?;
        ip(&format!("link add near type veth peer name far netns {tid}"))?;
        let _ = to_far.send(());
        open("near", SENDER)
    });
    let ended = |_| Err("a helper thread ended".to_owned());
    let sender = near.join().unwrap_or_else(ended);
    let receiver = far.join().unwrap_or_else(ended);
    connect(Pair { sender: sender?, receiver: receiver? })
}

/// Over the loopback device of the namespace that the process is in.
fn loopback() -> Result<Pair, String> {
    let bind = || {
        UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).map_err(|why| format!("a loopback socket: {why}"))
    };
    connect(Pair { sender: bind()?, receiver: bind()? })
}

fn connect(pair: Pair) -> Result<Pair, String> {
    let address = |socket: &UdpSocket| -> Result<SocketAddr, String> {
        socket.local_addr().map_err(|why| why.to_string())
    };
    let (near, far) = (address(&pair.sender)?, address(&pair.receiver)?);
    pair.sender.connect(far).map_err(|why| format!("connect: {why}"))?;
    pair.receiver.connect(near).map_err(|why| format!("connect: {why}"))?;
    pair.receiver.set_read_timeout(Some(PATIENCE)).map_err(|why| why.to_string())?;
    Ok(pair)
}

/// Sets it up: a sender and a receiver, which take turns and so count as one worker.
///
/// # Errors
/// When not even loopback works.
fn prepare(_: &Setup) -> Result<Prepared, String> {
    let (pair, note) = match namespaces() {
        Ok(pair) => (pair, "between two network namespaces".to_owned()),
        Err(why) => (loopback()?, format!("over loopback: {why}")),
    };
    let Pair { sender, receiver } = pair;
    let send: Work = Box::new(move |ticket| {
        let mut numbers = Numbers::new(0);
        let payload = [0x55; BYTES_MAX as usize];
        let mut pace = Pace::new(BURST_PERIOD_NS);
        while ticket.going() {
            for _ in 0..BURST {
                let bytes = BYTES_MIN + numbers.below(BYTES_MAX - BYTES_MIN + 1);
                // What was not sent is not received, and only that is counted.
                let _ = sender.send(&payload[..bytes as usize]);
            }
            pace.wait();
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

#[cfg(test)]
mod tests {
    use super::*;

    fn passes(pair: &Pair) {
        pair.sender.send(b"hello").expect("sent");
        pair.receiver.set_read_timeout(Some(HELPER)).expect("a timeout");
        let mut bytes = [0; 8];
        assert_eq!(pair.receiver.recv(&mut bytes).expect("received"), 5);
    }

    #[test]
    fn datagrams_pass_over_loopback_and_between_namespaces() {
        passes(&loopback().expect("loopback"));
        match namespaces() {
            Ok(pair) => {
                passes(&pair);
                assert_eq!(pair.sender.local_addr().expect("bound").ip(), SENDER);
            }
            Err(why) => assert!(!why.is_empty()),
        }
    }

    #[test]
    fn a_refusal_of_ip_is_told() {
        if let Err(why) = ip("link set no-such-device up") {
            assert!(why.contains("ip"), "{why}");
        } else {
            panic!("there is no such device");
        }
    }
}

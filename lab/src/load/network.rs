//! Two UDP sockets for this machine alone: between two network namespaces of their own, joined by a
//! pair of virtual Ethernet devices, else over loopback.
//!
//! For the load `net` and for stimuli. The namespaces have no other device, and vanish with the
//! sockets.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

use punctual_os::namespace::unshare_network;
use punctual_os::process;

use super::program;

/// For helpers that answer in no time or never.
const HELPER: Duration = Duration::from_secs(5);
/// RFC 5737, TEST-NET-1: never in use anywhere, and these namespaces have no way out.
const SENDER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const RECEIVER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);
/// A receiver looks at its flag so often.
const PATIENCE: Duration = Duration::from_millis(50);

/// Two sockets, each connected to the other.
#[derive(Debug)]
pub(crate) struct SocketPair {
    pub(crate) sender: UdpSocket,
    /// Its reads end after a twentieth of a second, with nothing.
    pub(crate) receiver: UdpSocket,
    /// Where they are.
    pub(crate) note: String,
}

/// Between two network namespaces made for them, else over loopback.
///
/// # Errors
/// When not even loopback works.
pub(crate) fn pair() -> Result<SocketPair, String> {
    match namespaces() {
        Ok(pair) => Ok(pair),
        Err(why) => {
            let pair = loopback()?;
            Ok(SocketPair { note: format!("over loopback: {why}"), ..pair })
        }
    }
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
fn namespaces() -> Result<SocketPair, String> {
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
    let note = "between two network namespaces".to_owned();
    connect(SocketPair { sender: sender?, receiver: receiver?, note })
}

/// Over the loopback device of the namespace that the process is in.
fn loopback() -> Result<SocketPair, String> {
    let bind = || {
        UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).map_err(|why| format!("a loopback socket: {why}"))
    };
    let note = "over loopback".to_owned();
    connect(SocketPair { sender: bind()?, receiver: bind()?, note })
}

fn connect(pair: SocketPair) -> Result<SocketPair, String> {
    let address = |socket: &UdpSocket| -> Result<SocketAddr, String> {
        socket.local_addr().map_err(|why| why.to_string())
    };
    let (near, far) = (address(&pair.sender)?, address(&pair.receiver)?);
    pair.sender.connect(far).map_err(|why| format!("connect: {why}"))?;
    pair.receiver.connect(near).map_err(|why| format!("connect: {why}"))?;
    pair.receiver.set_read_timeout(Some(PATIENCE)).map_err(|why| why.to_string())?;
    Ok(pair)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passes(pair: &SocketPair) {
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

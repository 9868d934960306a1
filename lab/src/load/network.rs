//! Two UDP sockets for this machine alone: between two network namespaces of their own, joined by a
//! pair of virtual Ethernet devices or by a cable between two real ones, else over loopback.
//!
//! For the load `net` and for stimuli. The namespaces have no other device, and vanish with the
//! sockets; the kernel then gives real devices back, also after `kill -9`. A device that is in use
//! is never taken.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use punctual_engine::spawn;
use punctual_os::process;
use punctual_os::process::unshare_network;

use super::subprocess;
use crate::capture::FIRST_NAMESPACE;

/// For helpers that answer in no time or never.
const HELPER: Duration = Duration::from_secs(5);
/// RFC 5737, TEST-NET-1: never in use anywhere, and these namespaces have no way out.
const SENDER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const RECEIVER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);
/// Until a cable that was switched on at both ends passes datagrams.
const CARRIER: Duration = Duration::from_secs(15);
/// A receiver looks at its flag so often.
const PATIENCE: Duration = Duration::from_millis(50);

/// Two sockets, each connected to the other.
#[derive(Debug)]
pub(crate) struct SocketPair {
    pub(crate) sender: UdpSocket,
    /// Its reads end after a twentieth of a second, with nothing.
    pub(crate) receiver: UdpSocket,
    /// The place of the sockets, in words.
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
    output_of_ip(args).map(drop)
}

/// Runs `ip` with these arguments; what it prints.
fn output_of_ip(args: &str) -> Result<String, String> {
    let path = subprocess::find("ip").ok_or("program ip (iproute2) is not installed")?;
    let mut command = Command::new(path);
    command.args(args.split(' ')).stdin(Stdio::null());
    let output = command.output().map_err(|why| format!("ip: {why}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
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

/// Between two network devices that a cable joins, each in a namespace of its own.
///
/// # Errors
/// A device that is not there, not real or in use, or no datagram that passes.
pub(crate) fn cabled(devices: [&str; 2]) -> Result<SocketPair, String> {
    if process::euid() != 0 {
        return Err("needs root, to lend devices to network namespaces".to_owned());
    }
    in_first_namespaces(|link| std::fs::read_link(link).ok())?;
    devices.iter().try_for_each(|device| is_free(device))?;
    let lend = |device: &str, tid: i32| ip(&format!("link set {device} netns {tid}"));
    let wire =
        |tids: [i32; 2]| devices.iter().zip(tids).try_for_each(|(device, tid)| lend(device, tid));
    let pair = apart(devices, wire, open)?;
    let until = Instant::now() + CARRIER;
    while Instant::now() < until {
        // Not before both ends are up and know each other's address.
        let _not_yet = pair.sender.send(b"?");
        if pair.receiver.recv(&mut [0]).is_ok() {
            while pair.receiver.recv(&mut [0]).is_ok() {}
            let [near, far] = devices;
            return Ok(SocketPair { note: format!("over a cable from {near} to {far}"), ..pair });
        }
    }
    let [near, far] = devices;
    Err(format!(
        "no datagram went from {near} to {far} within {} s; connect these two devices",
        CARRIER.as_secs()
    ))
}

/// Sees that the kernel gives devices back to this network namespace: where a namespace ends, it
/// moves them to the first one. Process 1 shows which that is to the first PID namespace alone;
/// in that of a container it is the container's own. `read_link` reads a symbolic link.
fn in_first_namespaces(read_link: impl Fn(&str) -> Option<PathBuf>) -> Result<(), String> {
    let pids = read_link("/proc/self/ns/pid");
    if pids.as_deref() != Some(Path::new(FIRST_NAMESPACE)) {
        let pids = pids.map_or_else(|| "unknown".to_owned(), |link| link.display().to_string());
        return Err(format!(
            "this is {pids}, not the first PID namespace ({FIRST_NAMESPACE}), as in a container: \
             the kernel could give the devices back to its host; run it on the host"
        ));
    }
    let network = |process: &str| read_link(&format!("/proc/{process}/ns/net"));
    if network("self").is_none() || network("self") != network("1") {
        return Err("this is not the first network namespace: the kernel would give the devices \
                    back to that one; run it there"
            .to_owned());
    }
    Ok(())
}

/// Sees that nothing uses a network device. One that was lent a moment ago may not be back yet.
fn is_free(device: &str) -> Result<(), String> {
    let known = Path::new("/sys/class/net").join(device);
    let until = Instant::now() + HELPER;
    while !known.exists() {
        if Instant::now() > until {
            return Err(format!("no network device {device:?}"));
        }
        // It comes when the kernel has taken its last namespace apart: about now.
        std::thread::sleep(PATIENCE);
    }
    if !known.join("device").exists() {
        return Err(format!(
            "{device} is a virtual device; the source udp makes a pair of these itself"
        ));
    }
    let flags = std::fs::read_to_string(known.join("flags")).unwrap_or_default();
    let flags = u32::from_str_radix(flags.trim().trim_start_matches("0x"), 16);
    // IFF_UP. Addresses of a device that is up or down would be lost.
    let is_up = flags.map_or(true, |flags| flags & 1 == 1);
    let has_address = output_of_ip(&format!("addr show dev {device}"))?.contains("inet");
    match is_up || has_address || known.join("master").exists() {
        true => Err(format!(
            "{device} is in use: remove its addresses ('ip addr flush dev {device}') and switch it \
             off ('ip link set {device} down')"
        )),
        false => Ok(()),
    }
}

/// Between two network namespaces made for them, joined by virtual devices.
fn namespaces() -> Result<SocketPair, String> {
    if process::euid() != 0 {
        return Err("not root".to_owned());
    }
    apart(["near", "far"], join_virtually, open)
}

/// Puts a virtual device into the namespace of each of two threads.
fn join_virtually([near, far]: [i32; 2]) -> Result<(), String> {
    ip(&format!("link add near netns {near} type veth peer name far netns {far}"))
}

/// Between two network namespaces made for them; what the receiver's device gets is worked on by
/// this CPU, whoever sends it.
///
/// # Errors
/// No rights, no devices, no program to make them, no such CPU.
pub(crate) fn steered(cpu: u32) -> Result<SocketPair, String> {
    if process::euid() != 0 {
        return Err("needs root, to make network namespaces".to_owned());
    }
    apart(["near", "far"], join_virtually, move |device, address| {
        let socket = open(device, address)?;
        if device == "far" {
            steer(device, cpu)?;
        }
        Ok(socket)
    })
}

/// Lets one CPU alone work on what this device receives (Documentation/networking/scaling.rst,
/// RPS). A device is seen in a sysfs of its namespace alone: it is mounted for the shell, and goes
/// with it.
fn steer(device: &str, cpu: u32) -> Result<(), String> {
    let path = subprocess::find("unshare").ok_or("program unshare (util-linux) is missing")?;
    // Words of 32 CPUs, the highest first.
    let mask = format!("{:x}{}", 1_u32 << (cpu % 32), ",00000000".repeat((cpu / 32) as usize));
    let queue = format!("/sys/class/net/{device}/queues/rx-0/rps_cpus");
    let script = format!("mount -t sysfs sysfs /sys && echo {mask} >{queue}");
    let mut command = Command::new(path);
    command.args(["--mount", "sh", "-c", &script]).stdin(Stdio::null());
    let output = command.output().map_err(|why| format!("unshare: {why}"))?;
    match output.status.success() {
        true => Ok(()),
        false => {
            let errors = String::from_utf8_lossy(&output.stderr);
            Err(format!("{queue}: {}", errors.lines().next().unwrap_or("not written")))
        }
    }
}

/// A socket on each of two devices, in two new namespaces; `wire` puts the devices into those of
/// two threads, and `ready` switches each on. Each namespace is made by a thread of its own, which
/// then ends: a socket stays in the namespace it was opened in, and keeps it.
fn apart(
    devices: [&str; 2],
    wire: impl FnOnce([i32; 2]) -> Result<(), String>,
    ready: impl Fn(&str, Ipv4Addr) -> Result<UdpSocket, String> + Copy + Send + 'static,
) -> Result<SocketPair, String> {
    let made = |device: &str, address| {
        let device = device.to_owned();
        let (to_here, tid) = channel();
        let (wired, go) = channel::<()>();
        let thread = spawn::plain("load-namespace", move || {
            unshare_network().map_err(|why| format!("a namespace: {why}"))?;
            // A receiver that is gone gives its own reason.
            let _gone = to_here.send(process::tid());
            go.recv_timeout(HELPER).map_err(|_| "the devices were not made".to_owned())?;
            ready(&device, address)
        });
        thread.map(|thread| (thread, tid, wired)).map_err(|why| why.to_string())
    };
    // Where there is no second thread the first one ends as its channel closes.
    let near = made(devices[0], SENDER)?;
    let far = made(devices[1], RECEIVER)?;
    let tids = near.1.recv_timeout(HELPER).ok().zip(far.1.recv_timeout(HELPER).ok());
    let wired = tids.map_or(Ok(()), |(near, far)| wire([near, far]));
    if wired.is_ok() {
        // A thread that is gone gives its own reason.
        let _gone = (near.2.send(()), far.2.send(()));
    }
    drop((near.2, far.2));
    let ended = |_| Err("a helper thread ended".to_owned());
    let sender = near.0.join().unwrap_or_else(ended);
    let receiver = far.0.join().unwrap_or_else(ended);
    wired?;
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
    fn devices_that_are_not_there_virtual_or_in_use_are_refused() {
        let why = is_free("no-such-device").expect_err("it is not there");
        assert!(why.contains("\"no-such-device\""), "{why}");
        assert!(is_free("lo").expect_err("loopback").contains("lo is a virtual device"));
        if process::euid() != 0 {
            assert!(cabled(["lo", "lo"]).expect_err("unprivileged").contains("root"));
        }
    }

    #[test]
    fn a_container_is_refused_where_the_kernel_would_give_devices_to_its_host() {
        let seen = |pids: &'static str, own: &'static str| {
            in_first_namespaces(move |link| {
                Some(match link {
                    "/proc/self/ns/pid" => pids.into(),
                    "/proc/self/ns/net" => own.into(),
                    _ => "net:[1]".into(),
                })
            })
        };
        assert_eq!(seen(FIRST_NAMESPACE, "net:[1]"), Ok(()));
        let why = seen(FIRST_NAMESPACE, "net:[2]").expect_err("another network");
        assert!(why.contains("first network namespace"), "{why}");
        // Its process 1 is in its own network too.
        let why = seen("pid:[4026532456]", "net:[1]").expect_err("a container");
        assert!(why.contains("first PID namespace") && why.contains("4026532456"), "{why}");
        assert!(in_first_namespaces(|_| None).is_err());
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

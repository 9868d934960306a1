//! Network namespaces: a network of its own for one thread.
//!
//! For the load that sends datagrams between two of them. Never joins the namespace of another
//! process, and never names one: what is made here vanishes with the last thread and socket in it.

use crate::Errno;

/// `unshare(CLONE_NEWNET)`: the calling thread alone gets a new, empty network namespace, and so
/// do the programs and sockets that it starts and opens from now on.
///
/// Errors: `EPERM` without CAP_SYS_ADMIN, `ENOSPC` beyond user.max_net_namespaces, `EINVAL` where
/// the kernel has none.
///
/// # Real-time: setup only
pub fn unshare_network() -> Result<(), Errno> {
    // SAFETY: takes a flag only; changes nothing in memory.
    let result = unsafe { libc::unshare(libc::CLONE_NEWNET) };
    Errno::check(result.into()).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network_of_thread() -> std::path::PathBuf {
        std::fs::read_link("/proc/thread-self/ns/net").expect("procfs is mounted")
    }

    #[test]
    fn only_the_calling_thread_moves() {
        let before = network_of_thread();
        let inside = std::thread::spawn(|| unshare_network().map(|()| network_of_thread()))
            .join()
            .expect("no panic");
        match inside {
            Ok(network) => assert_ne!(network, before),
            Err(why) => assert!(matches!(why, Errno::PERM | Errno::INVAL | Errno(libc::ENOSPC))),
        }
        assert_eq!(network_of_thread(), before);
    }
}

//! Tracefs: where the kernel's events and the formats of their records lie.
//!
//! It is read where it is mounted. Distributions mount it at boot, a small system often does not;
//! there it is attached to this process alone (fsopen(2), Linux 5.2, CAP_SYS_ADMIN): no path leads
//! to it, no other program sees it, and it is gone with this value or with the process, also after
//! a kill. Nothing is written to it.

use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};

use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags};
use rustix::mount::{fsconfig_create, fsmount, fsopen};

use thiserror::Error;

use crate::root::{Listing, Read, Root};

/// Where it is mounted; the second since the kernel mounts it there on sight, within debugfs.
const PLACES: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// A tracefs whose events can be listed.
#[derive(Debug)]
pub struct Tracefs {
    place: String,
    /// Holds what is attached to this process alone; `place` leads through it.
    _attached: Option<OwnedFd>,
}

/// Why there is none to read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TracefsRefused {
    /// It is not mounted, and this user may not attach one of its own.
    #[error(
        "tracefs is not mounted, so that the kernel's events are unknown: run as root, or mount -t \
         tracefs nodev /sys/kernel/tracing"
    )]
    NotMounted,
    /// It is not mounted, and the kernel attached none, for this reason.
    #[error("tracefs is not mounted, and the kernel attaches none: {why}")]
    NotAttached {
        /// The kernel's words: "No such device" is a kernel that does not trace.
        why: String,
    },
    /// It is mounted, and this user may not list its events.
    #[error("{path}: {why}: run as root, or let this user read it")]
    Unreadable {
        /// Where the events are.
        path: String,
        /// The kernel's words.
        why: String,
    },
}

impl Tracefs {
    /// The tracefs of a machine: the one that is mounted, else, on this machine, one of its own.
    ///
    /// # Errors
    /// None is mounted and none can be attached, or this user may not list the one that is.
    pub fn find(root: &Root) -> Result<Self, TracefsRefused> {
        let mut refused = None;
        for place in PLACES {
            let path = format!("{place}/events");
            match root.list(&path) {
                Listing::Names(_) => return Ok(Self { place: place.to_owned(), _attached: None }),
                Listing::Absent => {}
                Listing::Unreadable { why } => {
                    refused = Some(TracefsRefused::Unreadable { path, why });
                }
            }
        }
        match refused {
            Some(refused) => Err(refused),
            None if root.is_live() => Self::attached().map_err(|why| match why.kind() {
                io::ErrorKind::PermissionDenied => TracefsRefused::NotMounted,
                _ => TracefsRefused::NotAttached { why: why.to_string() },
            }),
            None => Err(TracefsRefused::NotMounted),
        }
    }

    /// One of this process alone, whether or not another is mounted.
    ///
    /// # Errors
    /// `ENOSYS` before Linux 5.2, `EPERM` without CAP_SYS_ADMIN, `ENODEV` in a kernel without it.
    pub fn attached() -> io::Result<Self> {
        let made = fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC)?;
        fsconfig_create(&made)?;
        let flags = MountAttrFlags::MOUNT_ATTR_RDONLY
            | MountAttrFlags::MOUNT_ATTR_NOSUID
            | MountAttrFlags::MOUNT_ATTR_NODEV
            | MountAttrFlags::MOUNT_ATTR_NOEXEC;
        let attached = fsmount(&made, FsMountFlags::FSMOUNT_CLOEXEC, flags)?;
        let place = format!("/proc/self/fd/{}", attached.as_raw_fd());
        Ok(Self { place, _attached: Some(attached) })
    }

    /// Reads the format of an event's records; absent where the kernel does not have the event.
    pub fn format(&self, root: &Root, system: &str, name: &str) -> Read {
        root.read(&format!("{}/events/{system}/{name}/format", self.place))
    }

    /// Reads the texts that records have by their addresses; root alone may.
    pub fn texts(&self, root: &Root) -> Read {
        root.read(&format!("{}/printk_formats", self.place))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_captured_machine_has_the_one_that_was_mounted_or_none() {
        let dir = std::env::temp_dir().join(format!("punctual-tracefs-{}", std::process::id()));
        std::fs::create_dir_all(dir.join("sys/kernel")).expect("writable");
        let root = Root::captured(&dir).expect("readable");
        let none = Tracefs::find(&root).expect_err("none is captured");
        let event = dir.join("sys/kernel/debug/tracing/events/irq/softirq_entry");
        std::fs::create_dir_all(&event).expect("writable");
        std::fs::write(event.join("format"), "name: softirq_entry\n").expect("writable");
        let found = Tracefs::find(&root).expect("within debugfs");
        let read = found.format(&root, "irq", "softirq_entry");
        let lacking = found.format(&root, "irq", "softirq_exit");
        std::fs::remove_dir_all(&dir).expect("made here");
        assert!(none.to_string().contains("mount -t tracefs"), "{none}");
        assert_eq!(read, Read::Text("name: softirq_entry\n".to_owned()));
        assert_eq!(lacking, Read::Absent);
    }
}

//! What holds for the whole process: memory locked, idle states held off.
//!
//! For sessions. The first that asks for one gets it for all, and the last that goes gives it back.
//! Setup only. Never gives back what the program had locked before the first session.

use std::fs::{File, OpenOptions};
use std::io::Write;
#[expect(clippy::disallowed_types, reason = "setup only; no loop waits for it")]
use std::sync::Mutex;
use std::sync::PoisonError;

use punctual_os::fork::Origin;
use punctual_os::{Errno, memory};

use super::{Attempt, Refusal};

/// One thing that the process holds for its sessions.
#[derive(Debug)]
struct Shared<T> {
    sessions: usize,
    got: Option<Result<T, Errno>>,
}

impl<T> Shared<T> {
    const NOBODY: Self = Self { sessions: 0, got: None };

    /// One session more; what the kernel answered to the first one.
    fn take(&mut self, ask: impl FnOnce() -> Result<T, Errno>) -> Result<(), Errno> {
        self.sessions += 1;
        self.got.get_or_insert_with(ask).as_ref().map(drop).map_err(|&why| why)
    }

    /// One session less; what it held, once there is none.
    fn leave(&mut self) -> Option<T> {
        self.sessions -= 1;
        if self.sessions > 0 {
            return None;
        }
        self.got.take()?.ok()
    }
}

/// Memory, and idle states.
#[derive(Debug)]
struct SharedByAll {
    /// The process. A child that fork(2) made has no memory locked; the open file it inherits, so
    /// that idle states stay held off until it ends, becomes another program, or has a session of
    /// its own, which puts this aside.
    origin: Option<Origin>,
    memory: Shared<Locked>,
    idle_states: Shared<File>,
}

/// Memory that is locked.
#[derive(Debug)]
struct Locked {
    /// The program had locked some itself, which stays.
    before: bool,
}

#[expect(clippy::disallowed_types, reason = "setup only; no loop waits for it")]
static SHARED: Mutex<SharedByAll> =
    Mutex::new(SharedByAll { origin: None, memory: Shared::NOBODY, idle_states: Shared::NOBODY });

/// What holds for the whole process: memory locked, idle states held off. Ends when dropped, and
/// with the last of several in effect.
#[derive(Debug)]
#[must_use = "it ends when it is dropped"]
pub struct ProcessSession {
    origin: Origin,
    memory: bool,
    idle_states: bool,
    refused: Vec<Refusal>,
}

impl ProcessSession {
    /// Locks all memory, now and later, and holds `/dev/cpu_dma_latency` at 0 µs.
    ///
    /// # Real-time: setup only
    pub fn enter() -> Self {
        Self::ask(true, true)
    }

    /// One of the two, or both, or none.
    ///
    /// # Real-time: setup only
    pub fn ask(memory: bool, idle_states: bool) -> Self {
        let mut refused = Vec::new();
        let mut note = |attempt, answer: Result<(), Errno>| {
            refused.extend(answer.err().map(|errno| Refusal { attempt, errno }));
        };
        let mut held = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        let origin = Origin::here();
        if held.origin != Some(origin) {
            let (memory, idle_states) = (Shared::NOBODY, Shared::NOBODY);
            *held = SharedByAll { origin: Some(origin), memory, idle_states };
        }
        if memory {
            note(Attempt::LockMemory, held.memory.take(lock_memory));
        }
        if idle_states {
            note(Attempt::HoldIdleStates, held.idle_states.take(hold_idle_states));
        }
        Self { origin, memory, idle_states, refused }
    }

    /// Whether all memory is locked.
    ///
    /// # Real-time: setup only
    pub fn memory_locked(&self) -> bool {
        self.memory && !self.was_refused(Attempt::LockMemory)
    }

    /// Whether idle states are held off.
    ///
    /// # Real-time: setup only
    pub fn idle_states_held(&self) -> bool {
        self.idle_states && !self.was_refused(Attempt::HoldIdleStates)
    }

    fn was_refused(&self, attempt: Attempt) -> bool {
        self.refused.iter().any(|refusal| refusal.attempt == attempt)
    }

    /// What was refused.
    ///
    /// # Real-time: setup only
    pub fn refused(&self) -> &[Refusal] {
        &self.refused
    }
}

impl Drop for ProcessSession {
    fn drop(&mut self) {
        if !self.origin.is_here() {
            return;
        }
        let mut held = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        if self.memory && held.memory.leave().is_some_and(|locked| !locked.before) {
            // Cannot fail.
            let _unlocked = memory::unlock_all();
        }
        if self.idle_states {
            // Closing the device file is what lets idle states in again.
            drop(held.idle_states.leave());
        }
    }
}

/// CAP_IPC_LOCK in the effective capabilities of /proc/self/status.
const CAP_IPC_LOCK: u32 = 14;

/// Locks all memory where that has no limit. Under a limit that is not reached yet, the lock would
/// be granted and every later allocation and thread stack of the process refused: that is no
/// session.
fn lock_memory() -> Result<Locked, Errno> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name));
    let effective = field("CapEff:").and_then(|set| u64::from_str_radix(set.trim(), 16).ok());
    let before = field("VmLck:").is_some_and(|size| size.trim() != "0 kB");
    let capable = effective.is_some_and(|set| set >> CAP_IPC_LOCK & 1 == 1);
    if !capable && memory::lock_limit_bytes()?.is_some() {
        return Err(Errno::NOMEM);
    }
    memory::lock_all().map(|()| Locked { before })
}

/// An exit latency of 0 µs as PM QoS request, held while the file is open (kernel document
/// power/pm_qos_interface.rst, Linux 6.12).
fn hold_idle_states() -> Result<File, Errno> {
    let errno = |why: std::io::Error| Errno(why.raw_os_error().unwrap_or(0));
    let mut file = OpenOptions::new().write(true).open("/dev/cpu_dma_latency").map_err(errno)?;
    file.write_all(&0i32.to_ne_bytes()).map_err(errno)?;
    Ok(file)
}

//! A real-time session: the requests of a process and a thread to the kernel before a loop, and its
//! refusals.
//!
//! For whoever runs a loop. Each request is tried; a refusal is kept, never fatal, and never
//! silent. Everything is put back when the session ends; sessions nest, in any order: what one
//! requested stays as long as it lives. Why the kernel refuses is not judged here.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::marker::PhantomData;
#[expect(clippy::disallowed_types, reason = "setup only; no loop waits for it")]
use std::sync::Mutex;
use std::sync::PoisonError;

use punctual_os::affinity::{self, CpuMask};
use punctual_os::fork::Origin;
use punctual_os::rights::{RaisedLimit, Right};
use punctual_os::scheduler::{self, Saved, SchedPolicy};
use punctual_os::{Errno, memory, process};

/// A request to the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Attempt {
    /// To run on this CPU alone.
    Affinity(u32),
    /// This scheduling policy.
    Scheduler(SchedPolicy),
    /// To keep all memory of the process in RAM.
    LockMemory,
    /// To keep all CPUs out of deep idle states, by /dev/cpu_dma_latency.
    HoldIdleStates,
    /// A timer slack of 1 ns.
    TimerSlack,
}

impl fmt::Display for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Affinity(cpu) => write!(f, "pin to CPU {cpu}"),
            Self::Scheduler(policy) => policy.fmt(f),
            Self::LockMemory => f.write_str("lock memory"),
            Self::HoldIdleStates => f.write_str("hold idle states off"),
            Self::TimerSlack => f.write_str("timer slack of 1 ns"),
        }
    }
}

/// A request that the kernel refused. Its text names the request and the kernel's error; what
/// grants it is [`Refusal::way_out`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Refusal {
    /// The request.
    pub attempt: Attempt,
    /// The kernel's error.
    pub errno: Errno,
    way_out: Option<WayOut>,
}

impl Refusal {
    /// That of this request, to the calling thread, just now: what grants it depends on the rights
    /// of that thread at present.
    ///
    /// # Real-time: setup only
    pub fn new(attempt: Attempt, errno: Errno) -> Self {
        Self::of(attempt, errno, &Rights::own())
    }

    /// The same, of a thread with these rights.
    fn of(attempt: Attempt, errno: Errno, rights: &Rights) -> Self {
        Self { attempt, errno, way_out: WayOut::of(attempt, errno, rights) }
    }

    /// The kernel's error number.
    ///
    /// # Real-time: setup only
    pub fn errno(&self) -> i32 {
        self.errno.0
    }

    /// What grants the request, as what to type; `None` where nothing is known to. `punctual check`
    /// as the same user looks at more of the machine.
    ///
    /// # Real-time: setup only
    pub fn way_out(&self) -> Option<String> {
        ways_out(std::slice::from_ref(self))
    }
}

/// What grants a request that was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WayOut {
    /// This right, which root has.
    Granted(Right),
    /// Limits and capabilities permit it already: what else forbids it has to go.
    Forbidden,
}

impl WayOut {
    /// That of a request which ended in this error, for a thread with these rights.
    fn of(attempt: Attempt, errno: Errno, rights: &Rights) -> Option<Self> {
        Some(Self::Granted(match (attempt, errno) {
            (Attempt::Scheduler(policy), Errno::PERM) => match u32::from(policy.priority()?) {
                priority if rights.sys_nice || priority <= rights.rtprio_limit => {
                    return Some(Self::Forbidden);
                }
                priority => Right::Limited(RaisedLimit::RealTime(priority)),
            },
            (Attempt::LockMemory, Errno::PERM | Errno::NOMEM | Errno::AGAIN)
                if !rights.ipc_lock =>
            {
                Right::Limited(RaisedLimit::LockMemory)
            }
            (Attempt::HoldIdleStates, Errno::ACCES | Errno::PERM | Errno::ROFS) => {
                Right::HoldIdleStates
            }
            _ => return None,
        }))
    }
}

/// What grants all of these requests, each way out once; `None` where nothing is known to. The
/// capabilities that are given for a policy lock memory too; raised limits are one for each.
///
/// # Real-time: setup only
pub(crate) fn ways_out(refused: &[Refusal]) -> Option<String> {
    let mut rights: Vec<Right> = Vec::new();
    for refusal in refused {
        match refusal.way_out {
            Some(WayOut::Granted(right)) if !rights.contains(&right) => rights.push(right),
            _ => {}
        }
    }
    let priority = |right: &Right| match right {
        Right::Limited(RaisedLimit::RealTime(priority)) => Some(*priority),
        _ => None,
    };
    // The highest covers the others.
    let highest = rights.iter().filter_map(priority).max();
    rights.retain(|right| match right {
        Right::Limited(RaisedLimit::RealTime(_)) => priority(right) == highest,
        _ => true,
    });
    // Limits first, so that the capabilities stand before all of them.
    rights.sort_by_key(|right| *right == Right::HoldIdleStates);
    let mut has_capabilities = false;
    let words = |right: &Right| match right {
        Right::Limited(raised) if has_capabilities => raised.to_string(),
        Right::Limited(_) => {
            has_capabilities = true;
            right.to_string()
        }
        Right::HoldIdleStates => right.to_string(),
    };
    let rights: Vec<String> = rights.iter().map(words).collect();
    let granted =
        (!rights.is_empty()).then(|| format!("run it as root, or {}", rights.join("; and ")));
    let is_forbidden = refused.iter().any(|refusal| refusal.way_out == Some(WayOut::Forbidden));
    let forbidden = is_forbidden.then(|| FORBIDDEN.to_owned());
    let ways_out: Vec<String> = granted.into_iter().chain(forbidden).collect();
    (!ways_out.is_empty()).then(|| ways_out.join("; "))
}

/// Of a policy that limits and capabilities permit.
const FORBIDDEN: &str = "limits and capabilities permit the policy, so a control group without \
                         real-time budget (cpu.rt_runtime_us), a user namespace or a seccomp \
                         filter forbids it: `punctual check` as the same user names it";

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.attempt, self.errno)
    }
}

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

/// The session of the whole process: memory locked, idle states held off. Ends when dropped: the
/// first that asks for one gets it for all, and the last that goes gives it back, never what the
/// program had locked before.
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
            refused.extend(answer.err().map(|errno| Refusal::new(attempt, errno)));
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

    /// Returns true where all memory is locked.
    ///
    /// # Real-time: setup only
    pub fn memory_locked(&self) -> bool {
        self.memory && !self.was_refused(Attempt::LockMemory)
    }

    /// Returns true where idle states are held off.
    ///
    /// # Real-time: setup only
    pub fn idle_states_held(&self) -> bool {
        self.idle_states && !self.was_refused(Attempt::HoldIdleStates)
    }

    fn was_refused(&self, attempt: Attempt) -> bool {
        self.refused.iter().any(|refusal| refusal.attempt == attempt)
    }

    /// The requests that the kernel refused.
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

/// The rights of the calling thread; none where they are unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Rights {
    /// CAP_SYS_NICE.
    sys_nice: bool,
    /// CAP_IPC_LOCK.
    ipc_lock: bool,
    /// RLIMIT_RTPRIO, the highest real-time priority without CAP_SYS_NICE.
    rtprio_limit: u32,
}

impl Rights {
    fn own() -> Self {
        let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
        Self::read(&own_status("CapEff:").unwrap_or_default(), &limits)
    }

    /// From a set of capabilities, as digits, and the text of /proc/self/limits.
    fn read(effective: &str, limits: &str) -> Self {
        // As linux/capability.h counts them.
        let set = u64::from_str_radix(effective, 16).unwrap_or(0);
        let [ipc_lock, sys_nice] = [14, 23].map(|bit| set >> bit & 1 == 1);
        let limit = limits.lines().find_map(|line| line.strip_prefix("Max realtime priority"));
        let soft = limit.and_then(|limit| limit.split_whitespace().next());
        let rtprio_limit = match soft {
            Some("unlimited") => u32::MAX,
            soft => soft.and_then(|soft| soft.parse().ok()).unwrap_or(0),
        };
        Self { sys_nice, ipc_lock, rtprio_limit }
    }
}

/// A field of the calling thread's status(5) in /proc.
fn own_status(name: &str) -> Option<String> {
    let status = std::fs::read_to_string("/proc/thread-self/status").ok()?;
    let field = status.lines().find_map(|line| line.strip_prefix(name))?;
    Some(field.trim().to_owned())
}

/// Locks all memory where that has no limit. Under a limit that is not reached yet, the lock would
/// be granted and every later allocation and thread stack of the process refused: that is no
/// session.
fn lock_memory() -> Result<Locked, Errno> {
    let before = own_status("VmLck:").is_some_and(|size| size != "0 kB");
    if !Rights::own().ipc_lock && memory::lock_limit_bytes()?.is_some() {
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

/// The CPUs, policy and timer slack of a thread before a session; `None` where that is unknown.
#[derive(Clone, Copy, Debug)]
struct Found {
    cpus: Option<CpuMask>,
    policy: Option<Saved>,
    slack_ns: Option<u64>,
}

impl Found {
    fn now() -> Self {
        let (cpus, policy) = (affinity::get(0).ok(), scheduler::save(0).ok());
        Self { cpus, policy, slack_ns: process::timer_slack_ns().ok() }
    }

    /// Restores all of it: the settings that were once the thread's own are always allowed again.
    fn restore(&self) {
        if let Some(policy) = &self.policy {
            let _restored = scheduler::restore(0, policy);
        }
        if let Some(cpus) = &self.cpus {
            let _restored = affinity::set(0, cpus);
        }
        if let Some(slack_ns) = self.slack_ns {
            let _restored = process::set_timer_slack_ns(slack_ns);
        }
    }
}

thread_local! {
    /// The sessions of this thread in the order in which they began: number, and what each found.
    static SESSIONS: RefCell<Vec<(u64, Found)>> = const { RefCell::new(Vec::new()) };
    static NUMBER: Cell<u64> = const { Cell::new(0) };
}

/// Marks what is of one thread. Compilers name what a raw pointer leads to where one is sent to
/// another thread: this name is the message.
#[derive(Debug)]
enum StaysInItsThread {}

/// The session of the calling thread: CPU, policy, timer slack, stack touched. Put back when
/// dropped, by the same thread: it cannot be sent to another. One that ends before a later one
/// hands what it found to that one, so that the last puts back what there was before the first.
#[derive(Debug)]
#[must_use = "it ends when it is dropped"]
pub struct ThreadSession {
    origin: Origin,
    number: u64,
    refused: Vec<Refusal>,
    policy: SchedPolicy,
    _stays: PhantomData<*const StaysInItsThread>,
}

impl ThreadSession {
    /// Makes the calling thread run on `cpu` under `policy`, as far as the kernel lets it. A
    /// real-time policy is that thread's alone: the threads and processes that it starts are
    /// SCHED_OTHER.
    ///
    /// The CPU first: a policy beyond what another CPU's cgroup allows would be refused there.
    ///
    /// # Real-time: setup only
    pub fn enter(cpu: Option<u32>, policy: SchedPolicy) -> Self {
        let number = NUMBER.get();
        NUMBER.set(number + 1);
        SESSIONS.with_borrow_mut(|sessions| sessions.push((number, Found::now())));
        let mut refused = Vec::new();
        let mut ask = |attempt, answer: Result<(), Errno>| {
            refused.extend(answer.err().map(|errno| Refusal::new(attempt, errno)));
        };
        if let Some(cpu) = cpu {
            ask(Attempt::Affinity(cpu), affinity::set(0, &CpuMask::one(cpu)));
        }
        ask(Attempt::Scheduler(policy), scheduler::set(0, policy));
        ask(Attempt::TimerSlack, process::set_timer_slack_ns(1));
        memory::prefault_stack();
        let policy = scheduler::get(0).unwrap_or(SchedPolicy::Other);
        let origin = Origin::here();
        Self { origin, number, refused, policy, _stays: PhantomData }
    }

    /// The policy that the thread was given.
    ///
    /// # Real-time: setup only
    pub fn policy(&self) -> SchedPolicy {
        self.policy
    }

    /// The requests that the kernel refused.
    ///
    /// # Real-time: setup only
    pub fn refused(&self) -> &[Refusal] {
        &self.refused
    }

    /// Calls `call` while the calling thread is on the CPUs that it had before its first session,
    /// but for those that it has now, where there are others: what it starts meanwhile inherits
    /// them. Where the kernel does not allow that, or there is no session, it stays where it is.
    ///
    /// # Real-time: setup only
    pub fn off_its_cpus<R>(call: impl FnOnce() -> R) -> R {
        /// Back on its own CPUs on every way out, a panic's too.
        struct Back(CpuMask);
        impl Drop for Back {
            fn drop(&mut self) {
                // They are what it had: the kernel allows them again, unless its cgroup changed.
                let _back = affinity::set(0, &self.0);
            }
        }
        let found = |(_, found): &(u64, Found)| found.cpus;
        let before = SESSIONS.with_borrow(|sessions| sessions.first().and_then(found));
        let (Some(before), Ok(own)) = (before, affinity::get(0)) else { return call() };
        let beside = before.without(own.iter()).unwrap_or(before);
        let _back = affinity::set(0, &beside).is_ok().then_some(Back(own));
        call()
    }
}

impl Drop for ThreadSession {
    fn drop(&mut self) {
        // A child that fork(2) made got nothing that could be put back.
        if !self.origin.is_here() {
            return;
        }
        SESSIONS.with_borrow_mut(|sessions| {
            let Some(at) = sessions.iter().position(|(number, _)| *number == self.number) else {
                return;
            };
            let (_, found) = sessions.remove(at);
            match sessions.get_mut(at) {
                // One that began later goes on; it will put back what was there before this one.
                Some((_, later)) => *later = found,
                None => found.restore(),
            }
        });
    }
}

/// The CPUs that loops are pinned to, each with its process: a child that fork(2) made has those of
/// its parent in memory.
#[expect(clippy::disallowed_types, reason = "setup; no loop waits for it")]
static LOOPS: Mutex<Vec<(Origin, u32)>> = Mutex::new(Vec::new());

/// A loop that is pinned to a CPU, until this is dropped.
#[derive(Debug)]
pub struct Neighbour(Option<(Origin, u32)>);

impl Neighbour {
    /// A loop on `cpu`, and a warning where others of this process are there: each disturbs the
    /// others. Knows nothing of other processes.
    ///
    /// # Real-time: setup only
    pub fn enter(cpu: Option<u32>) -> (Self, Option<String>) {
        let mut loops = LOOPS.lock().unwrap_or_else(PoisonError::into_inner);
        let own = cpu.map(|cpu| (Origin::here(), cpu));
        let others = loops.iter().filter(|pinned| Some(**pinned) == own).count();
        loops.extend(own);
        let warning = cpu.filter(|_| others > 0).map(|cpu| {
            format!(
                "CPU {cpu} has {} loops of this process: each makes the others late by what it \
                 runs, microseconds at least; give each a CPU of its own, or make them tasks of \
                 one Executive",
                others + 1
            )
        });
        (Self(own), warning)
    }
}

impl Drop for Neighbour {
    fn drop(&mut self) {
        if self.0.is_some_and(|(origin, _)| !origin.is_here()) {
            return;
        }
        let mut loops = LOOPS.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = loops.iter().position(|own| Some(*own) == self.0) {
            loops.swap_remove(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{Error, Kind};
    use punctual_os::affinity::{self, CpuMask};
    use punctual_os::{process, scheduler};

    fn state() -> (CpuMask, SchedPolicy, u64) {
        (
            affinity::get(0).expect("own"),
            scheduler::get(0).expect("own"),
            process::timer_slack_ns().expect("own"),
        )
    }

    #[test]
    fn a_thread_session_puts_everything_back() {
        let before = state();
        let cpu = before.0.iter().last().expect("one at least");
        let session = ThreadSession::enter(Some(cpu), SchedPolicy::Fifo(5));
        assert_eq!(state().0, CpuMask::one(cpu));
        let granted =
            session.refused().iter().all(|r| r.attempt != Attempt::Scheduler(SchedPolicy::Fifo(5)));
        assert_eq!(session.policy() == SchedPolicy::Fifo(5), granted);
        assert_eq!(state().1, session.policy());
        drop(session);
        assert_eq!(state(), before);
    }

    #[test]
    fn a_cpu_that_is_not_there_is_refused_and_the_rest_goes_on() {
        let session = ThreadSession::enter(Some(affinity::CPUS_MAX - 1), SchedPolicy::Other);
        let refused = session.refused();
        assert_eq!(refused.len(), 1);
        assert_eq!(refused[0].attempt, Attempt::Affinity(affinity::CPUS_MAX - 1));
    }

    const NONE: Rights = Rights { sys_nice: false, ipc_lock: false, rtprio_limit: 0 };
    const FIFO: Attempt = Attempt::Scheduler(SchedPolicy::Fifo(90));

    #[test]
    fn a_refusal_names_what_grants_it() {
        let way_out = |attempt, errno, rights| Refusal::of(attempt, errno, &rights).way_out();
        let known = |attempt, errno| way_out(attempt, errno, NONE).expect("known");
        for words in ["as root", "setcap", "limits.d", "rtprio 90", "LimitRTPRIO=90"] {
            assert!(known(FIFO, Errno::PERM).contains(words), "{words}");
        }
        // Who may, and was refused, is not sent for the same right again.
        let limited = Rights { rtprio_limit: 90, ..NONE };
        for rights in [Rights { sys_nice: true, ..NONE }, limited] {
            let forbidden = way_out(FIFO, Errno::PERM, rights).expect("known");
            assert!(!forbidden.contains("setcap") && !forbidden.contains("root"), "{forbidden}");
            assert!(forbidden.contains("control group") && forbidden.contains("cpu.rt_runtime_us"));
        }
        let below = Rights { rtprio_limit: 89, ..NONE };
        assert_eq!(way_out(FIFO, Errno::PERM, below), way_out(FIFO, Errno::PERM, NONE));
        let memory = Attempt::LockMemory;
        assert!(known(memory, Errno::NOMEM).contains("memlock unlimited"));
        let capable = Rights { ipc_lock: true, ..NONE };
        assert_eq!(way_out(memory, Errno::NOMEM, capable), None, "there is too little");
        assert!(known(Attempt::HoldIdleStates, Errno::ACCES).contains("udev"));
        assert_eq!(way_out(Attempt::HoldIdleStates, Errno::NOENT, NONE), None);
        assert_eq!(way_out(Attempt::Affinity(7), Errno::INVAL, NONE), None);
    }

    #[test]
    fn a_strict_start_names_each_way_out_once() {
        let refused = |attempts: &[(Attempt, Errno)], rights: &Rights| {
            let refusal = |(attempt, errno): &(_, _)| Refusal::of(*attempt, *errno, rights);
            Error::from(Kind::Refused(attempts.iter().map(refusal).collect())).to_string()
        };
        let slack = (Attempt::TimerSlack, Errno::INVAL);
        assert_eq!(refused(&[slack], &NONE), "the kernel refused: timer slack of 1 ns (EINVAL)");
        let memory = (Attempt::LockMemory, Errno::NOMEM);
        let idle_states = (Attempt::HoldIdleStates, Errno::ACCES);
        let nice = Rights { sys_nice: true, ..NONE };
        let without_policy = refused(&[memory, idle_states], &nice);
        for words in ["hold idle states off (EACCES): run it as root, or ", "memlock", "udev"] {
            assert!(without_policy.contains(words), "{words}: {without_policy}");
        }
        // The line of setcap has memory's capability too; who raises limits raises both.
        let lower = (Attempt::Scheduler(SchedPolicy::Fifo(80)), Errno::PERM);
        let everything = refused(&[memory, idle_states, (FIFO, Errno::PERM), lower], &NONE);
        for (words, times) in [("as root", 1), ("setcap", 1), ("rtprio 90", 1), ("LimitMEMLOCK", 1)]
        {
            assert_eq!(everything.matches(words).count(), times, "{words}: {everything}");
        }
        assert!(everything.contains("udev"), "{everything}");
        // A control group's budget locks no memory.
        let forbidden = refused(&[memory, (FIFO, Errno::PERM)], &nice);
        assert!(forbidden.contains("memlock") && forbidden.contains("; limits and capabilities"));
    }

    #[test]
    fn rights_are_those_of_the_thread_at_the_refusal() {
        let limits = "Max nice priority         0                    0                    \n\
                      Max realtime priority     95                   98                   \n";
        let some = Rights { sys_nice: true, ipc_lock: false, rtprio_limit: 95 };
        assert_eq!(Rights::read("0000000000800000", limits), some);
        assert_eq!(Rights::read("4000", ""), Rights { ipc_lock: true, ..NONE });
        let unlimited = Rights { rtprio_limit: u32::MAX, ..NONE };
        assert_eq!(Rights::read("", "Max realtime priority     unlimited  unlimited\n"), unlimited);
        let refusal = Refusal::new(Attempt::HoldIdleStates, Errno::ACCES);
        assert_eq!(refusal.way_out, Some(WayOut::Granted(Right::HoldIdleStates)));
    }

    #[test]
    fn what_is_not_refused_is_held() {
        let process = ProcessSession::enter();
        let refused = |attempt| process.refused().iter().any(|r| r.attempt == attempt);
        assert_eq!(process.memory_locked(), !refused(Attempt::LockMemory));
        assert_eq!(process.idle_states_held(), !refused(Attempt::HoldIdleStates));
        let nothing = ProcessSession::ask(false, false);
        assert!(!nothing.memory_locked() && !nothing.idle_states_held());
        assert_eq!(nothing.refused(), []);
    }

    #[test]
    fn the_session_that_lives_keeps_what_it_asked_for_and_the_last_puts_back() {
        let before = state();
        let cpu = before.0.iter().last().expect("one at least");
        let first = ThreadSession::enter(None, SchedPolicy::Fifo(5));
        let second = ThreadSession::enter(Some(cpu), SchedPolicy::Fifo(6));
        let with_both = state();
        assert_eq!(with_both.1, second.policy());
        drop(first);
        assert_eq!(state(), with_both, "the second one is at work");
        let third = ThreadSession::enter(None, SchedPolicy::Fifo(7));
        drop(third);
        assert_eq!(state(), with_both);
        drop(second);
        assert_eq!(state(), before);
    }

    #[test]
    fn memory_stays_locked_until_the_last_session_ends() {
        // Alone in a process: other tests of this one hold sessions too.
        const INSIDE: &str = "PUNCTUAL_TEST_SESSIONS";
        let name = "session::tests::memory_stays_locked_until_the_last_session_ends";
        let Ok(own) = std::env::var(INSIDE) else {
            for own in ["0", "1"] {
                let exe = std::env::current_exe().expect("own");
                let mut run = std::process::Command::new(exe);
                let status = run.env(INSIDE, own).args(["--exact", name]).status();
                assert!(status.expect("started").success(), "own {own}");
            }
            return;
        };
        let own = own == "1";
        let locked = || {
            let status = std::fs::read_to_string("/proc/self/status").expect("readable");
            let line = status.lines().find_map(|line| line.strip_prefix("VmLck:"));
            line.expect("there").trim() != "0 kB"
        };
        if own && memory::lock_all().is_err() {
            return;
        }
        let (first, second) = (ProcessSession::enter(), ProcessSession::enter());
        if !first.memory_locked() {
            return;
        }
        drop(first);
        assert!(second.memory_locked() && locked(), "the second one lives");
        drop(second);
        assert_eq!(locked(), own, "what the program locked itself stays");
    }

    #[test]
    fn the_second_loop_on_a_cpu_gets_a_warning() {
        // A CPU that no other test has.
        let cpu = Some(u32::MAX);
        let (first, warning) = Neighbour::enter(cpu);
        assert_eq!(warning, None);
        let (second, warning) = Neighbour::enter(cpu);
        assert!(warning.is_some_and(|warning| warning.contains("has 2 loops")));
        drop((first, second));
        assert_eq!(Neighbour::enter(cpu).1, None);
        assert_eq!(Neighbour::enter(None).1, None);
    }
}

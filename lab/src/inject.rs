//! Known disturbances, each with its own log of when it truly was.
//!
//! For tests of what attribution answers: a loop is disturbed, and the answer is held against the
//! log. Every injection is bounded in time and number, runs in a named thread of its own, or in the
//! loop's own where the loop disturbs itself, and puts back what it changed. Three kinds belong
//! into a guest: what firmware and a driver do, which is refused elsewhere, and a machine that
//! stands still, which somebody else must make.

mod driver;
mod gaps;
mod group;

use std::fmt;
use std::io::{ErrorKind, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use punctual_engine::spawn;
use punctual_os::affinity::{self, CpuMask};
use punctual_os::clock::{ClockId, now_ns, sleep_until_ns};
use punctual_os::descriptor::Descriptor;
use punctual_os::pages::Pages;
use punctual_os::scheduler::{self, SchedPolicy};
use punctual_os::signal::Backlog;
use punctual_os::{Errno, events, memory, process, socket};

use crate::load::network::{self, SocketPair};
use driver::GuestDriver;
pub use gaps::GapWatch;
use group::{BudgetGroup, GroupBudget};

/// A kind of disturbance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Injection {
    /// A SCHED_FIFO thread above the loop computes.
    HigherPriority,
    /// A SCHED_FIFO thread of the loop's own priority computes.
    EqualPriority,
    /// A thread below the loop closes a socket that holds a long queue: on a kernel that does not
    /// preempt, nobody can run meanwhile.
    LongSystemCall,
    /// A thread makes the kernel throw away queued signals, with interrupts off.
    InterruptsOff,
    /// Timers of another thread expire at the same instant on the loop's CPU.
    Timers,
    /// Datagrams that another CPU sends are received in the loop's, as soft interrupts.
    Datagrams,
    /// The loop touches new pages, and gives them back.
    OwnFaults,
    /// Another process stops the loop's, and lets it go on.
    Stop,
    /// The loop computes for longer than its period.
    OwnOverrun,
    /// A right to memory is taken away again and again: other CPUs are told by interrupts.
    Protection,
    /// Memory barriers on all CPUs of a process, again and again, by interrupts.
    Barriers,
    /// The loop's thread is moved to another CPU and back, at multiples of the interval: a loop
    /// that is released between those of its period is asleep then.
    Moves,
    /// A thread below the loop uses up the real-time budget of the control group that both are in.
    Throttling,
    /// The firmware takes the loop's CPU, by a system management interrupt.
    Firmware,
    /// A driver keeps interrupts off on the loop's CPU.
    Driver,
    /// A SCHED_FIFO thread computes, below the loop and above the kernel's thread that serves
    /// timers with PREEMPT_RT: a loop that waits by a timerfd is late. On other kernels it disturbs
    /// nobody.
    TimerThread,
    /// The whole machine stands still: its host does that, and a thread on another CPU sees it.
    Standstill,
}

impl Injection {
    /// Each of them.
    pub const ALL: [Self; 17] = [
        Self::HigherPriority,
        Self::EqualPriority,
        Self::LongSystemCall,
        Self::InterruptsOff,
        Self::Timers,
        Self::Datagrams,
        Self::OwnFaults,
        Self::Stop,
        Self::OwnOverrun,
        Self::Protection,
        Self::Barriers,
        Self::Moves,
        Self::Throttling,
        Self::Firmware,
        Self::Driver,
        Self::TimerThread,
        Self::Standstill,
    ];

    /// Its name, one word.
    pub const fn name(self) -> &'static str {
        match self {
            Self::HigherPriority => "higher",
            Self::EqualPriority => "equal",
            Self::LongSystemCall => "close",
            Self::InterruptsOff => "irqsoff",
            Self::Timers => "timers",
            Self::Datagrams => "datagrams",
            Self::OwnFaults => "faults",
            Self::Stop => "stop",
            Self::OwnOverrun => "overrun",
            Self::Protection => "mprotect",
            Self::Barriers => "barriers",
            Self::Moves => "moves",
            Self::Throttling => "throttling",
            Self::Firmware => "smi",
            Self::Driver => "driver",
            Self::TimerThread => "ktimers",
            Self::Standstill => "standstill",
        }
    }

    /// The one of this name.
    pub fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Returns true where only a guest has it: what takes a driver, or somebody outside.
    pub const fn is_in_guest(self) -> bool {
        matches!(self, Self::Firmware | Self::Driver | Self::Standstill)
    }

    /// Returns true where the loop itself must do it, in its body: [`Injector::once`].
    pub const fn is_own(self) -> bool {
        matches!(self, Self::OwnFaults | Self::OwnOverrun)
    }

    /// Returns true where it takes the loop's CPU by a real-time policy.
    const fn is_real_time(self) -> bool {
        matches!(
            self,
            Self::HigherPriority | Self::EqualPriority | Self::TimerThread | Self::Driver
        )
    }
}

/// The loop that is disturbed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Victim {
    /// The CPU that it runs on.
    pub cpu: u32,
    /// Another CPU, from which it can be disturbed.
    pub other_cpu: u32,
    /// Its SCHED_FIFO priority, in [1, 97].
    pub priority: u8,
    /// Its process, which is not this one's where it shall be stopped.
    pub pid: i32,
    /// Its thread.
    pub tid: i32,
}

/// The kind, length and number of the disturbances, and the loop that they disturb.
#[derive(Clone, Copy, Debug)]
pub struct InjectionPlan {
    kind: Injection,
    victim: Victim,
    times: u32,
    every_ns: u64,
    length_ns: u64,
}

/// The longest time that a single disturbance is asked to take, ns.
const LENGTH_NS_MAX: u64 = 50_000_000;
/// The most disturbances of a run.
const TIMES_MAX: u32 = 20_000;
/// The longest run, ns.
const RUN_NS_MAX: u64 = 60_000_000_000;
/// The largest part of a CPU that one with a real-time policy takes: a quarter. What watches a
/// machine that stands still takes four fifths of another one.
const SHARE: u64 = 4;

/// The reason for which an injection is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InjectionRefused {
    /// Longer, more often, or more of a CPU than is allowed.
    Unbounded {
        /// The bound that it exceeds, with the value got and what is accepted.
        bound: String,
    },
    /// The kernel refused a part of it.
    Kernel {
        /// The part that was requested.
        part: &'static str,
        /// Its answer.
        why: Errno,
    },
    /// The loop is in this process, which would be stopped with it.
    OwnProcess,
    /// No pair of devices to send through.
    Network {
        /// The reason, in words.
        why: String,
    },
    /// The machine is not one that it can be done on.
    Machine {
        /// What it lacks, or the part that it refused.
        why: String,
    },
    /// No thread.
    Thread {
        /// The reason, in words.
        why: String,
    },
}

impl fmt::Display for InjectionRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unbounded { bound } => f.write_str(bound),
            Self::Kernel { part, why } => write!(f, "{part}: {why}"),
            Self::OwnProcess => {
                f.write_str("the loop to be stopped is in this process: run it in another one")
            }
            Self::Network { why } => write!(f, "no devices to send datagrams through: {why}"),
            Self::Machine { why } | Self::Thread { why } => f.write_str(why),
        }
    }
}

impl std::error::Error for InjectionRefused {}

/// The kernel's refusal of `part`.
fn refused(part: &'static str) -> impl Fn(Errno) -> InjectionRefused {
    move |why| InjectionRefused::Kernel { part, why }
}

impl InjectionPlan {
    /// So many disturbances, one in each `every`, at another place of it each time, and each about
    /// so long. How long one truly was, its interval says.
    ///
    /// # Errors
    /// The bound that is exceeded.
    pub fn new(
        kind: Injection,
        victim: Victim,
        times: u32,
        (every, length): (Duration, Duration),
    ) -> Result<Self, InjectionRefused> {
        let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let (every_ns, length_ns) = (ns(every), ns(length));
        let refuse = |bound: String| Err(InjectionRefused::Unbounded { bound });
        if times > TIMES_MAX {
            return refuse(format!("{times} injections: at most {TIMES_MAX}"));
        }
        if length_ns > LENGTH_NS_MAX {
            return refuse(format!("an injection of {length:?}: at most 50 ms"));
        }
        // One that is longer than its interval begins behind the one before.
        if every_ns.max(length_ns).saturating_mul(times.into()) > RUN_NS_MAX {
            return refuse(format!(
                "{times} injections of {length:?}, one in each {every:?}: at most a minute in all"
            ));
        }
        if kind.is_real_time() && length_ns.saturating_mul(SHARE) > every_ns {
            return refuse(format!(
                "{length:?} in each {every:?} with a real-time policy: at most a quarter"
            ));
        }
        if !(1..=97).contains(&victim.priority) {
            return refuse(format!("the loop's priority {}: 1 to 97", victim.priority));
        }
        Ok(Self { kind, victim, times, every_ns, length_ns })
    }

    /// When each disturbance begins, ns on CLOCK_MONOTONIC: in the first half of its interval, so
    /// that all phases of a loop are met alike. A move begins with it, at a multiple of its length.
    fn begins_ns(&self, now_ns: u64) -> impl Iterator<Item = u64> {
        let every_ns = self.every_ns;
        let is_move = self.kind == Injection::Moves;
        let from_ns = if is_move { now_ns.next_multiple_of(every_ns.max(1)) } else { now_ns };
        let place_ns =
            move |index| if is_move { index * every_ns } else { spread_ns(index, every_ns) };
        (0..u64::from(self.times)).map(move |index| from_ns + place_ns(index))
    }

    /// The budget of a group that shall stand still for about the length of a disturbance.
    const fn budget(&self) -> GroupBudget {
        GroupBudget { period_ns: self.every_ns / 4 * 3, pause_ns: self.length_ns }
    }
}

/// The time of a disturbance, ns on CLOCK_MONOTONIC, and the CPU that it was on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InjectedInterval {
    /// Its beginning, ns.
    pub start_ns: u64,
    /// Its end, ns.
    pub end_ns: u64,
    /// The loop's CPU; where it is made by interrupts from another one the sender's, where it is
    /// seen from another one that one.
    pub cpu: u32,
}

impl InjectedInterval {
    /// Its length, ns.
    pub const fn length_ns(&self) -> u64 {
        self.end_ns.saturating_sub(self.start_ns)
    }

    /// Overlap of this interval with a window, ns.
    pub fn overlap_ns(&self, from_ns: u64, to_ns: u64) -> u64 {
        self.end_ns.min(to_ns).saturating_sub(self.start_ns.max(from_ns))
    }
}

/// The disturbances that were done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InjectionLog {
    /// Its kind.
    pub kind: Injection,
    /// The thread that did it.
    pub tid: i32,
    /// Its name, as the kernel has it.
    pub name: String,
    /// Each, in order.
    pub intervals: Vec<InjectedInterval>,
    /// Those that the kernel refused, or that did not come.
    pub failed: u32,
}

/// The resources of an injection, made beforehand.
#[derive(Debug)]
enum Prepared {
    Computes,
    Closes,
    Signals(Backlog),
    Timers(Vec<Descriptor>),
    Datagrams(SocketPair),
    Faults,
    Stops,
    Protects(Pages),
    Barriers,
    Moves(Box<CpuMask>),
    UsesUp(BudgetGroup),
    Drives(GuestDriver),
    Watches,
}

/// Queued signals that keep interrupts off for about a third of a millisecond [measured: 40 ns a
/// signal on a 2-CPU VM, Linux 6.18].
const NS_A_SIGNAL: u64 = 40;
/// RLIMIT_SIGPENDING is more than this on a machine with half a gigabyte.
const SIGNALS_MAX: u64 = 8_000;
/// Time to free one message, roughly, ns.
const NS_A_MESSAGE: u64 = 80;
/// Messages in a queue to be freed; each takes some 800 bytes of kernel memory.
const QUEUED_MAX: u64 = 60_000;
/// As many timers as were measured to make a millisecond of delay at most.
const TIMERS: usize = 400;
/// From arming timers until they expire, ns.
const TIMERS_AHEAD_NS: u64 = 3_000_000;
/// Datagrams that are sent before the first of them is received: each takes a CPU some 8 µs to
/// receive, another 3 µs to send [measured on a 2-CPU VM, Linux 6.18].
const DATAGRAMS_AHEAD: u32 = 8;
/// Bytes of memory whose rights change, 16 pages, and of memory that is touched a ns asked for.
const PROTECTED_BYTES: usize = 64 * 1024;
/// Time of a fault and its share of the end, roughly, ns.
const NS_A_FAULT: u64 = 500;
/// A budget is used up while a period goes on: the least pause of a group that counts is this part
/// of the requested one, 125 us of 2 ms. The loop takes the CPU for less; what a host takes counts
/// as the disturber's, which makes a right answer wrong.
const PAUSE_PARTS: u64 = 16;
/// A real-time priority below that of a loop.
const BELOW: u8 = 1;
/// One above that of a thread that reads events beside it, and gets its CPU now and then.
const ABOVE_READER: u8 = 2;

/// Does a disturbance when told to.
#[derive(Debug)]
pub struct Injector {
    plan: InjectionPlan,
    prepared: Prepared,
    /// Ends with it.
    _companion: Option<Companion>,
}

impl Injector {
    /// Makes the calling thread ready: it gets the policy and the CPU that the disturbance needs,
    /// and keeps them until it ends. A loop that disturbs itself keeps its own.
    ///
    /// # Errors
    /// The part that the kernel does not grant.
    pub fn prepare(plan: &InjectionPlan) -> Result<Self, InjectionRefused> {
        let victim = &plan.victim;
        let pin = |cpu| affinity::set(0, &CpuMask::one(cpu)).map_err(refused("its CPU"));
        let policy =
            |policy| scheduler::set(0, policy).map_err(refused("the policy of its thread"));
        let mut companion = None;
        let prepared = match plan.kind {
            Injection::OwnOverrun => Prepared::Computes,
            Injection::OwnFaults => Prepared::Faults,
            Injection::HigherPriority => {
                pin(victim.cpu)?;
                policy(SchedPolicy::Fifo(victim.priority + 1))?;
                Prepared::Computes
            }
            Injection::EqualPriority => {
                pin(victim.cpu)?;
                policy(SchedPolicy::Fifo(victim.priority))?;
                Prepared::Computes
            }
            Injection::TimerThread => {
                pin(victim.cpu)?;
                policy(SchedPolicy::Fifo(victim.priority.div_ceil(2)))?;
                Prepared::Computes
            }
            Injection::LongSystemCall => Prepared::Closes,
            Injection::InterruptsOff => {
                Prepared::Signals(Backlog::begin().map_err(refused("a backlog of signals"))?)
            }
            Injection::Timers => {
                pin(victim.cpu)?;
                let timers = (0..TIMERS).map(|_| events::timer()).collect::<Result<_, _>>();
                Prepared::Timers(timers.map_err(refused("timers"))?)
            }
            Injection::Datagrams => {
                pin(victim.other_cpu)?;
                let pair = network::steered(victim.cpu);
                let pair = pair.map_err(|why| InjectionRefused::Network { why })?;
                socket::slow_arrivals(pair.receiver.as_raw_fd())
                    .map_err(refused("a filter of datagrams"))?;
                let polled = pair.receiver.set_nonblocking(true).map_err(|why| by_number(&why));
                polled.map_err(refused("a socket that does not wait"))?;
                Prepared::Datagrams(pair)
            }
            Injection::Stop if i64::from(victim.pid) == i64::from(std::process::id()) => {
                return Err(InjectionRefused::OwnProcess);
            }
            Injection::Stop => {
                pin(victim.other_cpu)?;
                Prepared::Stops
            }
            Injection::Protection => {
                pin(victim.other_cpu)?;
                let pages = Pages::new(PROTECTED_BYTES).map_err(refused("memory"))?;
                companion = Some(Companion::start(victim.cpu)?);
                Prepared::Protects(pages)
            }
            Injection::Barriers => {
                pin(victim.other_cpu)?;
                memory::register_barrier().map_err(refused("membarrier"))?;
                companion = Some(Companion::start(victim.cpu)?);
                Prepared::Barriers
            }
            Injection::Moves => {
                pin(victim.other_cpu)?;
                let before = affinity::get(victim.tid).map_err(refused("the loop's affinity"))?;
                Prepared::Moves(Box::new(before))
            }
            Injection::Throttling => {
                pin(victim.cpu)?;
                let group = BudgetGroup::make(victim, plan.budget())?;
                policy(SchedPolicy::Fifo(BELOW))?;
                Prepared::UsesUp(group)
            }
            Injection::Firmware => {
                pin(victim.other_cpu)?;
                Prepared::Drives(GuestDriver::find("smi", "firmware")?)
            }
            Injection::Driver => {
                pin(victim.cpu)?;
                policy(SchedPolicy::Fifo(BELOW))?;
                Prepared::Drives(GuestDriver::find("irqs_off", "disturbed")?)
            }
            Injection::Standstill => {
                pin(victim.other_cpu)?;
                policy(SchedPolicy::Fifo(ABOVE_READER))?;
                Prepared::Watches
            }
        };
        Ok(Self { plan: *plan, prepared, _companion: companion })
    }

    /// One disturbance, in the calling thread; when it was.
    ///
    /// # Errors
    /// The kernel's refusal; nothing of it is left then.
    pub fn once(&mut self) -> Result<InjectedInterval, Errno> {
        let InjectionPlan { victim, every_ns, length_ns, .. } = self.plan;
        match &mut self.prepared {
            Prepared::Computes => timed(|until| {
                compute(until + length_ns);
                Ok(())
            }),
            Prepared::Faults => timed(|_| {
                let pages = (length_ns / NS_A_FAULT).max(1);
                let bytes = usize::try_from(pages).unwrap_or(1) * 4_096;
                Pages::new(bytes)?.touch();
                Ok(())
            }),
            Prepared::Closes => close_long_queue(&victim, length_ns),
            Prepared::Signals(backlog) => {
                affinity::set(0, &CpuMask::one(victim.other_cpu))?;
                let signals = (length_ns / NS_A_SIGNAL).clamp(1, SIGNALS_MAX);
                backlog.queue(u32::try_from(signals).unwrap_or(u32::MAX));
                affinity::set(0, &CpuMask::one(victim.cpu))?;
                timed_alone(|_| backlog.discard())
            }
            Prepared::Timers(timers) => expire_at_once(timers, &victim),
            Prepared::Datagrams(pair) => {
                let mut end_ns = 0;
                let interval = timed(|start| {
                    end_ns = send_and_receive(pair, start, length_ns);
                    Ok(())
                })?;
                Ok(InjectedInterval { end_ns, ..interval })
            }
            Prepared::Stops => {
                process::suspend(victim.pid)?;
                let _goes_on = GoesOn(victim.pid);
                let stopped = timed(|start| sleep_until_ns(start + length_ns));
                process::go_on(victim.pid)?;
                stopped
            }
            Prepared::Protects(pages) => timed(|start| {
                while now_ns(ClockId::Monotonic) < start + length_ns {
                    pages.touch();
                    pages.reprotect()?;
                }
                Ok(())
            }),
            Prepared::Barriers => timed(|start| {
                while now_ns(ClockId::Monotonic) < start + length_ns {
                    memory::barrier_everywhere()?;
                }
                Ok(())
            }),
            Prepared::Moves(before) => timed(|start| {
                affinity::set(victim.tid, &CpuMask::one(victim.other_cpu))?;
                let slept = sleep_until_ns(start + length_ns);
                affinity::set(victim.tid, before)?;
                slept
            }),
            Prepared::UsesUp(group) => group.use_up(victim.cpu, length_ns / PAUSE_PARTS),
            Prepared::Drives(driver) => driver.once(victim.cpu, length_ns),
            Prepared::Watches => {
                let until_ns = now_ns(ClockId::Monotonic) + every_ns;
                let is_over = |watch: &GapWatch| watch.stood_still(length_ns).is_some();
                let watch = GapWatch::run(victim.other_cpu, until_ns, is_over);
                watch.stood_still(length_ns).ok_or(Errno::AGAIN)
            }
        }
    }
}

/// Runs `part` with the instant that it begins at; when it was.
fn timed(part: impl FnOnce(u64) -> Result<(), Errno>) -> Result<InjectedInterval, Errno> {
    let cpu = affinity::current_cpu();
    let start_ns = now_ns(ClockId::Monotonic);
    part(start_ns)?;
    Ok(InjectedInterval { start_ns, end_ns: now_ns(ClockId::Monotonic), cpu })
}

/// As [`timed`], with the least real-time priority: below the loop, but ordinary threads cannot run
/// within the interval, which would then not be the disturber's.
fn timed_alone(part: impl FnOnce(u64) -> Result<(), Errno>) -> Result<InjectedInterval, Errno> {
    scheduler::set(0, SchedPolicy::Fifo(BELOW))?;
    let interval = timed(part);
    scheduler::set(0, SchedPolicy::Other)?;
    interval
}

/// Computes until an instant.
fn compute(until_ns: u64) {
    while now_ns(ClockId::Monotonic) < until_ns {
        std::hint::spin_loop();
    }
}

/// Sends datagrams for so long, always some ahead of what is received, so that the loop's CPU
/// has no pause; then receives the rest, no longer than that again. Returns when the last one had
/// come, ns.
fn send_and_receive(pair: &SocketPair, start_ns: u64, length_ns: u64) -> u64 {
    let (until_ns, bound_ns) = (start_ns + length_ns, start_ns + 2 * length_ns);
    // Those of a disturbance that was broken off.
    while pair.receiver.recv(&mut [0; 64]).is_ok() {}
    let (mut on_the_way, mut looked_ns, mut came_ns) = (0, 0, start_ns);
    while (looked_ns < until_ns || on_the_way > 0) && looked_ns < bound_ns {
        looked_ns = now_ns(ClockId::Monotonic);
        if looked_ns < until_ns && on_the_way < DATAGRAMS_AHEAD {
            on_the_way += u32::from(pair.sender.send(&[0x55; 64]).is_ok());
        } else if pair.receiver.recv(&mut [0; 64]).is_ok() {
            on_the_way = on_the_way.saturating_sub(1);
            came_ns = looked_ns;
        }
    }
    came_ns
}

/// Fills the queue of a socket on the other CPU, and closes it on the loop's. A local one: the
/// queue of a UDP socket is freed later, by RCU, in a soft interrupt (sk_destruct,
/// net/core/sock.c).
fn close_long_queue(victim: &Victim, length_ns: u64) -> Result<InjectedInterval, Errno> {
    affinity::set(0, &CpuMask::one(victim.other_cpu))?;
    let (mut sender, receiver) = UnixStream::pair().map_err(|why| by_number(&why))?;
    socket::force_send_buffer(sender.as_raw_fd(), 64 << 20)?;
    sender.set_nonblocking(true).map_err(|why| by_number(&why))?;
    for _ in 0..(length_ns / NS_A_MESSAGE).clamp(1, QUEUED_MAX) {
        match sender.write(&[0]) {
            Ok(_) => {}
            Err(why) if why.kind() == ErrorKind::WouldBlock => break,
            Err(why) => return Err(by_number(&why)),
        }
    }
    affinity::set(0, &CpuMask::one(victim.cpu))?;
    timed_alone(|_| {
        drop(receiver);
        Ok(())
    })
}

/// The kernel's number for a refusal.
fn by_number(why: &std::io::Error) -> Errno {
    Errno(why.raw_os_error().unwrap_or(Errno::IO.0))
}

/// Arms all timers for one instant. Their end is seen by this thread, which a timer after them
/// wakes above the loop.
fn expire_at_once(timers: &[Descriptor], victim: &Victim) -> Result<InjectedInterval, Errno> {
    let start_ns = now_ns(ClockId::Monotonic) + TIMERS_AHEAD_NS;
    for timer in timers {
        events::arm(timer, start_ns, 0)?;
    }
    scheduler::set(0, SchedPolicy::Fifo(victim.priority + 1))?;
    let slept = sleep_until_ns(start_ns + 1);
    let end_ns = now_ns(ClockId::Monotonic);
    scheduler::set(0, SchedPolicy::Other)?;
    slept?;
    Ok(InjectedInterval { start_ns, end_ns, cpu: victim.cpu })
}

/// Lets a process go on, whatever comes.
struct GoesOn(i32);

impl Drop for GoesOn {
    fn drop(&mut self) {
        // A process that is gone needs nothing.
        let _gone = process::go_on(self.0);
    }
}

/// A thread of this process, SCHED_OTHER, that computes on the loop's CPU, so that interrupts for
/// this process are sent there; until it is dropped, and no longer than a run may take.
#[derive(Debug)]
struct Companion {
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Companion {
    fn start(cpu: u32) -> Result<Self, InjectionRefused> {
        let ends = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&ends);
        let until_ns = now_ns(ClockId::Monotonic) + RUN_NS_MAX;
        let thread = spawn::plain("inject-beside", move || {
            // Elsewhere it does nothing.
            if affinity::set(0, &CpuMask::one(cpu)).is_ok() {
                while !seen.load(Ordering::Relaxed) && now_ns(ClockId::Monotonic) < until_ns {
                    std::hint::spin_loop();
                }
            }
        });
        let thread = thread.map_err(|why| InjectionRefused::Thread { why: why.to_string() })?;
        Ok(Self { ends, thread: Some(thread) })
    }
}

impl Drop for Companion {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // It cannot panic, and has nothing to say.
            let _ended = thread.join();
        }
    }
}

/// An injection that goes on in a thread of its own.
#[derive(Debug)]
pub struct RunningInjection {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Result<InjectionLog, InjectionRefused>>,
}

impl RunningInjection {
    /// Starts it. One that the loop does itself is refused: call [`Injector::once`] in its body.
    ///
    /// # Errors
    /// No thread, or the loop must do it.
    pub fn start(plan: InjectionPlan) -> Result<Self, InjectionRefused> {
        if plan.kind.is_own() {
            let bound = format!("{}: the loop does it itself", plan.kind.name());
            return Err(InjectionRefused::Unbounded { bound });
        }
        let stop = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&stop);
        let name = format!("inj-{}", plan.kind.name());
        let thread = spawn::plain(&name, move || repeat(&plan, &seen))
            .map_err(|why| InjectionRefused::Thread { why: why.to_string() })?;
        Ok(Self { stop, thread })
    }

    /// Returns true once all were done, or none could be.
    pub fn is_over(&self) -> bool {
        self.thread.is_finished()
    }

    /// Ends it after the disturbance that goes on; what was done.
    ///
    /// # Errors
    /// Why there was nothing of it.
    pub fn end(self) -> Result<InjectionLog, InjectionRefused> {
        self.stop.store(true, Ordering::Relaxed);
        self.wait()
    }

    /// Waits until all were done; what was done.
    ///
    /// # Errors
    /// Why there was nothing of it.
    pub fn wait(self) -> Result<InjectionLog, InjectionRefused> {
        let ended = |_| Err(InjectionRefused::Thread { why: "its thread ended".to_owned() });
        self.thread.join().unwrap_or_else(ended)
    }
}

/// One disturbance in each interval, until all were done or it shall stop.
fn repeat(plan: &InjectionPlan, stop: &AtomicBool) -> Result<InjectionLog, InjectionRefused> {
    let mut injector = Injector::prepare(plan)?;
    let mut log = InjectionLog {
        kind: plan.kind,
        tid: process::tid(),
        name: format!("inj-{}", plan.kind.name()),
        intervals: Vec::with_capacity(usize::try_from(plan.times).unwrap_or(0)),
        failed: 0,
    };
    for begin_ns in plan.begins_ns(now_ns(ClockId::Monotonic)) {
        // A signal that ends a sleep early does no harm.
        let _early = sleep_until_ns(begin_ns);
        if stop.load(Ordering::Relaxed) {
            break;
        }
        match injector.once() {
            Ok(interval) => log.intervals.push(interval),
            Err(_) => log.failed += 1,
        }
    }
    Ok(log)
}

/// Where disturbance `index` begins, ns after the first interval's beginning: in the first half of
/// its own, at multiples of the golden ratio there.
fn spread_ns(index: u64, every_ns: u64) -> u64 {
    // 2⁶⁴ / φ: the products are spread evenly (Knuth, The Art of Computer Programming 3, 6.4).
    let fraction = index.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    let offset = (u128::from(every_ns / 2) * u128::from(fraction)) >> 32;
    // Less than half of every_ns.
    index * every_ns + u64::try_from(offset).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_testkit::skip;

    fn victim() -> Victim {
        Victim { cpu: 0, other_cpu: 1, priority: 10, pid: 1 << 30, tid: 1 << 30 }
    }

    fn plan(kind: Injection, times: u32) -> InjectionPlan {
        let (every, length) = (Duration::from_millis(4), Duration::from_micros(200));
        InjectionPlan::new(kind, victim(), times, (every, length)).expect("bounded")
    }

    fn two_cpus() -> bool {
        affinity::get(0).is_ok_and(|mask| mask.contains(0) && mask.contains(1))
    }

    #[test]
    fn each_has_a_name_of_its_own_and_is_found_by_it() {
        for kind in Injection::ALL {
            assert_eq!(Injection::find(kind.name()), Some(kind));
            assert!("inj-".len() + kind.name().len() <= 15, "the kernel cuts {}", kind.name());
        }
        assert_eq!(Injection::find("none"), None);
    }

    #[test]
    fn what_is_not_bounded_is_refused_in_one_line() {
        let ms = Duration::from_millis;
        let new = |kind, times, every, length| {
            InjectionPlan::new(kind, victim(), times, (every, length)).map(drop)
        };
        let hog = Injection::HigherPriority;
        assert!(new(hog, 10, ms(4), ms(1)).is_ok());
        assert!(new(Injection::Stop, 10, ms(4), ms(4)).is_ok(), "it takes no CPU");
        let bad = [
            new(hog, 20_001, ms(1), ms(0)),
            new(hog, 1, ms(1_000), ms(51)),
            new(hog, 10_000, ms(10), ms(1)),
            new(Injection::Stop, 20_000, ms(3), ms(50)),
            new(hog, 10, ms(4), ms(2)),
            InjectionPlan::new(hog, Victim { priority: 98, ..victim() }, 1, (ms(4), ms(1)))
                .map(drop),
        ];
        for refused in bad {
            let text = refused.expect_err("it is not bounded").to_string();
            assert!(!text.is_empty() && !text.contains('\n'), "{text}");
        }
    }

    #[test]
    fn places_are_in_order_in_their_interval_and_meet_all_phases() {
        let every_ns = 5_000_000;
        let mut phases = [0; 8];
        for index in 0..4_000 {
            let place = spread_ns(index, every_ns);
            assert_eq!(place / every_ns, index);
            let within = place % every_ns;
            assert!(within < every_ns / 2);
            phases[usize::try_from(within * 16 / every_ns).expect("small")] += 1;
        }
        assert!(phases.iter().all(|&count| (480..=520).contains(&count)), "{phases:?}");
        assert!(spread_ns(20_000, 60_000_000_000) > 0, "the longest do not overflow");
    }

    #[test]
    fn a_move_begins_with_its_interval() {
        let begins: Vec<u64> = plan(Injection::Moves, 3).begins_ns(4_000_001).collect();
        assert_eq!(begins, [8_000_000, 12_000_000, 16_000_000]);
        assert!(plan(Injection::Stop, 0).begins_ns(1).next().is_none());
        let at_once = InjectionPlan { every_ns: 0, ..plan(Injection::Moves, 2) };
        assert!(at_once.begins_ns(7).eq([7, 7]));
    }

    #[test]
    fn overlap_is_what_lies_in_both() {
        let interval = InjectedInterval { start_ns: 100, end_ns: 200, cpu: 0 };
        for (from, to, overlap) in
            [(0, 50, 0), (0, 150, 50), (120, 130, 10), (150, 300, 50), (0, 900, 100), (250, 260, 0)]
        {
            assert_eq!(interval.overlap_ns(from, to), overlap, "{from} to {to}");
        }
    }

    #[test]
    fn a_loop_disturbs_itself_by_its_own_hand() {
        for kind in [Injection::OwnFaults, Injection::OwnOverrun] {
            let plan = plan(kind, 1);
            assert!(RunningInjection::start(plan).is_err(), "{}", kind.name());
            let mut injector = Injector::prepare(&plan).expect("it needs nothing");
            let before = now_ns(ClockId::Monotonic);
            let interval = injector.once().expect("memory");
            let after = now_ns(ClockId::Monotonic);
            assert!(before <= interval.start_ns && interval.end_ns <= after);
            assert!(kind == Injection::OwnFaults || after - before >= 200_000);
        }
    }

    #[test]
    fn a_process_does_not_stop_itself() {
        let own = Victim { pid: std::process::id().cast_signed(), ..victim() };
        let times = (Duration::from_millis(4), Duration::from_millis(1));
        let plan = InjectionPlan::new(Injection::Stop, own, 1, times).expect("bounded");
        assert_eq!(Injector::prepare(&plan).map(drop), Err(InjectionRefused::OwnProcess));
    }

    #[test]
    fn what_takes_cpus_is_logged_with_the_loops_cpu() {
        let kinds = [
            Injection::HigherPriority,
            Injection::EqualPriority,
            Injection::LongSystemCall,
            Injection::InterruptsOff,
            Injection::Timers,
        ];
        if !skip::need("root", skip::is_root()) || !skip::need_fifo() {
            return;
        }
        if !skip::need("CPUs 0 and 1", two_cpus()) {
            return;
        }
        for kind in kinds {
            let running = RunningInjection::start(plan(kind, 5)).expect("a thread");
            let log = running.wait().unwrap_or_else(|why| panic!("{}: {why}", kind.name()));
            assert_eq!((log.intervals.len(), log.failed), (5, 0), "{}", kind.name());
            for pair in log.intervals.windows(2) {
                assert!(pair[0].end_ns <= pair[1].start_ns, "{}", kind.name());
            }
            let on_cpu = |interval: &InjectedInterval| {
                interval.cpu == 0 && interval.end_ns > interval.start_ns
            };
            assert!(log.intervals.iter().all(on_cpu), "{}: {log:?}", kind.name());
        }
    }

    #[test]
    fn interrupts_to_other_cpus_are_sent_from_there() {
        if !skip::need("CPUs 0 and 1", two_cpus()) {
            return;
        }
        for kind in [Injection::Protection, Injection::Barriers] {
            let running = RunningInjection::start(plan(kind, 5)).expect("a thread");
            let log = running.wait().unwrap_or_else(|why| panic!("{}: {why}", kind.name()));
            assert_eq!((log.intervals.len(), log.failed), (5, 0), "{}", kind.name());
            assert!(log.intervals.iter().all(|interval| interval.cpu == 1));
        }
    }

    #[test]
    fn another_process_is_stopped_moved_and_left_as_it_was() {
        if !skip::need("CPUs 0 and 1", two_cpus()) {
            return;
        }
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("coreutils");
        let pid = child.id().cast_signed();
        let before = affinity::get(pid).expect("ours");
        let times = (Duration::from_millis(4), Duration::from_millis(1));
        for kind in [Injection::Stop, Injection::Moves] {
            let victim = Victim { pid, tid: pid, ..victim() };
            let plan = InjectionPlan::new(kind, victim, 4, times).expect("bounded");
            let log = RunningInjection::start(plan).expect("a thread").wait().expect("ours");
            assert_eq!((log.intervals.len(), log.failed), (4, 0), "{}", kind.name());
        }
        let state = || punctual_os::threads::state(pid, pid);
        while state() == Some(punctual_os::threads::ThreadState::Stopped) {
            std::thread::yield_now();
        }
        assert_eq!(affinity::get(pid), Ok(before));
        child.kill().expect("ours");
        child.wait().expect("ours");
    }

    #[test]
    fn datagrams_reach_the_other_cpu() {
        if !skip::need("root", skip::is_root())
            || !skip::need("CPUs 0 and 1", two_cpus())
            || !skip::need_program("ip")
            || !skip::need_program("unshare")
        {
            return;
        }
        let running = RunningInjection::start(plan(Injection::Datagrams, 5)).expect("a thread");
        let log = running.wait().expect("devices");
        assert_eq!((log.intervals.len(), log.failed), (5, 0));
    }

    #[test]
    fn what_takes_a_driver_is_refused_where_it_is_not() {
        for (kind, driver) in [(Injection::Firmware, "smi"), (Injection::Driver, "irqs_off")] {
            if kind == Injection::Driver && !skip::need_fifo() {
                continue;
            }
            let running = RunningInjection::start(plan(kind, 1)).expect("a thread");
            let why = running.wait().expect_err("no guest has these tests").to_string();
            assert!(why.contains(driver) && !why.contains('\n'), "{why}");
        }
    }

    #[test]
    fn a_standstill_is_seen_or_did_not_come() {
        if !skip::need("root", skip::is_root()) || !skip::need_fifo() {
            return;
        }
        if !skip::need("CPUs 0 and 1", two_cpus()) {
            return;
        }
        let times = (Duration::from_millis(30), Duration::from_millis(50));
        let plan = InjectionPlan::new(Injection::Standstill, victim(), 2, times).expect("bounded");
        let log = RunningInjection::start(plan).expect("a thread").wait().expect("two CPUs");
        assert_eq!(log.intervals.len() + log.failed as usize, 2);
        assert!(log.intervals.iter().all(|gap| gap.cpu == 1 && gap.length_ns() >= 50_000_000));
    }

    #[test]
    fn a_group_is_stopped_when_its_budget_is_used_up_and_nothing_is_left_of_it() {
        if !skip::need("root", skip::is_root()) || !skip::need_fifo() {
            return;
        }
        if !skip::need("CPUs 0 and 1", two_cpus()) {
            return;
        }
        let groups = |pid: u32| std::fs::read_to_string(format!("/proc/{pid}/cgroup"));
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("coreutils");
        let pid = child.id().cast_signed();
        let before = groups(child.id()).expect("ours");
        let victim = Victim { pid, tid: pid, ..victim() };
        let times = (Duration::from_millis(8), Duration::from_millis(2));
        let plan = InjectionPlan::new(Injection::Throttling, victim, 4, times).expect("bounded");
        let outcome = RunningInjection::start(plan).expect("a thread").wait();
        let after = groups(child.id()).expect("ours");
        child.kill().expect("ours");
        child.wait().expect("ours");
        assert_eq!(after, before);
        let log = match outcome {
            Err(InjectionRefused::Machine { why }) => {
                let _skipped = skip::need_device(&format!("a group with a budget: {why}"), false);
                return;
            }
            log => log.expect("the kernel has it"),
        };
        assert_eq!((log.intervals.len(), log.failed), (4, 0));
        let shortest = log.intervals.iter().map(|interval| interval.end_ns - interval.start_ns);
        assert!(shortest.min().is_some_and(|ns| ns >= 2_000_000 / PAUSE_PARTS), "{log:?}");
    }

    #[test]
    fn one_that_shall_end_ends() {
        let running = RunningInjection::start(plan(Injection::Barriers, 10_000));
        let running = running.expect("a thread");
        let is_whole = running.is_over();
        let log = running.end();
        assert!(!is_whole || log.is_err(), "it goes on, unless it is refused");
        assert!(log.map_or(true, |log| log.intervals.len() < 10_000));
    }
}

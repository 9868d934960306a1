//! Simulated time: minutes of control code in milliseconds, the same result each time.
//!
//! For tests of a controller, and for the question what jitter costs it. A [`SimulatedClock`]
//! stands still but for sleeps, which end at once, and for what a body says that its work takes
//! ([`SimulatedClock::spend`]). It is late by a list, by a function of the number of the sleep, or
//! as a sample file was ([`recorded`]); and it has stalls, in which nothing runs. Give it to
//! [`LoopBuilder::start_on`](crate::LoopBuilder::start_on) or
//! [`ExecutiveBuilder::clock`](crate::ExecutiveBuilder::clock), with [`thread`].
//!
//! Simulated are releases, lateness, missed releases, `dt`, overruns and what
//! [`OnOverrun`](crate::OnOverrun) makes of them, budgets and deadlines, late wakes, stalls, and
//! the end of `run_for`: all that one loop does in one thread.
//!
//! Not simulated are
//!
//! - the time that code takes: a body takes none but what it spends;
//! - tasks with a thread or a process of their own, and triggered ones: they run beside the clock,
//!   in no fixed order;
//! - the watchdog, and what it cancels: it goes by the machine's clock;
//! - caches, interrupts, devices, locks, other programs, and what a wait learns of them.
//!
//! It is wrong where the question is how late a machine is, or how long code takes: measure those
//! (`punctual check`, `punctual measure work`). Recorded lateness is that of the program that was
//! recorded, with its wait and its load; another one's may differ.
//!
//! ```
//! use std::time::Duration;
//! use punctual::{Executive, Period, Span, Task, sim};
//!
//! let clock = sim::SimulatedClock::new()
//!     .late_by(|sleep| Span::from_us(sleep.cast_signed() % 7))
//!     .stall(Duration::from_millis(20), Duration::from_micros(4_500));
//! let work = clock.clone();
//! let task = Task::every("servo", Period::hz(1_000).expect("in range"));
//! let (executive, _ids) = Executive::builder()
//!     .clock(clock)
//!     .thread(sim::thread())
//!     .task(task, move |_| work.spend(Duration::from_micros(200)))
//!     .build()?;
//! let summary = executive.run_for(Duration::from_secs(600))?;
//! let counts = &summary.tasks[0].counts;
//! // Ten minutes; each release but the four that passed in the stall ran.
//! assert_eq!((counts.ran + counts.missed, counts.missed), (600_000, 4));
//! # Ok::<(), punctual::Error>(())
//! ```

use std::fmt;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use punctual_core::clock::Clock;
use punctual_core::file::{
    BLOCK_HEADER_BYTES, BlockHeader, BlockKind, FILE_HEADER_BYTES, FILE_VERSION, FileHeader,
    JSON_BYTES_MAX,
};
use punctual_core::sample::{SAMPLE_BYTES, Sample};
use punctual_core::time::{Instant, Span};
use punctual_engine::rt_thread::RtThread;
use punctual_engine::wait_policy::WaitPolicy;

/// The cost of a poll: a spin on a clock that stands still would never end.
const POLL_NS: u64 = 50;

/// A simulated clock. Its clones share one time, so that a body can spend it.
#[derive(Clone)]
pub struct SimulatedClock {
    now_ns: Arc<AtomicU64>,
    sleeps: Arc<AtomicU64>,
    late: Arc<dyn Fn(u64) -> Span + Send + Sync>,
    stalls: Arc<[Stall]>,
}

/// Stretches of time in which nothing runs: from `first_ns` on, every `every_ns`, `length_ns` long.
#[derive(Clone, Copy, Debug)]
struct Stall {
    first_ns: u64,
    /// `u64::MAX` for once.
    every_ns: u64,
    length_ns: u64,
}

impl Stall {
    /// The begin and the end of the first stretch that ends after `at_ns`; `None` after the last.
    fn next(self, at_ns: u64) -> Option<(u64, u64)> {
        let passed = at_ns.checked_sub(self.first_ns).map_or(0, |since| since / self.every_ns);
        (passed..=passed.saturating_add(1)).find_map(|count| {
            let begin = count.checked_mul(self.every_ns)?.checked_add(self.first_ns)?;
            let end = begin.saturating_add(self.length_ns);
            (end > at_ns).then_some((begin, end))
        })
    }
}

impl Default for SimulatedClock {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for SimulatedClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimulatedClock")
            .field("now_ns", &self.now_ns)
            .field("sleeps", &self.sleeps)
            .field("stalls", &self.stalls)
            .finish_non_exhaustive()
    }
}

impl SimulatedClock {
    /// A clock at zero that is never late.
    ///
    /// # Real-time: setup only
    pub fn new() -> Self {
        Self {
            now_ns: Arc::default(),
            sleeps: Arc::default(),
            late: Arc::new(|_| Span::ZERO),
            stalls: Arc::default(),
        }
    }

    /// Sleeps return as late as `late` says for each, by its number, counted from 0; below zero is
    /// zero. A sleep up to an instant that has passed does not count.
    ///
    /// # Real-time: setup only
    #[must_use]
    pub fn late_by(mut self, late: impl Fn(u64) -> Span + Send + Sync + 'static) -> Self {
        self.late = Arc::new(late);
        self
    }

    /// Sleeps return as late as this list says, each entry once, then from its beginning again;
    /// an empty list is never late.
    ///
    /// # Real-time: setup only
    #[must_use]
    pub fn replay(self, lateness: Vec<Span>) -> Self {
        let count = lateness.len() as u64;
        self.late_by(move |sleep| match sleep.checked_rem(count) {
            Some(at) => lateness[at as usize],
            None => Span::ZERO,
        })
    }

    /// Nothing runs for `length` from `at` on, counted from the clock's zero: what should begin
    /// then begins after it, what runs then ends that much later.
    ///
    /// # Real-time: setup only
    #[must_use]
    pub fn stall(self, at: Duration, length: Duration) -> Self {
        self.with(Stall { first_ns: ns(at), every_ns: u64::MAX, length_ns: ns(length) })
    }

    /// Nothing runs for `length` at `every`, 2 × `every`, and so on, as firmware does it.
    ///
    /// # Panics
    /// Where `length` is not below `every`: nothing would ever run.
    ///
    /// # Real-time: setup only
    #[must_use]
    pub fn stall_every(self, every: Duration, length: Duration) -> Self {
        assert!(length < every, "a stall of {length:?} every {every:?}: it must be shorter");
        self.with(Stall { first_ns: ns(every), every_ns: ns(every), length_ns: ns(length) })
    }

    fn with(mut self, stall: Stall) -> Self {
        self.stalls = self.stalls.iter().copied().chain([stall]).collect();
        self
    }

    /// Lets the work that the caller does take `time`, and stalls in it longer. Called by a body
    /// on a clone of the clock; more than its budget is an overrun.
    ///
    /// # Real-time: in loop
    pub fn spend(&self, time: Duration) {
        let (mut at_ns, mut left_ns) = (self.awake(self.now_ns()), ns(time));
        while let Some((begin_ns, end_ns)) = self.next_stall(at_ns) {
            let before_ns = begin_ns - at_ns;
            if left_ns < before_ns {
                break;
            }
            left_ns -= before_ns;
            at_ns = self.awake(end_ns);
        }
        self.pass(at_ns.saturating_add(left_ns));
    }

    /// The number of sleeps so far.
    ///
    /// # Real-time: reader side
    pub fn sleeps(&self) -> u64 {
        self.sleeps.load(Ordering::Relaxed)
    }

    fn now_ns(&self) -> u64 {
        self.now_ns.load(Ordering::Relaxed)
    }

    fn pass(&self, to_ns: u64) {
        self.now_ns.fetch_max(to_ns, Ordering::Relaxed);
    }

    /// The stall that begins next, of those that end after `at_ns`.
    fn next_stall(&self, at_ns: u64) -> Option<(u64, u64)> {
        self.stalls.iter().filter_map(|stall| stall.next(at_ns)).min()
    }

    /// The first instant from `at_ns` on that lies in no stall.
    fn awake(&self, mut at_ns: u64) -> u64 {
        while let Some((begin_ns, end_ns)) = self.next_stall(at_ns) {
            if begin_ns > at_ns {
                break;
            }
            at_ns = end_ns;
        }
        at_ns
    }
}

impl Clock for SimulatedClock {
    fn now(&mut self) -> Instant {
        Instant::from_ns(self.now_ns())
    }

    fn poll(&mut self) -> Instant {
        self.pass(self.awake(self.now_ns().saturating_add(POLL_NS)));
        self.now()
    }

    fn sleep_until(&mut self, at: Instant) {
        if at.as_ns() <= self.now_ns() {
            return;
        }
        let sleep = self.sleeps.fetch_add(1, Ordering::Relaxed);
        let late_ns = u64::try_from((self.late)(sleep).as_ns()).unwrap_or(0);
        self.pass(self.awake(at.as_ns().saturating_add(late_ns)));
    }

    fn wake(&mut self) -> Instant {
        self.now()
    }

    fn relax(&mut self) {}
}

/// A thread for a simulation: no real-time policy, no memory locked, one sleep up to each release,
/// so that a lateness belongs to one release.
///
/// # Real-time: setup only
pub fn thread() -> RtThread {
    RtThread::any().other().wait(WaitPolicy::sleep()).lock_memory(false).hold_idle_states(false)
}

/// The lateness of each cycle of a sample file's run number `run`, counted from 0, in order: for
/// [`SimulatedClock::replay`]. A file that was cut off gives what is whole. Cycles that were missed
/// or not recorded have no entry: a stall is the lateness of the release that ran after it.
///
/// # Errors
/// The file cannot be read; it is no sample file, of another version, or damaged
/// ([`io::ErrorKind::InvalidData`]); it has no sample of such a run
/// ([`io::ErrorKind::NotFound`]).
///
/// # Real-time: setup only
pub fn recorded(file: impl AsRef<Path>, run: u32) -> io::Result<Vec<Span>> {
    let path = file.as_ref();
    let about = |why: io::Error| io::Error::new(why.kind(), format!("{}: {why}", path.display()));
    let mut file = std::fs::File::open(path).map_err(about)?;
    let found = read(&mut io::BufReader::new(&mut file), run).map_err(about)?;
    if found.is_empty() {
        let why = format!("no sample of run {run}; runs are counted from 0");
        return Err(about(io::Error::new(io::ErrorKind::NotFound, why)));
    }
    Ok(found)
}

/// The lateness of the samples of one run.
fn read(from: &mut impl Read, run: u32) -> io::Result<Vec<Span>> {
    let mut head = [0; FILE_HEADER_BYTES];
    from.read_exact(&mut head).map_err(|_| invalid("no sample file of punctual"))?;
    let head =
        FileHeader::from_bytes(&head).ok_or_else(|| invalid("no sample file of punctual"))?;
    if head.version != FILE_VERSION {
        let why = format!("version {}; this library reads {FILE_VERSION}", head.version);
        return Err(invalid(&why));
    }
    if head.json_bytes > JSON_BYTES_MAX {
        return Err(invalid("damaged in its header"));
    }
    let mut json = vec![0; head.json_bytes as usize];
    from.read_exact(&mut json).map_err(|_| invalid("cut off in its header"))?;
    let mut lateness = Vec::new();
    let mut block = [0; BLOCK_HEADER_BYTES];
    while whole(from, &mut block)? {
        let header = BlockHeader::from_bytes(&block, crc32fast::hash)
            .ok_or_else(|| invalid("damaged in the header of a block"))?;
        if header.kind == BlockKind::End {
            break;
        }
        let mut payload = vec![0; header.payload_bytes()];
        if !whole(from, &mut payload)? {
            break;
        }
        if crc32fast::hash(&payload) != header.payload_crc {
            return Err(invalid("damaged in a block"));
        }
        if header.run == run {
            let (samples, _) = payload.as_chunks::<SAMPLE_BYTES>();
            lateness.extend(samples.iter().map(|bytes| Sample::from_bytes(bytes).lateness));
        }
    }
    Ok(lateness)
}

/// Fills `bytes`; false where the file ends before.
fn whole(from: &mut impl Read, bytes: &mut [u8]) -> io::Result<bool> {
    match from.read_exact(bytes) {
        Ok(()) => Ok(true),
        Err(why) if why.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(why) => Err(why),
    }
}

fn invalid(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

/// Saturates: 584 years are for ever.
fn ns(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use punctual_core::time::Period;
    use punctual_engine::periodic::OnOverrun;
    use punctual_engine::task::Task;

    use super::*;
    use crate::{Executive, Loop, Summary};

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn every_ms() -> Period {
        Period::hz(1_000).expect("in range")
    }

    /// Runs a loop of 1 kHz for `time`; returns the lateness of each cycle, ns, and its summary.
    fn run(clock: SimulatedClock, time: Duration) -> (Vec<i64>, Summary) {
        let mut latenesses = Vec::new();
        let built = Loop::builder(every_ms()).thread(thread()).start_on(clock);
        let control_loop = built.expect("it starts");
        let summary = control_loop.run_for(time, |cycle| latenesses.push(cycle.lateness.as_ns()));
        (latenesses, summary)
    }

    fn jittery() -> SimulatedClock {
        let clock = SimulatedClock::new().stall(ms(500), ms(7)).stall_every(ms(100), ms(1) / 4);
        clock.late_by(|sleep| Span::from_ns((sleep.wrapping_mul(48_271) % 9_973).cast_signed()))
    }

    #[test]
    fn ten_minutes_are_the_same_twice_bit_for_bit() {
        let [first, second] = [(); 2].map(|()| run(jittery(), ms(600_000)));
        assert_eq!(first.0, second.0);
        assert_eq!(first.1.tasks[0].counts, second.1.tasks[0].counts);
        let counts = &first.1.tasks[0].counts;
        assert_eq!(counts.ran + counts.missed, 600_000);
    }

    #[test]
    fn each_sleep_is_as_late_as_its_entry_and_the_list_begins_anew() {
        let list = [3_000, 0, -5, 2_500_000, 7].map(Span::from_ns).to_vec();
        let (latenesses, summary) = run(SimulatedClock::new().replay(list), ms(14));
        // After 2.5 ms the oldest release runs, the two that passed are missed.
        assert_eq!(latenesses[..7], [3_000, 0, 0, 2_500_000, 7, 3_000, 0]);
        assert_eq!(summary.tasks[0].counts.missed, 4);
        let (latenesses, _) = run(SimulatedClock::new().replay(Vec::new()), ms(3));
        assert_eq!(latenesses, [0; 3]);
    }

    #[test]
    fn work_in_a_stall_ends_as_much_later() {
        let clock = SimulatedClock::new().stall(ms(10), ms(5)).stall(ms(14), ms(3));
        clock.spend(ms(9));
        assert_eq!(clock.now_ns(), 9_000_000);
        // 1 ms before the two stalls, which overlap, 3 ms after them.
        clock.spend(ms(4));
        assert_eq!(clock.now_ns(), 20_000_000);
        let clock = SimulatedClock::new().stall_every(ms(10), ms(1));
        clock.spend(ms(95));
        assert_eq!(clock.now_ns(), 105_000_000);
    }

    #[test]
    #[should_panic(expected = "it must be shorter")]
    fn a_stall_without_end_is_refused() {
        let _clock = SimulatedClock::new().stall_every(ms(1), ms(1));
    }

    #[test]
    fn work_over_its_budget_is_an_overrun_and_makes_others_late() {
        let clock = SimulatedClock::new();
        let spends = clock.clone();
        let (mut runs, mut seen) = (0, Vec::new());
        let (executive, _ids) = Executive::builder()
            .clock(clock)
            .thread(thread())
            .task(Task::every("a", every_ms()).budget(ms(1) / 2), |_| {
                runs += 1;
                let time = if runs == 4 { ms(1) * 7 / 10 } else { ms(1) / 10 };
                spends.spend(time);
            })
            .task(Task::every("b", every_ms()), |cycle| seen.push(cycle.lateness.as_ns()))
            .build()
            .expect("fine");
        let summary = executive.run_for(ms(6)).expect("it runs");
        assert_eq!(summary.tasks[0].counts.over_budget, 1);
        assert_eq!(seen, [100_000, 100_000, 100_000, 700_000, 100_000, 100_000]);
    }

    #[test]
    fn a_task_that_moves_its_phase_has_a_period_from_a_late_start_and_from_the_first_on() {
        let clock = SimulatedClock::new();
        let (hogs, works) = (clock.clone(), clock.clone());
        let (mut runs, mut seen) = (0, Vec::new());
        let every_10_ms = Period::hz(100).expect("in range");
        let (executive, ids) = Executive::builder()
            .clock(clock)
            .thread(thread())
            .task(Task::every("hog", Period::hz(20).expect("in range")).at(ms(0)), |_| {
                runs += 1;
                hogs.spend(ms(if runs == 1 { 35 } else { 1 }));
            })
            .task(Task::every("t", every_10_ms).at(ms(5)).on_overrun(OnOverrun::Delay), |cycle| {
                let start = cycle.release + cycle.lateness;
                seen.push([cycle.dt, cycle.lateness, cycle.next - start].map(Span::as_ns));
                works.spend(ms(1));
            })
            .build()
            .expect("fine");
        let summary = executive.run_for(ms(100)).expect("it runs");
        // Behind the hog its second cycle starts 30 ms late, or its first.
        let late = seen.iter().position(|[_, late, _]| *late == 30_000_000).expect("one is late");
        assert_eq!(seen[late][2], 10_000_000, "{seen:?}");
        // A period after the finish of the late one.
        assert_eq!(seen[late + 1], [41_000_000, 0, 10_000_000], "{seen:?}");
        assert_eq!(seen[0][0], 10_000_000, "a first cycle has its period to go on by: {seen:?}");
        assert_eq!(summary.tasks[ids.len() - 1].counts.over_release, 0, "its work took 1 ms");
    }

    #[test]
    fn a_recording_is_replayed_sample_for_sample() {
        let path = std::env::temp_dir().join(format!("punctual-sim-{}", std::process::id()));
        let built = Loop::builder(every_ms()).thread(thread()).record(&path).start_on(jittery());
        let (control_loop, mut seen) = (built.expect("it starts"), Vec::new());
        let summary = control_loop.run_for(ms(2_000), |cycle| seen.push(cycle.lateness));
        assert_eq!(summary.samples.map(|samples| samples.unrecorded), Some(0));
        let lateness = recorded(&path, 0).expect("written");
        assert_eq!(lateness, seen);
        let absent = recorded(&path, 1).expect_err("one run");
        assert_eq!(absent.kind(), io::ErrorKind::NotFound);

        let bytes = std::fs::read(&path).expect("written");
        std::fs::remove_file(&path).expect("ours");
        let half = bytes.len() / 2;
        let cut = read(&mut &bytes[..half], 0).expect("cut off");
        assert!(seen.starts_with(&cut) && cut.len() < seen.len());
        let mut damaged = bytes;
        damaged[half] ^= 1;
        let why = read(&mut &damaged[..], 0).expect_err("damaged");
        assert_eq!(why.kind(), io::ErrorKind::InvalidData);
        let foreign = read(&mut &b"something else, and long enough"[..], 0).expect_err("foreign");
        assert_eq!(foreign.kind(), io::ErrorKind::InvalidData);

        let (again, _) = run(SimulatedClock::new().replay(lateness), ms(2_000));
        assert_eq!(again, seen.iter().map(|late| late.as_ns()).collect::<Vec<_>>());
    }
}

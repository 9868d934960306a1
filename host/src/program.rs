//! A program that runs, judged for real time: what its threads were given, and what is in their
//! way.
//!
//! As [`crate::rules`] judge a machine: verdicts with where each is from and the command that
//! changes it. Reads some moments of /proc through a [`Root`] and judges what it read; changes
//! nothing. What people found by hand in programs of others is what is looked for: policies that
//! were inherited, priorities below an interrupt's thread, loops that wander over CPUs, memory that
//! is not locked.

use std::time::{Duration, Instant};

use punctual_os::scheduler;

use crate::cpulist::CpuList;
use crate::facts::{MachineFacts, RtThrottling};
use crate::root::{Read, Root};
use crate::rules::{KnobChange, KnobVerdict, RuleVerdict};
use crate::settings::KernelSettings;
use crate::threads::{RunningThread, ThreadTimes};

/// A thread of a program.
#[derive(Clone, Debug)]
pub struct ProgramThread {
    /// It.
    pub thread: RunningThread,
    /// The CPUs that it may run on.
    pub allowed: CpuList,
    /// The most that its timers may be later than requested, ns; `None` where that may not be read.
    pub slack_ns: Option<u64>,
    /// Its CPU time so far; since the moment before where there was one.
    pub times: ThreadTimes,
    /// Its page faults so far, or since the moment before.
    pub faults: u64,
    /// Its wakes.
    pub wakes: ThreadWakes,
}

/// The sleeps of a thread, and so its wakes: voluntary switches, at moments that are the same time
/// apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadWakes {
    /// Those so far at each moment, the first one first; none where that may not be read.
    counts: Vec<u64>,
}

impl ThreadWakes {
    /// The wakes between the first moment and the last one; `None` with less than two moments.
    pub fn total(&self) -> Option<u64> {
        let [first, .., last] = self.counts.as_slice() else { return None };
        Some(last.saturating_sub(*first))
    }

    /// Returns true where it woke as a loop does: in each part of the time often enough to tell,
    /// and in none much oftener than in another. False also where too little was read.
    pub fn are_steady(&self) -> bool {
        let parts = self.counts.windows(2).map(|pair| pair[1].saturating_sub(pair[0]));
        let (least, most) =
            parts.clone().fold((u64::MAX, 0), |(least, most), n| (n.min(least), n.max(most)));
        self.counts.len() > PARTS && least >= STEADY_LEAST && are_alike(least, most)
    }
}

/// Returns true where chance alone may account for the difference of two counts of wakes.
fn are_alike(least: u64, most: u64) -> bool {
    most - least <= 2 + most / 10
}

/// The parts of the time that a program is watched, for the steadiness of its wakes.
const PARTS: usize = 4;

/// The least wakes in each part that may be told from chance: a period of 50 ms in a second.
const STEADY_LEAST: u64 = 5;

/// A program at one moment.
#[derive(Clone, Debug)]
pub struct RunningProgram {
    /// Its process.
    pub pid: i32,
    /// Its name.
    pub name: String,
    /// Its threads, the first one first.
    pub threads: Vec<ProgramThread>,
    /// Memory that it locked, KiB.
    pub locked_kib: Option<u64>,
    /// Memory that it has, KiB.
    pub resident_kib: Option<u64>,
    /// The CPU time that its control group may use of each period, and the period, both in µs;
    /// `None` for no limit.
    pub quota_us: Option<(u64, u64)>,
    /// The time that it may compute without a sleep under a real-time policy, µs; `None` for ever.
    pub timeout_us: Option<u64>,
    /// The time since the moment before; `None` at the first one.
    pub watched: Option<Duration>,
}

/// The surroundings of a program: its machine, settings, and the threads of others.
#[derive(Clone, Copy, Debug)]
pub struct ProgramSurroundings<'a> {
    /// The machine.
    pub facts: &'a MachineFacts,
    /// Its settings, with interrupts that were watched.
    pub settings: &'a KernelSettings,
    /// The real-time threads of others, the kernel's too, and where each may run.
    pub others: &'a [(RunningThread, CpuList)],
}

impl RunningProgram {
    /// Reads it; `None` where no such process runs.
    pub fn read(root: &Root, pid: i32) -> Option<Self> {
        let threads: Vec<ProgramThread> = RunningThread::of_process(root, pid)
            .into_iter()
            .filter_map(|thread| ProgramThread::read(root, thread))
            .collect();
        let first = &threads.iter().find(|own| own.thread.tid == pid)?.thread;
        let kib = |name| first.status(root, name)?.strip_suffix(" kB")?.trim().parse().ok();
        Some(Self {
            pid,
            name: first.name.clone(),
            locked_kib: kib("VmLck"),
            resident_kib: kib("VmRSS"),
            quota_us: quota(root, pid),
            timeout_us: timeout(root, pid),
            threads,
            watched: None,
        })
    }

    /// Reads it at moments over so long, and has times, faults and wakes of that time; `None` where
    /// no such process runs, or it ends meanwhile. Sleeps in between.
    pub fn watch(root: &Root, pid: i32, time: Duration) -> Option<Self> {
        let begun = Instant::now();
        let mut moments = vec![Self::read(root, pid)?];
        for part in 1..=PARTS as u32 {
            // Each moment is counted from the first one, so that what a sleep is late does not add
            // up; parts of nearly the same length are enough to see steady wakes.
            let due = time * part / PARTS as u32;
            // A person waits for this, and how long it really was is read afterwards.
            std::thread::sleep(due.saturating_sub(begun.elapsed()));
            moments.push(Self::read(root, pid)?);
        }
        // The time that it really was, not the one that was requested.
        Some(moments.pop()?.since(&moments, begun.elapsed()))
    }

    /// As it is, with times, faults and wakes since it was as in the first of `before`.
    fn since(mut self, before: &[Self], watched: Duration) -> Self {
        for own in &mut self.threads {
            let tid = own.thread.tid;
            let earlier: Vec<&ProgramThread> = before
                .iter()
                .filter_map(|moment| moment.threads.iter().find(|then| then.thread.tid == tid))
                .collect();
            if let Some(first) = earlier.first() {
                own.times = own.times.since(&first.times);
                own.faults = own.faults.saturating_sub(first.faults);
            }
            let counts = earlier.iter().flat_map(|then| then.wakes.counts.iter().copied());
            own.wakes.counts = counts.chain(own.wakes.counts.drain(..)).collect();
        }
        self.watched = Some(watched);
        self
    }

    /// The CPUs that its real-time threads may run on; without one those of all its threads.
    pub fn cpus(&self) -> CpuList {
        let is_real_time = |own: &&ProgramThread| own.thread.is_real_time();
        let mut loops = self.threads.iter().filter(is_real_time).peekable();
        let allowed = |cpus: CpuList, own: &ProgramThread| cpus.union(&own.allowed);
        match loops.peek() {
            Some(_) => loops.fold(CpuList::default(), allowed),
            None => self.threads.iter().fold(CpuList::default(), allowed),
        }
    }

    /// All verdicts, the most urgent first.
    pub fn judge(&self, around: &ProgramSurroundings<'_>) -> Vec<KnobVerdict> {
        let loops: Vec<&ProgramThread> =
            self.threads.iter().filter(|own| own.thread.is_real_time()).collect();
        let mut verdicts = vec![self.policy(&loops), self.memory()];
        verdicts.extend(self.inherited(&loops));
        verdicts.extend(self.timeout());
        verdicts.extend(self.quota(&loops));
        for own in &loops {
            verdicts.push(self.priority(own, &loops, around));
            verdicts.push(above(own, around));
            verdicts.push(affinity(own, around));
            verdicts.extend(self.sharing(own, &loops));
            verdicts.extend(sibling(own, around));
            verdicts.extend(self.throttling(own, around));
            verdicts.extend(self.faults(own));
            verdicts.extend(arriving(own, around));
        }
        verdicts.extend(self.slacks(&loops));
        verdicts.sort_by_key(|verdict| (verdict.verdict, std::cmp::Reverse(verdict.gain)));
        verdicts
    }

    /// Its threads of which `is` holds.
    fn threads_that(&self, is: impl Fn(&ProgramThread) -> bool) -> Vec<&ProgramThread> {
        self.threads.iter().filter(|own| is(own)).collect()
    }

    fn policy(&self, loops: &[&ProgramThread]) -> KnobVerdict {
        let knob = format!("policies of {}", self.name);
        let judged = |verdict| POLICY.of(&knob, verdict);
        let steady = self.threads_that(|own| !own.thread.is_real_time() && own.wakes.are_steady());
        let ranked = RankedThreads::of(&steady);
        let set = ranked.commands();
        let wakes = format!("{}{}", self.listed(&steady), ranked.why());
        let policies: Vec<String> = loops
            .iter()
            .map(|own| format!("{} {}", shown(&own.thread), own.thread.policy_words()))
            .collect();
        let policies = policies.join(", ");
        // The loop may be one of those that have a policy: a loop that never sleeps does not wake.
        let works = |own: &&ProgramThread| own.wakes.total() != Some(0) || own.times.run_ns > 0;
        match (loops, self.threads.len(), steady.is_empty()) {
            ([], 1, _) => judged(RuleVerdict::Improve)
                .found("its only thread has no real-time policy".to_owned())
                .run(format!("sudo punctual sched set --fifo 80 {}", self.pid)),
            ([], count, true) => judged(RuleVerdict::Improve)
                .found(format!(
                    "none of {count} threads has a real-time policy; none wakes steadily, so \
                     which has the loop is not known: the change is for all of them"
                ))
                .run(format!("sudo punctual sched set --fifo 80 --threads {}", self.pid)),
            ([], count, false) => judged(RuleVerdict::Improve)
                .found(format!(
                    "none of {count} threads has a real-time policy; steadily, as loops do, \
                     {wakes}"
                ))
                .run_all(set),
            (_, _, false) if !loops.iter().any(works) => judged(RuleVerdict::Improve)
                .found(format!(
                    "{policies}: asleep all the time; steadily, as loops do, and without a \
                     real-time policy {wakes}"
                ))
                .run_all(set),
            (_, _, false) if !loops.iter().any(|own| own.wakes.are_steady()) => {
                judged(RuleVerdict::Unknown).found(format!(
                    "{policies}: does not wake steadily; steadily, as loops do, and without a \
                     real-time policy {wakes}; if the loop is there: {}",
                    set.join("; ")
                ))
            }
            _ => judged(RuleVerdict::Good).found(policies),
        }
        .done()
    }

    /// Threads with how often each wakes: "jackd (12) wakes 47 times a second".
    fn listed(&self, threads: &[&ProgramThread]) -> String {
        let seconds = self.watched.map_or(1.0, |time| time.as_secs_f64());
        let rate = |own: &ProgramThread| own.wakes.total().unwrap_or(0) as f64 / seconds;
        let words: Vec<String> = threads
            .iter()
            .map(|own| format!("{} wakes {:.0} times a second", shown(&own.thread), rate(own)))
            .collect();
        words.join(", ")
    }

    fn inherited(&self, loops: &[&ProgramThread]) -> Option<KnobVerdict> {
        let [first, _, ..] = loops else { return None };
        let alike = |own: &&ProgramThread| {
            (own.thread.policy, own.thread.priority) == (first.thread.policy, first.thread.priority)
        };
        let row = &INHERITED;
        let knob = format!("policies of {}", self.name);
        let words = first.thread.policy_words();
        let count = self.threads.len();
        let verdict = match loops.len() == count && loops.iter().all(alike) {
            true => {
                let found = format!(
                    "all {count} threads have {words}: all were set, or one was and the others \
                     inherited it"
                );
                let helpers = self.threads_that(|own| !own.wakes.are_steady());
                let judged = row.of(&knob, RuleVerdict::Improve).found(found);
                // Where no thread wakes steadily, the loop may be any of them.
                match helpers.is_empty() || helpers.len() == count {
                    true => judged,
                    false => {
                        judged.run(format!("sudo punctual sched set --other {}", tids(&helpers)))
                    }
                }
            }
            false => row.of(&knob, RuleVerdict::Good).found(format!(
                "{} of {count} threads are real-time, and not all alike",
                loops.len()
            )),
        };
        Some(verdict.done())
    }

    /// The slack of the timers of each ordinary thread that wakes steadily, where no loop with a
    /// real-time policy, which has none, does; of all its threads where none of them wakes so.
    fn slacks(&self, loops: &[&ProgramThread]) -> Vec<KnobVerdict> {
        if loops.iter().any(|own| own.wakes.are_steady()) {
            return Vec::new();
        }
        let steady = self.threads_that(|own| !own.thread.is_real_time() && own.wakes.are_steady());
        match (steady.is_empty(), self.threads_that(|_| true).as_slice()) {
            (false, _) => {
                steady.iter().filter_map(|own| slack(&shown(&own.thread), &[own])).collect()
            }
            (true, _) if !loops.is_empty() => Vec::new(),
            (true, [only]) => slack(&shown(&only.thread), &[only]).into_iter().collect(),
            (true, every) => slack(&self.name, every).into_iter().collect(),
        }
    }

    fn priority(
        &self,
        own: &ProgramThread,
        loops: &[&ProgramThread],
        around: &ProgramSurroundings<'_>,
    ) -> KnobVerdict {
        // Loops that are set anew keep an order: the shorter the period, the higher.
        let rank = RankedThreads::of(loops).rank(own);
        let row = &PRIORITY;
        let knob = format!("priority of {}", shown(&own.thread));
        let priority = own.thread.priority;
        let is_interrupt = |(thread, cpus): &&(RunningThread, CpuList)| {
            thread.name.starts_with("irq/") && !cpus.intersection(&own.allowed).is_empty()
        };
        let interrupts: Vec<&RunningThread> =
            around.others.iter().filter(is_interrupt).map(|(thread, _)| thread).collect();
        let above: Vec<&&RunningThread> =
            interrupts.iter().filter(|thread| thread.may_delay(&own.thread)).collect();
        let words = own.thread.policy_words();
        if priority >= 99 {
            let found =
                format!("{words}: as high as the kernel's own migration and watchdog threads");
            let command =
                format!("sudo punctual sched set --fifo {} {}", 90 - rank, own.thread.tid);
            return row.of(&knob, RuleVerdict::Conflict).found(found).run(command).done();
        }
        match above.first() {
            Some(first) => row
                .of(&knob, RuleVerdict::Improve)
                .found(format!("{words}, not above {} ({}){}", first.name, first.priority, {
                    match above.len() - 1 {
                        0 => String::new(),
                        more => format!(", nor {more} more threads of interrupts"),
                    }
                }))
                .run(format!(
                    "sudo punctual sched set --fifo {} {}",
                    PRIORITY_FIRST - rank,
                    own.thread.tid
                )),
            None => row.of(&knob, RuleVerdict::Good).found(match interrupts.len() {
                0 => format!("{words}; no interrupt has a thread on its CPUs"),
                _ => format!("{words}, above the threads of interrupts"),
            }),
        }
        .done()
    }

    fn sharing(&self, own: &ProgramThread, loops: &[&ProgramThread]) -> Option<KnobVerdict> {
        let together = loops.iter().filter(|neighbour| {
            neighbour.thread.tid != own.thread.tid
                && neighbour.allowed.len() == 1
                && neighbour.allowed == own.allowed
                && neighbour.thread.may_delay(&own.thread)
        });
        let names: Vec<String> = together.map(|neighbour| shown(&neighbour.thread)).collect();
        let row = &SHARING;
        (!names.is_empty()).then(|| {
            row.of(&format!("CPU of {}", shown(&own.thread)), RuleVerdict::Improve)
                .found(format!("CPU {} is also that of {}", own.allowed, names.join(", ")))
                .done()
        })
    }

    fn memory(&self) -> KnobVerdict {
        let row = &MEMORY;
        let knob = format!("memory of {}", self.name);
        let mib = |kib: u64| format!("{:.1} MiB", kib as f64 / 1024.0);
        match (self.locked_kib, self.resident_kib) {
            (Some(0), Some(resident)) => row
                .of(&knob, RuleVerdict::Improve)
                .found(format!("none of {} is locked", mib(resident))),
            (Some(locked), Some(resident)) if locked < resident / 2 => row
                .of(&knob, RuleVerdict::Improve)
                .found(format!("{} of {} are locked", mib(locked), mib(resident))),
            (Some(locked), _) => {
                row.of(&knob, RuleVerdict::Good).found(format!("{} are locked", mib(locked)))
            }
            (None, _) => row.of(&knob, RuleVerdict::Unknown).found("not known".to_owned()),
        }
        .done()
    }

    fn timeout(&self) -> Option<KnobVerdict> {
        let us = self.timeout_us?;
        let found = format!("it ends by SIGXCPU once it computed {us} µs without a sleep");
        let knob = format!("RLIMIT_RTTIME of {}", self.name);
        Some(TIMEOUT.of(&knob, RuleVerdict::Improve).found(found).done())
    }

    fn quota(&self, loops: &[&ProgramThread]) -> Option<KnobVerdict> {
        let (quota, period) = self.quota_us?;
        let found = format!("its control group may use {quota} µs of each {period} µs (cpu.max)");
        let knob = format!("CPU time of {}", self.name);
        // Real-time threads are not under it, all others are.
        let verdict = match loops.is_empty() {
            true => RuleVerdict::Conflict,
            false => RuleVerdict::Improve,
        };
        Some(QUOTA.of(&knob, verdict).found(found).done())
    }

    fn throttling(
        &self,
        own: &ProgramThread,
        around: &ProgramSurroundings<'_>,
    ) -> Option<KnobVerdict> {
        let watched_ns = self.watched?.as_nanos() as f64;
        let share = own.times.run_ns as f64 / watched_ns.max(1.0);
        let throttling = around.facts.limits.rt_throttling.value()?;
        let RtThrottling { runtime_us, period_us } = throttling;
        let row = &THROTTLING;
        let knob = format!("CPU use of {}", shown(&own.thread));
        let percent = format!("{:.0} % of a CPU", share * 100.0);
        let verdict = match (share > NEAR_LIMIT, throttling.is_on()) {
            (true, true) => row.of(&knob, RuleVerdict::Conflict).found(format!(
                "{percent}: above {runtime_us} of {period_us} µs (kernel.sched_rt_runtime_us) it \
                 stands still, or others run in its place"
            )),
            (true, false) => row.of(&knob, RuleVerdict::Conflict).found(format!(
                "{percent}, and throttling is off: nothing else runs there, the kernel's threads \
                 included"
            )),
            (false, _) => row.of(&knob, RuleVerdict::Good).found(percent),
        };
        Some(verdict.done())
    }

    fn faults(&self, own: &ProgramThread) -> Option<KnobVerdict> {
        let seconds = self.watched?.as_secs_f64();
        let row = &FAULTS;
        let knob = format!("page faults of {}", shown(&own.thread));
        Some(
            match own.faults {
                0 => row.of(&knob, RuleVerdict::Good).found(format!("none in {seconds:.1} s")),
                some => {
                    row.of(&knob, RuleVerdict::Improve).found(format!("{some} in {seconds:.1} s"))
                }
            }
            .done(),
        )
    }
}

impl ProgramThread {
    fn read(root: &Root, thread: RunningThread) -> Option<Self> {
        let slack = root.read(&format!("/proc/{}/timerslack_ns", thread.tid));
        let slack_ns = match slack {
            Read::Text(text) => text.trim().parse().ok(),
            Read::Absent | Read::Unreadable { .. } => None,
        };
        Some(Self {
            allowed: thread.allowed(root)?,
            slack_ns,
            times: thread.times(root).unwrap_or_default(),
            faults: thread.faults,
            wakes: ThreadWakes {
                counts: thread
                    .status(root, "voluntary_ctxt_switches")
                    .and_then(|count| count.parse().ok())
                    .into_iter()
                    .collect(),
            },
            thread,
        })
    }
}

/// From this use of a CPU on, throttling is near: it begins at 95 %.
const NEAR_LIMIT: f64 = 0.9;

/// A thread by name and number.
fn shown(thread: &RunningThread) -> String {
    format!("{} ({})", thread.name, thread.tid)
}

/// Numbers of threads, as commands take them.
fn tids(threads: &[&ProgramThread]) -> String {
    let tids: Vec<String> = threads.iter().map(|own| own.thread.tid.to_string()).collect();
    tids.join(" ")
}

/// The priority that is proposed for a loop, or for the one with the shortest period.
const PRIORITY_FIRST: u32 = 80;

/// The most groups of different priorities: all stay above the threads of interrupts (50).
const RANKS_MAX: u32 = 29;

/// Threads that wake steadily, by their periods: those of the shortest first, those of one period
/// together. So they have their priorities (rate-monotonic): a thread that has to be done sooner
/// does not wait for one with more time.
struct RankedThreads<'a>(Vec<Vec<&'a ProgramThread>>);

impl<'a> RankedThreads<'a> {
    /// Those of `threads` that wake steadily.
    fn of(threads: &[&'a ProgramThread]) -> Self {
        let wakes = |own: &ProgramThread| own.wakes.total().unwrap_or(0);
        let mut steady: Vec<&ProgramThread> =
            threads.iter().copied().filter(|own| own.wakes.are_steady()).collect();
        steady.sort_by_key(|own| std::cmp::Reverse(wakes(own)));
        let mut groups: Vec<Vec<&ProgramThread>> = Vec::new();
        for own in steady {
            match groups.last_mut() {
                Some(group) if are_alike(wakes(own), wakes(group[0])) => group.push(own),
                _ => groups.push(vec![own]),
            }
        }
        Self(groups)
    }

    /// The number of shorter periods than that of `own`, 0 to [`RANKS_MAX`]; 0 too where it does
    /// not wake steadily, as nothing is known of its period then.
    fn rank(&self, own: &ProgramThread) -> u32 {
        let has_it = |group: &Vec<&ProgramThread>| {
            group.iter().any(|other| other.thread.tid == own.thread.tid)
        };
        let rank = self.0.iter().position(has_it).unwrap_or(0);
        u32::try_from(rank).unwrap_or(RANKS_MAX).min(RANKS_MAX)
    }

    /// The commands that give each its priority, one for each period.
    fn commands(&self) -> Vec<String> {
        let command = |group: &Vec<&ProgramThread>| {
            let priority = PRIORITY_FIRST - self.rank(group[0]);
            format!("sudo punctual sched set --fifo {priority} {}", tids(group))
        };
        self.0.iter().map(command).collect()
    }

    /// The reason why their priorities differ; empty where they do not.
    fn why(&self) -> &'static str {
        match self.0.len() {
            0 | 1 => "",
            _ => {
                "; the shorter its period, the higher its priority (rate-monotonic), so that none \
                  waits for one that has more time"
            }
        }
    }
}

/// Real-time threads of others that may take its CPU, with what puts the first of them below it.
fn above(own: &ProgramThread, around: &ProgramSurroundings<'_>) -> KnobVerdict {
    let row = &ABOVE;
    let knob = format!("neighbours of {}", shown(&own.thread));
    let in_the_way = around.others.iter().filter(|(thread, cpus)| {
        !thread.is_kernel
            && thread.may_delay(&own.thread)
            && !cpus.intersection(&own.allowed).is_empty()
    });
    let in_the_way: Vec<&(RunningThread, CpuList)> = in_the_way.take(NEIGHBOURS_MAX).collect();
    if in_the_way.is_empty() {
        let found = "no other program has a thread of its priority or above on its CPUs".to_owned();
        return row.of(&knob, RuleVerdict::Good).found(found).done();
    }
    let names: Vec<String> = in_the_way
        .iter()
        .map(|(thread, _)| format!("{} {}", shown(thread), thread.policy_words()))
        .collect();
    let online = around.facts.cpu.online_cpus.value().cloned().unwrap_or_default();
    let elsewhere = online.difference(&own.allowed);
    // The kernel moves no thread of SCHED_DEADLINE, and lets none of SCHED_FIFO be above it.
    let given: Vec<&RunningThread> = in_the_way
        .iter()
        .map(|(thread, _)| thread)
        .filter(|thread| thread.policy != scheduler::DEADLINE)
        .collect();
    let lower = |thread: &RunningThread| {
        let policy = if thread.policy == scheduler::ROUND_ROBIN { "--rr" } else { "--fifo" };
        format!("sudo punctual sched set {policy} {} {}", own.thread.priority - 1, thread.tid)
    };
    let off = |tids: &str| format!("sudo punctual sched set --cpu {elsewhere} {tids}");
    let numbers: Vec<String> = given.iter().map(|thread| thread.tid.to_string()).collect();
    let numbers = numbers.join(" ");
    let (can_lower, can_move) =
        (own.thread.priority > 1 && !given.is_empty(), !elsewhere.is_empty() && !given.is_empty());
    let or = match can_lower && can_move {
        true => format!("; instead of lowering, off CPU {}: {}", own.allowed, off(&numbers)),
        false => String::new(),
    };
    let found = format!("at its priority or above, on its CPUs: {}{or}", names.join(", "));
    let judged = row.of(&knob, RuleVerdict::Improve).found(found);
    match (can_lower, can_move) {
        (true, _) => judged.run_all(given.into_iter().map(lower).collect()),
        (false, true) => judged.run(off(&numbers)),
        (false, false) => judged,
    }
    .done()
}

/// The most threads of others that a verdict names.
const NEIGHBOURS_MAX: usize = 4;

/// Judges that it stays on a CPU, and on one that is kept for it.
fn affinity(own: &ProgramThread, around: &ProgramSurroundings<'_>) -> KnobVerdict {
    let row = &AFFINITY;
    let knob = format!("CPUs of {}", shown(&own.thread));
    let isolated = around.facts.isolation.isolated();
    let tid = own.thread.tid;
    let best = isolated.iter().next().or_else(|| own.allowed.iter().next_back()).unwrap_or(0);
    let pin = format!("sudo punctual sched set --cpu {best} {tid}");
    let is_isolated = own.allowed.difference(&isolated).is_empty();
    match (own.allowed.len(), is_isolated, isolated.is_empty()) {
        (1, true, _) => {
            row.of(&knob, RuleVerdict::Good).found(format!("CPU {}, isolated", own.allowed))
        }
        (1, false, true) => row
            .of(&knob, RuleVerdict::Improve)
            .found(format!("CPU {}, on which every other thread may run too", own.allowed))
            .run(format!("punctual tune plan --cpus {}", own.allowed)),
        (1, false, false) => row
            .of(&knob, RuleVerdict::Improve)
            .found(format!("CPU {}, while CPU {isolated} is isolated", own.allowed))
            .run(pin),
        (many, ..) => row
            .of(&knob, RuleVerdict::Improve)
            .found(format!("may run on {many} CPUs ({}), and moves between them", own.allowed))
            .run(pin),
    }
    .done()
}

/// The other half of its core.
fn sibling(own: &ProgramThread, around: &ProgramSurroundings<'_>) -> Option<KnobVerdict> {
    let cpu = own.allowed.iter().next().filter(|_| own.allowed.len() == 1)?;
    let siblings = around.facts.cpu.topology.value()?.siblings(cpu);
    if siblings.is_empty() {
        return None;
    }
    let row = &SIBLING;
    let knob = format!("core of {}", shown(&own.thread));
    let shared = siblings.difference(&around.facts.isolation.isolated());
    let verdict = match shared.is_empty() {
        true => row
            .of(&knob, RuleVerdict::Good)
            .found(format!("CPU {siblings}, the other half of its core, is isolated")),
        false => row
            .of(&knob, RuleVerdict::Improve)
            .found(format!("CPU {shared} is the other half of its core, and anybody's"))
            .run(format!("punctual tune plan --cpus {cpu}")),
    };
    Some(verdict.done())
}

/// Interrupts that came on its CPU while it was watched.
fn arriving(own: &ProgramThread, around: &ProgramSurroundings<'_>) -> Option<KnobVerdict> {
    let cpu = own.allowed.iter().next().filter(|_| own.allowed.len() == 1)?;
    let table = around.settings.interrupts.value().filter(|table| table.watched)?;
    let row = &INTERRUPTS;
    let knob = format!("interrupts of {}", shown(&own.thread));
    let came = table.lines.iter().filter(|line| line.risen.contains(cpu));
    let names: Vec<String> =
        came.map(|line| format!("{} ({})", line.number, line.name.trim())).take(6).collect();
    let verdict = match names.is_empty() {
        true => row
            .of(&knob, RuleVerdict::Good)
            .found(format!("no device's came on CPU {cpu} meanwhile")),
        false => row
            .of(&knob, RuleVerdict::Improve)
            .found(format!("these came on CPU {cpu} meanwhile: {}", names.join(", ")))
            .run(format!("punctual tune plan --cpus {cpu}")),
    };
    Some(verdict.done())
}

/// Judges the slack of the timers of these ordinary threads, each of which has its own; `None`
/// where it may not be read.
fn slack(owner: &str, threads: &[&ProgramThread]) -> Option<KnobVerdict> {
    let most = threads.iter().filter_map(|own| own.slack_ns).max()?;
    let late: Vec<&&ProgramThread> =
        threads.iter().filter(|own| own.slack_ns > Some(SLACK_FINE_NS)).collect();
    let row = &SLACK;
    let knob = format!("timer slack of {owner}");
    let verdict = match late.as_slice() {
        [] => row.of(&knob, RuleVerdict::Good).found(format!("{most} ns")),
        late => {
            let found = match threads.len() {
                1 => format!("its timers may be {most} ns late on purpose"),
                count => format!(
                    "the timers of {} of {count} threads may be up to {most} ns late on purpose; \
                     none wakes steadily, so the change is for all of them",
                    late.len()
                ),
            };
            let file = |own: &&&ProgramThread| format!("/proc/{}/timerslack_ns", own.thread.tid);
            let files: Vec<String> = late.iter().map(file).collect();
            let command = format!("echo 1 | sudo tee {}", files.join(" "));
            row.of(&knob, RuleVerdict::Improve).found(found).run(command)
        }
    };
    Some(verdict.done())
}

/// A slack that is worth no change, ns.
const SLACK_FINE_NS: u64 = 1_000;

/// The CPU time that the control group of a process may use of each period, and the period, both in
/// µs; `None` for no limit.
fn quota(root: &Root, pid: i32) -> Option<(u64, u64)> {
    let Read::Text(groups) = root.read(&format!("/proc/{pid}/cgroup")) else { return None };
    let path = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    let mounts = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];
    let text =
        mounts.iter().find_map(|mount| match root.read(&format!("{mount}{path}/cpu.max")) {
            Read::Text(text) => Some(text),
            Read::Absent | Read::Unreadable { .. } => None,
        })?;
    let mut words = text.split_whitespace();
    Some((words.next()?.parse().ok()?, words.next()?.parse().ok()?))
}

/// RLIMIT_RTTIME of a process, µs (proc_pid_limits(5)).
fn timeout(root: &Root, pid: i32) -> Option<u64> {
    let Read::Text(limits) = root.read(&format!("/proc/{pid}/limits")) else { return None };
    let line = limits.lines().find_map(|line| line.strip_prefix("Max realtime timeout"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// The text of a verdict on one thing: id, reason, cost, source and usual gain.
struct Row {
    id: &'static str,
    why: &'static str,
    cost: &'static str,
    verified: &'static str,
    source: &'static str,
    gain: u8,
}

const POLICY: Row = Row {
    id: "program.policy",
    why: "a thread of SCHED_OTHER waits for its share of the CPU, whatever else runs",
    cost: "a real-time thread that does not sleep takes its CPU from all others",
    verified: "policy and priority in /proc/PID/task/TID/stat, voluntary_ctxt_switches in its \
               status at some moments",
    source: "sched(7)",
    gain: 9,
};

const INHERITED: Row = Row {
    id: "program.inherited",
    why: "a thread inherits policy and priority from the one that starts it unless that is \
          prevented (PTHREAD_EXPLICIT_SCHED, SCHED_RESET_ON_FORK): helpers then run beside the \
          loop as its equals",
    cost: "",
    verified: "policy and priority of all threads",
    source: "sched(7), pthread_attr_setinheritsched(3)",
    gain: 6,
};

const PRIORITY: Row = Row {
    id: "program.priority",
    why: "with threaded interrupts a thread at or below their priority (50) waits for every \
          one that may run on its CPU; one that waits for such a device belongs below it",
    cost: "a loop above an interrupt's thread delays that device",
    verified: "priorities of the threads irq/N-… that may run on its CPUs",
    source: "Documentation/core-api/real-time (Linux 6.17), sched(7)",
    gain: 6,
};

const ABOVE: Row = Row {
    id: "program.above",
    why: "a real-time thread of the same priority runs until it gives way, one above takes the \
          CPU",
    cost: "",
    verified: "policies, priorities and CPUs of all threads of the machine",
    source: "sched(7)",
    gain: 8,
};

const AFFINITY: Row = Row {
    id: "program.affinity",
    why: "a thread that moves leaves its caches behind, and one on a shared CPU waits for the \
          kernel's work there",
    cost: "a CPU that is kept for it is lost to others",
    verified: "Cpus_allowed_list, /sys/devices/system/cpu/isolated, cpuset.cpus.isolated",
    source: "sched_setaffinity(2), Documentation/admin-guide/kernel-parameters.txt (isolcpus)",
    gain: 7,
};

const SHARING: Row = Row {
    id: "program.sharing",
    why: "two loops on one CPU wait for each other",
    cost: "",
    verified: "Cpus_allowed_list of all its threads",
    source: "sched(7)",
    gain: 6,
};

const SIBLING: Row = Row {
    id: "program.sibling",
    why: "two hardware threads share the units and the caches of a core",
    cost: "half of a core's throughput",
    verified: "/sys/devices/system/cpu/cpuN/topology/thread_siblings_list",
    source: "Documentation/admin-guide/cputopology.rst",
    gain: 4,
};

const SLACK: Row = Row {
    id: "program.slack",
    why: "the kernel may wake an ordinary thread so much later, to put timers together",
    cost: "more wakes of the CPU",
    verified: "/proc/TID/timerslack_ns, of each thread its own",
    source: "prctl(2), PR_SET_TIMERSLACK",
    gain: 5,
};

const MEMORY: Row = Row {
    id: "program.memory",
    why: "memory that is not locked is read from the disk again where the kernel took it: \
          mlockall(MCL_CURRENT | MCL_FUTURE) at the start",
    cost: "memory that others cannot have",
    verified: "VmLck and VmRSS in /proc/PID/status",
    source: "mlockall(2)",
    gain: 5,
};

const FAULTS: Row = Row {
    id: "program.faults",
    why: "each is a visit to the kernel of a microsecond and more, one that reads from a disk \
          of milliseconds: touch stacks and heaps before the loop begins",
    cost: "",
    verified: "minor and major faults in /proc/PID/task/TID/stat, twice",
    source: "proc_pid_stat(5), mlockall(2)",
    gain: 5,
};

const THROTTLING: Row = Row {
    id: "program.throttling",
    why: "real-time threads may use 95 % of a CPU; what computes all the time is stopped for \
          the rest of each second",
    cost: "",
    verified: "its CPU time over the time that was watched",
    source: "Documentation/scheduler/sched-rt-group.rst, sched-deadline.rst beside it",
    gain: 8,
};

const QUOTA: Row = Row {
    id: "program.quota",
    why: "a control group that used up its time stands still until the next period begins; \
          real-time threads are not under it",
    cost: "",
    verified: "cpu.max of its control group",
    source: "Documentation/admin-guide/cgroup-v2.rst",
    gain: 8,
};

const TIMEOUT: Row = Row {
    id: "program.timeout",
    why: "the kernel ends a real-time thread that computes longer than this without a blocking \
          call",
    cost: "",
    verified: "Max realtime timeout in /proc/PID/limits",
    source: "getrlimit(2), RLIMIT_RTTIME",
    gain: 2,
};

const INTERRUPTS: Row = Row {
    id: "program.interrupts",
    why: "each interrupt takes the CPU for some microseconds, and its softirq for more",
    cost: "",
    verified: "counts in /proc/interrupts, twice",
    source: "Documentation/core-api/irq/irq-affinity.rst",
    gain: 5,
};

/// A verdict in the making.
struct Judged<'a> {
    row: &'a Row,
    knob: String,
    verdict: RuleVerdict,
    found: String,
    changes: Vec<KnobChange>,
}

impl Row {
    fn of(&self, knob: &str, verdict: RuleVerdict) -> Judged<'_> {
        let (knob, found) = (knob.to_owned(), String::new());
        Judged { row: self, knob, verdict, found, changes: Vec::new() }
    }
}

impl Judged<'_> {
    fn found(self, found: String) -> Self {
        Self { found, ..self }
    }

    /// With the command that changes it.
    fn run(mut self, command: String) -> Self {
        self.changes.push(KnobChange::Run { command });
        self
    }

    /// With the commands that change it, all of them.
    fn run_all(self, commands: Vec<String>) -> Self {
        commands.into_iter().fold(self, Self::run)
    }

    fn done(self) -> KnobVerdict {
        let row = self.row;
        KnobVerdict {
            id: row.id.to_owned(),
            knob: self.knob,
            verdict: self.verdict,
            found: self.found,
            origin: row.verified.to_owned(),
            why: row.why.to_owned(),
            cost: row.cost.to_owned(),
            since: None,
            until: None,
            verified: row.verified.to_owned(),
            source: row.source.to_owned(),
            gain: row.gain,
            changes: self.changes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Tree;

    fn thread(tid: i32, name: &str, policy: u32, priority: u32) -> RunningThread {
        RunningThread {
            pid: 10,
            tid,
            name: name.to_owned(),
            is_kernel: false,
            is_runnable: false,
            policy,
            priority,
            last_cpu: 1,
            faults: 0,
            started: 0,
        }
    }

    fn own(thread: RunningThread, cpus: &str) -> ProgramThread {
        let allowed = CpuList::parse(cpus, 63).expect("a list");
        let (times, faults) = (ThreadTimes::default(), thread.faults);
        let wakes = ThreadWakes::default();
        ProgramThread { thread, allowed, slack_ns: Some(50_000), times, faults, wakes }
    }

    /// A thread with its voluntary switches at each moment.
    fn waking(own: ProgramThread, counts: [u64; 5]) -> ProgramThread {
        ProgramThread { wakes: ThreadWakes { counts: counts.to_vec() }, ..own }
    }

    /// Where a loop of a kilohertz was at each moment.
    const KILOHERTZ: [u64; 5] = [9_000, 9_250, 9_500, 9_751, 10_000];
    /// Where a thread that sleeps all the time was at each moment.
    const ASLEEP: [u64; 5] = [7; 5];
    /// Where a thread was that people make work for at each moment.
    const UNSTEADY: [u64; 5] = [7, 7, 90, 91, 140];

    fn program(threads: Vec<ProgramThread>) -> RunningProgram {
        RunningProgram {
            pid: 10,
            name: "plc".to_owned(),
            threads,
            locked_kib: Some(90_000),
            resident_kib: Some(100_000),
            quota_us: None,
            timeout_us: None,
            watched: Some(Duration::from_secs(1)),
        }
    }

    /// A machine of four CPUs, of which the third is isolated, with what a test adds.
    fn judged(program: &RunningProgram, others: &[(RunningThread, CpuList)]) -> Vec<KnobVerdict> {
        let tree = Tree::of(&[
            ("/sys/devices/system/cpu/isolated", "2\n"),
            ("/sys/devices/system/cpu/possible", "0-3\n"),
            ("/sys/devices/system/cpu/present", "0-3\n"),
            ("/sys/devices/system/cpu/online", "0-3\n"),
            ("/proc/sys/kernel/sched_rt_runtime_us", "950000\n"),
            ("/proc/sys/kernel/sched_rt_period_us", "1000000\n"),
        ]);
        let root = tree.root();
        let (facts, settings) = (MachineFacts::collect(&root), KernelSettings::collect(&root));
        let around = ProgramSurroundings { facts: &facts, settings: &settings, others };
        program.judge(&around)
    }

    fn found<'v>(verdicts: &'v [KnobVerdict], id: &str) -> (&'v str, &'v str) {
        let of_rule = verdicts.iter().find(|verdict| verdict.id == id);
        let verdict = of_rule.unwrap_or_else(|| panic!("{id}: {verdicts:?}"));
        (verdict.verdict.word(), &verdict.found)
    }

    #[test]
    fn a_loop_that_has_all_it_needs_is_good() {
        let threads =
            vec![own(thread(10, "plc", 0, 0), "0-1"), own(thread(11, "loop", 1, 80), "2")];
        let verdicts = judged(&program(threads), &[]);
        let open: Vec<_> = verdicts.iter().filter(|verdict| verdict.verdict.is_open()).collect();
        assert!(open.is_empty(), "{open:?}");
        assert_eq!(found(&verdicts, "program.affinity"), ("good", "CPU 2, isolated"));
    }

    #[test]
    fn each_thing_that_people_found_by_hand_is_found() {
        let mut busy_loop = own(thread(11, "loop", 1, 49), "0-3");
        busy_loop.times.run_ns = 970_000_000;
        busy_loop.faults = 12;
        let threads = vec![own(thread(10, "plc", 1, 49), "0-3"), busy_loop];
        let mut plc = program(threads);
        (plc.locked_kib, plc.quota_us, plc.timeout_us) =
            (Some(0), Some((20_000, 100_000)), Some(9));
        let everywhere = || CpuList::parse("0-3", 63).expect("a list");
        let interrupt = RunningThread { is_kernel: true, ..thread(3, "irq/24-eth0", 1, 50) };
        let others = [(interrupt, everywhere()), (thread(70, "hog", 1, 60), everywhere())];
        let verdicts = judged(&plc, &others);
        for (id, verdict, words) in [
            ("program.inherited", "improve", "all 2 threads have SCHED_FIFO 49"),
            ("program.priority", "improve", "not above irq/24-eth0 (50)"),
            ("program.above", "improve", "hog (70) SCHED_FIFO 60"),
            ("program.affinity", "improve", "may run on 4 CPUs (0-3)"),
            ("program.memory", "improve", "none of 97.7 MiB is locked"),
            ("program.quota", "improve", "20000 µs of each 100000 µs"),
            ("program.timeout", "improve", "9 µs"),
        ] {
            let (is, text) = found(&verdicts, id);
            assert!(is == verdict && text.contains(words), "{id}: {is}: {text}");
        }
        let busy = verdicts.iter().find(|verdict| verdict.knob == "CPU use of loop (11)");
        assert!(busy.is_some_and(|busy| busy.found.starts_with("97 % of a CPU: above 950000")));
        assert_eq!(verdicts[0].verdict, RuleVerdict::Conflict, "the most urgent first");
        let faults = verdicts.iter().find(|verdict| verdict.knob == "page faults of loop (11)");
        assert!(faults.is_some_and(|faults| faults.found == "12 in 1.0 s"));
        let pinned = verdicts.iter().find(|verdict| verdict.id == "program.affinity");
        let command = "sudo punctual sched set --cpu 2 10".to_owned();
        assert_eq!(pinned.expect("found").changes, [KnobChange::Run { command }]);
    }

    #[test]
    fn an_ordinary_program_is_judged_by_its_policy_and_its_slack() {
        let verdicts = judged(&program(vec![own(thread(10, "loop.py", 0, 0), "0-3")]), &[]);
        assert!(found(&verdicts, "program.policy").1.starts_with("its only thread"));
        assert_eq!(found(&verdicts, "program.slack").0, "improve");
        let top = judged(&program(vec![own(thread(10, "loop", 1, 99), "2")]), &[]);
        assert_eq!(found(&top, "program.priority").0, "conflict");
        let two = || own(thread(11, "a", 1, 50), "2");
        let shared = judged(&program(vec![two(), own(thread(12, "b", 1, 50), "2")]), &[]);
        assert!(found(&shared, "program.sharing").1.contains("CPU 2 is also that of b (12)"));
    }

    fn commands(verdict: &KnobVerdict) -> Vec<String> {
        let command = |change: &KnobChange| match change {
            KnobChange::Run { command } => command.clone(),
            other => panic!("{other:?}"),
        };
        verdict.changes.iter().map(command).collect()
    }

    /// The verdict on the policies, what was found, and the commands.
    fn policies(threads: Vec<ProgramThread>) -> (&'static str, String, String) {
        let verdicts = judged(&program(threads), &[]);
        let policy = verdicts.iter().find(|verdict| verdict.id == "program.policy");
        let policy = policy.expect("judged");
        (policy.verdict.word(), policy.found.clone(), commands(policy).join("; "))
    }

    #[test]
    fn the_thread_that_wakes_steadily_is_the_one_to_set() {
        let main = || waking(own(thread(10, "jackd", 0, 0), "0-3"), ASLEEP);
        let helper = || waking(own(thread(11, "gui", 0, 0), "0-3"), UNSTEADY);
        let ordinary = |tid| waking(own(thread(tid, "loop", 0, 0), "0-3"), KILOHERTZ);
        let (verdict, words, command) = policies(vec![main(), helper(), ordinary(12)]);
        assert_eq!(
            (verdict, command.as_str()),
            ("improve", "sudo punctual sched set --fifo 80 12")
        );
        assert!(words.ends_with("loops do, loop (12) wakes 1000 times a second"), "{words}");
        let (_, words, several) = policies(vec![main(), ordinary(12), ordinary(13)]);
        assert_eq!(several, "sudo punctual sched set --fifo 80 12 13");
        assert!(!words.contains("rate-monotonic"), "{words}");
        // Nothing points to one of them: all are set.
        let (_, words, command) = policies(vec![main(), helper()]);
        assert_eq!(command, "sudo punctual sched set --fifo 80 --threads 10");
        assert!(words.contains("which has the loop is not known"), "{words}");
        assert_eq!(policies(vec![main()]).2, "sudo punctual sched set --fifo 80 10");
    }

    /// Where a loop of twenty kilohertz was at each moment, and one of a hundred hertz.
    const BASE: [u64; 5] = [0, 5_000, 10_000, 15_001, 20_000];
    const MESSAGES: [u64; 5] = [3, 28, 53, 78, 103];

    #[test]
    fn the_shorter_a_period_the_higher_the_priority() {
        let waking = |tid, policy, priority, counts| {
            waking(own(thread(tid, "rtapi_app", policy, priority), "2"), counts)
        };
        let three = |policy, priority| {
            let counts = [(10, UNSTEADY), (12, MESSAGES), (13, BASE), (14, KILOHERTZ)];
            program(counts.map(|(tid, counts)| waking(tid, policy, priority, counts)).to_vec())
        };
        let (_, words, command) = policies(three(0, 0).threads);
        assert_eq!(
            command,
            "sudo punctual sched set --fifo 80 13; sudo punctual sched set --fifo 79 14; sudo \
             punctual sched set --fifo 78 12"
        );
        assert!(words.contains("shorter its period, the higher its priority"), "{words}");
        // Loops that are moved above the threads of interrupts keep this order.
        let interrupt = RunningThread { is_kernel: true, ..thread(3, "irq/24-eth0", 1, 50) };
        let others = [(interrupt, CpuList::single(2))];
        let verdicts = judged(&three(1, 40), &others);
        let set = verdicts.iter().filter(|verdict| verdict.id == "program.priority");
        let mut set: Vec<String> = set.flat_map(commands).collect();
        set.sort();
        let command = |(priority, tid)| format!("sudo punctual sched set --fifo {priority} {tid}");
        assert_eq!(set, [(78, 12), (79, 14), (80, 10), (80, 13)].map(command));
    }

    #[test]
    fn each_thread_that_wakes_steadily_has_its_own_slack() {
        let with = |tid, counts, slack_ns| {
            let own = waking(own(thread(tid, "rtapi_app", 0, 0), "0-3"), counts);
            ProgramThread { slack_ns: Some(slack_ns), ..own }
        };
        let slacks = |threads| {
            let verdicts = judged(&program(threads), &[]);
            let slacks = verdicts.iter().filter(|verdict| verdict.id == "program.slack");
            slacks.map(|slack| (slack.knob.clone(), commands(slack))).collect::<Vec<_>>()
        };
        // That of the main thread is 1 already, which helps no loop.
        let main = || with(10, ASLEEP, 1);
        let found = slacks(vec![main(), with(12, BASE, 50_000), with(13, KILOHERTZ, 1)]);
        let command = |files: &str| vec![format!("echo 1 | sudo tee {files}")];
        assert_eq!(
            found,
            [
                ("timer slack of rtapi_app (12)".to_owned(), command("/proc/12/timerslack_ns")),
                ("timer slack of rtapi_app (13)".to_owned(), Vec::new()),
            ]
        );
        // Nothing points to one of them.
        let found = slacks(vec![main(), with(12, UNSTEADY, 50_000), with(13, ASLEEP, 50_000)]);
        let files = "/proc/12/timerslack_ns /proc/13/timerslack_ns";
        assert_eq!(found, [("timer slack of plc".to_owned(), command(files))]);
        // A loop with a real-time policy has none.
        let loop_of = waking(own(thread(14, "loop", 1, 80), "2"), KILOHERTZ);
        assert_eq!(slacks(vec![loop_of, with(12, BASE, 50_000)]), []);
    }

    #[test]
    fn a_thread_above_has_the_command_that_puts_it_below() {
        let plain = |priority| program(vec![own(thread(10, "plain", 1, priority), "1")]);
        let hog = |policy| (thread(70, "hog", policy, 95), CpuList::single(1));
        let above = |priority, policy| {
            let verdicts = judged(&plain(priority), &[hog(policy)]);
            let above = verdicts.into_iter().find(|verdict| verdict.id == "program.above");
            let above = above.expect("judged");
            (above.found.clone(), commands(&above))
        };
        let off = "sudo punctual sched set --cpu 0,2-3 70";
        let (found, change) = above(80, 1);
        assert_eq!(change, ["sudo punctual sched set --fifo 79 70"]);
        assert!(found.ends_with(&format!("off CPU 1: {off}")), "{found}");
        assert_eq!(above(80, 2).1, ["sudo punctual sched set --rr 79 70"]);
        // Nothing is below the least priority.
        assert_eq!(above(1, 1).1, [off]);
        // What the kernel does not move, and nothing is above.
        assert_eq!(above(80, 6).1, [""; 0]);
        // Before SCHED_DEADLINE only others of it run: no thread of SCHED_FIFO, no interrupt's.
        let loop_of = || program(vec![waking(own(thread(10, "loop", 6, 0), "1"), KILOHERTZ)]);
        let interrupt = (thread(71, "irq/9-acpi", 1, 50), CpuList::single(1));
        let verdict = |id: &str, neighbour: (RunningThread, CpuList)| {
            let mut verdicts = judged(&loop_of(), &[neighbour]).into_iter();
            verdicts.find(|verdict| verdict.id == id).expect("judged").verdict
        };
        assert_eq!(verdict("program.above", hog(1)), RuleVerdict::Good);
        assert_eq!(verdict("program.above", hog(6)), RuleVerdict::Improve);
        assert_eq!(verdict("program.priority", interrupt), RuleVerdict::Good);
    }

    #[test]
    fn a_policy_of_the_thread_that_sleeps_is_not_good() {
        let set = |counts| waking(own(thread(10, "jackd", 1, 80), "2"), counts);
        let ordinary = || waking(own(thread(12, "loop", 0, 0), "0-3"), KILOHERTZ);
        let (verdict, words, command) = policies(vec![set(ASLEEP), ordinary()]);
        assert_eq!(
            (verdict, command.as_str()),
            ("improve", "sudo punctual sched set --fifo 80 12")
        );
        assert!(words.starts_with("jackd (10) SCHED_FIFO 80: asleep"), "{words}");
        assert!(words.contains("without a real-time policy loop (12) wakes 1000"), "{words}");
        // One that wakes for events may be the loop or not.
        let (verdict, words, command) = policies(vec![set(UNSTEADY), ordinary()]);
        assert_eq!((verdict, command.as_str()), ("unknown", ""));
        assert!(words.ends_with("if the loop is there: sudo punctual sched set --fifo 80 12"));
        // One that never sleeps is at work.
        let mut polling = set(ASLEEP);
        polling.times.run_ns = 900_000_000;
        assert_eq!(policies(vec![polling, ordinary()]).0, "unknown");
        assert_eq!(policies(vec![set(KILOHERTZ), ordinary()]).0, "good");
        let idle = waking(own(thread(12, "gui", 0, 0), "0-3"), UNSTEADY);
        assert_eq!(policies(vec![set(ASLEEP), idle]).0, "good");
    }

    #[test]
    fn a_loop_is_not_proposed_to_lose_its_policy() {
        let alike = |tid, counts| waking(own(thread(tid, "jackd", 1, 80), "2"), counts);
        let command = |threads| {
            let verdicts = judged(&program(threads), &[]);
            let inherited = verdicts.into_iter().find(|verdict| verdict.id == "program.inherited");
            inherited.expect("judged").changes
        };
        let helpers = "sudo punctual sched set --other 10 11".to_owned();
        let threads = vec![alike(10, ASLEEP), alike(11, UNSTEADY), alike(12, KILOHERTZ)];
        assert_eq!(command(threads), [KnobChange::Run { command: helpers }]);
        assert_eq!(command(vec![alike(10, ASLEEP), alike(11, UNSTEADY)]), []);
        assert_eq!(command(vec![alike(10, KILOHERTZ), alike(11, KILOHERTZ)]), []);
    }

    #[test]
    fn wakes_are_steady_where_all_parts_have_as_many() {
        let steady = |counts: &[u64]| ThreadWakes { counts: counts.to_vec() }.are_steady();
        assert!(steady(&KILOHERTZ) && steady(&[0, 12, 25, 37, 50]));
        for unsteady in [&ASLEEP[..], &UNSTEADY, &[0, 2, 4, 6, 8], &[0, 250, 500], &[]] {
            assert!(!steady(unsteady), "{unsteady:?}");
        }
        assert_eq!(ThreadWakes { counts: KILOHERTZ.to_vec() }.total(), Some(1_000));
        assert_eq!(ThreadWakes { counts: vec![3] }.total(), None);
    }

    #[test]
    fn this_process_can_be_watched() {
        let root = Root::live();
        let pid = std::process::id().cast_signed();
        let first = RunningProgram::read(&root, pid).expect("it runs");
        assert!(first.resident_kib > Some(0) && !first.cpus().is_empty());
        // The test sleeps between the moments, on a thread of its own; not where a busy machine
        // lets it run only after each of them.
        let sleeps = |own: &ProgramThread| own.wakes.total() >= Some(PARTS as u64);
        let slept = [4, 40, 400, 4_000].into_iter().map(Duration::from_millis).any(|time| {
            let watched = RunningProgram::watch(&root, pid, time).expect("it runs");
            assert!(watched.watched >= Some(time));
            watched.threads.iter().any(sleeps)
        });
        assert!(slept, "no thread of this process slept");
        assert!(RunningProgram::watch(&root, i32::MAX, Duration::ZERO).is_none());
    }
}

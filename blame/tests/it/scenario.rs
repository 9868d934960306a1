//! A small language for scenarios: who runs, what fires, as events of a kernel.
//!
//! It keeps what a kernel keeps: who is current on a CPU and which interrupts nest, so that a
//! scenario is what could be recorded.

use punctual_blame::blame::Blame;
use punctual_blame::cause::CauseKind;
use punctual_blame::config::{
    BlameConfig, CapturedMachine, FollowedThreads, KernelFiles, LateThreshold, Platform,
};
use punctual_blame::outcome::BlameOutcome;
use punctual_blame::symbols::SymbolMap;
use punctual_blame::table::CauseRow;
use punctual_trace::event::{
    CodeAddress, ContextFlags, ShortName, TaskName, TraceEvent, TraceKind, Vector,
};

pub(crate) const US: u64 = 1_000;
pub(crate) const MS: u64 = 1_000_000;

pub(crate) fn task(name: &str, tid: u32, kernel_priority: i32) -> TaskName {
    TaskName { tid, name: ShortName::new(name.as_bytes()), kernel_priority }
}

/// The followed thread: FIFO 90.
pub(crate) fn servo() -> TaskName {
    task("servo", 100, 9)
}

pub(crate) fn idle() -> TaskName {
    task("swapper/0", 0, 120)
}

/// PREEMPT_RT's thread that serves timers on CPU 0: FIFO 1.
pub(crate) fn ktimers() -> TaskName {
    task("ktimers/0", 20, 98)
}

/// FIFO 50: above that one, below the servo.
pub(crate) fn between() -> TaskName {
    task("between", 203, 49)
}

/// FIFO 97.
pub(crate) fn hog() -> TaskName {
    task("hog", 200, 2)
}

/// FIFO 90.
pub(crate) fn equal() -> TaskName {
    task("equal", 201, 9)
}

/// Nice 0.
pub(crate) fn cat() -> TaskName {
    task("cat", 202, 120)
}

pub(crate) fn sender() -> TaskName {
    task("mprotect", 300, 120)
}

pub(crate) const TIMER: u64 = 0xffff_8880_0000_1000;
pub(crate) const WAKEUP: CodeAddress = 0x9000;
pub(crate) const TICK: CodeAddress = 0xa000;
pub(crate) const UNTHROTTLE: CodeAddress = 0xb000;
pub(crate) const DEADLINE: CodeAddress = 0xc000;
pub(crate) const TIMERFD: CodeAddress = 0xd000;
pub(crate) const APIC: CodeAddress = 0x4000;
pub(crate) const UNLOCK: CodeAddress = 0x1000;
pub(crate) const CONSOLE: CodeAddress = 0x2000;
pub(crate) const CLOSE: CodeAddress = 0x3000;

pub(crate) fn symbols() -> SymbolMap {
    let names = [
        (WAKEUP, "hrtimer_wakeup"),
        (TICK, "tick_nohz_handler"),
        (UNTHROTTLE, "sched_rt_period_timer"),
        (DEADLINE, "dl_task_timer"),
        (TIMERFD, "timerfd_tmrproc"),
        (APIC, "asm_sysvec_apic_timer_interrupt"),
        (UNLOCK, "_raw_spin_unlock_irqrestore"),
        (CONSOLE, "console_flush_all"),
        (CLOSE, "__x64_sys_close"),
        (0x5000, "smp_call_function_many_cond"),
    ];
    SymbolMap::new(names.map(|(address, name)| (address, name.to_owned())))
}

pub(crate) fn config() -> BlameConfig {
    BlameConfig {
        follow: FollowedThreads::Threads(vec![servo().tid]),
        late: LateThreshold::Above(50 * US),
        machine: CapturedMachine {
            platform: Platform::VirtualMachine,
            files: KernelFiles::new(["/proc/irq/31/smp_affinity_list".to_owned()]),
            ..CapturedMachine::default()
        },
        symbols: symbols(),
        ..BlameConfig::default()
    }
}

/// As [`config`], of another machine.
pub(crate) fn config_of(change: impl FnOnce(&mut CapturedMachine)) -> BlameConfig {
    let mut config = config();
    change(&mut config.machine);
    config
}

/// Events, and what the kernel would know.
#[derive(Debug, Clone)]
pub(crate) struct Scenario {
    pub(crate) events: Vec<TraceEvent>,
    current: Vec<TaskName>,
    depth: Vec<u32>,
    /// Of each CPU, true where the current thread is to make way.
    pub(crate) resched: Vec<bool>,
    /// True while soft interrupts are served, in whose context events are then.
    pub(crate) is_soft: bool,
    /// The next release.
    pub(crate) release: u64,
}

pub(crate) const PERIOD: u64 = 2 * MS;

impl Scenario {
    /// The servo runs on CPU 0, CPU 1 idles.
    pub(crate) fn new() -> Self {
        Self::on([servo(), idle()])
    }

    /// These run on CPU 0 and 1.
    pub(crate) fn on(current: [TaskName; 2]) -> Self {
        Self {
            events: Vec::new(),
            current: current.into(),
            depth: vec![0; 2],
            resched: vec![false; 2],
            is_soft: false,
            release: 10 * MS,
        }
    }

    pub(crate) fn event(&mut self, at_ns: u64, cpu: usize, kind: TraceKind) -> &mut Self {
        self.with_chain(at_ns, cpu, kind, &[])
    }

    fn with_chain(&mut self, at_ns: u64, cpu: usize, kind: TraceKind, chain: &[u64]) -> &mut Self {
        let mut flags = match self.depth[cpu] {
            _ if self.is_soft => 0x10,
            0 => 0,
            _ => 0x08,
        };
        flags |= if self.resched[cpu] { 0x04 } else { 0 };
        // An entry is recorded within what it enters.
        if matches!(
            kind,
            TraceKind::VectorEntry(_)
                | TraceKind::IrqEntry { .. }
                | TraceKind::SoftirqEntry(_)
                | TraceKind::CallEntry { .. }
        ) {
            flags |= 0x08;
            self.depth[cpu] += 1;
        }
        if matches!(
            kind,
            TraceKind::VectorExit(_)
                | TraceKind::IrqExit { .. }
                | TraceKind::SoftirqExit(_)
                | TraceKind::CallExit { .. }
        ) {
            self.depth[cpu] = self.depth[cpu].saturating_sub(1);
        }
        let tid = self.current[cpu].tid;
        let context = ContextFlags { flags, preempt_depth: 0 };
        let cpu = cpu as u32;
        self.events.push(TraceEvent { at_ns, cpu, tid, context, kind, chain: chain.into() });
        self
    }

    /// Interrupts were off at the last event.
    pub(crate) fn interrupts_off(&mut self) -> &mut Self {
        self.events.last_mut().expect("an event").context.flags |= 0x01;
        self
    }

    /// The thread that runs becomes this one, without an event: it changes its policy, or execs.
    pub(crate) fn turns_into(&mut self, cpu: usize, task: TaskName) -> &mut Self {
        self.current[cpu] = task;
        self
    }

    pub(crate) fn switch(
        &mut self,
        at_ns: u64,
        cpu: usize,
        state: u64,
        next: TaskName,
    ) -> &mut Self {
        let previous = self.current[cpu];
        let kind = TraceKind::Switch { previous, previous_state: state, next };
        self.event(at_ns, cpu, kind);
        self.current[cpu] = next;
        (self.depth[cpu], self.resched[cpu]) = (0, false);
        self
    }

    /// The thread that runs is lent a priority.
    pub(crate) fn lend(&mut self, at_ns: u64, cpu: usize, to_kernel_priority: i32) -> &mut Self {
        let task = self.current[cpu];
        self.event(at_ns, cpu, TraceKind::PriorityLent { task, to_kernel_priority });
        self.current[cpu].kernel_priority = to_kernel_priority;
        self
    }

    pub(crate) fn arm(&mut self, at_ns: u64, cpu: usize, expires_ns: u64) -> &mut Self {
        self.arm_with_slack(at_ns, cpu, expires_ns, 0)
    }

    pub(crate) fn arm_with_slack(
        &mut self,
        at_ns: u64,
        cpu: usize,
        soft_ns: u64,
        slack_ns: u64,
    ) -> &mut Self {
        let kind = TraceKind::TimerStart {
            timer: TIMER,
            function: WAKEUP,
            expires_ns: (soft_ns + slack_ns) as i64,
            soft_expires_ns: soft_ns as i64,
        };
        self.event(at_ns, cpu, kind)
    }

    pub(crate) fn timer_entry(&mut self, at_ns: u64, cpu: usize) -> &mut Self {
        self.event(at_ns, cpu, TraceKind::VectorEntry(Vector::LocalTimer))
    }

    pub(crate) fn timer_entry_with(&mut self, at_ns: u64, cpu: usize, chain: &[u64]) -> &mut Self {
        self.with_chain(at_ns, cpu, TraceKind::VectorEntry(Vector::LocalTimer), chain)
    }

    pub(crate) fn timer_exit(&mut self, at_ns: u64, cpu: usize) -> &mut Self {
        self.event(at_ns, cpu, TraceKind::VectorExit(Vector::LocalTimer))
    }

    pub(crate) fn expire(
        &mut self,
        at_ns: u64,
        cpu: usize,
        timer: u64,
        function: u64,
    ) -> &mut Self {
        let kind = TraceKind::TimerExpireEntry { timer, function, now_ns: at_ns as i64 - 300 };
        self.event(at_ns, cpu, kind)
    }

    pub(crate) fn wake(
        &mut self,
        at_ns: u64,
        cpu: usize,
        task: TaskName,
        target: u32,
    ) -> &mut Self {
        self.event(at_ns, cpu, TraceKind::Waking { task, target_cpu: target });
        if let Some(current) = self.current.get(target as usize)
            && (current.tid == 0 || current.kernel_priority > task.kernel_priority)
        {
            self.resched[target as usize] = true;
        }
        self
    }

    /// The servo programs its timer and sleeps; another thread runs.
    pub(crate) fn sleep(&mut self, next: TaskName) -> u64 {
        let release = self.release;
        self.release += PERIOD;
        let last = self.events.iter().map(|event| event.at_ns).max().unwrap_or(release - MS);
        let at = last + 100 * US;
        assert!(at < release - 850 * US, "the cycle before took too long");
        self.arm(at, 0, release);
        self.switch(at + 2 * US, 0, 1, next);
        release
    }

    /// The timer's interrupt comes and wakes the servo: 2 µs, inside it afterwards.
    pub(crate) fn fire(&mut self, at_ns: u64) -> &mut Self {
        self.timer_entry(at_ns, 0);
        self.expire(at_ns + 500, 0, TIMER, WAKEUP);
        self.wake(at_ns + 1_000, 0, servo(), 0)
    }

    /// The rest of the interrupt and the switch to the servo: 8 µs.
    pub(crate) fn start(&mut self, at_ns: u64) -> &mut Self {
        self.timer_exit(at_ns + 7_000, 0);
        self.switch(at_ns + 8_000, 0, 0, servo())
    }

    /// The thread that has CPU 0 serves the servo's timer.
    pub(crate) fn serve(&mut self, at_ns: u64) -> &mut Self {
        self.event(at_ns, 0, TraceKind::SoftirqEntry(8)).go_on_serving(at_ns + US)
    }

    /// As [`Self::serve`], behind the entry of its soft interrupt.
    pub(crate) fn go_on_serving(&mut self, at_ns: u64) -> &mut Self {
        self.expire(at_ns, 0, TIMER, TIMERFD).wake(at_ns + US, 0, servo(), 0);
        self.event(at_ns + 2 * US, 0, TraceKind::TimerExpireExit { timer: TIMER });
        self.event(at_ns + 3 * US, 0, TraceKind::SoftirqExit(8));
        self
    }

    /// The servo's timer on CPU 0 wakes it on CPU 1, where `rest` happens before it runs that late;
    /// it goes home for the next cycle.
    pub(crate) fn wake_elsewhere(&mut self, late_ns: u64, rest: impl Fn(&mut Self, u64)) {
        let release = self.sleep(idle());
        self.fire(release + 5 * US);
        let moved = TraceKind::Migrate { task: servo(), from_cpu: 0, to_cpu: 1 };
        self.event(release + 8 * US, 0, moved).timer_exit(release + 10 * US, 0);
        rest(self, release);
        let run = release + late_ns;
        self.switch(run, 1, 0, servo()).switch(run + 50 * US, 1, 0, idle());
        let home = TraceKind::Migrate { task: servo(), from_cpu: 1, to_cpu: 0 };
        self.event(run + 51 * US, 1, home).switch(run + 52 * US, 0, 1, servo());
        self.release += late_ns / MS * PERIOD;
    }

    /// A cycle that is on time: 5 µs until the interrupt, 14 µs in all.
    pub(crate) fn normal(&mut self) -> &mut Self {
        let release = self.sleep(idle());
        self.fire(release + 5 * US).start(release + 6 * US)
    }

    pub(crate) fn normals(&mut self, count: usize) -> &mut Self {
        (0..count).for_each(|_| {
            self.normal();
        });
        self
    }

    /// Events in the order of time, as a reader merges them.
    pub(crate) fn sorted(&self) -> Vec<TraceEvent> {
        let mut events = self.events.clone();
        events.sort_by_key(|event| event.at_ns);
        events
    }

    pub(crate) fn run(&self, config: BlameConfig) -> BlameOutcome {
        run(&self.sorted(), config)
    }
}

/// As a kernel books CPU time: of each thread that is preempted or sleeps since it was switched in,
/// right before the switch, and at each timer interrupt.
pub(crate) fn with_cpu_time(events: Vec<TraceEvent>) -> Vec<TraceEvent> {
    let mut booked_ns = [0; 2];
    let mut with = Vec::new();
    for event in events {
        let since_ns = &mut booked_ns[event.cpu as usize];
        let is_tick = matches!(event.kind, TraceKind::VectorEntry(Vector::LocalTimer));
        let is_switch = matches!(event.kind, TraceKind::Switch { .. });
        let book = |at_ns: u64| TraceEvent {
            at_ns,
            kind: TraceKind::RunTime { tid: event.tid, took_ns: at_ns.saturating_sub(*since_ns) },
            ..event.clone()
        };
        let before = (event.tid != 0 && is_switch).then(|| book(event.at_ns - 500));
        let behind = (event.tid != 0 && is_tick).then(|| book(event.at_ns + 200));
        if is_switch || is_tick {
            *since_ns = event.at_ns;
        }
        with.extend(before);
        with.push(event);
        with.extend(behind);
    }
    with.sort_by_key(|event| event.at_ns);
    with
}

/// The outcome of events; every kept wake must be an exact partition.
pub(crate) fn run(events: &[TraceEvent], config: BlameConfig) -> BlameOutcome {
    let mut blame = Blame::new(config);
    events.iter().for_each(|event| blame.push(event));
    let outcome = blame.finish();
    assert_exact(&outcome);
    outcome
}

pub(crate) fn assert_exact(outcome: &BlameOutcome) {
    for wake in outcome.worst.iter().chain(&outcome.sample) {
        let mut edge = wake.release_ns;
        for part in &wake.parts {
            assert_eq!(part.from_ns, edge, "{wake:?}");
            assert!(part.to_ns > part.from_ns, "{wake:?}");
            edge = part.to_ns;
        }
        assert_eq!(edge, wake.ran_ns, "{wake:?}");
    }
    for table in outcome.threads.iter().map(|thread| &thread.table).chain([&outcome.table]) {
        let time: u64 = table.rows.iter().map(|row| row.time_ns).sum();
        assert_eq!(time, table.lateness_ns);
        let main: u64 = table.rows.iter().map(|row| row.wakes).sum();
        assert_eq!(main, table.late, "{table:?}");
    }
}

/// Forty cycles on time, then twelve times the disturbed one with one on time behind it.
pub(crate) fn disturbed(disturb: impl Fn(&mut Scenario)) -> BlameOutcome {
    disturbed_on(config(), disturb)
}

pub(crate) fn disturbed_on(config: BlameConfig, disturb: impl Fn(&mut Scenario)) -> BlameOutcome {
    let mut scenario = Scenario::new();
    scenario.normals(40);
    for _ in 0..12 {
        disturb(&mut scenario);
        scenario.normal();
    }
    scenario.run(config)
}

/// The first row; all twelve late wakes must be its.
#[track_caller]
pub(crate) fn only_cause(outcome: &BlameOutcome, kind: CauseKind) -> &CauseRow {
    let row = &outcome.table.rows[0];
    assert_eq!(row.cause.kind(), kind, "{}\n{:#?}", outcome.table.sentence, outcome.worst.first());
    assert_eq!((row.wakes, outcome.table.late), (12, 12), "{}", outcome.table.sentence);
    row
}

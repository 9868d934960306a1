//! The rules that book a stretch to a cause: one table, the first that fits counts.
//!
//! Each has a name, which results carry, and a certainty, which is that of its kind of evidence
//! (docs/blame.md, "What it does"). What is normal was taken off before: rules see what is beyond
//! it.

use punctual_trace::event::{CodeAddress, TaskName};

use crate::cause::{Certainty, LateCause, RuleId, Unexplained};
use crate::frequency::SlowClock;
use crate::machine::CapturedMachine;
use crate::part::WakePart;
use crate::past::{Piece, WakePhase};
use crate::path::{
    Migration, WakePath, awaits_own_ipi, ipi_beside, is_beside_ipi, own_ipi as own_ipi_of,
};
use crate::release::ReleaseAnchor;
use crate::stall::STALL_NS;
use crate::symbols::{Interrupted, KernelPlace, SymbolMap};
use crate::timeline::{Activity, TaskMode};
use crate::wake::Wake;

/// The kernel that was recorded and its machine, as rules look at them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kernel<'a> {
    pub(crate) symbols: &'a SymbolMap,
    pub(crate) machine: &'a CapturedMachine,
}

/// A part of a wake that is judged, with all that rules look at.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scene<'a> {
    wake: &'a Wake,
    /// The index of its piece in the window.
    index: usize,
    /// The part of that piece that is judged.
    part: Piece,
    kernel: Kernel<'a>,
    /// The way that the wake came.
    path: Option<WakePath>,
}

/// A stretch of the kernel's own that took longer since its CPU was slower.
#[derive(Debug, Clone, Copy)]
struct SlowedPath {
    clock: SlowClock,
    /// Its usual time, ns.
    usual_ns: u64,
}

/// A rule: a name, a certainty, and the test that gives a cause where it fits.
struct Rule {
    id: RuleId,
    certainty: Certainty,
    judge: fn(&Scene<'_>) -> Option<LateCause>,
}

/// A switch takes less than this, ns.
const SWITCH_NS: u64 = 3_000;
/// A migrated thread's CPU that idles for longer was woken late for another reason, ns: most take
/// less than a tenth of it.
const MIGRATION_IDLE_NS: u64 = 1_000_000;
/// A stretch inside the timer interrupt, or its own timer's function, this much longer than usual
/// stood still, ns.
const TIMER_STALL_NS: u64 = 10_000;

/// Calls that do nothing but sleep.
const SLEEP_CALLS: &[&str] = &["clock_nanosleep", "nanosleep", "pause"];
/// The way into such a sleep, or out of it, takes less than this between two events, ns (4 to
/// 12 µs; measured, Linux 6.18, recorded).
const SLEEP_CALL_NS: u64 = 50_000;

const fn rule(
    id: RuleId,
    certainty: Certainty,
    judge: fn(&Scene<'_>) -> Option<LateCause>,
) -> Rule {
    Rule { id, certainty, judge }
}

/// All rules, in their order.
const RULES: &[Rule] = &[
    rule(RuleId::MigrationUnseen, Certainty::Weak, migration_unseen),
    rule(RuleId::Unseen, Certainty::Open, unseen),
    rule(RuleId::Stopped, Certainty::Certain, stopped),
    rule(RuleId::Slack, Certainty::Certain, slack),
    rule(RuleId::OwnIpi, Certainty::Certain, own_ipi),
    rule(RuleId::Migration, Certainty::Fair, migration),
    rule(RuleId::Interrupt, Certainty::Certain, interrupt),
    rule(RuleId::SlowClock, Certainty::Fair, slow_clock),
    rule(RuleId::CallbackStallConfirmed, Certainty::Strong, callback_stall_confirmed),
    rule(RuleId::CallbackStall, Certainty::Weak, callback_stall),
    rule(RuleId::OwnCallback, Certainty::Certain, own_callback),
    rule(RuleId::OtherTimer, Certainty::Certain, other_timer),
    rule(RuleId::BetweenTimers, Certainty::Certain, between_timers),
    rule(RuleId::TimerStallConfirmed, Certainty::Strong, timer_stall_confirmed),
    rule(RuleId::TimerStall, Certainty::Weak, timer_stall),
    rule(RuleId::TimerInterrupt, Certainty::Certain, timer_interrupt),
    rule(RuleId::TimerThread, Certainty::Certain, timer_thread),
    rule(RuleId::IpiGap, Certainty::Fair, ipi_gap),
    rule(RuleId::IdleStallConfirmed, Certainty::Strong, idle_stall_confirmed),
    rule(RuleId::IdleStall, Certainty::Weak, idle_stall),
    rule(RuleId::IdleExit, Certainty::Fair, idle_exit),
    rule(RuleId::UserStallConfirmed, Certainty::Strong, user_stall_confirmed),
    rule(RuleId::UserStall, Certainty::Weak, user_stall),
    rule(RuleId::KernelStallConfirmed, Certainty::Strong, kernel_stall_confirmed),
    rule(RuleId::Enabling, Certainty::Fair, enabling),
    rule(RuleId::KernelGap, Certainty::Weak, kernel_gap),
    rule(RuleId::UnknownGap, Certainty::Weak, unknown_gap),
    rule(RuleId::Switch, Certainty::Certain, switch),
    rule(RuleId::Higher, Certainty::Certain, higher),
    rule(RuleId::Equal, Certainty::Certain, equal),
    rule(RuleId::Fair, Certainty::Certain, fair),
    rule(RuleId::Unthrottled, Certainty::Fair, unthrottled),
    rule(RuleId::FairServer, Certainty::Weak, fair_server),
    rule(RuleId::PassedOver, Certainty::Weak, passed_over),
    rule(RuleId::NotPreempted, Certainty::Certain, not_preempted),
    rule(RuleId::Follows, Certainty::Strong, follows),
    rule(RuleId::OwnStall, Certainty::Strong, own_stall),
    rule(RuleId::OwnGap, Certainty::Weak, own_gap),
    rule(RuleId::SleepCallGap, Certainty::Weak, sleep_call_gap),
    rule(RuleId::Own, Certainty::Certain, own),
];

impl<'a> Scene<'a> {
    /// A part of the piece at `index` of the window of a wake.
    pub(crate) const fn new(wake: &'a Wake, index: usize, part: Piece, kernel: Kernel<'a>) -> Self {
        Self { wake, index, part, kernel, path: None }
    }

    /// With the way that the wake came.
    pub(crate) const fn with_path(self, path: WakePath) -> Self {
        Self { path: Some(path), ..self }
    }

    /// Another part of the same piece.
    pub(crate) const fn with_part(self, part: Piece) -> Self {
        Self { part, ..self }
    }

    /// Books the part by the first rule that fits.
    pub(crate) fn judge(&self) -> WakePart {
        let found = RULES.iter().find_map(|rule| {
            let cause = (rule.judge)(self)?;
            Some(WakePart::new(&self.part, cause, rule.id, rule.certainty))
        });
        found.unwrap_or_else(|| {
            let cause = LateCause::Unexplained(Unexplained::NoRule);
            WakePart::new(&self.part, cause, RuleId::NoRule, Certainty::Open)
        })
    }

    fn pieces(&self) -> &[Piece] {
        &self.wake.window.pieces
    }

    /// Returns true where it may be the way of a switch: short, and the last before its thread
    /// runs, or all that the first thread runs. Who runs on has many short stretches where its
    /// events come close to each other, and so have threads that take turns.
    fn is_short_way(&self) -> bool {
        if self.part.length_ns() >= SWITCH_NS {
            return false;
        }
        let (before, rest) = self.pieces().split_at(self.index);
        let runs =
            |piece: &&Piece| piece.phase == self.part.phase && piece.activity.is_task_or_idle();
        let mut behind = rest[1..].iter().filter(runs).peekable();
        let mut before = before.iter().rev().filter(runs).peekable();
        // Itself, where a switch was not recorded.
        let is_hole = self.part.phase == WakePhase::Ready
            && self.runner().is_some_and(|task| task.tid == self.wake.task.tid);
        if behind.peek().is_none() || is_hole {
            return true;
        }
        let mut length_ns = rest[0].length_ns();
        let tid = self.runner().map(|task| task.tid);
        let is_same = |piece: &Piece| runner(piece.activity).map(|task| task.tid) == tid;
        while length_ns < SWITCH_NS
            && let Some(piece) = behind.next_if(|piece| is_same(piece))
        {
            length_ns += piece.length_ns();
        }
        while length_ns < SWITCH_NS
            && let Some(piece) = before.next_if(|piece| is_same(piece))
        {
            length_ns += piece.length_ns();
        }
        length_ns < SWITCH_NS && before.peek().is_none()
    }

    /// The thread that runs, or the idle one as tid 0.
    fn runner(&self) -> Option<TaskName> {
        runner(self.part.activity)
    }

    /// The other thread that runs while it is ready; while its interrupt is served, that counts as
    /// being ready.
    fn ready_behind(&self) -> Option<TaskName> {
        let is_ready = match self.part.phase {
            WakePhase::Ready => true,
            WakePhase::Delivery => self.wake.activation.anchor.is_event_driven(),
            _ => false,
        };
        // Itself, where a switch was not recorded: that explains nothing.
        let is_other = |task: &TaskName| task.tid != self.wake.task.tid;
        is_ready.then(|| self.runner()).flatten().filter(is_other)
    }

    /// Returns true for a timer of the kernel's own, and a CPU's fair server: who happened to run
    /// when it was programmed has no part in it.
    fn is_kernel_timer(&self, function: CodeAddress, armer: TaskName) -> bool {
        let symbols = self.kernel.symbols;
        symbols.wakes(function) == Some(false) || symbols.is_fair_server_timer(function, armer)
    }

    fn is_own(&self, timer: u64, function: CodeAddress, armer: TaskName) -> bool {
        let own = match self.wake.activation.anchor {
            ReleaseAnchor::Timer { timer: own, .. } => own == timer,
            ReleaseAnchor::Interrupt | ReleaseAnchor::Thread { .. } | ReleaseAnchor::Unseen => {
                false
            }
        };
        let is_armed_by_it = armer.tid != 0 && armer.tid == self.wake.task.tid;
        own || is_armed_by_it && !self.is_kernel_timer(function, armer)
    }

    /// The kernel code that a thread which runs is in.
    fn place_of(&self, task: TaskName) -> KernelPlace {
        let chain = self.wake.chain_near(self.index, task.tid, self.part.cpu);
        chain.map_or(KernelPlace::Unknown, |chain| chain.place)
    }

    /// Returns true where a thread is below the waiting one.
    fn is_below(&self, task: TaskName) -> bool {
        task.tid == 0 || task.kernel_priority > self.wake.task.kernel_priority
    }

    fn is_fair(&self) -> bool {
        self.wake.task.kernel_priority >= 100
    }

    /// A stretch of the kernel's own that a lower frequency than usual explains; `None` where more
    /// shows that the CPU did not run, or where the ratio of both is too small for it.
    fn slowed(&self) -> Option<SlowedPath> {
        let clock = *self.wake.facts.clocks.get(self.index)?;
        let usual_ns = match (self.part.phase, self.part.activity) {
            (_, Activity::TimerInterrupt) => self.wake.facts.usual.timer_ns,
            (_, Activity::TimerCallback { timer, function, armer, .. })
                if self.is_own(timer, function, armer) =>
            {
                self.wake.facts.usual.callback_ns
            }
            (WakePhase::Ready, Activity::Idle { .. }) if !self.part.is_passed_over => {
                self.wake.facts.usual.idle_ready_ns
            }
            _ => return None,
        };
        let length_ns = self.pieces().get(self.index)?.length_ns();
        let is_explained = clock.explains(length_ns, usual_ns)
            && !self.part.is_hole
            && !self.wake.stall(self.index).is_confirmed();
        is_explained.then_some(SlowedPath { clock, usual_ns })
    }

    /// The usual time of a stretch of the kernel's own that a lower frequency explains, ns; `None`
    /// of any other.
    pub(crate) fn usual_ns_of_slowed(&self) -> Option<u64> {
        self.slowed().map(|slowed| slowed.usual_ns)
    }

    /// The thread and the code that the timer's interrupt found, for a stretch in which a thread
    /// ran while the timer was due, or the interrupt of its waking.
    fn found(&self) -> Option<(TaskName, Interrupted)> {
        let Activity::Task { task, .. } = self.part.activity else { return None };
        let is_due = match self.part.phase {
            WakePhase::Delivery => !self.wake.activation.anchor.is_event_driven(),
            _ => {
                awaits_own_ipi(&self.wake.window, self.wake.activation.anchor, self.index)
                    && self.is_below(task)
            }
        };
        if !is_due {
            return None;
        }
        let chain = self.wake.chain_behind(self.index, task.tid, self.part.cpu);
        Some((task, chain.map_or(Interrupted::Unknown, |chain| chain.interrupted)))
    }
}

/// The thread that runs, or the idle one as tid 0.
fn runner(activity: Activity) -> Option<TaskName> {
    match activity {
        Activity::Task { task, .. } => Some(task),
        Activity::Idle { .. } => Some(idle()),
        _ => None,
    }
}

/// The idle task, of any CPU: below all.
fn idle() -> TaskName {
    TaskName { tid: 0, kernel_priority: 140, ..TaskName::default() }
}

fn unseen(scene: &Scene<'_>) -> Option<LateCause> {
    let reason = match (scene.part.activity, scene.part.phase) {
        (Activity::Lost, _) => Unexplained::Lost,
        // Who is behind by so much that its memory no longer reaches back is still known to be
        // behind, and by what.
        (_, WakePhase::Forgotten) if follows(scene).is_some() => return None,
        (Activity::Unseen, _) | (_, WakePhase::Unseen) => Unexplained::Unrecorded,
        _ if scene.part.is_hole && scene.part.activity.is_task_or_idle() => Unexplained::Hole,
        _ => return None,
    };
    Some(LateCause::Unexplained(reason))
}

fn stopped(scene: &Scene<'_>) -> Option<LateCause> {
    (scene.part.phase == WakePhase::Stopped)
        .then_some(LateCause::Stopped { sender: scene.wake.facts.stop_sender })
}

fn slack(scene: &Scene<'_>) -> Option<LateCause> {
    let is_slack = scene.part.phase == WakePhase::Delivery
        && scene.part.to_ns <= scene.wake.activation.latest_ns
        && scene.part.activity.is_task_or_idle();
    is_slack.then_some(LateCause::TimerSlack)
}

fn own_ipi(scene: &Scene<'_>) -> Option<LateCause> {
    let own = own_ipi_of(&scene.wake.window, scene.wake.activation.anchor);
    (own == Some(scene.index)).then_some(LateCause::NormalPath)
}

/// The CPU that it was woken on, or migrated to, idles until an interrupt brings it there, or runs
/// a thread below for as long as that interrupt may be on its way.
fn migration(scene: &Scene<'_>) -> Option<LateCause> {
    let migration @ Migration { from, ipi } = scene.path?.migration?;
    let (window, index) = (&scene.wake.window, scene.index);
    if index < from || scene.part.phase != WakePhase::Ready || scene.part.is_passed_over {
        return None;
    }
    let is_free = |piece: &Piece| match piece.activity {
        Activity::Idle { .. } => true,
        Activity::Task { task, .. } => scene.is_below(task),
        _ => false,
    };
    let is_way = match scene.part.activity {
        // What took longer stood still, or was woken late, for another reason.
        Activity::Idle { .. } => {
            window.pieces[index].length_ns() < MIGRATION_IDLE_NS
                && slow_clock(scene).is_none()
                && idle_stall(scene).is_none()
                && confirmed(scene).is_none()
        }
        Activity::Ipi { .. } => {
            ipi == Some(index) && (index == from || is_free(&window.pieces[index - 1]))
        }
        Activity::Task { .. } => {
            let is_beside = ipi.is_some_and(|ipi| ipi.abs_diff(index) == 1);
            is_free(&scene.part)
                && (migration.is_on_its_way(window, index)
                    || is_beside && is_beside_ipi(window, index))
        }
        _ => false,
    };
    is_way.then_some(LateCause::Migration)
}

/// The same where an idle CPU records nothing, up to the first instant at which the thread itself
/// may have run.
fn migration_unseen(scene: &Scene<'_>) -> Option<LateCause> {
    let is_unseen = scene.part.is_hole
        && matches!(scene.part.activity, Activity::Idle { .. })
        && scene.part.to_ns <= scene.wake.run.from_ns;
    is_unseen.then(|| migration(scene)).flatten()
}

fn interrupt(scene: &Scene<'_>) -> Option<LateCause> {
    named_interrupt(&scene.part.activity)
}

/// The cause that an interrupt is by its own name.
fn named_interrupt(activity: &Activity) -> Option<LateCause> {
    match *activity {
        Activity::HardIrq { irq, name } => Some(LateCause::HardIrq { irq, name }),
        Activity::Softirq { number, device } => Some(LateCause::Softirq { number, device }),
        Activity::Nmi => Some(LateCause::Nmi),
        Activity::Ipi { sender, .. } | Activity::Call { sender, .. } => {
            Some(LateCause::Ipi { sender })
        }
        _ => None,
    }
}

fn slow_clock(scene: &Scene<'_>) -> Option<LateCause> {
    let SlowClock { usual_khz, khz } = scene.slowed()?.clock;
    Some(LateCause::Frequency { usual_khz, khz })
}

/// Waking a thread and programming the next timer are some µs of the kernel's own code: what takes
/// longer did not run.
fn callback_stall(scene: &Scene<'_>) -> Option<LateCause> {
    let usual_ns = scene.wake.facts.usual.callback_ns;
    // As long as nothing is known of it, it is what it is.
    let is_long = usual_ns > 0 && scene.part.length_ns() > usual_ns + TIMER_STALL_NS;
    (is_long && own_callback(scene).is_some()).then_some(LateCause::NoEvent)
}

fn callback_stall_confirmed(scene: &Scene<'_>) -> Option<LateCause> {
    callback_stall(scene).and_then(|_| confirmed(scene))
}

/// The host or the firmware, where a second kind of evidence shows that the CPU did not run: CPU
/// time is missing, or another CPU was silent as it hardly ever is.
fn confirmed(scene: &Scene<'_>) -> Option<LateCause> {
    scene.wake.stall(scene.index).is_confirmed().then_some(LateCause::HostOrFirmware)
}

fn own_callback(scene: &Scene<'_>) -> Option<LateCause> {
    match scene.part.activity {
        Activity::TimerCallback { timer, function, armer, .. }
            if scene.is_own(timer, function, armer) =>
        {
            Some(LateCause::NormalPath)
        }
        _ => None,
    }
}

fn other_timer(scene: &Scene<'_>) -> Option<LateCause> {
    of_other_timer(scene, &scene.part.activity)
}

fn of_other_timer(scene: &Scene<'_>, activity: &Activity) -> Option<LateCause> {
    let Activity::TimerCallback { timer, function, armer, .. } = *activity else { return None };
    if scene.is_own(timer, function, armer) {
        return None;
    }
    let has_no_armer = armer.tid == 0 || scene.is_kernel_timer(function, armer);
    let armer = if has_no_armer { TaskName::default() } else { armer };
    Some(LateCause::OtherTimers { function: scene.kernel.symbols.start(function), armer })
}

fn between_timers(scene: &Scene<'_>) -> Option<LateCause> {
    if scene.part.activity != Activity::TimerInterrupt {
        return None;
    }
    let before = scene.wake.window.before(scene.index)?;
    let behind = scene.pieces().get(scene.index + 1)?;
    let is_between = matches!(behind.activity, Activity::TimerCallback { .. })
        && before.cpu == scene.part.cpu
        && behind.cpu == scene.part.cpu;
    is_between.then(|| of_other_timer(scene, &before.activity)).flatten()
}

fn timer_stall(scene: &Scene<'_>) -> Option<LateCause> {
    let usual = scene.wake.facts.usual;
    // A thread that no timer releases has none in its wakes on time: that is known, and no time.
    let is_long = scene.part.activity == Activity::TimerInterrupt
        && usual.is_known()
        && scene.part.length_ns() > usual.timer_ns + TIMER_STALL_NS;
    is_long.then_some(LateCause::NoEvent)
}

fn timer_stall_confirmed(scene: &Scene<'_>) -> Option<LateCause> {
    timer_stall(scene).and_then(|_| confirmed(scene))
}

fn timer_interrupt(scene: &Scene<'_>) -> Option<LateCause> {
    (scene.part.activity == Activity::TimerInterrupt).then_some(LateCause::NormalPath)
}

/// Another thread runs while the one that serves the timer is on its way. One above the late thread
/// itself would have kept it as well.
fn timer_thread(scene: &Scene<'_>) -> Option<LateCause> {
    let Activity::Task { task, .. } = scene.part.activity else { return None };
    let is_due = scene.part.phase == WakePhase::Delivery;
    let timer_thread = scene.path?.timer_thread.filter(|_| is_due)?;
    if !timer_thread.is_awaited(scene.index) {
        return None;
    }
    if timer_thread.is_it(task) {
        // Until it serves, where its CPU did not stand still.
        return (!scene.wake.stall(scene.index).is_confirmed()).then_some(LateCause::NormalPath);
    }
    if scene.part.length_ns() < SWITCH_NS {
        return Some(LateCause::NormalPath);
    }
    let is_real_time = |kernel_priority: i32| kernel_priority < 100;
    let (its, loops) = (timer_thread.kernel_priority(), scene.wake.task.kernel_priority);
    let would_keep = scene.part.cpu == scene.wake.run.cpu && is_real_time(task.kernel_priority);
    Some(match task.kernel_priority {
        running if running > its && is_real_time(its) => {
            LateCause::NotPreempted { task, place: scene.place_of(task) }
        }
        running if running < loops && would_keep => LateCause::HigherPriority { task },
        running if running == loops && would_keep => LateCause::EqualPriority { task },
        _ => LateCause::TimerThread { task },
    })
}

fn ipi_gap(scene: &Scene<'_>) -> Option<LateCause> {
    let is_due = match scene.part.phase {
        WakePhase::Delivery => scene.part.activity.is_task_or_idle(),
        WakePhase::Ready => {
            !scene.part.is_passed_over && scene.runner().is_some_and(|task| scene.is_below(task))
        }
        _ => false,
    };
    if !is_due || !is_beside_ipi(&scene.wake.window, scene.index) {
        return None;
    }
    let own = own_ipi_of(&scene.wake.window, scene.wake.activation.anchor);
    if own.is_some_and(|own| own.abs_diff(scene.index) == 1) {
        return None;
    }
    named_interrupt(ipi_beside(&scene.wake.window, scene.index)?)
}

fn idle_exit(scene: &Scene<'_>) -> Option<LateCause> {
    let Activity::Idle { state } = scene.part.activity else { return None };
    let is_late = scene.part.phase == WakePhase::Delivery
        || scene.part.phase == WakePhase::Ready && !scene.part.is_passed_over;
    is_late.then_some(LateCause::IdleExit { state })
}

/// A CPU that left its idle state for the timer, or for its thread, later than that ever takes
/// stood still.
fn idle_stall(scene: &Scene<'_>) -> Option<LateCause> {
    let Activity::Idle { state } = scene.part.activity else { return None };
    let is_due = match scene.part.phase {
        WakePhase::Delivery => true,
        WakePhase::Ready => !scene.part.is_passed_over,
        _ => false,
    };
    let longest_ns = scene.kernel.machine.longest_idle_exit_ns(state).filter(|_| is_due)?;
    (scene.part.length_ns() > longest_ns).then_some(LateCause::NoEvent)
}

fn idle_stall_confirmed(scene: &Scene<'_>) -> Option<LateCause> {
    idle_stall(scene).and_then(|_| confirmed(scene))
}

fn user_stall_confirmed(scene: &Scene<'_>) -> Option<LateCause> {
    user_stall(scene).and_then(|_| confirmed(scene))
}

fn user_stall(scene: &Scene<'_>) -> Option<LateCause> {
    (scene.found()?.1 == Interrupted::User).then_some(LateCause::NoEvent)
}

fn kernel_stall_confirmed(scene: &Scene<'_>) -> Option<LateCause> {
    let (_, found) = scene.found()?;
    let is_enabling = matches!(found, Interrupted::Kernel(code) if code.is_enabling);
    let evidence = scene.wake.stall(scene.index);
    // Code with interrupts off runs, and gets its CPU time: only a missing part of it speaks
    // against the frame.
    let is_confirmed = if is_enabling { evidence.is_stolen } else { evidence.is_confirmed() };
    is_confirmed.then_some(LateCause::HostOrFirmware)
}

fn enabling(scene: &Scene<'_>) -> Option<LateCause> {
    match scene.found()? {
        (task, Interrupted::Kernel(code)) if code.is_enabling => {
            Some(LateCause::InterruptsOff { task, inside: code.inside })
        }
        _ => None,
    }
}

fn kernel_gap(scene: &Scene<'_>) -> Option<LateCause> {
    match scene.found()? {
        (task, Interrupted::Kernel(code)) => {
            Some(LateCause::HostOrInterruptsOff { task, at: code.at, inside: code.inside })
        }
        _ => None,
    }
}

fn unknown_gap(scene: &Scene<'_>) -> Option<LateCause> {
    let (task, _) = scene.found()?;
    Some(LateCause::HostOrInterruptsOff { task, at: 0, inside: 0 })
}

fn switch(scene: &Scene<'_>) -> Option<LateCause> {
    let is_armed =
        scene.wake.activation.armed_ns.is_none_or(|armed_ns| scene.part.from_ns >= armed_ns);
    // The scheduler has chosen it, by the CPU time that is booked to it.
    if scene.wake.run.is_inferred
        && scene.part.phase == WakePhase::Ready
        && scene.runner().is_some_and(|task| task.tid == scene.wake.task.tid)
    {
        return Some(LateCause::NormalPath);
    }
    let is_switch = match scene.part.phase {
        WakePhase::Ready => scene.part.activity.is_task_or_idle(),
        WakePhase::Running => is_armed,
        _ => false,
    };
    (is_switch && scene.is_short_way()).then_some(LateCause::NormalPath)
}

fn higher(scene: &Scene<'_>) -> Option<LateCause> {
    let task = scene.ready_behind().filter(|task| task.tid != 0)?;
    let is_above = task.kernel_priority < scene.wake.task.kernel_priority
        && (!scene.is_fair() || task.kernel_priority < 100);
    is_above.then_some(LateCause::HigherPriority { task })
}

fn equal(scene: &Scene<'_>) -> Option<LateCause> {
    let task = scene.ready_behind().filter(|task| task.tid != 0)?;
    let is_equal = !scene.is_fair() && task.kernel_priority == scene.wake.task.kernel_priority;
    is_equal.then_some(LateCause::EqualPriority { task })
}

fn fair(scene: &Scene<'_>) -> Option<LateCause> {
    let task = scene.ready_behind().filter(|task| task.tid != 0)?;
    (scene.is_fair() && task.kernel_priority >= 100).then_some(LateCause::FairShare { task })
}

fn unthrottled(scene: &Scene<'_>) -> Option<LateCause> {
    let task = scene.ready_behind()?;
    let is_throttled = scene.part.is_passed_over && scene.wake.is_unthrottled;
    is_throttled.then_some(LateCause::Throttled { task })
}

fn fair_server(scene: &Scene<'_>) -> Option<LateCause> {
    let task = scene.ready_behind().filter(|task| task.tid != 0 && task.kernel_priority >= 100)?;
    let has_server = scene.kernel.machine.kernel.is_none_or(|release| release >= (6, 12));
    (scene.part.is_passed_over && has_server).then_some(LateCause::FairServer { task })
}

fn passed_over(scene: &Scene<'_>) -> Option<LateCause> {
    let task = scene.ready_behind()?;
    scene.part.is_passed_over.then_some(LateCause::Throttled { task })
}

fn not_preempted(scene: &Scene<'_>) -> Option<LateCause> {
    let task = scene.ready_behind().filter(|task| task.tid != 0)?;
    Some(LateCause::NotPreempted { task, place: scene.place_of(task) })
}

fn follows(scene: &Scene<'_>) -> Option<LateCause> {
    let is_own_time = matches!(
        scene.part.phase,
        WakePhase::Running | WakePhase::Waiting { .. } | WakePhase::Forgotten
    );
    let kind = scene.wake.followed(scene.part.to_ns).filter(|_| is_own_time)?;
    Some(LateCause::Follows { kind })
}

/// Its own code, of which CPU time is missing: a silent CPU beside it would be no evidence, for a
/// program may compute for long without an event.
fn own_stall(scene: &Scene<'_>) -> Option<LateCause> {
    let is_own = scene.part.phase == WakePhase::Running && scene.part.activity.is_task_or_idle();
    let is_stolen = is_own && scene.wake.stall(scene.index).is_stolen;
    is_stolen.then_some(LateCause::HostOrFirmware)
}

/// Its own code, for longer than a loop that only waits has any: it may have stood still.
fn own_gap(scene: &Scene<'_>) -> Option<LateCause> {
    let is_own_code = scene.part.phase == WakePhase::Running
        && matches!(scene.part.activity, Activity::Task { mode: TaskMode::Code, .. });
    let is_gap = is_own_code
        && scene.wake.facts.is_workless
        && scene.pieces()[scene.index].length_ns() >= STALL_NS;
    is_gap.then_some(LateCause::NoEvent)
}

/// Its own call that only sleeps, for longer than the way into its sleep and out of it takes: it
/// may have stood still.
fn sleep_call_gap(scene: &Scene<'_>) -> Option<LateCause> {
    let Activity::Task { mode: TaskMode::Syscall(number), .. } = scene.part.activity else {
        return None;
    };
    let call = scene.kernel.symbols.call(number)?;
    let is_gap = scene.part.phase == WakePhase::Running
        && SLEEP_CALLS.contains(&call)
        && scene.pieces()[scene.index].length_ns() >= SLEEP_CALL_NS;
    is_gap.then_some(LateCause::NoEvent)
}

fn own(scene: &Scene<'_>) -> Option<LateCause> {
    match (scene.part.phase, scene.part.activity) {
        (WakePhase::Running, Activity::Task { mode, .. }) => Some(LateCause::own(mode)),
        (WakePhase::Waiting { is_blocked, call }, _) => {
            Some(LateCause::OwnWait { is_blocked, call })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_rule_stands_once() {
        let ids: BTreeSet<RuleId> = RULES.iter().map(|rule| rule.id).collect();
        assert_eq!(ids.len(), RULES.len());
        let words: BTreeSet<&str> = RULES.iter().map(|rule| rule.id.word()).collect();
        assert_eq!(words.len(), RULES.len());
    }
}

//! A followed thread: its state, the release that it waits for, and the figures that are learnt of
//! it.

use punctual_trace::event::{CodeAddress, TaskName, TraceEvent, TraceKind};

use crate::begin::WakeBegin;
use crate::cause::LateCause;
use crate::config::{BlameConfig, LateThreshold};
use crate::counters::WorkCounts;
use crate::facts::PreviousWake;
use crate::figures::{ThreadSnapshot, WaitingNow};
use crate::ledger::{Ledger, Selection};
use crate::normal::{NEEDED, Normals, WakeTimes};
use crate::pace::Pace;
use crate::part::WakePart;
use crate::passed::{PassedCycle, PassedReleases};
use crate::past::{Past, SwitchHole, WakePhase};
use crate::release::{Activation, ReleaseAnchor};
use crate::timeline::{CpuTimeline, Moment, TaskMode};
use crate::timers::Arm;
use crate::unseen::UnseenWakes;
use crate::wake::{Answer, Wake};

/// Wakes of one thread that wait for a baseline, at most.
const PENDING_OF_THREAD: u64 = 64;
/// Wakes up to which the limit of being on time is worked out anew with each, and behind which with
/// every so many.
const STEP: u64 = 64;
/// A wake may be chosen this long after it without that meaning anything, ns.
const CHOICE_NS: u64 = 3_000;
/// The thread that the scheduler of a CPU chose while others wait for that.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Chosen {
    pub(crate) runner: TaskName,
    /// True where it ran already when the others became ready, and was not chosen just now.
    pub(crate) is_since_ready: bool,
    /// When another CPU interrupted this one last, ns.
    pub(crate) last_ipi_ns: u64,
    /// An interrupt from another CPU may be pending.
    pub(crate) are_interrupts_off: bool,
}

/// A thread that another CPU queues is taken to have arrived after this, ns, where no interrupt
/// from another CPU shows it: an idle CPU that polls needs none, some captures have none, and a
/// CPU that a host stops takes it late by as long.
const REMOTE_NS: u64 = 1_000_000;

/// The state of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ThreadState {
    /// Not known: before its first event, or after a loss.
    Unknown,
    /// It runs on this CPU.
    Running(u32),
    /// It waits for this CPU.
    Ready(u32),
    /// It sleeps.
    Sleeping,
    /// It sleeps, and no signal ends that.
    Blocked,
    /// A signal stopped it.
    Stopped,
}

impl ThreadState {
    /// The CPU that it runs on or waits for; `None` where it does neither.
    pub(crate) const fn cpu(self) -> Option<u32> {
        match self {
            Self::Running(cpu) | Self::Ready(cpu) => Some(cpu),
            _ => None,
        }
    }
}

/// The end of a system call: what follows until its thread runs its own code again.
#[derive(Debug, Clone, Copy)]
struct CallEnd {
    at_ns: u64,
    /// The scheduler is to choose again before that.
    is_reschedule_wanted: bool,
}

/// A signal that is there when its call ends stops a thread within this, ns (11 to 21 µs; measured,
/// Linux 6.18, recorded); one that comes later interrupts its CPU.
const CALL_END_NS: u64 = 30_000;
/// A thread that runs for so long has left the call that it slept in, ns.
const OWN_CODE_NS: u64 = 1_000_000;
/// A thread that leaves its CPU has not come to its own code yet where it ran for less than this
/// since its wake, ns (25 to 60 µs up to a stop; measured, Linux 6.18, recorded).
const WAY_OUT_NS: u64 = 100_000;
/// A wait in the middle of a cycle for more periods than this is of its thread's own will.
const OWN_WILL: u64 = 10;

/// A timer of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct OwnArm {
    arm: Arm,
    /// The release by its expiry, as far as its clock is known.
    activation: Activation,
    state: ArmState,
}

/// What has become of a timer of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ArmState {
    /// Its thread waits for it.
    Pending,
    /// Something else woke its thread, which may still be on its way out of the sleep that it ends.
    Outrun,
    /// It was cancelled, or its release is answered.
    Ended,
}

/// A cycle whose next release has passed, or may have.
#[derive(Debug, Clone)]
pub(crate) struct OpenCycle {
    /// The release that it answered.
    pub(crate) activation: Activation,
    /// Its next release, by the thread's period, ns.
    pub(crate) next_ns: u64,
    /// The part of it that was judged and dropped.
    pub(crate) begin: Option<WakeBegin>,
}

/// The last release that was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct LastWake {
    /// As it was answered: its release is no later than its run.
    activation: Activation,
    lateness_ns: u64,
    /// The part of it that was seen, ns: 0 where events were lost in it.
    seen_ns: u64,
    /// The thread's priority then: on its way out a program may give up its own.
    kernel_priority: i32,
}

impl LastWake {
    /// The releases between it and the next one that is answered, at `release_ns`, by the period,
    /// ns.
    const fn skipped(&self, release_ns: u64, period_ns: u64) -> u64 {
        let passed_ns = release_ns.saturating_sub(self.activation.release_ns);
        ((passed_ns + period_ns / 2) / period_ns).saturating_sub(1)
    }
}

/// The most frequent of many values: of sixteen.
#[derive(Debug, Clone)]
struct Frequent<T> {
    seen: Vec<(T, u64)>,
}

impl<T: Copy> Frequent<T> {
    const ROOM: usize = 16;

    const fn new() -> Self {
        Self { seen: Vec::new() }
    }

    /// Counts one, as those that `is_it` accepts; where the room is full, all lose one (Misra and
    /// Gries).
    fn add(&mut self, value: T, is_it: impl Fn(&T) -> bool) {
        if let Some((_, count)) = self.seen.iter_mut().find(|(known, _)| is_it(known)) {
            *count += 1;
        } else if self.seen.len() < Self::ROOM {
            self.seen.push((value, 1));
        } else {
            self.seen.iter_mut().for_each(|(_, count)| *count -= 1);
            self.seen.retain(|(_, count)| *count > 0);
        }
    }

    fn most(&self) -> Option<T> {
        self.seen.iter().max_by_key(|(_, count)| *count).map(|(value, _)| *value)
    }
}

/// A followed thread.
#[derive(Debug, Clone)]
pub(crate) struct Thread {
    pub(crate) task: TaskName,
    pub(crate) past: Past,
    pub(crate) ledger: Ledger,
    /// What let releases pass, of each cycle that did as of a wake.
    pub(crate) passed: Ledger,
    pub(crate) work: WorkCounts,
    state: ThreadState,
    arm: Option<OwnArm>,
    activation: Option<Activation>,
    /// The part of the wait for it that was judged and dropped.
    begin: Option<WakeBegin>,
    /// Its last answer, as long as more may show when it ran.
    answer: Option<Answer>,
    /// The last end of a system call of its own; `None` where none is recorded.
    call_end: Option<CallEnd>,
    /// The time that it ran since the release that it waits for, on its way to its own code, ns.
    way_out_ns: u64,
    condensed: u64,
    last: Option<LastWake>,
    /// The instant since which it waits for its present CPU, or ran last, ns.
    ready_ns: u64,
    is_passed_over: bool,
    /// Another CPU queued it on the one that it waits for (the kernel's remote wakeup).
    is_remote: bool,
    stop_sender: Option<TaskName>,
    syscall: Option<u32>,
    is_in_fault: bool,
    pace: Pace,
    normals: Normals,
    previous: Option<PreviousWake>,
    /// The threads that ran before late wakes.
    before: Frequent<TaskName>,
    last_cpu: u32,
    /// The main causes of late wakes.
    late_main: Frequent<LateCause>,
    delivery_ns: u64,
    ready_wait_ns: u64,
    has_ended: bool,
    unmatched: u64,
    /// The lateness up to which a wake is on time, ns; worked out anew now and then.
    on_time_ns: u64,
    /// The lateness, ns, and the times of its first wakes: which of them are on time shows when
    /// there are some.
    early: Vec<(u64, WakeTimes)>,
    /// The lateness beyond which a wake is late in the end, ns, where it is set for this thread
    /// alone.
    threshold_ns: Option<u64>,
    /// Times that a timer released it.
    timer_releases: u64,
    /// The median time between its releases, ns, where known; worked out anew now and then.
    period_ns: Option<u64>,
    /// The instant since which it works, having answered a release, ns; `None` once it waited
    /// since.
    works_since_ns: Option<u64>,
    /// The time that it worked without a wait after the last release that it answered, ns.
    stretch_ns: u64,
    busy: PassedReleases,
    /// Its cycle since the last release that it answered, once its end is seen and the next release
    /// has passed.
    cycle: Option<Box<PassedCycle>>,
    /// The judged part of the wait for the last release that it answered.
    waited: Option<WakeBegin>,
    /// The end of the last loss of events that concerns the next release that it answers, ns.
    lost_ns: Option<u64>,
    unseen: UnseenWakes,
}

/// Its state, and the release that it waits for.
impl Thread {
    pub(crate) fn new(task: TaskName, at_ns: u64, pieces: usize, causes: usize) -> Self {
        Self {
            task,
            past: Past::new(at_ns, pieces),
            ledger: Ledger::new(causes),
            passed: Ledger::new(causes),
            work: WorkCounts::default(),
            state: ThreadState::Unknown,
            arm: None,
            activation: None,
            begin: None,
            answer: None,
            call_end: None,
            way_out_ns: 0,
            condensed: 0,
            last: None,
            ready_ns: at_ns,
            is_passed_over: false,
            is_remote: false,
            stop_sender: None,
            syscall: None,
            is_in_fault: false,
            pace: Pace::default(),
            normals: Normals::default(),
            previous: None,
            before: Frequent::new(),
            last_cpu: 0,
            late_main: Frequent::new(),
            delivery_ns: 0,
            ready_wait_ns: 0,
            has_ended: false,
            unmatched: 0,
            on_time_ns: 0,
            early: Vec::new(),
            threshold_ns: None,
            timer_releases: 0,
            period_ns: None,
            works_since_ns: None,
            stretch_ns: 0,
            busy: PassedReleases::default(),
            cycle: None,
            waited: None,
            lost_ns: None,
            unseen: UnseenWakes::default(),
        }
    }

    /// It is taken not to spin, whatever its cycles look like.
    pub(crate) const fn learn_no_margin(&mut self) {
        self.pace.learn_no_margin();
    }

    pub(crate) const fn state(&self) -> ThreadState {
        self.state
    }

    pub(crate) const fn set_state(&mut self, state: ThreadState) {
        self.state = state;
        if let Some(number) = state.cpu() {
            self.last_cpu = number;
        }
        if let ThreadState::Running(_) = state {
            self.is_passed_over = false;
        }
    }

    const fn is_asleep(&self) -> bool {
        matches!(self.state, ThreadState::Sleeping | ThreadState::Blocked)
    }

    /// The CPU that it ran on or waited for last.
    pub(crate) const fn last_cpu(&self) -> u32 {
        self.last_cpu
    }

    /// The thread that stopped it last by a signal, where that was seen.
    pub(crate) const fn stop_sender(&self) -> Option<TaskName> {
        self.stop_sender
    }

    /// Its state, as its past has it.
    const fn phase(&self) -> WakePhase {
        let call = self.syscall;
        match self.state {
            ThreadState::Unknown => WakePhase::Unseen,
            ThreadState::Running(_) => WakePhase::Running,
            ThreadState::Ready(_) => WakePhase::Ready,
            ThreadState::Sleeping => WakePhase::Waiting { is_blocked: false, call },
            ThreadState::Blocked => WakePhase::Waiting { is_blocked: true, call },
            ThreadState::Stopped => WakePhase::Stopped,
        }
    }

    /// The mode in which it runs, or would run.
    pub(crate) const fn mode(&self) -> TaskMode {
        match (self.is_in_fault, self.syscall) {
            (true, _) => TaskMode::Fault,
            (false, Some(number)) => TaskMode::Syscall(number),
            (false, None) => TaskMode::Code,
        }
    }

    /// It enters or leaves a fault or a system call.
    pub(crate) fn change_mode(&mut self, event: &TraceEvent) {
        match event.kind {
            TraceKind::PageFaultEntry => self.is_in_fault = true,
            TraceKind::SyscallEntry { number } => {
                (self.is_in_fault, self.syscall) = (false, Some(number));
            }
            TraceKind::SyscallExit { .. } => {
                (self.is_in_fault, self.syscall) = (false, None);
                self.call_end = Some(CallEnd {
                    at_ns: event.at_ns,
                    is_reschedule_wanted: event.context.is_reschedule_wanted(),
                });
            }
            _ => self.is_in_fault = false,
        }
    }

    /// Its own timer that still waits.
    fn pending_arm(&self) -> Option<OwnArm> {
        self.arm.filter(|arm| arm.state == ArmState::Pending)
    }

    /// Returns true where this timer is its own, and waits.
    pub(crate) fn awaits_timer(&self, timer: u64) -> bool {
        self.pending_arm().is_some_and(|own| own.arm.timer == timer)
    }

    /// Returns true where the expiry of SCHED_DEADLINE's timer, which this thread started so, gives
    /// it its next budget. The timer of a CPU's fair server (Linux 6.12) has the same function, and
    /// whoever wakes the first fair thread starts it.
    pub(crate) fn awaits_budget(&self, arm: &Arm) -> bool {
        // Who is asleep gets its budget, and is not woken; who has none left looks ready.
        let has_none = matches!(self.state, ThreadState::Ready(_) | ThreadState::Unknown);
        let is_later = |own: OwnArm| own.arm.timer != arm.timer && own.arm.armed_ns > arm.armed_ns;
        self.task.is_deadline() && has_none && !self.pending_arm().is_some_and(is_later)
    }

    /// The instant at which its own timer was programmed for this expiry before, ns; `None` where
    /// it was for another.
    pub(crate) fn armed_ns(&self, function: CodeAddress, expires_ns: i64) -> Option<u64> {
        let arm = self.arm?.arm;
        (arm.expires_ns == expires_ns && arm.function == function).then_some(arm.armed_ns)
    }

    /// Completes its past up to an instant, by what the CPUs did. `delivery_cpu` is the one that
    /// brings its release; where that is not known, a timer that waits is due on its own.
    pub(crate) fn settle<'a>(
        &mut self,
        at_ns: u64,
        delivery_cpu: Option<u32>,
        timeline: impl Fn(u32) -> Option<&'a CpuTimeline>,
    ) {
        let from_ns = self.past.settled_ns();
        if at_ns <= from_ns {
            return;
        }
        let phase = self.phase();
        if let Some(cpu) = self.state.cpu() {
            let is_passed_over = self.is_passed_over && phase == WakePhase::Ready;
            self.past.pull(Moment { cpu, at_ns }, timeline(cpu), phase, is_passed_over);
            return;
        }
        let due_ns = self.release_ns().filter(|&due_ns| self.is_asleep() && due_ns < at_ns);
        let cpu = delivery_cpu.or_else(|| self.pending_arm().map(|own| own.arm.cpu));
        let waits_to_ns = due_ns.zip(cpu).map_or(at_ns, |(due_ns, _)| due_ns.max(from_ns));
        self.past.wait(waits_to_ns, phase);
        if let Some(cpu) = cpu.filter(|_| waits_to_ns < at_ns) {
            let now = Moment { cpu, at_ns };
            self.past.pull(now, timeline(cpu), WakePhase::Delivery, false);
        }
    }

    /// Programs a timer of its own at `at_ns`, whose clock is ahead of the events' by so much, ns;
    /// one for another expiry than before ends a cycle.
    pub(crate) fn program(&mut self, arm: Arm, ahead_ns: i64, at_ns: u64) {
        let is_again = self.armed_ns(arm.function, arm.expires_ns).is_some();
        if let Some(last) = self.last.filter(|_| !is_again) {
            let end_ns = at_ns.cast_signed().saturating_sub_unsigned(last.activation.release_ns);
            self.pace.cycle(last.lateness_ns, end_ns);
        }
        let activation = arm.activation(ahead_ns);
        self.arm = Some(OwnArm { arm, activation, state: ArmState::Pending });
    }

    /// This timer is cancelled; in an interrupt it may be about to expire.
    pub(crate) fn cancel(&mut self, timer: u64, is_interrupt: bool) {
        let is_it = |own: OwnArm| {
            own.arm.timer == timer && !(own.state == ArmState::Outrun && is_interrupt)
        };
        if self.arm.is_some_and(is_it) {
            self.end_arm(ArmState::Ended);
        }
    }

    /// Its timer waits no more.
    const fn end_arm(&mut self, state: ArmState) {
        if let Some(arm) = self.arm.as_mut() {
            arm.state = state;
        }
    }

    /// Returns true where this timer is its own and expires although something else woke it before,
    /// such as a signal: it has not left the sleep that this ends, which so ends by its release.
    pub(crate) fn is_released_awake(&self, arm: &Arm) -> bool {
        let is_it = |own: OwnArm| {
            own.state == ArmState::Outrun
                && (own.arm.timer, own.arm.expires_ns) == (arm.timer, arm.expires_ns)
        };
        let is_awake = matches!(self.state, ThreadState::Running(_) | ThreadState::Ready(_));
        is_awake && self.activation.is_none() && self.arm.is_some_and(is_it)
    }

    /// Returns true where events of this CPU up to now concern it: it is there, or its due timer
    /// is.
    pub(crate) fn takes_from(&self, now: Moment) -> bool {
        let is_due = |own: OwnArm| own.arm.cpu == now.cpu && own.activation.release_ns < now.at_ns;
        self.state.cpu() == Some(now.cpu) || self.pending_arm().is_some_and(is_due)
    }

    /// The release that its past must reach back to, ns.
    fn release_ns(&self) -> Option<u64> {
        let open = self.activation.map(|activation| activation.release_ns);
        open.or_else(|| self.pending_arm().map(|own| own.activation.release_ns))
    }

    /// The release that it waits for since before `at_ns`, answered or not.
    pub(crate) fn due(&self, at_ns: u64) -> Option<Activation> {
        let is_asleep = self.is_asleep();
        let timer = self.pending_arm().map(|own| own.activation);
        self.activation.or(timer.filter(|due| due.release_ns < at_ns && is_asleep))
    }

    /// The release that is next where it still works, and programmed none yet: by its period, with
    /// an eighth of that for one that is not kept, and not before it ran.
    pub(crate) fn expected(&self) -> Option<Activation> {
        let (last, own, period_ns) = (self.last?, self.arm?, self.period_ns?);
        let next_ns = last.activation.release_ns.checked_add(period_ns - period_ns / 8)?;
        let release_ns = next_ns.max(self.works_since_ns?);
        Some(Activation { release_ns, latest_ns: release_ns, armed_ns: None, ..own.activation })
    }

    /// Takes out the judged part of the wait since this release, to go on with it; `None` where
    /// nothing was dropped of it. It may begin behind the release.
    pub(crate) fn take_begin(&mut self, release_ns: u64) -> Option<WakeBegin> {
        self.begin.take()?.since(release_ns)
    }

    /// Drops the pieces of its past up to the end of `begin`, which has them.
    pub(crate) fn condense(&mut self, begin: WakeBegin) {
        self.past.drop_until(begin.to_ns());
        self.begin = Some(begin);
    }

    /// Counts a wait that is longer than its memory.
    pub(crate) const fn count_condensed(&mut self) {
        self.condensed += 1;
    }

    /// Waits that were longer than its memory.
    pub(crate) const fn condensed(&self) -> u64 {
        self.condensed
    }

    /// Events of a CPU were lost up to now, since `from_ns`: where it was there, what it did
    /// meanwhile was not seen.
    pub(crate) fn lose(&mut self, from_ns: u64, now: Moment) {
        let Moment { cpu, at_ns } = now;
        let is_armed_there = self.pending_arm().is_some_and(|own| own.arm.cpu == cpu);
        if self.last_cpu != cpu && !is_armed_there {
            return;
        }
        self.lost_ns = Some(at_ns);
        self.unseen.time_ns += at_ns.saturating_sub(from_ns);
        (self.last, self.previous) = (None, None);
        (self.cycle, self.waited) = (None, None);
        (self.works_since_ns, self.stretch_ns) = (None, 0);
    }

    /// Returns true where events were lost between a release and its answer, which comes now; or
    /// before it, while the thread worked up to its release: how late it began to do so was not
    /// seen.
    pub(crate) fn takes_loss(&mut self, activation: &Activation) -> bool {
        let Activation { release_ns, armed_ns, .. } = *activation;
        let is_worked_into = armed_ns.is_some_and(|armed_ns| armed_ns > release_ns);
        self.lost_ns.take().is_some_and(|lost_ns| release_ns < lost_ns || is_worked_into)
    }

    /// Counts a wake that is left out, since a part of it was not recorded.
    pub(crate) const fn count_unseen(&mut self) {
        self.unseen.wakes += 1;
        // What was lost may have been sleep.
        if let Some(last) = &mut self.last {
            last.seen_ns = 0;
        }
    }

    /// Its wakes that are left out, and for how long nothing was seen.
    pub(crate) const fn unseen(&self) -> UnseenWakes {
        self.unseen
    }

    /// Returns true where its system calls are recorded: it sleeps in one, and runs its own code
    /// behind that.
    pub(crate) const fn shows_calls(&self) -> bool {
        self.syscall.is_some() || self.call_end.is_some()
    }

    /// It answered a release, and more may show when it ran.
    pub(crate) fn set_answer(&mut self, answer: Answer) {
        self.answer = Some(answer);
    }

    /// Its last answer that is not judged yet; once.
    pub(crate) const fn take_answer(&mut self) -> Option<Answer> {
        self.way_out_ns = 0;
        self.answer.take()
    }

    /// The instant from which on it has come to its own code since its last answer, ns, although it
    /// does nothing that shows this; `None` where that is known.
    pub(crate) fn runs_own_code_from_ns(&self) -> Option<u64> {
        let answer = self.answer.as_ref().filter(|answer| answer.awaits_own_code)?;
        Some(answer.run.at_ns + OWN_CODE_NS)
    }

    /// It does what only its own code does. Returns its last answer where nothing more shows when
    /// it ran; once.
    pub(crate) fn run_own_code(&mut self) -> Option<Answer> {
        self.way_out_ns = 0;
        self.answer.as_mut()?.awaits_own_code = false;
        self.answer.take_if(|answer| answer.is_settled())
    }

    /// It leaves its CPU in this state, which another CPU interrupted last at `last_ipi_ns`. Where
    /// it has not come to its own code since its last answer, it waits for the same release again:
    /// then true.
    pub(crate) fn reopens(&mut self, at_ns: u64, state: ThreadState, last_ipi_ns: u64) -> bool {
        let Some(answer) = self.answer.as_ref().filter(|answer| answer.awaits_own_code) else {
            return false;
        };
        let ran_ns = at_ns.saturating_sub(answer.run.at_ns).saturating_add(self.way_out_ns);
        let call_end = self.call_end.filter(|end| end.at_ns >= answer.run.at_ns);
        let is_behind = |end: CallEnd| at_ns.saturating_sub(end.at_ns) <= CALL_END_NS;
        let is_on_its_way = match (state, call_end) {
            _ if ran_ns > WAY_OUT_NS => false,
            (ThreadState::Ready(_) | ThreadState::Stopped, None) => self.syscall.is_some(),
            (ThreadState::Ready(_), Some(end)) => end.is_reschedule_wanted && is_behind(end),
            (ThreadState::Stopped, Some(end)) => last_ipi_ns <= end.at_ns && is_behind(end),
            _ => false,
        };
        if let Some(answer) = self.answer.take_if(|_| is_on_its_way) {
            (self.activation, self.begin) = (Some(answer.activation), answer.begin);
            (self.works_since_ns, self.way_out_ns) = (None, ran_ns);
            self.work.go_on(answer.cycle);
        }
        is_on_its_way
    }

    /// The release of its last answer that is not judged yet, ns.
    pub(crate) fn answered_ns(&self) -> Option<u64> {
        self.answer.as_ref().map(|answer| answer.activation.release_ns)
    }

    /// When it ran by its last answer that is not judged yet, ns.
    pub(crate) fn ran_ns(&self) -> Option<u64> {
        self.answer.as_ref().map(|answer| answer.run.at_ns)
    }

    /// As [`Past::wake_in_hole`]: then nothing else of its wait is missing.
    pub(crate) fn wake_in_hole(&mut self) {
        if self.past.wake_in_hole()
            && let Some(activation) = &mut self.activation
        {
            activation.is_whole = true;
        }
    }

    /// As [`Past::confirm`].
    pub(crate) fn confirm(&mut self, hole: SwitchHole, began_ns: u64) {
        self.past.confirm(hole, began_ns, hole.tid == self.task.tid);
    }

    /// As [`Past::reveal`].
    pub(crate) fn reveal(&mut self, hole: SwitchHole, began_ns: u64, task: TaskName) {
        self.past.reveal(hole, began_ns, task, task.tid == self.task.tid);
    }

    /// It runs, and its waking was not recorded: its own timer released it, where that was due.
    /// Returns true where it did.
    pub(crate) fn adopt(&mut self, at_ns: u64) -> bool {
        let is_asleep = self.is_asleep();
        let timer = self.pending_arm().map(|own| own.activation);
        let due = timer.filter(|due| due.release_ns <= at_ns && is_asleep);
        if due.is_none() {
            self.count_unmatched();
        }
        let due = due.filter(|_| self.activation.is_none());
        if let Some(due) = due {
            self.activation = Some(Activation { is_whole: false, ..due });
        }
        due.is_some()
    }

    /// A timer releases it, where no earlier release is open.
    pub(crate) const fn release(&mut self, activation: Activation) {
        if self.activation.is_none() {
            self.timer_releases += 1;
            self.activation = Some(activation);
        }
    }

    /// This timer had expired before it was started; returns true where it is its own, which
    /// releases it then.
    pub(crate) fn expire_at_start(&mut self, timer: u64) -> bool {
        let own = self.pending_arm().filter(|own| own.arm.timer == timer);
        own.map(|own| self.release(own.activation)).is_some()
    }

    /// Counts a waking of a thread that sleeps where no recorded event is its release.
    pub(crate) const fn count_unmatched(&mut self) {
        // Who waits for a disk or a page is in the middle of its work; whose sleep was not seen to
        // begin is new.
        if self.activation.is_none() && matches!(self.state, ThreadState::Sleeping) {
            self.unmatched += 1;
        }
    }

    /// Counts a waking of a thread that lost its CPU on the way into its sleep, where that is no
    /// expiry of a timer of its own.
    pub(crate) const fn count_unmatched_preempted(&mut self) {
        self.unmatched += 1;
    }

    /// It waits for its CPU already when the recording begins.
    pub(crate) const fn find_ready(&mut self, at_ns: u64) {
        if self.activation.is_none() {
            self.activation = Some(Activation::unseen(at_ns));
        }
        self.wait_from(at_ns);
    }

    /// It did not wait when the recording began; returns true where it was taken to.
    pub(crate) fn was_not_ready(&mut self) -> bool {
        self.activation.take_if(|open| open.anchor == ReleaseAnchor::Unseen).is_some()
    }

    /// Returns true where a release waits for its run.
    pub(crate) const fn has_release(&self) -> bool {
        self.activation.is_some()
    }

    /// Returns true where an interrupt or another thread can release it: it sleeps, and no timer is
    /// what it waits for. A timeout that never came is not what it waits for. A thread wakes one
    /// with a timer of its own in the middle of its cycle, where it waited for a lock.
    pub(crate) fn awaits(&self, anchor: ReleaseAnchor) -> bool {
        let has_timer = match anchor {
            ReleaseAnchor::Thread { .. } => self.timer_releases > 0,
            _ => self.pending_arm().is_some() && self.timer_releases > 0,
        };
        !has_timer && self.activation.is_none() && self.state == ThreadState::Sleeping
    }

    /// An interrupt or another thread releases it, at `anchor_ns`, but not before it slept.
    pub(crate) fn release_at(&mut self, anchor: ReleaseAnchor, anchor_ns: u64, at_ns: u64) {
        let release_ns = anchor_ns.max(self.past.settled_ns()).min(at_ns);
        self.activation = Some(Activation {
            anchor,
            release_ns,
            latest_ns: release_ns,
            armed_ns: None,
            is_whole: true,
        });
    }

    /// It runs: takes the release that this answers.
    pub(crate) fn answer(&mut self, ran_ns: u64) -> Option<Activation> {
        let activation = self.activation.take()?;
        self.end_arm(ArmState::Ended);
        if activation.anchor == ReleaseAnchor::Unseen {
            return Some(activation);
        }
        let release_ns = activation.release_ns.min(ran_ns);
        if !self.counts_busy(release_ns) {
            self.cycle = None;
        }
        (self.works_since_ns, self.stretch_ns) = (Some(ran_ns), 0);
        let (lateness_ns, kernel_priority) = (ran_ns - release_ns, self.task.kernel_priority);
        let seen_ns = lateness_ns;
        self.waited = None;
        let answered = Activation { release_ns, ..activation };
        self.last = Some(LastWake { activation: answered, lateness_ns, seen_ns, kernel_priority });
        Some(activation)
    }

    /// Counts the releases between the last one that it answered and this one which passed before
    /// it waited again: it skips those, or makes up for them at once, so that no wake shows them.
    /// Returns true where there are any.
    fn counts_busy(&mut self, release_ns: u64) -> bool {
        let Some((last, period_ns)) = self.last.zip(self.period_ns.filter(|&ns| ns > 0)) else {
            return false;
        };
        // It may have slept through others of its own will.
        let until_wait_ns = last.seen_ns.saturating_add(self.stretch_ns);
        let skipped = last.skipped(release_ns, period_ns).min(until_wait_ns / period_ns);
        if skipped > 0 {
            self.busy.add(skipped, until_wait_ns);
        }
        skipped > 0
    }

    /// Returns true where its cycle ends when it sleeps: one that programs its own timers, and none
    /// since it answered, waits in the middle of it.
    fn is_at_its_end(&self) -> bool {
        self.arm.is_none() || self.pending_arm().is_some()
    }

    /// Its cycle, which ends now as far as is known, where releases pass before it waits.
    pub(crate) fn passing_cycle(&self, at_ns: u64) -> Option<OpenCycle> {
        let (last, period_ns) = self.last.zip(self.period_ns.filter(|&ns| ns > 0))?;
        let works_since_ns = self.works_since_ns.filter(|_| self.is_at_its_end())?;
        let next_ns =
            last.activation.release_ns.checked_add(period_ns).filter(|&next_ns| next_ns < at_ns)?;
        let own = self.pending_arm().map(|own| own.activation.release_ns);
        if own.is_some_and(|release_ns| last.skipped(release_ns, period_ns) == 0) {
            return None;
        }
        // Where even its work was longer than its memory, that is what is left.
        let work = self.begin.as_ref().filter(|begin| begin.to_ns() > works_since_ns);
        let begin = work.or(self.waited.as_ref()).cloned();
        Some(OpenCycle { activation: last.activation, next_ns, begin })
    }

    /// Remembers the cycle that ends now, until its next answer shows whether it let releases pass.
    pub(crate) fn set_cycle(&mut self, cycle: PassedCycle) {
        self.cycle = Some(Box::new(cycle));
    }

    /// The cycle before the release that it answered last, where that let releases pass; once.
    pub(crate) fn take_cycle(&mut self) -> Option<PassedCycle> {
        let cycle = *self.cycle.take()?;
        self.busy.go_on(cycle.over_ns());
        Some(cycle)
    }

    /// Remembers the judged part of the wait that it answered last.
    pub(crate) fn set_waited(&mut self, begin: Option<WakeBegin>) {
        self.waited = begin;
    }

    /// Its releases that passed before it waited for them.
    pub(crate) const fn busy(&self) -> PassedReleases {
        self.busy
    }

    /// The lateness beyond which a wake is late whatever share of its wakes is, ns: its period,
    /// rounded down so that wakes are counted as they are kept; `u64::MAX` where that is not known.
    fn late_at_most_ns(&self) -> u64 {
        self.period_ns.map_or(u64::MAX, |period_ns| Selection::down_to(period_ns).1)
    }

    /// It is ready from now on, for the CPU `target`.
    pub(crate) fn wake(&mut self, now: Moment, target: u32) {
        let waited_ns = now.at_ns.saturating_sub(self.ready_ns);
        let own_will_ns = self.period_ns.map_or(0, |period_ns| period_ns.saturating_mul(OWN_WILL));
        if self.state == ThreadState::Sleeping && waited_ns > own_will_ns {
            self.works_since_ns = None;
        }
        self.queue_on(now, target);
        let is_outrun = self.activation.is_none() && self.pending_arm().is_some();
        self.end_arm(if is_outrun { ArmState::Outrun } else { ArmState::Ended });
    }

    /// It waits for the CPU `target` from now on, whose scheduler has not passed it over: where
    /// another CPU queues it there, it arrives with that one's interrupt.
    pub(crate) const fn queue_on(&mut self, now: Moment, target: u32) {
        self.wait_from(now.at_ns);
        self.is_remote = now.cpu != target;
    }

    /// It waits for its CPU from now on.
    const fn wait_from(&mut self, at_ns: u64) {
        (self.ready_ns, self.is_passed_over, self.is_remote) = (at_ns, false, false);
    }

    /// It runs no more; `stopper` is the thread whose signal stopped it, where that was seen.
    pub(crate) fn leave(&mut self, at_ns: u64, state: ThreadState, stopper: Option<TaskName>) {
        self.wait_from(at_ns);
        if matches!(state, ThreadState::Sleeping | ThreadState::Blocked)
            && let Some(since_ns) = self.works_since_ns
        {
            self.stretch_ns = at_ns.saturating_sub(since_ns);
            if self.is_at_its_end() {
                self.works_since_ns = None;
            }
        }
        match state {
            ThreadState::Unknown => {
                (self.has_ended, self.arm, self.activation) = (true, None, None);
            }
            ThreadState::Stopped => self.stop_sender = stopper,
            _ => {}
        }
    }

    /// The instant at which it arrived in the queue of its CPU, ns; another CPU interrupted that
    /// one last at `last_ipi_ns`.
    fn arrived_ns(&self, last_ipi_ns: u64) -> u64 {
        match (self.is_remote, last_ipi_ns < self.ready_ns) {
            (false, _) => self.ready_ns,
            (true, false) => last_ipi_ns,
            (true, true) => self.ready_ns + REMOTE_NS,
        }
    }

    /// Returns true where it has arrived in the queue of the CPU of a choice, which runs one below
    /// it, and was not passed over yet.
    pub(crate) fn is_below(&self, chosen: &Chosen, now: Moment) -> bool {
        let priority = self.task.kernel_priority;
        let is_behind = chosen.runner.tid == 0 || chosen.runner.kernel_priority > priority;
        let is_waiting = self.state == ThreadState::Ready(now.cpu) && !self.is_passed_over;
        let is_due = now.at_ns >= self.arrived_ns(chosen.last_ipi_ns) + CHOICE_NS;
        let may_be_pending =
            self.is_remote && chosen.last_ipi_ns < self.ready_ns && chosen.are_interrupts_off;
        is_behind && is_waiting && priority < 100 && is_due && !may_be_pending
    }

    /// It is passed over from now on, or was since it arrived.
    pub(crate) fn pass_over(&mut self, chosen: &Chosen) {
        self.is_passed_over = true;
        if chosen.is_since_ready {
            self.past.mark_passed_over(self.arrived_ns(chosen.last_ipi_ns));
        }
    }

    /// The thread that ran while it waited has another name or priority than was booked.
    pub(crate) fn correct(&mut self, wrong: TaskName, right: TaskName) {
        let priority = self.task.kernel_priority;
        let runs_since_before = self.past.correct(wrong, right, priority);
        if let Some(begin) = self.begin.as_mut().filter(|_| runs_since_before) {
            begin.correct(wrong, right, priority);
        }
        self.is_passed_over &= right.kernel_priority > priority;
    }
}

/// The figures that are learnt of it.
impl Thread {
    /// Takes in a finished wake; one on time says what is normal.
    pub(crate) fn learn(&mut self, wake: &Wake, config: &BlameConfig) {
        let Activation { anchor, release_ns, is_whole, .. } = wake.activation;
        if anchor != ReleaseAnchor::Unseen {
            self.pace.release(release_ns);
        }
        self.ledger.note(wake, config.late.absolute_ns());
        let count = self.ledger.spread().total();
        if count < STEP || count.is_multiple_of(STEP) {
            self.period_ns = self.pace.period_ns();
            self.on_time_ns = self.on_time_ns(config);
        }
        let is_bounded = wake.is_censored() && !wake.run.is_inferred;
        if !is_whole || is_bounded || wake.is_open() {
            return;
        }
        let times = || WakeTimes::new(&wake.window, anchor);
        if self.normals.is_ready() || count > PENDING_OF_THREAD {
            self.learn_early();
            if wake.least_ns() <= self.on_time_ns {
                self.normals.learn(times());
            }
            return;
        }
        self.early.push((wake.least_ns(), times()));
        let is_on_time = |(lateness_ns, _): &&(u64, WakeTimes)| *lateness_ns <= self.on_time_ns;
        let on_time = self.early.iter().filter(is_on_time).count() as u64;
        if on_time >= NEEDED || count == PENDING_OF_THREAD {
            self.learn_early();
        }
    }

    /// Learns from those of its early wakes that are on time, by what is known now.
    pub(crate) fn learn_early(&mut self) {
        for (lateness_ns, times) in std::mem::take(&mut self.early) {
            if lateness_ns <= self.on_time_ns {
                self.normals.learn(times);
            }
        }
    }

    fn on_time_ns(&self, config: &BlameConfig) -> u64 {
        let spread = self.ledger.spread();
        match config.late {
            // Where hardly any is on time, the earlier ones are the measure.
            LateThreshold::Above(_) if spread.total() < NEEDED + self.ledger.over() => {
                spread.quantile_ns(0.25)
            }
            LateThreshold::Above(threshold_ns) => {
                threshold_ns.saturating_add(self.pace.margin_ns())
            }
            LateThreshold::Quantile(share) => {
                spread.quantile_ns(share.min(0.9)).min(self.late_at_most_ns())
            }
        }
    }

    /// Returns true where a wake is late as far as is known yet; of a quantile, where it may be.
    pub(crate) const fn is_late(&self, config: &BlameConfig, least_ns: u64) -> bool {
        match config.late {
            LateThreshold::Above(threshold_ns) => {
                least_ns > threshold_ns.saturating_add(self.pace.margin_ns())
            }
            LateThreshold::Quantile(_) => least_ns > self.on_time_ns,
        }
    }

    /// Its wakes that are late in the end, and the lateness beyond which they are, ns. A margin,
    /// which it spins away, is added; an end that is not the absolute threshold itself is rounded
    /// up, by at most 6.3 %, and its period down.
    pub(crate) fn late_beyond(&self, config: &BlameConfig) -> (Selection, u64) {
        let recalled = config.recall.as_ref().and_then(|recall| recall.thread(self.task.tid));
        if let Some(recalled) = recalled {
            // No others were counted.
            return (Selection::beyond(0).0, recalled.threshold_ns);
        }
        let margin_ns = self.margin_ns();
        let beyond = |threshold_ns: u64| Selection::beyond(threshold_ns.saturating_add(margin_ns));
        if let Some(threshold_ns) = self.threshold_ns {
            return beyond(threshold_ns);
        }
        match config.late {
            LateThreshold::Above(threshold_ns) if margin_ns == 0 => (Selection::Over, threshold_ns),
            LateThreshold::Above(threshold_ns) => beyond(threshold_ns),
            LateThreshold::Quantile(share) => {
                // Of wakes whose begin was not recorded the least is 0, and no line.
                let quantile = self.ledger.quantile(share);
                let is_known = quantile.least_ns() > 0;
                let quantile_ns = if is_known { quantile.least_ns() } else { quantile.most_ns() };
                Selection::beyond(quantile_ns.min(self.late_at_most_ns()).max(margin_ns))
            }
        }
    }

    /// Sets the lateness beyond which a wake is late in the end, ns.
    pub(crate) const fn set_threshold(&mut self, threshold_ns: u64) {
        self.threshold_ns = Some(threshold_ns);
    }

    /// Returns true where too few of its wakes were on time to judge others, and it has had 64 at
    /// most.
    pub(crate) fn is_new(&self) -> bool {
        !self.normals.is_ready() && self.ledger.spread().total() <= PENDING_OF_THREAD
    }

    /// Leaves out what is open, after a time of which nothing is known; what was learnt holds.
    pub(crate) fn forget(&mut self) {
        (self.arm, self.activation, self.begin, self.answer) = (None, None, None, None);
        (self.last, self.previous, self.lost_ns) = (None, None, None);
        (self.cycle, self.waited) = (None, None);
        (self.works_since_ns, self.stretch_ns) = (None, 0);
        (self.is_passed_over, self.syscall, self.is_in_fault) = (false, None, false);
    }

    /// Gives a wake of its the facts that are known of it up to now, by which it is judged.
    pub(crate) fn inform(&self, wake: &mut Wake, config: &BlameConfig) {
        (wake.facts.usual, wake.facts.previous) = (self.normals.usual(), self.previous);
        wake.facts.is_workless = config.workless.contains(&wake.task.tid);
    }

    /// Remembers a judged wake, for the next one.
    pub(crate) fn remember(&mut self, wake: &Wake, parts: &[WakePart], main: LateCause) {
        let (ran_ns, lateness_ns) = (wake.run.at_ns, wake.lateness_ns());
        self.previous = Some(wake.facts.for_next(ran_ns, lateness_ns, parts, main));
    }

    /// Counts a late wake, for the live view.
    pub(crate) fn count_late(&mut self, wake: &Wake, parts: &[WakePart], main: LateCause) {
        self.late_main.add(main, |known| *known == main);
        let before = wake.run.before;
        if before.tid != wake.task.tid {
            self.before.add(before, |known| known.tid == before.tid);
        }
        for part in parts {
            match part.phase {
                WakePhase::Delivery => self.delivery_ns += part.length_ns(),
                WakePhase::Ready => self.ready_wait_ns += part.length_ns(),
                _ => {}
            }
        }
    }

    /// Its margin: the time by which its timer expires before its goal, ns; it spins for the rest.
    pub(crate) const fn margin_ns(&self) -> u64 {
        self.pace.margin_ns()
    }

    /// Its figures up to now.
    pub(crate) fn snapshot(&self) -> ThreadSnapshot {
        let kernel_priority =
            self.last.map_or(self.task.kernel_priority, |last| last.kernel_priority);
        ThreadSnapshot {
            task: TaskName { kernel_priority, ..self.task },
            cpu: self.last_cpu,
            period_ns: self.pace.period_ns(),
            margin_ns: self.pace.margin_ns(),
            wakes: self.ledger.spread().total(),
            p50: self.ledger.quantile(0.5),
            p99: self.ledger.quantile(0.99),
            max: self.ledger.max(),
            late: self.ledger.over(),
            delivery_ns: self.delivery_ns,
            ready_ns: self.ready_wait_ns,
            first_cause: self.late_main.most(),
            ran_before: self.before.most(),
            has_ended: self.has_ended,
            unmatched: self.unmatched,
            waiting: None,
        }
    }

    /// Its wait for the CPU that it is ready for, up to `at_ns`, where a thread other than the
    /// idle one has that. An idle CPU may not have recorded that it left.
    pub(crate) fn waiting(
        &self,
        at_ns: u64,
        runs: impl Fn(u32) -> Option<TaskName>,
    ) -> Option<WaitingNow> {
        let ThreadState::Ready(cpu) = self.state else { return None };
        // One whose release was not seen may be in the middle of its cycle.
        let activation = self.activation.filter(|open| open.anchor != ReleaseAnchor::Unseen)?;
        let release_ns = activation.release_ns;
        if self.lost_ns.is_some_and(|lost_ns| release_ns < lost_ns) {
            // Its run may be among what was lost.
            return None;
        }
        let runner = runs(cpu).filter(|task| task.tid != 0 && task.tid != self.task.tid)?;
        Some(WaitingNow { for_ns: at_ns.saturating_sub(release_ns), runner })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_frequent_survives_a_crowd() {
        let mut tids = Frequent::new();
        for tid in (0..1_000).flat_map(|number| [1_000 + number, 7]) {
            tids.add(tid, |&known| known == tid);
        }
        assert_eq!(tids.most(), Some(7));
        assert!(tids.seen.len() <= Frequent::<u32>::ROOM);
    }

    #[test]
    fn a_fault_within_a_call_counts_as_the_fault() {
        let mut thread = Thread::new(TaskName::default(), 0, 8, 8);
        assert_eq!(thread.mode(), TaskMode::Code);
        thread.syscall = Some(3);
        assert_eq!(thread.mode(), TaskMode::Syscall(3));
        thread.is_in_fault = true;
        assert_eq!(thread.mode(), TaskMode::Fault);
    }
}

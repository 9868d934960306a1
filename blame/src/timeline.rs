//! The timeline of a CPU: segments that follow each other without a gap, each with its label.
//!
//! An event closes the segment before it, under the label that held until then, and then changes
//! the label: it pushes or pops a frame, or another thread runs.

use punctual_trace::event::{
    CodeAddress, ContextFlags, ShortName, TaskName, Tid, TraceEvent, TraceKind, Vector,
};

use crate::path::TimerThread;
use crate::ring::Ring;
use crate::spread::bucket;
use crate::stall::Silence;

/// Depth of nested interrupts beyond which frames are only counted.
const DEPTH: usize = 8;
/// Addresses of a call chain that are kept, the innermost ones.
const CHAIN: usize = 16;

/// The mode in which a followed thread runs. Of other threads it is always the code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TaskMode {
    /// Its code, or kernel code that no event marks.
    Code,
    /// A page fault is served.
    Fault,
    /// In a system call of this number.
    Syscall(u32),
}

/// The activity of a CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Activity {
    /// It idles, in this state of `power:cpu_idle` where that was recorded.
    Idle {
        /// The state's number.
        state: Option<u32>,
    },
    /// A thread runs.
    Task {
        /// That thread.
        task: TaskName,
        /// The mode in which it runs.
        mode: TaskMode,
    },
    /// The handler of a device's interrupt.
    HardIrq {
        /// Its number.
        irq: u32,
        /// Its name.
        name: ShortName,
    },
    /// A soft interrupt.
    Softirq {
        /// 0 HI … 9 RCU.
        number: u8,
        /// The device whose interrupt came last before it in the same visit; empty where none did.
        device: ShortName,
    },
    /// The timer interrupt, outside the functions of timers.
    TimerInterrupt,
    /// A timer's function.
    TimerCallback {
        /// The timer's address.
        timer: u64,
        /// The function.
        function: CodeAddress,
        /// The thread that programmed it; all empty where that was not seen.
        armer: TaskName,
        /// True where it is called in a soft interrupt.
        is_soft: bool,
    },
    /// Another CPU interrupted.
    Ipi {
        /// The vector of the interrupt.
        vector: Vector,
        /// The thread that sent it, where that is known.
        sender: Option<TaskName>,
    },
    /// A call that another CPU queued.
    Call {
        /// The function.
        function: CodeAddress,
        /// The thread that queued it, where that is known.
        sender: Option<TaskName>,
    },
    /// An interrupt that cannot be masked.
    Nmi,
    /// Events of this stretch were lost.
    Lost,
    /// Nothing is known: before the first event, or pushed out of the ring.
    Unseen,
    /// No CPU counts: the thread sleeps or is stopped.
    Elsewhere,
}

impl Activity {
    /// Returns true where a thread runs or the CPU idles, and no interrupt is served.
    pub(crate) const fn is_task_or_idle(&self) -> bool {
        matches!(self, Self::Idle { .. } | Self::Task { .. })
    }

    /// Returns true where an interrupt is served.
    pub(crate) const fn is_interrupt(&self) -> bool {
        !self.is_task_or_idle() && !matches!(self, Self::Lost | Self::Unseen | Self::Elsewhere)
    }

    /// Returns true where another CPU caused it.
    pub(crate) const fn is_from_other_cpu(&self) -> bool {
        matches!(self, Self::Ipi { .. } | Self::Call { .. })
    }

    /// Returns true where another CPU interrupted this one alone, as the waking of a thread does.
    pub(crate) const fn is_for_one_cpu(&self) -> bool {
        let Self::Ipi { vector, .. } = self else { return false };
        matches!(vector, Vector::Reschedule | Vector::CallFunctionSingle)
    }
}

/// An instant on a CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Moment {
    pub(crate) cpu: u32,
    pub(crate) at_ns: u64,
}

/// A stretch of one CPU under one label.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) from_ns: u64,
    pub(crate) to_ns: u64,
    pub(crate) activity: Activity,
    /// The number of the call chain that its first event brought, in the CPU's ring.
    pub(crate) chain: Option<u64>,
    /// True where the next event showed that another thread than this ran at its end.
    pub(crate) is_hole: bool,
    /// True where it lies before the first event of its CPU: as there was no switch, the thread
    /// that this event shows ran in it.
    pub(crate) is_inferred: bool,
}

/// A call chain, and the thread that it was taken of.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ChainRecord {
    addresses: [CodeAddress; CHAIN],
    length: u8,
    pub(crate) tid: u32,
}

impl ChainRecord {
    fn new(chain: &[CodeAddress], tid: u32) -> Self {
        let length = chain.len().min(CHAIN);
        let mut addresses = [0; CHAIN];
        addresses[..length].copy_from_slice(&chain[..length]);
        // At most 16.
        Self { addresses, length: length as u8, tid }
    }

    pub(crate) fn addresses(&self) -> &[CodeAddress] {
        &self.addresses[..usize::from(self.length)]
    }
}

#[derive(Debug, Clone, Copy)]
struct Frame {
    activity: Activity,
    /// True where the flags of its own event show that a hard or soft interrupt is served.
    is_flagged: bool,
}

/// The handler's name of an interrupt from another CPU, where such a one has a handler as those of
/// devices have (arch/arm64/kernel/smp.c, `ipi_setup`): `ipi:ipi_entry` tells within it what it is.
const IPI_HANDLER: &[u8] = b"IPI";

/// The handler of an interrupt from another CPU.
#[derive(Debug, Clone, Copy)]
enum IpiHandler {
    /// It begins, and no event has shown yet what it is.
    Entered { irq: u32, at_ns: u64, is_flagged: bool },
    /// An event of its own stands for it, on top of so many frames.
    Recorded { irq: u32, depth: usize },
}

/// Counts of what went wrong on a CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TimelineCounts {
    /// Events of a thread that was not the one booked as current: a switch was not recorded.
    pub holes: u64,
    /// Switches that came while an interrupt was booked: its end was not recorded.
    pub unclosed: u64,
    /// Ends without a beginning.
    pub unopened: u64,
    /// Interrupts that nest deeper than eight.
    pub too_deep: u64,
    /// Losses that the recorder reported.
    pub losses: u64,
    /// Events lost in them.
    pub lost_events: u64,
}

/// Gaps between two events of a CPU, by length: how likely a stretch without events is by chance.
#[derive(Debug, Clone, Default)]
struct GapDensity {
    /// The gaps of each eighth of an octave of ns: their number, and their time in ns.
    eighths: Vec<(u64, u64)>,
    total_ns: u64,
}

impl GapDensity {
    fn add(&mut self, gap_ns: u64) {
        let eighth = usize::from(bucket(gap_ns, 3));
        if self.eighths.len() <= eighth {
            self.eighths.resize(eighth + 1, (0, 0));
        }
        let (count, time_ns) = &mut self.eighths[eighth];
        *count += 1;
        *time_ns = time_ns.saturating_add(gap_ns);
        self.total_ns = self.total_ns.saturating_add(gap_ns);
    }

    /// The probability that a stretch of this length, laid anywhere, lies within one gap, 0..1.
    fn chance(&self, length_ns: u64) -> f64 {
        if self.total_ns == 0 {
            return 1.0;
        }
        let room: u64 = self
            .eighths
            .iter()
            .map(|&(count, time_ns)| time_ns.saturating_sub(count.saturating_mul(length_ns)))
            .sum();
        (room as f64 / self.total_ns as f64).min(1.0)
    }
}

/// One CPU, over time.
#[derive(Debug, Clone)]
pub(crate) struct CpuTimeline {
    current: Option<TaskName>,
    mode: TaskMode,
    idle_state: Option<u32>,
    stack: Vec<Frame>,
    /// Threads that were preempted while they served soft interrupts, the last one at the end.
    broken_off: Vec<Tid>,
    first_ns: u64,
    last_ns: u64,
    visit_ns: u64,
    /// The end of the last interrupt of the present visit, ns; `None` after a switch.
    interrupt_end_ns: Option<u64>,
    /// When another CPU interrupted it last, ns; 0 before the first time.
    last_ipi_ns: u64,
    ipi_handler: Option<IpiHandler>,
    device: ShortName,
    segments: Ring<Segment>,
    chains: Ring<ChainRecord>,
    pending_chain: Option<u64>,
    gaps: GapDensity,
    interrupts_ns: u64,
    counts: TimelineCounts,
    /// The instant since which the recording goes on, ns, until the first event of this CPU shows
    /// who ran.
    since_ns: Option<u64>,
    /// The number of the segment up to which every followed thread has taken over what concerns it.
    taken: u64,
    /// Followed threads that wait for this CPU.
    waiting: u32,
}

/// After the last interrupt an own visit begins when the CPU was back this long, ns.
const VISIT_GAP_NS: u64 = 2_000;

impl CpuTimeline {
    /// A CPU whose first event comes at `at_ns`, in a recording that goes on since `since_ns`.
    pub(crate) fn new(since_ns: u64, at_ns: u64, segments: usize, chains: usize) -> Self {
        Self {
            current: None,
            mode: TaskMode::Code,
            idle_state: None,
            stack: Vec::with_capacity(DEPTH),
            broken_off: Vec::with_capacity(DEPTH),
            first_ns: at_ns,
            last_ns: at_ns,
            visit_ns: at_ns,
            interrupt_end_ns: None,
            last_ipi_ns: 0,
            ipi_handler: None,
            device: ShortName::default(),
            segments: Ring::new(segments),
            chains: Ring::new(chains),
            pending_chain: None,
            gaps: GapDensity::default(),
            interrupts_ns: 0,
            counts: TimelineCounts::default(),
            since_ns: Some(since_ns),
            taken: 0,
            waiting: 0,
        }
    }

    pub(crate) const fn current(&self) -> Option<TaskName> {
        self.current
    }

    pub(crate) const fn last_ns(&self) -> u64 {
        self.last_ns
    }

    /// The time of interrupts up to now, ns.
    pub(crate) const fn interrupts_ns(&self) -> u64 {
        self.interrupts_ns
    }

    pub(crate) const fn counts(&self) -> TimelineCounts {
        self.counts
    }

    /// The segments that end behind an instant, as far as they are still there, in their order.
    pub(crate) fn since(&self, at_ns: u64) -> impl Iterator<Item = &Segment> {
        let segments = &self.segments;
        let is_wanted = |segment: &&Segment| segment.to_ns > at_ns;
        let mut first = segments.written();
        while let Some(before) = first.checked_sub(1)
            && segments.get(before).filter(is_wanted).is_some()
        {
            first = before;
        }
        (first..segments.written()).filter_map(|number| segments.get(number))
    }

    /// Returns true where followed threads have yet to take over more than half of what there is
    /// room for.
    pub(crate) fn is_half_full(&self) -> bool {
        self.segments.written() - self.taken > self.segments.capacity() as u64 / 2
    }

    /// Every followed thread has taken over what concerns it.
    pub(crate) const fn set_taken(&mut self) {
        self.taken = self.segments.written();
    }

    /// When another CPU interrupted it last, ns; 0 before the first time.
    pub(crate) const fn last_ipi_ns(&self) -> u64 {
        self.last_ipi_ns
    }

    /// Returns true where followed threads wait for this CPU.
    pub(crate) const fn is_awaited(&self) -> bool {
        self.waiting > 0
    }

    /// Counts so many more of them, or fewer where `step` is negative.
    pub(crate) const fn count_waiting(&mut self, step: i32) {
        self.waiting = self.waiting.saturating_add_signed(step);
    }

    pub(crate) fn chain(&self, number: u64) -> Option<&ChainRecord> {
        self.chains.get(number)
    }

    /// The label that holds now.
    pub(crate) fn activity(&self) -> Activity {
        match (self.stack.last(), self.current) {
            (Some(frame), _) => frame.activity,
            (None, Some(task)) if task.tid == 0 => Activity::Idle { state: self.idle_state },
            (None, Some(task)) => Activity::Task { task, mode: self.mode },
            (None, None) => Activity::Unseen,
        }
    }

    /// Returns true where an interrupt is served.
    pub(crate) fn is_interrupted(&self) -> bool {
        !self.stack.is_empty()
    }

    /// The frames, outermost first.
    pub(crate) fn frames(&self) -> impl DoubleEndedIterator<Item = &Activity> {
        self.stack.iter().map(|frame| &frame.activity)
    }

    /// The begin of the present visit to interrupts, ns: those that follow each other at once are
    /// one.
    pub(crate) const fn visit_ns(&self) -> u64 {
        self.visit_ns
    }

    /// The instant, ns, no earlier than which the clock was read by which a timer's function is
    /// called now, in this context: the begin of the interrupt that calls it. With PREEMPT_RT a
    /// thread does so: it reads the clock once, and may have lost the CPU since, for any time.
    pub(crate) fn clock_read_since_ns(&self, context: ContextFlags) -> u64 {
        let is_interrupt = |frame: &Activity| !matches!(frame, Activity::TimerCallback { .. });
        let is_thread = || self.current.is_some_and(|task| TimerThread::has_its_name(&task));
        if self.frames().any(is_interrupt) {
            self.visit_ns
        } else if context.is_soft_interrupt() || (!context.is_interrupt() && is_thread()) {
            0
        } else {
            self.last_ns
        }
    }

    /// Leaves out the handler of an interrupt from another CPU that has an event of its own, and
    /// returns true for an event that only begins or ends such a handler. It is no device, and
    /// would stand between that interrupt and what it interrupts. Where no event tells what it is,
    /// it is booked under its own name.
    pub(crate) fn leaves_out(&mut self, event: &TraceEvent, at_ns: u64) -> bool {
        match (self.ipi_handler.take(), &event.kind) {
            // It has no end: the handler shows how long it took.
            (Some(IpiHandler::Entered { irq, .. }), TraceKind::VectorEntry(vector))
                if *vector != Vector::IrqWork =>
            {
                self.ipi_handler = Some(IpiHandler::Recorded { irq, depth: self.stack.len() });
            }
            (Some(IpiHandler::Entered { irq, at_ns, is_flagged }), _) => {
                self.close(at_ns);
                let name = ShortName::new(IPI_HANDLER);
                self.push(Activity::HardIrq { irq, name }, is_flagged);
            }
            (Some(IpiHandler::Recorded { irq, depth }), TraceKind::IrqExit { irq: ended, .. })
                if irq == *ended =>
            {
                // Where its own end was not recorded it ends with its handler.
                if self.stack.len() > depth {
                    self.close(at_ns);
                    self.stack.truncate(depth);
                }
                return true;
            }
            (handler, _) => self.ipi_handler = handler,
        }
        match event.kind {
            TraceKind::IrqEntry { irq, name } if name.as_bytes() == IPI_HANDLER => {
                let is_flagged = event.context.is_interrupt();
                self.ipi_handler = Some(IpiHandler::Entered { irq, at_ns, is_flagged });
                true
            }
            _ => false,
        }
    }

    /// Closes the segment before an event.
    pub(crate) fn close(&mut self, at_ns: u64) {
        if at_ns <= self.last_ns {
            return;
        }
        let activity = self.activity();
        self.append(at_ns, activity);
    }

    /// Closes the segment before as one of which nothing is known, since `count` events were lost;
    /// what was booked is void.
    pub(crate) fn lose(&mut self, at_ns: u64, count: u64) {
        if at_ns > self.last_ns {
            self.append(at_ns, Activity::Lost);
        }
        self.ipi_handler = None;
        self.counts.losses += 1;
        self.counts.lost_events = self.counts.lost_events.saturating_add(count);
        self.stack.clear();
        (self.current, self.since_ns) = (None, None);
    }

    /// Goes on at an instant before which nothing was recorded, on purpose: neither a loss nor
    /// silence.
    pub(crate) fn skip(&mut self, at_ns: u64) {
        if at_ns > self.last_ns {
            self.note(at_ns, Activity::Unseen);
        }
        self.ipi_handler = None;
        self.stack.clear();
        (self.current, self.since_ns) = (None, Some(at_ns));
    }

    fn append(&mut self, at_ns: u64, activity: Activity) {
        self.gaps.add(at_ns - self.last_ns);
        self.note(at_ns, activity);
    }

    fn note(&mut self, at_ns: u64, activity: Activity) {
        let chain = self.pending_chain.take();
        let (from_ns, to_ns) = (self.last_ns, at_ns);
        let (is_hole, is_inferred) = (false, false);
        if activity.is_interrupt() {
            self.interrupts_ns += to_ns - from_ns;
        }
        self.segments.push(Segment { from_ns, to_ns, activity, chain, is_hole, is_inferred });
        self.last_ns = at_ns;
    }

    /// Books that a thread runs of which no switch was recorded.
    pub(crate) fn discover(&mut self, task: TaskName, mode: TaskMode) {
        if self.current.is_some() {
            self.counts.holes += 1;
            if let Some(segment) = self.segments.newest_mut() {
                segment.is_hole = true;
            }
        }
        self.current = Some(task);
        self.mode = mode;
    }

    /// Returns true where no event has shown yet who runs since the recording began.
    pub(crate) const fn is_untouched(&self) -> bool {
        self.since_ns.is_some()
    }

    /// The first event of this CPU shows who runs: as there was no switch before it, since the
    /// recording began.
    pub(crate) fn discover_first(&mut self, task: TaskName, mode: TaskMode) {
        let since_ns = self.since_ns.take();
        (self.current, self.mode) = (Some(task), mode);
        let Some(from_ns) = since_ns.filter(|&since_ns| since_ns < self.last_ns) else { return };
        let (to_ns, activity) = (self.last_ns, self.activity());
        let first =
            Segment { from_ns, to_ns, activity, chain: None, is_hole: false, is_inferred: true };
        match self.segments.newest_mut() {
            // Who waited for this CPU may have made it known before.
            Some(segment) if segment.to_ns > from_ns => *segment = first,
            _ => {
                self.segments.push(first);
            }
        }
    }

    /// The thread that runs makes way for another one, in this context. With PREEMPT_RT it may be
    /// preempted while it serves soft interrupts: these end without a beginning once it is back.
    pub(crate) fn break_off(&mut self, context: ContextFlags) {
        let Some(current) = self.current else { return };
        self.broken_off.retain(|&tid| tid != current.tid);
        if context.is_soft_interrupt() {
            if self.broken_off.len() == DEPTH {
                self.broken_off.remove(0);
            }
            self.broken_off.push(current.tid);
            let is_soft = |frame: &Frame| matches!(frame.activity, Activity::Softirq { .. });
            if let Some(depth) = self.stack.iter().position(is_soft) {
                self.stack.truncate(depth);
            }
        }
    }

    /// Another thread runs from now on.
    pub(crate) fn switch(&mut self, next: TaskName, mode: TaskMode) {
        if !self.stack.is_empty() {
            self.counts.unclosed += 1;
            self.stack.clear();
        }
        self.current = Some(next);
        self.mode = mode;
        self.device = ShortName::default();
        self.idle_state = None;
        self.interrupt_end_ns = None;
    }

    /// The thread that runs does something else.
    pub(crate) const fn set_mode(&mut self, mode: TaskMode) {
        self.mode = mode;
    }

    /// It was booked here, but ran elsewhere.
    pub(crate) const fn forget_current(&mut self) {
        self.current = None;
    }

    /// The priority of the thread that runs was changed.
    pub(crate) fn rename_current(&mut self, task: TaskName) {
        if self.current.is_some_and(|current| current.tid == task.tid) {
            self.current = Some(task);
        }
    }

    /// Takes in an event that begins or ends an interrupt, which this thread sent where it is
    /// another CPU's. Of other events it takes no notice.
    // For most events.
    #[inline]
    pub(crate) fn frame(&mut self, event: &TraceEvent, sender: Option<TaskName>) {
        let is_flagged = event.context.is_interrupt();
        match event.kind {
            TraceKind::VectorEntry(vector) => match vector {
                Vector::LocalTimer => {
                    self.push(Activity::TimerInterrupt, is_flagged);
                    self.keep_chain(&event.chain, event.tid);
                }
                // Its end is refused to perf (EPERM): it would stay for ever.
                Vector::IrqWork => {}
                Vector::Platform => {
                    let name = ShortName::new(b"platform");
                    self.push(Activity::HardIrq { irq: u32::MAX, name }, is_flagged);
                }
                Vector::Reschedule | Vector::CallFunction | Vector::CallFunctionSingle => {
                    self.last_ipi_ns = self.last_ns;
                    self.push(Activity::Ipi { vector, sender }, is_flagged);
                }
                // It may be the CPU's own, and brings no thread.
                Vector::OtherCpu => {
                    self.push(Activity::Ipi { vector, sender: None }, is_flagged);
                }
            },
            TraceKind::VectorExit(Vector::LocalTimer) => {
                self.pop(|frame| *frame == Activity::TimerInterrupt);
            }
            TraceKind::VectorExit(Vector::Platform) => {
                self.pop(|frame| matches!(frame, Activity::HardIrq { irq: u32::MAX, .. }));
            }
            TraceKind::VectorExit(Vector::IrqWork) => {}
            TraceKind::VectorExit(ended) => {
                self.pop(|frame| matches!(frame, Activity::Ipi { vector, .. } if *vector == ended));
            }
            TraceKind::IrqEntry { irq, name } => {
                self.push(Activity::HardIrq { irq, name }, is_flagged);
            }
            TraceKind::IrqExit { irq: ended, .. } => {
                self.pop(|frame| matches!(frame, Activity::HardIrq { irq, .. } if *irq == ended));
            }
            TraceKind::SoftirqEntry(number) => {
                let device = self.device();
                self.push(Activity::Softirq { number, device }, is_flagged);
            }
            TraceKind::SoftirqExit(ended) => {
                self.pop_soft(
                    |frame| matches!(frame, Activity::Softirq { number, .. } if *number == ended),
                );
            }
            TraceKind::CallEntry { request, function } => {
                // Without a request it is this CPU's own.
                if request != 0 {
                    self.last_ipi_ns = self.last_ns;
                }
                self.push(Activity::Call { function, sender }, is_flagged);
            }
            TraceKind::CallExit { .. } => {
                self.pop(|frame| matches!(frame, Activity::Call { .. }));
            }
            TraceKind::TimerExpireExit { timer: ended } => {
                self.pop_soft(|frame| {
                    matches!(frame, Activity::TimerCallback { timer, .. } if *timer == ended)
                });
            }
            TraceKind::Nmi { took_ns } => self.cut_nmi(took_ns),
            TraceKind::CpuIdle { state } if state != u32::MAX => {
                self.idle_state = Some(state);
            }
            _ => {}
        }
    }

    /// An interrupt begins.
    fn push(&mut self, activity: Activity, is_flagged: bool) {
        if self.stack.is_empty() {
            let follows = self
                .interrupt_end_ns
                .is_some_and(|end_ns| self.last_ns.saturating_sub(end_ns) < VISIT_GAP_NS);
            if !follows {
                self.visit_ns = self.last_ns;
                self.device = ShortName::default();
            }
        }
        if let Activity::HardIrq { name, .. } = activity {
            self.device = name;
        }
        if self.stack.len() == DEPTH {
            self.counts.too_deep += 1;
            return;
        }
        self.stack.push(Frame { activity, is_flagged });
    }

    /// The device whose interrupt came last in this visit.
    const fn device(&self) -> ShortName {
        self.device
    }

    /// The innermost frame that `is_it` accepts ends, and with it what is above.
    fn pop(&mut self, is_it: impl Fn(&Activity) -> bool) {
        self.counts.unopened += u64::from(!self.end(is_it));
    }

    /// As [`Self::pop`], of what a thread goes on with that was preempted at it.
    fn pop_soft(&mut self, is_it: impl Fn(&Activity) -> bool) {
        let was_broken_off = |current: TaskName| self.broken_off.contains(&current.tid);
        let goes_on = self.current.is_some_and(was_broken_off);
        self.counts.unopened += u64::from(!self.end(is_it) && !goes_on);
    }

    /// Returns false where there is no such frame.
    fn end(&mut self, is_it: impl Fn(&Activity) -> bool) -> bool {
        let found = self.stack.iter().rposition(|frame| is_it(&frame.activity));
        if let Some(depth) = found {
            self.stack.truncate(depth);
            if depth == 0 {
                self.interrupt_end_ns = Some(self.last_ns);
            }
        }
        found.is_some()
    }

    /// A timer's function is called, and the one before has ended.
    pub(crate) fn begin_callback(&mut self, callback: Activity, context: ContextFlags) {
        self.end_callback();
        self.push(callback, context.is_interrupt());
    }

    /// A timer's function ends with the next one, where no event marks its end.
    pub(crate) fn end_callback(&mut self) {
        if matches!(self.activity(), Activity::TimerCallback { .. }) {
            self.stack.pop();
        }
    }

    /// An event says that no interrupt is served: frames that said the opposite have ended.
    pub(crate) fn end_flagged(&mut self) {
        if let Some(depth) = self.stack.iter().position(|frame| frame.is_flagged) {
            self.counts.unclosed += 1;
            self.stack.truncate(depth);
        }
    }

    /// Keeps a call chain with the segment that begins now.
    fn keep_chain(&mut self, chain: &[CodeAddress], tid: u32) {
        if !chain.is_empty() {
            self.pending_chain = Some(self.chains.push(ChainRecord::new(chain, tid)));
        }
    }

    /// Cuts the last `took_ns` before now out of the segment that was just closed, as an NMI, whose
    /// only event comes at its end.
    fn cut_nmi(&mut self, took_ns: u64) {
        let Some(segment) = self.segments.newest_mut() else { return };
        if took_ns == 0 || segment.to_ns != self.last_ns {
            return;
        }
        let nmi = Activity::Nmi;
        let begin_ns = segment.to_ns.saturating_sub(took_ns);
        if begin_ns <= segment.from_ns {
            segment.activity = nmi;
            return;
        }
        let to_ns = segment.to_ns;
        segment.to_ns = begin_ns;
        let (chain, is_hole, is_inferred) = (None, false, false);
        let from_ns = begin_ns;
        self.segments.push(Segment { from_ns, to_ns, activity: nmi, chain, is_hole, is_inferred });
    }

    /// The evidence of its silence in a stretch, but for a tenth of that at each end.
    pub(crate) fn silence(&self, from_ns: u64, to_ns: u64) -> Silence {
        let length_ns = to_ns - from_ns;
        let slack_ns = length_ns / 10;
        Silence {
            is_silent: self.is_silent(from_ns, to_ns, slack_ns),
            chance: self.chance_of_silence(length_ns - 2 * slack_ns),
        }
    }

    /// Returns true where no event of this CPU lies within a stretch, but for its ends' `slack_ns`.
    fn is_silent(&self, from_ns: u64, to_ns: u64, slack_ns: u64) -> bool {
        let (from_ns, to_ns) = (from_ns + slack_ns, to_ns.saturating_sub(slack_ns));
        if self.first_ns > from_ns || from_ns >= to_ns {
            return false;
        }
        let mut number = self.segments.written();
        let mut boundary_ns = self.last_ns;
        while boundary_ns > from_ns {
            if boundary_ns < to_ns {
                return false;
            }
            let Some(segment) = number.checked_sub(1).and_then(|last| self.segments.get(last))
            else {
                return false;
            };
            number -= 1;
            boundary_ns = segment.from_ns;
        }
        true
    }

    /// Its activity right before the segment that holds an instant; `None` where that is not there.
    pub(crate) fn before(&self, at_ns: u64) -> Option<Activity> {
        let mut number = self.segments.written();
        while let Some(segment) = number.checked_sub(1).and_then(|last| self.segments.get(last)) {
            number -= 1;
            if segment.from_ns <= at_ns {
                let before = number.checked_sub(1).and_then(|before| self.segments.get(before));
                return before.map(|segment| segment.activity);
            }
        }
        None
    }

    /// The probability that it is silent so long by itself, 0..1.
    fn chance_of_silence(&self, length_ns: u64) -> f64 {
        self.gaps.chance(length_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{ProptestConfig, Strategy, prop_assert, prop_assert_eq, proptest};

    fn task(tid: u32) -> TaskName {
        TaskName { tid, name: ShortName::new(b"t"), kernel_priority: 120 }
    }

    fn cpu() -> CpuTimeline {
        let mut cpu = CpuTimeline::new(100, 100, 64, 4);
        cpu.discover(task(7), TaskMode::Code);
        cpu
    }

    fn labels(cpu: &CpuTimeline) -> Vec<(u64, u64, Activity)> {
        (cpu.segments.oldest()..cpu.segments.written())
            .filter_map(|number| cpu.segments.get(number))
            .map(|segment| (segment.from_ns, segment.to_ns, segment.activity))
            .collect()
    }

    const IRQ: Activity = Activity::TimerInterrupt;

    /// The bounds of memory that `config` states.
    #[test]
    fn entries_of_rings_are_as_large_as_is_stated() {
        assert!(size_of::<Segment>() <= 88, "{}", size_of::<Segment>());
        assert!(size_of::<ChainRecord>() <= 136, "{}", size_of::<ChainRecord>());
        assert!(size_of::<crate::past::Piece>() <= 104, "{}", size_of::<crate::past::Piece>());
    }

    #[test]
    fn an_event_closes_what_held_before_it() {
        let mut cpu = cpu();
        cpu.close(150);
        cpu.push(IRQ, true);
        cpu.close(160);
        cpu.pop(|frame| *frame == IRQ);
        cpu.close(170);
        let task = Activity::Task { task: task(7), mode: TaskMode::Code };
        assert_eq!(labels(&cpu), [(100, 150, task), (150, 160, IRQ), (160, 170, task)]);
    }

    #[test]
    fn soft_interrupts_that_were_preempted_are_no_flaw() {
        let softirq = Activity::Softirq { number: 8, device: ShortName::default() };
        let serving = ContextFlags { flags: 0x10, preempt_depth: 0 };
        let mut cpu = cpu();
        let counts = |cpu: &CpuTimeline| (cpu.counts().unclosed, cpu.counts().unopened);
        // Twice, before it ends.
        cpu.push(softirq, true);
        for _ in 0..2 {
            cpu.break_off(serving);
            cpu.switch(task(3), TaskMode::Code);
            cpu.break_off(ContextFlags::default());
            cpu.switch(task(7), TaskMode::Code);
        }
        cpu.pop_soft(|frame| *frame == softirq);
        assert_eq!(counts(&cpu), (0, 0));
        // A device's end is none of that, nor is its handler that goes on beneath.
        cpu.pop(|frame| *frame == IRQ);
        cpu.push(IRQ, true);
        cpu.push(softirq, true);
        cpu.break_off(serving);
        cpu.switch(task(7), TaskMode::Code);
        assert_eq!(counts(&cpu), (1, 1));
        // Behind that it is none of its own any more.
        cpu.break_off(ContextFlags::default());
        cpu.switch(task(7), TaskMode::Code);
        cpu.pop_soft(|frame| *frame == softirq);
        assert_eq!(counts(&cpu), (1, 2));
        // Only so many threads are kept in mind.
        for tid in 10..30 {
            cpu.switch(task(tid), TaskMode::Code);
            cpu.break_off(serving);
        }
        assert_eq!(cpu.broken_off.len(), DEPTH);
        cpu.switch(task(29), TaskMode::Code);
        cpu.pop_soft(|frame| *frame == softirq);
        cpu.switch(task(10), TaskMode::Code);
        cpu.pop_soft(|frame| *frame == softirq);
        assert_eq!(counts(&cpu), (1, 3));
    }

    #[test]
    fn a_switch_ends_interrupts_and_counts_them() {
        let mut cpu = cpu();
        cpu.push(IRQ, true);
        cpu.switch(task(0), TaskMode::Code);
        assert_eq!(cpu.activity(), Activity::Idle { state: None });
        assert_eq!(cpu.counts().unclosed, 1);
        cpu.pop(|frame| *frame == IRQ);
        assert_eq!(cpu.counts().unopened, 1);
    }

    #[test]
    fn deeper_than_eight_is_counted_and_not_kept() {
        let mut cpu = cpu();
        (0..12).for_each(|_| cpu.push(IRQ, true));
        assert_eq!((cpu.frames().count(), cpu.counts().too_deep), (8, 4));
    }

    #[test]
    fn an_nmi_is_cut_backwards() {
        let mut cpu = cpu();
        cpu.close(200);
        cpu.cut_nmi(30);
        let task = Activity::Task { task: task(7), mode: TaskMode::Code };
        assert_eq!(labels(&cpu), [(100, 170, task), (170, 200, Activity::Nmi)]);
        cpu.close(210);
        cpu.cut_nmi(500);
        assert_eq!(labels(&cpu)[2], (200, 210, Activity::Nmi));
    }

    fn see(cpu: &mut CpuTimeline, at_ns: u64, kind: TraceKind) {
        let context = ContextFlags { flags: 0x08, preempt_depth: 0 };
        let event = TraceEvent { at_ns, cpu: 0, tid: 7, context, kind, chain: Box::default() };
        if !cpu.leaves_out(&event, at_ns) {
            cpu.close(at_ns);
            cpu.frame(&event, None);
        }
    }

    #[test]
    fn the_handler_of_an_interrupt_that_is_recorded_is_left_out() {
        let entry = TraceKind::IrqEntry { irq: 1, name: ShortName::new(IPI_HANDLER) };
        let exit = TraceKind::IrqExit { irq: 1, is_handled: None };
        let running = Activity::Task { task: task(7), mode: TaskMode::Code };
        let handled = |vector: Option<Vector>, has_end: bool| {
            let mut cpu = cpu();
            see(&mut cpu, 150, entry.clone());
            if let Some(vector) = vector {
                see(&mut cpu, 160, TraceKind::VectorEntry(vector));
            }
            if let Some(vector) = vector.filter(|_| has_end) {
                see(&mut cpu, 170, TraceKind::VectorExit(vector));
            }
            see(&mut cpu, 180, exit.clone());
            cpu.close(200);
            let labels = labels(&cpu);
            assert_eq!((cpu.counts(), cpu.is_interrupted()), (TimelineCounts::default(), false));
            labels
        };
        for vector in [Vector::Reschedule, Vector::OtherCpu] {
            let ipi = Activity::Ipi { vector, sender: None };
            let booked = |to_ns| [(100, 160, running), (160, to_ns, ipi), (to_ns, 200, running)];
            assert_eq!(handled(Some(vector), true), booked(170));
            assert_eq!(handled(Some(vector), false), booked(180));
        }
        let handler = Activity::HardIrq { irq: 1, name: ShortName::new(IPI_HANDLER) };
        let unrecorded = [(100, 150, running), (150, 180, handler), (180, 200, running)];
        assert_eq!(handled(None, true), unrecorded);
        // Of these no end is recorded everywhere.
        let spans = handled(Some(Vector::IrqWork), true);
        assert_eq!((spans[1].0, spans[spans.len() - 2].1), (150, 180));
        assert!(spans[1..spans.len() - 1].iter().all(|span| span.2 == handler), "{spans:?}");
    }

    #[test]
    fn a_hole_marks_the_segment_before_it() {
        let mut cpu = cpu();
        cpu.close(200);
        cpu.discover(task(8), TaskMode::Code);
        assert_eq!(cpu.counts().holes, 1);
        assert!(cpu.segments.get(0).is_some_and(|segment| segment.is_hole));
    }

    #[test]
    fn a_loss_makes_the_stretch_before_it_unknown() {
        let mut cpu = cpu();
        cpu.push(IRQ, true);
        cpu.lose(300, 12);
        assert_eq!(labels(&cpu), [(100, 300, Activity::Lost)]);
        assert_eq!(cpu.activity(), Activity::Unseen);
        assert_eq!((cpu.counts().losses, cpu.counts().lost_events), (1, 12));
        cpu.discover(task(8), TaskMode::Code);
        assert_eq!(cpu.counts().holes, 0);
    }

    #[test]
    fn interrupts_that_follow_at_once_are_one_visit() {
        let mut cpu = cpu();
        cpu.close(5_000);
        cpu.push(Activity::HardIrq { irq: 9, name: ShortName::new(b"eth0") }, true);
        cpu.close(6_000);
        cpu.pop(|_| true);
        cpu.close(6_500);
        cpu.push(IRQ, true);
        assert_eq!((cpu.visit_ns(), cpu.device()), (5_000, ShortName::new(b"eth0")));
        cpu.close(7_000);
        cpu.pop(|_| true);
        cpu.close(20_000);
        cpu.push(IRQ, true);
        assert_eq!((cpu.visit_ns(), cpu.device()), (20_000, ShortName::default()));
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

        /// Silence against a look at every boundary; the chance against laying the stretch at every
        /// nanosecond.
        #[test]
        fn silence_is_that_of_all_boundaries(
            steps in proptest::collection::vec(1u64..40, 1..30),
            from in 0u64..300,
            length in 1u64..120,
        ) {
            let mut cpu = CpuTimeline::new(100, 100, 64, 4);
            let mut boundaries = vec![100];
            for step in &steps {
                let at = boundaries[boundaries.len() - 1] + step;
                cpu.close(at);
                boundaries.push(at);
            }
            let from = 100 + from;
            let to = from + length;
            let silent = length > 0 && !boundaries.iter().any(|&at| at > from && at < to);
            prop_assert_eq!(cpu.is_silent(from, to, 0), silent);
            let total: u64 = steps.iter().sum();
            let room: u64 = steps.iter().map(|step| step.saturating_sub(length)).sum();
            let exact = room as f64 / total as f64;
            let found = cpu.chance_of_silence(length);
            // A bucket may hold gaps both shorter and longer than the stretch.
            prop_assert!(found <= exact + 1e-9, "{found} {exact}");
            prop_assert!((0.0..=1.0).contains(&found));
        }

        #[test]
        fn segments_follow_each_other_without_a_gap(
            steps in proptest::collection::vec((0u64..50, 0u8..7).prop_map(|step| step), 1..200),
        ) {
            let mut cpu = CpuTimeline::new(10, 10, 1_000, 4);
            let mut at = 10;
            for (step, action) in steps {
                at += step;
                cpu.close(at);
                match action {
                    0 => cpu.push(IRQ, true),
                    1 => cpu.pop(|frame| *frame == IRQ),
                    2 => cpu.switch(task(3), TaskMode::Fault),
                    3 => cpu.cut_nmi(step + 3),
                    4 => cpu.lose(at, 1),
                    5 => cpu.discover(task(4), TaskMode::Code),
                    _ => cpu.end_flagged(),
                }
            }
            let found = labels(&cpu);
            prop_assert!(found.iter().all(|(from, to, _)| from < to));
            prop_assert!(found.windows(2).all(|pair| pair[0].1 == pair[1].0));
            prop_assert!(found.first().is_none_or(|first| first.0 == 10));
            prop_assert!(found.last().is_none_or(|last| last.1 == cpu.last_ns()));
        }
    }
}

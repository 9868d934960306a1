//! The way of a wake, from its release to its run, as far as wakes differ in it: over another CPU,
//! by an interrupt from another CPU, by the kernel's thread that serves timers.

use punctual_trace::event::TaskName;

use crate::past::{Piece, WakePhase, Window};
use crate::release::ReleaseAnchor;
use crate::timeline::Activity;
use crate::wake::Wake;

/// A task or idle stretch beside an IPI that is shorter than this is the IPI's: entering and
/// leaving it costs a virtual machine some 12 µs without an event (measured), ns.
const IPI_GAP_NS: u64 = 60_000;

/// What is not on the way of every wake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WakePath {
    pub(crate) migration: Option<Migration>,
    pub(crate) timer_thread: Option<TimerThread>,
}

impl WakePath {
    /// That of a wake; of one that still waits where it is not whole.
    pub(crate) fn find(wake: &Wake, is_whole: bool) -> Self {
        let (window, anchor) = (&wake.window, wake.activation.anchor);
        Self {
            migration: Migration::find(window, anchor),
            timer_thread: TimerThread::find(wake, is_whole),
        }
    }
}

/// The interrupt by which another thread's waking reaches the CPU of a thread that is ready: the
/// first one behind the waking that may be it, where it is as short as such a one is.
pub(crate) fn own_ipi(window: &Window, anchor: ReleaseAnchor) -> Option<usize> {
    // Most wakes are a timer's, and this is looked at for each piece of each.
    if !matches!(anchor, ReleaseAnchor::Thread { .. }) {
        return None;
    }
    let is_first =
        |piece: &Piece| piece.phase == WakePhase::Ready && piece.activity.is_from_other_cpu();
    let index = window.pieces.iter().position(is_first)?;
    let piece = &window.pieces[index];
    (anchor.may_bring(&piece.activity) && piece.length_ns() < IPI_GAP_NS).then_some(index)
}

/// The migration of a thread that its timer released: to another CPU than that of its timer, or
/// than the one that it was ready on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Migration {
    /// The first piece on the other CPU.
    pub(crate) from: usize,
    /// The interrupt that brings it there: the first one behind it that may be that, where it
    /// is as short as such a one is.
    pub(crate) ipi: Option<usize>,
}

impl Migration {
    /// The first one in a window; `None` of a thread that stayed, or that no timer released: where
    /// another thread or an interrupt wakes it, its CPU is chosen anew each time.
    fn find(window: &Window, anchor: ReleaseAnchor) -> Option<Self> {
        if !matches!(anchor, ReleaseAnchor::Timer { .. }) {
            return None;
        }
        let is_due = |piece: &Piece| matches!(piece.phase, WakePhase::Delivery | WakePhase::Ready);
        let is_move = |pieces: &[Piece]| {
            let [before, behind] = pieces else { return false };
            is_due(before) && behind.phase == WakePhase::Ready && before.cpu != behind.cpu
        };
        let from = window.pieces.windows(2).position(is_move)? + 1;
        let mut behind = window.pieces.iter().enumerate().skip(from);
        let ipi = behind.find(|(_, piece)| piece.activity.is_from_other_cpu());
        let is_short = |&(_, piece): &(usize, &Piece)| {
            piece.activity.is_for_one_cpu() && piece.length_ns() < IPI_GAP_NS
        };
        Some(Self { from, ipi: ipi.filter(is_short).map(|(index, _)| index) })
    }

    /// Returns true where its interrupt is still on the way in a piece, whatever else interrupts
    /// there first, and for no longer than that takes.
    pub(crate) fn is_on_its_way(self, window: &Window, index: usize) -> bool {
        let from_ns = window.pieces[self.from].from_ns;
        let ipi = self.ipi.filter(|&ipi| (self.from..ipi).contains(&index));
        ipi.is_some_and(|ipi| window.pieces[ipi].from_ns - from_ns < IPI_GAP_NS)
    }
}

/// The kernel's thread that serves the timer of a wake: with PREEMPT_RT it serves each timer but
/// those that a real-time thread sleeps by (`HRTIMER_MODE_SOFT`, kernel/time/hrtimer.c), so that a
/// thread above it delays the timer of one that is above both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TimerThread {
    /// The first piece behind the interrupt that wakes it.
    from: usize,
    /// The piece in which it begins to serve; the end where it has not yet.
    to: usize,
    /// `None` as long as it has not served.
    thread: Option<TaskName>,
}

impl TimerThread {
    /// HRTIMER_SOFTIRQ of include/linux/interrupt.h.
    const SOFTIRQ: u8 = 8;
    /// The names of such threads; the second one serves what the first has not.
    const NAMES: [&[u8]; 2] = [b"ktimers/", b"ksoftirqd/"];
    /// Its priority as the kernel counts, where it was not seen: SCHED_FIFO 1.
    const USUAL_PRIORITY: i32 = 98;

    /// `None` of a timer whose function runs in its interrupt.
    fn find(wake: &Wake, is_whole: bool) -> Option<Self> {
        let ReleaseAnchor::Timer { timer: own, .. } = wake.activation.anchor else { return None };
        let is_own = |piece: &Piece| match piece.activity {
            Activity::TimerCallback { timer, .. } => timer == own,
            _ => false,
        };
        let pieces = &wake.window.pieces;
        let (to, thread) = match pieces.iter().position(is_own) {
            Some(called) => Self::serving(pieces, called).map(|(to, thread)| (to, Some(thread)))?,
            // A timer of the interrupt's own would have been called in it.
            None if !is_whole => (pieces.len(), None),
            None => return None,
        };
        // Where the begin was judged before, the interrupt came in it.
        let from = match wake.begin {
            Some(_) => 0,
            None => Self::woken(&pieces[..to], thread)?,
        };
        Some(Self { from, to, thread })
    }

    /// The piece in which a thread begins to serve that calls the function at `called`.
    fn serving(pieces: &[Piece], called: usize) -> Option<(usize, TaskName)> {
        let before = &pieces[..called];
        let is_function = |piece: &Piece| matches!(piece.activity, Activity::TimerCallback { .. });
        let calls = before.iter().rposition(|piece| !is_function(piece))?;
        let runs = before.iter().rposition(|piece| piece.activity.is_task_or_idle())?;
        let Activity::Task { task, .. } = before[runs].activity else { return None };
        let is_soft =
            matches!(pieces[called].activity, Activity::TimerCallback { is_soft, .. } if is_soft);
        // One that was preempted while it served goes on without another entry.
        let serves = calls == runs && is_soft
            || matches!(before[calls].activity, Activity::Softirq { number: Self::SOFTIRQ, .. });
        (serves && Self::has_its_name(&task)).then_some((runs + 1, task))
    }

    /// Returns true for a thread with the name of one that serves timers.
    pub(crate) fn has_its_name(task: &TaskName) -> bool {
        Self::NAMES.iter().any(|name| task.name.as_bytes().starts_with(name))
    }

    /// The first piece of these in which a thread is on its way to serve a timer.
    fn woken(pieces: &[Piece], thread: Option<TaskName>) -> Option<usize> {
        let is_due = |piece: &Piece| piece.phase == WakePhase::Delivery;
        let runs = |piece: &Piece| match piece.activity {
            Activity::Task { task, .. } => {
                Some(thread.is_some_and(|thread| thread.tid == task.tid))
            }
            _ => None,
        };
        // One at the very begin came before the timer was due.
        let is_interrupt =
            |piece: &Piece| is_due(piece) && piece.activity == Activity::TimerInterrupt;
        let interrupt = pieces.iter().skip(1).position(is_interrupt).map(|behind| behind + 1);
        let first = pieces.iter().position(|piece| is_due(piece) && runs(piece) == Some(true));
        match (interrupt, first) {
            // It was on its way already, and until it is done none comes (`softirq_activated`).
            (Some(interrupt), Some(first))
                if first < interrupt
                    && pieces[first..interrupt].iter().all(|piece| runs(piece) != Some(false)) =>
            {
                Some(0)
            }
            (Some(interrupt), _) => Some(interrupt + 1),
            (None, Some(_)) => Some(0),
            (None, None) => None,
        }
    }

    /// Returns true where it is waited for in a piece.
    pub(crate) fn is_awaited(self, index: usize) -> bool {
        (self.from..self.to).contains(&index)
    }

    /// Returns true of the thread itself.
    pub(crate) fn is_it(self, task: TaskName) -> bool {
        self.thread.is_some_and(|thread| thread.tid == task.tid)
    }

    /// Its priority, as the kernel counts.
    pub(crate) fn kernel_priority(self) -> i32 {
        self.thread.map_or(Self::USUAL_PRIORITY, |thread| thread.kernel_priority)
    }
}

/// Returns true where the thread is ready in a piece, and its [`own_ipi`] comes right behind that.
pub(crate) fn awaits_own_ipi(window: &Window, anchor: ReleaseAnchor, index: usize) -> bool {
    let piece = &window.pieces[index];
    piece.phase == WakePhase::Ready
        && own_ipi(window, anchor) == Some(index + 1)
        && window.pieces[index + 1].cpu == piece.cpu
}

/// Returns true where an interrupt from another CPU lies right before or behind a short piece.
pub(crate) fn is_beside_ipi(window: &Window, index: usize) -> bool {
    window.pieces[index].length_ns() < IPI_GAP_NS && ipi_beside(window, index).is_some()
}

/// The interrupt from another CPU right before a piece, or else right behind it.
pub(crate) fn ipi_beside(window: &Window, index: usize) -> Option<&Activity> {
    let pieces = &window.pieces;
    let is_ipi =
        |piece: &&Piece| piece.cpu == pieces[index].cpu && piece.activity.is_from_other_cpu();
    let before = window.before(index).filter(is_ipi);
    before.or_else(|| pieces.get(index + 1).filter(is_ipi)).map(|piece| &piece.activity)
}

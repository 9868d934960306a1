//! The account of one wake: an exact partition from the release to the first instruction.
//!
//! Pieces are split where something changes that no event marks (the latest allowed expiry, the end
//! of what is normal) and then judged, each part by the first rule that fits. The parts add up to
//! the lateness to the nanosecond, whatever the rules say.

use punctual_trace::event::TaskName;
use serde::{Deserialize, Serialize};

use crate::begin::WakeBegin;
use crate::cause::{Certainty, LateCause, RuleId};
use crate::config::BlameConfig;
use crate::counters::WakeCounts;
use crate::culprits::Culprit;
use crate::frequency::SlowClock;
use crate::normal::{WakeTimes, awaits_own_ipi, is_beside_ipi};
use crate::part::WakePart;
use crate::past::{Piece, WakePhase};
use crate::programs::ThreadPrograms;
use crate::rules::{PreviousWake, RootCause, Scene, judge};
use crate::stall::StallEvidence;
use crate::symbols::SymbolMap;
use crate::timeline::Activity;
use crate::wake::Wake;

/// Facts beside the events by which a wake is judged; a capture of late wakes keeps them.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WakeFacts {
    /// Times that are usual for its thread, ns; 0 as long as none were learnt.
    pub(crate) usual: WakeTimes,
    /// The judged wake of the same thread before it.
    pub(crate) previous: Option<PreviousWake>,
    /// Evidence on stretches without an event, each with the index of its piece.
    pub(crate) stalls: Vec<(usize, StallEvidence)>,
    /// Stretches in which its CPU was slower than usual, each with the index of its piece.
    #[serde(default)]
    pub(crate) clocks: Vec<(usize, SlowClock)>,
    /// The thread that stopped it by a signal last, where that was seen.
    pub(crate) stop_sender: Option<TaskName>,
    /// Counts of the processor around it.
    #[serde(default)]
    pub(crate) counts: WakeCounts,
    /// The programs of the threads that its causes name.
    #[serde(default)]
    pub(crate) programs: ThreadPrograms,
}

/// Inputs of an account beside the wake itself.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Judgement<'a> {
    pub(crate) usual: WakeTimes,
    pub(crate) previous: Option<PreviousWake>,
    pub(crate) symbols: &'a SymbolMap,
    pub(crate) kernel: Option<(u32, u32)>,
}

impl<'a> Judgement<'a> {
    pub(crate) fn new(facts: &WakeFacts, config: &'a BlameConfig) -> Self {
        Self {
            usual: facts.usual,
            previous: facts.previous,
            symbols: &config.symbols,
            kernel: config.kernel,
        }
    }
}

/// A wake that was booked, with its parts, and the facts by which it was judged.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Account<'a> {
    pub(crate) wake: &'a Wake,
    pub(crate) parts: &'a [WakePart],
    pub(crate) facts: &'a WakeFacts,
}

impl WakeFacts {
    /// The root cause of a part that follows from the wake before; `None` of other parts.
    pub(crate) fn root(&self, part: &WakePart) -> Option<RootCause> {
        let follows = matches!(part.cause, LateCause::Follows { .. });
        self.previous.filter(|_| follows)?.root
    }

    /// The cause that a part counts for in rows: its own, grouped, or the root of the wake before
    /// where it follows from that.
    pub(crate) fn counted(&self, part: &WakePart) -> LateCause {
        self.root(part).map_or_else(|| part.cause.grouped(&self.programs), |root| root.cause)
    }

    /// The thread that a part names, with its program.
    pub(crate) fn culprit(&self, part: &WakePart) -> Option<Culprit> {
        if let Some(root) = self.root(part) {
            return root.culprit;
        }
        let task = part.cause.culprit().filter(|task| task.tid != 0)?;
        Some(Culprit { task, program: self.programs.find(task.tid) })
    }

    /// The root for the wakes that follow this one; `None` where its main cause is none of its own.
    pub(crate) fn root_of(&self, parts: &[WakePart], main: LateCause) -> Option<RootCause> {
        if matches!(main, LateCause::NoSingle | LateCause::Follows { .. }) {
            return None;
        }
        let of_main = parts.iter().filter(|part| self.counted(part) == main);
        let culprit = of_main.filter_map(|part| self.culprit(part)).next();
        Some(RootCause { cause: main, culprit })
    }
}

/// Books a wake: its parts in the order of time, which add up to its lateness.
pub(crate) fn account(wake: &Wake, judgement: Judgement<'_>) -> Vec<WakePart> {
    let mut left = wake.begin.as_ref().map_or(judgement.usual, WakeBegin::left);
    let begin = wake.begin.as_ref().map(|begin| begin.parts(wake.is_unthrottled));
    let mut parts = begin.unwrap_or_default();
    parts.extend(account_until(wake, u64::MAX, judgement, &mut left));
    parts
}

/// Books the pieces of a window that end by then; what is normal is taken off what is left of it.
pub(crate) fn account_until(
    wake: &Wake,
    to_ns: u64,
    judgement: Judgement<'_>,
    left: &mut WakeTimes,
) -> Vec<WakePart> {
    let pieces = &wake.window.pieces;
    let mut parts: Vec<WakePart> = Vec::with_capacity(pieces.len());
    for (index, piece) in pieces.iter().enumerate().take_while(|(_, piece)| piece.to_ns <= to_ns) {
        for part in split(*piece, wake) {
            let Judgement { usual, previous, symbols, kernel } = judgement;
            let scene = Scene { wake, index, part, usual, previous, symbols, kernel };
            let normal_ns = match scene.slowed() {
                Some(slowed) if !part.activity.is_task_or_idle() => {
                    let usual_to_ns = piece.from_ns + slowed.usual_ns;
                    usual_to_ns.saturating_sub(part.from_ns).min(part.length_ns())
                }
                _ => take_normal(left, wake, index, &part),
            };
            if normal_ns > 0 {
                let to_ns = part.from_ns + normal_ns;
                let normal = Piece { to_ns, ..part };
                let cause = (LateCause::NormalPath, RuleId::Normal, Certainty::Certain);
                add(&mut parts, normal, cause);
            }
            if normal_ns < part.length_ns() {
                let part = Piece { from_ns: part.from_ns + normal_ns, ..part };
                add(&mut parts, part, judge(&Scene { part, ..scene }));
            }
        }
    }
    parts
}

/// Adds a part, to the one before where only its times differ.
fn add(parts: &mut Vec<WakePart>, piece: Piece, found: (LateCause, RuleId, Certainty)) {
    let (cause, rule, certainty) = found;
    let Piece { from_ns, to_ns, phase, activity, cpu, is_inferred, .. } = piece;
    let certainty = if is_inferred { inferred(certainty, &cause) } else { certainty };
    let part =
        WakePart { from_ns, to_ns, phase, activity, cpu, cause, rule, certainty, is_inferred };
    let is_like = |last: &WakePart| {
        (last.phase, last.activity, last.cpu) == (phase, activity, cpu)
            && (last.cause, last.rule, last.is_inferred) == (cause, rule, is_inferred)
    };
    match parts.last_mut() {
        Some(last) if is_like(last) => last.to_ns = to_ns,
        _ => parts.push(part),
    }
}

/// The certainty of a cause where only a later event of the CPU shows who ran: strong at most, and
/// weak for a thread without a name, whose priority is not known either.
fn inferred(certainty: Certainty, cause: &LateCause) -> Certainty {
    let is_nameless = cause.culprit().is_some_and(|task| task.name.as_bytes().is_empty());
    certainty.min(if is_nameless { Certainty::Weak } else { Certainty::Strong })
}

/// A piece, cut where the timer was programmed and at the latest expiry that its slack allows.
fn split(piece: Piece, wake: &Wake) -> impl Iterator<Item = Piece> {
    let mut cuts = [wake.latest_ns, wake.armed_ns.unwrap_or(0)];
    cuts.sort_unstable();
    let edges = cuts.map(|cut| cut.clamp(piece.from_ns, piece.to_ns));
    let [first, second] = edges;
    [(piece.from_ns, first), (first, second), (second, piece.to_ns)]
        .into_iter()
        .filter(|(from_ns, to_ns)| from_ns < to_ns)
        .map(move |(from_ns, to_ns)| Piece { from_ns, to_ns, ..piece })
}

/// The normal time of a part, ns, its length at most; it is taken off `left`.
fn take_normal(left: &mut WakeTimes, wake: &Wake, index: usize, part: &Piece) -> u64 {
    if part.is_hole || wake.armed_ns.is_some_and(|armed_ns| part.from_ns < armed_ns) {
        return 0;
    }
    let is_gap = part.activity.is_task_or_idle();
    let budget = match (part.phase, part.activity) {
        (_, Activity::Lost | Activity::Unseen) => return 0,
        (WakePhase::Delivery, _) if wake.is_event_driven() => &mut left.own_interrupt_ns,
        // The slack is asked for: it is no part of the way.
        (WakePhase::Delivery, _) if is_gap && part.to_ns <= wake.latest_ns => return 0,
        (WakePhase::Delivery, _) if is_gap && !is_beside_ipi(&wake.window, index) => {
            &mut left.delivery_ns
        }
        (WakePhase::Ready, Activity::Idle { .. }) if !part.is_passed_over => {
            &mut left.idle_ready_ns
        }
        _ if is_gap && awaits_own_ipi(&wake.window, wake.anchor, index) => &mut left.delivery_ns,
        _ => return 0,
    };
    let normal_ns = part.length_ns().min(*budget);
    *budget -= normal_ns;
    normal_ns
}

/// The time of each cause in a wake, ns, longest first.
pub(crate) fn sums(parts: &[WakePart], facts: &WakeFacts) -> Vec<(LateCause, u64)> {
    let mut sums: Vec<(LateCause, u64)> = Vec::new();
    for part in parts {
        let cause = facts.counted(part);
        match sums.iter_mut().find(|(known, _)| *known == cause) {
            Some((_, time_ns)) => *time_ns += part.length_ns(),
            None => sums.push((cause, part.length_ns())),
        }
    }
    sums.sort_by_key(|(_, time_ns)| std::cmp::Reverse(*time_ns));
    sums
}

/// The share of a wake below which a cause is not its main one.
const MAIN_SHARE: u64 = 5;

/// The cause with the largest share beside the normal path, where it has at least a fifth.
pub(crate) fn main_cause(sums: &[(LateCause, u64)], lateness_ns: u64) -> LateCause {
    sums.iter()
        .find(|(cause, time_ns)| {
            cause.is_nameable() && time_ns.saturating_mul(MAIN_SHARE) >= lateness_ns
        })
        .map_or(LateCause::NoSingle, |(cause, _)| *cause)
}

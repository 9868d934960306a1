//! The account of one wake: an exact partition from the release to the first instruction.
//!
//! Pieces are split where something changes that no event marks (the latest allowed expiry, the end
//! of what is normal) and then judged, each part by the first rule that fits. The parts add up to
//! the lateness to the nanosecond, whatever the rules say.

use crate::begin::WakeBegin;
use crate::cause::{Certainty, LateCause, RuleId};
use crate::facts::WakeFacts;
use crate::normal::WakeTimes;
use crate::part::WakePart;
use crate::past::Piece;
use crate::path::WakePath;
use crate::rules::{Kernel, Scene};
use crate::wake::Wake;

/// Books a wake: its parts in the order of time, which add up to its lateness.
pub(crate) fn account(wake: &Wake, kernel: Kernel<'_>) -> Vec<WakePart> {
    let mut left = wake.begin.as_ref().map_or(wake.facts.usual, WakeBegin::left);
    let begin = wake.begin.as_ref().map(|begin| begin.parts(wake.is_unthrottled));
    let mut parts = begin.unwrap_or_default();
    // What it worked was judged before its next release was known.
    let is_own = |rule| {
        matches!(rule, RuleId::Own | RuleId::OwnGap | RuleId::SleepCallGap | RuleId::OwnStall)
    };
    let armed_ns = wake.activation.armed_ns.unwrap_or(0);
    for part in parts.iter_mut().filter(|part| part.to_ns <= armed_ns) {
        *part = part.before_its_wait();
    }
    for part in parts.iter_mut().filter(|part| is_own(part.rule)) {
        if let Some(kind) = wake.followed(part.to_ns) {
            (part.cause, part.rule) = (LateCause::Follows { kind }, RuleId::Follows);
            part.certainty = Certainty::Strong;
        }
    }
    parts.extend(account_until(wake, u64::MAX, kernel, &mut left));
    parts
}

/// Books the pieces of a window that end by then; what is normal is taken off what is left of it.
pub(crate) fn account_until(
    wake: &Wake,
    to_ns: u64,
    kernel: Kernel<'_>,
    left: &mut WakeTimes,
) -> Vec<WakePart> {
    let pieces = &wake.window.pieces;
    let mut parts: Vec<WakePart> = Vec::with_capacity(pieces.len());
    let path = WakePath::find(wake, to_ns == u64::MAX);
    for (index, piece) in pieces.iter().enumerate().take_while(|(_, piece)| piece.to_ns <= to_ns) {
        for part in split(*piece, wake) {
            let scene = Scene::new(wake, index, part, kernel).with_path(path);
            let normal_ns = match scene.usual_ns_of_slowed() {
                Some(usual_ns) if !part.activity.is_task_or_idle() => {
                    let usual_to_ns = piece.from_ns + usual_ns;
                    usual_to_ns.saturating_sub(part.from_ns).min(part.length_ns())
                }
                _ => left.take(&wake.window, &wake.activation, index, &part),
            };
            let normal_to_ns = part.from_ns + normal_ns;
            if normal_ns > 0 {
                let piece = Piece { to_ns: normal_to_ns, ..part };
                let (cause, certainty) = (LateCause::NormalPath, Certainty::Certain);
                add(&mut parts, WakePart::new(&piece, cause, RuleId::Normal, certainty));
            }
            if normal_ns < part.length_ns() {
                let rest = Piece { from_ns: normal_to_ns, ..part };
                add(&mut parts, scene.with_part(rest).judge());
            }
        }
    }
    parts
}

/// Adds a part, to the one before where that is like it.
fn add(parts: &mut Vec<WakePart>, part: WakePart) {
    match parts.last_mut() {
        Some(last) if last.is_like(&part) => last.to_ns = part.to_ns,
        _ => parts.push(part),
    }
}

/// A piece, cut where the timer was programmed, at the latest expiry that its slack allows, and
/// where the wake before ran: memory that reaches no further back is one piece across that.
fn split(piece: Piece, wake: &Wake) -> impl Iterator<Item = Piece> {
    let release = &wake.activation;
    let previous_ran_ns = wake.facts.previous.map_or(0, |previous| previous.ran_ns());
    let mut cuts = [release.latest_ns, release.armed_ns.unwrap_or(0), previous_ran_ns];
    cuts.sort_unstable();
    let [first, second, third] = cuts.map(|cut| cut.clamp(piece.from_ns, piece.to_ns));
    [(piece.from_ns, first), (first, second), (second, third), (third, piece.to_ns)]
        .into_iter()
        .filter(|(from_ns, to_ns)| from_ns < to_ns)
        .map(move |(from_ns, to_ns)| Piece { from_ns, to_ns, ..piece })
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

//! Phases that spread the releases of many tasks, so that few fall on one instant.
//!
//! For the builder, before the loop. Time is in quanta that divide every period. Tasks are placed
//! by rising period, heaviest first, each where the worst instant it meets is best; then each
//! period's tasks are taken out and placed again, and at last each task by itself. With harmonic
//! periods and equal weights the peak is the least there is. Strongly NP-hard in general (Goossens,
//! *Scheduling of Offset Free Systems*, 2003); nothing is searched here, and the work has a limit.
//!
//! What it is worth, on 200 random sets each of 20 to 59 tasks and 5 to 9 periods, weights equal /
//! from 1 to 100: periods that have no common divisor laid out apart, and whole passes, against
//! class by class over all of them: a mean peak 0 / 1 % lower with engine control's periods,
//! 0 / 1 % with divisors of 720, 6 / 6 % with 1 to 60, 12 / 9 % with 1 to 1000. Single tasks after
//! that: 0 / 0, 3 / 1, 3 / 0, 0 / 0 % lower. A hundred tasks of 10, 33, 100, 167, 200, 250, 1000:
//! a peak of 5, and of 4 with single tasks; 3, 7 … 23 (15, which is the least there is) and engine
//! control's (11) are the same either way.

mod loads;

use crate::gcd::gcd;
use loads::Loads;

/// The longest major frame (LCM of the periods), in quanta, that is written out instant by instant.
const EXACT_MAX: u64 = 1 << 20;
/// How often each period's tasks are taken out and placed again.
const PASSES: usize = 2;
/// Instants and residues that one build looks at, at most: some tenths of a second.
const WORK_MAX: u64 = 1 << 27;
/// The same for a round of single tasks: of very many each moves the peak by little.
const SINGLES_MAX: u64 = 1 << 24;

/// Tasks that move together, each at a fixed distance from the first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Group {
    /// Distance from the first and weight of each, in quanta; the first at 0.
    pub(super) members: Vec<(u64, u64)>,
    /// Where the first one must be; `None` when that is to be found.
    pub(super) fixed: Option<u64>,
}

/// All groups of one period.
#[derive(Clone, Debug)]
pub(super) struct Class {
    /// The period in quanta, at least 1.
    pub(super) period: u64,
    /// Its groups.
    pub(super) groups: Vec<Group>,
}

/// The phases of each class's groups, in quanta below its period.
pub(super) fn balance(classes: &[Class]) -> Vec<Vec<u64>> {
    let mut phases = vec![Vec::new(); classes.len()];
    let mut work = WORK_MAX;
    for part in parts(classes) {
        let these: Vec<&Class> = part.iter().map(|&class| &classes[class]).collect();
        let found = balance_part(&these, &mut work)
            .unwrap_or_else(|| these.iter().flat_map(|class| alone(class)).collect());
        for (class, found) in part.into_iter().zip(found) {
            phases[class] = found;
        }
    }
    phases
}

/// The phases of a class among no others.
fn alone(class: &Class) -> Vec<Vec<u64>> {
    vec![Loads::new(&[class]).place(&[class], 0)]
}

/// The highest load of any instant with these phases (an upper bound of it where the major frame of
/// a part is longer than [`EXACT_MAX`]).
pub(super) fn peak(classes: &[Class], phases: &[Vec<u64>]) -> u64 {
    let of_part = |part: Vec<usize>| {
        let these: Vec<&Class> = part.iter().map(|&class| &classes[class]).collect();
        let mut loads = Loads::new(&these);
        for (at, class) in part.into_iter().enumerate() {
            loads.fill(at, these[at], &phases[class]);
        }
        loads.peak(&these)
    };
    parts(classes).into_iter().map(of_part).fold(0, u64::saturating_add)
}

/// The classes, apart where no period of one part has a common divisor with one of another: then
/// each instant of one part's major frame meets each of the other's (the Chinese remainder
/// theorem), whatever the phases are, and their peaks add up.
fn parts(classes: &[Class]) -> Vec<Vec<usize>> {
    let mut parts: Vec<Vec<usize>> = Vec::new();
    for (class, Class { period, .. }) in classes.iter().enumerate() {
        let meets = |part: &Vec<usize>| {
            part.iter().any(|&other| gcd((*period).into(), classes[other].period.into()) > 1)
        };
        let (met, apart): (Vec<_>, Vec<_>) = parts.into_iter().partition(meets);
        parts = apart;
        parts.push(met.into_iter().flatten().chain([class]).collect());
    }
    parts
}

/// The phases of each class's groups, of one part; `None` where that would be more work than is
/// left.
fn balance_part(classes: &[&Class], work: &mut u64) -> Option<Vec<Vec<u64>>> {
    let mut order: Vec<usize> = (0..classes.len()).collect();
    order.sort_by_key(|&class| classes[class].period);
    let mut loads = Loads::new(classes);
    let look = loads.look(classes);
    *work = work.checked_sub(look)?;
    let mut phases = vec![Vec::new(); classes.len()];
    for &class in &order {
        phases[class] = loads.place(classes, class);
    }
    let mut peak = loads.peak(classes);
    for _ in 0..PASSES {
        let Some(left) = work.checked_sub(look.saturating_mul(2)) else { break };
        *work = left;
        let before = phases.clone();
        for &class in &order {
            loads.clear(class);
            phases[class] = loads.place(classes, class);
        }
        let again = loads.peak(classes);
        if again >= peak {
            phases = before;
            break;
        }
        peak = again;
    }
    balance_single(classes, &mut phases, work);
    Some(phases)
}

/// Takes each task that moves by itself out, heaviest first, and places it again: no instant that
/// it comes to has more than the one that it leaves had. Only where the major frame is written out.
fn balance_single(classes: &[&Class], phases: &mut [Vec<u64>], work: &mut u64) {
    let mut loads = Loads::new(classes);
    for (at, class) in classes.iter().enumerate() {
        loads.fill(at, class, &phases[at]);
    }
    let Some(frame) = loads.frame() else { return };
    let mut all: Vec<(u64, usize, usize)> = Vec::new();
    for (at, class) in classes.iter().enumerate() {
        for (g, group) in class.groups.iter().enumerate() {
            if let ([(0, weight)], None) = (&group.members[..], group.fixed) {
                all.push((*weight, at, g));
            }
        }
    }
    all.sort_by_key(|(weight, ..)| u64::MAX - weight);
    let round = frame.saturating_mul(all.len() as u64);
    for _ in 0..PASSES {
        let Some(left) = work.checked_sub(round).filter(|_| round <= SINGLES_MAX) else { return };
        *work = left;
        let mut moved = false;
        for &(weight, at, g) in &all {
            let phase = &mut phases[at][g];
            let to = loads.again(classes, at, *phase, weight);
            moved |= to != *phase;
            *phase = to;
        }
        if !moved {
            return;
        }
    }
}

#[cfg(test)]
mod tests;

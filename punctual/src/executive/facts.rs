//! What a sample file says of an executive's tasks.
//!
//! For the recording, before the loops begin.

use super::lane::Lane;
use super::thread::Pace;
use super::thread::ThreadTask;
use crate::recording::Facts;

/// What a sample file says of the tasks that it has, each with its number.
pub(super) fn facts(lanes: &[Lane<'_>], threads: &[ThreadTask]) -> (Vec<usize>, Vec<Facts>) {
    let mut all = Vec::new();
    for lane in lanes {
        let wait = lane.thread.wait.name();
        let policy = lane.thread.policy();
        let of = |name: &str, period, phase_ns| Facts {
            name: name.to_owned(),
            cpu: lane.thread.cpu,
            period,
            phase_ns,
            offset_ns: phase_ns,
            policy,
            wait,
        };
        let units = lane.calendar.as_ref().map_or(0, |(plan, _)| plan.tasks());
        for (rank, task) in lane.ranks.iter().enumerate() {
            let Some(entry) = task.entry else { continue };
            let facts = match (rank.checked_sub(units), &lane.calendar) {
                (None, Some((plan, _))) => {
                    of(&task.name, plan.frame(), plan.ready_ns(rank).unwrap_or(0))
                }
                (rank, _) => {
                    let rank = rank.unwrap_or(0);
                    of(&task.name, lane.plan.period(rank), lane.plan.phase_ns(rank))
                }
            };
            all.push((entry, facts));
        }
    }
    for of in threads {
        let phase_ns = match &of.pace {
            Pace::Remote { phase_ns, .. } => *phase_ns,
            Pace::Own(plan) => plan.phase_ns(0),
            Pace::Triggered => continue,
        };
        let facts = Facts {
            name: of.task.name().to_owned(),
            cpu: of.cpu,
            period: of.task.period(),
            phase_ns,
            offset_ns: phase_ns,
            policy: of.policy,
            wait: "thread",
        };
        all.push((of.entry, facts));
    }
    all.into_iter().unzip()
}

//! The tasks that a loop runs itself, one after the other, and what their counts leave open.
//!
//! For the summary of an executive. Pure.

use punctual_core::stats::Counts;
use punctual_core::time::Period;
use punctual_engine::outcome::Stats;

/// A task that a loop runs itself.
pub(super) struct InlineTask {
    name: String,
    period: Period,
    has_budget: bool,
}

impl InlineTask {
    /// One of this name and period.
    pub(super) fn new(name: &str, period: Period, has_budget: bool) -> Self {
        Self { name: name.to_owned(), period, has_budget }
    }

    /// Returns true where so many cycles that were too long can be the reason of all that it
    /// missed: none kept it waiting for longer than it was late at most.
    fn is_explained(&self, counts: &Counts, long_cycles: u64) -> bool {
        let latest_ns = counts.max.map_or(0, |max| max.as_ns().unsigned_abs());
        counts.missed <= long_cycles.saturating_mul(1 + latest_ns / self.period.as_ns())
    }
}

/// A sentence where tasks of a loop missed releases for which no cycle that is known to be too long
/// is the reason, nor one of so many slices of background work that were, and others of it have no
/// budget by which that could be known.
pub(super) fn unjudged(inline: &[InlineTask], tasks: &[Stats], long_slices: u64) -> Option<String> {
    let counts_of =
        |name: &str| tasks.iter().find(|task| task.name == name).map(|task| &task.counts);
    let counted = inline.iter().filter_map(|task| Some((task, counts_of(&task.name)?)));
    let counted: Vec<(&InlineTask, &Counts)> = counted.collect();
    let long_cycles = counted.iter().map(|(_, counts)| counts.over_budget.max(counts.over_release));
    let long_cycles = long_cycles.sum::<u64>().saturating_add(long_slices);
    let unexplained = counted
        .iter()
        .filter(|(task, counts)| counts.missed > 0 && !task.is_explained(counts, long_cycles));
    let missed: Vec<&str> = unexplained.map(|(task, _)| task.name.as_str()).collect();
    let without = inline.iter().filter(|task| !task.has_budget);
    let without: Vec<&str> = without.map(|task| task.name.as_str()).collect();
    // By its own cycles alone a task misses none that does not count as an overrun.
    let has_other = without.iter().any(|name| missed.iter().any(|other| other != name));
    has_other.then(|| {
        format!(
            "releases of {} were missed, and no cycle that is known to be too long explains it: \
             {}, without a budget, may have taken long or blocked, or the machine stood still; a \
             task keeps all others of its loop waiting: give each a budget, and longer cycles are \
             counted, or one that blocks a thread or a process of its own",
            names(&missed, "and"),
            names(&without, "or")
        )
    })
}

/// The first three names.
fn names(tasks: &[&str], last: &str) -> String {
    match tasks {
        [first, second, third, _, ..] => format!("{first}, {second}, {third} {last} others"),
        _ => tasks.join(", "),
    }
}

#[cfg(test)]
mod tests {
    use punctual_core::time::Span;

    use super::*;

    /// A task of 1 ms, and its counts: missed, over budget, over its release.
    fn task(name: &str, has_budget: bool, counted: [u64; 3]) -> (InlineTask, Stats) {
        let mut stats = Stats::of(name, None);
        let counts = &mut stats.counts;
        [counts.missed, counts.over_budget, counts.over_release] = counted;
        counts.max = Some(Span::from_us(4_700));
        (InlineTask::new(name, Period::hz(1_000).expect("in range"), has_budget), stats)
    }

    fn said<const N: usize>(tasks: [(InlineTask, Stats); N]) -> Option<String> {
        let (inline, stats): (Vec<_>, Vec<_>) = tasks.into_iter().unzip();
        unjudged(&inline, &stats, 0)
    }

    #[test]
    fn what_a_long_cycle_explains_is_laid_on_nobody_else() {
        let log = || task("log", false, [0, 0, 0]);
        // Ten cycles of 5 ms, each its own reason.
        assert_eq!(said([task("servo", true, [40, 10, 10]), log()]), None);
        assert_eq!(said([task("servo", false, [40, 0, 10]), log()]), None);
        assert_eq!(said([task("servo", true, [40, 0, 0]), task("log", false, [0, 0, 8])]), None);
        // One cold cycle does not explain all of it.
        let words = said([task("servo", true, [40, 1, 0]), log()]).expect("open");
        assert!(words.starts_with("releases of servo were missed"), "{words}");
        assert!(words.contains(": log, without a budget, may have taken long"), "{words}");
        assert_eq!(said([task("servo", true, [0, 0, 0]), log()]), None);
    }

    #[test]
    fn background_work_that_took_too_long_is_laid_on_no_task() {
        let tasks = [task("servo", false, [40, 0, 0]), task("log", false, [0, 0, 0])];
        let (inline, stats): (Vec<_>, Vec<_>) = tasks.into_iter().unzip();
        assert_eq!(unjudged(&inline, &stats, 10), None);
        assert!(unjudged(&inline, &stats, 2).is_some());
    }

    #[test]
    fn each_task_without_a_budget_may_be_the_reason() {
        let words = said([task("servo", false, [40, 0, 0]), task("log", false, [3, 0, 0])]);
        let words = words.expect("open");
        assert!(words.starts_with("releases of servo, log were missed"), "{words}");
        assert!(words.contains(": servo, log, without a budget, may have"), "{words}");
        let only_one_missed = said([task("servo", false, [40, 0, 0]), task("log", false, [0; 3])]);
        assert!(only_one_missed.is_some_and(|words| words.contains(": servo, log, without")));
        // Its own cycles would have counted.
        let judged = said([task("servo", false, [40, 0, 0]), task("log", true, [0; 3])]);
        assert_eq!((judged, said([task("servo", false, [40, 0, 0])])), (None, None));
        let many = ["a", "b", "c", "d"].map(|name| task(name, false, [1, 0, 0]));
        assert!(said(many).is_some_and(|words| words.contains(": a, b, c or others, without")));
    }
}

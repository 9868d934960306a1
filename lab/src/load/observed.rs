//! What the process of a load has reported so far.
//!
//! Shared between its reader, the supervisor and whoever wants a report; nothing here waits.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::LoadDeath;
use super::protocol::Line;

/// One count, the last of its unit.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Counted {
    pub(super) unit: String,
    pub(super) count: u64,
    pub(super) at_ns: u64,
}

/// What a load has reported so far.
#[derive(Default)]
pub(super) struct Observed {
    pub(super) counts: Vec<Counted>,
    pub(super) notes: Vec<String>,
    pub(super) deaths: Vec<LoadDeath>,
    /// Whether it worked all the time; of no use for one that reports at its end only.
    pub(super) progress: Progress,
    /// The counts of a process that died before.
    carried: Vec<Counted>,
    pub(super) failed: Option<String>,
}

/// Shared between a reader, the supervisor and whoever wants a report.
pub(super) type Shared = Arc<Mutex<Observed>>;

/// What was observed, also from a thread that panicked: each line is taken in whole.
pub(super) fn lock(observed: &Shared) -> MutexGuard<'_, Observed> {
    observed.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Observed {
    /// The next process adds to the counts of the one that died.
    pub(super) fn carry(&mut self) {
        self.carried = self.counts.clone();
        self.progress.pause();
    }

    /// Takes in one line.
    pub(super) fn take_in(&mut self, line: Line) {
        match line {
            Line::Ready => self.progress.begin(),
            Line::Note(note) => {
                if !self.notes.contains(&note) {
                    self.notes.push(note);
                }
            }
            Line::Failed(why) => self.failed = Some(why),
            Line::Count { count, at_ns, unit } => {
                let carried = self.carried.iter().find(|before| before.unit == unit);
                let (more, more_ns) = carried.map_or((0, 0), |before| (before.count, before.at_ns));
                let (count, at_ns) = (count.saturating_add(more), at_ns.saturating_add(more_ns));
                self.progress.report((count, at_ns));
                let counted = Counted { unit, count, at_ns };
                match self.counts.iter_mut().find(|before| before.unit == counted.unit) {
                    Some(before) => *before = counted,
                    None => self.counts.push(counted),
                }
            }
        }
    }
}

/// So many looks in a row without a report, a tenth of a second each at least, are a silence.
const SILENT: u32 = 20;
/// The same before an end that the load did not answer.
const SILENT_AT_END: u32 = 5;
/// The share of its other rate below which a load did next to nothing.
const SHARE: f64 = 0.1;
/// The silences that are kept.
const SILENCES_MAX: usize = 16;

/// How far a load was: its count, and its own time since it was ready, in ns.
type Mark = (u64, u64);

/// The reports of a load, and the looks that found none.
///
/// For the supervisor, which looks at its loads and hears their counts. A load of ours reports each
/// tenth of a second however little it does, and a busy machine delays that, but not for long; nor
/// does it keep the load's other threads from their work meanwhile. So a load stood still where it
/// reported nothing over many looks of the supervisor, each of them a time that the supervisor
/// itself ran, *and* then had done less in that time than a tenth of what it does otherwise. Reads
/// no clock.
#[derive(Clone, Debug, Default)]
pub(super) struct Progress {
    /// Whether its process has reported that it works.
    works: bool,
    last: Mark,
    /// Looks since the last report, and when the first of them was, on CLOCK_MONOTONIC in ns.
    looks: u32,
    since_ns: u64,
    silences: Vec<Silence>,
}

/// A time without a report, longer than a busy machine makes it.
#[derive(Clone, Copy, Debug)]
struct Silence {
    /// When it began, on CLOCK_MONOTONIC in ns.
    at_ns: u64,
    /// How far the load was at its beginning and at its end.
    from: Mark,
    to: Mark,
    /// Whether a report ended it: then the load's own time has it.
    reported: bool,
}

impl Progress {
    /// Its process works from now on.
    fn begin(&mut self) {
        (self.works, self.looks) = (true, 0);
    }

    /// Its process has ended: nothing is expected of it.
    fn pause(&mut self) {
        (self.works, self.looks) = (false, 0);
    }

    /// The supervisor looked, at `now_ns` on CLOCK_MONOTONIC.
    pub(super) fn look(&mut self, now_ns: u64) {
        if self.works {
            if self.looks == 0 {
                self.since_ns = now_ns;
            }
            self.looks = self.looks.saturating_add(1);
        }
    }

    /// It reported how far it is.
    fn report(&mut self, to: Mark) {
        if self.looks >= SILENT {
            self.keep(to, true);
        }
        (self.last, self.looks) = (to, 0);
    }

    /// It did not answer the request of its end, which was at `at_ns`.
    pub(super) fn unanswered(&mut self, at_ns: u64) {
        if self.works && self.looks >= SILENT_AT_END {
            let (count, own_ns) = self.last;
            let to = (count, own_ns.saturating_add(at_ns.saturating_sub(self.since_ns)));
            self.keep(to, false);
        }
    }

    fn keep(&mut self, to: Mark, reported: bool) {
        if self.silences.len() < SILENCES_MAX {
            let (at_ns, from) = (self.since_ns, self.last);
            self.silences.push(Silence { at_ns, from, to, reported });
        }
    }

    /// The silences in which it did next to nothing, as what they are to its run: as bad as a
    /// death.
    pub(super) fn stood_still(&self) -> Vec<LoadDeath> {
        let (mut count, mut own_ns) = self.last;
        for silence in self.silences.iter().filter(|silence| silence.reported) {
            count = count.saturating_sub(silence.done());
            own_ns = own_ns.saturating_sub(silence.length_ns());
        }
        let otherwise = if own_ns > 0 { count as f64 / own_ns as f64 } else { 0.0 };
        let still = |silence: &&Silence| {
            let usual = otherwise * silence.length_ns() as f64;
            silence.done() == 0 || (silence.done() as f64) < SHARE * usual
        };
        let event = |silence: &Silence| LoadDeath {
            at_ns: silence.at_ns,
            worked_ns: Some(silence.from.1),
            why: "it was stopped, frozen, or had no CPU".to_owned(),
            restarted: false,
            stood_still_ns: Some(silence.length_ns()),
        };
        self.silences.iter().filter(still).map(event).collect()
    }
}

impl Silence {
    fn done(&self) -> u64 {
        self.to.0.saturating_sub(self.from.0)
    }

    fn length_ns(&self) -> u64 {
        self.to.1.saturating_sub(self.from.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_count_of_each_unit_stays() {
        let mut observed = Observed::default();
        let count = |count, unit: &str| Line::Count { count, at_ns: 5, unit: unit.to_owned() };
        let lines = [count(1, "a"), count(2, "b"), count(3, "a")];
        lines.into_iter().for_each(|line| observed.take_in(line));
        observed.take_in(Line::Note("x".into()));
        observed.take_in(Line::Note("x".into()));
        let counts: Vec<_> = observed.counts.iter().map(|c| (c.count, c.unit.as_str())).collect();
        assert_eq!(counts, [(3, "a"), (2, "b")]);
        assert_eq!(observed.notes, ["x"]);
    }

    #[test]
    fn counts_of_a_second_process_are_added() {
        let mut observed = Observed::default();
        let count = |count, at_ns| Line::Count { count, at_ns, unit: "a".to_owned() };
        observed.take_in(count(3, 5));
        observed.carry();
        observed.take_in(count(1, 2));
        observed.take_in(count(2, 4));
        assert_eq!((observed.counts[0].count, observed.counts[0].at_ns), (5, 9));
    }

    const TENTH: u64 = 100_000_000;

    /// A load of one a tenth of a second, seen at each look but those that are silent.
    #[derive(Default)]
    struct Load {
        progress: Progress,
        now_ns: u64,
        count: u64,
        own_ns: u64,
    }

    impl Load {
        fn new() -> Self {
            let mut load = Self::default();
            load.progress.begin();
            load
        }

        fn works(&mut self, tenths: u64) {
            for _ in 0..tenths {
                (self.count, self.now_ns) = (self.count + 10, self.now_ns + TENTH);
                self.own_ns += TENTH;
                self.progress.look(self.now_ns);
                self.progress.report((self.count, self.own_ns));
            }
        }

        /// Silent, with so much done in each tenth.
        fn silent(&mut self, tenths: u64, done: u64) {
            for _ in 0..tenths {
                (self.count, self.now_ns) = (self.count + done, self.now_ns + TENTH);
                self.own_ns += TENTH;
                self.progress.look(self.now_ns);
            }
        }

        fn still_s(&self) -> Vec<f64> {
            let deaths = self.progress.stood_still();
            deaths
                .iter()
                .map(|deaths| deaths.stood_still_ns.expect("its length") as f64 / 1e9)
                .collect()
        }
    }

    #[test]
    fn a_load_that_is_stopped_and_goes_on_stood_still_meanwhile() {
        let mut load = Load::new();
        load.works(30);
        load.silent(50, 0);
        load.works(30);
        let deaths = load.progress.stood_still();
        assert_eq!(deaths.len(), 1);
        assert_eq!((deaths[0].at_ns, deaths[0].worked_ns), (31 * TENTH, Some(30 * TENTH)));
        // A tenth more: until the report that ended it.
        assert_eq!(deaths[0].stood_still_ns, Some(51 * TENTH));
        assert!(!deaths[0].restarted);
    }

    #[test]
    fn a_load_that_does_not_answer_its_end_stood_still_since_it_was_silent() {
        let mut load = Load::new();
        load.works(30);
        load.silent(40, 0);
        load.progress.unanswered(load.now_ns);
        assert_eq!(load.still_s(), [3.9]);
        // From its beginning on, in a short block.
        let mut load = Load::new();
        load.silent(5, 0);
        load.progress.unanswered(load.now_ns);
        assert_eq!(load.still_s().len(), 1);
    }

    #[test]
    fn a_busy_machine_that_slows_a_load_or_delays_its_reports_is_none_that_stopped_it() {
        let mut slow = Load::new();
        slow.works(30);
        // Reports late, now and then, and never twenty looks in a row.
        for _ in 0..30 {
            slow.silent(u64::from(SILENT) - 2, 0);
            slow.works(1);
        }
        assert!(slow.still_s().is_empty());
        // The thread that reports had no CPU, those that work had.
        let mut late = Load::new();
        late.works(30);
        late.silent(60, 3);
        late.works(30);
        assert!(late.still_s().is_empty());
        // The whole machine stood: the supervisor too, which looked once.
        let mut host = Load::new();
        host.works(30);
        (host.now_ns, host.own_ns) = (host.now_ns + 100 * TENTH, host.own_ns + 100 * TENTH);
        host.works(30);
        assert!(host.still_s().is_empty());
        // Killed at its end, having reported until just before.
        let mut killed = Load::new();
        killed.works(30);
        killed.silent(3, 0);
        killed.progress.unanswered(killed.now_ns);
        assert!(killed.still_s().is_empty());
    }

    #[test]
    fn one_that_starts_again_is_not_expected_to_work_before_it_is_ready() {
        let mut load = Load::new();
        load.works(30);
        load.progress.pause();
        load.silent(100, 0);
        load.progress.begin();
        load.works(10);
        assert!(load.still_s().is_empty());
    }
}

//! The offline scheduler: places for units in a frame, from periods, deadlines and precedence.
//!
//! For [`CalendarBuilder::schedule`](crate::calendar::CalendarBuilder::schedule): Maruti makes its
//! calendars beforehand (*Temporal accuracy on the Pentium Pro*, §6.1). Each unit of each period is
//! a job; jobs are not interrupted and run one at a time, so that finding their order is NP-hard
//! (1 | r, prec | Lmax). First what shows that there is none: a chain that is longer than its time,
//! or an interval in which jobs need more than the CPU has (preemptive earliest deadline first,
//! Jackson). Then jobs by their deadlines, then every order, each branch cut where the same two
//! tests show that it leads nowhere. Within its bound the search is exact; beyond it says that it
//! does not know. Pure: reads no clock, starts nothing.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};

/// Branches of a thousand jobs that are tried at most; of fewer jobs more, as each takes less time.
const BRANCHES: usize = 5_000;
/// More jobs than this are placed by their deadlines alone.
const SEARCHED: usize = 1_000;
/// Sets of jobs from which nothing leads on that are remembered.
const REMEMBERED: usize = 1 << 16;

/// One run of a unit, in the time of the frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Job {
    /// The earliest start, ns.
    pub(crate) ready_ns: u64,
    /// The latest end, ns.
    pub(crate) deadline_ns: u64,
    /// Its execution, ns.
    pub(crate) budget_ns: u64,
    /// Jobs that must have ended before it starts, and how long before, ns.
    pub(crate) after: Vec<(usize, u64)>,
    /// The run of a task that it is a part of: no other task that excludes this one has a job
    /// between two parts of it.
    pub(crate) part_of: usize,
}

/// The reason why there are no places.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NoPlaces {
    /// This job is after itself, directly or through others.
    Circle(usize),
    /// These jobs, one after the other, take longer than the first and the last leave.
    Chain {
        /// In their order.
        jobs: Vec<usize>,
        /// The time that they take, ns.
        needs_ns: u64,
        /// The time that they have, ns.
        has_ns: u64,
    },
    /// These jobs are ready and due within an interval that is too short for them.
    Demand {
        /// By their deadlines.
        jobs: Vec<usize>,
        /// The start of the interval, ns.
        from_ns: u64,
        /// The end of the interval, ns.
        to_ns: u64,
        /// The time that they take, ns.
        needs_ns: u64,
    },
    /// Every order was tried, or shown to lead nowhere.
    NoOrder(LateJob),
    /// The bound of the search was reached.
    Unknown {
        /// Branches that were tried.
        tried: usize,
        /// The job that stands in the way.
        late: LateJob,
    },
}

/// The first job that is late where jobs are taken by their deadlines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LateJob {
    /// The job.
    pub(crate) job: usize,
    /// The instant at which it ends then, ns.
    pub(crate) end_ns: u64,
    /// The job before it.
    pub(crate) behind: Option<usize>,
    /// True where it is not late, but kept out by an open run whose next part waits for it.
    pub(crate) is_kept_out: bool,
}

/// Jobs with what their neighbours leave them.
pub(crate) struct Offline<'j> {
    jobs: &'j [Job],
    /// The earliest start, by what comes before, ns.
    head_ns: Vec<u64>,
    /// The latest end, by what comes behind, ns.
    tail_ns: Vec<u64>,
    followers: Vec<Vec<(usize, u64)>>,
    /// By run of a task, how many jobs it has, and the runs of tasks that it excludes.
    parts: Vec<usize>,
    excluded: Vec<Vec<usize>>,
    has_gaps: bool,
}

impl<'j> Offline<'j> {
    /// `excluded` are pairs of runs of tasks.
    ///
    /// # Errors
    /// A job is after itself.
    pub(crate) fn new(jobs: &'j [Job], excluded: &[(usize, usize)]) -> Result<Self, NoPlaces> {
        let runs = jobs.iter().map(|job| job.part_of + 1).max().unwrap_or(0);
        let mut offline = Self {
            jobs,
            head_ns: jobs.iter().map(|job| job.ready_ns).collect(),
            tail_ns: jobs.iter().map(|job| job.deadline_ns).collect(),
            followers: vec![Vec::new(); jobs.len()],
            parts: vec![0; runs],
            excluded: vec![Vec::new(); runs],
            has_gaps: jobs.iter().flat_map(|job| &job.after).any(|&(_, gap_ns)| gap_ns > 0),
        };
        for (number, job) in jobs.iter().enumerate() {
            offline.parts[job.part_of] += 1;
            for &(before, gap_ns) in &job.after {
                offline.followers[before].push((number, gap_ns));
            }
        }
        for &(one, other) in excluded {
            offline.excluded[one].push(other);
            offline.excluded[other].push(one);
        }
        let order = offline.order();
        if order.len() < jobs.len() {
            let ordered: HashSet<usize> = order.into_iter().collect();
            let circle = (0..jobs.len()).find(|job| !ordered.contains(job));
            return Err(NoPlaces::Circle(circle.unwrap_or(0)));
        }
        for &number in &order {
            let end_ns = offline.head_ns[number].saturating_add(jobs[number].budget_ns);
            for &(behind, gap_ns) in &offline.followers[number] {
                let head_ns = &mut offline.head_ns[behind];
                *head_ns = (*head_ns).max(end_ns.saturating_add(gap_ns));
            }
        }
        for &number in order.iter().rev() {
            let start_ns = offline.tail_ns[number].saturating_sub(jobs[number].budget_ns);
            for &(before, gap_ns) in &jobs[number].after {
                let tail_ns = &mut offline.tail_ns[before];
                *tail_ns = (*tail_ns).min(start_ns.saturating_sub(gap_ns));
            }
        }
        Ok(offline)
    }

    /// Each job behind those that it is after.
    fn order(&self) -> Vec<usize> {
        let mut left: Vec<usize> = self.jobs.iter().map(|job| job.after.len()).collect();
        let mut order: Vec<usize> = (0..self.jobs.len()).filter(|&job| left[job] == 0).collect();
        let mut next = 0;
        while let Some(&number) = order.get(next) {
            next += 1;
            for &(behind, _) in &self.followers[number] {
                left[behind] -= 1;
                if left[behind] == 0 {
                    order.push(behind);
                }
            }
        }
        order
    }

    /// The instant at which each job starts, ns.
    ///
    /// # Errors
    /// There are no places, or none were found.
    pub(crate) fn places(&self) -> Result<Vec<u64>, NoPlaces> {
        self.check_chains()?;
        self.check_demand()?;
        let late = match self.by_deadline() {
            Ok(starts) => return Ok(starts),
            Err(late) => late,
        };
        if self.jobs.len() > SEARCHED {
            return Err(NoPlaces::Unknown { tried: 1, late });
        }
        let bound = (BRANCHES * SEARCHED / self.jobs.len()).min(BRANCHES * 20);
        match Search::new(self, bound).run() {
            Found::Places(starts) => Ok(starts),
            Found::Nothing => Err(NoPlaces::NoOrder(late)),
            Found::Bound { tried } => Err(NoPlaces::Unknown { tried, late }),
        }
    }

    /// A job that what is before and behind it leaves too little time.
    fn check_chains(&self) -> Result<(), NoPlaces> {
        let is_short = |job: usize| {
            self.tail_ns[job].saturating_sub(self.head_ns[job]) < self.jobs[job].budget_ns
        };
        let Some(job) = (0..self.jobs.len()).find(|&job| is_short(job)) else { return Ok(()) };
        let mut chain = vec![job];
        let mut first = job;
        while let Some(&(before, _)) = self.jobs[first].after.iter().find(|&&(before, gap_ns)| {
            let end_ns = self.head_ns[before].saturating_add(self.jobs[before].budget_ns);
            end_ns.saturating_add(gap_ns) == self.head_ns[first]
                && self.head_ns[first] > self.jobs[first].ready_ns
        }) {
            chain.insert(0, before);
            first = before;
        }
        let mut last = job;
        while let Some(&(behind, _)) = self.followers[last].iter().find(|&&(behind, gap_ns)| {
            let start_ns = self.tail_ns[behind].saturating_sub(self.jobs[behind].budget_ns);
            start_ns.saturating_sub(gap_ns) == self.tail_ns[last]
                && self.tail_ns[last] < self.jobs[last].deadline_ns
        }) {
            chain.push(behind);
            last = behind;
        }
        let gap_ns = |pair: &[usize]| {
            let after = self.jobs[pair[1]].after.iter();
            after.filter(|(before, _)| *before == pair[0]).map(|(_, gap_ns)| *gap_ns).max()
        };
        let budgets = chain.iter().map(|&job| self.jobs[job].budget_ns);
        let needs_ns =
            budgets.chain(chain.windows(2).filter_map(gap_ns)).fold(0, u64::saturating_add);
        let from_ns = self.jobs[first].ready_ns;
        let has_ns = self.jobs[last].deadline_ns.saturating_sub(from_ns);
        Err(NoPlaces::Chain { jobs: chain, needs_ns, has_ns })
    }

    /// Jobs that are late even where they may be interrupted.
    fn check_demand(&self) -> Result<(), NoPlaces> {
        let every_job: Vec<usize> = (0..self.jobs.len()).collect();
        let Some((late, at_ns)) = self.preempted(&every_job, |job| self.head_ns[job]) else {
            return Ok(());
        };
        let to_ns = self.tail_ns[late];
        let within = |from_ns: u64| {
            (0..self.jobs.len())
                .filter(move |&job| self.head_ns[job] >= from_ns && self.tail_ns[job] <= to_ns)
        };
        // The latest beginning that shows it: fewer jobs to look at.
        let mut starts: Vec<(u64, u64)> =
            within(0).map(|job| (self.head_ns[job], self.jobs[job].budget_ns)).collect();
        starts.sort_unstable_by_key(|&start| Reverse(start));
        let (mut sum_ns, mut shown) = (0_u64, at_ns);
        for (from_ns, budget_ns) in starts {
            sum_ns = sum_ns.saturating_add(budget_ns);
            shown = from_ns;
            if from_ns.saturating_add(sum_ns) > to_ns {
                break;
            }
        }
        let from_ns = shown;
        let mut jobs: Vec<usize> = within(from_ns).collect();
        jobs.sort_by_key(|&job| self.tail_ns[job]);
        let needs_ns = jobs.iter().map(|&job| self.jobs[job].budget_ns).sum();
        Err(NoPlaces::Demand { jobs, from_ns, to_ns, needs_ns })
    }

    /// The first job of these that is late where each is interrupted by one of an earlier
    /// deadline, and when it ends. `ready_ns` is a lower bound of its start.
    fn preempted(&self, jobs: &[usize], ready_ns: impl Fn(usize) -> u64) -> Option<(usize, u64)> {
        let mut coming: Vec<(u64, usize)> = jobs.iter().map(|&job| (ready_ns(job), job)).collect();
        coming.sort_unstable();
        let mut coming = coming.into_iter().peekable();
        let mut waiting: BinaryHeap<Reverse<(u64, usize, u64)>> = BinaryHeap::new();
        let mut now_ns = 0;
        loop {
            while let Some((_, job)) = coming.next_if(|&(ready_ns, _)| ready_ns <= now_ns) {
                waiting.push(Reverse((self.tail_ns[job], job, self.jobs[job].budget_ns)));
            }
            let Some(Reverse((due_ns, job, left_ns))) = waiting.pop() else {
                now_ns = coming.peek()?.0;
                continue;
            };
            let end_ns = now_ns.saturating_add(left_ns);
            let next_ns = coming.peek().map_or(u64::MAX, |&(ready_ns, _)| ready_ns);
            if end_ns <= next_ns {
                if end_ns > due_ns {
                    return Some((job, end_ns));
                }
                now_ns = end_ns;
            } else {
                waiting.push(Reverse((due_ns, job, left_ns - (next_ns - now_ns))));
                now_ns = next_ns;
            }
        }
    }

    /// Jobs by their deadlines, whichever is ready.
    fn by_deadline(&self) -> Result<Vec<u64>, LateJob> {
        let mut waiting: BinaryHeap<Reverse<(u64, usize)>> = BinaryHeap::new();
        let mut coming: BinaryHeap<Reverse<(u64, usize)>> = BinaryHeap::new();
        let mut left: Vec<usize> = self.jobs.iter().map(|job| job.after.len()).collect();
        let mut ready_ns: Vec<u64> = self.head_ns.clone();
        let mut starts = vec![0; self.jobs.len()];
        let mut open = OpenRuns::new(self);
        // Jobs that an open run of another task keeps out.
        let mut kept_out: Vec<usize> = Vec::new();
        coming.extend(
            (0..self.jobs.len())
                .filter(|&job| left[job] == 0)
                .map(|job| Reverse((ready_ns[job], job))),
        );
        let (mut now_ns, mut previous) = (0, None);
        let mut placed = 0;
        while placed < self.jobs.len() {
            while let Some(&Reverse((at_ns, job))) = coming.peek()
                && at_ns <= now_ns
            {
                coming.pop();
                waiting.push(Reverse((self.tail_ns[job], job)));
            }
            let Some(Reverse((due_ns, job))) = waiting.pop() else {
                // All that is left is kept out by a run whose next part is not ready yet.
                match coming.peek() {
                    Some(&Reverse((at_ns, _))) => now_ns = at_ns,
                    None => {
                        let job = kept_out.first().copied().unwrap_or(0);
                        let end_ns = now_ns.saturating_add(self.jobs[job].budget_ns);
                        let behind = previous;
                        return Err(LateJob { job, end_ns, behind, is_kept_out: true });
                    }
                }
                continue;
            };
            if !open.admits(job) {
                kept_out.push(job);
                continue;
            }
            starts[job] = now_ns;
            let end_ns = now_ns.saturating_add(self.jobs[job].budget_ns);
            if end_ns > due_ns {
                return Err(LateJob { job, end_ns, behind: previous, is_kept_out: false });
            }
            (now_ns, previous) = (end_ns, Some(job));
            placed += 1;
            open.place(job);
            waiting.extend(kept_out.drain(..).map(|job| Reverse((self.tail_ns[job], job))));
            for &(behind, gap_ns) in &self.followers[job] {
                ready_ns[behind] = ready_ns[behind].max(end_ns.saturating_add(gap_ns));
                left[behind] -= 1;
                if left[behind] == 0 {
                    coming.push(Reverse((ready_ns[behind], behind)));
                }
            }
        }
        Ok(starts)
    }
}

/// Runs of tasks of which some parts have places and others not yet.
#[derive(Clone)]
struct OpenRuns<'o> {
    offline: &'o Offline<'o>,
    placed: Vec<usize>,
}

impl<'o> OpenRuns<'o> {
    fn new(offline: &'o Offline<'o>) -> Self {
        Self { offline, placed: vec![0; offline.parts.len()] }
    }

    /// Returns true where no open run keeps this job out.
    fn admits(&self, job: usize) -> bool {
        let run = self.offline.jobs[job].part_of;
        self.offline.excluded[run].iter().all(|&other| {
            let placed = self.placed[other];
            placed == 0 || placed == self.offline.parts[other]
        })
    }

    fn place(&mut self, job: usize) {
        self.placed[self.offline.jobs[job].part_of] += 1;
    }

    fn take_back(&mut self, job: usize) {
        self.placed[self.offline.jobs[job].part_of] -= 1;
    }
}

/// The outcome of a search.
#[derive(Debug)]
enum Found {
    Places(Vec<u64>),
    /// Every order leads nowhere.
    Nothing,
    Bound {
        tried: usize,
    },
}

/// A job that was chosen, and what is tried in its place afterwards.
struct Branch {
    /// The next ones to choose, last first.
    choices: Vec<usize>,
    /// The one that is chosen now, with when the CPU was free before it.
    chosen: Option<(usize, u64)>,
}

/// All orders, depth first.
struct Search<'s> {
    offline: &'s Offline<'s>,
    bound: usize,
    now_ns: u64,
    starts: Vec<Option<u64>>,
    open: OpenRuns<'s>,
    /// Sets of placed jobs, with the earliest end of one that led nowhere, ns.
    nowhere: HashMap<Box<[u64]>, u64>,
}

impl<'s> Search<'s> {
    fn new(offline: &'s Offline<'s>, bound: usize) -> Self {
        Self {
            offline,
            bound,
            now_ns: 0,
            starts: vec![None; offline.jobs.len()],
            open: OpenRuns::new(offline),
            nowhere: HashMap::new(),
        }
    }

    fn run(mut self) -> Found {
        let jobs = self.offline.jobs.len();
        let (mut stack, mut tried) = (vec![self.branch()], 0);
        while let Some(mut branch) = stack.pop() {
            if let Some((job, before_ns)) = branch.chosen.take() {
                self.take_back(job, before_ns);
            }
            let Some(job) = branch.choices.pop() else {
                self.forget();
                continue;
            };
            tried += 1;
            if tried > self.bound {
                return Found::Bound { tried: self.bound };
            }
            branch.chosen = Some((job, self.now_ns));
            self.place(job);
            stack.push(branch);
            if stack.len() == jobs {
                return Found::Places(self.starts.into_iter().flatten().collect());
            }
            stack.push(self.branch());
        }
        Found::Nothing
    }

    fn place(&mut self, job: usize) {
        let start_ns = self.earliest_ns(job);
        self.starts[job] = Some(start_ns);
        self.open.place(job);
        self.now_ns = start_ns + self.offline.jobs[job].budget_ns;
    }

    fn take_back(&mut self, job: usize, before_ns: u64) {
        self.starts[job] = None;
        self.open.take_back(job);
        self.now_ns = before_ns;
    }

    /// The set of placed jobs.
    fn placed(&self) -> Box<[u64]> {
        let mut words = vec![0_u64; self.starts.len().div_ceil(64)];
        for (job, _) in self.starts.iter().enumerate().filter(|(_, start)| start.is_some()) {
            words[job / 64] |= 1 << (job % 64);
        }
        words.into()
    }

    /// Remembers that nothing leads on from here. Where a job waits for a gap, another way to the
    /// same set may be better, so only sets without one are.
    fn forget(&mut self) {
        let waits = self.offline.has_gaps
            && (0..self.starts.len()).any(|job| {
                self.starts[job].is_none()
                    && self.earliest_ns(job) > self.now_ns.max(self.offline.head_ns[job])
            });
        if !waits && self.nowhere.len() < REMEMBERED {
            let end_ns = self.nowhere.entry(self.placed()).or_insert(self.now_ns);
            *end_ns = (*end_ns).min(self.now_ns);
        }
    }

    /// A lower bound of the start of a job that has no place yet; where all before it have theirs,
    /// its start if it comes next.
    fn earliest_ns(&self, job: usize) -> u64 {
        let mut earliest_ns = self.now_ns.max(self.offline.head_ns[job]);
        for &(before, gap_ns) in &self.offline.jobs[job].after {
            if let Some(start_ns) = self.starts[before] {
                let end_ns = start_ns + self.offline.jobs[before].budget_ns;
                earliest_ns = earliest_ns.max(end_ns + gap_ns);
            }
        }
        earliest_ns
    }

    /// The jobs that can come next: none, where it is shown that no way leads on.
    fn branch(&self) -> Branch {
        let choices = if self.leads_nowhere() { Vec::new() } else { self.choices() };
        Branch { choices, chosen: None }
    }

    fn leads_nowhere(&self) -> bool {
        let known = self.nowhere.get(&self.placed());
        if known.is_some_and(|&end_ns| end_ns <= self.now_ns) {
            return true;
        }
        let left: Vec<usize> =
            (0..self.starts.len()).filter(|&job| self.starts[job].is_none()).collect();
        self.offline.preempted(&left, |job| self.earliest_ns(job)).is_some()
    }

    /// Jobs that can come next, the one of the earliest deadline last.
    fn choices(&self) -> Vec<usize> {
        let jobs = self.offline.jobs;
        let is_next = |&job: &usize| {
            self.starts[job].is_none()
                && jobs[job].after.iter().all(|&(before, _)| self.starts[before].is_some())
                && self.open.admits(job)
        };
        let mut choices: Vec<(u64, u64, usize)> = (0..jobs.len())
            .filter(is_next)
            .map(|job| (self.offline.tail_ns[job], self.earliest_ns(job), job))
            .collect();
        // One that has ended before another can start goes first at no cost, unless it opens a run
        // that keeps others out.
        let first_end_ns = choices
            .iter()
            .filter(|&&(_, _, job)| self.offline.excluded[jobs[job].part_of].is_empty())
            .map(|&(_, start_ns, job)| start_ns + jobs[job].budget_ns)
            .min()
            .unwrap_or(u64::MAX);
        choices.retain(|&(_, start_ns, _)| start_ns < first_end_ns);
        choices.sort_unstable_by_key(|&choice| Reverse(choice));
        // Of two that are the same to all others, one is enough.
        let mut seen = HashSet::new();
        let mut chosen: Vec<usize> = choices.into_iter().map(|(_, _, job)| job).collect();
        chosen.retain(|&job| {
            let is_alone = jobs[job].after.is_empty()
                && self.offline.followers[job].is_empty()
                && self.offline.excluded[jobs[job].part_of].is_empty();
            let Job { ready_ns, deadline_ns, budget_ns, .. } = jobs[job];
            !is_alone || seen.insert((ready_ns.max(self.now_ns), deadline_ns, budget_ns))
        });
        chosen
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn job(ready_ns: u64, deadline_ns: u64, budget_ns: u64) -> Job {
        Job { ready_ns, deadline_ns, budget_ns, after: Vec::new(), part_of: 0 }
    }

    fn places(jobs: &[Job], excluded: &[(usize, usize)]) -> Result<Vec<u64>, NoPlaces> {
        Offline::new(jobs, excluded)?.places()
    }

    /// Each job a run of its own.
    fn alone(jobs: Vec<Job>) -> Vec<Job> {
        jobs.into_iter().enumerate().map(|(part_of, job)| Job { part_of, ..job }).collect()
    }

    /// Returns true where places keep to everything, by a check without the scheduler.
    fn keep_to(jobs: &[Job], excluded: &[(usize, usize)], starts: &[u64]) -> bool {
        let end_ns = |job: usize| starts[job] + jobs[job].budget_ns;
        let mut order: Vec<usize> = (0..jobs.len()).collect();
        order.sort_by_key(|&job| starts[job]);
        let within = jobs.iter().enumerate().all(|(number, job)| {
            starts[number] >= job.ready_ns
                && end_ns(number) <= job.deadline_ns
                && job
                    .after
                    .iter()
                    .all(|&(before, gap_ns)| end_ns(before) + gap_ns <= starts[number])
        });
        let apart = order.windows(2).all(|pair| end_ns(pair[0]) <= starts[pair[1]]);
        let span = |run: usize| {
            let parts = || (0..jobs.len()).filter(|&job| jobs[job].part_of == run);
            (parts().map(|job| starts[job]).min(), parts().map(end_ns).max())
        };
        let kept_out = excluded.iter().all(|&(one, other)| {
            let (one, other) = (span(one), span(other));
            one.1 <= other.0 || other.1 <= one.0
        });
        within && apart && kept_out
    }

    /// The oracle: every order of all jobs, each as early as it can be.
    fn some_order(jobs: &[Job], excluded: &[(usize, usize)]) -> bool {
        fn further(
            jobs: &[Job],
            excluded: &[(usize, usize)],
            starts: &mut Vec<Option<u64>>,
            now_ns: u64,
        ) -> bool {
            if starts.iter().all(Option::is_some) {
                let starts: Vec<u64> = starts.iter().copied().flatten().collect();
                return keep_to(jobs, excluded, &starts);
            }
            for next in 0..jobs.len() {
                if starts[next].is_some() {
                    continue;
                }
                let mut start_ns = now_ns.max(jobs[next].ready_ns);
                let mut is_ready = true;
                for &(before, gap_ns) in &jobs[next].after {
                    match starts[before] {
                        Some(at_ns) => {
                            start_ns = start_ns.max(at_ns + jobs[before].budget_ns + gap_ns);
                        }
                        None => is_ready = false,
                    }
                }
                let end_ns = start_ns + jobs[next].budget_ns;
                if !is_ready || end_ns > jobs[next].deadline_ns {
                    continue;
                }
                starts[next] = Some(start_ns);
                if further(jobs, excluded, starts, end_ns) {
                    return true;
                }
                starts[next] = None;
            }
            false
        }
        further(jobs, excluded, &mut vec![None; jobs.len()], 0)
    }

    /// A few jobs in little time, so that about as many sets have places as have none: precedence
    /// to earlier ones with a gap, and runs of two tasks that exclude each other.
    fn sets() -> impl Strategy<Value = (Vec<Job>, Vec<(usize, usize)>)> {
        let one = (0..24_u64, 1..7_u64, 0..24_u64, any::<u16>(), 0..6_u64, 0..6_usize);
        (prop::collection::vec(one, 1..8), any::<bool>()).prop_map(|(drawn, is_excluding)| {
            let count = drawn.len();
            let jobs = drawn.into_iter().enumerate().map(|(number, drawn)| {
                let (ready_ns, budget_ns, room_ns, dice, gap_ns, run) = drawn;
                let is_after = number > 0 && dice % 3 == 0;
                let gap_ns = if dice & 0x100 == 0 { 0 } else { gap_ns };
                let before = (dice as usize >> 4) % number.max(1);
                let after = if is_after { vec![(before, gap_ns)] } else { Vec::new() };
                let deadline_ns = ready_ns + budget_ns + room_ns;
                // The first two runs have parts, all others are alone.
                let part_of = if run < 2 { run } else { 2 + number };
                Job { ready_ns, deadline_ns, budget_ns, after, part_of }
            });
            let jobs: Vec<Job> = jobs.collect();
            let has = |run: usize| jobs.iter().any(|job| job.part_of == run);
            let is_both = is_excluding && has(0) && has(1) && count > 2;
            let excluded = if is_both { vec![(0, 1)] } else { Vec::new() };
            (jobs, excluded)
        })
    }

    /// The oracle's answers over fixed sets: (places found, shown that there are none).
    #[test]
    fn small_sets_have_places_where_some_order_of_all_has() {
        let mut runner = proptest::test_runner::TestRunner::deterministic();
        let (mut found, mut none) = (0, 0);
        for _ in 0..4_000 {
            let (jobs, excluded) = sets().new_tree(&mut runner).expect("drawn").current();
            match places(&jobs, &excluded) {
                Ok(starts) => {
                    assert!(keep_to(&jobs, &excluded, &starts), "{jobs:?} {excluded:?} {starts:?}");
                    found += 1;
                }
                Err(NoPlaces::Unknown { .. }) => panic!("so few are decided: {jobs:?}"),
                Err(why) => {
                    assert!(!some_order(&jobs, &excluded), "{why:?}: {jobs:?} {excluded:?}");
                    none += 1;
                }
            }
        }
        assert!(found > 500 && none > 500, "{found} found, {none} none: the sets say nothing");
    }

    use proptest::strategy::ValueTree as _;

    #[test]
    fn a_chain_that_is_too_long_is_named_with_its_time() {
        let mut jobs = alone(vec![job(10, 100, 20), job(0, 100, 30), job(0, 60, 5), job(0, 99, 1)]);
        jobs[1].after = vec![(0, 4)];
        jobs[2].after = vec![(1, 0)];
        let why = places(&jobs, &[]).expect_err("59 of 50");
        assert_eq!(why, NoPlaces::Chain { jobs: vec![0, 1, 2], needs_ns: 59, has_ns: 50 });
    }

    #[test]
    fn a_job_after_itself_is_named() {
        let mut jobs = alone(vec![job(0, 9, 1), job(0, 9, 1), job(0, 9, 1)]);
        jobs[1].after = vec![(2, 0)];
        jobs[2].after = vec![(1, 3)];
        assert_eq!(places(&jobs, &[]), Err(NoPlaces::Circle(1)));
    }

    #[test]
    fn an_interval_that_is_too_short_is_named_with_its_jobs() {
        let jobs = alone(vec![job(0, 100, 10), job(20, 50, 15), job(25, 50, 16), job(0, 30, 3)]);
        let why = places(&jobs, &[]).expect_err("31 in 30");
        let wanted = NoPlaces::Demand { jobs: vec![1, 2], from_ns: 20, to_ns: 50, needs_ns: 31 };
        assert_eq!(why, wanted);
        // Of jobs that are ready together each is counted.
        let jobs = alone(vec![job(0, 100, 60), job(0, 100, 60), job(0, 100, 60)]);
        let wanted =
            NoPlaces::Demand { jobs: vec![0, 1, 2], from_ns: 0, to_ns: 100, needs_ns: 180 };
        assert_eq!(places(&jobs, &[]), Err(wanted));
    }

    #[test]
    fn the_cpu_idles_for_a_job_that_comes_soon_where_only_that_helps() {
        // By deadlines the long one begins at once, and the short one behind it is late.
        let jobs = alone(vec![job(0, 100, 50), job(10, 20, 10)]);
        let starts = places(&jobs, &[]).expect("20 and 10");
        assert_eq!(starts, [20, 10]);
        // Where both orders fail, that is known, and what stands in the way.
        let jobs = alone(vec![job(0, 65, 50), job(10, 20, 10)]);
        let late = LateJob { job: 1, end_ns: 60, behind: Some(0), is_kept_out: false };
        assert_eq!(places(&jobs, &[]), Err(NoPlaces::NoOrder(late)));
    }

    #[test]
    fn a_task_that_excludes_another_lets_none_of_it_between_its_parts() {
        // Parts of run 0 at 0 and from 50 on; a job of run 1 would fit between them.
        let part = |ready_ns, part_of| Job { part_of, ..job(ready_ns, 100, 10) };
        let jobs = [part(0, 0), part(50, 0), part(0, 1)];
        let starts = places(&jobs, &[(0, 1)]).expect("behind both");
        assert!(keep_to(&jobs, &[(0, 1)], &starts), "{starts:?}");
        let tight = [part(0, 0), part(50, 0), Job { deadline_ns: 30, ..part(0, 1) }];
        let starts = places(&tight, &[(0, 1)]).expect("before both");
        assert_eq!(starts, [10, 50, 0]);
        let between = [
            Job { deadline_ns: 10, ..part(0, 0) },
            part(50, 0),
            Job { deadline_ns: 60, ..part(0, 1) },
        ];
        assert!(places(&between, &[]).is_ok());
        assert!(matches!(places(&between, &[(0, 1)]), Err(NoPlaces::NoOrder(_))));
    }

    /// Jobs of periodic units over one frame of 64, from shares of the CPU.
    fn periodic(units: &[(u64, u64)]) -> Vec<Job> {
        let jobs = units.iter().flat_map(|&(period_ns, budget_ns)| {
            (0..64 / period_ns).map(move |k| job(k * period_ns, (k + 1) * period_ns, budget_ns))
        });
        alone(jobs.collect())
    }

    /// Returns true where each unit ends within its period under fixed priorities by their periods,
    /// not preempted: blocked by one below or by its own last run, what is above it, and itself
    /// (Davis, Burns, Bril, Lukkien 2007, their sufficient test).
    fn is_admitted(units: &[(u64, u64)]) -> bool {
        units.iter().enumerate().all(|(rank, &(period_ns, budget_ns))| {
            let blocked_ns = units[rank..].iter().map(|unit| unit.1).max().unwrap_or(0);
            let mut start_ns = blocked_ns;
            loop {
                let above_ns: u64 =
                    units[..rank].iter().map(|&(t, c)| (start_ns / t + 1) * c).sum();
                let next_ns = blocked_ns + above_ns;
                if next_ns + budget_ns > period_ns {
                    return false;
                }
                if next_ns == start_ns {
                    return true;
                }
                start_ns = next_ns;
            }
        })
    }

    proptest! {
        #[test]
        fn what_fixed_priorities_can_do_unpreempted_has_places(
            drawn in prop::collection::vec((0..4_usize, 1..9_u64), 1..12)
        ) {
            let mut units: Vec<(u64, u64)> =
                drawn.into_iter().map(|(power, budget_ns)| (8 << power, budget_ns)).collect();
            units.sort_unstable();
            let jobs = periodic(&units);
            let places = places(&jobs, &[]);
            if is_admitted(&units) {
                prop_assert!(places.is_ok(), "{units:?} {places:?}");
            }
            // Above the whole CPU nothing has; the demand shows it (Liu and Layland 1973).
            let needs_ns: u64 = jobs.iter().map(|job| job.budget_ns).sum();
            if needs_ns > 64 {
                let is_demand =
                    matches!(places, Err(NoPlaces::Demand { .. } | NoPlaces::Chain { .. }));
                prop_assert!(is_demand, "{units:?} {places:?}");
            }
            if let Ok(starts) = places {
                prop_assert!(keep_to(&jobs, &[], &starts));
            }
        }
    }

    #[test]
    fn many_jobs_are_placed_by_their_deadlines_and_no_search_is_endless() {
        let thousands: Vec<Job> = (0..40_000).map(|k| job(k * 10, k * 10 + 25, 8)).collect();
        let thousands = alone(thousands);
        let starts = places(&thousands, &[]).expect("8 of each 10");
        assert!(keep_to(&thousands, &[], &starts));
        // 3-partition in the gaps between fixed jobs: no order is found soon.
        let mut hard: Vec<Job> = (1..=20).map(|k| job(k * 101 - 1, k * 101, 1)).collect();
        hard.extend((0..60).map(|k| job(0, 20 * 101, 26 + (k * 7) % 15)));
        let total_ns: u64 = hard[20..].iter().map(|job| job.budget_ns).sum();
        assert!(total_ns <= 2_000, "{total_ns}");
        match places(&alone(hard.clone()), &[]) {
            Ok(starts) => assert!(keep_to(&alone(hard), &[], &starts)),
            Err(why) => assert!(matches!(why, NoPlaces::Unknown { .. }), "{why:?}"),
        }
    }
}

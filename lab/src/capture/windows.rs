//! The events around late wakes, held until it is known which wakes are the latest.
//!
//! Pure: events and finished wakes in, the events of windows out. A window reaches from 1 ms before
//! the timer was programmed, or before the release, to 0.2 ms behind the first instruction, on all
//! CPUs. With it come the few events before it that say what held when it began: who ran on each
//! CPU, who programmed the timers that expire in it, what workers run. All of them are the
//! kernel's own, with their own times. Bounds are fixed; what they leave out is counted.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::sync::Arc;

use punctual_blame::wake::FinishedWake;
use punctual_trace::event::{Tid, TraceEvent, TraceKind};

/// From the programming of the timer, or the release, back to the begin of a window, ns.
const LEAD_NS: u64 = 1_000_000;
/// From the first instruction to the end of a window, ns.
const BEHIND_NS: u64 = 200_000;
/// A timer that was programmed earlier before its release does not make a window longer: it comes
/// with the events before it, ns.
const ARM_NS: u64 = 10_000_000;
/// Events that are held in case a wake turns out late: some 20 MB.
const RECENT: usize = 1 << 17;
/// Windows whose end is still to come.
const OPEN: usize = 64;
/// Bytes of all windows, each counted as if it shared no event with others.
const WINDOWS_BYTES: usize = 64 << 20;
/// Timers, threads and workers whose last event is remembered, each.
const PLACES: usize = 1 << 12;
/// The most CPUs.
const CPUS: usize = 1 << 13;

/// A late wake: its thread and its release.
pub(crate) type WakeKey = (Tid, u64);

/// An event with its number in the order in which events came.
#[derive(Debug)]
struct Numbered {
    number: u64,
    event: TraceEvent,
}

/// An event, and what must be known to understand it.
#[derive(Debug, Clone)]
struct Held {
    numbered: Arc<Numbered>,
    /// The switch before it on its CPU.
    switch: Option<Arc<Numbered>>,
    /// Of an expiry the programming of its timer, of a call chain what its worker runs, of a switch
    /// of a stopped thread the signal.
    needed: Option<Arc<Held>>,
}

/// The last event of each key, in a table of fixed size: of two that share a place the later one.
#[derive(Debug)]
struct Latest(Vec<Option<(u64, Arc<Held>)>>);

impl Default for Latest {
    fn default() -> Self {
        Self(vec![None; PLACES])
    }
}

impl Latest {
    const fn place(key: u64) -> usize {
        // Fibonacci hashing: the upper bits of the product depend on all bits of the key.
        (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - PLACES.trailing_zeros())) as usize
    }

    fn put(&mut self, key: u64, held: Arc<Held>) {
        self.0[Self::place(key)] = Some((key, held));
    }

    fn get(&self, key: u64) -> Option<&Arc<Held>> {
        let (known, held) = self.0[Self::place(key)].as_ref()?;
        (*known == key).then_some(held)
    }
}

/// The last two events of each key.
#[derive(Debug, Default)]
struct LastTwo {
    last: Latest,
    before: Latest,
}

impl LastTwo {
    fn put(&mut self, key: u64, held: Arc<Held>) {
        if let Some(older) = self.last.get(key) {
            self.before.put(key, Arc::clone(older));
        }
        self.last.put(key, held);
    }

    /// The later one that is wanted.
    fn find(&self, key: u64, is_wanted: impl Fn(&TraceEvent) -> bool) -> Option<Arc<Held>> {
        let mut both = [&self.last, &self.before].into_iter().filter_map(|latest| latest.get(key));
        both.find(|held| is_wanted(&held.numbered.event)).cloned()
    }
}

/// A window whose end is still to come.
#[derive(Debug)]
struct Open {
    key: WakeKey,
    least_ns: u64,
    from_ns: u64,
    to_ns: u64,
    /// The call that its thread slept in, the switches by which it went to sleep and by which it
    /// left its CPU last, and the timer that it started: a CPU that records nothing while it idles
    /// has no expiry of that.
    before: [Option<Arc<Held>>; 4],
}

/// A window.
#[derive(Debug)]
struct Window {
    least_ns: u64,
    /// The times of which it has everything, but for what says what held when it began, ns.
    whole_ns: (u64, u64),
    events: Vec<Arc<Numbered>>,
    bytes: usize,
    /// True where its begin is no longer there.
    is_cut: bool,
}

/// Holds the events that may have to be kept.
#[derive(Debug, Default)]
pub(crate) struct WindowStore {
    recent: VecDeque<Held>,
    numbers: u64,
    /// The last switch of each CPU.
    switches: Vec<Option<Arc<Numbered>>>,
    timers: Latest,
    /// The timers that each thread started.
    armed: LastTwo,
    workers: Latest,
    /// The switches by which each thread left its CPU, and those to its sleep.
    left: LastTwo,
    slept: LastTwo,
    /// The system calls of each thread.
    calls: LastTwo,
    /// The last signal that stops.
    stop: Option<Arc<Held>>,
    open: VecDeque<Open>,
    windows: BTreeMap<WakeKey, Window>,
    bytes: usize,
    /// Late wakes without a window: there was no room.
    dropped: u64,
}

/// Bytes that an event takes.
fn bytes_of(event: &TraceEvent) -> usize {
    size_of::<Numbered>() + size_of::<Arc<Numbered>>() + 16 + 8 * event.chain.len()
}

impl WindowStore {
    /// Takes in an event, before attribution does.
    pub(crate) fn see(&mut self, event: &TraceEvent) {
        while self.open.front().is_some_and(|open| open.to_ns < event.at_ns) {
            self.close();
        }
        let numbered = Arc::new(Numbered { number: self.numbers, event: event.clone() });
        self.numbers += 1;
        let cpu = event.cpu as usize;
        if cpu >= CPUS {
            return;
        }
        if self.switches.len() <= cpu {
            self.switches.resize(cpu + 1, None);
        }
        let needed = match event.kind {
            TraceKind::TimerExpireEntry { timer, .. } => self.timers.get(timer),
            TraceKind::Switch { previous_state, .. } if TraceKind::is_stopped(previous_state) => {
                self.stop.as_ref()
            }
            _ if !event.chain.is_empty() => self.workers.get(u64::from(event.tid)),
            _ => None,
        };
        let held = Held {
            switch: self.switches[cpu].clone(),
            needed: needed.cloned(),
            numbered: Arc::clone(&numbered),
        };
        match &event.kind {
            TraceKind::Switch { previous, previous_state, .. } => {
                let (key, held) = (u64::from(previous.tid), Arc::new(held.clone()));
                let is_sleep = !TraceKind::stays_runnable(*previous_state)
                    && !TraceKind::is_stopped(*previous_state);
                if is_sleep {
                    self.slept.put(key, Arc::clone(&held));
                }
                self.left.put(key, held);
                self.switches[cpu] = Some(numbered);
            }
            TraceKind::SyscallEntry { .. } => {
                self.calls.put(u64::from(event.tid), Arc::new(held.clone()));
            }
            TraceKind::TimerStart { timer, .. } => {
                let (key, held) = (u64::from(event.tid), Arc::new(held.clone()));
                self.timers.put(*timer, Arc::clone(&held));
                self.armed.put(key, held);
            }
            TraceKind::WorkStart { .. } => {
                self.workers.put(u64::from(event.tid), Arc::new(held.clone()));
            }
            TraceKind::Signal { number, .. } if TraceKind::stops(*number) => {
                self.stop = Some(Arc::new(held.clone()));
            }
            _ => {}
        }
        if self.recent.len() == RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back(held);
    }

    /// A wake that may be one of the latest was finished by the event that came last.
    pub(crate) fn open(&mut self, wake: &FinishedWake) {
        let release_ns = wake.release_ns;
        let key = u64::from(wake.task.tid);
        // What shows that it ran may be the begin of its next sleep.
        let own = self.armed.find(key, |event| Some(event.at_ns) == wake.armed_ns);
        let is_before = |event: &TraceEvent| event.at_ns < wake.ran_ns;
        let [call, slept, left] =
            [&self.calls, &self.slept, &self.left].map(|last_two| last_two.find(key, is_before));
        let armed_ns = wake.armed_ns.unwrap_or(release_ns).min(release_ns);
        let from_ns = armed_ns.max(release_ns.saturating_sub(ARM_NS));
        if self.open.len() == OPEN {
            self.close();
        }
        self.open.push_back(Open {
            key: (wake.task.tid, release_ns),
            least_ns: wake.least_ns,
            from_ns: from_ns.saturating_sub(LEAD_NS),
            to_ns: wake.seen_ns.max(wake.ran_ns).saturating_add(BEHIND_NS),
            before: [call, slept, left, own],
        });
    }

    /// The oldest open window gets what there is.
    fn close(&mut self) {
        let Some(Open { key, least_ns, from_ns, to_ns, before: known }) = self.open.pop_front()
        else {
            return;
        };
        let mut events: BTreeMap<u64, Arc<Numbered>> = BTreeMap::new();
        let mut take = |held: &Held| {
            let with = [Some(&held.numbered), held.switch.as_ref()].into_iter().flatten();
            for numbered in with {
                events.entry(numbered.number).or_insert_with(|| Arc::clone(numbered));
            }
        };
        // They come in the order of time, but for what is counted as out of order.
        let is_in = |held: &&Held| held.numbered.event.at_ns >= from_ns;
        let mut first = self.numbers;
        let mut seen: HashSet<u32> = HashSet::new();
        let before = self.recent.iter().rev().position(|held| !is_in(&held));
        let is_cut = before.is_none() && self.recent.len() == RECENT;
        let count = before.unwrap_or(self.recent.len());
        let oldest_ns = self.recent.front().map_or(from_ns, |held| held.numbered.event.at_ns);
        let begin_ns = if is_cut { oldest_ns.max(from_ns) } else { from_ns };
        // One that is closed early lacks what comes after the last event.
        let seen_ns = self.recent.back().map_or(to_ns, |held| held.numbered.event.at_ns);
        let whole_ns = (begin_ns, to_ns.min(seen_ns).max(begin_ns));
        for held in self.recent.iter().skip(self.recent.len() - count) {
            first = first.min(held.numbered.number);
            seen.insert(held.numbered.event.cpu);
            if held.numbered.event.at_ns > to_ns {
                continue;
            }
            take(held);
            if let Some(needed) = &held.needed {
                take(needed);
            }
        }
        for held in known.iter().flatten() {
            take(held);
            held.needed.iter().for_each(|needed| take(needed));
        }
        // Of CPUs without an event since, who runs there.
        for last in self.switches.iter().flatten() {
            if !seen.contains(&last.event.cpu) && last.number < first {
                events.entry(last.number).or_insert_with(|| Arc::clone(last));
            }
        }
        let events: Vec<Arc<Numbered>> = events.into_values().collect();
        let bytes = events.iter().map(|numbered| bytes_of(&numbered.event)).sum();
        self.bytes += bytes;
        let window = Window { least_ns, whole_ns, events, bytes, is_cut };
        if let Some(old) = self.windows.insert(key, window) {
            self.bytes -= old.bytes;
        }
    }

    /// Returns true where there is no more room.
    pub(crate) const fn is_full(&self) -> bool {
        self.bytes > WINDOWS_BYTES
    }

    /// Makes room: forgets wakes that are none of these, then the least late.
    pub(crate) fn make_room(&mut self, kept: impl Iterator<Item = WakeKey>) {
        self.make_room_below(WINDOWS_BYTES / 4 * 3, kept);
    }

    fn make_room_below(&mut self, room: usize, kept: impl Iterator<Item = WakeKey>) {
        let kept: HashSet<WakeKey> = kept.collect();
        self.windows.retain(|key, _| kept.contains(key));
        let mut by_lateness: Vec<(u64, WakeKey)> =
            self.windows.iter().map(|(&key, window)| (window.least_ns, key)).collect();
        by_lateness.sort_unstable();
        self.bytes = self.windows.values().map(|window| window.bytes).sum();
        for (_, key) in by_lateness {
            if self.bytes <= room {
                return;
            }
            if let Some(window) = self.windows.remove(&key) {
                self.bytes -= window.bytes;
                self.dropped += 1;
            }
        }
    }

    /// The windows of these wakes.
    pub(crate) fn finish(mut self, wanted: impl Iterator<Item = WakeKey>) -> KeptEvents {
        while !self.open.is_empty() {
            self.close();
        }
        let mut events: BTreeMap<u64, Arc<Numbered>> = BTreeMap::new();
        let mut kept = KeptEvents::default();
        for key in wanted {
            let Some(window) = self.windows.remove(&key) else {
                kept.missing += 1;
                continue;
            };
            kept.wakes.insert(key);
            kept.windows.push(window.whole_ns);
            if window.is_cut {
                kept.cut.insert(key);
            }
            for numbered in window.events {
                events.entry(numbered.number).or_insert(numbered);
            }
        }
        kept.events = events.into_values().collect();
        kept.windows.sort_unstable();
        // Of two that touch the earlier one gets longer.
        kept.windows.dedup_by(|next, last| {
            let is_apart = next.0 > last.1;
            last.1 = if is_apart { last.1 } else { last.1.max(next.1) };
            !is_apart
        });
        kept
    }
}

/// The events of the windows of some wakes, each once.
#[derive(Debug, Default)]
pub(crate) struct KeptEvents {
    /// In the order in which they came.
    events: Vec<Arc<Numbered>>,
    /// The times of which it has every event, ns, in their order and apart.
    windows: Vec<(u64, u64)>,
    /// The wakes whose windows they are.
    wakes: HashSet<WakeKey>,
    /// Late wakes that should have had one.
    missing: u64,
    /// Those of them whose windows lack their begin.
    cut: HashSet<WakeKey>,
}

impl KeptEvents {
    /// The events, in their order.
    pub(crate) fn events(&self) -> impl Iterator<Item = &TraceEvent> {
        self.events.iter().map(|numbered| &numbered.event)
    }

    /// The times of which it has every event, ns, in their order and apart. Events outside say what
    /// held when one began.
    pub(crate) fn windows(&self) -> &[(u64, u64)] {
        &self.windows
    }

    /// Returns true where the window of a wake is there, with its begin.
    pub(crate) fn has_whole(&self, key: WakeKey) -> bool {
        self.wakes.contains(&key) && !self.cut.contains(&key)
    }

    /// Wakes whose windows are there.
    pub(crate) fn wakes(&self) -> u64 {
        self.wakes.len() as u64
    }

    /// Late wakes that should have had a window, and had no room.
    pub(crate) const fn missing(&self) -> u64 {
        self.missing
    }

    /// Wakes whose windows lack their begin.
    pub(crate) fn cut(&self) -> u64 {
        self.cut.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_trace::event::{ContextFlags, ShortName, TaskName, Vector};

    const MS: u64 = 1_000_000;

    fn task(tid: Tid) -> TaskName {
        TaskName { tid, name: ShortName::new(b"t"), kernel_priority: 9 }
    }

    fn event(at_ns: u64, cpu: u32, tid: Tid, kind: TraceKind) -> TraceEvent {
        let context = ContextFlags::default();
        TraceEvent { at_ns, cpu, tid, context, kind, chain: Box::default() }
    }

    fn switch(at_ns: u64, cpu: u32, from: Tid, to: Tid) -> TraceEvent {
        let (previous, next) = (task(from), task(to));
        event(at_ns, cpu, from, TraceKind::Switch { previous, previous_state: 1, next })
    }

    fn start(at_ns: u64, cpu: u32, tid: Tid, timer: u64) -> TraceEvent {
        let (expires_ns, soft_expires_ns) = (0, 0);
        let kind = TraceKind::TimerStart { timer, function: 1, expires_ns, soft_expires_ns };
        event(at_ns, cpu, tid, kind)
    }

    fn expire(at_ns: u64, cpu: u32, timer: u64) -> TraceEvent {
        event(at_ns, cpu, 0, TraceKind::TimerExpireEntry { timer, function: 1, now_ns: 0 })
    }

    fn tick(at_ns: u64, cpu: u32) -> TraceEvent {
        event(at_ns, cpu, 0, TraceKind::VectorEntry(Vector::LocalTimer))
    }

    fn finished(armed_ns: u64, release_ns: u64, ran_ns: u64) -> FinishedWake {
        FinishedWake {
            task: task(7),
            release_ns,
            armed_ns: Some(armed_ns),
            ran_ns,
            seen_ns: ran_ns,
            least_ns: ran_ns - release_ns,
            margin_ns: 0,
            is_late: true,
        }
    }

    fn kept(events: &[TraceEvent], wakes: &[FinishedWake]) -> Vec<TraceEvent> {
        let mut store = WindowStore::default();
        for event in events {
            store.see(event);
            let ends_at = |wake: &&FinishedWake| wake.ran_ns == event.at_ns;
            wakes.iter().filter(ends_at).for_each(|wake| store.open(wake));
        }
        let keys = wakes.iter().map(|wake| (wake.task.tid, wake.release_ns));
        let kept = store.finish(keys);
        assert_eq!((kept.missing(), kept.wakes()), (0, wakes.len() as u64));
        kept.events().cloned().collect()
    }

    #[test]
    fn a_window_brings_who_ran_and_who_programmed_its_timers() {
        let events = [
            switch(MS, 0, 1, 2),
            switch(2 * MS, 1, 0, 3),
            // The timer that expires in the window, by thread 4; and one that does not.
            switch(3 * MS, 0, 2, 4),
            start(4 * MS, 0, 4, 0x10),
            start(5 * MS, 0, 4, 0x20),
            switch(6 * MS, 0, 4, 5),
            tick(7 * MS, 0),
            // The window begins at 19 ms.
            tick(18 * MS, 0),
            tick(19 * MS, 0),
            start(20 * MS, 0, 5, 0x30),
            expire(21 * MS, 0, 0x10),
            switch(22 * MS, 0, 5, 7),
            tick(22 * MS + 200_000, 0),
            tick(22 * MS + 200_001, 0),
            switch(30 * MS, 1, 3, 0),
        ];
        let times: Vec<u64> = kept(&events, &[finished(20 * MS, 21 * MS, 22 * MS)])
            .iter()
            .map(|event| event.at_ns)
            .collect();
        let (last, end) = (22 * MS, 22 * MS + 200_000);
        let wanted = [2, 3, 4, 6, 19, 20, 21].map(|ms| ms * MS);
        assert_eq!(times, wanted.into_iter().chain([last, end]).collect::<Vec<u64>>());
    }

    /// Of a CPU that records nothing while it idles.
    #[test]
    fn a_timer_without_its_expiry_comes_with_the_wake_of_its_thread() {
        let events = [
            switch(MS, 0, 0, 7),
            start(2 * MS, 0, 7, 0x10),
            switch(3 * MS, 0, 7, 0),
            tick(50 * MS, 1),
            start(100 * MS + 20_000, 0, 7, 0x20),
        ];
        let wake = FinishedWake {
            seen_ns: 100 * MS + 20_000,
            ..finished(2 * MS, 100 * MS, 100 * MS + 20_000)
        };
        let times: Vec<u64> = kept(&events, &[wake]).iter().map(|event| event.at_ns / MS).collect();
        assert!(times.starts_with(&[1, 2, 3]), "{times:?}");
    }

    #[test]
    fn a_thread_that_was_stopped_comes_with_the_signal() {
        let signal =
            |at_ns, number| event(at_ns, 1, 3, TraceKind::Signal { number, task: task(7) });
        let mut stopped = switch(3 * MS, 0, 7, 8);
        if let TraceKind::Switch { previous_state, .. } = &mut stopped.kind {
            *previous_state = 4;
        }
        let events = [
            switch(MS, 0, 0, 7),
            signal(2 * MS, 19),
            stopped,
            signal(4 * MS, 10),
            tick(89 * MS, 0),
            switch(101 * MS, 0, 8, 7),
        ];
        let times: Vec<u64> = kept(&events, &[finished(99 * MS, 100 * MS, 101 * MS)])
            .iter()
            .map(|event| event.at_ns / MS)
            .collect();
        assert_eq!(times, [1, 2, 3, 101]);
    }

    #[test]
    fn a_timer_of_long_ago_comes_without_what_lies_between() {
        let events = [
            switch(MS, 0, 0, 7),
            start(2 * MS, 0, 7, 0x10),
            switch(3 * MS, 0, 7, 8),
            tick(50 * MS, 0),
            switch(60 * MS, 0, 8, 9),
            tick(89 * MS, 0),
            tick(90 * MS, 0),
            expire(100 * MS, 0, 0x10),
            switch(101 * MS, 0, 9, 7),
        ];
        let times: Vec<u64> = kept(&events, &[finished(2 * MS, 100 * MS, 101 * MS)])
            .iter()
            .map(|event| event.at_ns / MS)
            .collect();
        assert_eq!(times, [1, 2, 3, 60, 89, 90, 100, 101]);
    }

    #[test]
    fn times_that_are_whole_are_apart_and_in_order() {
        let wakes = [(2, 10), (1, 2), (3, 11), (4, 39)];
        let mut store = WindowStore::default();
        for at_ms in 0..40 {
            store.see(&tick(at_ms * MS, 0));
        }
        for (tid, release_ms) in wakes {
            let mut wake = finished(release_ms * MS, release_ms * MS, release_ms * MS + 500_000);
            wake.task.tid = tid;
            store.open(&wake);
        }
        let kept = store.finish(wakes.iter().map(|&(tid, release_ms)| (tid, release_ms * MS)));
        let whole_us: Vec<_> =
            kept.windows().iter().map(|&(from, to)| (from / 1_000, to / 1_000)).collect();
        assert_eq!(whole_us, [(1_000, 2_700), (9_000, 11_700), (38_000, 39_000)], "it was the end");
    }

    #[test]
    fn what_lies_in_two_windows_is_there_once() {
        let events: Vec<TraceEvent> = (0..20).map(|ms| tick(ms * MS, 0)).collect();
        let wakes = [finished(5 * MS, 6 * MS, 7 * MS), finished(7 * MS, 8 * MS, 9 * MS)];
        let times: Vec<u64> = kept(&events, &wakes).iter().map(|event| event.at_ns / MS).collect();
        assert_eq!(times, (4..=9).collect::<Vec<u64>>());
    }

    #[test]
    fn a_worker_comes_with_what_it_runs() {
        let mut seen = tick(20 * MS, 0);
        (seen.tid, seen.chain) = (44, Box::from([1]));
        let work = event(MS, 0, 44, TraceKind::WorkStart { function: 9 });
        let events = [switch(MS - 1, 0, 0, 44), work.clone(), switch(2 * MS, 0, 44, 5), seen];
        let kept = kept(&events, &[finished(20 * MS, 20 * MS, 20 * MS)]);
        assert!(kept.contains(&work) && kept.len() == 4, "{kept:?}");
    }

    #[test]
    fn without_room_the_least_late_go_and_are_counted() {
        let mut store = WindowStore::default();
        for ms in 0..100 {
            store.see(&tick(ms * 10 * MS, 0));
            let at_ns = ms * 10 * MS;
            store.open(&finished(at_ns, at_ns, at_ns + ms));
        }
        store.see(&tick(5_000 * MS, 0));
        let window = |ms: u64| (7, ms * 10 * MS);
        let stored = store.bytes;
        store.make_room_below(stored, (50..100).map(window));
        assert_eq!((store.windows.len(), store.dropped), (50, 0));
        assert_eq!(store.bytes, stored / 2);
        store.make_room_below(stored / 4, (50..100).map(window));
        assert_eq!((store.windows.len(), store.dropped), (25, 25));
        let kept = store.finish((50..100).map(window));
        assert_eq!((kept.wakes(), kept.missing()), (25, 25));
        assert!(kept.has_whole(window(99)) && !kept.has_whole(window(50)));
    }

    #[test]
    fn memory_is_bounded_however_many_events_come() {
        let mut store = WindowStore::default();
        for number in 0..2 * RECENT as u64 {
            store.see(&tick(number, (number % 3) as u32));
        }
        assert_eq!(store.recent.len(), RECENT);
        // Its begin is no longer there.
        let now_ns = 2 * RECENT as u64 - 1;
        store.open(&finished(1, 1, now_ns));
        let kept = store.finish([(7, 1)].into_iter());
        assert_eq!((kept.wakes(), kept.cut(), kept.has_whole((7, 1))), (1, 1, false));
        let mut store = WindowStore::default();
        (0..1_000).for_each(|number| store.open(&finished(number, number, number)));
        assert_eq!(store.open.len(), OPEN);
        store.see(&event(1, u32::MAX, 0, TraceKind::PageFaultEntry));
        assert!(store.switches.is_empty());
    }
}

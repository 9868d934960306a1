//! Task blocks with made-up clocks: the same cycles as in the executive, and no effect of invalid
//! values.

use std::sync::atomic::{AtomicU64, Ordering};
use std::vec;
use std::vec::Vec;

use super::*;
use crate::time::{Instant, Period, Span};

const PERIOD_NS: u64 = 1_000;

fn at(ns: u64) -> Instant {
    Instant::from_ns(ns)
}

fn terms(burst: u32) -> Terms {
    let releases = Releases::new(at(5_000), Period::from_ns(PERIOD_NS).expect("in range"));
    Terms { releases, places: Places::EVEN, burst, output_words: 2 }
}

fn memory(words: usize) -> Vec<AtomicU64> {
    (0..words).map(|_| AtomicU64::new(0xdead)).collect()
}

/// A block in `memory`, its server, and a task there that requests releases.
fn connected(memory: &[AtomicU64], burst: u32) -> (TaskServer<'_>, TaskClient<'_>) {
    let server = TaskServer::new(memory, terms(burst)).expect("large enough");
    let mut client = TaskClient::open(memory).expect("a task block");
    client.ask(7);
    (server, client)
}

fn missed_of(done: &Done) -> u64 {
    done.missed.map_or(0, |missed| missed.count)
}

/// A cycle as the task was seen of it: its number, start, missed, dt.
type Seen = (u64, u64, u64, i64);

/// Runs cycles of these lengths through a block, each taken at once; what the task saw,
/// and what the server was.
fn through_block(burst: u32, lengths_ns: &[u64]) -> (Vec<Seen>, Vec<Done>) {
    stalled(burst, lengths_ns, &[], true)
}

/// As [`through_block`], with stalls before the starts of some cycles, of the task alone or of the
/// server too.
fn stalled(
    burst: u32,
    lengths_ns: &[u64],
    stalls_ns: &[u64],
    alone: bool,
) -> (Vec<Seen>, Vec<Done>) {
    let memory = memory(words(2));
    let (mut server, mut client) = connected(&memory, burst);
    let releases = terms(burst).releases;
    let (mut seen, mut done) = (Vec::new(), Vec::new());
    let (mut now, mut posted) = (at(0), 0);
    for (at_cycle, length_ns) in lengths_ns.iter().enumerate() {
        let stall_ns = stalls_ns.get(at_cycle).copied().unwrap_or(0);
        while client.turn() != ClientStep::Run {
            now = now.max(releases.release(posted));
            server.harvest(now, |cycle| done.push(cycle));
            assert!(server.post(posted, false).wake, "it sleeps");
            posted += 1;
            now = at(now.as_ns() + stall_ns);
            while alone && releases.release(posted) <= now {
                server.post(posted, false);
                posted += 1;
            }
        }
        let cycle = client.begin(now);
        seen.push((cycle.n, now.as_ns(), cycle.missed, cycle.dt.as_ns()));
        assert_eq!(cycle.lateness, now - releases.release(cycle.n));
        let running = cycle.n;
        now = at(now.as_ns() + length_ns);
        if !alone {
            posted = posted.max(releases.released(at(now.as_ns() - length_ns)));
        }
        while releases.release(posted) <= now {
            let posting = server.post(posted, false);
            assert_eq!((posting.wake, posting.overran), (false, Some(running)));
            posted += 1;
        }
        client.done(now);
        server.harvest(now, |cycle| done.push(cycle));
    }
    assert_eq!((server.invalid(), look(&memory).expect("a task block").dropped), (0, 0));
    (seen, done)
}

#[test]
fn a_task_that_keeps_up_runs_each_cycle() {
    let (seen, done) = through_block(0, &[10, 999, 500]);
    assert_eq!(seen, [(0, 5_000, 0, 1_000), (1, 6_000, 0, 1_000), (2, 7_000, 0, 1_000)]);
    assert_eq!(
        done.iter().map(|done| done.finish.as_ns()).collect::<Vec<_>>(),
        [5_010, 6_999, 7_500]
    );
    assert!(done.iter().all(|done| done.missed.is_none()));
}

#[test]
fn what_passes_during_a_cycle_is_missed_and_told_exactly() {
    let (seen, done) = through_block(0, &[10, 2_500, 10, 1_000, 10]);
    let expected = [
        (0, 5_000, 0, 1_000),
        (1, 6_000, 0, 1_000),
        (4, 9_000, 2, 3_000),
        (5, 10_000, 0, 1_000),
        (7, 12_000, 1, 2_000),
    ];
    assert_eq!(seen, expected);
    assert_eq!(done.iter().map(missed_of).sum::<u64>(), 3);
}

#[test]
fn a_burst_catches_up_as_far_as_it_may() {
    let (seen, _) = through_block(2, &[3_500, 10, 10, 10]);
    // Cycles 1, 2 and 3 passed; the last two of them run at once.
    assert_eq!(seen[0], (0, 5_000, 0, 1_000));
    assert_eq!(seen[1], (2, 8_500, 1, 2_000));
    assert_eq!(seen[2], (3, 8_510, 0, 1_000));
    assert_eq!(seen[3], (4, 9_000, 0, 1_000));
}

#[test]
fn only_the_cycle_that_overran_is_cancelled() {
    let memory = memory(words(2));
    let (mut server, mut client) = connected(&memory, 0);
    assert_eq!(server.post(3, true), Posted { wake: true, overran: None });
    assert_eq!(client.turn(), ClientStep::Run);
    let cycle = client.begin(at(8_000));
    assert!(!cycle.cancelled() && !client.cancelled());
    assert_eq!(server.post(4, true).overran, Some(3));
    assert!(cycle.cancelled() && client.cancelled());
    client.done(at(9_100));
    assert_eq!(client.turn(), ClientStep::Wait(5), "cycle 4 is missed, and seen with the next");
    server.post(5, true);
    assert_eq!(client.turn(), ClientStep::Run);
    let cycle = client.begin(at(10_000));
    assert_eq!((cycle.n, cycle.missed, cycle.cancelled()), (5, 1, false));
    assert!(!client.cancelled());
    client.done(at(10_001));
    server.end();
    assert_eq!(client.turn(), ClientStep::Ended);
    client.leave();
    assert_eq!(look(&memory).expect("a task block").state, TaskState::Gone);
}

#[test]
fn an_admission_shows_the_child_that_is_released_and_when_the_loop_has_left_it() {
    let memory = memory(words(2));
    let (admission, mut taken) = (Admission::new(), Vec::new());
    let mut server = TaskServer::new(&memory, terms(0)).expect("large enough");
    let mut enter = |server: &mut TaskServer<'_>, now| {
        server.enter(&admission, at(now), |done| taken.push(done.cycle))
    };
    assert_eq!(enter(&mut server, 0), Entered::Closed);
    admission.open(1);
    assert_eq!(enter(&mut server, 0), Entered::Open);
    let mut client = TaskClient::open(&memory).expect("a task block");
    client.ask(7);
    server.post(0, false);
    assert_eq!(client.turn(), ClientStep::Run);
    let _cycle = client.begin(at(5_000));
    client.done(at(5_100));
    server.post(1, false);
    assert_eq!(client.turn(), ClientStep::Run);
    let _cycle = client.begin(at(6_000));
    server.post(2, false);
    server.post(3, false);
    // It ends in the middle of cycle 1, which ran as far as it came; 2 and 3 never did.
    admission.close(1);
    assert!(!admission.is_left(1));
    let Entered::Left(Some(left)) = enter(&mut server, 9_000) else { panic!("two were posted") };
    assert_eq!((left.first, left.count), (2, 2));
    assert!(admission.is_left(1));
    clear(&memory, &terms(0));
    // One that comes and goes unseen is left all the same.
    admission.open(2);
    admission.close(2);
    assert!(!admission.is_left(2));
    assert_eq!(enter(&mut server, 9_500), Entered::Left(None));
    assert!(admission.is_left(2));
    admission.open(3);
    assert_eq!(enter(&mut server, 10_000), Entered::Open);
    let mut client = TaskClient::open(&memory).expect("a task block");
    client.ask(8);
    server.post(5, false);
    assert_eq!(client.turn(), ClientStep::Run);
    assert_eq!(client.begin(at(10_000)).missed, 0, "what was before it is not its own");
    assert_eq!(taken, [0, 1]);
}

#[test]
fn at_the_end_whichever_cycle_runs_or_is_about_to_is_cancelled() {
    for begun_before in [true, false] {
        let memory = memory(words(2));
        let (mut server, mut client) = connected(&memory, 0);
        server.post(3, true);
        assert_eq!(client.turn(), ClientStep::Run);
        if !begun_before {
            server.cancel();
        }
        let cycle = client.begin(at(8_000));
        if begun_before {
            assert!(!cycle.cancelled());
            server.cancel();
        }
        server.end();
        assert!(cycle.cancelled() && client.cancelled());
        client.done(at(8_100));
        assert_eq!(client.turn(), ClientStep::Ended);
    }
}

#[test]
fn garbage_in_a_block_is_counted_and_nothing_else() {
    let memory = memory(words(2));
    let mut server = TaskServer::new(&memory, terms(0)).expect("large enough");
    let mut seed = 5u64;
    let mut harvested = 0;
    for cycle in 0..2_000u64 {
        server.post(cycle, true);
        for word in memory.iter().skip(3) {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let near = [0, 1, cycle, cycle + 1, 5_000 + cycle * PERIOD_NS, u64::MAX];
            let value = near.get((seed >> 61) as usize).copied().unwrap_or(seed);
            word.store(value, Ordering::Relaxed);
        }
        let now = terms(0).releases.release(cycle + 1);
        server.harvest(now, |done| {
            harvested += missed_of(&done) + 1;
            assert!(done.cycle <= cycle && done.finish >= done.start, "{done:?}");
        });
        assert!(harvested + server.unclaimed().map_or(0, |missed| missed.count) <= cycle + 1);
        let _seen = look(&memory).expect("large enough");
        if let Ok(mut client) = TaskClient::open(&memory) {
            // Whatever the task finds, it goes on.
            if client.turn() == ClientStep::Run {
                let _cycle = client.begin(now);
                client.done(now);
            }
        }
    }
    assert!(server.invalid() > 1_000);
}

#[test]
fn a_result_after_the_stamp_waits_for_the_next_look_and_only_for_that() {
    let memory = memory(words(2));
    let (mut server, mut client) = connected(&memory, 0);
    let mut cycle = |server: &mut TaskServer<'_>, n: u64, finish: Instant| {
        server.post(n, false);
        assert_eq!(client.turn(), ClientStep::Run);
        let _cycle = client.begin(terms(0).releases.release(n));
        client.done(finish);
    };
    let harvest = |server: &mut TaskServer<'_>, now: Instant| {
        let mut done = Vec::new();
        server.harvest(now, |result| done.push(result.cycle));
        (done, server.invalid())
    };
    let now = terms(0).releases.release(3);
    let later = now + Span::from_ms(1);
    cycle(&mut server, 3, later);
    // Twice at one stamp, as where its task leaves.
    assert_eq!(harvest(&mut server, now), (vec![], 0));
    assert_eq!(harvest(&mut server, now), (vec![], 0));
    assert_eq!(server.unclaimed().map(|missed| (missed.first, missed.count)), Some((3, 1)));
    assert_eq!(harvest(&mut server, later), (vec![3], 0));
    let never = later + Span::from_ms(60_000);
    cycle(&mut server, 2_000, never);
    assert_eq!(harvest(&mut server, later), (vec![], 0));
    assert_eq!(harvest(&mut server, later + Span::from_ns(1)), (vec![], 1));
}

#[test]
fn a_cycle_that_never_ended_is_taken_once_where_its_start_can_be() {
    let memory = memory(words(2));
    let (mut server, mut client) = connected(&memory, 0);
    let taken = |server: &mut TaskServer<'_>, now: Instant| {
        let mut taken = Vec::new();
        server.take_begun(now, |done| taken.push((done.cycle, missed_of(&done))));
        (taken, server.unclaimed().map_or(0, |missed| missed.count))
    };
    let release = |n: u64| terms(0).releases.release(n);
    for n in 0..3 {
        let _posted = server.post(n, false);
    }
    assert_eq!(taken(&mut server, release(2)), (vec![], 3), "it has not begun");
    assert_eq!(client.turn(), ClientStep::Run);
    let _cycle = client.begin(release(0));
    // A stamp that has not come yet, as a task may write it.
    let stamp = memory[START].swap(u64::MAX, Ordering::Relaxed);
    assert_eq!(taken(&mut server, release(2)), (vec![], 3));
    memory[START].store(stamp, Ordering::Relaxed);
    assert_eq!(taken(&mut server, release(2)), (vec![(0, 0)], 2));
    assert_eq!(taken(&mut server, release(2)), (vec![], 2));
}

#[test]
fn what_is_no_block_is_refused() {
    let open = |memory: &[AtomicU64]| TaskClient::open(memory).err();
    let memory = memory(words(2));
    assert_eq!(open(&memory), Some(TaskBlockError::NoBlock));
    assert_eq!(open(&memory[..9]), Some(TaskBlockError::NoBlock));
    assert!(TaskServer::new(&memory[1..], terms(0)).is_none());
    let _releaser = TaskServer::new(&memory, terms(0)).expect("large enough");
    assert_eq!(open(&memory[..words(1)]), Some(TaskBlockError::Size(words(2) as u64)));
    let with = |at: usize, value: u64| {
        let before = memory[at].swap(value, Ordering::Relaxed);
        let why = open(&memory);
        memory[at].store(before, Ordering::Relaxed);
        why
    };
    assert_eq!(with(1, 9), Some(TaskBlockError::Version(9)));
    assert_eq!(with(2, 9), Some(TaskBlockError::Size(9)));
    assert_eq!(with(NUM_NS, 0), Some(TaskBlockError::Period));
    assert_eq!(with(DEN, 0), Some(TaskBlockError::Period));
    assert_eq!(with(PLACE_COUNT, 65), Some(TaskBlockError::Places(65)));
    assert_eq!(with(PLACE_COUNT, u64::MAX), Some(TaskBlockError::Places(u64::MAX)));
    assert_eq!(with(PLACE_COUNT, 2), Some(TaskBlockError::Places(2)), "both at one instant");
    assert!(matches!(with(OUTPUT_WORDS, u64::MAX), Some(TaskBlockError::Size(_))));
    assert_eq!(open(&memory), None);
}

#[test]
fn outputs_are_whole_and_the_safe_value_takes_over() {
    let memory = memory(words(2));
    let _releaser = TaskServer::new(&memory, terms(0)).expect("large enough");
    let outputs = Outputs::of(&memory, 2).expect("large enough");
    let read = || {
        let mut value = [0; 2];
        (outputs.read(&mut value), value)
    };
    outputs.commit(&[0, 0], Source::Safe);
    assert_eq!(read(), (Some(Source::Safe), [0, 0]));
    outputs.commit(&[1, 2], Source::Task);
    assert_eq!(read(), (Some(Source::Task), [1, 2]));
    // Half of the next one is written when its task ends.
    let half = OUTPUT + if memory[COMMIT].load(Ordering::Relaxed) & 1 == 0 { 2 } else { 0 };
    memory[half].store(9, Ordering::Relaxed);
    assert_eq!(read(), (Some(Source::Task), [1, 2]));
    outputs.commit(&[0, 0], Source::Safe);
    assert_eq!(read(), (Some(Source::Safe), [0, 0]));
    outputs.commit(&[3, 4], Source::Task);
    assert_eq!(read(), (Some(Source::Task), [3, 4]));
    assert!(Outputs::of(&memory, 3).is_none() && Outputs::of(&memory, usize::MAX).is_none());
}

#[test]
fn a_reader_never_sees_half_an_output() {
    let memory = memory(words(2));
    let outputs = Outputs::of(&memory, 2).expect("large enough");
    outputs.commit(&[0, 0], Source::Safe);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut last = 0;
            while last < 20_000 {
                let mut value = [0; 2];
                if outputs.read(&mut value).is_some() {
                    assert!(value[0] == value[1] && value[0] >= last, "{value:?}");
                    last = value[0];
                }
            }
        });
        (1..=20_000u64).for_each(|n| outputs.commit(&[n, n], Source::Task));
        reader.join().expect("no panic");
    });
}

#[test]
fn a_header_that_a_task_overwrote_is_stated_again() {
    let memory: Vec<AtomicU64> = (0..words(2)).map(|_| AtomicU64::new(0)).collect();
    let terms = Terms { output_words: 2, ..terms(0) };
    let _server = TaskServer::new(&memory, terms).expect("large enough");
    memory[..48].iter().for_each(|word| word.store(3, Ordering::Relaxed));
    assert_eq!(TaskClient::open(&memory).map(drop), Err(TaskBlockError::NoBlock));
    restate(&memory, &terms);
    Outputs::of(&memory, 2).expect("large enough").commit(&[8, 9], Source::Safe);
    let client = TaskClient::open(&memory).expect("a task block");
    assert_eq!(*client.terms(), terms);
    let mut value = [0; 2];
    assert_eq!(client.outputs().expect("it has some").read(&mut value), Some(Source::Safe));
    assert_eq!(value, [8, 9]);
}

#[test]
fn a_block_agrees_with_the_executive_whatever_the_lengths() {
    for burst in [0, 1, 3] {
        let mut seed = 9u64 + u64::from(burst);
        let lengths: Vec<u64> = (0..500)
            .map(|_| {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                if seed >> 62 == 0 { (seed >> 40) % 5_000 } else { (seed >> 40) % 1_000 }
            })
            .collect();
        let (seen, done) = through_block(burst, &lengths);
        let slow = executive(burst, &lengths, &[]);
        assert_eq!(seen.iter().map(|c| (c.0, c.1, c.2)).collect::<Vec<_>>(), slow, "{burst}");
        let missed = |cycles: &[(u64, u64, u64)]| cycles.iter().map(|c| c.2).sum::<u64>();
        let harvested = done.iter().map(missed_of).sum::<u64>();
        assert_eq!(harvested, missed(&slow), "{burst}");
        assert_eq!(done.len(), lengths.len());
    }
}

#[test]
fn after_a_stall_the_oldest_release_runs_as_in_the_executive() {
    let mut seed = 11u64;
    let mut random = |most: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (seed >> 40) % most
    };
    let lengths: Vec<u64> = (0..500).map(|_| random(1_200)).collect();
    let stalls: Vec<u64> =
        (0..500).map(|_| if random(4) == 0 { random(6_000) } else { 0 }).collect();
    let slow = executive(0, &lengths, &stalls);
    for alone in [true, false] {
        let (seen, done) = stalled(0, &lengths, &stalls, alone);
        assert_eq!(seen.iter().map(|c| (c.0, c.1, c.2)).collect::<Vec<_>>(), slow, "{alone}");
        let missed = slow.iter().map(|c| c.2).sum::<u64>();
        assert_eq!(done.iter().map(missed_of).sum::<u64>(), missed);
    }
    assert!(
        slow.iter().any(|c| c.1 - (5_000 + c.0 * PERIOD_NS) > 2 * PERIOD_NS),
        "late by periods"
    );
}

/// The task of [`through_block`] in the executive's own thread.
fn executive(burst: u32, lengths_ns: &[u64], stalls_ns: &[u64]) -> Vec<(u64, u64, u64)> {
    use crate::cycle::Decision;
    use crate::dispatch::{
        Counters, Cursor, Released, Storage, TableState, TaskPace, finish, step,
    };
    use crate::earliest::{Entry, entries};
    use crate::table::{Mask, OnOverrun, PeriodClass, PhaseGroup, Table, TaskSlot};
    let policy = if burst == 0 { OnOverrun::Skip } else { OnOverrun::Burst(burst) };
    let max = u64::MAX;
    let slots =
        [TaskSlot { class: 0, group: 0, deadline_ns: max, budget_ns: max, start_ns: max, policy }];
    let classes = [PeriodClass {
        period: Period::from_ns(PERIOD_NS).expect("in range"),
        groups: (0, 1),
        moves: false,
    }];
    let groups = [PhaseGroup { phase_ns: 0, masks: (0, 1) }];
    let masks = [Mask { word: 0, bits: 1 }];
    let table = Table::new(at(5_000), &classes, &groups, &masks, &slots).expect("a table");
    let (mut cursors, mut matches) = ([Cursor::default(); 1], [Entry::default(); entries(1)]);
    let (mut ready, mut counters) = ([0; 8], [Counters::default(); 1]);
    let storage = Storage {
        cursors: &mut cursors,
        matches: &mut matches,
        words: &mut ready,
        released: &mut [Released::default(); 1],
        paces: &mut [TaskPace::default(); 1],
        counters: &mut counters,
    };
    let mut state = TableState::begin(&table, storage, at(0)).expect("large enough");
    let (mut now, mut seen) = (at(0), Vec::new());
    for (at_cycle, length_ns) in lengths_ns.iter().enumerate() {
        let mut stall_ns = stalls_ns.get(at_cycle).copied().unwrap_or(0);
        let job = loop {
            match step(&table, &mut state, now) {
                Decision::Idle(until) => {
                    now = at(until.as_ns() + core::mem::take(&mut stall_ns));
                }
                Decision::Run(job) => break job,
            }
        };
        seen.push((job.cycle, now.as_ns(), job.missed));
        let start = now;
        now = at(now.as_ns() + length_ns);
        let _overruns = finish(&table, &mut state, &job, start, now);
    }
    seen
}

#[test]
fn results_of_a_child_that_has_ended_are_taken_once() {
    for cycles in [1, 5, 20] {
        let memory = memory(words(2));
        let (admission, mut done) = (Admission::new(), Vec::new());
        let (mut server, mut client) = connected(&memory, 0);
        admission.open(1);
        let release = |cycle| terms(0).releases.release(cycle);
        for cycle in 0..cycles {
            let entered =
                server.enter(&admission, release(cycle), |result| done.push(result.cycle));
            assert_eq!(entered, Entered::Open);
            server.harvest(release(cycle), |result| done.push(result.cycle));
            server.post(cycle, false);
            assert_eq!(client.turn(), ClientStep::Run);
            let _cycle = client.begin(release(cycle));
            client.done(release(cycle) + Span::from_ns(10));
        }
        admission.close(1);
        let now = release(cycles);
        let entered = server.enter(&admission, now, |result| done.push(result.cycle));
        assert_eq!(entered, Entered::Left(None));
        // The end of the executive; and again while the next child is made ready.
        server.harvest(now, |result| done.push(result.cycle));
        clear(&memory, &terms(0));
        server.harvest(now, |result| done.push(result.cycle));
        assert_eq!((done, server.invalid()), ((0..cycles).collect(), 0));
        assert_eq!(server.unclaimed(), None);
        admission.open(2);
        assert_eq!(server.enter(&admission, now, |_| ()), Entered::Open);
    }
}

#[test]
fn a_last_result_after_the_stamp_keeps_its_child_until_the_next_look() {
    let memory = memory(words(2));
    let (admission, mut done) = (Admission::new(), Vec::new());
    let (mut server, mut client) = connected(&memory, 0);
    admission.open(1);
    let (now, later) = (at(5_000), at(5_000) + Span::from_us(101));
    assert_eq!(server.enter(&admission, now, |_| ()), Entered::Open);
    server.post(0, false);
    assert_eq!(client.turn(), ClientStep::Run);
    let _cycle = client.begin(now);
    client.done(later);
    admission.close(1);
    assert_eq!(server.enter(&admission, now, |_| ()), Entered::Closed);
    assert!(!admission.is_left(1));
    assert_eq!(
        server.enter(&admission, later, |result| done.push(result.cycle)),
        Entered::Left(None)
    );
    assert_eq!((admission.is_left(1), done, server.invalid()), (true, vec![0], 0));
}

#[test]
fn a_task_at_places_of_a_frame_is_released_there_and_misses_what_it_ran_over() {
    // Frames of 9 µs from 5 µs on, with places at 0, 1 and 7 µs.
    let even = Releases::new(at(5_000), Period::from_ns(3_000).expect("in range"));
    let places = Places::new(&even, &[0, 1_000, 7_000]).expect("in order");
    let terms = Terms { releases: even, places, burst: 0, output_words: 0 };
    let memory = memory(words(0));
    let mut server = TaskServer::new(&memory, terms).expect("large enough");
    let mut client = TaskClient::open(&memory).expect("a task block");
    client.ask(7);
    let due_ns = [5_000, 6_000, 12_000, 14_000, 15_000, 21_000];
    let (mut ran, mut done) = (Vec::new(), Vec::new());
    // The second one runs for 8.5 µs: over two places.
    let lengths_ns = [200, 8_500, 0, 0, 300, 100];
    let mut free = at(0);
    for (k, due_ns) in (0..).zip(due_ns) {
        server.harvest(at(due_ns), |result| done.push(result));
        server.post(k, false);
        if at(due_ns) < free {
            continue;
        }
        assert_eq!(client.turn(), ClientStep::Run);
        let cycle = client.begin(at(due_ns + 10));
        ran.push((cycle.n, cycle.release.as_ns(), cycle.missed, cycle.next.as_ns()));
        free = at(due_ns + 10 + lengths_ns[k as usize]);
        client.done(free);
    }
    server.harvest(at(30_000), |result| done.push(result));
    let expected = [
        (0, 5_000, 0, 6_000),
        (1, 6_000, 0, 12_000),
        (4, 15_000, 2, 21_000),
        (5, 21_000, 0, 23_000),
    ];
    assert_eq!(ran, expected);
    let results: Vec<_> = done.iter().map(|done| (done.cycle, done.release.as_ns())).collect();
    assert_eq!(results, [(0, 5_000), (1, 6_000), (4, 15_000), (5, 21_000)]);
    assert_eq!(done.iter().map(missed_of).collect::<Vec<_>>(), [0, 0, 2, 0]);
    assert_eq!(done[1].next, at(12_000), "the next one when it started");
    assert_eq!(server.invalid(), 0);
}

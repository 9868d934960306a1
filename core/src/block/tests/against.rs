//! Tasks elsewhere against the same task in the executive's own thread.

use std::vec::Vec;

use super::*;

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

/// The same task in the executive's own thread.
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

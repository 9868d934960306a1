//! The ring against lists.

use core::sync::atomic::AtomicBool;
use std::vec::Vec;

use super::*;
use crate::sample::Flags;
use crate::time::Span;

fn storage(samples: usize) -> Vec<AtomicU64> {
    (0..words(samples)).map(|_| AtomicU64::new(99)).collect()
}

fn sample(cycle: u64, lateness_ns: i64) -> Sample {
    Sample { cycle, lateness: Span::from_ns(lateness_ns), flags: Flags::NONE }
}

#[test]
fn counters_and_samples_agree_with_a_list() {
    let storage = storage(8);
    let (mut ring, mut drain, view) = split(&storage).expect("fits");
    assert_eq!((view.count(), view.missed(), view.unrecorded()), (0, 0, 0));
    let lateness = [5, -3, 70_000, 255, 256, i64::MAX, 12];
    for (cycle, &ns) in (0..).zip(&lateness) {
        ring.push(sample(cycle, ns));
    }
    ring.miss(4);
    assert_eq!((view.count(), view.missed()), (7, 4));
    let drained: Vec<_> = core::iter::from_fn(|| drain.pop()).collect();
    let pushed: Vec<_> = (0..).zip(&lateness).map(|(k, &ns)| sample(k, ns)).collect();
    assert_eq!(drained, pushed);
    assert_eq!(view.unrecorded(), 0);
}

#[test]
fn a_full_ring_counts_and_keeps_what_it_has() {
    let storage = storage(4);
    let (mut ring, mut drain, view) = split(&storage).expect("fits");
    for cycle in 0..7 {
        ring.push(sample(cycle, 1));
    }
    assert_eq!((view.count(), view.unrecorded()), (7, 3));
    assert_eq!(drain.pop(), Some(sample(0, 1)));
    ring.push(sample(7, 1));
    let rest: Vec<_> = core::iter::from_fn(|| drain.pop()).map(|s| s.cycle).collect();
    assert_eq!(rest, [1, 2, 3, 7]);
}

#[test]
fn too_small_storage_is_refused_and_odd_sizes_round_down() {
    assert!(split(&storage(1)).is_none());
    assert!(split(&[]).is_none());
    let storage = storage(7);
    let (mut ring, _, view) = split(&storage).expect("fits");
    for cycle in 0..5 {
        ring.push(sample(cycle, 1));
    }
    assert_eq!(view.unrecorded(), 1);
}

#[test]
fn a_drain_in_another_thread_sees_every_sample_once_and_whole() {
    let storage = storage(64);
    let (mut ring, mut drain, view) = split(&storage).expect("fits");
    let done = AtomicBool::new(false);
    let drained = std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut seen = Vec::new();
            loop {
                // Read before the last look: what was pushed before it is then seen.
                let last = done.load(Ordering::Acquire);
                seen.extend(core::iter::from_fn(|| drain.pop()));
                if last {
                    return seen;
                }
                std::thread::yield_now();
            }
        });
        (0..200_000).for_each(|cycle| ring.push(sample(cycle, cycle.cast_signed() * 3)));
        done.store(true, Ordering::Release);
        reader.join().expect("the reader does not panic")
    });
    assert!(!drained.is_empty());
    assert!(drained.windows(2).all(|pair| pair[0].cycle < pair[1].cycle));
    assert!(drained.iter().all(|s| s.lateness.as_ns() == s.cycle.cast_signed() * 3));
    assert_eq!(drained.len() as u64 + view.unrecorded(), view.count());
}

//! A year of a campaign, simulated: neither its memory nor its file grows with time.

use std::alloc::System;
use std::collections::BTreeMap;

use punctual_analysis::campaign::{
    Campaign, Effort, Extent, ROWS_MAX, RunSetup, Setup, Start, TOTAL_BYTES_MAX, WatchedThresholds,
};
use punctual_core::sample::{Flags, Sample};
use punctual_core::time::{Instant, Period, Span};
use punctual_os::tripwire::Weighing;
use punctual_testkit::random::Random;

#[global_allocator]
static HEAP: Weighing<System> = Weighing::new(System);

/// The most bytes that a campaign with one run may hold at once while an hour is added: a total, an
/// hour's collector, and a copy of both for a file that is written meanwhile.
const HEAP_BYTES_MAX: usize = 8 << 20;

/// Of the file, an hour's worth of samples thinned to so many cycles.
const CYCLES: u64 = 240;

/// Mostly about 10 µs, now and then up to a second.
fn lateness_ns(random: &mut Random) -> i64 {
    let body = 5_000 + random.below(10_000);
    let tail = if random.below(50) == 0 { 1 << random.below(30) } else { 0 };
    (body + tail) as i64
}

fn setup(kernel: u64) -> Setup {
    let run = RunSetup { name: "idle".into(), period_ns: 1_000_000, ..RunSetup::default() };
    Setup { runs: vec![run], facts: BTreeMap::from([("kernel".into(), kernel.to_string())]) }
}

/// One hour, some of it lost, sometimes after a reboot, twice a year with a new kernel.
fn hour(campaign: &mut Campaign, random: &mut Random, hour: u64) {
    let now = hour as i64 * 3_600;
    if hour.is_multiple_of(30) {
        campaign.begin(&format!("boot-{}", hour / 30), "6.12", now);
        campaign.note(now, "the machine was suspended for 3 s");
    }
    let (pool, _) = campaign.pool(&setup(hour / 4_380)).expect("two setups have room");
    let start = Start {
        period: Period::from_ns(1_000_000).expect("positive"),
        epoch: Instant::from_ns(1),
        time_of_day_ns: now * 1_000_000_000,
        leave_out_cold: true,
        boot: campaign.boot(),
    };
    let watched = WatchedThresholds { lateness_ns: vec![50_000], ..WatchedThresholds::default() };
    let mut batch = campaign.batch(pool, &[start], &watched);
    let mut cycle = 0;
    for k in 0..CYCLES {
        cycle += if random.below(500) == 0 { 3 } else { 1 };
        let flags = if k == 0 { Flags::FIRST } else { Flags::NONE };
        let lateness = Span::from_ns(lateness_ns(random));
        batch.collectors[0].push(&Sample { cycle, lateness, flags });
    }
    let effort = Effort {
        missed: batch.collectors[0].gaps(),
        wall_ns: 3_600_000_000_000,
        ..Effort::default()
    };
    let measured_ns = effort.wall_ns;
    let to_unix_s = now + 3_600;
    campaign
        .add(batch, &Extent { from_unix_s: now, to_unix_s, measured_ns, efforts: vec![effort] });
}

#[test]
fn neither_memory_nor_file_grows_over_a_year() {
    let mut random = Random::new(42);
    let mut campaign = Campaign::new("year", BTreeMap::new(), BTreeMap::new(), 0);
    let before = HEAP.held_bytes();
    let mut heap = Vec::new();
    let mut file = Vec::new();
    for month in 0..12 {
        HEAP.most_bytes();
        for of_month in 0..730 {
            hour(&mut campaign, &mut random, month * 730 + of_month);
        }
        let bytes = campaign.to_bytes(month);
        let copy = Campaign::from_bytes(&bytes).expect("what was written is read");
        assert_eq!(copy, (campaign.clone(), month));
        file.push(bytes.len());
        heap.push(HEAP.most_bytes() - before);
    }
    let totals = campaign.pools().len();
    assert_eq!((totals, campaign.rows().len()), (2, ROWS_MAX));
    let cycles: u64 = campaign.pools().iter().map(|pool| pool.totals()[0].cycles()).sum();
    assert_eq!(cycles, 8_760 * CYCLES);
    eprintln!("file bytes by month {file:?}; most heap bytes {heap:?}");
    for (month, (&file, &heap)) in file.iter().zip(&heap).enumerate() {
        assert!(file <= totals * TOTAL_BYTES_MAX / 4, "month {month}: {file} bytes of file");
        assert!(heap <= totals * HEAP_BYTES_MAX, "month {month}: {heap} bytes of heap");
    }
    // Flat: what the last month of one setup takes is what its second did, within a quarter.
    for (early, late) in [(1, 5), (7, 11)] {
        assert!(file[late] * 4 <= file[early] * 5 + (64 << 10), "{file:?}");
        assert!(heap[late] * 4 <= heap[early] * 5 + (64 << 10), "{heap:?}");
    }
}

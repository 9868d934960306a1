//! Campaigns over batches, boots, setups; and as bytes.

use proptest::prelude::*;
use punctual_core::sample::{Flags, Sample};
use punctual_core::time::{Instant, Period, Span};

use super::file::{CampaignFileError, HEADER_BYTES};
use super::*;
use crate::recording::{Recording, RecordingConfig};

fn setup(kernel: &str) -> Setup {
    let run = RunSetup { name: "idle".into(), period_ns: 1_000_000, ..RunSetup::default() };
    Setup { runs: vec![run], facts: BTreeMap::from([("kernel".to_owned(), kernel.to_owned())]) }
}

fn start(boot: u32) -> Start {
    Start {
        period: Period::from_ns(1_000_000).unwrap(),
        epoch: Instant::from_ns(5_000_000),
        time_of_day_ns: 1_700_000_000_000_000_000,
        leave_out_cold: true,
        boot,
    }
}

fn sample(cycle: u64, lateness_ns: i64) -> Sample {
    let flags = if cycle == 0 { Flags::FIRST } else { Flags::NONE };
    Sample { cycle, lateness: Span::from_ns(lateness_ns), flags }
}

fn lateness(seed: u64, cycle: u64) -> i64 {
    let mixed = (seed << 32 | cycle).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    (mixed.wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 44) as i64 / 16 + 3_000
}

/// A batch of `cycles` in `campaign`, with this setup.
fn run(campaign: &mut Campaign, setup: &Setup, seed: u64, cycles: u64) -> Vec<BatchRow> {
    let (pool, _) = campaign.pool(setup).unwrap();
    let watched = WatchedThresholds { lateness_ns: vec![50_000], ..WatchedThresholds::default() };
    let mut batch = campaign.batch(pool, &[start(campaign.boot())], &watched);
    (0..cycles).for_each(|k| batch.collectors[0].push(&sample(k, lateness(seed, k))));
    let from = seed as i64 * 3_600;
    campaign.add(
        batch,
        &Extent {
            from_unix_s: from,
            to_unix_s: from + 3_600,
            measured_ns: cycles * 1_000_000,
            efforts: vec![Effort { wall_ns: cycles * 1_000_000, ..Effort::default() }],
        },
    )
}

fn begun() -> Campaign {
    let mut campaign = Campaign::new("test", BTreeMap::new(), BTreeMap::new(), 0);
    campaign.begin("boot-a", "6.1", 0);
    campaign
}

#[test]
fn batches_of_one_setup_are_one_run() {
    let mut campaign = begun();
    let mut whole = Recording::new(RecordingConfig {
        period: Period::from_ns(1_000_000),
        thresholds_ns: vec![50_000],
        ..RecordingConfig::default()
    });
    for seed in 0..5 {
        let rows = run(&mut campaign, &setup("6.1"), seed, 5_000);
        assert_eq!((rows.len(), rows[0].cycles), (1, 5_000));
        (0..5_000).for_each(|k| whole.push(&sample(k, lateness(seed, k))));
    }
    let (pooled, whole) = (campaign.pools()[0].totals()[0].outcome(), whole.finish(0));
    assert_eq!((pooled.cycles, &pooled.lateness_ns), (25_000, &whole.lateness_ns));
    assert_eq!(pooled.interval_ns, whole.interval_ns);
    assert_eq!(pooled.histogram, whole.histogram);
    assert_eq!(pooled.tails.exceedances(50_000), whole.tails.exceedances(50_000));
    assert_eq!(campaign.measured_ns(), 25_000_000_000);
    let outliers = campaign.pools()[0].totals()[0].outliers().kept();
    let late = &outliers[0];
    let since_start = late.at_unix_ns - start(1).time_of_day_ns - 5_000_000;
    assert_eq!(since_start, late.cycle as i64 * 1_000_000 + late.lateness_ns);
    assert_eq!((late.boot, Some(late.lateness_ns as f64)), (1, whole.lateness_ns.max));
}

#[test]
fn a_changed_kernel_is_said_and_kept_apart() {
    let mut campaign = begun();
    run(&mut campaign, &setup("6.1"), 0, 2_000);
    campaign.begin("boot-b", "6.12", 9_000);
    let (pool, differences) = campaign.pool(&setup("6.12")).unwrap();
    assert_eq!((pool, differences), (1, vec!["kernel: 6.1 → 6.12".to_owned()]));
    run(&mut campaign, &setup("6.12"), 3, 1_000);
    let cycles: Vec<u64> = campaign.pools().iter().map(|p| p.totals()[0].cycles()).collect();
    assert_eq!(cycles, [2_000, 1_000]);
    // And back again: it goes on where it was.
    campaign.begin("boot-c", "6.1", 20_000);
    let (pool, differences) = campaign.pool(&setup("6.1")).unwrap();
    assert_eq!((pool, differences.len()), (0, 1));
    let boots = campaign.boots().listed();
    assert_eq!(boots.iter().map(|b| b.number).collect::<Vec<_>>(), [1, 2, 3]);
    assert!(boots[0].setup != boots[1].setup && boots[0].setup == boots[2].setup);
}

#[test]
fn one_boot_may_have_several_sessions() {
    let mut campaign = begun();
    assert!(!campaign.boots().listed()[0].ended);
    campaign.end(50);
    campaign.begin("boot-a", "6.1", 60);
    let boot = &campaign.boots().listed()[0];
    assert_eq!((boot.sessions, boot.from_unix_s, boot.to_unix_s, boot.ended), (2, 0, 60, false));
}

#[test]
fn setups_beyond_the_limit_are_refused() {
    let mut campaign = begun();
    for kernel in 0..TOTALS_MAX {
        campaign.pool(&setup(&kernel.to_string())).unwrap();
    }
    assert_eq!(campaign.pool(&setup("one more")), Err(Full));
    assert!(campaign.pool(&setup("0")).is_ok());
}

#[test]
fn text_from_outside_cannot_steer_a_terminal() {
    let mut campaign = Campaign::new("a\u{1b}[2Jb", BTreeMap::new(), BTreeMap::new(), 0);
    campaign.begin("id\n", "6.1\u{7}", 0);
    campaign.note(0, &"x".repeat(10_000));
    assert_eq!(
        (campaign.name.as_str(), &campaign.boots().listed()[0].kernel[..]),
        ("a [2Jb", "6.1 ")
    );
    assert_eq!(campaign.events().listed()[0].what.len(), 400);
    assert!(campaign.is_sound());
    // Whatever is set later is written so that it can be read.
    campaign.name.push('\u{1b}');
    campaign.broken = vec!["b".repeat(1_000); 100];
    campaign.requested = BTreeMap::from([("load\n".to_owned(), "x".repeat(1_000))]);
    let (back, _) = Campaign::from_bytes(&campaign.to_bytes(1)).unwrap();
    assert_eq!(
        (back.name.as_str(), back.broken.len(), back.requested["load "].len()),
        ("a [2Jb ", 64, 400)
    );
}

#[test]
fn a_setup_of_any_text_is_found_again() {
    let mut campaign = begun();
    let mut setup = setup("6.1");
    setup.runs[0].load = vec!["stress-ng \u{1b}".repeat(100); 70];
    setup.facts.insert("governor".into(), "g".repeat(1_000));
    run(&mut campaign, &setup, 0, 100);
    let (mut back, _) = Campaign::from_bytes(&campaign.to_bytes(1)).unwrap();
    assert_eq!(back.pool(&setup), Ok((0, Vec::new())));
}

#[test]
fn a_campaign_does_not_extrapolate_and_says_why() {
    let mut campaign = begun();
    run(&mut campaign, &setup("6.1"), 0, 5_000);
    let outcome = campaign.pools()[0].totals()[0].outcome();
    let refused = outcome.claims.iter().find(|claim| claim.level == crate::claim::Level::L3);
    let refused = refused.unwrap();
    assert!(!refused.given && refused.bound_ns.is_none() && refused.n == 5_000);
    assert!(refused.statement.contains("maxima of 5 blocks of 1000"), "{}", refused.statement);
}

#[test]
fn a_torn_or_damaged_file_is_refused() {
    let mut campaign = begun();
    run(&mut campaign, &setup("6.1"), 0, 3_000);
    let bytes = campaign.to_bytes(7);
    assert_eq!(Campaign::from_bytes(&bytes), Ok((campaign, 7)));
    for cut in [0, 3, 8, 20, HEADER_BYTES, bytes.len() - 1] {
        assert!(Campaign::from_bytes(&bytes[..cut]).is_err(), "{cut}");
    }
    for at in (0..bytes.len()).step_by(37).chain(0..HEADER_BYTES) {
        let mut flipped = bytes.clone();
        flipped[at] ^= 0x10;
        assert!(Campaign::from_bytes(&flipped).is_err(), "{at}");
    }
    let mut newer = bytes.clone();
    newer[8] = 3;
    assert_eq!(Campaign::from_bytes(&newer), Err(CampaignFileError::Version(3)));
    let longer = [&bytes[..], b" "].concat();
    assert!(matches!(Campaign::from_bytes(&longer), Err(CampaignFileError::Torn { .. })));
}

proptest! {
    // Each case is thousands of cycles.
    #![proptest_config(ProptestConfig::with_cases(16))]
    #[test]
    fn any_campaign_survives_its_bytes_and_goes_on_alike(
        batches in prop::collection::vec((0u64..4, 0u64..3_000), 0..6), number in any::<u64>(),
    ) {
        let mut campaign = begun();
        for &(seed, cycles) in &batches {
            run(&mut campaign, &setup(if seed < 2 { "a" } else { "b" }), seed, cycles);
        }
        let (mut back, read) = Campaign::from_bytes(&campaign.to_bytes(number)).unwrap();
        prop_assert_eq!((&back, read), (&campaign, number));
        run(&mut campaign, &setup("a"), 9, 500);
        run(&mut back, &setup("a"), 9, 500);
        prop_assert_eq!(back, campaign);
    }
}

//! Yes, no and undecided, and no claim stronger than its counts.

use super::*;
use proptest::prelude::*;

fn judged(text: &str, least: u64, most: u64, n: u64, ended: StoppingRule) -> Judged {
    let ask = Ask::parse(text).unwrap();
    let separate = Separate::Evenly(most as f64);
    let counted = Ok(EventCount { n, least, most, theta: 1.0, separate, ordered: true });
    judge(&ask, &counted, ended, Some(1_000_000))
}

fn planned(text: &str, count: u64, n: u64) -> Judged {
    judged(text, count, count, n, StoppingRule::AsPlanned)
}

#[test]
fn enough_too_little_and_false_are_different_answers() {
    let claim = "p(lateness>50us)<1e-3";
    let none = planned(claim, 0, 3_000);
    assert_eq!((none.holds, none.n_needed), (Holds::IfAlone, Some(34_917)));
    assert_eq!(
        none.reason,
        "at most 1.0e-3, 95 % sure if late cycles come alone: none of 3\u{a0}000 cycles \
         exceeded it; a run without any cannot show whether they do; it takes at least \
         34\u{a0}917 cycles to show that"
    );
    let yes = planned(claim, 25, 60_000);
    assert_eq!((yes.holds, yes.clusters), (Holds::Yes, Some(25.0)));
    assert_eq!(
        yes.reason,
        "at most 5.9e-4, 95 % sure: 25 of 60\u{a0}000 cycles exceeded it; 25 separate clusters, \
         spread evenly over the run"
    );
    let alone = planned(claim, 24, 60_000);
    assert_eq!((alone.holds, alone.n_needed), (Holds::IfAlone, Some(62_500)));
    assert!(
        alone
            .reason
            .contains("24 separate clusters are too few to show whether they do (25 are needed)")
    );
    let short = planned(claim, 0, 2_990);
    assert_eq!((short.holds, short.n_needed), (Holds::Undecided, Some(2_996)));
    assert!(short.reason.starts_with("not shown: at most 1.1e-3"), "{}", short.reason);
    assert!(short.reason.contains("; it takes at least 2\u{a0}996 cycles;"), "{}", short.reason);
    assert_eq!(short.duration_needed_ns, Some(2_996e6));
    let few = planned(claim, 1, 3_000);
    assert!(few.reason.contains("at this share, it takes about"), "{}", few.reason);
    let false_ = planned(claim, 100, 30_000);
    assert_eq!((false_.holds, false_.n_needed), (Holds::No, None));
    assert!(false_.reason.starts_with("shown false: at least 2.8e-3"), "{}", false_.reason);
    let near = planned(claim, 31, 30_000);
    assert_eq!((near.holds, near.n_needed), (Holds::Undecided, None));
    assert!(near.reason.contains("1.1e-3 already"), "{}", near.reason);
    let missed = planned("p(missed)<0.5", 1, 100);
    assert_eq!(missed.holds, Holds::IfAlone);
    assert!(missed.reason.contains("if missed releases come alone"), "{}", missed.reason);
}

#[test]
fn a_bucket_that_is_cut_counts_as_both() {
    let buckets = [(0, 49_999, 900_000), (50_000, 50_999, 7), (51_000, 51_999, 2)];
    let at = |above_ns| EventCount::of_buckets(above_ns, buckets, 1);
    let cut = at(50_000);
    assert_eq!((cut.n, cut.least, cut.most), (900_010, 3, 10));
    let edge = at(50_999);
    assert_eq!((edge.least, edge.most), (3, 3), "an edge is exact");
    // Between both counts it is open; below and above them it is not.
    let holds = |p: &str| {
        judged(&format!("p(lateness>50us)<{p}"), 3, 10, 900_010, StoppingRule::AsPlanned).holds
    };
    assert_eq!(
        [holds("1e-4"), holds("1e-5"), holds("1e-7")],
        [Holds::IfAlone, Holds::Undecided, Holds::No]
    );
    let text = judged("p(lateness>50us)<1e-4", 3, 10, 900_010, StoppingRule::AsPlanned).reason;
    assert!(
        text.contains("3 to 10 of 900\u{a0}010") && text.contains("in the bucket of the threshold"),
        "{text}"
    );
}

#[test]
fn a_run_that_ended_early_is_held_to_what_holds_at_any_time() {
    let claim = "p(lateness>50us)<1e-3";
    let early = |n| judged(claim, 0, 0, n, StoppingRule::AtAnyTime);
    assert_eq!(early(3_000).holds, Holds::Undecided);
    assert_eq!(early(4_000).holds, Holds::IfAlone);
    assert!(
        early(4_000).at_any_time && early(4_000).reason.contains("the run did not end as planned")
    );
    assert_eq!(judged(claim, 90, 90, 30_000, StoppingRule::AtAnyTime).holds, Holds::No);
}

#[test]
fn dependence_is_taken_off_and_reported() {
    let ask = Ask::parse("p(lateness>50us)<1e-3").unwrap();
    let separate = Separate::Evenly(0.0);
    let counted = EventCount { n: 4_000, least: 0, most: 0, theta: 0.5, separate, ordered: true };
    let counted = Ok(counted);
    let judged = judge(&ask, &counted, StoppingRule::AsPlanned, None);
    assert_eq!((judged.holds, judged.duration_needed_ns), (Holds::Undecided, None));
    assert_eq!(judged.n_needed, Some(5_992));
    assert!(judged.reason.contains("extremal index 0.5"), "{}", judged.reason);
}

#[test]
fn clusters_that_are_few_uneven_or_unknown_leave_the_assumption() {
    let ask = Ask::parse("p(lateness>50us)<1e-2").unwrap();
    let of = |separate, ordered| {
        let counted =
            EventCount { n: 40_000, least: 200, most: 200, theta: 1.0, separate, ordered };
        judge(&ask, &Ok(counted), StoppingRule::AsPlanned, None)
    };
    let all = of(Separate::Evenly(200.0), true);
    let fewer = of(Separate::Evenly(60.0), true);
    assert_eq!((all.holds, fewer.holds), (Holds::Yes, Holds::Yes));
    assert!(fewer.p_upper > all.p_upper && fewer.theta < Some(0.5), "{fewer:?}");
    let wide = of(Separate::Evenly(26.0), true);
    let few = of(Separate::Evenly(3.2), true);
    let uneven = of(Separate::Unevenly(80.0), true);
    let unknown = of(Separate::Unknown, false);
    for (judged, why) in [
        (&few, "3 separate clusters are too few to show"),
        (&uneven, "more of them came in one part of the run"),
        (&unknown, "do not record the order"),
    ] {
        assert_eq!((judged.holds, judged.p_upper), (Holds::IfAlone, all.p_upper), "{judged:?}");
        assert!(judged.reason.contains("if late cycles come alone"), "{}", judged.reason);
        assert!(judged.reason.contains(why), "{}", judged.reason);
    }
    assert_eq!(wide.holds, Holds::Yes, "{}", wide.reason);
    assert_eq!((few.n_needed, uneven.n_needed, unknown.n_needed), (Some(312_500), None, None));
}

#[test]
fn nothing_shows_nothing() {
    let none = planned("p(missed)<0.5", 0, 0);
    assert_eq!((none.holds, none.p_upper, none.n), (Holds::Undecided, None, None));
    let ask = Ask::parse("p(missed)<0.5").unwrap();
    let why = Err("no lateness in instants".to_owned());
    let judged = judge(&ask, &why, StoppingRule::AsPlanned, None);
    assert_eq!(
        (judged.holds, judged.reason.as_str()),
        (Holds::Undecided, "no lateness in instants")
    );
}

proptest! {
    #[test]
    fn no_claim_is_stronger_than_its_counts(
        n in 1u64..10_000_000, some in 0f64..1.0, more in 0f64..1.0, theta in 0.01f64..=1.0,
        exponent in 0.1f64..8.0, any in any::<bool>(),
    ) {
        let least = (n as f64 * some.powi(20)) as u64;
        let most = least + ((n - least) as f64 * more.powi(20)) as u64;
        let p = 10f64.powf(-exponent);
        let ask = Ask::parse(&format!("p(missed)<{p:e}")).unwrap();
        let ended = if any { StoppingRule::AtAnyTime } else { StoppingRule::AsPlanned };
        let separate = Separate::Evenly(most as f64 * theta);
        let counted = Ok(EventCount { n, least, most, theta, separate, ordered: true });
        let judged = judge(&ask, &counted, ended, None);
        match judged.holds {
            Holds::Yes => prop_assert!((most as f64) < p * n as f64 && most >= 25),
            Holds::IfAlone => prop_assert!((most as f64) < p * n as f64),
            Holds::No => prop_assert!(least as f64 >= p * n as f64),
            Holds::Undecided => {}
        }
        prop_assert!(judged.p_lower <= judged.p_upper && !judged.reason.contains('\n'));
    }
}

//! Claims as they are written: read, refused with the place, shown again.

use super::*;
use proptest::prelude::*;

#[test]
fn claims_read_as_they_are_meant() {
    let ask = Ask::parse("p(lateness>50us)<1e-6").unwrap();
    assert_eq!((ask.event(), ask.p()), (ClaimEvent::Lateness { above_ns: 50_000 }, 1e-6));
    assert_eq!((ask.confidence(), ask.lateness_ns()), (0.95, Some(50_000)));
    let same = [" p ( lateness > 50 µs ) < 0.000001 ", "p(lateness>50000ns)<=1ppm @95%"];
    assert!(same.iter().all(|text| Ask::parse(text).as_ref() == Ok(&ask)), "{ask}");
    let sure = Ask::parse("p(interval>1.5ms) < 0.1% @ 99.9%").unwrap();
    assert_eq!(sure.event(), ClaimEvent::Interval { above_ns: 1_500_000 });
    assert_eq!((sure.p(), sure.confidence(), sure.lateness_ns()), (1e-3, 0.999, None));
    assert_eq!(sure.to_string(), "p(|interval|>1500us)<1e-3 @99.9%");
    assert_eq!(sure.shown_confidence(), "99.9 %");
    assert_eq!(Ask::parse("p(missed)<1e-6").unwrap().to_string(), "p(missed)<1e-6");
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    for (text, at, part) in [
        ("", 1, "must begin with p("),
        ("lateness<5us", 1, "must begin with p("),
        ("p lateness", 3, "must begin with p("),
        ("p(lateness>50us<1e-6", 21, "is not closed: add )"),
        ("p(lateness)<1e-6", 3, "lateness needs a threshold, e.g. lateness>50us"),
        ("p(lateness<50us)<1e-6", 3, "write > instead of <"),
        ("p(latency>50us)<1e-6", 3, "unknown event"),
        ("p( )<1e-6", 4, "expected an event"),
        ("p(lateness>50)<1e-6", 12, "50 needs a unit, e.g. 50us"),
        ("p(lateness> -5us)<1e-6", 13, "negative"),
        ("p(lateness>5Nm)<1e-6", 12, "a torque"),
        ("p(missed>5)<1e-6", 10, "missed takes no threshold"),
        ("p(missed)", 10, "expected < and a probability"),
        ("p(missed)>1e-6", 10, "must be an upper bound"),
        ("p(missed)<", 11, "expected a probability"),
        ("p(missed)<=x", 12, "not a probability"),
        ("p(missed)<1", 11, "less than 1"),
        ("p(missed)<1e-16", 11, "no run is long enough"),
        ("p(missed)<2", 11, "2"),
        ("p(missed)<1e-6@", 16, "expected a confidence"),
        ("p(missed)<1e-6 @99", 17, "expected a confidence"),
        ("p(missed)<1e-6 @20%", 17, "from 50%"),
        ("p(missed)<1e-6 @100%", 17, "from 50%"),
        ("p(µ>5us)<1", 3, "unknown event"),
    ] {
        let message = Ask::parse(text).unwrap_err().to_string();
        assert!(message.contains(part), "{text}: {message}");
        assert!(message.contains(&format!("at character {at}:")), "{text}: {message}");
        assert!(!message.contains('\n'), "{message}");
    }
}

fn events() -> impl Strategy<Value = ClaimEvent> {
    prop_oneof![
        (1..i64::MAX).prop_map(|above_ns| ClaimEvent::Lateness { above_ns }),
        (1i64..1_000).prop_map(|ms| ClaimEvent::Lateness { above_ns: ms * 1_000_000 }),
        (1..i64::MAX).prop_map(|above_ns| ClaimEvent::Interval { above_ns }),
        Just(ClaimEvent::Missed),
    ]
}

proptest! {
    #[test]
    fn claims_read_as_they_show(
        event in events(), p in P_MIN..1.0, exponent in 0i32..9, ppb in 500_000_000u64..WHOLE,
    ) {
        let p = (p * 10f64.powi(-exponent)).max(P_MIN);
        let confidence = Probability::from_ppb(ppb).unwrap();
        let ask = Ask::new(event, p, confidence).unwrap();
        prop_assert_eq!(Ask::parse(&ask.to_string()), Ok(ask));
    }

    #[test]
    fn no_text_panics(
            text in "\\PC{0,40}",
            tail in "p?\\(?[a-z|]{0,9}>?[0-9a-zµ.]{0,5}\\)?.{0,9}",
        ) {
        let _ = Ask::parse(&text);
        let _ = Ask::parse(&tail);
    }
}

const WHOLE: u64 = 1_000_000_000;

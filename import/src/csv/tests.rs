//! Tests of the CSV reader: what it accepts, what it refuses and with which words.

use super::*;
use proptest::prelude::*;

fn read(text: &[u8], column: &str, period_us: Option<u64>) -> Result<Vec<(u64, i64)>, String> {
    let spec = ColumnSpec::parse(column).map_err(|error| error.to_string())?;
    let period = period_us.and_then(|us| Period::from_ns(us * 1_000));
    let mut file = CsvFile::open(text, spec, period).map_err(|error| error.to_string())?;
    let mut samples = Vec::new();
    loop {
        let block = file.next_block().map_err(|error| error.to_string())?;
        if block.is_empty() {
            return Ok(samples);
        }
        samples.extend(block.iter().map(|s| (s.cycle, s.lateness.as_ns())));
    }
}

#[test]
fn lateness_with_and_without_a_header() {
    let wanted = Ok(vec![(0, 7_600), (1, -250), (2, 1_000_000)]);
    assert_eq!(read(b"7.6\n-0.25\n1e3\n", "lateness:us", None), wanted);
    assert_eq!(
        read(b"\xef\xbb\xbfcpu,Lateness\r\n1,7.6\r\n\r\n1,-0.25\r\n1,1000", "lateness:us", None),
        wanted
    );
    assert_eq!(
        read(b"n;\"late, ness\"\n1;\"7.6\"\n1;-.25\n1; 1000 \n", "late, ness:us", None),
        wanted
    );
    assert_eq!(read(b"what\n7.6\n-0.25\n1000", "lateness:us", None), wanted);
    assert_eq!(read(b"lateness\tn\n7.6\t1\n-0.25\t2\n1000\t3", "lateness:us", None), wanted);
    assert_eq!(read(b"lateness\n7.6,\n-0.25,, \n1000", "lateness:us", None), wanted);
    assert_eq!(read(b"lateness,n\n7.6\n-0.25,2\n1000,3,", "lateness:us", None), wanted);
}

#[test]
fn instants_are_counted_from_wake_to_wake() {
    let text = b"wake,x\n10000000000.000001,0\n10000000000.001011,0\n10000000000.004001,0\n";
    let wanted = Ok(vec![(0, 0), (1, 10_000), (4, 0)]);
    assert_eq!(read(text, "wake:s", Some(1_000)), wanted);
    let text = b"18446744073709000000\n18446744073709551615\n";
    assert_eq!(read(text, "instant:ns", Some(500)).unwrap(), vec![(0, 0), (1, 51_615)]);
}

#[test]
fn bad_input_is_refused_with_line_and_text() {
    let refused = |text: &[u8], column, period| read(text, column, period).unwrap_err();
    assert_eq!(refused(b"1\n\n2x\n", "lateness:us", None), "line 3: not a number: \"2x\"");
    assert_eq!(
        refused(b"5\n4\n", "instant:us", Some(1)),
        "line 2: the instant is before the previous one: \"4\""
    );
    assert_eq!(refused(b"-5\n", "instant:us", Some(1)), "line 1: an instant is negative: \"-5\"");
    assert_eq!(
        refused(b"1\n", "instant:us", None),
        "instants need the nominal period: --period 500us"
    );
    let both = "for a decimal comma write a point, for several columns name each in";
    for text in ["7,6\n0,25\n", "1;2\n", "1\t2\n"] {
        let why = refused(text.as_bytes(), "lateness:us", None);
        assert!(
            why.starts_with("line 1: 2 numbers and no header; ") && why.contains(both),
            "{why}"
        );
    }
    for text in ["lateness\n5\n1,5\n", "5\n6\n1,5\n", "lateness\n5\n1;5\n", "lateness\n5\n1\t5\n"] {
        let why = refused(text.as_bytes(), "lateness:us", None);
        let place = "line 3: 2 fields, but one in the first line; ";
        assert!(why.starts_with(place) && why.contains(both), "{text:?}: {why}");
    }
    let why = refused(b"n,lateness\n1,7,6\n", "lateness:us", None);
    assert!(why.starts_with("line 2: 3 fields, but 2 in the first line; "), "{why}");
    for text in ["n;lateness\n1;7,6\n", "n\tlateness\n1\t\"7,6\"\n"] {
        let why = refused(text.as_bytes(), "lateness:us", None);
        assert!(why.starts_with("line 2: not a number; write decimals with a point: "), "{why}");
    }
    assert!(
        refused(b"a,b\n1,2\n", "c:us", None).contains("no column \"c\"; the columns are: \"a, b\"")
    );
    assert!(refused(b"1,2\n", "wake:us", Some(1)).contains("no header"));
    assert!(refused(b"a,b\n1\n", "b:us", None).contains("line 2: column 2 is missing"));
    assert!(refused(b"\"1\n2\n", "lateness:us", None).contains("line 1: a quote is not closed"));
    assert!(refused(b"99999999999999\n", "lateness:s", None).contains("beyond"));
    assert!(refused(&[b'7'; 100_000], "lateness:us", None).contains("line 1: longer than"));
    assert!(refused(b"1\n\xff\xfe\n", "lateness:us", None).starts_with("line 2: not a number"));
    let long = refused(&[b"1\n", &[b'x'; 500][..]].concat(), "lateness:us", None);
    assert!(long.len() < 120, "{long}");
}

#[test]
fn what_came_before_a_bad_line_is_given() {
    let spec = ColumnSpec::parse("lateness:us").unwrap();
    let mut file = CsvFile::open(&b"1\n2\nx\n3\n"[..], spec, None).unwrap();
    assert_eq!(file.next_block().unwrap().len(), 2);
    assert!(file.next_block().is_err());
    assert!(file.next_block().unwrap().is_empty());
    let spec = ColumnSpec::parse("instant:us").unwrap();
    let mut file = CsvFile::open(&b"1\n2\n3\n1\n"[..], spec, Period::from_ns(1_000)).unwrap();
    assert_eq!(file.next_block().unwrap().len(), 3);
    assert!(file.next_block().is_err());
}

#[test]
fn an_empty_file_has_no_samples() {
    assert_eq!(read(b"", "lateness:us", None), Ok(vec![]));
    assert_eq!(read(b"\n\r\n", "instant:us", Some(1)), Ok(vec![]));
    assert_eq!(read(b"lateness\n", "lateness:us", None), Ok(vec![]));
}

proptest! {
    #[test]
    fn no_bytes_panic(
        bytes in prop_oneof![
            prop::collection::vec(any::<u8>(), 0..300),
            "[0-9.,;\"\t\r\n e+-]{0,200}".prop_map(String::into_bytes),
        ],
        instants in any::<bool>(), period in 1u64..u64::MAX,
    ) {
        let column = if instants { "instant:s" } else { "lateness:ns" };
        let spec = ColumnSpec::parse(column).unwrap();
        let _ = count_samples(&bytes, spec, Period::from_ns(period));
    }

    #[test]
    fn latenesses_round_trip(values in prop::collection::vec(any::<i64>(), 0..10_000)) {
        let text: String = values.iter().map(|v| format!("{v}\n")).collect();
        let read = read(text.as_bytes(), "lateness:ns", None).unwrap();
        let read: Vec<i64> = read.into_iter().map(|sample| sample.1).collect();
        prop_assert_eq!(read, values);
    }

    #[test]
    fn instants_round_trip(steps in prop::collection::vec(900u64..1_100, 1..10_000)) {
        let mut at = 0;
        let mut wake = |step: &u64| {
            at += step;
            at
        };
        let wakes: Vec<u64> = steps.iter().map(&mut wake).collect();
        let text: String = wakes.iter().map(|v| format!("{v}\n")).collect();
        let read = read(text.as_bytes(), "instant:ns", Some(1)).unwrap();
        let release = |k: u64| wakes[0] + k * 1_000;
        let again: Vec<u64> =
            read.iter().map(|&(k, d)| release(k).saturating_add_signed(d)).collect();
        prop_assert_eq!(again, wakes);
    }
}

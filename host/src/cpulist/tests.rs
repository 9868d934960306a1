//! The kernel's grammar, what it refuses, and any text at all.

use super::*;
use proptest::prelude::*;

fn show(text: &str, last: u32) -> String {
    match CpuList::parse(text, last) {
        Ok(list) => list.to_string(),
        Err(error) => format!("error: {error}"),
    }
}

#[test]
fn reads_the_kernels_grammar() {
    for (text, shown) in [
        ("", ""),
        ("\n", ""),
        ("0-3,5\n", "0-3,5"),
        ("5,0,1,2,3", "0-3,5"),
        ("all", "0-15"),
        ("ALL", "0-15"),
        ("N", "15"),
        ("8-N", "8-15"),
        ("0-15:2/4", "0-1,4-5,8-9,12-13"),
        ("all:1/2", "0,2,4,6,8,10,12,14"),
        ("1-7:3/100", "1-3"),
        (",,1,,2, 3\t4", "1-4"),
        ("0-3:0/4", ""),
    ] {
        assert_eq!(show(text, 15), shown, "{text:?}");
    }
}

#[test]
fn refuses_what_the_kernel_refuses() {
    for text in ["-", "1-", "-1", "a", "(N/2)-N", "1:1/2", "0-3:1", "0-3:/", "0x3", "+1"] {
        assert!(matches!(CpuList::parse(text, 15), Err(CpuListError::Syntax { .. })), "{text}");
    }
    assert_eq!(show("3-1", 15), "error: the range '3-1' ends before it starts");
    assert!(matches!(CpuList::parse("0-3:3/2", 15), Err(CpuListError::Stride { .. })));
    assert!(matches!(CpuList::parse("0-3:0/0", 15), Err(CpuListError::Stride { .. })));
    assert_eq!(show("2,16-31", 3), "error: CPU 16 is beyond the last CPU, 3");
    assert_eq!(show("0-4", 3), "error: CPU 4 is beyond the last CPU, 3");
    assert!(CpuList::parse("0-18446744073709551616", 3).is_err());
    assert!(CpuList::parse(&"0,".repeat(40_000), 3).is_err());
}

#[test]
fn algebra() {
    let a = CpuList::parse("0-3", 15).unwrap();
    let b = CpuList::parse("2-5", 15).unwrap();
    assert_eq!(a.union(&b).to_string(), "0-5");
    assert_eq!(a.intersection(&b).to_string(), "2-3");
    assert_eq!(a.difference(&b).to_string(), "0-1");
    assert_eq!((a.first(), a.last(), a.len()), (Some(0), Some(3), 4));
    assert!(a.difference(&a).is_empty());
    assert_eq!(a.difference(&a), CpuList::new());
}

proptest! {
    #[test]
    fn shown_lists_read_back(cpus in proptest::collection::btree_set(0u32..600, 0..80)) {
        let list: CpuList = cpus.iter().copied().collect();
        prop_assert_eq!(list.len(), cpus.len());
        prop_assert!(list.iter().eq(cpus.iter().copied()));
        prop_assert_eq!(CpuList::parse(&list.to_string(), 599), Ok(list));
    }

    #[test]
    fn any_text_is_a_list_or_an_error(text in "[0-9aNl:/,\\- \n]{0,40}", last in 0u32..10_000) {
        if let Ok(list) = CpuList::parse(&text, last) {
            prop_assert!(list.last().is_none_or(|cpu| cpu <= last));
        }
    }

    #[test]
    fn any_unicode_is_survived(text in ".*") {
        let _ = CpuList::parse(&text, 63);
    }
}

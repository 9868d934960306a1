//! The symbols of the shared library as the linker sees them: names, versions, and its own name.

use std::collections::BTreeSet;
use std::process::Command;

use crate::built::{installed, need, output};
use crate::header::names;

#[test]
fn it_exports_what_the_header_declares_with_a_version_and_nothing_else() {
    if !need(&["nm"]) {
        return;
    }
    let symbols = output(
        Command::new("nm").args(["-D", "--defined-only"]).arg(installed("lib/libpunctual.so")),
    );
    let mut found = BTreeSet::new();
    for symbol in symbols.lines().filter_map(|line| line.split(' ').next_back()) {
        match symbol.split_once("@@") {
            Some((name, version)) => {
                assert_eq!(version, "PUNCTUAL_0.1", "{name}");
                found.insert(name.to_owned());
            }
            // The version itself.
            None => assert_eq!(symbol, "PUNCTUAL_0.1"),
        }
    }
    assert_eq!(found, names());
}

#[test]
fn it_has_a_soname_needs_the_c_library_alone_and_binds_at_once() {
    if !need(&["readelf"]) {
        return;
    }
    let dynamic = output(Command::new("readelf").arg("-dW").arg(installed("lib/libpunctual.so")));
    let tagged = |tag: &str| -> Vec<String> {
        let lines = dynamic.lines().filter(|line| line.contains(&format!("({tag})")));
        let named = |line: &str| Some(line.split_once('[')?.1.split_once(']')?.0.to_owned());
        lines.filter_map(named).collect()
    };
    assert_eq!(tagged("SONAME"), ["libpunctual.so.0"]);
    for needed in tagged("NEEDED") {
        let known = ["libc.so", "libm.so", "libgcc_s.so", "ld-linux"];
        assert!(known.iter().any(|known| needed.starts_with(known)), "{needed}");
    }
    assert!(dynamic.contains("BIND_NOW"), "{dynamic}");
    let link = std::fs::read_link(installed("lib/libpunctual.so.0")).expect("a link");
    assert_eq!(link.to_str(), Some(concat!("libpunctual.so.", env!("CARGO_PKG_VERSION"))));
}

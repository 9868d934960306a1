//! Fuzzes one of the parsers of `punctual_testkit::parsers`: the one that PUNCTUAL_PARSER names.
//! `cargo xtask fuzz` sets it.
#![no_main]

use std::sync::LazyLock;

use punctual_testkit::parsers::{Body, all};

static PARSER: LazyLock<Body> = LazyLock::new(|| {
    let name = std::env::var("PUNCTUAL_PARSER").expect("PUNCTUAL_PARSER names a parser");
    let known = all().into_iter().find(|(known, _)| *known == name);
    known.unwrap_or_else(|| panic!("PUNCTUAL_PARSER: there is no parser {name:?}")).1
});

libfuzzer_sys::fuzz_target!(|data: &[u8]| (*PARSER)(data));

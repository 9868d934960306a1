//! Fuzzes limits such as `p99.9<50us`: see `punctual_testkit::parsers`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| punctual_testkit::parsers::limit(data));

//! Fuzzes lists of loads such as `cpu,stress-ng:"--cpu 2"`: see `punctual_testkit::parsers`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| punctual_testkit::parsers::loads(data));

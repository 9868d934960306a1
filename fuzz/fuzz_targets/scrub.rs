//! Fuzzes what is captured, made free of secrets: see `punctual_testkit::parsers`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| punctual_testkit::parsers::scrub(data));

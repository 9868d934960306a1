//! Fuzzes claims such as `p(lateness>50us)<1e-6`: see `punctual_testkit::parsers`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| punctual_testkit::parsers::claim(data));

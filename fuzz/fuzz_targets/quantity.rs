//! Fuzzes quantities with dimensions, such as `23ozin`: see `punctual_testkit::parsers`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| punctual_testkit::parsers::quantity(data));

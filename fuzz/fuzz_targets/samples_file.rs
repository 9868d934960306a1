//! Fuzzes sample files: see `punctual_testkit::parsers`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| punctual_testkit::parsers::samples_file(data));

//! Fuzzes which column of a CSV file, in which unit: see `punctual_testkit::parsers`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| punctual_testkit::parsers::column_spec(data));

//! Fuzzes what comes through a supervisor's socket: see `punctual_testkit::parsers`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| punctual_testkit::parsers::join_request(data));

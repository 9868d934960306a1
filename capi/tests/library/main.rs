//! The C library as its users meet it: installed, linked, called.
//!
//! Compiles the examples and the programs of `tests/c` with the compilers that are here; one that
//! is not skips its tests, counted. No test asserts a time.

mod built;
mod ends;
mod examples;
mod forked;
mod header;
mod installed;
mod processes;
mod programs;
mod symbols;

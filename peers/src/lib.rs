//! The pages whose programs use other crates: docs/sharing.md and docs/migrating.md. Their blocks
//! are the doc tests of this crate, which has those crates; blocks in C and C++ are compiled by
//! `testkit/tests/pages.rs`.
//!
//! Holds nothing else: what compares is the program beside it.
#![forbid(unsafe_code)]

#[cfg(doctest)]
#[doc = include_str!("../../docs/sharing.md")]
struct Sharing;

#[cfg(doctest)]
#[doc = include_str!("../../docs/migrating.md")]
struct Migrating;

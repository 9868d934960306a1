//! A report as a page of text: what a person sees first.
//!
//! Eighty columns, no colour needed. One file for each part of the page; this one puts them in
//! order.

mod campaign;
mod claims;
mod compare;
mod executive;
mod head;
mod histogram;
mod impact;
mod imported;
mod supervised;
mod table;
mod verdict;

use crate::report::Report;

pub(crate) use claims::plans;
pub(crate) use compare::page as compare;
pub(crate) use impact::{drives, page as impact};
pub(crate) use supervised::page as supervised;

/// The page of `check`: the short form, and what to do next.
pub(crate) fn check(report: &Report) -> String {
    [
        head::of(report),
        table::of(report),
        table::rows(report),
        histogram::lines(report),
        table::other_names(report),
        table::instruments(report),
        verdict::warnings(report),
        verdict::good_for(report),
        verdict::limits(report),
        claims::judged(report),
        compare::against(report),
        verdict::next(report),
    ]
    .concat()
}

/// The page of `measure executive`.
pub(crate) fn executive(report: &Report) -> String {
    [head::of(report), executive::of(report)].concat()
}

/// The page of `soak`: as `measure`, with what is a campaign's alone.
pub(crate) fn soak(report: &Report) -> String {
    [
        head::of(report),
        table::of(report),
        campaign::lines(report),
        histogram::drawn(report),
        table::other_names(report),
        table::loads(report),
        all_said(report),
    ]
    .concat()
}

/// What pages with every claim end with.
fn all_said(report: &Report) -> String {
    [
        verdict::warnings(report),
        verdict::claims(report),
        verdict::good_for(report),
        verdict::limits(report),
        claims::judged(report),
    ]
    .concat()
}

/// The page of `measure` and `analyse`: the same with a drawn histogram and all claims.
pub(crate) fn measure(report: &Report) -> String {
    [
        head::of(report),
        table::of(report),
        imported::of(report),
        histogram::drawn(report),
        table::other_names(report),
        table::instruments(report),
        table::loads(report),
        all_said(report),
        compare::against(report),
    ]
    .concat()
}

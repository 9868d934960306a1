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
mod parts;
mod supervised;
mod table;
mod verdict;

use crate::report::{Body, Report, SoakBody};

pub(crate) use claims::plans;
pub(crate) use impact::drives;

/// The page of a report, by its kind; `results` is the directory that it is written to.
pub(crate) fn page(report: &Report, results: Option<&str>) -> String {
    match &report.body {
        Body::Check(_) => check(report, results),
        Body::Executive(body) => head::of(report) + &executive::of(body),
        Body::Soak(body) => soak(report, body),
        Body::Run(body) => supervised::page(report, &body.supervised),
        Body::Compare(body) => compare::page(report, &body.compare),
        Body::Impact(body) => impact::page(body),
        body => match crate::view::parts::of(body) {
            Some(shown) => head::of(report) + &parts::of(&shown) + &verdict::warnings(report),
            None => measure(report),
        },
    }
}

/// Of `check`: the short form, and what to do next.
fn check(report: &Report, results: Option<&str>) -> String {
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
        results.map(verdict::next).unwrap_or_default(),
    ]
    .concat()
}

/// Of `soak`: as `measure`, with what is a campaign's alone.
fn soak(report: &Report, body: &SoakBody) -> String {
    [
        head::of(report),
        table::of(report),
        campaign::lines(&body.campaign),
        histogram::drawn(report),
        table::other_names(report),
        table::loads(report),
        all_claims(report),
    ]
    .concat()
}

/// What pages with every claim end with.
fn all_claims(report: &Report) -> String {
    [
        verdict::warnings(report),
        verdict::claims(report),
        verdict::good_for(report),
        verdict::limits(report),
        claims::judged(report),
    ]
    .concat()
}

/// Of `measure` and `analyse`: the same with a drawn histogram and all claims.
fn measure(report: &Report) -> String {
    [
        head::of(report),
        table::of(report),
        imported::of(report),
        histogram::drawn(report),
        table::other_names(report),
        table::instruments(report),
        table::loads(report),
        all_claims(report),
        compare::against(report),
    ]
    .concat()
}

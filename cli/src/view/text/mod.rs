//! A report as a page of text: what a person sees first.
//!
//! Eighty columns, no colour needed. One file for each part of the page; this one puts them in
//! order.

mod brief;
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
pub(crate) mod tune;
mod verdict;
mod wait;

use crate::report::measured::Measured;
use crate::report::{Body, Report, SoakBody};

pub(crate) use claims::plans;
pub(crate) use impact::drives;

/// How much is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Detail {
    /// One line a loop.
    Line,
    /// The verdict, its figures, what next.
    Short,
    /// Everything.
    Long,
}

/// The page of a report, by its kind; `results` is the directory that it is written to.
pub(crate) fn page(report: &Report, results: Option<&str>, detail: Detail) -> String {
    if detail == Detail::Line
        && let Some(line) = brief::line(report)
    {
        return line;
    }
    let headline = report.body.headline().filter(|of| !of.loops.is_empty());
    if let (Some(headline), true) = (headline, detail != Detail::Long) {
        return brief::page(report, headline, results);
    }
    match &report.body {
        Body::Wait(body) if detail != Detail::Long => wait::page(report, body),
        Body::Check(_) => check(report, results),
        Body::Measured(Measured::Executive(body)) => head::brief(report) + &executive::of(body),
        Body::Soak(body) => soak(report, body),
        Body::Run(body) => supervised::page(report, &body.supervised),
        Body::Compare(body) => compare::page(report, &body.compare),
        Body::Impact(body) => impact::page(body),
        body => match crate::view::parts::of(body) {
            Some(shown) => head::brief(report) + &parts::of(&shown) + &verdict::warnings(report),
            None => measure(report),
        },
    }
}

/// Of `check`: everything, and what to do next.
fn check(report: &Report, results: Option<&str>) -> String {
    [
        brief::first(report),
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
        brief::next(report, results),
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
        brief::first(report),
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

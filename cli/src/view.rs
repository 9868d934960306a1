//! Views: a report as text and as a page for people, as JSON for machines. No arithmetic here.

pub(crate) mod document;
pub(crate) mod html;
pub(crate) mod json;
pub(crate) mod kinds;
pub(crate) mod markdown;
mod page;
pub(crate) mod plots;
pub(crate) mod text;

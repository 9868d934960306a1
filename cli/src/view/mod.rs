//! Views: a report as text for people, as JSON for machines. No arithmetic here.

pub(crate) mod json;
pub(crate) mod show;
pub(crate) mod text;

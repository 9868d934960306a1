//! Views: a report as text and as a page for people, as JSON for machines. No arithmetic here.

mod followed;
pub(crate) mod html;
pub(crate) mod json;
pub(crate) mod kinds;
pub(crate) mod plots;
pub(crate) mod text;

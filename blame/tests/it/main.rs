//! Attribution from events to outcome, on scenarios that are written as events.

mod causes;
mod evidence;
mod interleavings;
mod properties;
mod recall;
mod scenario;
mod streams;

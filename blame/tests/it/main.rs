//! Attribution from events to outcome, on scenarios that are written as events.

mod beginning;
mod causes;
mod evidence;
mod identity;
mod interleavings;
mod order;
mod own_code;
mod programs;
mod properties;
mod recall;
mod scenario;
mod streams;
mod timers;

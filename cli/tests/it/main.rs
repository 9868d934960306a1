//! The command line as a user meets it: real runs of the real program.
//!
//! Short ones: nothing here asserts a time. One file a subject.

mod accuracy;
mod analyse;
mod attack;
mod bad_input;
mod capture;
mod cgroup_budget;
mod check;
mod claims;
mod compare;
mod completions;
mod crash;
mod dead_loads;
mod executive;
mod export;
mod follow;
mod guide;
mod hostile;
mod impact;
mod import;
mod lateness;
mod library;
mod measure;
mod noise;
mod outputs;
mod report;
mod report_browser;
mod reproduce;
mod response;
mod run;
mod run_signals;
mod sched;
mod signal_pairs;
mod soak;
mod support;
mod syscalls;
mod task;
mod terminal;
mod timer;
mod traced;
mod tune;
mod tune_apply;
mod unprivileged;
mod wait;
mod work;

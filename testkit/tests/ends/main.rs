//! Every way to end × every kind of work × every disturbance: each release of the span ran or was
//! missed, once, whoever counts it.
//!
//! The span is from the first release to the end; what is in it a slow model says
//! ([`punctual_testkit::span`]), which looks at one release after the other. Of the missed ones
//! those are censored that no start followed, so that `ran + missed` is all of them; of a task that
//! is a process there are releases besides at which no process was registered. `--nocapture` shows
//! the table; `cli/tests/it/counts.rs` has that of `punctual run`, `capi/tests/library/ends.rs` has
//! that of C.
//!
//! [`simulated`] has the kinds that a simulated clock can run, [`machine`] the others, of which the
//! end is known as between two stamps. No time is asserted.

mod child;
mod machine;
mod simulated;

use punctual_testkit::ends::{EndsTable, WorkRunner};

#[test]
fn what_one_thread_runs_counts_each_release_however_it_ends() {
    let mut table = EndsTable::default();
    simulated::fill(&mut table);
    println!("{table}");
    table.check(&[WorkRunner::Loop, WorkRunner::Inline, WorkRunner::Unit]);
}

#[test]
fn what_runs_elsewhere_counts_each_release_however_it_ends() {
    let mut table = EndsTable::default();
    machine::fill(&mut table);
    println!("{table}");
    table.check(&[
        WorkRunner::Thread,
        WorkRunner::Delaying,
        WorkRunner::Added,
        WorkRunner::Process,
        WorkRunner::Triggered,
    ]);
}

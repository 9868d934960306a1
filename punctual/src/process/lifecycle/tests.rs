//! Lives on made-up clocks.

use super::*;

fn at(ms: u64) -> Instant {
    Instant::from_ns(ms * 1_000_000)
}

const ALIVE: Seen =
    Seen { ended: None, state: TaskState::Empty, overran: 0, taken: None, posted: 0, left: true };

fn is(state: TaskState) -> Seen {
    Seen { state, ..ALIVE }
}

fn ended(exit: ProcessEnd, state: TaskState) -> Seen {
    Seen { ended: Some(exit), state, ..ALIVE }
}

fn lifecycle(restart: Restart) -> Lifecycle {
    let restart = Restart { most: restart.most.min(1), ..restart };
    Lifecycle::new(true, (OnOverrun::Terminate, 10), Span::from_ms(1_000), restart, at(0))
}

#[test]
fn a_whole_life() {
    let mut lifecycle = lifecycle(Restart::ON_FAILURE);
    assert_eq!(lifecycle.tick(&ALIVE, at(0)), Act::Start);
    assert_eq!(lifecycle.tick(&ALIVE, at(5)), Act::Nothing);
    assert_eq!(lifecycle.tick(&is(TaskState::Asking), at(10)), Act::Admit);
    assert_eq!(lifecycle.tick(&is(TaskState::Asking), at(15)), Act::Nothing);
    assert_eq!(lifecycle.tick(&is(TaskState::Running), at(20)), Act::Nothing);
    assert_eq!(lifecycle.tick(&is(TaskState::Gone), at(25)), Act::Dismiss);
    assert_eq!(lifecycle.tick(&is(TaskState::Gone), at(30)), Act::Nothing);
    let exit = ProcessEnd::Status(0);
    assert_eq!(lifecycle.tick(&ended(exit, TaskState::Gone), at(35)), Act::Reap(exit));
    let unseen = Seen { left: false, ..ALIVE };
    assert_eq!(lifecycle.tick(&unseen, at(40)), Act::Nothing, "the loop may still touch it");
    assert_eq!(lifecycle.tick(&ALIVE, at(45)), Act::Nothing);
    assert!(lifecycle.is_over());
}

#[test]
fn an_overrun_ends_it_and_it_is_started_again_as_often_as_it_may() {
    let mut lifecycle = lifecycle(Restart::ON_FAILURE);
    assert_eq!(lifecycle.tick(&ALIVE, at(0)), Act::Start);
    assert_eq!(lifecycle.tick(&is(TaskState::Asking), at(1)), Act::Admit);
    let over = Seen { overran: 1, ..is(TaskState::Running) };
    assert_eq!(lifecycle.tick(&over, at(2)), Act::Kill(Cause::Overran));
    assert_eq!(lifecycle.tick(&over, at(3)), Act::Nothing);
    let killed = Seen { overran: 1, ..ended(ProcessEnd::Signal(9), TaskState::Running) };
    assert_eq!(lifecycle.tick(&killed, at(4)), Act::Reap(ProcessEnd::Signal(9)));
    let after = Seen { overran: 1, ..ALIVE };
    assert_eq!(lifecycle.tick(&after, at(5)), Act::Nothing);
    assert_eq!(lifecycle.stage, LifecycleState::Due(at(105)));
    assert_eq!(lifecycle.tick(&after, at(104)), Act::Nothing);
    assert_eq!(lifecycle.tick(&after, at(105)), Act::Start);
    // This time it ends before it registers.
    let at_once = Seen { overran: 1, ..ended(ProcessEnd::Status(1), TaskState::Empty) };
    assert_eq!(lifecycle.tick(&at_once, at(106)), Act::Reap(ProcessEnd::Status(1)));
    assert_eq!(lifecycle.tick(&after, at(107)), Act::Nothing);
    assert!(lifecycle.is_over(), "once in a row was all");
    assert_eq!(lifecycle.restarts.all, 1);
}

#[test]
fn an_overrun_is_nothing_to_a_task_that_is_not_to_be_terminated() {
    let mut lifecycle = Lifecycle { policy: OnOverrun::Skip, ..lifecycle(Restart::default()) };
    lifecycle.tick(&ALIVE, at(0));
    lifecycle.tick(&is(TaskState::Asking), at(1));
    let over = Seen { overran: 9, ..is(TaskState::Running) };
    assert_eq!(lifecycle.tick(&over, at(2)), Act::Nothing);
}

#[test]
fn who_does_not_register_or_writes_rubbish_is_ended() {
    let mut silent = lifecycle(Restart::default());
    silent.tick(&ALIVE, at(0));
    assert_eq!(silent.tick(&ALIVE, at(1_000)), Act::Nothing);
    assert_eq!(silent.tick(&ALIVE, at(1_001)), Act::Kill(Cause::NeverRegistered));
    for state in [TaskState::Unknown, TaskState::Running] {
        let mut rubbish = lifecycle(Restart::default());
        rubbish.tick(&ALIVE, at(0));
        assert_eq!(rubbish.tick(&is(state), at(1)), Act::Kill(Cause::Invalid), "{state:?}");
    }
    let mut later = lifecycle(Restart::default());
    later.tick(&ALIVE, at(0));
    later.tick(&is(TaskState::Asking), at(1));
    assert_eq!(later.tick(&is(TaskState::Unknown), at(2)), Act::Kill(Cause::Invalid));
}

#[test]
fn who_registers_and_leaves_between_two_looks_is_waited_for() {
    for (exit, failed) in [(ProcessEnd::Status(0), false), (ProcessEnd::Status(3), true)] {
        let mut brief = lifecycle(Restart::default());
        brief.tick(&ALIVE, at(0));
        assert_eq!(brief.tick(&is(TaskState::Gone), at(1)), Act::Nothing);
        assert_eq!(brief.tick(&ended(exit, TaskState::Gone), at(2)), Act::Reap(exit));
        assert!(matches!(brief.stage, LifecycleState::Leaving(is, _) if is == failed));
    }
    let mut lingering = lifecycle(Restart::default());
    lingering.tick(&ALIVE, at(0));
    let later = lingering.tick(&is(TaskState::Gone), at(1_001));
    assert_eq!(later, Act::Kill(Cause::NeverRegistered));
}

#[test]
fn a_block_without_a_program_is_given_once_and_free_again() {
    let restart = Restart::default();
    let mut lifecycle =
        Lifecycle::new(false, (OnOverrun::Skip, 10), Span::from_ms(1_000), restart, at(0));
    assert_eq!(lifecycle.tick(&ALIVE, at(0)), Act::Nothing);
    assert!(lifecycle.join(at(1)) && !lifecycle.join(at(1)), "one at a time");
    assert_eq!(lifecycle.tick(&is(TaskState::Asking), at(2)), Act::Admit);
    assert_eq!(lifecycle.tick(&is(TaskState::Gone), at(3)), Act::Dismiss);
    // It goes on without us.
    assert_eq!(lifecycle.tick(&is(TaskState::Gone), at(4)), Act::Reap(ProcessEnd::Unknown));
    assert_eq!(lifecycle.tick(&ALIVE, at(5)), Act::Free);
    assert!(lifecycle.join(at(6)));
    // One that does not behave is sent away, not ended.
    assert_eq!(lifecycle.tick(&is(TaskState::Running), at(7)), Act::Dismiss);
    assert_eq!(lifecycle.dismissed_for(), Some(Cause::Invalid));
    let gone = ended(ProcessEnd::Unknown, TaskState::Empty);
    assert_eq!(lifecycle.tick(&gone, at(7)), Act::Reap(ProcessEnd::Unknown));
    assert_eq!(lifecycle.tick(&ALIVE, at(8)), Act::Free);
}

#[test]
fn who_takes_no_releases_is_told_ended_or_ends_all_as_its_policy_says() {
    let at_release = |state, taken, posted| Seen { taken: Some(taken), posted, ..is(state) };
    for (policy, act) in [
        (OnOverrun::Terminate, Act::Kill(Cause::Silent)),
        (OnOverrun::Stop, Act::Stop),
        (OnOverrun::Skip, Act::Note),
    ] {
        let mut lifecycle = Lifecycle { policy, ..lifecycle(Restart::default()) };
        lifecycle.tick(&ALIVE, at(0));
        // What was posted to others before counts for nothing.
        lifecycle.tick(&Seen { posted: 50, ..is(TaskState::Asking) }, at(1));
        let mut tick =
            |state, taken, posted| lifecycle.tick(&at_release(state, taken, posted), at(2));
        assert_eq!(tick(TaskState::Idle, 7, 59), Act::Nothing, "it took one");
        assert_eq!(tick(TaskState::Idle, 7, 68), Act::Nothing);
        assert_eq!(tick(TaskState::Running, 7, 90), Act::Nothing, "a long cycle is something else");
        assert_eq!(tick(TaskState::Idle, 7, 99), Act::Nothing);
        assert_eq!(tick(TaskState::Idle, 7, 100), act);
        assert_eq!(tick(TaskState::Idle, 7, 200), Act::Nothing, "once");
    }
    let mut silent = lifecycle(Restart::default());
    silent.tick(&ALIVE, at(0));
    silent.tick(&is(TaskState::Asking), at(1));
    let never = Seen { posted: 10, ..is(TaskState::Asking) };
    assert_eq!(silent.tick(&never, at(2)), Act::Kill(Cause::Silent), "not even its first");
}

//! The identity of threads: several threads of one name, a number that is given away again, names
//! without a priority, and wakings that say no CPU, as captures of other programs have them; and
//! whom a name or a number selects in each form of these.

use std::io::Cursor;

use punctual_blame::blame::Blame;
use punctual_blame::cause::CauseKind;
use punctual_blame::config::{BlameBounds, BlameConfig, FollowedThreads, LateThreshold};
use punctual_blame::outcome::BlameOutcome;
use punctual_trace::capture;
use punctual_trace::event::{ShortName, TaskName, TraceKind};

use crate::scenario::{MS, Scenario, US, cat, config, hog, idle, only_cause, servo, task};

/// Ends of the servo, whose number another one gets.
const ZOMBIE: u64 = 0x20;

/// A wake of `woken` at `at_ns` by the cat of CPU 1, 400 µs late behind the hog of CPU 0.
fn late_behind_the_hog(scenario: &mut Scenario, at_ns: u64, woken: TaskName, target_cpu: u32) {
    scenario.event(at_ns, 1, TraceKind::Waking { task: woken, target_cpu });
    scenario.switch(at_ns + 400 * US, 0, 1, woken);
    scenario.switch(at_ns + 450 * US, 0, 1, hog());
}

fn behind_the_hog(woken: TaskName, target_cpu: u32) -> Scenario {
    let mut scenario = Scenario::on([woken, cat()]);
    scenario.switch(MS, 0, 1, hog());
    for round in 1..=12 {
        late_behind_the_hog(&mut scenario, MS + round * MS, woken, target_cpu);
    }
    scenario
}

#[test]
fn a_waking_that_says_no_cpu_is_one_of_the_cpu_on_which_it_runs() {
    let scenario = behind_the_hog(servo(), TraceKind::UNKNOWN_CPU);
    let outcome = scenario.run(config());
    let row = only_cause(&outcome, CauseKind::HigherPriority);
    assert_eq!((row.time_ns, row.cpu), (12 * 400 * US, Some(0)));
    assert_eq!(outcome.table.rows.len(), 1, "{:?}", outcome.table.rows);
}

#[test]
fn a_waking_without_a_priority_is_of_no_real_time_thread() {
    let nameless =
        |task: TaskName| TaskName { kernel_priority: TaskName::UNKNOWN_PRIORITY, ..task };
    let follow = FollowedThreads::RealTime;
    let runs = |woken: TaskName| {
        let mut scenario = behind_the_hog(woken, 0);
        for event in &mut scenario.events {
            if let TraceKind::Waking { task, .. } = &mut event.kind {
                *task = nameless(*task);
            }
        }
        let outcome = scenario.run(BlameConfig { follow: follow.clone(), ..config() });
        outcome.threads.iter().map(|thread| thread.figures.task).collect::<Vec<_>>()
    };
    assert_eq!(runs(servo()), [servo()]);
    assert!(runs(task("ordinary", 205, 120)).is_empty());
}

#[test]
fn a_thread_that_takes_another_name_keeps_its_priority() {
    let mut scenario = Scenario::new();
    scenario.normals(40);
    let release = scenario.sleep(cat());
    let name = ShortName::new(b"dog");
    let renamed = TaskName { name, kernel_priority: TaskName::UNKNOWN_PRIORITY, ..cat() };
    scenario.event(release - MS / 2, 0, TraceKind::Renamed { task: renamed });
    scenario.fire(release + 5 * US).timer_exit(release + 10 * US, 0);
    // It runs to the end: no switch tells of its priority.
    scenario.timer_entry(release + 2 * MS, 0);
    let outcome = scenario.run(config());
    let row = &outcome.table.rows[0];
    assert_eq!(row.cause.kind(), CauseKind::NotPreempted, "{}", outcome.table.sentence);
    assert_eq!(row.name, "dog (nice 0, 202) was not preempted");
}

#[test]
fn a_program_that_became_real_time_before_its_exec_ran_above_under_both_names() {
    let mut scenario = Scenario::new();
    scenario.normals(40);
    let release = scenario.sleep(cat());
    scenario.fire(release + 5 * US).timer_exit(release + 10 * US, 0);
    let name = ShortName::new(b"dog");
    let renamed = TaskName { name, kernel_priority: TaskName::UNKNOWN_PRIORITY, ..cat() };
    scenario.event(release + 200 * US, 0, TraceKind::Renamed { task: renamed });
    scenario.turns_into(0, TaskName { name, kernel_priority: 2, ..cat() });
    scenario.switch(release + 500 * US, 0, 1, servo());
    let outcome = scenario.run(config());
    let above = outcome
        .table
        .rows
        .iter()
        .filter(|row| row.cause.culprit().is_some_and(|task| task.tid == cat().tid));
    let above: Vec<_> = above.map(|row| (row.name.as_str(), row.time_ns)).collect();
    let names = ["dog (priority 97, 202) ran above", "cat (priority 97, 202) ran above"];
    assert_eq!(above.iter().map(|(name, _)| *name).collect::<Vec<_>>(), names, "{above:?}");
    assert_eq!(above[0].1, 300 * US);
}

/// It takes its policy in its last turn, behind one of another thread, while the turn before is
/// further back than the memory.
#[test]
fn who_takes_its_policy_late_ran_above_in_that_turn_alone_however_short_the_memory() {
    let starting = task("starting", 900, 120);
    let mut scenario = Scenario::new();
    scenario.normals(40);
    let release = scenario.sleep(hog());
    scenario.fire(release + 5 * US).timer_exit(release + 10 * US, 0);
    let mut at = release + 100 * US;
    for _ in 0..50 {
        scenario.switch(at, 0, 0, starting);
        scenario.event(at + 10 * US, 0, TraceKind::SoftirqEntry(9));
        scenario.event(at + 12 * US, 0, TraceKind::SoftirqExit(9));
        at += 30 * US;
    }
    scenario.switch(at, 0, 0, hog());
    scenario.switch(at + 50 * US, 0, 1, starting);
    scenario.turns_into(0, TaskName { kernel_priority: 4, ..starting });
    scenario.switch(at + 170 * US, 0, 1, servo());
    let rows = |pieces| {
        let bounds = BlameBounds { pieces, ..BlameBounds::default() };
        let outcome = scenario.run(BlameConfig { bounds, ..config() });
        let mut rows: Vec<(String, u64)> =
            outcome.table.rows.iter().map(|row| (row.name.clone(), row.time_ns)).collect();
        rows.sort();
        rows
    };
    let whole = rows(4_096);
    let above = whole.iter().find(|(name, _)| name == "starting (priority 95, 900) ran above");
    assert_eq!(above.map(|(_, time_ns)| *time_ns), Some(120 * US), "{whole:?}");
    for pieces in [16, 40, 64] {
        assert_eq!(rows(pieces), whole, "{pieces} pieces");
    }
}

#[test]
fn threads_of_one_name_are_told_apart_by_their_numbers() {
    let (first, second) = (servo(), TaskName { tid: 101, ..servo() });
    let mut scenario = Scenario::on([first, cat()]);
    scenario.switch(MS, 0, 1, second).switch(MS + 10 * US, 0, 1, hog());
    for round in 1..=12 {
        late_behind_the_hog(&mut scenario, MS + round * MS, first, 0);
        if round <= 3 {
            late_behind_the_hog(&mut scenario, MS + round * MS + 500 * US, second, 0);
        }
    }
    let wakes = |follow| {
        let outcome = scenario.run(BlameConfig { follow, ..config() });
        let figures = outcome.threads.iter().map(|thread| &thread.figures);
        figures.map(|figures| (figures.task.tid, figures.wakes)).collect::<Vec<_>>()
    };
    assert_eq!(wakes(FollowedThreads::Named(servo().name)), [(100, 12), (101, 3)]);
    assert_eq!(wakes(FollowedThreads::Threads(vec![101])), [(101, 3)]);
    assert_eq!(wakes(FollowedThreads::Named(ShortName::new(b"serv"))), []);
}

#[test]
fn who_gets_the_number_of_a_thread_that_ended_is_another() {
    let lives = |successor: TaskName, follow: FollowedThreads| {
        let mut scenario = behind_the_hog(servo(), 0);
        scenario.wake(20 * MS, 1, servo(), 0);
        scenario.switch(20 * MS + 5 * US, 0, 1, servo());
        scenario.switch(20 * MS + 10 * US, 0, ZOMBIE, idle());
        scenario.switch(21 * MS, 0, 0, successor);
        scenario.switch(21 * MS + 10 * US, 0, 1, hog());
        for round in 0..5 {
            late_behind_the_hog(&mut scenario, (22 + round) * MS, successor, 0);
        }
        let outcome = scenario.run(BlameConfig { follow, ..config() });
        let figures = outcome.threads.iter().map(|thread| &thread.figures);
        figures
            .map(|figures| (figures.task.name.to_string(), figures.wakes, figures.has_ended))
            .collect::<Vec<_>>()
    };
    let ended = [("servo".to_owned(), 13, true)];
    let other = task("other", servo().tid, 9);
    assert_eq!(lives(other, FollowedThreads::Threads(vec![servo().tid])), ended);
    assert_eq!(lives(other, FollowedThreads::Named(servo().name)), ended);
    let both = lives(other, FollowedThreads::RealTime);
    assert!(both.contains(&ended[0]) && both.contains(&("other".to_owned(), 5, false)), "{both:?}");
}

/// A capture of another program, of which these are followed.
fn read(bytes: &[u8], follow: Option<FollowedThreads>, over_ns: u64) -> BlameOutcome {
    let follow = follow.unwrap_or(FollowedThreads::RealTime);
    let late = LateThreshold::Above(over_ns);
    let mut file = Cursor::new(bytes);
    let mut reader = capture::open(&mut file).expect("a capture");
    let mut blame = Blame::new(BlameConfig { follow, late, ..BlameConfig::default() });
    while let Some(event) = reader.next_event().expect("whole") {
        blame.push(&event);
    }
    blame.finish()
}

/// The followed threads with their names.
fn followed(bytes: &[u8], follow: Option<FollowedThreads>) -> Vec<(String, u32)> {
    let outcome = read(bytes, follow, 1_000);
    let tasks = outcome.threads.iter().map(|thread| thread.figures.task);
    let mut threads: Vec<(String, u32)> =
        tasks.map(|task| (task.name.to_string(), task.tid)).collect();
    threads.sort_unstable();
    threads
}

#[test]
fn a_name_or_a_number_selects_threads_in_captures_of_every_form() {
    let dir = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/trace/6.18");
    for file in ["perf.data", "perf-script.txt", "ftrace.txt", "trace-6.dat"] {
        let bytes = std::fs::read(dir.join(file)).expect("a fixture");
        let every = followed(&bytes, None);
        let (name, tid) = every.first().unwrap_or_else(|| panic!("{file}: nobody"));
        let named = FollowedThreads::Named(ShortName::new(name.as_bytes()));
        let of_name = followed(&bytes, Some(named));
        assert!(of_name.contains(&(name.clone(), *tid)), "{file}: {of_name:?}");
        assert!(of_name.iter().all(|(other, _)| other == name), "{file}: {of_name:?}");
        let by_number = followed(&bytes, Some(FollowedThreads::Threads(vec![*tid])));
        assert_eq!(by_number, [(name.clone(), *tid)], "{file}");
        let nobody = FollowedThreads::Named(ShortName::new(b"nobody-at-all"));
        assert!(followed(&bytes, Some(nobody)).is_empty(), "{file}");
    }
}

#[test]
fn threads_of_one_name_in_wprofs_lines_are_told_apart() {
    let mut text = "{\"version\":\"3.1\",\"stack_cnt\":0}\n".to_owned();
    let servo = |tid: u32| format!("{{\"tid\":{tid},\"comm\":\"servo\"}}");
    let (hog, waker) = ("{\"tid\":7,\"comm\":\"hog\"}", "{\"tid\":8,\"comm\":\"bash\"}");
    let mut switch = |at_us: u32, prev: &str, next: &str, [from, to]: [u32; 2]| {
        text.push_str(&format!(
            "{{\"ts\":{},\"t\":\"switch\",\"prev\":{prev},\"next\":{next},\"cpu\":0,\
             \"prev_state\":\"interruptible_sleep\",\"prev_prio\":{from},\
             \"next_prio\":{to}}}\n",
            f64::from(at_us) / 1e6
        ));
        if next == hog {
            for tid in [11, 12] {
                text.push_str(&format!(
                    "{{\"ts\":{},\"t\":\"waking\",\"waker\":{waker},\"wakee\":{},\
                     \"cpu\":1}}\n",
                    f64::from(at_us + 100) / 1e6,
                    servo(tid)
                ));
            }
        }
    };
    let (own, high) = (9, 2);
    switch(500, hog, &servo(11), [high, own]);
    switch(510, &servo(11), &servo(12), [own, own]);
    for round in 1..=12 {
        switch(1_000 * round, &servo(12), hog, [own, high]);
        switch(1_000 * round + 400, hog, &servo(11), [high, own]);
        switch(1_000 * round + 410, &servo(11), &servo(12), [own, own]);
    }
    let name = || FollowedThreads::Named(ShortName::new(b"servo"));
    let both = [("servo".to_owned(), 11), ("servo".to_owned(), 12)];
    assert_eq!(followed(text.as_bytes(), Some(name())), both);
    let second = FollowedThreads::Threads(vec![12]);
    assert_eq!(followed(text.as_bytes(), Some(second)), both[1..]);
    let outcome = read(text.as_bytes(), Some(name()), 50_000);
    let first = &outcome.table.rows[0];
    assert_eq!(first.name, "hog (priority 97, 7) ran above", "{}", outcome.table.sentence);
    assert_eq!((first.wakes, first.cpu), (24, Some(0)));
}

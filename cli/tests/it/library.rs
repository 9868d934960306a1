//! What programs of the library record: `punctual analyse` reads it, task by task.

use std::time::Duration;

use punctual::{Executive, Flow, Loop, Period, Phase, Placement, RtThread, Task, WaitPolicy};
use punctual_core::time::Span;

use crate::support::{Dir, json, run, stderr, stdout};

fn thread() -> RtThread {
    RtThread::any().wait(WaitPolicy::sleep())
}

#[test]
fn a_loop_and_the_tasks_of_an_executive_are_read_from_their_sample_files() {
    let dir = Dir::new("library");
    let [one, many] = ["loop.punctual", "tasks.punctual"].map(|name| dir.path(name));
    let period = |hertz| Period::hz(hertz).expect("in range");
    let builder = Loop::builder(period(1_000)).thread(thread()).phase(Phase::Zero);
    let mut each_ms = builder.record(&one).start().expect("a loop");
    while each_ms.wait().is_some_and(|cycle| cycle.n < 200) {}
    let looped = each_ms.finish().ok().expect("a good end");

    let own = Task::every("own thread", period(500)).placed(Placement::thread(RtThread::any()));
    let (plan, _) = Executive::builder()
        .thread(thread())
        .phase(Phase::Zero)
        .task(Task::every("fast", period(1_000)), |_| ())
        .task(own, |_| ())
        .record(&many)
        .build()
        .expect("fine");
    let tasks = plan.run_for(Duration::from_millis(400)).expect("it starts").ok();
    let tasks = tasks.expect("a good end");

    for (file, summary) in [(&one, &looped), (&many, &tasks)] {
        let out = run(["analyse", file.to_str().expect("UTF-8"), "--json", "-"]);
        assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
        let result = json(&out);
        let runs = result["runs"].as_array().expect("runs");
        assert_eq!(runs.len(), summary.tasks.len());
        for (run, task) in runs.iter().zip(&summary.tasks) {
            assert_eq!(run["name"], task.name.as_str());
            assert_eq!(run["cycles"].as_u64(), Some(task.counts.ran), "{run}");
        }
    }
}

#[test]
fn releases_that_no_wake_followed_count_as_in_the_summary() {
    let dir = Dir::new("library-censored");
    let file = dir.path("tasks.punctual");
    let period = Period::hz(50).expect("in range");
    let (plan, _) = Executive::builder()
        .thread(thread())
        .phase(Phase::Zero)
        .task(Task::every("control", period), |cycle| {
            let last = cycle.n >= 20;
            if last {
                // Two releases pass, and no cycle comes after them.
                std::thread::sleep(Duration::from_millis(45));
            }
            if last { Flow::Stop } else { Flow::Continue }
        })
        .record(&file)
        .build()
        .expect("fine");
    let summary = plan.run().expect("it starts").ok().expect("a good end");
    let counts = &summary.tasks[0].counts;
    assert!(counts.censored >= 2, "{counts:?}");
    let (missed, releases) = (counts.missed, counts.ran + counts.missed);
    let max_ns = counts.max.expect("some ran").as_ns();

    let file = file.to_str().expect("UTF-8");
    let result = json(&run(["analyse", file, "--json", "-"]));
    let of = &result["runs"][0];
    assert_eq!(
        (of["cycles"].as_u64(), of["missed"].as_u64(), of["censored"].as_u64()),
        (Some(counts.ran), Some(missed), Some(counts.censored))
    );
    // A file does not say how long after the last release the task ended: a period at least.
    let worst_ns = of["lateness_ns"]["max"].as_f64().expect("known") as i64;
    let period_ns = period.as_ns().cast_signed();
    assert!((period_ns..=max_ns.max(period_ns)).contains(&worst_ns), "{worst_ns} of {max_ns}");
    let headline = &result["headline"]["loops"][0];
    let counted = headline["counts"].as_str().expect("text");
    let worst = format!("≥ {}", Span::from_ns(worst_ns));
    assert!(counted.contains(&format!("{missed} of {releases} releases missed")), "{counted}");
    assert!(headline["worst"].as_str().is_some_and(|text| text.contains(&worst)), "{headline}");
    let largest = of["claims"][0]["statement"].as_str().expect("a claim of level L0");
    let claimed =
        format!("the largest of {releases} latenesses was at least {}", Span::from_ns(worst_ns));
    assert_eq!(largest, claimed);

    let page = stdout(&run(["analyse", file]));
    let row = page.lines().find(|line| line.trim_start().starts_with("control ")).expect("a row");
    assert!(row.contains(&worst), "{row}");
    let counts: Vec<&str> = row.split_whitespace().rev().take(2).collect();
    assert_eq!(counts, [missed.to_string(), releases.to_string()], "{row}");
}

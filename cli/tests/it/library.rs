//! What programs of the library record: `punctual analyse` reads it, task by task.

use std::time::Duration;

use punctual::{Executive, Loop, Period, Phase, Placement, RtThread, Task, WaitPolicy};

use crate::support::{Dir, json, run, stderr};

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

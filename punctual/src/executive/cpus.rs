//! The CPUs of an executive's loops, and which task is on which.
//!
//! For the builder. Checks that the CPUs are there; starts nothing that lasts.

use super::body::Body;
use crate::error::Error;
use crate::pack::{pack, place};
use crate::periodic::BuildError;
use crate::rt_thread::RtThread;
use crate::task::{Place, Task};

/// The CPU of each loop, the main one's first; none for any.
pub(super) fn cpus_of(
    thread: &RtThread,
    cpus: Vec<u32>,
    bodies: &[(usize, Task, Body<'_>)],
) -> Result<Vec<Option<u32>>, Error> {
    let mut all: Vec<Option<u32>> = match cpus.is_empty() {
        true => vec![thread.cpu],
        false => cpus.into_iter().map(Some).collect(),
    };
    for (at, cpu) in all.iter().enumerate() {
        if let Some(cpu) = cpu.filter(|_| all[..at].contains(cpu)) {
            return Err(BuildError::SameCpu(cpu).into());
        }
    }
    for (_, task, _) in bodies {
        if let Place::Cpu(cpu) = task.placement.0
            && !all.contains(&Some(cpu))
        {
            all.push(Some(cpu));
        }
    }
    for cpu in all.iter().flatten() {
        RtThread::cpu(*cpu).check_cpu()?;
    }
    Ok(all)
}

/// The loop of each task.
pub(super) fn places(
    bodies: &[(usize, Task, Body<'_>)],
    cpus: &[Option<u32>],
    most: f64,
) -> Vec<usize> {
    let tasks: Vec<Task> = bodies.iter().map(|(_, task, _)| task.clone()).collect();
    let fixed = |task: &Task| match task.placement.0 {
        Place::Cpu(cpu) => cpus.iter().position(|&of| of == Some(cpu)),
        _ => None,
    };
    let on: Vec<Option<usize>> = tasks.iter().map(fixed).collect();
    if on.iter().all(Option::is_none) {
        return pack(&tasks, cpus.len(), most);
    }
    // One after the other beside those whose place is given.
    let mut lanes: Vec<Vec<Task>> = cpus.iter().map(|_| Vec::new()).collect();
    for (task, on) in tasks.iter().zip(&on) {
        lanes.iter_mut().enumerate().filter(|(at, _)| Some(*at) == *on).for_each(|(_, lane)| {
            lane.push(task.clone());
        });
    }
    let mut at = Vec::new();
    for (task, on) in tasks.iter().zip(on) {
        let beside: Vec<&[Task]> = lanes.iter().map(Vec::as_slice).collect();
        let place = on.unwrap_or_else(|| place(task, &beside, most));
        if on.is_none() {
            lanes[place].push(task.clone());
        }
        at.push(place);
    }
    at
}

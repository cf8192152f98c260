//! Recorded programs as text: one line for each fact, truth and event.

use std::{fmt::Write, fs, path::PathBuf};

use blame::{
    Event, EventKind, Task,
    event::{Comm, PrevState},
};
use sys::syscall::WAITING;

use crate::{Recording, programs::Truth};

/// The file of a recorded program.
pub fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("tests/process/{name}.txt"))
}

/// Writes a recording to its file.
pub fn write(name: &str, recording: &Recording) {
    let mut text = format!("fault {}\n", recording.fault_ns);
    let mut line = |words: String| writeln!(text, "{words}").unwrap();
    recording.tids.iter().for_each(|tid| line(format!("follow {tid}")));
    recording.quota.iter().for_each(|(at_ns, ns)| line(format!("quota {at_ns} {ns}")));
    for Truth { release_ns, response_ns, after_ns, cause } in &recording.truths {
        let cause = serde_json::to_value(cause).unwrap();
        line(format!("truth {release_ns} {response_ns} {after_ns} {}", cause.as_str().unwrap()));
    }
    for event in &recording.events {
        if let Some(kind) = kind_text(&event.kind) {
            line(format!("{} {} {} {kind}", event.at_ns, event.cpu, event.pid));
        }
    }
    fs::write(path(name), text).unwrap();
}

/// Reads a recording from its file.
pub fn read(name: &str) -> Recording {
    let text = fs::read_to_string(path(name)).unwrap();
    let mut recording = Recording::default();
    for line in text.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["fault", ns] => recording.fault_ns = ns.parse().unwrap(),
            ["follow", tid] => recording.tids.push(tid.parse().unwrap()),
            ["quota", at_ns, ns] => recording.quota.push((at_ns.parse().unwrap(), ns.parse().unwrap())),
            ["truth", release_ns, response_ns, after_ns, cause] => recording.truths.push(Truth {
                release_ns: release_ns.parse().unwrap(),
                response_ns: response_ns.parse().unwrap(),
                after_ns: after_ns.parse().unwrap(),
                cause: serde_json::from_value(cause.into()).unwrap(),
            }),
            [at_ns, cpu, pid, ref kind @ ..] => recording.events.push(Event {
                at_ns: at_ns.parse().unwrap(),
                cpu: cpu.parse().unwrap(),
                pid: pid.parse().unwrap(),
                kind: kind_of(kind).unwrap_or_else(|| panic!("{line}")),
            }),
            _ => panic!("{line}"),
        }
    }
    recording
}

fn kind_text(kind: &EventKind) -> Option<String> {
    Some(match kind {
        EventKind::Switch { from, prev_state, to } => {
            format!("switch {} {} {}", task_text(from), state_text(*prev_state), task_text(to))
        }
        EventKind::Waking { task, target_cpu } => format!("waking {} {target_cpu}", task_text(task)),
        EventKind::CallEntry { call, arguments: [first, second, third] } => {
            format!("enter {} {first} {second} {third}", WAITING.iter().find(|known| known.number == *call)?.name)
        }
        EventKind::CallExit { .. } => "exit".to_owned(),
        EventKind::TimerStart { expires_ns, latest_ns, .. } => format!("timer {expires_ns} {latest_ns}"),
        EventKind::FdTimerStart { expires_ns, .. } => format!("fdtimer {expires_ns}"),
        EventKind::PageFault { .. } => "fault".to_owned(),
        EventKind::BlockRequest => "disk".to_owned(),
        EventKind::LockWait { .. } => "contend".to_owned(),
        EventKind::LockWaitEnd { .. } => "contended".to_owned(),
        _ => return None,
    })
}

fn kind_of(words: &[&str]) -> Option<EventKind> {
    Some(match *words {
        ["switch", ref words @ ..] => {
            let (from, words) = words.split_at_checked(3)?;
            let (state, to) = words.split_first()?;
            EventKind::Switch { from: task_of(from)?, prev_state: state_of(state)?, to: task_of(to)? }
        }
        ["waking", ref words @ ..] => {
            let (target_cpu, task) = words.split_last()?;
            EventKind::Waking { task: task_of(task)?, target_cpu: target_cpu.parse().ok()? }
        }
        ["enter", name, first, second, third] => {
            let arguments = [first.parse().ok()?, second.parse().ok()?, third.parse().ok()?];
            EventKind::CallEntry { call: WAITING.iter().find(|known| known.name == name)?.number, arguments }
        }
        ["exit"] => EventKind::CallExit { call: 0 },
        ["timer", expires_ns, ref latest_ns @ ..] => {
            let latest_ns = latest_ns.first().unwrap_or(&expires_ns).parse().ok()?;
            EventKind::TimerStart { function: 0, expires_ns: expires_ns.parse().ok()?, latest_ns }
        }
        ["fdtimer", expires_ns] => EventKind::FdTimerStart { timer: 0, expires_ns: expires_ns.parse().ok()? },
        ["fault"] => EventKind::PageFault { address: 0, in_kernel: false },
        ["disk"] => EventKind::BlockRequest,
        ["contend"] => EventKind::LockWait { lock: 0 },
        ["contended"] => EventKind::LockWaitEnd { lock: 0 },
        _ => return None,
    })
}

/// The starts of names that are recorded. All other programs of the machine are called `other`.
const NAMES: [&str; 9] =
    ["measured", "low", "mid", "holder", "worker", "replier", "swapper/", "migration/", "ksoftirqd/"];

fn task_text(task: &Task) -> String {
    let comm = task.comm.to_string();
    let known = NAMES.iter().any(|name| comm.starts_with(name));
    format!("{} {} {}", task.pid, task.priority, if known { &comm } else { "other" })
}

fn task_of(words: &[&str]) -> Option<Task> {
    let [pid, priority, comm] = words else { return None };
    Some(Task { pid: pid.parse().ok()?, priority: priority.parse().ok()?, comm: Comm::new(comm) })
}

const STATES: [(PrevState, &str); 5] = [
    (PrevState::Preempted, "R"),
    (PrevState::Sleeping, "S"),
    (PrevState::Uninterruptible, "D"),
    (PrevState::Stopped, "T"),
    (PrevState::Other, "X"),
];

fn state_text(state: PrevState) -> &'static str {
    STATES.iter().find(|(known, _)| *known == state).unwrap().1
}

fn state_of(text: &str) -> Option<PrevState> {
    Some(STATES.iter().find(|(_, known)| *known == text)?.0)
}

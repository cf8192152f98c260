//! The states of a thread over time.

use crate::{Event, EventKind, event::PrevState};

/// State of the thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ThreadState {
    /// No event shows it.
    Unknown,
    /// Asleep until its timer or something else wakes it.
    Asleep,
    /// Ready, without the CPU.
    Ready,
    /// On the CPU.
    Running,
    /// On the CPU, after a page fault.
    Faulting,
    /// Waiting for something other than its deadline, after a page fault or not.
    Waiting { fault: bool },
    /// Stopped by a signal or a debugger.
    Stopped { by: Option<StopSignal> },
}

/// A stop signal and the id of its sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StopSignal {
    pub signal: u32,
    pub by: u32,
}

/// A time interval in which the thread's state does not change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StateInterval {
    pub from_ns: u64,
    pub state: ThreadState,
    /// Its priority at the start of the interval; `None` if no event contains it.
    pub priority: Option<i32>,
    /// The wake-up that ended the interval; `None` if it is unknown, or if the interval ended otherwise.
    pub woken: Option<Waker>,
}

/// A wake-up of the thread: its time, CPU, and the thread on that CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Waker {
    pub at_ns: u64,
    pub cpu: u32,
    pub pid: u32,
}

/// Finds the states of a thread in the events of all CPUs, which are in order of time. The first interval starts at 0; each
/// lasts until the next one. `spins` is true if the thread never sleeps.
pub(super) fn intervals(events: &[&Event], pid: u32, spins: bool) -> Vec<StateInterval> {
    let mut intervals =
        vec![StateInterval { from_ns: 0, state: first_state(events, pid, spins), priority: None, woken: None }];
    let mut stop: Option<(StopSignal, bool)> = None;
    for event in events {
        let interval = intervals.last_mut().expect("there is a first interval");
        let next = match event.kind {
            EventKind::Waking { task, .. } if task.pid == pid => match interval.state {
                ThreadState::Running | ThreadState::Faulting | ThreadState::Ready => None,
                _ => {
                    interval.woken = Some(Waker { at_ns: event.at_ns, cpu: event.cpu, pid: event.pid });
                    Some(ThreadState::Ready)
                }
            },
            EventKind::Switch { to, .. } if to.pid == pid => Some(ThreadState::Running),
            EventKind::Switch { from, prev_state, .. } if from.pid == pid => Some(match prev_state {
                PrevState::Preempted => ThreadState::Ready,
                PrevState::Sleeping => ThreadState::Asleep,
                PrevState::Stopped => ThreadState::Stopped { by: stop.take().map(|(sent, _)| sent) },
                PrevState::Uninterruptible | PrevState::Other => {
                    ThreadState::Waiting { fault: interval.state == ThreadState::Faulting }
                }
            }),
            EventKind::PageFault { .. } if event.pid == pid => Some(ThreadState::Faulting),
            EventKind::Signal { signal, pid: to } if is_stop_signal(signal) => {
                // A signal to the process has another id than the thread; a signal to the thread itself is preferred.
                if to == pid || stop.is_none_or(|(_, sent_to_thread)| !sent_to_thread) {
                    stop = Some((StopSignal { signal, by: event.pid }, to == pid));
                }
                None
            }
            _ => None,
        };
        if let Some(state) = next.filter(|&state| state != interval.state) {
            let priority = priority_in(event, pid).or(interval.priority);
            intervals.push(StateInterval { from_ns: event.at_ns, state, priority, woken: None });
        }
    }
    intervals
}

/// The priority of a thread according to an event.
fn priority_in(event: &Event, pid: u32) -> Option<i32> {
    match event.kind {
        EventKind::Waking { task, .. } if task.pid == pid => Some(task.priority),
        EventKind::Switch { from, .. } if from.pid == pid => Some(from.priority),
        EventKind::Switch { to, .. } if to.pid == pid => Some(to.priority),
        _ => None,
    }
}

/// The state before the first event of the thread.
fn first_state(events: &[&Event], pid: u32, spins: bool) -> ThreadState {
    let first = events.iter().find_map(|event| match event.kind {
        EventKind::Waking { task, .. } if task.pid == pid => Some(ThreadState::Asleep),
        EventKind::Switch { from, .. } if from.pid == pid => Some(ThreadState::Running),
        EventKind::Switch { to, .. } if to.pid == pid => Some(ThreadState::Unknown),
        _ if event.pid == pid => Some(ThreadState::Running),
        _ => None,
    });
    first.unwrap_or(if spins { ThreadState::Running } else { ThreadState::Unknown })
}

/// The signals that stop a process: their numbers are the same on x86 and Arm (asm-generic/signal.h).
const STOP_SIGNALS: [(u32, &str); 4] = [(19, "SIGSTOP"), (20, "SIGTSTP"), (21, "SIGTTIN"), (22, "SIGTTOU")];

fn is_stop_signal(signal: u32) -> bool {
    STOP_SIGNALS.iter().any(|&(number, _)| number == signal)
}

/// The name of a signal that stops a process.
pub(super) fn stop_name(signal: u32) -> &'static str {
    STOP_SIGNALS.iter().find(|&&(number, _)| number == signal).map_or("a signal", |&(_, name)| name)
}

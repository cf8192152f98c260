//! What the measuring thread was at: asleep, ready, running, stopped, waiting for something else.

use super::wake_up::MeasuredThread;
use crate::{Event, EventKind, event::PrevState};

/// What the measuring thread is at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ThreadState {
    /// The events do not tell.
    Unknown,
    /// Asleep, until its timer or something else wakes it.
    Asleep,
    /// Ready to run, without the CPU.
    Ready,
    /// On the CPU.
    Running,
    /// On the CPU, after a page fault.
    Faulting,
    /// Off the CPU until something happens that is no deadline; after a page fault or not.
    Waiting { fault: bool },
    /// Stopped by a signal or a debugger.
    Stopped { by: Option<StopSignal> },
}

/// A signal, and who sent it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StopSignal {
    pub signal: u32,
    pub by: u32,
}

/// A time in which the measuring thread is at one thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StateInterval {
    pub from_ns: u64,
    pub at: ThreadState,
    /// Who ended it by making the thread ready, and when; `None` when that is not told, or was not needed.
    pub woken: Option<Waker>,
}

/// A thread that made the measuring thread ready; or it was on the CPU that did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Waker {
    pub at_ns: u64,
    pub cpu: u32,
    pub pid: u32,
}

/// Goes through the events of all CPUs, in order of time: the spells of the measuring thread from 0 on; each lasts
/// until the next, the last one for ever.
pub(super) fn intervals(events: &[&Event], measured: MeasuredThread) -> Vec<StateInterval> {
    let MeasuredThread { pid, spins, .. } = measured;
    let first = events.iter().find_map(|event| match event.kind {
        EventKind::Waking { task, .. } if task.pid == pid => Some(ThreadState::Asleep),
        EventKind::Switch { from, .. } if from.pid == pid => Some(ThreadState::Running),
        EventKind::Switch { to, .. } if to.pid == pid => Some(ThreadState::Unknown),
        _ if event.pid == pid => Some(ThreadState::Running),
        _ => None,
    });
    let before = if spins { ThreadState::Running } else { ThreadState::Unknown };
    let mut intervals = vec![StateInterval { from_ns: 0, at: first.unwrap_or(before), woken: None }];
    let mut stop: Option<(StopSignal, bool)> = None;
    for event in events {
        let interval = intervals.last_mut().expect("there is a first one");
        let next = match event.kind {
            EventKind::Waking { task, .. } if task.pid == pid => match interval.at {
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
                    ThreadState::Waiting { fault: interval.at == ThreadState::Faulting }
                }
            }),
            EventKind::PageFault { .. } if event.pid == pid => Some(ThreadState::Faulting),
            EventKind::Signal { signal, pid: to } if stops(signal) => {
                // It may be sent to the process, whose number is not the thread's; what is sent to the thread is surer.
                if to == pid || stop.is_none_or(|(_, sure)| !sure) {
                    stop = Some((StopSignal { signal, by: event.pid }, to == pid));
                }
                None
            }
            _ => None,
        };
        if let Some(at) = next.filter(|&at| at != interval.at) {
            intervals.push(StateInterval { from_ns: event.at_ns, at, woken: None });
        }
    }
    intervals
}

/// The signals that stop a process: their numbers are the same on x86 and Arm (asm-generic/signal.h).
const STOPS: [(u32, &str); 4] = [(19, "SIGSTOP"), (20, "SIGTSTP"), (21, "SIGTTIN"), (22, "SIGTTOU")];

fn stops(signal: u32) -> bool {
    STOPS.iter().any(|&(number, _)| number == signal)
}

/// The name of a signal that stops a process.
pub(super) fn stop_name(signal: u32) -> &'static str {
    STOPS.iter().find(|&&(number, _)| number == signal).map_or("a signal", |&(_, name)| name)
}

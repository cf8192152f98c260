//! Scenarios as lines of text: a time in us, then an event.
//!
//! ```text
//! runs swapper                     the thread on the CPU before the first line
//! 900.0 switch a:S->b(49)          states as in ps [R]; priority as the kernel counts [the last one given, else 120]
//! 900.0 waking probe               by the thread on the CPU
//! 900.0 irq+ 24 eth0 ... irq- 24, vec+ local_timer ... vec-, softirq+ NET_RX ... softirq-, timer+ function ... timer-
//! 900.0 raise HRTIMER
//! 900.0 idle 2 ... idle out
//! 900.0 nmi perf 12.0              ends at this time, and took 12 us
//! 900.0 irqsoff function ... irqson function, preemptoff function ... preempton function
//! 900.0 fault
//! 900.0 signal 19 probe
//! 900.0 @1 ...                     on CPU 1 instead of CPU 0
//! 900.0 lost                       events before this time are missing
//! spins                            the probe never sleeps: it did not run from the deadline to the stamp
//! device                           the probe waits for an interrupt of a device
//! slack 50.0                       timer slack of the probe
//! quota                            a CPU quota can stop the probe
//! 1000.0 deadline
//! 1060.0 stamp                     the probe reads the clock
//! 1090.0 done                      the probe has done its work
//! ```

use std::{collections::HashMap, time::Duration};

use record::Evidence;

use crate::{
    Comm, Event, EventKind, Explanation, MeasuredThread, Names, Task, WakeUp, Work,
    event::{PrevState, softirq_name},
    explain,
};

/// Id of the thread `probe`.
pub const PROBE: u32 = 10;

#[derive(Default)]
pub struct Scenario {
    pub events: Vec<Event>,
    pub names: Names,
    /// Names of functions; an address is an index plus 1.
    functions: Vec<String>,
    threads: Vec<(String, Task)>,
    has_cpu: HashMap<u32, u32>,
    pub deadline_ns: u64,
    pub woke_ns: u64,
    /// End of the probe's work, ns; 0 if it has none.
    pub done_ns: u64,
    pub complete_since_ns: u64,
    /// True if the probe never sleeps.
    pub spins: bool,
    /// True if the probe waits for an interrupt of a device.
    pub awaits_device: bool,
    /// Timer slack of the probe, ns.
    pub slack_ns: u64,
    pub has_quota: bool,
}

impl Scenario {
    pub fn of(text: &str) -> Self {
        let mut scenario = Self::default();
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
            scenario.line(line);
        }
        scenario
    }

    pub fn explain(&self) -> Explanation {
        let measured = MeasuredThread {
            pid: PROBE,
            priority: self.priority_of("probe"),
            cpu: 0,
            spins: self.spins,
            awaits_device: self.awaits_device,
            slack_ns: self.slack_ns,
            has_quota: self.has_quota,
        };
        let work = Work { ns: self.done_ns.saturating_sub(self.woke_ns), usual_ns: 0 };
        let wake_up = WakeUp { deadline_ns: self.deadline_ns, woke_ns: self.woke_ns, work };
        let symbol = |address: u64| self.functions.get(usize::try_from(address).ok()?.checked_sub(1)?).cloned();
        explain(&self.events, &self.names, &symbol, &measured, wake_up, Some(self.complete_since_ns))
    }

    fn priority_of(&self, name: &str) -> i32 {
        self.threads.iter().find(|(known, _)| known == name).map_or(120, |(_, task)| task.priority)
    }

    fn line(&mut self, line: &str) {
        let words: Vec<&str> = line.split_whitespace().collect();
        if words == ["spins"] {
            return self.spins = true;
        }
        if words == ["device"] {
            return self.awaits_device = true;
        }
        if words == ["quota"] {
            return self.has_quota = true;
        }
        if let ["slack", us] = words[..] {
            return self.slack_ns = ns(us);
        }
        if let ["runs", thread] = words[..] {
            let task = self.task(thread);
            self.has_cpu.insert(0, task.pid);
            return;
        }
        let at_ns = ns(words[0]);
        let (cpu, words) = match words[1].strip_prefix('@') {
            Some(cpu) => (cpu.parse().expect("a CPU"), &words[2..]),
            None => (0, &words[1..]),
        };
        match *words {
            ["deadline"] => self.deadline_ns = at_ns,
            ["stamp"] => self.woke_ns = at_ns,
            ["done"] => self.done_ns = at_ns,
            ["lost"] => self.complete_since_ns = at_ns,
            _ => self.event(at_ns, cpu, words),
        }
    }

    fn event(&mut self, at_ns: u64, cpu: u32, words: &[&str]) {
        let kind = self.kind(words);
        let pid = match kind {
            EventKind::Switch { from, .. } => from.pid,
            _ => self.has_cpu.get(&cpu).copied().unwrap_or(0),
        };
        if let EventKind::Switch { to, .. } = kind {
            self.has_cpu.insert(cpu, to.pid);
        }
        self.events.push(Event { at_ns, cpu, pid, kind });
    }

    fn kind(&mut self, words: &[&str]) -> EventKind {
        match *words {
            ["switch", both] => {
                let (from, to) = both.split_once("->").expect("from->to");
                let (from, prev_state) = from.split_once(':').unwrap_or((from, "R"));
                EventKind::Switch { from: self.task(from), prev_state: prev_state_of(prev_state), to: self.task(to) }
            }
            ["waking", thread] => EventKind::Waking { task: self.task(thread), target_cpu: 0 },
            ["irq+", irq, name] => EventKind::IrqEntry { irq: number(irq), name: self.names.name(name) },
            ["irq-", irq] => EventKind::IrqExit { irq: number(irq) },
            ["vec+", name] => EventKind::VectorEntry { name: self.names.name(name) },
            ["vec-", name] => EventKind::VectorExit { name: self.names.name(name) },
            ["softirq+", name] => EventKind::SoftirqEntry { vec: softirq(name) },
            ["softirq-", name] => EventKind::SoftirqExit { vec: softirq(name) },
            ["raise", name] => EventKind::SoftirqRaise { vec: softirq(name) },
            ["timer+", name] => {
                let function = self.function(name);
                EventKind::TimerEntry { timer: function + 0x1000, function }
            }
            ["timer-", name] => EventKind::TimerExit { timer: self.function(name) + 0x1000 },
            ["idle", "out"] => EventKind::Idle { state: None },
            ["idle", state] => EventKind::Idle { state: Some(number(state)) },
            ["nmi", handler, took] => EventKind::Nmi { handler: self.function(handler), took_ns: ns(took) },
            ["irqsoff", function] => EventKind::IrqsOff { caller: self.function(function) },
            ["irqson", function] => EventKind::IrqsOn { caller: self.function(function) },
            ["preemptoff", function] => EventKind::PreemptOff { caller: self.function(function) },
            ["preempton", function] => EventKind::PreemptOn { caller: self.function(function) },
            ["fault"] => EventKind::PageFault { address: 0x7f00, in_kernel: false },
            ["signal", signal, to] => EventKind::Signal { signal: number(signal), pid: self.task(to).pid },
            _ => panic!("unknown event {words:?}"),
        }
    }

    /// `name` or `name(priority)`.
    fn task(&mut self, text: &str) -> Task {
        let (name, priority) = match text.strip_suffix(')').and_then(|text| text.split_once('(')) {
            Some((name, priority)) => (name, Some(priority.parse().expect("a priority"))),
            None => (text, None),
        };
        if !self.threads.iter().any(|(known, _)| known == name) {
            let others = self.threads.iter().filter(|(_, task)| task.pid > PROBE).count();
            let others = u32::try_from(others).unwrap();
            let (pid, comm) = match name {
                "swapper" => (0, "swapper/0"),
                "probe" => (PROBE, name),
                _ => (101 + others, name),
            };
            self.threads.push((name.to_owned(), Task { pid, priority: 120, comm: Comm::new(comm) }));
        }
        let (_, task) = self.threads.iter_mut().find(|(known, _)| known == name).expect("the thread was added");
        task.priority = priority.unwrap_or(task.priority);
        *task
    }

    fn function(&mut self, name: &str) -> u64 {
        let function = self.functions.iter().position(|known| known == name).unwrap_or_else(|| {
            self.functions.push(name.to_owned());
            self.functions.len() - 1
        });
        function as u64 + 1
    }
}

fn number(text: &str) -> u32 {
    text.parse().expect("a number")
}

fn softirq(name: &str) -> u32 {
    (0..10).find(|&vec| softirq_name(vec) == name).expect("a softirq")
}

fn ns(us: &str) -> u64 {
    let time = Duration::from_secs_f64(us.parse::<f64>().expect("a time in us") / 1e6);
    u64::try_from(time.as_nanos()).unwrap()
}

fn prev_state_of(letter: &str) -> PrevState {
    match letter {
        "R" => PrevState::Preempted,
        "S" => PrevState::Sleeping,
        "D" => PrevState::Uninterruptible,
        "T" => PrevState::Stopped,
        _ => PrevState::Other,
    }
}

/// Compares the culprits of a scenario with lines `us cause`, and their sum with the lateness.
#[track_caller]
pub fn culprits(text: &str, expected: &[&str]) -> Explanation {
    let scenario = Scenario::of(text);
    let explanation = scenario.explain();
    let us = |ns: u64| ns as f64 / 1000.0;
    let lines: Vec<String> =
        explanation.culprits.iter().map(|culprit| format!("{} {}", us(culprit.ns), culprit.cause.in_full())).collect();
    assert_eq!(lines, expected, "{:#?}", explanation.timeline);
    let sum: u64 = explanation.culprits.iter().map(|culprit| culprit.ns).sum();
    assert_eq!(sum, scenario.woke_ns.max(scenario.done_ns) - scenario.deadline_ns);
    explanation
}

/// Like [`culprits`], but also asserts that the trace is complete.
#[track_caller]
pub fn complete(text: &str, expected: &[&str]) -> Explanation {
    let explanation = culprits(text, expected);
    assert_eq!(explanation.evidence, Evidence::Trace);
    explanation
}

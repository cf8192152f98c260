//! Converts our events and the output of trace-cmd to the same lines, to compare them.

use std::collections::BTreeMap;

use blame::{
    Event,
    event::{EventKind, PrevState, softirq_name},
    trace::Dat,
};

/// All events of a file, in order of time.
pub fn events(dat: &mut Dat) -> Vec<Event> {
    let mut events = Vec::new();
    for cpu in dat.cpus().collect::<Vec<_>>() {
        dat.events(cpu, &mut events).unwrap();
    }
    events.sort_by_key(|event| event.at_ns);
    events
}

/// Asserts that the file and the output of `trace-cmd report -t` contain the same events with the same fields. The
/// order of events at the same time may differ.
pub fn assert_same(dat: &Dat, events: &[Event], report: &str) {
    let count = |lines: &mut dyn Iterator<Item = String>| {
        let mut counts = BTreeMap::new();
        lines.for_each(|line| *counts.entry(line).or_insert(0) += 1);
        counts
    };
    let ours = count(&mut events.iter().map(|event| shown(dat, event)));
    // The first line contains the number of CPUs.
    let trace_cmd =
        count(&mut report.lines().filter(|line| line.contains(": ")).map(|line| reported(line).expect(line)));
    for (line, number) in &ours {
        assert_eq!(trace_cmd.get(line), Some(number), "only ours: {line}");
    }
    for line in trace_cmd.keys() {
        assert!(ours.contains_key(line), "only trace-cmd's: {line}");
    }
}

/// An event as `pid [cpu] time kind`.
pub fn shown(dat: &Dat, event: &Event) -> String {
    let name = |name| dat.names().text(name);
    let kind = match event.kind {
        EventKind::Switch { from, prev_state, to } => format!(
            "sched_switch: {}:{} [{}] {} {}:{} [{}]",
            from.comm,
            from.pid,
            from.priority,
            match prev_state {
                PrevState::Preempted => "R",
                PrevState::Sleeping => "S or I",
                PrevState::Uninterruptible => "D",
                PrevState::Stopped => "T or t",
                PrevState::Other => "another",
            },
            to.comm,
            to.pid,
            to.priority
        ),
        EventKind::Waking { task, target_cpu } => {
            format!(
                "sched_waking: comm={} pid={} prio={} target_cpu={target_cpu:03}",
                task.comm, task.pid, task.priority
            )
        }
        EventKind::IrqEntry { irq, name: device } => format!("irq_handler_entry: irq={irq} name={}", name(device)),
        EventKind::IrqExit { irq } => format!("irq_handler_exit: irq={irq}"),
        EventKind::SoftirqEntry { vec } => format!("softirq_entry: vec={vec} [action={}]", softirq_name(vec)),
        EventKind::SoftirqExit { vec } => format!("softirq_exit: vec={vec} [action={}]", softirq_name(vec)),
        EventKind::SoftirqRaise { vec } => format!("softirq_raise: vec={vec} [action={}]", softirq_name(vec)),
        EventKind::VectorEntry { name: vector } => format!("{}_entry", name(vector)),
        EventKind::VectorExit { name: vector } => format!("{}_exit", name(vector)),
        EventKind::TimerEntry { timer, function } => {
            let function = dat.symbol(function).map_or_else(|| format!("{function:#x}"), str::to_owned);
            format!("expire_entry: {timer:#x} {function}")
        }
        EventKind::TimerExit { timer } => format!("expire_exit: {timer:#x}"),
        EventKind::Idle { state } => format!("cpu_idle: state={}", state.unwrap_or(u32::MAX)),
        EventKind::PageFault { address, in_kernel: false } => format!("page_fault_user: address={address:#x}"),
        EventKind::PageFault { address, in_kernel: true } => format!("page_fault_kernel: address={address:#x}"),
        EventKind::Signal { signal, pid } => format!("signal_generate: sig={signal} pid={pid}"),
        other => panic!("no test has {other:?}"),
    };
    let (s, ns) = (event.at_ns / 1_000_000_000, event.at_ns % 1_000_000_000);
    format!("{} [{:03}] {s}.{ns:09} {kind}", event.pid, event.cpu)
}

/// Converts a line of `trace-cmd report -t`: `  comm-pid   [000] 123.456789012: name:  fields`.
fn reported(line: &str) -> Option<String> {
    let (head, rest) = line.split_once(" [")?;
    // The idle thread has no id in these lines.
    let pid = head.trim_end().rsplit_once('-').map_or("", |(_, pid)| pid);
    let (cpu, rest) = rest.split_once("] ")?;
    let (time, rest) = rest.trim_start().split_once(": ")?;
    let (name, fields) = rest.trim_start().split_once(':')?;
    Some(format!("{pid} [{cpu}] {time} {}", reported_kind(name, fields.trim())?))
}

fn reported_kind(name: &str, fields: &str) -> Option<String> {
    let words: Vec<&str> = fields.split_whitespace().collect();
    let field = |key: &str| words.iter().find_map(|word| word.strip_prefix(key)).unwrap_or_default();
    Some(match name {
        // `from:pid [prio] S ==> to:pid [prio]`; names may contain spaces.
        "sched_switch" => {
            let (from, to) = fields.split_once(" ==> ")?;
            let (from, state) = from.rsplit_once(' ')?;
            let prev_state = match state.chars().next()? {
                'R' => "R",
                // trace-cmd 3.1.6 shows I by the letter that its bit had on older kernels.
                'S' | 'I' | 'W' => "S or I",
                'D' => "D",
                'T' | 't' => "T or t",
                _ => "another",
            };
            format!("{name}: {from} {prev_state} {to}")
        }
        "irq_handler_entry" => format!("{name}: irq={} name={}", field("irq="), field("name=")),
        "irq_handler_exit" => format!("{name}: irq={}", field("irq=")),
        "hrtimer_expire_entry" | "timer_expire_entry" => {
            let timer = format!("{}{}", field("hrtimer="), field("timer="));
            // `function=tick_sched_timer/0x0`, or an address if names are hidden.
            format!("expire_entry: {timer} {}", field("function=").split(['/', '+']).next()?)
        }
        "hrtimer_expire_exit" | "timer_expire_exit" => {
            format!("expire_exit: {}{}", field("hrtimer="), field("timer="))
        }
        "cpu_idle" => format!("{name}: state={}", field("state=")),
        "page_fault_user" | "page_fault_kernel" => {
            let address = field("address=");
            format!("{name}: address={}{}", if address.starts_with("0x") { "" } else { "0x" }, address)
        }
        "signal_generate" => format!("{name}: sig={} pid={}", field("sig="), field("pid=")),
        // `comm:pid [prio] CPU:000`; decoded like `sched_waking`.
        "sched_wakeup_new" => {
            let (task, target_cpu) = fields.rsplit_once(" CPU:")?;
            let (task, priority) = task.strip_suffix(']')?.rsplit_once(" [")?;
            let (comm, pid) = task.rsplit_once(':')?;
            format!("sched_waking: comm={comm} pid={pid} prio={priority} target_cpu={target_cpu}")
        }
        "sched_waking" | "softirq_entry" | "softirq_exit" | "softirq_raise" => format!("{name}: {fields}"),
        "ipi_entry" => format!("{}_entry", fields.trim_matches(['(', ')'])),
        "ipi_exit" => format!("{}_exit", fields.trim_matches(['(', ')'])),
        vector if fields.starts_with("vector=") => vector.to_owned(),
        _ => return None,
    })
}

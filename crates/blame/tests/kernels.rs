//! Compares traces of several kernels with the output of `trace-cmd report -t` (3.1.6). The traces were recorded in
//! guests with [`Instance::write_dat`](blame::Instance::write_dat), on Debian's `PREEMPT_RT` kernels.

#![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

mod common;

use std::{fs, path::Path};

use blame::{event::EventKind, trace::Dat};
use common::{assert_same, events};

/// Reads a recorded trace and compares it with trace-cmd.
fn recorded(kernel: &str) -> (Dat, Vec<blame::Event>) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kernels");
    let mut dat = Dat::open(&folder.join(format!("{kernel}.dat"))).unwrap();
    let events = events(&mut dat);
    assert_same(&dat, &events, &fs::read_to_string(folder.join(format!("{kernel}.txt"))).unwrap());
    (dat, events)
}

fn count(events: &[blame::Event], kind: impl Fn(&EventKind) -> bool) -> usize {
    events.iter().filter(|event| kind(&event.kind)).count()
}

#[test]
fn linux_6_1_on_x86_64() {
    let (dat, events) = recorded("6.1-rt-amd64");
    let timers =
        |kind: &EventKind| matches!(kind, EventKind::VectorEntry { name } if dat.names().text(*name) == "local_timer");
    assert_eq!((events.len(), count(&events, timers)), (273, 22));
}

#[test]
fn linux_6_12_on_x86_64() {
    let (_, events) = recorded("6.12-rt-amd64");
    assert_eq!((events.len(), count(&events, |kind| matches!(kind, EventKind::Signal { .. }))), (336, 2));
}

#[test]
fn linux_6_1_on_arm64() {
    let (dat, events) = recorded("6.1-rt-arm64");
    assert_eq!(dat.cpus().collect::<Vec<_>>(), [0, 1]);
    let wanted = "Rescheduling interrupts";
    let interrupts =
        |kind: &EventKind| matches!(kind, EventKind::VectorEntry { name } if dat.names().text(*name) == wanted);
    let timers =
        |kind: &EventKind| matches!(kind, EventKind::IrqEntry { name, .. } if dat.names().text(*name) == "arch_timer");
    assert!(count(&events, interrupts) > 5, "named by the kernel's strings");
    assert!(count(&events, timers) > 20, "{}", events.len());
}

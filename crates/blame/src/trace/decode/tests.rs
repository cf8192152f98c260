//! Decodes hand-made records, at least one of each kind.

use record::Monitor;

use super::*;
use crate::event::{Comm, EventKind, PrevState, Task};

/// A format with the kernel's common fields and these ones: declaration, size, sign.
fn format(name: &str, id: u16, fields: &[(&str, usize, u8)]) -> Format {
    let mut text = format!(
        "name: {name}\nID: {id}\nformat:\n\
         \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
         \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
         \tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n\
         \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
    );
    let mut offset = 8;
    for (declaration, size, signed) in fields {
        let alignment = if declaration.starts_with("char ") { 1 } else { *size };
        offset = usize::next_multiple_of(offset, alignment);
        text += &format!("\tfield:{declaration};\toffset:{offset};\tsize:{size};\tsigned:{signed};\n");
        offset += size;
    }
    Format::parse(&(text + "\nprint fmt: \"\"\n")).unwrap()
}

/// A record of event 7 of thread 42, with these bytes after the common fields.
fn record(fields: &[&[u8]]) -> Vec<u8> {
    let common: [&[u8]; 3] = [&7_u16.to_le_bytes(), &[0, 0], &42_i32.to_le_bytes()];
    [common.concat(), fields.concat()].concat()
}

/// Decodes a record with a decoder that knows only this event. All shorter records must decode without panic.
fn decoded(system: &str, format: &Format, fields: &[&[u8]]) -> (EventKind, Names) {
    let mut decoder = Decoder::new(KernelInfo {
        code_start: 0xffff_ffff_8100_0000,
        strings: HashMap::from([(0xabc0, "Rescheduling interrupts".to_owned())]),
        timers: TimerCallbacks::default(),
    });
    assert!(decoder.add_format(system, format), "{system}:{}", format.name);
    let record = record(fields);
    let event = decoder.decode(3, 1000, &record).expect("a known event");
    assert_eq!((event.at_ns, event.cpu, event.pid), (1000, 3, 42));
    (0..8).for_each(|length| assert_eq!(decoder.decode(3, 1000, &record[..length]), None));
    let _ = (8..record.len()).map(|length| decoder.decode(3, 1000, &record[..length])).count();
    (event.kind, decoder.names().clone())
}

fn comm(name: &[u8]) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..name.len()].copy_from_slice(name);
    bytes
}

const TASK: [(&str, usize, u8); 3] = [("char comm[16]", 16, 0), ("pid_t pid", 4, 1), ("int prio", 4, 1)];

#[test]
fn decodes_both_threads_of_a_switch() {
    let format = format(
        "sched_switch",
        7,
        &[
            ("char prev_comm[16]", 16, 0),
            ("pid_t prev_pid", 4, 1),
            ("int prev_prio", 4, 1),
            ("long prev_state", 8, 1),
            ("char next_comm[16]", 16, 0),
            ("pid_t next_pid", 4, 1),
            ("int next_prio", 4, 1),
        ],
    );
    let (kind, _) = decoded(
        "sched",
        &format,
        &[
            &comm(b"irq/4-ttyS0"),
            &135_i32.to_le_bytes(),
            &49_i32.to_le_bytes(),
            &2_i64.to_le_bytes(),
            // After the NUL follows the rest of an older name.
            &comm(b"a b\0lder name"),
            &9_i32.to_le_bytes(),
            &(-1_i32).to_le_bytes(),
        ],
    );
    let from = Task { pid: 135, priority: 49, comm: Comm::new("irq/4-ttyS0") };
    let to = Task { pid: 9, priority: -1, comm: Comm::new("a b") };
    assert_eq!(kind, EventKind::Switch { from, prev_state: PrevState::Uninterruptible, to });
}

#[test]
fn cuts_thread_names_at_the_first_nul() {
    assert_eq!(fields::comm(b"0123456789abcdef"), Comm::new("0123456789abcde"));
    assert_eq!(fields::comm(b"\x80\x01\xff\x7f\0\0\0\0\0\0\0\0\0\0\0\0").0, comm(b"\x80\x01\xff\x7f"));
    assert_eq!(fields::comm(&comm(b"")), Comm::default());
    assert_eq!(fields::comm(b"short\0no"), Comm::new("short"));
}

#[test]
fn decodes_the_target_cpu_of_a_waking() {
    let format = format("sched_waking", 7, &[&TASK[..], &[("int target_cpu", 4, 1)]].concat());
    let fields: [&[u8]; 4] = [&comm(b"timer/1"), &77_i32.to_le_bytes(), &9_i32.to_le_bytes(), &1_i32.to_le_bytes()];
    let task = Task { pid: 77, priority: 9, comm: Comm::new("timer/1") };
    assert_eq!(decoded("sched", &format, &fields).0, EventKind::Waking { task, target_cpu: 1 });
}

#[test]
fn decodes_interrupt_names_in_both_locations() {
    let here = format("irq_handler_entry", 7, &[("int irq", 4, 1), ("__data_loc char[] name", 4, 0)]);
    let lead = (5_u32 << 16 | 16).to_le_bytes();
    let (kind, names) = decoded("irq", &here, &[&17_i32.to_le_bytes(), &lead, b"eth0\0\0\0\0"]);
    let EventKind::IrqEntry { irq: 17, name } = kind else { panic!("{kind:?}") };
    assert_eq!(names.text(name), "eth0");

    let relative = format("irq_handler_entry", 7, &[("int irq", 4, 1), ("__rel_data_loc char[] name", 4, 0)]);
    let (kind, names) = decoded("irq", &relative, &[&17_i32.to_le_bytes(), &(5_u32 << 16).to_le_bytes(), b"eth1\0"]);
    let EventKind::IrqEntry { irq: 17, name } = kind else { panic!("{kind:?}") };
    assert_eq!(names.text(name), "eth1");
}

#[test]
fn rejects_a_location_outside_the_record() {
    let format = format("irq_handler_entry", 7, &[("int irq", 4, 1), ("__data_loc char[] name", 4, 0)]);
    let mut decoder = Decoder::default();
    assert!(decoder.add_format("irq", &format));
    for lead in [5_u32 << 16 | 17, 0xffff_ffff, 0xffff_0000, 0xffff] {
        let record = record(&[&17_i32.to_le_bytes(), &lead.to_le_bytes(), b"eth0"]);
        assert_eq!(decoder.decode(0, 0, &record), None, "{lead:#x}");
    }
}

#[test]
fn decodes_the_reports_of_monitors() {
    // The formats are those of Linux 7.3.
    let ltl = format("error_sleep", 7, &[("__data_loc char[] comm", 4, 0), ("pid_t pid", 4, 1)]);
    let lead = (6_u32 << 16 | 16).to_le_bytes();
    let (kind, _) = decoded("rv", &ltl, &[&lead, &4711_i32.to_le_bytes(), b"servo\0\0\0"]);
    assert_eq!(kind, EventKind::MonitorReport { monitor: Monitor::Sleep, tid: 4711 });

    let strings = ["state", "event", "env"].map(|name| format!("__data_loc char[] {name}"));
    let fields: Vec<(&str, usize, u8)> =
        [("int id", 4, 1)].into_iter().chain(strings.iter().map(|text| (text.as_str(), 4, 0))).collect();
    let timed = |name, id: i32| decoded("rv", &format(name, 7, &fields), &[&id.to_le_bytes(), &[0; 12]]).0;
    assert_eq!(timed("error_env_nomiss", 4711), EventKind::MonitorReport { monitor: Monitor::Nomiss, tid: 4711 });
    assert_eq!(timed("error_env_stall", 12), EventKind::MonitorReport { monitor: Monitor::Stall, tid: 12 });
    let server = EventKind::MonitorReport { monitor: Monitor::Nomiss, tid: u32::MAX };
    assert_eq!(timed("error_env_nomiss", -1), server, "no thread has this id");

    for (name, field) in [("error_other", "pid_t pid"), ("event_sleep", "pid_t pid"), ("error_sleep", "int id")] {
        assert!(!Decoder::default().add_format("rv", &format(name, 7, &[(field, 4, 1)])), "{name}");
    }
}

#[test]
fn names_vectors_by_their_events() {
    let vector = |name| {
        let format = format(name, 7, &[("int vector", 4, 1)]);
        let (kind, names) = decoded("irq_vectors", &format, &[&236_i32.to_le_bytes()]);
        match kind {
            EventKind::VectorEntry { name } => (names.text(name).to_owned(), true),
            EventKind::VectorExit { name } => (names.text(name).to_owned(), false),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(vector("local_timer_entry"), ("local_timer".to_owned(), true));
    assert_eq!(vector("call_function_single_exit"), ("call_function_single".to_owned(), false));
    let other = format("vector_alloc", 7, &[("unsigned int irq", 4, 0)]);
    assert!(!Decoder::default().add_format("irq_vectors", &other));
}

#[test]
fn names_inter_processor_interrupts_by_strings() {
    let format = format("ipi_entry", 7, &[("const char * reason", 8, 0)]);
    for (address, expected) in [(0xabc0_u64, "Rescheduling interrupts"), (0xdead, "ipi")] {
        let (kind, names) = decoded("ipi", &format, &[&address.to_le_bytes()]);
        let EventKind::VectorEntry { name } = kind else { panic!("{kind:?}") };
        assert_eq!(names.text(name), expected);
    }
}

#[test]
fn decodes_softirqs_timers_and_other_events() {
    let vec = [("unsigned int vec", 4, 0)];
    let number: &[&[u8]] = &[&3_u32.to_le_bytes()];
    let softirq = |name| decoded("irq", &format(name, 7, &vec), number).0;
    assert_eq!(softirq("softirq_entry"), EventKind::SoftirqEntry { vec: 3 });
    assert_eq!(softirq("softirq_exit"), EventKind::SoftirqExit { vec: 3 });
    assert_eq!(softirq("softirq_raise"), EventKind::SoftirqRaise { vec: 3 });

    let exit = format("irq_handler_exit", 7, &[("int irq", 4, 1), ("int ret", 4, 1)]);
    assert_eq!(decoded("irq", &exit, &[&9_i32.to_le_bytes(), &1_i32.to_le_bytes()]).0, EventKind::IrqExit { irq: 9 });

    let (timer, function) = (0xffff_8880_0000_1000_u64, 0xffff_ffff_8123_4560_u64);
    let entry = [("void * hrtimer", 8, 0), ("s64 now", 8, 1), ("void * function", 8, 0)];
    let fields: [&[u8]; 3] = [&timer.to_le_bytes(), &[0; 8], &function.to_le_bytes()];
    let kind = decoded("timer", &format("hrtimer_expire_entry", 7, &entry), &fields).0;
    assert_eq!(kind, EventKind::TimerEntry { timer, function });
    let exit = format("timer_expire_exit", 7, &[("void * timer", 8, 0)]);
    assert_eq!(decoded("timer", &exit, &[&timer.to_le_bytes()]).0, EventKind::TimerExit { timer });

    let idle = |state: u32| {
        let format = format("cpu_idle", 7, &[("u32 state", 4, 0), ("u32 cpu_id", 4, 0)]);
        decoded("power", &format, &[&state.to_le_bytes(), &[0; 4]]).0
    };
    assert_eq!(idle(2), EventKind::Idle { state: Some(2) });
    assert_eq!(idle(u32::MAX), EventKind::Idle { state: None });

    let nmi = format("nmi_handler", 7, &[("void * handler", 8, 0), ("s64 delta_ns", 8, 1), ("int handled", 4, 1)]);
    let kind = decoded("nmi", &nmi, &[&function.to_le_bytes(), &700_i64.to_le_bytes(), &[0; 4]]).0;
    assert_eq!(kind, EventKind::Nmi { handler: function, took_ns: 700 });

    let fault = [("unsigned long address", 8, 0), ("unsigned long ip", 8, 0), ("unsigned long error_code", 8, 0)];
    let fault = |name| decoded("exceptions", &format(name, 7, &fault), &[&4096_u64.to_le_bytes(), &[0; 16]]).0;
    assert_eq!(fault("page_fault_user"), EventKind::PageFault { address: 4096, in_kernel: false });
    assert_eq!(fault("page_fault_kernel"), EventKind::PageFault { address: 4096, in_kernel: true });

    let signal = [("int sig", 4, 1), ("int errno", 4, 1), ("int code", 4, 1), TASK[0], ("pid_t pid", 4, 1)];
    let fields: [&[u8]; 4] = [&19_i32.to_le_bytes(), &[0; 8], &comm(b"victim"), &77_i32.to_le_bytes()];
    let kind = decoded("signal", &format("signal_generate", 7, &signal), &fields).0;
    assert_eq!(kind, EventKind::Signal { signal: 19, pid: 77 });
}

#[test]
fn adds_the_start_of_the_kernel_to_callers() {
    let section = |name, offset: i32| {
        let format = format(name, 7, &[("s32 caller_offs", 4, 1), ("s32 parent_offs", 4, 1)]);
        decoded("preemptirq", &format, &[&offset.to_le_bytes(), &[0; 4]]).0
    };
    assert_eq!(section("irq_disable", 0x123), EventKind::IrqsOff { caller: 0xffff_ffff_8100_0123 });
    assert_eq!(section("irq_enable", 0x123), EventKind::IrqsOn { caller: 0xffff_ffff_8100_0123 });
    // Modules may have lower addresses than the kernel.
    assert_eq!(section("preempt_disable", -0x1000), EventKind::PreemptOff { caller: 0xffff_ffff_80ff_f000 });
    assert_eq!(section("preempt_enable", 0), EventKind::PreemptOn { caller: 0xffff_ffff_8100_0000 });
}

#[test]
fn decodes_samples_of_timerlat() {
    let fields = [("unsigned int seqnum", 4, 0), ("int context", 4, 1), ("u64 timer_latency", 8, 0)];
    let format = format("timerlat", 7, &fields);
    let (kind, _) =
        decoded("ftrace", &format, &[&5_u32.to_le_bytes(), &1_i32.to_le_bytes(), &81_000_u64.to_le_bytes()]);
    assert_eq!(kind, EventKind::Timerlat { cycle: 5, context: 1, latency_ns: 81_000 });
}

#[test]
fn rejects_unknown_events_and_missing_fields() {
    let mut decoder = Decoder::default();
    assert!(!decoder.add_format("sched", &format("sched_wakeup", 7, &TASK)), "an unknown event");
    assert!(!decoder.add_format("sched", &format("sched_waking", 7, &TASK)), "no target_cpu");
    assert!(!decoder.add_format("irq", &format("softirq_entry", 7, &[("u64 vec", 8, 0)])), "a field of another size");
    assert_eq!(decoder.decode(0, 0, &record(&[&[0; 64]])), None);
    assert!(decoder.add_format("irq", &format("softirq_entry", 9, &[("unsigned int vec", 4, 0)])));
    assert_eq!(decoder.decode(0, 0, &record(&[&[0; 64]])), None, "another id");
    assert_eq!(decoder.decode(0, 0, &[]), None);
}

#[test]
fn decodes_system_calls_and_other_waits() {
    let number = |value: i64| value.to_le_bytes();
    let enter = format("sys_enter", 7, &[("long id", 8, 1), ("unsigned long args[6]", 48, 0)]);
    let arguments: Vec<[u8; 8]> = (1..=6).map(number).collect();
    let entered = decoded("raw_syscalls", &enter, &[&number(202), &[0; 32], &arguments.concat()]).0;
    assert_eq!(entered, EventKind::CallEntry { call: 202, arguments: [1, 2, 3] });
    let exit = format("sys_exit", 7, &[("long id", 8, 1), ("long ret", 8, 1)]);
    assert_eq!(decoded("raw_syscalls", &exit, &[&number(202), &number(0)]).0, EventKind::CallExit { call: 202 });
    let lock = format("contention_begin", 7, &[("void * lock_addr", 8, 0), ("unsigned int flags", 4, 0)]);
    assert_eq!(decoded("lock", &lock, &[&number(9), &[0; 4]]).0, EventKind::LockWait { lock: 9 });
    let signal = format("signal_deliver", 7, &[("int sig", 4, 1), ("unsigned long sa_handler", 8, 0)]);
    let delivered = |handler| decoded("signal", &signal, &[&10_u32.to_le_bytes(), &[0; 4], &number(handler)]).0;
    assert_eq!(delivered(1), EventKind::SignalDelivered { signal: 10, handled: false });
    assert_eq!(delivered(0x1000), EventKind::SignalDelivered { signal: 10, handled: true });
}

#[test]
fn only_timers_that_end_waits_are_decoded() {
    let fields =
        [("void * hrtimer", 8, 0), ("void * function", 8, 0), ("s64 expires", 8, 1), ("s64 softexpires", 8, 1)];
    let timer = format("hrtimer_start", 7, &fields);
    let fields =
        record(&[&5_u64.to_le_bytes(), &0xabc_u64.to_le_bytes(), &99_i64.to_le_bytes(), &77_i64.to_le_bytes()]);
    let kind = |sleep, fd| {
        let mut decoder = Decoder::default();
        decoder.set_timers(TimerCallbacks { sleep, fd });
        assert!(decoder.add_format("timer", &timer));
        decoder.decode(0, 0, &fields).map(|event| event.kind)
    };
    let started = Some(EventKind::TimerStart { function: 0xabc, expires_ns: 77, latest_ns: 99 });
    assert_eq!([None, Some(0xabc), Some(0xabd)].map(|sleep| kind(sleep, None)), [started, started, None]);
    assert_eq!(kind(Some(0xabd), Some(0xabc)), Some(EventKind::FdTimerStart { timer: 5, expires_ns: 77 }));
}

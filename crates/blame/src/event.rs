//! Trace events, independent of the kernel's record formats.

use std::{collections::HashMap, fmt};

use record::Monitor;

/// One trace event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// Time, ns on CLOCK_MONOTONIC.
    pub at_ns: u64,
    /// CPU that wrote the event.
    pub cpu: u32,
    /// Id of the thread on the CPU; 0 for idle.
    pub pid: u32,
    /// Kind of the event, with its data.
    pub kind: EventKind,
}

/// Kind of a trace event, with its data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventKind {
    /// The CPU switched from one thread to another.
    Switch {
        /// The thread that left the CPU.
        from: Task,
        /// State in which it left the CPU.
        prev_state: PrevState,
        /// The thread that got the CPU.
        to: Task,
    },
    /// A thread was made ready to run, by the thread on the CPU or by an interrupt on top of it.
    Waking {
        /// The woken thread.
        task: Task,
        /// The CPU chosen for it.
        target_cpu: u32,
    },
    /// The interrupt handler of a device began.
    IrqEntry {
        /// Interrupt number.
        irq: u32,
        /// Name of the handler, as in `/proc/interrupts`.
        name: Name,
    },
    /// The interrupt handler of a device ended.
    IrqExit {
        /// Interrupt number.
        irq: u32,
    },
    /// An interrupt of the CPU itself began: `local_timer`, `reschedule`, `call_function`, ...
    VectorEntry {
        /// Name of the event without `_entry`.
        name: Name,
    },
    /// An interrupt of the CPU itself ended.
    VectorExit {
        /// Name of the event without `_exit`.
        name: Name,
    },
    /// A softirq began.
    SoftirqEntry {
        /// Number of the softirq; see [`softirq_name`].
        vec: u32,
    },
    /// A softirq ended.
    SoftirqExit {
        /// Number of the softirq.
        vec: u32,
    },
    /// A softirq was raised.
    SoftirqRaise {
        /// Number of the softirq.
        vec: u32,
    },
    /// The handler of a non-maskable interrupt ended.
    Nmi {
        /// Address of the handler.
        handler: u64,
        /// Run time of the handler, ns.
        took_ns: u64,
    },
    /// The callback of a timer began.
    TimerEntry {
        /// Address of the timer.
        timer: u64,
        /// Address of the callback.
        function: u64,
    },
    /// The callback of a timer ended.
    TimerExit {
        /// Address of the timer.
        timer: u64,
    },
    /// The CPU entered or left an idle state.
    Idle {
        /// The entered state; `None` when the CPU leaves its state.
        state: Option<u32>,
    },
    /// Interrupts were disabled.
    IrqsOff {
        /// Address of the code that disabled them.
        caller: u64,
    },
    /// Interrupts were enabled.
    IrqsOn {
        /// Address of the code that enabled them.
        caller: u64,
    },
    /// Preemption was disabled.
    PreemptOff {
        /// Address of the code that disabled it.
        caller: u64,
    },
    /// Preemption was enabled.
    PreemptOn {
        /// Address of the code that enabled it.
        caller: u64,
    },
    /// The thread on the CPU had a page fault.
    PageFault {
        /// The address accessed.
        address: u64,
        /// True if the kernel accessed it on behalf of the thread.
        in_kernel: bool,
    },
    /// The thread on the CPU sent a signal.
    Signal {
        /// Number of the signal.
        signal: u32,
        /// Id of the receiving thread or process.
        pid: u32,
    },
    /// The thread on the CPU handles a signal now.
    SignalDelivered {
        /// Number of the signal.
        signal: u32,
        /// True if the program has a handler for it.
        handled: bool,
    },
    /// The thread on the CPU entered a system call.
    CallEntry {
        /// Number of the call.
        call: u32,
        /// Its first three arguments.
        arguments: [u64; 3],
    },
    /// The thread on the CPU returns from a system call.
    CallExit {
        /// Number of the call.
        call: u32,
    },
    /// The thread on the CPU, or an interrupt on top of it, started a high-resolution timer.
    TimerStart {
        /// Address of its callback.
        function: u64,
        /// The earliest time of its callback, ns, by the clock of the timer.
        expires_ns: i64,
        /// The latest time of its callback: later than the earliest one by the timer slack of the thread, ns.
        latest_ns: i64,
    },
    /// The thread on the CPU started the timer of a timerfd.
    FdTimerStart {
        /// Address of the timer.
        timer: u64,
        /// The time of its next expiry, ns, by the clock of the timer.
        expires_ns: i64,
    },
    /// The thread on the CPU waits for a lock of the kernel.
    LockWait {
        /// Address of the lock.
        lock: u64,
    },
    /// The wait of the thread on the CPU for a lock of the kernel ended.
    LockWaitEnd {
        /// Address of the lock.
        lock: u64,
    },
    /// The thread on the CPU submitted a request to a block device.
    BlockRequest,
    /// The thread on the CPU is at a mark of its program.
    Mark {
        /// True at the start of a cycle, false at its end.
        begins: bool,
    },
    /// The thread on the CPU created a thread or process.
    Fork {
        /// Id of the new thread.
        child: u32,
    },
    /// The process on the CPU executes another program now.
    Exec,
    /// The thread on the CPU is about to exit.
    Exit,
    /// A runtime verification monitor of the kernel found that a thread broke its rule. The thread on the CPU may be
    /// another one.
    MonitorReport {
        /// The monitor.
        monitor: Monitor,
        /// Id of the thread that broke the rule.
        tid: u32,
    },
    /// A sample of the kernel's timerlat tracer.
    Timerlat {
        /// Number of the timerlat cycle.
        cycle: u32,
        /// 0 in the interrupt, 1 in the thread, 2 after the return to user space.
        context: u32,
        /// Latency since the deadline, ns.
        latency_ns: u64,
    },
}

/// State of a thread when it left the CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PrevState {
    /// Runnable: it was preempted.
    Preempted,
    /// Interruptible sleep.
    Sleeping,
    /// Uninterruptible sleep, e.g. until a page or a device is ready.
    Uninterruptible,
    /// Stopped by a signal or a debugger.
    Stopped,
    /// Dead, or any other state.
    Other,
}

/// A thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Task {
    /// Thread id; 0 for idle.
    pub pid: u32,
    /// Priority as the kernel counts: -1 deadline, 0 to 98 real-time (99 minus the number), 100 to 139 ordinary.
    pub priority: i32,
    /// Name of its command.
    pub comm: Comm,
}

/// Name of a command: at most 15 bytes, padded with NULs to 16, as in the kernel.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Comm(pub [u8; 16]);

impl Comm {
    /// Takes the first 15 bytes of a text, as the kernel does.
    #[must_use]
    pub fn new(text: &str) -> Self {
        let mut bytes = [0; 16];
        let length = text.len().min(15);
        bytes[..length].copy_from_slice(&text.as_bytes()[..length]);
        Self(bytes)
    }
}

impl fmt::Display for Comm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = self.0.iter().position(|&byte| byte == 0).unwrap_or(self.0.len());
        f.write_str(&String::from_utf8_lossy(&self.0[..end]))
    }
}

impl fmt::Debug for Comm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.to_string())
    }
}

/// A name stored in a [`Names`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name(u32);

/// Stores each distinct name once.
#[derive(Debug, Clone, Default)]
pub struct Names {
    texts: Vec<Box<str>>,
    of: HashMap<Box<str>, Name>,
}

impl Names {
    /// Returns the name for a text, and stores the text if it is new.
    pub fn name(&mut self, text: &str) -> Name {
        if let Some(&name) = self.of.get(text) {
            return name;
        }
        let name = Name(u32::try_from(self.texts.len()).expect("fewer than 2^32 names"));
        self.texts.push(text.into());
        self.of.insert(text.into(), name);
        name
    }

    /// Returns the text of a name from this store.
    #[must_use]
    pub fn text(&self, name: Name) -> &str {
        self.texts.get(name.0 as usize).map_or("?", |text| text)
    }
}

/// The kernel's names of softirqs, by number (include/linux/interrupt.h).
const SOFTIRQS: [&str; 10] =
    ["HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU"];

/// Returns the kernel's name of a softirq.
#[must_use]
pub fn softirq_name(vec: u32) -> &'static str {
    SOFTIRQS.get(vec as usize).copied().unwrap_or("?")
}

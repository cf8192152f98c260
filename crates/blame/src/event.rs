//! What happened on a CPU, in our words: the one form between the kernel's trace and whoever explains it.

use std::{collections::HashMap, fmt};

/// One trace event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// When, ns on CLOCK_MONOTONIC.
    pub at_ns: u64,
    /// On which CPU.
    pub cpu: u32,
    /// Process id of the thread that had the CPU; 0 for idle.
    pub pid: u32,
    /// What.
    pub what: What,
}

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// The CPU went from one thread to another.
    Switch {
        /// The thread that had it.
        from: Task,
        /// Why it gave it up.
        left: Left,
        /// The thread that has it now.
        to: Task,
    },
    /// A thread was made ready to run; the thread that had the CPU, or an interrupt in it, did that.
    Waking {
        /// The thread.
        task: Task,
        /// The CPU that it is to run on.
        target_cpu: u32,
    },
    /// A device's interrupt handler began.
    IrqEntry {
        /// Number of the interrupt.
        irq: u32,
        /// Name of the handler, as in `/proc/interrupts`.
        name: Name,
    },
    /// A device's interrupt handler ended.
    IrqExit {
        /// Number of the interrupt.
        irq: u32,
    },
    /// A CPU's own interrupt began: `local_timer`, `reschedule`, `call_function`, ...
    VectorEntry {
        /// Its name without `_entry`.
        name: Name,
    },
    /// A CPU's own interrupt ended.
    VectorExit {
        /// Its name without `_exit`.
        name: Name,
    },
    /// A softirq began.
    SoftirqEntry {
        /// Its number; [`softirq_name`] has the name.
        vec: u32,
    },
    /// A softirq ended.
    SoftirqExit {
        /// Its number.
        vec: u32,
    },
    /// A softirq was asked for.
    SoftirqRaise {
        /// Its number.
        vec: u32,
    },
    /// A non-maskable interrupt's handler ended.
    Nmi {
        /// Address of the handler.
        handler: u64,
        /// How long it took, ns.
        took_ns: u64,
    },
    /// A timer's callback began.
    TimerEntry {
        /// Address of the timer.
        timer: u64,
        /// Address of the callback.
        function: u64,
    },
    /// A timer's callback ended.
    TimerExit {
        /// Address of the timer.
        timer: u64,
    },
    /// The CPU went into an idle state, or out of it.
    Idle {
        /// The state; `None` on the way out.
        state: Option<u32>,
    },
    /// Interrupts were turned off.
    IrqsOff {
        /// Address of the place that did it.
        caller: u64,
    },
    /// Interrupts were turned on.
    IrqsOn {
        /// Address of the place that did it.
        caller: u64,
    },
    /// Preemption was turned off.
    PreemptOff {
        /// Address of the place that did it.
        caller: u64,
    },
    /// Preemption was turned on.
    PreemptOn {
        /// Address of the place that did it.
        caller: u64,
    },
    /// The thread on the CPU met a page fault.
    PageFault {
        /// Address it wanted.
        address: u64,
        /// Whether the kernel wanted it, on the thread's behalf.
        in_kernel: bool,
    },
    /// A signal was sent by the thread that had the CPU.
    Signal {
        /// Its number.
        signal: u32,
        /// The thread that it was sent to.
        pid: u32,
    },
    /// The thread on the CPU made another one, or a process.
    Fork {
        /// Process id of the new thread.
        child: u32,
    },
    /// The thread on the CPU is about to end.
    Exit,
    /// A sample of the kernel's timerlat tracer.
    Timerlat {
        /// Number of the cycle.
        cycle: u32,
        /// 0 in the interrupt, 1 in the thread, 2 back in user space.
        context: u32,
        /// Latency since the deadline, ns.
        latency_ns: u64,
    },
}

/// Why a thread gave up its CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Left {
    /// It was preempted: it would have run on.
    Preempted,
    /// It sleeps until something happens.
    Sleeping,
    /// It sleeps and takes no signals: a page is read, a device is waited for.
    Uninterruptible,
    /// A signal stopped it, or a debugger.
    Stopped,
    /// It ended, or is in another state.
    Other,
}

/// A thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Task {
    /// Process id of the thread; 0 for idle.
    pub pid: u32,
    /// Priority as the kernel counts: -1 deadline, 0 to 98 real-time (99 minus it), 100 to 139 ordinary.
    pub priority: i32,
    /// Name of its command.
    pub comm: Comm,
}

/// Name of a command: at most 15 bytes, NUL-filled to 16, as the kernel keeps it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Comm(pub [u8; 16]);

impl Comm {
    /// A name from text; what is beyond 15 bytes is cut off, as the kernel does.
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

/// A name in a [`Names`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name(u32);

/// Names that occur again and again, kept once.
#[derive(Debug, Clone, Default)]
pub struct Names {
    texts: Vec<Box<str>>,
    of: HashMap<Box<str>, Name>,
}

impl Names {
    /// The name that stands for this text.
    pub fn name(&mut self, text: &str) -> Name {
        if let Some(&name) = self.of.get(text) {
            return name;
        }
        let name = Name(self.texts.len() as u32);
        self.texts.push(text.into());
        self.of.insert(text.into(), name);
        name
    }

    /// The text of a name that this made.
    #[must_use]
    pub fn text(&self, name: Name) -> &str {
        self.texts.get(name.0 as usize).map_or("?", |text| text)
    }
}

/// The kernel's names of softirqs, by number (include/linux/interrupt.h).
const SOFTIRQS: [&str; 10] =
    ["HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU"];

/// The kernel's name of a softirq.
#[must_use]
pub fn softirq_name(vec: u32) -> &'static str {
    SOFTIRQS.get(vec as usize).copied().unwrap_or("?")
}

//! The sections with interrupts or preemption off on one CPU, without the interference in them.

use crate::{Comm, EventKind};

/// The longest sections.
#[derive(Debug, Default)]
pub struct Sections {
    irqs_off: bool,
    preempt_off: bool,
    /// True while the idle thread waits for an interrupt.
    idles: bool,
    open: Option<Section>,
    /// True if the scheduler has switched threads in the open section.
    switched: bool,
    /// The longest section without a switch (POID of the paper).
    pub longest: Section,
    /// The longest time from the start of a section to the switch in it, ns (PSD).
    pub before_switch_ns: u64,
    /// The longest time from a switch to the end of its section, ns (DST).
    pub after_switch_ns: u64,
}

/// One section.
#[derive(Debug, Clone, Copy, Default)]
pub struct Section {
    /// Length without interference, ns.
    pub ns: u64,
    /// True if interrupts were off at its start, false if only preemption was.
    pub irqs: bool,
    /// Address of the code that turned them off.
    pub caller: u64,
    /// The thread on the CPU.
    pub thread: Comm,
}

impl Sections {
    /// True inside a section.
    pub fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Adds time without interference to the open section.
    pub fn charge(&mut self, ns: u64) {
        if let Some(open) = &mut self.open {
            open.ns += ns;
        }
    }

    /// Takes an event of the CPU, on which `thread` runs.
    pub fn take(&mut self, kind: &EventKind, thread: Comm) {
        match *kind {
            EventKind::IrqsOff { caller } => {
                self.irqs_off = true;
                self.open(Section { irqs: true, caller, thread, ns: 0 });
            }
            EventKind::PreemptOff { caller } => {
                self.preempt_off = true;
                self.open(Section { irqs: false, caller, thread, ns: 0 });
            }
            EventKind::IrqsOn { .. } => {
                self.irqs_off = false;
                self.close_if_all_on();
            }
            EventKind::PreemptOn { .. } => {
                self.preempt_off = false;
                self.close_if_all_on();
            }
            EventKind::Switch { .. } => self.switch(),
            // The idle thread waits with interrupts and preemption off, but an interrupt ends its wait.
            EventKind::Idle { state: Some(_) } => {
                self.close();
                self.idles = true;
            }
            EventKind::Idle { state: None } => {
                self.idles = false;
                self.open(Section { irqs: false, caller: 0, thread, ns: 0 });
            }
            _ => {}
        }
    }

    fn open(&mut self, section: Section) {
        if self.open.is_none() && !self.idles {
            (self.open, self.switched) = (Some(section), false);
        }
    }

    fn close_if_all_on(&mut self) {
        if !self.irqs_off && !self.preempt_off {
            self.close();
        }
    }

    fn close(&mut self) {
        let Some(section) = self.open.take() else { return };
        if self.switched {
            self.after_switch_ns = self.after_switch_ns.max(section.ns);
        } else if section.ns > self.longest.ns {
            self.longest = section;
        }
    }

    fn switch(&mut self) {
        self.idles = false;
        if let Some(section) = &mut self.open {
            self.before_switch_ns = self.before_switch_ns.max(section.ns);
            if self.switched {
                self.after_switch_ns = self.after_switch_ns.max(section.ns);
            }
            (section.ns, self.switched) = (0, true);
        }
    }
}

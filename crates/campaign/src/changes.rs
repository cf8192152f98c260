//! All changes that a run makes on the machine: guards in one list, undone in reverse order.
//!
//! Each guard writes its change to the journal before it makes it, so `punctual restore` can undo it after a crash.

use blame::Timerlat;
use machine::{AwakeHold, IrqPriorityHold, MonitorHold, NicHold, SamplesHold, SettingsWatch, Shield, tune::Tuning};
use record::Record;

use crate::shielded;

/// The changes of a run. They are made from the last field to the first, and undone from the first to the last, also if the
/// run fails: Rust drops fields in their order.
#[derive(Debug, Default)]
pub struct Changes {
    /// Priority of the threads that serve a network interface.
    pub irq_priority: Option<IrqPriorityHold>,
    /// Settings of an industrial I/O device.
    pub samples: Option<SamplesHold>,
    /// Settings of a network interface.
    pub nic: Option<NicHold>,
    /// CPUs that are kept out of their idle states.
    pub awake: Option<AwakeHold>,
    /// The kernel's timerlat tracer.
    pub timerlat: Option<Timerlat>,
    /// Settings of the machine that the user named.
    pub tuning: Option<Tuning>,
    /// CPUs that are kept free of other work.
    pub shield: Option<Shield>,
    /// The kernel's monitors of rules for real-time threads.
    pub monitors: Option<MonitorHold>,
}

impl Changes {
    /// The method that keeps the CPUs awake; `None` if they are not kept awake.
    pub fn how_awake(&self) -> Option<String> {
        self.awake.as_ref().map(|hold| hold.method().to_owned())
    }

    /// Watches of the settings that a run asked for. The shield has its own, and monitors are checked at the end.
    pub fn watches(&self) -> Vec<SettingsWatch> {
        let of_interface =
            [self.irq_priority.as_ref().map(IrqPriorityHold::watch), self.nic.as_ref().map(NicHold::watch)];
        let others = [
            self.samples.as_ref().map(SamplesHold::watch),
            self.awake.as_ref().and_then(AwakeHold::watch),
            self.tuning.as_ref().map(Tuning::watch),
        ];
        of_interface.into_iter().chain(others).flatten().collect()
    }

    /// Undoes all changes. Adds the settings that were applied, and all failures to undo, to the record.
    pub fn undo(self, record: &mut Record) {
        let Self { irq_priority, samples, nic, awake, timerlat, tuning, shield, monitors } = self;
        record.settings.extend(irq_priority.into_iter().flat_map(IrqPriorityHold::release));
        record.settings.extend(samples.into_iter().flat_map(SamplesHold::release));
        record.settings.extend(nic.into_iter().flat_map(NicHold::release));
        record.settings.extend(awake.into_iter().flat_map(AwakeHold::release));
        drop(timerlat);
        record.settings.extend(tuning.into_iter().flat_map(Tuning::release));
        if let Some(shield) = shield {
            shielded::release(record, shield);
        }
        record.settings.extend(monitors.into_iter().flat_map(MonitorHold::release));
    }
}

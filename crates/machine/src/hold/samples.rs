//! Lets the buffer of an industrial I/O device take stamped samples for a run, and puts its settings back afterwards, also
//! after a crash.

use std::{fs::OpenOptions, io, rc::Rc};

use record::Setting;
use thiserror::Error;

use super::SettingsWatch;
use crate::{
    Root, iio,
    journal::{Journal, JournalError, Purpose, Undo},
    root::Unreadable,
    system_ops::SystemOps,
};

/// Samples that the buffer keeps, unless it is set to more already.
const KEPT: u32 = 128;

/// Error: the buffer of a device cannot be used.
#[derive(Debug, Error)]
pub enum SamplesError {
    /// There is no such device.
    #[error("no {device}: this machine has {known}")]
    Absent {
        /// The device.
        device: String,
        /// The devices that exist.
        known: String,
    },
    /// Samples have no time stamp.
    #[error("{0} has no buffer whose samples have a time stamp: choose another source")]
    NoStamp(String),
    /// Somebody else uses the buffer.
    #[error("{device} is in use ({how}): end the program that uses it, such as iiod")]
    InUse {
        /// The device.
        device: String,
        /// The sign of that.
        how: &'static str,
    },
    /// There is no such trigger.
    #[error("no trigger `{trigger}`: this machine has {known}")]
    NoTrigger {
        /// The requested trigger.
        trigger: String,
        /// The triggers that exist.
        known: String,
    },
    /// The device has no trigger, which it needs.
    #[error("{device} has no trigger: choose one with iio:N/TRIGGER; this machine has {known}")]
    NeedsTrigger {
        /// The device.
        device: String,
        /// The triggers that exist.
        known: String,
    },
    /// The kernel refused a setting.
    #[error("cannot write `{value}` to /{path} ({source}): {remedy}")]
    Refused {
        /// The file.
        path: String,
        /// The value.
        value: String,
        /// The kernel's error.
        source: io::Error,
        /// Advice.
        remedy: &'static str,
    },
    /// The journal could not be written.
    #[error(transparent)]
    Journal(#[from] JournalError),
}

/// A buffer that takes samples, until released or dropped; after SIGKILL the journal puts its settings back.
#[derive(Debug)]
pub struct SamplesHold {
    journal: Journal,
    settings: Vec<Held>,
}

/// A setting of the device.
#[derive(Debug, Clone)]
struct Held {
    path: String,
    before: String,
    during: String,
}

impl SamplesHold {
    /// Lets a device, `iio:device0`, take samples with a stamp of CLOCK_MONOTONIC, one at a time, with this trigger or the
    /// one that it has.
    ///
    /// # Errors
    /// [`SamplesError`]; nothing stays changed then.
    pub fn take(root: &Root, device: &str, trigger: Option<&str>) -> Result<Self, SamplesError> {
        let ops: Rc<dyn SystemOps> = Rc::new(root.clone());
        Self::take_with(&ops, device, trigger)
    }

    fn take_with(ops: &Rc<dyn SystemOps>, device: &str, trigger: Option<&str>) -> Result<Self, SamplesError> {
        let settings = planned(ops.root(), device, trigger)?;
        let mut journal = Journal::begin(Rc::clone(ops), Purpose::Samples)?;
        journal.record(settings.iter().map(|held| Undo::File {
            path: held.path.clone(),
            before: held.before.clone(),
            during: held.during.clone(),
        }))?;
        // Dropped after an error, which undoes the changes.
        let hold = Self { journal, settings };
        for held in &hold.settings {
            ops.write(&held.path, &held.during).map_err(|source| refused(ops.root(), device, held, source))?;
            let taken = ops.root().read(&held.path).unwrap_or_default();
            if taken != held.during {
                let source = io::Error::other(format!("the driver set `{taken}` instead"));
                return Err(refused(ops.root(), device, held, source));
            }
        }
        Ok(hold)
    }

    /// Begins to watch for changes by others.
    #[must_use]
    pub fn watch(&self) -> SettingsWatch {
        SettingsWatch::start(&self.journal)
    }

    /// Undoes all changes. Returns each setting with its values before, during and after.
    #[must_use]
    pub fn release(mut self) -> Vec<Setting> {
        self.journal.restore();
        let root = self.journal.ops().root().clone();
        let setting = |held: Held| Setting {
            name: format!("/{}", held.path),
            after: root.read(&held.path),
            before: held.before,
            during: held.during,
        };
        self.settings.into_iter().map(setting).collect()
    }
}

/// The settings to change, in this order: the buffer is turned on last. They are undone in reverse order.
fn planned(root: &Root, device: &str, trigger: Option<&str>) -> Result<Vec<Held>, SamplesError> {
    let folder = iio::folder(device);
    if !root.exists(&folder) {
        let known: Vec<String> = iio::devices(root).into_iter().map(|(name, _)| name).collect();
        let known = if known.is_empty() { "no device with a buffer".to_owned() } else { known.join(", ") };
        return Err(SamplesError::Absent { device: device.to_owned(), known });
    }
    let elements = iio::elements(root, device).unwrap_or_default();
    if !elements.iter().any(|element| element.name == iio::STAMP) {
        return Err(SamplesError::NoStamp(device.to_owned()));
    }
    let is_open = OpenOptions::new().read(true).open(root.path(&format!("dev/{device}")));
    if is_open.is_err_and(|error| error.kind() == io::ErrorKind::ResourceBusy) {
        return Err(SamplesError::InUse { device: device.to_owned(), how: "another program has it open" });
    }
    if root.read(&format!("{folder}/buffer/enable")).as_deref() != Some("0") {
        return Err(SamplesError::InUse { device: device.to_owned(), how: "its buffer is enabled" });
    }
    if let Some(trigger) = trigger.filter(|trigger| !iio::triggers(root).iter().any(|known| known == trigger)) {
        return Err(SamplesError::NoTrigger { trigger: trigger.to_owned(), known: known_triggers(root) });
    }
    let element = |name: &str| (format!("scan_elements/in_{name}_en"), "1".to_owned());
    // The kernel needs an element in addition to the time stamp.
    let has_data = elements.iter().any(|element| element.is_on && element.name != iio::STAMP);
    let first = elements.iter().find(|element| element.name != iio::STAMP).filter(|_| !has_data);
    let kept = root.number::<u32>(&format!("{folder}/buffer/length")).unwrap_or(0).max(KEPT);
    let wanted = [
        trigger.map(|trigger| ("trigger/current_trigger".to_owned(), trigger.to_owned())),
        Some(("current_timestamp_clock".to_owned(), "monotonic".to_owned())),
        Some(element(iio::STAMP)),
        first.map(|first| element(&first.name)),
        Some(("buffer/length".to_owned(), kept.to_string())),
        Some(("buffer/watermark".to_owned(), "1".to_owned())),
        Some(("buffer/enable".to_owned(), "1".to_owned())),
    ];
    let change = |(file, during): (String, String)| {
        let path = format!("{folder}/{file}");
        match root.try_read(&path) {
            Ok(before) => Ok((before != during).then_some(Held { path, before, during })),
            // Kernels before 4.2, which report each sample.
            Err(Unreadable::Absent) if path.ends_with("/watermark") => Ok(None),
            Err(error) => {
                let held = Held { path, before: String::new(), during };
                Err(refused(root, device, &held, io::Error::other(error)))
            }
        }
    };
    wanted.into_iter().flatten().filter_map(|setting| change(setting).transpose()).collect()
}

fn known_triggers(root: &Root) -> String {
    let known = iio::triggers(root);
    if known.is_empty() { "none, see `modprobe iio-trig-hrtimer`".to_owned() } else { known.join(", ") }
}

fn refused(root: &Root, device: &str, held: &Held, source: io::Error) -> SamplesError {
    let trigger = root.read(&format!("{}/trigger/current_trigger", iio::folder(device)));
    let turns_on = held.path.ends_with("/buffer/enable");
    if turns_on && source.kind() == io::ErrorKind::InvalidInput && trigger.as_deref() == Some("") {
        return SamplesError::NeedsTrigger { device: device.to_owned(), known: known_triggers(root) };
    }
    let remedy = match source.kind() {
        io::ErrorKind::PermissionDenied => "run as root",
        io::ErrorKind::ResourceBusy => "end the program that uses the device, such as iiod",
        _ => "its driver does not support this; see `dmesg`",
    };
    SamplesError::Refused { path: held.path.clone(), value: held.during.clone(), source, remedy }
}

#[cfg(test)]
mod tests;

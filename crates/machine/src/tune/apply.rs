//! Applies settings: for a run, which undoes them, or until the user reverts them.
//!
//! Each setting is written to the journal, then changed, then read back. If the kernel refuses a part of it, or stores
//! another value, the whole setting is undone and reported, and the others stay.

use std::{
    fs::{self, File, TryLockError},
    io,
    os::unix::fs::OpenOptionsExt,
    path::PathBuf,
    rc::Rc,
    sync::Arc,
};

use rustix::{fs::OFlags, io::Errno};
use serde::Serialize;
use thiserror::Error;

use super::{
    Refusal, Setting, Target, Write, ops_of,
    programs::{self, Stayed},
};
use crate::{
    Root, SettingsWatch,
    journal::{self, Journal, JournalError, Purpose, RestoreError, Restored, Undo},
    netns,
    nic::Thread,
    system_ops::SystemOps,
    tasks,
};

/// The file whose lock belongs to the process that tunes this machine.
const LOCK: &str = "tune.lock";

/// Error: nothing was changed.
#[derive(Debug, Error)]
pub enum TuneError {
    /// Another process changes settings now.
    #[error(
        "another `punctual tune`, e.g. a search with --prove, or a run with --setting or --shield changes settings of this machine \
         now: wait until it has ended, or stop it"
    )]
    Busy,
    /// An earlier journal cannot be used, so present values may not be those of the user.
    #[error(
        "cannot use the journal {} ({reason}), which should contain the values before an earlier change: set back by \
         hand what it still names, remove it with `sudo rm {}`, and run again",
        path.display(),
        record::shell::command(&[&*path.to_string_lossy()])
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// The journal could not be written.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The lock could not be taken.
    #[error(
        "cannot lock {} ({source}), so that only one process changes settings: {}",
        path.display(),
        journal::remedy(source)
    )]
    Lock {
        /// The file.
        path: PathBuf,
        /// The kernel's error.
        source: io::Error,
    },
    /// The journals could not be undone.
    #[error(transparent)]
    Restore(#[from] RestoreError),
}

/// A setting that was not changed, or a part of one that the kernel refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Refused {
    /// The id of the setting.
    pub id: &'static str,
    /// The reason.
    pub reason: String,
    /// True if nothing of the setting was changed; false if the rest of it is in force.
    pub is_whole: bool,
    /// True if the drivers keep all that would change, such as the interrupts that they manage.
    pub is_by_drivers: bool,
}

/// Settings that were changed until this is released or dropped. After SIGKILL the journal undoes them. Only one process of
/// a machine has one.
#[derive(Debug)]
pub struct Tuning {
    journal: Journal,
    applied: Vec<Setting>,
    refused: Vec<Refused>,
    _lock: Lock,
}

/// Applies settings for a run, in their order.
///
/// # Errors
/// [`TuneError`]; nothing is changed then. A setting that the kernel refuses is in [`Tuning::refused`].
pub fn apply(root: &Root, settings: &[Setting]) -> Result<Tuning, TuneError> {
    Lock::take(root)?.apply(root, settings)
}

#[cfg(test)]
pub(super) fn apply_with(ops: Rc<dyn SystemOps>, settings: &[Setting]) -> Result<Tuning, TuneError> {
    apply_locked(Lock::take(ops.root())?, ops, settings)
}

pub(super) fn apply_locked(lock: Lock, ops: Rc<dyn SystemOps>, settings: &[Setting]) -> Result<Tuning, TuneError> {
    check_journals(ops.root())?;
    let journal = Journal::begin(ops, Purpose::Tuning)?;
    let mut tuning = Tuning { journal, applied: Vec::new(), refused: Vec::new(), _lock: lock };
    (tuning.applied, tuning.refused) = apply_each(&mut tuning.journal, settings)?;
    Ok(tuning)
}

impl Tuning {
    /// The settings in force: the changed ones, and the ones that had their value before.
    #[must_use]
    pub fn applied(&self) -> &[Setting] {
        &self.applied
    }

    /// The settings, or parts of settings, that were not changed.
    #[must_use]
    pub fn refused(&self) -> &[Refused] {
        &self.refused
    }

    /// Begins to watch for changes by others.
    #[must_use]
    pub fn watch(&self) -> SettingsWatch {
        SettingsWatch::start(&self.journal)
    }

    /// Undoes all changes in reverse order. Returns each setting with its values before, during and after; settings of
    /// several files have one for each pair of values.
    #[must_use]
    pub fn release(mut self) -> Vec<record::Setting> {
        self.journal.restore();
        let ops = self.journal.ops();
        self.applied.iter().flat_map(|setting| in_record(&*ops, setting)).collect()
    }
}

/// A setting as the record contains it.
fn in_record(ops: &dyn SystemOps, setting: &Setting) -> Vec<record::Setting> {
    let mut pairs: Vec<(&str, &str)> = Vec::new();
    for write in &setting.writes {
        let pair = (&*write.from, &*write.to);
        if !pairs.contains(&pair) {
            pairs.push(pair);
        }
    }
    let of_pair = |(from, to): (&str, &str)| {
        let writes: Vec<&Write> =
            setting.writes.iter().filter(|write| (&*write.from, &*write.to) == (from, to)).collect();
        let name = match writes.len() {
            1 => format!("{} {}", setting.id, writes[0].target),
            count => format!("{} ({count} values)", setting.id),
        };
        let now: Vec<Option<String>> = writes.iter().map(|write| value(ops, &write.target)).collect();
        // One that is not as before is the one to report.
        let after = now.iter().find(|now| now.as_deref() != Some(from)).or(now.first()).cloned().flatten();
        record::Setting { name, before: from.to_owned(), during: to.to_owned(), after }
    };
    pairs.into_iter().map(of_pair).collect()
}

/// The result of applying settings until the user reverts them.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Kept {
    /// The settings that were changed.
    pub applied: Vec<Setting>,
    /// The settings, or parts of settings, that were not changed.
    pub refused: Vec<Refused>,
}

/// Applies settings until the user reverts them ([`revert`]), or until the next boot. Settings that were kept before stay.
///
/// # Errors
/// [`TuneError`]; nothing is changed then.
pub fn keep(root: &Root, settings: &[Setting]) -> Result<Kept, TuneError> {
    Lock::take(root)?.keep(root, settings)
}

#[cfg(test)]
pub(super) fn keep_with(ops: Rc<dyn SystemOps>, settings: &[Setting]) -> Result<Kept, TuneError> {
    let _lock = Lock::take(ops.root())?;
    keep_locked(ops, settings)
}

fn keep_locked(ops: Rc<dyn SystemOps>, settings: &[Setting]) -> Result<Kept, TuneError> {
    check_journals(ops.root())?;
    let mut journal = Journal::begin(ops, Purpose::KeptTuning)?;
    // The earlier changes come first in the one journal, so that reverting undoes the later ones before them.
    let earlier = journal.others();
    let undo: Vec<Undo> = earlier.iter().flat_map(|(_, undo)| undo.iter().cloned()).collect();
    if !undo.is_empty() {
        journal.record(undo)?;
        for (path, _) in earlier {
            // One that remains changes nothing: its entries are undone with this journal, or by others.
            let _ = fs::remove_file(path);
        }
    }
    let result = apply_each(&mut journal, settings);
    // After a failure of the journal, too, the earlier changes remain in force and in it.
    journal.keep();
    let (applied, refused) = result?;
    Ok(Kept { applied, refused })
}

/// Undoes the settings that the user keeps, and those of killed runs. Values that others have changed since are kept.
///
/// # Errors
/// [`TuneError`]; nothing is changed then.
pub fn revert(root: &Root) -> Result<Vec<Restored>, TuneError> {
    let _lock = Lock::take(root)?;
    // A shield of a killed run has moved what the settings had moved before.
    let undone = [Purpose::Shield, Purpose::Tuning, Purpose::KeptTuning, Purpose::KeptFiles];
    Ok(journal::restore_purposes(root, &undone)?)
}

#[cfg(test)]
pub(super) fn revert_with(ops: &dyn SystemOps) -> Result<Vec<Restored>, TuneError> {
    let _lock = Lock::take(ops.root())?;
    let is_meant = |purpose| matches!(purpose, Purpose::Tuning | Purpose::KeptTuning);
    Ok(journal::restore_each(ops, is_meant)?)
}

/// Refuses to change settings on top of changes whose journal cannot be used.
///
/// # Errors
/// [`TuneError::Damaged`].
pub fn check_journals(root: &Root) -> Result<(), TuneError> {
    match journal::damaged(root) {
        Some((path, reason)) => Err(TuneError::Damaged { path, reason }),
        None => Ok(()),
    }
}

/// The number of values that kept settings have changed on this machine.
#[must_use]
pub fn in_force(root: &Root) -> usize {
    journal::entries_of(root, Purpose::KeptTuning)
}

/// The first value that is no longer as it was when the settings were planned, in words; `None` if all are.
#[must_use]
pub fn changed_since(root: &Root, settings: &[Setting]) -> Option<String> {
    let ops = ops_of(root);
    let mut writes = settings.iter().flat_map(Setting::changes);
    let changed = writes.find_map(|write| {
        let now = value(&*ops, &write.target);
        (now.as_deref() != Some(&*write.from)).then_some((write, now))
    });
    changed.map(|(write, now)| {
        let now = now.unwrap_or_else(|| "gone".to_owned());
        format!("{} was {} and is {now}", write.target, write.from)
    })
}

/// Applies each setting. A refused one leaves nothing changed.
fn apply_each(journal: &mut Journal, settings: &[Setting]) -> Result<(Vec<Setting>, Vec<Refused>), JournalError> {
    let (mut applied, mut refused) = (Vec::new(), Vec::new());
    for setting in settings {
        match apply_one(journal, setting)? {
            Ok((done, part)) => {
                applied.push(done);
                refused.extend(part);
            }
            Err(Unchanged { reason, is_by_drivers }) => {
                refused.push(Refused { id: setting.id, reason, is_whole: true, is_by_drivers });
            }
        }
    }
    Ok((applied, refused))
}

/// A setting as it was applied, with the part that the kernel refused; or the reason why nothing of it was changed.
type Outcome = Result<(Setting, Option<Refused>), Unchanged>;

/// Nothing of a setting was changed.
struct Unchanged {
    reason: String,
    is_by_drivers: bool,
}

impl From<String> for Unchanged {
    fn from(reason: String) -> Self {
        Self { reason, is_by_drivers: false }
    }
}

/// Applies a setting.
fn apply_one(journal: &mut Journal, setting: &Setting) -> Result<Outcome, JournalError> {
    let ops = journal.ops();
    for write in &setting.writes {
        match value(&*ops, &write.target) {
            Some(now) if now == write.from || now == write.to => {}
            Some(now) => {
                return Ok(Err(format!("{} is {now} now, not {}: plan again", write.target, write.from).into()));
            }
            None if write.from == write.to => {}
            None => return Ok(Err(format!("{} cannot be read any more: plan again", write.target).into())),
        }
    }
    let due = |write: &&Write| write.from != write.to && value(&*ops, &write.target).as_ref() != Some(&write.to);
    let writes: Vec<&Write> = setting.writes.iter().filter(due).collect();
    let before = journal.entries().len();
    let namespace = netns::current(ops.root());
    journal.record(writes.iter().map(|write| undo_of(&*ops, write, namespace.as_deref())))?;
    let (mut left, mut stayed) = (Vec::new(), None);
    for write in &writes {
        if let Target::Programs(freed) = &write.target {
            match programs::move_away(journal, freed)? {
                Some(Stayed { reason, has_no_right: true }) => {
                    journal.restore_from(before);
                    return Ok(Err(reason.into()));
                }
                other => stayed = other,
            }
            continue;
        }
        let Err(error) = write_one(&*ops, write) else { continue };
        // Without the right the file cannot be opened. EPERM, or EIO before Linux 6.5, is the answer for an interrupt that
        // its driver manages.
        let is_managed =
            write.refusal != Refusal::Failure && error.raw_os_error() != Some(Errno::ACCESS.raw_os_error());
        let why = match is_managed {
            true => "its driver manages this interrupt, or it is bound to a CPU".to_owned(),
            false => refusal(&error),
        };
        let reason = format!("{}: {why}", write.target);
        if is_managed {
            left.push((*write, reason));
            continue;
        }
        journal.restore_from(before);
        return Ok(Err(reason.into()));
    }
    let refused = left.first().map(|(_, first)| match left.len() {
        1 => first.clone(),
        count => format!("{first}; and {} more", count - 1),
    });
    let reason = refused.or(stayed.map(|stayed| stayed.reason));
    match reason {
        Some(reason) if left.len() == writes.len() => {
            journal.restore_from(before);
            Ok(Err(Unchanged { reason, is_by_drivers: true }))
        }
        reason => {
            let is_done = |write: &Write| !left.iter().any(|(refused, _)| *refused == write);
            let mut done = setting.clone();
            done.writes.retain(is_done);
            Ok(Ok((
                done,
                reason.map(|reason| Refused { id: setting.id, reason, is_whole: false, is_by_drivers: false }),
            )))
        }
    }
}

/// An error of the kernel, with the remedy.
fn refusal(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::PermissionDenied if !rustix::process::geteuid().is_root() => format!("{error}: run as root"),
        io::ErrorKind::ReadOnlyFilesystem => "it is read-only, e.g. in a container: run on the host".to_owned(),
        _ => error.to_string(),
    }
}

/// Writes a value and reads it back. A value that the kernel stored differently is set back, because the journal would
/// take it for a change by others.
fn write_one(ops: &dyn SystemOps, write: &Write) -> io::Result<()> {
    set(ops, &write.target, &write.to, true)?;
    match value(ops, &write.target) {
        Some(now) if now == write.to => Ok(()),
        now => {
            let _ = set(ops, &write.target, &write.from, false);
            Err(io::Error::other(format!("the kernel has {} instead of {}", now.unwrap_or_default(), write.to)))
        }
    }
}

/// Sets a target to its new or its old value.
fn set(ops: &dyn SystemOps, target: &Target, text: &str, is_new: bool) -> io::Result<()> {
    match target {
        Target::File(path) if super::is_tuned_file(path) => ops.write(path, text),
        Target::File(_) => Err(io::Error::other("punctual does not change this file")),
        Target::Thread { id, start_ticks, .. } => {
            if tasks::start_ticks(ops.root(), &id.to_string()) != Some(*start_ticks) {
                return Err(io::ErrorKind::NotFound.into());
            }
            ops.set_policy(*id, text.parse().map_err(io::Error::other)?)
        }
        Target::Cache(share) if is_new => share.take(ops),
        // The journal undoes it.
        Target::Cache(_) => Ok(()),
        Target::Programs(_) => Err(io::Error::other("programs are moved together")),
        Target::Nic { interface, parameter, from, to } => {
            ops.set_nic_parameter(interface, *parameter, if is_new { *to } else { *from })
        }
    }
}

/// The present value; `None` if it cannot be read.
fn value(ops: &dyn SystemOps, target: &Target) -> Option<String> {
    match target {
        Target::File(path) => ops.root().read(path).map(|text| journal::present(&text).to_owned()),
        Target::Thread { id, start_ticks, .. } => {
            let is_same = tasks::start_ticks(ops.root(), &id.to_string()) == Some(*start_ticks);
            Thread::of(ops.root(), *id).filter(|_| is_same).map(|thread| thread.scheduled())
        }
        Target::Cache(share) => Some(share.value(ops.root())),
        Target::Programs(freed) => Some(programs::value(ops.root(), freed)),
        Target::Nic { interface, parameter, .. } => {
            ops.nic_parameter(interface, *parameter).ok().map(|value| value.to_string())
        }
    }
}

fn undo_of(ops: &dyn SystemOps, write: &Write, namespace: Option<&str>) -> Undo {
    let (before, during) = (write.from.clone(), write.to.clone());
    match &write.target {
        Target::File(path) => Undo::File { path: path.clone(), before, during },
        Target::Thread { id, start_ticks, name } => {
            Undo::Policy { thread: *id, start_ticks: *start_ticks, name: name.clone(), before, during }
        }
        Target::Cache(share) => Undo::Cache(share.clone()),
        Target::Programs(freed) => programs::undo(ops.root(), freed),
        Target::Nic { interface, parameter, from, to } => Undo::Nic {
            namespace: namespace.map(str::to_owned),
            interface: interface.clone(),
            parameter: *parameter,
            before: *from,
            during: *to,
        },
    }
}

/// The right to change settings, which one process has at a time, until its last clone is dropped. The kernel ends it with
/// the process.
#[derive(Debug, Clone)]
pub struct Lock(#[expect(dead_code, reason = "the lock lasts while the file is open")] Arc<File>);

impl Lock {
    /// Takes the right, e.g. to make changes several times without those of others in between.
    ///
    /// # Errors
    /// [`TuneError::Busy`] if another process has it, or [`TuneError::Lock`].
    pub fn take(root: &Root) -> Result<Self, TuneError> {
        let path = journal::folder(root).join(LOCK);
        let failed = |source| TuneError::Lock { path: path.clone(), source };
        journal::private_folder(root).map_err(failed)?;
        // Not through a link, and without waiting for the other end of a pipe.
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let mut options = File::options();
        options.write(true).create(true).truncate(false).custom_flags(flags.bits().cast_signed());
        let file = options.open(&path).map_err(|error| match error.raw_os_error() {
            Some(code) if code == Errno::LOOP.raw_os_error() => failed(io::Error::other("it is a symbolic link")),
            _ => failed(error),
        })?;
        match file.try_lock() {
            Ok(()) => Ok(Self(Arc::new(file))),
            Err(TryLockError::WouldBlock) => Err(TuneError::Busy),
            Err(TryLockError::Error(source)) => Err(failed(source)),
        }
    }

    /// As [`apply`].
    ///
    /// # Errors
    /// As [`apply`].
    pub fn apply(&self, root: &Root, settings: &[Setting]) -> Result<Tuning, TuneError> {
        apply_locked(self.clone(), ops_of(root), settings)
    }

    /// As [`keep`].
    ///
    /// # Errors
    /// As [`keep`].
    pub fn keep(&self, root: &Root, settings: &[Setting]) -> Result<Kept, TuneError> {
        keep_locked(ops_of(root), settings)
    }
}

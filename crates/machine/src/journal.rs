//! The journal of changes to this machine, which are undone at the end of a run or by the next start after a crash.
//!
//! Every change is written to the journal before it is made. A run that ends normally undoes its changes itself. If it
//! is killed, its journal remains and the next start undoes them ([`restore`]). A journal belongs to one process,
//! identified by id and start time, and is stored in [`folder`].

mod document;
mod undo;

use std::{
    fs::{self, DirBuilder, DirEntry, File},
    io,
    os::unix::fs::{DirBuilderExt, MetadataExt},
    path::{Path, PathBuf},
    process,
    rc::Rc,
    time::Duration,
};

use record::{
    PutBack, counted,
    file::{FileError, write_atomic, writer_of_unfinished},
};
use serde::{Deserialize, Serialize};
use thiserror::Error;

pub use self::document::{Document, parse};
pub(crate) use self::undo::{Masks, Undo, present};
use crate::{
    Root, own_rights, pid_namespace,
    run_groups::{self, RunGroup},
    system_ops::SystemOps,
    tasks,
    tune::{self, TuneError},
};

/// Error: the journal could not be written, so nothing was changed.
#[derive(Debug, Error)]
#[error(
    "cannot write the journal {} ({source}), which would undo changes after a crash: {}",
    path.display(),
    self.remedy()
)]
pub struct JournalError {
    path: PathBuf,
    source: io::Error,
}

impl JournalError {
    fn remedy(&self) -> &'static str {
        remedy(&self.source)
    }
}

/// The remedy if a journal or lock cannot be written.
pub(crate) fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied if !rustix::process::geteuid().is_root() => "run as root",
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "free some space there",
        io::ErrorKind::ReadOnlyFilesystem => "mount it writable",
        io::ErrorKind::Unsupported => "mount /proc",
        // A file, a link, or a folder of somebody else.
        io::ErrorKind::AlreadyExists | io::ErrorKind::NotADirectory | io::ErrorKind::Other => {
            "remove what is there, and run again"
        }
        _ => "make it writable, and run again",
    }
}

/// Why nothing was restored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum RestoreError {
    /// The boot id is unknown, so the journals may be of this boot or of an earlier one.
    #[error(
        "cannot read the boot id in /proc/sys/kernel/random/boot_id, so settings that a killed run changed are not \
         restored: mount /proc"
    )]
    NoBootId,
    /// A process that runs could seem to have ended.
    #[error(
        "/proc shows another namespace of process ids, so settings that a killed run changed are not restored: mount \
         /proc again"
    )]
    OtherProc,
    /// A journal of a user would be undone with rights that the user does not have.
    #[error(
        "the kernel does not let this process give up the capabilities of its file, so settings that a killed run changed \
         are not restored: run a binary without them, see `getcap`"
    )]
    Capabilities,
}

/// The kind of change in a journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// CPUs shielded from other work.
    Shield,
    /// CPUs kept out of their idle states.
    Awake,
    /// Settings of a network interface.
    Nic,
    /// Priorities of the threads that serve an interface.
    IrqPriority,
    /// The buffer of an industrial I/O device.
    Samples,
    /// The kernel's runtime verification monitors.
    Monitors,
    /// The gravity of the EVL core's clock while it is calibrated.
    Gravity,
    /// The gravity of the EVL core's clock that the user requested. It remains until the user restores it.
    KeptGravity,
    /// Settings of the machine for a run (`--setting`).
    Tuning,
    /// Settings of the machine that the user requested with `punctual tune --yes`. They remain until the user reverts
    /// them.
    KeptTuning,
    /// Files of systemd that `punctual tune` created. They outlive a reboot.
    KeptFiles,
    /// The kernel's trace. It needs no journal: its folder names the process.
    Trace,
}

/// The changes of a killed run that were undone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Restored {
    /// The process id of that run.
    pub process: u32,
    /// The kind of change.
    pub purpose: Purpose,
    /// The result of undoing it.
    pub put_back: PutBack,
}

impl Restored {
    /// A sentence about the restored settings and about those that were not restored.
    #[must_use]
    pub fn in_words(&self) -> String {
        let Self { process, purpose, put_back } = self;
        let mut text = match purpose.of_command() {
            Some(command) if purpose.is_permanent() => {
                format!("changes of `{command}`: removed {} of systemd", counted(put_back.settings.into(), "file"))
            }
            Some(command) => format!("changes of `{command}`: restored {}", put_back.in_words()),
            None => format!("process {process} was killed and its changes remained: restored {}", put_back.in_words()),
        };
        if !put_back.changed_since.is_empty() {
            text += &format!("; kept what others have changed since: {}", put_back.changed_since.join(", "));
        }
        if !put_back.failed.is_empty() {
            text += &format!("; could not restore: {}", put_back.failed.join(", "));
        }
        text
    }
}

/// A journal of this process, and the guard of its changes: dropping it undoes them in reverse order.
#[derive(Debug)]
pub(crate) struct Journal {
    ops: Rc<dyn SystemOps>,
    path: PathBuf,
    document: Document,
    is_restored: bool,
}

impl Journal {
    /// Starts an empty journal for changes that are made with `ops`. It is written with its first entry.
    pub(crate) fn begin(ops: Rc<dyn SystemOps>, purpose: Purpose) -> Result<Self, JournalError> {
        let root = ops.root();
        let folder = if purpose.is_permanent() { permanent_folder(root) } else { folder(root) };
        make_private(root, &folder).map_err(|source| JournalError { path: folder.clone(), source })?;
        if root.is_system() && boot_id(root).is_none() {
            // The next run would not know that the journal is of this boot, and delete it.
            let source = io::Error::new(io::ErrorKind::Unsupported, "there is no boot id in /proc");
            return Err(JournalError { path: folder, source });
        }
        let process = process::id();
        let start_ticks = tasks::start_ticks(&Root::system(), "self").unwrap_or_default();
        let name = format!("{process}-{start_ticks}-{}.json", purpose.name());
        let path = folder.join(name);
        // Entries that this process could not undo earlier are kept. A user may have changed them since, so they are not
        // undone with more rights than the user's.
        let earlier = document::read(&path).ok().filter(|_| !own_rights::are_exceeded());
        let earlier = earlier.map(|document| document.undo).unwrap_or_default();
        let (pid_namespace, boot_id) = (pid_namespace::own(root), boot_id(root));
        let document = Document { process, start_ticks, pid_namespace, boot_id, purpose, undo: earlier };
        Ok(Self { ops, path, document, is_restored: false })
    }

    /// The operations that the changes are made with.
    pub(crate) fn ops(&self) -> Rc<dyn SystemOps> {
        Rc::clone(&self.ops)
    }

    /// The entries so far.
    pub(crate) fn entries(&self) -> &[Undo] {
        &self.document.undo
    }

    /// Adds entries and writes the journal to disk. The caller makes the changes afterwards.
    pub(crate) fn record(&mut self, more: impl IntoIterator<Item = Undo>) -> Result<(), JournalError> {
        self.document.undo.extend(more);
        self.write()
    }

    /// Replaces all entries. The caller has undone the missing ones.
    pub(crate) fn replace(&mut self, entries: Vec<Undo>) -> Result<(), JournalError> {
        self.document.undo = entries;
        self.write()
    }

    /// Adds more tasks to the recorded affinities.
    pub(crate) fn record_masks(&mut self, add: impl FnOnce(&mut Masks)) -> Result<(), JournalError> {
        if let Some(masks) = self.document.undo.iter_mut().rev().find_map(Undo::masks) {
            add(masks);
        }
        self.write()
    }

    /// Undoes the entries from index `from` on, and removes them unless the kernel refused.
    pub(crate) fn restore_from(&mut self, from: usize) {
        let undone = undo::restore(&*self.ops, &self.document.undo[from..], Some(self.document.process));
        self.document.undo.truncate(from);
        self.document.undo.extend(undone.remaining);
        // A failed write is harmless: an entry that is already undone changes nothing.
        let _ = self.write();
    }

    /// Undoes everything. If nothing failed, removes the journal; otherwise the next start tries again.
    pub(crate) fn restore(&mut self) -> PutBack {
        self.is_restored = true;
        let undone = undo::restore(&*self.ops, &self.document.undo, Some(self.document.process));
        self.document.keep_only(&self.path, undone.remaining);
        undone.put_back
    }

    /// Leaves the changes and the journal, for the user to restore.
    pub(crate) fn keep(mut self) {
        self.is_restored = true;
    }

    /// Other journals of this boot with the same purpose: each path with its entries.
    pub(crate) fn others(&self) -> Vec<(PathBuf, Vec<Undo>)> {
        let root = self.ops.root();
        let all = journals(root).into_iter();
        all.filter_map(|(path, document)| Some((path, document.ok()?)))
            .filter(|(path, document)| *path != self.path && document.purpose == self.document.purpose)
            .filter(|(_, document)| document.is_of_this_boot(root))
            .map(|(path, document)| (path, document.undo))
            .collect()
    }

    fn write(&self) -> Result<(), JournalError> {
        let failed = |source| JournalError { path: self.path.clone(), source };
        let json = serde_json::to_vec(&self.document).map_err(|error| failed(error.into()))?;
        write_atomic(&self.path, &json).map_err(|error| match error {
            FileError::Write { source, .. } => failed(source),
            other => failed(io::Error::other(other)),
        })?;
        // The directory entry must reach the disk, too.
        let folder = self.path.parent().unwrap_or(Path::new("/"));
        File::open(folder).and_then(|folder| folder.sync_all()).map_err(failed)?;
        self.keep_copy();
        Ok(())
    }

    /// Keeps a copy with each control group of this journal that exists, because the journal may get lost: another
    /// container sees the group, but has its own `/run`.
    pub(crate) fn keep_copy(&self) {
        let Ok(json) = serde_json::to_string(&self.document) else { return };
        let groups = self.document.undo.iter().filter_map(Undo::group);
        for folder in groups.filter(|folder| self.ops.root().exists(folder)) {
            // Some kernels keep no attributes of groups. The journal remains.
            let _ = self.ops.keep_text(folder, &json);
        }
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        if !self.is_restored {
            self.restore();
        }
    }
}

impl Purpose {
    fn name(self) -> &'static str {
        match self {
            Self::Shield => "shield",
            Self::Awake => "awake",
            Self::Nic => "nic",
            Self::IrqPriority => "irq-priority",
            Self::Samples => "samples",
            Self::Monitors => "monitors",
            Self::Gravity => "gravity",
            Self::KeptGravity => "kept-gravity",
            Self::Tuning => "tuning",
            Self::KeptTuning => "kept-tuning",
            Self::KeptFiles => "kept-files",
            Self::Trace => "trace",
        }
    }

    /// The command whose changes outlive their process because the user requested them; `None` for changes of a run.
    fn of_command(self) -> Option<&'static str> {
        match self {
            Self::KeptGravity => Some("punctual evl gravity --set"),
            Self::KeptTuning | Self::KeptFiles => Some("punctual tune --yes"),
            Self::Shield
            | Self::Awake
            | Self::Nic
            | Self::IrqPriority
            | Self::Samples
            | Self::Monitors
            | Self::Gravity
            | Self::Tuning
            | Self::Trace => None,
        }
    }

    /// True for changes that outlive their process because the user requested them.
    fn is_kept(self) -> bool {
        self.of_command().is_some()
    }

    /// True for changes that a reboot does not undo.
    fn is_permanent(self) -> bool {
        self == Self::KeptFiles
    }

    /// The purpose in the name of a journal.
    fn of_file(name: &str) -> Option<Self> {
        // The name of one can end with that of another, which follows it.
        let all = [
            Self::Shield,
            Self::Awake,
            Self::Nic,
            Self::IrqPriority,
            Self::Samples,
            Self::Monitors,
            Self::KeptGravity,
            Self::Gravity,
            Self::KeptTuning,
            Self::Tuning,
            Self::KeptFiles,
            Self::Trace,
        ];
        all.into_iter().find(|purpose| name.ends_with(&format!("-{}.json", purpose.name())))
    }
}

/// The folder of journals: `/run/punctual` for root, which is empty after a reboot; otherwise
/// `$XDG_RUNTIME_DIR/punctual` or, if that is unset, `/tmp/punctual-UID`.
#[must_use]
pub fn folder(root: &Root) -> PathBuf {
    let user = rustix::process::geteuid();
    if user.is_root() || !root.is_system() {
        return root.path("run/punctual");
    }
    match std::env::var_os("XDG_RUNTIME_DIR") {
        Some(folder) if !folder.is_empty() => PathBuf::from(folder).join("punctual"),
        _ => std::env::temp_dir().join(format!("punctual-{}", user.as_raw())),
    }
}

/// The folder of journals that a reboot must not remove.
pub(crate) fn permanent_folder(root: &Root) -> PathBuf {
    root.path("var/lib/punctual")
}

/// All journals, each with its path and content.
fn journals(root: &Root) -> Vec<(PathBuf, Result<Document, String>)> {
    // Only root creates files of systemd.
    let is_permanent = rustix::process::geteuid().is_root() || !root.is_system();
    let folders = [Some(folder(root)), is_permanent.then(|| permanent_folder(root))];
    // A folder behind a link belongs to another machine.
    let own = folders.into_iter().flatten().filter(|folder| check_inside(root, folder).is_ok());
    own.flat_map(|folder| document::all(&folder)).collect()
}

/// Undoes single entries of earlier journals.
pub(crate) fn undo_entries(ops: &dyn SystemOps, entries: &[Undo]) -> PutBack {
    undo::restore(ops, entries, None).put_back
}

/// Undoes the changes of killed runs; returns one entry for each journal, and for each control group without one. A user
/// can write the own journals, so they are undone with the rights of the user, without capabilities of the binary.
///
/// # Errors
/// If there is a journal and `/proc` cannot show whether its run has ended. Nothing is changed then.
pub fn restore(root: &Root) -> Result<Vec<Restored>, RestoreError> {
    own_rights::with_own_rights(|| restore_with(root)).unwrap_or(Err(RestoreError::Capabilities))
}

/// Like [`restore`], and also undoes the changes that remain until the user restores them.
///
/// # Errors
/// As for [`restore`].
pub fn restore_all(root: &Root) -> Result<Vec<Restored>, RestoreError> {
    // While a run changes settings on top of kept ones, those would seem to have been changed by others.
    let lock = tune::Lock::take(root);
    let is_tuned = matches!(lock, Err(TuneError::Busy));
    let is_undone = |purpose| !(is_tuned && matches!(purpose, Purpose::KeptTuning | Purpose::KeptFiles));
    own_rights::with_own_rights(|| restore_each(root, is_undone)).unwrap_or(Err(RestoreError::Capabilities))
}

/// Undoes the changes with these purposes, of killed runs and kept ones.
///
/// # Errors
/// As for [`restore`].
pub(crate) fn restore_purposes(root: &Root, purposes: &[Purpose]) -> Result<Vec<Restored>, RestoreError> {
    let restored = own_rights::with_own_rights(|| restore_each(root, |purpose| purposes.contains(&purpose)));
    restored.unwrap_or(Err(RestoreError::Capabilities))
}

/// The killed runs whose changes remain, because nothing has restored them since: process ids, sorted.
#[must_use]
pub fn left_behind(root: &Root) -> Vec<u32> {
    let journals = journals(root).into_iter().filter_map(|(_, document)| document.ok());
    let left = journals.filter(|document| {
        let is_of_run = !document.purpose.is_kept() && !document.undo.is_empty();
        is_of_run && document.is_of_this_boot(root) && !document.may_run(root)
    });
    let mut processes: Vec<u32> = left.map(|document| document.process).collect();
    processes.sort_unstable();
    processes.dedup();
    processes
}

/// The number of changes with this purpose in the journals of this boot.
pub(crate) fn entries_of(root: &Root, purpose: Purpose) -> usize {
    let journals = journals(root).into_iter().filter_map(|(_, document)| document.ok());
    let own = journals.filter(|document| document.purpose == purpose && document.is_of_this_boot(root));
    own.map(|document| document.undo.len()).sum()
}

/// A journal of changes to settings that cannot be used, with the reason.
pub(crate) fn damaged(root: &Root) -> Option<(PathBuf, String)> {
    let is_meant = |path: &Path| {
        let purpose = path.file_name().and_then(|name| Purpose::of_file(&name.to_string_lossy()));
        matches!(purpose, Some(Purpose::Tuning | Purpose::KeptTuning | Purpose::KeptFiles | Purpose::Awake))
    };
    let damaged = journals(root).into_iter().filter_map(|(path, document)| Some((path, document.err()?)));
    damaged.into_iter().find(|(path, _)| is_meant(path))
}

/// The command or run that set a file to its present value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Setter {
    /// `punctual tune --yes`.
    Tune,
    /// A run that may still run.
    Run {
        /// Its process id.
        process: u32,
    },
    /// A run that was killed, so that its change remains.
    KilledRun {
        /// Its process id.
        process: u32,
    },
}

impl Setter {
    /// The command or run, in words, with how to undo its changes.
    pub(crate) fn in_words(self, root: &Root) -> String {
        match self {
            Self::Tune if tune::is_persistent(root) => {
                "by `punctual tune`, also at each boot (--persist); undo: punctual tune --revert".to_owned()
            }
            Self::Tune => "by `punctual tune`; undo: punctual tune --revert".to_owned(),
            Self::Run { process } => format!("by a run of punctual (process {process})"),
            Self::KilledRun { process } => {
                format!("by process {process} of punctual, which was killed; undo: sudo punctual restore")
            }
        }
    }
}

/// The files in the journals of this boot, each with the value that punctual wrote, and the command or run that wrote it.
pub(crate) fn set_files(root: &Root) -> Vec<(String, String, Setter)> {
    let journals = journals(root).into_iter().filter_map(|(_, document)| document.ok());
    let files = |document: Document| {
        let setter = match (document.purpose.is_kept(), document.process) {
            (true, _) => Setter::Tune,
            (false, process) if document.may_run(root) => Setter::Run { process },
            (false, process) => Setter::KilledRun { process },
        };
        let file = move |undo| match undo {
            Undo::File { path, during, .. } => Some((path, during, setter)),
            _ => None,
        };
        document.undo.into_iter().filter_map(file)
    };
    let mut files: Vec<_> = journals.filter(|document| document.is_of_this_boot(root)).flat_map(files).collect();
    // A run that found the value as it needs it did not set it.
    files.sort_by_key(|(_, _, setter)| *setter != Setter::Tune);
    files
}

/// The affinities that settings in force have changed since boot.
pub(crate) fn kept_masks(root: &Root) -> Vec<Masks> {
    let journals = journals(root).into_iter().filter_map(|(_, document)| document.ok());
    let kept = journals.filter(|document| document.purpose == Purpose::KeptTuning && document.is_of_this_boot(root));
    let masks = |undo: Undo| if let Undo::Masks(masks) = undo { Some(masks) } else { None };
    kept.flat_map(|document| document.undo.into_iter().filter_map(masks)).collect()
}

pub(crate) fn restore_with(ops: &dyn SystemOps) -> Result<Vec<Restored>, RestoreError> {
    restore_each(ops, |purpose| !purpose.is_kept())
}

/// Undoes the changes with these purposes.
pub(crate) fn restore_each(
    ops: &dyn SystemOps,
    is_undone: impl Fn(Purpose) -> bool,
) -> Result<Vec<Restored>, RestoreError> {
    let root = ops.root();
    let mut journals = journals(root);
    check_proc(root, &journals)?;
    // A killed run changed settings after the user did, so its changes are undone first.
    journals.sort_by_key(|(_, document)| document.as_ref().is_ok_and(|document| document.purpose.is_kept()));
    // Without the journal of another namespace of process ids, all processes that write here can be seen.
    let sees_all = journals.iter().flat_map(|(_, document)| document).all(|it| it.other_namespace(root).is_none());
    let mut all = Vec::new();
    for (path, document) in journals {
        let mut document = match document {
            Ok(document) => document,
            Err(reason) => {
                all.extend(refused(&path, &reason));
                continue;
            }
        };
        if !document.is_of_this_boot(root) {
            // The machine was rebooted since, which undid the changes.
            let _ = fs::remove_file(path);
        } else if is_undone(document.purpose) && !document.may_run(root) {
            let undone = undo::restore(ops, &document.undo, None);
            document.keep_only(&path, undone.remaining);
            all.push(Restored { process: document.process, purpose: document.purpose, put_back: undone.put_back });
        }
    }
    let is_revert = is_undone(Purpose::KeptTuning);
    remove_unfinished(root, &folder(root), if is_revert && sees_all { Duration::ZERO } else { UNFINISHED_FOR });
    if is_undone(Purpose::KeptFiles) {
        // The caller has the lock for tuning, and only its owner writes there.
        remove_unfinished(root, &permanent_folder(root), Duration::ZERO);
    }
    let done: Vec<u32> = all.iter().map(|restored: &Restored| restored.process).collect();
    // Without the right /proc, a running process would seem to have ended.
    let groups = if pid_namespace::is_that_of_proc(root) { run_groups::all(root) } else { Vec::new() };
    let ended = groups.into_iter().filter(|group| !group.is_alive && !done.contains(&group.process));
    all.extend(ended.filter(|group| is_own(&root.path(&group.folder))).map(|group| restore_group(ops, group)));
    Ok(all)
}

/// The process of an incomplete journal of at least this age was killed.
const UNFINISHED_FOR: Duration = Duration::from_secs(60);

/// Removes the journals that a killed process had not written to their end, `.punctual-PID-N.new`.
fn remove_unfinished(root: &Root, folder: &Path, age: Duration) {
    if check_inside(root, folder).is_err() || !pid_namespace::is_that_of_proc(root) {
        return;
    }
    let has_ended =
        |name: &str| writer_of_unfinished(name).is_some_and(|process| !root.exists(&format!("proc/{process}")));
    // Processes of other namespaces write here, too, but never for so long.
    let is_old = |entry: &DirEntry| {
        let changed = entry.metadata().and_then(|data| data.modified()).ok();
        changed.and_then(|at| at.elapsed().ok()).is_some_and(|since| since > age)
    };
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| has_ended(&entry.file_name().to_string_lossy()) && is_old(entry)) {
        // Files of other users cannot be removed, and remain.
        let _ = fs::remove_file(entry.path());
    }
}

/// The processes in other namespaces of process ids that may still run, so that [`restore`] leaves their changes alone.
#[must_use]
pub fn left_alone(root: &Root) -> Vec<u32> {
    let elsewhere = of_runs_now(root).filter(|document| document.other_namespace(root).is_some());
    let mut processes: Vec<u32> = elsewhere.map(|document| document.process).collect();
    processes.sort_unstable();
    processes.dedup();
    processes
}

/// The journals of this boot whose processes may still run.
fn of_runs_now(root: &Root) -> impl Iterator<Item = Document> {
    let journals = journals(root).into_iter().filter_map(|(_, document)| document.ok());
    journals.filter(|document| document.is_of_this_boot(root) && document.may_run(root))
}

/// Checks that `/proc` shows which boot this is and which processes run.
fn check_proc(root: &Root, journals: &[(PathBuf, Result<Document, String>)]) -> Result<(), RestoreError> {
    let names_a_boot = |document: &Document| document.boot_id.is_some() || root.is_system();
    let documents = journals.iter().filter_map(|(_, document)| document.as_ref().ok());
    match documents.filter(|document| names_a_boot(document)).count() {
        0 => Ok(()),
        _ if boot_id(root).is_none() => Err(RestoreError::NoBootId),
        _ if !pid_namespace::is_that_of_proc(root) => Err(RestoreError::OtherProc),
        _ => Ok(()),
    }
}

/// True if the folder belongs to this user.
fn is_own(folder: &Path) -> bool {
    fs::metadata(folder).is_ok_and(|data| data.uid() == rustix::process::geteuid().as_raw())
}

/// Undoes the shield of a killed run whose journal is lost, from the copy with its control group. Without a copy, removes
/// the group, which returns the affinities that the kernel has narrowed.
fn restore_group(ops: &dyn SystemOps, group: RunGroup) -> Restored {
    let RunGroup { folder, members, process, .. } = group;
    let copy = ops.kept_text(&folder).and_then(|text| serde_json::from_str::<Document>(&text).ok());
    let copy = copy.filter(|copy| copy.process == process && copy.boot_id == boot_id(ops.root()));
    let undo = copy.map(|copy| copy.undo).filter(|undo| undo.iter().any(|undo| undo.group() == Some(&folder)));
    let undo = undo.unwrap_or_else(|| vec![Undo::Group { folder, members: members.to_owned() }]);
    Restored { process, purpose: Purpose::Shield, put_back: undo::restore(ops, &undo, None).put_back }
}

/// A journal that is left alone, as a failure.
fn refused(path: &Path, reason: &str) -> Option<Restored> {
    let name = path.file_name()?.to_string_lossy();
    let process = name.split('-').next()?.parse().ok()?;
    let failed = vec![format!("the journal {}: {reason}; check it, then remove it", path.display())];
    Some(Restored { process, purpose: Purpose::of_file(&name)?, put_back: PutBack { failed, ..PutBack::default() } })
}

/// Another process that shields CPUs now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OtherShield {
    /// Its id in its namespace of process ids.
    pub process: u32,
    /// True if that is the namespace of this process.
    pub is_here: bool,
}

/// The other process that shields CPUs now, if there is one.
pub(crate) fn other_shield(root: &Root) -> Option<OtherShield> {
    let shields = of_runs_now(root).filter(|document| document.purpose == Purpose::Shield);
    let journals = shields
        .map(|document| OtherShield { process: document.process, is_here: document.other_namespace(root).is_none() });
    // A run in another container has its journal there.
    let groups = run_groups::all(root).into_iter().filter(|group| group.is_alive);
    let groups = groups.map(|group| OtherShield { process: group.process, is_here: true });
    journals.chain(groups).find(|other| !other.is_here || other.process != process::id())
}

impl Document {
    /// Leaves only these entries in the journal; removes it without any.
    fn keep_only(&mut self, path: &Path, remaining: Vec<Undo>) {
        if remaining.is_empty() {
            let _ = fs::remove_file(path);
        } else if remaining != self.undo {
            self.undo = remaining;
            // A failed write is harmless: an entry that is already undone changes nothing.
            let _ = serde_json::to_vec(self).map(|json| write_atomic(path, &json));
        }
    }

    fn is_of_this_boot(&self, root: &Root) -> bool {
        self.purpose.is_permanent() || self.boot_id == boot_id(root)
    }

    /// True if the process that wrote the document still runs, or if that is unknown, because it is in another
    /// namespace of process ids.
    fn may_run(&self, root: &Root) -> bool {
        match self.other_namespace(root) {
            Some(other) => pid_namespace::may_run(root, self.process, other),
            None => tasks::start_ticks(root, &self.process.to_string()) == Some(self.start_ticks),
        }
    }

    /// The namespace of process ids that its process is in; `None` if it is that of this process.
    fn other_namespace(&self, root: &Root) -> Option<u64> {
        self.pid_namespace.filter(|&namespace| Some(namespace) != pid_namespace::own(root))
    }
}

/// The folder of journals, made if needed, for files that no other user can have written.
///
/// # Errors
/// It cannot be made, or another user can write to it.
pub fn private_folder(root: &Root) -> io::Result<PathBuf> {
    let folder = folder(root);
    make_private(root, &folder)?;
    Ok(folder)
}

fn make_private(root: &Root, folder: &Path) -> io::Result<()> {
    check_inside(root, folder)?;
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    document::check_folder(folder).map_err(io::Error::other)
}

/// Checks that no link leads from a folder of a recorded machine to the journals of another one.
fn check_inside(root: &Root, folder: &Path) -> io::Result<()> {
    if root.is_system() {
        return Ok(());
    }
    let path = folder.strip_prefix(root.path("")).unwrap_or(folder);
    root.for_writing(&path.join("journal").to_string_lossy()).map(drop)
}

/// The id of this boot; `None` if it cannot be read.
#[must_use]
pub fn boot_id(root: &Root) -> Option<String> {
    root.read("proc/sys/kernel/random/boot_id")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_remedy_fits_the_cause() {
        let scratch = tempfile::tempdir().unwrap();
        let root = Root::at(scratch.path());
        let error = || Journal::begin(Rc::new(root.clone()), Purpose::Awake).unwrap_err().to_string();
        fs::create_dir(scratch.path().join("run")).unwrap();
        std::os::unix::fs::symlink(".", folder(&root)).unwrap();
        let text = error();
        assert!(text.contains("punctual is not a folder") && text.ends_with(": remove what is there, and run again"));
        fs::remove_file(folder(&root)).unwrap();
        fs::write(folder(&root), "").unwrap();
        assert!(
            error().ends_with(
                "(os error 17)), which would undo changes after a crash: remove what is there, and run again"
            )
        );
        let remedy = |kind: io::ErrorKind| JournalError { path: PathBuf::new(), source: kind.into() }.remedy();
        let is_root = rustix::process::geteuid().is_root();
        let for_rights = if is_root { "make it writable, and run again" } else { "run as root" };
        let kinds = [io::ErrorKind::StorageFull, io::ErrorKind::ReadOnlyFilesystem, io::ErrorKind::PermissionDenied];
        assert_eq!(kinds.map(remedy), ["free some space there", "mount it writable", for_rights]);
    }

    #[test]
    fn created_files_are_removed_not_restored() {
        let of = |purpose| Restored { process: 7, purpose, put_back: PutBack { settings: 2, ..PutBack::default() } };
        assert_eq!(of(Purpose::KeptFiles).in_words(), "changes of `punctual tune --yes`: removed 2 files of systemd");
        assert_eq!(of(Purpose::KeptTuning).in_words(), "changes of `punctual tune --yes`: restored 2 settings");
    }

    #[test]
    fn a_journal_of_version_0_1_is_read() {
        let text = include_str!("../tests/journal-0.1.json");
        let document: Document = serde_json::from_str(text).expect("the format is unchanged");
        assert_eq!((document.purpose, document.undo.len()), (Purpose::Shield, 3));
    }
}

//! What has to be put back on this machine, written down before it is changed.
//!
//! A run that ends, however it is asked to, puts back what it has changed itself. One that is killed cannot; then its
//! journal stays behind, and the next start restores from it ([`restore`]). A journal belongs to one process, which it
//! names by number and time of start, and lies in [`folder`].

mod undo;

use std::{
    fs::{self, DirBuilder, File},
    io,
    os::unix::fs::{DirBuilderExt, MetadataExt},
    path::{Path, PathBuf},
    process,
};

use record::{PutBack, file::write_atomic};
use serde::{Deserialize, Serialize};
use thiserror::Error;

pub(crate) use self::undo::{Masks, Undo, put_back};
use crate::{Root, hands::Hands, tasks};

/// Why the journal could not be written; nothing was changed then.
#[derive(Debug, Error)]
#[error(
    "cannot write {} ({source}), which would put this machine back as it was after a crash: make room there, or run as root",
    path.display()
)]
pub struct JournalError {
    path: PathBuf,
    source: io::Error,
}

/// What a journal is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// CPUs kept free of other work.
    Shield,
    /// CPUs held out of their idle states.
    Awake,
    /// Values of a network interface.
    Nic,
    /// Priorities of the threads that serve one.
    IrqPriority,
}

/// What a dead run had left, and what became of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Restored {
    /// The process of that run.
    pub process: u32,
    /// What it had changed.
    pub purpose: Purpose,
    /// What was put back.
    pub put_back: PutBack,
}

impl Restored {
    /// In a sentence: whose it was, what was put back, and what was not.
    #[must_use]
    pub fn in_words(&self) -> String {
        let Self { process, put_back, .. } = self;
        let mut text = format!(
            "a run that was killed (process {process}) had left things changed: put back {}",
            put_back.in_words()
        );
        if !put_back.changed_since.is_empty() {
            text += &format!("; left what someone has changed since: {}", put_back.changed_since.join(", "));
        }
        if !put_back.failed.is_empty() {
            text += &format!("; could not put back: {}", put_back.failed.join(", "));
        }
        text
    }
}

/// A journal of this process.
#[derive(Debug)]
pub(crate) struct Journal {
    path: PathBuf,
    document: Document,
}

#[derive(Debug, Serialize, Deserialize)]
struct Document {
    process: u32,
    start_ticks: u64,
    boot_id: Option<String>,
    purpose: Purpose,
    /// In the order of the changes; undone from the end.
    undo: Vec<Undo>,
}

impl Journal {
    /// A journal that holds nothing yet, and is on disk with its first promise.
    pub(crate) fn begin(root: &Root, purpose: Purpose) -> Result<Self, JournalError> {
        let folder = folder(root);
        make_private(&folder).map_err(|source| JournalError { path: folder.clone(), source })?;
        let process = process::id();
        let start_ticks = tasks::start_ticks(&Root::system(), "self").unwrap_or_default();
        let name = format!("{process}-{start_ticks}-{}.json", purpose.name());
        let path = folder.join(name);
        // What this process could not put back earlier is still promised.
        let earlier = read(&path).map_or_else(Vec::new, |document| document.undo);
        let document = Document { process, start_ticks, boot_id: boot_id(root), purpose, undo: earlier };
        Ok(Self { path, document })
    }

    /// What has been promised so far.
    pub(crate) fn undo(&self) -> &[Undo] {
        &self.document.undo
    }

    /// Promises more; it is on disk when this returns, and the change may be made.
    pub(crate) fn promise(&mut self, more: impl IntoIterator<Item = Undo>) -> Result<(), JournalError> {
        self.document.undo.extend(more);
        self.write()
    }

    /// Promises the affinity of more tasks.
    pub(crate) fn promise_masks(&mut self, add: impl FnOnce(&mut Masks)) -> Result<(), JournalError> {
        if let Some(masks) = self.document.undo.iter_mut().rev().find_map(Undo::masks) {
            add(masks);
        }
        self.write()
    }

    /// Puts back what was promised from `from` on, and promises it no longer, unless the kernel refused.
    pub(crate) fn take_back(&mut self, from: usize, hands: &dyn Hands) -> PutBack {
        let told = put_back(hands, &self.document.undo[from..], Some(self.document.process));
        if told.failed.is_empty() {
            self.document.undo.truncate(from);
            // What is promised in vain is found to be as it was.
            let _ = self.write();
        }
        told
    }

    /// Puts everything back. The journal goes with it, unless the kernel refused: then the next start tries again.
    pub(crate) fn put_back(&self, hands: &dyn Hands) -> PutBack {
        let told = put_back(hands, &self.document.undo, Some(self.document.process));
        if told.failed.is_empty() {
            let _ = fs::remove_file(&self.path);
        }
        told
    }

    fn write(&self) -> Result<(), JournalError> {
        let failed = |source| JournalError { path: self.path.clone(), source };
        let json = serde_json::to_vec(&self.document).map_err(|error| failed(error.into()))?;
        write_atomic(&self.path, &json).map_err(|error| failed(io::Error::other(error)))?;
        // The name has to reach the disk, too.
        let folder = self.path.parent().unwrap_or(Path::new("/"));
        File::open(folder).and_then(|folder| folder.sync_all()).map_err(failed)
    }
}

impl Purpose {
    fn name(self) -> &'static str {
        match self {
            Self::Shield => "shield",
            Self::Awake => "awake",
            Self::Nic => "nic",
            Self::IrqPriority => "irq-priority",
        }
    }
}

/// Where journals lie: `/run/punctual` for root, which a restart empties; else `$XDG_RUNTIME_DIR/punctual` or, without
/// that, `/tmp/punctual-UID`.
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

/// Puts back what runs that are dead have left, each told with its process; empty where there is nothing.
#[must_use]
pub fn restore(root: &Root) -> Vec<Restored> {
    restore_with(root)
}

pub(crate) fn restore_with(hands: &dyn Hands) -> Vec<Restored> {
    let root = hands.root();
    let mut all = Vec::new();
    for (path, document) in documents(root) {
        if document.boot_id != boot_id(root) {
            // The machine was started again since: nothing of it is left.
            let _ = fs::remove_file(path);
        } else if !document.is_alive(root) {
            let told = put_back(hands, &document.undo, None);
            if told.failed.is_empty() {
                let _ = fs::remove_file(path);
            }
            all.push(Restored { process: document.process, purpose: document.purpose, put_back: told });
        }
    }
    all
}

/// The other process that shields CPUs now, if one does.
pub(crate) fn other_shield(root: &Root) -> Option<u32> {
    let others = documents(root).into_iter().map(|(_, document)| document);
    let others = others.filter(|d| d.purpose == Purpose::Shield && d.process != process::id() && d.is_alive(root));
    others.map(|document| document.process).next()
}

impl Document {
    /// Whether the very process that wrote it still runs.
    fn is_alive(&self, root: &Root) -> bool {
        self.boot_id == boot_id(root) && tasks::start_ticks(root, &self.process.to_string()) == Some(self.start_ticks)
    }
}

/// The journals that this user has here; what cannot be read as one is nobody's promise.
fn documents(root: &Root) -> Vec<(PathBuf, Document)> {
    let folder = folder(root);
    if !is_private(&folder) {
        return Vec::new();
    }
    let files = fs::read_dir(folder).into_iter().flatten().flatten().map(|file| file.path());
    let mut files: Vec<PathBuf> =
        files.filter(|path| path.extension().is_some_and(|ending| ending == "json")).collect();
    files.sort();
    files.into_iter().filter_map(|path| Some((path.clone(), read(&path)?))).collect()
}

fn read(path: &Path) -> Option<Document> {
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

fn make_private(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    if is_private(folder) { Ok(()) } else { Err(io::Error::other("the folder is someone else's")) }
}

/// Whether the folder is this user's: what stands in a journal is done.
fn is_private(folder: &Path) -> bool {
    fs::symlink_metadata(folder).is_ok_and(|data| data.is_dir() && data.uid() == rustix::process::geteuid().as_raw())
}

fn boot_id(root: &Root) -> Option<String> {
    root.read("proc/sys/kernel/random/boot_id")
}

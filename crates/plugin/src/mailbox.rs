//! The files that an LV2 host wants and those that are loaded, on the audio thread. Nothing here allocates, locks or makes a
//! system call.

use crate::{
    messages::{Message, Writer, read},
    ports::FileProperty,
    urids::Urids,
};

/// Longest path of a file, bytes (`PATH_MAX` of Linux).
pub const PATH_BYTES: usize = 4096;

/// A path in memory of its own.
#[derive(Debug, Clone, Copy)]
pub struct PathText {
    bytes: [u8; PATH_BYTES],
    length: usize,
}

impl Default for PathText {
    fn default() -> Self {
        Self { bytes: [0; PATH_BYTES], length: 0 }
    }
}

impl PathText {
    /// Stores a path; `false` if it is too long.
    pub fn store(&mut self, path: &[u8]) -> bool {
        let Some(target) = self.bytes.get_mut(..path.len()) else { return false };
        target.copy_from_slice(path);
        self.length = path.len();
        true
    }

    /// The path.
    #[must_use]
    pub fn get(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// Messages from and to the host.
#[derive(Debug)]
pub struct Mailbox {
    urids: Urids,
    /// Files that the host wants, for the worker thread.
    wanted: Box<[PathText; FileProperty::ALL.len()]>,
    is_wanted: [bool; FileProperty::ALL.len()],
    /// Files that are loaded.
    loaded: Box<[PathText; FileProperty::ALL.len()]>,
    /// Files whose path the host does not know yet.
    is_news: [bool; FileProperty::ALL.len()],
}

impl Mailbox {
    /// A mailbox without messages.
    #[must_use]
    pub fn new(urids: Urids) -> Self {
        Self {
            urids,
            wanted: Box::default(),
            is_wanted: [false; FileProperty::ALL.len()],
            loaded: Box::default(),
            is_news: [false; FileProperty::ALL.len()],
        }
    }

    /// Reads the messages in the body of a sequence.
    pub fn receive(&mut self, sequence: &[u8]) {
        let urids = self.urids;
        if !urids.are_known() {
            return;
        }
        for message in read(sequence, &urids) {
            match message {
                Message::Set(file, path) => {
                    self.is_wanted[file.index()] |= self.wanted[file.index()].store(path);
                }
                Message::Get(Some(file)) => self.is_news[file.index()] = true,
                Message::Get(None) => self.is_news.fill(true),
            }
        }
    }

    /// A file that the host wants, once; an empty path removes it.
    pub fn take_wanted(&mut self) -> Option<(FileProperty, PathText)> {
        let file = FileProperty::ALL.into_iter().find(|file| self.is_wanted[file.index()])?;
        self.is_wanted[file.index()] = false;
        Some((file, self.wanted[file.index()]))
    }

    /// Notes a file that is loaded now; an empty path if there is none.
    pub fn note_loaded(&mut self, file: FileProperty, path: &[u8]) {
        self.is_news[file.index()] |= self.loaded[file.index()].store(path);
    }

    /// Sends the paths that the host does not know yet. Those that do not fit follow later.
    pub fn tell(&mut self, buffer: &mut [u8]) {
        let Some(mut writer) = Writer::new(buffer, &self.urids).filter(|_| self.urids.are_known()) else { return };
        for file in FileProperty::ALL {
            let is_news = &mut self.is_news[file.index()];
            *is_news = *is_news && !writer.set(file, self.loaded[file.index()].get());
        }
    }
}

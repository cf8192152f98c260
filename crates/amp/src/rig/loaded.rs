//! A file that was read, and how it is played.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{RigError, Version};

/// A file that was read, and how it is played.
#[derive(Debug)]
pub struct LoadedFile<F, P> {
    pub path: PathBuf,
    pub file: Arc<F>,
    pub part: P,
    /// Whether it was read for this one, and not shared with another.
    pub is_new: bool,
    version: Option<Version>,
}

impl<F, P: PartialEq> LoadedFile<F, P> {
    /// Reads it, unless another has read what is still the same.
    pub fn load<'a>(
        path: PathBuf,
        part: P,
        version: Option<Version>,
        mut others: impl Iterator<Item = &'a Self>,
        read: impl FnOnce(&Path) -> Result<F, RigError>,
    ) -> Result<Self, RigError>
    where
        Self: 'a,
    {
        let same = others.find(|other| version.is_some() && other.version == version && other.path == path);
        let (file, is_new) = match same {
            Some(other) => (other.file.clone(), false),
            None => (Arc::new(read(&path)?), true),
        };
        Ok(Self { path, file, part, is_new, version })
    }

    /// Whether both are one file, played in the same way.
    pub fn is_same_as(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.file, &other.file) && self.part == other.part
    }
}

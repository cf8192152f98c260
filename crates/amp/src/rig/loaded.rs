//! A file that has been read, and the options for playing it.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{RigError, Version};

/// A file that has been read, and the options for playing it.
#[derive(Debug)]
pub struct LoadedFile<F, P> {
    pub path: PathBuf,
    pub file: Arc<F>,
    pub part: P,
    /// True if this rig has read the file itself, false if it shares that of another rig.
    pub is_new: bool,
    version: Option<Version>,
}

impl<F, P: PartialEq> LoadedFile<F, P> {
    /// Reads the file, unless another rig has read the same version.
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

    /// True if both share one file and have the same options.
    pub fn is_same_as(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.file, &other.file) && self.part == other.part
    }
}

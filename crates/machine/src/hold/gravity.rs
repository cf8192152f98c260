//! Changes the gravity of the EVL core's clock: for a calibration, or until the user restores it.

use std::{fs, io, rc::Rc};

use thiserror::Error;

use crate::{
    Gravity, InvalidGravity, Root, Unreadable,
    journal::{Journal, JournalError, Purpose, Undo},
    system_ops::SystemOps,
};

const FILE: &str = "sys/devices/virtual/clock/monotonic/gravity";

/// Error: the gravity could not be read or changed.
#[derive(Debug, Error)]
pub enum GravityError {
    /// There is no such file, or it cannot be read.
    #[error("cannot read the gravity in /{FILE}: {0}")]
    Unreadable(#[from] Unreadable),
    /// The file has other contents.
    #[error("/{FILE}: {0}")]
    Invalid(#[from] InvalidGravity),
    /// The journal could not be written.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The kernel refused the change.
    #[error("cannot set the gravity to {gravity} in /{FILE} ({source}): run as root")]
    Refused {
        /// The requested gravity.
        gravity: Gravity,
        /// The kernel's error.
        source: io::Error,
    },
    /// The kernel accepted the change but has another value.
    #[error("the kernel set the gravity {found} instead of {requested}")]
    Other {
        /// The requested gravity.
        requested: Gravity,
        /// The gravity in force.
        found: Gravity,
    },
}

/// The gravity for a calibration. Dropping this restores the old one; after SIGKILL the journal restores it.
#[derive(Debug)]
pub struct GravityHold {
    journal: Journal,
    before: Gravity,
}

impl GravityHold {
    /// Begins a calibration.
    ///
    /// # Errors
    /// [`GravityError`].
    pub fn take(root: &Root) -> Result<Self, GravityError> {
        Self::take_with(Rc::new(root.clone()))
    }

    fn take_with(ops: Rc<dyn SystemOps>) -> Result<Self, GravityError> {
        let before = read(ops.root())?;
        Ok(Self { journal: Journal::begin(ops, Purpose::Gravity)?, before })
    }

    /// The gravity before the calibration.
    #[must_use]
    pub fn before(&self) -> Gravity {
        self.before
    }

    /// Sets the gravity until the next call.
    ///
    /// # Errors
    /// [`GravityError`].
    pub fn set(&mut self, gravity: Gravity) -> Result<(), GravityError> {
        // One entry at a time: the value in force is then always the one that the journal expects.
        self.journal.restore_from(0);
        self.journal.record([entry(self.before, gravity)])?;
        write(&*self.journal.ops(), gravity)
    }

    /// Sets the gravity from before, whatever is in force. The kernel changes the gravity itself when it calibrates.
    ///
    /// # Errors
    /// [`GravityError`].
    pub fn reset(&mut self) -> Result<(), GravityError> {
        write(&*self.journal.ops(), self.before)
    }
}

/// Sets the gravity. It remains until the user restores it ([`restore_all`](crate::journal::restore_all)), or until the
/// next boot.
///
/// # Errors
/// [`GravityError`]; the old gravity is in force then.
pub fn keep_gravity(root: &Root, gravity: Gravity) -> Result<(), GravityError> {
    keep_with(Rc::new(root.clone()), gravity)
}

fn keep_with(ops: Rc<dyn SystemOps>, gravity: Gravity) -> Result<(), GravityError> {
    let now = read(ops.root())?;
    let mut journal = Journal::begin(ops, Purpose::KeptGravity)?;
    let earlier = journal.others();
    // The user wants back the gravity from before the first change.
    let first = earlier.iter().find_map(|(_, undo)| match undo.as_slice() {
        [Undo::File { path, before, during }] if path == FILE && *during == now.to_string() => before.parse().ok(),
        _ => None,
    });
    journal.record([entry(first.unwrap_or(now), gravity)])?;
    if let Err(error) = write(&*journal.ops(), gravity) {
        let _ = write(&*journal.ops(), now);
        return Err(error);
    }
    for (path, _) in earlier {
        // One that remains changes nothing: the value in force is not its own.
        let _ = fs::remove_file(path);
    }
    journal.keep();
    Ok(())
}

fn entry(before: Gravity, during: Gravity) -> Undo {
    Undo::File { path: FILE.to_owned(), before: before.to_string(), during: during.to_string() }
}

fn read(root: &Root) -> Result<Gravity, GravityError> {
    Ok(root.try_read(FILE)?.parse()?)
}

/// Writes the gravity and reads it back.
fn write(ops: &dyn SystemOps, gravity: Gravity) -> Result<(), GravityError> {
    ops.write(FILE, &gravity.to_string()).map_err(|source| GravityError::Refused { gravity, source })?;
    match read(ops.root())? {
        found if found == gravity => Ok(()),
        found => Err(GravityError::Other { requested: gravity, found }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::{restore_each, restore_with};

    const BEFORE: &str = "0i 3000k 3000u";

    fn machine() -> (tempfile::TempDir, Root) {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::at(folder.path());
        for (path, text) in [(FILE, BEFORE), ("proc/sys/kernel/random/boot_id", "of-this-boot")] {
            fs::create_dir_all(root.path(path).parent().unwrap()).unwrap();
            fs::write(root.path(path), text).unwrap();
        }
        (folder, root)
    }

    fn gravity(user_ns: u64) -> Gravity {
        Gravity { irq_ns: 500, kernel_ns: 1000, user_ns }
    }

    #[test]
    fn a_calibration_leaves_the_gravity_as_it_was() {
        let (_folder, root) = machine();
        let mut hold = GravityHold::take(&root).unwrap();
        for user_ns in [0, 500, 1000] {
            hold.set(gravity(user_ns)).unwrap();
            assert_eq!(read(&root).unwrap(), gravity(user_ns));
        }
        // As the kernel's own calibration does.
        fs::write(root.path(FILE), "700i 3000k 3000u").unwrap();
        hold.reset().unwrap();
        hold.set(gravity(7)).unwrap();
        drop(hold);
        assert_eq!(root.read(FILE).as_deref(), Some(BEFORE));
    }

    #[test]
    fn a_requested_gravity_remains_until_the_user_restores_it() {
        let (_folder, root) = machine();
        let journals = || root.list("run/punctual");
        keep_gravity(&root, gravity(2000)).unwrap();
        // As that of another process.
        let own = root.path("run/punctual").join(&journals()[0]);
        fs::rename(own, root.path("run/punctual/77-1-kept-gravity.json")).unwrap();
        keep_gravity(&root, gravity(2500)).unwrap();
        assert_eq!(journals().len(), 1, "one journal restores the first gravity");
        assert_eq!(restore_with(&root).unwrap(), [], "each measurement calls this at its start");
        assert_eq!(read(&root).unwrap(), gravity(2500));
        let restored = restore_each(&root, |_| true).unwrap();
        assert_eq!(restored.len(), 1);
        assert_eq!(restored[0].in_words(), "changes of `punctual evl gravity --set`: restored 1 setting");
        assert_eq!(root.read(FILE).as_deref(), Some(BEFORE));
        assert!(journals().is_empty());
    }

    #[test]
    fn refuses_a_machine_without_the_core() {
        let folder = tempfile::tempdir().unwrap();
        let error = GravityHold::take(&Root::at(folder.path())).unwrap_err().to_string();
        assert_eq!(error, "cannot read the gravity in /sys/devices/virtual/clock/monotonic/gravity: it does not exist");
    }
}

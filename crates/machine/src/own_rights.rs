//! The rights of the user, without the capabilities that the file of the binary adds (`setcap`).

use std::io;

use rustix::{
    process::geteuid,
    thread::{CapabilitySet, CapabilitySets, capabilities, capability_is_in_ambient_set, set_capabilities},
};

/// Calls `work` with the rights of the user who runs this process, so that the kernel refuses what the user may not do.
/// Root keeps all capabilities, and a user those of the ambient set, which each program of the user has.
///
/// # Errors
/// The kernel's, if the capabilities cannot be given up. `work` is not called then.
pub(crate) fn with_own_rights<T>(work: impl FnOnce() -> T) -> io::Result<T> {
    let _restored = GivenUp::all_but_own()?;
    Ok(work())
}

/// True if this process has capabilities that its user does not have.
pub(crate) fn are_exceeded() -> bool {
    capabilities(None).is_ok_and(|sets| own(sets) != sets.effective)
}

/// The capabilities of the user.
fn own(sets: CapabilitySets) -> CapabilitySet {
    if geteuid().is_root() {
        return sets.effective;
    }
    sets.effective.iter().filter(|&one| capability_is_in_ambient_set(one).unwrap_or(false)).collect()
}

/// Capabilities of this thread that are given up until this value is dropped.
struct GivenUp(CapabilitySets);

impl GivenUp {
    fn all_but_own() -> io::Result<Self> {
        let before = capabilities(None)?;
        let effective = own(before);
        if effective != before.effective {
            set_capabilities(None, CapabilitySets { effective, ..before })?;
        }
        Ok(Self(before))
    }
}

impl Drop for GivenUp {
    fn drop(&mut self) {
        // They are still permitted, so the kernel does not refuse them.
        let _ = set_capabilities(None, self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_work_is_done() {
        assert_eq!(with_own_rights(|| 1).unwrap(), 1);
    }

    /// Tests that need root; `tools/test` reports that it skips them without root.
    mod rights {
        use rustix::{process::Uid, thread};

        use super::*;

        #[test]
        fn capabilities_are_given_up_and_returned() {
            assert!(!are_exceeded(), "root has them without the file");
            let check = || {
                let nobody = Uid::from_raw(65_534);
                thread::set_keep_capabilities(true).unwrap();
                thread::set_thread_res_uid(nobody, nobody, nobody).unwrap();
                let sets = capabilities(None).unwrap();
                set_capabilities(None, CapabilitySets { effective: CapabilitySet::SYS_NICE, ..sets }).unwrap();
                let effective = || capabilities(None).unwrap().effective;
                assert!(are_exceeded());
                assert_eq!(with_own_rights(effective).unwrap(), CapabilitySet::empty());
                assert_eq!(effective(), CapabilitySet::SYS_NICE);
            };
            // These rights are those of a thread.
            std::thread::spawn(check).join().unwrap();
        }
    }
}

//! The operations that change a machine: kernel files, control groups, affinities, policies, settings of interfaces.
//! All changes go through one trait, so that tests can replace the machine.

use std::{fmt, fs, io, io::Write, os::unix::fs::OpenOptionsExt};

use rustix::fs::{OFlags, XattrFlags};
use sys::sched::Policy;

use crate::{
    CpuList, Root,
    nic::{Parameter, Value},
};

/// The attributes that keep a text with a control group. Only root can read and write them. An empty one is the last.
const ATTRIBUTE: &str = "trusted.punctual";
/// The largest attribute that the kernel accepts, bytes (`XATTR_SIZE_MAX`), and the most that are read.
const ATTRIBUTE_BYTES: usize = 64 << 10;
const ATTRIBUTES: usize = 256;

/// Changes a machine. Paths are written as for [`Root`]. The default of each operation is `Unsupported`, for tests.
pub(crate) trait SystemOps: fmt::Debug {
    /// The root folder for reading.
    fn root(&self) -> &Root;
    /// Writes to an existing file.
    fn write(&self, _path: &str, _text: &str) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
    /// Creates a folder in an existing one. Fails if there is one.
    fn make_folder(&self, _folder: &str) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
    /// Removes an empty folder.
    fn remove_folder(&self, _folder: &str) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
    /// Creates a file in an existing folder. Fails if there is one.
    fn create_file(&self, _path: &str, _text: &str) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
    /// Removes a file.
    fn remove_file(&self, _path: &str) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
    /// Creates a control group.
    fn make_group(&self, _folder: &str) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
    /// Removes an empty control group.
    fn remove_group(&self, _folder: &str) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
    /// Keeps a text with a control group until the group is removed.
    fn keep_text(&self, _folder: &str, _text: &str) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
    /// The text that was kept with a control group.
    fn kept_text(&self, _folder: &str) -> Option<String> {
        None
    }
    /// Sets the affinity of a thread.
    fn set_affinity(&self, _thread_id: u32, _cpus: &CpuList) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
    /// Sets the policy of a thread.
    fn set_policy(&self, _thread_id: u32, _policy: Policy) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
    /// Reads a setting of an interface.
    fn nic_parameter(&self, _interface: &str, _parameter: Parameter) -> io::Result<Value> {
        Err(io::ErrorKind::Unsupported.into())
    }
    /// Changes a setting of an interface.
    fn set_nic_parameter(&self, _interface: &str, _parameter: Parameter, _value: Value) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// The error of a change that only a machine which runs can have.
fn recorded(what: &str) -> io::Error {
    let text = format!("a recorded machine (--root) has no {what}: run without --root on the machine itself");
    io::Error::new(io::ErrorKind::Unsupported, text)
}

impl SystemOps for Root {
    fn root(&self) -> &Root {
        self
    }

    fn write(&self, path: &str, text: &str) -> io::Result<()> {
        let mut options = fs::OpenOptions::new();
        options.write(true).truncate(self.is_system());
        if !self.is_system() {
            // The files of the kernel are no links; those of a recorded machine may lead anywhere.
            options.custom_flags(OFlags::NOFOLLOW.bits().cast_signed());
        }
        let mut file = options.open(self.for_writing(path)?)?;
        if self.is_system() {
            return file.write_all(text.as_bytes());
        }
        // Like a file of the kernel, that of a recorded machine always has one value: neither none, nor a mixture of both if
        // this process is killed before it shortens the file.
        file.write_all(in_place_of(file.metadata()?.len(), text).as_bytes())?;
        file.set_len(text.len() as u64)
    }

    fn make_folder(&self, folder: &str) -> io::Result<()> {
        fs::create_dir(self.for_writing(folder)?)
    }

    fn remove_folder(&self, folder: &str) -> io::Result<()> {
        fs::remove_dir(self.for_writing(folder)?)
    }

    fn create_file(&self, path: &str, text: &str) -> io::Result<()> {
        let path = self.for_writing(path)?;
        record::file::write_new(&path, text.as_bytes()).map_err(|error| match error {
            record::file::FileError::Write { source, .. } => source,
            other => io::Error::other(other),
        })
    }

    fn remove_file(&self, path: &str) -> io::Result<()> {
        fs::remove_file(self.for_writing(path)?)
    }

    fn make_group(&self, folder: &str) -> io::Result<()> {
        fs::create_dir(self.for_writing(folder)?)
    }

    fn remove_group(&self, folder: &str) -> io::Result<()> {
        fs::remove_dir(self.for_writing(folder)?)
    }

    fn keep_text(&self, folder: &str, text: &str) -> io::Result<()> {
        let folder = self.for_writing(folder)?;
        let pieces = text.as_bytes().chunks(ATTRIBUTE_BYTES);
        for (number, piece) in pieces.chain([&[][..]]).enumerate() {
            rustix::fs::setxattr(&folder, format!("{ATTRIBUTE}.{number}"), piece, XattrFlags::empty())?;
        }
        Ok(())
    }

    fn kept_text(&self, folder: &str) -> Option<String> {
        let folder = self.path(folder);
        let mut text = Vec::new();
        for number in 0..ATTRIBUTES {
            let mut piece = vec![0; ATTRIBUTE_BYTES];
            let length = rustix::fs::getxattr(&folder, format!("{ATTRIBUTE}.{number}"), &mut piece).ok()?;
            if length == 0 {
                return String::from_utf8(text).ok();
            }
            text.extend_from_slice(&piece[..length]);
        }
        None
    }

    fn set_affinity(&self, thread_id: u32, cpus: &CpuList) -> io::Result<()> {
        if !self.is_system() {
            return Err(recorded("threads to move"));
        }
        sys::sched::set_affinity_of(Some(thread_id), &cpus.iter().collect::<Vec<_>>())
    }

    fn set_policy(&self, thread_id: u32, policy: Policy) -> io::Result<()> {
        if self.is_system() {
            sys::sched::set_policy_of(thread_id, policy)
        } else {
            Err(recorded("threads whose priority can change"))
        }
    }

    fn nic_parameter(&self, interface: &str, parameter: Parameter) -> io::Result<Value> {
        if self.is_system() { parameter.read(interface) } else { Err(recorded("network cards")) }
    }

    fn set_nic_parameter(&self, interface: &str, parameter: Parameter, value: Value) -> io::Result<()> {
        if self.is_system() { parameter.write(interface, value) } else { Err(recorded("network cards")) }
    }
}

/// The text to write over a file of this many bytes: blank lines replace the rest of its text, so that one write leaves
/// nothing of the old value.
fn in_place_of(bytes: u64, text: &str) -> String {
    let rest = usize::try_from(bytes).unwrap_or(usize::MAX).saturating_sub(text.len());
    text.to_owned() + &"\n".repeat(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_longer_value_leaves_nothing_behind() {
        for (old, new) in [("performance\n", "powersave"), ("1", "950000"), ("", "on"), ("on", "")] {
            let written = in_place_of(old.len() as u64, new);
            assert!(written.trim() == new && written.len() >= old.len(), "{old:?}: {written:?}");
        }
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("governor"), "performance\n").unwrap();
        SystemOps::write(&Root::at(folder.path()), "governor", "powersave").unwrap();
        assert_eq!(fs::read_to_string(folder.path().join("governor")).unwrap(), "powersave");
    }
}

//! What changes the machine: the kernel's files, control groups and affinities. One seam, so that tests can put a machine
//! behind it that does not exist.

use std::{fmt, fs, io, io::Write};

use sys::sched::Policy;

use crate::{
    CpuList, Root,
    nic::{Knob, Value},
};

/// Changes a machine. Paths are as those of [`Root`]. A machine of a test has only what it says.
pub(crate) trait Hands: fmt::Debug {
    /// Where the machine is read.
    fn root(&self) -> &Root;
    /// Writes to a file that is there.
    fn write(&self, _path: &str, _text: &str) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
    /// Makes a control group.
    fn make_group(&self, _folder: &str) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
    /// Removes a control group that nobody is in.
    fn remove_group(&self, _folder: &str) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
    /// Lets a thread run on these CPUs alone.
    fn set_affinity(&self, _thread_id: u32, _cpus: &CpuList) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
    /// Gives a thread this policy.
    fn set_policy(&self, _thread_id: u32, _policy: Policy) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
    /// A value of an interface.
    fn nic_value(&self, _interface: &str, _knob: Knob) -> io::Result<Value> {
        Err(io::ErrorKind::Unsupported.into())
    }
    /// Sets a value of an interface.
    fn set_nic_value(&self, _interface: &str, _knob: Knob, _value: Value) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

impl Hands for Root {
    fn root(&self) -> &Root {
        self
    }

    fn write(&self, path: &str, text: &str) -> io::Result<()> {
        fs::OpenOptions::new().write(true).truncate(true).open(self.path(path))?.write_all(text.as_bytes())
    }

    fn make_group(&self, folder: &str) -> io::Result<()> {
        fs::create_dir(self.path(folder))
    }

    fn remove_group(&self, folder: &str) -> io::Result<()> {
        fs::remove_dir(self.path(folder))
    }

    fn set_affinity(&self, thread_id: u32, cpus: &CpuList) -> io::Result<()> {
        if !self.is_system() {
            return Err(io::Error::new(io::ErrorKind::Unsupported, "a recorded machine has no threads to move"));
        }
        sys::sched::set_affinity_of(Some(thread_id), &cpus.iter().collect::<Vec<_>>())
    }

    fn set_policy(&self, thread_id: u32, policy: Policy) -> io::Result<()> {
        if self.is_system() {
            sys::sched::set_policy_of(thread_id, policy)
        } else {
            Err(io::ErrorKind::Unsupported.into())
        }
    }

    fn nic_value(&self, interface: &str, knob: Knob) -> io::Result<Value> {
        if self.is_system() { knob.read(interface) } else { Err(io::ErrorKind::Unsupported.into()) }
    }

    fn set_nic_value(&self, interface: &str, knob: Knob, value: Value) -> io::Result<()> {
        if self.is_system() { knob.write(interface, value) } else { Err(io::ErrorKind::Unsupported.into()) }
    }
}

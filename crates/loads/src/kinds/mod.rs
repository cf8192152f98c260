//! The loads: one file each, and the list of them.
//!
//! A load is a struct with its options as fields, and implements `LoadKind` of `kind`. To add one, write its file and add its two
//! lines here (`mod` and the list); `docs/loads.md` describes it to users.

use machine::CpuList;

use crate::{LoadError, SpecError};

mod cache;
mod cpu;
mod define;
mod disk;
mod idle;
mod irq;
mod kind;
mod memory;
mod net;
mod shell;
mod stress_ng;
mod switch;
mod timer;

pub use kind::Kind;
pub(crate) use kind::{Job, LoadKind, Plan};

// In the order of the help text.
define::loads! {
    idle::Idle,
    cpu::Cpu,
    cache::Cache,
    memory::Memory,
    switch::Switch,
    timer::Timer,
    disk::Disk,
    net::Net,
    irq::Irq,
    stress_ng::StressNg,
}

impl Load {
    /// True for the load that does nothing.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        matches!(self, Self::Idle(_))
    }

    /// True for a load whose threads never wait, so that its CPUs are never idle.
    pub(crate) fn never_waits(&self) -> bool {
        matches!(self, Self::Cpu(_) | Self::Cache(_) | Self::Switch(_))
    }

    /// True for a load that runs a program which may change its own threads.
    pub(crate) fn runs_foreign_program(&self) -> bool {
        matches!(self, Self::StressNg(_))
    }
}

#[cfg(test)]
mod tests {
    use super::{KINDS, examples};

    #[test]
    fn documentation_names_every_load_and_option() {
        let page = include_str!("../../../../docs/loads.md");
        for kind in KINDS {
            assert!(page.contains(&format!("\n| `{}` |", kind.name)), "{}", kind.name);
            for (option, _) in kind.options {
                assert!(page.contains(&format!("`{option}`")), "{} {option}", kind.name);
            }
        }
    }

    #[test]
    fn every_load_has_a_description_and_an_example() {
        for kind in KINDS {
            assert!(!kind.description.is_empty(), "{}", kind.name);
            assert!(examples().iter().any(|(_, load)| load.name() == kind.name), "{}", kind.name);
        }
    }
}

//! The description of a load, the trait that each kind of load implements, and the work that it prepares.

use machine::CpuList;
use sys::sched::Policy;

use crate::{LoadError, SpecError, meter::Meter};

/// Name, description and options of a load, for help and documentation.
#[derive(Debug, Clone, Copy)]
pub struct Kind {
    /// Name, as written before the colon.
    pub name: &'static str,
    /// One line that says what the load does.
    pub description: &'static str,
    /// The options as written, each with its meaning.
    pub options: &'static [(&'static str, &'static str)],
}

/// A load: its help, its options as text, and its work.
///
/// An option that is `None` takes the default that `KIND` names.
pub(crate) trait LoadKind: Sized {
    const KIND: Kind;

    /// Reads the options: the text after the colon.
    fn parse(options: &str) -> Result<Self, SpecError>;

    /// Writes the options so that `parse` reads them again. Options that have their default are omitted.
    fn options(&self) -> String;

    /// Prepares the work on `cpus`. A missing resource is an error here, before any work starts.
    fn plan(&self, cpus: &CpuList) -> Result<Plan, LoadError>;

    /// True if the load takes all the CPU time that it can get.
    fn is_busy(&self) -> bool;

    /// Options as written, each with the load that they give.
    #[cfg(test)]
    fn examples() -> Vec<(&'static str, Self)>;

    /// Any valid load of this kind.
    #[cfg(test)]
    fn any() -> proptest::strategy::BoxedStrategy<Self>;
}

/// The prepared work of a load.
pub(crate) struct Plan {
    /// The name of one operation, in the plural.
    pub unit: String,
    /// The reason why the load runs only in part.
    pub note: Option<String>,
    /// The work of each thread.
    pub jobs: Vec<Job>,
}

/// The work of one thread, which ends when its meter signals it to stop.
pub(crate) struct Job {
    pub cpus: CpuList,
    pub policy: Policy,
    pub work: Work,
}

pub(crate) type Work = Box<dyn FnOnce(&Meter) -> Result<(), LoadError> + Send>;

impl Job {
    pub(super) fn on(cpu: u32, work: impl FnOnce(&Meter) -> Result<(), LoadError> + Send + 'static) -> Self {
        Self { cpus: std::iter::once(cpu).collect(), policy: Policy::Other, work: Box::new(work) }
    }
}

impl Plan {
    pub(super) fn new(unit: &str, jobs: Vec<Job>) -> Self {
        Self { unit: unit.to_owned(), note: None, jobs }
    }

    /// The same work on each CPU.
    pub(super) fn each_cpu<W>(unit: &str, cpus: &CpuList, work: W) -> Self
    where
        W: Fn(&Meter) -> Result<(), LoadError> + Clone + Send + 'static,
    {
        Self::new(unit, cpus.iter().map(|cpu| Job::on(cpu, work.clone())).collect())
    }
}

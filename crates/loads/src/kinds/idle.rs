//! The load that does nothing, for naming the measurement at rest explicitly.

use machine::CpuList;

use super::kind::{Kind, LoadKind, Plan};
use crate::{LoadError, SpecError, options::Options};

/// No load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Idle;

impl LoadKind for Idle {
    const KIND: Kind = Kind { name: "idle", description: "no load, named explicitly", options: &[] };

    fn parse(options: &str) -> Result<Self, SpecError> {
        Options::new(Self::KIND.name, options).finish(Self)
    }

    fn options(&self) -> String {
        String::new()
    }

    fn plan(&self, _cpus: &CpuList) -> Result<Plan, LoadError> {
        Ok(Plan::new("nothing", Vec::new()))
    }

    fn is_busy(&self) -> bool {
        false
    }

    #[cfg(test)]
    fn examples() -> Vec<(&'static str, Self)> {
        vec![("", Self)]
    }

    #[cfg(test)]
    fn any() -> proptest::strategy::BoxedStrategy<Self> {
        proptest::strategy::Strategy::boxed(proptest::strategy::Just(Self))
    }
}

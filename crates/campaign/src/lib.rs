//! Scenarios and their order: what runs when.
//!
//! | module | holds |
//! |---|---|
//! | [`plan`] | what is asked for |
//! | [`scenario`] | a campaign that is ready to run: its scenarios, each with its plan |
//! | [`runner`] | runs a campaign: scenario after scenario, stop and resume |
//! | [`run`] | a whole run: phases in their order, the record growing |
//! | `phase` | one phase: measuring threads and the loads beside them |
//! | `cost` | what looking for culprits costs |
//! | `validity` | whether what was asked for is what ran |
//! | `keeper` | keeps the record on disk while the run goes on |

mod cost;
mod keeper;
mod phase;
pub mod plan;
mod run;
pub mod runner;
pub mod scenario;
mod validity;

pub use plan::{Length, PhasePlan, Plan, PlanError, Probe, StopOn, ThreadPlan};
pub use run::{Progress, RunError, run, stamp_now};
pub use runner::{Audience, CampaignError, CampaignProgress, Runner};
pub use scenario::{Scenario, Scenarios};

//! Scenarios and their order: what runs when.
//!
//! | module | contains |
//! |---|---|
//! | [`probe`] | the probes, each defined once |
//! | [`plan`] | what a run is asked for |
//! | `phase` | one phase: measuring threads and the loads that run at the same time |
//! | `run` | a whole run: phases in order, while the record grows |
//! | `changes` | everything that a run changes on the machine, undone in reverse order |
//! | `shielded` | threads and loads on their side of a shield |
//! | `nic` | settings of a network interface for the run |
//! | `evl` | threads of the EVL core |
//! | `validity` | checks that what ran is what was asked for |
//! | `cost` | what looking for culprits costs |
//! | `record_budget` | what a run of very many series leaves out |
//! | `keeper` | keeps the record on disk while the run goes on |
//! | [`error`] | why a run could not be made |
//! | [`process`] | a program of the user, watched thread by thread |
//! | `answer` | the answering end of round trips, as a run of its own |
//! | [`matrix`] | two threads on each pair of CPUs |
//! | [`mod@file`] | a campaign as its user writes it, with every mistake reported |
//! | [`builtin`] | finds a campaign: built in, or a file |
//! | [`mod@expand`] | from the file to scenarios for the CPUs of a machine |
//! | [`here`] | checks that a machine has what a campaign needs |
//! | [`order`] | the order in which scenarios run |
//! | [`scenario`] | a campaign that is ready to run: its scenarios, each with its plan |
//! | [`runner`] | runs a campaign: scenario after scenario, stop and resume |

mod answer;
pub mod builtin;
mod changes;
mod cost;
pub mod error;
mod evl;
pub mod expand;
pub mod file;
pub mod here;
mod keeper;
pub mod matrix;
mod nic;
pub mod order;
mod phase;
pub mod plan;
pub mod probe;
pub mod process;
mod record_budget;
mod run;
pub mod runner;
pub mod scenario;
mod shielded;
mod validity;

pub use answer::{AnswerPlan, Answering};
pub use builtin::{CampaignFileError, find_campaign};
pub use error::RunError;
pub use expand::{Asked, Cpus, expand};
pub use file::{CampaignFile, FileMistakes};
pub use here::Here;
pub use matrix::Matrix;
pub use plan::{Length, NicPlan, PhasePlan, Plan, StopOn};
pub use probe::{PlanError, Probe, ThreadPlan};
pub use process::{ProcessPlan, Target, watch_process};
pub use run::{Progress, SELF_EXE, begin, now, run, stamp_now};
pub use runner::{Audience, CampaignError, CampaignProgress, Runner};
pub use scenario::{AROUND_NS, Scenario, Scenarios};

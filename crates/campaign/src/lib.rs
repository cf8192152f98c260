//! Runs, and campaigns of runs.
//!
//! | module | contains |
//! |---|---|
//! | [`probe`] | the probes, each defined once |
//! | [`plan`] | the plan of a run |
//! | `phase` | one phase: measuring threads and the loads that run at the same time |
//! | `run` | a whole run: phases in order, while the record grows |
//! | `changes` | the changes that a run makes on the machine, undone in reverse order |
//! | `tuned` | settings of the machine for a run |
//! | `shielded` | runs on shielded CPUs |
//! | [`on_spike`] | actions at spikes, while the measurement goes on |
//! | `nic` | settings of a network interface for the run |
//! | [`outside`] | compares the answers at an outside judge with the thread that gave them |
//! | `evl` | threads of the EVL core |
//! | [`leftovers`] | what killed runs left on the machine |
//! | `supervisor` | checks during a phase that the run is still what was requested |
//! | `validity` | reasons why a run is invalid |
//! | `cost` | the cost of tracing |
//! | `record_budget` | limits the size of the record of a run with very many series |
//! | `record_writer` | writes the record to disk during the run |
//! | [`error`] | errors of a run |
//! | [`process`] | a program of the user, watched thread by thread |
//! | [`prove`] | measures which changes help, in rounds with and without them |
//! | [`gravity`] | calibrates the gravity of the EVL core |
//! | `cores` | the cores that schedule the measuring threads |
//! | `answer` | the answering end of round trips |
//! | [`matrix`] | two threads on each pair of CPUs |
//! | [`mod@file`] | reads a campaign file, and reports all its mistakes |
//! | [`builtin`] | finds a campaign, built in or in a file |
//! | [`mod@expand`] | expands a campaign file to scenarios for the CPUs of a machine |
//! | [`validator`] | checks a campaign against a machine |
//! | [`order`] | the order in which scenarios run |
//! | [`scenario`] | a campaign that is ready to run: its scenarios, each with its plan |
//! | [`runner`] | runs, stops and resumes a campaign |

mod answer;
pub mod builtin;
mod changes;
mod cores;
mod cost;
pub mod error;
mod evl;
pub mod expand;
pub mod file;
pub mod gravity;
pub mod leftovers;
pub mod matrix;
mod nic;
pub mod on_spike;
pub mod order;
pub mod outside;
mod phase;
pub mod plan;
pub mod probe;
pub mod process;
pub mod prove;
mod record_budget;
mod record_writer;
mod run;
pub mod runner;
pub mod scenario;
mod shielded;
mod source_irq;
mod supervisor;
mod tuned;
pub mod validator;
mod validity;

pub use answer::{AnswerPlan, Answering};
pub use builtin::{CampaignFileError, find_campaign};
pub use cores::{Cores, UnknownCore};
pub use error::RunError;
pub use expand::{Cpus, ExpandOptions, expand};
pub use file::{CampaignFile, FileMistakes};
pub use matrix::Matrix;
pub use on_spike::{Action, OnSpike};
pub use plan::{Length, NicPlan, PhasePlan, Plan, StopOn};
pub use probe::{PlanError, Probe, ThreadPlan};
pub use process::{ProcessPlan, Target, watch_process};
pub use run::{Progress, SELF_EXE, UNWRITTEN_TRACE, begin, check, now, run, stamp_now};
pub use runner::{CampaignError, CampaignHandler, CampaignProgress, Runner};
pub use scenario::{AROUND_NS, Scenario, Scenarios};
pub use supervisor::Supervisor;
pub use validator::Validator;

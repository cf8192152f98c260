//! Scenarios and their order: what runs when.
//!
//! | module | holds |
//! |---|---|
//! | [`mod@file`] | a campaign as its user writes it, with every mistake named |
//! | [`builtin`] | the campaigns that ship with punctual |
//! | [`mod@expand`] | from the file to scenarios for the CPUs of a machine |
//! | [`here`] | whether a machine has what a campaign needs |
//! | [`order`] | in which order they run |
//! | [`plan`] | what is asked for |
//! | [`threads`] | where threads of their own go |
//! | [`matrix`] | two threads on each pair of CPUs |
//! | [`scenario`] | a campaign that is ready to run: its scenarios, each with its plan |
//! | [`runner`] | runs a campaign: scenario after scenario, stop and resume |
//! | `run` | a whole run: phases in their order, the record growing |
//! | [`process`] | a user's own program, watched thread by thread |
//! | `phase` | one phase: measuring threads and the loads beside them |
//! | [`stream`] | a stream's talker and listener, and where they are |
//! | `nic` | values of the stream's interface, set for the run |
//! | [`audio`] | audio played in periods, and what it is played through |
//! | [`udp`] | round trips, and who answers |
//! | `answer` | the answering end, as a run of its own |
//! | `companion` | what measures together with the timers of a phase |
//! | `shielded` | threads and loads on their side of a shield |
//! | `evl` | threads of the EVL core |
//! | `cost` | what looking for culprits costs |
//! | `thrift` | what a run of very many series leaves out |
//! | `validity` | whether what was asked for is what ran |
//! | `keeper` | keeps the record on disk while the run goes on |

mod answer;
pub mod audio;
pub mod builtin;
mod companion;
mod cost;
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
pub mod process;
mod run;
pub mod runner;
pub mod scenario;
mod shielded;
pub mod stream;
pub mod threads;
mod thrift;
pub mod udp;
mod validity;

pub use answer::{AnswerPlan, Answering};
pub use audio::{AudioError, AudioPlan, CabSource, ModelSource, Through};
pub use expand::{Asked, Cpus, expand};
pub use file::{CampaignFile, CampaignFileError, FileMistakes, find_campaign};
pub use here::Here;
pub use matrix::Matrix;
pub use nic::NicPlan;
pub use plan::{Length, PhasePlan, Plan, PlanError, Probe, StopOn, ThreadPlan};
pub use probes::{ReceiveWait, stream::transmit::TransmitMode};
pub use process::{ProcessPlan, Target, watch_process};
pub use run::{ITSELF, Progress, RunError, begin, now, run, stamp_now};
pub use runner::{Audience, CampaignError, CampaignProgress, Runner};
pub use scenario::{AROUND_NS, Scenario, Scenarios};
pub use stream::{CaptureTo, ListenPlan, ListenXdp, StreamError, StreamPlan, TalkPlan, WakeupOffset};
pub use threads::ThreadAsk;
pub use udp::{Peer, UdpPlan};

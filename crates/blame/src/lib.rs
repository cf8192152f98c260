//! Finds the culprits of late wake-ups in the kernel's trace.
//!
//! | module | contents |
//! |---|---|
//! | [`watch`] | explains the spikes of a run while it goes on |
//! | [`bound`] | a bound of the latency from its causes |
//! | [`counters`] | a likely culprit if there is no trace |
//! | [`event`] | decoded trace events |
//! | [`mod@explain`] | the culprits of one spike, from trace events |
//! | `idle` | names of idle states |
//! | [`ledger`] | the causes of all spikes, the largest total first |
//! | [`marks`] | the marks of cycles in a program |
//! | [`process`] | scheduling statistics of a program's threads |
//! | [`follow`] | reads the trace of a program's threads |
//! | [`mod@remedy`] | what to do about a cause |
//! | [`mod@perfetto`] | export of time lines to a trace viewer |
//! | `time` | the trace's clock |
//! | [`timerlat`] | measurements of the kernel's timerlat tracer |
//! | [`trace`] | reads and decodes the kernel's trace |

pub mod bound;
pub mod counters;
pub mod event;
pub mod explain;
pub mod follow;
mod idle;
pub mod ledger;
pub mod marks;
pub mod perfetto;
pub mod process;
pub mod remedy;
mod time;
pub mod timerlat;
pub mod trace;
pub mod watch;

pub use counters::Counters;
pub use event::{Comm, Event, EventKind, Name, Names, Task};
pub use explain::{Explanation, MeasuredThread, WakeUp, Work, explain};
pub use follow::{Exec, Follower};
pub use ledger::{Entry, Ledger};
pub use marks::Mark;
pub use perfetto::perfetto;
pub use process::{ClockOffsets, Pattern, Process, Selection, ThreadInfo, fault_time_ns};
pub use remedy::{RemedyFacts, remedy};
pub use timerlat::{Timerlat, TimerlatError};
pub use trace::{DatError, Instance, Settings, Snapshot, TraceError, Tracefs};
pub use watch::{BlameMode, Watch};

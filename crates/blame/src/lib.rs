//! Kernel trace in, culprits out.
//!
//! | module | holds |
//! |---|---|
//! | [`watch`] | watches a run: reads the trace at each spike, and explains it |
//! | [`counters`] | a likely culprit where there is no trace |
//! | [`event`] | what happened on a CPU, in our words |
//! | [`mod@explain`] | the culprits of one spike, from the events of its CPU |
//! | `idle` | names of idle states |
//! | [`ledger`] | the causes of all spikes, the heaviest first |
//! | [`process`] | what the scheduler did with the threads of a program |
//! | [`follow`] | a program's threads followed in the kernel's trace |
//! | [`mod@remedy`] | what to do about a cause |
//! | [`mod@perfetto`] | time lines for a viewer |
//! | [`timerlat`] | the kernel's own measurement, beside ours |
//! | [`trace`] | the kernel's trace as such events |

pub mod counters;
pub mod event;
pub mod explain;
pub mod follow;
mod idle;
pub mod ledger;
pub mod perfetto;
pub mod process;
pub mod remedy;
pub mod timerlat;
pub mod trace;
pub mod watch;

pub use counters::Counters;
pub use event::{Comm, Event, Name, Names, Task, What};
pub use explain::{Explanation, Waiter, Wake, Work, explain};
pub use follow::Follower;
pub use ledger::{Entry, Ledger};
pub use perfetto::perfetto;
pub use process::{Known, Pattern, Process, Selection};
pub use remedy::{RemedyFacts, remedy};
pub use timerlat::{Timerlat, TimerlatError};
pub use trace::{DatError, Instance, Settings, TraceError, Tracefs};
pub use watch::{Asked, Watch};

//! Watches each thread of a user's program with the kernel's scheduler events.
//!
//! | module | contains |
//! |---|---|
//! | `marked_files` | the marks of cycles in its files |
//! | `monitors` | the kernel's monitors of rules for real-time threads |
//! | `program` | finds or starts the program |
//! | `thread_table` | policies and CPUs of its threads, from `/proc` |
//! | `session` | reads the events of the program |

mod marked_files;
mod monitors;
mod program;
mod session;
mod thread_table;

use std::{path::PathBuf, time::Duration};

use blame::{RemedyFacts, Selection, TraceError, Watch};
use loads::{LoadSpec, Running};
use machine::{Conditions, CpuList, MonitorHold, Root, conditions, tune::Choice, usable_cpus};
use record::{BlameMode, Caveat, EndedBy, Phase, ProgramLimits, Record, Scenario, State, file};
use sys::{sched, signal};

use crate::{
    changes::Changes,
    error::RunError,
    record_writer::RecordWriter,
    run::{Progress, begin, hold_awake, now},
    supervisor::Supervisor,
    tuned, validity,
};
use program::Program;
pub use program::{ProgramError, Target};
use session::{EndReason, Session};

/// Name of the one phase.
const PHASE: &str = "run";

/// The plan of watching a program.
#[derive(Debug, Clone)]
pub struct ProcessPlan {
    /// The command line that repeats the run.
    pub command: Vec<String>,
    /// The program.
    pub target: Target,
    /// The threads to watch, and their periods.
    pub selection: Selection,
    /// Duration of the watching, ns; `None` to watch until the program or the user ends it.
    pub duration_ns: Option<u64>,
    /// Wake-up latency above which a wake-up is a spike, ns.
    pub threshold_ns: u64,
    /// Names of the profiles that the verdict is about.
    pub profiles: Vec<String>,
    /// The limits that the verdict is about.
    pub limits: ProgramLimits,
    /// The loads that run at the same time.
    pub loads: Vec<LoadSpec>,
    /// CPUs for loads that name none; `None` for all CPUs.
    pub load_cpus: Option<CpuList>,
    /// True to keep the CPUs out of their idle states.
    pub hold_cpu_awake: bool,
    /// Settings of the machine for the run.
    pub settings: Vec<Choice>,
    /// True to enable the kernel's monitors of rules for real-time threads, which slow all threads of the machine.
    pub monitors: bool,
    /// Method of finding the culprits of spikes.
    pub blame: blame::BlameMode,
    /// File that the record is written to during the run; `None` to keep it only in memory.
    pub record_path: Option<PathBuf>,
    /// The punctual binary, which runs itself for each load.
    pub executable: PathBuf,
    /// Time between two progress reports; `None` for no reports.
    pub watch_every: Option<Duration>,
}

impl ProcessPlan {
    fn scenario(&self) -> Scenario {
        Scenario {
            probe: "process".to_owned(),
            clock: "monotonic".to_owned(),
            threshold_ns: i64::try_from(self.threshold_ns).unwrap_or(i64::MAX),
            hold_cpu_awake: self.hold_cpu_awake,
            settings: self.settings.iter().map(ToString::to_string).collect(),
            profiles: self.profiles.clone(),
            limits: (self.limits != ProgramLimits::default()).then_some(self.limits),
            ..Scenario::default()
        }
    }

    fn phase(&self) -> Phase {
        Phase {
            name: PHASE.to_owned(),
            period_ns: self.selection.periods.iter().map(|&(_, period_ns)| period_ns).min().unwrap_or(0),
            planned_ns: self.duration_ns,
            asked_loads: self.loads.iter().map(ToString::to_string).collect(),
            ..Phase::default()
        }
    }
}

/// Watches a program. Calls `watch` with the record so far, as often as the plan says.
///
/// Signals that ask a process to end, such as SIGTERM, end the run early, if [`signal::count_termination`] was called
/// before; a second SIGINT or SIGTERM discards it. A command that was started for the run is ended with it.
///
/// # Errors
/// [`RunError`]: there is no such program, or it cannot be watched. Then there is no record.
pub fn watch_process(
    plan: &ProcessPlan,
    root: &Root,
    watch: &mut dyn FnMut(&Record, &Progress),
) -> Result<Record, RunError> {
    plan.record_path.as_deref().map(file::check_writable).transpose()?;
    let cpus = usable_cpus(root, None)?;
    let settings = tuned::wanted(&plan.settings, None, root)?;
    // Before a command is started: most monitors cannot judge a thread that is older than they are.
    let mut changes = Changes { monitors: plan.monitors.then(|| MonitorHold::take(root)), ..Changes::default() };
    let mut program = Program::prepare(&plan.target, root)?;
    let mut record = begin(&plan.command, &plan.executable, plan.scenario(), root);
    changes.tuning = tuned::take(&mut record, &settings, None, root)?;
    let loads = match &plan.loads[..] {
        [] => None,
        specs => Some(Running::start(&plan.executable, specs, plan.load_cpus.as_ref().unwrap_or(&cpus))?),
    };
    hold_awake(&mut record, &mut changes, plan.hold_cpu_awake, root, &cpus);
    let before = Conditions::read(root, &cpus);
    // Both traces contain the switch events. This one must see them first, so that it already knows the thread on a CPU
    // when the other trace reports it.
    let blame = Watch::start(plan.blame, root, &cpus.iter().collect::<Vec<_>>(), false).map_err(unseen)?;
    let monitors = changes.monitors.as_ref().map(MonitorHold::monitors).unwrap_or_default();
    let mut session = Session::start(plan, root, &mut program, blame, monitors)?;
    // A command has inherited the policy of this process; the threads of punctual must not disturb it.
    let _ = sched::leave_realtime();
    session.leave_cpus();
    let mut writer = plan.record_path.as_deref().map(|path| RecordWriter::start(path, &record)).transpose()?;
    record.phases.push(plan.phase());
    let mut supervisor = Supervisor::of_program(root).with_loads(loads.as_slice()).with_settings(changes.watches());
    let end = session.watch(|session| {
        supervisor.check_if_due(loads.as_slice());
        let watch_due = session.is_due(plan.watch_every);
        if !watch_due && !writer.as_ref().is_some_and(RecordWriter::is_due) {
            return;
        }
        session.update_record(&mut record);
        if let Some(writer) = writer.as_mut().filter(|writer| writer.is_due()) {
            writer.start_write(&record);
        }
        if watch_due {
            let elapsed_ns = session.elapsed_ns();
            watch(
                &record,
                &Progress { phase_index: 0, phase_count: 1, elapsed_ns, total_ns: plan.duration_ns, decides: false },
            );
        }
    })?;
    if let Some(monitors) = &mut changes.monitors {
        monitors.check();
        session.update_monitors(&monitors.monitors());
    }
    session.update_record(&mut record);
    supervisor.check(loads.as_slice());
    validity::add_all(&mut record, supervisor.reasons().iter().cloned().chain(session.disturbance()));
    let blame = session.finish();
    if let Some(loads) = loads {
        let proofs = loads.stop();
        validity::judge_loads(&mut record, &proofs);
        record.phases[0].loads = proofs;
    }
    blame.relabel_stalls(&mut record);
    validity::judge_changes(&mut record, &conditions::changes(&before, &Conditions::read(root, &cpus)));
    changes.undo(&mut record);
    if let Some(writer) = writer {
        writer.finish();
    }
    if !program.end(root) {
        let text = format!("the program did not end on SIGTERM, and still runs as process {}", program.pid);
        record.caveats.push(Caveat { kind: "running".to_owned(), text });
    }
    add_exit(&mut record, &program);
    if signal::termination_requests() > 1 {
        // The user discards the run, and a file that is already gone needs no removal.
        let _ = plan.record_path.as_deref().map(std::fs::remove_file);
        return Err(RunError::Discarded);
    }
    if end == EndReason::BySignal {
        let ended_by = if signal::is_ended_by_key() { EndedBy::Key } else { EndedBy::Signal };
        (record.state, record.ended_by) = (State::Interrupted, Some(ended_by));
        record.ending_signal = signal::ending_signal();
    } else {
        record.state = State::Complete;
    }
    record.written_at = now();
    Ok(record)
}

/// Adds the exit status or signal of the program to the record, if it is known.
fn add_exit(record: &mut Record, program: &Program) {
    let Some(entry) = &mut record.program else { return };
    match program.exit() {
        Some(Ok(status)) => entry.exit_status = Some(status),
        Some(Err(signal)) => entry.signal = Some(signal),
        None => {}
    }
}

/// The error when the threads cannot be watched because the trace is not available.
fn unseen(error: TraceError) -> RunError {
    RunError::Unseen(match error {
        TraceError::NoMemory { kb_per_cpu } => format!("not enough memory for {kb_per_cpu} KB per CPU; free some"),
        TraceError::Busy { part } => format!("another tracer uses its {part}; end that tracer"),
        TraceError::Refused { part, source } => {
            format!("the kernel refused its {part} ({source}); end other tracers, e.g. with `trace-cmd reset`")
        }
        other => other.to_string(),
    })
}

/// The culprits found, with remedies for the thread that had the worst spike; `None` if none were searched.
fn blamed(blame: &Watch, record: &Record) -> Option<record::Blame> {
    (blame.mode() != BlameMode::Off).then(|| blame.to_record(&RemedyFacts::of(record)))
}

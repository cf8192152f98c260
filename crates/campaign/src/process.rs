//! A user's own program, watched thread by thread: what the scheduler did with each of them.
//!
//! | module | holds |
//! |---|---|
//! | `program` | the program: found, or started and let go once it is watched |
//! | `people` | what `/proc` tells of its threads |
//! | `session` | the watching itself |

mod people;
mod program;
mod session;

use std::{path::PathBuf, time::Duration};

use blame::{RemedyFacts, Selection, TraceError, Watch};
use loads::{LoadSpec, Running};
use machine::{Conditions, CpuList, Root, conditions, usable_cpus};
use record::{BlameMode, Caveat, Phase, Record, Scenario, State, file};
use sys::signal;

use crate::{
    changes::Changes,
    error::RunError,
    keeper::Keeper,
    run::{Progress, begin, hold_awake, make_room, now},
    validity,
};
use program::Program;
pub use program::{ProgramError, Target};
use session::{Over, Session};

/// Name of the one phase.
const PHASE: &str = "run";

/// What is asked for.
#[derive(Debug, Clone)]
pub struct ProcessPlan {
    /// The command line that repeats the run.
    pub command: Vec<String>,
    /// The program.
    pub target: Target,
    /// Which of its threads, and how often each is to run.
    pub selection: Selection,
    /// How long to watch, ns; `None` until the program ends, or the user has seen enough.
    pub duration_ns: Option<u64>,
    /// Wake-up latency above which a wake-up is a spike, ns.
    pub threshold_ns: u64,
    /// What runs beside the program.
    pub loads: Vec<LoadSpec>,
    /// CPUs that loads may use where they do not say so themselves; `None` for all.
    pub load_cpus: Option<CpuList>,
    /// Whether to hold the CPUs out of their idle states.
    pub hold_cpu_awake: bool,
    /// How to look for the culprits of spikes.
    pub blame: blame::BlameMode,
    /// Where the record is kept while the run goes on; `None` to keep it in memory alone.
    pub record_path: Option<PathBuf>,
    /// The punctual binary, which runs itself for each load.
    pub executable: PathBuf,
    /// How often to report progress; `None` for never.
    pub watch_every: Option<Duration>,
}

impl ProcessPlan {
    fn scenario(&self) -> Scenario {
        Scenario {
            probe: "process".to_owned(),
            clock: "monotonic".to_owned(),
            threshold_ns: i64::try_from(self.threshold_ns).unwrap_or(i64::MAX),
            hold_cpu_awake: self.hold_cpu_awake,
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

/// Watches a program as the plan says. `watch` is called as often as that says, with the record as far as it has grown.
///
/// SIGINT and SIGTERM end it early, if [`signal::count_termination`] was called before; a second one discards it. A
/// command that was started for it is ended with it.
///
/// # Errors
/// [`RunError`]: there is no such program, or what it does cannot be seen. Nothing was measured then, or nothing is kept.
pub fn watch_process(
    plan: &ProcessPlan,
    root: &Root,
    watch: &mut dyn FnMut(&Record, &Progress),
) -> Result<Record, RunError> {
    plan.record_path.as_deref().map(file::check_writable).transpose()?;
    let cpus = usable_cpus(root, None)?;
    let mut program = Program::prepare(&plan.target, root)?;
    let mut record = begin(&plan.command, &plan.executable, plan.scenario(), root);
    let loads = match &plan.loads[..] {
        [] => None,
        specs => Some(Running::start(&plan.executable, specs, plan.load_cpus.as_ref().unwrap_or(&cpus))?),
    };
    let mut changes = Changes::default();
    hold_awake(&mut record, &mut changes, plan.hold_cpu_awake, root, &cpus);
    let before = Conditions::read(root, &cpus);
    // What both trace is told by this one first, so that for it a thread has its CPU when it has it for the other.
    let blame = Watch::start(plan.blame, root, &cpus.iter().collect::<Vec<_>>(), false).map_err(unseen)?;
    let mut session = Session::start(plan, root, &mut program, blame)?;
    if !session.is_ours() {
        // A command of ours takes the CPUs that we have.
        make_room(root, &session.cpus());
    }
    let mut keeper = plan.record_path.as_deref().map(|path| Keeper::start(path, &record)).transpose()?;
    record.phases.push(plan.phase());
    let over = session.watch(|session| {
        let watch_due = session.is_due(plan.watch_every);
        if !watch_due && !keeper.as_ref().is_some_and(Keeper::is_due) {
            return;
        }
        session.tell(&mut record);
        if let Some(keeper) = keeper.as_mut().filter(|keeper| keeper.is_due()) {
            keeper.keep(&record);
        }
        if watch_due {
            let elapsed_ns = session.elapsed_ns();
            watch(&record, &Progress { phase_index: 0, phase_count: 1, elapsed_ns, total_ns: plan.duration_ns });
        }
    })?;
    session.tell(&mut record);
    let blame = session.finish();
    if let Some(loads) = loads {
        record.phases[0].loads = loads.stop();
    }
    blame.relabel_stalls(&mut record);
    validity::judge_changes(&mut record, &conditions::changes(&before, &Conditions::read(root, &cpus)));
    changes.undo(&mut record);
    if let Some(keeper) = keeper {
        keeper.finish();
    }
    if !program.end(root) {
        let text = format!("the program did not end when it was asked to, and runs on as process {}", program.pid);
        record.caveats.push(Caveat { kind: "running".to_owned(), text });
    }
    tell_end(&mut record, &program);
    if signal::termination_requests() > 1 {
        // What it held is what the user wants gone.
        let _ = plan.record_path.as_deref().map(std::fs::remove_file);
        return Err(RunError::Discarded);
    }
    record.state = if over == Over::BySignal { State::Interrupted } else { State::Complete };
    record.written_at = now();
    Ok(record)
}

/// Writes into the record how the program ended, where that is known.
fn tell_end(record: &mut Record, program: &Program) {
    let Some(told) = &mut record.program else { return };
    match program.how_it_ended() {
        Some(Ok(status)) => told.exit_status = Some(status),
        Some(Err(signal)) => told.signal = Some(signal),
        None => {}
    }
}

/// Why what threads do cannot be seen. Where the kernel's trace is refused, nothing takes its place.
fn unseen(error: TraceError) -> RunError {
    RunError::Unseen(match error {
        TraceError::NoMemory { kb_per_cpu } => format!("there is no memory for {kb_per_cpu} KB a CPU; free some"),
        TraceError::Busy { part } => format!("another tracer uses {part} of it; end that one"),
        TraceError::Refused { part, source } => {
            format!("the kernel refused {part} of it ({source}); end other tracers, as `trace-cmd reset` does")
        }
        other => other.to_string(),
    })
}

/// What culprits were found, with remedies for the thread that had the worst spike.
fn blamed(blame: &Watch, record: &Record) -> Option<record::Blame> {
    (blame.mode() != BlameMode::Off).then(|| blame.to_record(&RemedyFacts::of(record)))
}

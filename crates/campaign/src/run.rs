//! A whole run: phases in their order, the record growing.

use std::{
    fs,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use blame::{DatError, RemedyFacts, Timerlat, TimerlatError, TraceError, Watch};
use machine::{
    AwakeHold, Conditions, CpuError, CpuList, Root, ShieldError,
    clocks::ClockWatch,
    conditions,
    ends::EndsError,
    nic::{NoStamps, WayError},
    usable_cpus,
};
use probes::{
    timer::{self, TimerError},
    udp::UdpError,
};
use record::{BlameMode, Caveat, Record, SCHEMA, State, Tool, Validity, file::FileError};
use sys::{counter::Counter, evl::EvlError, memory, sched, signal};

use crate::{
    AudioError, PhasePlan, Plan, PlanError, Probe, StopOn, StreamError, ThreadPlan,
    audio::{self, search::Course},
    cost, evl,
    keeper::Keeper,
    nic,
    phase::{self, Ended, PhaseRun, Within},
    process::ProgramError,
    shielded,
    stream::{observe, offset},
    thrift::Thrift,
    udp::AddressError,
    validity,
};

/// This program, also where its file is gone: for loads, not for people.
pub const ITSELF: &str = "/proc/self/exe";

/// How often clocks are looked at.
const CLOCKS_EVERY: Duration = Duration::from_secs(5);

/// How far a run has got.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// Index of the phase under way in [`Record::phases`].
    pub phase_index: usize,
    /// Number of phases that the run is to have.
    pub phase_count: usize,
    /// Time since the run began, ns.
    pub elapsed_ns: u64,
    /// How long the run is to take, ns; `None` when the user ends it.
    pub total_ns: Option<u64>,
}

/// Why a run could not be made.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The plan cannot be followed.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// CPUs cannot be shielded.
    #[error(transparent)]
    Shield(#[from] ShieldError),
    /// A CPU cannot be measured.
    #[error(transparent)]
    Cpu(#[from] CpuError),
    /// A load could not be started.
    #[error(transparent)]
    Load(#[from] loads::LoadError),
    /// The EVL core was asked for, and is not to be had.
    #[error(transparent)]
    Evl(#[from] EvlError),
    /// A measuring thread could not be made.
    #[error(transparent)]
    Timer(#[from] TimerError),
    /// Round trips cannot be measured.
    #[error(transparent)]
    Udp(#[from] UdpError),
    /// No interface leads to the peer.
    #[error(transparent)]
    Way(#[from] WayError),
    /// The peer cannot be found.
    #[error(transparent)]
    Peer(#[from] AddressError),
    /// The network card's stamps were asked for, and are not to be had.
    #[error(transparent)]
    Stamps(#[from] NoStamps),
    /// A stream can be neither sent nor received.
    #[error(transparent)]
    Stream(#[from] StreamError),
    /// Nothing can be played through what was asked for.
    #[error(transparent)]
    Audio(#[from] AudioError),
    /// There are no two ends within this machine.
    #[error(transparent)]
    Ends(#[from] EndsError),
    /// The kernel's trace was asked for, and is not to be had.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The program cannot be watched.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// What threads do cannot be seen.
    #[error("what a program's threads do is seen in the kernel's trace alone: {0}")]
    Unseen(String),
    /// The kernel's timerlat tracer was asked for, and is not to be had.
    #[error(transparent)]
    Timerlat(#[from] TimerlatError),
    /// The trace could not be kept.
    #[error("{0}; choose another place with --stop-trace FILE")]
    KeepTrace(#[from] DatError),
    /// Stopping on a spike needs the trace, which is not on.
    #[error("--stop-on keeps the kernel's trace, and there is none: {0}")]
    NothingToStop(String),
    /// The record could not be written.
    #[error("{0}; choose another place with --record FILE, or do without it with --no-record")]
    Record(#[from] FileError),
    /// The user ended the run before the first frame.
    #[error("ended while the wake-up offset was looked for: give one, as 8us, to begin at once")]
    NotCalibrated,
    /// The user ended the run twice: nothing is kept.
    #[error("interrupted twice: the run was discarded")]
    Discarded,
}

/// Runs the plan. `watch` is called as often as the plan says, with the record as far as it has grown.
///
/// A right that is refused does not end the run; it makes the record invalid. SIGINT and SIGTERM end it early with all
/// samples kept, if [`signal::count_termination`] was called before; a second one discards it.
///
/// # Errors
/// [`RunError`]; nothing was measured then, or nothing is kept.
pub fn run(plan: &Plan, root: &Root, watch: &mut dyn FnMut(&Record, &Progress)) -> Result<Record, RunError> {
    plan.check()?;
    check_stream(plan, root)?;
    let (plan, calibration) = offset::settled(plan, root, watch)?;
    let mut record = measured(&plan, root, watch)?;
    offset::tell(&mut record, calibration.as_ref());
    observe::tell(&mut record, &plan, root);
    Ok(record)
}

/// Runs the plan as it is.
fn measured(plan: &Plan, root: &Root, watch: &mut dyn FnMut(&Record, &Progress)) -> Result<Record, RunError> {
    let nic_wanted = nic::wanted(plan, root)?;
    let plan = &*shielded::with_defaults(plan, root)?;
    let plan = &*evl::with_defaults(plan, root)?;
    let cpus = usable_cpus(root, plan.cpus.as_ref())?;
    if let Some(load_cpus) = &plan.load_cpus {
        usable_cpus(root, Some(load_cpus))?;
    }
    let mut record = begin(&plan.command, &plan.executable, plan.scenario(), root);
    let thrift = Thrift::of(plan);
    record.caveats.extend(thrift.caveats());
    let shield = shielded::take(&mut record, plan.shield.as_ref(), root)?;
    let mut blame = Watch::start(plan.blame, root, &cpus.iter().collect::<Vec<_>>(), plan.stop_on.is_some())?;
    let mut timerlat = plan.timerlat.then(|| start_timerlat(&mut record, root, &cpus)).transpose()?;
    let stop_on = plan.stop_on.as_ref().map(|stop_on| freezer(stop_on, &blame)).transpose()?;
    let mut keeper = plan.record_path.as_deref().map(|path| Keeper::start(path, &record)).transpose()?;
    make_room(root, &cpus);

    let awake = hold_awake(&mut record, plan.hold_cpu_awake, root, &cpus);
    let nic = nic::hold(&mut record, nic_wanted, root);
    let how_awake = awake.as_ref().map(|hold| hold.how().to_owned());
    let before = Conditions::read(root, &cpus);
    let clocks = watch_clocks(&record, plan, root);
    let mut state = State::Complete;
    let run_began = Instant::now();
    let mut planned_before_ns = 0;
    let counter = Counter::for_clocksource(record.machine.clocksource.as_deref());
    let within = Within { cpus: &cpus, root, counter, stop_on: stop_on.as_ref(), shield: shield.as_ref() };
    let mut course = Course::of(plan);
    while let Some(next) = course.next(plan, &record) {
        let (index, phase) = (record.phases.len(), &plan.phases[next]);
        let mut phase_run = PhaseRun::prepare(plan, phase, &within, timerlat.as_mut())?;
        blame.begin(&phase_run.thread_ids());
        // The threads have all they will need by now, since they do not allocate.
        let memory_locked = memory::lock_what_is_there().is_ok() && validity::memory_is_locked(root);
        validity::judge_grants(&mut record, &phase_run.members(), memory_locked);
        let judged = record.validity.clone();
        record.phases.push(told(phase, run_began.elapsed()));
        let grown = record.series.len();
        let refresh = |record: &mut Record, phase_run: &PhaseRun| {
            record.series.truncate(grown);
            for mut series in phase_run.series(phase) {
                series.granted.memory_locked = memory_locked;
                series.granted.cpu_awake.clone_from(&how_awake);
                record.series.push(series);
            }
            record.series.extend(phase_run.timerlat_series(plan, phase));
            record.validity.clone_from(&judged);
            for reason in phase_run.companion.iter().flat_map(|companion| companion.reasons()) {
                validity::add(record, &reason.id, reason.text, reason.remedy);
            }
            record.phases[index].duration_ns = phase_run.began.elapsed().as_nanos() as u64;
            record.written_at = now();
        };
        let mut watched = Instant::now();
        let ended = phase_run.measure(plan, phase, &mut blame, |phase_run, blame| {
            let watch_due = plan.watch_every.is_some_and(|every| watched.elapsed() >= every);
            let keep_due = keeper.as_ref().is_some_and(Keeper::is_due);
            if !watch_due && !keep_due {
                return;
            }
            refresh(&mut record, phase_run);
            if let Some(keeper) = keeper.as_mut().filter(|_| keep_due) {
                record.blame = Some(blame.told(&RemedyFacts::of(&record)));
                keeper.keep(&record);
            }
            if watch_due {
                watched = Instant::now();
                let planned_ns = planned_before_ns + phase_run.began.elapsed().as_nanos() as u64;
                watch(&record, &progress(plan, index, planned_ns, run_began.elapsed().as_nanos() as u64));
            }
        });
        refresh(&mut record, &phase_run);
        record.buffer = audio::found(plan, &record);
        record.caveats.extend(phase_run.companion.iter().flat_map(|companion| companion.caveats()));
        thrift.apply(&mut record.series[grown..]);
        record.blame = Some(blame.told(&RemedyFacts::of(&record)));
        if let Some(stop_on) = plan.stop_on.as_ref().filter(|_| ended == Ended::ByStopOn) {
            blame.write_dat(&stop_on.trace_path)?;
            let told = record.blame.get_or_insert_default();
            told.stopped_trace = Some(stop_on.trace_path.to_string_lossy().into_owned());
        }
        phase_run.finish(&mut record.phases[index]);
        validity::judge_ends(&mut record, &phase_run.timers);
        evl::judge(&mut record, &phase_run);
        planned_before_ns += phase.duration_ns().unwrap_or_default();
        if ended != Ended::AsPlanned {
            state = State::Interrupted;
            break;
        }
    }
    drop(timerlat);
    blame.mend(&mut record);
    let traced = matches!(blame.mode(), BlameMode::Trace | BlameMode::Deep);
    if plan.blame_cost && state == State::Complete && traced && plan.probe == Probe::Timer {
        let last = plan.phases.last().and_then(|phase| phase::threads(plan, phase, &cpus, None).into_iter().next());
        let cost = last.and_then(|settings| cost::measure(&mut blame, &settings, shield.as_ref()));
        if let Some(told) = &mut record.blame {
            told.cost = cost;
        }
    }
    validity::judge_changes(&mut record, &conditions::changes(&before, &Conditions::read(root, &cpus)));
    if let Some(hold) = awake {
        record.settings = hold.release();
    }
    record.settings.extend(nic.release());
    if let Some(seen) = clocks.and_then(ClockWatch::finish) {
        record.machine.clocks = Some(seen);
    }
    if let Some(shield) = shield {
        shielded::release(&mut record, shield);
    }
    if let Some(keeper) = keeper {
        keeper.finish();
    }
    if signal::termination_requests() > 1 {
        // What it held is what the user wants gone.
        let _ = plan.record_path.as_deref().map(fs::remove_file);
        let _ = observe::file_of(plan).map(fs::remove_file);
        return Err(RunError::Discarded);
    }
    record.state = state;
    record.written_at = now();
    Ok(record)
}

/// Whether the interface of a stream can carry it: nothing is sent or changed before that is known.
fn check_stream(plan: &Plan, root: &Root) -> Result<(), StreamError> {
    let Probe::Stream(stream) = &plan.probe else { return Ok(()) };
    plan.phases.iter().try_for_each(|phase| stream.check(root, phase.period_ns))
}

/// The record before anything was measured: what was asked for, by the command that repeats it, and the machine as it is.
#[must_use]
pub fn begin(command: &[String], executable: &Path, scenario: record::Scenario, root: &Root) -> Record {
    let machine = machine::facts(root);
    let mut findings = machine::findings(root, &machine);
    let name = if executable == Path::new(ITSELF) { "punctual".into() } else { executable.to_string_lossy() };
    let this_binary = record::shell::command(&[name]);
    for finding in &mut findings {
        finding.remedy = finding.remedy.replace(machine::PUNCTUAL, &this_binary);
    }
    Record {
        schema: SCHEMA.to_owned(),
        tool: Tool { name: "punctual".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() },
        started_at: now(),
        written_at: now(),
        command: command.to_vec(),
        scenario,
        machine,
        findings,
        validity: Validity { valid: true, reasons: Vec::new() },
        ..Record::default()
    }
}

/// How far a run has got that has done `planned_ns` of what was planned in `elapsed_ns`. Making threads and starting loads
/// takes time as well, in each phase; the phases to come will take it, too.
fn progress(plan: &Plan, phase_index: usize, planned_ns: u64, elapsed_ns: u64) -> Progress {
    let phase_count = plan.steps();
    let each_ns = elapsed_ns.saturating_sub(planned_ns) / (phase_index as u64 + 1);
    let around_ns = each_ns * phase_count as u64;
    let total_ns = plan.total_ns().map(|total_ns| total_ns.saturating_add(around_ns));
    Progress { phase_index, phase_count, elapsed_ns, total_ns }
}

/// Whoever sends over a network may be at the end of one that PTP ties to others: it is looked at all the time.
fn watch_clocks(record: &Record, plan: &Plan, root: &Root) -> Option<ClockWatch> {
    let is_sent = matches!(plan.probe, Probe::Udp(_) | Probe::Stream(_));
    let first = record.machine.clocks.clone().filter(|clocks| is_sent && clocks.ptp.is_some())?;
    // Without a thread there is the first look.
    ClockWatch::start(root, first, CLOCKS_EVERY).ok()
}

/// What the measuring threads need to stop on a spike.
fn freezer(stop_on: &StopOn, blame: &Watch) -> Result<timer::StopOn, RunError> {
    let none = || RunError::NothingToStop(blame.why_not().to_owned());
    let freeze = Arc::new(blame.switch().ok_or_else(none)?);
    Ok(timer::StopOn { lateness_ns: stop_on.lateness_ns as i64, freeze })
}

/// Starts the kernel's timerlat tracer, and says in the record that it ran.
fn start_timerlat(record: &mut Record, root: &Root, cpus: &CpuList) -> Result<Timerlat, TimerlatError> {
    let timerlat = Timerlat::start(root, cpus)?;
    let setup = timerlat.setup();
    let (period_us, cpus) = (setup.period_ns / 1000, setup.cpus.in_words());
    let text = format!(
        "the kernel's timerlat tracer ran beside the probe, on {cpus} every {period_us} us, as osnoise/cpus and \
         osnoise/timerlat_period_us of its trace say: its threads, FIFO 95 unless set otherwise, may delay the probe"
    );
    record.caveats.push(Caveat { kind: "timerlat".to_owned(), text });
    Ok(timerlat)
}

fn told(phase: &PhasePlan, start: Duration) -> record::Phase {
    record::Phase {
        name: phase.name.clone(),
        period_ns: phase.period_ns,
        start_ns: start.as_nanos() as u64,
        planned_ns: match phase.length {
            crate::Length::Duration(duration_ns) => Some(duration_ns),
            _ => None,
        },
        threads: phase.threads.iter().map(ThreadPlan::told).collect(),
        asked_loads: phase.loads.iter().map(ToString::to_string).collect(),
        ..record::Phase::default()
    }
}

/// Moves this thread, and those it will make, off the measured CPUs where there are others.
pub(crate) fn make_room(root: &Root, cpus: &CpuList) {
    let others: Vec<u32> = usable_cpus(root, None).unwrap_or_default().difference(cpus).iter().collect();
    if !others.is_empty() {
        // Where it is refused the collector stays where it is, as on a machine that is measured whole.
        let _ = sched::set_affinity(&others);
    }
}

pub(crate) fn hold_awake(record: &mut Record, asked: bool, root: &Root, cpus: &CpuList) -> Option<AwakeHold> {
    if !asked {
        return None;
    }
    match AwakeHold::take(root, cpus) {
        Ok(hold) => Some(hold),
        Err(error) => {
            let text = format!("the CPUs were not held awake as asked: {error}");
            validity::add(record, "cpu_awake.refused", text, "run as root, or leave out --hold-cpu-awake");
            None
        }
    }
}

/// Now as a part of file names, UTC: `20261121-143000`.
#[must_use]
pub fn stamp_now() -> String {
    jiff::Timestamp::now().strftime("%Y%m%d-%H%M%S").to_string()
}

/// Now, RFC 3339, to the millisecond.
pub fn now() -> String {
    jiff::Timestamp::now().round(jiff::Unit::Millisecond).unwrap_or_default().to_string()
}

//! A run: measures its phases in order, and builds its record.
//!
//! | module | contains |
//! |---|---|
//! | `calibrate` | measures the wake-up offset that this machine needs |
//! | `schedule` | the order of the phases, or the search among them |
//! | `first_record` | the record before the first measurement |
//! | `cpus` | prepares the measured CPUs |
//! | `decision` | ends the run as soon as its verdict is decided |
//! | `monitors` | monitors that run at the same time as the measuring threads |
//! | `phase_record` | adds the results of a phase to the record while it runs |
//! | `progress` | progress of a run |
//! | `stamp` | the current time, for records and file names |

mod calibrate;
mod cpus;
mod decision;
mod first_record;
mod monitors;
mod phase_record;
mod progress;
mod schedule;
mod stamp;

use std::{
    fs,
    sync::Arc,
    time::{Duration, Instant},
};

use blame::{RemedyFacts, Watch};
use machine::{
    Conditions, CpuList, Handlers, Root, Shield, SourceIrqHold, clocks::ClockWatch, conditions, tune::Setting,
    usable_cpus,
};
use probes::timer::{self, TimerError};
use record::{BlameMode, BufferSearch, Caveat, EndedBy, Record, State, file};
use sys::{counter::Counter, memory, signal};

/// Time between two updates of the culprits in the live view.
const BLAME_EVERY: Duration = Duration::from_secs(1);

pub(crate) use self::cpus::{hold_awake, leave_measured_cpus};
use self::{
    decision::Decision,
    monitors::{start_timerlat, watch_clocks},
    phase_record::PhaseRecord,
    schedule::PhaseSchedule,
};
pub use self::{
    first_record::{SELF_EXE, begin},
    progress::Progress,
    stamp::{now, stamp_now},
};
use crate::{
    changes::Changes,
    cost,
    error::RunError,
    evl, nic,
    on_spike::Actor,
    outside,
    phase::{self, Ended, PhaseRun, RunContext},
    plan::{PhasePlan, Plan, StopOn},
    probe::{
        Probe,
        stream::{observe, sync},
    },
    record_budget::RecordBudget,
    record_writer::RecordWriter,
    shielded, source_irq, tuned, validity,
};

/// Kind of the caveat that the trace of `--stop-on` could not be written.
pub const UNWRITTEN_TRACE: &str = "stop_trace";

/// Called with the record so far.
type OnProgress<'a> = dyn FnMut(&Record, &Progress) + 'a;

/// Runs the plan. Calls `watch` with the record so far, as often as the plan says.
///
/// A refused right does not end the run, but makes the record invalid. Signals that ask a process to end, such as SIGTERM,
/// end the run early and keep all samples, if [`signal::count_termination`] was called before; a second SIGINT or SIGTERM
/// discards the run.
///
/// # Errors
/// [`RunError`]; then there is no record.
pub fn run(plan: &Plan, root: &Root, watch: &mut OnProgress) -> Result<Record, RunError> {
    check(plan, root)?;
    if let Probe::Stream(stream) = &plan.probe {
        stream.require_sync_ns.map_or(Ok(()), |limit_ns| sync::wait(root, limit_ns))?;
    }
    let began = Instant::now();
    let (plan, calibration) = calibrate::calibrated(plan, root, watch)?;
    let before_ns = calibration.as_ref().map_or(0, |_| phase::elapsed_ns(began));
    let mut watch = |record: &Record, progress: &Progress| watch(record, &progress.clone().after(before_ns));
    let mut record = measured(&plan, root, &mut watch)?;
    calibrate::add(&mut record, calibration.as_ref());
    if let Probe::Stream(stream) = &plan.probe {
        observe::add_capture(&mut record, stream, plan.record_path.as_deref(), root);
    }
    Ok(record)
}

/// Checks a plan and the interface and settings that it names, as far as this sends and changes nothing. [`run`] does the
/// same first.
///
/// # Errors
/// [`RunError`].
pub fn check(plan: &Plan, root: &Root) -> Result<(), RunError> {
    plan.check()?;
    plan.on_spike.check()?;
    if let Some(stop_on) = &plan.stop_on {
        file::check_writable(&stop_on.trace_path).map_err(RunError::StopTrace)?;
    }
    if let Probe::Stream(stream) = &plan.probe {
        plan.phases.iter().try_for_each(|phase| stream.check_interface(root, phase.period_ns))?;
    }
    nic::wanted(plan, root)?;
    wanted_settings(plan, root)?;
    Ok(())
}

fn wanted_settings(plan: &Plan, root: &Root) -> Result<Vec<Setting>, RunError> {
    tuned::wanted(&plan.settings, plan.cpus.as_ref().or(plan.shield.as_ref()), root)
}

/// Runs the plan without calibration.
fn measured(plan: &Plan, root: &Root, watch: &mut OnProgress) -> Result<Record, RunError> {
    let nic_wanted = nic::wanted(plan, root)?;
    let mut settings = wanted_settings(plan, root)?;
    settings.extend(plan.planned_settings.iter().cloned());
    let plan = &*shielded::with_defaults(plan, root)?;
    let plan = &*evl::with_defaults(plan, root)?;
    let mut run = Run::start(plan, root, nic_wanted, &settings)?;
    match run.measure_phases(watch) {
        Ok(ended_by) => run.finish(ended_by),
        Err(error) => {
            run.remove_empty_record();
            Err(error)
        }
    }
}

/// A run in progress.
struct Run<'a> {
    plan: &'a Plan,
    root: &'a Root,
    /// The measured CPUs.
    cpus: CpuList,
    record: Record,
    budget: RecordBudget,
    // Dropped in this order: `stop_on` has a file of the trace open, which would keep the trace from being removed.
    stop_on: Option<timer::StopOn>,
    trace: Watch,
    changes: Changes,
    on_spike: Option<Actor>,
    writer: Option<RecordWriter>,
    clocks: Option<ClockWatch>,
    /// The state of the machine after all changes were made.
    before: Conditions,
    /// The handlers of interrupts before the source of an interrupt probe was opened.
    handlers: Handlers,
    began: Instant,
    /// Planned duration of the finished phases, ns.
    planned_before_ns: u64,
}

impl<'a> Run<'a> {
    /// Makes all changes on the machine, and writes the first record.
    fn start(
        plan: &'a Plan,
        root: &'a Root,
        nic_wanted: Option<nic::Wanted>,
        settings: &[Setting],
    ) -> Result<Self, RunError> {
        let cpus = usable_cpus(root, plan.cpus.as_ref())?;
        if let Some(load_cpus) = &plan.load_cpus {
            usable_cpus(root, Some(load_cpus))?;
        }
        let mut record = begin(&plan.command, &plan.executable, plan.scenario(), root);
        let series = plan.phases.iter().map(|phase| phase::thread_count(plan, phase, &cpus)).sum();
        let budget = RecordBudget::of(series);
        record.caveats.extend(budget.caveats());
        record.caveats.extend(evl::cobalt_caveat(&record));
        let lock = plan.tune_lock.as_ref();
        let shield = shielded::take(&mut record, plan.shield.as_ref(), lock, root)?;
        let mut changes = Changes { shield, ..Changes::default() };
        let keeps_trace = plan.stop_on.is_some() || plan.on_spike.needs_trace();
        let lock = lock.or(changes.shield.as_ref().map(Shield::lock));
        changes.tuning = tuned::take(&mut record, settings, lock, root)?;
        let trace = Watch::start(plan.blame, root, &cpus.iter().collect::<Vec<_>>(), keeps_trace)?;
        if keeps_trace && !matches!(trace.mode(), BlameMode::Trace | BlameMode::Deep) {
            return Err(RunError::NoTrace(trace.why_not_traced().to_owned()));
        }
        let stop_on = plan.stop_on.as_ref().map(|stop_on| freezer(stop_on, &trace)).transpose()?;
        let handlers = Handlers::read(root);
        if let Probe::Interrupt(interrupt) = &plan.probe {
            changes.samples = interrupt.hold(root)?;
        }
        if plan.timerlat {
            changes.timerlat = Some(start_timerlat(&mut record, root, &cpus)?);
        }
        // Before threads are created that inherit the CPUs of this one.
        leave_measured_cpus(root, &cpus);
        let on_spike = match &plan.on_spike {
            none if none.actions.is_empty() => None,
            wanted => Some(Actor::start(wanted).map_err(TimerError::Spawn)?),
        };
        let writer = plan.record_path.as_deref().map(|path| RecordWriter::start(path, &record)).transpose()?;
        hold_awake(&mut record, &mut changes, plan.hold_cpu_awake, root, &cpus);
        nic::hold(&mut record, &mut changes, nic_wanted, root);
        if let Some(shield) = &mut changes.shield {
            shield.begin_counting();
        }
        Ok(Self {
            before: Conditions::read(root, &cpus),
            handlers,
            clocks: watch_clocks(&record, plan, root),
            began: Instant::now(),
            planned_before_ns: 0,
            plan,
            root,
            cpus,
            record,
            budget,
            stop_on,
            on_spike,
            trace,
            changes,
            writer,
        })
    }

    /// Measures the phases in the order of the schedule; stops if one is interrupted, and returns the reason.
    fn measure_phases(&mut self, watch: &mut OnProgress) -> Result<Option<EndedBy>, RunError> {
        let plan = self.plan;
        let mut schedule = PhaseSchedule::of(plan);
        while let Some(next) = schedule.next(plan, &self.record) {
            let phase = &plan.phases[next];
            let ended = self.measure_phase(phase, watch)?;
            self.planned_before_ns += phase.duration_ns().unwrap_or_default();
            if let Some(ended_by) = ended.interruption() {
                return Ok(Some(ended_by));
            }
        }
        Ok(None)
    }

    /// Measures one phase and adds it to the record.
    fn measure_phase(&mut self, phase: &PhasePlan, watch: &mut OnProgress) -> Result<Ended, RunError> {
        let (plan, budget, began, planned_before_ns) = (self.plan, self.budget, self.began, self.planned_before_ns);
        let Self { record, writer, trace, changes, on_spike, handlers, .. } = self;
        let (how_awake, settings) = (changes.how_awake(), changes.watches());
        let context = RunContext {
            cpus: &self.cpus,
            root: self.root,
            counter: Counter::for_clocksource(record.machine.clocksource.as_deref()),
            stop_on: self.stop_on.as_ref(),
            shield: changes.shield.as_ref(),
            settings: &settings,
            spikes_kept: budget.spikes_kept,
        };
        let index = record.phases.len();
        let mut phase_run = PhaseRun::prepare(plan, phase, &context, changes.timerlat.as_mut(), on_spike.as_mut())?;
        let of_source = source_irq::hold(record, plan, self.root, handlers);
        phase_run.supervisor.watch_settings(of_source.iter().map(SourceIrqHold::watch));
        trace.filter_by_threads(&phase_run.thread_ids());
        // The threads do not allocate from here on, so locking the current memory locks everything that they use.
        let memory_locked = memory::lock_current_memory().is_ok() && validity::memory_is_locked(self.root);
        validity::judge_grants(record, &phase_run.members(), memory_locked);
        let phase_record =
            PhaseRecord::begin(record, plan, phase, began.elapsed(), memory_locked, how_awake.as_deref());
        let (mut watched, mut blamed) = (Instant::now(), Instant::now());
        let mut decision = Decision::on(&plan.until_decided);
        let ended = phase_run.measure(plan, phase, trace, |phase_run, trace| {
            let watch_due = plan.watch_every.is_some_and(|every| watched.elapsed() >= every);
            let write_due = writer.as_ref().is_some_and(RecordWriter::is_due);
            if !watch_due && !write_due && !decision.is_due() {
                return false;
            }
            phase_record.refresh(record, phase_run, budget);
            if write_due || watch_due && blamed.elapsed() >= BLAME_EVERY {
                blamed = Instant::now();
                record.blame = Some(trace.to_record(&RemedyFacts::of(record)));
            }
            if let Some(writer) = writer.as_mut().filter(|_| write_due) {
                writer.start_write(record);
            }
            if watch_due {
                watched = Instant::now();
                let planned_ns = planned_before_ns.saturating_add(phase::elapsed_ns(phase_run.began));
                let progress = Progress::of(plan, index, planned_ns, phase::elapsed_ns(began));
                watch(record, &progress.until_decided(decision.left_ns));
            }
            decision.is_due() && decision.look(record)
        });
        phase_record.refresh(record, &phase_run, budget);
        let named = record.validity.reasons.len();
        record.buffer = buffer_found(plan, record);
        record.caveats.extend(phase_run.probe_threads.iter().flat_map(|probe_threads| probe_threads.caveats()));
        let facts = RemedyFacts::of(record);
        phase_run.bound_by_causes(trace, phase_record.series(record), &facts);
        budget.apply(phase_record.series(record));
        record.blame = Some(trace.to_record(&facts));
        if let Some(stop_on) = plan.stop_on.as_ref().filter(|_| ended == Ended::ByStopOn) {
            let snapshot = trace.snapshot().map_err(RunError::from);
            let written = snapshot.and_then(|snapshot| Ok(snapshot.write(&stop_on.trace_path)?));
            match written {
                Ok(()) => {
                    let blame = record.blame.get_or_insert_default();
                    blame.stopped_trace = Some(stop_on.trace_path.to_string_lossy().into_owned());
                }
                Err(error) => {
                    // A part of the trace is of no use. Only regular files are accepted before the run.
                    let _ = fs::remove_file(&stop_on.trace_path);
                    record.caveats.push(Caveat { kind: UNWRITTEN_TRACE.to_owned(), text: error.to_string() });
                }
            }
        }
        // Before the source is closed, which ends its interrupts.
        source_irq::release(record, of_source);
        phase_run.finish(&mut record.phases[index]);
        let gone = phase_run.gone.take();
        validity::judge_loads(record, &record.phases[index].loads.clone());
        let properties = plan.probe.definition().properties();
        validity::judge_ends(record, self.root, &phase_run.timers, &properties, gone.as_deref());
        validity::add_all(record, outside::contradiction(record, &phase.name));
        record.caveats.extend(gone.map(|text| Caveat { kind: record::GONE.to_owned(), text }));
        validity::judge_coverage(record, &phase.name);
        validity::judge_stops(record, &phase.name, phase_run.supervisor.reasons());
        evl::judge(record, &phase_run);
        validity::name_phase(record, named, plan, &phase.name);
        Ok(ended)
    }

    /// Undoes all changes, and completes the record.
    fn finish(mut self, ended_by: Option<EndedBy>) -> Result<Record, RunError> {
        let state = if ended_by.is_some() { State::Interrupted } else { State::Complete };
        shielded::judge_interrupts(&mut self.record, self.changes.shield.as_ref());
        self.complete_blame(state);
        record_actions(&mut self.record, self.on_spike.take());
        let Self { plan, root, cpus, mut record, stop_on, trace, changes, writer, clocks, before, .. } = self;
        validity::judge_changes(&mut record, &conditions::changes(&before, &Conditions::read(root, &cpus)));
        if let Some(seen) = clocks.and_then(ClockWatch::finish) {
            record.machine.clocks = Some(seen);
        }
        // It has a file of the trace open, which would keep the trace from being removed.
        drop(stop_on);
        drop(trace);
        changes.undo(&mut record);
        if let Some(writer) = writer {
            writer.finish();
        }
        if signal::termination_requests() > 1 {
            discard_files(plan);
            return Err(RunError::Discarded);
        }
        (record.state, record.ended_by) = (state, ended_by);
        record.ending_signal = ended_by.filter(|&by| by == EndedBy::Signal).and_then(|_| signal::ending_signal());
        record.written_at = now();
        Ok(record)
    }

    /// Removes the record of a run that was refused before it measured.
    fn remove_empty_record(mut self) {
        let is_empty = self.record.series.is_empty();
        if let Some(writer) = self.writer.take().filter(|_| is_empty) {
            writer.finish();
            discard_files(self.plan);
        }
    }

    /// Completes the culprits in the record, and adds the cost of tracing.
    fn complete_blame(&mut self, state: State) {
        let Self { plan, cpus, record, trace, changes, .. } = self;
        // The timerlat tracer would disturb the measurement of the cost.
        drop(changes.timerlat.take());
        record.caveats.extend(trace.disturbed().map(|part| Caveat {
            kind: "trace".to_owned(),
            text: format!(
                "another program changed {part} of the trace during the run, so the causes of spikes after that are unknown"
            ),
        }));
        trace.relabel_stalls(record);
        let traced = matches!(trace.mode(), BlameMode::Trace | BlameMode::Deep);
        let measurable = plan.probe.definition().properties().measures_trace_cost;
        if !plan.blame_cost {
            return;
        }
        let mut cost = None;
        if state == State::Complete && traced && measurable {
            let threads = |phase| phase::threads(plan, phase, cpus, None, 0).into_iter().next();
            let last = plan.phases.last().and_then(threads);
            cost = last.and_then(|settings| cost::measure(trace, &settings, changes.shield.as_ref()));
        }
        if cost.is_none() {
            let text = "the cost of tracing was not measured: that takes a complete run with the kernel trace";
            record.caveats.push(Caveat { kind: "blame.cost".to_owned(), text: text.to_owned() });
        }
        if let Some(blame) = &mut record.blame {
            blame.cost = cost;
        }
    }
}

/// Adds the results of the actions at spikes to the record.
fn record_actions(record: &mut Record, on_spike: Option<Actor>) {
    record.caveats.extend(on_spike.into_iter().flat_map(Actor::finish));
}

/// The smallest buffer found so far; `None` for a run that does not search.
fn buffer_found(plan: &Plan, record: &Record) -> Option<BufferSearch> {
    let Probe::Audio(audio) = &plan.probe else { return None };
    let candidates = plan.phases.iter().map(|phase| audio.frames_of(phase.period_ns)).collect();
    audio.find.then(|| analysis::audio::search(record, candidates))
}

/// Removes the files of a run that the user discards.
fn discard_files(plan: &Plan) {
    let record_path = plan.record_path.as_deref();
    // A file that is gone already needs no removal.
    let _ = record_path.map(fs::remove_file);
    plan.probe.definition().files(record_path).iter().for_each(|path| _ = fs::remove_file(path));
}

/// The threshold, and the file that a measuring thread writes to, to stop the trace on a spike.
fn freezer(stop_on: &StopOn, trace: &Watch) -> Result<timer::StopOn, RunError> {
    let freeze = Arc::new(trace.tracing_on_file()?);
    Ok(timer::StopOn { lateness_ns: i64::try_from(stop_on.lateness_ns).unwrap_or(i64::MAX), freeze })
}

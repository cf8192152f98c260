//! A whole run: phases in their order, the record growing.
//!
//! | module | holds |
//! |---|---|
//! | `first_record` | the record before anything was measured |
//! | `cpus` | the measured CPUs, made ready |
//! | `beside` | what goes on beside the measuring threads |
//! | `growing` | what a phase under way adds to the record |
//! | `progress` | how far a run has got |
//! | `error` | why a run could not be made |
//! | `stamp` | now, as records and the names of files have it |

mod beside;
mod cpus;
mod error;
mod first_record;
mod growing;
mod progress;
mod stamp;

use std::{fs, sync::Arc, time::Instant};

use blame::{RemedyFacts, Watch};
use machine::{Conditions, Root, clocks::ClockWatch, conditions, usable_cpus};
use probes::timer;
use record::{BlameMode, Record, State};
use sys::{counter::Counter, memory, signal};

pub(crate) use self::cpus::{hold_awake, make_room};
use self::{
    beside::{start_timerlat, watch_clocks},
    growing::Growing,
};
pub use self::{
    error::RunError,
    first_record::{ITSELF, begin},
    progress::Progress,
    stamp::{now, stamp_now},
};
use crate::{
    Plan, Probe, StopOn, StreamError,
    audio::{self, search::Course},
    cost, evl,
    keeper::Keeper,
    nic,
    phase::{self, Ended, PhaseRun, Within},
    shielded,
    stream::{observe, offset},
    thrift::Thrift,
    validity,
};

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
        let (start, how_awake) = (run_began.elapsed(), how_awake.as_deref());
        let growing = Growing::begin(&mut record, plan, phase, start, memory_locked, how_awake);
        let mut watched = Instant::now();
        let ended = phase_run.measure(plan, phase, &mut blame, |phase_run, blame| {
            let watch_due = plan.watch_every.is_some_and(|every| watched.elapsed() >= every);
            let keep_due = keeper.as_ref().is_some_and(Keeper::is_due);
            if !watch_due && !keep_due {
                return;
            }
            growing.refresh(&mut record, phase_run);
            if let Some(keeper) = keeper.as_mut().filter(|_| keep_due) {
                record.blame = Some(blame.told(&RemedyFacts::of(&record)));
                keeper.keep(&record);
            }
            if watch_due {
                watched = Instant::now();
                let planned_ns = planned_before_ns + phase_run.began.elapsed().as_nanos() as u64;
                watch(&record, &Progress::of(plan, index, planned_ns, run_began.elapsed().as_nanos() as u64));
            }
        });
        growing.refresh(&mut record, &phase_run);
        record.buffer = audio::found(plan, &record);
        record.caveats.extend(phase_run.companion.iter().flat_map(|companion| companion.caveats()));
        thrift.apply(growing.series(&mut record));
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

/// What the measuring threads need to stop on a spike.
fn freezer(stop_on: &StopOn, blame: &Watch) -> Result<timer::StopOn, RunError> {
    let none = || RunError::NothingToStop(blame.why_not().to_owned());
    let freeze = Arc::new(blame.switch().ok_or_else(none)?);
    Ok(timer::StopOn { lateness_ns: stop_on.lateness_ns as i64, freeze })
}

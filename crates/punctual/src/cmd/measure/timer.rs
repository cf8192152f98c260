//! `punctual measure timer`.

use std::{path::Path, process::Command};

use anyhow::Context;
use campaign::{Length, PhasePlan, Plan, StopOn};
use loads::Load;
use record::{Outcome, Record};

use crate::{
    cli::Timer,
    output::{self, Export, Kept},
};

const DEFAULT_PERIOD_NS: u64 = 1_000_000;
const DEFAULT_DURATION_NS: u64 = 10_000_000_000;

pub fn run(options: &Timer) -> anyhow::Result<u8> {
    let exports = Export::all(&options.exports)?;
    let profiles = output::find_profiles(&options.profiles)?;
    // `--load idle` says explicitly what leaving it out says, too.
    let idle = options.loads.iter().all(|spec| spec.load == Load::Idle);
    let loads = if idle { Vec::new() } else { options.loads.clone() };
    let shortest = profiles.iter().map(|profile| profile.period_ns).min();
    let phase = PhasePlan {
        name: if idle { "rest" } else { "load" }.to_owned(),
        period_ns: options.period.or(shortest).unwrap_or(DEFAULT_PERIOD_NS),
        length: match (options.duration, options.samples) {
            _ if options.endless => Length::UntilStopped,
            (_, Some(samples)) => Length::Samples(samples),
            (duration_ns, None) => Length::Duration(duration_ns.unwrap_or(DEFAULT_DURATION_NS)),
        },
        loads,
        threads: Vec::new(),
    };
    let kept = Kept::choose(options.record.as_deref(), options.no_record)?;
    let stop_on = stop_on(options);
    let plan = Plan {
        command: output::command_line(),
        cpus: options.cpus.clone(),
        load_cpus: options.load_cpus.clone(),
        policy: options.policy,
        clock: options.clock,
        wait: options.wait,
        offset_ns: options.offset,
        threshold_ns: options.threshold,
        hold_cpu_awake: options.hold_cpu_awake,
        blame: options.blame.into(),
        timerlat: options.timerlat,
        stop_on,
        phases: vec![phase],
        profiles: options.profiles.clone(),
        record_path: kept.record.clone(),
        executable: output::executable()?,
        watch_every: output::watch_every(options.talk),
    };
    let mut record = output::measure(&plan, options.talk)?;
    output::judge(&mut record, &options.profiles)?;
    kept.write(&record)?;
    for export in &exports {
        export.write(&record)?;
    }
    if options.talk.json {
        output::stdout(|out| std::io::Write::write_all(out, &record::file::to_json(&record)))?;
    } else if !exports.iter().any(Export::is_stdout) {
        output::print(options.talk, |style, width| report::terminal::summary(&record, style, width))?;
    }
    if !options.talk.quiet {
        kept.say();
    }
    match stopped_trace(&record) {
        Some(trace) => stopped(options, &kept, trace),
        None => Ok(output::status(&record)),
    }
}

fn stop_on(options: &Timer) -> Option<StopOn> {
    let trace_path = || options.stop_trace.clone().unwrap_or_else(|| output::default_name("trace.dat").into());
    options.stop_on.map(|lateness_ns| StopOn { lateness_ns, trace_path: trace_path() })
}

/// The trace of a run that a spike ended.
fn stopped_trace(record: &Record) -> Option<&str> {
    record.blame.as_ref()?.stopped_trace.as_deref()
}

/// Says where the trace is, runs the user's command, and answers that a limit was exceeded.
fn stopped(options: &Timer, kept: &Kept, trace: &str) -> anyhow::Result<u8> {
    if !options.talk.quiet {
        eprintln!("trace   {trace}   (kernelshark {trace}, or: trace-cmd report {trace})");
    }
    if let Some(command) = &options.stop_run {
        let record = kept.record.as_deref().unwrap_or(Path::new(""));
        let status = Command::new("sh")
            .args(["-c", command])
            .env("PUNCTUAL_TRACE", trace)
            .env("PUNCTUAL_RECORD", record)
            .status()
            .context("cannot start a shell for --stop-run")?;
        if !status.success() {
            eprintln!("punctual: the command of --stop-run ended with {status}");
        }
    }
    Ok(Outcome::Fail.exit_status())
}

//! `punctual measure process`.

use std::{ffi::OsString, path::Path};

use analysis::process::Limits;
use campaign::{ProcessPlan, Target};

use super::Results;
use crate::{
    cli::{PeriodOf, Process},
    exit::Usage,
    output,
};

/// Default duration for a program that is already running, ns.
const DEFAULT_DURATION_NS: u64 = 10_000_000_000;

pub fn run(options: &Process) -> anyhow::Result<u8> {
    let common = &options.common;
    let target = target(options)?;
    super::check_load_cpus(common, true)?;
    check_periods(&options.periods)?;
    let results = Results::prepare(common)?;
    output::find_profiles(&options.profiles)?;
    let default_ns = matches!(target, Target::Pid(_)).then_some(DEFAULT_DURATION_NS);
    let plan = ProcessPlan {
        command: output::command_line(),
        target,
        selection: blame::Selection {
            threads: options.threads.clone(),
            periods: options.periods.iter().map(|period| (period.threads.clone(), period.period_ns)).collect(),
        },
        duration_ns: if common.endless { None } else { common.duration.or(default_ns) },
        threshold_ns: options.threshold,
        profiles: options.profiles.clone(),
        limits: Limits {
            latency_ns: options.max_latency,
            missed: options.max_missed,
            response_ns: options.max_response,
        },
        loads: super::loads(common),
        load_cpus: common.load_cpus.clone(),
        hold_cpu_awake: common.hold_cpu_awake,
        settings: common.settings.clone(),
        monitors: options.monitors,
        blame: common.blame.into(),
        record_path: results.files.record.clone(),
        executable: output::executable()?,
        watch_every: output::watch_every(common.output),
    };
    if let (Target::Command(words), false) = (&plan.target, common.output.quiet) {
        say_start(words, plan.duration_ns);
    }
    let mut record = output::watch_process(&plan, common.output)?;
    output::judge(&mut record, &options.profiles)?;
    let of_limits = analysis::process::verdict(&record, plan.limits);
    record.verdict = analysis::worst_of([of_limits, record.verdict.take()]);
    results.deliver(&record, |style, width| report::terminal::summary(&record, style, width))?;
    Ok(output::status(&record))
}

/// A command has the terminal, so there is no live view: says how long nothing else is shown.
fn say_start(words: &[OsString], duration_ns: Option<u64>) {
    let command = words.first().and_then(|word| Path::new(word).file_name()).unwrap_or_default().display();
    let until = match duration_ns {
        Some(ns) => format!("for {}, or until it ends", analysis::format_exact(ns)),
        None => "until it ends".to_owned(),
    };
    say!("measuring {command} {until}; Ctrl-C ends both; what follows is its output");
}

/// An error for two periods of the same threads.
fn check_periods(periods: &[PeriodOf]) -> Result<(), Usage> {
    let is_twice = |(number, of): &(usize, &PeriodOf)| periods[..*number].iter().any(|one| one.threads == of.threads);
    match periods.iter().enumerate().find(is_twice) {
        Some((_, PeriodOf { threads: None, .. })) => Err(Usage(
            "--period is given twice for all threads: name the threads that each is for, e.g. --period servo=1ms"
                .to_owned(),
        )),
        Some(_) => Err(Usage("--period is given twice for the same threads: leave one out".to_owned())),
        None => Ok(()),
    }
}

fn target(options: &Process) -> anyhow::Result<Target> {
    match (options.pid, &options.command[..]) {
        (Some(pid), []) => Ok(Target::Pid(pid)),
        (None, [_, ..]) => Ok(Target::Command(options.command.clone())),
        _ => Err(Usage(
            "name a program to measure: `punctual measure process PID`, or `punctual measure process -- COMMAND`"
                .to_owned(),
        )
        .into()),
    }
}

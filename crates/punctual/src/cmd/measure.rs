//! `punctual measure timer`.

use campaign::{Length, PhasePlan, Plan};
use loads::Load;

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
    };
    let kept = Kept::choose(options.record.as_deref(), options.no_record)?;
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
        stop_on: None,
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
    Ok(output::status(&record))
}

//! Rules that the verdicts on wake-ups, round trips and captures share.

use std::fmt::Write;

use record::{Emulation, INCONSISTENT, Obstacle, Outcome, Reason, Record, Scenario, grouped};

use crate::{
    duration::{format_duration, format_exact, format_ns},
    float::to_u64,
    profile::Profile,
    statistics::Exposure,
    summary::phase_in_words,
};

/// A measured period this many times longer than the use's cannot support PASS, because it misses too much between two
/// wake-ups. A period this many times shorter lets CPUs enter less deep idle states than the use does.
pub(crate) const FAR: u64 = 8;

/// The order of outcomes: the largest one decides.
pub(crate) fn severity(outcome: Outcome) -> u8 {
    match outcome {
        Outcome::Pass => 0,
        Outcome::Inconclusive => 1,
        Outcome::Fail => 2,
        Outcome::Invalid => 3,
    }
}

/// The suffix of the reason for PASS if the worst case is excellent for the use.
pub(crate) fn excellent(profile: &Profile, worst_ns: i64) -> String {
    match profile.excellent_ns {
        Some(excellent_ns) if worst_ns < excellent_ns => format!(", excellent (under {})", format_ns(excellent_ns)),
        _ => String::new(),
    }
}

/// Obstacles to a verdict that do not depend on the limits of a use, see [`Record::obstacle`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Obstacles {
    /// The reason for INVALID.
    pub invalid: Option<String>,
    /// The reason why a valid run supports no PASS, however long it was. It can support FAIL.
    pub no_pass: Option<String>,
}

impl Obstacles {
    /// The obstacles of `record`; `command` repeats the run.
    pub fn of(record: &Record, command: impl Fn(&str) -> String) -> Self {
        let found = record.obstacle();
        let no_pass = match &found {
            None | Some(Obstacle::Invalid(_)) => None,
            Some(load @ Obstacle::Load { spec, host: None }) => {
                Some(format!("{load}: repeat with `{}`", command(spec)))
            }
            Some(gone @ (Obstacle::EndedEarly { gone: Some(_), .. } | Obstacle::Stream { .. })) => {
                Some(format!("{gone}; restore the traffic, and run it again"))
            }
            Some(Obstacle::EndedEarly { phase, gone: None }) => Some(ended_early(record, phase)),
            Some(other @ (Obstacle::Load { .. } | Obstacle::FarLost { .. } | Obstacle::ThreadEnded { .. })) => {
                Some(format!("{other}: run it again"))
            }
        };
        let invalid = match found {
            Some(Obstacle::Invalid(reasons)) => Some(invalid(&reasons)),
            _ => None,
        };
        Self { invalid, no_pass }
    }
}

/// The reason for INVALID: the contradictions of the record, or the ids of the other reasons.
fn invalid(reasons: &[Reason]) -> String {
    let (contradictions, others): (Vec<&Reason>, Vec<&Reason>) =
        reasons.iter().partition(|reason| reason.id == INCONSISTENT);
    if let Some(first) = contradictions.first() {
        return format!("the record contradicts itself ({})", first.text);
    }
    // A reason of several threads or CPUs is named once.
    let mut ids: Vec<&str> = Vec::new();
    for reason in others {
        if !ids.contains(&reason.id.as_str()) {
            ids.push(&reason.id);
        }
    }
    let ids = if ids.is_empty() { "no reason given".to_owned() } else { ids.join(", ") };
    format!("the run did not go as requested ({ids})")
}

/// The reason why a run that ended early supports no PASS: a verdict needs all that was planned.
fn ended_early(record: &Record, phase: &str) -> String {
    let planned = record.phase(phase);
    let when = match planned.map(|phase| (phase.planned_ns, phase.planned_samples, phase.duration_ns)) {
        Some((Some(planned_ns), _, duration_ns)) => {
            format!(", after {} of {}", format_duration(duration_ns.min(planned_ns)), format_duration(planned_ns))
        }
        Some((None, Some(samples), _)) => format!(", before the last of {} samples", grouped(samples)),
        Some((None, None, _)) | None => String::new(),
    };
    let phase = phase_in_words(phase, planned.map_or(0, |phase| phase.period_ns));
    format!("the run ended early{when} in the phase `{phase}`: run it to its end")
}

/// The decision on the stalls of one or more series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shown {
    /// No series had more than tolerated, at 95 %.
    Kept,
    /// A series had more than tolerated.
    Exceeded,
    /// Neither.
    Open,
}

/// Decides whether stalls are as rare as `profile` tolerates.
///
/// A run with a planned length exceeds it if more stalls were counted than are tolerated in that time. A run that ends
/// as soon as it is decided must show either at 95 %, whenever it looks.
pub(crate) fn shown(profile: &Profile, exposures: &[Exposure]) -> Shown {
    if exposures.iter().any(|exposure| exposure.exceeds(profile.tolerates, exposures.len())) {
        Shown::Exceeded
    } else if exposures.iter().all(|exposure| exposure.shows(profile.tolerates) && exposure.rate_below() < 1.0) {
        Shown::Kept
    } else {
        Shown::Open
    }
}

/// The exposure with the largest bound.
pub(crate) fn weakest(exposures: &[Exposure]) -> Option<Exposure> {
    exposures.iter().copied().reduce(|a, b| if b.stalls_in(1.0) > a.stalls_in(1.0) { b } else { a })
}

/// The reason why `exposure` shows too little for PASS: `none late so far`, or the stalls, and the bound.
pub(crate) fn too_short(profile: &Profile, exposure: &Exposure, place: &str) -> String {
    let so_far = match (exposure.late.stalls_at_least, exposure.late.stalls.total) {
        (_, 0) => "none late so far".to_owned(),
        // Of some results, it is not known whether they were late.
        (0, _) => format!("at most {} so far", exposure.late.stalls_in_words()),
        _ => format!("{} so far", exposure.late.stalls_in_words()),
    };
    let (bound, tolerated) = (exposure.bound_per_span(), profile.tolerates);
    format!("{so_far}, {bound} ({place}), but {tolerated} is tolerated")
}

/// The suffix of the reason for PASS in an emulated guest.
pub(crate) fn of_emulation(record: &Record) -> &'static str {
    match record.machine.emulation {
        None => "",
        Some(Emulation::VirtualTime) => {
            "; measured in virtual time: this is about the paths of the kernel, not about hardware"
        }
        Some(Emulation::Software) => "; measured on emulated CPUs: this is not about hardware",
    }
}

/// The reason why `exposure` shows too little for PASS, with the `command` of a run that may show enough. No run shows
/// the tolerated rate if the measured one is not below it.
pub(crate) fn measure_longer(profile: &Profile, exposure: &Exposure, place: &str, command: &str) -> String {
    let why = too_short(profile, exposure, place);
    if exposure.reaches(profile.tolerates) {
        return format!("{why}: {PROBABLY_NOT_MET}");
    }
    format!("{why}: {command}")
}

/// The advice if there were as many stalls as are tolerated, or more, and thus no longer run is expected to show less.
pub(crate) const PROBABLY_NOT_MET: &str =
    "stalls were not rarer than that, so the use is probably not met, and a longer run does not help";

/// The `--duration` of a run that shows the tolerated rate if its stalls are as frequent as in `exposure`, a run that was made,
/// or at least if they are as many: a tenth more than needed, because of missed deadlines, and not shorter than that run.
pub(crate) fn duration_needed(profile: &Profile, exposure: Option<&Exposure>) -> String {
    duration_observed(profile, exposure, 1.0)
}

/// The same for a run that observes only this share of its time, above 0 and at most 1.
pub(crate) fn duration_observed(profile: &Profile, exposure: Option<&Exposure>, share: f64) -> String {
    let (stalls, made_ns) =
        exposure.map_or((3.0, 0), |exposure| (exposure.stalls_upper(), to_u64(exposure.time_ns().ceil())));
    let at_rate_ns = exposure.and_then(|exposure| exposure.time_at_rate_ns(profile.tolerates)).unwrap_or(0.0);
    let needed_ns = profile.tolerates.time_ns(stalls * 1.1).max(to_u64(at_rate_ns * 1.1));
    let run_ns = to_u64((needed_ns.max(made_ns).max(profile.period_ns) as f64 / share).ceil());
    let seconds = run_ns.div_ceil(1_000_000_000);
    match seconds {
        ..600 => format!("{seconds}s"),
        600..36_000 => format!("{}m", seconds.div_ceil(60)),
        36_000..864_000 => format!("{}h", seconds.div_ceil(3600)),
        _ => format!("{}d", seconds.div_ceil(86_400)),
    }
}

/// The `--profile` option for `profile`, after a space.
pub(crate) fn profile_option(profile: &Profile) -> String {
    format!(" --profile {}", record::shell::command(&[&profile.argument]))
}

/// The options of the run's command that say how its threads and loads were set up, each after a space.
pub(crate) fn thread_options(record: &Record) -> String {
    if record.command.get(1).is_some_and(|verb| verb == "run") {
        return options_of_scenario(record);
    }
    let mut options = given_options(
        record,
        &["--cpus", "--policy", "--clock", "--wait", "--offset", "--core", "--shield", "--load-cpus"],
    );
    let mut words = record.command.iter().take_while(|&word| word != "--");
    if words.any(|word| word == "--hold-cpu-awake") {
        options.push_str(" --hold-cpu-awake");
    }
    options
}

/// The same for a scenario of a campaign, whose command has no such options.
fn options_of_scenario(record: &Record) -> String {
    let Scenario { policy, clock, wait, core, offset_ns, hold_cpu_awake, .. } = &record.scenario;
    let option_of_cpus =
        if record.probe_series().any(|series| series.kind.interrupts().is_some()) { "--cpu" } else { "--cpus" };
    let offset = if *offset_ns == 0 { String::new() } else { format_exact(*offset_ns) };
    let mut cpus: Vec<u32> = record.probe_series().filter_map(|series| series.cpu).collect();
    cpus.sort_unstable();
    cpus.dedup();
    let cpus = cpus.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
    let mut options = String::new();
    for (option, value, default) in [
        (option_of_cpus, cpus.as_str(), ""),
        // The default policy depends on the probe.
        ("--policy", policy, ""),
        ("--offset", &offset, ""),
        ("--clock", clock, "monotonic"),
        ("--wait", wait, "nanosleep"),
        ("--core", core.as_deref().unwrap_or_default(), "linux"),
    ] {
        // The policies of several roles are no value of the option.
        if ![default, ""].contains(&value) && !value.contains(" for ") {
            let _ = write!(options, " {}", record::shell::command(&[option, value]));
        }
    }
    if *hold_cpu_awake {
        options.push_str(" --hold-cpu-awake");
    }
    options
}

/// The run's own command, repeated for `duration` and `profile` under `loads`, and with `period_ns` if it is given and the
/// run has no traffic classes, which have their own periods. `None` if it is not that of one measurement, as for a campaign.
pub(crate) fn repeated(
    record: &Record,
    profile: &Profile,
    duration: &str,
    period_ns: Option<u64>,
    loads: &[String],
) -> Option<String> {
    const WITH_VALUE: [&str; 10] = [
        "--duration",
        "--samples",
        "--rounds",
        "--profile",
        "--load",
        "--record",
        "--export",
        "--against",
        "--color",
        "--limit",
    ];
    const FLAGS: [&str; 7] = ["--endless", "--until-decided", "--no-record", "--json", "--full", "--quiet", "-q"];
    let has_classes =
        record.command.iter().any(|word| word == "--traffic-class" || word.starts_with("--traffic-class="));
    let period_ns = period_ns.filter(|_| !has_classes);
    let mut words = record.command.iter().skip(1).map(String::as_str);
    let mut kept = vec!["punctual", words.next().filter(|verb| ["measure", "pair"].contains(verb))?];
    while let Some(word) = words.next() {
        let option = word.split_once('=').map_or(word, |(option, _)| option);
        let is_replaced = WITH_VALUE.contains(&option) || option == "--period" && period_ns.is_some();
        match word {
            _ if is_replaced && option == word => drop(words.next()),
            _ if is_replaced || FLAGS.contains(&word) => {}
            _ => kept.push(word),
        }
    }
    let period = period_ns.map_or_else(String::new, |period_ns| format!(" --period {}", format_exact(period_ns)));
    let (command, profile) = (record::shell::command(&kept), profile_option(profile));
    Some(format!("{command}{period} --duration {duration}{profile}{}", load_options(loads)))
}

/// Those of these options that the run's command has, each with its value and after a space.
pub(crate) fn given_options(record: &Record, names: &[&str]) -> String {
    let mut options = String::new();
    for &option in names {
        if let Some(value) = option_value(&record.command, option) {
            let _ = write!(options, " {}", record::shell::command(&[option, value]));
        }
    }
    options
}

/// The value of `option` in a command, after a space or `=`.
fn option_value<'a>(command: &'a [String], option: &str) -> Option<&'a str> {
    let mut words = command.iter().map(String::as_str).take_while(|&word| word != "--");
    while let Some(word) = words.next() {
        match word.strip_prefix(option) {
            Some("") => return words.next(),
            Some(rest) if rest.starts_with('=') => return Some(&rest[1..]),
            _ => {}
        }
    }
    None
}

/// The `--load` options for `loads`, each after a space.
pub(crate) fn load_options(loads: &[String]) -> String {
    loads.iter().map(|load| format!(" --load {}", record::shell::command(&[load]))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_advised_duration_depends_on_the_stalls_seen() {
        let profile = Profile { tolerates: "1 per second".parse().unwrap(), ..crate::profiles()[0].clone() };
        let seen = |seconds: u64, stalls: u64| {
            let late = crate::statistics::Late {
                cycles: stalls,
                stalls: crate::statistics::Grouped::of(std::iter::repeat_n(1, usize::try_from(stalls).unwrap())),
                stalls_at_least: stalls,
            };
            let period_ns = 1_000_000;
            let lasted_ns = seconds * 1_000_000_000;
            Exposure { cycles: seconds * 1000, late, period_ns, lasted_ns, any_time: false }
        };
        assert_eq!(duration_needed(&profile, None), "4s");
        assert_eq!(duration_needed(&profile, Some(&seen(1, 0))), "4s");
        assert_eq!(duration_needed(&profile, Some(&seen(20, 20))), "32s", "20 stalls: at 95 % fewer than 29.06");
        assert_eq!(duration_needed(&profile, Some(&seen(21, 20))), "24m", "with 0.952 stalls a second");
        assert_eq!(duration_needed(&profile, Some(&seen(40, 1))), "40s", "not shorter than the run");
        let advice = |seconds, stalls| measure_longer(&profile, &seen(seconds, stalls), "CPU 0", "run it");
        assert!(advice(21, 20).ends_with("1 per second is tolerated: run it"), "{}", advice(21, 20));
        assert!(advice(20, 20).ends_with(PROBABLY_NOT_MET), "{}", advice(20, 20));
    }

    #[test]
    fn an_advised_command_keeps_the_setup_of_the_run() {
        let of = |line: &str| {
            let command = line.split(' ').map(str::to_owned).collect();
            Record { command, ..Record::default() }
        };
        let profile = crate::profiles().iter().find(|profile| profile.name == "udp-control-1ms").unwrap();
        let again = |line: &str| repeated(&of(line), profile, "7s", Some(1_000_000), &["cpu".to_owned()]);
        let new = "--period 1ms --duration 7s --profile udp-control-1ms --load cpu";
        assert_eq!(
            again("/usr/bin/punctual pair b udp --to 10.0.0.2 --duration=1s --load cache --json --period 2ms"),
            Some(format!("punctual pair b udp --to 10.0.0.2 {new}"))
        );
        assert_eq!(
            again("punctual measure udp --self --size 1400 --profile a.toml -q"),
            Some(format!("punctual measure udp --self --size 1400 {new}"))
        );
        assert_eq!((again("punctual run c.toml"), again("punctual --json"), again("punctual")), (None, None, None));

        let mut scenario = of("punctual run c.toml");
        let Scenario { policy, clock, hold_cpu_awake, .. } = &mut scenario.scenario;
        (*policy, *clock, *hold_cpu_awake) = ("fifo:70".to_owned(), "realtime".to_owned(), true);
        scenario.series = [3, 1].map(|cpu| record::Series { cpu: Some(cpu), ..record::Series::default() }).into();
        assert_eq!(thread_options(&scenario), " --cpus 1,3 --policy fifo:70 --clock realtime --hold-cpu-awake");
    }

    #[test]
    fn the_cause_of_traffic_that_ended_is_named() {
        let text = "no program listens on that port any more".to_owned();
        let mut record = Record { state: record::State::Interrupted, ..Record::default() };
        record.validity.valid = true;
        record.phases = vec![record::Phase {
            name: "idle".to_owned(),
            planned_ns: Some(6_000_000_000),
            duration_ns: 6_100_000_000,
            ..record::Phase::default()
        }];
        let no_pass = |record: &Record| Obstacles::of(record, |_| String::new()).no_pass.unwrap();
        assert!(no_pass(&record).starts_with("the run ended early, after 6 s of 6 s"), "{}", no_pass(&record));
        record.caveats.push(record::Caveat { kind: record::GONE.to_owned(), text });
        let expected = "the traffic of the run ended: no program listens on that port any more; restore the traffic, and \
                        run it again";
        assert_eq!(no_pass(&record), expected);
    }

    #[test]
    fn options_are_read_with_a_space_or_an_equals_sign() {
        let of = |words: &[&str]| {
            thread_options(&Record { command: words.iter().map(ToString::to_string).collect(), ..Record::default() })
        };
        let options = " --cpus 1-3,5 --policy fifo:60";
        assert_eq!(of(&["punctual", "measure", "timer", "--policy", "fifo:60", "--cpus", "1-3,5"]), options);
        assert_eq!(of(&["punctual", "measure", "timer", "--cpus=1-3,5", "--policy=fifo:60"]), options);
        assert_eq!(of(&["punctual", "measure", "process", "--", "program", "--cpus", "1"]), "");
        assert_eq!(of(&["punctual", "--cpus"]), "");
    }
}

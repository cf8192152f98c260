//! Probes, loads, placements and settings. Each has a default for every key, so that one mistake hides no other.

use std::collections::HashSet;

use loads::LoadSpec;
use record::BlameMode;
use sys::{
    clock::{Clock, Wait},
    sched::Policy,
};
use toml::{Spanned, de::DeValue};

use super::{
    CpuWords, Fields, Load, LoadPiece, Place, PlacedOn, Placement, Probe, ProbeKind, Settings, Thread, duration_in,
    one_of, words::Use,
};
use crate::{
    Length, ThreadAsk,
    plan::{NOISE_PERIOD_NS, PERIOD_MAX_NS},
};

/// Longest run of one scenario, ns: a week.
const LENGTH_MAX_NS: u64 = 7 * 86_400_000_000_000;
const DEFAULT_LENGTH_NS: u64 = 10_000_000_000;
const DEFAULT_PERIOD_NS: u64 = 1_000_000;
/// Most threads of a probe, and most of a load.
const THREADS_MAX: u64 = 1024;

const BLAME: [(&str, blame::Asked); 5] = [
    ("auto", blame::Asked::Auto),
    ("trace", blame::Asked::Only(BlameMode::Trace)),
    ("deep", blame::Asked::Only(BlameMode::Deep)),
    ("counters", blame::Asked::Only(BlameMode::Counters)),
    ("off", blame::Asked::Only(BlameMode::Off)),
];

pub(super) fn probes(campaign: &mut Fields<'_>) -> Vec<Probe> {
    let probes: Vec<Probe> = match campaign.tables("probe", "a probe") {
        tables if tables.is_empty() => vec![default_probe(campaign.place())],
        tables => tables.into_iter().map(probe).collect(),
    };
    check_names("probes", probes.iter().map(|probe| (&*probe.name, probe.place)), campaign);
    probes
}

fn default_probe(place: Place) -> Probe {
    Probe {
        name: "timer".to_owned(),
        kind: ProbeKind::Timer { period_ns: DEFAULT_PERIOD_NS },
        length: Length::Duration(DEFAULT_LENGTH_NS),
        clock: Clock::Monotonic,
        wait: Wait::Nanosleep,
        offset_ns: 0,
        threshold_ns: None,
        blame: blame::Asked::Auto,
        place,
    }
}

fn probe(mut fields: Fields<'_>) -> Probe {
    let default = default_probe(fields.place());
    let name = fields.parsed("name", part_name);
    let word =
        fields.parsed("kind", |text| one_of(text, &[("timer", "timer"), ("threads", "threads"), ("noise", "noise")]));
    let word = if fields.has("kind") { word } else { Some("timer") };
    let period_ns = fields.parsed("period", period);
    let runtime_ns = fields.parsed("runtime", period);
    let threads: Vec<Thread> = fields.tables("threads", "a thread").into_iter().map(thread).collect();
    let length = length(&mut fields, period_ns.unwrap_or(DEFAULT_PERIOD_NS));
    let (clock, wait) = (fields.parsed("clock", str::parse::<Clock>), fields.parsed("wait", str::parse::<Wait>));
    let offset_ns = fields.parsed("offset", |text| duration_in(text, 0, PERIOD_MAX_NS, "at most 1h, as 50us"));
    let threshold_ns = fields.parsed("threshold", |text| duration_in(text, 1, PERIOD_MAX_NS, "1ns to 1h, as 100us"));
    let blame = fields.parsed("blame", |text| one_of(text, &BLAME));
    let useless: &[&str] = match word {
        Some("timer") => &["threads", "runtime"],
        Some("threads") => &["period", "runtime", "samples"],
        Some("noise") => &["threads", "samples", "clock", "wait", "offset"],
        _ => &[],
    };
    let kind = match word {
        Some("threads") if threads.is_empty() => ProbeKind::Threads(base_and_servo()),
        Some("threads") => ProbeKind::Threads(threads),
        Some("noise") => ProbeKind::Noise { period_ns: period_ns.unwrap_or(NOISE_PERIOD_NS), runtime_ns },
        _ => ProbeKind::Timer { period_ns: period_ns.unwrap_or(DEFAULT_PERIOD_NS) },
    };
    if let ProbeKind::Threads(threads) = &kind {
        let mut roles = HashSet::new();
        if let Some(twice) = threads.iter().find(|thread| !roles.insert(&thread.role)) {
            fields.wrong("threads", format!("two threads are called `{}`: give each a name of its own", twice.role));
        }
    }
    if let ProbeKind::Noise { period_ns, runtime_ns: Some(runtime_ns) } = kind
        && runtime_ns > period_ns
    {
        fields.wrong("runtime", "runtime must be at most the period: it is the part of it that the probe spins");
    }
    for key in useless.iter().filter(|key| fields.has(key)) {
        fields.wrong(key, format!("{key} is of no use with kind = {:?}: {}", word.unwrap_or_default(), instead(key)));
    }
    fields.finish();
    Probe {
        name: name.unwrap_or_else(|| word.unwrap_or("timer").to_owned()),
        kind,
        length,
        clock: clock.unwrap_or(default.clock),
        wait: wait.unwrap_or(default.wait),
        offset_ns: offset_ns.unwrap_or(0),
        threshold_ns,
        blame: blame.unwrap_or(default.blame),
        place: default.place,
    }
}

/// What to do about a key that a kind of probe has no use for.
fn instead(key: &str) -> &'static str {
    match key {
        "threads" => "write kind = \"threads\"",
        "period" => "leave it out; each of the `threads` has its own",
        "samples" => "write how long it runs, as duration = \"60s\"",
        _ => "leave it out",
    }
}

/// The two threads of machine-tool control.
fn base_and_servo() -> Vec<Thread> {
    let of = |ask: ThreadAsk| Thread { role: ask.role, period_ns: ask.period_ns, priority: None };
    ThreadAsk::base_and_servo().into_iter().map(of).collect()
}

fn thread(mut fields: Fields<'_>) -> Thread {
    let role = fields.parsed("name", part_name);
    let period_ns = fields.parsed("period", period);
    let priority = fields.integer("priority", 1..=99).map(|priority| priority as u8);
    for key in ["name", "period"].into_iter().filter(|key| !fields.has(key)) {
        fields
            .wrong(key, format!("a thread needs a {key}: write for example {{ name = \"servo\", period = \"1ms\" }}"));
    }
    fields.finish();
    Thread { role: role.unwrap_or_default(), period_ns: period_ns.unwrap_or(DEFAULT_PERIOD_NS), priority }
}

fn length(fields: &mut Fields<'_>, period_ns: u64) -> Length {
    let duration_ns =
        fields.parsed("duration", |text| duration_in(text, 1, LENGTH_MAX_NS, "longer than 0 and at most 7d, as 60s"));
    let samples = fields.integer("samples", 1..=i64::MAX as u64);
    if fields.has("duration") && fields.has("samples") {
        fields.wrong("samples", "duration and samples both say when the probe ends: leave one of them out");
    }
    match (duration_ns, samples) {
        (_, Some(samples)) => {
            if samples.checked_mul(period_ns).is_none_or(|length_ns| length_ns > LENGTH_MAX_NS) {
                fields.wrong("samples", format!("samples: {samples} at this period take more than 7d: ask for fewer"));
            }
            Length::Samples(samples)
        }
        (duration_ns, None) => Length::Duration(duration_ns.unwrap_or(DEFAULT_LENGTH_NS)),
    }
}

fn period(text: &str) -> Result<u64, String> {
    duration_in(text, 1, PERIOD_MAX_NS, "longer than 0 and at most 1h, as 1ms")
}

pub(super) fn loads(campaign: &mut Fields<'_>) -> Vec<Load> {
    let idle = Load { name: "idle".to_owned(), run: Vec::new(), place: campaign.place() };
    let loads: Vec<Load> = match campaign.tables("load", "a load") {
        tables if tables.is_empty() => vec![idle],
        tables => tables.into_iter().map(load).collect(),
    };
    check_names("loads", loads.iter().map(|load| (&*load.name, load.place)), campaign);
    loads
}

fn load(mut fields: Fields<'_>) -> Load {
    let name = fields.parsed("name", part_name);
    let run = fields.value("run");
    let cpus = words(&mut fields, "cpus", Use::Load);
    let threads = fields.integer("threads", 1..=THREADS_MAX).map(|threads| threads as u32);
    let shared = LoadPiece { spec: LoadSpec { load: loads::Load::Idle, cpus: None }, cpus, threads };
    let values: Vec<&Spanned<DeValue<'_>>> = match run.map(|run| (run, run.get_ref())) {
        Some((_, DeValue::Array(list))) => list.iter().collect(),
        Some((run, _)) => vec![run],
        None => Vec::new(),
    };
    let mut run: Vec<LoadPiece> = values.into_iter().filter_map(|value| piece(&fields, value, &shared)).collect();
    if run.len() > 1 && run.iter().any(|piece| piece.spec.load == loads::Load::Idle) {
        fields.wrong("run", "idle runs nothing, and stands beside other loads: leave it out");
    }
    run.retain(|piece| piece.spec.load != loads::Load::Idle);
    for key in ["cpus", "threads"].into_iter().filter(|key| fields.has(key) && run.is_empty()) {
        fields.wrong(key, format!("{key} is of no use, since nothing runs: write run = [\"cpu\"], for example"));
    }
    let place = fields.place();
    fields.finish();
    let told: Vec<String> = run.iter().map(|piece| piece.spec.to_string()).collect();
    let default_name = if told.is_empty() { "idle".to_owned() } else { told.join(" + ") };
    Load { name: name.unwrap_or(default_name), run, place }
}

/// One load: a text as on the command line, or a table with CPUs and threads of its own.
fn piece<'a>(load: &Fields<'a>, value: &'a Spanned<DeValue<'a>>, shared: &LoadPiece) -> Option<LoadPiece> {
    if value.get_ref().as_table().is_none() {
        let spec = load.parse_value("run", value, str::parse::<LoadSpec>)?;
        check_threads(load, "run", &spec, shared.threads);
        return Some(LoadPiece { spec, ..shared.clone() });
    }
    let mut fields = load.table_of("run", "a piece of a load", value)?;
    let spec = fields.parsed("load", str::parse::<LoadSpec>);
    let cpus = words(&mut fields, "cpus", Use::Load);
    let threads = fields.integer("threads", 1..=THREADS_MAX).map(|threads| threads as u32);
    if !fields.has("load") {
        fields.wrong("load", "a piece of a load says which: write { load = \"cpu\", cpus = \"others\" }, for example");
    }
    let spec = spec.unwrap_or(LoadSpec { load: loads::Load::Idle, cpus: None });
    if spec.cpus.is_some() && cpus.is_some() {
        fields.wrong("cpus", format!("`{spec}` says its CPUs already: leave out cpus, or what follows the @"));
    }
    let piece = LoadPiece { spec, cpus: cpus.or_else(|| shared.cpus.clone()), threads: threads.or(shared.threads) };
    check_threads(&fields, "threads", &piece.spec, piece.threads);
    fields.finish();
    Some(piece)
}

fn check_threads(fields: &Fields<'_>, key: &str, spec: &LoadSpec, threads: Option<u32>) {
    if threads.is_some() && matches!(spec.load, loads::Load::StressNg { .. }) {
        fields.wrong(key, "stress-ng starts its own threads: say how many in its arguments, as stress-ng:--cpu 2");
    }
}

pub(super) fn placements(campaign: &mut Fields<'_>) -> Vec<Placement> {
    let everywhere = |place| Placement {
        name: "all CPUs".to_owned(),
        on: PlacedOn::Set(CpuWords::all(place)),
        policy: None,
        shield: None,
        place,
    };
    let placements: Vec<Placement> = match campaign.tables("placement", "a placement") {
        tables if tables.is_empty() => vec![everywhere(campaign.place())],
        tables => tables.into_iter().map(|fields| placement(fields, everywhere)).collect(),
    };
    check_names("placements", placements.iter().map(|placement| (&*placement.name, placement.place)), campaign);
    placements
}

fn placement(mut fields: Fields<'_>, default: impl Fn(Place) -> Placement) -> Placement {
    let default = default(fields.place());
    let name = fields.parsed("name", part_name);
    let cpus = fields.value("cpus");
    let place = fields.place_of("cpus");
    let placed = |text: &str| placed_on(text, place);
    let on = cpus.and_then(|value| match value.get_ref() {
        DeValue::Array(list) => {
            let word = |text: &str| CpuWords::parse(text, Use::Measuring, place);
            Some(PlacedOn::ByThread(list.iter().filter_map(|value| fields.parse_value("cpus", value, word)).collect()))
        }
        _ => fields.parse_value("cpus", value, placed),
    });
    let policy = fields.parsed("policy", str::parse::<Policy>);
    let shield = words(&mut fields, "shield", Use::Shield);
    fields.finish();
    let told = cpus.and_then(|value| value.get_ref().as_str()).map(str::to_owned);
    let default_name = told.filter(|told| part_name(told).is_ok()).unwrap_or_else(|| default.name.clone());
    Placement { name: name.unwrap_or(default_name), on: on.unwrap_or(default.on), policy, shield, place: default.place }
}

/// CPUs in words, behind `each` or `pairs` for one placement a CPU or a pair.
fn placed_on(text: &str, place: Place) -> Result<PlacedOn, String> {
    let (first, rest) = text.split_once(' ').unwrap_or((text, ""));
    let of = |rest: &str| match rest.trim() {
        "" => Ok(CpuWords::all(place)),
        words => CpuWords::parse(words, Use::Measuring, place),
    };
    match first {
        "each" => of(rest).map(PlacedOn::Each),
        "pairs" => of(rest).map(PlacedOn::Pairs),
        _ => CpuWords::parse(text, Use::Measuring, place).map(PlacedOn::Set),
    }
}

pub(super) fn settings(campaign: &mut Fields<'_>) -> Vec<Settings> {
    let as_found = Settings { name: "as found".to_owned(), hold_cpu_awake: false, place: campaign.place() };
    let settings: Vec<Settings> = match campaign.tables("settings", "settings") {
        tables if tables.is_empty() => vec![as_found],
        tables => tables.into_iter().map(one_settings).collect(),
    };
    check_names("settings", settings.iter().map(|settings| (&*settings.name, settings.place)), campaign);
    settings
}

fn one_settings(mut fields: Fields<'_>) -> Settings {
    let name = fields.parsed("name", part_name);
    let hold_cpu_awake = fields.flag("hold_cpu_awake");
    let place = fields.place();
    fields.finish();
    let default_name = if hold_cpu_awake { "awake" } else { "as found" };
    Settings { name: name.unwrap_or_else(|| default_name.to_owned()), hold_cpu_awake, place }
}

fn words(fields: &mut Fields<'_>, key: &'static str, allowed: Use) -> Option<CpuWords> {
    let place = fields.place_of(key);
    fields.parsed(key, |text| CpuWords::parse(text, allowed, place))
}

/// A name that fits into a table.
fn part_name(text: &str) -> Result<String, String> {
    if (1..=40).contains(&text.chars().count()) && !text.contains(char::is_control) && text.trim() == text {
        return Ok(text.to_owned());
    }
    Err(format!("{text:?} must be 1 to 40 characters in one line, with no blanks around them"))
}

fn check_names<'a>(what: &str, names: impl Iterator<Item = (&'a str, Place)>, campaign: &Fields<'_>) {
    let mut seen = HashSet::new();
    for (name, place) in names {
        if !seen.insert(name) {
            let text = format!("two {what} are called `{name}`: give each a name of its own, as name = \"{name} 2\"");
            campaign.mistakes.add_at(place, text);
        }
    }
}

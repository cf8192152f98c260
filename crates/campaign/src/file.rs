//! The campaign file: a table of scenarios as its user writes it, in TOML.
//!
//! Reading names every mistake in one go, each with its line and column. CPUs stand in it as words (`last`, `others`),
//! which [`expand`](crate::expand()) turns into those of a machine.
//!
//! | module | holds |
//! |---|---|
//! | `mistake` | what is wrong, and where |
//! | `fields` | the keys of one table, each taken once |
//! | `words` | CPUs in words |
//! | `parts` | probes, loads, placements, settings |
//! | `chosen` | the scenarios that are listed, and what fits together |

mod chosen;
mod fields;
mod mistake;
mod parts;
mod words;

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use loads::LoadSpec;
use sys::{
    clock::{Clock, Wait},
    sched::Policy,
};
use toml::de::DeTable;

use self::{
    fields::Fields,
    mistake::{Collector, one_of},
};
pub use self::{
    mistake::{FileMistakes, Mistake, Place},
    words::{CpuWord, CpuWords},
};
use crate::{Length, order::Order};

/// Most repeats of a campaign.
pub const REPEATS_MAX: u32 = 1000;
/// Longest rest between two scenarios, ns: one hour.
const REST_MAX_NS: u64 = 3_600_000_000_000;

/// A campaign as its file says it, free of mistakes that can be seen without a machine.
#[derive(Debug, Clone)]
pub struct CampaignFile {
    /// The file as mistakes name it.
    pub path: String,
    /// Its name in lower case with hyphens, which names the folder of the records.
    pub name: String,
    /// What it is, in words.
    pub title: String,
    /// Where the table comes from; empty where the file does not say.
    pub source: String,
    /// Profiles that judge each record: names, or paths of TOML files.
    pub profiles: Vec<String>,
    /// Published references to be laid beside.
    pub against: Vec<String>,
    /// The order of the scenarios.
    pub order: Order,
    /// How often each scenario runs; 1 to [`REPEATS_MAX`].
    pub repeats: u32,
    /// Rest between two scenarios, ns.
    pub rest_ns: u64,
    /// What measures; at least one, as of each part, and no two of the same name.
    pub probes: Vec<Probe>,
    /// What runs beside it.
    pub loads: Vec<Load>,
    /// Where, and with which policy.
    pub placements: Vec<Placement>,
    /// How the machine is set meanwhile.
    pub settings: Vec<Settings>,
    /// The scenarios before repeats, in the order of the file.
    pub scenarios: Vec<Chosen>,
}

/// One kind of latency to be measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Probe {
    /// Its name.
    pub name: String,
    /// Which latency.
    pub kind: ProbeKind,
    /// When it ends.
    pub length: Length,
    /// Clock of the deadlines.
    pub clock: Clock,
    /// How the threads wait.
    pub wait: Wait,
    /// Shift between the grids of neighbouring CPUs, ns.
    pub offset_ns: u64,
    /// What counts as a spike, ns; `None` for the default of the probe.
    pub threshold_ns: Option<u64>,
    /// How to look for culprits.
    pub blame: blame::Asked,
    /// Where it stands.
    pub place: Place,
}

/// Which latency a probe measures.
#[derive(Debug, Clone, PartialEq)]
pub enum ProbeKind {
    /// How late a thread wakes, one a CPU.
    Timer {
        /// Time between two deadlines, ns.
        period_ns: u64,
    },
    /// Several threads at once, each with a period of its own; at least one.
    Threads(Vec<Thread>),
    /// Gaps in a loop that looks at a clock and does nothing else, one a CPU.
    Noise {
        /// Time between two stretches of looking, ns.
        period_ns: u64,
        /// How long it looks in each, ns; `None` for the default share of the period.
        runtime_ns: Option<u64>,
    },
}

/// One of several threads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Thread {
    /// What it is called in the record.
    pub role: String,
    /// Time between two deadlines, ns.
    pub period_ns: u64,
    /// Its priority, 1 to 99; where absent the placement's policy, or else one by its period.
    pub priority: Option<u8>,
}

/// What runs beside the probe.
#[derive(Debug, Clone, PartialEq)]
pub struct Load {
    /// Its name.
    pub name: String,
    /// Its pieces; none for an idle machine.
    pub run: Vec<LoadPiece>,
    /// Where it stands.
    pub place: Place,
}

/// One load, with its CPUs in words.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadPiece {
    /// The load; without CPUs where `cpus` says them.
    pub spec: LoadSpec,
    /// Its CPUs; the measured ones where neither this nor the load says otherwise.
    pub cpus: Option<CpuWords>,
    /// Threads in all, spread over its CPUs; one a CPU where absent.
    pub threads: Option<u32>,
}

/// Where the probe runs, and with which policy.
#[derive(Debug, Clone, PartialEq)]
pub struct Placement {
    /// Its name; empty for one whose CPUs name it.
    pub name: String,
    /// Its CPUs.
    pub on: PlacedOn,
    /// Policy of the measuring threads; fifo:90 where absent.
    pub policy: Option<Policy>,
    /// CPUs that all else is moved off.
    pub shield: Option<CpuWords>,
    /// Where it stands.
    pub place: Place,
}

/// The CPUs of a placement.
#[derive(Debug, Clone, PartialEq)]
pub enum PlacedOn {
    /// All of these at once; several threads go onto them in turn.
    Set(CpuWords),
    /// One placement a CPU.
    Each(CpuWords),
    /// One placement for each pair of CPUs, of two threads.
    Pairs(CpuWords),
    /// One CPU a thread.
    ByThread(Vec<CpuWords>),
}

/// How the machine is set during the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Their name.
    pub name: String,
    /// Whether to hold the measured CPUs out of their idle states.
    pub hold_cpu_awake: bool,
    /// Where they stand.
    pub place: Place,
}

/// A scenario by the indices of its parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Chosen {
    /// Index of the probe.
    pub probe: usize,
    /// Index of the load.
    pub load: usize,
    /// Index of the placement.
    pub placement: usize,
    /// Index of the settings.
    pub settings: usize,
    /// Where it is listed; the place of its placement where the file lists none.
    pub place: Place,
}

/// Why there is no campaign.
#[derive(Debug, thiserror::Error)]
pub enum CampaignFileError {
    /// No built-in campaign has that name.
    #[error(
        "no campaign is called {name:?}{nearest}: list them with `punctual campaigns`, or name a file that ends in .toml"
    )]
    Unknown {
        /// The name asked for.
        name: String,
        /// The most similar name, as a question.
        nearest: String,
    },
    /// The file could not be read.
    #[error("cannot read the campaign {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file has mistakes.
    #[error(transparent)]
    Mistakes(#[from] FileMistakes),
}

/// The campaign in a file when `name_or_path` ends in `.toml`, else the built-in one of that name.
///
/// # Errors
/// When no campaign has that name, or the file cannot be read or has mistakes.
pub fn find_campaign(name_or_path: &str) -> Result<CampaignFile, CampaignFileError> {
    if Path::new(name_or_path).extension().is_some_and(|ending| ending == "toml") {
        let path = Path::new(name_or_path);
        let text =
            fs::read_to_string(path).map_err(|source| CampaignFileError::Read { path: path.to_owned(), source })?;
        return Ok(parse(name_or_path, &text)?);
    }
    let names: Vec<&str> = crate::builtin::FILES.iter().map(|(name, _)| *name).collect();
    match crate::builtin::FILES.iter().find(|(name, _)| *name == name_or_path) {
        Some((name, text)) => Ok(parse(&format!("campaigns/{name}.toml"), text)?),
        None => Err(CampaignFileError::Unknown {
            name: name_or_path.to_owned(),
            nearest: mistake::nearest(name_or_path, &names),
        }),
    }
}

/// Reads a campaign from the text of its file. `path` names it in mistakes; profiles in files are looked for beside it.
///
/// # Errors
/// Every mistake that can be seen without a machine. Where the TOML itself is broken, only what breaks it.
pub fn parse(path: &str, text: &str) -> Result<CampaignFile, FileMistakes> {
    let mistakes = Collector::new(path, text);
    let (table, errors) = DeTable::parse_recoverable(text);
    for error in &errors {
        mistakes.add(
            error.span().map_or(0, |span| span.start),
            format!("not TOML: {}", error.message().replace('\n', ", ")),
        );
    }
    let read = if errors.is_empty() { campaign(path, table.get_ref(), &mistakes) } else { None };
    match (read, mistakes.finish()) {
        (Some(file), None) => Ok(file),
        (_, mistakes) => Err(mistakes.unwrap_or_else(|| FileMistakes { path: path.to_owned(), list: Vec::new() })),
    }
}

fn campaign(path: &str, table: &DeTable<'_>, mistakes: &Collector<'_>) -> Option<CampaignFile> {
    let mut fields = Fields::new("a campaign", table, 0, mistakes);
    let name = fields.parsed("name", kebab);
    if !fields.has("name") {
        mistakes.add(0, "the campaign has no name: write `name = \"my-campaign\"` in the first line".to_owned());
    }
    let title = fields.text("title").unwrap_or_default();
    let source = fields.text("source").unwrap_or_default();
    let profiles = fields.texts("profiles", |text| profile(path, text));
    let against = fields.texts("against", |text| kebab(text));
    let order = fields.parsed("order", |text| {
        one_of(text, &[("sequential", "sequential"), ("shuffled", "shuffled"), ("abba", "abba")])
    });
    let seed = fields.integer("seed", 0..=i64::MAX as u64);
    let repeats = fields.integer("repeats", 1..=u64::from(REPEATS_MAX)).unwrap_or(1) as u32;
    let rest_ns = fields.parsed("rest", |text| duration_in(text, 0, REST_MAX_NS, "at most 1h, as 2s"));
    let probes = parts::probes(&mut fields);
    let loads = parts::loads(&mut fields);
    let placements = parts::placements(&mut fields);
    let settings = parts::settings(&mut fields);
    let scenarios = chosen::scenarios(&mut fields, &probes, &loads, &placements, &settings);
    let order = match order {
        Some("shuffled") => Order::Shuffled { seed: seed.unwrap_or(1) },
        Some("abba") => Order::Abba,
        _ => Order::Sequential,
    };
    if seed.is_some() && !matches!(order, Order::Shuffled { .. }) {
        fields.wrong("seed", "seed is of use with `order = \"shuffled\"` alone: leave it out");
    }
    if order == Order::Abba && repeats % 2 == 1 {
        fields.wrong("order", "abba goes there and back, so it needs an even number of repeats: write `repeats = 2`");
    }
    fields.finish();
    Some(CampaignFile {
        path: path.to_owned(),
        name: name?,
        title,
        source,
        profiles,
        against,
        order,
        repeats,
        rest_ns: rest_ns.unwrap_or(0),
        probes,
        loads,
        placements,
        settings,
        scenarios,
    })
}

/// A name that may stand in a path.
fn kebab(text: &str) -> Result<String, String> {
    let fine = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if (1..=60).contains(&text.len()) && text.chars().all(fine) && !text.starts_with('-') {
        return Ok(text.to_owned());
    }
    Err(format!("{text:?} must be lower case with digits and hyphens, as \"my-campaign\""))
}

/// A profile: one in a file is looked for beside the campaign.
fn profile(path: &str, text: &str) -> Result<String, String> {
    let name = if text.ends_with(".toml") {
        Path::new(path).with_file_name("").join(text).to_string_lossy().into_owned()
    } else {
        text.to_owned()
    };
    analysis::find_profile(&name).map(|_| name).map_err(|error| error.to_string())
}

/// A duration within bounds, ns.
fn duration_in(text: &str, least_ns: u64, most_ns: u64, bounds: &str) -> Result<u64, String> {
    match analysis::duration::parse_ns(text) {
        Ok(ns) if (least_ns..=most_ns).contains(&ns) => Ok(ns),
        Ok(_) => Err(format!("{text:?} must be {bounds}")),
        Err(error) => Err(error.to_string()),
    }
}

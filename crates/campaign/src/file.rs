//! Reads a campaign file: a table of scenarios in TOML.
//!
//! All mistakes are reported at once, each with its line and column. A file names CPUs by words (`last`, `others`),
//! which [`expand`](crate::expand()) resolves to the CPUs of a machine.
//!
//! | module | contains |
//! |---|---|
//! | [`model`] | the content of a campaign file |
//! | `mistake` | mistakes and their positions |
//! | `fields` | reads the keys of one table |
//! | `words` | CPU words |
//! | `probes`, `loads`, `parts` | probes; loads; placements and settings |
//! | `round_trip`, `stream`, `audio` | the keys of these kinds of probe |
//! | `streams` | a file of streams for a talker |
//! | `values` | values that several parts use |
//! | `default_names` | names of probes that the file does not name |
//! | `combinations` | which parts are combined to scenarios, and whether they fit together |

mod audio;
mod combinations;
mod default_names;
mod fields;
mod loads;
pub(crate) mod mistake;
pub mod model;
mod parts;
mod probes;
mod round_trip;
mod stream;
mod streams;
mod values;
mod words;

use std::path::Path;

use analysis::LoadError;
use toml::de::DeTable;

use self::{
    fields::Fields,
    mistake::Collector,
    values::{duration_in, one_of},
};
pub use self::{
    mistake::{FileMistakes, Mistake, Position},
    model::{CampaignFile, CampaignProbe, Combination, Load, LoadPiece, PlacedOn, Placement, Settings},
    streams::{StreamsError, parse_streams, read_streams},
    words::{CpuWord, CpuWords},
};
use crate::order::Order;

/// Most scenarios of a campaign, including repeats.
pub const SCENARIOS_MAX: usize = 10_000;
/// Most repeats of a campaign.
pub const REPEATS_MAX: u32 = 1000;
/// Longest rest between two scenarios, ns: one hour.
const REST_MAX_NS: u64 = 3_600_000_000_000;

const DEFAULT_SEED: u64 = 1;
const ORDERS: [(&str, Order); 3] =
    [("sequential", Order::Sequential), ("shuffled", Order::Shuffled { seed: DEFAULT_SEED }), ("abba", Order::Abba)];

/// Reads a campaign from the text of its file. Mistakes are reported for `path`, and relative paths of profiles and
/// references start at its folder.
///
/// # Errors
/// All mistakes that can be found without a machine; only the syntax errors if the file is not TOML.
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
        mistakes.add(0, "the campaign has no name: write e.g. `name = \"my-campaign\"` in the first line".to_owned());
    }
    let title = fields.text("title").unwrap_or_default();
    let source = fields.text("source").unwrap_or_default();
    let profiles = fields.texts("profiles", |text| profile(path, text));
    if let Err(error @ LoadError::SameName { .. }) = analysis::find_profiles(&profiles) {
        fields.report("profiles", error.to_string());
    }
    let against = fields.texts("against", |text| reference(path, text));
    let order = fields.parsed("order", |text| one_of(text, &ORDERS));
    let order_is_known = order.is_some() || !fields.has("order");
    let seed = fields.integer("seed", 0..=i64::MAX.unsigned_abs());
    let repeats = fields.integer("repeats", 1..=u64::from(REPEATS_MAX));
    let repeats = repeats.and_then(|repeats| u32::try_from(repeats).ok()).unwrap_or(1);
    let rest_ns = fields.parsed("rest", |text| duration_in(text, 0, REST_MAX_NS, "at most 1h, e.g. 2s"));
    let probes = probes::probes(&mut fields);
    let loads = loads::loads(&mut fields);
    let placements = parts::placements(&mut fields);
    let settings = parts::settings(&mut fields);
    let scenarios = combinations::scenarios(&mut fields, &probes, &loads, &placements, &settings);
    let order = match order.unwrap_or(Order::Sequential) {
        Order::Shuffled { .. } => Order::Shuffled { seed: seed.unwrap_or(DEFAULT_SEED) },
        order => order,
    };
    if seed.is_some() && order_is_known && !matches!(order, Order::Shuffled { .. }) {
        fields.report("seed", "seed is only for `order = \"shuffled\"`: leave it out");
    }
    if !order.allows(repeats) {
        fields.report("order", "abba runs forwards and backwards, so repeats must be even: write e.g. `repeats = 2`");
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

/// Checks a name that becomes part of a path.
fn kebab(text: &str) -> Result<String, String> {
    let fine = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if (1..=60).contains(&text.len()) && text.chars().all(fine) && !text.starts_with('-') {
        return Ok(text.to_owned());
    }
    Err(format!("{text:?} must be lower case with digits and hyphens, e.g. \"my-campaign\""))
}

fn profile(path: &str, text: &str) -> Result<String, String> {
    let name = in_campaign_folder(path, text);
    analysis::find_profile(&name).map(|_| name).map_err(|error| error.to_string())
}

fn reference(path: &str, text: &str) -> Result<String, String> {
    let name = in_campaign_folder(path, text);
    analysis::find_reference(&name).map(|_| name).map_err(|error| error.to_string())
}

/// The path of a file, relative to the folder of the campaign; the name of something built in is returned unchanged.
fn in_campaign_folder(path: &str, text: &str) -> String {
    if text.ends_with(".toml") || text.ends_with(".json") {
        Path::new(path).with_file_name("").join(text).to_string_lossy().into_owned()
    } else {
        text.to_owned()
    }
}

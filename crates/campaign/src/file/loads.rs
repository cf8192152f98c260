//! The loads of a campaign file.

use loads::{Load as Kind, LoadSpec};
use toml::{Spanned, de::DeValue};

use super::{
    fields::Fields,
    model::{Load, LoadPiece},
    parts::{check_names, part_name, words},
    words::Use,
};

/// Most threads of a load.
const THREADS_MAX: u64 = 1024;

pub(super) fn loads(campaign: &mut Fields<'_>) -> Vec<Load> {
    let idle = Load { name: "idle".to_owned(), run: Vec::new(), position: campaign.position() };
    let loads: Vec<Load> = match campaign.tables("load", "a load") {
        tables if tables.is_empty() => vec![idle],
        tables => tables.into_iter().map(load).collect(),
    };
    check_names("loads", loads.iter().map(|load| (&*load.name, load.position)), campaign);
    loads
}

fn load(mut fields: Fields<'_>) -> Load {
    let name = fields.parsed("name", part_name);
    let run = fields.value("run");
    let cpus = words(&mut fields, "cpus", Use::Load);
    let threads = fields.integer("threads", 1..=THREADS_MAX).and_then(|threads| u32::try_from(threads).ok());
    let shared = LoadPiece { spec: LoadSpec::IDLE, cpus, threads };
    let values: Vec<&Spanned<DeValue<'_>>> = match run.map(|run| (run, run.get_ref())) {
        Some((_, DeValue::Array(list))) => list.iter().collect(),
        Some((run, _)) => vec![run],
        None => Vec::new(),
    };
    let default_name = default_name(&values);
    let mut run: Vec<LoadPiece> = values.into_iter().filter_map(|value| piece(&fields, value, &shared)).collect();
    if run.len() > 1 && run.iter().any(|piece| piece.spec.load.is_idle()) {
        fields.report("run", "idle cannot be combined with other loads: leave it out");
    }
    run.retain(|piece| !piece.spec.load.is_idle());
    for key in ["cpus", "threads"].into_iter().filter(|key| fields.has(key) && run.is_empty()) {
        fields.report(key, format!("{key} needs a load: write e.g. run = [\"cpu\"]"));
    }
    let position = fields.position();
    fields.finish();
    Load { name: name.unwrap_or(default_name), run, position }
}

/// The name of a load without a name: its pieces as the file has them, even if they are wrong.
fn default_name(values: &[&Spanned<DeValue<'_>>]) -> String {
    let piece = |value: &&Spanned<DeValue<'_>>| {
        let value = value.get_ref();
        value.as_str().or_else(|| value.get("load")?.get_ref().as_str()).map(str::to_owned)
    };
    match values.iter().filter_map(piece).collect::<Vec<_>>() {
        pieces if pieces.is_empty() => "idle".to_owned(),
        pieces => pieces.join(" + "),
    }
}

/// Reads one load: a string as on the command line, or a table with its own CPUs and threads.
fn piece<'a>(load: &Fields<'a>, value: &'a Spanned<DeValue<'a>>, shared: &LoadPiece) -> Option<LoadPiece> {
    if value.get_ref().as_table().is_none() {
        let spec = load.parse_value("run", value, str::parse::<LoadSpec>)?;
        check_threads(load, "run", &spec, shared.threads);
        return Some(LoadPiece { spec, ..shared.clone() });
    }
    let mut fields = load.table_of("run", "a piece of a load", value)?;
    let spec = fields.parsed("load", str::parse::<LoadSpec>);
    let cpus = words(&mut fields, "cpus", Use::Load);
    let threads = fields.integer("threads", 1..=THREADS_MAX).and_then(|threads| u32::try_from(threads).ok());
    if !fields.has("load") {
        fields.report("load", "the load is missing: write e.g. { load = \"cpu\", cpus = \"others\" }");
    }
    let spec = spec.unwrap_or(LoadSpec::IDLE);
    if spec.cpus.is_some() && cpus.is_some() {
        fields.report("cpus", format!("`{spec}` already names its CPUs: leave out cpus, or the part after the @"));
    }
    let piece = LoadPiece { spec, cpus: cpus.or_else(|| shared.cpus.clone()), threads: threads.or(shared.threads) };
    check_threads(&fields, "threads", &piece.spec, piece.threads);
    fields.finish();
    Some(piece)
}

fn check_threads(fields: &Fields<'_>, key: &str, spec: &LoadSpec, threads: Option<u32>) {
    if threads.is_some() && matches!(spec.load, Kind::StressNg(_)) {
        fields.report(
            key,
            "stress-ng starts its own threads: give their number in its arguments, e.g. stress-ng:--cpu 2",
        );
    }
}

//! `punctual loads`, and the hidden command that runs a load in a child process.

use loads::{Kind, LoadSpec};
use report::terminal::{entry, width};
use serde_json::{Value, json};

use crate::{
    cli::{Load, Loads},
    exit::Usage,
    output,
};

pub fn list(options: &Loads) -> anyhow::Result<u8> {
    // As on the command line, the name can have options.
    let name_of = |spec: &str| spec.split([':', '@']).next().unwrap_or_default().to_owned();
    let is_wanted = |kind: &&Kind| options.name.as_ref().is_none_or(|name| kind.name == name_of(name));
    let kinds: Vec<&Kind> = loads::KINDS.iter().filter(is_wanted).collect();
    if let (Some(name), []) = (&options.name, &kinds[..]) {
        // The error names the loads.
        name.parse::<LoadSpec>().map_err(|error| Usage(error.to_string()))?;
    }
    output::stdout(|out| {
        if options.json {
            let all = || kinds.iter().map(|kind| to_json(kind)).collect();
            let document = options.name.as_ref().and(kinds.first()).map_or_else(all, |kind| to_json(kind));
            return writeln!(out, "{}", output::json(&document));
        }
        for kind in kinds {
            write!(out, "{}", entry(kind.name, 11, kind.description, width()))?;
            for (option, meaning) in kind.options {
                write!(out, "{}", entry(&format!("  {option}"), 34, meaning, width()))?;
            }
        }
        let end = "Append @CPUS to a load to choose its CPUs, e.g. --load switch:10us@0-1. Details: docs/loads.md";
        write!(out, "\n{}", entry("", 0, end, width()))
    })?;
    Ok(0)
}

fn to_json(kind: &Kind) -> Value {
    let options: Vec<Value> =
        kind.options.iter().map(|(option, meaning)| json!({ "option": option, "meaning": meaning })).collect();
    json!({ "name": kind.name, "description": kind.description, "options": options })
}

pub fn work(options: &Load) -> anyhow::Result<u8> {
    loads::worker(&options.spec, &options.cpus)?;
    Ok(0)
}

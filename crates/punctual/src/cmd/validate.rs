//! `punctual validate`: lists every mistake in campaign files.

use analysis::format_duration;
use campaign::{CampaignFileError, FileMistakes, Scenarios, Validator};
use record::counted;
use serde_json::{Value, json};

use crate::{cli::Validate, output};

pub fn run(options: &Validate) -> anyhow::Result<u8> {
    let validator = Validator::of(output::root(options.root.as_ref())?)?;
    let results: Vec<_> = options.files.iter().map(|file| (file, check(file, &validator))).collect();
    let valid = results.iter().all(|(_, result)| result.is_ok());
    output::stdout(|out| {
        if options.json {
            let files: Vec<Value> = results.iter().map(|(file, result)| to_json(file, result)).collect();
            return writeln!(out, "{}", output::json(&json!({ "valid": valid, "files": files })));
        }
        results.iter().try_for_each(|(file, result)| match result {
            Ok(scenarios) => {
                let count = counted(scenarios.list.len() as u64, "scenario");
                writeln!(out, "{file} is valid: {count}, {}", format_duration(scenarios.planned_ns()))?;
                scenarios.notes.iter().try_for_each(|note| writeln!(out, "{file}: note: {note}"))
            }
            Err(error) => writeln!(out, "{error}"),
        })
    })?;
    Ok(u8::from(!valid))
}

fn check(file: &str, validator: &Validator) -> Result<Scenarios, CampaignFileError> {
    Ok(validator.validate(&campaign::find_campaign(file)?)?)
}

fn to_json(file: &str, result: &Result<Scenarios, CampaignFileError>) -> Value {
    match result {
        Ok(scenarios) => json!({
            "file": file, "valid": true, "mistakes": [], "notes": scenarios.notes,
            "scenarios": scenarios.list.len(), "planned_ns": scenarios.planned_ns(),
        }),
        Err(CampaignFileError::Mistakes(FileMistakes { list, .. })) => {
            let mistake = |m: &campaign::file::Mistake| json!({ "line": m.position.line, "column": m.position.column, "text": m.text });
            json!({ "file": file, "valid": false, "mistakes": list.iter().map(mistake).collect::<Vec<_>>() })
        }
        Err(error) => json!({ "file": file, "valid": false, "mistakes": [{ "text": error.to_string() }] }),
    }
}

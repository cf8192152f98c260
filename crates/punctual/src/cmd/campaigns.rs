//! `punctual campaigns`: the built-in campaigns.

use campaign::{CampaignFile, builtin, find_campaign};
use serde_json::{Value, json};

use crate::{cli::Campaigns, output};

pub fn run(options: &Campaigns) -> anyhow::Result<u8> {
    if let Some(name) = &options.name {
        let text = builtin::text(name)?;
        let file = find_campaign(name)?;
        output::stdout(|out| {
            if options.json { writeln!(out, "{}", output::json(&to_json(&file))) } else { write!(out, "{text}") }
        })?;
        return Ok(0);
    }
    let files = builtin::FILES.iter().map(|(name, _)| find_campaign(name)).collect::<Result<Vec<_>, _>>()?;
    output::stdout(|out| {
        if options.json {
            return writeln!(out, "{}", output::json(&files.iter().map(to_json).collect()));
        }
        files.iter().try_for_each(|file| {
            write!(out, "{}", report::terminal::entry(&file.name, 23, &file.title, report::terminal::width()))
        })?;
        let end = "`punctual campaigns NAME` prints the plan of one, with its source.";
        write!(out, "\n{}", report::terminal::entry("", 0, end, report::terminal::width()))
    })?;
    Ok(0)
}

fn to_json(file: &CampaignFile) -> Value {
    json!({ "name": file.name, "title": file.title, "source": file.source, "against": file.against })
}

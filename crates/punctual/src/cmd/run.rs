//! `punctual run`: a campaign, scenario after scenario.

mod audience;
mod go;

use anyhow::anyhow;
use campaign::{Asked, CampaignFileError, Cpus, Scenarios};
use machine::Root;

use crate::{cli::Run, output};

pub fn run(options: &Run) -> anyhow::Result<u8> {
    let root = options.root.as_ref().map_or_else(Root::system, Root::at);
    let mut scenarios = scenarios(options, &root)?;
    for name in &options.against {
        if !scenarios.against.contains(name) {
            scenarios.against.push(name.clone());
        }
    }
    if options.dry_run {
        return plan(options, &scenarios, &root);
    }
    go::go(&scenarios, options.dir.as_deref(), options.resume, options.talk)
}

/// Prints what would run.
fn plan(options: &Run, scenarios: &Scenarios, root: &Root) -> anyhow::Result<u8> {
    let dir = options.dir.clone().unwrap_or_else(|| output::default_folder(&scenarios.name).into());
    let plan = campaign::runner::document(scenarios, output::command_line(), root);
    if options.talk.json {
        output::stdout(|out| out.write_all(&record::file::campaign_to_json(&plan)))?;
    } else {
        let dir = dir.display().to_string();
        output::print(options.talk, |style, width| report::terminal::campaign_plan(&plan, &dir, style, width))?;
    }
    Ok(0)
}

/// The scenarios on the machine below `root`.
fn scenarios(options: &Run, root: &Root) -> anyhow::Result<Scenarios> {
    let file = campaign::find_campaign(&options.campaign).map_err(|error| match error {
        CampaignFileError::Mistakes(mistakes) => anyhow!("this is no campaign:\n{mistakes}"),
        other => other.into(),
    })?;
    let asked = Asked {
        duration_ns: options.duration,
        command: output::command_line(),
        executable: output::executable()?,
        watch_every: output::watch_every(options.talk),
    };
    let scenarios = campaign::expand(&file, &Cpus::of(root)?, &asked);
    scenarios.map_err(|mistakes| anyhow!("this campaign cannot run here:\n{mistakes}"))
}

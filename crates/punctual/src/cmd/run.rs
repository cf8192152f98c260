//! `punctual run`: plans and runs a campaign.

mod execute;
mod monitor;

use anyhow::anyhow;
use campaign::{CampaignFileError, ExpandOptions, Scenarios, Validator};
use machine::Root;

use crate::{cli::Run, exit::Usage, output};

pub fn run(options: &Run) -> anyhow::Result<u8> {
    let root = output::root(options.root.as_ref())?;
    let mut scenarios = scenarios(options, &root)?;
    for name in &options.against {
        if !scenarios.against.contains(name) {
            scenarios.against.push(name.clone());
        }
    }
    if options.dry_run {
        return plan(options, &scenarios, &root);
    }
    execute::execute(&scenarios, options.dir.as_deref(), options.resume, options.output, options.extent)
}

/// Prints the plan.
fn plan(options: &Run, scenarios: &Scenarios, root: &Root) -> anyhow::Result<u8> {
    let dir = options.dir.clone().unwrap_or_else(|| output::default_folder(&scenarios.name).into());
    let plan = campaign::runner::document(scenarios, output::command_line(), root);
    if options.output.json {
        output::stdout(|out| out.write_all(&record::file::campaign_to_json(&plan)))?;
    } else {
        let dir = dir.display().to_string();
        output::print(options.output, |style, width| report::terminal::campaign_plan(&plan, &dir, style, width))?;
    }
    Ok(0)
}

/// Expands the campaign for the machine at `root`.
fn scenarios(options: &Run, root: &Root) -> anyhow::Result<Scenarios> {
    let mut file = campaign::find_campaign(&options.campaign).map_err(|error| match error {
        CampaignFileError::Mistakes(mistakes) => anyhow!("invalid campaign file:\n{mistakes}"),
        other => other.into(),
    })?;
    if let Some(repeats) = options.repeats {
        file.set_repeats(repeats).map_err(Usage)?;
    }
    let request = ExpandOptions {
        duration_ns: options.duration,
        command: output::command_line(),
        executable: output::executable()?,
        watch_every: output::watch_every(options.output),
    };
    let scenarios = Validator::of(root.clone())?.expand(&file, &request);
    scenarios.map_err(|mistakes| anyhow!("this machine cannot run the campaign:\n{mistakes}"))
}

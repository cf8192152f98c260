//! Runs a campaign in its folder, or goes on with one.

use std::path::{Path, PathBuf};

use analysis::format_duration;
use anyhow::{Context, bail};
use campaign::{CampaignError, Runner, Scenarios, runner};
use machine::Root;
use record::file;

use super::audience::Audience;
use crate::{cli::Talk, output};

/// Runs what has not run yet, and answers the exit status. `dir` is the folder of the records; without it a new one in this
/// folder, or with `resume` the newest that holds an unfinished campaign of this plan.
pub fn go(scenarios: &Scenarios, dir: Option<&Path>, resume: bool, talk: Talk) -> anyhow::Result<u8> {
    sys::signal::count_termination().context("cannot watch for Ctrl-C")?;
    let root = Root::system();
    let mut audience = Audience::new(scenarios, talk)?;
    let (dir, runner) = if resume { old(scenarios, dir)? } else { new(scenarios, dir, &root)? };
    if !talk.quiet {
        begin(scenarios, &dir, runner.done());
    }
    let campaign = runner.run(&root, &mut audience)?;
    let report = dir.join("campaign.html");
    file::write_atomic(&report, report::html::render_campaign(&campaign).as_bytes())?;
    if talk.json {
        output::stdout(|out| out.write_all(&file::campaign_to_json(&campaign)))?;
    } else {
        output::print(talk, |style, width| report::terminal::campaign(&campaign, style, width))?;
    }
    if !talk.quiet {
        say!("records {}", dir.display());
        say!("report  {}", report.display());
    }
    Ok(output::campaign_status(&campaign))
}

fn new<'a>(scenarios: &'a Scenarios, dir: Option<&Path>, root: &Root) -> anyhow::Result<(PathBuf, Runner<'a>)> {
    let dir = dir.map_or_else(|| output::default_folder(&scenarios.name).into(), Path::to_owned);
    if dir.join(runner::CAMPAIGN_FILE).exists() {
        bail!(
            "{} holds a campaign already: go on with it with --resume, or choose another place with --dir DIR",
            dir.display()
        );
    }
    let runner = Runner::begin(scenarios, &dir, output::command_line(), root)?;
    Ok((dir, runner))
}

fn old<'a>(scenarios: &'a Scenarios, dir: Option<&Path>) -> anyhow::Result<(PathBuf, Runner<'a>)> {
    let here = Path::new(".");
    let newest = || runner::unfinished(here, scenarios);
    let dir = dir.map(Path::to_owned).or_else(newest);
    let dir = dir.ok_or_else(|| CampaignError::NothingToResume { path: here.to_owned() })?;
    Ok((dir.clone(), Runner::resume(scenarios, &dir)?))
}

fn begin(scenarios: &Scenarios, dir: &Path, done: usize) {
    let count = scenarios.list.len();
    let left = if done > 0 { format!(", {done} of them done already") } else { String::new() };
    let planned = format_duration(scenarios.planned_ns());
    say!("{}: {count} scenarios{left}, {planned} in all; records in {}", scenarios.name, dir.display());
    for note in &scenarios.notes {
        say!("note: {note}");
    }
}

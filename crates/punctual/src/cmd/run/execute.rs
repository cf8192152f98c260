//! Runs or resumes a campaign.

use std::path::{Path, PathBuf};

use analysis::format_duration;
use anyhow::Context;
use campaign::{CampaignError, Runner, Scenarios, runner};
use machine::Root;
use record::{counted, file, grouped};

use super::monitor::Monitor;
use crate::{
    cli::{Extent, OutputOptions},
    output,
};

/// Runs the scenarios that have not run yet, and returns the exit status.
///
/// `dir` is the folder of the records. By default it is a new one in the current folder, or with `resume` the newest
/// with an unfinished campaign of this plan.
pub fn execute(
    scenarios: &Scenarios,
    dir: Option<&Path>,
    resume: bool,
    output_options: OutputOptions,
    extent: Extent,
) -> anyhow::Result<u8> {
    sys::signal::count_termination().context("cannot watch for Ctrl-C")?;
    let root = Root::system();
    let mut monitor = Monitor::new(scenarios, output_options)?;
    let (dir, runner) = match resume {
        true => resume_run(scenarios, dir, &root, &mut monitor)?,
        false => new_run(scenarios, dir, &root)?,
    };
    if !output_options.quiet {
        print_start(scenarios, &dir, runner.done());
    }
    let (campaign, ended) = runner.run(&root, &mut monitor);
    let report = dir.join("campaign.html");
    let written = file::write_atomic(&report, report::html::render_campaign(&campaign).as_bytes());
    let is_written = written.is_ok();
    let printed = if output_options.json {
        output::stdout(|out| out.write_all(&file::campaign_to_json(&campaign)))
    } else {
        output::print_campaign(output_options, extent, &campaign, &dir.join(runner::CAMPAIGN_FILE))
    };
    if is_written && !output_options.quiet {
        say!("records {}", dir.display());
        say!("report  {}", report.display());
    }
    output::first_error([ended.map_err(Into::into), written.map_err(Into::into), printed])?;
    Ok(analysis::campaign::exit_status(&campaign))
}

fn new_run<'a>(scenarios: &'a Scenarios, dir: Option<&Path>, root: &Root) -> anyhow::Result<(PathBuf, Runner<'a>)> {
    let dir = match dir {
        Some(dir) => dir.to_owned(),
        None => new_folder(&scenarios.name)?,
    };
    let runner = Runner::begin(scenarios, &dir, output::command_line(), root)?;
    Ok((dir, runner))
}

/// Creates a folder of a new name in the current folder. Somebody else may have guessed the name.
fn new_folder(campaign: &str) -> anyhow::Result<PathBuf> {
    let dir = PathBuf::from(output::default_folder(campaign));
    let is_new = file::create_folder(&dir).with_context(|| format!("cannot create the folder {}", dir.display()))?;
    anyhow::ensure!(is_new, "{} exists already: run it again, or choose another folder with --dir DIR", dir.display());
    Ok(dir)
}

fn resume_run<'a>(
    scenarios: &'a Scenarios,
    dir: Option<&Path>,
    root: &Root,
    monitor: &mut Monitor,
) -> anyhow::Result<(PathBuf, Runner<'a>)> {
    let here = Path::new(".");
    let newest = || runner::unfinished(here, scenarios, root);
    let dir = dir.map(Path::to_owned).or_else(newest);
    let dir = dir.ok_or_else(|| CampaignError::NothingToResume { path: here.to_owned() })?;
    Ok((dir.clone(), Runner::resume(scenarios, &dir, root, monitor)?))
}

fn print_start(scenarios: &Scenarios, dir: &Path, done: usize) {
    let count = counted(scenarios.list.len() as u64, "scenario");
    let progress = if done > 0 { format!(", {} already done", grouped(done as u64)) } else { String::new() };
    let planned = format_duration(scenarios.planned_ns());
    say!("{}: {count}{progress}, {planned} in total; records in {}", scenarios.name, dir.display());
    for note in &scenarios.notes {
        say!("note: {note}");
    }
}

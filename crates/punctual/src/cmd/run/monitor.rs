//! Shows a campaign while it runs, judges each record, and writes the report of each scenario.

use std::path::Path;

use analysis::format_duration;
use campaign::{CampaignProgress, Scenarios};
use record::{Outcome, Record, ScenarioEntry, file};
use report::{
    Style,
    live::{Live, LiveMode, Progress},
};

use crate::{cli::OutputOptions, output};

/// Shows and judges the scenarios of a running campaign.
pub struct Monitor<'a> {
    profiles: &'a [String],
    references: Vec<(String, Record)>,
    output_options: OutputOptions,
    live: Option<Live>,
    names: Vec<String>,
}

impl<'a> Monitor<'a> {
    /// Creates a monitor for these scenarios.
    ///
    /// # Errors
    /// If a reference is unknown.
    pub fn new(scenarios: &'a Scenarios, output_options: OutputOptions) -> anyhow::Result<Self> {
        let names = scenarios.list.iter().map(|scenario| scenario.name.clone()).collect();
        let references = output::find_references(&scenarios.against)?;
        Ok(Self { profiles: &scenarios.profiles, references, output_options, live: None, names })
    }
}

impl campaign::CampaignHandler for Monitor<'_> {
    fn watch(&mut self, record: &Record, scenario: &campaign::Progress, campaign: &CampaignProgress) {
        let output_options = self.output_options;
        let live = self.live.get_or_insert_with(|| {
            let mode = if output_options.quiet { LiveMode::Off } else { LiveMode::Auto };
            // The profiles were found when the campaign was read.
            let uses = output::find_profiles(self.profiles).unwrap_or_default();
            Live::new(mode).with_style(Style::for_stderr(output_options.color.into())).with_uses(uses)
        });
        let progress = Progress {
            phase: format!("{} of {}: {}", campaign.index + 1, campaign.count, self.names[campaign.index]),
            elapsed_ns: campaign.done_ns + scenario.elapsed_ns,
            total_ns: Some(campaign.total_ns),
            phase_index: scenario.phase_index,
            phase_count: scenario.phase_count,
            decides: scenario.decides,
        };
        if live.update(record, &progress) {
            sys::signal::request_termination_by_key();
        }
    }

    fn judge(&mut self, record: &mut Record) -> Option<String> {
        if let Err(error) = output::judge(record, self.profiles) {
            say!("error: {error:#}");
        }
        output::compare_with(record, &self.references);
        report::blame::heaviest(record)
    }

    fn report(&mut self, record: &Record, path: &Path) {
        // A failed report does not end the campaign, because `punctual show` can write it again from the record.
        if let Err(error) = file::write_atomic(&path.with_extension("html"), report::html::render(record).as_bytes()) {
            say!("error: {error}");
        }
    }

    fn done(&mut self, entry: &ScenarioEntry, campaign: &CampaignProgress) {
        if let Some(mut live) = self.live.take() {
            live.finish();
        }
        if self.output_options.quiet {
            return;
        }
        let left = match campaign.total_ns.saturating_sub(campaign.done_ns) {
            0 => String::new(),
            left_ns => format!("   {} left", format_duration(left_ns)),
        };
        let (index, count) = (campaign.index + 1, campaign.count);
        say!("{index:3} of {count}  {}: {}{left}", self.names[campaign.index], summarize(entry));
    }
}

/// The result of a scenario, in one line.
fn summarize(entry: &ScenarioEntry) -> String {
    if let Some(error) = &entry.error {
        return format!("FAILED: {error}");
    }
    let reason = entry.reason.as_ref().map_or_else(String::new, |reason| format!(": {reason}"));
    let Some(result) = &entry.result else { return format!("ended early{reason}") };
    let figures = report::campaign::summarize(&result.roles);
    match result.outcome {
        _ if !result.valid => format!("{figures}, INVALID{reason}"),
        Some(outcome) if outcome != Outcome::Pass => format!("{figures}, {}", outcome.name()),
        _ => figures,
    }
}

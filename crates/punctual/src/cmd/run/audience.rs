//! Shows a campaign while it runs, judges each record, and writes its report beside it.

use std::path::Path;

use analysis::format_duration;
use campaign::{CampaignProgress, Scenarios};
use record::{Outcome, Record, ScenarioEntry, file};
use report::{
    Style,
    live::{Live, LiveMode, Progress},
};

use crate::{cli::Talk, output};

/// What a campaign needs of those who look on.
pub struct Audience<'a> {
    profiles: &'a [String],
    references: Vec<(String, Record)>,
    talk: Talk,
    live: Option<Live>,
    names: Vec<String>,
}

impl<'a> Audience<'a> {
    /// For these scenarios.
    ///
    /// # Errors
    /// When a reference is not known.
    pub fn new(scenarios: &'a Scenarios, talk: Talk) -> anyhow::Result<Self> {
        let names = scenarios.list.iter().map(|scenario| scenario.name.clone()).collect();
        let references = output::find_references(&scenarios.against)?;
        Ok(Self { profiles: &scenarios.profiles, references, talk, live: None, names })
    }
}

impl campaign::Audience for Audience<'_> {
    fn watch(&mut self, record: &Record, scenario: &campaign::Progress, campaign: &CampaignProgress) {
        let talk = self.talk;
        let live = self.live.get_or_insert_with(|| {
            let mode = if talk.quiet { LiveMode::Off } else { LiveMode::Auto };
            Live::new(mode).with_style(Style::for_stderr(talk.color.into()))
        });
        live.update(
            record,
            &Progress {
                phase: format!("{} of {}: {}", campaign.index + 1, campaign.count, self.names[campaign.index]),
                elapsed_ns: campaign.done_ns + scenario.elapsed_ns,
                total_ns: Some(campaign.total_ns),
                phase_index: scenario.phase_index,
                phase_count: scenario.phase_count,
            },
        );
    }

    fn judge(&mut self, record: &mut Record, path: &Path) -> Option<String> {
        if let Err(error) = output::judge(record, self.profiles) {
            say!("punctual: {error:#}");
        }
        output::lay_beside(record, &self.references);
        // The record is what counts; a report can be made from it again.
        if let Err(error) = file::write_atomic(&path.with_extension("html"), report::html::render(record).as_bytes()) {
            say!("punctual: {error}");
        }
        report::blame::heaviest(record)
    }

    fn done(&mut self, entry: &ScenarioEntry, campaign: &CampaignProgress) {
        if let Some(mut live) = self.live.take() {
            live.finish();
        }
        if self.talk.quiet {
            return;
        }
        let left = match campaign.total_ns.saturating_sub(campaign.done_ns) {
            0 => String::new(),
            left_ns => format!("   {} left", format_duration(left_ns)),
        };
        let (index, count) = (campaign.index + 1, campaign.count);
        say!("{index:3} of {count}  {}: {}{left}", self.names[campaign.index], told(entry));
    }
}

/// What a scenario gave, in a few words.
fn told(entry: &ScenarioEntry) -> String {
    if let Some(error) = &entry.error {
        return format!("FAILED: {error}");
    }
    let Some(result) = &entry.result else { return "ended early".to_owned() };
    let figures = report::campaign::summarize(&result.roles);
    match result.outcome {
        _ if !result.valid => format!("{figures}, INVALID"),
        Some(outcome) if outcome != Outcome::Pass => format!("{figures}, {}", outcome.name()),
        _ => figures,
    }
}

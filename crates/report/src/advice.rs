//! What to do after a run, the same in the terminal, on the page and in exports.

use std::path::Path;

use analysis::{campaign::Recommendation, format_exact};
use record::{
    Campaign, Record,
    shell::{self, with_options},
};

use crate::{
    blame,
    campaign::worst_scenario,
    remedy::advice_and_command,
    round_trip::peer_advice,
    stream::{full_cpu_advice, knee_advice, offset_advice},
    words::Words,
};

/// The rounds of a matrix, and the repeats of a campaign, that separate a difference from chance.
const ROUNDS: &str = "3";
/// Leaves out the folder of a campaign: another plan needs another one.
const NEW_FOLDER: (&str, &str) = ("--dir", "");
/// A cause has at least so many characters: it can contain a colon, such as `all CPUs at once: firmware or hypervisor`.
const CAUSE: usize = 32;
/// An undecided comparison is measured again for this many times as long.
const LONGER: u64 = 4;

/// The advice of a run, the most important first: text, and a command or nothing.
pub(crate) fn of_run(record: &Record) -> Vec<(String, String)> {
    let words = Words::of(record);
    let of_culprits = blame::to_do(record).into_iter().map(|to_do| {
        let (advice, command) = advice_and_command(&to_do.account.remedy);
        let space = if advice.is_empty() { "" } else { " " };
        (format!("{}:{space}{advice}", to_do.title(words)), command.to_owned())
    });
    let of_talker = offset_advice(record).or_else(|| full_cpu_advice(record)).or_else(|| knee_advice(record));
    peer_advice(record).into_iter().chain(of_talker).chain(longer_matrix(record)).chain(of_culprits).collect()
}

/// The text of an advice before its command without the explanation between cause and command.
pub(crate) fn in_brief(text: &str) -> &str {
    let ends = text.match_indices(": ").map(|(at, _)| at + 1);
    ends.into_iter().find(|&end| end >= CAUSE).map_or(text, |end| &text[..end])
}

/// The next run of a matrix that did not decide between its pairs: in several rounds, or for longer.
fn longer_matrix(record: &Record) -> Option<(String, String)> {
    let advice = record.recommendation.as_ref().filter(|advice| advice.pair.is_empty())?;
    if record.command.get(1).is_none_or(|word| word != "measure") {
        return None;
    }
    let rounds = record.cells.iter().filter(|cell| advice.equal.contains(&cell.pair())).map(|cell| cell.rounds.len());
    let of_round_ns = record.phases.iter().filter_map(|phase| phase.planned_ns).max()?;
    let (times, rounds) = match rounds.min()? {
        ..2 => (3, ROUNDS.to_owned()),
        rounds => (LONGER * rounds as u64, rounds.to_string()),
    };
    let of_cell = format_exact(rounded(of_round_ns.saturating_mul(times)));
    let command = with_options(&record.command, &[("--cell-duration", &of_cell), ("--rounds", &rounds)]);
    Some(("measure longer:".to_owned(), command))
}

/// A duration to type: in whole seconds, or below ten seconds in tenths.
fn rounded(ns: u64) -> u64 {
    let step_ns = if ns < 10_000_000_000 { 100_000_000 } else { 1_000_000_000 };
    ns.next_multiple_of(step_ns)
}

/// The next run of a campaign that did not decide between its columns: with repeats, or for longer.
pub(crate) fn of_campaign(campaign: &Campaign, advice: &Recommendation) -> Option<(String, String)> {
    if advice.column.is_some() || !advice.is_compared || campaign.command.get(1).is_none_or(|word| word != "run") {
        return None;
    }
    let command: Vec<String> = campaign.command.iter().filter(|word| *word != "--resume").cloned().collect();
    let repeats = campaign.scenarios.iter().map(|entry| entry.repeat).max().unwrap_or(1);
    if repeats < 2 {
        return Some((
            "measure several times:".to_owned(),
            with_options(&command, &[("--repeats", ROUNDS), NEW_FOLDER]),
        ));
    }
    let longest_ns = campaign.scenarios.iter().map(|entry| entry.planned_ns).max()?;
    let duration = format_exact(rounded(longest_ns.saturating_mul(LONGER)));
    Some(("measure longer:".to_owned(), with_options(&command, &[("--duration", &duration), NEW_FOLDER])))
}

/// How to see the causes of the worst scenario, if they were found. `document` is the path of the campaign.
pub(crate) fn of_worst_scenario(campaign: &Campaign, document: &str) -> Option<(String, String)> {
    let worst = worst_scenario(campaign)?;
    worst.result.as_ref()?.culprit.as_ref()?;
    let record = Path::new(document).with_file_name(&worst.record);
    let command = shell::command(&["punctual", "blame", &record.to_string_lossy()]);
    Some((format!("see the causes in {}, and what to change:", worst.name), command))
}

#[cfg(test)]
mod tests {
    use record::{Finding, FindingState};

    use super::*;

    #[test]
    fn a_brief_advice_has_the_cause_and_no_explanation() {
        let long = "worst spike, thread rustc, of the same priority: ordinary threads share the CPU: give it another:";
        assert_eq!(in_brief(long), "worst spike, thread rustc, of the same priority:");
        assert_eq!(
            in_brief("all CPUs at once: firmware or hypervisor: set"),
            "all CPUs at once: firmware or hypervisor:"
        );
        assert_eq!(in_brief("measure longer:"), "measure longer:");
    }

    #[test]
    fn findings_are_no_advice_without_a_late_wake_up() {
        let finding = Finding { state: FindingState::Warn, remedy: "mitigations=off".to_owned(), ..Finding::default() };
        let record = Record { findings: vec![finding], ..Record::default() };
        assert_eq!(of_run(&record), []);
        let page = crate::html::render(&record);
        assert!(!page.contains("what to change") && page.contains("mitigations=off"), "only among the findings");
    }
}

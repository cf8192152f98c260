//! Markdown for a comment on a pull request, as GitHub and GitLab show it: the answer first, at most 40 lines.
//!
//! Text of outside origin cannot begin a heading, a list or a block, be a link or an image, or mention anybody.

use std::{cmp::Reverse, fmt::Write};

use analysis::{Summary, format_duration, format_ns, when};
use record::{Campaign, IMPORTED, Outcome, Record, ScenarioEntry, Series, grouped, visible::one_line};

use super::case::{self, Case};
use crate::{
    advice,
    blame::shares,
    campaign::{named, summarize},
    caveats, compare,
    remedy::advice_and_command,
    terminal::{self, time},
    words::state_note,
};

/// Largest numbers of rows and items. With headings and blank lines, a comment has at most 40 lines.
const USES: usize = 7;
const SERIES: usize = 5;
const CAUSES: usize = 3;
const REMEDIES: usize = 3;
const CAVEATS: usize = 2;
const IMPORTED_CAVEATS: usize = 15;
const SCENARIOS: usize = 30;
/// The mark of the items of a numbered list.
const NUMBERED: &str = "1.";

/// Writes a record.
pub(super) fn record(record: &Record) -> String {
    let run = case::run(record);
    let verdict = run.outcome.map_or_else(String::new, |outcome| format!("**{}** ", outcome.name()));
    let mut out = format!("{verdict}{}\n", prose(&run.reason));
    uses(&mut out, record);
    series(&mut out, record);
    causes(&mut out, record);
    let note = state_note(record);
    // Without uses, causes and remedies, an imported record has room for all its caveats.
    let (doubts, most) = match record.published {
        Some(_) => (imported_caveats(record), IMPORTED_CAVEATS),
        None => (caveats::of_run(record).iter().map(caveats::Doubt::in_full).collect(), CAVEATS),
    };
    let caveats = [note.into_owned()].iter().chain(&doubts).map(|text| prose(text)).collect();
    list(&mut out, "Caveats of these figures", "-", caveats, most);
    let machine = &record.machine;
    let facts = [&machine.hostname, &machine.model, &machine.cpu_model, &machine.kernel];
    let mut facts: Vec<String> = facts.into_iter().flatten().map(|fact| prose(fact)).collect();
    facts.extend(machine.preempt.as_ref().map(|model| format!("preemption {}", prose(model))));
    facts.push(prose(&case::tool(record)));
    let started_at = if record.started_at.is_empty() { "start unknown" } else { &record.started_at };
    let duration = case::duration_ns(record).map_or_else(|| "-".to_owned(), format_duration);
    facts.push(format!("{}, {duration}", prose(started_at)));
    let _ = writeln!(out, "\n{}", facts.join(" · "));
    out
}

/// The caveats of an imported record, except the one of every import, which the answer says.
fn imported_caveats(record: &Record) -> Vec<String> {
    let caveats = record.caveats.iter().filter(|caveat| caveat.kind != IMPORTED);
    compare::caveats(&caveats.cloned().collect::<Vec<_>>())
}

/// The verdicts that come first in the table of uses.
fn rank(case: &Case) -> u8 {
    match case.outcome {
        Some(Outcome::Invalid) => 0,
        Some(Outcome::Fail) => 1,
        Some(Outcome::Inconclusive) | None => 2,
        Some(Outcome::Pass) => 3,
    }
}

/// The uses, the worst verdict first.
fn uses(out: &mut String, record: &Record) {
    let all = case::shown(record);
    let mut uses: Vec<_> = all.iter().filter_map(|case| Some((case, case.a_use?))).collect();
    uses.sort_by_key(|(case, _)| rank(case));
    let rows = uses.iter().map(|(case, a_use)| {
        [
            cell(case.title),
            case::name(case.outcome).to_owned(),
            format_ns(a_use.limit_ns),
            time(a_use.worst_ns),
            a_use.missed_known().map_or_else(|| "-".to_owned(), grouped),
        ]
    });
    table(out, ["use", "verdict", "limit", "worst", "missed"], rows.collect(), USES, "uses");
}

/// The series with the largest times.
fn series(out: &mut String, record: &Record) {
    let is_import = record.published.is_some();
    let mut all: Vec<&Series> = match is_import {
        true => record.series.iter().collect(),
        false => record.probe_series().filter(|series| series.samples > 0).collect(),
    };
    all.sort_by_key(|series| Reverse(series.max_ns));
    let rows = all.iter().map(|series| {
        let figures = Summary::of(series);
        [
            cell(&format!("{}, {}", series.place(), when(series))),
            if is_import && figures.samples == 0 { "-".to_owned() } else { grouped(figures.samples) },
            record.absent(series).filter(|_| !is_import).map_or_else(|| "-".to_owned(), grouped),
            time(figures.p99_9_ns),
            time(figures.max_ns),
        ]
    });
    table(out, ["thread", "samples", "missed", "p99.9", "worst"], rows.collect(), SERIES, "threads");
}

/// The main causes of lateness, and what to change; for an invalid run, its reasons with their remedies.
fn causes(out: &mut String, record: &Record) {
    let reasons = &record.validity.reasons;
    // A single reason is in the first line.
    if reasons.len() > 1 {
        let texts = reasons.iter().map(|reason| prose(&reason.text)).collect();
        list(out, "Why the run is invalid", "-", texts, CAUSES);
    }
    let causes = shares(record, CAUSES).iter().map(|cause| prose(cause)).collect();
    list(out, "Causes of lateness", "-", causes, CAUSES);
    let item = |advice: &str, command: &str| {
        let parts = [prose(advice), code(command)];
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
    };
    let of_reasons = reasons.iter().map(|reason| {
        let (advice, command) = advice_and_command(&reason.remedy);
        item(advice, command)
    });
    let of_run = advice::of_run(record);
    let remedies = of_reasons.chain(of_run.iter().map(|(advice, command)| item(advice, command))).collect();
    list(out, "What to change", NUMBERED, remedies, REMEDIES);
}

/// Writes a campaign.
pub(super) fn campaign(campaign: &Campaign) -> String {
    let title = if campaign.title.is_empty() { &campaign.name } else { &campaign.title };
    let outcomes: Vec<(&ScenarioEntry, Option<Outcome>, String)> = campaign
        .scenarios
        .iter()
        .map(|scenario| {
            let (outcome, reason) = case::of_scenario(scenario);
            (scenario, outcome, reason)
        })
        .collect();
    let count = |wanted| outcomes.iter().filter(|(_, outcome, _)| *outcome == wanted).count();
    let states = [Some(Outcome::Invalid), Some(Outcome::Fail), Some(Outcome::Inconclusive), Some(Outcome::Pass), None];
    let counts = states.iter().filter(|state| count(**state) > 0);
    let name = |state: Option<Outcome>| state.map_or("not judged", Outcome::name);
    let counts: Vec<String> = counts.map(|state| format!("{} {}", count(*state), name(*state))).collect();
    let counts = if counts.is_empty() { "no scenarios".to_owned() } else { counts.join(", ") };
    let answer = terminal::campaign::headline(campaign).text;
    let mut out = format!("{}\n\n**{counts}** in the campaign {}\n", prose(&answer), prose(title));
    let rows = outcomes.iter().map(|(scenario, outcome, reason)| {
        let figures = scenario.result.as_ref().map(|result| summarize(&result.roles)).unwrap_or_default();
        [cell(&named(scenario)), case::name(*outcome).to_owned(), cell(&figures), cell(reason)]
    });
    table(&mut out, ["scenario", "verdict", "figures", "reason"], rows.collect(), SCENARIOS, "scenarios");
    let facts = [&campaign.hostname, &campaign.kernel];
    let mut facts: Vec<String> = facts.into_iter().flatten().map(|fact| prose(fact)).collect();
    facts.push(format!("punctual {}", prose(&campaign.tool.version)));
    facts.push(format!("{}, {}", prose(&campaign.started_at), format_duration(campaign.took_ns)));
    let _ = writeln!(out, "\n{}", facts.join(" · "));
    out
}

/// Writes a table of at most `shown` rows, or nothing without rows.
fn table<const N: usize>(out: &mut String, heads: [&str; N], rows: Vec<[String; N]>, shown: usize, things: &str) {
    if rows.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n| {} |\n|{}", heads.join(" | "), "---|".repeat(N));
    let more = rows.len().saturating_sub(shown);
    for row in rows.into_iter().take(shown) {
        let _ = writeln!(out, "| {} |", row.join(" | "));
    }
    if more > 0 {
        let _ = writeln!(out, "| and {more} more {things} |{}", " |".repeat(N - 1));
    }
}

/// Writes a list of at most `shown` items in Markdown, or nothing without items.
fn list(out: &mut String, title: &str, marker: &str, items: Vec<String>, shown: usize) {
    // An empty item would make the line above it a heading.
    let items: Vec<String> = items.into_iter().filter(|item| !item.is_empty()).collect();
    if items.is_empty() {
        return;
    }
    let more = items.len().saturating_sub(shown);
    // In a numbered list, the number of the others would be an item with its own number.
    let numbered = marker == NUMBERED;
    let first = if numbered && more > 0 { format!(" (the first {shown} of {})", items.len()) } else { String::new() };
    let _ = writeln!(out, "\n{title}{first}:");
    for item in items.iter().take(shown) {
        let _ = writeln!(out, "{marker} {item}");
    }
    if more > 0 && !numbered {
        let _ = writeln!(out, "{marker} and {more} more");
    }
}

/// The text in one line. Commands between backticks are code.
pub(super) fn prose(text: &str) -> String {
    let text = one_line(text);
    let mut pieces: Vec<&str> = text.trim().split('`').collect();
    // A backtick without a partner is kept as a character.
    let lone = if pieces.len().is_multiple_of(2) { pieces.pop() } else { None };
    let mut out = String::new();
    for (n, piece) in pieces.iter().enumerate() {
        match n % 2 {
            0 => escape(&mut out, piece),
            _ => out.push_str(&code(piece)),
        }
    }
    if let Some(piece) = lone {
        escape(&mut out, "`");
        escape(&mut out, piece);
    }
    out.trim().to_owned()
}

/// The text in one line, for a cell of a table. It has no code, because a cell ends at each `|`, also inside of code.
pub(super) fn cell(text: &str) -> String {
    let mut out = String::new();
    escape(&mut out, one_line(text).trim());
    out
}

/// Appends the text with everything escaped that has a meaning in Markdown.
fn escape(out: &mut String, text: &str) {
    let mut before = None;
    let mut characters = text.chars().peekable();
    while let Some(c) = characters.next() {
        let next = characters.peek().copied();
        let is_in_word = [before, next].iter().all(|beside| beside.is_some_and(char::is_alphanumeric));
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            // An empty comment: a backslash does not prevent that a person is mentioned or an issue linked.
            '@' | '#' | '!' => out.extend([c, '<', '!', '-', '-', '-', '-', '>']),
            // A mark of a list at the start of a line.
            '-' | '+' | '=' if out.trim().is_empty() => out.extend(['\\', c]),
            '.' | ')'
                if next.is_none_or(|next| next == ' ') && out.trim().bytes().all(|byte| byte.is_ascii_digit()) =>
            {
                out.extend(['\\', c]);
            }
            // Links from plain addresses, and names of emoji.
            '.' if out.to_ascii_lowercase().ends_with("www") => out.push_str("\\."),
            ':' if next.is_some_and(|next| next.is_alphabetic() || "/+-_".contains(next)) => out.push_str("\\:"),
            '_' if is_in_word => out.push(c),
            '\\' | '`' | '*' | '_' | '{' | '}' | '[' | ']' | '|' | '~' | '$' => out.extend(['\\', c]),
            c => out.push(c),
        }
        before = Some(c);
    }
}

/// A command in one line as code.
fn code(command: &str) -> String {
    let text = one_line(command);
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    // Spaces keep a backtick at an end apart from the fence; Markdown removes one at each end.
    let is_blank = text.trim().is_empty();
    let space = if !is_blank && (text.starts_with(['`', ' ']) || text.ends_with(['`', ' '])) { " " } else { "" };
    if is_blank { String::new() } else { format!("{fence}{space}{text}{space}{fence}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_numbered_list_counts_the_others_in_its_title() {
        let written = |marker: &str, items: usize| {
            let mut out = String::new();
            list(&mut out, "What to change", marker, (0..items).map(|n| format!("change {n}")).collect(), 2);
            out
        };
        assert_eq!(written(NUMBERED, 4), "\nWhat to change (the first 2 of 4):\n1. change 0\n1. change 1\n");
        assert_eq!(written(NUMBERED, 2), "\nWhat to change:\n1. change 0\n1. change 1\n");
        assert_eq!(written("-", 4), "\nWhat to change:\n- change 0\n- change 1\n- and 2 more\n");
    }
}

//! The tables of a campaign, with placements and settings across and probes and loads down, and the recommendation.

use analysis::{
    campaign::{Badness, CampaignCell, CampaignTable, RoleCell, recommend, table},
    format_duration, format_ns,
};
use record::{Campaign, Measured, Outcome, ScenarioEntry, ScenarioResult, State, TIMER, grouped};

use crate::campaign::{
    Ranked, ReferenceRow, counts, culprit, has_failed, named, net_tables, ranked, references, time, title,
};

use super::count_cell;
use super::page::Page;
use super::table::Table;
use crate::headline::{Headline, ink_of};
use crate::style::{Ink, Spans};

/// Writes the whole page.
pub(super) fn page(page: &mut Page, campaign: &Campaign) {
    head(page, campaign);
    let whole = table(campaign);
    if whole.rows.is_empty() {
        page.heading("The campaign has no scenarios");
        return;
    }
    let roles = match whole.roles() {
        // No scenario has run yet.
        roles if roles.is_empty() => vec![(TIMER, Measured::Lateness)],
        roles => roles,
    };
    for (role, measured) in roles {
        page.heading(&format!("{}, by scenario", title(role, measured)));
        page.table(&cells(page, &whole, role));
    }
    legend(page, &whole);
    for of in net_tables(campaign) {
        page.heading(of.title);
        let mut table = Table::new(of.headings);
        of.rows.into_iter().for_each(|row| table.row(row.into_iter().map(|text| (Ink::Plain, text)).collect()));
        page.table(&table);
    }
    comparisons(page, campaign);
    if let Some(advice) = recommend(&whole) {
        page.heading(if advice.column.is_some() { "Recommended" } else { "Not decided" });
        page.text(Ink::Plain, &advice.text);
    }
    ending(page, campaign);
}

fn head(page: &mut Page, campaign: &Campaign) {
    page.heading(if campaign.title.is_empty() { &campaign.name } else { &campaign.title });
    let done = campaign.scenarios.iter().filter(|entry| entry.result.is_some()).count();
    let column = "scenarios".len();
    page.fact(
        "scenarios",
        column,
        &format!("{} of {} have run", grouped(done as u64), grouped(campaign.scenarios.len() as u64)),
    );
    let (took, planned) = (format_duration(campaign.took_ns), format_duration(campaign.planned_ns));
    page.fact("time", column, &format!("{took} of {planned} planned"));
    let machine = [&campaign.hostname, &campaign.kernel].into_iter().flatten().cloned().collect::<Vec<_>>();
    page.fact("machine", column, &machine.join(", "));
    if !campaign.source.is_empty() {
        page.fact("source", column, &campaign.source);
    }
}

/// The answer of a campaign in one sentence: its recommendation, or how many scenarios have run.
pub(crate) fn headline(campaign: &Campaign) -> Headline {
    let whole = table(campaign);
    let Some(advice) = recommend(&whole) else {
        let (worst, _) = crate::campaign::worst(campaign);
        return Headline { ink: Ink::Title, text: format!("{worst} Ran {}.", outcomes(campaign)) };
    };
    match advice.column {
        Some(column) if has_failed(&whole, column) => {
            Headline { ink: Ink::Bad, text: format!("Best, but it fails: {}", advice.text) }
        }
        Some(_) => Headline { ink: Ink::Good, text: format!("Recommended: {}", advice.text) },
        None => Headline { ink: Ink::Doubt, text: advice.text },
    }
}

/// The numbers of scenarios that have run, and of those with each outcome.
pub(super) fn outcomes(campaign: &Campaign) -> String {
    let results = || campaign.scenarios.iter().filter_map(|entry| entry.result.as_ref());
    // As in exports, a run that ended early or lost its load shows no PASS.
    let shown = |result: &ScenarioResult| match result.outcome {
        Some(Outcome::Pass) if result.problem.is_some() => Some(Outcome::Inconclusive),
        outcome => outcome,
    };
    let of = |outcome| results().filter(|result| result.valid && shown(result) == Some(outcome)).count();
    let counts = [
        (Outcome::Pass.name(), of(Outcome::Pass)),
        (Outcome::Fail.name(), of(Outcome::Fail)),
        (Outcome::Inconclusive.name(), of(Outcome::Inconclusive)),
        (Outcome::Invalid.name(), results().filter(|result| !result.valid).count()),
        ("could not run", campaign.scenarios.iter().filter(|entry| entry.error.is_some()).count()),
    ];
    let ran =
        format!("{} of {} scenarios", grouped(results().count() as u64), grouped(campaign.scenarios.len() as u64));
    let counts =
        counts.iter().filter(|(_, count)| *count > 0).map(|(name, count)| format!("{} {name}", grouped(*count as u64)));
    std::iter::once(ran).chain(counts).collect::<Vec<_>>().join("; ")
}

/// The numbers of scenarios, unless the headline contains them.
pub(super) fn ran(page: &mut Page, campaign: &Campaign, column: usize) {
    if recommend(&table(campaign)).is_some() {
        page.fact("ran", column, &outcomes(campaign));
    }
}

/// The main culprit of the worst scenario.
pub(super) fn why(page: &mut Page, campaign: &Campaign, column: usize) {
    let culprit = culprit(campaign);
    if !culprit.is_empty() {
        page.fact("why", column, &culprit);
    }
}

/// The worst scenario that failed, with its reason; if none failed, the worst whose verdict was not decided.
pub(super) fn failed(page: &mut Page, campaign: &Campaign, column: usize) {
    let of = |outcome| {
        let reason = move |entry: &ScenarioEntry| {
            let result = entry.result.as_ref().filter(|result| result.valid && result.outcome == Some(outcome))?;
            Some((Badness::of(result), format!("{}: {}", named(entry), result.reason.as_ref()?)))
        };
        let mut reasons: Vec<(Badness, String)> = campaign.scenarios.iter().filter_map(reason).collect();
        reasons.sort_by(|(a, _), (b, _)| b.compare(a));
        reasons
    };
    let all = [(Outcome::Fail, "fail"), (Outcome::Inconclusive, "unsure")]
        .map(|(outcome, word)| (outcome, word, of(outcome)));
    let Some((outcome, word, reasons)) = all.into_iter().find(|(_, _, reasons)| !reasons.is_empty()) else { return };
    let more = match reasons.len() - 1 {
        0 => String::new(),
        more => format!(" (and {} more)", grouped(more as u64)),
    };
    page.labelled(ink_of(outcome), word, column, &format!("{}{more}", reasons[0].1));
}

/// Each reference against the scenario that is most like it, in one line.
pub(super) fn against(page: &mut Page, campaign: &Campaign, column: usize) {
    for reference in references(campaign) {
        if let Some(row) = reference.closest() {
            let ReferenceRow { scenario, yours, theirs, .. } = row;
            let text = format!("{} ({scenario}): {theirs}, here {yours} ({})", reference.name, row.times());
            page.fact("against", column, &text);
        }
    }
}

/// The next run if this one did not decide. If it had nothing to decide, the causes of its worst scenario.
/// `document` is the path of the campaign.
pub(super) fn what_to_do(page: &mut Page, campaign: &Campaign, document: &str, column: usize) {
    let whole = table(campaign);
    let advice = match recommend(&whole) {
        Some(advice) => crate::advice::of_campaign(campaign, &advice),
        None => crate::advice::of_worst_scenario(campaign, document),
    };
    if let Some((text, command)) = advice {
        page.fact("do", column, &text);
        page.remedy(column + 4, &command);
    }
}

/// The first problems of scenarios, in their order.
pub(super) fn problems(page: &mut Page, campaign: &Campaign, column: usize, shown: usize) {
    let of = |entry: &ScenarioEntry| {
        let text = entry.error.as_ref().or(entry.reason.as_ref())?;
        Some(format!("{}: {text}", entry.name))
    };
    let all: Vec<String> = campaign.scenarios.iter().filter_map(of).collect();
    all.iter().take(shown).for_each(|text| page.labelled(Ink::Alarm, "problem", column, text));
    if all.len() > shown {
        page.fact("", column, &format!("and {} more", all.len() - shown));
    }
}

/// The largest time and the losses of each scenario, the worst first, in as many `rows`; `None` if there is none to show.
pub(super) fn worst(campaign: &Campaign, rows: usize) -> Option<Table> {
    let all = ranked(campaign);
    if all.is_empty() || rows == 0 {
        return None;
    }
    let mut table = Table::new(&["scenario", "worst", "of", "missed", ""]).words(2).words(4);
    for Ranked { entry, result, role, .. } in all {
        let outcome = if result.valid { result.outcome } else { Some(Outcome::Invalid) };
        let verdict = outcome.map_or((Ink::Plain, ""), |outcome| (ink_of(outcome), outcome.name()));
        let name = super::cell(named(entry));
        let figures = [super::cell(time(role.max_ns)), super::cell(role.role.clone()), count_cell(result.absent())];
        table.row([name].into_iter().chain(figures).chain([(verdict.0, verdict.1.to_owned())]).collect());
    }
    Some(table.at_most(rows))
}

/// The table of one role. A single row is shown as a column.
fn cells(page: &Page, whole: &CampaignTable, role: &str) -> Table {
    let upright = whole.rows.len() == 1 && whole.columns.len() > 1;
    let (down, across) = if upright { (&whole.columns, &whole.rows) } else { (&whole.rows, &whole.columns) };
    let headings: Vec<&str> = [""].into_iter().chain(across.iter().map(String::as_str)).collect();
    let mut table = Table::new(&headings);
    for (down_index, name) in down.iter().enumerate() {
        let mut row: Spans = vec![(Ink::Plain, name.clone())];
        for across_index in 0..across.len() {
            let at = if upright { (across_index, down_index) } else { (down_index, across_index) };
            row.push(cell(page, whole, at, role));
        }
        table.row(row);
    }
    table
}

fn cell(page: &Page, whole: &CampaignTable, at: (usize, usize), role: &str) -> (Ink, String) {
    let Some(cell) = &whole.cells[at.0][at.1] else { return (Ink::Quiet, String::new()) };
    if cell.badness.is_empty() {
        let failed = cell.error.is_some();
        return if failed { (Ink::Alarm, "failed".to_owned()) } else { (Ink::Quiet, "not run".to_owned()) };
    }
    let figures = cell.roles.iter().find(|of| of.role == role).map(figures).unwrap_or_else(|| "-".to_owned());
    let (ink, word) = match cell.outcome {
        _ if !cell.valid => (Ink::Alarm, " INVALID"),
        Some(Outcome::Fail) => (Ink::Bad, " FAIL"),
        _ if whole.best[at.0] == Some(at.1) => (Ink::Good, " best"),
        _ if whole.worst[at.0] == Some(at.1) => (Ink::Bad, " worst"),
        _ => (Ink::Plain, ""),
    };
    let mark = if word.is_empty() { "" } else { page.style.mark(ink) };
    (ink, format!("{figures}{}{mark}{word}", if mark.is_empty() { "" } else { " " }))
}

/// The largest time, with the smallest maximum of several repeats before it and counts after it.
fn figures(role: &RoleCell) -> String {
    let Some(max_ns) = role.max_ns else { return "no samples".to_owned() };
    let range = role.least_max_ns.filter(|&least_ns| least_ns < max_ns);
    let range = range.map_or_else(String::new, |least_ns| format!("{} .. ", format_ns(least_ns)));
    let counts: String = counts(role).into_iter().map(|count| format!(", {count}")).collect();
    format!("{range}{}{counts}", format_ns(max_ns))
}

/// The comparisons with references, one table each.
fn comparisons(page: &mut Page, campaign: &Campaign) {
    for reference in references(campaign) {
        page.heading(&format!("Compared with {}", reference.name));
        let mut table = Table::new(&["scenario", "yours", "theirs", "ratio", "their case"]).words(4);
        for row in reference.rows {
            let theirs = [row.times(), row.phase];
            let theirs = [row.yours, row.theirs].into_iter().chain(theirs);
            table.row([row.scenario].into_iter().chain(theirs).map(|text| (Ink::Plain, text)).collect());
        }
        page.table(&table);
        page.text(Ink::Quiet, &reference.conditions);
    }
}

fn legend(page: &mut Page, table: &CampaignTable) {
    let cells = || table.cells.iter().flatten().flatten();
    let repeats = cells().map(|cell: &CampaignCell| cell.repeats).max().unwrap_or(0);
    if repeats > 1 {
        page.text(
            Ink::Quiet,
            &format!("Of {repeats} repeats: the smallest and largest maximum, and the sums of missed and lost."),
        );
    }
    let errors = cells().filter_map(|cell| Some(("failed", cell.error.as_ref()?)));
    let problems = cells().filter_map(|cell| Some(("INVALID", cell.problem.as_ref()?)));
    let mut shown: Vec<&String> = Vec::new();
    for (word, text) in errors.chain(problems) {
        if !shown.contains(&text) {
            page.item(Ink::Alarm, word, word.len(), text);
            shown.push(text);
        }
    }
}

fn ending(page: &mut Page, campaign: &Campaign) {
    for entry in &campaign.scenarios {
        let Some(reason) = &entry.reason else { continue };
        let word = if entry.result.is_some() { "INVALID" } else { "ended" };
        page.item(Ink::Alarm, word, 7, &format!("{}: {reason}", entry.name));
    }
    if campaign.state != State::Complete && campaign.scenarios.iter().all(|entry| entry.error.is_none()) {
        page.gap();
        page.remark("The campaign is incomplete. Continue it with the same command and --resume.");
    }
}

//! The report of a campaign: tables, recommendation, and each scenario with a link to its own report.

use analysis::{
    campaign::{CampaignCell, CampaignTable, recommend, table},
    float::to_i32,
    format_duration, format_ns,
};
use askama::Template;
use record::visible;
use record::{Campaign, Measured, Outcome, RoleResult, ScenarioEntry, State};

use super::{Origin, figure::Key, text, verdict::Headline};
use crate::blame::unsigned;
use crate::campaign::{Reference, counts, named, references, time, title};

#[derive(Template)]
#[template(path = "campaign.html")]
struct Page<'a> {
    campaign: &'a Campaign,
    title: &'a str,
    origin: Origin<'a>,
    headline: Headline,
    ending: &'static str,
    keys: Vec<Key>,
    grids: Vec<Grid>,
    references: Vec<Reference>,
    columns: Vec<&'static str>,
    lines: Vec<Line>,
    command: String,
}

/// The table of one role.
struct Grid {
    title: String,
    lead: &'static str,
    across: Vec<String>,
    rows: Vec<GridRow>,
}

/// A row of such a table.
struct GridRow {
    name: String,
    cells: Vec<GridCell>,
}

#[derive(Default)]
struct GridCell {
    class: &'static str,
    /// Share of the full colour, per cent.
    heat: Option<i32>,
    mark: &'static str,
    figure: String,
    /// Further facts, one per line.
    details: Vec<String>,
}

/// A line of the list of scenarios: one role in one scenario.
struct Line {
    first: bool,
    height: usize,
    name: String,
    note: String,
    report: String,
    cells: Vec<String>,
}

/// Renders the report of a campaign as one HTML document in UTF-8. It loads nothing; its links lead to reports in the
/// same folder.
#[must_use]
pub fn render_campaign(campaign: &Campaign) -> String {
    let whole = table(campaign);
    let advice = recommend(&whole);
    let decided = advice.as_ref().is_some_and(|advice| advice.column.is_some());
    let columns = columns(campaign);
    let title = if campaign.title.is_empty() { &campaign.name } else { &campaign.title };
    let headline = Headline {
        class: if decided { "pass" } else { "measured" },
        word: match (&advice, decided) {
            (Some(_), true) => "RECOMMENDED",
            (Some(_), false) => "NOT DECIDED",
            (None, _) => "MEASURED",
        },
        sentence: title.clone(),
        reason: advice.map(|advice| text::with_code(&advice.text)).unwrap_or_default(),
    };
    let page = Page {
        campaign,
        title,
        origin: Origin {
            host: campaign.hostname.as_deref(),
            kernel: campaign.kernel.as_deref(),
            preempt: None,
            started_at: &campaign.started_at,
        },
        headline,
        ending: ending(campaign),
        keys: keys(campaign),
        grids: grids(&whole),
        references: references(campaign),
        lines: campaign.scenarios.iter().flat_map(|entry| lines(entry, &columns)).collect(),
        columns,
        command: record::shell::command(&campaign.command),
    };
    visible::escape(
        page.render().expect("writing to a string does not fail, and the template has no other way to fail"),
    )
}

fn ending(campaign: &Campaign) -> &'static str {
    match campaign.state {
        State::Complete => "",
        _ => "The campaign is incomplete. Continue it with the same command and --resume.",
    }
}

fn keys(campaign: &Campaign) -> Vec<Key> {
    let results = || campaign.scenarios.iter().filter_map(|entry| entry.result.as_ref());
    let roles = || results().flat_map(|result| &result.roles);
    let samples: u64 = roles().map(|role| role.samples).sum();
    // A slot without a datagram counts as a missed deadline of the sender, which has its own role.
    let missed: u64 = roles().filter(|role| role.measured != Measured::RoundTrip).map(|role| role.missed).sum();
    let lost = roles().filter_map(|role| role.lost).reduce(|a, b| a + b);
    let planned = format!("of {} planned", format_duration(campaign.planned_ns));
    let key = |label, value: String, detail| Key { label, value, detail };
    let mut keys = vec![
        key("scenarios", results().count().to_string(), format!("of {}", campaign.scenarios.len())),
        key("time", format_duration(campaign.took_ns), planned),
        key("samples", samples.to_string(), String::new()),
        key("missed", missed.to_string(), String::new()),
    ];
    keys.extend(lost.map(|lost| key("lost", lost.to_string(), String::new())));
    keys
}

fn grids(whole: &CampaignTable) -> Vec<Grid> {
    whole.roles().into_iter().map(|(role, measured)| grid(whole, role, measured)).collect()
}

/// The table of one role. A single row is shown as a column.
fn grid(whole: &CampaignTable, role: &str, measured: Measured) -> Grid {
    let upright = whole.rows.len() == 1 && whole.columns.len() > 1;
    let (down, across) = if upright { (&whole.columns, &whole.rows) } else { (&whole.rows, &whole.columns) };
    let max_of = |cell: &CampaignCell| cell.roles.iter().find(|of| of.role == role).and_then(|of| of.max_ns);
    let all: Vec<i64> = whole.cells.iter().flatten().flatten().filter_map(max_of).collect();
    let range = (all.iter().min().copied().unwrap_or(0), all.iter().max().copied().unwrap_or(0));
    let row = |(index, name): (usize, &String)| {
        let at = |other: usize| if upright { (other, index) } else { (index, other) };
        let cells = (0..across.len()).map(|other| cell(whole, at(other), role, range)).collect();
        GridRow { name: name.clone(), cells }
    };
    Grid {
        title: title(role, measured),
        lead: "Longer times are darker, on a logarithmic scale. With repeats, the largest maximum, and the smallest \
            below it.",
        across: across.clone(),
        rows: down.iter().enumerate().map(row).collect(),
    }
}

fn cell(whole: &CampaignTable, at: (usize, usize), role: &str, range: (i64, i64)) -> GridCell {
    let Some(cell) = &whole.cells[at.0][at.1] else { return GridCell::default() };
    let Some(of) = cell.roles.iter().find(|of| of.role == role) else {
        let figure = if cell.error.is_some() { "failed" } else { "not run" };
        let details = cell.error.clone().into_iter().collect();
        return GridCell { class: "todo", figure: figure.to_owned(), details, ..GridCell::default() };
    };
    let (class, mark) = match cell.outcome {
        _ if !cell.valid => ("worst", "INVALID"),
        Some(Outcome::Fail) => ("worst", "FAIL"),
        _ if whole.best[at.0] == Some(at.1) => ("best", "best"),
        _ if whole.worst[at.0] == Some(at.1) => ("worst", "worst"),
        _ => ("", ""),
    };
    let mut details = Vec::new();
    if let Some(least_ns) = of.least_max_ns.filter(|&least_ns| Some(least_ns) < of.max_ns) {
        details.push(format!("smallest {}", format_ns(least_ns)));
    }
    if of.measured == Measured::RoundTrip {
        details.push(format!("median {}, 99.9 % {}", time(of.p50_ns), time(of.p99_9_ns)));
    }
    details.extend(Some(counts(of).join(", ")).filter(|counts| !counts.is_empty()));
    // The culprit of a late thread does not explain delays of frames.
    details.extend(cell.culprit.clone().filter(|_| ![Measured::FrameGap, Measured::Spacing].contains(&of.measured)));
    GridCell {
        class,
        heat: of.max_ns.map(|max_ns| heat(max_ns, range)),
        mark,
        figure: of.max_ns.map_or_else(|| "no samples".to_owned(), format_ns),
        details,
    }
}

/// The share of full colour, 5 to 60 per cent, by the logarithm of the time.
fn heat(max_ns: i64, (least_ns, most_ns): (i64, i64)) -> i32 {
    let log = |ns: i64| (ns.max(1) as f64).ln();
    let span = log(most_ns) - log(least_ns);
    let place = if span > 0.0 { (log(max_ns) - log(least_ns)) / span } else { 0.0 };
    to_i32(5.0 + 55.0 * place.clamp(0.0, 1.0))
}

/// Headings of the list of scenarios; columns without any counts are left out.
fn columns(campaign: &Campaign) -> Vec<&'static str> {
    let roles = || campaign.scenarios.iter().filter_map(|entry| entry.result.as_ref()).flat_map(|result| &result.roles);
    let lost = roles().any(|role| role.lost.is_some()).then_some("lost");
    let late = roles().any(|role| role.late.is_some()).then_some("late");
    let before = ["thread", "CPUs", "samples", "missed"];
    let after = ["median", "99.9 %", "largest", "jitter", "verdict", "took"];
    before.into_iter().chain(lost).chain(late).chain(after).collect()
}

fn lines(entry: &ScenarioEntry, columns: &[&str]) -> Vec<Line> {
    let empty = Line {
        first: true,
        height: 1,
        name: named(entry),
        note: entry.error.clone().or_else(|| entry.reason.clone()).unwrap_or_default(),
        report: entry.record.replace(".json", ".html"),
        cells: vec![String::new(); columns.len()],
    };
    let Some(result) = &entry.result else { return vec![empty] };
    let verdict = match (result.valid && result.problem.is_none(), result.outcome) {
        (false, _) => "INVALID",
        (true, Some(outcome)) => outcome.name(),
        (true, None) => "",
    };
    let line = |(index, role): (usize, &RoleResult)| Line {
        first: index == 0,
        height: result.roles.len(),
        cells: columns.iter().map(|column| figure(column, role, verdict, result.took_ns)).collect(),
        name: empty.name.clone(),
        note: result.problem.clone().or_else(|| result.culprit.clone()).unwrap_or_default(),
        report: empty.report.clone(),
    };
    result.roles.iter().enumerate().map(line).collect()
}

fn figure(column: &str, role: &RoleResult, verdict: &str, took_ns: u64) -> String {
    let count = |count: Option<u64>| count.map_or_else(|| "-".to_owned(), |count| count.to_string());
    match column {
        "thread" => role.role.clone(),
        "CPUs" => role.cpus.clone(),
        "samples" => role.samples.to_string(),
        "missed" => role.missed.to_string(),
        "lost" => count(role.lost),
        "late" => count(role.late),
        "median" => time(role.p50_ns),
        "99.9 %" => time(role.p99_9_ns),
        "largest" => time(role.max_ns),
        // Answers have no schedule, so their jitter is undefined.
        "jitter" if role.measured == Measured::RoundTrip => "-".to_owned(),
        "jitter" => unsigned(role.jitter_ns),
        "verdict" => verdict.to_owned(),
        _ => format_duration(took_ns),
    }
}

#[cfg(test)]
mod tests {
    use record::ScenarioResult;

    use super::*;

    fn entry(name: &str, max_us: i64) -> ScenarioEntry {
        let role = RoleResult { role: "timer".to_owned(), max_ns: Some(max_us * 1000), ..RoleResult::default() };
        ScenarioEntry {
            name: name.to_owned(),
            placement: name.to_owned(),
            record: format!("001-{name}-1.punctual.json"),
            repeat: 1,
            result: Some(ScenarioResult { valid: true, roles: vec![role], ..ScenarioResult::default() }),
            ..ScenarioEntry::default()
        }
    }

    #[test]
    fn marks_best_and_worst_and_links_to_reports() {
        let campaign = Campaign {
            name: "c".to_owned(),
            title: "<isolated> or not".to_owned(),
            scenarios: vec![entry("isolated", 5), entry("ordinary", 900)],
            ..Campaign::default()
        };
        let html = render_campaign(&campaign);
        assert!(html.contains("&#60;isolated&#62; or not") && !html.contains("<isolated>"), "escaped");
        assert!(html.contains("<b class=\"tag\">best</b>5 us") && html.contains("<b class=\"tag\">worst</b>900 us"));
        assert!(html.contains("href=\"001-isolated-1.punctual.html\""));
        assert!(html.contains("RECOMMENDED"));
    }

    #[test]
    fn computes_heat_from_the_logarithm() {
        assert_eq!((heat(1_000, (1_000, 100_000)), heat(10_000, (1_000, 100_000))), (5, 32));
        assert_eq!((heat(100_000, (1_000, 100_000)), heat(7, (7, 7))), (60, 5));
    }
}

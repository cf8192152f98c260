//! The report of a campaign: tables, recommendation, and each scenario with a link to its own report.

use std::collections::{BTreeMap, BTreeSet};

use analysis::{
    campaign::{CampaignCell, CampaignTable, recommend, table},
    float::to_i32,
    format_duration, format_ns, phase_in_words,
};
use askama::Template;
use record::visible;
use record::{Campaign, Measured, Outcome, RoleResult, ScenarioEntry, ScenarioResult, Series, State, counted, grouped};

use super::{
    Origin,
    figure::{Figure, Key},
    histogram, lines, percentiles, text,
    verdict::{Headline, short_and_rest},
};
use crate::blame::unsigned;
use crate::campaign::{
    Ranked, Reference, counts, counts_of_result, culprit, named, ranked, references, time, title, worst,
};
use crate::versus::Samples;
use crate::words::Words;

#[derive(Template)]
#[template(path = "campaign.html")]
struct Page<'a> {
    campaign: &'a Campaign,
    title: &'a str,
    origin: Origin<'a>,
    headline: Headline,
    ending: &'static str,
    keys: Vec<Key>,
    /// The main culprit of the worst scenario, with its name; empty if unknown.
    culprit: String,
    grids: Vec<Grid>,
    /// The styles of all curves.
    curves: Vec<CurveKey>,
    /// The charts of each role.
    charts: Vec<Figure>,
    references: Vec<Reference>,
    columns: Vec<&'static str>,
    rows: Vec<Row>,
    command: String,
}

/// The style of a scenario's curves.
struct CurveKey {
    /// The index of the scenario, which the script uses as an id.
    index: usize,
    /// A sample of its line: trusted SVG.
    swatch: String,
    /// Its name.
    name: String,
}

/// The table of one role.
struct Grid {
    title: String,
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

/// A row of the list of scenarios: one role in one scenario.
struct Row {
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
    let (curves, charts) = curves(campaign, &whole);
    let title = if campaign.title.is_empty() { &campaign.name } else { &campaign.title };
    let fails = advice
        .as_ref()
        .and_then(|advice| advice.column)
        .is_some_and(|column| crate::campaign::has_failed(&whole, column));
    let (sentence, reason) = match &advice {
        Some(advice) => short_and_rest(&advice.text),
        None => worst(campaign),
    };
    let headline = Headline {
        class: match (decided, fails) {
            (_, true) => "fail",
            (true, false) => "pass",
            (false, false) => "measured",
        },
        word: match (&advice, decided) {
            (Some(_), true) if fails => "BEST, BUT IT FAILS",
            (Some(_), true) => "RECOMMENDED",
            (Some(_), false) => "NOT DECIDED",
            (None, _) => "MEASURED",
        },
        sentence,
        reason: text::with_code(&reason),
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
        culprit: culprit(campaign),
        grids: grids(&whole),
        curves,
        charts,
        references: references(campaign),
        rows: campaign.scenarios.iter().flat_map(|entry| rows(entry, &columns)).collect(),
        columns,
        command: command(campaign),
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

/// The command that runs the campaign again, or the rest of it.
fn command(campaign: &Campaign) -> String {
    let mut command = campaign.command.clone();
    let is_resumed = command.iter().any(|argument| argument == "--resume");
    if !command.is_empty() && !campaign.is_complete() && !is_resumed {
        command.push("--resume".to_owned());
    }
    record::shell::command(&command)
}

fn keys(campaign: &Campaign) -> Vec<Key> {
    let results = || campaign.scenarios.iter().filter_map(|entry| entry.result.as_ref());
    let main = || results().flat_map(ScenarioResult::main_roles);
    let samples = main().map(|role| role.samples).fold(0, u64::saturating_add);
    let missed = results().map(ScenarioResult::absent).fold(0, u64::saturating_add);
    let xruns = main().filter(|role| role.measured == Measured::Completion).filter_map(|role| role.late);
    let planned = format!("of {} planned", format_duration(campaign.planned_ns));
    let key = |label, value: String, detail| Key { label, value, detail };
    let mut keys = worst_and_best(campaign);
    keys.push(key("missed", grouped(missed), format!("with {}", counted(samples, "sample"))));
    keys.extend(xruns.reduce(u64::saturating_add).map(|xruns| key("xruns", grouped(xruns), String::new())));
    let ran = format!("{} of {}, {planned}", results().count(), counted(campaign.scenarios.len() as u64, "scenario"));
    keys.push(key("ran for", format_duration(campaign.took_ns), ran));
    keys
}

/// The worst scenario, and the best one with the same kind of measurement. Of repeats, the worst one counts.
fn worst_and_best(campaign: &Campaign) -> Vec<Key> {
    let all = ranked(campaign);
    let Some(worst) = all.first() else { return Vec::new() };
    let mut names = BTreeSet::new();
    let same = all.iter().filter(|of| of.role.measured == worst.role.measured);
    let same: Vec<&Ranked> = same.filter(|of| names.insert(&of.entry.name)).collect();
    let has_roles = all.iter().any(|of| of.role.role != worst.role.role || of.result.roles.len() > 1);
    let key = |label, Ranked { entry, role, .. }: &Ranked| {
        let name = if has_roles { format!("{}, {}", role.role, entry.name) } else { entry.name.clone() };
        let detail = [vec![name], counts_of_result(role)].concat().join(", ");
        Key { label, value: time(role.max_ns), detail }
    };
    let best = same.last().filter(|_| same.len() > 1).map(|best| key("best scenario", best));
    [key("worst scenario", worst)].into_iter().chain(best).collect()
}

/// The styles of the scenarios with curves, and the charts of each role with the curves of all scenarios.
fn curves(campaign: &Campaign, whole: &CampaignTable) -> (Vec<CurveKey>, Vec<Figure>) {
    let (mut key, mut charts) = (BTreeMap::new(), Vec::new());
    let roles = whole.roles();
    for (number, (role, measured)) in roles.iter().enumerate() {
        let all = times(campaign, role);
        if all.is_empty() {
            continue;
        }
        let lines = lines::scenarios(&all);
        for line in &lines {
            key.insert(line.index, CurveKey { index: line.index, swatch: line.swatch(), name: line.name.clone() });
        }
        let words = Words::of_measured(*measured);
        let published = published(campaign, role);
        let mut shares = percentiles::figure(&format!("percentiles-{number}"), &lines, words, &[], &published);
        let mut counts = histogram::figure(&format!("histogram-{number}"), &lines, words);
        if roles.len() > 1 {
            shares.title = format!("{}, {role}", shares.title);
            counts.title = format!("{}, {role}", counts.title);
        }
        let corrected = if words.is_periodic { ", with the deadlines that a late one missed (corrected)" } else { "" };
        counts.lead = format!("One line per scenario, repeats together{corrected}. Both axes are logarithmic.");
        charts.extend([shares, counts]);
    }
    (key.into_values().collect(), charts)
}

/// The histograms of references that one role is compared with, each with its name.
fn published<'a>(campaign: &'a Campaign, role: &str) -> Vec<(String, Samples<'a>)> {
    let results = campaign.scenarios.iter().filter_map(|entry| entry.result.as_ref());
    let compared = results.flat_map(|result| &result.roles).filter(|of| of.role == role).flat_map(|of| &of.beside);
    let mut all: Vec<(String, Samples)> = Vec::new();
    for of in compared {
        let name = format!("{}: {}", of.name, phase_in_words(&of.phase, 0));
        if let Some(histogram) = of.histogram.as_ref().filter(|histogram| !histogram.is_empty())
            && all.iter().all(|(known, _)| *known != name)
        {
            all.push((name, Samples::whole(histogram)));
        }
    }
    all
}

/// The times of one role: index, name and times of each scenario that has some, repeats together.
fn times(campaign: &Campaign, role: &str) -> Vec<(usize, String, Series)> {
    let mut all: Vec<(usize, String, Series)> = Vec::new();
    let mut names: Vec<&str> = Vec::new();
    for entry in &campaign.scenarios {
        let index = names.iter().position(|name| *name == entry.name).unwrap_or_else(|| {
            names.push(&entry.name);
            names.len() - 1
        });
        let results = entry.result.iter().flat_map(|result| &result.roles);
        for of_role in results.filter(|of| of.role == role && !of.times.is_empty()) {
            if !all.iter().any(|(known, ..)| *known == index) {
                all.push((index, entry.name.clone(), Series::default()));
            }
            let Some((.., series)) = all.iter_mut().find(|(known, ..)| *known == index) else { continue };
            series.raw.merge(&of_role.times);
            series.corrected.merge(&of_role.times);
            series.max_ns = series.max_ns.max(of_role.max_ns);
        }
    }
    all
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
    Grid { title: title(role, measured), across: across.clone(), rows: down.iter().enumerate().map(row).collect() }
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

/// The share of full colour, 5 to 40 per cent, by the logarithm of the time. Text on it stays readable.
fn heat(max_ns: i64, (least_ns, most_ns): (i64, i64)) -> i32 {
    let log = |ns: i64| (ns.max(1) as f64).ln();
    let span = log(most_ns) - log(least_ns);
    let place = if span > 0.0 { (log(max_ns) - log(least_ns)) / span } else { 0.0 };
    to_i32(5.0 + 35.0 * place.clamp(0.0, 1.0))
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

fn rows(entry: &ScenarioEntry, columns: &[&str]) -> Vec<Row> {
    let empty = Row {
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
    let undecided = result.reason.as_ref().filter(|_| result.outcome == Some(Outcome::Inconclusive));
    let note = result.problem.as_ref().or(undecided).or(result.culprit.as_ref()).cloned().unwrap_or_default();
    let row = |(index, role): (usize, &RoleResult)| Row {
        cells: columns.iter().map(|column| figure(column, role, verdict, result.took_ns)).collect(),
        name: empty.name.clone(),
        note: if index == 0 { note.clone() } else { String::new() },
        report: empty.report.clone(),
    };
    result.roles.iter().enumerate().map(row).collect()
}

fn figure(column: &str, role: &RoleResult, verdict: &str, took_ns: u64) -> String {
    let count = |count: Option<u64>| count.map_or_else(|| "-".to_owned(), grouped);
    match column {
        "thread" => role.role.clone(),
        "CPUs" => role.cpus.clone(),
        "samples" => grouped(role.samples),
        "missed" => grouped(role.missed),
        "lost" => count(role.lost),
        "late" => count(role.late),
        "median" => time(role.p50_ns),
        "99.9 %" => time(role.p99_9_ns),
        "largest" => time(role.max_ns),
        // Older documents have 0 for the kinds without a jitter.
        "jitter" if [Measured::RoundTrip, Measured::Response, Measured::Gap].contains(&role.measured) => "-".to_owned(),
        "jitter" => role.jitter_ns.map_or_else(|| "-".to_owned(), unsigned),
        "verdict" => verdict.to_owned(),
        _ => format_duration(took_ns),
    }
}

#[cfg(test)]
mod tests {
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

    /// Two repeats with the same results.
    fn repeated(scenarios: &[ScenarioEntry]) -> Vec<ScenarioEntry> {
        let again = scenarios.iter().cloned().map(|entry| ScenarioEntry { repeat: 2, ..entry });
        scenarios.iter().cloned().chain(again).collect()
    }

    #[test]
    fn one_repeat_decides_nothing() {
        let command = ["/usr/bin/punctual", "run", "c.toml", "--resume"].map(str::to_owned).into();
        let scenarios = vec![entry("isolated", 5), entry("ordinary", 900)];
        let campaign = Campaign { scenarios, command, ..Campaign::default() };
        let text = crate::terminal::campaign_answer(&campaign, "more", &crate::Style::plain(), 80);
        assert!(text.starts_with("?") && text.contains("Undecided, because each scenario ran only once"), "{text}");
        assert!(text.contains(" punctual run c.toml --repeats 3\n") && !text.contains("Recommended"), "{text}");
        let page = render_campaign(&campaign);
        assert!(page.contains("NOT DECIDED") && !page.contains("<b class=\"tag\">best</b>"), "{page}");
        let campaign = Campaign { scenarios: repeated(&campaign.scenarios), ..campaign };
        let text = crate::terminal::campaign_answer(&campaign, "more", &crate::Style::plain(), 80);
        assert!(text.contains("Recommended: isolated") && !text.contains("--repeats"), "{text}");
    }

    /// The reference of the ladder has a histogram for each of its four loads.
    #[test]
    fn draws_the_published_histograms_among_the_curves() {
        let reference = analysis::find_reference("vim3l-evl").unwrap();
        let mut scenarios = Vec::new();
        for figures in &reference.published.as_ref().unwrap().figures {
            let mut entry = entry(&figures.phase, 50);
            let role = &mut entry.result.as_mut().unwrap().roles[0];
            role.times.record(50_000);
            let (name, histogram) = ("vim3l-evl".to_owned(), figures.histogram.clone());
            role.beside =
                vec![record::Compared { name, phase: figures.phase.clone(), histogram, ..Default::default() }];
            scenarios.push(entry);
        }
        let page = render_campaign(&Campaign { scenarios: repeated(&scenarios), ..Campaign::default() });
        assert_eq!(page.matches("class=\"line other\"").count(), 4, "each published histogram once");
        for phase in ["idle", "switch-200us", "switch-10us-cache", "switch-10us-cache-ping"] {
            assert!(page.contains(&format!("data-n=\"vim3l-evl: {phase}\"")), "{phase}");
        }
        assert!(page.contains("Grey curves are other machines with known histograms."));
        let alone = vec![entry("isolated", 5)];
        assert!(!render_campaign(&Campaign { scenarios: alone, ..Campaign::default() }).contains("line other"));
    }

    #[test]
    fn marks_best_and_worst_and_links_to_reports() {
        let campaign = Campaign {
            name: "c".to_owned(),
            title: "<isolated> or not".to_owned(),
            scenarios: repeated(&[entry("isolated", 5), entry("ordinary", 900)]),
            ..Campaign::default()
        };
        let html = render_campaign(&campaign);
        assert!(html.contains("&#60;isolated&#62; or not") && !html.contains("<isolated>"), "escaped");
        assert!(html.contains("<b class=\"tag\">best</b>5 us") && html.contains("<b class=\"tag\">worst</b>900 us"));
        assert!(html.contains("href=\"001-isolated-1.punctual.html\""));
        assert!(html.contains("RECOMMENDED"));
    }

    #[test]
    fn draws_one_curve_per_scenario_and_role() {
        let mut scenarios =
            vec![entry("isolated", 5), entry("ordinary", 900), entry("isolated", 7), entry("failed", 1)];
        for (entry, value_ns) in scenarios.iter_mut().zip([5_000, 900_000, 7_000]) {
            entry.result.as_mut().unwrap().roles[0].times.add(value_ns, 10);
        }
        scenarios[2].repeat = 2;
        let campaign = Campaign { scenarios, ..Campaign::default() };
        let all = times(&campaign, "timer");
        let found: Vec<_> = all.iter().map(|(at, name, of)| (*at, &**name, of.raw.total(), of.max_ns)).collect();
        assert_eq!(found, [(0, "isolated", 20, Some(7_000)), (1, "ordinary", 10, Some(900_000))]);
        let html = render_campaign(&campaign);
        for chart in ["percentiles-0", "histogram-0"] {
            let drawn =
                html.split(&format!("data-chart=\"{chart}\"")).nth(1).and_then(|rest| rest.split("</svg>").next());
            assert_eq!(drawn.expect(chart).matches("data-n=").count(), 2, "{chart}");
        }
        assert!(!render_campaign(&Campaign::default()).contains("id=\"curves\""));
    }

    #[test]
    fn a_recommended_scenario_that_fails_does_not_look_good() {
        let mut scenarios = repeated(&[entry("isolated", 5), entry("ordinary", 900)]);
        let page = |scenarios: &[ScenarioEntry]| {
            render_campaign(&Campaign { scenarios: scenarios.to_vec(), ..Campaign::default() })
        };
        assert!(page(&scenarios).contains("</span>RECOMMENDED</p>"));
        scenarios.iter_mut().for_each(|entry| entry.result.as_mut().unwrap().outcome = Some(Outcome::Fail));
        assert!(page(&scenarios).contains("verdict fail") && page(&scenarios).contains("BEST, BUT IT FAILS"));
        let campaign = Campaign { scenarios, ..Campaign::default() };
        let text = crate::terminal::campaign_headline(&campaign, &crate::Style::plain(), 80);
        assert!(text.contains("Best, but it fails: isolated"), "{text}");
    }

    #[test]
    fn the_command_continues_an_incomplete_campaign() {
        let command: Vec<String> = ["punctual", "run", "c"].map(str::to_owned).into();
        let mut campaign = Campaign { command, scenarios: vec![ScenarioEntry::default()], ..Campaign::default() };
        assert_eq!(super::command(&campaign), "punctual run c --resume");
        campaign.scenarios = vec![entry("a", 1)];
        assert_eq!(super::command(&campaign), "punctual run c");
        assert_eq!(super::command(&Campaign::default()), "");
    }

    #[test]
    fn the_answer_is_the_worst_scenario_without_a_recommendation() {
        let scenarios = vec![entry("idle", 5), entry("loaded", 900)];
        let campaign = Campaign { scenarios, ..Campaign::default() };
        let expected = ("At worst 900 us, in loaded.".to_owned(), "Largest lateness.".to_owned());
        assert_eq!(worst(&campaign), expected);
        assert_eq!(worst(&Campaign::default()).0, "Nothing was measured yet.");
    }

    #[test]
    fn only_kinds_with_a_jitter_show_one() {
        let jitter = |measured, jitter_ns| {
            let role = RoleResult { measured, jitter_ns, ..RoleResult::default() };
            figure("jitter", &role, "", 0)
        };
        assert_eq!(jitter(Measured::Lateness, Some(7_000)), "7 us");
        assert_eq!(jitter(Measured::Lateness, None), "-", "interrupts");
        for measured in [Measured::Response, Measured::RoundTrip, Measured::Gap] {
            assert_eq!((jitter(measured, None), jitter(measured, Some(0))), ("-".to_owned(), "-".to_owned()));
        }
    }

    #[test]
    fn computes_heat_from_the_logarithm() {
        assert_eq!((heat(1_000, (1_000, 100_000)), heat(10_000, (1_000, 100_000))), (5, 22));
        assert_eq!((heat(100_000, (1_000, 100_000)), heat(7, (7, 7))), (40, 5));
    }
}

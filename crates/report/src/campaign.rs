//! Campaigns as text for terminal and HTML.

use std::cmp::{Ordering, Reverse};

use analysis::{
    campaign::{Badness, CampaignTable, RoleCell},
    format_ns,
};
use record::{Campaign, Compared, Measured, Outcome, RoleResult, ScenarioEntry, ScenarioResult, TIMER, grouped};

use crate::compare::times;

/// The title of the table of one role.
pub(crate) fn title(role: &str, measured: Measured) -> String {
    match measured {
        Measured::RoundTrip => "Longest round trip, from the scheduled send time".to_owned(),
        Measured::SendLateness => "Max delta of the talker: largest send lateness".to_owned(),
        Measured::FrameGap => "Max delta of the listener: longest time between two frames".to_owned(),
        Measured::Spacing => "Max spacing in the capture: longest time between two frames".to_owned(),
        Measured::Completion => "Largest time from the deadline of an audio period to its completion".to_owned(),
        Measured::Response => "Longest time from the question of the outside judge to the answer".to_owned(),
        Measured::Gap => "Longest gap".to_owned(),
        Measured::Lateness if role == TIMER => "Largest lateness".to_owned(),
        Measured::Lateness => format!("Largest lateness of {role}"),
    }
}

/// A scenario with figures.
pub(crate) struct Ranked<'a> {
    pub entry: &'a ScenarioEntry,
    pub result: &'a ScenarioResult,
    /// The worst role of the kind that the run is about.
    pub role: &'a RoleResult,
    badness: Badness,
}

impl<'a> Ranked<'a> {
    /// `None` if nothing was measured.
    fn of(entry: &'a ScenarioEntry) -> Option<Self> {
        let result = entry.result.as_ref()?;
        let has_figures = |role: &&RoleResult| role.max_ns.is_some() || role.absent() > 0;
        let ranked = |role| (Badness::by_time(result, role), role);
        let all = result.main_roles().filter(has_figures).map(ranked);
        let (badness, role) = all.reduce(|a, b| if b.0.compare(&a.0).is_gt() { b } else { a })?;
        Some(Self { entry, result, role, badness })
    }

    /// True if it was measured as requested, and did not meet the limits of its uses.
    fn fails(&self) -> bool {
        self.result.valid && self.result.outcome == Some(Outcome::Fail)
    }

    fn compare(&self, other: &Self) -> Ordering {
        let by_verdict = self.fails().cmp(&other.fails()).then(self.result.valid.cmp(&other.result.valid));
        by_verdict.then_with(|| self.badness.compare(&other.badness))
    }
}

/// The scenarios, the worst first: those that fail before the others, invalid ones last. Of these, more losses come before
/// larger times.
pub(crate) fn ranked(campaign: &Campaign) -> Vec<Ranked<'_>> {
    let mut all: Vec<Ranked> = campaign.scenarios.iter().filter_map(Ranked::of).collect();
    all.sort_by(|a, b| b.compare(a));
    all
}

/// The figures of the worst scenario, and the meaning of its time.
pub(crate) fn worst(campaign: &Campaign) -> (String, String) {
    let all = ranked(campaign);
    let Some(worst) = all.first() else { return ("Nothing was measured yet.".to_owned(), String::new()) };
    let RoleResult { role, measured, max_ns, .. } = worst.role;
    let parts = [max_ns.map_or_else(String::new, format_ns), counts_of_result(worst.role).join(", ")];
    let figures = parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" with ");
    let fails = if worst.fails() { " (FAIL)" } else { "" };
    (format!("At worst {figures}, in {}{fails}.", worst.entry.name), format!("{}.", title(role, *measured)))
}

/// The main culprit of the worst scenario; empty if unknown.
pub(crate) fn culprit(campaign: &Campaign) -> String {
    let all = ranked(campaign);
    let culprit = all.first().and_then(|worst| Some((&worst.entry.name, worst.result.culprit.as_ref()?)));
    culprit.map_or_else(String::new, |(name, culprit)| format!("{culprit} ({name})"))
}

/// True if a scenario of this column did not meet the limits of its uses.
pub(crate) fn has_failed(whole: &CampaignTable, column: usize) -> bool {
    let mut of_column = whole.cells.iter().filter_map(|row| row[column].as_ref());
    of_column.any(|cell| cell.outcome == Some(Outcome::Fail))
}

/// Counts that the largest time does not show: lost, missed, late and unknown items. Counts of 0 are left out.
pub(crate) fn counts(role: &RoleCell) -> Vec<String> {
    let RoleCell { lost, missed, late, unknown, .. } = *role;
    in_words(role.measured, [lost.unwrap_or(0), missed, late.unwrap_or(0), unknown.unwrap_or(0)])
}

/// The same counts of a result.
pub(crate) fn counts_of_result(role: &RoleResult) -> Vec<String> {
    let RoleResult { lost, missed, late, unknown, .. } = *role;
    in_words(role.measured, [lost.unwrap_or(0), missed, late.unwrap_or(0), unknown.unwrap_or(0)])
}

fn in_words(measured: Measured, [lost, missed, late, unknown]: [u64; 4]) -> Vec<String> {
    let (lost_word, missed_word, late_word) = match measured {
        Measured::RoundTrip => ("lost", "not sent", "late"),
        Measured::Response => ("without an answer", "missed", "late"),
        Measured::Completion => ("lost", "missed", "xruns"),
        Measured::Lateness | Measured::Gap | Measured::SendLateness | Measured::FrameGap | Measured::Spacing => {
            ("lost", "missed", "late")
        }
    };
    let all = [(lost, lost_word), (missed, missed_word), (late, late_word), (unknown, "unknown")];
    all.into_iter().filter(|(count, _)| *count > 0).map(|(count, word)| format!("{} {word}", grouped(count))).collect()
}

/// The result of a scenario in one line: `max 12 us, 3 missed`. With several roles, each starts with its name.
#[must_use]
pub fn summarize(roles: &[RoleResult]) -> String {
    let of_role = |role: &RoleResult| {
        let max = role.max_ns.map_or_else(|| "no samples".to_owned(), |ns| format!("max {}", format_ns(ns)));
        let figures = [vec![max], counts_of_result(role)].concat().join(", ");
        if roles.len() > 1 { format!("{} {figures}", role.role) } else { figures }
    };
    roles.iter().map(of_role).collect::<Vec<_>>().join("; ")
}

/// A table of the scenarios of one kind of measurement that has more figures than a largest time.
pub(crate) struct NetTable {
    pub title: &'static str,
    pub headings: &'static [&'static str],
    /// One row per scenario.
    pub rows: Vec<Vec<String>>,
}

/// The tables of round trips, talkers, listeners, captures and audio, as far as the campaign has run.
pub(crate) fn net_tables(campaign: &Campaign) -> Vec<NetTable> {
    [
        Measured::Lateness,
        Measured::Gap,
        Measured::Response,
        Measured::RoundTrip,
        Measured::SendLateness,
        Measured::FrameGap,
        Measured::Spacing,
        Measured::Completion,
    ]
    .into_iter()
    .filter_map(|measured| net_table(campaign, measured))
    .filter(|table| !table.rows.is_empty())
    .collect()
}

/// Picks the counts that a table shows of a role; `None` for an unknown one.
type Counts = fn(&RoleResult) -> Vec<Option<u64>>;

/// The table of one kind of measurement; `None` if its largest time says everything.
fn net_table(campaign: &Campaign, measured: Measured) -> Option<NetTable> {
    let (title, headings, counts): (_, &[&str], Counts) = match measured {
        Measured::Lateness | Measured::Gap => return None,
        Measured::RoundTrip => (
            "Round trips, from the scheduled send time",
            &["scenario", "answered", "lost", "not sent", "median", "99.9 %", "longest"],
            |role| vec![role.lost, Some(role.missed)],
        ),
        Measured::Response => (
            "Responses, by the clock of the outside judge",
            &["scenario", "answered", "no answer", "median", "99.9 %", "longest"],
            |role| vec![role.lost],
        ),
        Measured::SendLateness => {
            ("Frames sent", &["scenario", "frames", "late", "missed", "median", "99.9 %", "max delta"], |role| {
                vec![role.late, Some(role.missed)]
            })
        }
        Measured::FrameGap => {
            ("Frames received", &["scenario", "frames", "lost", "median", "99.9 %", "max delta"], |role| {
                vec![role.lost]
            })
        }
        Measured::Spacing => {
            ("Frames captured", &["scenario", "frames", "late", "lost", "median", "99.9 %", "max spacing"], |role| {
                vec![role.late, role.lost]
            })
        }
        Measured::Completion => (
            "Audio periods, completion after the deadline",
            &["scenario", "played", "xruns", "lost", "median", "99.9 %", "worst"],
            |role| vec![role.late, role.lost],
        ),
    };
    let of_entry = |entry: &ScenarioEntry| {
        let role = entry.result.as_ref()?.roles.iter().find(|role| role.measured == measured)?;
        let known = |count: Option<u64>| count.map_or_else(|| "-".to_owned(), grouped);
        let counts = [Some(role.samples)].into_iter().chain(counts(role)).map(known);
        let times = [role.p50_ns, role.p99_9_ns, role.max_ns].map(time);
        Some([named(entry)].into_iter().chain(counts).chain(times).collect())
    };
    Some(NetTable { title, headings, rows: campaign.scenarios.iter().filter_map(of_entry).collect() })
}

/// The name of a scenario with its repeat.
pub(crate) fn named(entry: &ScenarioEntry) -> String {
    named_with(entry, "")
}

pub(crate) fn time(ns: Option<i64>) -> String {
    ns.map_or_else(|| "-".to_owned(), format_ns)
}

/// A reference that a campaign is compared with.
pub(crate) struct Reference {
    /// Its name.
    pub name: String,
    /// One row per scenario and role.
    pub rows: Vec<ReferenceRow>,
    /// The differences in conditions, as a sentence.
    pub conditions: String,
}

/// A scenario compared with the best matching part of the reference.
pub(crate) struct ReferenceRow {
    pub scenario: String,
    pub yours: String,
    pub theirs: String,
    /// Ours divided by theirs; `None` if one of them is unknown.
    pub ratio: Option<f64>,
    /// The part of the reference.
    pub phase: String,
    /// True if the scenario was measured as requested.
    pub is_valid: bool,
    /// Number of conditions that differ.
    pub differing: usize,
}

impl Reference {
    /// Of the valid scenarios with the fewest differing conditions, the one with the largest ratio.
    pub(crate) fn closest(&self) -> Option<&ReferenceRow> {
        let likeness = |row: &ReferenceRow| (row.is_valid, Reverse(row.differing));
        let ratio = |row: &ReferenceRow| row.ratio.unwrap_or(0.0);
        self.rows.iter().max_by(|a, b| likeness(a).cmp(&likeness(b)).then(ratio(a).total_cmp(&ratio(b))))
    }
}

impl ReferenceRow {
    /// The ratio: `1.5x`, or `-`.
    pub(crate) fn times(&self) -> String {
        self.ratio.map_or_else(|| "-".to_owned(), times)
    }
}

/// The worst scenario; `None` if nothing was measured.
pub(crate) fn worst_scenario(campaign: &Campaign) -> Option<&ScenarioEntry> {
    ranked(campaign).first().map(|worst| worst.entry)
}

/// The file name of the record of the worst scenario; `None` if nothing was measured.
#[must_use]
pub fn worst_record(campaign: &Campaign) -> Option<&str> {
    worst_scenario(campaign).map(|entry| entry.record.as_str())
}

/// The comparisons of a campaign, as far as it has run.
pub(crate) fn references(campaign: &Campaign) -> Vec<Reference> {
    let mut all: Vec<Reference> = Vec::new();
    for entry in &campaign.scenarios {
        let is_valid = entry.result.as_ref().is_some_and(|result| result.valid);
        for role in entry.result.iter().flat_map(|result| &result.roles) {
            let of_role = if role.role == TIMER { String::new() } else { format!(", {}", role.role) };
            let published = |of: &&Compared| of.max_ns.is_some() || of.max_above_ns.is_some();
            for comparison in role.beside.iter().filter(published) {
                let at = all.iter().position(|known| known.name == comparison.name).unwrap_or_else(|| {
                    all.push(Reference {
                        name: comparison.name.clone(),
                        rows: Vec::new(),
                        conditions: conditions(comparison),
                    });
                    all.len() - 1
                });
                all[at].rows.push(ReferenceRow {
                    scenario: named_with(entry, &of_role),
                    yours: time(role.max_ns),
                    theirs: theirs(comparison),
                    ratio: comparison.ratio,
                    phase: comparison.phase.clone(),
                    is_valid,
                    differing: comparison.differs.len(),
                });
            }
        }
    }
    all
}

/// A scenario's name with role and repeat: `idle, last, talker (2)`.
fn named_with(entry: &ScenarioEntry, of_role: &str) -> String {
    let repeat = if entry.repeat > 1 { format!(" ({})", entry.repeat) } else { String::new() };
    format!("{}{of_role}{repeat}", entry.name)
}

/// The other side's maximum: `168 us`, or `above 800 us` if only a bound was published.
fn theirs(comparison: &Compared) -> String {
    match (comparison.max_ns, comparison.max_above_ns) {
        (None, Some(above_ns)) => format!("above {}", format_ns(above_ns)),
        (max_ns, _) => time(max_ns),
    }
}

fn conditions(comparison: &Compared) -> String {
    match &comparison.differs[..] {
        [] => "No known difference in conditions.".to_owned(),
        differs => format!("Conditions differ; in the first: {}.", differs.join("; ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn role(role: &str, measured: Measured, max_ns: i64) -> RoleResult {
        RoleResult { role: role.to_owned(), measured, samples: 9, max_ns: Some(max_ns), ..RoleResult::default() }
    }

    fn scenario(name: &str, outcome: Option<Outcome>, roles: Vec<RoleResult>) -> ScenarioEntry {
        let result = ScenarioResult { valid: true, outcome, roles, ..ScenarioResult::default() };
        ScenarioEntry {
            name: name.to_owned(),
            record: format!("{name}.json"),
            result: Some(result),
            ..ScenarioEntry::default()
        }
    }

    /// Campaigns with timers, datagrams, and interrupts with and without an outside judge.
    #[test]
    fn the_answer_is_about_what_the_verdicts_are_about() {
        let way = |max_ns| role("interrupt", Measured::Lateness, max_ns);
        let answers = |max_ns, lost| RoleResult { lost: Some(lost), ..role("response", Measured::Response, max_ns) };
        let judged = |lost| vec![way(1_100_000), answers(5_830_000, lost)];
        let timer = scenario("timer", None, vec![role(TIMER, Measured::Lateness, 7_000_000)]);
        let udp =
            vec![role("sender", Measured::Lateness, 9_000_000), role("round-trip", Measured::RoundTrip, 2_000_000)];
        let others = || {
            vec![
                timer.clone(),
                scenario("udp", Some(Outcome::Pass), udp.clone()),
                scenario("way", None, vec![way(3_000_000)]),
            ]
        };
        let answer = |judged: ScenarioEntry| {
            let scenarios = [others(), vec![judged]].concat();
            let campaign = Campaign { scenarios, ..Campaign::default() };
            let names: Vec<String> = ranked(&campaign).iter().map(|of| of.entry.name.clone()).collect();
            assert_eq!(worst_record(&campaign), Some(&*format!("{}.json", names[0])));
            (worst(&campaign), names.join(" "))
        };
        let meaning = "Longest time from the question of the outside judge to the answer.".to_owned();
        let fail = answer(scenario("judged", Some(Outcome::Fail), judged(0)));
        assert_eq!(
            fail,
            (("At worst 5.83 ms, in judged (FAIL).".to_owned(), meaning.clone()), "judged timer way udp".to_owned())
        );
        let lossy = answer(scenario("judged", None, judged(567)));
        assert_eq!(
            lossy,
            (
                ("At worst 5.83 ms with 567 without an answer, in judged.".to_owned(), meaning),
                "judged timer way udp".to_owned()
            )
        );
        let pass = answer(scenario("judged", Some(Outcome::Pass), judged(0)));
        assert_eq!(
            pass,
            (
                ("At worst 7 ms, in timer.".to_owned(), "Largest lateness.".to_owned()),
                "timer judged way udp".to_owned()
            )
        );
        let mut invalid = scenario("judged", Some(Outcome::Invalid), judged(567));
        invalid.result.as_mut().unwrap().valid = false;
        assert_eq!(answer(invalid).1, "timer way udp judged");
    }

    #[test]
    fn tables_of_a_campaign_count_what_never_came() {
        let response = RoleResult { lost: Some(567), ..role("response", Measured::Response, 100_000) };
        let interrupt = RoleResult { lost: Some(3), ..role("interrupt", Measured::Lateness, 900_000) };
        let lossy = scenario("lossy", None, vec![role("interrupt", Measured::Lateness, 50_000), response]);
        let scenarios = vec![scenario("edges", None, vec![interrupt]), lossy];
        let campaign = Campaign { scenarios, ..Campaign::default() };
        let text = crate::terminal::campaign_answer(&campaign, "more", &crate::Style::plain(), 80);
        let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        let place =
            |row: &[&str]| rows.iter().position(|found| found == row).unwrap_or_else(|| panic!("{row:?} in {text}"));
        let lossy = place(&["lossy", "100", "us", "response", "567"]);
        assert_eq!(place(&["edges", "900", "us", "interrupt", "3"]), lossy + 1, "the most losses first");
        let page = crate::html::render_campaign(&campaign);
        assert!(page.contains("<b>570</b>") || page.contains(">570<"), "{page}");
    }

    #[test]
    fn network_results_have_their_own_tables() {
        let talker = RoleResult { late: Some(2), missed: 1, ..role("talker", Measured::SendLateness, 7_323) };
        let listener = RoleResult { lost: Some(3), ..role("listener", Measured::FrameGap, 197_201) };
        let captured = RoleResult { late: Some(4), lost: Some(3), ..role("capture", Measured::Spacing, 134_012) };
        let sender = role("sender", Measured::Lateness, 5_000);
        let trip = RoleResult { lost: Some(0), missed: 4, ..role("round-trip", Measured::RoundTrip, 168_000) };
        assert_eq!(summarize(&[sender.clone(), trip.clone()]), "sender max 5 us; round-trip max 168 us, 4 not sent");
        let entry = |name: &str, repeat, roles| ScenarioEntry {
            name: name.to_owned(),
            repeat,
            result: Some(ScenarioResult { roles, ..ScenarioResult::default() }),
            ..ScenarioEntry::default()
        };
        let scenarios =
            vec![entry("stream", 1, vec![talker, listener, captured]), entry("trips", 2, vec![sender, trip])];
        let tables = net_tables(&Campaign { scenarios, ..Campaign::default() });
        let rows: Vec<String> = tables.iter().map(|table| table.rows[0].join(" | ")).collect();
        assert_eq!(
            rows,
            [
                "trips (2) | 9 | 0 | 4 | - | - | 168 us",
                "stream | 9 | 2 | 1 | - | - | 7.32 us",
                "stream | 9 | 3 | - | - | 197 us",
                "stream | 9 | 4 | 3 | - | - | 134 us"
            ]
        );
        for table in &tables {
            assert!(table.rows.iter().all(|row| row.len() == table.headings.len()), "{}", table.title);
        }
    }

    #[test]
    fn a_reference_is_compared_with_the_valid_scenario_that_is_most_like_it() {
        let entry = |name: &str, valid, ratio, differs: &[&str]| {
            let differs = differs.iter().map(|text| (*text).to_owned()).collect();
            let beside = Compared {
                name: "board".to_owned(),
                max_ns: Some(1000),
                ratio: Some(ratio),
                differs,
                ..Compared::default()
            };
            let role = RoleResult { beside: vec![beside], ..role(TIMER, Measured::Lateness, 2000) };
            ScenarioEntry {
                name: name.to_owned(),
                result: Some(ScenarioResult { valid, roles: vec![role], ..ScenarioResult::default() }),
                ..ScenarioEntry::default()
            }
        };
        let closest = |scenarios: &[ScenarioEntry]| {
            references(&Campaign { scenarios: scenarios.to_vec(), ..Campaign::default() })[0]
                .closest()
                .unwrap()
                .scenario
                .clone()
        };
        let all = [
            entry("invalid", false, 9.0, &[]),
            entry("idle", true, 5.0, &["load", "isolation"]),
            entry("loaded", true, 2.0, &["machine"]),
            entry("loaded too", true, 3.0, &["machine"]),
        ];
        assert_eq!(closest(&all), "loaded too");
        assert_eq!(closest(&all[..1]), "invalid");
    }

    #[test]
    fn shows_a_bound_if_a_reference_has_no_maximum() {
        let comparison = Compared { max_above_ns: Some(800_000), ..Compared::default() };
        assert_eq!((theirs(&comparison), theirs(&Compared::default())), ("above 800 us".to_owned(), "-".to_owned()));
    }
}

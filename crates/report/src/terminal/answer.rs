//! The result of a run in at most 20 lines, the answer first.

use analysis::{format_ns, when};
use record::{Campaign, Finding, Outcome, Record, USE_MEASURED, UseVerdict, shell};

use super::figures::figures;
use super::page::Page;
use super::table::Table;
use super::{campaign, capture, compare, ledger, linuxcnc, machine, matrix, sound_loop};
use crate::advice;
use crate::audio;
use crate::blame::{self, explains, ranked, shares};
use crate::caveats;
use crate::headline::{self, ink_of, shown_uses};
use crate::missing;
use crate::remedy::is_command;
use crate::round_trip;
use crate::style::{Ink, Style};
use crate::words::{Words, sentence, state_note};

/// Largest number of lines of the answer, without the two lines of the paths of the files.
const LINES: usize = 18;
/// The fewest columns with this number of lines; a narrower answer has the lines of one of 80 columns, wrapped.
const NARROW: usize = 80;
/// The lengths of `why`, from the longest to the shortest.
const WHYS: [Whys; 5] = [
    Whys { culprits: 3, reasons: usize::MAX },
    Whys { culprits: 1, reasons: 3 },
    Whys { culprits: 1, reasons: 2 },
    Whys { culprits: 1, reasons: 1 },
    Whys { culprits: 1, reasons: 0 },
];
/// Largest number of remedies.
const REMEDIES: usize = 3;
/// The rows that a table has space for, also if other parts are long: both ends of a stream and its capture, or fewer.
const TABLE_ROWS: [usize; 2] = [3, 2];
/// Largest number of problems of scenarios.
const PROBLEMS: usize = 3;
/// Largest number of facts about a part of the machine.
const FACTS: usize = 2;
/// Columns of the names of the rows.
const COLUMN: usize = 7;

/// The answer of a run: verdict, uses, cause, what to do, and the figures of each thread, as far as they fit.
///
/// For width and text, see [`overview`](super::overview). `full` is the command that shows everything.
#[must_use]
pub fn answer(record: &Record, full: &str, style: &Style, width: usize) -> String {
    let part = |write: &dyn Fn(&mut Page)| part(style, width, write);
    let more = part(&|page| more(page, full));
    let periods = part(&|page| linuxcnc::brief(page, record));
    // The path of the run's own capture is a third one.
    let path_of_capture = usize::from(record.capture.as_ref().is_some_and(|capture| capture.observer.is_some()));
    let left = lines_at(width).saturating_sub(lines(&more) + lines(&periods) + path_of_capture);
    // In the order of importance, except for the caveats, the culprits and the remedies, whose lengths are chosen below.
    let above = [part(&|page| top(page, record)), part(&|page| reasons(page, record))];
    let middle = [
        part(&|page| buffer(page, record)),
        part(&|page| uses(page, record)),
        part(&|page| missing(page, record)),
        part(&|page| record.sound_loop.iter().for_each(|results| sound_loop::brief(page, results))),
        part(&|page| compare::brief(page, record, COLUMN)),
    ];
    let caveats =
        [Caveats::All, Caveats::First, Caveats::Number].map(|shown| part(&|page| caveats(page, record, shown)));
    let why = WHYS.map(|shown| part(&|page| why(page, record, shown)));
    let to_do: Vec<String> = (1..=REMEDIES)
        .rev()
        .map(ToDo::Whole)
        .chain([ToDo::Brief])
        .map(|length| part(&|page| what_to_do(page, record, length)))
        .collect();
    // From the longest to the shortest: indices of `caveats` and `why`, each with the whole remedies, then each with the
    // brief one.
    let texts = [(0, 0), (1, 0), (1, 1), (1, 2), (1, 3), (2, 3), (2, 4)];
    let (whole, brief) = to_do.split_at(REMEDIES);
    let choices: Vec<Vec<&String>> = [whole, brief]
        .into_iter()
        .flat_map(|remedies| texts.into_iter().flat_map(|text| remedies.iter().map(move |to_do| (text, to_do))))
        .map(|((caveat, reasons), to_do)| {
            above.iter().chain([&caveats[caveat]]).chain(&middle).chain([&why[reasons], to_do]).collect()
        })
        .collect();
    let table = |rows| figures(record, rows);
    let used = |parts: &Vec<&String>| parts.iter().map(|part| lines(part)).sum::<usize>();
    let fits = |parts: &&Vec<&String>, with: usize| used(parts) + with <= left;
    let with_rows = |rows: usize| {
        let of_table = table(rows).map_or(0, |table| lines(&below(style, width, &table)));
        choices.iter().find(|parts| fits(parts, of_table))
    };
    let chosen = TABLE_ROWS.into_iter().find_map(with_rows).or_else(|| choices.iter().find(|parts| fits(parts, 0)));
    // If no choice fits as a whole, the longest one with the most parts that fit.
    let kept = |parts: &&Vec<&String>| fitting_parts(parts, left).iter().filter(|part| !part.is_empty()).count();
    let chosen = chosen.or_else(|| choices.iter().rev().max_by_key(kept));
    let above_table = chosen.map_or_else(String::new, |parts| fitting(parts, left));
    let above = with_table(above_table, left, style, width, table);
    let unjudged = part(&|page| unjudged(page, record));
    let has_space = lines(&above) + lines(&unjudged) <= left;
    above + &periods + if has_space { &unjudged } else { "" } + &more
}

/// The answer of a run as in [`answer`] but in full and without its table, for the top of the page with all figures. It
/// ends with a blank line. Empty for published figures, which are no run.
///
/// For width and text, see [`overview`](super::overview).
#[must_use]
pub fn opening(record: &Record, style: &Style, width: usize) -> String {
    if record.published.is_some() {
        return String::new();
    }
    part(style, width, &|page| {
        top(page, record);
        reasons(page, record);
        uses(page, record);
        why(page, record, WHYS[0]);
        what_to_do(page, record, ToDo::Whole(usize::MAX));
        page.gap();
    })
}

/// The answer of a campaign as in [`campaign_answer`] but in full and without its table, for the top of its page.
///
/// For width and text, see [`overview`](super::overview). `document` is as there.
#[must_use]
pub fn campaign_opening(campaign: &Campaign, document: &str, style: &Style, width: usize) -> String {
    part(style, width, &|page| {
        campaign_top(page, campaign);
        campaign::ran(page, campaign, COLUMN);
        campaign::failed(page, campaign, COLUMN);
        campaign::against(page, campaign, COLUMN);
        campaign::why(page, campaign, COLUMN);
        campaign::what_to_do(page, campaign, document, COLUMN);
        campaign::problems(page, campaign, COLUMN, usize::MAX);
        page.gap();
    })
}

/// The answer of a campaign: its recommendation, problems, and the scenarios with the largest times.
///
/// For width and text, see [`overview`](super::overview). `document` is the path of the campaign, for commands.
#[must_use]
pub fn campaign_answer(campaign: &Campaign, document: &str, style: &Style, width: usize) -> String {
    let part = |write: &dyn Fn(&mut Page)| part(style, width, write);
    let full = shell::command(&["punctual", "show", "--full", document]);
    let more = part(&|page| more(page, &full));
    let left = lines_at(width).saturating_sub(lines(&more));
    let parts = [
        part(&|page| campaign_top(page, campaign)),
        part(&|page| campaign::ran(page, campaign, COLUMN)),
        part(&|page| campaign::failed(page, campaign, COLUMN)),
        part(&|page| campaign::against(page, campaign, COLUMN)),
        part(&|page| campaign::why(page, campaign, COLUMN)),
        part(&|page| campaign::what_to_do(page, campaign, document, COLUMN)),
        part(&|page| campaign::problems(page, campaign, COLUMN, PROBLEMS)),
    ];
    with_table(fitting(&parts.each_ref(), left), left, style, width, |rows| campaign::worst(campaign, rows)) + &more
}

/// The sentence of the answer of a campaign.
#[must_use]
pub fn campaign_headline(campaign: &Campaign, style: &Style, width: usize) -> String {
    part(style, width, &|page| campaign_top(page, campaign))
}

/// The lengths of the parts of the answer of `punctual blame`, from the longest to the shortest.
const BLAMES: [Blames; 8] = [
    Blames { remedies: 3, causes: 5, spikes: 3 },
    Blames { remedies: 2, causes: 4, spikes: 3 },
    Blames { remedies: 1, causes: 4, spikes: 2 },
    Blames { remedies: 1, causes: 3, spikes: 1 },
    Blames { remedies: 1, causes: 4, spikes: 0 },
    Blames { remedies: 1, causes: 3, spikes: 0 },
    Blames { remedies: 1, causes: 2, spikes: 0 },
    Blames { remedies: 1, causes: 1, spikes: 0 },
];

/// The lengths of the parts of the answer of `punctual blame`.
struct Blames {
    remedies: usize,
    causes: usize,
    spikes: usize,
}

/// The answer of `punctual blame`: the main cause, what to do, the first causes and the worst spikes.
///
/// For width and text, see [`overview`](super::overview). `name` is the record in the commands that show more.
#[must_use]
pub fn blame_answer(record: &Record, name: &str, style: &Style, width: usize) -> String {
    let part = |write: &dyn Fn(&mut Page)| part(style, width, write);
    let command = |options: &[&str]| shell::command(&[&["punctual", "blame"], options, &[name]].concat());
    let has_spikes = !ranked(record).is_empty();
    let end = part(&|page| {
        page.command("more", COLUMN, &command(&["--full"]));
        if has_spikes {
            page.command("", COLUMN, &command(&["--around", "1"]));
        }
    });
    let doubts = part(&|page| {
        reasons(page, record);
        caveats(page, record, Caveats::First);
    });
    let above = blame_headline(record, style, width) + &doubts;
    let of = |lengths: &Blames| {
        part(&|page| {
            what_to_do(page, record, ToDo::Whole(lengths.remedies));
            ledger::in_short(page, record, lengths.causes);
            ledger::spikes(page, record, lengths.spikes);
        })
    };
    let left = lines_at(width).saturating_sub(lines(&above) + lines(&end));
    // The shortest is not left out: it has what a reader needs first.
    let all: Vec<String> = BLAMES.iter().map(of).collect();
    let fitting = all.iter().find(|text| lines(text) <= left).or(all.last());
    above + fitting.map_or("", String::as_str) + &end
}

/// The sentence of the answer of `punctual blame`: the main cause.
#[must_use]
pub fn blame_headline(record: &Record, style: &Style, width: usize) -> String {
    let Words { item, later, spike, .. } = Words::of(record);
    let none = || match record.spikes_total() {
        0 => format!("No {item} was {later} than {}", format_ns(record.scenario.threshold_ns)),
        _ => format!("No causes of the {spike}s were found"),
    };
    let text = blame::headline(record).unwrap_or_else(none);
    part(style, width, &|page| page.answer(Ink::Title, &format!("{text}.")))
}

/// The text of a part.
fn part(style: &Style, width: usize, write: &dyn Fn(&mut Page)) -> String {
    let mut page = Page::new(*style, width);
    write(&mut page);
    page.finish()
}

/// Largest number of lines of the answer at this width.
fn lines_at(width: usize) -> usize {
    if width < NARROW { LINES * 80 / width.max(1) } else { LINES }
}

/// The number of lines of a text.
fn lines(text: &str) -> usize {
    text.lines().count()
}

/// The parts that fit into the lines that are `left`.
fn fitting_parts<'a>(parts: &[&'a String], mut left: usize) -> Vec<&'a String> {
    let fits = |part: &&&String| {
        let fits = lines(part) <= left;
        left -= if fits { lines(part) } else { 0 };
        fits
    };
    parts.iter().filter(fits).copied().collect()
}

/// The text of the parts that fit into the lines that are `left`.
fn fitting(parts: &[&String], left: usize) -> String {
    fitting_parts(parts, left).into_iter().map(String::as_str).collect()
}

/// A blank line and the table.
fn below(style: &Style, width: usize, table: &Table) -> String {
    part(style, width, &|page| {
        page.gap();
        page.table(table);
    })
}

/// The text, and below it a table of as many rows as fit into `left` lines, but no table of the number of rows alone.
fn with_table(
    text: String,
    left: usize,
    style: &Style,
    width: usize,
    table: impl Fn(usize) -> Option<Table>,
) -> String {
    let left = left.saturating_sub(lines(&text));
    // A table that is too wide has more lines.
    let fitting = (2..=left).rev().filter_map(&table).map(|table| below(style, width, &table));
    match fitting.into_iter().find(|shown| lines(shown) <= left) {
        Some(shown) => text + &shown,
        None => text,
    }
}

/// Says how a run is judged that shows lateness and no verdict.
fn unjudged(page: &mut Page, record: &Record) {
    let has_answer = record.verdict.is_some()
        || !record.uses.is_empty()
        || !record.cells.is_empty()
        || record.buffer.is_some()
        || record.sound_loop.is_some();
    if !has_answer && record.validity.valid {
        page.fact("verdict", COLUMN, "none without --profile NAME (`punctual profiles` lists them)");
    }
}

/// The command that shows everything; a text that is not a command is wrapped like other text.
fn more(page: &mut Page, full: &str) {
    if is_command(full) {
        page.command("more", COLUMN, full);
    } else {
        page.fact("more", COLUMN, full);
    }
}

/// The commands below the findings about a machine.
#[derive(Debug, Clone)]
pub struct CheckCommands {
    /// The command that explains a finding, without its id.
    pub explain: String,
    /// The command that shows everything.
    pub full: String,
}

/// The answer of `punctual check`: a line for each finding that is not good, the worst first, as far as they fit.
///
/// For width and text, see [`overview`](super::overview).
#[must_use]
pub fn findings_answer(findings: &[Finding], commands: &CheckCommands, style: &Style, width: usize) -> String {
    let explain = |page: &mut Page| {
        if let Some(worst) = machine::to_change(findings).next() {
            page.command("explain", COLUMN, &format!("{} {}", commands.explain, worst.id));
        }
    };
    let ids = machine::to_change(findings).map(|finding| finding.id.len()).max().unwrap_or_default();
    let line = |page: &mut Page, finding: &Finding| machine::line(page, finding, ids);
    let measured = |page: &mut Page| {
        if let Some(finding) = findings.iter().find(|finding| finding.id == USE_MEASURED) {
            machine::finding(page, finding);
        }
    };
    let others: Vec<Finding> = findings.iter().filter(|finding| finding.id != USE_MEASURED).cloned().collect();
    answer_of_findings(&measured, &others, &line, &explain, &commands.full, style, width)
}

/// The answer of `punctual check nic`: what to change, the worst first, as far as it fits, after the first `facts`.
///
/// For width and text, see [`overview`](super::overview). `full` is the command that shows everything.
#[must_use]
pub fn check_answer(facts: &[(&str, String)], findings: &[Finding], full: &str, style: &Style, width: usize) -> String {
    let shown = |page: &mut Page| {
        let known = facts.iter().filter(|(_, text)| !text.is_empty());
        known.take(FACTS).for_each(|(name, text)| page.fact(name, COLUMN, text));
    };
    answer_of_findings(&shown, findings, &machine::finding, &|_| (), full, style, width)
}

/// The answer about findings, each as `one` writes it, between two other parts.
fn answer_of_findings(
    above: &dyn Fn(&mut Page),
    findings: &[Finding],
    one: &dyn Fn(&mut Page, &Finding),
    below: &dyn Fn(&mut Page),
    full: &str,
    style: &Style,
    width: usize,
) -> String {
    let findings = &machine::distinct(findings);
    let part = |write: &dyn Fn(&mut Page)| part(style, width, write);
    let end = part(below) + &part(&|page| more(page, full));
    let left = lines_at(width).saturating_sub(lines(&end));
    let mut out = part(&|page| machine::headline(page, findings)) + &part(above);
    let mut left_out = 0;
    for finding in machine::to_change(findings) {
        let text = part(&|page| one(page, finding));
        // Keeps a line for the number of the others.
        if left_out == 0 && lines(&out) + lines(&text) < left {
            out.push_str(&text);
        } else {
            left_out += 1;
        }
    }
    if left_out > 0 {
        out.push_str(&part(&|page| page.fact("", COLUMN, &format!("and {left_out} more"))));
    }
    out + &end
}

/// The sentence of the answer of `punctual check`.
#[must_use]
pub fn machine_headline(findings: &[Finding], style: &Style, width: usize) -> String {
    part(style, width, &|page| machine::headline(page, findings))
}

/// The sentence of the answer.
#[must_use]
pub fn headline(record: &Record, style: &Style, width: usize) -> String {
    part(style, width, &|page| {
        let answer = headline::headline(record);
        // A verdict on a use has only the name of the reason.
        let reason = record.validity.reasons.first().map(|reason| sentence(&reason.text));
        let text = match reason.filter(|reason| answer.ink == Ink::Alarm && !answer.text.contains(reason)) {
            Some(reason) => format!("{} {reason}", answer.text),
            None => answer.text,
        };
        page.answer(answer.ink, &text);
    })
}

fn campaign_top(page: &mut Page, campaign: &Campaign) {
    let answer = campaign::headline(campaign);
    page.answer(answer.ink, &answer.text);
}

fn top(page: &mut Page, record: &Record) {
    let answer = headline::headline(record);
    page.answer(answer.ink, &answer.text);
}

/// The reasons why the run is invalid, with remedies.
fn reasons(page: &mut Page, record: &Record) {
    let answer = headline::headline(record).text;
    for reason in record.validity.reasons.iter().take(2) {
        // The first line may contain it.
        if !answer.contains(&sentence(&reason.text)) {
            page.fact("invalid", COLUMN, &reason.text);
        }
        page.remedy(COLUMN + 4, &reason.remedy);
    }
    if let more @ 1.. = record.validity.reasons.len().saturating_sub(2) {
        page.fact("", COLUMN, &format!("and {more} more reasons"));
    }
}

/// The caveats that the answer contains.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Caveats {
    /// All doubts about the culprits, and the first caveat.
    All,
    /// The first of them.
    First,
    /// Only their number.
    Number,
}

/// Doubts about the figures: a run that did not end as planned, doubtful culprits, and caveats.
fn caveats(page: &mut Page, record: &Record, shown: Caveats) {
    let note = state_note(record);
    if !note.is_empty() {
        page.labelled(Ink::Doubt, "note", COLUMN, &note);
    }
    let all = caveats::of_run(record);
    let count = match shown {
        Caveats::All => caveats::of_culprits(record).len() + 1,
        Caveats::First => 1,
        Caveats::Number => {
            if !all.is_empty() {
                page.fact("caveat", COLUMN, &format!("{}, shown with --full", all.len()));
            }
            return;
        }
    };
    for (number, caveats::Doubt { text, command, .. }) in (1..).zip(all.iter().take(count)) {
        let text = match all.len().saturating_sub(count) {
            more @ 1.. if number == count => format!("{} (and {more} more)", text.trim_end_matches('.')),
            _ => text.clone(),
        };
        page.fact("caveat", COLUMN, &text);
        page.remedy(COLUMN + 4, command);
    }
}

/// The result of a search for a buffer, if the verdict on a use is the answer.
fn buffer(page: &mut Page, record: &Record) {
    if let Some(search) = record.buffer.as_ref().filter(|_| record.verdict.is_some()) {
        audio::found(record, search).first().iter().for_each(|found| page.fact("buffer", COLUMN, found));
    }
}

/// The uses by outcome; the requested profiles one by one.
fn uses(page: &mut Page, record: &Record) {
    let requested = &record.scenario.profiles;
    if requested.len() > 1 {
        let answer = headline::headline(record).text;
        let text = |a_use: &UseVerdict| format!("{}: {}", a_use.profile, a_use.reason);
        // The first line contains the reason of the worst one.
        for a_use in record.uses.iter().filter(|a_use| !answer.ends_with(&sentence(&text(a_use)))) {
            let word = match a_use.outcome {
                Outcome::Inconclusive => "unsure".to_owned(),
                other => other.name().to_lowercase(),
            };
            page.labelled(ink_of(a_use.outcome), &word, COLUMN, &text(a_use));
        }
    }
    let shown = shown_uses(record);
    let of = |is_it: &dyn Fn(&UseVerdict) -> bool| {
        shown.iter().filter(|a_use| is_it(a_use)).map(|a_use| a_use.title.clone()).collect::<Vec<_>>()
    };
    let is_so_far = |a_use: &UseVerdict| a_use.clean_so_far && a_use.outcome != Outcome::Pass;
    for (ink, word, titles) in [
        (Ink::Good, "yes", of(&|a_use| a_use.outcome == Outcome::Pass)),
        (Ink::Doubt, "so far", of(&is_so_far)),
        (Ink::Doubt, "unsure", of(&|a_use| a_use.outcome == Outcome::Inconclusive && !is_so_far(a_use))),
    ] {
        if !titles.is_empty() {
            page.labelled(ink, word, COLUMN, &titles.join("; "));
        }
    }
    let mut failed = shown.iter().filter(|a_use| a_use.outcome == Outcome::Fail);
    if let Some(first) = failed.next() {
        let more = match failed.count() {
            0 => String::new(),
            1 => " and 1 more demanding use".to_owned(),
            more => format!(" and {more} more demanding uses"),
        };
        let limit = format!("limit {}", format_ns(first.limit_ns));
        let text = match first.title.strip_suffix(')') {
            Some(title) => format!("{title}; {limit}){more}"),
            None => format!("{} ({limit}){more}", first.title),
        };
        page.labelled(Ink::Bad, "no", COLUMN, &text);
    }
}

/// The times of missing results, of the series with the most.
fn missing(page: &mut Page, record: &Record) {
    let with_times = || record.series.iter().filter(|series| !series.losses.is_empty());
    let worst = with_times().max_by_key(|series| series.losses.total());
    if let Some((series, text)) = worst.and_then(|series| Some((series, missing::in_words(series)?))) {
        let of_series = match with_times().count() {
            1 => String::new(),
            _ => format!(" ({}, {})", series.place(), when(series)),
        };
        page.fact("missing", COLUMN, &format!("{text}{of_series}"));
    }
}

/// The length of `why`.
#[derive(Clone, Copy)]
struct Whys {
    /// Largest number of culprits in one line.
    culprits: usize,
    /// Largest number of reasons for the recommended pair of a matrix.
    reasons: usize,
}

/// The main culprits with their shares of the lateness of all spikes; before them, for a matrix the cause of its worst
/// spike and the reasons of the recommendation, for a capture what its gaps were,
/// and for round trips the parts of the longest one.
fn why(page: &mut Page, record: &Record, shown: Whys) {
    for cause in matrix::cause(record).into_iter().chain(capture::causes(record)) {
        page.fact("why", COLUMN, &cause);
    }
    let reasons: Vec<&String> =
        record.recommendation.iter().flat_map(|advice| advice.why.iter().chain(&advice.facts)).collect();
    let left_out = reasons.len().saturating_sub(shown.reasons);
    for (number, reason) in (1..).zip(reasons.iter().take(shown.reasons)) {
        let more =
            if number == shown.reasons && left_out > 0 { format!(" (and {left_out} more)") } else { String::new() };
        page.fact("why", COLUMN, &sentence(&format!("{}{more}", reason.trim_end_matches('.'))));
    }
    if shown.reasons == 0 && left_out > 0 {
        page.fact("why", COLUMN, &format!("{left_out}, shown with --full"));
    }
    let longest = record.series.iter().filter(|series| series.kind.round_trip().is_some());
    let longest =
        longest.max_by_key(|series| series.max_ns).and_then(|series| round_trip::longest(series).into_iter().next());
    for parts in longest.iter().filter(|_| explains(record)) {
        page.fact("why", COLUMN, &format!("the longest: {parts}"));
    }
    for parts in analysis::process::parts_in_short(record).iter().filter(|_| explains(record)) {
        page.fact("why", COLUMN, &format!("the longest cycle: {parts}"));
    }
    let shares = shares(record, shown.culprits);
    if !shares.is_empty() {
        // A round trip also has parts outside of this machine; only late sending is explained. A cycle of a program also
        // has parts after its wake-up.
        let of = match record.program {
            _ if longest.is_some() => "late sends: ",
            Some(_) => "late wake-ups: ",
            None => "",
        };
        page.fact("why", COLUMN, &format!("{of}{}", shares.join("; ")));
    }
}

/// The length of `do`.
#[derive(Clone, Copy)]
enum ToDo {
    /// So many remedies.
    Whole(usize),
    /// One remedy; if it has a command, without the explanation.
    Brief,
}

/// Lists remedies, each with its cause, and the number of the others.
fn what_to_do(page: &mut Page, record: &Record, length: ToDo) {
    let all = advice::of_run(record);
    let count = match length {
        ToDo::Whole(count) => count,
        ToDo::Brief => 1,
    };
    let left_out = all.len().saturating_sub(count);
    for (number, (text, command)) in (1..).zip(all.iter().take(count)) {
        // The number follows the last text; a command must remain as it is.
        let more = match (number == count && left_out > 0, command.is_empty()) {
            (true, true) => format!(" (and {left_out} more)"),
            _ => String::new(),
        };
        let label = if number == 1 { "do" } else { "" };
        let text = match length {
            ToDo::Brief if !command.is_empty() => advice::in_brief(text),
            _ => text,
        };
        page.fact(label, COLUMN, &format!("{number}  {text}{more}"));
        page.remedy(COLUMN + 7, command);
        if number == count && left_out > 0 && !command.is_empty() {
            page.fact("", COLUMN, &format!("and {left_out} more"));
        }
    }
}

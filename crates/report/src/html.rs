//! The HTML report: one self-contained document that opens from a file, prints, and works without JavaScript.
//!
//! Style, script and charts are inlined, and the Content Security Policy forbids loading anything. Text from the record
//! is escaped by the template, or by `text` within charts.
//!
//! | module | content |
//! |---|---|
//! | `verdict` | headline, key figures, ladder of uses |
//! | `histogram`, `percentiles`, `timeline` | charts, each with its table |
//! | `worst` | the worst spikes as a table |
//! | `blame`, `waterfall` | culprits of spikes: the ledger, and spikes as time lines |
//! | `campaign` | the report of a campaign, a separate document |
//! | `process` | a watched program, thread by thread |
//! | `proof` | the page of a search for the changes that help |
//! | `compare` | comparison with other records; published figures |
//! | `matrix` | the tables of a matrix |
//! | `machine` | the page of a machine, a separate document |
//! | `far` | the far end of a measurement between two machines |
//! | `facts` | other tables: series, loads, machine, settings |
//! | `noise` | the figures of a record of gaps |
//! | `audio` | completion of audio periods, and causes of xruns |
//! | `round_trip` | outcomes and times of round trips |
//! | `stream` | the ends of a stream |
//! | `capture` | a captured stream |
//! | `tails` | larger values than the run showed |
//! | `colours` | the colour of each cause |
//! | `lines` | colour, dash and name of each series |
//! | `figure`, `svg`, `text` | building blocks |

mod audio;
mod blame;
mod campaign;
mod capture;
mod colours;
mod compare;
mod facts;
mod far;
mod figure;
mod histogram;
mod interrupt;
mod lines;
mod machine;
mod matrix;
mod noise;
mod percentiles;
mod process;
mod proof;
mod response;
mod round_trip;
mod stream;
mod svg;
mod tails;
mod text;
mod timeline;
mod verdict;
mod versus;
mod waterfall;
mod worst;

use std::borrow::Cow;

use askama::Template;
use record::{Record, visible::escape};

pub use campaign::render_campaign;
pub use machine::render_machine;
pub use proof::render_proof;
pub use versus::{render_across, render_versus};

use crate::remedy::with_advice;
use crate::words::{Words, capitalized, state_note};
use blame::BlameView;
use compare::{ComparisonView, PublishedView};
use facts::{Fact, FindingView, PhaseView};
use far::FarView;
use figure::{Figure, Key, Part, Table};
use lines::{Group, Line};
use matrix::MatrixView;
use process::ProgramView;
use verdict::{Answer, Headline, Rung};

/// The number of things to change on the first screen.
const TO_DO: usize = 3;
/// The number of spikes in the table of the worst.
const WORST: usize = 20;

const STYLE: &str = include_str!("../templates/report.css");
const SCRIPT: &str = include_str!("../templates/report.js");

/// The machine and the time of a report, for its header.
struct Origin<'a> {
    host: Option<&'a str>,
    kernel: Option<&'a str>,
    preempt: Option<&'a str>,
    started_at: &'a str,
}

/// The data of the template.
#[derive(Template)]
#[template(path = "report.html")]
struct Page<'a> {
    record: &'a Record,
    title: String,
    origin: Origin<'a>,
    command: String,
    headline: Headline,
    /// The names of this record's figures.
    words: &'static Words,
    ending: Cow<'static, str>,
    answers: Vec<Answer>,
    /// The main culprit; `None` if it does not explain the answer.
    culprit: Option<String>,
    /// The causes of the gaps of a captured stream, or the cause of the worst spike of a matrix.
    causes: Vec<String>,
    /// The recommended changes: advice, as trusted HTML, and command.
    to_do: Vec<(String, String)>,
    keys: Vec<Key>,
    ladder: Vec<Rung<'a>>,
    more_uses: Vec<Rung<'a>>,
    program: Option<ProgramView>,
    /// The parts of the measurement that have their own sections.
    parts: Vec<Part>,
    blame: Option<BlameView>,
    comparisons: Vec<ComparisonView<'a>>,
    published: Option<PublishedView>,
    matrix: Option<MatrixView>,
    lines: &'a [Line<'a>],
    groups: Vec<Group>,
    summary: Table,
    charts: [Figure; 3],
    spikes: Figure,
    phases: Vec<PhaseView<'a>>,
    machine: Vec<Fact>,
    far: Option<FarView<'a>>,
    scenario: Vec<Fact>,
    granted: Vec<(String, String)>,
    open: Vec<FindingView<'a>>,
    others: Vec<FindingView<'a>>,
}

/// The parts of the measurement that have their own sections; empty if the series show everything.
fn parts(record: &Record) -> Vec<Part> {
    let mut parts = audio::sections(record);
    parts.extend(round_trip::sections(record));
    parts.extend(response::sections(record));
    parts.extend(interrupt::sections(record));
    parts.extend(stream::sections(record));
    parts.extend(capture::section(record));
    parts.extend(tails::section(record));
    parts
}

impl Page<'_> {
    /// True if at least one chart has something to draw, or there are series whose spikes can be listed.
    fn has_charts(&self) -> bool {
        !self.lines.is_empty() || self.charts.iter().any(|chart| !chart.svg.is_empty())
    }

    /// True if a phase could have had a load; the analysis of a capture has none.
    fn has_loads(&self) -> bool {
        self.record.capture.as_ref().is_none_or(|capture| capture.observer.is_some()) && !self.phases.is_empty()
    }

    /// True if something is known about the machine, or was changed on it.
    fn has_machine(&self) -> bool {
        !(self.machine.is_empty() && self.record.findings.is_empty() && self.record.settings.is_empty())
    }
}

/// The recommended changes: advice, as trusted HTML, and command.
fn to_do(record: &Record) -> Vec<(String, String)> {
    let all = crate::advice::of_run(record).into_iter().take(TO_DO);
    all.map(|(advice, command)| (text::with_code(&capitalized(&advice)), command)).collect()
}

/// The command of the next run: that of this one, with the options that the recommended changes name. Empty if one of the
/// changes is a whole command that measures.
fn next_command(record: &Record, changes: &[(String, String)]) -> String {
    if changes.iter().any(|(_, command)| command.starts_with("punctual ")) {
        return String::new();
    }
    let to_do = crate::blame::to_do(record);
    let remedies = to_do.iter().take(TO_DO).map(|to_do| to_do.account.remedy.as_str());
    with_advice(&record.command, remedies)
}

/// Renders the report of a run as one HTML document in UTF-8.
///
/// Accepts every record, including empty and odd ones. The same record always gives the same document.
#[must_use]
pub fn render(record: &Record) -> String {
    let shown = matrix::shown_in_charts(record);
    let lines = lines::lines(&shown);
    let headline = verdict::headline(record);
    let (ladder, more_uses) = verdict::ladder(record);
    let limits: Vec<_> = ladder.iter().map(|rung| rung.of).collect();
    let (open, others) = facts::findings(&record.findings);
    let host = record.machine.hostname.as_deref().unwrap_or("unnamed host");
    let changes = to_do(record);
    let page = Page {
        record,
        title: format!("{}: {host}, {}", headline.word, record.started_at),
        origin: Origin {
            host: record.machine.hostname.as_deref(),
            kernel: record.machine.kernel.as_deref(),
            preempt: record.machine.preempt.as_deref(),
            started_at: &record.started_at,
        },
        command: next_command(record, &changes),
        words: Words::of(record),
        ending: state_note(record),
        answers: verdict::answers(&ladder),
        causes: crate::terminal::capture::causes(record)
            .into_iter()
            .chain(crate::terminal::matrix::cause(record))
            .collect(),
        culprit: Some(record).filter(|record| crate::blame::explains(record)).and_then(crate::blame::headline),
        to_do: changes,
        keys: verdict::keys(record),
        ladder,
        matrix: matrix::view(record),
        more_uses,
        summary: facts::summary(record, &lines),
        charts: [
            histogram::figure("histogram", &lines, Words::of_charts(record)),
            percentiles::figure("percentiles", &lines, Words::of_charts(record), &limits, &compare::curves(record)),
            timeline::maxima(&shown, &lines),
        ],
        program: process::section(record),
        parts: parts(record),
        blame: blame::section(record, &lines::lines(record)),
        comparisons: compare::comparisons(record),
        published: compare::published(record),
        spikes: timeline::spikes(&shown, &lines, WORST),
        phases: facts::phases(&shown),
        machine: facts::machine(&record.machine),
        far: far::section(record),
        scenario: facts::scenario(&record.scenario, Words::of(record))
            .into_iter()
            .chain(facts::shielding(record.shielding.as_ref()))
            .collect(),
        granted: facts::granted(&lines),
        groups: lines::groups(&lines),
        lines: &lines,
        headline,
        open,
        others,
    };
    escape(page.render().expect("writing to a string does not fail, and the template has no other way to fail"))
}

//! The HTML report: one self-contained document that opens from a file, reads on paper, and works without a script.
//!
//! It loads nothing: style, script and charts stand in it, and its content policy forbids the rest. All text of the
//! record is escaped by the template, or by `svg` where it stands in a chart.
//!
//! | module | holds |
//! |---|---|
//! | `verdict` | headline, figures that stand out, ladder of uses |
//! | `histogram`, `percentiles`, `timeline` | the charts, each with its table |
//! | `worst` | the worst spikes as a table |
//! | `blame`, `waterfall` | who made the spikes: the ledger, and spikes as time lines |
//! | `campaign` | the report of a campaign, a document of its own |
//! | `process` | a user's own program, thread by thread |
//! | `against` | other records beside the run; published figures |
//! | `matrix` | the tables of a matrix |
//! | `far` | the far end of a measurement between two machines |
//! | `facts` | the other tables: series, loads, machine, settings |
//! | `noise` | what stands in for figures of wake-ups where a record is of gaps |
//! | `audio` | when periods of audio were done, and who was to blame for xruns |
//! | `round_trip` | what became of datagrams that were to come back |
//! | `stream` | the ends of a stream |
//! | `capture` | a capture of it |
//! | `lines` | colour, dash and name of each series |
//! | `figure`, `svg`, `text` | what all of them are made of |

mod against;
mod audio;
mod blame;
mod campaign;
mod capture;
mod facts;
mod far;
mod figure;
mod histogram;
mod lines;
mod matrix;
mod noise;
mod percentiles;
mod process;
mod round_trip;
mod stream;
mod svg;
mod text;
mod timeline;
mod verdict;
mod waterfall;
mod worst;

use askama::Template;
use record::Record;

pub use campaign::render_campaign;

use crate::words::Words;
use against::{Beside, PublishedView};
use audio::AudioView;
use blame::Blamed;
use facts::{Fact, FindingView, PhaseView};
use far::FarView;
use figure::{Figure, Table};
use lines::{Group, Line};
use matrix::MatrixView;
use process::ProgramView;
use round_trip::RoundTripView;
use stream::StreamView;
use verdict::{Answer, Headline, Key, Rung};

/// Spikes in the table of the worst.
const WORST: usize = 20;

/// The document, as the template sees it.
#[derive(Template)]
#[template(path = "report.html")]
struct Page<'a> {
    record: &'a Record,
    style: &'static str,
    script: &'static str,
    title: String,
    command: String,
    headline: Headline,
    /// What a spike of this record is: a late wake-up or a gap.
    spike: &'static str,
    ending: &'static str,
    answers: Vec<Answer>,
    keys: Vec<Key>,
    ladder: Vec<Rung<'a>>,
    more_uses: Vec<Rung<'a>>,
    program: Option<ProgramView>,
    audio: Vec<AudioView>,
    round_trips: Vec<RoundTripView>,
    streams: Vec<StreamView>,
    blamed: Option<Blamed>,
    beside: Vec<Beside<'a>>,
    published: Option<PublishedView>,
    matrix: Option<MatrixView>,
    lines: &'a [Line<'a>],
    groups: Vec<Group<'a>>,
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

/// The report of a run as one HTML document, UTF-8.
///
/// Every record can be shown, an empty or odd one too. The same record always gives the same document.
#[must_use]
pub fn render(record: &Record) -> String {
    let shown = matrix::of_interest(record);
    let lines = lines::lines(&shown);
    let headline = verdict::headline(record);
    let (ladder, more_uses) = verdict::ladder(record);
    let limits: Vec<_> = ladder.iter().map(|rung| rung.of).collect();
    let (open, others) = facts::findings(&record.findings);
    let host = record.machine.hostname.as_deref().unwrap_or("unnamed host");
    let page = Page {
        record,
        style: include_str!("../templates/report.css"),
        script: include_str!("../templates/report.js"),
        title: format!("{}: {host}, {}", headline.word, record.started_at),
        command: record::shell::command(&record.command),
        spike: Words::of(record).spike,
        ending: verdict::ending(record.state),
        answers: verdict::answers(&ladder),
        keys: verdict::keys(record),
        ladder,
        matrix: matrix::view(record),
        more_uses,
        summary: facts::summary(&lines),
        charts: [
            histogram::figure(&lines),
            percentiles::figure(&lines, &limits, &against::curves(record)),
            timeline::maxima(&shown, &lines),
        ],
        program: process::section(record),
        audio: audio::sections(record),
        round_trips: round_trip::sections(record),
        streams: stream::sections(record).into_iter().chain(capture::section(record)).collect(),
        blamed: blame::section(record, &lines::lines(record)),
        beside: against::beside(record),
        published: against::published(record),
        spikes: timeline::spikes(&shown, &lines, WORST),
        phases: facts::phases(&shown),
        machine: facts::machine(&record.machine),
        far: far::section(record),
        scenario: facts::scenario(&record.scenario)
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
    page.render().expect("writing to a string does not fail, and the template has no other way to fail")
}

//! Terminal output: pure functions of a record, a style and a width in columns.

mod answer;
mod audio;
pub(crate) mod campaign;
pub(crate) mod capture;
mod check;
mod compare;
mod far;
mod figures;
pub(crate) mod histogram;
mod interrupt;
mod ledger;
mod linuxcnc;
mod list;
pub(crate) mod machine;
pub(crate) mod matrix;
pub(crate) mod noise;
mod page;
mod plan;
mod presentation;
mod process;
mod proof;
mod published;
mod response;
mod round_trip;
pub(crate) mod series;
mod sound_loop;
mod spike;
mod stream;
pub(crate) mod table;
mod tails;
mod verdict;
mod versus;

use analysis::format_ns;
use record::visible::{self, Passes};
use record::{Finding, Reason, Record, grouped};

use crate::blame::ranked;
use crate::style::{Ink, Style};
use crate::words::{is_noise, state_note};
pub use answer::{
    CheckCommands, answer, blame_answer, blame_headline, campaign_answer, campaign_headline, campaign_opening,
    check_answer, findings_answer, headline, machine_headline, opening,
};
pub use check::check;
use ledger::Extent;
pub use list::entry;
pub use matrix::MatrixFigure;
use page::Page;

/// The output of bare `punctual`: the machine, findings, the lateness of each CPU, and the ladder of uses.
///
/// `width` is in columns. From 80 on, the layout is as intended; narrower output is wrapped more; below 24 columns,
/// lines exceed the width. The text ends with a line break. It contains no control characters except line breaks and,
/// if `style` allows, colour sequences.
#[must_use]
pub fn overview(record: &Record, style: &Style, width: usize) -> String {
    let mut page = Page::new(*style, width);
    if let Some(published) = &record.published {
        published::page(&mut page, record, published);
        return page.finish();
    }
    machine::facts(&mut page, record);
    machine::findings(&mut page, &record.findings);
    for phase in &record.phases {
        series::brief(&mut page, record, phase);
    }
    if record.phases.is_empty() {
        page.heading("Nothing was measured");
    }
    ledger::ledger(&mut page, record, Extent::Brief);
    verdict::ladder(&mut page, record);
    ending(&mut page, record);
    page.finish()
}

/// The output of `punctual measure timer` and `punctual show`: all figures of a run with their verdict.
///
/// For width and text, see [`overview`].
#[must_use]
pub fn summary(record: &Record, style: &Style, width: usize) -> String {
    let mut page = Page::new(*style, width);
    if let Some(published) = &record.published {
        published::page(&mut page, record, published);
        return page.finish();
    }
    if let Some(program) = &record.program {
        return process_summary(page, record, program);
    }
    if let Some(capture) = record.capture.as_ref().filter(|capture| capture.observer.is_none()) {
        capture::page(&mut page, record, capture);
        ending(&mut page, record);
        return page.finish();
    }
    if let Some(sound_loop) = &record.sound_loop {
        machine::facts(&mut page, record);
        sound_loop::page(&mut page, sound_loop);
        ending(&mut page, record);
        return page.finish();
    }
    if !record.cells.is_empty() {
        return matrix(record, &[MatrixFigure::Jitter], style, width);
    }
    series::run(&mut page, record);
    machine::facts(&mut page, record);
    far::section(&mut page, record);
    for phase in &record.phases {
        if is_noise(record) { noise::full(&mut page, record, phase) } else { series::full(&mut page, record, phase) }
    }
    if record.phases.is_empty() {
        page.heading("Nothing was measured");
    }
    cores(&mut page, record);
    capture::section(&mut page, record);
    ledger::ledger(&mut page, record, Extent::Short);
    ledger::spikes(&mut page, record, 10);
    tails::section(&mut page, record);
    audio::search(&mut page, record);
    compare::section(&mut page, record);
    verdict::ladder(&mut page, record);
    ending(&mut page, record);
    linuxcnc::section(&mut page, record);
    page.finish()
}

/// The comparison of a run with both cores; nothing for other runs.
fn cores(page: &mut Page, record: &Record) {
    if let Some(comparison) = analysis::cores::comparison(record) {
        page.heading("In-band and out-of-band");
        page.text(Ink::Plain, &comparison);
        page.table(&figures::of_cores(record));
    }
}

/// The output of `punctual measure process`, and of `punctual show` for its record.
fn process_summary(mut page: Page, record: &Record, program: &record::Program) -> String {
    machine::facts(&mut page, record);
    process::page(&mut page, record, program);
    ledger::ledger(&mut page, record, Extent::Short);
    ledger::spikes(&mut page, record, 10);
    tails::section(&mut page, record);
    compare::section(&mut page, record);
    ending(&mut page, record);
    page.finish()
}

/// The output of `punctual measure threads --matrix`: the tables of `figures`, and the recommended pair of CPUs.
///
/// For width and text, see [`overview`].
#[must_use]
pub fn matrix(record: &Record, figures: &[MatrixFigure], style: &Style, width: usize) -> String {
    let mut page = Page::new(*style, width);
    series::run(&mut page, record);
    machine::facts(&mut page, record);
    matrix::matrix(&mut page, record, figures);
    matrix::recommendation(&mut page, record);
    ledger::ledger(&mut page, record, Extent::Short);
    compare::section(&mut page, record);
    verdict::ladder(&mut page, record);
    ending(&mut page, record);
    linuxcnc::section(&mut page, record);
    page.finish()
}

/// The output of `punctual blame --full RECORD`: the whole ledger, and the worst spikes with their ranks for [`spike()`].
///
/// For width and text, see [`overview`].
#[must_use]
pub fn blame(record: &Record, style: &Style, width: usize) -> String {
    let mut page = Page::new(*style, width);
    ledger::ledger(&mut page, record, Extent::Full);
    ledger::spikes(&mut page, record, 20);
    ledger::evidence(&mut page, record);
    page.finish()
}

/// The output of `punctual blame RECORD --around N`: one spike as a time line.
///
/// `number` is the rank from [`ranked`]: 1 is the worst spike of the run. Returns `None` if the record has no such
/// spike. For width and text, see [`overview`].
#[must_use]
pub fn spike(record: &Record, number: usize, style: &Style, width: usize) -> Option<String> {
    let all = ranked(record);
    let wanted = *all.get(number.checked_sub(1)?)?;
    let mut page = Page::new(*style, width);
    spike::page(&mut page, wanted, all.len(), record.spikes_total());
    Some(page.finish())
}

/// The output of `punctual machine`: facts about the machine. `check` is the command that judges its settings, and
/// `full` the one that shows all facts, unless this does.
///
/// For width and text, see [`overview`].
#[must_use]
pub fn machine(record: &Record, check: &str, full: Option<&str>, style: &Style, width: usize) -> String {
    let mut page = Page::new(*style, width);
    machine::facts(&mut page, record);
    if full.is_none() {
        machine::more_facts(&mut page, &record.machine);
    }
    for (name, command) in [("check", Some(check)), ("more", full)] {
        if let Some(command) = command {
            page.command(name, machine::NAMES, command);
        }
    }
    page.finish()
}

/// The output of `punctual check --full`: all findings with their evidence and remedies.
///
/// For width and text, see [`overview`].
#[must_use]
pub fn findings(findings: &[Finding], style: &Style, width: usize) -> String {
    let mut page = Page::new(*style, width);
    machine::headline(&mut page, findings);
    machine::all_findings(&mut page, findings);
    page.finish()
}

/// The output of `punctual check --explain ID`.
///
/// For width and text, see [`overview`].
#[must_use]
pub fn finding_explained(finding: &Finding, subject: &str, source: &str, style: &Style, width: usize) -> String {
    let mut page = Page::new(*style, width);
    machine::explained(&mut page, finding, subject, source);
    page.finish()
}

/// The output of `punctual run`: the tables of a campaign, as far as it has run.
///
/// For width and text, see [`overview`].
#[must_use]
pub fn campaign(campaign: &record::Campaign, style: &Style, width: usize) -> String {
    let mut page = Page::new(*style, width);
    campaign::page(&mut page, campaign);
    page.finish()
}

/// The first sentence of the output of `punctual tune --prove`, in one line.
#[must_use]
pub fn proof_headline(proof: &record::Proof, style: &Style) -> String {
    let mut page = Page::new(*style, usize::MAX);
    proof::headline(&mut page, proof);
    page.finish()
}

/// The output of `punctual tune --prove`; with `full`, all figures of all changes.
///
/// For width and text, see [`overview`].
#[must_use]
pub fn proof(proof: &record::Proof, full: bool, style: &Style, width: usize) -> String {
    let mut page = Page::new(*style, width);
    proof::page(&mut page, proof, full);
    page.finish()
}

/// The first sentence of the output of `punctual compare`, in one line.
#[must_use]
pub fn versus_headline(versus: &record::Versus, style: &Style) -> String {
    let mut page = Page::new(*style, usize::MAX);
    versus::headline(&mut page, versus);
    page.finish()
}

/// The output of `punctual compare`; with `full`, all conditions.
///
/// For width and text, see [`overview`].
#[must_use]
pub fn versus(versus: &record::Versus, full: bool, style: &Style, width: usize) -> String {
    let mut page = Page::new(*style, width);
    versus::page(&mut page, versus, full);
    page.finish()
}

/// The output of `punctual compare --across`; with `quiet`, only the changes.
///
/// For width and text, see [`overview`].
#[must_use]
pub fn across(across: &record::versus::Across, quiet: bool, style: &Style, width: usize) -> String {
    let mut page = Page::new(*style, width);
    match quiet {
        true => versus::across_headline(&mut page, across),
        false => versus::across_page(&mut page, across),
    }
    page.finish()
}

/// The output of `punctual run --dry-run`: the scenarios of a campaign in order. `dir` is the folder of its records.
///
/// For width and text, see [`overview`].
#[must_use]
pub fn campaign_plan(campaign: &record::Campaign, dir: &str, style: &Style, width: usize) -> String {
    let mut page = Page::new(*style, width);
    plan::page(&mut page, campaign, dir);
    page.finish()
}

/// The reasons why a run is invalid, for the live view.
pub(crate) fn reasons(reasons: &[Reason], style: &Style, width: usize) -> String {
    let mut page = Page::new(*style, width);
    verdict::reasons(&mut page, reasons);
    page.finish()
}

/// The width of the terminal on standard output, at most 160 columns. If standard output is not a terminal, the width in
/// the environment variable COLUMNS, or 100.
#[must_use]
pub fn width() -> usize {
    let of_terminal = || rustix::termios::tcgetwinsize(visible::stdout(Passes::Text)).map(|size| size.ws_col.into());
    let of_environment = || std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let columns = of_terminal().ok().filter(|columns| *columns > 0).or_else(of_environment);
    columns.filter(|columns| *columns > 0).unwrap_or(100).min(160)
}

/// The end of the page, nearest to the prompt: caveats, the verdict, and reasons why the run is invalid.
fn ending(page: &mut Page, record: &Record) {
    verdict::caveats(page, &record.caveats);
    let remark = state_note(record);
    if !remark.is_empty() {
        page.gap();
        page.remark(&remark);
    }
    verdict::verdict(page, record.verdict.as_ref());
    verdict::validity(page, &record.validity);
}

/// A time, or a dash for none.
pub(crate) fn time(ns: Option<i64>) -> String {
    ns.map_or_else(|| "-".to_owned(), format_ns)
}

/// A plain cell.
pub(crate) fn cell(text: impl Into<String>) -> (Ink, String) {
    (Ink::Plain, text.into())
}

/// The cell of a count that is bad news if above 0.
pub(crate) fn count_cell(count: u64) -> (Ink, String) {
    (bad_if_any(count), grouped(count))
}

/// The colour of a count that is bad news if above 0.
pub(crate) fn bad_if_any(count: u64) -> Ink {
    if count > 0 { Ink::Bad } else { Ink::Plain }
}

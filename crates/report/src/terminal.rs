//! Results as text: pure functions of a record, a style and a width in columns.

mod against;
mod audio;
mod campaign;
pub(crate) mod capture;
mod check;
mod far;
pub(crate) mod histogram;
mod ledger;
mod machine;
pub(crate) mod matrix;
pub(crate) mod noise;
mod page;
mod plan;
mod process;
mod published;
mod round_trip;
pub(crate) mod series;
mod sound_loop;
mod spike;
mod stream;
pub(crate) mod table;
mod verdict;

use analysis::format_ns;
use record::{Reason, Record, State};

use crate::blame::ranked;
use crate::style::{Ink, Style};
use crate::words::is_noise;
pub use check::check;
use ledger::Extent;
pub use matrix::MatrixFigure;
use page::Page;

/// What bare `punctual` answers: the machine, what is wrong with it, how late each CPU was, and the ladder of uses.
///
/// `width` is the number of columns, 80 at least for the intended look. Narrower is wrapped tighter; below 24 columns,
/// lines run over the edge. The text ends in a line break and holds no control characters but line breaks and, where
/// `style` allows them, colours.
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

/// What `punctual measure timer` and `punctual show` answer: all figures of a run with their verdict.
///
/// Width and text are as for [`overview`].
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
    if let Some(told) = &record.sound_loop {
        machine::facts(&mut page, record);
        sound_loop::page(&mut page, told);
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
    capture::beside(&mut page, record);
    ledger::ledger(&mut page, record, Extent::Short);
    ledger::spikes(&mut page, record, 10);
    audio::search(&mut page, record);
    against::section(&mut page, record);
    verdict::ladder(&mut page, record);
    ending(&mut page, record);
    page.finish()
}

/// What `punctual measure process` answers, and `punctual show` of its record.
fn process_summary(mut page: Page, record: &Record, program: &record::Program) -> String {
    machine::facts(&mut page, record);
    process::page(&mut page, record, program);
    ledger::ledger(&mut page, record, Extent::Short);
    ledger::spikes(&mut page, record, 10);
    against::section(&mut page, record);
    ending(&mut page, record);
    page.finish()
}

/// What `punctual measure threads --matrix` answers: the tables of these figures, and the pair of CPUs to choose.
///
/// Width and text are as for [`overview`].
#[must_use]
pub fn matrix(record: &Record, figures: &[MatrixFigure], style: &Style, width: usize) -> String {
    let mut page = Page::new(*style, width);
    series::run(&mut page, record);
    machine::facts(&mut page, record);
    matrix::matrix(&mut page, record, figures);
    matrix::recommendation(&mut page, record);
    ledger::ledger(&mut page, record, Extent::Short);
    against::section(&mut page, record);
    verdict::ladder(&mut page, record);
    ending(&mut page, record);
    page.finish()
}

/// What `punctual blame RECORD` answers: the whole ledger, and the worst spikes with the numbers that [`spike()`] takes.
///
/// Width and text are as for [`overview`].
#[must_use]
pub fn blame(record: &Record, style: &Style, width: usize) -> String {
    let mut page = Page::new(*style, width);
    ledger::ledger(&mut page, record, Extent::Full);
    ledger::spikes(&mut page, record, 20);
    ledger::how(&mut page, record);
    page.finish()
}

/// What `punctual blame RECORD --around N` answers: one spike as a time line.
///
/// `number` counts as [`ranked`] does: 1 is the worst spike of the run. `None` where the record keeps no such spike.
/// Width and text are as for [`overview`].
#[must_use]
pub fn spike(record: &Record, number: usize, style: &Style, width: usize) -> Option<String> {
    let all = ranked(record);
    let wanted = *all.get(number.checked_sub(1)?)?;
    let mut page = Page::new(*style, width);
    spike::page(&mut page, wanted, all.len());
    Some(page.finish())
}

/// What `punctual machine` answers: the facts about a machine and everything that was found, with its remedy.
///
/// Width and text are as for [`overview`].
#[must_use]
pub fn machine(record: &Record, style: &Style, width: usize) -> String {
    let mut page = Page::new(*style, width);
    machine::facts(&mut page, record);
    machine::more_facts(&mut page, &record.machine);
    machine::all_findings(&mut page, &record.findings);
    page.finish()
}

/// What `punctual run` answers: the table of a campaign, as far as it has run.
///
/// Width and text are as for [`overview`].
#[must_use]
pub fn campaign(campaign: &record::Campaign, style: &Style, width: usize) -> String {
    let mut page = Page::new(*style, width);
    campaign::page(&mut page, campaign);
    page.finish()
}

/// What `punctual run --dry-run` answers: the scenarios of a campaign in their order; `dir` is the folder of its records.
///
/// Width and text are as for [`overview`].
#[must_use]
pub fn campaign_plan(campaign: &record::Campaign, dir: &str, style: &Style, width: usize) -> String {
    let mut page = Page::new(*style, width);
    plan::page(&mut page, campaign, dir);
    page.finish()
}

/// Reasons why a run is invalid, for those who watch it.
pub(crate) fn reasons(reasons: &[Reason], style: &Style, width: usize) -> String {
    let mut page = Page::new(*style, width);
    verdict::reasons(&mut page, reasons);
    page.finish()
}

/// The columns of the terminal that results go to, 160 at most; 100 where they go elsewhere.
#[must_use]
pub fn width() -> usize {
    let columns = rustix::termios::tcgetwinsize(std::io::stdout()).map_or(0, |size| size.ws_col);
    if columns == 0 { 100 } else { usize::from(columns).min(160) }
}

/// What stands nearest to the prompt: caveats, the verdict, and why a run is not to be trusted.
fn ending(page: &mut Page, record: &Record) {
    verdict::caveats(page, &record.caveats);
    let remark = match record.state {
        State::Complete => "",
        State::Partial => "This record is partial: the run is under way or was cut off. It lacks at most 5 s.",
        State::Interrupted => "The run was ended early. All samples up to then are in the record.",
    };
    if !remark.is_empty() {
        page.gap();
        page.remark(remark);
    }
    verdict::verdict(page, record.verdict.as_ref());
    verdict::validity(page, &record.validity);
}

/// A time, or a dash where there is none.
pub(crate) fn time(ns: Option<i64>) -> String {
    ns.map_or_else(|| "-".to_owned(), format_ns)
}

/// A cell without a meaning of its own.
pub(crate) fn cell(text: impl Into<String>) -> (Ink, String) {
    (Ink::Plain, text.into())
}

/// The cell of a count that is bad news unless it is 0.
pub(crate) fn count_cell(count: u64, text: String) -> (Ink, String) {
    (if count > 0 { Ink::Bad } else { Ink::Plain }, text)
}

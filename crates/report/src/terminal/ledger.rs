//! Who made the spikes: the ledger, and the worst spikes with their culprits.

use analysis::format_ns;
use record::{Account, Blame, BlameMode, Cause, Record};

use super::cell;
use super::page::{Note, Page};
use super::table::Table;
use crate::blame::{self, Ranked, ledger_total_ns, main_culprit, percent, plainly, strikes, total_spikes, unsigned};
use crate::remedy;
use crate::style::Ink;
use crate::words::{Words, is_noise};

/// How much of a ledger is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    /// The worst culprits in plain words.
    Brief,
    /// The worst culprits.
    Short,
    /// All of them.
    Full,
}

impl Extent {
    fn accounts(self) -> usize {
        match self {
            Self::Brief => 3,
            Self::Short => 8,
            Self::Full => usize::MAX,
        }
    }
}

/// The ledger with all that must be known beside it. Nothing where the run did not look, or had nothing to look at.
pub(super) fn ledger(page: &mut Page, record: &Record, extent: Extent) {
    let Some(blame) = &record.blame else { return };
    if total_spikes(record) == 0 && blame.ledger.is_empty() && extent != Extent::Full {
        return;
    }
    let words = Words::of(record);
    page.heading(&format!("Who made the {}s", words.spike));
    if let Some(headline) = blame::headline(record) {
        page.text(Ink::Plain, &headline);
        page.gap();
    } else if total_spikes(record) == 0 && blame.mode != BlameMode::Off {
        let above = format_ns(record.scenario.threshold_ns);
        let longer = if is_noise(record) { "gap was longer" } else { "wake-up was later" };
        page.text(Ink::Plain, &format!("No {longer} than {above}: there is none to blame."));
    }
    accounts(page, blame, extent, words);
    for remark in blame::remarks(blame, words) {
        if remark.doubt {
            let column = page.remark(&remark.text);
            page.remedy(column, &remark.command);
        } else {
            page.text(Ink::Quiet, &remark.text);
        }
    }
}

fn accounts(page: &mut Page, blame: &Blame, extent: Extent, words: &Words) {
    let total_ns = ledger_total_ns(blame);
    let (makers, besides): (Vec<&Account>, Vec<&Account>) = blame.ledger.iter().partition(|account| account.count > 0);
    let (shown, rest) = makers.split_at(makers.len().min(extent.accounts()));
    let mut table = Table::new(&[&format!("{}s", words.spike), "worst", "total", "share"]).figures();
    for account in shown {
        table.row(vec![
            (Ink::Title, account.count.to_string()),
            cell(format_ns(account.worst_ns)),
            cell(unsigned(account.total_ns)),
            cell(percent(account.total_ns, total_ns)),
        ]);
    }
    let causes: Vec<String> = shown.iter().map(|account| account.cause.in_full()).collect();
    let remedies = remedy::of_accounts(shown);
    let notes: Vec<Vec<Note>> =
        shown.iter().zip(&remedies).map(|(account, remedy)| notes(account, remedy, extent)).collect();
    page.table_beside(&table, "cause", &causes, (10, &notes));
    if !rest.is_empty() {
        page.text(Ink::Quiet, &format!("{} more: punctual blame RECORD shows all", rest.len()));
    }
    if !besides.is_empty() && extent != Extent::Brief {
        page.text(Ink::Quiet, &format!("Never the main cause: {}.", blame::in_a_line(&besides)));
    }
}

/// What stands below an account: where it struck, what it is in plain words, and what to do.
fn notes(account: &Account, remedy: &str, extent: Extent) -> Vec<Note> {
    let plain = if extent == Extent::Brief { plainly(&account.cause) } else { "" };
    let text = [&strikes(account), plain].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(". ");
    let (advice, command) = remedy::advice_and_command(remedy);
    let note = |text: &str, remedy: &str| Note { text: text.to_owned(), remedy: remedy.to_owned() };
    vec![note(&text, advice), note("", command)]
}

/// The worst `shown` spikes with their numbers and main culprits.
pub(super) fn spikes(page: &mut Page, record: &Record, shown: usize) {
    let mut worst = blame::ranked(record);
    if worst.is_empty() {
        return;
    }
    worst.truncate(shown);
    let above = format!("above {}", format_ns(record.scenario.threshold_ns));
    let Words { spike, lateness, .. } = Words::of(record);
    page.heading(&match total_spikes(record) {
        1 => format!("The one {spike} {above}"),
        total => format!("The worst of {total} {spike}s {above}"),
    });
    let mut table = Table::new(&["", lateness, "where", "after"]).words(2);
    for Ranked { number, series, spike } in &worst {
        table.row(vec![
            (Ink::Quiet, number.to_string()),
            cell(format_ns(spike.lateness_ns)),
            cell(format!("{}, {}", series.place(), series.phase)),
            cell(unsigned(spike.at_ns)),
        ]);
    }
    let culprits: Vec<_> = worst.iter().map(|ranked| main_culprit(ranked.spike, Cause::title)).collect();
    if culprits.iter().all(Option::is_none) {
        page.table(&table);
        return;
    }
    let culprits: Vec<String> = culprits.into_iter().map(|culprit| culprit.unwrap_or_else(|| "-".to_owned())).collect();
    page.table_beside(&table, "main culprit and its share", &culprits, (0, &[]));
}

/// How the culprits were found, and how to see more of a spike.
pub(super) fn how(page: &mut Page, record: &Record) {
    let Some(blame) = record.blame.as_ref().filter(|blame| blame.mode != BlameMode::Off) else { return };
    page.gap();
    page.text(Ink::Quiet, &blame::found_from(blame));
    if record.series.iter().any(|series| series.spikes.iter().any(|spike| !spike.timeline.is_empty())) {
        page.text(Ink::Quiet, "One spike as a time line, by its number: punctual blame RECORD --around 1");
    }
}

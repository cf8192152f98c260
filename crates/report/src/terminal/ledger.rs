//! The culprits of spikes: the ledger, and the worst spikes with their culprits.

use analysis::{format_ns, when};
use record::{Account, Blame, BlameMode, Cause, Record, grouped};

use super::cell;
use super::page::{Note, Page};
use super::table::Table;
use crate::blame::{
    self, Ranked, explanation, ledger_total_ns, main_culprit, occurrences, percent_in_column, total_spikes, unsigned,
};
use crate::remedy;
use crate::style::Ink;
use crate::words::Words;

/// The part of a ledger that is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    /// The worst culprits, with explanations.
    Brief,
    /// The worst culprits.
    Short,
    /// All culprits.
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

/// The ledger with its notes. Nothing if the run did not record culprits or had no spikes.
pub(super) fn ledger(page: &mut Page, record: &Record, extent: Extent) {
    let Some(blame) = &record.blame else { return };
    if total_spikes(record) == 0 && blame.ledger.is_empty() && extent != Extent::Full {
        return;
    }
    let words = Words::of(record);
    page.heading(&format!("Culprits of the {}s", words.spike));
    if let Some(headline) = blame::headline(record) {
        page.text(Ink::Plain, &headline);
        page.gap();
    } else if total_spikes(record) == 0 && blame.mode != BlameMode::Off {
        let above = format_ns(record.scenario.threshold_ns);
        let Words { item, later, .. } = words;
        page.text(Ink::Plain, &format!("No {item} was {later} than {above}, so there are no culprits."));
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
    let main_causes: Vec<&Account> = blame::main_causes(blame).collect();
    let others: Vec<&Account> = blame.ledger.iter().filter(|account| account.count == 0).collect();
    let (shown, rest) = main_causes.split_at(main_causes.len().min(extent.accounts()));
    let table = table_of(shown, total_ns, words);
    let causes: Vec<String> = shown.iter().map(|account| account.cause.in_full()).collect();
    let remedies = remedy::of_accounts(shown);
    let notes: Vec<Vec<Note>> =
        shown.iter().zip(&remedies).map(|(account, remedy)| notes(account, remedy, extent)).collect();
    page.table_with_texts(&table, "cause", &causes, (10, &notes));
    if !shown.is_empty() {
        let (title, spike) = (words.spikes_title(), words.spike);
        page.text(
            Ink::Quiet,
            &format!("{title} and worst: those with this main cause. Total and share: its time in all {spike}s."),
        );
    }
    if !rest.is_empty() {
        page.text(
            Ink::Quiet,
            &format!("{} more: `punctual blame --full` with the name of this record lists all", rest.len()),
        );
    }
    if !others.is_empty() && extent != Extent::Brief {
        page.text(Ink::Quiet, &format!("Never the main cause: {}.", blame::one_line(&others)));
    }
}

/// A row of figures for each account, without its name.
fn table_of(accounts: &[&Account], total_ns: u64, words: &Words) -> Table {
    let mut table = Table::new(&[&format!("{}s", words.spike), "worst", "total", "share"]).figures();
    for account in accounts {
        table.row(vec![
            (Ink::Title, grouped(account.count)),
            cell(format_ns(account.worst_ns)),
            cell(unsigned(account.total_ns)),
            cell(percent_in_column(account.total_ns, total_ns)),
        ]);
    }
    table
}

/// The first `count` causes in short, and the number of the others.
pub(super) fn in_short(page: &mut Page, record: &Record, count: usize) {
    let Some(blame) = &record.blame else { return };
    let mut causes: Vec<&Account> = blame::main_causes(blame).collect();
    let left_out = causes.len().saturating_sub(count);
    causes.truncate(count);
    let names: Vec<String> = causes.iter().map(|account| blame::in_short(&account.cause)).collect();
    page.gap();
    let table = table_of(&causes, ledger_total_ns(blame), Words::of(record));
    page.table_with_texts(&table, "main cause", &names, (0, &[]));
    if left_out > 0 {
        page.text(Ink::Quiet, &format!("and {left_out} more"));
    }
}

/// Notes below an account: its occurrences, an explanation of the cause, and the remedy.
fn notes(account: &Account, remedy: &str, extent: Extent) -> Vec<Note> {
    let plain = if extent == Extent::Brief { explanation(&account.cause) } else { "" };
    let text =
        [&occurrences(account), plain].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(". ");
    let (advice, command) = remedy::advice_and_command(remedy);
    let note = |text: &str, remedy: &str| Note { text: text.to_owned(), remedy: remedy.to_owned() };
    vec![note(&text, advice), note("", command)]
}

/// The worst `shown` spikes with their ranks and main culprits.
pub(super) fn spikes(page: &mut Page, record: &Record, shown: usize) {
    let mut worst = blame::ranked(record);
    worst.truncate(shown);
    if worst.is_empty() {
        return;
    }
    let above = format!("above {}", format_ns(record.scenario.threshold_ns));
    let Words { spike, lateness, .. } = Words::of(record);
    page.heading(&match total_spikes(record) {
        1 => format!("The only {spike} {above}"),
        total => format!("The worst of {} {spike}s {above}", grouped(total)),
    });
    let mut table = Table::new(&["", lateness, "where", "after"]).words(2);
    for Ranked { number, series, spike } in &worst {
        table.row(vec![
            (Ink::Quiet, number.to_string()),
            cell(format_ns(spike.lateness_ns)),
            cell(format!("{}, {}", series.place(), when(series))),
            cell(unsigned(spike.at_ns)),
        ]);
    }
    let culprits: Vec<_> = worst.iter().map(|ranked| main_culprit(ranked.spike, Cause::title)).collect();
    if culprits.iter().all(Option::is_none) {
        page.table(&table);
        return;
    }
    let culprits: Vec<String> = culprits.into_iter().map(|culprit| culprit.unwrap_or_else(|| "-".to_owned())).collect();
    page.table_with_texts(&table, "main culprit and its share", &culprits, (0, &[]));
}

/// The evidence used to find culprits, and the command that shows one spike.
pub(super) fn evidence(page: &mut Page, record: &Record) {
    let Some(blame) = record.blame.as_ref().filter(|blame| blame.mode != BlameMode::Off) else { return };
    page.gap();
    page.text(Ink::Quiet, &blame::evidence_source(blame));
    if record.series.iter().any(|series| series.spikes.iter().any(|spike| !spike.timeline.is_empty())) {
        let spike = Words::of(record).spike;
        page.text(Ink::Quiet, &format!("To show one {spike} as a time line, add `--around 1` to this command."));
    }
}

//! The culprits of spikes: the ledger with a bar and an occurrence strip per account, and time lines of the worst
//! spikes.

use std::fmt::Write;

use analysis::{float::to_usize, format_ns};
use record::{Account, Blame, Cause, Record, grouped};

use super::{
    colours::Colours,
    lines::Line,
    svg::{self, Axis, Path, number},
    text,
    waterfall::{self, Waterfall},
};
use crate::blame::{
    self, Ranked, Remark, explanation, ledger_total_ns, main_culprit, occurrences, percent_in_column, unsigned,
};
use crate::remedy;
use crate::words::{Words, sentence};

/// The number of accounts shown at once.
const LARGEST: usize = 5;
/// The number of accounts with an entry of their own; the rest is named in one line.
const ACCOUNTS: usize = 20;
/// The number of spikes with a time line.
const TIME_LINES: usize = 12;
/// Size of a bar.
const BAR: (f64, f64) = (200.0, 12.0);
/// Size of an occurrence strip.
const STRIP: (f64, f64) = (200.0, 26.0);

/// The section about culprits, as the template sees it.
pub struct BlameView {
    /// The first account in one line; empty if none is known.
    pub headline: String,
    /// Notes about the ledger.
    pub remarks: Vec<Remark>,
    /// The largest accounts, the largest total first.
    pub accounts: Vec<AccountView>,
    /// The next ones, which are folded.
    pub smaller: Vec<AccountView>,
    /// Causes without a full entry, in one line; can be empty.
    pub others: String,
    /// The worst spikes.
    pub spikes: Vec<SpikeView>,
    /// The evidence used to find culprits; empty if blame was off.
    pub from: String,
}

/// An account, as the template sees it.
pub struct AccountView {
    /// CSS class: its colour.
    pub class: String,
    /// The cause.
    pub title: String,
    /// Number, priority and similar in brackets; can be empty.
    pub details: String,
    /// CPUs, phases and period of the occurrences, and an explanation of the cause.
    pub text: String,
    /// The remedy: trusted HTML.
    pub advice: String,
    /// The command of the remedy; can be empty.
    pub command: String,
    /// The number of spikes.
    pub count: String,
    /// The largest of them.
    pub worst: String,
    /// Its total lateness.
    pub total: String,
    /// The total as a share of the lateness of all spikes.
    pub share: String,
    /// The share as a bar: trusted SVG.
    pub bar: String,
    /// Occurrences over the run: trusted SVG; empty if no spike in the record belongs to the account.
    pub when: String,
}

/// A spike with its time line.
pub struct SpikeView {
    /// The rank, 1 for the worst.
    pub number: usize,
    /// The lateness.
    pub late: String,
    /// Thread and phase.
    pub place: String,
    /// Its main culprit with its share.
    pub culprit: String,
    /// A doubt about the time line; can be empty.
    pub doubt: &'static str,
    /// The drawing with its table.
    pub waterfall: Waterfall,
}

/// The section; `None` for records without blame data.
pub fn section(record: &Record, lines: &[Line]) -> Option<BlameView> {
    let blame = record.blame.as_ref()?;
    let colours = Colours::of(blame);
    let ranked = blame::ranked(record);
    let mut main_causes: Vec<&Account> = blame::main_causes(blame).collect();
    let mut others: Vec<&Account> = blame.ledger.iter().filter(|account| account.count == 0).collect();
    others.extend(main_causes.iter().skip(ACCOUNTS));
    let strips = strips(record, lines, blame);
    let total_ns = ledger_total_ns(blame);
    main_causes.truncate(ACCOUNTS);
    let account = |(of, remedy): (&&Account, &String)| {
        let at = colours.position(&of.cause).unwrap_or_default();
        account(of, remedy, colours.class(&of.cause), total_ns, strips.get(at).map_or("", String::as_str))
    };
    let traced = ranked.iter().filter(|ranked| !ranked.spike.timeline.is_empty());
    let mut accounts: Vec<_> = main_causes.iter().zip(&remedy::of_accounts(&main_causes)).map(account).collect();
    let smaller = accounts.split_off(accounts.len().min(LARGEST));
    Some(BlameView {
        headline: blame::headline(record).unwrap_or_default(),
        remarks: blame::remarks(blame, Words::of(record)),
        accounts,
        smaller,
        others: blame::one_line(&others),
        spikes: traced.take(TIME_LINES).map(|ranked| spike(*ranked, &colours)).collect(),
        from: blame::evidence_source(blame),
    })
}

fn account(of: &Account, remedy: &str, class: String, total_ns: u64, when: &str) -> AccountView {
    let title = of.cause.title();
    let details = of.cause.in_full().strip_prefix(&title).unwrap_or_default().trim().to_owned();
    let (advice, command) = remedy::advice_and_command(remedy);
    let text = [occurrences(of), explanation(&of.cause).to_owned()];
    AccountView {
        class,
        title,
        details,
        text: text.iter().filter(|part| !part.is_empty()).map(|part| sentence(part)).collect::<Vec<_>>().join(" "),
        advice: text::with_code(&if command.is_empty() { sentence(advice) } else { advice.to_owned() }),
        command: command.to_owned(),
        count: grouped(of.count),
        worst: format_ns(of.worst_ns),
        total: unsigned(of.total_ns),
        share: percent_in_column(of.total_ns, total_ns),
        bar: bar(of.total_ns as f64 / total_ns.max(1) as f64),
        when: when.to_owned(),
    }
}

/// A share as a bar.
fn bar(share: f64) -> String {
    let (width, height) = BAR;
    let (middle, end) = (number(height / 2.0), number(2.0 + share.clamp(0.0, 1.0) * (width - 4.0)));
    format!(
        "<svg class=\"bar\" viewBox=\"0 0 {width} {height}\" aria-hidden=\"true\"><path class=\"track\" d=\"M2 {middle}H{}\"/>\
         <path class=\"part\" d=\"M2 {middle}H{end}\"/></svg>",
        number(width - 2.0)
    )
}

/// One strip per account: the run from left to right, one stroke per spike, higher for later ones.
fn strips(record: &Record, lines: &[Line], blame: &Blame) -> Vec<String> {
    let (width, height) = STRIP;
    let base = height - 2.0;
    let colours = Colours::of(blame);
    let all = || lines.iter().flat_map(|line| line.series.spikes.iter().map(move |spike| (line, spike)));
    let y = svg::lateness_axis(all().map(|(_, spike)| spike.lateness_ns), 10.0, base - 3.0, 1.0);
    let x = Axis { from: 2.0, to: width - 2.0, ..super::timeline::run_axis(record, lines) };
    // Draws only the highest stroke of each column.
    let mut columns = vec![vec![None::<i64>; to_usize(width) + 1]; blame.ledger.len()];
    for (line, spike) in all() {
        let Some(at) = spike.culprits.first().and_then(|main| colours.position(&main.cause)) else { continue };
        let column = &mut columns[at][to_usize(x.at(line.start_s + spike.at_ns as f64 / 1e9))];
        *column = (*column).max(Some(spike.lateness_ns));
    }
    let mut ends = String::new();
    for phase in &record.phases {
        let _ = write!(ends, "M{} {}V{}", number(x.at(phase.start_ns as f64 / 1e9)), number(base - 4.0), number(base));
    }
    let strip = |columns: Vec<Option<i64>>| {
        let mut strokes = Path::default();
        for (column, late_ns) in columns.into_iter().enumerate() {
            let Some(late_ns) = late_ns else { continue };
            strokes.move_to(column as f64, base).up_or_down(y.at(svg::decades(late_ns as f64, y.lo)));
        }
        if strokes.is_empty() {
            return String::new();
        }
        format!(
            "<svg class=\"bar when\" viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"occurrences over the run\">\
             <path class=\"track\" d=\"M2 {base}H{}\"/><path class=\"axis\" d=\"{ends}\"/>\
             <path class=\"strikes\" d=\"{}\"/></svg>",
            number(width - 2.0),
            strokes.d()
        )
    };
    columns.into_iter().map(strip).collect()
}

fn spike(ranked: Ranked, colours: &Colours) -> SpikeView {
    let Ranked { number, series, spike } = ranked;
    SpikeView {
        number,
        late: format_ns(spike.lateness_ns),
        place: super::lines::name(series),
        culprit: main_culprit(spike, Cause::title).unwrap_or_default(),
        doubt: blame::evidence_note(spike.evidence),
        waterfall: waterfall::draw(ranked, colours),
    }
}

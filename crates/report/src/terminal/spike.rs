//! One spike as a time line: causes on the CPU, from shortly before the deadline to the wake-up.

use analysis::{float::to_usize, format_ns};
use record::{Evidence, Spike, grouped};

use super::page::Page;
use crate::blame::{Ranked, evidence_note, percent_in_column, unsigned};
use crate::style::{Ink, Spans};
use crate::timeline::{Part, Unit, drawn_from_ns, parts, sum_ns};
use crate::words::{Words, capitalized};

/// Least width of a bar between figures and cause; with less space, the bar gets its own line.
const BAR_LEAST: usize = 12;
/// Largest width of a bar.
const BAR_MOST: usize = 80;
/// Columns that a cause needs right of a bar.
const CAUSE: usize = 26;

/// The page of one spike out of those that the record contains, `stored`; the run `counted` them all.
pub(super) fn page(page: &mut Page, ranked: Ranked, stored: usize, counted: u64) {
    let Ranked { number, series, spike } = ranked;
    let (late, place) = (format_ns(spike.lateness_ns), series.place());
    let (phase, after) = (analysis::when(series), unsigned(spike.at_ns));
    let words = Words::of_series(series);
    let title = capitalized(words.spike);
    let (stored, counted) = (grouped(stored as u64), grouped(counted));
    let of = if stored == counted { stored } else { format!("{stored} stored, {counted} counted") };
    if words.is_periodic {
        page.heading(&format!("{title} {number} of {of}: {late} late on {place}, {phase}"));
        page.text(Ink::Quiet, &format!("Deadline: {after} after the first deadline of its series."));
    } else {
        page.heading(&format!("{title} {number} of {of}: {late} on {place}, {phase}"));
        page.text(Ink::Quiet, &format!("Started {after} after the start of its series."));
    }
    if let Some(split) = spike.split {
        let (irq, thread) = (unsigned(split.irq_ns), unsigned(split.thread_ns));
        page.text(
            Ink::Quiet,
            &format!(
                "The kernel reports: the timer interrupt ran {irq} after the deadline, the thread {thread} after it."
            ),
        );
    }
    page.gap();
    let parts = parts(spike);
    if parts.is_empty() {
        culprits(page, spike, words);
    } else {
        waterfall(page, spike, &parts, words);
    }
    let evidence = evidence_note(spike.evidence);
    if !evidence.is_empty() {
        page.remark(evidence);
    }
}

/// The culprits of a spike without a time line.
fn culprits(page: &mut Page, spike: &Spike, words: &Words) {
    if spike.culprits.is_empty() {
        page.text(Ink::Plain, "No events were recorded around this spike, so its culprit is unknown.");
    }
    for culprit in &spike.culprits {
        let share = percent_in_column(culprit.ns, spike.lateness_ns.unsigned_abs());
        page.after(
            &vec![(Ink::Plain, format!("{:>8}  {share:>7}  ", unsigned(culprit.ns)))],
            Ink::Plain,
            &culprit.cause.in_full(),
        );
    }
    if matches!(spike.evidence, Evidence::Trace | Evidence::Incomplete) {
        let spike = words.spike;
        page.text(Ink::Quiet, &format!("The record has time lines only of the worst {spike}s of each series."));
    }
}

/// The widths and scale that all lines of a time line share.
struct Columns {
    unit: Unit,
    start: usize,
    length: usize,
    /// Width of the bars.
    bar: usize,
    /// True if a bar fits between figures and cause.
    inline: bool,
    /// The range of the bars, ns after the deadline.
    from_ns: i64,
    to_ns: i64,
}

impl Columns {
    fn new(spike: &Spike, parts: &[Part], width: usize) -> Self {
        let unit = Unit::of(spike.lateness_ns);
        let widest =
            |text: &dyn Fn(&Part) -> String| parts.iter().map(|part| text(part).len()).max().unwrap_or_default();
        let start = widest(&|part| unit.show(part.start_ns)).max("start".len());
        let length = widest(&|part| unit.length(part.start_ns, part.end_ns)).max(unit.show(spike.lateness_ns).len());
        let length = length.max("length".len());
        // Two spaces after each column, and 7 columns for the share.
        let left = width.saturating_sub(start + length + 7 + 4 * 2);
        let cause = widest(&|part| part.cause.in_full());
        let bar = left.saturating_sub(cause).max(left / 2).min(left.saturating_sub(CAUSE)).min(BAR_MOST);
        let inline = bar >= BAR_LEAST;
        let bar = if inline { bar } else { width.clamp(BAR_LEAST, BAR_MOST) };
        let from_ns = drawn_from_ns(parts, spike.lateness_ns);
        Self { unit, start, length, bar, inline, from_ns, to_ns: spike.lateness_ns.max(1) }
    }

    /// The column of a time within the bar.
    fn at(&self, ns: i64) -> usize {
        let (span, into) = (self.to_ns.abs_diff(self.from_ns), ns.max(self.from_ns).abs_diff(self.from_ns));
        to_usize((into as f64 / span as f64 * self.bar as f64).round())
    }

    fn figures(&self, start: &str, length: &str, share: &str) -> String {
        format!("{start:>0$}  {length:>1$}  {share:>7}  ", self.start, self.length)
    }

    /// The marks of the deadline and the wake-up, above the bars.
    fn marks(&self, words: &Words) -> String {
        let (deadline, awake) = words.marks;
        let at = self.at(0).min(self.bar.saturating_sub(deadline.len() + awake.len() + 1));
        format!("{:at$}{deadline}{awake:>1$}", "", self.bar.saturating_sub(at + deadline.len()))
    }

    /// The bar of a part: spaces, the part, spaces.
    fn bar(&self, part: &Part, full: &str) -> [String; 3] {
        let from = self.at(part.start_ns).min(self.bar - 1);
        let to = self.at(part.end_ns).clamp(from + 1, self.bar);
        [" ".repeat(from), full.repeat(to - from), " ".repeat(self.bar - to)]
    }

    /// Writes a line: figures, the bar and the cause.
    fn line(&self, page: &mut Page, (ink, figures): (Ink, String), bar: Spans, cause: &str) {
        if self.inline {
            let drawn: usize = bar.iter().map(|(_, text)| text.chars().count()).sum();
            let blanks = self.bar.saturating_sub(drawn) + 2;
            let line = [vec![(ink, figures)], bar, vec![(Ink::Plain, " ".repeat(blanks))]].concat();
            page.after(&line, ink, cause);
        } else {
            page.after(&vec![(ink, figures)], ink, cause);
            if !bar.is_empty() {
                page.line(&bar);
            }
        }
    }
}

fn waterfall(page: &mut Page, spike: &Spike, parts: &[Part], words: &Words) {
    let columns = Columns::new(spike, parts, page.inner_width());
    let late_ns = spike.lateness_ns.unsigned_abs();
    let longest_ns = parts.iter().filter(|part| !part.is_before()).map(Part::length_ns).max();
    page.text(Ink::Quiet, &format!("All times in {}, relative to the {}.", columns.unit.name, words.start));
    let heading = (Ink::Quiet, columns.figures("start", "length", "share"));
    columns.line(page, heading, vec![(Ink::Quiet, columns.marks(words))], "cause");
    for part in parts {
        let before = part.is_before();
        let share = if before { String::new() } else { percent_in_column(part.length_ns(), late_ns) };
        let length = columns.unit.length(part.start_ns, part.end_ns);
        let (ink, bar_ink) = match before {
            true => (Ink::Quiet, Ink::Quiet),
            false if Some(part.length_ns()) == longest_ns => (Ink::Plain, Ink::Bad),
            false => (Ink::Plain, Ink::Accent),
        };
        let full = match (before, page.style.unicode) {
            (true, true) => "░",
            (true, false) => ".",
            (false, true) => "█",
            (false, false) => "#",
        };
        let [left, bar, right] = columns.bar(part, full);
        let bar = vec![(Ink::Plain, left), (bar_ink, bar), (Ink::Plain, right)];
        let figures = columns.figures(&columns.unit.show(part.start_ns), &length, &share);
        columns.line(page, (ink, figures), bar, &part.cause.in_full());
    }
    let sum = sum_ns(parts);
    let length = columns.unit.length(0, i64::try_from(sum).unwrap_or(i64::MAX));
    let figures = columns.figures("sum", &length, &percent_in_column(sum, late_ns));
    let sum_of = match words.lateness {
        lateness if sum == late_ns => format!("the {lateness}"),
        lateness => format!("of the {lateness}; the time line does not cover the rest"),
    };
    columns.line(page, (Ink::Title, figures), Spans::new(), &sum_of);
}

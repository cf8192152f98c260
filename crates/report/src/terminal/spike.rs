//! One spike as a time line: what had the CPU, from a little before the deadline to the wake-up.

use analysis::format_ns;
use record::{Evidence, Spike};

use super::page::Page;
use crate::blame::{Ranked, percent, unsigned};
use crate::style::{Ink, Spans};
use crate::timeline::{Part, Unit, drawn_from_ns, parts, sum_ns};
use crate::words::Words;

/// A bar between figures and cause is at least so wide; with less room it stands on a line of its own.
const BAR_LEAST: usize = 12;
/// No bar is wider.
const BAR_MOST: usize = 80;
/// Columns that a cause needs beside a bar.
const CAUSE: usize = 26;

/// The page of one spike out of `of`.
pub(super) fn page(page: &mut Page, ranked: Ranked, of: usize) {
    let Ranked { number, series, spike } = ranked;
    let (late, place) = (format_ns(spike.lateness_ns), series.place());
    let (phase, after) = (&series.phase, unsigned(spike.at_ns));
    if series.kind.noise().is_some() {
        page.heading(&format!("Gap {number} of {of}: {late} on {place}, {phase}"));
        page.text(Ink::Quiet, &format!("It began {after} after its series."));
    } else {
        page.heading(&format!("Spike {number} of {of}: {late} late on {place}, {phase}"));
        page.text(Ink::Quiet, &format!("The deadline was {after} after the first of its series."));
    }
    if let Some(split) = spike.split {
        let (irq, thread) = (unsigned(split.irq_ns), unsigned(split.thread_ns));
        page.text(
            Ink::Quiet,
            &format!(
                "By the kernel's own account the timer's interrupt ran {irq} after it, the thread {thread} after it."
            ),
        );
    }
    page.gap();
    let parts = parts(spike);
    if parts.is_empty() {
        culprits(page, spike);
    } else {
        waterfall(page, spike, &parts, Words::of_series(series));
    }
    let evidence = match spike.evidence {
        Evidence::Incomplete => "Events of this time, or before it, are missing: the time line may be incomplete.",
        Evidence::Counters => "From counters before and after the spike, not from a trace: a likely culprit.",
        Evidence::Trace | Evidence::None => "",
    };
    if !evidence.is_empty() {
        page.remark(evidence);
    }
}

/// The shares of a spike that has no time line.
fn culprits(page: &mut Page, spike: &Spike) {
    if spike.culprits.is_empty() {
        page.text(Ink::Plain, "Nothing was looked at around this spike: its culprit is not known.");
    }
    for culprit in &spike.culprits {
        let share = percent(culprit.ns, spike.lateness_ns.unsigned_abs());
        page.beside(
            &vec![(Ink::Plain, format!("{:>8}  {share:>7}  ", unsigned(culprit.ns)))],
            Ink::Plain,
            &culprit.cause.in_full(),
        );
    }
}

/// The lengths and places that all lines of a time line share.
struct Columns {
    unit: Unit,
    start: usize,
    length: usize,
    /// Width of the bars.
    bar: usize,
    /// Whether there is room for a bar between figures and cause.
    inline: bool,
    /// What the bars span, ns after the deadline.
    from_ns: i64,
    to_ns: i64,
}

impl Columns {
    fn new(spike: &Spike, parts: &[Part], room: usize) -> Self {
        let unit = Unit::of(spike.lateness_ns);
        let widest =
            |text: &dyn Fn(&Part) -> String| parts.iter().map(|part| text(part).len()).max().unwrap_or_default();
        let start = widest(&|part| unit.show(part.start_ns)).max("start".len());
        let length = widest(&|part| unit.length(part.start_ns, part.end_ns)).max(unit.show(spike.lateness_ns).len());
        let length = length.max("length".len());
        // Two blanks behind each column, and a share in 7.
        let left = room.saturating_sub(start + length + 7 + 4 * 2);
        let cause = widest(&|part| part.cause.in_full());
        let bar = left.saturating_sub(cause).max(left / 2).min(left.saturating_sub(CAUSE)).min(BAR_MOST);
        let inline = bar >= BAR_LEAST;
        let bar = if inline { bar } else { room.clamp(BAR_LEAST, BAR_MOST) };
        let from_ns = drawn_from_ns(parts, spike.lateness_ns);
        Self { unit, start, length, bar, inline, from_ns, to_ns: spike.lateness_ns.max(1) }
    }

    /// The column of a bar where a time lies.
    fn at(&self, ns: i64) -> usize {
        let (span, into) = (self.to_ns.abs_diff(self.from_ns), ns.max(self.from_ns).abs_diff(self.from_ns));
        (into as f64 / span as f64 * self.bar as f64).round() as usize
    }

    fn figures(&self, start: &str, length: &str, share: &str) -> String {
        format!("{start:>0$}  {length:>1$}  {share:>7}  ", self.start, self.length)
    }

    /// Where the deadline and the wake-up lie, above the bars.
    fn marks(&self, words: &Words) -> String {
        let (deadline, awake) = words.marks;
        let at = self.at(0).min(self.bar.saturating_sub(deadline.len() + awake.len() + 1));
        format!("{:at$}{deadline}{awake:>1$}", "", self.bar.saturating_sub(at + deadline.len()))
    }

    /// The bar of a part: blanks, the part itself, blanks.
    fn bar(&self, part: &Part, full: &str) -> [String; 3] {
        let from = self.at(part.start_ns).min(self.bar - 1);
        let to = self.at(part.end_ns).clamp(from + 1, self.bar);
        [" ".repeat(from), full.repeat(to - from), " ".repeat(self.bar - to)]
    }

    /// A line of the time line: figures, the bar and the cause.
    fn line(&self, page: &mut Page, (ink, figures): (Ink, String), bar: Spans, cause: &str) {
        if self.inline {
            let drawn: usize = bar.iter().map(|(_, text)| text.chars().count()).sum();
            let blanks = self.bar.saturating_sub(drawn) + 2;
            let line = [vec![(ink, figures)], bar, vec![(Ink::Plain, " ".repeat(blanks))]].concat();
            page.beside(&line, ink, cause);
        } else {
            page.beside(&vec![(ink, figures)], ink, cause);
            if !bar.is_empty() {
                page.line(&bar);
            }
        }
    }
}

fn waterfall(page: &mut Page, spike: &Spike, parts: &[Part], words: &Words) {
    let columns = Columns::new(spike, parts, page.room());
    let late_ns = spike.lateness_ns.unsigned_abs();
    let longest_ns = parts.iter().filter(|part| !part.is_before()).map(Part::length_ns).max();
    page.text(Ink::Quiet, &format!("All times in {}, from the {} on.", columns.unit.name, words.begin));
    let heading = (Ink::Quiet, columns.figures("start", "length", "share"));
    columns.line(page, heading, vec![(Ink::Quiet, columns.marks(words))], "what had the CPU");
    for part in parts {
        let before = part.is_before();
        let share = if before { String::new() } else { percent(part.length_ns(), late_ns) };
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
    let figures = columns.figures("sum", &length, &percent(sum, late_ns));
    let sum_of = match words.lateness {
        lateness if sum == late_ns => format!("the {lateness}"),
        lateness => format!("of the {lateness}; the rest is not in the time line"),
    };
    columns.line(page, (Ink::Title, figures), Spans::new(), &sum_of);
}

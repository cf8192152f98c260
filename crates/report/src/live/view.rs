//! The live view, drawn from the record and the progress onto a buffer.

use std::cmp::Reverse;

use analysis::{Profile, SoFar, format_duration, format_ns};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::{LineGauge, Widget};
use record::{Record, Series, Tail};

use super::{Progress, running, time_left};
use crate::style::{Ink, Spans};
use crate::terminal::histogram::{Bars, Scale, short_count};
use crate::terminal::noise::lost_by;
use crate::terminal::table::Table;
use crate::terminal::{bad_if_any, cell, time};
use crate::words::Words;
use crate::{blame, tails};
use record::visible::one_line;

/// The smallest terminal for the view, columns and rows.
const SMALLEST: (u16, u16) = (40, 8);
/// Rows of the view, if the terminal has enough.
const ROWS: std::ops::RangeInclusive<u16> = 16..=23;
/// Rows of title, bar and table headings.
const HEAD: u16 = 3;
/// Rows of the verdicts so far, the main cause, the tail, and the keys.
const ANSWER: u16 = 6;
/// Columns of the table without the history, and the shortest and longest history, in windows of a second.
const FIGURES: u16 = 44;
const HISTORY: std::ops::RangeInclusive<u16> = 8..=60;
/// Rows reserved for the histogram with its axis.
const HISTOGRAM: u16 = 5;
/// Columns left of the histogram.
const GUTTER: u16 = 7;
/// Columns of the labels of the verdicts, and of those of the explanation.
const LABEL: usize = 9;
const LONG_LABEL: usize = 13;

/// The size of the view on a terminal of `size` with `cpus` CPUs; `None` if the terminal is too small.
pub(super) fn fit((columns, rows): (u16, u16), cpus: usize) -> Option<(u16, u16)> {
    let wanted = (HEAD + ANSWER + HISTOGRAM + 2).saturating_add(cpus.try_into().unwrap_or(u16::MAX));
    let wanted = wanted.clamp(*ROWS.start(), *ROWS.end());
    // One row stays free for the cursor.
    (columns >= SMALLEST.0 && rows >= SMALLEST.1).then(|| (columns, wanted.min(rows - 1)))
}

/// All that the view shows.
pub(super) struct View<'a> {
    pub record: &'a Record,
    pub progress: &'a Progress,
    /// The uses, from the least to the most demanding one.
    pub uses: &'a [(Profile, SoFar)],
    /// The time without a stall that the most demanding use without late cycles still needs for PASS, ns.
    pub left_ns: Option<u64>,
    /// The larger values to expect by the current phase.
    pub tail: Option<&'a Tail>,
    /// True if the view reads keys.
    pub has_keys: bool,
    pub is_paused: bool,
    pub is_helping: bool,
    pub unicode: bool,
}

impl View<'_> {
    /// Draws the view over all of `buffer`. A small one shows only the first parts.
    pub(super) fn draw(&self, buffer: &mut Buffer) {
        let Self { record, progress, unicode, .. } = *self;
        let area = buffer.area;
        let all = running(record, progress);
        let foot = u16::from(self.has_keys && area.height > HEAD + 1);
        let height = area.height - foot;
        let mut y = 0;
        let mut put = |buffer: &mut Buffer, spans: &Spans| {
            if y < height {
                buffer.set_line(0, y, &line(spans), area.width);
                y += 1;
            }
        };
        put(buffer, &self.title(area.width));
        put(buffer, &Spans::new());
        let help = if self.is_helping { help(area.width) } else { Vec::new() };
        let answer: Vec<Spans> = self
            .answer()
            .into_iter()
            .flat_map(|(ink, label, text)| labelled(ink, label, LABEL, &text, area.width))
            .collect();
        // An explanation that has no space below the table replaces what the run has shown, and then the table.
        let below = |above: usize| usize::from(height).saturating_sub(above) >= help.len();
        let table_rows = 1 + all.len();
        let has_table = help.is_empty() || below(2 + table_rows);
        let answer = if help.is_empty() || below(2 + table_rows + answer.len()) { answer } else { Vec::new() };
        let rows = height.saturating_sub(HEAD + 1);
        for spans in answer.iter().take(rows.into()) {
            put(buffer, spans);
        }
        let answered = u16::try_from(answer.len()).unwrap_or(u16::MAX);
        let rows = height.saturating_sub(HEAD + HISTOGRAM).saturating_sub(answered).max(1);
        if has_table {
            let table = table(&all, rows.into(), area.width, unicode);
            for spans in table.lines(area.width.into()).iter().take(1 + all.len().min(rows.into())) {
                put(buffer, spans);
            }
        }
        help.iter().for_each(|spans| put(buffer, spans));
        let left = Rect { y, height: height.saturating_sub(y), ..area };
        if help.is_empty() && left.height > 0 {
            histogram(buffer, left, &all, unicode);
        }
        if area.height > 1 {
            bar(buffer, Rect { y: 1, height: 1, ..area }, progress, unicode);
        }
        if foot > 0 {
            buffer.set_line(0, height, &line(&self.keys(area.width)), area.width);
        }
    }

    /// The part of the run, shortened to this width.
    fn title(&self, width: u16) -> Spans {
        let Progress { phase_count, phase_index, phase, .. } = self.progress;
        let part = match phase_count {
            0 | 1 => String::new(),
            count => format!(", part {} of {count}", phase_index + 1),
        };
        let title = format!("punctual{part}: {}", one_line(phase));
        let width = usize::from(width);
        if title.chars().count() <= width {
            return vec![(Ink::Title, title)];
        }
        let mark = if self.unicode { "…" } else { "..." };
        let kept: String = title.chars().take(width.saturating_sub(mark.chars().count())).collect();
        vec![(Ink::Title, format!("{}{mark}", kept.trim_end()))]
    }

    /// What the run has shown so far, with its label: the uses, and the main cause of late wake-ups.
    fn answer(&self) -> Vec<(Ink, &'static str, String)> {
        let of =
            |wanted: SoFar| self.uses.iter().filter(move |(_, so_far)| *so_far == wanted).map(|(profile, _)| profile);
        let mut lines = Vec::new();
        if let Some(last) = of(SoFar::NoneLate).next_back() {
            let (count, all) = (of(SoFar::NoneLate).count(), self.uses.len());
            let up_to = match all {
                1 => last.title.clone(),
                _ => format!("{count} of {all} uses, up to {}", last.title),
            };
            let text = format!("none late: {up_to}{}", self.left_ns.map_or_else(String::new, to_pass));
            lines.push((Ink::Good, "so far", text));
        }
        if let Some(first) = of(SoFar::SomeLate).next() {
            lines.push((Ink::Doubt, "unsure", with_more(first, of(SoFar::SomeLate).count())));
        }
        if let Some(first) = of(SoFar::TooLate).next() {
            lines.push((Ink::Bad, "no", with_more(first, of(SoFar::TooLate).count())));
        }
        let blame = self.record.blame.as_ref();
        if let Some((blame, main)) = blame.and_then(|blame| Some((blame, blame::main_causes(blame).next()?))) {
            let share = blame::percent(main.total_ns, blame::ledger_total_ns(blame));
            lines.push((Ink::Accent, "why", format!("{share} {}", blame::in_short(&main.cause))));
        }
        lines.extend(self.tail.and_then(tails::so_far).map(|text| (Ink::Quiet, "tail", text)));
        lines
    }

    /// The keys, in short on a narrow terminal.
    fn keys(&self, width: u16) -> Spans {
        let (pause, briefly) =
            if self.is_paused { ("p continue (paused)", "p continue") } else { ("p pause the view", "p pause") };
        let help = if self.is_helping { "? histogram" } else { "? explain" };
        let keys = format!("q finish now   {pause}   {help}");
        let fits = keys.len() <= width.into();
        vec![(Ink::Quiet, if fits { keys } else { format!("q finish  {briefly}  {help}") })]
    }
}

/// The least demanding of `count` uses with its limit.
fn with_more(first: &Profile, count: usize) -> String {
    let more = match count {
        1 => String::new(),
        2 => " and 1 more demanding use".to_owned(),
        count => format!(" and {} more demanding uses", count - 1),
    };
    format!("{} (limit {}){more}", first.title, format_ns(first.limit_ns))
}

/// Explains the parts of the view.
fn help(width: u16) -> Vec<Spans> {
    const LINES: [(&str, &str); 8] = [
        ("so far, no", "uses without late cycles, and with too many of them"),
        ("why", "the main cause of late wake-ups, with its share of the lateness"),
        ("tail", "larger values to expect, at 95 %"),
        ("worst", "the largest of this phase"),
        ("recent", "the largest lateness of the last one to two seconds"),
        ("missed", "deadlines that passed, and lost answers"),
        ("history", "the largest lateness of each second, from 1 us to 10 ms"),
        ("q", "ends the run now and prints its results; Ctrl-C does, too"),
    ];
    LINES.iter().flat_map(|(label, text)| labelled(Ink::Plain, label, LONG_LABEL, text, width)).collect()
}

/// Lines of this width with the label in its column of `indent` columns, and the text beside it.
fn labelled(ink: Ink, label: &str, indent: usize, text: &str, width: u16) -> Vec<Spans> {
    let space = usize::from(width).saturating_sub(indent).max(1);
    let mut texts: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match texts.last_mut() {
            Some(last) if last.chars().count() + 1 + word.chars().count() <= space => last.extend([" ", word]),
            _ => texts.push(word.to_owned()),
        }
    }
    let labels = std::iter::once(label).chain(std::iter::repeat(""));
    texts
        .into_iter()
        .zip(labels)
        .map(|(text, label)| vec![(ink, format!("{label:<indent$}")), (Ink::Plain, text)])
        .collect()
}

/// The progress bar with the remaining time.
fn bar(buffer: &mut Buffer, area: Rect, progress: &Progress, unicode: bool) {
    let (Some(total_ns), Some(left)) = (progress.total_ns, time_left(progress)) else {
        let text = format!("{} so far", format_duration(progress.elapsed_ns));
        buffer.set_line(area.x, area.y, &Line::raw(text), area.width);
        return;
    };
    let (done, remaining) = if unicode { ("━", "─") } else { ("#", "-") };
    let ratio = progress.elapsed_ns as f64 / total_ns.max(1) as f64;
    LineGauge::default()
        .ratio(ratio.clamp(0.0, 1.0))
        .label(if progress.decides { format!("{left} to PASS") } else { format!("{left} left") })
        .filled_symbol(done)
        .unfilled_symbol(remaining)
        .filled_style(look(Ink::Accent))
        .unfilled_style(look(Ink::Quiet))
        .render(area, buffer);
}

/// One row per CPU. If there are too many, the worst CPUs and one row for the others. The most important columns are at
/// the left, where a narrow terminal still shows them.
fn table(all: &[&Series], rows: usize, width: u16, unicode: bool) -> Table {
    let words = Words::of_all(all.iter().copied());
    let has_one_kind = all.iter().all(|series| Words::of_series(series) == words);
    let items = if has_one_kind { format!("{}s", words.item) } else { "samples".to_owned() };
    let mut headings = match words.is_periodic {
        false => vec!["CPU", "longest", "recent", "lost", &items],
        true => vec!["CPU", "worst", "recent", "missed", "samples"],
    };
    let windows = width.saturating_sub(FIGURES).min(*HISTORY.end());
    let has_history = windows >= *HISTORY.start();
    if has_history {
        headings.push("history");
    }
    let mut table = Table::new(&headings).words(5);
    let row = |name: String, all: &[&Series]| {
        let mut cells = row(name, all);
        cells.extend(has_history.then(|| (Ink::Accent, history(all, windows.into(), unicode))));
        cells
    };
    if all.len() <= rows {
        all.iter().for_each(|series| table.row(row(name(series), &[series])));
        return table;
    }
    let mut sorted = all.to_vec();
    sorted.sort_by_key(|series| Reverse(series.max_ns));
    let (worst, others) = sorted.split_at(rows - 1);
    worst.iter().for_each(|series| table.row(row(name(series), &[series])));
    let all_of_them =
        if worst.is_empty() { format!("all {}", others.len()) } else { format!("{} others", others.len()) };
    table.row(row(all_of_them, others));
    table
}

fn name(series: &Series) -> String {
    series.place().replacen("CPU ", "", 1)
}

fn row(name: String, all: &[&Series]) -> Spans {
    let missed = Series::absent_of_all(all);
    let lost = lost_by(all);
    vec![
        cell(name),
        cell(time(all.iter().filter_map(|series| series.max_ns).max())),
        cell(time(all.iter().filter_map(|series| recent(series)).max())),
        lost.map_or_else(|| (bad_if_any(missed), short_count(missed)), cell),
        cell(short_count(all.iter().map(|series| series.samples).sum())),
    ]
}

/// The largest lateness of the current window and the one before it, i.e. of the last one to two seconds.
fn recent(series: &Series) -> Option<i64> {
    series.maxima.max_ns.iter().rev().take(2).flatten().copied().max()
}

/// The further time that PASS needs, rounded up: to minutes if it is longer than one.
fn to_pass(left_ns: u64) -> String {
    const SECOND_NS: u64 = 1_000_000_000;
    let unit_ns = if left_ns > 60 * SECOND_NS { 60 * SECOND_NS } else { SECOND_NS };
    match left_ns.div_ceil(unit_ns).saturating_mul(unit_ns) {
        0 => ", enough for PASS".to_owned(),
        left_ns => format!(", PASS in {}", format_duration(left_ns)),
    }
}

/// The largest lateness of each of the last windows, on a logarithmic scale from 1 us to 10 ms; a window without samples is
/// blank.
fn history(all: &[&Series], windows: usize, unicode: bool) -> String {
    const UNICODE: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    const ASCII: [char; 8] = ['_', '.', '-', '=', '+', '*', '%', '#'];
    const DECADES: f64 = 4.0;
    let count = all.iter().map(|series| series.maxima.max_ns.len()).max().unwrap_or(0);
    let level = |index: usize| {
        let max_ns = all.iter().filter_map(|series| *series.maxima.max_ns.get(index)?).max()?;
        let decades = (max_ns.max(1) as f64 / 1000.0).log10().clamp(0.0, DECADES);
        usize::try_from(analysis::float::to_i64((decades / DECADES * 7.0).round())).ok()
    };
    let symbols = if unicode { UNICODE } else { ASCII };
    (count.saturating_sub(windows)..count).map(|index| level(index).map_or(' ', |level| symbols[level])).collect()
}

/// Draws the histogram of all wake-ups of the current phase.
fn histogram(buffer: &mut Buffer, area: Rect, all: &[&Series], unicode: bool) {
    let raw = || all.iter().map(|series| &series.raw);
    let Some(scale) = Scale::of(raw()) else { return };
    let bars = Bars::of(raw(), scale, area.width.saturating_sub(GUTTER).into());
    let height = area.height.saturating_sub(1);
    let edge = if unicode { "▕" } else { "|" };
    for (n, cells) in (0..height).zip(bars.rows(height.into(), unicode)) {
        let count = match n {
            0 => short_count(bars.tallest()),
            _ if n + 1 == height => "1".to_owned(),
            _ => String::new(),
        };
        let spans = vec![(Ink::Quiet, format!("{count:>5} {edge}")), (Ink::Accent, cells)];
        buffer.set_line(area.x, area.y + n, &line(&spans), area.width);
    }
    let axis = vec![(Ink::Quiet, format!("{:1$}{2}", "", usize::from(GUTTER), bars.axis(unicode)))];
    buffer.set_line(area.x, area.y + height, &line(&axis), area.width);
}

fn line(spans: &Spans) -> Line<'_> {
    spans.iter().map(|(ink, text)| Span::styled(one_line(text), look(*ink))).collect()
}

fn look(ink: Ink) -> ratatui::style::Style {
    let (color, weight) = ink.look();
    ratatui::style::Style::new().fg(color).add_modifier(weight)
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use record::{Histogram, Maxima, Phase};

    use super::*;

    /// A run on `cpus` CPUs in its second phase; the higher the CPU number, the worse.
    fn example(cpus: u32) -> (Record, Progress) {
        let series = |cpu: u32| {
            let worst_ns = 40_000 + i64::from(cpu) * 11_000;
            let mut raw = Histogram::default();
            for (value_ns, count) in [(3_100, 800), (4_000, 9_000), (9_000, 150), (22_000, 3), (worst_ns, 1)] {
                raw.add(value_ns, count);
            }
            Series {
                phase: "load".into(),
                cpu: Some(cpu),
                samples: raw.total(),
                missed: u64::from(cpu == 1) * 3,
                max_ns: Some(worst_ns),
                maxima: Maxima { window_ns: 1_000_000_000, max_ns: vec![Some(worst_ns), None, Some(12_300)] },
                raw,
                ..Series::default()
            }
        };
        let phases = ["rest", "load"].map(|name| Phase { name: name.into(), ..Phase::default() });
        let record = Record { phases: phases.into(), series: (0..cpus).map(series).collect(), ..Record::default() };
        let progress = Progress {
            phase: "under load (cpu, cache, disk)".into(),
            elapsed_ns: 17_300_000_000,
            total_ns: Some(30_000_000_000),
            phase_index: 1,
            phase_count: 2,
            decides: false,
        };
        (record, progress)
    }

    fn view<'a>(record: &'a Record, progress: &'a Progress, unicode: bool) -> View<'a> {
        View {
            record,
            progress,
            uses: &[],
            left_ns: None,
            tail: None,
            has_keys: true,
            is_paused: false,
            is_helping: false,
            unicode,
        }
    }

    /// The view on a terminal of this size.
    fn on_terminal(columns: u16, rows: u16, record: &Record, progress: &Progress, unicode: bool) -> TestBackend {
        let (width, height) = fit((columns, rows), running(record, progress).len()).unwrap();
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| view(record, progress, unicode).draw(frame.buffer_mut())).unwrap();
        terminal.backend().clone()
    }

    #[test]
    fn four_cpus() {
        let (record, progress) = example(4);
        insta::assert_snapshot!("four_cpus_100x30", on_terminal(100, 30, &record, &progress, true));
        insta::assert_snapshot!("four_cpus_ascii_80x24", on_terminal(80, 24, &record, &progress, false));
    }

    #[test]
    fn summarizes_many_cpus() {
        let (record, progress) = example(128);
        insta::assert_snapshot!("many_cpus_80x24", on_terminal(80, 24, &record, &progress, true));
        insta::assert_snapshot!("many_cpus_tiny_40x8", on_terminal(40, 8, &record, &progress, true));
    }

    #[test]
    fn before_the_first_sample() {
        let progress = Progress { total_ns: None, ..example(0).1 };
        insta::assert_snapshot!("before_the_first_sample", on_terminal(60, 12, &Record::default(), &progress, true));
    }

    #[test]
    fn shows_no_view_on_a_small_terminal() {
        assert_eq!(fit((39, 30), 2), None);
        assert_eq!(fit((80, 7), 2), None);
        assert_eq!(fit((0, 0), 2), None);
        assert_eq!(fit((80, 24), usize::MAX), Some((80, 23)));
    }

    #[test]
    fn accepts_any_size() {
        let (record, progress) = example(5);
        for (width, height) in (0..60).flat_map(|width| (0..22).map(move |height| (width, height))) {
            let mut buffer = Buffer::empty(Rect::new(0, 0, width, height));
            view(&record, &progress, true).draw(&mut buffer);
            View { is_helping: true, has_keys: false, ..view(&record, &progress, true) }.draw(&mut buffer);
        }
    }

    #[test]
    fn shows_the_answer_so_far_and_its_explanation() {
        let (mut record, progress) = example(2);
        let cause = record::Cause::new(record::CauseKind::Interrupt, "i915");
        let account = record::Account { cause, count: 3, total_ns: 41, ..record::Account::default() };
        record.blame = Some(record::Blame { ledger: vec![account], ..record::Blame::default() });
        let so_far = [SoFar::NoneLate, SoFar::NoneLate, SoFar::SomeLate, SoFar::TooLate, SoFar::TooLate];
        let uses: Vec<_> = analysis::profiles().iter().filter(|profile| profile.ladder).cloned().zip(so_far).collect();
        let level = |estimate_ns: i64| record::LevelInterval {
            estimate_ns,
            low_ns: estimate_ns - 9_000,
            high_ns: Some(estimate_ns + 30_000),
        };
        let level = |once_in_ns, ns| record::TailLevel { once_in_ns, by_blocks: level(ns), by_peaks: None };
        let [(_, hour_ns), (_, day_ns), _] = analysis::TIMES;
        let limit = record::TailLimit { limit_ns: 500_000, once_in_ns: None, at_least_ns: 9_000_000_000_000_000 };
        let tail = Tail {
            levels: vec![level(hour_ns, 61_400), level(day_ns, 73_200)],
            limits: vec![limit],
            ..Tail::default()
        };
        let with = |is_helping, columns, rows| {
            let (width, height) = fit((columns, rows), 2).unwrap();
            let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
            let view = View {
                uses: &uses,
                left_ns: Some(2_712_345_678_901),
                tail: Some(&tail),
                is_helping,
                is_paused: is_helping,
                ..view(&record, &progress, true)
            };
            terminal.draw(|frame| view.draw(frame.buffer_mut())).unwrap();
            terminal.backend().clone()
        };
        insta::assert_snapshot!("so_far_80x24", with(false, 80, 24));
        insta::assert_snapshot!("so_far_60x20", with(false, 60, 20));
        insta::assert_snapshot!("so_far_120x40", with(false, 120, 40));
        insta::assert_snapshot!("so_far_40x24", with(false, 40, 24));
        insta::assert_snapshot!("explained_40x24", with(true, 40, 24));
        insta::assert_snapshot!("explained_80x24", with(true, 80, 24));
    }
}

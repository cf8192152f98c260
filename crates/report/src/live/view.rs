//! The live view, drawn from the record and the progress onto a buffer.

use std::cmp::Reverse;

use analysis::format_duration;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::{LineGauge, Widget};
use record::{Record, Series};

use super::{Progress, running, time_left};
use crate::style::{Ink, Spans};
use crate::terminal::histogram::{Bars, Scale, short_count};
use crate::terminal::noise::lost_by;
use crate::terminal::table::Table;
use crate::terminal::{cell, count_cell, time};
use crate::words::Words;
use record::visible::one_line;

/// The smallest terminal for the view, columns and rows.
const SMALLEST: (u16, u16) = (40, 8);
/// Rows of the view, if the terminal has enough.
const ROWS: std::ops::RangeInclusive<u16> = 12..=20;
/// Rows of title, bar and table headings.
const HEAD: u16 = 3;
/// Rows reserved for the histogram with its axis.
const HISTOGRAM: u16 = 5;
/// Columns left of the histogram.
const GUTTER: u16 = 7;

/// The size of the view on a terminal of `size` with `cpus` CPUs; `None` if the terminal is too small.
pub(super) fn fit((columns, rows): (u16, u16), cpus: usize) -> Option<(u16, u16)> {
    let wanted = (HEAD + HISTOGRAM + 2).saturating_add(cpus.try_into().unwrap_or(u16::MAX));
    let wanted = wanted.clamp(*ROWS.start(), *ROWS.end());
    // One row stays free for the cursor.
    (columns >= SMALLEST.0 && rows >= SMALLEST.1).then(|| (columns, wanted.min(rows - 1)))
}

/// Draws the view over all of `buffer`.
pub(super) fn draw(buffer: &mut Buffer, record: &Record, progress: &Progress, unicode: bool) {
    let area = buffer.area;
    let all = running(record, progress);
    let mut y = 0;
    let mut put = |buffer: &mut Buffer, spans: &Spans| {
        if y < area.height {
            buffer.set_line(0, y, &line(spans), area.width);
            y += 1;
        }
    };
    put(buffer, &title(progress));
    put(buffer, &Spans::new());
    let rows = area.height.saturating_sub(HEAD + HISTOGRAM).max(1);
    for spans in table(&all, rows.into()).lines(area.width.into()).iter().take(1 + all.len().min(rows.into())) {
        put(buffer, spans);
    }
    let left = area.height.saturating_sub(y);
    if left > 0 {
        histogram(buffer, Rect { y, height: left, ..area }, &all, unicode);
    }
    if area.height > 1 {
        bar(buffer, Rect { y: 1, height: 1, ..area }, progress, unicode);
    }
}

fn title(progress: &Progress) -> Spans {
    let part = match progress.phase_count {
        0 | 1 => String::new(),
        count => format!(", part {} of {count}", progress.phase_index + 1),
    };
    vec![(Ink::Title, format!("punctual{part}: {}", one_line(&progress.phase)))]
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
fn table(all: &[&Series], rows: usize) -> Table {
    let words = Words::of_all(all.iter().copied());
    let items = format!("{}s", words.item);
    let mut table = match words.is_periodic {
        false => Table::new(&["CPU", "longest", "recent", "lost", &items]),
        true => Table::new(&["CPU", "worst", "recent", "missed", "samples"]),
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
    let missed = all.iter().map(|series| series.missed).sum();
    let lost = lost_by(all);
    vec![
        cell(name),
        cell(time(all.iter().filter_map(|series| series.max_ns).max())),
        cell(time(all.iter().filter_map(|series| recent(series)).max())),
        lost.map_or_else(|| count_cell(missed, short_count(missed)), cell),
        cell(short_count(all.iter().map(|series| series.samples).sum())),
    ]
}

/// The largest lateness of the current window and the one before it, i.e. of the last one to two seconds.
fn recent(series: &Series) -> Option<i64> {
    series.maxima.max_ns.iter().rev().take(2).flatten().copied().max()
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

    /// The view on a terminal of this size.
    fn on_terminal(columns: u16, rows: u16, record: &Record, progress: &Progress, unicode: bool) -> TestBackend {
        let (width, height) = fit((columns, rows), running(record, progress).len()).unwrap();
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(frame.buffer_mut(), record, progress, unicode)).unwrap();
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
        assert_eq!(fit((80, 24), usize::MAX), Some((80, 20)));
    }

    #[test]
    fn accepts_any_size() {
        let (record, progress) = example(5);
        for (width, height) in (0..60).flat_map(|width| (0..22).map(move |height| (width, height))) {
            draw(&mut Buffer::empty(Rect::new(0, 0, width, height)), &record, &progress, true);
        }
    }
}

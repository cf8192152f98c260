//! Audio: outcomes and completion of periods, causes of xruns, and the search for the smallest buffer.

use record::{Audio, Record, Series, grouped};

use super::page::Page;
use super::table::Table;
use super::{bad_if_any, cell};
use crate::audio::{FIGURES, TRIED, fault_lines, found, outcomes, remarks, times, title, worst};
use crate::style::Ink;

/// A series of audio with all its figures.
pub(super) fn section(page: &mut Page, series: &Series, audio: &Audio) {
    page.heading(&title(series, audio));
    let outcomes = outcomes(audio);
    let mut table = Table::new(&outcomes.map(|(name, ..)| name)).figures();
    let count = |(_, count, bad): (&str, u64, bool)| (bad_if_any(if bad { count } else { 0 }), grouped(count));
    table.row(outcomes.map(count).to_vec());
    page.table(&table);
    page.gap();
    let mut table = Table::new(&["time"].into_iter().chain(FIGURES).collect::<Vec<_>>());
    for (row, (name, figures)) in times(series, audio).into_iter().enumerate() {
        // The first row is the most important one.
        let ink = if row == 0 { Ink::Title } else { Ink::Plain };
        table.row([cell(name)].into_iter().chain(figures.map(|figure| (ink, figure))).collect());
    }
    page.table(&table);
    let [meaning, statement] = remarks(series, audio);
    page.text(Ink::Quiet, &meaning);
    page.text(Ink::Plain, &statement);
    fault_lines(series).iter().for_each(|sentence| page.text(Ink::Bad, sentence));
    worst(series, audio).iter().for_each(|sentence| page.text(Ink::Plain, sentence));
}

/// The buffer sizes that were played, at most `rows`: those next to the limit between sizes that held and that did not.
pub(super) fn tried(record: &Record, rows: usize) -> Table {
    let mut table = Table::new(&TRIED).figures();
    let all = crate::audio::tried(record);
    let smallest_held = all.iter().position(|(_, held)| *held == Some(true)).unwrap_or(all.len());
    let first = smallest_held.saturating_sub(rows.div_ceil(2)).min(all.len().saturating_sub(rows));
    for (cells, held) in all.into_iter().skip(first).take(rows) {
        let ink = held.map_or(Ink::Plain, |held| if held { Ink::Good } else { Ink::Bad });
        table.row(cells.into_iter().map(|text| (ink, text)).collect());
    }
    table
}

/// The result of a search for the smallest buffer.
pub(super) fn search(page: &mut Page, record: &Record) {
    let Some(search) = &record.buffer else { return };
    page.heading("Smallest buffer");
    page.table(&tried(record, usize::MAX));
    let ink = if search.held.is_some() { Ink::Title } else { Ink::Bad };
    found(record, search).iter().for_each(|sentence| page.text(ink, sentence));
}

#[cfg(test)]
mod tests {
    use record::{Cause, CauseKind, Culprit, Histogram, Played, SeriesKind, Spike, Times};

    use super::*;
    use crate::style::Style;

    fn times(median_ns: i64, max_ns: i64) -> Times {
        let mut histogram = Histogram::default();
        histogram.add(median_ns, 7_498);
        histogram.add(max_ns, 2);
        Times { min_ns: median_ns - 10, mean_ns: median_ns as f64, max_ns, histogram }
    }

    #[test]
    fn shows_outcomes_and_times_of_periods() {
        let audio = Audio {
            rate_hz: 48_000,
            frames: 64,
            periods: 2,
            pacer: "clock".to_owned(),
            model: "builtin:standard".to_owned(),
            limit_ns: 1_333_334,
            played: 7_500,
            xruns: 1,
            lost: 1,
            dsp: Some(times(70_000, 1_900_000)),
            completion: Some(times(80_000, 1_912_000)),
            ..Audio::default()
        };
        let mut hog = Cause::new(CauseKind::Thread, "hog");
        (hog.number, hog.priority) = (Some(412), Some(4));
        let culprits = vec![
            Culprit { cause: hog, ns: 1_830_000 },
            Culprit { cause: Cause::new(CauseKind::Work, ""), ns: 70_000 },
            Culprit { cause: Cause::new(CauseKind::WakeUp, ""), ns: 12_000 },
        ];
        let played = Some(Played { wait_ns: 12_000, dsp_ns: 1_900_000, xrun: true });
        let mut raw = Histogram::default();
        raw.add(10_000, 7_500);
        let mut series = Series {
            role: record::AUDIO.to_owned(),
            cpu: Some(1),
            period_ns: 1_333_333,
            samples: 7_500,
            min_ns: Some(9_000),
            mean_ns: Some(10_000.0),
            max_ns: Some(12_000),
            corrected: raw.clone(),
            raw,
            spikes: vec![Spike { lateness_ns: 1_912_000, at_ns: 1_500_000_000, culprits, played, ..Spike::default() }],
            ..Series::default()
        };
        series.kind = SeriesKind::Audio(Box::new(audio.clone()));
        let mut page = Page::new(Style::default(), 100);
        section(&mut page, &series, &audio);
        insta::assert_snapshot!(page.finish());
    }
}

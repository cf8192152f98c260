//! The ends of a stream: key figures, and one section each.

use analysis::format_ns;
use record::{Listener, Record, Series, Stream, Talker, grouped};

use super::{
    figure::{Key, Part, Table},
    lines,
};
use crate::blame::unsigned;
use crate::stream::{CURVE, CURVE_TITLE, STREAMS, TIMES, summarize};
use crate::words::capitalized;

/// The section of each end of a stream.
pub fn sections(record: &Record) -> Vec<Part> {
    record.series.iter().filter_map(view).collect()
}

fn view(series: &Series) -> Option<Part> {
    let end = summarize(series)?;
    let figures = end.figures.iter().map(|figure| (figure.name, figure.text.clone()));
    // The figures of a talker contain its largest delta, too.
    let is_repeated = |name: &str| end.figures.iter().any(|figure| figure.name.eq_ignore_ascii_case(name));
    let first = end.first.into_iter().filter(|(name, _)| !is_repeated(name));
    let (names, figures): (Vec<_>, Vec<_>) = first.chain(figures).unzip();
    let curve = end.curve.into_iter().map(|(cells, _)| cells.to_vec());
    let measured = end.times.into_iter().filter(|[_, times @ ..]| times.iter().any(|time| time != "-"));
    let presentation = end.presentation.into_iter().map(|figure| (figure.name, figure.text));
    let (names_of_presentation, presentation): (Vec<_>, Vec<_>) = presentation.unzip();
    let mut tables = vec![
        Table::plain("Frames", &names, vec![figures]),
        Table::plain("Presentation times", &names_of_presentation, vec![presentation]),
        Table::plain("Streams", &STREAMS, end.streams.into_iter().map(Vec::from).collect()),
        Table::plain("Times", &TIMES, measured.map(Vec::from).collect()),
    ];
    let mut more = vec![Table::plain(CURVE_TITLE.trim_end_matches(':'), &CURVE, curve.collect())];
    let is_filled = |table: &Table| !table.head.is_empty() && !table.rows.is_empty();
    tables.retain(is_filled);
    more.retain(is_filled);
    let notes = [end.remarks, end.addresses, end.calibration].into_iter().filter(|text| !text.is_empty()).collect();
    Some(Part { name: capitalized(&series.role), title: end.title, tables, more, notes, only_on_screen: false })
}

/// The key figures, which are those of the answer; empty for records without a stream.
pub fn keys(record: &Record) -> Vec<Key> {
    let ends = || record.series.iter().filter_map(|series| Some((series, series.kind.stream()?)));
    let talkers: Vec<(&Series, &Talker)> = ends().filter_map(|(series, end)| Some((series, talker(end)?))).collect();
    let listeners: Vec<(&Series, &Listener)> =
        ends().filter_map(|(series, end)| Some((series, listener(end)?))).collect();
    of_talkers(&talkers).into_iter().chain(of_listeners(&listeners)).collect()
}

fn talker(end: &Stream) -> Option<&Talker> {
    if let Stream::Talker(talker) = end { Some(talker) } else { None }
}

fn listener(end: &Stream) -> Option<&Listener> {
    if let Stream::Listener(listener) = end { Some(listener) } else { None }
}

fn of_talkers(talkers: &[(&Series, &Talker)]) -> Vec<Key> {
    let Some((_, first)) = talkers.first() else { return Vec::new() };
    let sum = |of: fn(&Talker) -> u64| talkers.iter().map(|(_, talker)| of(talker)).fold(0, u64::saturating_add);
    let frames = sum(|talker| talker.frames);
    let not_sent = sum(|talker| talker.refused.saturating_add(talker.missed_slots));
    let late = format!("talker, more than {}, of {} sent", unsigned(first.tolerance_ns), grouped(frames));
    let mut keys = vec![Key { label: "late frames", value: grouped(sum(|talker| talker.late)), detail: late }];
    let times = talkers.iter().filter_map(|(series, talker)| Some((series, talker, talker.max_delta_ns?)));
    keys.extend(times.max_by_key(|(.., max_ns)| *max_ns).map(|(series, talker, max_ns)| {
        let detail = where_and_when(series, talker.max_delta_at_ns);
        Key { label: "largest lateness", value: format_ns(max_ns), detail }
    }));
    let detail = format!("talker, of {} due", grouped(frames.saturating_add(not_sent)));
    keys.push(Key { label: "not sent", value: grouped(not_sent), detail });
    keys
}

fn of_listeners(listeners: &[(&Series, &Listener)]) -> Vec<Key> {
    if listeners.is_empty() {
        return Vec::new();
    }
    let sum = |of: fn(&Listener) -> u64| listeners.iter().map(|(_, end)| of(end)).fold(0, u64::saturating_add);
    let lost = sum(|listener| listener.lost);
    let detail = format!("listener, of {} frames", grouped(lost.saturating_add(sum(|listener| listener.frames))));
    let mut keys = vec![Key { label: "lost", value: grouped(lost), detail }];
    let gaps = listeners.iter().filter_map(|(series, listener)| Some((series, listener, listener.max_gap_ns?)));
    keys.extend(gaps.max_by_key(|(.., max_ns)| *max_ns).map(|(series, listener, max_ns)| {
        let detail = where_and_when(series, listener.max_gap_at_ns);
        Key { label: "largest gap", value: unsigned(max_ns), detail }
    }));
    let margins = || listeners.iter().filter_map(|(_, listener)| listener.one_way.as_ref()?.margin.as_ref());
    let late = margins().map(|margin| margin.late).fold(0, u64::saturating_add);
    if let Some(smallest_ns) = margins().map(|margin| margin.min_ns).min().filter(|_| late > 0) {
        let detail = format!("listener, after their presentation time by up to {}", format_ns(-smallest_ns));
        keys.push(Key { label: "too late to present", value: grouped(late), detail });
    }
    keys
}

fn where_and_when(series: &Series, at_ns: Option<u64>) -> String {
    let at = at_ns.map_or_else(String::new, |ns| format!(", at {:.1} s", ns as f64 / 1e9));
    format!("{}{at}", lines::name(series))
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::{OneWay, PresentationMargin, SeriesKind};

    #[test]
    fn the_key_figures_are_those_of_the_answer() {
        let talker = Talker {
            frames: 31_066,
            late: 30_663,
            missed_slots: 930,
            refused: 5,
            tolerance_ns: 1_250,
            max_delta_ns: Some(4_250_000),
            ..Talker::default()
        };
        let margin = Some(PresentationMargin { min_ns: -85_000, late: 3, ..PresentationMargin::default() });
        let one_way = Some(OneWay { margin, ..OneWay::default() });
        let listener =
            Listener { frames: 31_066, lost: 2, max_gap_ns: Some(8_250_000), one_way, ..Listener::default() };
        let ends = [Stream::Talker(Box::new(talker)), Stream::Listener(Box::new(listener))];
        let series = ends.map(|end| Series { kind: SeriesKind::Stream(end), missed: 7, ..Series::default() });
        let record = Record { series: series.into(), ..Record::default() };
        let keys = crate::html::verdict::keys(&record);
        let figures: Vec<_> = keys.iter().map(|key| (key.label, key.value.as_str())).collect();
        assert_eq!(
            figures,
            [
                ("late frames", "30,663"),
                ("largest lateness", "4.25 ms"),
                ("not sent", "935"),
                ("lost", "2"),
                ("largest gap", "8.25 ms"),
                ("too late to present", "3")
            ]
        );
        let answer = crate::headline::headline(&record).text.replace(',', "");
        for (label, figure) in figures {
            assert!(answer.contains(&figure.replace(',', "")), "{label} {figure}: {answer}");
        }
    }
}

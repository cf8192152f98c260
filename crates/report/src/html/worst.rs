//! The worst spikes of a run as a table.

use analysis::format_ns;
use record::{Cause, Spike, Split, counted};

use super::{
    figure::{Row, Table},
    lines::Line,
};
use crate::blame::{main_culprit, unsigned};
use crate::words::Words;

/// The `worst` worst spikes of all series, the worst first.
pub fn table(lines: &[Line], worst: usize) -> Table {
    let mut all: Vec<_> = lines.iter().flat_map(|line| line.series.spikes.iter().map(move |s| (line, s))).collect();
    all.sort_by_key(|(_, spike)| std::cmp::Reverse(spike.lateness_ns));
    all.truncate(worst);
    let split = all.iter().any(|(_, spike)| spike.split.is_some());
    let blamed = all.iter().any(|(_, spike)| !spike.culprits.is_empty());
    let row = |(line, spike): &(&Line, &Spike)| {
        let at_s = spike.at_ns as f64 / 1e9;
        let mut cells = vec![
            line.name.clone(),
            format_ns(spike.lateness_ns),
            format!("{at_s:.3} s"),
            format!("{:.3} s", line.start_s + at_s),
        ];
        if split {
            cells.extend(spike.split.map_or_else(|| ["-".to_owned(), "-".to_owned()], halves));
        }
        if blamed {
            cells.push(main_culprit(spike, Cause::title).unwrap_or_else(|| "-".to_owned()));
        }
        Row { swatch: line.swatch(), cells }
    };
    let words = Words::of_all(lines.iter().map(|line| line.series));
    let mut head = vec!["series", words.lateness, "in its phase", "in the run"];
    if split {
        head.extend(["until the interrupt", "from it to the thread"]);
    }
    if blamed {
        head.push("main culprit and its share");
    }
    Table {
        caption: format!("The worst {}", counted(all.len() as u64, words.spike)),
        head: head.into_iter().map(str::to_owned).collect(),
        rows: all.iter().map(row).collect(),
    }
}

/// The two parts of the lateness in the kernel's timerlat tracer: until the timer interrupt, and from there to the
/// thread.
fn halves(split: Split) -> [String; 2] {
    [split.irq_ns, split.thread_ns.saturating_sub(split.irq_ns)].map(unsigned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::html::lines::lines;
    use record::{Record, Series};

    fn record(spikes: Vec<Spike>) -> Record {
        let series = Series { phase: "rest".into(), cpu: Some(0), spikes, ..Series::default() };
        Record { series: vec![series], ..Record::default() }
    }

    #[test]
    fn splits_timerlat_spikes_into_interrupt_and_thread() {
        let split = Some(Split { irq_ns: 610_000, thread_ns: 700_000 });
        let theirs = Spike { lateness_ns: 700_000, split, ..Spike::default() };
        let ours = Spike { lateness_ns: 300_000, ..Spike::default() };
        let with = record(vec![theirs, ours.clone()]);
        let table = table(&lines(&with), 20);
        let columns = |row: &Row| row.cells[4..].to_vec();
        assert_eq!(table.head[4..], ["until the interrupt", "from it to the thread"]);
        assert_eq!(columns(&table.rows[0]), ["610 us", "90 us"]);
        assert_eq!(columns(&table.rows[1]), ["-", "-"]);
        let without = record(vec![ours]);
        assert_eq!(super::table(&lines(&without), 20).head.len(), 4);
    }
}

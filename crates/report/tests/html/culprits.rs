//! Culprits in the HTML report.

use record::{
    Account, Blame, BlameMode, Cause, CauseKind, Evidence, Record, Series, SeriesKind, Spike, Split, Stretch,
    TIMERLAT_IRQ, TIMERLAT_THREAD,
};
use report::html::render;

use crate::{blamed, chart, sample};

/// The section about culprits; empty if there is none.
fn section(html: &str) -> &str {
    let Some(start) = html.find("<section id=\"blame\">") else { return "" };
    let end = html[start..].find("</section>").expect("the section ends");
    &html[start..start + end]
}

/// The values of an attribute, in order.
fn values<'a>(html: &'a str, attribute: &str) -> Vec<&'a str> {
    html.split(&format!(" {attribute}=\"")).skip(1).filter_map(|rest| rest.split('"').next()).collect()
}

#[test]
fn the_ledger_shows_accounts_with_remedies() {
    let record = sample::typical();
    let html = render(&record);
    let section = section(&html);
    let blame = record.blame.as_ref().unwrap();
    assert!(blame.ledger.iter().filter(|account| account.count > 0).count() > 4);
    for account in &blame.ledger {
        assert!(section.contains(&account.cause.title().replace('\'', "&#39;")), "{}", account.cause.title());
        assert!(section.contains(&analysis::format_unsigned_ns(account.total_ns)), "{}", account.cause.title());
    }
    let first = blame.ledger.iter().find(|account| account.count > 0).unwrap();
    let headline = format!("Main cause of {} of the 66 spikes above 200 us", first.count);
    for text in [
        headline.as_str(),
        "every 4 s",
        "<code>echo 0 | sudo tee /proc/irq/125/smp_affinity_list</code>",
        "Look for power management",
        "Tracing overhead 400 ns per wake-up (median 12.1 us without, 12.5 us with).",
        "Unexplained: ",
        "Found from 4 kernel trace events (sched, irq).",
    ] {
        assert!(section.contains(text), "{text}");
    }
    assert_eq!(section.matches("class=\"bar when\"").count(), section.matches("class=\"part\"").count());
}

#[test]
fn drawn_time_lines_add_up_to_the_lateness() {
    let record = sample::typical();
    let html = render(&record);
    let worst = report::blame::ranked(&record);
    for number in 1..=12 {
        let svg = chart(&html, &format!("spike-{number}"));
        let points = values(svg, "data-p").into_iter().map(|point| point.split_once(':').expect("start and length"));
        let lengths =
            points.filter(|(start, _)| !start.starts_with('-')).map(|(_, length)| length.parse::<i64>().unwrap());
        assert_eq!(lengths.sum::<i64>(), worst[number - 1].spike.lateness_ns, "spike {number}");
    }
    assert!(!html.contains("data-chart=\"spike-13\""));
}

#[test]
fn omits_culprits_that_were_not_recorded() {
    let mut record = sample::typical();
    record.blame = None;
    assert!(section(&render(&record)).is_empty() && !render(&record).contains("main culprit</dt>"));
    let why = "tracefs belongs to root: `sudo punctual`";
    record.blame = Some(Blame { mode: BlameMode::Off, why: why.into(), ..Blame::default() });
    let html = render(&record);
    assert!(section(&html).contains("Culprits were not recorded: tracefs belongs to root:"), "{}", section(&html));
    assert!(section(&html).contains("<code>sudo punctual</code>"));
}

#[test]
fn shows_doubts_before_the_ledger() {
    let mut record = sample::typical();
    let blame = record.blame.as_mut().unwrap();
    (blame.mode, blame.why) = (BlameMode::Counters, "the kernel has no tracefs".into());
    (blame.incomplete, blame.lost_events, blame.passed_over) = (3, 812, 40);
    record.series[3].spikes.iter_mut().for_each(|spike| spike.evidence = Evidence::Incomplete);
    let html = render(&record);
    for text in [
        "likely i915 interrupt thread",
        "Culprits are likely ones, from counters: the kernel has no tracefs.",
        "For 3 of 66 spikes, 812 events were lost",
        "40 spikes were not examined",
        "causes may be missing, too",
    ] {
        assert!(section(&html).contains(text), "{text}");
    }
}

/// 8 series with 1000 spikes each, a time line of 40 parts per spike, and 300 causes.
fn large() -> Record {
    let mut all = Vec::new();
    for (n, mut series) in (0..8u32).map(|cpu| (cpu, sample::series("load", cpu, 9_000.0, 1.0, 2))) {
        let cause = |at: u64| {
            blamed::thread(
                &format!("worker/{}", at % 300),
                u32::try_from(at).expect("fewer than 2^32 spikes"),
                120,
                record::Why::PreemptionOff,
            )
        };
        let spike = |at: u64| Spike {
            lateness_ns: 400_000 + (at * 7919 % 100_000).cast_signed(),
            at_ns: at * 15_000_000,
            timeline: (0..40)
                .map(|step| Stretch { start_ns: step * 10_000, ns: 10_000, cause: cause(at + step.cast_unsigned()) })
                .collect(),
            culprits: vec![record::Culprit { cause: cause(at), ns: 10_000 }],
            evidence: Evidence::Trace,
            ..Spike::default()
        };
        series.spikes = (0..1000).map(|at| spike(at * 8 + u64::from(n))).collect();
        series.spikes_total = 1_000_000;
        all.push(series);
    }
    let mut record = sample::bare(all);
    let account = |n: u32| Account {
        cause: blamed::thread(&format!("worker/{n}"), n, 120, record::Why::PreemptionOff),
        count: 27,
        total_ns: 1_000_000,
        remedy: "Boot with preempt=full.".into(),
        ..Account::default()
    };
    let ledger = (0..300).map(account).collect();
    record.blame = Some(Blame { mode: BlameMode::Trace, spikes: 8000, ledger, ..Blame::default() });
    record
}

#[test]
fn a_large_record_gives_a_small_page() {
    let html = render(&large());
    assert!(html.len() < 700_000, "{} bytes", html.len());
    assert!(section(&html).len() < 250_000, "{} bytes of it", section(&html).len());
    assert!(section(&html).contains("; 275 more (275 ms)"), "the rest is counted");
    println!("{} bytes, {} of them the culprits", html.len(), section(&html).len());
}

#[test]
fn accepts_odd_time_lines() {
    let stretch = |start_ns, ns| Stretch { start_ns, ns, cause: Cause::new(CauseKind::Timer, "") };
    let mut record = sample::typical();
    for (n, spike) in record.series[3].spikes.iter_mut().enumerate() {
        spike.lateness_ns = [i64::MIN, -3, 0, 1, i64::MAX][n % 5];
        spike.timeline =
            vec![stretch(i64::MIN, u64::MAX), stretch(5, 0), stretch(i64::MAX, 9), stretch(-40, 90), stretch(0, 1)];
        spike.timeline.truncate(n / 5 % 6);
    }
    let html = render(&record);
    assert!(html.trim_end().ends_with("</html>") && !html.contains("NaN"));
}

#[test]
fn shows_both_parts_of_timerlat_spikes() {
    let mut record = sample::typical();
    let spike = Spike {
        lateness_ns: 61_000_000,
        split: Some(Split { irq_ns: 60_750_000, thread_ns: 61_000_000 }),
        ..Spike::default()
    };
    let phase = record.phases[0].name.clone();
    for (role, kind, spikes) in
        [(TIMERLAT_IRQ, SeriesKind::TimerlatIrq, vec![]), (TIMERLAT_THREAD, SeriesKind::TimerlatThread, vec![spike])]
    {
        let (phase, role) = (phase.clone(), role.to_owned());
        record.series.push(Series { phase, role, kind, cpu: Some(1), spikes, ..Series::default() });
    }
    let html = render(&record);
    assert!(html.contains("<th scope=\"col\">until the interrupt</th><th scope=\"col\">from it to the thread</th>"));
    let row = html.split("CPU 1 timerlat/thread, at rest</th><td>61 ms</td>").nth(1).expect("it is the worst spike");
    assert!(row.split("</tr>").next().unwrap().contains("<td>60.8 ms</td><td>250 us</td>"), "{}", &row[..200]);
}

//! Comparison with other records, and published figures, in terminal output and HTML reports.

use record::{Granted, Histogram, Phase, Record, Scenario, Series};
use report::{Style, html::render, terminal::summary};

fn run() -> Record {
    let mut raw = Histogram::default();
    for (lateness_ns, count) in [(4_000, 900), (9_000, 98), (42_875, 2)] {
        raw.add(lateness_ns, count);
    }
    let series = Series {
        phase: "rest".into(),
        role: "timer".into(),
        cpu: Some(1),
        granted: Granted { policy: "fifo:90".into(), ..Granted::default() },
        period_ns: 125_000,
        samples: raw.total(),
        max_ns: Some(42_875),
        corrected: raw.clone(),
        raw,
        ..Series::default()
    };
    let scenario = Scenario { probe: "timer".into(), ..Scenario::default() };
    let phase = Phase { name: "rest".into(), period_ns: 125_000, ..Phase::default() };
    let mut record = Record { scenario, phases: vec![phase], series: vec![series], ..Record::default() };
    let other = analysis::find_reference("vim3l-evl").expect("a reference");
    record.against = vec![analysis::compare(&record, &other, "vim3l-evl")];
    record
}

#[test]
fn shows_figures_with_ratios_and_differences() {
    let record = run();
    let text = summary(&record, &Style::plain(), 100);
    let from = text.find("Compared with vim3l-evl").expect("the section of the comparison");
    let section: Vec<&str> = text[from..].split("\n\n").take(2).collect();
    insta::assert_snapshot!(section.join("\n\n"));
    let html = render(&record);
    for text in [
        "Compared with vim3l-evl: Khadas VIM3L",
        "<td>42.9 us</td><td>8.58 us</td><td>5.00x</td>",
        "their period is 1 ms",
    ] {
        assert!(html.contains(text), "{text}");
    }
}

#[test]
fn draws_a_curve_per_other_histogram() {
    let curves = |record: &Record| {
        let html = render(record);
        let chart = html.split("data-chart=\"percentiles\"").nth(1).map(|rest| rest.split("</svg>").next().unwrap());
        let chart = chart.unwrap_or_default().to_owned();
        (chart.matches("class=\"line other\"").count(), chart.matches("<path class=\"line ").count(), chart)
    };
    let (others, all, chart) = curves(&run());
    assert_eq!((others, all), (1, 2));
    assert!(chart.contains("data-n=\"vim3l-evl: idle\"") && chart.contains(":8999\""), "{chart}");
    let published = analysis::find_reference("vim3l-evl").unwrap();
    let page = render(&published);
    for chart in ["curves-published", "exceedance-published"] {
        let chart = page.split(&format!("data-chart=\"{chart}\"")).nth(1).unwrap().split("</svg>").next().unwrap();
        assert_eq!(chart.matches("<path class=\"line ").count(), 4, "one curve per published histogram");
    }
    assert!(page.contains("</svg>idle, CPU 3</li>") && !page.contains("Grey curves"), "a key of the curves");
    assert_eq!(curves(&Record { against: Vec::new(), ..run() }).0, 0);
}

#[test]
fn marks_published_figures() {
    for reference in analysis::references() {
        let name = &reference.published.as_ref().unwrap().name;
        let (text, html) = (summary(reference, &Style::plain(), 80), render(reference));
        assert!(text.starts_with(&format!("{name}: published elsewhere, not measured by punctual")), "{text}");
        assert!(html.contains("</span>PUBLISHED</p>") && html.contains("not measured by punctual."), "{name}");
        for wrong in ["INVALID", "PASS", "The run did not go as requested."] {
            assert!(!text.contains(wrong) && !html.contains(wrong), "{name}: {wrong}");
        }
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }
}

#[test]
fn shows_a_published_matrix() {
    let athlon = analysis::find_reference("athlon-xenomai").unwrap();
    let (text, html) = (summary(&athlon, &Style::plain(), 100), render(&athlon));
    assert!(text.contains("  base 1  15.4 us / 6.7 us   4.2 us / 5.2 us  11.1 us / 6.1 us"), "{text}");
    assert!(html.contains("base 1</th><td>15.4 us / 6.7 us</td><td>4.2 us / 5.2 us</td><td>11.1 us / 6.1 us</td>"));
    assert!(!html.contains("Placement of threads on CPUs"), "jitter alone recommends no pair");
}

#[test]
fn the_answer_compares_the_largest_lateness_of_equal_ratios() {
    let mut record = run();
    // Valid, because the figures of a run that is not are not compared.
    (record.state, record.validity.valid) = (record::State::Complete, true);
    record.series.iter_mut().for_each(|series| series.granted.memory_locked = true);
    let phase = |name: &str| Phase { name: name.into(), period_ns: 125_000, ..Phase::default() };
    record.phases = vec![phase("load"), phase("rest")];
    let of_load = Series { phase: "load".into(), max_ns: Some(6_750_000), ..record.series[0].clone() };
    record.series.insert(0, of_load);
    record.against = vec![analysis::compare(&record, &record, "LAST")];
    let text = report::terminal::answer(&record, "punctual show --full a.json", &Style::plain(), 100);
    assert!(text.contains("\n  against  LAST (under load"), "{text}");
    assert!(text.contains("): largest lateness 6.75 ms, here 6.75 ms (1.00x; one run"), "{text}");
}

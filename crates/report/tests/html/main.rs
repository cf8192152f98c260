//! Contents of the HTML report for typical, odd and hostile records. `browser` tests its behaviour in Chromium.

#[path = "../common/blamed.rs"]
mod blamed;
mod browser;
mod culprits;
mod kinds;
mod pages;
#[path = "../common/proof.rs"]
mod proof;
mod sample;
#[allow(dead_code, reason = "other parts are used by the tests of the command")]
#[path = "../../../punctual/tests/it/browser.rs"]
mod webdriver;

use record::{Maxima, Outcome, Phase, Reason, Record, Series, Spike, State, Validity, Verdict};
use report::html::render;
use serde_json::Value;

const CHARTS: [&str; 4] = ["histogram", "percentiles", "maxima", "spikes"];

/// The part of `html` from the chart called `id` to its end.
fn chart<'a>(html: &'a str, id: &str) -> &'a str {
    let start = html.find(&format!("data-chart=\"{id}\"")).unwrap_or_else(|| panic!("no chart {id}"));
    let end = html[start..].find("</svg>").expect("the chart ends");
    &html[start..start + end]
}

/// The name of a series of [`sample::typical`] on the page.
fn name_of(series: &Series) -> String {
    let when = if series.phase == "rest" { "at rest" } else { "under load" };
    format!("{}, {when}", series.place())
}

#[test]
fn the_report_contains_the_record() {
    let record = sample::typical();
    let html = render(&record);
    let figures: Vec<String> = record.series.iter().filter_map(|s| s.max_ns).map(analysis::format_ns).collect();
    let titles: Vec<&str> = record.uses.iter().map(|a_use| a_use.title.as_str()).collect();
    for text in titles.into_iter().chain(figures.iter().map(String::as_str)).chain([
        "HOLD",
        "CPU 1, under load",
        "fifo:90",
        "irq/125-i915",
        "The worst 20 spikes",
        "61,204,113",
        "rounds of 4096 additions",
        "echo performance | sudo tee",
        "scaling_governor = powersave",
        "6.12.43-amd64",
        "meltdown: Mitigation: PTI",
        "not read back",
        "a guard lowered the priority",
        "no setting of the kernel can mend it",
        "cache:streams=2 <span class=\"option\">--load</span> disk</code>",
    ]) {
        assert!(html.contains(text), "{text} is missing");
    }
}

#[test]
fn shows_every_series_in_charts_and_key() {
    let record = sample::typical();
    let html = render(&record);
    for (index, series) in record.series.iter().enumerate() {
        let name = name_of(series);
        for id in CHARTS.into_iter().filter(|id| *id != "spikes" || !series.spikes.is_empty()) {
            assert!(chart(&html, id).contains(&format!("data-s=\"{index}\" data-n=\"{name}\"")), "{name} in {id}");
        }
        assert!(html.contains(&format!("<li data-s=\"{index}\">")), "{name} in the key");
    }
}

#[test]
fn the_headline_names_only_the_uses_that_decide() {
    let mut record = sample::typical();
    record.scenario.profiles = record.uses.iter().map(|judged| judged.profile.clone()).take(2).collect();
    (record.uses[0].outcome, record.uses[1].outcome) = (Outcome::Pass, Outcome::Fail);
    record.verdict = Some(Verdict { outcome: Outcome::Fail, reason: String::new() });
    let failed = format!("Not on time for {}.", record.uses[1].title);
    assert!(render(&record).contains(&failed), "{failed}");
}

#[test]
fn shows_outcomes_with_remedies() {
    let mut record = sample::typical();
    record.scenario.profiles = vec!["control-1khz".into()];
    for (outcome, sentence) in [
        (Outcome::Pass, "On time for 1 ms control loop."),
        (Outcome::Fail, "Not on time for 1 ms control loop."),
        (Outcome::Inconclusive, "Not shown for 1 ms control loop."),
    ] {
        record.uses.iter_mut().for_each(|judged| judged.outcome = outcome);
        record.verdict = Some(Verdict { outcome, reason: "because `sleep 1` & more".into() });
        let html = render(&record);
        assert!(html.contains(&format!("</span>{}</p>", outcome.name())) && html.contains(sentence), "{outcome:?}");
        assert!(html.contains("Because <code>sleep 1</code> &#38; more."), "{outcome:?}");
    }
    let (id, text, remedy) = ("policy.refused", "fifo:90 was refused", "sudo setcap cap_sys_nice+ep $(which punctual)");
    let reason = Reason { id: id.into(), text: text.into(), remedy: remedy.into() };
    record.validity = Validity { valid: false, reasons: vec![reason] };
    let html = render(&record);
    assert!(html.contains("</span>INVALID</p>") && html.contains(text), "the reason is shown");
    assert!(html.contains(&format!("<code>{remedy}</code>")), "the remedy is there to paste");
}

#[test]
fn notes_an_incomplete_run() {
    let mut record = sample::typical();
    for (state, text) in [(State::Partial, "This record is partial"), (State::Interrupted, "The run was stopped early")]
    {
        record.state = state;
        assert!(render(&record).contains(text));
    }
    record.state = State::Complete;
    assert!(!render(&record).contains("class=\"ending\""));
}

#[test]
fn escapes_every_string_of_a_record() {
    let html = render(&hostile());
    assert_eq!(html.matches("<script").count(), 1, "only our own script");
    for wrong in ["<img", "<i onload", "onerror=\"", "onload='"] {
        assert!(!html.contains(wrong), "{wrong}");
    }
    assert!(html.contains("&#60;img"), "the text is there, escaped");
}

/// The typical record with every string replaced by an injection attempt.
fn hostile() -> Record {
    const INJECTION: &str = "`'\"></title></style></svg></pre><script>document.title='owned'</script>\
        <img src=https://example.org/x onerror=\"document.title='owned'\"><i onload='1'>`${7*7}\u{202e}\0";
    fn replace(value: &mut Value) {
        match value {
            Value::String(text) => *text = INJECTION.to_owned(),
            Value::Array(items) => items.iter_mut().for_each(replace),
            Value::Object(fields) => {
                let ours = |key: &str| ["state", "outcome", "kind", "why", "evidence", "mode"].contains(&key);
                fields.iter_mut().filter(|(key, _)| !ours(key)).for_each(|(_, value)| replace(value));
            }
            _ => {}
        }
    }
    let mut record = sample::typical();
    record.phases[1].loads[0].note = Some(String::new());
    record.scenario.profiles = vec![String::new()];
    record.verdict = Some(Verdict::default());
    record.validity.reasons = vec![Reason::default()];
    let mut value = serde_json::to_value(&record).expect("a record is JSON");
    replace(&mut value);
    let mut record: Record = serde_json::from_value(value).expect("a hostile record is still a record");
    // In JSON, a cause's `why` is an enum, so the key is skipped above; these two are text.
    record.findings.iter_mut().for_each(|finding| finding.why = INJECTION.to_owned());
    record.blame.iter_mut().for_each(|blame| blame.why = INJECTION.to_owned());
    record
}

#[test]
fn loads_nothing() {
    for record in [sample::typical(), hostile(), Record::default()] {
        let html = render(&record);
        let (style, rest) = between(&html, "<style>", "</style>");
        let (script, markup) = between(&rest, "<script>", "</script>");
        assert!(!style.contains("url(") && !style.contains("@import"), "the style sheet stands alone");
        for word in ["fetch(", "XMLHttpRequest", "import", "WebSocket", "http:", "https:"] {
            assert!(!script.contains(word), "{word} in the script");
        }
        let fetching =
            ["src", "srcset", "href", "xlink:href", "action", "formaction", "poster", "data", "style", "background"];
        let found: Vec<_> = attributes(&markup).into_iter().filter(|(name, _)| fetching.contains(name)).collect();
        assert!(found.len() > 3, "{found:?}");
        for (name, value) in found {
            assert!(value.starts_with('#') || value.starts_with("data:"), "{name}={value}");
        }
        assert!(attributes(&markup).iter().all(|(name, _)| !name.starts_with("on")), "no handler in the markup");
        assert!(html.contains("default-src 'none'"), "the content policy forbids the rest");
    }
}

/// The text between two marks, and the rest without it.
fn between(html: &str, from: &str, to: &str) -> (String, String) {
    let (before, rest) = html.split_once(from).expect("it begins");
    let (inside, after) = rest.split_once(to).expect("it ends");
    (inside.to_owned(), format!("{before}{after}"))
}

/// The attributes of all tags, with their values.
fn attributes(markup: &str) -> Vec<(&str, &str)> {
    let tags = markup.split('<').skip(1).filter_map(|tag| tag.split('>').next());
    tags.flat_map(|tag| {
        let pieces: Vec<&str> = tag.split('"').collect();
        pieces
            .chunks_exact(2)
            .map(|pair| (pair[0].trim_end_matches('=').rsplit(char::is_whitespace).next().unwrap_or_default(), pair[1]))
            .collect::<Vec<_>>()
    })
    .collect()
}

#[test]
fn renders_odd_records() {
    let spikes = (0..1000).map(|i| Spike {
        lateness_ns: i * 7919 % 90_000_000,
        at_ns: i.cast_unsigned() * 1_000_000,
        ..Spike::default()
    });
    let spiky = Series { spikes: spikes.collect(), spikes_total: u64::MAX, ..sample::of_values(&[(3, 1)]) };
    let no_windows =
        Series { maxima: Maxima { window_ns: 0, max_ns: vec![Some(1); 5] }, ..sample::of_values(&[(3, 1)]) };
    let mut lost = sample::of_values(&[(1_000, 5)]);
    (lost.phase, lost.cpu, lost.role) = ("never planned".into(), None, "servo".into());
    let all_of_it = Phase { start_ns: u64::MAX, duration_ns: u64::MAX, planned_ns: Some(0), ..Phase::default() };
    let mut odd = vec![Record::default(), sample::bare(vec![])];
    for series in [
        sample::of_values(&[]),
        sample::of_values(&[(-900, 4000)]),
        sample::of_values(&[(0, 1)]),
        sample::of_values(&[(-900, 4000), (-30, 50), (0, 3), (40, 12), (5_000, 6_000)]),
        sample::of_values(&[(5_000, u64::MAX / 4)]),
        sample::of_values(&[(4_000, 1_000_000), (7_200_000_000_000, 1)]),
        Series { period_ns: 0, ..sample::of_values(&[(i64::MIN, 1), (i64::MAX, 1)]) },
        spiky.clone(),
        no_windows,
        lost,
        Series::default(),
    ] {
        odd.push(Record {
            phases: vec![Phase::default(), all_of_it.clone()],
            series: vec![series.clone()],
            ..Record::default()
        });
        let mut judged = sample::bare(vec![series]);
        sample::judge(&mut judged);
        odd.push(judged);
    }
    odd.push(sample::bare(vec![spiky; 256]));
    for record in &odd {
        let html = render(record);
        assert!(html.trim_end().ends_with("</html>"));
        assert!(html.len() < 3_000_000, "{} bytes", html.len());
        for path in html.split(" d=\"").skip(1) {
            let d = path.split('"').next().unwrap_or_default();
            assert!(d.chars().all(|c| c.is_ascii_digit() || "MLHVmlhvaz. -".contains(c)), "{d:.200}");
        }
    }
}

#[test]
fn keeps_the_peak_of_a_week_on_a_small_page() {
    let html = render(&sample::week(31_415_926));
    assert!(chart(&html, "maxima").contains(":31415926 "), "the peak is drawn with its own value");
    assert!(html.len() < 200_000, "{} bytes", html.len());
}

#[test]
fn limits_the_size_of_reports() {
    let (two, many) = (render(&sample::typical()).len(), sample::many());
    assert!(two < 300_000, "{two} bytes");
    let html = render(&many);
    assert!(html.len() < 3_000_000, "{} bytes", html.len());
    assert!(
        html.contains("rest (128 series)") && html.contains("load (128 series)"),
        "the key has one entry per phase"
    );
    assert_eq!(chart(&html, "percentiles").matches("data-n=").count(), 256);
    let labels = chart(&html, "percentiles").matches("class=\"mark ").count();
    assert_eq!(labels, 2, "the worst of each phase is named");
}

#[test]
fn the_same_record_gives_the_same_report() {
    assert_eq!(render(&sample::typical()), render(&sample::typical()));
}

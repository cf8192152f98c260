//! The report in headless Chromium: the script runs without errors, read-outs match the record, and screenshots and
//! printing work.

use std::{fs, path::Path, process::Command, sync::LazyLock};

use record::Record;
use report::html::render;

use crate::{CHARTS, name_of, sample};

/// Runs `program`; returns its standard output and standard error.
pub fn run(program: &str, package: &str, args: &[&str]) -> (String, String) {
    let output = Command::new(program).args(args).output().unwrap_or_else(|error| {
        panic!("cannot run {program} ({error}): install it with `sudo apt-get install -y {package}`")
    });
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{program} {args:?} failed: {err}");
    (out, err)
}

fn chromium(dir: &Path, html: &str, args: &[&str]) -> (String, String) {
    let page = dir.join("report.html");
    fs::write(&page, html).expect("the temporary folder can be written");
    let profile = format!("--user-data-dir={}", dir.join("profile").display());
    let url = format!("file://{}", page.display());
    let mut all = vec![
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--enable-logging=stderr",
        "--window-size=1200,900",
        &profile,
    ];
    all.extend(args);
    all.push(&url);
    let (out, err) = run("chromium", "chromium", &all);
    let complaints: Vec<_> = err.lines().filter(|line| line.contains("CONSOLE")).collect();
    assert!(complaints.is_empty(), "the console says: {complaints:#?}");
    (out, err)
}

/// The document in Chromium after the report's script and then `script` ran.
fn dom(html: &str, script: &str) -> String {
    let dir = tempfile::tempdir().expect("a temporary folder can be made");
    let page = html.replace("</body>", &format!("<script>{script}</script></body>"));
    chromium(dir.path(), &page, &["--dump-dom"]).0
}

/// Moves the pointer across each chart and stores the text of its read-outs in `data-said`.
const HOVER: &str = "for (const svg of document.querySelectorAll('svg.chart')) {
    const [, , left, right] = svg.dataset.x.split(' ').map(Number), [, , bottom, top] = svg.dataset.y.split(' ').map(Number);
    const said = [];
    for (let px = left + 1; px < right; px += 1) for (const py of svg.dataset.chart.startsWith('spike') ? [top + 60, top + 90, top + 120] : [top + 50]) {
        const at = new DOMPoint(px, py).matrixTransform(svg.getScreenCTM());
        svg.dispatchEvent(new PointerEvent('pointermove', { clientX: at.x, clientY: at.y }));
        const read = svg.parentElement.querySelector('.read');
        if (!read.hidden) said.push(read.innerText.replace(/\\s+/g, ' '));
    }
    svg.dataset.said = said.join('|');
}";

/// The document of the typical record after [`HOVER`], from one run of Chromium for all tests: it takes long.
static HOVERED: LazyLock<String> = LazyLock::new(|| dom(&render(&sample::typical()), HOVER));

fn said<'a>(dom: &'a str, id: &str) -> &'a str {
    let svg = crate::chart(dom, id);
    svg.split("data-said=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap_or_default()
}

#[test]
fn read_outs_match_the_record() {
    let record = sample::typical();
    let dom = &*HOVERED;
    assert!(dom.contains("data-ready=\"true\""), "the script ran to its end");
    for id in CHARTS {
        assert!(!said(dom, id).is_empty(), "{id} has read-outs");
    }
    for series in &record.series {
        let name = name_of(series);
        let max = analysis::format_ns(series.max_ns.unwrap());
        assert!(said(dom, "maxima").contains(&format!("{name} {max}")), "{name}: {max} among the maxima");
        for (one_in, value_ns) in said(dom, "percentiles").split('|').filter_map(|one| percentile_of(one, &name)) {
            // Share and value are rounded in the read-out, so the value is between neighbouring percentiles.
            let around = |times: f64| series.corrected.percentile(100.0 - 100.0 / (one_in * times)).unwrap() as f64;
            let held = around(0.98) * 0.994..=around(1.02) * 1.006;
            assert!(held.contains(&value_ns), "{name}, all but 1 in {one_in}: {value_ns} is not in {held:?}");
        }
        let counts: Vec<u64> = said(dom, "histogram").split('|').filter_map(|one| count_of(one, &name)).collect();
        assert!(
            counts.iter().all(|&count| count <= series.samples) && counts.iter().any(|&count| count > 100),
            "{name}"
        );
    }
}

/// The count of the series `name` in a read-out of the histogram.
fn count_of(read: &str, name: &str) -> Option<u64> {
    read.split(name).nth(1)?.split_whitespace().next()?.replace(',', "").parse().ok()
}

/// A read-out of the percentile curve for the series `name`: all but one in how many, and the lateness.
fn percentile_of(read: &str, name: &str) -> Option<(f64, f64)> {
    let one_in = read.strip_prefix("all but 1 in ")?.split_whitespace().next()?.replace(',', "").parse().ok()?;
    let mut words = read.split(name).nth(1)?.split_whitespace();
    let lateness = format!("{} {}", words.next()?, words.next()?);
    Some((one_in, analysis::parse_ns(&lateness).ok()? as f64))
}

#[test]
fn read_outs_name_culprits() {
    assert!(said(&HOVERED, "spikes").contains("i915"), "of a dot: {}", said(&HOVERED, "spikes"));
    let stretch = said(&HOVERED, "spike-1");
    assert!(stretch.contains("after the deadline, 9") && stretch.contains("with preemption off (pid "), "{stretch}");
}

#[test]
fn clicking_the_key_hides_a_series_in_all_charts() {
    let script = "document.querySelector('.each [data-s=\"3\"] button').click();
        document.documentElement.dataset.hidden = document.querySelectorAll('.chart .off').length;
        document.documentElement.dataset.others = document.querySelectorAll('.chart .off:not([data-s=\"3\"])').length;";
    let dom = dom(&render(&sample::typical()), script);
    assert!(dom.contains("data-others=\"0\""));
    let hidden = dom.split("data-hidden=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap();
    assert!(hidden.parse::<u32>().unwrap() >= 4, "{hidden} elements hidden");
}

#[test]
fn hostile_records_add_no_elements() {
    let script = "document.documentElement.dataset.found =
        document.querySelectorAll('img, i[onload], [onerror]').length + ' ' + document.scripts.length + ' ' + document.title.startsWith('owned');";
    let dom = dom(&render(&crate::hostile()), script);
    assert!(dom.contains("data-ready=\"true\""));
    assert!(dom.contains("data-found=\"0 2 false\""), "no element came from the record");
}

#[test]
fn the_script_accepts_odd_records() {
    let early = sample::bare(vec![sample::of_values(&[(-900, 4000), (0, 3)]), sample::of_values(&[])]);
    for record in [Record::default(), early, sample::many()] {
        assert!(dom(&render(&record), HOVER).contains("data-ready=\"true\""));
    }
}

#[test]
fn screenshots_and_printing_work() {
    let record = sample::typical();
    let dir = tempfile::tempdir().unwrap();
    let (png, pdf) = (dir.path().join("report.png"), dir.path().join("report.pdf"));
    chromium(dir.path(), &render(&record), &[&format!("--screenshot={}", png.display())]);
    assert!(fs::metadata(&png).unwrap().len() > 20_000, "the picture shows something");
    chromium(dir.path(), &render(&record), &["--no-pdf-header-footer", &format!("--print-to-pdf={}", pdf.display())]);
    let (text, _) = run("pdftotext", "poppler-utils", &["-layout", &pdf.display().to_string(), "-"]);
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for expected in [
        "The ladder of uses",
        "1 ms control loop",
        "Lateness by percentile",
        "99.9 %",
        "sudo apt install",
        "Culprits of the spikes",
        "i915 interrupt thread",
    ] {
        assert!(words.contains(expected), "{expected} on paper");
    }
}

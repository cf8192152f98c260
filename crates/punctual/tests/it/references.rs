//! Published figures, and the comparison with other records.

use std::fs;

use super::harness::Scratch;

#[test]
fn references_are_listed_and_shown_with_their_sources() {
    let scratch = Scratch::new();
    let list = scratch.run("references");
    list.expect_status(0);
    for known in ["vim3l-evl", "athlon-xenomai", "Khadas VIM3L", "`punctual references NAME`"] {
        assert!(list.stdout().contains(known), "{known} in {}", list.stdout());
    }
    let talk = scratch.run("references cortex-a53-rt").expect_status(0).stdout();
    assert!(talk.contains("https://www.youtube.com/watch?v=dcupw4Z99Ls"), "{talk}");
    let one = scratch.run("references athlon-xenomai");
    one.expect_status(0);
    for text in ["published elsewhere, not measured by punctual", "Kent", "11.1 us / 6.1 us"] {
        assert!(one.stdout().contains(text), "{text} in {}", one.stdout());
    }
    scratch.run("references vim3l-evi").expect_status(64);
    assert!(scratch.run("measure timer --against vim3l-evi").stderr().contains("the nearest is vim3l-evl"));
}

#[test]
fn a_published_record_cannot_pass_a_profile() {
    let scratch = Scratch::new();
    let json = scratch.run("references vim3l-evl --json");
    fs::write(scratch.path().join("ladder.punctual.json"), json.stdout()).unwrap();
    scratch.run("show ladder.punctual.json").expect_status(0);
    // Its largest lateness is 42.6 us, and the profile allows 50 us.
    let judged = scratch.run("show ladder.punctual.json --profile avb-class-a");
    judged.expect_status(3);
    assert!(judged.stdout().contains("INCONCLUSIVE"), "{}", judged.stdout());
    assert!(!judged.stdout().contains("PASS"), "{}", judged.stdout());
    scratch.run("show ladder.punctual.json --profile avb-class-a --export a.html").expect_status(3);
    let html = fs::read_to_string(scratch.path().join("a.html")).unwrap();
    assert!(html.contains("</span>PUBLISHED</p>") && html.contains("not measured here"), "{html}");
}

#[test]
fn files_of_other_tools_are_imported_shown_and_compared() {
    let scratch = Scratch::new();
    let samples = concat!(env!("CARGO_MANIFEST_DIR"), "/../import/tests/samples");
    let imported = scratch.run(&format!("import {samples}/cyclictest-2.4.json"));
    imported.expect_status(0);
    for text in ["measured by cyclictest, not by punctual", "1.03 ms", "23 samples are beyond the last cell"] {
        assert!(imported.stdout().contains(text), "{text} in {}", imported.stdout());
    }
    let again = scratch.run(&format!("import {samples}/cyclictest-2.4.json {samples}/oslat-2.4.txt"));
    again.expect_status(1);
    assert!(again.stderr().contains("cyclictest-2.4.punctual.json exists: remove or rename it"), "{}", again.stderr());
    let twice = scratch.run(&format!("import {samples}/oslat-2.4.json {samples}/oslat-2.4.txt"));
    assert!(twice.expect_status(1).stderr().contains("oslat-2.4.punctual.json would be written twice"));
    assert!(!scratch.path().join("oslat-2.4.punctual.json").exists(), "nothing is written");
    let own = scratch.run("import cyclictest-2.4.punctual.json").expect_status(1).stderr();
    assert!(own.contains("is a record or a document of punctual already"), "{own}");
    for shown in ["cyclictest-2.4.punctual.json".to_owned(), format!("{samples}/rtla-timerlat-hist-6.1.txt")] {
        let shown = scratch.run(&format!("show {shown} --export a.html"));
        shown.expect_status(0);
        let html = fs::read_to_string(scratch.path().join("a.html")).unwrap();
        assert!(html.contains("</span>IMPORTED</p>") && html.contains("<h2>Imported figures</h2>"), "{html}");
        assert!(
            !html.contains("class=\"line other\""),
            "a curve without the samples beyond the last cell ends too low"
        );
    }
    let judged = scratch.run("show cyclictest-2.4.punctual.json --profile audio-48k-64").expect_status(3).stdout();
    assert!(judged.contains("INCONCLUSIVE") && !judged.contains("PASS"), "{judged}");
    // The figures of all threads are compared, not those of the first.
    let compared = scratch.run(&format!(
        "measure timer --duration 1s --no-record --policy other --against {samples}/cyclictest-2.4.json"
    ));
    assert!(compared.stdout().contains("largest lateness 1.03 ms, here "), "{}", compared.stdout());
    let unknown = scratch.run(&format!("import {samples}/../../Cargo.toml"));
    unknown.expect_status(1);
    assert!(unknown.stderr().contains("is in no format that punctual reads: "), "{}", unknown.stderr());
    scratch.run("import").expect_status(64);
}

#[test]
fn a_comparison_is_stored_in_the_record() {
    let scratch = Scratch::new();
    let run =
        scratch.run("measure timer --full --record a --duration 1s --period 2ms --against vim3l-evl --policy other");
    assert!(run.stdout().contains("Compared with vim3l-evl: Khadas VIM3L"), "{}", run.stdout());
    assert!(run.stdout().contains("their period is 1 ms, yours 2 ms"), "{}", run.stdout());
    let record = scratch.record();
    let [against] = &record.against[..] else { panic!("{:?}", record.against) };
    let pair = &against.pairs[0];
    assert_eq!(
        (against.name.as_str(), pair.theirs.phase.as_str(), pair.theirs.max_ns),
        ("vim3l-evl", "idle", Some(8_575))
    );
    let worst_ns = record.series.iter().filter_map(|series| series.max_ns).max().unwrap();
    assert_eq!((pair.ours.max_ns, pair.ratios.max), (Some(worst_ns), Some(worst_ns as f64 / 8_575.0)));

    let answer = scratch.run("show a.punctual.json --against vim3l-evl").stdout();
    assert!(answer.contains("against  vim3l-evl ("), "{answer}");
    assert!(answer.ends_with("more     punctual show --full a.punctual.json --against vim3l-evl\n"), "{answer}");

    // A record compared with itself.
    let shown = scratch.run("show a.punctual.json --against a.punctual.json --json");
    let shown: record::Record = serde_json::from_str(&shown.stdout()).unwrap();
    let ratios: Vec<_> = shown.against[0].pairs.iter().map(|pair| pair.ratios.max).collect();
    assert_eq!((ratios, shown.against[0].source.as_str()), (vec![Some(1.0)], ""));
    assert_eq!(shown.against[0].pairs[0].differs, [""; 0]);
}

#[test]
fn a_reference_file_is_read_and_its_errors_name_the_line() {
    let scratch = Scratch::new();
    let head = "title = \"A bench\"\non = \"a board\"\n";
    let figures = "[[figures]]\nprobe = \"timer\"\nphase = \"idle\"\nmax_ns = 9_000\nperiod_ns = 1_000_000\n";
    let write = |text: String| fs::write(scratch.path().join("mine.toml"), text).unwrap();
    write(format!("{head}{figures}"));
    let shown = scratch.run("references mine.toml");
    shown.expect_status(0);
    assert!(shown.stdout().contains("mine: published elsewhere"), "{}", shown.stdout());
    for (text, error) in [
        (format!("{head}{figures}max = 3\n"), "mine.toml, line 3: unknown key \"max\" in [[figures]]"),
        (head.to_owned(), "line 1: no figures"),
        (
            format!("{head}{figures}samples = 3\nhistogram_us = \"1 2\"\n"),
            "line 9: the histogram of \"idle\" contains 2 samples, but samples is 3",
        ),
        (format!("{head}{figures}histogram_us = \"one 2\"\n"), "line 8: \"one 2\" is not a bucket"),
        (format!("{head}[machine]\ncolour = \"green\"\n{figures}"), "unknown key \"colour\" in [machine]"),
        (format!("titel = 1\n{head}{figures}"), "line 1: unknown field `titel`"),
    ] {
        write(text);
        let refused = scratch.run("references mine.toml");
        refused.expect_status(1);
        assert!(refused.stderr().contains(error), "expected: {error}\ngot: {}", refused.stderr());
    }
}

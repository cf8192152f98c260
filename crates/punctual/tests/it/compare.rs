//! `punctual compare`: two sides of records.

use std::fs;

use record::{
    Histogram, Phase, Record, SCHEMA, Series, State, Validity,
    versus::{Across, Change, Measure, RoundOrder, Versus},
};

use crate::harness::{Run, Scratch};

/// Writes a record with so many wake-ups of 10 us and one of each of `worst_us`, as round number `round`.
fn write(scratch: &Scratch, name: &str, round: u32, worst_us: &[i64]) {
    write_ns(scratch, name, round, 10_000, worst_us);
}

/// The same with the usual lateness `usual_ns`.
fn write_ns(scratch: &Scratch, name: &str, round: u32, usual_ns: i64, worst_us: &[i64]) {
    let mut raw = Histogram::default();
    raw.add(usual_ns, 5_000);
    worst_us.iter().for_each(|us| raw.add(us * 1_000, 20));
    let series = Series {
        phase: "rest".to_owned(),
        role: record::TIMER.to_owned(),
        period_ns: 1_000_000,
        samples: raw.total(),
        max_ns: worst_us.iter().max().map(|us| us * 1_000),
        corrected: raw.clone(),
        raw,
        ..Series::default()
    };
    let mut record = Record {
        schema: SCHEMA.to_owned(),
        state: State::Complete,
        validity: Validity { valid: true, ..Validity::default() },
        started_at: format!("2026-11-01T10:{round:02}:00Z"),
        phases: vec![Phase {
            name: "rest".to_owned(),
            period_ns: 1_000_000,
            duration_ns: 10_000_000_000,
            ..Phase::default()
        }],
        series: vec![series],
        ..Record::default()
    };
    record.scenario.probe = record::TIMER.to_owned();
    record.machine.hostname = Some("board".to_owned());
    let kernel = match name.chars().next() {
        Some('a') => "6.1.0",
        Some('c') => "6.18.0",
        _ => "6.12.0",
    };
    record.machine.kernel = Some(kernel.to_owned());
    let path = scratch.path().join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, record::file::to_json(&record)).unwrap();
}

/// Ten rounds of each side in turn: B is `percent` of A.
fn measured(scratch: &Scratch, percent: i64) {
    for round in 0..10 {
        let noise = i64::from(round * 7 % 5);
        write(scratch, &format!("a/{round}.punctual.json"), 2 * round, &[100 + noise, 200 + noise]);
        let b = |us: i64| us * percent / 100 + i64::from(round * 3 % 5);
        write(scratch, &format!("b/{round}.punctual.json"), 2 * round + 1, &[b(100), b(200)]);
    }
}

fn status(run: &Run) -> i32 {
    run.0.status.code().unwrap()
}

fn document(text: &str) -> Versus {
    serde_json::from_str(text).unwrap()
}

/// Two published matrices of machine-tool threads with 16 pairs of CPUs, which have jitter as their only figure.
#[test]
fn each_pair_of_cpus_of_two_matrices_is_compared() {
    let scratch = Scratch::new();
    let published = include_str!("../../../../references/athlon-xenomai.toml");
    // The first cell of the idle matrix: servo 7.7 us, base 7.5 us.
    let changed = published.replacen(" 7.7/7.5 ", "15.4/0.075 ", 1);
    assert_ne!(published, changed);
    fs::write(scratch.path().join("mine.toml"), changed).unwrap();
    let run = scratch.run("compare athlon-xenomai -- ./mine.toml --full");
    let text = run.stdout();
    let row = text.lines().find(|line| line.starts_with("  base 0 ")).unwrap();
    assert_eq!(
        row.split_whitespace().collect::<Vec<_>>().join(" "),
        "base 0 2.00x / 0.010x 1.00x / 1.00x 1.00x / 1.00x 1.00x / 1.00x"
    );
    let pairs = document(&scratch.run("compare athlon-xenomai -- ./mine.toml --json").stdout()).pairs;
    assert_eq!(pairs.len(), 32, "16 at rest, 16 with CPU hogs");
    assert_eq!((&pairs[0].jitter_a_ns, &pairs[0].jitter_b_ns), (&vec![7500.0, 7700.0], &vec![75.0, 15_400.0]));
}

#[test]
fn a_side_that_is_less_punctual_is_worse() {
    let scratch = Scratch::new();
    measured(&scratch, 150);
    let run = scratch.run("compare a -- b --json");
    assert_eq!(status(&run), 0, "{}", run.stderr());
    let versus = document(&run.stdout());
    assert_eq!((versus.change, versus.order), (Change::Worse, RoundOrder::AlternatingSameFirst));
    let effect = &versus.groups[0].effects[&Measure::Max];
    assert!((1.4..1.6).contains(&effect.estimate) && effect.low.unwrap() > 1.0, "{effect:?}");
    let kernel = versus.differs.iter().find(|differs| differs.what == "kernel").unwrap();
    assert_eq!((&*kernel.a, &*kernel.b), (&["6.1.0".to_owned()][..], &["6.12.0".to_owned()][..]));
    // For continuous integration.
    assert_eq!(status(&scratch.run("compare a b --fail-if worse --quiet")), 2);
    let other_way = scratch.run("compare b -- a --fail-if worse --quiet");
    assert_eq!(status(&other_way), 0);
    assert!(other_way.stdout().contains("BETTER  B is more punctual than A: "), "{}", other_way.stdout());
    assert_eq!(status(&scratch.run("compare b -- a --fail-if not-better -q")), 0);
}

#[test]
fn the_same_twice_is_no_difference_and_says_how_many_rounds_show_one() {
    let scratch = Scratch::new();
    measured(&scratch, 100);
    let run = scratch.run("compare a -- b --fail-if worse");
    assert_eq!(status(&run), 0);
    let text = run.stdout();
    assert!(text.starts_with("NO DIFFERENCE SHOWN  10 rounds of A and 10 rounds of B"), "{text}");
    assert!(text.contains("Rounds of each side in the order A B B A that show 20 % more"), "{text}");
    assert_eq!(status(&scratch.run("compare a -- b --fail-if not-better -q")), 2);
}

/// Records of a kernel with each name, one round each.
#[test]
fn values_with_too_few_rounds_are_not_judged() {
    let scratch = Scratch::new();
    for (round, name) in ["a", "b", "c"].into_iter().enumerate() {
        write(&scratch, &format!("{name}.punctual.json"), u32::try_from(round).unwrap(), &[100]);
    }
    let text = scratch.run("compare --across kernel a.punctual.json b.punctual.json c.punctual.json").stdout();
    assert!(text.contains("Nothing is judged across 3 values of kernel: at least "), "{text}");
}

/// A column of rtla for each CPU, and a cell of 100 samples: the round has the figures of all CPUs together.
#[test]
fn cpus_of_an_import_are_one_round() {
    let scratch = Scratch::new();
    let text = |us: u32| {
        format!(
            "# RTLA timerlat histogram\n# Time unit is microseconds (us)\n# Duration:   0 00:00:05\nIndex   Thr-000   Thr-001\n\
             10  100  0\n20  0  {us}\nover:  0  0\ncount:  100  {us}\nmin:  10  20\navg:  12  22\nmax:  12  {us}\n"
        )
    };
    fs::write(scratch.path().join("a.txt"), text(25)).unwrap();
    fs::write(scratch.path().join("b.txt"), text(29)).unwrap();
    let versus = document(&scratch.run("compare a.txt b.txt --json").stdout());
    let [group] = &versus.groups[..] else { panic!("{:?}", versus.groups) };
    assert_eq!((group.rounds_a, group.rounds_b), (1, 1));
    let max = &group.effects[&Measure::Max];
    assert!((max.a - 25_000.0).abs() < 1.0 && (max.b - 29_000.0).abs() < 1.0, "the larger one of both CPUs: {max:?}");
}

#[test]
fn several_records_are_shown_together() {
    let scratch = Scratch::new();
    write(&scratch, "a.punctual.json", 0, &[100]);
    write(&scratch, "b.punctual.json", 1, &[900]);
    rows(&scratch, "c.txt", 1);
    let run = scratch.run("show a.punctual.json b.punctual.json c.txt");
    let text = run.stdout();
    assert!(status(&run) == 0 && text.contains("3 records together."), "{text}{}", run.stderr());
    let row = |name: &str| text.lines().find(|line| line.trim_start().starts_with(name)).unwrap().to_owned();
    assert!(row("b ").split_whitespace().collect::<Vec<_>>().join(" ").starts_with("b 10.0 us 10.0 us"), "{text}");
    assert!(row("c.txt ").ends_with("thread-0"), "all are in one table: {text}");
    assert!(!text.contains("rounds") && text.contains("c.txt: the file does not say its unit"), "{text}");
    let exported =
        scratch.run("show a.punctual.json b.punctual.json --export t.html --export t.tex --export t.md --export t.csv");
    assert_eq!(status(&exported), 0, "{}", exported.stderr());
    let read = |name: &str| fs::read_to_string(scratch.path().join(name)).unwrap();
    assert!(read("t.tex").contains("a & 10.0 us"), "{}", read("t.tex"));
    assert!(read("t.md").contains("| b | 10.0 us"), "{}", read("t.md"));
    assert!(read("t.csv").contains("\"b.punctual.json\",1,max_ns,900000,,,,"), "{}", read("t.csv"));
    assert_eq!(read("t.html").matches("data-n=\"").count(), 4, "two curves for each record");
    assert_eq!(status(&scratch.run("show a.punctual.json b.punctual.json --against vim3l-evl")), 64);
}

#[test]
fn single_rounds_are_not_judged() {
    let scratch = Scratch::new();
    write(&scratch, "a.punctual.json", 0, &[100]);
    write(&scratch, "b.punctual.json", 1, &[900]);
    let run = scratch.run("compare a.punctual.json b.punctual.json --fail-if worse");
    assert_eq!(status(&run), 3, "nothing was judged, which is no success");
    assert!(
        run.stdout().contains("NOT JUDGED  1 round of A and 1 round of B cannot show a difference"),
        "{}",
        run.stdout()
    );
    let published = scratch.run("compare a.punctual.json vim3l-evl");
    assert!(published.stdout().contains("are a single round"), "{}", published.stdout());
}

#[test]
fn files_of_other_tools_are_rounds() {
    let scratch = Scratch::new();
    for round in 0..6 {
        rows(&scratch, &format!("old-{round}.txt"), 2 * round);
        rows(&scratch, &format!("new-{round}.txt"), 2 * round + 1);
    }
    let names = |start: &str| (0..6).map(|round| format!("{start}-{round}.txt ")).collect::<String>();
    let run = scratch.run(&format!("compare {}-- {}--json", names("old"), names("new")));
    assert_eq!(status(&run), 0, "{}", run.stderr());
    let versus = document(&run.stdout());
    assert_eq!((versus.change, versus.groups[0].rounds_a), (Change::NoDifference, 6));
}

/// A file of a timer and one of a network on each side, in another order.
#[test]
fn files_of_two_measurements_on_a_side_are_named() {
    let scratch = Scratch::new();
    let network = |name: &str, max: &str| {
        let text = format!(
            "sockperf: == version #3.7 ==\n[ 0] IP = 127.0.0.1 PORT = 1 # UDP\nsockperf: ========= Printing statistics for Server No: \
             0\nsockperf: Summary: Round trip is 6.9 usec\nsockperf: Total 500 observations; each\nsockperf: ---> <MAX> observation = \
             {max}\nsockperf: ---> percentile 50.000 = 6.7\nsockperf: ---> <MIN> observation = 6.6\n"
        );
        fs::write(scratch.path().join(name), text).unwrap();
    };
    rows(&scratch, "t1.txt", 1);
    rows(&scratch, "t2.txt", 2);
    network("n1.txt", "80.5");
    network("n2.txt", "90.5");
    let run = scratch.run("compare t1.txt n1.txt -- n2.txt t2.txt --export t.md");
    let text = run.stdout().split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("1 round of A and 1 round of B cannot show a difference"), "{text}");
    assert!(text.contains("A 2 records with different groups: t1.txt to n1.txt"), "{text}");
    let note = "A: its records have different groups of threads, which are compared separately: thread-0 is in t1.txt; sockperf is \
                in n1.txt.";
    assert!(text.contains(note), "{text}");
    assert!(fs::read_to_string(scratch.path().join("t.md")).unwrap().contains("sockperf is in n2.txt"));
    let versus = document(&scratch.run("compare t1.txt n1.txt -- n2.txt t2.txt --json").stdout());
    let phases: Vec<_> = versus.groups.iter().map(|group| (group.a.phase.as_str(), group.b.phase.as_str())).collect();
    assert_eq!(phases, [("thread-0", "thread-0"), ("sockperf", "sockperf")]);
}

#[test]
fn tables_are_written_for_papers_and_comments() {
    let scratch = Scratch::new();
    measured(&scratch, 150);
    let run = scratch.run("compare a -- b --export t.tex --export t.md --export t.csv --export t.html --export t.json");
    assert_eq!(status(&run), 0, "{}", run.stderr());
    let read = |name: &str| fs::read_to_string(scratch.path().join(name)).unwrap();
    assert!(read("t.tex").contains("\\toprule") && read("t.tex").contains("max & 20"), "{}", read("t.tex"));
    assert!(read("t.md").starts_with("**WORSE** B is less punctual"), "{}", read("t.md"));
    assert!(read("t.csv").lines().count() > 4 && read("t.csv").contains("max_ns,"), "{}", read("t.csv"));
    for chart in ["curves-0", "exceedance-0", "ratios-0"] {
        assert!(read("t.html").contains(&format!("data-chart=\"{chart}\"")), "{chart}");
    }
    assert_eq!(document(&read("t.json")).change, Change::Worse);
}

#[test]
fn a_run_that_is_named_twice_is_no_second_round() {
    let scratch = Scratch::new();
    measured(&scratch, 100);
    let run = scratch.run("compare a a/3.punctual.json -- b");
    assert_eq!(status(&run), 64);
    assert!(run.stderr().contains("a/3.punctual.json and a/3.punctual.json are the same run"), "{}", run.stderr());
    let both = scratch.run("compare a -- b a/3.punctual.json --fail-if worse");
    let expected = "are the same run, because both started at";
    assert!(status(&both) == 64 && both.stderr().contains(expected), "{}", both.stderr());
    assert!(both.stderr().contains(": name it on one side only"), "{}", both.stderr());
}

/// Files of cyclictest with rows of a histogram: `round` makes each different.
fn rows(scratch: &Scratch, name: &str, round: u32) {
    // All files have the same number of samples, so none lacks some beyond its last cell.
    let count = |us: u32| if us == 1 { 10_000 - 99 * round } else { 1_000 / us + round };
    let text: String = (1..=100).map(|us| format!("{us:06} {:06}\n", count(us))).collect();
    fs::write(scratch.path().join(name), text).unwrap();
}

#[test]
fn an_imported_run_that_is_named_twice_is_no_second_round() {
    let scratch = Scratch::new();
    rows(&scratch, "a.txt", 1);
    rows(&scratch, "b.txt", 2);
    fs::copy(scratch.path().join("a.txt"), scratch.path().join("copy.txt")).unwrap();
    scratch.run("import a.txt --quiet").expect_status(0);
    let (same_file, equal) = ("they are the same file", "their histograms are equal");
    for (twice, why) in [
        ("a.txt a.txt", same_file),
        ("a.txt ./a.txt", same_file),
        ("a.txt copy.txt", equal),
        ("a.txt a.punctual.json", equal),
    ] {
        let run = scratch.run(&format!("compare b.txt -- {twice} --fail-if worse"));
        assert_eq!(status(&run), 64, "{twice}: {}", run.stdout());
        assert!(run.stderr().contains(&format!("are the same run, because {why}")), "{}", run.stderr());
    }
    let both = scratch.run("compare a.txt copy.txt");
    assert!(status(&both) == 64 && both.stderr().contains("because their histograms are equal"), "{}", both.stderr());
}

#[test]
fn a_run_in_two_formats_is_one_round() {
    let scratch = Scratch::new();
    measured(&scratch, 100);
    // Fewer different times can be equal by chance.
    write(&scratch, "a/3.punctual.json", 6, &(0..15).map(|n| 100 + 7 * n).collect::<Vec<i64>>());
    scratch.run("show a/3.punctual.json --export 3.hlog --export 3.hgrm --export 3.csv --quiet").expect_status(0);
    for twice in [
        "compare b -- a/3.punctual.json 3.hlog",
        "compare 3.hgrm -- 3.hlog",
        "compare a -- 3.hgrm",
        "compare a -- 3.csv",
        "compare 3.hlog -- 3.csv",
    ] {
        let run = scratch.run(twice);
        assert_eq!(status(&run), 64, "{twice}: {}", run.stdout());
        assert!(run.stderr().contains("are the same run, because their histograms are equal"), "{}", run.stderr());
    }
}

#[test]
fn each_file_of_a_folder_without_records_is_a_round() {
    let scratch = Scratch::new();
    for (folder, rounds) in [("a", 1..4), ("b", 4..7)] {
        fs::create_dir(scratch.path().join(folder)).unwrap();
        rounds.for_each(|round| rows(&scratch, &format!("{folder}/{round}.txt"), round));
    }
    let versus = document(&scratch.run("compare a b --json").stdout());
    assert_eq!((versus.a.records.len(), versus.b.records[0].as_str()), (3, "b/4.txt"));
    fs::write(scratch.path().join("b/README"), "Nine runs of a board.\n").unwrap();
    let run = scratch.run("compare a b");
    assert_eq!(status(&run), 1);
    assert!(
        run.stderr().contains("b has no records (*.punctual.json), so each of its files must be a result"),
        "{}",
        run.stderr()
    );
    assert!(run.stderr().contains("b/README is in no format that punctual reads"), "{}", run.stderr());
}

#[test]
fn runs_that_were_not_as_requested_are_no_rounds() {
    let scratch = Scratch::new();
    measured(&scratch, 150);
    let change = |name: &str, change: fn(&mut Record)| {
        let path = scratch.path().join(name);
        let mut record = record::file::read(&path).unwrap();
        change(&mut record);
        fs::write(path, record::file::to_json(&record)).unwrap();
    };
    change("b/3.punctual.json", |record| record.validity.valid = false);
    change("b/5.punctual.json", |record| record.state = State::Partial);
    let run = scratch.run("compare a -- b --export t.html --export t.md --export t.tex --fail-if worse");
    assert_eq!(status(&run), 2);
    let text = run.stdout().replace('\n', " ");
    assert!(text.contains("b/3.punctual.json is left out, because the run is invalid"), "{text}");
    assert!(text.contains("b/5.punctual.json is left out, because the run ended early"), "{text}");
    for name in ["t.html", "t.md", "t.tex"] {
        let text = fs::read_to_string(scratch.path().join(name)).unwrap();
        assert!(text.contains("b/3.punctual.json is left out"), "{name}: {text}");
    }
    let versus = document(&scratch.run("compare a -- b --json").stdout());
    assert_eq!((versus.b.records.len(), versus.b.left_out.len(), versus.groups[0].rounds_b), (8, 2, 8));
    let across = scratch.run("compare --across kernel a b").stdout().replace('\n', " ");
    assert!(across.contains("6.12.0: b/3.punctual.json is left out"), "{across}");
    for round in 0..10 {
        change(&format!("b/{round}.punctual.json"), |record| record.state = State::Partial);
    }
    let none = scratch.run("compare a -- b --fail-if worse");
    assert_eq!(status(&none), 3, "{}", none.stdout());
    assert!(
        none.stdout().contains("CANNOT BE COMPARED  B has no round: all of its 10 records are left out."),
        "{}",
        none.stdout()
    );
}

#[test]
fn the_caveats_of_imports_are_shown_with_the_comparison() {
    let scratch = Scratch::new();
    rows(&scratch, "a.txt", 1);
    rows(&scratch, "b.txt", 2);
    let run = scratch.run("compare a.txt b.txt --export t.html --export t.md");
    let text = run.stdout().replace("\n  ", " ").replace('\n', " ");
    let caveat = "the file does not say its unit; microseconds are assumed";
    assert!(text.contains(&format!("A and B: {caveat}")), "{text}");
    for name in ["t.html", "t.md"] {
        let text = fs::read_to_string(scratch.path().join(name)).unwrap();
        assert!(text.contains(caveat), "{name}: {text}");
    }
    let versus = document(&scratch.run("compare a.txt b.txt --json").stdout());
    assert!(versus.a.caveats.iter().any(|caveat| caveat.kind == "units"), "{:?}", versus.a);
    write(&scratch, "c.punctual.json", 0, &[100]);
    let shown = scratch.run("show c.punctual.json --against a.txt --full --export t.html").stdout().replace('\n', " ");
    assert!(fs::read_to_string(scratch.path().join("t.html")).unwrap().contains(caveat), "the page");
    let shown = shown + &scratch.run("show c.punctual.json --against a.txt --full").stdout().replace('\n', " ");
    assert!(shown.contains(caveat), "{shown}");
}

#[test]
fn times_below_1_us_and_alternating_sides_are_explained() {
    let scratch = Scratch::new();
    for round in 0..10 {
        write_ns(&scratch, &format!("a/{round}.punctual.json"), 2 * round, 100, &[100]);
        write_ns(&scratch, &format!("b/{round}.punctual.json"), 2 * round + 1, 900, &[100]);
    }
    let text = scratch.run("compare a -- b").stdout().split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("Times below 1 us count as 1 us in B / A: median"), "{text}");
    assert!(text.contains("The sides alternate, so each round of B is compared with its neighbour of A"), "{text}");
}

#[test]
fn kernels_are_compared_in_the_order_of_their_versions() {
    let scratch = Scratch::new();
    measured(&scratch, 150);
    let run = scratch.run("compare --across kernel a b --fail-if worse");
    assert_eq!(status(&run), 2, "{}", run.stderr());
    let text = run.stdout();
    assert!(text.contains("6.12.0 is less punctual than 6.1.0: "), "{text}");
    let same = scratch.run("compare --across kernel a").stderr();
    assert!(same.contains("all records have the same kernel (6.1.0)"), "{same}");
    let rows: Vec<&str> = text.lines().filter(|line| line.starts_with("  6.")).collect();
    assert!(rows[0].starts_with("  6.1.0") && rows[1].starts_with("  6.12.0") && rows[1].contains("worse"), "{text}");
    let document: serde_json::Value =
        serde_json::from_str(&scratch.run("compare --across kernel a b --json").stdout()).unwrap();
    assert_eq!(document["steps"][1]["versus"]["change"], "worse");
    let same = scratch.run("compare --across host a b");
    assert!(
        status(&same) == 64 && same.stderr().contains("all records have the same host (board)"),
        "{}",
        same.stderr()
    );
    fs::write(scratch.path().join("other.txt"), "000001 000100\n000002 000001\n").unwrap();
    let run = scratch.run("compare --across kernel a b other.txt --fail-if worse");
    let said = run.stdout().replace('\n', " ");
    assert_eq!(status(&run), 2, "the other file is no value of its own");
    assert!(said.contains(" other.txt is left out, because it does not contain the kernel"), "{said}");
    assert!(!said.contains(": other.txt is left out"), "it belongs to no value: {said}");
    let none = scratch.run("compare --across kernel other.txt");
    assert!(none.stderr().contains("no record contains the kernel"), "{}", none.stderr());
    let unknown = scratch.run("compare --across colour a b");
    assert!(status(&unknown) == 64 && unknown.stderr().contains("use one of tool, probe,"), "{}", unknown.stderr());
}

/// 4 % worse in each of two steps, which is too little to count, but not both together.
#[test]
fn small_changes_in_one_direction_are_a_change_from_the_first_to_the_last() {
    let scratch = Scratch::new();
    for round in 0..10 {
        let noise = i64::from(round * 7 % 3);
        for (index, (side, percent)) in (0..).zip([("a", 100), ("b", 104), ("c", 109)]) {
            let worst = [100, 200].map(|us| us * percent / 100 + noise);
            write(&scratch, &format!("{side}/{round}.punctual.json"), 3 * round + index, &worst);
        }
    }
    let run =
        scratch.run("compare --across kernel a b c --export page.html --export t.md --export t.csv --export t.tex");
    let text = run.stdout();
    assert!(text.contains("6.18.0 is less punctual than 6.1.0: "), "{text}{}", run.stderr());
    assert!(!text.contains("6.12.0 is") && !text.contains("than 6.12.0"), "{text}");
    assert_eq!(text.matches("no difference").count(), 2, "{text}");
    let file = |name: &str| fs::read_to_string(scratch.path().join(name)).unwrap();
    let page = file("page.html");
    assert_eq!(page.matches("data-n=\"").count(), 6, "two curves for each kernel: percentiles and exceedance");
    for (name, expected) in
        [("page.html", "6.18.0 is less punctual than 6.1.0"), ("t.md", "| 6.12.0 | 10 |"), ("t.tex", "6.12.0 & 10 &")]
    {
        assert!(file(name).contains(expected), "{name}: {}", file(name));
    }
    let row = file("t.csv")
        .lines()
        .find(|line| line.starts_with("\"at rest\",\"6.12.0\",10,max_ns,209000,1.0"))
        .map(str::to_owned);
    assert!(row.is_some_and(|row| row.ends_with(",no difference")), "{}", file("t.csv"));
    let document: Across = serde_json::from_str(&scratch.run("compare --across kernel a b c --json").stdout()).unwrap();
    assert_eq!(document.overall.unwrap().change, Change::Worse);
    assert!(document.steps.iter().all(|step| step.groups[0].histogram.total() > 0));
}

#[test]
fn a_missing_side_has_a_remedy() {
    let scratch = Scratch::new();
    fs::create_dir(scratch.path().join("empty")).unwrap();
    for (line, expected) in [
        ("compare a.punctual.json", "`compare` needs two sides: write `--` between"),
        ("compare a -- b -- c", "`compare` has two sides: write `--` only once; --across CONDITION compares more"),
        ("compare a b c", "`compare` needs two sides: write `--` between"),
        ("compare empty -- empty", "empty has no records (*.punctual.json): name a folder or files with results"),
        ("compare a.txt -- nosuch", "no reference is called \"a.txt\""),
        ("compare x y --least 5", "use a percentage above 5, because"),
        ("compare empty -- empty --export a.hgrm", "its name must end in .json, .csv, .html, .md or .tex"),
    ] {
        let run = scratch.run(line);
        assert_eq!(status(&run), 64, "{line}: {}", run.stderr());
        assert!(run.stderr().contains(expected), "{line}: {}", run.stderr());
    }
}

#[test]
fn a_measurement_is_repeated_in_rounds_and_compared() {
    let scratch = Scratch::new();
    let measure = "measure timer --duration 200ms --policy other --blame off --rounds";
    let first = scratch.run(&format!("{measure} 5 --record a"));
    first.expect_status(0);
    assert_eq!(first.stdout().matches("Worst").count(), 5, "{}", first.stdout());
    assert!(first.stderr().contains("compare with others: punctual compare OTHERS -- a"), "{}", first.stderr());
    let records: Vec<_> = (1..=5).map(|round| format!("a/{round}.punctual.json")).collect();
    for record in &records {
        assert!(scratch.path().join(record).exists(), "{record}");
    }
    let second = scratch.run(&format!("{measure} 5 --against a --record b/of-two"));
    second.expect_status(0);
    for text in ["A  5 rounds: a/1.punctual.json to a/5.punctual.json", "B  5 rounds: b/of-two/1", "interval"] {
        assert!(second.stdout().contains(text), "{text} in {}", second.stdout());
    }
    assert_eq!(
        status(&scratch.run("compare a -- b/of-two --fail-if not-better --quiet")) % 2,
        0,
        "2 or 0: it is judged"
    );
    for (line, expected) in [
        (format!("{measure} 2 --record a"), "the folder a is not empty: name a new one with --record"),
        (format!("{measure} 2 --against nosuch"), "no reference is called \"nosuch\""),
        (format!("{measure} 2 --no-record"), "--rounds cannot be used with --no-record"),
        (format!("{measure} 0"), "--rounds must be 1 to 1000"),
    ] {
        let run = scratch.run(&line);
        assert_eq!(status(&run), 64, "{line}: {}", run.stderr());
        assert!(run.stderr().contains(expected), "{line}: {}", run.stderr());
    }
    assert!(!scratch.path().join("rounds").exists());
}

//! Compares the references with their sources. The figures here were typed from the publications, not from the files.

use std::{collections::BTreeSet, fs, path::Path};

use record::{CellThread, Figures, Published};

use super::*;

fn published(name: &str) -> &'static Published {
    let named = references().iter().filter_map(|record| record.published.as_ref()).find(|of| of.name == name);
    named.unwrap_or_else(|| panic!("{name} is a reference"))
}

fn figures(name: &str, phase: &str, role: &str) -> &'static Figures {
    let mut of = published(name).figures.iter();
    of.find(|f| f.phase == phase && f.role == role).unwrap_or_else(|| panic!("{name} has {phase} {role}"))
}

/// Also ensures that building the references cannot panic.
#[test]
fn every_file_is_listed_and_parses() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../references");
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let on_disk: BTreeSet<_> = names.map(|name| name.strip_suffix(".toml").unwrap().to_owned()).collect();
    let listed: BTreeSet<_> = FILES.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(on_disk, listed);
    assert!(FILES.is_sorted());
}

#[test]
fn every_reference_matches_the_schema_and_is_marked_as_published() {
    let validator = jsonschema::validator_for(&record::json_schema()).unwrap();
    for reference in references() {
        let bytes = record::file::to_json(reference);
        let value: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
        let errors: Vec<_> = validator.iter_errors(&value).map(|error| error.to_string()).collect();
        let published = reference.published.as_ref().unwrap();
        assert!(errors.is_empty(), "{}: {errors:?}", published.name);
        assert_eq!(&record::file::parse(&bytes).unwrap(), reference);
        assert!(!published.title.is_empty() && published.source().contains(&published.title));
        assert!(reference.caveats.iter().any(|caveat| caveat.kind == "published"));
        assert!(!reference.validity.valid && reference.validity.reasons[0].id == "published");
        assert!(reference.series.is_empty() && reference.verdict.is_none(), "nothing was measured here");
        assert!(std::str::from_utf8(&bytes).unwrap().is_ascii(), "{}", published.name);
    }
}

#[test]
fn docs_list_every_reference_with_its_source() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/references.md");
    let docs = fs::read_to_string(docs).unwrap();
    let rows: Vec<_> = docs.lines().filter(|line| line.starts_with("| `")).collect();
    assert_eq!(rows.len(), FILES.len());
    for (row, (name, _)) in rows.iter().zip(FILES) {
        assert!(row.starts_with(&format!("| `{name}` |")), "docs/references.md: {row}");
        let of = published(name);
        let known = [&of.date, &of.author, &of.url].into_iter().filter(|text| !text.is_empty());
        assert!(row.contains("as above") || known.clone().all(|text| row.contains(text)), "{row} names {of:?}");
    }
}

#[test]
fn figures_differ_in_phase_role_or_placement() {
    for reference in references() {
        let all = &reference.published.as_ref().unwrap().figures;
        let keys: BTreeSet<_> = all.iter().map(|f| (&f.probe, &f.phase, &f.role, f.together)).collect();
        assert_eq!(keys.len(), all.len(), "{}", reference.published.as_ref().unwrap().name);
    }
}

#[test]
fn the_load_ladder_of_the_vim3l() {
    let ladder = [
        ("idle", 49_468, 52, 344.0, 8_575, 49_364),
        ("switch-200us", 36_570, 6_554, 9_504.0, 13_850, 16_235),
        ("switch-10us-cache", 39_489, 7_531, 14_013.0, 42_643, 5_495),
        ("switch-10us-cache-ping", 39_882, 7_170, 13_763.0, 41_726, 5_322),
    ];
    assert_eq!(published("vim3l-evl").figures.len(), ladder.len());
    for (phase, samples, min_ns, mean_ns, max_ns, most) in ladder {
        let of = figures("vim3l-evl", phase, "");
        assert_eq!((of.samples, of.min_ns, of.max_ns), (Some(samples), Some(min_ns), Some(max_ns)), "{phase}");
        assert_eq!((of.mean_ns, of.missed, of.period_ns), (Some(mean_ns), Some(0), Some(1_000_000)));
        let histogram = of.histogram.as_ref().unwrap();
        assert_eq!((histogram.total(), histogram.iter().map(|(_, count)| count).max()), (samples, Some(most)));
        assert!(histogram.iter().next_back().unwrap().0 >= max_ns);
    }
    // 8 + 836 + 9973 of 36570 samples are below 9 us and 16235 more below 10 us, so the median is among the latter.
    assert_eq!(figures("vim3l-evl", "switch-200us", "").p50_ns.map(|ns| ns / 1_000), Some(9));
    // All but 196 + 12 samples, i.e. more than 99 %, are below 12 us.
    assert_eq!(figures("vim3l-evl", "switch-200us", "").p99_ns.map(|ns| ns / 1_000), Some(11));
    assert_eq!(figures("vim3l-evl", "idle", "").p99_ns.map(|ns| ns / 1_000), Some(0));
}

#[test]
fn isolated_and_ordinary_cpus_of_the_raspberry_pi() {
    for (name, phase, min_us, mean_us, max_us, isolated) in [
        ("rpi3-rt", "isolated", 7, 7.0, 16, true),
        ("rpi3-rt", "ordinary", 6, 8.0, 26, false),
        ("rpi3-arch", "isolated", 7, 7.0, 16, true),
        ("rpi3-arch", "ordinary", 6, 8.0, 23, false),
    ] {
        let of = figures(name, phase, "");
        let expected = (Some(min_us * 1_000), Some(mean_us * 1_000.0), Some(max_us * 1_000));
        assert_eq!((of.min_ns, of.mean_ns, of.max_ns), expected, "{name} {phase}");
        assert_eq!((of.isolated, of.samples, of.period_ns), (Some(isolated), Some(100_000), Some(400_000)));
        assert_eq!((of.missed, of.jitter_ns, of.p99_ns), (None, None, None), "not reported by cyclictest");
    }
}

#[test]
fn two_boards_and_three_kinds_of_latency() {
    let of = figures("cortex-a53-rt", "shielded", "");
    assert_eq!((of.max_ns, of.mode_ns, of.min_ns, of.period_ns), (Some(17_000), Some(7_000), None, None));
    assert_eq!(figures("cortex-a53-rt", "udp", "round-trip").max_ns, Some(168_000));
    assert_eq!(figures("cortex-a53-rt", "interrupt", "").max_ns, Some(30_000));
    assert_eq!(figures("cortex-a53-rt", "interrupt", "").loads, None, "the load is not named");
    let of = figures("cortex-a9-rt", "shielded", "");
    assert_eq!((of.max_ns, of.mode_ns), (Some(54_000), Some(19_000)));
    let of = figures("cortex-a9-rt", "udp", "round-trip");
    assert_eq!((of.max_ns, of.max_above_ns), (None, Some(800_000)), "beyond the last bin");
}

#[test]
fn an_avb_talker_and_its_listener() {
    for (phase, period_us, samples, max_us) in
        [("thread-0", 125, 233_602, 31), ("thread-1", 625, 46_715, 12), ("thread-2", 1125, 25_949, 14)]
    {
        let of = figures("intel-avb", phase, "");
        assert_eq!((of.period_ns, of.samples), (Some(period_us * 1_000), Some(samples)));
        assert_eq!(of.max_ns, Some(max_us * 1_000));
    }
    for (phase, max_ns) in [
        ("unpinned", 35_454),
        ("isolated", 7_323),
        ("isolated-offset-8us", 76),
        ("isolated-offset-8us-to-listener", 73),
    ] {
        let of = figures("intel-avb", phase, "talker");
        assert_eq!((of.max_ns, of.late, of.samples), (Some(max_ns), Some(0), Some(80_000)), "{phase}");
    }
    let listener = figures("intel-avb", "isolated-offset-8us-to-listener", "listener");
    assert_eq!((listener.max_gap_ns, listener.late, listener.max_ns), (Some(197_201), Some(3), None));
    assert_eq!(figures("intel-avb", "isolated-offset-8us", "wire").max_gap_ns, Some(134_000));
}

#[test]
fn both_tables_of_the_athlon() {
    let reference = references().iter().find(|of| of.published.as_ref().unwrap().name == "athlon-xenomai").unwrap();
    assert_eq!(reference.cells.len(), 32);
    let jitter = |load: &str, base: u32, servo: u32| {
        let at = |thread: &CellThread| (thread.role.clone(), thread.cpu);
        let pair = [("base".to_owned(), base), ("servo".to_owned(), servo)];
        let cell = reference
            .cells
            .iter()
            .find(|cell| cell.load == load && cell.threads.iter().map(at).collect::<Vec<_>>() == pair);
        let [base, servo] = &cell.unwrap().threads[..] else { panic!("two threads") };
        (servo.jitter_ns, base.jitter_ns)
    };
    // The example in the publication: servo on CPU 2 and base on CPU 1.
    assert_eq!(jitter("noload", 1, 2), (11_100, 6_100));
    assert_eq!(jitter("noload", 0, 0), (7_700, 7_500));
    assert_eq!(jitter("noload", 3, 0), (15_000, 5_700));
    assert_eq!(jitter("noload", 0, 3), (10_500, 9_200));
    assert_eq!(jitter("cpu:shell@0-1", 2, 2), (2_500, 4_900));
    assert_eq!(jitter("cpu:shell@0-1", 0, 3), (8_100, 10_000));
    assert_eq!(jitter("cpu:shell@0-1", 2, 1), (15_200, 4_800));
    let worst = |phase: &str, role: &str, together: bool| {
        let mut of = published("athlon-xenomai").figures.iter();
        of.find(|f| f.phase == phase && f.role == role && f.together == Some(together)).unwrap().jitter_ns
    };
    assert_eq!(worst("idle", "base", true), Some(7_500));
    assert_eq!(worst("idle", "servo", false), Some(16_500));
    assert_eq!(worst("hogs", "base", false), Some(10_000));
    assert_eq!(figures("athlon-rtai", "idle", "servo").jitter_ns, Some(4_400));
    assert_eq!(figures("athlon-rtai", "idle", "base").jitter_ns, Some(2_400));
}

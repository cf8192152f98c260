use super::*;
use crate::frame::EndReason;

fn result(number: u32, kind: Kind, after: Option<u32>) -> QuestionResult {
    QuestionResult {
        kind,
        flags: 0,
        number,
        question: number + 1,
        time: 130_000 * u64::from(number),
        after,
        lost_before: 0,
    }
}

fn end(number: u32, answered: u32, late: u32, missed: u32) -> End {
    End {
        reason: EndReason::Stopped,
        number,
        questions: answered + late + missed,
        time: 0,
        answered,
        missed,
        late,
        spurious: 1,
        active_before: 0,
        lost: 0,
        discarded: 0,
    }
}

const PERIOD_NS: u64 = 1_000_000;

fn board() -> Tally {
    Tally::new(Responses::default(), PERIOD_NS)
}

fn latmon() -> Tally {
    let about = Responses { protocol: JudgeProtocol::Latmon, resolution_ns: 1000, ..Responses::default() };
    Tally::new(about, PERIOD_NS)
}

#[test]
fn each_time_is_exact_and_misses_are_counted() {
    let mut tally = board();
    for (number, kind, after) in [
        (0, Kind::Answered, Some(1)),
        (1, Kind::Missed, None),
        (2, Kind::Late, Some(125_001)),
        (3, Kind::Answered, Some(1)),
    ] {
        tally.add_result(&result(number, kind, after)).unwrap();
    }
    tally.add_result(&result(4, Kind::Spurious, Some(9))).unwrap();
    tally.add_end(&end(5, 2, 1, 1)).unwrap();
    let series = tally.to_series("rest");
    let responses = series.kind.responses().unwrap();
    assert_eq!((series.samples, series.min_ns, series.max_ns), (3, Some(8), Some(1_000_008)));
    assert_eq!(series.max_at_ns, Some(2_080_000));
    assert_eq!(responses.exact, [(8, 2), (1_000_008, 1)]);
    assert_eq!((responses.questions, responses.answered, responses.late, responses.missed), (4, 3, 1, 1));
    assert_eq!((responses.spurious, responses.without_time, responses.complete), (1, 0, true));
    assert_eq!(series.losses.counts, [(0, 1)]);
}

#[test]
fn lost_frames_are_unknown_until_the_totals_say_more() {
    let mut tally = board();
    tally.add_result(&result(0, Kind::Answered, Some(5))).unwrap();
    tally.add_result(&QuestionResult { question: 4, ..result(4, Kind::Answered, Some(5)) }).unwrap();
    assert_eq!((tally.lost(), tally.timed()), (2, 2));
    assert_eq!((tally.counts().without_time, tally.counts().missed), (3, 0));
    // Of the three, one was a miss and one a spurious edge.
    tally.add_end(&end(5, 3, 0, 1)).unwrap();
    assert_eq!((tally.counts().without_time, tally.counts().missed, tally.counts().answered), (1, 1, 3));
    assert!(tally.to_series("rest").losses.is_empty(), "it is not known which one");
    assert!(tally.add_result(&result(2, Kind::Missed, None)).unwrap_err().contains("reset"));
    let mut tally = board();
    tally.add_result(&result(0, Kind::Missed, None)).unwrap();
    assert!(tally.add_end(&end(1, 1, 0, 0)).unwrap_err().contains("contradict"));
    // The judge lost more frames than are missing.
    let mut tally = board();
    tally.add_result(&result(0, Kind::Spurious, Some(5))).unwrap();
    assert!(tally.add_end(&End { lost: 1, ..end(1, 0, 0, 0) }).unwrap_err().contains("contradict"));
    tally = board();
    tally.add_end(&End { lost: 1, ..end(1, 0, 0, 0) }).unwrap();
}

/// A run at 50 us comes to 2^32 questions in 60 hours.
#[test]
fn an_endless_run_counts_beyond_32_bits() {
    let mut tally = board();
    let before = (1 << 32) - 3;
    (tally.last_question, tally.counts.answered, tally.timed) = (before, before - 1, before - 1);
    tally.counts.missed = 1;
    tally.next_frame = low(before);
    for n in 0..5 {
        let number = low(before + n);
        let question = low(before + n + 1);
        let time = 130_000 * n;
        tally.add_result(&QuestionResult { question, number, time, ..result(0, Kind::Answered, Some(7)) }).unwrap();
    }
    let total = 1 << 32 | 2;
    let ended = End { questions: 2, answered: 1, missed: 1, spurious: 0, ..end(2, 1, 0, 1) };
    tally.add_end(&ended).unwrap();
    let Responses { questions, answered, missed, without_time, .. } = *tally.counts();
    assert_eq!((questions, answered, missed, without_time), (total, total - 1, 1, 0));
}

#[test]
fn a_judge_that_asks_too_slowly_is_noticed() {
    let slowness = |tally: &Tally| tally.slowness().map(|(slowness, _)| slowness);
    for (asked_ms, questions, expected) in [
        (35_000, 877, Some(Slowness::TooSlow)),
        (35_000, 14_000, Some(Slowness::TooSlow)),
        (35_000, 20_000, Some(Slowness::Slow)),
        (35_000, 30_000, Some(Slowness::Slow)),
        (35_000, 33_000, None),
        (900, 0, None),
    ] {
        let mut tally = board();
        tally.counts = Responses { questions, complete: true, ..Responses::default() };
        tally.set_asked_for(Duration::from_millis(asked_ms));
        assert_eq!(slowness(&tally), expected, "{asked_ms} {questions}");
    }
    // The clock of the judge shows short runs, too. A random eighth takes a sixteenth of the time on average.
    for (time_ms, questions, expected) in [
        (2_000, 1_880, None),
        (2_000, 1_880 * 10 / 13, Some(Slowness::Slow)),
        (2_000, 900, Some(Slowness::TooSlow)),
        (23, 20, None),
        (100, 20, Some(Slowness::TooSlow)),
    ] {
        let mut tally = board();
        tally.counts = Responses { questions, random_ns: PERIOD_NS / 8, complete: true, ..Responses::default() };
        tally.counts.asked_ns = Some(time_ms * 1_000_000);
        assert_eq!(slowness(&tally), expected, "{time_ms} {questions}");
    }
    // Each missing answer can take a second.
    let mut tally = latmon();
    let of_run = Responses {
        questions: 877,
        overruns: Some(34),
        complete: true,
        protocol: JudgeProtocol::Latmon,
        ..Responses::default()
    };
    tally.counts = Responses { overruns: Some(0), ..of_run.clone() };
    tally.set_asked_for(Duration::from_secs(35));
    assert_eq!(slowness(&tally), Some(Slowness::TooSlow));
    tally.counts = of_run;
    assert_eq!(slowness(&tally), None);
    // The time between the first and the last bulk shows short runs, too. Each contains 1000 answers.
    for (between_ms, expected) in
        [(1_000, None), (1_150, None), (1_500, Some(Slowness::Slow)), (2_500, Some(Slowness::TooSlow))]
    {
        let mut tally = latmon();
        for n in 0..3 {
            let bulk = Bulk { sum_ns: 9_000, min_ns: 1_500, max_ns: 5_200, overruns: 0, samples: 1000 };
            tally.add_bulk(&bulk, (2_000 + n * between_ms) * 1_000_000);
        }
        tally.counts.complete = true;
        tally.set_asked_for(Duration::from_millis(3_000 + 2 * between_ms));
        assert_eq!(slowness(&tally), expected, "{between_ms}");
    }
}

#[test]
fn times_that_cannot_be_are_contradictions() {
    let late = |number, after| result(number, Kind::Late, Some(after));
    let mut tally = board();
    tally.add_result(&late(0, 130_000)).unwrap();
    tally.add_result(&late(1, 130_001)).unwrap();
    let error = tally.add_result(&result(2, Kind::Missed, None)).unwrap_err();
    assert!(error.contains("before the answer"), "{error}");
    // An answer later than the run lasts.
    let mut tally = board();
    tally.add_result(&late(0, 3_750_000_000)).unwrap();
    assert!(tally.check_elapsed(Duration::from_secs(1)).unwrap_err().contains("30000 ms"));
    assert!(tally.check_elapsed(Duration::from_secs(30)).is_ok());
}

#[test]
fn latmon_gives_cells_and_discards_missing_answers() {
    let mut tally = latmon();
    let second = 1_000_000_000;
    tally.add_bulk(&Bulk { sum_ns: 9_000, min_ns: 1_500, max_ns: 5_200, overruns: 2, samples: 3 }, 4 * second);
    tally.add_bulk(&Bulk { overruns: 1, ..Bulk::default() }, 9 * second);
    let mut cells = vec![0; 10];
    (cells[1], cells[2], cells[5]) = (1, 1, 1);
    tally.set_cells(cells).unwrap();
    let series = tally.to_series("rest");
    let responses = series.kind.responses().unwrap();
    assert_eq!((responses.missed, responses.possibly_missed, responses.overruns), (3, 0, Some(3)));
    assert_eq!((series.max_ns, series.samples, responses.clamped), (Some(5_200), 3, 0));
    assert_eq!(series.losses.counts, [(3, 1), (4, 1), (9, 1)]);
    let expected = Histogram::from_buckets([(1_999, 1), (2_999, 1), (5_203, 1)].into_iter());
    assert_eq!(series.raw, expected, "the largest is exact");
}

/// The sample of Zephyr waits 1 ms for an answer, so its overruns need no time, and can be answers in time.
#[test]
fn a_judge_that_did_not_wait_does_not_know_what_is_missing() {
    let second = 1_000_000_000;
    let of = |at_ns: u64| {
        let mut tally = latmon();
        let bulk = Bulk { sum_ns: 9_000, min_ns: 1_500, max_ns: 5_200, overruns: 0, samples: 1000 };
        tally.add_bulk(&bulk, 2 * second);
        tally.add_bulk(&Bulk { overruns: 10, ..bulk }, at_ns);
        let series = tally.to_series("rest");
        (tally.counts.missed, tally.counts.possibly_missed, series.losses.total())
    };
    assert_eq!(of(3 * second), (0, 10, 0));
    assert_eq!(of(12 * second), (10, 0, 10), "a second for each");
    assert_eq!(of(13 * second), (10, 0, 10));
}

#[test]
fn answers_without_statistics_are_counted() {
    let mut tally = latmon();
    tally.add_bulk(&Bulk { sum_ns: 24_000, min_ns: 24, max_ns: 24, overruns: 0, samples: 1000 }, 2_000_000_000);
    tally.set_cells(vec![1000, 900]).unwrap();
    assert_eq!((tally.counts.answered, tally.counts.unreported), (1_900, 900));
}

#[test]
fn answers_beyond_the_last_cell_count_as_the_largest() {
    let mut tally = latmon();
    tally.add_bulk(&Bulk { sum_ns: 1_300_000, min_ns: 9_100, max_ns: 1_200_000, overruns: 4, samples: 3 }, 1);
    tally.set_cells(vec![0, 0, 0, 0, 0, 0, 0, 0, 0, 3]).unwrap();
    let series = tally.to_series("rest");
    let responses = series.kind.responses().unwrap();
    assert_eq!((responses.clamped, responses.possibly_missed, responses.missed), (3, 4, 0), "an overrun can be late");
    assert_eq!(series.raw.count_above(1_000_000), 3);
    assert_eq!(series.corrected.total(), 6, "each of the three may have omitted a question");
    // The histogram contains an answer that no bulk has, beyond the last cell: its time is not known.
    let mut tally = latmon();
    tally.add_bulk(&Bulk { sum_ns: 10, min_ns: 10, max_ns: 10, overruns: 0, samples: 1 }, 1);
    tally.set_cells(vec![1, 1]).unwrap();
    let series = tally.to_series("rest");
    assert_eq!((series.max_ns, series.samples), (None, 2));
}

#[test]
fn results_that_contradict_each_other_are_refused() {
    let after = |results: &[QuestionResult]| {
        let mut tally = board();
        results.iter().try_for_each(|result| tally.add_result(result)).unwrap_err()
    };
    let first = result(0, Kind::Answered, Some(3_000));
    assert!(after(&[first, first]).contains("an earlier number"), "a frame is repeated");
    assert!(after(&[result(0, Kind::Late, Some(100))]).starts_with("a late answer after 800 ns, but its timeout is"));
    assert!(after(&[result(0, Kind::Answered, Some(125_001))]).starts_with("an answer in time after 1,000,008 ns"));
    let again = QuestionResult { question: 1, ..result(1, Kind::Missed, None) };
    assert_eq!(after(&[first, again]), "a result of question 1 after that of question 1");
    // More questions are missing than frames.
    let far = QuestionResult { question: 900, ..result(1, Kind::Missed, None) };
    assert_eq!(after(&[first, far]), "a result of question 900 after that of question 1");
    let totals = |end: End| {
        let mut tally = board();
        tally.add_result(&first).unwrap();
        tally.add_end(&end)
    };
    let right = End { spurious: 0, ..end(1, 1, 0, 0) };
    assert_eq!(totals(right), Ok(()));
    for wrong in [
        End { answered: 0, questions: 0, number: 1, ..right },
        End { answered: 6, ..right },
        End { answered: 6, questions: 6, ..right },
        End { spurious: 1, ..right },
    ] {
        assert_eq!(totals(wrong).unwrap_err(), "totals that contradict its results", "{wrong:?}");
    }
}

#[test]
fn more_results_than_the_time_allows_are_refused() {
    let (bulk, second) = (Bulk { sum_ns: 24_000_000, min_ns: 24_000, max_ns: 24_000, overruns: 0, samples: 1000 }, 1);
    let mut tally = latmon();
    (1..=4).for_each(|_| tally.add_bulk(&bulk, second));
    // It discards the answers of its first second. Its clock can be faster.
    for (seconds, fits) in [(5, true), (4, true), (3, true), (2, false)] {
        assert_eq!(tally.check_elapsed(Duration::from_secs(seconds)).is_ok(), fits, "{seconds} s");
    }
    let error = tally.check_elapsed(Duration::from_secs(2)).unwrap_err();
    assert_eq!(error, "4,000 results in 2,000 ms, but a question takes 1,000 us or more");
    tally.add_bulk(&Bulk { overruns: u32::MAX, ..bulk }, second);
    assert!(tally.check_elapsed(Duration::from_hours(1)).is_err(), "an overrun takes a period, too");
    let mut tally = board();
    tally.add_result(&QuestionResult { number: 9_000, question: 9_001, ..result(0, Kind::Missed, None) }).unwrap();
    assert_eq!([7, 9].map(|seconds| tally.check_elapsed(Duration::from_secs(seconds)).is_ok()), [false, true]);
}

#[test]
fn a_histogram_must_contain_the_answers_of_the_bulks() {
    // 1,000 answers after 24 us and 1,000 after 30 us.
    let check = |change: &dyn Fn(&mut Vec<u64>)| {
        let mut tally = latmon();
        tally.add_bulk(&Bulk { sum_ns: 54_400_000, min_ns: 24_100, max_ns: 30_700, overruns: 0, samples: 2000 }, 1);
        let mut cells = vec![0; 1000];
        (cells[24], cells[30]) = (1000, 1000);
        change(&mut cells);
        tally.set_cells(cells)
    };
    assert_eq!(check(&|_| ()), Ok(()));
    // The warm-up is in the histogram of Zephyr's latmon only.
    assert_eq!(check(&|cells| cells[12] = 1000), Ok(()));
    for (why, change) in [
        ("2,000 answers are missing", &(|cells: &mut Vec<u64>| cells.fill(0)) as &dyn Fn(&mut Vec<u64>)),
        ("doubled and more", &|cells| cells.iter_mut().for_each(|count| *count *= 3)),
        ("shifted", &|cells| cells.rotate_right(50)),
        ("without the smallest time", &|cells| cells.swap(24, 25)),
        ("without the largest time", &|cells| cells.swap(30, 29)),
        ("too many small times", &|cells| (cells[24], cells[30]) = (1_990, 10)),
        ("too many large times", &|cells| (cells[24], cells[30]) = (10, 1_990)),
        ("times above the largest", &|cells| (cells[24], cells[31]) = (999, 1)),
        ("a huge count", &|cells| cells[5] = u64::from(u32::MAX)),
    ] {
        let error = check(change).expect_err(why);
        assert!(error.starts_with("a histogram that contradicts its statistics: "), "{error}");
    }
    // Zephyr's latmon counts an answer of 1.2 ms at 200 us if the period is 1 ms.
    let mut tally = latmon();
    tally.add_bulk(&Bulk { sum_ns: 1_224_100, min_ns: 24_100, max_ns: 1_200_000, overruns: 1, samples: 2 }, 1);
    let mut cells = vec![0; 1000];
    (cells[24], cells[200]) = (1, 1);
    assert_eq!(tally.set_cells(cells), Ok(()));
}

//! Interrupts from outside, and the outside judge.

use super::*;

#[test]
fn missing_interrupts_are_late_cycles() {
    let judged_with = |lost, unanswered| {
        let interrupts =
            record::Interrupts { source: "pps:pps0".into(), lost, unanswered, ..record::Interrupts::default() };
        let kind = SeriesKind::Interrupts(Box::new(interrupts));
        judged(vec![Series { kind, ..series("rest", 0, 1_000_000, &[(5_000, ENOUGH)]) }])
    };
    assert_eq!(judged_with(0, 0).outcome, Outcome::Pass);
    let failed = judged_with(600_000, 400_000);
    assert_eq!(failed.outcome, Outcome::Fail);
    assert!(
        failed.reason.starts_with("1,000,000 of 11,800,000 interrupts of pps:pps0 are missing"),
        "{}",
        failed.reason
    );
}

#[test]
fn interrupts_that_come_faster_than_expected_cover_no_more_time() {
    let mut record = record(vec![Series {
        kind: SeriesKind::Interrupts(Box::default()),
        ..series("rest", 0, 1_000_000, &[(5_000, ENOUGH)])
    }]);
    assert_eq!(judge(&record, control()).outcome, Outcome::Pass);
    record.phases[0].duration_ns /= 100;
    record.phases[0].planned_ns = Some(record.phases[0].duration_ns);
    assert_eq!(judge(&record, control()).outcome, Outcome::Inconclusive);
}

#[test]
fn interrupts_of_unknown_number_or_time_support_no_pass() {
    let reason = |change: &dyn Fn(&mut record::Interrupts)| {
        let mut interrupts = record::Interrupts::default();
        change(&mut interrupts);
        let kind = SeriesKind::Interrupts(Box::new(interrupts));
        let verdict =
            judge(&record(vec![Series { kind, ..series("rest", 0, 1_000_000, &[(5_000, ENOUGH)]) }]), control());
        (verdict.outcome == Outcome::Inconclusive).then_some(verdict.reason)
    };
    let full = "the kernel's queue of events was full 2 times: an unknown number of interrupts was lost";
    assert_eq!(reason(&|interrupts| interrupts.overruns = 2).as_deref(), Some(full));
    let rough = "the time of an interrupt is known to 10.0 us, which is more than a tenth of the limit of 100 us";
    let known_to = |median_ns, max_ns| {
        move |interrupts: &mut record::Interrupts| {
            (interrupts.uncertainty_ns, interrupts.max_uncertainty_ns) = (median_ns, max_ns);
        }
    };
    assert_eq!(reason(&known_to(Some(300), Some(10_001))).as_deref(), Some(rough), "one of them, not the median");
    assert_eq!(reason(&|interrupts| interrupts.resolution_ns = Some(10_001)).as_deref(), Some(rough));
    assert_eq!(reason(&known_to(Some(300), Some(10_000))), None);
    let absent = "the record does not contain the largest error of the times of the interrupts";
    assert_eq!(reason(&known_to(Some(300), None)).as_deref(), Some(absent));
}

#[test]
fn an_interrupt_is_late_or_on_time_whatever_the_error_of_its_time_is() {
    assert_eq!(within_error(94_900, 1_000_000).outcome, Outcome::Pass);
    let near = within_error(96_000, 1_000_000);
    let doubt = "at most 96 us late, but the time of an interrupt is known to 5 us, and the limit is 100 us";
    assert_eq!((near.outcome, near.reason.as_str()), (Outcome::Inconclusive, doubt));
    assert_eq!(within_error(104_000, 1_000_000).outcome, Outcome::Inconclusive);
    assert_eq!(within_error(106_000, 1_000_000).outcome, Outcome::Fail);
}

#[test]
fn a_longer_run_of_interrupts_has_the_same_source_and_thread() {
    let interrupts = record::Interrupts { source: "gpio:gpiochip0/my line".into(), ..record::Interrupts::default() };
    let kind = SeriesKind::Interrupts(Box::new(interrupts));
    let mut record = record(vec![Series { kind, ..series("rest", 0, 1_000_000, &[(5_000, 1000)]) }]);
    let mut reason = |command: &str| {
        record.command = command.split(' ').map(str::to_owned).collect();
        judge(&record, control()).reason
    };
    let options = "--source X --drive 0/27 --irq-cpu 2 --cpu=1 --policy fifo:50";
    for place in ["measure", "pair root@far"] {
        let again = reason(&format!("punctual {place} interrupt {options} --duration 1s"));
        assert!(again.contains(&format!("punctual {place} interrupt {options} --duration 198m")), "{again}");
    }
    let of_campaign = reason("punctual run lines.toml");
    let again = "punctual measure interrupt --source 'gpio:gpiochip0/my line' --period 1ms --cpu 0 --duration";
    assert!(of_campaign.contains(again), "{of_campaign}");
}

#[test]
fn a_longer_run_with_a_judge_has_the_same_lines() {
    let responses = record::Responses {
        judge: "/dev/ttyACM0".into(),
        answer_line: "line 27 (GPIO27) of gpiochip0, pinctrl-bcm2711".into(),
        questions: 1000,
        answered: 1000,
        complete: true,
        ..record::Responses::default()
    };
    let kind = SeriesKind::Responses(Box::new(responses));
    let interrupts = record::Interrupts { source: "gpio:gpiochip0/17".into(), ..record::Interrupts::default() };
    let of_lines =
        Series { kind: SeriesKind::Interrupts(Box::new(interrupts)), ..series("rest", 0, 1_000_000, &[(1_000, 1000)]) };
    let reason = |command: &str, period_ns: u64| {
        let series = Series { kind: kind.clone(), ..series("rest", 0, period_ns, &[(5_000, 1000)]) };
        let mut record = record(vec![series, of_lines.clone()]);
        record.command = command.split(' ').map(str::to_owned).collect();
        judge(&record, control()).reason
    };
    let of_campaign = reason("punctual run lines.toml", 1_000_000);
    let again = "run `punctual measure interrupt --judge /dev/ttyACM0 --source gpio:gpiochip0/17 --answer gpiochip0/27 \
                 --period 1ms";
    assert!(of_campaign.contains(again), "{of_campaign}");
    let command = "punctual pair far interrupt --source gpio:0/17 --answer 0/27 --judge /dev/ttyACM0 --irq-cpu 1";
    let coarse = reason(&format!("{command} --period 40ms"), 40_000_000);
    assert!(coarse.contains(&format!("run `{command} --period 1ms --duration")), "{coarse}");
}

/// Responses to an outside judge every 1 ms for 3 h, and the way to the thread that answered.
fn with_judge(change: impl Fn(&mut record::Responses)) -> UseVerdict {
    let mut responses = record::Responses {
        judge: "/dev/ttyACM0".into(),
        resolution_ns: 8,
        questions: ENOUGH,
        answered: ENOUGH,
        complete: true,
        ..record::Responses::default()
    };
    change(&mut responses);
    responses.answered += responses.without_time;
    responses.questions = responses.answered + responses.missed;
    let of_judge = Series {
        kind: SeriesKind::Responses(Box::new(responses)),
        ..series("rest", 0, 1_000_000, &[(40_000, ENOUGH)])
    };
    // Its part of the way is later than the limit, as only a run of another time can be.
    let of_thread =
        Series { kind: SeriesKind::Interrupts(Box::default()), ..series("rest", 0, 1_000_000, &[(5_000_000, ENOUGH)]) };
    judged(vec![of_thread, of_judge])
}

#[test]
fn an_outside_judge_decides_about_the_whole_way() {
    let passed = with_judge(|_| {});
    assert_eq!(passed.outcome, Outcome::Pass, "{}", passed.reason);
    let by = "from the question to the answer at the pins of the judge of punctual /dev/ttyACM0, by its clock";
    assert!(passed.reason.contains(by) && !passed.reason.contains("kernel's stamp"), "{}", passed.reason);
    assert!(passed.reason.contains("CPU 0 as the outside judge saw it"), "{}", passed.reason);
}

#[test]
fn a_question_without_an_answer_is_late() {
    let failed = with_judge(|responses| responses.missed = 1_000_000);
    assert_eq!(failed.outcome, Outcome::Fail);
    let expected = "1,000,000 of 11,800,000 questions of the judge /dev/ttyACM0 had no answer: a missing one counts as later \
                    than any limit";
    assert_eq!(failed.reason, expected);
}

/// A use of every 10 ms that tolerates 30 stalls a minute, measured every 2.5 ms for 30 s.
#[test]
fn answers_missing_more_often_than_tolerated_support_no_pass() {
    let text = "title = 'x'\ngroup = 'control'\nperiod = '10ms'\nlimit = '1ms'\ntolerates = '30 per minute'\nmeaning = 'x'\n\
                [[sources]]\nwhat = 'limit'\nwhere = 'own'\n";
    let profile = crate::profile::parse("loose", text).unwrap();
    let verdict = |missed: u64, without_time: u64, asked_ns: u64| {
        let answered = 12_000 - missed;
        let responses = record::Responses {
            questions: 12_000,
            answered,
            missed,
            without_time,
            asked_ns: Some(asked_ns),
            complete: true,
            ..record::Responses::default()
        };
        let of_judge = Series {
            kind: SeriesKind::Responses(Box::new(responses)),
            ..series("rest", 0, 2_500_000, &[(40_000, answered - without_time)])
        };
        let mut record = record(vec![of_judge]);
        record.phases[0].duration_ns = 60_000_000_000;
        judge(&record, &profile)
    };
    let whole = verdict(0, 0, 30_000_000_000);
    assert_eq!(whole.outcome, Outcome::Pass, "{}", whole.reason);
    assert!(whole.reason.contains(", within the limit"), "{}", whole.reason);
    let rarely = verdict(2, 1, 30_000_000_000);
    assert!(rarely.reason.contains("2 missing, 1 unknown, rarely above the limit"), "{}", rarely.reason);
    for (missed, without_time) in [(19, 0), (0, 20)] {
        let verdict = verdict(missed, without_time, 30_000_000_000);
        assert_eq!(verdict.outcome, Outcome::Inconclusive, "{}", verdict.reason);
    }
    // A judge that asked at half the rate took twice the time.
    assert!(
        verdict(2, 0, 30_000_000_000).statement.starts_with("CPU 0 as the outside judge saw it, at rest: 2 of 3,000")
    );
    assert!(
        verdict(2, 0, 60_000_000_000).statement.starts_with("CPU 0 as the outside judge saw it, at rest: 2 of 6,000")
    );
}

/// A use of every 5 ms that tolerates 30 stalls a minute, measured by a judge for 20 s.
fn loose(change: impl FnOnce(&mut record::Responses)) -> UseVerdict {
    let text = "title = 'x'\ngroup = 'control'\nperiod = '5ms'\nlimit = '2ms'\ntolerates = '30 per minute'\nmeaning = 'x'\n\
                [[sources]]\nwhat = 'limit'\nwhere = 'own'\n";
    let profile = crate::profile::parse("loose", text).unwrap();
    let mut responses = record::Responses { complete: true, ..record::Responses::default() };
    change(&mut responses);
    let raw = [(40_000, responses.answered - responses.without_time)];
    let of_judge = Series { kind: SeriesKind::Responses(Box::new(responses)), ..series("rest", 0, 5_000_000, &raw) };
    let mut record = record(vec![of_judge]);
    record.phases[0].duration_ns = 20_000_000_000;
    judge(&record, &profile)
}

/// latmon waits a second for each answer, so each missing one is a stall of its own.
#[test]
fn an_answer_that_latmon_misses_takes_a_second() {
    let verdict = loose(|responses| {
        (responses.protocol, responses.answered, responses.missed) = (record::JudgeProtocol::Latmon, 600, 17);
        responses.questions = 617;
    });
    assert_eq!(verdict.outcome, Outcome::Fail, "{}", verdict.reason);
    assert!(verdict.statement.contains("in 17 stalls"), "{}", verdict.statement);
}

/// The overruns of latmon's warm-up are not known.
#[test]
fn answers_without_statistics_are_no_measured_time() {
    let of = |unreported| {
        loose(|responses| {
            (responses.protocol, responses.answered) = (record::JudgeProtocol::Latmon, 4_000);
            (responses.questions, responses.unreported) = (4_000, unreported);
        })
    };
    assert_eq!(
        [of(0).outcome, of(200).outcome, of(3_000).outcome],
        [Outcome::Pass, Outcome::Pass, Outcome::Inconclusive]
    );
}

#[test]
fn a_few_unknown_results_are_not_the_reason_if_others_are_missing() {
    let verdict = loose(|responses| {
        (responses.questions, responses.answered, responses.missed) = (4_000, 3_700, 300);
        responses.without_time = 1;
    });
    assert_eq!(verdict.outcome, Outcome::Inconclusive);
    assert!(verdict.reason.contains("stalls so far"), "{}", verdict.reason);
    let unknown = loose(|responses| {
        (responses.questions, responses.answered, responses.without_time) = (4_000, 4_000, 30);
    });
    assert!(unknown.reason.contains("are unknown"), "{}", unknown.reason);
}

#[test]
fn unknown_results_of_a_judge_support_no_pass_above_the_tolerance() {
    let one = with_judge(|responses| responses.possibly_missed = 1);
    assert_eq!(one.outcome, Outcome::Inconclusive, "3 h without a stall are needed");
    assert!(one.reason.starts_with("at most 1 stall so far"), "{}", one.reason);
    for (possibly_missed, without_time) in [(1_000_000, 0), (0, 1_000_000)] {
        let unknown = with_judge(|responses| {
            (responses.possibly_missed, responses.without_time) = (possibly_missed, without_time);
        });
        assert_eq!(unknown.outcome, Outcome::Inconclusive, "{}", unknown.reason);
        assert!(
            unknown.reason.contains("1,000,000 questions of the judge /dev/ttyACM0 are unknown"),
            "{}",
            unknown.reason
        );
    }
    let rough = with_judge(|responses| responses.resolution_ns = 10_001);
    assert_eq!(rough.outcome, Outcome::Inconclusive);
    assert!(rough.reason.contains("measures in steps of 10.0 us"), "{}", rough.reason);
    let lost = with_judge(|responses| responses.complete = false);
    assert_eq!(lost.outcome, Outcome::Inconclusive);
    assert!(lost.reason.contains("did not report its totals"), "{}", lost.reason);
}

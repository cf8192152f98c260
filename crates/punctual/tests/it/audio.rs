//! `measure audio`, with the ordinary policy, which needs no rights.

use std::{process::Stdio, thread::sleep, time::Duration};

use record::{Audio, CauseKind, Part, Record, State};
use stalls::{Stall, repeat_if_stalled};

use super::harness::{Scratch, Start, resume, signal, stop, wait_until};

const PI: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../machine/tests/machines/raspberry-pi-rt");
const NANO: &str = "measure audio --quiet --record a --policy other --model builtin:nano";

fn audio(record: &Record) -> &Audio {
    record.series[0].kind.audio().expect("a series of audio")
}

#[test]
fn every_period_is_timed_and_the_record_is_shown() {
    let scratch = Scratch::new();
    scratch
        .run(&format!("{NANO} --frames 48 --rate 44100 --periods 3 --duration 700ms --export a.html --export a.csv"))
        .expect_status(0);
    let record = scratch.record();
    let value = serde_json::to_value(&record).unwrap();
    let validator = jsonschema::validator_for(&record::json_schema()).unwrap();
    let errors: Vec<_> = validator.iter_errors(&value).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{errors:?}");
    assert_eq!((record.state, record.scenario.probe.as_str()), (State::Complete, "audio"));
    let [series] = &record.series[..] else { panic!("one series") };
    let audio = audio(&record);
    assert_eq!((audio.rate_hz, audio.frames, audio.periods), (44_100, 48, 3));
    assert_eq!((audio.model.as_str(), audio.pacer.as_str(), audio.silent), ("builtin:nano", "clock", 0));
    assert_eq!((series.role.as_str(), series.period_ns), ("audio", 1_088_435));
    // 700 ms are 643 periods of 48 frames, played or lost.
    assert!(audio.due().abs_diff(643) <= 3 + audio.lost, "{} of {} lost", audio.lost, audio.due());
    let total = |times: &Option<record::Times>| times.as_ref().unwrap().histogram.total();
    assert_eq!((total(&audio.dsp), total(&audio.completion)), (audio.played, audio.played));
    for spike in &series.spikes {
        let played = spike.played.unwrap();
        assert_eq!(played.completion_ns(), spike.lateness_ns);
        let shares: u64 = spike.culprits.iter().map(|culprit| culprit.ns).sum();
        assert!(spike.culprits.is_empty() || shares == spike.lateness_ns.cast_unsigned(), "{spike:?}");
    }
    let shown = scratch.run("show --full a.punctual.json").expect_status(0).stdout();
    assert!(shown.contains("48 frames at 44100 Hz") && shown.contains("done after the deadline"), "{shown}");
}

#[test]
fn a_preset_is_played_and_a_bad_one_is_refused() {
    let scratch = Scratch::new();
    let model = concat!(env!("CARGO_MANIFEST_DIR"), "/../amp/tests/vectors/wn_a1_nano.nam");
    let two =
        format!("[[model]]\nfile = '{model}'\n[[model]]\nfile = '{model}'\n[gate]\non = true\nthreshold_db = -60\n");
    std::fs::write(scratch.path().join("lead.toml"), two).unwrap();
    scratch.run("measure audio --quiet --record a --policy other --frames 1024 --duration 200ms --preset lead.toml");
    let record = scratch.record();
    let audio = audio(&record);
    assert_eq!((audio.preset.as_str(), audio.model.as_str(), audio.cab.as_str()), ("lead.toml", "", ""));
    assert!(audio.played > 0, "{audio:?}");
    let shown = scratch.run("show --full a.punctual.json").stdout();
    assert!(shown.contains("paced by the clock, through preset lead.toml"), "{shown}");

    std::fs::write(scratch.path().join("bad.toml"), "[gate]\nthreshhold_db = -60\n").unwrap();
    let errors = |arguments: &str| scratch.run(arguments).expect_status(1).stderr();
    let measured = errors("measure audio --no-record --preset bad.toml");
    let played = errors("amp play --device clock --preset bad.toml");
    assert_eq!(measured, played, "both commands print the same error");
    assert_eq!(
        measured,
        "error: bad.toml: line 2: unknown \"threshhold_db\" in [gate]; did you mean \"threshold_db\"?\n"
    );
    scratch.run("measure audio --preset lead.toml --model builtin:nano").expect_status(64);
}

#[test]
fn an_unknown_card_is_refused() {
    let scratch = Scratch::new();
    let errors = scratch.run("measure audio --no-record --model builtin:nano --device usb").expect_status(1).stderr();
    assert!(errors.contains("`usb` is not a device name: write hw:CARD or hw:CARD,DEVICE"), "{errors}");
    let file = "name = \"card\"\n[[probe]]\nkind = \"audio\"\ndevice = \"usb\"\npreset = \"a.toml\"\nmodel = \"builtin:nano\"\n";
    std::fs::write(scratch.path().join("card.toml"), file).unwrap();
    let mistakes = scratch.run("validate card.toml").expect_status(1).stdout();
    assert!(mistakes.contains("`usb` is not a sound card: write hw:CARD, hw:CARD,DEVICE or clock"), "{mistakes}");
    assert!(mistakes.contains("model and preset exclude each other"), "{mistakes}");
}

#[test]
fn format_and_input_need_a_card() {
    let scratch = Scratch::new();
    let errors = |options: &str, status| {
        let run = scratch.run(&format!("measure audio --quiet --record a --model builtin:nano {options}"));
        assert!(!scratch.record_path().exists(), "{options}");
        run.expect_status(status).stderr()
    };
    for options in
        ["--sample-format S16", "--input 1", "--device clock --sample-format S16 --input 2", "--find-buffer --input 2"]
    {
        assert_eq!(
            errors(options, 64),
            "error: --sample-format and --input apply to a sound card, not to the clock: leave them out, or add --device hw:0\n",
            "{options}"
        );
    }
    for (options, error) in [
        ("--device hw:0 --sample-format U8", "unknown sample format `U8`: use FLOAT, S32, S24, S24_3 or S16"),
        ("--device hw:0 --input 0", "must be 1 to 64, e.g. 1"),
        ("--device hw:0 --input 65", "must be 1 to 64, e.g. 1"),
    ] {
        let text = errors(options, 64);
        assert!(text.contains(error), "{options}: {text}");
    }
    let text = errors("--device usb --sample-format s16 --input 2", 1);
    assert!(text.contains("`usb` is not a device name"), "{text}");
}

#[test]
fn a_campaign_file_sets_format_and_input_of_a_card() {
    let scratch = Scratch::new();
    let validate = |probe: &str, status| {
        let file = format!("name = \"card\"\n[[probe]]\n{probe}\n");
        std::fs::write(scratch.path().join("card.toml"), file).unwrap();
        // The cards of this machine were not recorded.
        scratch.run(&format!("validate card.toml --root {PI}")).expect_status(status).stdout()
    };
    validate("kind = \"audio\"\ndevice = \"hw:USB\"\nformat = \"S16\"\ninput = 2", 0);
    validate("kind = \"stream\"\nformat = \"61883-6\"", 0);
    for (probe, error) in [
        ("kind = \"audio\"\nformat = \"S16\"", "format is only for a sound card: leave it out"),
        ("kind = \"audio\"\ndevice = \"clock\"\ninput = 2", "input is only for a sound card"),
        ("kind = \"audio\"\ndevice = \"hw:0\"\nformat = \"aaf\"", "unknown sample format `aaf`"),
        ("kind = \"audio\"\ndevice = \"hw:0\"\ninput = 65", "1 to 64"),
        ("kind = \"audio\"\ndevice = \"usb\"\ninput = 2", "`usb` is not a sound card"),
        ("kind = \"stream\"\nformat = \"S16\"", "aaf"),
        ("kind = \"stream\"\ninput = 2", "input is not for kind = \"stream\""),
        ("kind = \"timer\"\nformat = \"aaf\"", "format is not for kind = \"timer\": leave it out"),
    ] {
        let mistakes = validate(probe, 1);
        assert_eq!(mistakes.matches("card.toml:").count(), 1, "{mistakes}");
        assert!(mistakes.contains(error), "{probe}: {mistakes}");
    }
}

#[test]
fn a_campaign_that_cannot_play_here_is_invalid() {
    let scratch = Scratch::new();
    let vectors = concat!(env!("CARGO_MANIFEST_DIR"), "/../amp/tests/vectors");
    let write = |name: &str, text: &str| std::fs::write(scratch.path().join(name), text).unwrap();
    let spec = hound::WavSpec {
        channels: 6,
        sample_rate: 48_000,
        bits_per_sample: 16,
        sample_format: hound::SampleFormat::Int,
    };
    let mut wav = hound::WavWriter::create(scratch.path().join("six.wav"), spec).unwrap();
    (0..60_i16).for_each(|sample| wav.write_sample(sample).unwrap());
    wav.finalize().unwrap();
    write("lead.toml", "[[model]]\nfile = 'gone.nam'\n");
    write(
        "tones.toml",
        &format!(
            "name = \"tones\"\n[[probe]]\nname = \"gone\"\nkind = \"audio\"\nmodel = \"gone.nam\"\ncab = \"six.wav\"\n\
             [[probe]]\nname = \"rate\"\nkind = \"audio\"\nrate = 44100\nmodel = \"{vectors}/wn_a1_nano.nam\"\n\
             [[probe]]\nname = \"bad\"\nkind = \"audio\"\nmodel = \"{vectors}/nan_weight.bad.nam\"\n\
             [[probe]]\nname = \"preset\"\nkind = \"audio\"\npreset = \"lead.toml\"\ndevice = \"hw:PCH\"\n\
             [placement]\ncpus = \"99\"\n"
        ),
    );
    std::fs::create_dir_all(scratch.path().join("machine/proc/asound")).unwrap();
    std::fs::create_dir_all(scratch.path().join("machine/sys/devices/system/cpu")).unwrap();
    write("machine/sys/devices/system/cpu/online", "0-3\n");
    write("machine/proc/asound/cards", " 0 [USB            ]: USB-Audio - Box\n                      Box\n");
    let mistakes = scratch.run("validate tones.toml --root machine").expect_status(1).stdout();
    let expected = [
        ("5:9: model: ", "cannot read gone.nam: "),
        ("6:7: cab: ", "six.wav: a cabinet must have 1 or 2 channels (got 6); "),
        ("11:9: model: ", "needs a sample rate of 48000 Hz (got 44100 Hz): "),
        ("15:9: model: ", "nan_weight.bad.nam: the model file is not valid JSON ("),
        ("19:10: preset: ", "cannot read gone.nam: "),
        ("20:10: device: ", "there is no card `PCH`, only hw:USB: "),
        ("22:8: ", "cannot use CPU 99, because "),
    ];
    assert_eq!(mistakes.lines().count(), expected.len(), "{mistakes}");
    for (line, (place, text)) in mistakes.lines().zip(expected) {
        assert!(line.starts_with(&format!("tones.toml:{place}")) && line.contains(text), "{text}: {line}");
    }
    // The same error as from the command that measures.
    let measured = scratch.run("measure audio --no-record --model gone.nam").expect_status(1).stderr();
    assert!(mistakes.contains(measured.trim_start_matches("error: ").trim_end()), "{measured}");
    write("tones.toml", "name = \"tones\"\n[probe]\nkind = \"audio\"\n");
    scratch.run("validate tones.toml --root machine").expect_status(0);
}

#[test]
fn a_stop_makes_an_xrun_and_loses_the_periods_that_passed() {
    let scratch = Scratch::new();
    let child = scratch.punctual(&format!("{NANO} --frames 1024 --endless")).stdout(Stdio::null()).start();
    wait_until("periods are played", || {
        record::file::read(&scratch.record_path()).is_ok_and(|record| record.series.iter().any(|s| s.samples > 0))
    });
    stop(&child);
    sleep(Duration::from_millis(400));
    resume(&child, "audio");
    signal(&child, "INT");
    child.wait_with_output().unwrap();
    let record = scratch.record();
    let audio = audio(&record);
    // A period takes 21.3 ms, so the first deadline may have been that much later than the stop.
    assert!(audio.xruns >= 1 && audio.lost >= 17, "{} xruns, {} lost", audio.xruns, audio.lost);
    let longest = record.series[0].spikes.iter().max_by_key(|spike| spike.lateness_ns).unwrap();
    let played = longest.played.unwrap();
    assert!(played.xrun && played.completion_ns() >= 400_000_000 - 21_333_334, "{played:?}");
    let usual = analysis::audio::MedianTimes::of(&record.series[0]);
    // If the stop came while a period was computed, the computation took that long.
    let stopped = if played.dsp_ns > played.wait_ns { Part::Dsp } else { Part::Wake };
    let part = usual.at_fault(played, audio.limit_ns.cast_signed());
    assert_eq!(part, stopped, "{played:?}, usually {usual:?}");
    if let Some(main) = longest.culprits.first().filter(|_| longest.evidence == record::Evidence::Trace) {
        assert_eq!(main.cause.kind, CauseKind::Stopped);
    }
}

#[test]
fn impossible_settings_and_bad_models_are_refused() {
    let vectors = concat!(env!("CARGO_MANIFEST_DIR"), "/../amp/tests/vectors");
    for (options, status, error) in [
        ("--frames 4".to_owned(), 64, "must be 8 to 4096, e.g. 64"),
        ("--periods 1".to_owned(), 64, "must be 2 to 16, e.g. 2"),
        ("--model builtin:huge".to_owned(), 64, "no built-in model `huge`"),
        ("--cab builtin:0".to_owned(), 64, "a built-in cabinet must have 1 to 48000 samples"),
        ("--model nowhere.nam".to_owned(), 1, "cannot read nowhere.nam"),
        (format!("--model {vectors}/nan_weight.bad.nam"), 1, "nan_weight.bad.nam"),
        (format!("--model {vectors}/wn_a1_nano.nam --rate 44100"), 1, "use --rate 48000"),
    ] {
        let scratch = Scratch::new();
        let run = scratch.run(&format!("measure audio --quiet --record a --duration 50ms {options}"));
        let errors = run.expect_status(status).stderr();
        assert!(errors.contains(error), "{options}: {errors}");
        assert!(!scratch.record_path().exists(), "{options}");
    }
}

#[test]
fn the_smallest_buffer_is_found_in_the_announced_steps() {
    let scratch = Scratch::new();
    let search = "measure audio --record a --policy other --model builtin:nano --cab none --find-buffer=256..4096 --periods 8 \
                  --duration 150ms --export a.html";
    let run = scratch.run(search);
    let record = scratch.record();
    let found = record.buffer.as_ref().expect("a search was asked for");
    let status = match (found.held, analysis::audio::contradicted(&record, found)) {
        (Some(_), None) => 0,
        (Some(_), Some(_)) => 3,
        (None, _) => 2,
    };
    run.expect_status(status);
    assert!(run.stderr().contains("at most 3 of 5 sizes are tried, which takes 450 ms"), "{}", run.stderr());
    assert_eq!(found.candidates, [256, 512, 1024, 2048, 4096]);
    let tried: Vec<u32> = record.series.iter().map(|series| series.kind.audio().unwrap().frames).collect();
    assert!(tried.starts_with(&[1024]) && tried.len() <= 3, "{tried:?}");
    for (phase, frames) in record.phases.iter().zip(&tried) {
        assert_eq!(phase.name, format!("{frames} frames"));
    }
    let without: Vec<u32> = record
        .series
        .iter()
        .filter_map(|series| series.kind.audio())
        .filter(|a| a.xruns == 0)
        .map(|a| a.frames)
        .collect();
    assert_eq!(found.held, without.iter().min().copied());
    assert!(run.stdout().contains("Smallest buffer"), "{}", run.stdout());
    let html = std::fs::read_to_string(scratch.path().join("a.html")).unwrap();
    assert!(html.contains("Buffer sizes tried") && html.contains("xruns"));
    for (range, status) in [("4..16", 64), ("64..32", 64), ("65..127", 64), ("16..64:0", 64)] {
        scratch.run(&format!("measure audio --find-buffer={range} --duration 10ms")).expect_status(status);
    }
}

#[test]
fn a_search_interrupted_in_its_first_size_finds_no_size() {
    let scratch = Scratch::new();
    let search = "measure audio --record a --policy other --model builtin:nano --cab none --find-buffer=1024..4096 --periods 8 \
                  --duration 1h --full";
    let child = scratch.punctual(search).stdout(Stdio::piped()).stderr(Stdio::null()).start();
    wait_until("periods are played", || {
        record::file::read(&scratch.record_path()).is_ok_and(|record| record.series.iter().any(|s| s.samples > 0))
    });
    signal(&child, "INT");
    let output = child.wait_with_output().unwrap();
    let record = scratch.record();
    let found = record.buffer.as_ref().expect("a search was asked for");
    assert_eq!((record.state, record.series.len(), found.held), (State::Interrupted, 1, None));
    let text = String::from_utf8(output.stdout).unwrap();
    // A stall makes xruns. They rule out this size, but not the larger one.
    let reason =
        if found.failed.is_none() { "before any size was decided" } else { "before it found a size that holds" };
    assert!(text.contains(&format!("The search ended {reason}")) && !text.contains("No size held"), "{text}");
    assert_eq!(output.status.code(), Some(3), "{text}");
}

#[test]
fn an_audio_profile_fails_only_by_xruns_of_its_own_period() {
    // A longer stall is reason enough to fail.
    repeat_if_stalled(Stall::Ordinary(Duration::from_millis(1)), judge_xruns);
}

fn judge_xruns() {
    let mut record = {
        let scratch = Scratch::new();
        scratch.run(&format!("{NANO} --frames 256 --duration 100ms --blame=off")).expect_status(0);
        scratch.record()
    };
    let profile = analysis::find_profile("audio-48k-256").unwrap();
    let record::SeriesKind::Audio(played) = &mut record.series[0].kind else { panic!("a series of audio") };
    (played.xruns, played.played) = (2, 18);
    let verdict = analysis::judge(&record, &profile);
    assert_eq!(verdict.outcome, record::Outcome::Fail);
    assert!(verdict.reason.starts_with("2 of 18 periods were xruns"), "{}", verdict.reason);
    let smaller = analysis::judge(&record, &analysis::find_profile("audio-48k-64").unwrap());
    assert!(!smaller.reason.contains("xruns"), "xruns of another period: {}", smaller.reason);
}

#[test]
fn a_campaign_plays_buffers_under_loads() {
    let scratch = Scratch::new();
    let plan = scratch.run("run guitar-amp-buffer --dry-run").expect_status(0).stdout();
    assert!(plan.contains("scenarios  15") && plan.contains("256 frames"), "{plan}");
    let file = "name = \"small\"\n[[probe]]\nkind = \"audio\"\nmodel = \"builtin:nano\"\nframes = 256\nduration = \"100ms\"\n\
                [[placement]]\ncpus = \"last\"\npolicy = \"other\"\n";
    std::fs::write(scratch.path().join("small.toml"), file).unwrap();
    let table = scratch.run("run small.toml --full --dir out").stdout();
    assert!(table.contains("Largest time from the deadline of an audio period"), "{table}");
}

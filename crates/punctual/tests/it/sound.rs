//! Sound cards: errors, and playing by the clock. Cards are tested in guests (`lab/src/tests/cards.rs`).

use stalls::{Stall, repeat_if_stalled};
use std::{fs, time::Duration};

use crate::harness::Scratch;

#[test]
fn unknown_devices_are_refused_before_anything_plays() {
    let scratch = Scratch::new();
    fs::write(scratch.path().join("plain.toml"), "[tone]\non = false\n").unwrap();
    let cases = [
        ("latency loop --device default", "`default` is not a device name: write hw:CARD"),
        ("latency loop --capture-device hw:9,x --playback-device hw:0", "`hw:9,x` is not a device name"),
        ("amp play --preset plain.toml --device plughw:0", "`plughw:0` is not a device name"),
        ("amp play --preset plain.toml --device hw:NoSuchCard", "there is no"),
        ("amp play --preset plain.toml --midi nowhere", "cannot read MIDI from nowhere"),
        ("amp play --presets .. --device default", "has no preset: put files that end in .toml there"),
    ];
    fs::create_dir(scratch.path().join("empty")).unwrap();
    for (arguments, error) in cases {
        let run = scratch.run(&arguments.replace("..", "empty"));
        run.expect_status(1);
        assert!(run.stderr().contains(error), "{arguments}: {}", run.stderr());
        assert_eq!(run.stderr().lines().count(), 1, "{arguments}: {}", run.stderr());
    }
}

#[test]
fn invalid_combinations_of_options_are_usage_errors() {
    let scratch = Scratch::new();
    for arguments in [
        "amp play --device hw:0",
        "amp play --model a.nam --frames 8",
        "amp play --model a.nam --periods 1",
        "amp play --model a.nam --capture-device hw:0",
        "latency loop --rounds 0",
    ] {
        scratch.run(arguments).expect_status(64);
    }
}

/// The clock takes the place of a card: the first preset plays, a MIDI program change selects the second one, and the
/// figures are printed at the end.
#[test]
fn playing_follows_midi_and_prints_its_figures() {
    repeat_if_stalled(Stall::Ordinary(Duration::from_millis(200)), play_with_midi);
}

fn play_with_midi() {
    let scratch = Scratch::new();
    let presets = scratch.path().join("presets");
    fs::create_dir(&presets).unwrap();
    for name in ["1-clean.toml", "2-dirty.toml"] {
        fs::write(presets.join(name), "[input]\ngain_db = 3\n").unwrap();
    }
    // Program 2, and program 8, which does not exist.
    fs::write(scratch.path().join("song"), [0xc0, 1, 0xc0, 7]).unwrap();
    let run =
        scratch.run("amp play --device clock --policy other --frames 256 --duration 1s --presets presets --midi song");
    run.expect_status(0);
    let (stdout, stderr) = (run.stdout(), run.stderr());
    assert!(
        stderr.contains("2-dirty (2 of 2): ") && stderr.contains("chose preset 8, but there are only 2"),
        "{stderr}"
    );
    for expected in ["played   ", "512 frames, 10.67 ms, computed", "of a period, at most", "xruns    "] {
        assert!(stdout.contains(expected), "{stdout}");
    }
}

#[test]
fn the_latency_contains_the_resampling_of_models_once() {
    let scratch = Scratch::new();
    let wire = r#"{"version": "0.5.4", "architecture": "Linear", "sample_rate": 44100,
        "config": {"receptive_field": 1, "bias": false}, "weights": [1.0]}"#;
    fs::write(scratch.path().join("wire.nam"), wire).unwrap();
    // Models in parallel are aligned: both have the delay of one.
    for (routing, frames) in [("", 108), ("--parallel", 54)] {
        let options = format!("--device clock --policy other --frames 256 --duration 1s {routing}");
        let run = scratch.run(&format!("amp play --model wire.nam --model2 wire.nam {options}"));
        let stdout = run.expect_status(0).stdout();
        let expected = format!("latency  {} frames, ", 512 + frames);
        assert!(stdout.contains(&expected), "{routing}: {stdout}");
        assert!(stdout.contains(&format!("computed, with {frames} frames of resampling;")), "{routing}: {stdout}");
    }
}

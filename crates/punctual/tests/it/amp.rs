//! `amp`: rendering, information, timing and playing without a card.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use hound::{SampleFormat, WavReader, WavSpec, WavWriter};

use super::harness::{Scratch, Start, signal, wait_until};

fn vectors() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../amp/tests/vectors")
}

fn samples(name: &str) -> Vec<f32> {
    let bytes = fs::read(vectors().join(name)).unwrap();
    bytes.chunks_exact(4).map(|bytes| f32::from_le_bytes(bytes.try_into().unwrap())).collect()
}

/// A folder with these samples in `dry.wav`.
fn with_input(sample_rate: u32, samples: &[f32]) -> Scratch {
    let scratch = Scratch::new();
    let spec = WavSpec { channels: 1, sample_rate, bits_per_sample: 32, sample_format: SampleFormat::Float };
    let mut writer = WavWriter::create(scratch.path().join("dry.wav"), spec).unwrap();
    samples.iter().for_each(|&sample| writer.write_sample(sample).unwrap());
    writer.finalize().unwrap();
    scratch
}

/// The samples of `wet.wav`.
fn output(scratch: &Scratch) -> Vec<f32> {
    let mut reader = WavReader::open(scratch.path().join("wet.wav")).unwrap();
    assert_eq!((reader.spec().bits_per_sample, reader.spec().sample_format), (32, SampleFormat::Float));
    reader.samples().map(Result::unwrap).collect()
}

#[test]
fn render_matches_the_reference_output_of_models() {
    let cases = [
        ("wn_a1_nano.nam", "wn_a1_nano", "wn_a1_nano", 48_000, ""),
        ("a2_container.nam", "a2_container_slim025", "a2_container_slim025", 48_000, "--slim 0.25"),
        ("guitarml_lstm40_cond.json", "guitarml_lstm40_cond_p035", "guitarml_lstm40_cond_p080", 44_100, "--param 0.8"),
        ("aidax_lstm12_skip0.json", "aidax_lstm12_skip0", "aidax_lstm12_skip0_noprewarm", 48_000, "--no-prewarm"),
    ];
    for (model, input, expected, rate, more) in cases {
        let scratch = with_input(rate, &samples(&format!("{input}.in.f32")));
        let model = vectors().join(model);
        let run = scratch.run(&format!("amp render dry.wav wet.wav --bare --model {} {more}", model.display()));
        run.expect_status(0);
        let (played, expected) = (output(&scratch), samples(&format!("{expected}.out.f32")));
        assert_eq!(played.len(), expected.len());
        let worst = played.iter().zip(&expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(worst <= 5e-6, "{expected:?} {worst:e}", expected = model.display());
    }
}

#[test]
fn render_rejects_invalid_options_and_files() {
    let scratch = with_input(44_100, &[0.0; 100]);
    let model = vectors().join("wn_a1_nano.nam");
    let model = model.display();
    let refused = |arguments: &str, status: i32, expected: &str| {
        let run = scratch.run(&format!("amp render dry.wav wet.wav {arguments}"));
        let said = run.expect_status(status).stderr();
        assert!(said.lines().count() == 1 && said.contains(expected), "{said}");
        assert!(!scratch.path().join("wet.wav").exists(), "{arguments} wrote something");
    };
    refused("", 64, "add --model, --cab or --preset");
    refused("--bare --cab dry.wav", 64, "leave out --preset, --model2, --cab");
    refused(&format!("--model {model} --no-prewarm"), 64, "add --bare");
    refused(&format!("--model {model} --cab dry.wav"), 1, "the impulse response is silent");
    refused(&format!("--model {model} --cab no-such.wav"), 1, "cannot read no-such.wav");
    refused(&format!("--model {model} --set gate.threshhold_db=3"), 64, "did you mean \"gate.threshold_db\"");
    refused(&format!("--model {model} --set gate.on"), 64, "--set must be NAME=VALUE");
    refused(&format!("--model {model} --set tone.bass_db="), 64, "--set must be NAME=VALUE");
    refused(&format!("--model {model} --set =3"), 64, "--set must be NAME=VALUE");
    refused(&format!("--model2 {model}"), 64, "add --model for the first");
    refused(&format!("--model {model} --set tone.bass_db=99"), 64, "must be -15 to 15 dB");
    refused(&format!("--model {model} --param 0.5"), 64, "the model has 0");
    refused("--slim 0.5 --cab dry.wav", 64, "add --model");
    refused(&format!("--model {model} --parallel"), 64, "add --model2");
    refused(&format!("--model {model} --cab-normalised"), 64, "add --cab");
    refused(&format!("--bare --model {model} --neutral"), 64, "the model alone");
    for (routing, set) in [("--series", "parallel"), ("--parallel", "series")] {
        let both = format!("--model {model} --model2 {model} {routing} --set amp.routing={set}");
        refused(&both, 64, &format!("{routing} and --set amp.routing={set} contradict each other: leave one out"));
    }
    refused("--model dry.wav", 1, "dry.wav: the model file is not valid JSON");
    refused(&format!("--cab {model}"), 64, &format!("a cabinet is a WAV file: use --model {model}, or [[model]]"));
    refused(&format!("--bare --model {model} --slim 0.5"), 64, "leave out --slim");
    refused(&format!("--bare --model {model} --param 0.5"), 64, "the model has 0");
    let bad = vectors().join("truncated_weights.bad.nam");
    refused(&format!("--bare --model {}", bad.display()), 1, "198 weights, the file has 197");
    refused("--bare --model no-such.nam", 1, "cannot read no-such.nam");
    for endless in ["--model /dev/zero", "--cab /dev/zero", "--preset /dev/zero"] {
        refused(endless, 1, "cannot read /dev/zero: a device, not a regular file, pipe or terminal");
    }
}

/// A render of hours leaves neither an output nor a part of one.
#[test]
fn a_signal_leaves_no_part_of_a_recording() {
    for name in ["INT", "TERM", "HUP"] {
        let scratch = with_input(48_000, &[0.0; 8]);
        let header = fs::read(scratch.path().join("dry.wav")).unwrap();
        let data = header.windows(4).position(|bytes| bytes == b"data").unwrap();
        // Silence of some hours, which takes no space.
        let length: u32 = 2_000_000_000;
        let long = [&header[..data + 4], &length.to_le_bytes()].concat();
        fs::write(scratch.path().join("dry.wav"), &long).unwrap();
        let file = fs::File::options().write(true).open(scratch.path().join("dry.wav")).unwrap();
        file.set_len(long.len() as u64 + u64::from(length)).unwrap();
        let files = || fs::read_dir(scratch.path()).unwrap().count();
        let before = files();
        let model = vectors().join("wn_a1_nano.nam");
        let mut render = scratch.punctual(&format!("amp render dry.wav wet.wav --model {}", model.display()));
        let child = render.stderr(Stdio::piped()).start();
        wait_until("the output is begun", || files() > before);
        signal(&child, name);
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!((output.status.code(), files()), (Some(130), before), "{name}: {said}");
        assert!(said.contains("interrupted: recordings that were not finished were not written"), "{said}");
    }
}

#[test]
fn render_reads_standard_input_and_writes_standard_output() {
    let scratch = with_input(48_000, &noise(640));
    let model = vectors().join("wn_a1_nano.nam");
    scratch.run(&format!("amp render dry.wav wet.wav --model {}", model.display())).expect_status(0);
    let mut piped = scratch.punctual(&format!("amp render - - --model {}", model.display()));
    piped.stdin(fs::File::open(scratch.path().join("dry.wav")).unwrap());
    let output = piped.output().unwrap();
    assert!(output.status.success() && output.stdout == fs::read(scratch.path().join("wet.wav")).unwrap());
}

#[test]
fn render_plays_the_mean_of_channels_or_one_of_them() {
    let (left, right) = (noise(640), vec![0.0; 640]);
    let scratch = with_input(48_000, &left);
    let model = vectors().join("wn_a1_nano.nam");
    let render = |input: &str, options: &str| {
        let run = scratch.run(&format!("amp render {input} wet.wav --bare --model {} {options}", model.display()));
        let said = run.expect_status(0).stderr();
        (output(&scratch), said)
    };
    let (alone, said) = render("dry.wav", "");
    assert!(!said.contains("channels"), "{said}");
    write(&scratch.path().join("both.wav"), 48_000, &[left.clone(), right]);
    assert_eq!(render("both.wav", "--channel 1").0, alone);
    write(&scratch.path().join("half.wav"), 48_000, &[left.iter().map(|sample| 0.5 * sample).collect()]);
    let (mean, said) = render("both.wav", "");
    assert!(said.contains("the mean of 2 channels is played; --channel N plays one"), "{said}");
    assert_eq!(mean, render("half.wav", "").0);
    assert_ne!(mean, alone);
    let refused = scratch.run(&format!("amp render both.wav x.wav --model {} --channel 3", model.display()));
    let said = refused.expect_status(64).stderr();
    assert!(said.contains("both.wav has no channel 3: use 1 to 2"), "{said}");
}

#[test]
fn several_recordings_are_rendered_to_a_folder() {
    let scratch = with_input(48_000, &noise(20_000));
    let path = |name: &str| scratch.path().join(name);
    write(&path("other.wav"), 44_100, &[noise(3000), noise(3000)]);
    let flac = vectors().join("../recordings/stereo.flac");
    fs::copy(&flac, path("take.flac")).unwrap();
    fs::create_dir(path("wet")).unwrap();
    fs::create_dir(path("one")).unwrap();
    let with = format!("--neutral --model {}", vectors().join("wn_a1_nano.nam").display());
    let run = scratch.run(&format!("amp render dry.wav other.wav take.flac wet {with}"));
    let said = run.expect_status(0).stderr();
    for name in ["dry", "other", "take"] {
        assert!(said.contains(&format!("written to wet/{name}.wav")), "{said}");
        let input = if name == "take" { "take.flac".to_owned() } else { format!("{name}.wav") };
        scratch.run(&format!("amp render {input} one {with}")).expect_status(0);
        let bytes = |folder: &str| fs::read(path(&format!("{folder}/{name}.wav"))).unwrap();
        assert!(bytes("wet") == bytes("one"), "{name}");
    }
    assert!(said.contains("take.flac: the mean of 2 channels is played"), "{said}");
    assert_eq!(WavReader::open(path("wet/take.wav")).unwrap().duration(), 5000);

    let refused = |arguments: &str, expected: &str| {
        let said = scratch.run(&format!("amp render {arguments} {with}")).expect_status(64).stderr();
        assert!(said.contains(expected), "{said}");
    };
    refused("dry.wav other.wav wet.wav", "several recordings are rendered to a folder, and wet.wav is none");
    refused("dry.wav one/dry.wav wet", "dry.wav and one/dry.wav would both be written to wet/dry.wav");
    refused("dry.wav other.wav .", "dry.wav is an input and would be overwritten");
    refused("dry.wav new/", "new/ is no folder: create it");
    refused("dry.wav wet.flac", "rendered to WAV files, and wet.flac is named as another kind: name it wet.wav");
    refused("- wet", "standard input has no name for a file in wet");

    // The others are rendered, even if one is damaged.
    let mut damaged = fs::read(&flac).unwrap();
    let middle = damaged.len() / 2;
    damaged[middle] ^= 0x10;
    fs::write(path("bad.flac"), damaged).unwrap();
    fs::create_dir(path("rest")).unwrap();
    fs::write(path("none.wav"), b"no recording").unwrap();
    let run = scratch.run(&format!("amp render bad.flac none.wav dry.wav take.flac rest {with}"));
    let said = run.expect_status(1).stderr();
    assert!(said.contains("note: bad.flac: the FLAC file is damaged or truncated"), "{said}");
    assert!(said.contains("note: none.wav: not a WAV, FLAC or AIFF file"), "{said}");
    assert!(said.contains("2 of 4 recordings were not rendered"), "{said}");
    let mut files: Vec<_> = fs::read_dir(path("rest")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    files.sort();
    assert_eq!(files, ["dry.wav", "take.wav"]);
}

#[test]
fn a_reverb_that_is_named_is_played_also_if_all_else_is_neutral() {
    let scratch = with_input(48_000, &noise(2000));
    let path = |name: &str| scratch.path().join(name);
    write(&path("sides.wav"), 48_000, &[vec![0.5], vec![0.25]]);
    fs::write(path("rig.toml"), "[reverb_ir]\nfile = 'sides.wav'\n").unwrap();
    scratch.run("amp render dry.wav wet.wav --neutral --reverb-ir sides.wav --set reverb_ir.mix=1").expect_status(0);
    let [left, right] = stereo_output(&scratch);
    assert!(left.iter().zip(&right).skip(100).all(|(left, right)| (left - 2.0 * right).abs() < 1e-6));
    // That of a preset is off, so both sides are the same.
    scratch.run("amp render dry.wav wet.wav --neutral --preset rig.toml").expect_status(0);
    assert_eq!(WavReader::open(path("wet.wav")).unwrap().spec().channels, 1);
}

#[test]
fn a_model_without_finite_output_has_no_cost() {
    let scratch = Scratch::new();
    // The sum over half a wave of the input is infinite.
    let model = |weight: &str| {
        let weights = [weight; 10].join(", ");
        format!(
            r#"{{"version": "0.5.4", "architecture": "Linear", "sample_rate": 48000,
            "config": {{"receptive_field": 10, "bias": false}}, "weights": [{weights}]}}"#
        )
    };
    fs::write(scratch.path().join("loud.nam"), model("1")).unwrap();
    fs::write(scratch.path().join("bad.nam"), model("3e38")).unwrap();
    fs::write(scratch.path().join("rig.toml"), "[[model]]\nfile = 'bad.nam'\n").unwrap();
    for what in ["bench bad.nam", "info bad.nam", "info rig.toml"] {
        let said = scratch.run(&format!("amp {what}")).expect_status(1).stderr();
        assert!(said.contains("the output of bad.nam is NaN or infinite"), "{what}: {said}");
    }
    // The other files are measured.
    let run = scratch.run("amp bench loud.nam bad.nam --json");
    run.expect_status(1);
    let json: serde_json::Value = serde_json::from_str(&run.stdout()).unwrap();
    assert_eq!(json["models"].as_array().unwrap().len(), 1);
    assert!(run.stderr().contains("1 of 2 files cannot be played"), "{}", run.stderr());
}

#[test]
fn a_long_recording_takes_no_more_memory_than_a_short_one() {
    let scratch = Scratch::new();
    let wire = r#"{"version": "0.5.4", "architecture": "Linear", "sample_rate": 48000,
        "config": {"receptive_field": 1, "bias": false}, "weights": [1]}"#;
    fs::write(scratch.path().join("wire.nam"), wire).unwrap();
    // Samples of 8 bits: the output is four times as long.
    let (frames, path) = (12_000_000_u32, scratch.path().join("dry.wav"));
    let mut header = b"RIFF\xff\xff\xff\xffWAVEfmt \x10\0\0\0\x01\0\x01\0".to_vec();
    header.extend([48_000, 48_000].map(u32::to_le_bytes).concat());
    header.extend(b"\x01\0\x08\0data");
    header.extend(frames.to_le_bytes());
    fs::write(&path, &header).unwrap();
    fs::File::options().append(true).open(&path).unwrap().set_len(44 + u64::from(frames)).unwrap();
    // Address space in KiB: too little for the program, the samples and the bytes of the output.
    let mut limited = Command::new("sh");
    limited.args(["-c", "ulimit -v 160000; exec \"$0\" amp render dry.wav wet.wav --bare --model wire.nam"]);
    limited.arg(env!("CARGO_BIN_EXE_punctual")).current_dir(scratch.path());
    let run = limited.output().unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    assert_eq!(WavReader::open(scratch.path().join("wet.wav")).unwrap().duration(), frames);
}

#[test]
fn render_never_overwrites_its_inputs() {
    let scratch = with_input(48_000, &noise(64));
    let model = scratch.path().join("nano.nam");
    fs::copy(vectors().join("wn_a1_nano.nam"), &model).unwrap();
    std::os::unix::fs::symlink("dry.wav", scratch.path().join("link.wav")).unwrap();
    let before = fs::read(scratch.path().join("dry.wav")).unwrap();
    for (output, input) in [("dry.wav", "dry.wav"), ("link.wav", "dry.wav"), ("nano.nam", "nano.nam")] {
        let run = scratch.run(&format!("amp render dry.wav {output} --neutral --model nano.nam"));
        let said = run.expect_status(64).stderr();
        assert_eq!(said, format!("error: {input} is an input and would be overwritten: write to another file\n"));
    }
    assert_eq!(fs::read(scratch.path().join("dry.wav")).unwrap(), before);
    // An existing file is kept until the new one is complete.
    fs::write(scratch.path().join("wet.wav"), b"old").unwrap();
    let count_files = || fs::read_dir(scratch.path()).unwrap().count();
    let before = count_files();
    let mut full = Command::new("sh");
    full.args(["-c", "trap '' XFSZ; ulimit -f 0; exec \"$0\" amp render dry.wav wet.wav --neutral --model nano.nam"]);
    full.arg(env!("CARGO_BIN_EXE_punctual")).current_dir(scratch.path()).stderr(Stdio::null());
    assert_eq!(full.status().unwrap().code(), Some(1));
    assert_eq!((fs::read(scratch.path().join("wet.wav")).unwrap(), count_files()), (b"old".to_vec(), before));
    // A device is written to, not replaced.
    scratch.run("amp render dry.wav /dev/null --neutral --model nano.nam").expect_status(0);
    scratch.run("amp render dry.wav /dev/full --neutral --model nano.nam").expect_status(1);
    assert!(!fs::metadata("/dev/null").unwrap().is_file() && !fs::metadata("/dev/full").unwrap().is_file());
}

#[test]
fn render_reports_bad_samples_and_truncated_files() {
    let model = vectors().join("wn_a1_nano.nam");
    let scratch = with_input(48_000, &[0.1, 2000.0, -30_000.0, 0.1]);
    let said =
        scratch.run(&format!("amp render dry.wav wet.wav --model {}", model.display())).expect_status(0).stderr();
    assert!(said.contains("note: 2 samples of dry.wav are more than 60 dB above full scale"), "{said}");
    let loud = with_input(44_100, &sine(997.0, 44_100, 4410));
    let said = loud
        .run(&format!("amp render dry.wav wet.wav --model {} --set output.gain_db=20", model.display()))
        .expect_status(0)
        .stderr();
    assert!(
        said.contains("samples of the output are above full scale: resampling raised the limited output"),
        "{said}"
    );
    let whole = fs::read(scratch.path().join("dry.wav")).unwrap();
    fs::write(scratch.path().join("dry.wav"), &whole[..whole.len() - 4]).unwrap();
    let run = scratch.run(&format!("amp render dry.wav cut.wav --model {}", model.display()));
    let said = run.expect_status(1).stderr();
    assert!(said.contains("truncated: it has 12 of 16 bytes"), "{said}");
    // Errors are reported by the exit status even if standard error cannot be written.
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_punctual"));
    command.args(["amp", "render", "dry.wav", "cut.wav", "--bare"]).current_dir(scratch.path()).stderr(full);
    assert_eq!(command.status().unwrap().code(), Some(64));
}

fn write(path: &Path, sample_rate: u32, channels: &[Vec<f32>]) {
    let count = channels.len().try_into().unwrap();
    let spec = WavSpec { channels: count, sample_rate, bits_per_sample: 32, sample_format: SampleFormat::Float };
    let mut writer = WavWriter::create(path, spec).unwrap();
    for at in 0..channels[0].len() {
        channels.iter().for_each(|channel| writer.write_sample(channel[at]).unwrap());
    }
    writer.finalize().unwrap();
}

/// Left and right of `wet.wav`.
fn stereo_output(scratch: &Scratch) -> [Vec<f32>; 2] {
    assert_eq!(WavReader::open(scratch.path().join("wet.wav")).unwrap().spec().channels, 2);
    let both = output(scratch);
    [0, 1].map(|side| both.iter().skip(side).step_by(2).copied().collect())
}

fn noise(frames: usize) -> Vec<f32> {
    let mut state = 7_u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 23) as f32 - 1.0
    };
    (0..frames).map(|_| next()).collect()
}

fn sine(hz: f32, sample_rate: u32, frames: usize) -> Vec<f32> {
    let turn = hz / sample_rate as f32 * std::f32::consts::TAU;
    (0..frames).map(|n| 0.3 * (n as f32 * turn).sin()).collect()
}

fn convolved(input: &[f32], response: &[f32]) -> Vec<f64> {
    let terms = |n: usize| (0..response.len().min(n + 1)).map(move |k| (k, n - k));
    (0..input.len()).map(|n| terms(n).map(|(k, at)| f64::from(response[k]) * f64::from(input[at])).sum()).collect()
}

fn largest_difference(a: &[f32], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| (f64::from(*a) - b).abs()).fold(0.0, f64::max)
}

#[test]
fn a_cabinet_convolves_the_output_of_the_model() {
    let scratch = with_input(48_000, &noise(6000).iter().map(|x| 0.3 * x).collect::<Vec<_>>());
    let decay = |n: usize| 0.2 * (-(n as f32) / 400.0).exp();
    let sides: Vec<Vec<f32>> =
        (0..2).map(|side| noise(3000 + side)[side..].iter().enumerate().map(|(n, x)| x * decay(n)).collect()).collect();
    write(&scratch.path().join("cab.wav"), 48_000, &sides);
    let model = vectors().join("wn_a1_nano.nam");
    let model = model.display();
    scratch.run(&format!("amp render dry.wav wet.wav --bare --model {model}")).expect_status(0);
    let alone = output(&scratch);
    scratch.run(&format!("amp render dry.wav wet.wav --neutral --model {model} --cab cab.wav")).expect_status(0);
    let played = stereo_output(&scratch);
    for (played, response) in played.iter().zip(&sides) {
        let worst = largest_difference(played, &convolved(&alone, response));
        assert!(worst < 1e-5, "{worst:e}");
    }
    let mean: Vec<f64> = played[0].iter().zip(&played[1]).map(|(a, b)| 0.5 * (f64::from(*a) + f64::from(*b))).collect();
    scratch.run(&format!("amp render dry.wav wet.wav --mono --neutral --model {model} --cab cab.wav")).expect_status(0);
    assert!(largest_difference(&output(&scratch), &mean) < 1e-6);

    // The same with a preset in another folder. Its paths start at that folder.
    let folder = scratch.path().join("presets");
    fs::create_dir(&folder).unwrap();
    fs::copy(vectors().join("wn_a1_nano.nam"), folder.join("nano.nam")).unwrap();
    let preset = "[[model]]\nfile = 'nano.nam'\n[[ir]]\nfile = '../cab.wav'\ngain_db = -6\n[output]\nlevel = 'raw'\n\
                  dc_block = false\n[tone]\non = false\n[limiter]\non = false\n";
    fs::write(folder.join("lead.toml"), preset).unwrap();
    let run = scratch.run("amp render dry.wav wet.wav --preset presets/lead.toml --set cabinet.gain_db=6");
    run.expect_status(0);
    let again = stereo_output(&scratch);
    let expected: Vec<f64> = played[0].iter().map(|&sample| f64::from(sample)).collect();
    assert!(largest_difference(&again[0], &expected) < 1e-5);
}

#[test]
fn render_keeps_rate_length_and_alignment_of_the_input() {
    // A model that copies its input.
    let linear = r#"{"version": "0.5.4", "architecture": "Linear", "sample_rate": 48000,
        "config": {"receptive_field": 1, "bias": false}, "weights": [1.0]}"#;
    for (rate, more) in
        [(44_100, "--neutral"), (96_000, "--neutral"), (44_100, "--rate 48000 --neutral"), (44_100, "--bare")]
    {
        let scratch = with_input(rate, &sine(500.0, rate, 8820));
        fs::write(scratch.path().join("wire.nam"), linear).unwrap();
        scratch.run(&format!("amp render dry.wav wet.wav --model wire.nam {more}")).expect_status(0);
        let to = if more.starts_with("--rate") { 48_000 } else { rate };
        let frames = 8820 * to as usize / rate as usize;
        let played = output(&scratch);
        assert_eq!(played.len(), frames, "{rate} {more}");
        let expected: Vec<f64> = sine(500.0, to, frames).iter().map(|&x| f64::from(x)).collect();
        let inner = 3000..frames - 300;
        let worst = largest_difference(&played[inner.clone()], &expected[inner]);
        assert!(worst < 1e-4, "{rate} {more}: {worst}");
    }
    let scratch = with_input(48_000, &sine(500.0, 48_000, 4800));
    fs::write(scratch.path().join("wire.nam"), linear).unwrap();
    fs::write(scratch.path().join("other.nam"), linear.replace("48000", "44100")).unwrap();
    let run = scratch.run("amp render dry.wav wet.wav --neutral --model wire.nam --model2 other.nam --parallel");
    // The output has no delay, so the note names none.
    let note = run.expect_status(0).stderr();
    assert!(note.contains("other.nam was trained at 44100 Hz and is resampled to 48000 Hz\n"), "{note}");
    // Two options that ask for the same routing do not contradict each other.
    let twice = "--model2 other.nam --parallel --set amp.routing=parallel";
    scratch.run(&format!("amp render dry.wav wet.wav --neutral --model wire.nam {twice}")).expect_status(0);
    let expected: Vec<f64> = sine(500.0, 48_000, 4800).iter().map(|&x| f64::from(x)).collect();
    let worst = largest_difference(&output(&scratch)[200..4700], &expected[200..4700]);
    assert!(worst < 1e-3, "the models are not aligned: {worst}");
}

#[test]
fn bench_estimates_the_cost_on_a_board() {
    let scratch = Scratch::new();
    for name in ["a2_full.nam", "guitarml_lstm20.json", "nan_weight.bad.nam"] {
        fs::copy(vectors().join(name), scratch.path().join(name)).unwrap();
    }
    let run = scratch.run("amp bench . --board pi4@1800");
    let (page, said) = (run.expect_status(0).stdout(), run.stderr());
    assert!(page.starts_with("expected on one core cortex-a72 at 1800 MHz"), "{page}");
    assert!(page.contains("not measured on a board; for a measurement run `punctual amp bench`"), "{page}");
    assert!(said.contains("skipped: ") && page.lines().count() == 6, "{page}{said}");

    let run = scratch.run("amp bench . --board cortex-a72@1000 --frames 128 --json");
    let json: serde_json::Value = serde_json::from_str(&run.expect_status(0).stdout()).unwrap();
    assert_eq!((&json["core"], &json["clock_mhz"]), (&"cortex-a72".into(), &1000.into()));
    for (model, rate_hz) in json["models"].as_array().unwrap().iter().zip([48_000.0, 44_100.0]) {
        let number = |key: &str| model[key].as_f64().unwrap();
        let fast = json["instructions_a_cycle"][1].as_f64().unwrap();
        let share = number("instructions_a_frame") * rate_hz / 1e9 / fast * (1.0 - number("instructions_error"));
        assert!((number("share_low") / share - 1.0).abs() < 1e-9 && number("share_high") > share, "{model}");
        assert!((number("real_time_factor_high") * number("share_low") - 1.0).abs() < 1e-9, "{model}");
    }

    let refused = |arguments: &str, expected: &str| {
        let said = scratch.run(&format!("amp bench a2_full.nam {arguments}")).expect_status(64).stderr();
        assert!(said.contains(expected), "{said}");
    };
    refused("--board pi4 --frames 16", "--frames must be a multiple of 64 with --board");
    refused("--board cortex-m7", "unknown core or board; choose one of cortex-a53, cortex-a55");
    refused("--board pi4@fast", "the clock must be 100 to 10000 MHz");
}

#[test]
fn info_describes_a_cabinet_and_a_preset() {
    let scratch = with_input(44_100, &[&[0.0; 50][..], &[0.5, -0.25, 0.125, 0.0, 0.0]].concat());
    let info: serde_json::Value =
        serde_json::from_str(&scratch.run("amp info dry.wav --json").expect_status(0).stdout()).unwrap();
    let numbers =
        ["channels", "frames", "played_frames", "silence_frames", "bits"].map(|key| info[key].as_u64().unwrap());
    assert_eq!(numbers, [1, 55, 53, 50, 32]);
    assert_eq!(info["sample_rate_hz"], 44_100.0);
    let page = scratch.run("amp info dry.wav").expect_status(0).stdout();
    assert!(page.contains("impulse response, mono") && page.contains("-6.0 dB"), "{page}");

    fs::write(scratch.path().join("a.toml"), "[[ir]]\nfile = 'dry.wav'\n[[model]]\nfile = 'no.nam'\n[gate]\non = true")
        .unwrap();
    let run = scratch.run("amp info a.toml");
    let (page, said) = (run.expect_status(1).stdout(), run.stderr());
    assert!(page.contains("no.nam, which does not exist") && page.contains("gate.on = true"), "{page}");
    assert!(said.starts_with("error: cannot read no.nam: ") && said.lines().count() == 1, "{said}");
    let info: serde_json::Value =
        serde_json::from_str(&scratch.run("amp info a.toml --json").expect_status(1).stdout()).unwrap();
    assert_eq!((&info["models"][0]["file"], &info["block_us"]), (&"no.nam".into(), &serde_json::Value::Null));
    fs::write(scratch.path().join("a.toml"), "[gate]\nopen = true").unwrap();
    let said = scratch.run("amp info a.toml").expect_status(1).stderr();
    assert!(said.contains("a.toml: line 2: unknown \"open\" in [gate]; did you mean \"on\"?"), "{said}");
}

#[test]
fn info_describes_all_settings_and_the_cost_of_a_preset() {
    let scratch = with_input(48_000, &[0.0, 0.5, -0.25, 0.125]);
    for name in ["a2_container.nam", "guitarml_lstm40_cond.json"] {
        fs::copy(vectors().join(name), scratch.path().join(name)).unwrap();
    }
    let preset = "[[model]]\nfile = 'a2_container.nam'\nslim = 0.25\n[[model]]\nfile = 'guitarml_lstm40_cond.json'\n\
                  knobs = [0.35]\n[[ir]]\nfile = 'dry.wav'\ngain_db = -3.1\nnormalised = true\nwithout_delay = true\n\
                  [amp]\nrouting = 'parallel'\n[tone]\non = false\nbass_db = 2.5\n[midi]\n7 = 'output.gain_db'\n";
    fs::write(scratch.path().join("lead.toml"), preset).unwrap();
    let page = scratch.run("amp info lead.toml").expect_status(0).stdout();
    for line in [
        "model            a2_container.nam, slim 0.25\n",
        "model            guitarml_lstm40_cond.json, knobs [0.35]\n",
        "cabinet          dry.wav, -3.1 dB, normalised, without delay\n",
        "set              amp.routing = \"parallel\"\n",
        "midi             controller 7 sets output.gain_db\n",
        "sample rate      48000 Hz\n",
        "x real time, the whole chain\n",
    ] {
        assert!(page.contains(line), "{line} {page}");
    }
    let info: serde_json::Value =
        serde_json::from_str(&scratch.run("amp info lead.toml --json").expect_status(0).stdout()).unwrap();
    let models = serde_json::json!([
        { "file": "a2_container.nam", "slim": 0.25, "knobs": [] },
        { "file": "guitarml_lstm40_cond.json", "slim": 1.0, "knobs": [0.35] },
    ]);
    let cabinets =
        serde_json::json!([{ "file": "dry.wav", "gain_db": -3.1, "normalised": true, "without_delay": true }]);
    assert_eq!((&info["models"], &info["cabinets"]), (&models, &cabinets));
    assert_eq!(info["midi"], serde_json::json!({ "7": "output.gain_db" }));
    let set =
        ["amp.routing", "output.level", "tone.on", "limiter.on", "tone.bass_db"].map(|name| &info["settings"][name]);
    let due: [serde_json::Value; 5] = ["parallel".into(), "loudness".into(), false.into(), true.into(), 2.5.into()];
    assert_eq!(set, due.each_ref());
    let [us, share, rate_hz] = ["block_us", "block_share", "sample_rate_hz"].map(|key| info[key].as_f64().unwrap());
    assert!(us > 0.0 && (us * rate_hz / 64e6 / share - 1.0).abs() < 1e-9, "{info}");
}

#[test]
fn info_describes_a_model_and_its_cost() {
    let scratch = Scratch::new();
    let model = vectors().join("wn_a1_standard.nam");
    let run = scratch.run(&format!("amp info {} --json", model.display()));
    let info: serde_json::Value = serde_json::from_str(&run.expect_status(0).stdout()).unwrap();
    assert_eq!((&info["format"], &info["architecture"]), (&"Nam".into(), &"WaveNet".into()));
    assert_eq!((&info["sample_rate_hz"], &info["settles_after_samples"]), (&48_000.0.into(), &4093.into()));
    assert_eq!(info["input_level_dbu"], 18.5);
    assert!(info["block_us"].as_f64().is_some_and(|us| us > 0.0));
    let page = scratch.run(&format!("amp info {}", model.display())).expect_status(0).stdout();
    assert!(page.contains("Neural Amp Modeler: WaveNet") && page.contains("real time"), "{page}");
}

#[test]
fn bench_measures_the_models_of_a_folder() {
    let scratch = with_input(48_000, &[0.0; 16]);
    let models = scratch.path().join("models");
    fs::create_dir(&models).unwrap();
    for name in ["wn_a1_nano.nam", "guitarml_lstm20.json", "cut_json.bad.nam"] {
        fs::copy(vectors().join(name), models.join(name)).unwrap();
    }
    let run = scratch.run("amp bench models --frames 16 --json");
    run.expect_status(0);
    let info: serde_json::Value = serde_json::from_str(&run.stdout()).unwrap();
    let rows = info["models"].as_array().unwrap();
    let names: Vec<&str> = rows.iter().map(|row| row["file"].as_str().unwrap()).collect();
    assert_eq!((names, &info["frames"]), (vec!["guitarml_lstm20.json", "wn_a1_nano.nam"], &serde_json::json!(16)));
    assert!(run.stderr().contains("skipped: ") && run.stderr().contains("cut_json.bad.nam"), "{}", run.stderr());
    for row in rows {
        let figure = |name: &str| row[name].as_f64().unwrap();
        assert!(0.0 < figure("best_us") && figure("best_us") <= figure("median_us"), "{row}");
        assert!(figure("median_us") <= figure("p99_us"), "{row}");
        assert!(row["instructions"].as_str().is_some_and(|name| !name.is_empty()), "{row}");
        let budget_us = 16e6 / figure("sample_rate_hz");
        assert!((figure("share") * budget_us / figure("median_us") - 1.0).abs() < 1e-9, "{row}");
        assert!((figure("real_time_factor") * figure("share") - 1.0).abs() < 1e-9, "{row}");
    }
    let run = scratch.run("amp bench models/cut_json.bad.nam");
    assert_eq!(run.expect_status(1).stdout(), "", "there must be no heading without rows");
    // A folder without a playable model.
    let bad = scratch.path().join("bad");
    fs::create_dir(&bad).unwrap();
    fs::rename(models.join("cut_json.bad.nam"), bad.join("cut.nam")).unwrap();
    for form in ["", " --json"] {
        let run = scratch.run(&format!("amp bench bad{form}"));
        let printed = run.expect_status(1).stdout();
        let is_error =
            |text: &str| serde_json::from_str::<serde_json::Value>(text).is_ok_and(|it| it["exit_status"] == 1);
        assert!(if form.is_empty() { printed.is_empty() } else { is_error(&printed) }, "{printed}");
        let (said, due) = (run.stderr(), "none of these models can be played: choose another folder, or name files\n");
        assert!(said.contains("skipped: ") && said.ends_with(due), "{said}");
    }
    fs::create_dir(scratch.path().join("empty")).unwrap();
    scratch.run("amp bench empty").expect_status(1);
}

#[test]
fn play_reports_a_muted_model_once_and_in_the_summary() {
    let scratch = Scratch::new();
    let endless = r#"{"version": "0.5.4", "architecture": "Linear", "sample_rate": 48000,
        "config": {"receptive_field": 2, "bias": false}, "weights": [3e38, 3e38]}"#;
    fs::write(scratch.path().join("endless.nam"), endless).unwrap();
    for quiet in ["", "--quiet"] {
        let run = scratch.run(&format!(
            "amp play --device clock --frames 512 --policy other --duration 2500ms --model endless.nam --set input.gain_db=40 {quiet}"
        ));
        let said = run.expect_status(0).stderr();
        let note = "endless is muted: its output was NaN or infinite; choose another model";
        assert_eq!(said.matches(note).count(), 1, "{said}");
        assert_eq!(run.stdout().matches("muted    endless: ").count(), 1, "{}", run.stdout());
    }
}

#[test]
fn negative_numbers_are_rejected_with_the_range() {
    let scratch = Scratch::new();
    for (arguments, range) in [
        ("render dry.wav wet.wav --bare --model a.nam --rate -5", "must be 1 to 768000 (got -5)"),
        ("bench a.nam --frames -5", "must be 1 to 8192 (got -5)"),
        ("play --device clock --midi x --midi-channel -5", "must be 1 to 16 (got -5)"),
        ("serve --device clock --port -5", "must be 0 to 65535 (got -5)"),
    ] {
        let run = scratch.run(&format!("amp {arguments}"));
        let said = run.expect_status(64).stderr();
        assert!(said.contains(range) && !said.contains("-- -5"), "{said}");
    }
}

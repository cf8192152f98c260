//! Tests of the whole chain: its output, also while controls change.

use std::{fs, path::PathBuf};

use amp::{
    Amplifier, Cabinet, Chain, Controls, Ir, ModelFile, Parameter, Parts, Settings, chain::Exchange, file::Options,
};

use crate::counting_allocator;

const RATE_HZ: u32 = 48_000;

fn file(name: &str) -> ModelFile {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/vectors").join(name);
    ModelFile::read(&fs::read(path).unwrap()).unwrap()
}

fn amplifier(name: &str) -> Amplifier {
    Amplifier::new(&file(name), Options::default(), &[], RATE_HZ).unwrap()
}

fn ir(seed: u32, frames: usize, sides: usize) -> Ir {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 23) as f32 - 1.0
    };
    let mut channel = || (0..frames).map(|n| next() * 0.2 * (-6.0 * n as f32 / frames as f32).exp()).collect();
    Ir::new(RATE_HZ, (0..sides).map(|_| channel()).collect()).unwrap()
}

fn guitar(frames: usize) -> Vec<f32> {
    let sample = |n: usize| {
        let t = n as f32 / RATE_HZ as f32;
        0.2 * (-3.0 * (t % 0.5)).exp() * ((t * 691.0).sin() + 0.5 * (t * 1382.0).sin() + 0.3 * (t * 4146.0).sin())
    };
    (0..frames).map(sample).collect()
}

fn settings(values: &[(Parameter, f32)]) -> Settings {
    let mut settings = Settings::neutral();
    values.iter().for_each(|&(parameter, value)| settings.set(parameter, value).unwrap());
    settings
}

/// Plays in calls of the given lengths, repeatedly. Before each call, `meanwhile` gets the index of the sample. Asserts
/// that no call allocates or frees memory.
fn play_with(chain: &mut Chain, input: &[f32], lengths: &[usize], mut meanwhile: impl FnMut(usize)) -> [Vec<f32>; 2] {
    let (mut left, mut right) = (vec![0.0; input.len()], vec![0.0; input.len()]);
    let (mut at, mut lengths) = (0, lengths.iter().cycle());
    while at < input.len() {
        meanwhile(at);
        let end = input.len().min(at + lengths.next().unwrap());
        let before = counting_allocator::calls();
        chain.process(&input[at..end], &mut left[at..end], &mut right[at..end]);
        assert_eq!(counting_allocator::calls(), before, "memory was allocated or freed while playing");
        at = end;
    }
    [left, right]
}

fn play(chain: &mut Chain, input: &[f32], lengths: &[usize]) -> [Vec<f32>; 2] {
    play_with(chain, input, lengths, |_| {})
}

fn new(settings: &Settings, models: [Option<Amplifier>; 2], cabinet: Option<&Ir>) -> (Chain, Controls) {
    Chain::new(RATE_HZ, settings, Parts { models, cabinet: cabinet.map(Cabinet::new), ..Parts::default() })
}

fn largest(samples: &[f32]) -> f32 {
    samples.iter().fold(0.0, |most, sample| most.max(sample.abs()))
}

fn largest_difference(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

fn rms(samples: &[f32]) -> f32 {
    (samples.iter().map(|x| x * x).sum::<f32>() / samples.len() as f32).sqrt()
}

#[test]
fn neutral_settings_leave_only_model_and_cabinet() {
    let input = guitar(6000);
    let (mut chain, _) = new(&Settings::neutral(), [Some(amplifier("wn_a1_nano.nam")), None], Some(&ir(1, 2000, 2)));
    let played = play(&mut chain, &input, &[64]);
    let mut alone = vec![0.0; input.len()];
    file("wn_a1_nano.nam").model(Options::default()).unwrap().process(&input, &mut alone);
    let (mut left, mut right) = (vec![0.0; input.len()], vec![0.0; input.len()]);
    Cabinet::new(&ir(1, 2000, 2)).process(&alone, &mut left, &mut right);
    assert!(played == [left, right]);
    assert_eq!(chain.delay(), 0);

    let (mut chain, _) = new(&Settings::neutral(), [None, None], None);
    assert!(play(&mut chain, &input, &[64]) == [input.clone(), input]);
}

#[test]
fn block_sizes_do_not_change_the_output_bits() {
    let mut all = Settings::default();
    for (parameter, value) in [
        (Parameter::InputGain, 6.0),
        (Parameter::InputCalibrated, 1.0),
        (Parameter::GateOn, 1.0),
        (Parameter::GateThreshold, -30.0),
        (Parameter::DriveOn, 1.0),
        (Parameter::Routing, 1.0),
        (Parameter::Bass, 4.0),
        (Parameter::Middle, -3.0),
        (Parameter::Treble, 5.0),
        (Parameter::DelayOn, 1.0),
        (Parameter::DelayTime, 10.003),
        (Parameter::ReverbOn, 1.0),
        (Parameter::OutputGain, 9.0),
    ] {
        all.set(parameter, value).unwrap();
    }
    let input = guitar(8000);
    let rendered = |lengths: &[usize]| {
        // The second model is resampled.
        let models = [Some(amplifier("wn_a1_nano.nam")), Some(amplifier("guitarml_lstm20.json"))];
        let cabinet = Some(Cabinet::new(&ir(2, 1500, 2)));
        let reverb_ir = Some(Cabinet::new(&ir(3, 3000, 2)));
        let (mut chain, _) = Chain::new(RATE_HZ, &all, Parts { models, cabinet, reverb_ir });
        play(&mut chain, &input, lengths)
    };
    let whole = rendered(&[input.len()]);
    assert!(rms(&whole[0]) > 1e-3 && whole[0] != whole[1]);
    for lengths in [&[1][..], &[16], &[64], &[63, 2, 1], &[128], &[1000], &[1024, 7]] {
        assert!(rendered(lengths) == whole, "{lengths:?}");
    }
}

#[test]
fn the_gate_follows_the_input_and_acts_after_the_amplifier() {
    // Noise of -70 dB after a note: the input gain must not keep the gate open.
    let mut input = guitar(48_000);
    for (n, sample) in input.iter_mut().enumerate().skip(12_000) {
        *sample = 3e-4 * (n as f32 * 1.7).sin();
    }
    let gate = [(Parameter::InputGain, 40.0), (Parameter::GateOn, 1.0), (Parameter::GateThreshold, -60.0)];
    let model = || [Some(amplifier("wn_a1_nano.nam")), None];
    let [gated, _] = play(&mut new(&settings(&gate), model(), None).0, &input, &[64]);
    let [open, _] = play(&mut new(&settings(&gate[..1]), model(), None).0, &input, &[64]);
    // The amplifier's own response to silence is also removed, so the gate is after it.
    assert!(rms(&open[40_000..]) > 1e-2, "{}", rms(&open[40_000..]));
    assert!(largest(&gated[40_000..]) < 1e-5, "{}", largest(&gated[40_000..]));
    assert!(largest_difference(&gated[1000..11_000], &open[1000..11_000]) < 1e-3 * largest(&open));
}

#[test]
fn the_limiter_holds_its_ceiling_while_the_ceiling_changes() {
    let loud = [(Parameter::OutputGain, 20.0), (Parameter::InputGain, 30.0), (Parameter::LimiterOn, 1.0)];
    let (mut chain, mut controls) = new(&settings(&loud), [None, None], None);
    let [left, _] = play_with(&mut chain, &guitar(20_000), &[64], |at| {
        if at == 64 * 100 {
            controls.set(Parameter::Ceiling, -6.0).unwrap();
        }
    });
    assert!(largest(&left[..6400]) <= 1.0 && largest(&left[..6400]) > 0.9);
    let ceiling = 10.0_f32.powf(-6.0 / 20.0);
    let after = largest(&left[8000..]);
    assert!(after <= ceiling && after > 0.9 * ceiling, "{after}");
    let meters = controls.meters();
    assert!(meters.limiter_gain < 0.05 && meters.output_clips == 0 && meters.output.peak <= 1.0, "{meters:?}");
}

#[test]
fn a_limiter_that_is_off_reports_no_limiting() {
    let (mut chain, mut controls) = new(&settings(&[(Parameter::LimiterOn, 1.0)]), [None, None], None);
    let loud = [4.0; 6400];
    play(&mut chain, &loud, &[64]);
    assert_eq!(controls.meters().limiter_gain, 0.25);
    controls.set(Parameter::LimiterOn, 0.0).unwrap();
    let [left, _] = play(&mut chain, &loud, &[64]);
    assert_eq!((left[6399], controls.meters().limiter_gain), (4.0, 1.0));
    // The input becomes silent meanwhile, so there is nothing to limit when the limiter is switched on again.
    play(&mut chain, &[0.0; 48_000], &[64]);
    controls.set(Parameter::LimiterOn, 1.0).unwrap();
    play(&mut chain, &[0.0; 64], &[64]);
    assert!(controls.meters().limiter_gain > 0.99);
}

#[test]
fn a_model_is_scaled_to_the_target_loudness() {
    let loudness = amplifier("wn_a1_standard.nam").levels().loudness_db.unwrap();
    let model = || [Some(amplifier("wn_a1_standard.nam")), None];
    let input = guitar(4000);
    let [raw, _] = play(&mut new(&Settings::neutral(), model(), None).0, &input, &[64]);
    let [levelled, _] = play(&mut new(&settings(&[(Parameter::OutputLevel, 1.0)]), model(), None).0, &input, &[64]);
    let gain = 10.0_f32.powf((amp::chain::LOUDNESS_DB - loudness) / 20.0);
    let expected: Vec<f32> = raw.iter().map(|sample| sample * gain).collect();
    assert!(largest_difference(&levelled, &expected) < 1e-5 * largest(&expected), "{loudness} dB");
}

#[test]
fn two_models_play_in_series_or_in_parallel() {
    let input = guitar(4000);
    let alone = |name: &str, input: &[f32]| {
        let mut output = vec![0.0; input.len()];
        file(name).model(Options::default()).unwrap().process(input, &mut output);
        output
    };
    let (one, other) = ("wn_a1_nano.nam", "lstm_1x16.nam");
    let both = || [Some(amplifier(one)), Some(amplifier(other))];
    let [series, _] = play(&mut new(&Settings::neutral(), both(), None).0, &input, &[64]);
    assert_eq!(series, alone(other, &alone(one, &input)));
    let parallel = settings(&[(Parameter::Routing, 1.0), (Parameter::Mix, 0.25)]);
    let [parallel, _] = play(&mut new(&parallel, both(), None).0, &input, &[64]);
    let expected = alone(one, &input).into_iter().zip(alone(other, &input)).map(|(a, b)| 0.75 * a + 0.25 * b);
    assert_eq!(parallel, expected.collect::<Vec<_>>());
}

/// The largest step between two samples.
fn largest_step(samples: &[f32]) -> f32 {
    samples.windows(2).map(|pair| (pair[1] - pair[0]).abs()).fold(0.0, f32::max)
}

#[test]
fn models_and_cabinets_are_replaced_without_a_click() {
    // A slow sine, whose own steps are far smaller than a click.
    let input: Vec<f32> = (0..48_000).map(|n| 0.1 * (n as f32 * 0.005).sin()).collect();
    let names = ["wn_a1_nano.nam", "lstm_1x16.nam", "wn_a1_feather.nam"];
    let quiet =
        names.map(|name| play(&mut new(&Settings::neutral(), [Some(amplifier(name)), None], None).0, &input, &[64]));
    let most = quiet.iter().map(|[left, _]| largest(left)).fold(0.0, f32::max);
    let own = quiet.iter().map(|[left, _]| largest_step(&left[1000..])).fold(0.0, f32::max);
    let (mut chain, mut controls) = new(&Settings::neutral(), [Some(amplifier(names[0])), None], None);
    let mut swaps = 0;
    let [left, _] = play_with(&mut chain, &input, &[64], |at| {
        // More often than a crossfade takes, and sometimes without a model.
        if at.is_multiple_of(64 * 13) && at > 1000 {
            swaps += 1;
            let model = (swaps % 4 != 0).then(|| amplifier(names[swaps % 3]));
            controls.swap_model(0, model).unwrap();
        }
        controls.collect();
    });
    assert!(swaps > 40);
    let under_way = controls.collect();
    assert!(under_way <= 2, "one part fades in, one waits, and all others have come back: {under_way}");
    // A fade of 30 ms changes the signal by at most pi / 2 / 1440 of its level per sample, for each of the two parts.
    let fade = 2.0 * std::f32::consts::FRAC_PI_2 / 1440.0 * most.max(0.1);
    let allowed = 2.0 * own.max(0.0005) + fade;
    let step = largest_step(&left[1000..]);
    assert!(step <= allowed, "{step} of {allowed}");

    let (mut chain, mut controls) = new(&Settings::neutral(), [None, None], Some(&ir(3, 1000, 1)));
    let [left, right] = play_with(&mut chain, &input, &[64], |at| {
        if at.is_multiple_of(64 * 50) {
            controls
                .swap_cabinet((at % 128 != 0).then(|| Cabinet::new(&ir(u32::try_from(at).unwrap(), 3000, 2))))
                .unwrap();
        }
    });
    // The responses have a gain of about 2.
    let step = largest_step(&left[1000..]).max(largest_step(&right[1000..]));
    assert!(step <= 2.0 * 0.0005 * 4.0 + 4.0 * fade, "{step}");
}

#[test]
fn bypass_passes_the_guitar_through_without_a_click() {
    use Parameter::{Bass, DcBlockOn, DelayOn, DriveOn, GateOn, InputGain, OutputGain};
    let input: Vec<f32> = (0..48_000).map(|n| 0.1 * (n as f32 * 0.005).sin()).collect();
    let playing = settings(&[
        (InputGain, 6.0),
        (GateOn, 1.0),
        (DriveOn, 1.0),
        (Bass, 6.0),
        (DcBlockOn, 0.0),
        (DelayOn, 1.0),
        (OutputGain, -6.0),
    ]);
    let model = Some(amplifier("wn_a1_nano.nam"));
    let (mut chain, mut controls) = new(&playing, [model, None], Some(&ir(4, 64, 1).normalised()));
    let [left, right] = play_with(&mut chain, &input, &[64], |at| {
        if at.is_multiple_of(16_000) {
            let settings = if at == 16_000 { playing.bypassed() } else { playing.clone() };
            controls.exchange(Exchange::default(), Some(&settings)).unwrap();
        }
    });
    let during = 17_000..32_000;
    let expected: Vec<f32> = input[during.clone()].iter().map(|sample| sample * 10_f32.powf(-6.0 / 20.0)).collect();
    for side in [&left, &right] {
        assert!(largest_difference(&side[during.clone()], &expected) < 1e-6);
        assert!(largest_difference(&side[1000..15_000], &input[1000..15_000]) > 0.01, "the amplifier plays before");
        let (step, most) = (largest_step(side), largest(side));
        assert!(step < 0.03 * most, "{step} of {most}");
    }
}

#[test]
fn parameters_change_without_a_step() {
    let input: Vec<f32> = (0..48_000).map(|n| 0.1 * (n as f32 * 0.005).sin()).collect();
    let (mut chain, mut controls) = new(&Settings::default(), [None, None], Some(&ir(4, 64, 1).normalised()));
    let mut turns = Parameter::ALL.iter().cycle();
    let [left, _] = play_with(&mut chain, &input, &[64], |at| {
        let &parameter = turns.next().unwrap();
        // Gains are limited to 12 dB, so that the signal itself does not become large.
        let value = match parameter.info().kind {
            amp::chain::ValueKind::Knob { least, most, unit: "dB" } => {
                least.max(-12.0) + (at % 7) as f32 / 6.0 * (most.min(12.0) - least.max(-12.0))
            }
            amp::chain::ValueKind::Knob { least, .. } => least,
            _ => (at / 64 % 2) as f32,
        };
        controls.set(parameter, parameter.check(value).unwrap_or(parameter.info().default)).unwrap();
    });
    let step = largest_step(&left);
    assert!(largest(&left) > 0.01 && step < 0.03 * largest(&left).max(0.1), "{step} of {}", largest(&left));
}

#[test]
fn invalid_input_is_played_as_silence_and_counted() {
    let mut input = guitar(4000);
    let bad = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 1e30, f32::MAX];
    input[1000..1005].copy_from_slice(&bad);
    let (mut chain, controls) =
        new(&Settings::default(), [Some(amplifier("lstm_1x16.nam")), None], Some(&ir(5, 3000, 1)));
    let [left, right] = play(&mut chain, &input, &[64]);
    assert!(left.iter().chain(&right).all(|sample| sample.is_finite()));
    assert!(rms(&left[3000..]) > 1e-4, "continues to play");
    let meters = controls.meters();
    assert_eq!((meters.bad_input, meters.muted), (5, [false; 2]));
}

#[test]
fn clipping_and_overloads_are_counted() {
    // Input samples count from full scale on, output samples above it, once for both sides.
    let input = [0.5, 0.999, 1.0, -1.0, 1.5, -2.0, f32::NAN, 0.0];
    let counted = |values: &[(Parameter, f32)], input: &[f32]| {
        let (mut chain, controls) = new(&settings(values), [None, None], None);
        let [left, _] = play(&mut chain, input, &[3]);
        let meters = controls.meters();
        (left, [meters.input_clips, meters.output_clips, meters.bad_input, meters.overloads])
    };
    assert_eq!(counted(&[], &input).1, [4, 2, 1, 0]);
    assert_eq!(counted(&[(Parameter::LimiterOn, 1.0)], &input).1, [4, 0, 1, 0]);
    assert_eq!(counted(&[(Parameter::OutputGain, -12.0)], &input).1, [4, 0, 1, 0]);

    // At +40 dB, samples above 1000 are clipped there.
    let (left, counts) = counted(&[(Parameter::InputGain, 40.0)], &[1.0, -11.0, 9.0, 500.0]);
    assert_eq!((left, counts), (vec![100.0, -1000.0, 900.0, 1000.0], [4, 4, 0, 2]));
    // The output gain clips them again.
    let loud = [(Parameter::InputGain, 40.0), (Parameter::OutputGain, 20.0)];
    assert_eq!(counted(&loud, &[0.1, 11.0]).1, [1, 2, 0, 3], "11 is clipped before the cabinet and on each side");
}

/// The largest weights, so that the output overflows.
#[test]
fn a_model_with_infinite_output_is_muted_and_reported() {
    let text = r#"{"version": "0.5.4", "architecture": "Linear", "sample_rate": 48000,
        "config": {"receptive_field": 2, "bias": false}, "weights": [3e38, 3e38]}"#;
    let broken = ModelFile::read(text.as_bytes()).unwrap();
    let broken = Amplifier::new(&broken, Options::default(), &[], RATE_HZ).unwrap();
    let (mut chain, mut controls) = new(&Settings::default(), [None, Some(broken)], None);
    let [left, _] = play_with(&mut chain, &[1.0; 4800], &[64], |_| {});
    assert!(left.iter().all(|sample| sample.is_finite()));
    assert_eq!(controls.meters().muted, [false, true]);
    controls.swap_model(1, None).unwrap();
    play(&mut chain, &[1.0; 4800], &[64]);
    assert_eq!(controls.meters().muted, [false, false]);
}

#[test]
fn a_model_of_another_rate_only_adds_a_delay() {
    let other = file("guitarml_lstm20.json");
    assert_eq!(other.sample_rate, 44_100.0);
    let input = |rate: f32, frames: usize| -> Vec<f32> {
        (0..frames).map(|n| n as f32 / rate).map(|t| 0.1 * (t * 2000.0).sin() + 0.1 * (t * 900.0).sin()).collect()
    };
    let (mut chain, _) = new(&Settings::neutral(), [Some(amplifier("guitarml_lstm20.json")), None], None);
    let [played, _] = play(&mut chain, &input(48_000.0, 9600), &[64]);
    let mut alone = vec![0.0; 8820];
    other.model(Options::default()).unwrap().process(&input(44_100.0, 8820), &mut alone);
    let expected = amp::resample::resample(&alone, 44_100, 48_000).unwrap();
    let late = chain.delay();
    assert!((40..80).contains(&late));
    let error = largest_difference(&played[1000 + late..9000 + late - 1000], &expected[1000..8000]);
    assert!(error < 2e-3 * largest(&alone), "{error}");
}

/// A model for a sample rate that passes the signal through.
fn wire(rate_hz: u32) -> Amplifier {
    let text = format!(
        r#"{{"version": "0.5.4", "architecture": "Linear", "sample_rate": {rate_hz},
        "config": {{"receptive_field": 1, "bias": false}}, "weights": [1]}}"#
    );
    let wire = ModelFile::read(text.as_bytes()).unwrap();
    Amplifier::new(&wire, Options::default(), &[], RATE_HZ).unwrap()
}

#[test]
fn models_of_two_rates_stay_aligned_however_they_become_parallel() {
    let late = wire(44_100).delay();
    // A sine for which the delay is half a period: without alignment, the two models would cancel.
    let input: Vec<f32> = (0..96_000).map(|n| 0.25 * (n as f32 * std::f32::consts::PI / late as f32).sin()).collect();
    let parallel = settings(&[(Parameter::Routing, 1.0)]);
    for (first, second) in [(48_000, 44_100), (44_100, 48_000)] {
        // Parallel from the start.
        let (mut chain, controls) = new(&parallel, [Some(wire(first)), Some(wire(second))], None);
        let expected = play(&mut chain, &input, &[64]);
        assert_eq!((chain.delay(), controls.delay()), (late, late));
        let error = largest_difference(&expected[0][4800 + late..], &input[4800..96_000 - late]);
        assert!(error < 1e-3, "{error}");

        // Switched to parallel later, and back.
        let (mut chain, mut controls) = new(&Settings::neutral(), [Some(wire(first)), Some(wire(second))], None);
        let turned = play_with(&mut chain, &input, &[64], |at| match at {
            19_200 => controls.set(Parameter::Routing, 1.0).unwrap(),
            57_600 => controls.set(Parameter::Routing, 0.0).unwrap(),
            _ => {}
        });
        assert_eq!(turned[0][24_000..57_600], expected[0][24_000..57_600]);
        assert!(largest_difference(&turned[0][62_400..], &expected[0][62_400..]) < 1e-3, "same delay in series");

        // The second model is added later, while the first plays.
        let (mut chain, mut controls) = new(&parallel, [Some(wire(first)), None], None);
        let brought = play_with(&mut chain, &input, &[64], |at| {
            if at == 19_200 {
                controls.swap_model(1, Some(wire(second))).unwrap();
            }
        });
        assert_eq!((chain.delay(), controls.delay()), (late, late));
        let error = largest_difference(&brought[0][24_000..], &expected[0][24_000..]);
        assert!(error < 1e-3, "{error}");
        let step = |played: &[f32]| played.windows(2).map(|pair| (pair[1] - pair[0]).abs()).fold(0.0, f32::max);
        for played in [&turned, &brought] {
            assert!(step(&played[0]) < 1.5 * step(&input), "{} of {}", step(&played[0]), step(&input));
        }
    }
}

/// The response of a model to silence causes no step, neither at the start nor when the model is swapped in.
#[test]
fn silence_starts_without_a_step_even_with_a_model_of_another_rate() {
    for rate_hz in [48_000, 44_100, 96_000] {
        let model = || Amplifier::new(&file("wn_a1_nano.nam"), Options::default(), &[], rate_hz).unwrap();
        let begin = |models| {
            let cabinet = Some(Cabinet::new(&ir(4, 3000, 1)));
            let parts = Parts { models, cabinet, ..Parts::default() };
            Chain::new(rate_hz, &Settings::default(), parts)
        };
        let (mut chain, _) = begin([Some(model()), None]);
        let [left, _] = play(&mut chain, &[0.0; 4000], &[64]);
        assert!(largest(&left) < 1e-4, "{rate_hz} Hz: {}", largest(&left));

        let (mut chain, mut controls) = begin([None, None]);
        let mut new = Some(model());
        let [left, _] = play_with(&mut chain, &[0.0; 8000], &[64], |at| {
            if at >= 640
                && let Some(model) = new.take()
            {
                controls.swap_model(0, Some(model)).unwrap();
            }
        });
        // Its offset of 0.14 fades in within 30 ms, and the DC block removes it within 20 ms.
        assert!(largest(&left) > 1e-3 && largest_step(&left) < 1e-3, "{rate_hz} Hz: {}", largest_step(&left));
    }
}

#[test]
fn the_dry_input_has_the_delay_of_the_models() {
    let input = guitar(6000);
    for routing in [0.0, 1.0] {
        let settings = settings(&[(Parameter::ModelsOn, 0.0), (Parameter::Routing, routing)]);
        let (mut chain, mut controls) = new(&settings, [Some(wire(48_000)), Some(wire(44_100))], None);
        let late = chain.delay();
        let played = play(&mut chain, &input, &[64]);
        assert!(late > 0 && played[0][late..] == input[..6000 - late]);
        // With the models switched on, the signal keeps its position.
        let [left, _] = play_with(&mut chain, &input, &[64], |_| controls.set(Parameter::ModelsOn, 1.0).unwrap());
        assert!(largest_difference(&left[late..], &input[..6000 - late]) < 2e-3);
    }
}

#[test]
fn the_tuner_receives_the_input() {
    let input: Vec<f32> =
        (0..24_000).map(|n| 0.2 * (n as f32 * 110.0 * std::f32::consts::TAU / 48_000.0).sin()).collect();
    let (mut chain, mut controls) = new(&Settings::default(), [None, None], None);
    let mut pitch = None;
    play_with(&mut chain, &input, &[64], |at| {
        if at % 4800 == 0 {
            pitch = controls.tune();
        }
    });
    let pitch = pitch.expect("a note");
    assert_eq!((pitch.note, pitch.octave), ("A", 2));
    assert!(pitch.cents.abs() < 1.0, "{pitch:?}");
}

/// The energy of the output of a chain without models, in which only `parameter` is switched on and off, above that of
/// the sound itself: the second difference of a low sine is small, that of a click is large.
fn switching_energy(parameter: Parameter, values: &[(Parameter, f32)]) -> f32 {
    let input: Vec<f32> = (0..96_000).map(|n| 0.1 * (n as f32 * 0.005).sin()).collect();
    let (mut chain, mut controls) = new(&settings(values), [None, None], None);
    let [left, _] = play_with(&mut chain, &input, &[64], |at| {
        if at > 24_000 && at.is_multiple_of(64 * 75) {
            controls.set(parameter, (at / (64 * 75) % 2) as f32).unwrap();
        }
    });
    let bend = |samples: &[f32]| {
        samples.windows(3).map(|part| (part[0] - 2.0 * part[1] + part[2]).powi(2)).sum::<f32>()
            / largest(samples).powi(2)
    };
    bend(&left[24_000..])
}

#[test]
fn a_reverb_response_is_applied_to_the_mean_and_mixed_with_each_side() {
    let input = guitar(6000);
    let values = settings(&[(Parameter::ReverbIrOn, 1.0), (Parameter::ReverbIrMix, 0.25)]);
    let [dry_left, dry_right] = play(&mut new(&values, [None, None], Some(&ir(1, 900, 2))).0, &input, &[64]);
    let cabinet = Some(Cabinet::new(&ir(1, 900, 2)));
    let reverb_ir = Some(Cabinet::new(&ir(2, 2000, 2)));
    let (mut chain, mut controls) = Chain::new(RATE_HZ, &values, Parts { cabinet, reverb_ir, ..Parts::default() });
    let played = play(&mut chain, &input, &[64]);
    let mean: Vec<f32> = dry_left.iter().zip(&dry_right).map(|(left, right)| 0.5 * (left + right)).collect();
    let (mut left, mut right) = (vec![0.0; input.len()], vec![0.0; input.len()]);
    Cabinet::new(&ir(2, 2000, 2)).process(&mean, &mut left, &mut right);
    for (played, (dry, wet)) in played.iter().zip([(&dry_left, &left), (&dry_right, &right)]) {
        let expected: Vec<f32> = dry.iter().zip(wet).map(|(dry, wet)| dry + 0.25 * (wet - dry)).collect();
        assert!(largest_difference(played, &expected) < 1e-6);
    }
    assert!(dry_left != dry_right && played[0] != dry_left);

    // Without a response, the signal passes through.
    controls.swap_reverb_ir(None).unwrap();
    play(&mut chain, &[0.0; 6400], &[64]);
    for (played, dry) in play(&mut chain, &input, &[64]).iter().zip([dry_left, dry_right]) {
        assert!(largest_difference(played, &dry) < 1e-6);
    }
    assert_eq!(controls.collect(), 0, "the response has come back to be freed");
}

#[test]
fn an_effect_that_is_switched_on_again_begins_with_silence() {
    for (switch, others) in [
        (Parameter::DriveOn, [(Parameter::DriveTone, 0.0); 2]),
        (Parameter::DelayOn, [(Parameter::DelayTime, 500.0), (Parameter::DelayFeedback, 0.9)]),
        (Parameter::ReverbOn, [(Parameter::ReverbDecay, 10.0), (Parameter::ReverbMix, 1.0)]),
    ] {
        let values = [[(switch, 1.0)].as_slice(), &others].concat();
        let (mut chain, mut controls) = new(&settings(&values), [None, None], None);
        let [left, _] = play(&mut chain, &[guitar(24_000), vec![0.0; 4800]].concat(), &[64]);
        assert!(switch == Parameter::DriveOn || largest(&left[24_000..]) > 1e-3, "{switch}: still sounds");
        for value in [0.0, 1.0] {
            controls.set(switch, value).unwrap();
            let [left, _] = play(&mut chain, &[0.0; 48_000], &[64]);
            assert!(largest(&left[1024..]) == 0.0, "{switch}: {}", largest(&left[1024..]));
        }
    }
}

#[test]
fn effects_are_switched_without_a_click() {
    // A switch without a ramp would cost the square of its step: 0.1 or more for each of 15 changes.
    let drive = switching_energy(Parameter::DriveOn, &[(Parameter::DriveGain, 30.0), (Parameter::DriveTone, 1.0)]);
    let delay = switching_energy(Parameter::DelayOn, &[(Parameter::DelayMix, 0.5), (Parameter::DelayTime, 300.0)]);
    // Its echoes sound before it is switched off again.
    let short = switching_energy(Parameter::DelayOn, &[(Parameter::DelayMix, 0.5), (Parameter::DelayTime, 30.0)]);
    let reverb = switching_energy(Parameter::ReverbOn, &[(Parameter::ReverbMix, 0.8)]);
    let all = [drive, delay, short, reverb];
    assert!(all.iter().all(|energy| *energy < 1e-3), "{all:?}");
}

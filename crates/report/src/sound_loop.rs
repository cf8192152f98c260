//! The round trip of a sound card as text for terminal and HTML.

use record::{SoundLoop, grouped};

/// The measured card or cards.
pub fn title(sound_loop: &SoundLoop) -> String {
    let SoundLoop { capture, playback, .. } = sound_loop;
    let ends = if capture == playback { playback.clone() } else { format!("{playback} to {capture}") };
    format!("Round trip of {ends}, through a loopback cable")
}

/// Headings of [`rounds`].
pub const ROUND: [&str; 4] = ["round", "samples", "ms", "level, dB"];

/// One row per round.
pub fn rounds(sound_loop: &SoundLoop) -> Vec<[String; 4]> {
    let dash = || "-".to_owned();
    let row = |(number, round): (usize, &record::LoopRound)| {
        [
            (number + 1).to_string(),
            round.samples.map_or_else(dash, grouped),
            round.samples.map_or_else(dash, |samples| format!("{:.2}", sound_loop.ms(samples as f64))),
            round.gain.map_or_else(dash, |gain| format!("{:.1}", 20.0 * gain.abs().log10())),
        ]
    };
    sound_loop.rounds.iter().enumerate().map(row).collect()
}

/// The results, one line each: name and figure with its explanation.
pub fn lines(sound_loop: &SoundLoop) -> Vec<(&'static str, String)> {
    let samples = |samples: i64| {
        let (sign, count) = (if samples < 0 { "-" } else { "" }, grouped(samples.unsigned_abs()));
        format!("{sign}{count} samples, {:.2} ms", sound_loop.ms(samples as f64))
    };
    let (all, returned) =
        (sound_loop.rounds.len(), sound_loop.rounds.iter().filter(|round| round.samples.is_some()).count());
    let mut lines = Vec::new();
    match (
        sound_loop.round_trip_samples,
        sound_loop.least_samples,
        sound_loop.most_samples,
        sound_loop.difference_samples,
    ) {
        (Some(median), Some(least), Some(most), Some(difference)) => {
            let spread = format!("{returned} of {all} rounds, {} to {} samples", grouped(least), grouped(most));
            lines.push(("round trip", format!("{}: {spread}", samples(median.cast_signed()))));
            lines.push((
                "computed",
                format!("{}: {}", samples(sound_loop.computed_samples.cast_signed()), sound_loop.setup),
            ));
            lines
                .push(("the rest", format!("{}: converters, the card's internal buffers, cable", samples(difference))));
        }
        _ if all == 0 => {
            lines.push(("round trip", "stopped before the first round was complete: let it run to its end".to_owned()));
        }
        _ => {
            let text = format!(
                "no signal returned in {all} rounds: check the cable from output to input, and the levels (`alsamixer`)"
            );
            lines.push(("round trip", text));
        }
    }
    if let Some(gain) = sound_loop.rounds.iter().find_map(|round| round.gain) {
        let wire = if gain < 0.0 { ", and inverted" } else { "" };
        lines.push(("level", format!("{:.1} dB relative to the signal played{wire}", 20.0 * gain.abs().log10())));
    }
    if sound_loop.xruns > 0 {
        let text = format!("{}: the figures are unreliable; use more --frames or --periods", grouped(sound_loop.xruns));
        lines.push(("xruns", text));
    }
    lines.push(("resolution", format!("1 sample, {:.3} ms", sound_loop.ms(1.0))));
    lines
}

#[cfg(test)]
mod tests {
    use record::LoopRound;

    use super::*;

    fn describe(found: &[Option<u64>], xruns: u64) -> String {
        let round = |&samples: &Option<u64>| LoopRound { samples, gain: samples.map(|_| -0.5), clarity: None };
        let sound_loop = SoundLoop {
            rate_hz: 48_000,
            computed_samples: 128,
            setup: "2 periods of 64 frames at 48000 Hz".to_owned(),
            rounds: found.iter().map(round).collect(),
            xruns,
            ..SoundLoop::default()
        };
        let lines: Vec<String> =
            lines(&sound_loop.summarized()).iter().map(|(name, text)| format!("{name:<12} {text}")).collect();
        lines.join("\n")
    }

    #[test]
    fn reports_round_trip_and_computed_latency() {
        let text = describe(&[Some(512), Some(524), Some(513)], 0);
        for expected in [
            "round trip   513 samples, 10.69 ms: 3 of 3 rounds, 512 to 524 samples",
            "computed     128 samples, 2.67 ms: 2 periods of 64 frames at 48000 Hz",
            "the rest     385 samples, 8.02 ms",
            "-6.0 dB relative to the signal played, and inverted",
        ] {
            assert!(text.contains(expected), "{text}");
        }
    }

    #[test]
    fn reports_a_missing_signal_and_xruns() {
        assert!(describe(&[None, None], 0).contains("no signal returned in 2 rounds: check the cable"));
        let none = describe(&[], 0);
        assert!(none.contains("stopped before the first round was complete") && !none.contains("cable"), "{none}");
        assert!(describe(&[Some(512)], 3).contains("xruns        3: the figures are unreliable"));
    }
}

//! The round trip of a sound card in the words that terminal and HTML share.

use record::SoundLoop;

/// What was looked at.
pub fn title(told: &SoundLoop) -> String {
    let SoundLoop { capture, playback, .. } = told;
    let ends = if capture == playback { playback.clone() } else { format!("{playback} to {capture}") };
    format!("Round trip of {ends}, through a cable")
}

/// Headings of [`rounds`].
pub const ROUND: [&str; 4] = ["round", "samples", "ms", "level, dB"];

/// Each round.
pub fn rounds(told: &SoundLoop) -> Vec<[String; 4]> {
    let dash = || "-".to_owned();
    let row = |(number, round): (usize, &record::LoopRound)| {
        [
            (number + 1).to_string(),
            round.samples.map_or_else(dash, |samples| samples.to_string()),
            round.samples.map_or_else(dash, |samples| format!("{:.2}", told.ms(samples as f64))),
            round.gain.map_or_else(dash, |gain| format!("{:.1}", 20.0 * gain.abs().log10())),
        ]
    };
    told.rounds.iter().enumerate().map(row).collect()
}

/// What was found, a line each: its name, and the figure in words.
pub fn lines(told: &SoundLoop) -> Vec<(&'static str, String)> {
    let samples = |samples: i64| format!("{samples} samples, {:.2} ms", told.ms(samples as f64));
    let (all, came) = (told.rounds.len(), told.rounds.iter().filter(|round| round.samples.is_some()).count());
    let mut lines = Vec::new();
    match (told.round_trip_samples, told.least_samples, told.most_samples, told.difference_samples) {
        (Some(median), Some(least), Some(most), Some(difference)) => {
            let spread = format!("{came} of {all} rounds, {least} to {most} samples");
            lines.push(("round trip", format!("{}: {spread}", samples(median as i64))));
            lines.push(("computed", format!("{}: {}", samples(told.computed_samples as i64), told.setup)));
            lines.push(("the rest", format!("{}: converters, the card's own buffers, cable", samples(difference))));
        }
        _ if all == 0 => {
            lines.push(("round trip", "it ended before a round was whole: let it run to its end".to_owned()));
        }
        _ => {
            let text = format!(
                "no signal came back in {all} rounds: check the cable from output to input, and the levels (`alsamixer`)"
            );
            lines.push(("round trip", text));
        }
    }
    if let Some(gain) = told.rounds.iter().find_map(|round| round.gain) {
        let wire = if gain < 0.0 { ", and inverted" } else { "" };
        lines.push(("level", format!("{:.1} dB of what was played{wire}", 20.0 * gain.abs().log10())));
    }
    if told.xruns > 0 {
        let text = format!("{}: the figures are not to be trusted; choose more --frames or --periods", told.xruns);
        lines.push(("xruns", text));
    }
    lines.push(("resolution", format!("1 sample, {:.3} ms", told.ms(1.0))));
    lines
}

#[cfg(test)]
mod tests {
    use record::LoopRound;

    use super::*;

    fn told(found: &[Option<u64>], xruns: u64) -> String {
        let round = |&samples: &Option<u64>| LoopRound { samples, gain: samples.map(|_| -0.5), clarity: None };
        let told = SoundLoop {
            rate_hz: 48_000,
            computed_samples: 128,
            setup: "2 periods of 64 frames at 48000 Hz".to_owned(),
            rounds: found.iter().map(round).collect(),
            xruns,
            ..SoundLoop::default()
        };
        let lines: Vec<String> =
            lines(&told.summed()).iter().map(|(name, text)| format!("{name:<12} {text}")).collect();
        lines.join("\n")
    }

    #[test]
    fn the_round_trip_stands_beside_what_the_buffers_take() {
        let text = told(&[Some(512), Some(524), Some(513)], 0);
        for expected in [
            "round trip   513 samples, 10.69 ms: 3 of 3 rounds, 512 to 524 samples",
            "computed     128 samples, 2.67 ms: 2 periods of 64 frames at 48000 Hz",
            "the rest     385 samples, 8.02 ms",
            "-6.0 dB of what was played, and inverted",
        ] {
            assert!(text.contains(expected), "{text}");
        }
    }

    #[test]
    fn without_a_signal_or_with_xruns_it_is_said() {
        assert!(told(&[None, None], 0).contains("no signal came back in 2 rounds: check the cable"));
        let none = told(&[], 0);
        assert!(none.contains("it ended before a round was whole") && !none.contains("cable"), "{none}");
        assert!(told(&[Some(512)], 3).contains("xruns        3: the figures are not to be trusted"));
    }
}

//! `punctual latency`.

use std::{thread, time::Duration};

use play::{
    cable::{self, Found},
    load::Load,
};
use serde_json::json;

use crate::{
    cli::{Latency, LatencyLoop},
    cmd::sound,
    exit::Usage,
    output,
};

/// Longest round trip that is looked for, s, beyond what the buffers take.
const LONGEST_S: f64 = 0.25;

pub fn run(what: &Latency) -> anyhow::Result<u8> {
    match what {
        Latency::Loop(options) => run_loop(options),
    }
}

/// Exit status 3 where nothing clear came back, or the card ran over us meanwhile.
fn run_loop(options: &LatencyLoop) -> anyhow::Result<u8> {
    sys::signal::count_termination()?;
    if options.sound.names().0 == sound::CLOCK {
        return Err(Usage("the clock has no cable: choose a card, as --device hw:0".to_owned()).into());
    }
    let ready = sound::open(&options.sound)?;
    let rate_hz = ready.rate_hz();
    let round_frames = cable::LENGTH + ready.buffer_frames() as usize + (LONGEST_S * f64::from(rate_hz)) as usize;
    let (sender, mut heard) = cable::cable(round_frames, options.rounds as usize);
    let engine = sound::start(ready, Box::new(sender))?;
    let sequence = cable::sequence();
    let mut rounds = Vec::new();
    while rounds.len() < options.rounds as usize && engine.end().is_none() && sys::signal::termination_requests() == 0 {
        match heard.round(round_frames) {
            Some(round) => rounds.push(cable::find(&sequence, &round)),
            None => thread::sleep(Duration::from_millis(20)),
        }
    }
    let (buffer, told) = (engine.latency_frames() as usize, engine.told());
    let (load, end) = engine.stop();
    sound::check(end)?;
    let result = LoopResult { rate_hz, buffer, told, rounds, load };
    output::stdout(|out| match options.json {
        true => writeln!(out, "{:#}", result.as_json()),
        false => result.in_words().iter().try_for_each(|line| writeln!(out, "{line}")),
    })?;
    Ok(if result.is_clear() { 0 } else { 3 })
}

struct LoopResult {
    rate_hz: u32,
    /// Frames of the buffer.
    buffer: usize,
    /// How the card was set.
    told: String,
    rounds: Vec<Option<Found>>,
    load: Load,
}

impl LoopResult {
    fn found(&self) -> impl Iterator<Item = &Found> {
        self.rounds.iter().flatten()
    }

    /// Least, median and largest, samples.
    fn delays(&self) -> Option<[usize; 3]> {
        let mut delays: Vec<usize> = self.found().map(|found| found.delay).collect();
        delays.sort_unstable();
        Some([*delays.first()?, delays[delays.len() / 2], *delays.last()?])
    }

    fn is_clear(&self) -> bool {
        !self.rounds.is_empty() && self.rounds.iter().all(Option::is_some) && self.load.xruns == 0
    }

    fn ms(&self, samples: f64) -> f64 {
        samples / f64::from(self.rate_hz) * 1e3
    }

    fn in_words(&self) -> Vec<String> {
        let samples = |samples: i64| format!("{samples} samples, {:.2} ms", self.ms(samples as f64));
        let (all, came) = (self.rounds.len(), self.found().count());
        let mut lines = Vec::new();
        match self.delays() {
            None => lines.push(format!(
                "round trip   no signal came back in {all} rounds: check the cable from output to input, and the levels (`alsamixer`)"
            )),
            Some([least, median, most]) => {
                let rest = median as i64 - self.buffer as i64;
                lines.push(format!("round trip   {}: {came} of {all} rounds, {least} to {most} samples", samples(median as i64)));
                lines.push(format!("computed     {}: {}", samples(self.buffer as i64), self.told));
                lines.push(format!("the rest     {}: converters, the card's own buffers, cable", samples(rest)));
            }
        }
        if let Some(found) = self.found().next() {
            let wire = if found.gain < 0.0 { ", and inverted" } else { "" };
            lines.push(format!("level        {:.1} dB of what was played{wire}", 20.0 * found.gain.abs().log10()));
        }
        if self.load.xruns > 0 {
            let text = format!(
                "xruns        {}: the figures are not to be trusted; choose more --frames or --periods",
                self.load.xruns
            );
            lines.push(text);
        }
        lines.push(format!("resolution   1 sample, {:.3} ms", self.ms(1.0)));
        lines
    }

    fn as_json(&self) -> serde_json::Value {
        let round = |found: &Option<Found>| {
            found.map(|found| json!({ "samples": found.delay, "gain": found.gain, "clarity": found.clarity }))
        };
        let delays = self.delays();
        json!({
            "rate_hz": self.rate_hz,
            "card": self.told,
            "computed_samples": self.buffer,
            "computed_ms": self.ms(self.buffer as f64),
            "round_trip_samples": delays.map(|[_, median, _]| median),
            "round_trip_ms": delays.map(|[_, median, _]| self.ms(median as f64)),
            "least_samples": delays.map(|[least, ..]| least),
            "most_samples": delays.map(|[.., most]| most),
            "resolution_samples": 1,
            "rounds": self.rounds.iter().map(round).collect::<Vec<_>>(),
            "xruns": self.load.xruns,
            "clear": self.is_clear(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(delays: &[Option<usize>], xruns: u64) -> LoopResult {
        let found = |delay: &Option<usize>| delay.map(|delay| Found { delay, gain: -0.5, clarity: 90.0 });
        LoopResult {
            rate_hz: 48_000,
            buffer: 128,
            told: "2 periods of 64 frames at 48000 Hz".to_owned(),
            rounds: delays.iter().map(found).collect(),
            load: Load { xruns, ..Load::default() },
        }
    }

    #[test]
    fn the_round_trip_stands_beside_what_the_buffers_take() {
        let result = result(&[Some(512), Some(524), Some(513)], 0);
        let text = result.in_words().join("\n");
        for expected in [
            "round trip   513 samples, 10.69 ms: 3 of 3 rounds, 512 to 524 samples",
            "computed     128 samples, 2.67 ms: 2 periods of 64 frames at 48000 Hz",
            "the rest     385 samples, 8.02 ms",
            "-6.0 dB of what was played, and inverted",
        ] {
            assert!(text.contains(expected), "{text}");
        }
        assert!(result.is_clear());
        assert_eq!(result.as_json()["round_trip_samples"], 513);
    }

    #[test]
    fn without_a_signal_or_with_xruns_nothing_is_claimed() {
        let silent = result(&[None, None], 0);
        assert!(silent.in_words()[0].contains("no signal came back in 2 rounds: check the cable"));
        assert_eq!(silent.as_json()["round_trip_samples"], serde_json::Value::Null);
        let torn = result(&[Some(512)], 3);
        assert!(torn.in_words().iter().any(|line| line.contains("xruns        3: the figures are not to be trusted")));
        assert!(!silent.is_clear() && !torn.is_clear() && !result(&[], 0).is_clear());
    }
}

//! What the figures of audio mean: which part of a period was at fault, and who.

use std::{cmp::Reverse, collections::HashMap};

use record::{Audio, Part, Played, Series, Spike};

use crate::{duration::format_ns, statistics::Exposure};

/// What the parts of a period usually take, ns: medians.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usual {
    /// From its deadline to when the thread turns to it.
    pub wait_ns: i64,
    /// Processing.
    pub dsp_ns: i64,
}

impl Usual {
    /// Those of a series.
    #[must_use]
    pub fn of(series: &Series) -> Self {
        let dsp = series.audio.as_ref().and_then(|audio| audio.dsp.as_ref());
        Self {
            wait_ns: series.raw.percentile(50.0).unwrap_or_default(),
            dsp_ns: dsp.and_then(|times| times.histogram.percentile(50.0)).unwrap_or_default(),
        }
    }

    /// Which part of a period made it last until `limit_ns` or longer: the one that, had it been as usual, would have left
    /// the period in time. Both, where either would have, or only both. Processing, where a period is too long as usual.
    #[must_use]
    pub fn at_fault(&self, played: Played, limit_ns: i64) -> Part {
        let in_time = |wait_ns: i64, dsp_ns: i64| wait_ns + dsp_ns < limit_ns;
        if !in_time(self.wait_ns, self.dsp_ns) {
            return Part::Dsp;
        }
        match (in_time(self.wait_ns, played.dsp_ns), in_time(played.wait_ns, self.dsp_ns)) {
            (true, false) => Part::Wake,
            (false, true) => Part::Dsp,
            (true, true) | (false, false) => Part::Both,
        }
    }
}

/// Xruns of one part and one culprit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The part.
    pub part: Part,
    /// The main culprit in words; empty where nobody looked.
    pub culprit: String,
    /// How many, of those that are kept.
    pub count: u64,
}

/// Who was to blame for the xruns that a series keeps, the most frequent first.
#[must_use]
pub fn faults(series: &Series) -> Vec<Fault> {
    let Some(audio) = &series.audio else { return Vec::new() };
    let usual = Usual::of(series);
    let mut counts: HashMap<(Part, String), u64> = HashMap::new();
    for (spike, played) in xruns(series) {
        let part = usual.at_fault(played, audio.limit_ns as i64);
        *counts.entry((part, culprit(spike))).or_default() += 1;
    }
    let mut faults: Vec<Fault> =
        counts.into_iter().map(|((part, culprit), count)| Fault { part, culprit, count }).collect();
    faults.sort_by(|a, b| (Reverse(a.count), &a.culprit, a.part).cmp(&(Reverse(b.count), &b.culprit, b.part)));
    faults
}

/// The xruns that a series keeps.
pub fn xruns(series: &Series) -> impl Iterator<Item = (&Spike, Played)> {
    series.spikes.iter().filter_map(|spike| Some((spike, spike.played.filter(|played| played.xrun)?)))
}

/// The main culprit of a period in words.
fn culprit(spike: &Spike) -> String {
    spike.culprits.first().map_or_else(String::new, |main| main.cause.title())
}

/// What so many periods allow to be said of the rate of xruns. A period that is lost had one before it, and counts as none.
#[must_use]
pub fn statement(series: &Series, audio: &Audio) -> String {
    let Audio { played, xruns, .. } = *audio;
    match xruns {
        _ if played == 0 => "no period was played, so nothing can be said".to_owned(),
        0 => format!("no xrun in {played} periods: rate < 3/{played} at 95 %{}", once_in(played, series.period_ns)),
        _ => {
            let exposure = Exposure { cycles: played, over: xruns, period_ns: series.period_ns };
            let most = (exposure.rate_below() * played as f64).min(played as f64);
            let plural = if xruns == 1 { "" } else { "s" };
            format!("{xruns} xrun{plural} in {played} periods: rate < {most:.1}/{played} at 95 %")
        }
    }
}

/// The shortest mean time between two xruns that is left, at 95 %.
fn once_in(periods: u64, period_ns: u64) -> String {
    let ns = periods.saturating_mul(period_ns) / 3;
    if ns == 0 { String::new() } else { format!(", fewer than one in {}", format_ns(ns as i64)) }
}

#[cfg(test)]
mod tests {
    use record::{Cause, CauseKind, Culprit, Histogram, Times};

    use super::*;

    fn played(wait_us: i64, dsp_us: i64) -> Played {
        Played { wait_ns: wait_us * 1000, dsp_ns: dsp_us * 1000, xrun: wait_us + dsp_us >= 1333 }
    }

    #[test]
    fn the_part_that_was_not_as_usual_is_at_fault() {
        let usual = Usual { wait_ns: 10_000, dsp_ns: 300_000 };
        let at_fault = |wait_us, dsp_us| usual.at_fault(played(wait_us, dsp_us), 1_333_333);
        assert_eq!(at_fault(1_100, 310), Part::Wake);
        assert_eq!(at_fault(12, 1_400), Part::Dsp);
        assert_eq!(at_fault(700, 700), Part::Both, "either as usual, and it would have been in time");
        assert_eq!(at_fault(1_500, 1_500), Part::Both, "each of them was enough");
        let slow = Usual { wait_ns: 10_000, dsp_ns: 1_400_000 };
        assert_eq!(slow.at_fault(played(900, 1_400), 1_333_333), Part::Dsp, "the model is too slow for this buffer");
    }

    #[test]
    fn faults_are_counted_by_part_and_culprit() {
        let spike = |played: Played, kind, name: &str| Spike {
            lateness_ns: played.completion_ns(),
            culprits: vec![Culprit { cause: Cause::new(kind, name), ns: 1 }],
            played: Some(played),
            ..Spike::default()
        };
        let mut dsp = Histogram::default();
        dsp.add(300_000, 1000);
        let times = Times { histogram: dsp, ..Times::default() };
        let audio = Audio { limit_ns: 1_333_334, dsp: Some(times), ..Audio::default() };
        let series = Series {
            spikes: vec![
                spike(played(1_100, 310), CauseKind::Interrupt, "eth0"),
                spike(played(1_200, 310), CauseKind::Interrupt, "eth0"),
                spike(played(10, 1_900), CauseKind::Thread, "hog"),
                spike(played(10, 900), CauseKind::Work, ""),
            ],
            audio: Some(Box::new(audio)),
            ..Series::default()
        };
        let told: Vec<_> = faults(&series).into_iter().map(|f| (f.part, f.culprit, f.count)).collect();
        let expected = [(Part::Wake, "interrupt eth0".to_owned(), 2), (Part::Dsp, "thread hog".to_owned(), 1)].to_vec();
        assert_eq!(told, expected, "what was in time is no xrun");
    }

    #[test]
    fn nothing_seen_is_never_never() {
        let series = Series { period_ns: 1_333_333, ..Series::default() };
        let told = |played, xruns| statement(&series, &Audio { played, xruns, ..Audio::default() });
        assert_eq!(told(7_500, 0), "no xrun in 7500 periods: rate < 3/7500 at 95 %, fewer than one in 3.33 s");
        assert_eq!(told(7_500, 2), "2 xruns in 7500 periods: rate < 6.3/7500 at 95 %");
        assert_eq!(told(0, 0), "no period was played, so nothing can be said");
    }
}

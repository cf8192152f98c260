//! The one rule for whether a run may support a good result at all: PASS, a buffer size, or a recommendation.

use std::fmt;

use crate::{
    INCONSISTENT, Listener, LoadProof, Phase, Reason, Record, SERIES_ENDS, Series, SeriesKind, State, stream_name,
};

/// Kind of the caveat about traffic that ended for good before its run did.
pub const GONE: &str = "gone";
/// Kind of the caveat about a measured CPU that went offline during the run.
pub const OFFLINE: &str = "offline";

/// A reason why a run, or a phase of it, supports no good result, whatever its figures are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Obstacle {
    /// The run was not as requested, or its record contradicts itself.
    Invalid(Vec<Reason>),
    /// A load did not run to its end.
    Load {
        /// The requested load with its options.
        spec: String,
        /// Name of the far end; `None` for the machine of the record.
        host: Option<String>,
    },
    /// The results of the far end are missing.
    FarLost {
        /// Name of the far end.
        host: String,
        /// Reason.
        why: String,
    },
    /// A phase ended before its planned end.
    EndedEarly {
        /// Name of the phase.
        phase: String,
        /// The cause, if the traffic of the run ended for good.
        gone: Option<String>,
    },
    /// Frames of one of several streams that a listener received can be missing, without a number that shows it.
    Stream {
        /// Id of the stream, 16 hexadecimal digits.
        stream_id: String,
        /// Its [silence](crate::ReceivedStream::silence).
        silence: String,
    },
    /// A thread ended before the run did.
    ThreadEnded {
        /// Place of the thread, and its note about the end.
        note: String,
    },
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid(reasons) => match &reasons[..] {
                [] => write!(f, "the run is invalid: no reason given"),
                [first, ..] if first.id == INCONSISTENT => write!(f, "the record contradicts itself: {}", first.text),
                [only] => write!(f, "the run is invalid: {}", only.id),
                [first, others @ ..] => write!(f, "the run is invalid: {} and {} more", first.id, others.len()),
            },
            Self::Load { spec, host: None } => write!(f, "the load {spec} did not run to its end"),
            Self::Load { spec, host: Some(host) } => write!(f, "the load {spec} did not run to its end on {host}"),
            Self::FarLost { host, why } => write!(f, "the far end on {host} was lost: {why}"),
            Self::EndedEarly { gone: Some(cause), .. } => write!(f, "the traffic of the run ended: {cause}"),
            Self::EndedEarly { phase, gone: None } => write!(f, "the run ended early, in the phase `{phase}`"),
            Self::Stream { stream_id, silence } => write!(f, "the stream {} {silence}", stream_name(stream_id)),
            Self::ThreadEnded { note } => write!(f, "the run ended early: {note}"),
        }
    }
}

impl Record {
    /// The first reason why the run supports no good result; `None` if its figures decide.
    ///
    /// Verdicts on wake-ups, round trips and captures, searches for a buffer, matrices and campaigns all use this rule.
    #[must_use]
    pub fn obstacle(&self) -> Option<Obstacle> {
        let of_phases = || self.phases.iter().find_map(|phase| self.phase_obstacle(phase));
        self.invalid().or_else(of_phases).or_else(|| self.far_obstacle()).or_else(|| self.end_obstacle())
    }

    /// The first reason that is not about a single phase: for runs whose phases are compared with each other.
    #[must_use]
    pub fn run_obstacle(&self) -> Option<Obstacle> {
        self.invalid().or_else(|| self.far_obstacle()).or_else(|| self.end_obstacle())
    }

    fn invalid(&self) -> Option<Obstacle> {
        let reasons = self.invalid_reasons();
        (!self.validity.valid || !reasons.is_empty()).then_some(Obstacle::Invalid(reasons))
    }

    /// The reason why one phase supports no good result. Reasons for the whole run are not included.
    #[must_use]
    pub fn phase_obstacle(&self, phase: &Phase) -> Option<Obstacle> {
        let failed = phase.loads.iter().find(|load| !load.ran).map(|load| &load.spec);
        let unproven = || phase.asked_loads.iter().find(|asked| !self.has_proof(phase, asked));
        if let Some(spec) = failed.or_else(unproven) {
            return Some(Obstacle::Load { spec: spec.clone(), host: None });
        }
        if self.is_cut_short(phase) {
            return Some(self.ended_early(phase.name.clone()));
        }
        let of_phase = self.series.iter().filter(|series| series.phase == phase.name);
        let mut streams = of_phase.filter_map(|series| series.kind.listener()).flat_map(Listener::worst_first);
        streams.find_map(|stream| {
            Some(Obstacle::Stream { stream_id: stream.stream_id.clone(), silence: stream.silence()? })
        })
    }

    /// True if a load has a proof, or cannot have one yet.
    fn has_proof(&self, phase: &Phase, asked: &str) -> bool {
        self.state == State::Partial || phase.loads.iter().any(|load| load.spec == asked)
    }

    /// True if a phase was shorter than planned. The last deadline can be up to a period before the end, also by a clock
    /// that is a thousandth faster. A run that ends itself has evidence that holds at every moment, and a complete run of a
    /// program can end with it.
    pub(crate) fn is_cut_short(&self, phase: &Phase) -> bool {
        if self.scenario.until_decided || self.program.is_some() && self.state == State::Complete {
            return false;
        }
        let of_phase = || self.series.iter().filter(|series| series.phase == phase.name);
        let period_ns = of_phase().map(|series| series.period_ns).max().unwrap_or_default().max(phase.period_ns);
        let slack_ns = |planned_ns: u64| period_ns.min(planned_ns / 2).saturating_add(planned_ns / 1000);
        let by_time = phase.planned_ns.is_some_and(|ns| phase.duration_ns.saturating_add(slack_ns(ns)) < ns);
        let is_short = |series: &Series, planned| series.samples.saturating_add(series.missed) < planned;
        let counts = |series: &&Series| series.host.is_none() && series.kind == SeriesKind::WakeUps;
        let by_samples =
            phase.planned_samples.is_some_and(|planned| of_phase().filter(counts).any(|one| is_short(one, planned)));
        by_time || by_samples
    }

    fn far_obstacle(&self) -> Option<Obstacle> {
        let far = self.far.as_ref()?;
        if let Some(why) = &far.lost {
            return Some(Obstacle::FarLost { host: far.host.clone(), why: why.clone() });
        }
        let proven = |asked: &&String| far.loads.iter().any(|load: &LoadProof| load.spec == **asked);
        let failed = far.loads.iter().find(|load| !load.ran).map(|load| &load.spec);
        let spec = failed.or_else(|| far.asked.loads.iter().find(|asked| !proven(asked)))?;
        Some(Obstacle::Load { spec: spec.clone(), host: Some(far.host.clone()) })
    }

    /// The reason of a run that did not end as planned. A run without a planned length lasts until a signal ends it.
    fn end_obstacle(&self) -> Option<Obstacle> {
        let ended = |series: &Series| {
            let note = series.notes.iter().find(|note| note.contains(SERIES_ENDS))?;
            Some(format!("{}: {note}", series.place()))
        };
        if let Some(note) = self.series.iter().find_map(ended) {
            return Some(Obstacle::ThreadEnded { note });
        }
        let last = self.phases.last().map(|phase| phase.name.clone()).unwrap_or_default();
        let is_planned = self.phases.last().is_some_and(|phase| phase.planned_ns.or(phase.planned_samples).is_some());
        let early = match self.state {
            State::Complete => false,
            State::Interrupted => is_planned || self.phases.is_empty(),
            State::Partial => true,
        };
        (early && !self.scenario.until_decided).then(|| self.ended_early(last))
    }

    /// The obstacle of a run that ended early in this phase.
    fn ended_early(&self, phase: String) -> Obstacle {
        let gone = self.caveats.iter().find(|caveat| caveat.kind == GONE).map(|caveat| caveat.text.clone());
        Obstacle::EndedEarly { phase, gone }
    }
}

//! From a plan to a talker and a listener that are ready.

use frames::ethernet;
use machine::{Root, Shield};
use probes::stream::{
    Stream,
    listener::{Listener, ListenerSettings},
    talker::{Talk, Talker, TalkerSettings},
    tracker::Expected,
    transmit::Transmit,
};
use record::ClockTie;

use super::{ListenPlan, StreamError, StreamPlan, TalkPlan, places::Places, receiver::Opened};
use crate::{PhasePlan, Plan, RunError, shielded::on_its_side};

impl StreamPlan {
    /// Opens the sockets and makes the listener, which receives from now on.
    pub(crate) fn prepare(
        &self,
        plan: &Plan,
        phase: &PhasePlan,
        root: &Root,
        shield: Option<&Shield>,
    ) -> Result<Stream, RunError> {
        let places = Places::of(self.interface.as_deref(), root)?;
        let observer = self.observer(plan, &places)?;
        let listener =
            self.listen.as_ref().map(|listen| self.listener(listen, plan, phase, &places, shield)).transpose()?;
        let talker = self.talk.as_ref().map(|talk| self.talker(talk, plan, phase, root, &places)).transpose()?;
        Ok(Stream::new(talker, listener, places).with_observer(observer))
    }

    fn listener(
        &self,
        listen: &ListenPlan,
        plan: &Plan,
        phase: &PhasePlan,
        places: &Places,
        shield: Option<&Shield>,
    ) -> Result<Listener, RunError> {
        let Opened { receiver, from, notes } = places.receiver(listen, self.queue)?;
        let settings =
            ListenerSettings { from, notes, ..self.listener_settings(listen, plan, phase, places.far_interface()) };
        Ok(on_its_side(shield, Some(listen.cpu), || Listener::start(&settings, receiver))??)
    }

    fn talker(
        &self,
        talk: &TalkPlan,
        plan: &Plan,
        phase: &PhasePlan,
        root: &Root,
        places: &Places,
    ) -> Result<(Talker, Talk<Box<dyn Transmit>>), StreamError> {
        let source = places.mac();
        let stream = frames::Stream {
            source,
            destination: ethernet::multicast_of(source, talk.unique_id),
            tci: self.class.tci(),
            stream_id: frames::stream_id(source, talk.unique_id),
            format: self.format,
            samples: self.class.samples(),
        };
        let settings = TalkerSettings {
            stream,
            run: run_number(plan),
            interface: places.near_interface().to_owned(),
            mode: talk.mode,
            own_listener: self.listen.is_some(),
            period_ns: phase.period_ns,
            offset_ns: talk.offset.ns(),
            transit_ns: self.class.max_transit_ns(),
            clock: plan.clock,
        };
        let (sender, aftermath) = places.sender(talk.mode, root, self.class.tci().pcp, self.queue)?;
        let (talker, talk) = Talker::new(&settings, sender);
        Ok((talker.with_aftermath(aftermath), talk))
    }

    fn listener_settings(&self, listen: &ListenPlan, plan: &Plan, phase: &PhasePlan, on: &str) -> ListenerSettings {
        ListenerSettings {
            expected: Expected {
                stream_id: listen.stream_id,
                period_ns: phase.period_ns,
                transit_ns: self.class.max_transit_ns(),
                tie: match &listen.talker {
                    Some(talker) => talker.tie,
                    None if self.talk.is_some() => ClockTie::SameHost,
                    None => ClockTie::None,
                },
                whole: self.talk.is_some() || listen.talker.is_some(),
            },
            interface: on.to_owned(),
            wait: listen.wait,
            from: String::new(),
            notes: Vec::new(),
            cpu: Some(listen.cpu),
            policy: plan.policy,
            clock: plan.clock,
            talker: listen.talker.clone(),
        }
    }
}

/// A number that two runs seldom share.
fn run_number(plan: &Plan) -> u32 {
    let now_ns = plan.clock.now_ns().unsigned_abs();
    (now_ns ^ now_ns >> 32) as u32 ^ std::process::id().rotate_left(16)
}

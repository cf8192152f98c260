//! Creates the talker and the listener of a phase from the options.

use std::sync::{Arc, atomic::AtomicBool};

use machine::nic::clock_of_sent_stamps;
use probes::stream::{
    Monitor, Stream,
    listener::{Listener, ListenerSettings},
    maap::Defence,
    reports::{Card, Reports, Stamps},
    talker::{Talk, Talker, TalkerSettings},
    tracker::Expected,
    transmit::Transmit,
};
use record::ClockTie;
use sys::{clock::Clock, packet::SentStamps};

use super::{
    super::definition::{PhaseContext, PrepareError, with_shield},
    StreamError, StreamProbe,
    endpoints::Endpoints,
    link::LinkMonitor,
    list::Group,
    maap::Destinations,
    receiver::Opened,
    sender::Sender,
    sync::SyncMonitor,
};

/// A talker and the work of its thread.
type Talks = (Talker, Talk<Box<dyn Transmit>>);

impl StreamProbe {
    /// Opens the sockets, and creates the talker and the listener, which starts to receive.
    pub(super) fn stream(&self, context: &PhaseContext<'_>) -> Result<Stream, PrepareError> {
        let endpoints = Endpoints::of(self.interface(), context.root)?;
        let run = run_number(context.clock);
        let (destinations, speaker) = self.claim(&endpoints, run)?;
        let observer = self.observer(context.record_path, &endpoints)?;
        let listener = self.listens().then(|| self.listener(context, &endpoints)).transpose()?;
        let mut talkers =
            if self.talks() { self.talkers(run, &destinations, context, &endpoints)? } else { Vec::new() };
        let mut monitors: Vec<Box<dyn Monitor>> = Vec::new();
        if let Some(limit_ns) = self.require_sync_ns {
            let is_lost = Arc::new(AtomicBool::new(false));
            monitors.push(Box::new(SyncMonitor::start(context.root, limit_ns, is_lost.clone())?));
            let watched = |(talker, talk): Talks| talker.with_uncertain(talk, is_lost.clone());
            talkers = talkers.into_iter().map(watched).collect();
        }
        if let Some(speaker) = speaker {
            monitors.push(Box::new(Defence::start(speaker)?));
        }
        if let Some(interface) = self.interface().filter(|_| self.talks()) {
            // After the sockets are open, because AF_XDP resets the link of some cards.
            monitors.push(Box::new(LinkMonitor::start(context.root, interface)));
        }
        Ok(Stream::new(talkers, listener, endpoints).with_observer(observer).with_monitors(monitors))
    }

    fn listener(&self, context: &PhaseContext<'_>, endpoints: &Endpoints) -> Result<Listener, PrepareError> {
        let Opened { receiver, from, notes } = endpoints.receiver(self.wait, self.xdp, self.queue)?;
        let settings = ListenerSettings { from, notes, ..self.listener_settings(context, endpoints) };
        Ok(with_shield(context.shield, self.listen_cpu, || Listener::start(&settings, receiver))??)
    }

    /// Creates the talker of each group of streams.
    fn talkers(
        &self,
        run: u32,
        destinations: &Destinations,
        context: &PhaseContext<'_>,
        endpoints: &Endpoints,
    ) -> Result<Vec<Talks>, StreamError> {
        endpoints.prepare(self.mode)?;
        let groups = self.groups(context.period_ns);
        groups.iter().map(|group| self.talker(group, run, destinations, context, endpoints)).collect()
    }

    fn talker(
        &self,
        group: &Group,
        run: u32,
        destinations: &Destinations,
        context: &PhaseContext<'_>,
        endpoints: &Endpoints,
    ) -> Result<Talks, StreamError> {
        let settings = TalkerSettings {
            streams: group.frames(endpoints.mac(), |unique_id| destinations.of(endpoints.mac(), unique_id)),
            names: group.names(),
            run,
            interface: endpoints.near_interface().to_owned(),
            mode: self.mode,
            own_listener: self.listens(),
            period_ns: group.period_ns,
            offset_ns: self.offset.ns(),
            transit_ns: group.class.max_transit_ns(),
            clock: context.clock,
        };
        let Sender { transmit, reports, launch } = endpoints.sender(self, context.root, group.pcp)?;
        let (talker, talk) = Talker::new(&settings, transmit);
        let stamps = self.stamps.map(|stamps| self.stamps_of(stamps, run, context)).transpose()?;
        let talker = talker.with_reports(reports.map(|socket| Reports::new(socket, launch, stamps)));
        Ok(match &destinations.first {
            Some(first) => {
                let places = group.streams.iter().map(|(unique_id, _)| destinations.place(*unique_id)).collect();
                talker.with_destinations(talk, first.clone(), places)
            }
            None => (talker, talk),
        })
    }

    fn stamps_of(&self, stamps: SentStamps, run: u32, context: &PhaseContext<'_>) -> Result<Stamps, StreamError> {
        let card = match (stamps, self.interface()) {
            (SentStamps::Card, Some(interface)) => {
                let clock = clock_of_sent_stamps(context.root, interface)?;
                let failed = |source| StreamError::CardClock { clock: clock.clone(), source };
                Some(Card::open(clock.clone()).map_err(failed)?)
            }
            (SentStamps::Card, None) | (SentStamps::Driver, _) => None,
        };
        Ok(Stamps::new(context.clock, run, card))
    }

    fn listener_settings(&self, context: &PhaseContext<'_>, endpoints: &Endpoints) -> ListenerSettings {
        ListenerSettings {
            expected: Expected {
                stream_id: self.stream_id,
                period_ns: context.period_ns,
                transit_ns: self.class.max_transit_ns(),
                tie: match &self.talker_elsewhere {
                    Some(talker) => talker.tie,
                    None if self.talks() => ClockTie::SameHost,
                    None => ClockTie::None,
                },
                whole: self.talks() || self.talker_elsewhere.is_some(),
            },
            named: if self.talks() { self.named(endpoints.mac()) } else { self.heard.clone() },
            interface: endpoints.far_interface().to_owned(),
            wait: self.wait,
            from: String::new(),
            notes: Vec::new(),
            cpu: self.listen_cpu,
            policy: context.policy,
            clock: context.clock,
            talker: self.talker_elsewhere.clone(),
        }
    }
}

/// A number that is very likely different in each run.
fn run_number(clock: Clock) -> u32 {
    let now_ns = clock.now_ns().unsigned_abs();
    u32::try_from((now_ns ^ now_ns >> 32) & 0xffff_ffff).unwrap_or_default() ^ std::process::id().rotate_left(16)
}

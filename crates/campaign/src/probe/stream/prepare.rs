//! Creates the talker and the listener of a phase from the options.

use std::sync::{Arc, atomic::AtomicBool};

use frames::ethernet;
use probes::stream::{
    Stream,
    listener::{Listener, ListenerSettings},
    talker::{Talk, Talker, TalkerSettings},
    tracker::Expected,
    transmit::Transmit,
};
use record::ClockTie;
use sys::clock::Clock;

use super::{
    super::definition::{PhaseContext, PrepareError, with_shield},
    StreamError, StreamProbe,
    endpoints::Endpoints,
    receiver::Opened,
    sync::SyncMonitor,
};

impl StreamProbe {
    /// Opens the sockets, and creates the talker and the listener, which starts to receive.
    pub(super) fn stream(&self, context: &PhaseContext<'_>) -> Result<Stream, PrepareError> {
        let endpoints = Endpoints::of(self.interface(), context.root)?;
        let observer = self.observer(context.record_path, &endpoints)?;
        let listener = self.listens().then(|| self.listener(context, &endpoints)).transpose()?;
        let talker = self.talks().then(|| self.talker(context, &endpoints)).transpose()?;
        let Some(limit_ns) = self.require_sync_ns else {
            return Ok(Stream::new(talker, listener, endpoints).with_observer(observer));
        };
        let is_lost = Arc::new(AtomicBool::new(false));
        let monitor = SyncMonitor::start(context.root, limit_ns, is_lost.clone())?;
        let talker = talker.map(|(talker, talk)| talker.with_uncertain(talk, is_lost));
        let stream = Stream::new(talker, listener, endpoints).with_observer(observer);
        Ok(stream.with_monitor(Some(Box::new(monitor))))
    }

    fn listener(&self, context: &PhaseContext<'_>, endpoints: &Endpoints) -> Result<Listener, PrepareError> {
        let Opened { receiver, from, notes } = endpoints.receiver(self.wait, self.xdp, self.queue)?;
        let settings = ListenerSettings { from, notes, ..self.listener_settings(context, endpoints.far_interface()) };
        Ok(with_shield(context.shield, self.listen_cpu, || Listener::start(&settings, receiver))??)
    }

    fn talker(
        &self,
        context: &PhaseContext<'_>,
        endpoints: &Endpoints,
    ) -> Result<(Talker, Talk<Box<dyn Transmit>>), StreamError> {
        let source = endpoints.mac();
        let stream = |unique_id: u16| frames::Stream {
            source,
            destination: ethernet::multicast_of(source, unique_id),
            tci: self.class.tci(),
            stream_id: frames::stream_id(source, unique_id),
            format: self.format,
            samples: self.class.samples(),
        };
        let settings = TalkerSettings {
            streams: self.unique_ids().map(stream).collect(),
            run: run_number(context.clock),
            interface: endpoints.near_interface().to_owned(),
            mode: self.mode,
            own_listener: self.listens(),
            period_ns: context.period_ns,
            offset_ns: self.offset.ns(),
            transit_ns: self.class.max_transit_ns(),
            clock: context.clock,
        };
        let (sender, reports) = endpoints.sender(self.mode, context.root, self.class.tci().pcp, self.queue)?;
        let (talker, talk) = Talker::new(&settings, sender);
        Ok((talker.with_reports(reports), talk))
    }

    fn listener_settings(&self, context: &PhaseContext<'_>, interface: &str) -> ListenerSettings {
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
            interface: interface.to_owned(),
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

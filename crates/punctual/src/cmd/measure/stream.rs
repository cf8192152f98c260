//! `punctual measure stream`.

use anyhow::Context;
use campaign::{
    Length, Plan, PlanError, Probe,
    probe::{
        Definition, Places, StreamProbe, best_cpu,
        stream::{CaptureTo, StreamEnds, WakeupOffset},
    },
};
use machine::{CpuList, Root, isolated_cpus, usable_cpus};
use probes::stream::transmit::TransmitMode;
use record::Record;
use sys::{clock::Clock, sched::Policy};

use super::Results;
use crate::{
    cli::{Stream, StreamSide, Streaming},
    exit::Usage,
    output,
};

pub fn run(options: &Stream) -> anyhow::Result<u8> {
    check(options)?;
    if let Some(path) = &options.capture {
        record::file::check_writable(path)?;
    }
    let ready = Ready::prepare(&options.how, stream(options))?;
    let record = output::measure(&ready.plan, options.how.common.talk)?;
    let status = ready.deliver(record)?;
    if let Some(path) = options.capture.as_ref().filter(|_| !options.how.common.talk.quiet) {
        say!("capture {}", path.display());
    }
    Ok(status)
}

/// What can be refused before anything else.
fn check(options: &Stream) -> Result<(), Usage> {
    if let Some(useless) = options.useless() {
        return Err(Usage(useless));
    }
    if options.how.busy_poll.is_some() && options.xdp().is_some() {
        return Err(Usage(
            "--busy-poll is for --receive socket: with xdp use --spin, which looks at the ring".to_owned(),
        ));
    }
    if options.queue.is_some() && !options.has_xdp() {
        return Err(Usage("--queue is for xdp: leave it out, or add --mode xdp or --receive xdp".to_owned()));
    }
    Ok(())
}

/// A stream that is ready to run.
pub struct Ready<'a> {
    how: &'a Streaming,
    results: Results<'a>,
    others: Vec<(String, Record)>,
    /// What is to run.
    pub plan: Plan,
}

impl<'a> Ready<'a> {
    /// Checks all that can be refused before anything is opened; `stream` says which ends are on this machine.
    pub fn prepare(how: &'a Streaming, stream: StreamProbe) -> anyhow::Result<Self> {
        if matches!(how.policy, Policy::Deadline { .. }) {
            return Err(Usage(PlanError::StreamDeadline.to_string()).into());
        }
        let (common, wake_ups) = (&how.common, &how.wake_ups);
        let results = Results::prepare(common)?;
        let others = output::find_references(&wake_ups.against)?;
        output::find_profiles(&wake_ups.profiles)?;
        let plan = plan(how, stream, &results)?;
        if how.wakeup_offset == Some(WakeupOffset::Auto) && !common.talk.quiet {
            say!("offset  measuring 5 s of wake-ups to find the offset that this machine needs");
        }
        Ok(Self { how, results, others, plan })
    }

    /// Judges what was seen, and hands it to the user; answers the exit status.
    pub fn deliver(&self, mut record: Record) -> anyhow::Result<u8> {
        let wake_ups = &self.how.wake_ups;
        output::judge(&mut record, &wake_ups.profiles)?;
        output::lay_beside(&mut record, &self.others);
        self.results.deliver(&record, |style, width| report::terminal::summary(&record, style, width))?;
        wake_ups.status(&record, &self.results)
    }
}

fn plan(how: &Streaming, stream: StreamProbe, results: &Results) -> anyhow::Result<Plan> {
    let common = &how.common;
    let mut stream = StreamProbe {
        class: how.class.into(),
        period_ns: how.period,
        format: how.format.into(),
        offset: how.wakeup_offset.unwrap_or_default(),
        mode: how.mode.map(TransmitMode::from).unwrap_or_default(),
        unique_id: how.unique_id.unwrap_or_default(),
        wait: how.wait(),
        ..stream
    };
    let cpus: CpuList = place(how, &mut stream)?.into_iter().collect();
    let length = match stream.ends {
        // It ends with the talker.
        StreamEnds::Listen(_) if common.duration.is_none() => Length::UntilStopped,
        StreamEnds::Listen(_) | StreamEnds::Talk(_) | StreamEnds::Both => super::length(common),
    };
    let phase = super::phase(common, stream.period_ns(), length, stream.threads(how.policy));
    // Where no clock is asked for, launch times need CLOCK_TAI.
    let clock = if stream.mode == TransmitMode::Txtime { Clock::Tai } else { Clock::Monotonic };
    let probe = Probe::Stream(Box::new(stream));
    Ok(Plan {
        cpus: Some(cpus),
        shield: how.placement.shield.clone(),
        policy: how.policy,
        nic: how.nic.plan(),
        ..how.wake_ups.apply(Plan { clock, ..super::plan(common, &results.kept, probe, vec![phase])? })
    })
}

/// Puts each end on its CPU: the one asked for, or the best one, and returns the CPUs.
fn place(how: &Streaming, stream: &mut StreamProbe) -> anyhow::Result<Vec<u32>> {
    let root = Root::system();
    let shield = how.placement.shield.as_ref();
    let one = |cpu: u32| CpuList::from_iter([cpu]);
    let own = usable_cpus(&root, how.cpu.map(one).as_ref().or(shield))?;
    let isolated = shield.cloned().unwrap_or_else(|| isolated_cpus(&root));
    let first = best_cpu(&own, &isolated).context("there is no CPU to measure on")?;
    let usable = usable_cpus(&root, stream.listen_cpu.map(one).as_ref())?;
    let named = [first].into_iter().chain(stream.listen_cpu).collect();
    Ok(stream.place(named, &Places { usable: &usable, isolated: &isolated, policy: Some(how.policy) }))
}

/// The ends that are on this machine.
fn stream(options: &Stream) -> StreamProbe {
    let interface = options.interface.clone().unwrap_or_default();
    StreamProbe {
        ends: match options.side {
            Some(StreamSide::Talk) => StreamEnds::Talk(interface),
            Some(StreamSide::Listen) => StreamEnds::Listen(interface),
            None => StreamEnds::Both,
        },
        stream_id: options.stream_id,
        xdp: options.xdp(),
        queue: options.queue.unwrap_or_default(),
        capture: options.capture.clone().map(CaptureTo::File),
        listen_cpu: options.listen_cpu,
        ..StreamProbe::default()
    }
}

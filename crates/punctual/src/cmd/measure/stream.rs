//! `punctual measure stream`.

use anyhow::Context;
use campaign::{
    CaptureTo, Length, ListenPlan, PhasePlan, Plan, PlanError, Probe, StreamPlan, TalkPlan, ThreadPlan, TransmitMode,
    WakeupOffset, threads,
};
use machine::{CpuList, Root, isolated_cpus, usable_cpus};
use record::Record;
use sys::{clock::Clock, sched::Policy};

use super::Results;
use crate::{
    cli::{Stream, StreamMode, StreamSide, Streaming},
    exit::Usage,
    output,
};

pub fn run(options: &Stream) -> anyhow::Result<u8> {
    check(options)?;
    if let Some(path) = &options.capture {
        record::file::check_writable(path)?;
    }
    let ready = Ready::prepare(&options.how, || stream(options))?;
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
    /// Checks all that can be refused before anything is opened; `stream` places the ends that are here.
    pub fn prepare(how: &'a Streaming, stream: impl FnOnce() -> anyhow::Result<StreamPlan>) -> anyhow::Result<Self> {
        if matches!(how.policy, Policy::Deadline { .. }) {
            return Err(Usage(PlanError::StreamDeadline.to_string()).into());
        }
        let (common, wake_ups) = (&how.common, &how.wake_ups);
        let results = Results::prepare(common)?;
        let others = output::find_references(&wake_ups.against)?;
        output::find_profiles(&wake_ups.profiles)?;
        let plan = plan(how, stream()?, &results)?;
        if how.wakeup_offset == Some(WakeupOffset::Auto) && !common.talk.quiet {
            say!("offset  5 s of wake-ups tell which one this machine needs");
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

fn plan(how: &Streaming, stream: StreamPlan, results: &Results) -> anyhow::Result<Plan> {
    let common = &how.common;
    let loads = super::loads(common);
    let period_ns = how.period.unwrap_or_else(|| stream.class.interval_ns());
    let talker =
        |talk: &TalkPlan| ThreadPlan { role: "talker".to_owned(), cpu: talk.cpu, policy: how.policy, period_ns };
    let phase = PhasePlan {
        name: super::phase_name(&loads),
        period_ns,
        length: match stream.talk {
            // It ends with the talker.
            None if common.duration.is_none() => Length::UntilStopped,
            _ => super::length(common),
        },
        loads,
        threads: stream.talk.iter().map(talker).collect(),
    };
    let cpus = stream.talk.iter().map(|talk| talk.cpu).chain(stream.listen.iter().map(|listen| listen.cpu));
    Ok(Plan {
        cpus: Some(cpus.collect()),
        probe: Probe::Stream(Box::new(stream)),
        shield: how.placement.shield.clone(),
        policy: how.policy,
        nic: how.nic.plan(),
        ..how.wake_ups.apply(Plan { clock: clock(how), ..super::plan(common, &results.kept, vec![phase])? })
    })
}

/// The clock of the slots, where none is asked for.
fn clock(how: &Streaming) -> Clock {
    if how.mode == Some(StreamMode::Txtime) { Clock::Tai } else { Clock::Monotonic }
}

/// The stream as it is asked for, each end on its CPU.
fn stream(options: &Stream) -> anyhow::Result<StreamPlan> {
    let how = &options.how;
    let cpu = cpu(how)?;
    let listen_cpu = if options.own { listen_cpu(options, &Root::system(), cpu)? } else { cpu };
    let listen = ListenPlan {
        cpu: listen_cpu,
        stream_id: options.stream_id,
        wait: how.wait(),
        xdp: options.xdp(),
        talker: None,
    };
    let queue = options.queue.unwrap_or_default();
    let capture = options.capture.clone().map(CaptureTo::File);
    let both = StreamPlan { listen: Some(listen), queue, capture, ..talk(how, options.interface.clone())? };
    Ok(match options.side {
        Some(StreamSide::Talk) => StreamPlan { listen: None, ..both },
        Some(StreamSide::Listen) => StreamPlan { talk: None, ..both },
        None => both,
    })
}

/// The stream that this machine sends, without its listener.
pub fn talk(how: &Streaming, interface: Option<String>) -> anyhow::Result<StreamPlan> {
    let talk = TalkPlan {
        cpu: cpu(how)?,
        offset: how.wakeup_offset.unwrap_or_default(),
        mode: how.mode.map(TransmitMode::from).unwrap_or_default(),
        unique_id: how.unique_id.unwrap_or_default(),
    };
    Ok(StreamPlan {
        interface,
        class: how.class.into(),
        format: how.format.into(),
        talk: Some(talk),
        listen: None,
        queue: 0,
        capture: None,
    })
}

/// The CPU of the end that is here: that asked for, or the quietest that is known.
fn cpu(how: &Streaming) -> anyhow::Result<u32> {
    let root = Root::system();
    let shield = how.placement.shield.as_ref();
    let one = |cpu: u32| CpuList::from_iter([cpu]);
    let usable = usable_cpus(&root, how.cpu.map(one).as_ref().or(shield))?;
    let quiet = shield.cloned().unwrap_or_else(|| isolated_cpus(&root));
    threads::best_cpu(&usable, &quiet).context("there is no CPU to measure on")
}

/// With both ends here, the listener is on another CPU than the talker where there is one.
fn listen_cpu(options: &Stream, root: &Root, talk_cpu: u32) -> anyhow::Result<u32> {
    let asked = options.listen_cpu.map(|cpu| CpuList::from_iter([cpu]));
    let usable = usable_cpus(root, asked.as_ref())?;
    Ok(options.listen_cpu.unwrap_or_else(|| campaign::stream::listen_cpu(&usable, talk_cpu)))
}

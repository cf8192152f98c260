//! `punctual pair`: measures between two machines. The hidden command `far` is the far end.

use std::net::SocketAddr;

use ::judge::{Lines, Session, SessionSettings, settings::Level};
use ::pair::{AnswerTask, EchoTask, InterruptTask, ListenTask, NamedTask, Near, Reach, Task};
use anyhow::{Context, bail};
use campaign::{
    Plan, Probe,
    probe::{
        Definition, RoundTripProbe, StreamProbe,
        round_trip::{Address, ECHO_POLICY, Peer, UDP_PORT},
        stream::StreamEnds,
    },
};
use machine::Root;
use probes::stream::listener::NamedStream;
use record::{ClockTie, FarAsked, Reason, Record};
use sys::sched::Policy;

use super::{
    measure::{round_trip, stream},
    rounds,
};
use crate::{
    cli::{Far, OutputOptions, Pair, PairInterrupt, PairProbe, PairStream, PairUdp},
    exit::Usage,
    output,
};

pub fn run(options: &Pair) -> anyhow::Result<u8> {
    options.far.check()?;
    let repeated = match &options.probe {
        PairProbe::Udp(udp) => Some((udp.shared.rounds.rounds, &udp.shared.common, &udp.shared.against)),
        PairProbe::Stream(stream) => {
            let shared = &stream.shared;
            Some((shared.rounds.rounds, &shared.common, &shared.wake_ups.against))
        }
        PairProbe::Interrupt(_) => None,
    };
    if let Some((Some(rounds), common, against)) = repeated {
        return rounds::run(rounds, common, against);
    }
    match &options.probe {
        PairProbe::Udp(udp) => measure_udp(options, udp),
        PairProbe::Stream(stream) => measure_stream(options, stream),
        PairProbe::Interrupt(interrupt) => measure_interrupts(options, interrupt),
    }
}

/// Runs the far end.
pub fn serve(options: &Far) -> anyhow::Result<u8> {
    if options.identify {
        output::stdout(|out| writeln!(out, "{}", ::pair::far::identify()?))?;
    } else if let Some(far_end) = options.mend {
        ::pair::far::clean_up_after(far_end);
    } else {
        ::pair::far::serve(options.folder.as_deref()).context("cannot serve the near end")?;
    }
    Ok(0)
}

/// Sends datagrams, which the other machine answers.
fn measure_udp(options: &Pair, udp: &PairUdp) -> anyhow::Result<u8> {
    // The far end reports its address when it has started; until then the peer is a placeholder.
    let peer = Peer::Echo(Address { host: options.host.clone(), port: UDP_PORT });
    let (xdp, far_xdp) = (udp.transport.xdp()?, udp.far_xdp()?);
    let probe = RoundTripProbe { peer, allow_fragments: udp.allow_fragments, xdp, ..RoundTripProbe::default() };
    let mut ready = round_trip::Ready::prepare(&udp.shared, probe)?;
    let output_options = udp.shared.common.output;
    let to = udp.to.as_ref().map(Address::resolve).transpose()?;
    let mut near = connect(options, output_options)?;
    let bind = match (to, near.address()) {
        (Some(to), _) => to,
        (None, Some(address)) => SocketAddr::new(address, UDP_PORT),
        (None, None) => resolve(near.name())?,
    };
    let no_route = || format!("no route to {bind}: name another address with --to");
    let task = Task::Echo(EchoTask::at(bind).with_context(no_route)?);
    let transport = far_xdp.map(|xdp| xdp.to_string());
    let request = FarAsked { transport, queue: udp.far_queue, ..options.far.request(ECHO_POLICY) };
    let address = start(&mut near, task, request, output_options)?;
    ready.probe.peer = Peer::Echo(address.unwrap_or(bind).into());
    measure(&ready.plan()?, near, output_options, |record| ready.deliver(record))
}

/// Resolves the name that ssh uses for the other machine.
fn resolve(host: &str) -> anyhow::Result<SocketAddr> {
    let found = Address { host: host.to_owned(), port: UDP_PORT }.resolve();
    found.with_context(|| format!("`{host}` may be an alias in the ssh configuration: pass --to ADDRESS"))
}

/// Sends a stream, which the other machine receives.
fn measure_stream(options: &Pair, pair_stream: &PairStream) -> anyhow::Result<u8> {
    let shared = &pair_stream.shared;
    check(options, pair_stream)?;
    let output_options = shared.common.output;
    let talker = StreamProbe { ends: StreamEnds::Talk(pair_stream.interface.clone()), ..StreamProbe::default() };
    let ready = stream::Ready::prepare(shared, talker)?;
    let Probe::Stream(stream) = &ready.plan.probe else { bail!("the plan contains no stream") };
    let stream_id = stream.stream_id(&Root::system())?.context("the talker has no interface")?;
    let mut near = connect(options, output_options)?;
    let tie = near.tie(ready.plan.clock);
    if !output_options.quiet && near.clock().shows_one_way() && tie == ClockTie::None {
        say!(
            "note: PTP synchronises the system clocks of both machines: use --clock realtime to measure one-way delays"
        );
    }
    let far_interface = pair_stream.far_interface.as_ref().unwrap_or(&pair_stream.interface);
    let task = Task::Listen(ListenTask {
        interface: far_interface.clone(),
        stream_id,
        named: stream.named_streams(&Root::system())?.into_iter().map(named).collect(),
        period_ns: ready.plan.phases.first().map(|phase| phase.period_ns).unwrap_or_default(),
        class_b: frames::Class::from(shared.class.unwrap_or_default()) == frames::Class::B,
        spin: shared.spin,
        busy_poll_ns: shared.busy_poll,
        clock: ready.plan.clock.to_string(),
        tie,
    });
    let receive = pair_stream.xdp().map(|xdp| xdp.to_string());
    let default_policy = StreamProbe::default().policy(None);
    let request = FarAsked { receive, queue: pair_stream.far_queue, ..options.far.request(default_policy) };
    start(&mut near, task, request, output_options)?;
    measure(&ready.plan, near, output_options, |record| ready.deliver(record))
}

/// A stream as the far end is asked to follow it.
fn named(stream: NamedStream) -> NamedTask {
    let NamedStream { name, stream_id, period_ns, transit_ns } = stream;
    NamedTask { name, stream_id, period_ns, transit_ns }
}

/// Checks combinations of options before connecting.
fn check(options: &Pair, stream: &PairStream) -> Result<(), Usage> {
    let refused = |text: &str| Err(Usage(text.to_owned()));
    if matches!(options.far.far_policy, Some(Policy::Deadline { .. })) {
        return refused(
            "--far-policy deadline is not possible, because the kernel cannot pin deadline threads: use --far-policy \
             fifo:90",
        );
    }
    if stream.shared.busy_poll.is_some() && stream.xdp().is_some() {
        return refused("--busy-poll needs --far-receive socket: use --spin with xdp");
    }
    if stream.far_queue.is_some() && stream.xdp().is_none() {
        return refused("--far-queue needs xdp: leave it out, or add --far-receive xdp");
    }
    Ok(())
}

/// Lets the other machine measure its interrupts, and delivers its record.
fn measure_interrupts(options: &Pair, interrupt: &PairInterrupt) -> anyhow::Result<u8> {
    if let Some(nic) = &options.far.far_nic {
        return Err(Usage(format!("--far-nic {nic} has no effect on interrupts: leave it out")).into());
    }
    let shared = &interrupt.shared;
    let probe = shared.probe(interrupt.source.clone());
    probe.check().map_err(|error| Usage(error.to_string()))?;
    let files = interrupt.record.files()?.with_exports(&interrupt.exports)?;
    output::find_profiles(&interrupt.profiles)?;
    let others = output::find_references(&interrupt.against)?;
    let policy = options.far.far_policy.unwrap_or(probe.policy(None));
    sys::signal::count_termination().context("cannot watch for Ctrl-C")?;
    let judge = judge_here(reach(options)?.name(), interrupt, probe.period_ns())?;
    let mut near = connect(options, interrupt.output)?;
    let task = InterruptTask {
        source: interrupt.source.to_string(),
        drive: shared.drive.as_ref().map(ToString::to_string),
        answer: shared
            .answer
            .as_ref()
            .zip(shared.judge.as_ref())
            .map(|(line, judge)| AnswerTask { line: line.to_string(), is_falling: judge.level() == Level::Low }),
        period_ns: shared.period,
        duration_ns: interrupt.duration,
        threshold_ns: interrupt.threshold,
        irq_cpu: interrupt.far_irq_cpu,
        command: output::command_line(),
    };
    start(&mut near, Task::Interrupt(Box::new(task)), options.far.request(policy), interrupt.output)?;
    if !interrupt.output.quiet {
        say!("measuring at {} for {}", near.name(), analysis::format_duration(interrupt.duration));
    }
    let mut record = near.interrupts(judge)?;
    record.command = output::command_line();
    record.scenario.profiles.clone_from(&interrupt.profiles);
    output::judge(&mut record, &interrupt.profiles)?;
    output::compare_with(&mut record, &others);
    output::deliver(interrupt.output, interrupt.extent, &record, &files, |style, width| {
        report::terminal::summary(&record, style, width)
    })?;
    Ok(output::status(&record))
}

/// Opens the outside judge at this machine, whose lines are those of the machine `host`.
fn judge_here(host: &str, interrupt: &PairInterrupt, period_ns: u64) -> anyhow::Result<Option<Session>> {
    let (Some(answer), Some(address)) = (&interrupt.shared.answer, &interrupt.shared.judge) else { return Ok(None) };
    let of_host = |what: String| format!("{what} of {host}");
    let lines = Lines { question: of_host(interrupt.source.to_string()), answer: of_host(answer.to_string()) };
    Ok(Some(Session::open(SessionSettings { address: address.clone(), period_ns, cpu: None, lines })?))
}

/// Starts the task of the far end, and prints its refused settings. Returns the address of an echo task.
fn start(
    near: &mut Near,
    task: Task,
    request: FarAsked,
    output_options: OutputOptions,
) -> anyhow::Result<Option<SocketAddr>> {
    let (address, refused) = near.start(task, request)?;
    for Reason { text, remedy, .. } in refused.iter().filter(|_| !output_options.quiet) {
        say!("INVALID {text}\n        {remedy}");
    }
    Ok(address)
}

/// How to reach the far machine.
fn reach(options: &Pair) -> anyhow::Result<Reach> {
    Ok(Reach {
        host: options.host.clone(),
        ssh: options.ssh.clone(),
        far_binary: options.far_binary.clone(),
        far_command: options.far_command.clone(),
        sudo: options.far_sudo,
        executable: output::executable()?,
    })
}

/// Connects to the far end, and copies punctual if needed.
fn connect(options: &Pair, output_options: OutputOptions) -> anyhow::Result<Near> {
    let reach = reach(options)?;
    let on_copy = |bytes: usize| {
        if !output_options.quiet {
            say!("copying punctual to {} ({:.1} MB)", reach.name(), bytes as f64 / 1e6);
        }
    };
    let near = Near::reach(&reach, on_copy)?;
    for restored in near.restored() {
        say!("{}: {restored}", near.name());
    }
    Ok(near)
}

/// Runs the plan, merges the results of the far end into the record, and delivers it. If the far end was lost, the exit
/// status is at least 1.
fn measure(
    plan: &Plan,
    near: Near,
    output_options: OutputOptions,
    deliver: impl FnOnce(Record) -> anyhow::Result<u8>,
) -> anyhow::Result<u8> {
    let mut record = output::measure(plan, output_options)?;
    let lost = near.finish(&mut record);
    if let Some(why) = &lost {
        say!("error: the far end was lost: {why}");
    }
    Ok(deliver(record)?.max(u8::from(lost.is_some())))
}

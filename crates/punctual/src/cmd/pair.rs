//! `punctual pair`: both ends of a measurement, on two machines; and the far one of them.

use std::net::SocketAddr;

use ::pair::{EchoTask, ListenTask, Near, Reach, Task};
use anyhow::{Context, bail};
use campaign::{
    Plan, Probe,
    probe::{
        Definition, StreamProbe, UdpProbe,
        stream::StreamEnds,
        udp::{Address, ECHO_POLICY, UDP_PORT},
    },
};
use machine::Root;
use record::{ClockTie, FarAsked, Reason, Record};
use sys::sched::Policy;

use super::measure::{stream, udp};
use crate::{
    cli::{Far, Pair, PairStream, PairUdp, PairWhat, Talk},
    exit::Usage,
    output,
};

pub fn run(options: &Pair) -> anyhow::Result<u8> {
    match &options.what {
        PairWhat::Udp(what) => ask(options, what),
        PairWhat::Stream(what) => talk(options, what),
    }
}

/// The far end.
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

/// This machine asks, the other one answers.
fn ask(options: &Pair, what: &PairUdp) -> anyhow::Result<u8> {
    // Where the other machine answers is known once it does.
    let peer = Some(Address { host: options.host.clone(), port: UDP_PORT });
    let mut ready = udp::Ready::prepare(&what.how, UdpProbe { peer, ..UdpProbe::default() })?;
    let talk = what.how.common.talk;
    let to = what.to.as_ref().map(Address::resolve).transpose()?;
    let mut near = reach(options, talk)?;
    let bind = match (to, near.address()) {
        (Some(to), _) => to,
        (None, Some(address)) => SocketAddr::new(address, UDP_PORT),
        (None, None) => named(near.name())?,
    };
    let no_way = || format!("no way leads to {bind}: name another network with --to");
    let what = Task::Echo(EchoTask::at(bind).with_context(no_way)?);
    let address = have(&mut near, what, options.there.asked(ECHO_POLICY), talk)?;
    ready.probe.peer = Some(address.unwrap_or(bind).into());
    measure(&ready.plan()?, near, talk, |record| ready.deliver(record))
}

/// The machine under the name that ssh knows it by.
fn named(host: &str) -> anyhow::Result<SocketAddr> {
    let found = Address { host: host.to_owned(), port: UDP_PORT }.resolve();
    found.with_context(|| format!("`{host}` may be a name that ssh alone knows: say --to ADDRESS"))
}

/// This machine talks, the other one listens.
fn talk(options: &Pair, what: &PairStream) -> anyhow::Result<u8> {
    let how = &what.how;
    check(options, what)?;
    let talk = how.common.talk;
    let talker = StreamProbe { ends: StreamEnds::Talk(what.interface.clone()), ..StreamProbe::default() };
    let ready = stream::Ready::prepare(how, talker)?;
    let Probe::Stream(stream) = &ready.plan.probe else { bail!("a stream was not planned as one") };
    let stream_id = stream.stream_id(&Root::system())?.context("a talker without an interface")?;
    let mut near = reach(options, talk)?;
    let tie = near.tie(ready.plan.clock);
    if !talk.quiet && near.clock().shows_one_way() && tie == ClockTie::None {
        say!("note: PTP ties the system clocks of both machines: --clock realtime tells times from one to the other");
    }
    let far_interface = what.far_interface.as_ref().unwrap_or(&what.interface);
    let ask = Task::Listen(ListenTask {
        interface: far_interface.clone(),
        stream_id,
        period_ns: ready.plan.phases.first().map(|phase| phase.period_ns).unwrap_or_default(),
        class_b: frames::Class::from(how.class) == frames::Class::B,
        spin: how.spin,
        busy_poll_ns: how.busy_poll,
        clock: ready.plan.clock.to_string(),
        tie,
    });
    let receive = what.xdp().map(|xdp| xdp.to_string());
    let asked = FarAsked { receive, queue: what.far_queue, ..options.there.asked(StreamProbe::default().policy(None)) };
    have(&mut near, ask, asked, talk)?;
    measure(&ready.plan, near, talk, |record| ready.deliver(record))
}

/// What can be refused before the other machine is reached.
fn check(options: &Pair, what: &PairStream) -> Result<(), Usage> {
    let refused = |text: &str| Err(Usage(text.to_owned()));
    if matches!(options.there.far_policy, Some(Policy::Deadline { .. })) {
        return refused(
            "the listener is pinned to its CPU, which the kernel refuses to deadline threads: use --far-policy fifo:90",
        );
    }
    if what.how.busy_poll.is_some() && what.xdp().is_some() {
        return refused("--busy-poll is for --far-receive socket: with xdp use --spin, which looks at the ring");
    }
    if what.far_queue.is_some() && what.xdp().is_none() {
        return refused("--far-queue is for xdp: leave it out, or add --far-receive xdp");
    }
    Ok(())
}

/// Has the far end do its part, and says at once what it was refused.
fn have(near: &mut Near, what: Task, asked: FarAsked, talk: Talk) -> anyhow::Result<Option<SocketAddr>> {
    let (address, refused) = near.start(what, asked)?;
    for Reason { text, remedy, .. } in refused.iter().filter(|_| !talk.quiet) {
        say!("INVALID {text}\n        {remedy}");
    }
    Ok(address)
}

/// Starts the far end.
fn reach(options: &Pair, talk: Talk) -> anyhow::Result<Near> {
    let reach = Reach {
        host: options.host.clone(),
        ssh: options.ssh.clone(),
        far_binary: options.far_binary.clone(),
        far_command: options.far_command.clone(),
        sudo: options.far_sudo,
        executable: output::executable()?,
    };
    let tell = |bytes: usize| {
        if !talk.quiet {
            say!("copying punctual to {} ({:.1} MB)", reach.name(), bytes as f64 / 1e6);
        }
    };
    let near = Near::reach(&reach, tell)?;
    for restored in near.restored() {
        say!("{}: {restored}", near.name());
    }
    Ok(near)
}

/// Runs the plan here, brings what the far end saw into its record, and has it delivered. A far end that was lost is an
/// error, unless the record has worse to say.
fn measure(
    plan: &Plan,
    near: Near,
    talk: Talk,
    deliver: impl FnOnce(Record) -> anyhow::Result<u8>,
) -> anyhow::Result<u8> {
    let mut record = output::measure(plan, talk)?;
    let lost = near.finish(&mut record);
    if let Some(why) = &lost {
        say!("punctual: the far end was lost: {why}");
    }
    Ok(deliver(record)?.max(u8::from(lost.is_some())))
}

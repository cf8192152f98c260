//! The far end: does what the near one asks, and ends with the connection, however that ends.

use std::{
    fs,
    io::{self, BufReader},
    net::SocketAddr,
    path::{Path, PathBuf},
    process, thread,
    time::Duration,
};

use campaign::{Answering, Length, ListenPlan, NicPlan, PhasePlan, Plan, Probe, ReceiveWait, StreamPlan, threads};
use frames::{Class, Format};
use machine::{CpuList, Root, isolated_cpus, usable_cpus};
use probes::{stream::elsewhere::Elsewhere, timer::Core, udp::EchoSettings};
use sys::{
    clock::{Clock, Wait},
    signal,
    udp::DatagramSocket,
};

use crate::{
    binary::Identity,
    channel::Channel,
    protocol::{Ask, AskEcho, AskListen, Hello, PROTOCOL, Saw, ToFar, ToNear},
};

/// Why something cannot be done, in words.
type Failure = Box<dyn std::error::Error>;

/// How long a run may take to end once the near end is gone.
const GRACE: Duration = Duration::from_secs(1);
/// How often it is looked whether anything is to be done.
const TICK: Duration = Duration::from_millis(100);
/// Without a near end, findings name the program as users do.
const NAME: &str = "punctual";

/// What `punctual __far --identify` prints: `0.1.0 1a2b3c4d`.
///
/// # Errors
/// When the program cannot be read.
pub fn identify() -> io::Result<String> {
    Ok(Identity::of(&fs::read("/proc/self/exe")?).to_string())
}

/// Serves the near end at the other end of standard input and output, until either ends. `folder` is where this program was
/// copied to: it is removed at once, so that nothing is left whatever happens.
pub fn serve(folder: Option<&Path>) -> io::Result<()> {
    if let Some(folder) = folder {
        // What cannot be removed now, the shell that started us removes afterwards.
        let _ = fs::remove_file(folder.join(NAME)).and_then(|()| fs::remove_dir(folder));
    }
    signal::count_termination()?;
    let channel = Channel::open::<ToNear>(BufReader::new(io::stdin()), io::stdout(), end_soon)?;
    let (version, machine) = (env!("CARGO_PKG_VERSION").to_owned(), machine::facts(&Root::system()));
    channel.say(&ToNear::Hello(Box::new(Hello { protocol: PROTOCOL, version, machine })));
    while let Ok(said) = channel.hear(TICK) {
        match said {
            Some(ToFar::Clock) => channel.say(&ToNear::Clock(Clock::Monotonic.now_ns())),
            Some(ToFar::Measure(ask)) => {
                let saw = match ask {
                    Ask::Echo(ask) => answer(&channel, &ask),
                    Ask::Listen(ask) => listen(&channel, &ask),
                };
                channel.say(&saw.map_or_else(|why| ToNear::Failed(why.to_string()), |saw| ToNear::Saw(Box::new(saw))));
            }
            Some(ToFar::End { .. } | ToFar::Alive) => {}
            None if signal::termination_requests() > 0 => break,
            None => {}
        }
    }
    Ok(())
}

/// The near end is gone: what is measured ends in order, and this process in any case.
fn end_soon() {
    signal::request_termination();
    thread::spawn(|| {
        thread::sleep(GRACE);
        process::exit(1);
    });
}

/// Answers datagrams until the near end has ended.
fn answer(channel: &Channel<ToFar>, ask: &AskEcho) -> Result<Saw, Failure> {
    let policy = ask.policy.parse()?;
    let socket = bind(ask.bind)?;
    let settings = EchoSettings { cpu: ask.cpu, policy };
    let answering = Answering::start(socket, settings, &Root::system())?;
    channel.say(&ToNear::Ready { address: Some(answering.address()) });
    loop {
        match channel.hear(TICK)? {
            Some(ToFar::End { .. }) => break,
            _ if signal::termination_requests() > 0 => return Err("it was ended by a signal".into()),
            _ => {}
        }
    }
    let (record, answered) = answering.finish();
    Ok(Saw { record, answered: Some(answered), clocks: None })
}

/// The port asked for, or another where it is taken.
fn bind(asked: SocketAddr) -> Result<DatagramSocket, String> {
    let bound = DatagramSocket::bind(asked).or_else(|error| match error.kind() {
        io::ErrorKind::AddrInUse => DatagramSocket::bind(SocketAddr::new(asked.ip(), 0)),
        _ => Err(error),
    });
    bound.map_err(|error| format!("cannot answer on {asked} ({error}): name an address of this machine with --to"))
}

/// Listens to a stream until its talker has ended.
fn listen(channel: &Channel<ToFar>, ask: &AskListen) -> Result<Saw, Failure> {
    let root = Root::system();
    let talker = Elsewhere::new(ask.tie);
    let plan = plan(ask, &root, talker.clone())?;
    let mut ready = false;
    let watch = &mut |_: &record::Record, _: &campaign::Progress| {
        if !ready {
            channel.say(&ToNear::Ready { address: None });
            ready = true;
        }
        if let Ok(Some(ToFar::End { sent })) = channel.hear(Duration::ZERO) {
            talker.end(sent);
        }
    };
    let record = campaign::run(&plan, &root, watch)?;
    Ok(Saw { record, answered: None, clocks: Some(machine::clocks::look(&root).unwrap_or_default()) })
}

fn plan(ask: &AskListen, root: &Root, talker: Elsewhere) -> Result<Plan, Failure> {
    let asked: Option<CpuList> = ask.cpu.map(|cpu| CpuList::from_iter([cpu]));
    let usable = usable_cpus(root, asked.as_ref())?;
    let cpu = threads::best_cpu(&usable, &isolated_cpus(root)).ok_or("there is no CPU to measure on")?;
    let wait = ReceiveWait::of(ask.spin, ask.busy_poll_ns);
    let stream = StreamPlan {
        interface: Some(ask.interface.clone()),
        class: if ask.class_b { Class::B } else { Class::A },
        // A listener takes what comes.
        format: Format::Aaf,
        talk: None,
        listen: Some(ListenPlan { cpu, stream_id: Some(ask.stream_id), wait, xdp: None, talker: Some(talker) }),
        queue: 0,
    };
    let phase = PhasePlan {
        name: "listen".to_owned(),
        period_ns: ask.period_ns,
        length: Length::UntilStopped,
        loads: Vec::new(),
        threads: Vec::new(),
    };
    Ok(Plan {
        command: Vec::new(),
        probe: Probe::Stream(Box::new(stream)),
        cpus: Some(CpuList::from_iter([cpu])),
        load_cpus: None,
        policy: ask.policy.parse()?,
        clock: ask.clock.parse()?,
        wait: Wait::Nanosleep,
        core: Core::Linux,
        offset_ns: 0,
        threshold_ns: None,
        shield: None,
        hold_cpu_awake: false,
        nic: NicPlan::default(),
        // A listener has no deadlines that it could be late for.
        blame: blame::Asked::Only(record::BlameMode::Off),
        blame_cost: false,
        timerlat: false,
        stop_on: None,
        phases: vec![phase],
        profiles: Vec::new(),
        record_path: None,
        executable: PathBuf::from(NAME),
        watch_every: Some(TICK),
    })
}

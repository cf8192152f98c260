//! `punctual echo` and `punctual mirror`: answer the datagrams of `measure udp` and the frames of `measure round-trip`
//! until a signal arrives.

use std::{thread, time::Duration};

use anyhow::{Context, anyhow};
use campaign::{
    Supervisor,
    probe::round_trip::{open_echo, open_mirror},
};
use machine::{CpuList, IrqPriorityHold, Root, usable_cpus};
use probes::{
    guard::Heartbeat,
    round_trip::{Echo, EchoCounts, EchoSettings, Port, Requests},
};
use record::{Outcome, counted, grouped};
use sys::{clock::Clock, memory, packet::ETHERTYPES_MAX, signal};

use crate::{cli, exit::Usage, output};

/// Time between two checks for a termination signal.
const CHECK_EVERY: Duration = Duration::from_millis(50);

pub fn run(options: &cli::Echo) -> anyhow::Result<u8> {
    check_cpu(&options.shared)?;
    let interface = options.interface.as_deref();
    let xdp = match (options.shared.transport.xdp()?, interface) {
        (Some(xdp), Some(interface)) => Some((xdp, interface)),
        (Some(_), None) => {
            let text = "AF_XDP answers the datagrams of one interface: add --interface IF, see `ip link`";
            return Err(Usage(text.to_owned()).into());
        }
        (None, Some(_)) if options.shared.irq_priority.is_none() => {
            let text = "--interface needs --irq-priority or --transport xdp: add one of them, or leave it out";
            return Err(Usage(text.to_owned()).into());
        }
        (None, _) => None,
    };
    let port = open_echo(options.bind, xdp).map_err(|error| anyhow!(error))?;
    let address = port.local_address()?.unwrap_or(options.bind).to_string();
    answer(port, Requests::Datagrams, interface, &address, &options.shared)
}

pub fn mirror(options: &cli::Mirror) -> anyhow::Result<u8> {
    check_cpu(&options.shared)?;
    let cli::Mirror { interface, ethertypes, .. } = options;
    if ethertypes.len() > ETHERTYPES_MAX {
        let text = format!("--ethertype can be given {ETHERTYPES_MAX} times (got {}): give fewer", ethertypes.len());
        return Err(Usage(text).into());
    }
    let xdp = options.shared.transport.xdp()?;
    let (port, own) = open_mirror(interface, ethertypes, xdp).map_err(|error| anyhow!(error))?;
    let [a, b, c, d, e, f] = own;
    let address = format!("{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x}");
    let requests = Requests::Frames { own, ethertypes: ethertypes.clone() };
    answer(port, requests, Some(interface), &address, &options.shared)
}

fn check_cpu(options: &cli::EchoOptions) -> anyhow::Result<()> {
    let cpus: Option<CpuList> = options.cpu.map(|cpu| [cpu].into_iter().collect());
    usable_cpus(&Root::system(), cpus.as_ref())?;
    Ok(())
}

/// Answers until a signal arrives. `interface` is the one on which the requests arrive, if known.
fn answer(
    port: Port,
    requests: Requests,
    interface: Option<&str>,
    address: &str,
    options: &cli::EchoOptions,
) -> anyhow::Result<u8> {
    signal::count_termination().context("cannot watch for Ctrl-C")?;
    if let Some(us) = options.busy_poll {
        let Port::Socket(socket) = &port else {
            return Err(Usage("--busy-poll needs --transport socket: leave it out".to_owned()).into());
        };
        let refused = "the kernel refused busy polling: run as root, or leave out --busy-poll";
        socket.set_busy_poll(us).context(refused)?;
    }
    let what = match requests {
        Requests::Datagrams => "datagrams",
        Requests::Frames { .. } => "frames",
    };
    let settings = EchoSettings { cpu: options.cpu, policy: options.policy };
    let (by, notes) = port.to_record();
    let mut echo = Echo::start(port, requests, settings).context("cannot start a thread: close other programs")?;
    let locked = memory::lock_current_memory().is_ok();
    echo.set_memory_locked(locked);
    let granted = print_grant(&echo, options, locked);
    if let Some(by) = by {
        say!("granted {by}");
    }
    notes.iter().for_each(|note| say!("note: {note}"));
    let irq_hold = hold_irq_priority(interface, options);
    say!("answering on {address}; stop with Ctrl-C");
    if let Some(path) = &options.ready {
        record::file::write_atomic(path, format!("{address}\n").as_bytes())?;
    }
    let heartbeat = Heartbeat::start().context("cannot start a thread: close other programs")?;
    let mut supervisor = Supervisor::start(&Root::system(), &[echo.thread_info()], Clock::Monotonic)
        .with_settings(irq_hold.iter().map(IrqPriorityHold::watch).collect())
        .with_heartbeat(heartbeat);
    let mut reported = 0;
    while signal::termination_requests() == 0 {
        thread::sleep(CHECK_EVERY);
        supervisor.check_if_due(&[]);
        for reason in &supervisor.reasons()[reported..] {
            say!("INVALID {}", reason.text);
            say!("        {}", reason.remedy);
            echo.set_realtime(echo.policy().is_realtime());
        }
        reported = supervisor.reasons().len();
    }
    let counts = echo.stop();
    output::stdout(|out| match options.json {
        true => writeln!(out, "{}", output::json(&to_json(&counts))),
        false => writeln!(out, "{}", summarize(&counts, what)),
    })?;
    let granted = granted && reported == 0 && irq_hold.is_some() == options.irq_priority.is_some();
    Ok(if granted { Outcome::Pass } else { Outcome::Invalid }.exit_status())
}

/// Prints the granted scheduling, and a remedy for each refusal. Returns true if nothing was refused.
fn print_grant(echo: &Echo, options: &cli::EchoOptions, locked: bool) -> bool {
    let grant = echo.grant();
    let cpus: CpuList = grant.cpus.iter().copied().collect();
    let memory = if locked { "memory locked" } else { "memory not locked" };
    say!("granted {} on {}, {memory}", grant.policy, cpus.in_words());
    let mut refused = Vec::new();
    if grant.policy_refused.is_some() {
        refused.push(format!("policy {} was refused", options.policy));
    }
    if grant.pin_refused.is_some() {
        refused.push("pinning was refused".to_owned());
    }
    if !locked && options.policy.is_realtime() {
        refused.push("memory locking was refused".to_owned());
    }
    if !refused.is_empty() {
        say!("INVALID {}: the round-trip times will not be those of a real-time machine", refused.join(", "));
        say!("        {}", machine::RIGHTS);
    }
    refused.is_empty()
}

/// Sets the priority of the interrupt threads of the interface until the returned hold is dropped.
fn hold_irq_priority(interface: Option<&str>, options: &cli::EchoOptions) -> Option<IrqPriorityHold> {
    let (interface, priority) = interface.zip(options.irq_priority)?;
    match IrqPriorityHold::take(&Root::system(), interface, priority) {
        Ok(hold) => {
            say!("granted fifo:{priority} for the interrupts of {interface}");
            Some(hold)
        }
        Err(error) => {
            say!("INVALID the interrupt threads do not have the priority fifo:{priority}: {error}");
            None
        }
    }
}

/// `what` are the answered messages.
fn summarize(counts: &EchoCounts, what: &str) -> String {
    let EchoCounts { answered, strangers, failed, runs, pauses, .. } = counts;
    let [answered, strangers] = [*answered, *strangers].map(grouped);
    let runs = counted(*runs, "run");
    let mut text = format!("answered {answered} {what} of {runs}, ignored {strangers} other {what}");
    if *failed > 0 {
        text += &format!(", the kernel refused {} answers", grouped(*failed));
    }
    if *pauses > 0 {
        let pauses = counted(*pauses, "time");
        text += &format!("; the guard throttled the thread {pauses}, because it used its CPU without sleeping");
    }
    text
}

fn to_json(counts: &EchoCounts) -> serde_json::Value {
    let EchoCounts { answered, strangers, failed, runs, pauses, .. } = counts;
    serde_json::json!({ "answered": answered, "strangers": strangers, "failed": failed, "runs": runs, "rests": pauses })
}

//! `punctual echo`: the end that answers the round trips of `measure udp`, until it is told to stop.

use std::{thread, time::Duration};

use anyhow::Context;
use machine::{CpuList, IrqPriorityHold, Root, usable_cpus};
use probes::udp::{Echo, EchoCounts, EchoSettings};
use record::Outcome;
use sys::{memory, signal, udp::DatagramSocket};

use crate::{cli, output};

/// How often it looks whether it is to stop.
const TICK: Duration = Duration::from_millis(50);

pub fn run(options: &cli::Echo) -> anyhow::Result<u8> {
    signal::count_termination().context("cannot watch for Ctrl-C")?;
    let cpus: Option<CpuList> = options.cpu.map(|cpu| [cpu].into_iter().collect());
    usable_cpus(&Root::system(), cpus.as_ref())?;
    let socket = DatagramSocket::bind(options.bind)
        .with_context(|| format!("cannot answer on {}; choose another address or port with --bind", options.bind))?;
    let address = socket.local_address()?;
    if let Some(us) = options.busy_poll {
        let refused = "the kernel refused busy polling; run as root, or leave out --busy-poll";
        socket.set_busy_poll(us).context(refused)?;
    }
    let settings = EchoSettings { cpu: options.cpu, policy: options.policy };
    let mut echo = Echo::start(socket, settings).context("cannot start a thread; close other programs")?;
    let locked = memory::lock_current_memory().is_ok();
    echo.set_memory_locked(locked);
    let as_asked = say_what_was_granted(&echo, options, locked);
    let served = serve_interrupts(options);
    say!("answering on {address}; Ctrl-C ends it");
    if let Some(path) = &options.ready {
        record::file::write_atomic(path, format!("{address}\n").as_bytes())?;
    }
    while signal::termination_requests() == 0 {
        thread::sleep(TICK);
    }
    let counts = echo.stop();
    output::stdout(|out| match options.json {
        true => writeln!(out, "{:#}", as_json(&counts)),
        false => writeln!(out, "{}", in_words(&counts)),
    })?;
    let as_asked = as_asked && served.is_some() == options.irq_priority.is_some();
    Ok(if as_asked { Outcome::Pass } else { Outcome::Invalid }.exit_status())
}

/// Says it with what to do about what was refused; answers whether all was granted.
fn say_what_was_granted(echo: &Echo, options: &cli::Echo, locked: bool) -> bool {
    let grant = echo.grant();
    let cpus: CpuList = grant.cpus.iter().copied().collect();
    let memory = if locked { "memory locked" } else { "memory not locked" };
    say!("granted {} on {}, {memory}", grant.policy, cpus.in_words());
    let mut refused = Vec::new();
    if grant.policy_refused.is_some() {
        refused.push(format!("policy {} was refused", options.policy));
    }
    if grant.pin_refused.is_some() {
        refused.push("the thread could not be pinned".to_owned());
    }
    if !locked && options.policy.is_realtime() {
        refused.push("memory could not be locked".to_owned());
    }
    if !refused.is_empty() {
        say!("INVALID {}: what it adds to round trips says nothing about real-time work", refused.join(", "));
        say!("        {}", machine::SETCAP);
    }
    refused.is_empty()
}

/// Gives the interrupt threads of the interface their priority for as long as the answer is kept.
fn serve_interrupts(options: &cli::Echo) -> Option<IrqPriorityHold> {
    let (interface, priority) = options.interface.as_deref().zip(options.irq_priority)?;
    match IrqPriorityHold::take(&Root::system(), interface, priority) {
        Ok(hold) => {
            say!("granted fifo:{priority} for the interrupts of {interface}");
            Some(hold)
        }
        Err(error) => {
            say!("INVALID interrupts are not served at the priority asked for: {error}");
            None
        }
    }
}

fn in_words(counts: &EchoCounts) -> String {
    let EchoCounts { answered, strangers, failed, runs, pauses, .. } = counts;
    let mut text = format!("{answered} datagrams of {runs} runs answered, {strangers} from strangers left unanswered");
    if *failed > 0 {
        text += &format!(", {failed} answers refused by the kernel");
    }
    if *pauses > 0 {
        text += &format!("; the guard paused the thread {pauses} times, because it used its CPU without sleeping");
    }
    text
}

fn as_json(counts: &EchoCounts) -> serde_json::Value {
    let EchoCounts { answered, strangers, failed, runs, pauses, .. } = counts;
    serde_json::json!({ "answered": answered, "strangers": strangers, "failed": failed, "runs": runs, "rests": pauses })
}

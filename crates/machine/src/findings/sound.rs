//! Sound cards: interrupts that they share, and the rights of their users.

use record::Finding;

use super::{Check, CheckContext, Explain, evidence, not_applicable, ok, unknown, warn, without};
use crate::{Unreadable, interrupts::DeviceInterrupt, program_limit, tasks::Scheduled};

const CARDS: &str = "proc/asound/cards";

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "sound.shared_interrupt",
        subject: "sound cards and USB controllers that share an interrupt",
        source: "https://wiki.linuxaudio.org/wiki/system_configuration",
        run: shared_interrupt,
    },
    Check {
        id: "sound.latency_request",
        subject: "the right of sound programs to keep the CPUs out of idle states (`/dev/cpu_dma_latency`)",
        source: "Linux, Documentation/power/pm_qos_interface.rst",
        run: latency_device,
    },
    Check {
        id: "sound.device_access",
        subject: "the right to use the sound card",
        source: "https://wiki.linuxaudio.org/wiki/system_configuration",
        run: device_access,
    },
    Check {
        id: "sound.server",
        subject: "a running PipeWire, PulseAudio or JACK without real-time threads",
        source: "https://docs.pipewire.org/page_module_rt.html; jackd(1), --realtime",
        run: server,
    },
];

/// The finding if the machine has no sound card.
fn no_card(context: &CheckContext, id: &str) -> Option<Finding> {
    match crate::sound::cards_text(context.root) {
        Ok(cards) if !cards.contains("no soundcards") => None,
        Ok(cards) => Some(not_applicable(id, "no sound card", evidence(CARDS, &cards))),
        Err(Unreadable::Absent) if context.root.exists("proc/sys/kernel") => {
            Some(not_applicable(id, "no sound card", context.evidence(CARDS)))
        }
        Err(why) => Some(unknown(id, "sound cards not readable", without(CARDS, why))),
    }
}

fn shared_interrupt(context: &CheckContext) -> Finding {
    const ID: &str = "sound.shared_interrupt";
    if let Some(finding) = no_card(context, ID) {
        return finding;
    }
    let Some(devices) = context.interrupts() else {
        return unknown(ID, "interrupts not readable", context.evidence("proc/interrupts"));
    };
    let is_sound = |irq: &&DeviceInterrupt| {
        ["snd", "xhci", "ehci", "uhci", "ohci", "dwc2", "dwc_otg"].iter().any(|driver| irq.handlers.contains(driver))
    };
    let of_sound: Vec<&DeviceInterrupt> = devices.iter().filter(is_sound).collect();
    let read = |irq: &DeviceInterrupt| format!("/proc/interrupts = {}: {}", irq.number, irq.handlers);
    // Handlers of one interrupt are separated by commas.
    match (of_sound.first(), of_sound.iter().find(|irq| irq.handlers.contains(','))) {
        (None, _) => unknown(ID, "the interrupt of the sound card is not known", "/proc/interrupts: no snd, no USB controller"),
        (Some(first), None) => ok(ID, "sound cards and USB controllers have interrupts of their own", read(first)),
        (_, Some(irq)) => warn(ID, format!("several devices share interrupt {}: {}", irq.number, irq.handlers), read(irq)).because(
            "The handler of the other device runs first or together with that of the sound card, and so does its interrupt thread.",
            "plug the sound card into another port or slot, or unload the driver of the other device",
        ),
    }
}

/// JACK and PipeWire open this device to keep the CPUs awake while they play.
fn latency_device(context: &CheckContext) -> Finding {
    const ID: &str = "sound.latency_request";
    const PATH: &str = program_limit::DEVICE;
    if let Some(finding) = no_card(context, ID) {
        return finding;
    }
    if !context.root.exists(PATH) && context.in_container() {
        let title = "the limit for idle states that programs can set is not visible in this container";
        return unknown(ID, title, without(PATH, Unreadable::Absent));
    }
    if !context.root.exists(PATH) {
        let title = "this kernel has no limit for idle states that programs can set";
        return not_applicable(ID, title, format!("/{PATH} does not exist"));
    }
    match context.root.may_write(PATH) {
        Some(true) => ok(ID, "programs may keep the CPUs out of idle states", format!("/{PATH} may be written")),
        Some(false) => warn(ID, "programs may not keep the CPUs out of idle states", format!("/{PATH} may not be written"))
            .because(
                "JACK and other programs ask for a short wake-up while they play, and are refused.",
                "echo 'KERNEL==\"cpu_dma_latency\", GROUP=\"audio\", MODE=\"0660\"' | sudo tee /etc/udev/rules.d/99-cpu-dma-latency.rules && sudo udevadm trigger",
            )
            .permanent(),
        None => unknown(ID, "rights to limit idle states not known for a recorded machine", format!("/{PATH}")),
    }
}

fn device_access(context: &CheckContext) -> Finding {
    const ID: &str = "sound.device_access";
    if let Some(finding) = no_card(context, ID) {
        return finding;
    }
    let devices = context.root.list("dev/snd");
    let Some(device) = devices.iter().find(|name| name.starts_with("control")).map(|name| format!("dev/snd/{name}"))
    else {
        return unknown(ID, "the devices of the sound card are not visible", "/dev/snd: no control*");
    };
    match context.root.may_write(&device) {
        Some(true) => ok(ID, "may use the sound card", format!("/{device} may be written")),
        Some(false) => warn(ID, "may not use the sound card", format!("/{device} may not be written"))
            .because(
                "The card belongs to a group, mostly `audio`, or to the user at the screen.",
                "sudo usermod --append --groups audio \"$USER\"   # then log in again",
            )
            .permanent(),
        None => unknown(ID, "rights to use the sound card not known for a recorded machine", format!("/{device}")),
    }
}

/// The names of the processes of sound servers.
const SERVERS: [&str; 4] = ["pipewire", "jackd", "jackdbus", "pulseaudio"];

/// A sound server needs a real-time thread that moves the samples.
fn server(context: &CheckContext) -> Finding {
    const ID: &str = "sound.server";
    let Some(threads) = context.threads() else { return context.unseen_threads(ID) };
    let is_server = |thread: &&Scheduled| thread.id == thread.process && SERVERS.contains(&thread.name.as_str());
    let servers: Vec<&Scheduled> = threads.iter().filter(is_server).collect();
    let Some(first) = servers.first() else {
        return not_applicable(ID, "no sound server runs", format!("/proc/*/comm: no {}", SERVERS.join(", ")));
    };
    let realtime = |server: &Scheduled| {
        let own = threads.iter().filter(|thread| thread.process == server.process);
        own.filter_map(|thread| Some((thread, thread.realtime?))).next()
    };
    let path = |thread: &Scheduled| format!("proc/{}/task/{}/stat", thread.process, thread.id);
    let ordinary = servers.iter().find(|server| realtime(server).is_none());
    // Of a thread that could not be read, the policy is not known.
    let unread = servers.iter().find(|server| {
        let listed = context.root.list(&format!("proc/{}/task", server.process)).len();
        realtime(server).is_none() && listed > threads.iter().filter(|thread| thread.process == server.process).count()
    });
    if let Some(server) = unread {
        return unknown(
            ID,
            format!("not all threads of {} are readable", server.name),
            context.evidence(&path(server)),
        );
    }
    let Some(ordinary) = ordinary else {
        let (thread, policy) = realtime(first).expect("each of them has one");
        let read = evidence(&path(thread), &format!("{}, {policy}", thread.name));
        return ok(ID, format!("{} has a real-time thread", first.name), read);
    };
    let remedy = match ordinary.name.as_str() {
        "jackd" | "jackdbus" => "start it with --realtime, with the right to real-time priorities (`rights.realtime`)",
        _ => {
            "install rtkit, or give its user the right to real-time priorities (`rights.realtime`); then start it again"
        }
    };
    warn(ID, format!("{} has no real-time thread", ordinary.name), evidence(&path(ordinary), &ordinary.name))
        .because("Other programs delay it, and the sound has gaps.", remedy)
        .permanent()
}

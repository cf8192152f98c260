//! Sound cards: interrupts that they share, and the rights of their users.

use record::Finding;

use super::{Check, CheckContext, Explain, evidence, not_applicable, ok, unknown, warn, without};
use crate::interrupts::DeviceInterrupt;

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
];

/// The finding if the machine has no sound card.
fn no_card(context: &CheckContext, id: &str) -> Option<Finding> {
    match context.root.try_read(CARDS) {
        Ok(cards) if !cards.contains("no soundcards") => None,
        Ok(cards) => Some(not_applicable(id, "no sound card", evidence(CARDS, &cards))),
        Err(crate::Unreadable::Absent) if context.root.exists("proc/sys/kernel") => {
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
    const PATH: &str = "dev/cpu_dma_latency";
    if let Some(finding) = no_card(context, ID) {
        return finding;
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

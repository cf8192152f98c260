//! The interrupt of a source: the priority of its thread, and its CPU.

use std::fs;

use anyhow::{Context, Result, ensure};
use record::{Record, Setting};

use super::{HPET, input_device};
use crate::inside::{expect, punctual, read, recorded, start, wait_until, write};

/// Length of the delays, and the limit of times without one.
const DELAY_NS: i64 = 5_000_000;
const UNDISTURBED_NS: i64 = 2_000_000;

/// Measures the HPET while the thread of another interrupt, at FIFO 50, runs for 5 ms at a time.
fn disturbed(name: &str, more: &str) -> Result<Record> {
    let run = start(&format!("measure {HPET} --policy fifo:80 --duration 2s --quiet --record {name} {more}"))?;
    wait_until("the interrupt exists", || Ok(hpet_interrupt().is_some()))?;
    for _ in 0..20 {
        std::thread::sleep(std::time::Duration::from_millis(53));
        write("/dev/hold", &format!("thread {DELAY_NS}"))?;
    }
    expect(0, &run.wait_with_output()?)?;
    recorded(name)
}

/// The number of the HPET's interrupt while it is open.
fn hpet_interrupt() -> Option<u32> {
    let has_handler = |number: &u32| {
        let files = fs::read_dir(format!("/proc/irq/{number}")).into_iter().flatten().flatten();
        files.into_iter().any(|file| file.file_name().to_string_lossy().starts_with("hpet"))
    };
    let numbers =
        fs::read_dir("/proc/irq").ok()?.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.into_iter().find(has_handler)
}

fn setting<'a>(record: &'a Record, part: &str) -> Result<&'a Setting> {
    record.settings.iter().find(|setting| setting.name.contains(part)).with_context(|| format!("{:?}", record.settings))
}

/// At a higher priority, the source's interrupt thread does not wait for the thread of another interrupt.
pub fn a_priority_lets_a_thread_preempt_others() -> Result<()> {
    let before = disturbed("irq-50", "")?;
    ensure!(before.series[0].max_ns >= Some(DELAY_NS * 3 / 4), "not delayed: {:?}", before.series[0].max_ns);
    let raised = disturbed("irq-85", "--irq-priority 85 --irq-cpu 0")?;
    ensure!(raised.validity.valid, "{:?}", raised.validity.reasons);
    ensure!(raised.series[0].max_ns < Some(UNDISTURBED_NS), "delayed: {:?}", raised.series[0].max_ns);
    let priority = setting(&raised, "hpet irq/")?;
    let values = (priority.before.as_str(), priority.during.as_str(), priority.after.as_deref());
    // The thread ends with the source, before the settings are put back.
    ensure!(values == ("fifo:50", "fifo:85", None), "{priority:?}");
    setting(&raised, "smp_affinity_list")?;
    Ok(())
}

/// The interrupt of a keyboard is that of its controller, and gets its priority back after a kill.
pub fn a_device_shares_the_interrupt_of_its_controller() -> Result<()> {
    let of_keyboard = |name: &String| {
        read(&format!("/sys/class/input/{name}/device/name")).is_ok_and(|device| device.contains("keyboard"))
    };
    let mut inputs =
        fs::read_dir("/sys/class/input")?.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let keyboard = inputs.find(|name| name.starts_with("event") && of_keyboard(name)).context("no keyboard")?;
    let thread = || -> Result<String> {
        let processes = fs::read_dir("/proc")?.flatten().map(|entry| entry.path());
        let mut own = processes
            .filter(|path| fs::read_to_string(path.join("comm")).is_ok_and(|name| name.trim() == "irq/1-i8042"));
        let stat = fs::read_to_string(own.next().context("no interrupt thread of the keyboard")?.join("stat"))?;
        Ok(stat.split_whitespace().nth(39).context("no priority")?.to_owned())
    };
    ensure!(thread()? == "50", "{}", thread()?);
    let mut run =
        start(&format!("measure interrupt --source evdev:{keyboard} --irq-priority 61 --duration 60s --no-record"))?;
    wait_until("the priority is set", || Ok(thread()? == "61"))?;
    run.kill()?;
    run.wait()?;
    let restored = expect(0, &punctual("restore")?)?;
    ensure!(thread()? == "50" && restored.contains("settings"), "{restored}");
    Ok(())
}

/// A source without a known interrupt makes the run invalid, with advice.
pub fn unknown_interrupts_are_reported() -> Result<()> {
    let device = input_device()?;
    let arguments =
        format!("measure interrupt --source evdev:{device} --irq-priority 85 --duration 1s --record unknown");
    expect(4, &punctual(&arguments)?)?;
    let record = recorded("unknown")?;
    let reason = record.validity.reasons.iter().find(|reason| reason.id == "irq.refused").context("no reason")?;
    ensure!(reason.text.contains(&format!("the interrupt of evdev:{device} is not known")), "{reason:?}");
    ensure!(reason.remedy.contains("leave out --irq-priority"), "{reason:?}");
    Ok(())
}

/// The interrupt moves to another CPU for the run.
pub fn an_interrupt_moves_to_another_cpu() -> Result<()> {
    let run = start("measure interrupt --source hpet --cpu 1 --irq-cpu 1 --duration 2s --quiet --record moved")?;
    let cpus = || -> Result<String> {
        let number = hpet_interrupt().context("no interrupt of the HPET")?;
        read(&format!("/proc/irq/{number}/smp_affinity_list"))
    };
    wait_until("the interrupt is moved", || Ok(cpus().is_ok_and(|cpus| cpus == "1")))?;
    run.wait_with_output()?;
    let record = recorded("moved")?;
    let moved = setting(&record, "smp_affinity_list")?;
    ensure!(moved.during == "1" && moved.after.as_ref() == Some(&moved.before) && moved.before != "1", "{moved:?}");
    Ok(())
}

//! Control lines of a serial port whose output RTS is wired to its input CTS, by the module `ports`.

use anyhow::{Result, ensure};
use record::{Record, Zero};

use super::{contain, interrupts};
use crate::inside::{expect, punctual, read, recorded, run, write};

/// Parameter file of the module.
fn file(parameter: &str) -> String {
    format!("/sys/module/ports/parameters/{parameter}")
}

/// Measures the port for 3 s, with an edge every 10 ms.
fn measured(name: &str) -> Result<Record> {
    let arguments = "--cpu 0 --period 10ms --duration 3s --quiet";
    expect(0, &punctual(&format!("measure interrupt --source serial:ttyWire0 {arguments} --record {name}"))?)?;
    recorded(name)
}

/// Times begin at the edge, contain the way of the wire, and each edge is one interrupt. The settings of the port are put
/// back.
pub fn each_edge_has_its_interrupt() -> Result<()> {
    let list = expect(0, &punctual("measure interrupt --list")?)?;
    ensure!(list.contains("serial:ttyWire0"), "{list}");
    const WIRE_NS: i64 = 2_000_000;
    let settings = || Ok::<_, anyhow::Error>(run("stty -a -F /dev/ttyWire0")?.stdout);
    let before = settings()?;
    write(&file("delay_ns"), &WIRE_NS.to_string())?;
    let record = measured("serial")?;
    write(&file("delay_ns"), "20000")?;
    ensure!(!before.is_empty() && settings()? == before, "the settings of the port were not put back");
    ensure!(record.validity.valid, "{:?}", record.validity.reasons);
    let (series, figures) = interrupts(&record)?;
    ensure!(figures.zero == Zero::Edge && figures.device == "CTS (pin 8) of ttyWire0", "{figures:?}");
    ensure!(figures.driven_by.as_deref() == Some("RTS (pin 7)"), "{figures:?}");
    ensure!(series.samples.abs_diff(300) <= 3, "{} interrupts", series.samples);
    ensure!(figures.lost + figures.spurious + figures.unanswered == 0, "{figures:?}");
    contain(series, WIRE_NS)
}

/// Edges without an interrupt are counted exactly, and move no other.
pub fn edges_without_an_interrupt_are_counted() -> Result<()> {
    write(&file("lose_every"), "7")?;
    let before: u64 = read(&file("lost"))?.parse()?;
    let record = measured("serial-lost")?;
    write(&file("lose_every"), "0")?;
    let lost = read(&file("lost"))?.parse::<u64>()? - before;
    let (series, figures) = interrupts(&record)?;
    ensure!(lost > 30 && figures.unanswered.abs_diff(lost) <= 1 && figures.lost == 0, "{lost} {figures:?}");
    ensure!((series.samples + figures.unanswered).abs_diff(300) <= 3, "{} {figures:?}", series.samples);
    // One after the last interrupt has no time.
    ensure!(figures.unanswered - series.losses.total() <= 1, "{:?} {figures:?}", series.losses);
    ensure!(series.max_ns < Some(5_000_000), "an edge was taken for that of another period: {:?}", series.max_ns);
    Ok(())
}

/// Errors for ports that cannot be used.
pub fn unusable_ports_are_reported() -> Result<()> {
    for (source, remedy) in [
        ("serial:ttyNone", "see `punctual measure interrupt --list`"),
        ("serial:ttyS0", "the kernel uses /dev/ttyS0 as its console"),
        ("serial:ttyWire0/RTS-DCD", "ldattach 18"),
    ] {
        let output = punctual(&format!("measure interrupt --source {source} --duration 300ms --no-record"))?;
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        ensure!(output.status.code().is_some_and(|code| code == 1 || code == 64), "{source}: {:?}", output.status);
        ensure!(error.contains(remedy), "{source}: {error}");
    }
    Ok(())
}

//! Campaigns where time is virtual: what the host does besides takes none of it.

use std::{fs, path::Path};

use anyhow::{Result, ensure};
use record::file;

use crate::inside::{expect, punctual};

/// Two loads, twenty seconds each, with a rest between; few wake-ups, so that it passes quickly outside.
const TABLE: &str = r#"
    name = "planned"
    rest = "1s"
    [probe]
    kind = "timer"
    period = "10ms"
    duration = "20s"
    blame = "off"
    [[load]]
    name = "idle"
    [[load]]
    name = "timer"
    run = ["timer:period=100ms"]
"#;

/// A campaign takes as long as its plan says, within 5 %.
pub fn takes_as_long_as_planned() -> Result<()> {
    let (table, dir) = ("/tmp/planned.toml", format!("{}/planned", guest::initramfs::OUT));
    fs::create_dir_all("/tmp")?;
    fs::write(table, TABLE)?;
    expect(0, &punctual(&format!("run {table} --quiet --dir {dir}"))?)?;
    let campaign = file::read_campaign(&Path::new(&dir).join("campaign.json"))?;
    ensure!(campaign.is_complete() && campaign.scenarios.len() == 2, "{campaign:?}");
    let ratio = campaign.took_ns as f64 / campaign.planned_ns as f64;
    println!("  {ratio:.3} of the planned time");
    ensure!((0.95..=1.05).contains(&ratio), "took {ratio:.3} of the planned time");
    Ok(())
}

//! Campaigns with virtual time, which does not depend on the host's load.

use std::{fs, path::Path};

use anyhow::{Result, ensure};
use record::file;

use crate::inside::{expect, punctual};

/// Two loads of twenty seconds each with a rest in between. Few wake-ups, so that it takes little host time.
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

/// A campaign takes as long as planned, within 5 %.
pub fn takes_as_long_as_planned() -> Result<()> {
    let (table, dir) = ("/tmp/planned.toml", format!("{}/planned", guest::initramfs::OUT));
    fs::create_dir_all("/tmp")?;
    fs::write(table, TABLE)?;
    expect(0, &punctual(&format!("run {table} --quiet --dir {dir}"))?)?;
    let campaign = file::read_campaign(&Path::new(&dir).join("campaign.json"))?;
    ensure!(campaign.is_complete() && campaign.scenarios.len() == 2, "{campaign:?}");
    let ratio = campaign.took_ns as f64 / campaign.planned_ns as f64;
    println!("  {ratio:.3} of the planned time");
    ensure!((0.95..=1.05).contains(&ratio), "the duration was {ratio:.3} of the planned time");
    Ok(())
}

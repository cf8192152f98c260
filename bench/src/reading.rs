//! Speed of reading a trace: punctual's reader and `trace-cmd report` on the same file.

use std::{
    io::{Read, Write},
    os::unix::net::UnixStream,
    path::Path,
    process::Command,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use blame::{Instance, Settings, Tracefs, trace::Dat};
use sys::usage::ThreadUsage;

use crate::{
    rounds::{Pair, alternate},
    row::{Row, Unit},
    run::run,
};

/// punctual must be at least twenty times as fast.
const LIMIT: f64 = 1.0 / 20.0;
/// Ring size, KiB: some hundred thousand events a CPU.
const RING_KB: u32 = 16 << 10;
/// Long enough to fill the rings on most machines.
const TRACED: Duration = Duration::from_secs(3);

/// Measures the row.
pub fn measure(rounds: usize) -> Result<Row> {
    let file = tempfile::NamedTempFile::new().context("cannot create a file for a trace")?;
    record(file.path())?;
    let mut events = 0;
    let pairs = alternate(
        rounds,
        || {
            let before_ns = ThreadUsage::so_far().cpu_time_ns;
            events = read(file.path())?;
            Ok((ThreadUsage::so_far().cpu_time_ns - before_ns) as f64)
        },
        || report(file.path()),
    )?;
    ensure!(events > 0, "the trace has no events");
    let each = |ns: f64| ns / events as f64;
    let pairs = pairs.into_iter().map(|Pair { own, peer }| Pair { own: each(own), peer: each(peer) });
    let remark = format!("compared with trace-cmd report; {events} events");
    Ok(Row::compared("reading a trace, CPU time an event", Unit::Time, pairs).with_target(LIMIT).with_remark(remark))
}

/// Traces two threads that continuously wake each other.
fn record(path: &Path) -> Result<()> {
    let settings = Settings { buffer_kb_per_cpu: RING_KB, ..Settings::default() };
    let mut instance = Instance::create(&Tracefs::open()?, &settings).context("cannot trace")?;
    let (mut near, mut far) = UnixStream::pair()?;
    let echo = thread::spawn(move || {
        let mut byte = [0];
        while far.read_exact(&mut byte).and_then(|()| far.write_all(&byte)).is_ok() {}
    });
    let begin = Instant::now();
    while begin.elapsed() < TRACED {
        near.write_all(&[0])?;
        near.read_exact(&mut [0])?;
    }
    instance.set_on(false)?;
    drop(near);
    let _ = echo.join();
    Ok(instance.write_dat(path)?)
}

/// Reads all events, and returns their number.
fn read(path: &Path) -> Result<usize> {
    let mut dat = Dat::open(path)?;
    let mut events = 0;
    for cpu in dat.cpus().collect::<Vec<_>>() {
        dat.for_each_chunk(cpu, |piece| events += piece.len())?;
    }
    Ok(events)
}

/// CPU time of trace-cmd, ns. It mounts file systems, so it gets a mount namespace of its own; its output is discarded.
fn report(path: &Path) -> Result<f64> {
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", "exec trace-cmd report -i \"$0\" >/dev/null"]).arg(path);
    let run = run(&mut command, &[0], "install it: sudo apt-get install util-linux trace-cmd")?;
    Ok(run.usage.cpu_time.as_nanos() as f64)
}

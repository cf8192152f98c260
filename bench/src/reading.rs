//! How fast a trace is read: the same file by punctual's reader and by `trace-cmd report`.

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

/// At least twenty times as fast.
const LIMIT: f64 = 1.0 / 20.0;
/// Some hundred thousand events a CPU.
const RING_KB: u32 = 16 << 10;
/// As long as that takes to fill on most machines.
const TRACED: Duration = Duration::from_secs(3);

/// Takes the row.
pub fn measure(rounds: usize) -> Result<Row> {
    let file = tempfile::NamedTempFile::new().context("cannot make a file for a trace")?;
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
    ensure!(events > 0, "nothing was traced");
    let each = |ns: f64| ns / events as f64;
    let pairs = pairs.into_iter().map(|Pair { ours, theirs }| Pair { ours: each(ours), theirs: each(theirs) });
    let remark = format!("the peer is trace-cmd report; {events} events");
    Ok(Row::compared("reading a trace, CPU time an event", Unit::Time, pairs).with_target(LIMIT).with_remark(remark))
}

/// Traces two threads that wake each other all the time.
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

/// Reads all events; how many.
fn read(path: &Path) -> Result<usize> {
    let mut dat = Dat::open(path)?;
    let mut events = 0;
    for cpu in dat.cpus().collect::<Vec<_>>() {
        dat.for_each_chunk(cpu, |piece| events += piece.len())?;
    }
    Ok(events)
}

/// CPU time of trace-cmd, ns. It mounts what it needs where only it sees that, and writes to nowhere.
fn report(path: &Path) -> Result<f64> {
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", "exec trace-cmd report -i \"$0\" >/dev/null"]).arg(path);
    let run = run(&mut command, &[0], "install it: sudo apt-get install util-linux trace-cmd")?;
    Ok(run.usage.cpu_time.as_nanos() as f64)
}

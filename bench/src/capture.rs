//! CPU time of analysing a capture of a stream with punctual, and of printing it with tshark.

use std::{
    fs::File,
    io::{BufWriter, Write},
    path::Path,
    process::Command,
};

use anyhow::{Context, Result, ensure};
use frames::{Class, Format, Payload, Stream};

use crate::{
    punctual::Punctual,
    rounds::alternate,
    row::{Row, Unit},
    run::run,
};

/// punctual must be at least two hundred times as fast.
const LIMIT: f64 = 1.0 / 200.0;
/// Frames of the smallest file. The time of a frame is the slope between two files, which excludes the start.
const FEW: u64 = 2_000;
/// Frames of the file that tshark reads in a second or two.
const MORE: u64 = 60_000;
/// Frames of the file that punctual reads in less than a second, some 200 MB.
const MANY: u64 = 2_000_000;
/// Upper limit for the CPU time of a gigabyte from the page cache.
const GIGABYTE_NS: f64 = 1e9;

/// Approximate duration, s.
pub fn seconds(rounds: usize) -> u64 {
    4 + rounds as u64 * 4
}

/// Measures the rows; skips the comparison if tshark is not installed.
pub fn measure(punctual: &Punctual, rounds: usize) -> Result<Vec<Row>> {
    let (few, more, many) = (written(FEW)?, written(MORE)?, written(MANY)?);
    let mut rows = Vec::new();
    if Command::new("tshark").arg("--version").output().is_ok_and(|output| output.status.success()) {
        let own = || {
            let start = analyse(punctual, few.path(), FEW)?;
            Ok((analyse(punctual, many.path(), MANY)? - start) / (MANY - FEW) as f64)
        };
        let peer = || {
            let start = print(few.path())?;
            Ok((print(more.path())? - start) / (MORE - FEW) as f64)
        };
        let pairs = alternate(rounds, own, peer)?;
        let name = "capture, CPU time a frame, vs tshark";
        let remark = format!("slope from {FEW} to {MANY} frames, of tshark to {MORE}");
        rows.push(Row::compared(name, Unit::Time, pairs).with_target(LIMIT).with_remark(remark));
    } else {
        eprintln!("SKIPPED: comparison with tshark; install it: sudo apt-get install tshark");
    }
    let bytes = many.as_file().metadata()?.len() as f64;
    let figures = (0..rounds).map(|_| Ok(analyse(punctual, many.path(), MANY)? * 1e9 / bytes));
    let figures = figures.collect::<Result<Vec<_>>>()?;
    rows.push(Row::alone("capture, CPU time a GB", Unit::Time, figures, GIGABYTE_NS));
    Ok(rows)
}

/// A capture of a class A stream with `count` frames and a little jitter.
fn written(count: u64) -> Result<tempfile::NamedTempFile> {
    let file = tempfile::NamedTempFile::new().context("cannot create a file for a capture")?;
    write(file.as_file(), count).context("cannot write a capture")?;
    Ok(file)
}

fn write(file: &File, count: u64) -> std::io::Result<()> {
    let source = [0x02, 0, 0, 0, 0, 1];
    let stream = Stream {
        source,
        destination: frames::ethernet::multicast_of(source, 1),
        tci: Class::A.tci(),
        stream_id: frames::stream_id(source, 1),
        format: Format::Aaf,
        channels: frames::template::STEREO,
        samples: Class::A.samples(),
    };
    let mut frame = stream.frame();
    let mut out = BufWriter::new(file);
    // pcap with nanoseconds, version 2.4, Ethernet.
    for word in [0xa1b2_3c4d, 4 << 16 | 2, 0, 0, 262_144, 1u32] {
        out.write_all(&word.to_le_bytes())?;
    }
    for seq in 0..count {
        frame.patch(&Payload { seq, scheduled_ns: seq.cast_signed() * 125_000, ..Payload::default() }, 2_000_000);
        let (at_ns, bytes) = (seq * 125_000 + seq * 7919 % 401, frame.bytes());
        let length = bytes.len() as u64;
        for word in [at_ns / 1_000_000_000, at_ns % 1_000_000_000, length, length] {
            out.write_all(&u32::try_from(word).map_err(std::io::Error::other)?.to_le_bytes())?;
        }
        out.write_all(bytes)?;
    }
    out.flush()
}

/// CPU time of punctual, ns.
fn analyse(punctual: &Punctual, path: &Path, count: u64) -> Result<f64> {
    let (record, usage) = punctual.capture(path)?;
    let frames = record.capture.map_or(0, |capture| capture.frames);
    ensure!(frames == count, "punctual saw {frames} of {count} frames");
    Ok(usage.cpu_time.as_nanos() as f64)
}

/// CPU time of tshark, ns. It prints number, timestamp, interval and sequence number of each frame.
fn print(path: &Path) -> Result<f64> {
    let mut command = Command::new("sh");
    command.args(["-c", "exec tshark -n -r \"$0\" -T fields \"$@\" >/dev/null"]).arg(path);
    for field in ["frame.number", "frame.time_epoch", "frame.time_delta", "aaf.seqnum"] {
        command.args(["-e", field]);
    }
    let run = run(&mut command, &[0], "install it: sudo apt-get install tshark")?;
    Ok(run.usage.cpu_time.as_nanos() as f64)
}

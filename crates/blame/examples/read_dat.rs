//! Reads a trace file of trace-cmd completely and prints the speed: `read_dat FILE`.

use std::{env, path::Path, process::ExitCode, time::Instant};

use blame::trace::{Dat, DatError};

fn main() -> ExitCode {
    let Some(file) = env::args_os().nth(1) else {
        eprintln!("usage: read_dat FILE");
        return ExitCode::from(64);
    };
    match read(Path::new(&file)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn read(path: &Path) -> Result<(), DatError> {
    let start = Instant::now();
    let mut dat = Dat::open(path)?;
    let opened = start.elapsed();
    let (mut count, mut lost) = (0, 0);
    for cpu in dat.cpus().collect::<Vec<_>>() {
        lost += dat.for_each_chunk(cpu, |events| count += events.len())?.lost_events;
    }
    let took = start.elapsed();
    let a_second = count as f64 / took.as_secs_f64();
    println!("{count} events, {lost} lost, in {took:.1?} ({opened:.1?} of it to open): {a_second:.0} a second");
    Ok(())
}

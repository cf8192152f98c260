//! Runs loads by hand: `load run MILLISECONDS CPUS SPEC...` starts loads, prints one line when they work, stops them
//! after the given time and prints their proof as JSON. Like `punctual`, the program is also the worker of its loads.
//!
//! `cargo run -p punctual-loads --example load -- run 1000 0-1 switch:10us timer:98`

use std::{env, error::Error, process::ExitCode, thread, time::Duration};

use loads::{LoadSpec, Running, WORKER_COMMAND, worker};

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match &arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [command, spec, "--cpus", cpus] if *command == WORKER_COMMAND => Ok(worker(&spec.parse()?, &cpus.parse()?)?),
        ["run", milliseconds, cpus, specs @ ..] if !specs.is_empty() => {
            let specs: Vec<LoadSpec> = specs.iter().map(|spec| spec.parse()).collect::<Result<_, _>>()?;
            let running = Running::start(&env::current_exe()?, &specs, &cpus.parse()?)?;
            println!("at work");
            thread::sleep(Duration::from_millis(milliseconds.parse()?));
            println!("{}", serde_json::to_string(&running.stop())?);
            Ok(())
        }
        _ => Err("usage: load run MILLISECONDS CPUS SPEC...".into()),
    }
}

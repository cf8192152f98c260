//! `punctual measure threads`: several periodic threads, in one run or on each pair of CPUs.

use record::counted;
use std::time::Instant;

use analysis::format_duration;
use campaign::{
    Matrix, Plan, Probe, ThreadPlan,
    probe::{
        Definition, ThreadsProbe, choose_cpu,
        threads::{self, ThreadAsk},
    },
};
use loads::LoadSpec;
use machine::{CpuList, Interrupts, Root, isolated_cpus, usable_cpus};

use super::Results;
use crate::{
    cli::{Tables, Threads},
    exit::Usage,
    output::{self, RecordFiles},
};

pub fn run(options: &Threads) -> anyhow::Result<u8> {
    if options.matrix {
        return matrix(options);
    }
    let (common, wake_ups) = (&options.common, &options.wake_ups);
    let results = Results::prepare(common)?;
    let others = output::find_references(&wake_ups.against)?;
    let mut record = output::measure(&plan(options, &results.files)?, common.output)?;
    output::judge(&mut record, &wake_ups.profiles)?;
    output::compare_with(&mut record, &others);
    results.deliver(&record, |style, width| report::terminal::summary(&record, style, width))?;
    wake_ups.status(&record, &results)
}

/// The plan of these options, without a matrix.
pub fn plan(options: &Threads, files: &RecordFiles) -> anyhow::Result<Plan> {
    let (common, wake_ups) = (&options.common, &options.wake_ups);
    let threads = plan_threads(options)?;
    let period_ns = threads.iter().map(|thread| thread.period_ns).min().unwrap_or(options.period);
    let phase = super::phase(common, period_ns, super::length(common), threads);
    let cpus = phase.threads.iter().map(|thread| thread.cpu).collect();
    Ok(Plan {
        cpus: Some(cpus),
        shield: options.placement.shield.clone(),
        offset_ns: options.offset,
        blame_cost: options.blame_cost,
        ..wake_ups.apply(super::plan(common, files, probe(options)?, vec![phase])?)?
    })
}

/// The threads to measure, each with its CPU.
fn plan_threads(options: &Threads) -> anyhow::Result<Vec<ThreadPlan>> {
    let root = Root::system();
    let shield = options.placement.shield.as_ref();
    if let Some(count) = options.threads {
        let cpus = usable_cpus(&root, options.cpus.as_ref().or(shield))?;
        return Ok(threads::spread(count as usize, options.period, options.policy, &cpus));
    }
    let asks = requested_threads(options)?;
    Ok(threads::place(&asks, choose_cpu(&root, None, shield, options.wake_ups.core)?))
}

/// The threads of the options, with checked names.
fn requested_threads(options: &Threads) -> anyhow::Result<Vec<ThreadAsk>> {
    let named: Vec<ThreadAsk> = options.named.iter().map(|spec| spec.0.clone()).collect();
    let probe = if named.is_empty() { ThreadsProbe::default() } else { ThreadsProbe { threads: named } };
    probe.check().map_err(|error| Usage(error.to_string()))?;
    Ok(probe.threads)
}

fn probe(options: &Threads) -> anyhow::Result<Probe> {
    Ok(Probe::Threads(ThreadsProbe { threads: requested_threads(options)? }))
}

fn matrix(options: &Threads) -> anyhow::Result<u8> {
    let (common, wake_ups) = (&options.common, &options.wake_ups);
    let results = Results::prepare(common)?;
    let others = output::find_references(&wake_ups.against)?;
    let root = Root::system();
    let shield = options.placement.shield.as_ref();
    let cpus = usable_cpus(&root, options.cpus.as_ref().or(shield))?;
    let matrix =
        Matrix::new(pair(options)?, cpus.clone(), matrix_loads(options)?, options.cell_duration, options.rounds);
    let plan = Plan {
        cpus: Some(cpus.clone()),
        load_cpus: common.load_cpus.clone().or_else(|| housekeeping_cpus(&root, &cpus).filter(|_| shield.is_none())),
        shield: shield.cloned(),
        blame_cost: options.blame_cost,
        ..wake_ups.apply(super::plan(common, &results.files, probe(options)?, matrix.phases())?)?
    };
    output::announce(common.output, "matrix", &describe(&matrix));
    let (before, began) = (Interrupts::read(&root), Instant::now());
    let mut record = output::measure(&plan, common.output)?;
    record.cpu_facts = machine::cpu_facts(&root, &cpus, &before, began.elapsed());
    output::judge(&mut record, &wake_ups.profiles)?;
    output::compare_with(&mut record, &others);
    let figures = Tables::figures(&options.show);
    results.deliver(&record, |style, width| report::terminal::matrix(&record, &figures, style, width))?;
    wake_ups.status(&record, &results)
}

/// The threads of the rows and of the columns.
fn pair(options: &Threads) -> anyhow::Result<[ThreadAsk; 2]> {
    let asks = requested_threads(options)?;
    if asks.iter().any(|ask| ask.cpu.is_some()) {
        return Err(Usage("--matrix measures on every pair of CPUs: leave out cpu= or --matrix".to_owned()).into());
    }
    let two = "--matrix takes two threads: give --thread twice, or not at all for base=25us and servo=1ms";
    asks.try_into().map_err(|_| Usage(two.to_owned()).into())
}

/// The loads of the second table.
fn matrix_loads(options: &Threads) -> anyhow::Result<Vec<LoadSpec>> {
    if options.common.loads.is_empty() {
        return Ok(vec!["cpu:shell".parse()?]);
    }
    Ok(super::loads(&options.common))
}

/// The contents and the duration of a matrix.
fn describe(matrix: &Matrix) -> String {
    let pairs = matrix.cpus.len() * matrix.cpus.len();
    let loads: Vec<String> = matrix.loads.iter().map(ToString::to_string).collect();
    format!(
        "{} of {}, at rest and with {}, {} for each cell in each of {}: {} in total",
        counted(pairs as u64, "pair"),
        matrix.cpus.in_words(),
        loads.join(", "),
        format_duration(matrix.round_ns),
        counted(matrix.rounds.into(), "round"),
        format_duration(matrix.total_ns())
    )
}

/// The CPUs that are not isolated; `None` if all are.
fn housekeeping_cpus(root: &Root, cpus: &CpuList) -> Option<CpuList> {
    let housekeeping = cpus.difference(&isolated_cpus(root));
    (!housekeeping.is_empty()).then_some(housekeeping)
}

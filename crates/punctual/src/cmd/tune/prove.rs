//! `punctual tune --prove`: keeps the changes that a measurement shows to help.

use std::path::{Path, PathBuf};

use analysis::{format_duration, prove::ROUNDS};
use anyhow::{Context, bail};
use campaign::{
    Length, NicPlan, Plan, Probe,
    prove::{Changes, PROOF_FILE, ProveHandler, Prover, Search, unfinished},
};
use machine::{
    CpuList, Root,
    tune::{self, Lock, Need, Setting},
};
use record::{
    Proof, Record, State, counted, file,
    proof::{Candidate, Conclusion},
};
use report::{
    Style,
    live::{Live, LiveMode, Progress},
};

use crate::{
    cli::{self, OutputOptions, Prove, Tune},
    cmd::measure,
    exit::Usage,
    output,
};

/// The measurement of each round if none is named.
const MEASUREMENT: [&str; 3] = ["timer", "--load", "cpu"];
/// Length of a round, ns, if the measurement names none.
const ROUND_NS: u64 = 5_000_000_000;

/// Searches for the changes of this plan that help, and makes them with --yes.
pub fn run(options: &Tune, how: &Prove, need: &Need) -> anyhow::Result<u8> {
    sys::signal::count_termination().context("cannot watch for Ctrl-C")?;
    let root = Root::system();
    let mut plan = measurement(&how.measurement, need.cpus.as_ref())?;
    if let (Some(measured), Some(tuned)) = (measured_cpus(&plan), &need.cpus)
        && !measured.difference(tuned).is_empty()
    {
        let text = format!("the rounds measure CPU {measured}, but --cpus is {tuned}: give the same CPUs, or only one");
        return Err(Usage(text).into());
    }
    // Others must not change settings between two rounds.
    let lock = Lock::take(&root)?;
    plan.tune_lock = Some(lock.clone());
    let mut planned = tune::plan(&root, need).map_err(|error| Usage(error.to_string()))?.changes;
    for (id, option) in set_in_each_round(&plan) {
        let Some(index) = planned.iter().position(|setting| setting.id == id) else { continue };
        if need.only.contains(&id) || need.set.iter().any(|choice| choice.id == id) {
            let text = format!("{id} cannot be tried and set in each round: leave out {option} after `--`");
            return Err(Usage(text).into());
        }
        say!("note: {id} is not tried: {option} sets it in each round");
        planned.remove(index);
    }
    let changes = Changes::Settings(planned.clone());
    let mut search = Search { plan, candidates: Vec::new(), changes, budget_ns: how.duration };
    // Before anything is changed. A search that is resumed has the duration of its start.
    if !how.resume && !planned.is_empty() {
        search.check_for_one()?;
    }
    let settings = possible(&lock, &root, planned)?;
    search.candidates = settings.iter().map(candidate).collect();
    search.changes = Changes::Settings(settings.clone());
    let (dir, prover) = match how.resume {
        true => {
            let here = Path::new(".");
            let dir = how.dir.clone().or_else(|| unfinished(here)).unwrap_or_else(|| here.to_owned());
            (dir.clone(), Prover::resume(&search, &dir, &root)?)
        }
        false => {
            let dir = how.dir.clone().unwrap_or_else(|| PathBuf::from(output::default_folder("tune")));
            (dir.clone(), Prover::begin(&search, &dir, output::command_line(), &root)?)
        }
    };
    if !options.output.quiet {
        print_start(prover.proof(), search.around_ns(), &dir);
    }
    let mut monitor = Monitor::new(options.output, search.around_ns());
    let (proof, ended) = prover.run(&root, &mut monitor);
    monitor.done(&proof);
    if proof.rounds.is_empty() {
        ended?;
        say!("note: stopped before the end of the first round, so there is no result, and nothing to continue");
        return Ok(record::Outcome::Inconclusive.exit_status());
    }
    let written = deliver(options, &proof, &dir);
    // Settings need no boot.
    output::first_error([ended.map(drop).map_err(Into::into), written])?;
    if let Some(conclusion) = proof.conclusion.as_ref().filter(|conclusion| !conclusion.kept.is_empty()) {
        keep(options, &lock, &root, &settings, conclusion)?;
    }
    Ok(if proof.state == State::Complete { 0 } else { record::Outcome::Inconclusive.exit_status() })
}

/// Prints the document, and writes its page.
pub(super) fn deliver(options: &Tune, proof: &Proof, dir: &Path) -> anyhow::Result<()> {
    let page = dir.join("proof.html");
    let written = file::write_atomic(&page, report::html::render_proof(proof).as_bytes());
    if options.output.json {
        output::stdout(|out| out.write_all(&file::proof_to_json(proof)))?;
    } else {
        output::print(options.output, |style, width| match options.output.quiet {
            true => report::terminal::proof_headline(proof, style),
            false => report::terminal::proof(proof, options.extent.full, style, width),
        })?;
    }
    if !options.output.quiet {
        say!("search  {}", dir.join(PROOF_FILE).display());
        if written.is_ok() {
            say!("report  {}", page.display());
        }
    }
    Ok(written?)
}

/// The settings that the kernel does not refuse: each is changed once, and restored. Names the others.
fn possible(lock: &Lock, root: &Root, settings: Vec<Setting>) -> anyhow::Result<Vec<Setting>> {
    let mut possible = Vec::new();
    for setting in settings {
        let tuning = lock.apply(root, std::slice::from_ref(&setting))?;
        match tuning.refused().iter().find(|refused| refused.is_whole) {
            Some(refused) => say!("note: {} is not tried: {}", refused.id, refused.reason),
            None => possible.push(setting),
        }
        // `tuning` is dropped here, which restores the setting.
    }
    Ok(possible)
}

/// Makes the changes that help with --yes, else prints the command that does.
fn keep(options: &Tune, lock: &Lock, root: &Root, settings: &[Setting], conclusion: &Conclusion) -> anyhow::Result<()> {
    let kept: Vec<Setting> = conclusion.kept.iter().filter_map(|&index| settings.get(index)).cloned().collect();
    let ids = kept.iter().map(|setting| setting.id).collect::<Vec<_>>().join(",");
    if !options.yes {
        let named = [("--for", &options.profile), ("--cpus", &options.cpus.as_ref().map(ToString::to_string))];
        let named = named.into_iter().filter_map(|(option, value)| Some([option.to_owned(), value.clone()?]));
        let set = options.settings.iter().filter(|choice| kept.iter().any(|setting| setting.id == choice.id));
        let set = set.map(|choice| ["--setting".to_owned(), choice.to_string()]);
        let words: Vec<String> = named.chain(set).flatten().collect();
        let words = if words.is_empty() { String::new() } else { format!("{} ", record::shell::command(&words)) };
        say!("keep    sudo punctual tune {words}--only {ids} --yes");
        return Ok(());
    }
    let done = lock.keep(root, &kept)?;
    let applied = done.applied.iter().map(|setting| setting.id).collect::<Vec<_>>().join(", ");
    say!("kept    {applied}; undo with: sudo punctual tune --revert");
    for part in done.refused.iter().filter(|refused| !refused.is_whole) {
        say!("note: a part of {} was not kept: {}", part.id, part.reason);
    }
    match done.refused.iter().find(|refused| refused.is_whole) {
        Some(refused) => bail!("{} was not kept: {}", refused.id, refused.reason),
        None => Ok(()),
    }
}

/// The settings that the measurement itself sets in each round, each with the option that does.
fn set_in_each_round(plan: &Plan) -> Vec<(&'static str, String)> {
    let NicPlan { values, irq_priority } = &plan.nic;
    let moves_irq = matches!(&plan.probe, Probe::Interrupt(probe) if probe.irq_cpu.is_some());
    let options = [
        (irq_priority.is_some(), "--irq-priority", &["irq.priority"][..]),
        (!values.is_empty(), "--nic", &["nic.settings"]),
        (moves_irq, "--irq-cpu", &["irq.affinity"]),
        (plan.hold_cpu_awake, "--hold-cpu-awake", &["cpu.idle_states"]),
        (plan.shield.is_some(), "--shield", SHIELDED),
    ];
    let given = options.into_iter().filter(|(is_given, ..)| *is_given);
    let by_option = given.flat_map(|(_, option, ids)| ids.iter().map(move |id| (*id, option.to_owned())));
    let by_id = plan.settings.iter().map(|choice| (choice.id, format!("--setting {choice}")));
    by_option.chain(by_id).collect()
}

/// The settings that a shield makes.
const SHIELDED: &[&str] = &["cpu.programs", "irq.affinity", "irq.default_affinity", "cpu.workqueues"];

/// A setting as a candidate.
fn candidate(setting: &Setting) -> Candidate {
    let writes: Vec<_> = setting.changes().collect();
    let (from, to) = (Setting::values(&writes, |write| &write.from), Setting::values(&writes, |write| &write.to));
    Candidate { id: setting.id.to_owned(), change: format!("{}: {from} -> {to}", setting.name) }
}

/// The CPUs of the threads that the rounds measure; a listener or an echo can have another one.
fn measured_cpus(plan: &Plan) -> Option<CpuList> {
    let threads = plan.phases.iter().flat_map(|phase| &phase.threads).map(|thread| thread.cpu);
    let of_threads: CpuList = threads.collect();
    if of_threads.is_empty() { plan.cpus.clone() } else { Some(of_threads) }
}

/// The plan of a round: the measurement of these words on these CPUs, unless it names others, without a record file.
pub(super) fn measurement(words: &[String], cpus: Option<&CpuList>) -> anyhow::Result<Plan> {
    let default = MEASUREMENT.map(str::to_owned);
    let words = if words.is_empty() { &default } else { words };
    let mut probe = cli::measurement(words);
    // The CPUs for real-time work are the ones to measure.
    if let Some(cpu) = probe.cpu_mut() {
        *cpu = cpu.or_else(|| cpus?.last());
    }
    let mut plan = measure::plan_of(&probe)?;
    plan.cpus = plan.cpus.or_else(|| cpus.cloned());
    if !plan.until_decided.is_empty() {
        return Err(Usage("rounds have equal lengths: leave out --until-decided".to_owned()).into());
    }
    let [phase] = plan.phases.as_mut_slice() else {
        return Err(Usage("a round is one measurement, with one phase".to_owned()).into());
    };
    if words.iter().any(|word| word == "--endless") {
        return Err(Usage("a round needs an end: replace --endless with --duration after `--`".to_owned()).into());
    }
    if !words.iter().any(|word| word.starts_with("--duration") || word.starts_with("--samples")) {
        phase.length = Length::Duration(ROUND_NS);
    }
    // The causes of spikes are not asked, and the trace would take time in each round.
    plan.blame = blame::BlameMode::Off;
    Ok(plan)
}

pub(super) fn print_start(proof: &Proof, around_ns: u64, dir: &Path) {
    let rounds = u64::from(proof.blocks) * u64::from(ROUNDS);
    let planned = format_duration(rounds * (proof.round_ns + around_ns));
    let tried = counted(proof.candidates.len() as u64 - 1, "change");
    let done = proof.rounds.len() as u64;
    let progress = if done > 0 { format!(", {} already done", record::grouped(done)) } else { String::new() };
    say!("prove   {tried}, at most {}{progress}, {planned} in total; in {}", counted(rounds, "round"), dir.display());
    for candidate in &proof.candidates {
        say!("  {}: {}", candidate.id, candidate.change);
    }
}

/// Shows the running round.
pub(super) struct Monitor {
    output_options: OutputOptions,
    /// Time before and after the measurement of a round, ns.
    around_ns: u64,
    live: Option<Live>,
}

impl Monitor {
    pub(super) const fn new(output_options: OutputOptions, around_ns: u64) -> Self {
        Self { output_options, around_ns, live: None }
    }
}

impl ProveHandler for Monitor {
    fn watch(&mut self, record: &Record, progress: &campaign::Progress, proof: &Proof) {
        let output_options = self.output_options;
        let live = self.live.get_or_insert_with(|| {
            let mode = if output_options.quiet { LiveMode::Off } else { LiveMode::Auto };
            Live::new(mode).with_style(Style::for_stderr(output_options.color.into()))
        });
        let (done, rounds) = (proof.rounds.len() as u64, u64::from(proof.blocks) * u64::from(ROUNDS));
        let round_ns = proof.round_ns + self.around_ns;
        let shown = Progress {
            phase: format!("round {} of {rounds}", done + 1),
            elapsed_ns: done * round_ns + progress.elapsed_ns,
            total_ns: Some(rounds * round_ns),
            phase_index: progress.phase_index,
            phase_count: progress.phase_count,
            decides: progress.decides,
        };
        if live.update(record, &shown) {
            sys::signal::request_termination_by_key();
        }
    }

    fn done(&mut self, _: &Proof) {
        if let Some(mut live) = self.live.take() {
            live.finish();
        }
    }
}

//! `lab --bisect`: finds the first commit between two with a larger maximum.
//!
//! `git bisect` chooses the commits, in a temporary working tree. Each commit is built there with the command of the user,
//! booted, and measured in virtual time, because the maximum hardly varies there.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, File},
    os::unix::process::CommandExt,
    path::Path,
    process::{Command, ExitStatus, Stdio},
    thread,
    time::Duration,
};

use analysis::float;
use anyhow::{Context, bail, ensure};
use guest::Event;
use record::{Outcome, Record, visible};
use rustix::process::{Pid, Signal, kill_process_group};

use super::{
    GuestStderr, Job,
    git::{self, Worktree},
    in_one_line, save,
};
use crate::{
    cli::Lab,
    cmd::rounds,
    exit::{self, Usage},
    output::{self, RecordFiles},
};

/// The rounds of a commit, unless the user names another number: the median of three ignores one unusual round.
const ROUNDS: u32 = 3;
/// The least ratio of the maxima of BAD and GOOD.
const LEAST_RATIO: f64 = 1.2;
/// Time between two checks whether the build has ended.
const CHECK_EVERY: Duration = Duration::from_millis(50);

/// Finds the first bad commit between `ends`, the good and the bad one.
pub fn run(options: &Lab, ends: &[String]) -> anyhow::Result<u8> {
    let ([good, bad], [kernel], Some(build)) = (ends, options.kernels.as_slice(), &options.build) else {
        return Err(Usage("--bisect needs one --kernel: the path of the image in the working tree".to_owned()).into());
    };
    if kernel.is_absolute() {
        let kernel = kernel.display();
        return Err(Usage(format!(
            "--kernel must be a path in the working tree, e.g. arch/x86/boot/bzImage (got {kernel}): each commit has its own image"
        ))
        .into());
    }
    let ends = [git::commit(good)?, git::commit(bad)?];
    if ends[0] == ends[1] || !git::is_ancestor(&ends[0], &ends[1])? {
        return Err(Usage(format!(
            "{good} is not an ancestor of {bad}: name an older commit as the good one, such as `git merge-base {good} \
             {bad}`"
        ))
        .into());
    }
    let folder = rounds::folder(options.record.record.as_deref(), "bisect")?;
    let folder = folder.canonicalize().with_context(|| format!("cannot find {}", folder.display()))?;
    // From here on, a signal must not end this process before the working tree is deleted.
    sys::signal::count_termination().context("cannot watch for Ctrl-C")?;
    let tree = Worktree::new(folder.join("tree"), &ends[0])?;
    let mut search =
        Search { options, kernel, build, folder: &folder, tree: &tree, tried: 0, measured: BTreeMap::new() };
    let status = search.run(&ends);
    if !options.quiet {
        say!("records {}", folder.display());
    }
    match status {
        Err(_) if is_interrupted() => {
            say!("error: interrupted before the first bad commit was found; the working tree is deleted");
            Ok(exit::INTERRUPTED)
        }
        status => status,
    }
}

fn is_interrupted() -> bool {
    sys::signal::termination_requests() > 0
}

/// A search with the maxima of the commits that it has measured, ns.
struct Search<'a> {
    options: &'a Lab,
    kernel: &'a Path,
    build: &'a str,
    folder: &'a Path,
    tree: &'a Worktree,
    /// Number of commits that were built.
    tried: u32,
    measured: BTreeMap<String, i64>,
}

/// The result of building and booting a commit.
enum Tried {
    /// The maxima of its rounds, from small to large, ns.
    Measured(Vec<i64>),
    /// The reason why it cannot be measured, in one line.
    Skipped(String),
}

impl Search<'_> {
    fn run(&mut self, [good, bad]: &[String; 2]) -> anyhow::Result<u8> {
        let good_ns = self.end(good, "GOOD")?;
        let bad_ns = self.end(bad, "BAD")?;
        let Some(limit_ns) = self.limit(&good_ns, &bad_ns)? else { return Ok(Outcome::Inconclusive.exit_status()) };
        let (mut goods, mut bad, mut skipped) = (vec![good.clone()], bad.clone(), BTreeSet::new());
        let mut next = ["start", &bad, good].map(str::to_owned).to_vec();
        loop {
            let candidates = self.candidates(&bad, &goods)?;
            if candidates.iter().all(|commit| *commit == bad || skipped.contains(commit)) {
                return self.answer(&bad, &candidates, good);
            }
            let commit = self.choose(&next)?;
            let word = match self.try_commit(&commit)? {
                Tried::Skipped(reason) => {
                    self.say(&format!("skipped  -        {}: {reason}", self.title(&commit)?))?;
                    skipped.insert(commit);
                    "skip"
                }
                Tried::Measured(maxima_ns) => {
                    let is_bad = median(&maxima_ns) > limit_ns;
                    let word = if is_bad { "bad" } else { "good" };
                    self.keep(&commit, &maxima_ns, word)?;
                    if is_bad {
                        bad = commit;
                    } else {
                        goods.push(commit);
                    }
                    word
                }
            };
            next = vec![word.to_owned()];
        }
    }

    /// Checks out the next commit by this command of `git bisect`.
    fn choose(&self, command: &[String]) -> anyhow::Result<String> {
        self.tree.reset()?;
        let words: Vec<&str> = ["bisect"].into_iter().chain(command.iter().map(String::as_str)).collect();
        self.tree.git(&words)?;
        let commit = self.tree.git(&["rev-parse", "HEAD"])?;
        ensure!(!self.measured.contains_key(&commit), "git bisect chose {commit} again");
        Ok(commit)
    }

    /// Measures GOOD or BAD, which must be measured.
    fn end(&mut self, commit: &str, name: &str) -> anyhow::Result<Vec<i64>> {
        self.tree.reset()?;
        self.tree.git(&["checkout", "--detach", "--quiet", commit])?;
        match self.try_commit(commit)? {
            Tried::Measured(maxima_ns) => {
                self.keep(commit, &maxima_ns, name)?;
                Ok(maxima_ns)
            }
            Tried::Skipped(reason) => bail!("{name} cannot be measured: {reason}"),
        }
    }

    /// The largest maximum of a good commit, ns; `None` if GOOD and BAD do not differ enough.
    fn limit(&self, good_ns: &[i64], bad_ns: &[i64]) -> anyhow::Result<Option<i64>> {
        let [good, bad] = [good_ns, bad_ns].map(|maxima_ns| analysis::format_ns(median(maxima_ns)));
        let limit_ns = match self.options.limit {
            Some(limit_ns) => {
                let limit_ns = i64::try_from(limit_ns).unwrap_or(i64::MAX);
                (median(good_ns) <= limit_ns && limit_ns < median(bad_ns)).then_some(limit_ns)
            }
            None => limit_between(good_ns, bad_ns),
        };
        match (limit_ns, self.options.limit) {
            (Some(limit_ns), _) => self.say(&format!("limit    {}", analysis::format_ns(limit_ns)))?,
            (None, Some(_)) => say!("error: GOOD has {good} and BAD {bad}: --limit must be between them"),
            (None, None) => say!(
                "error: GOOD and BAD do not differ enough: {good} and {bad}. Measure longer or with a load, or give --limit"
            ),
        }
        Ok(limit_ns)
    }

    /// The commits among which is the first bad one.
    fn candidates(&self, bad: &str, goods: &[String]) -> anyhow::Result<Vec<String>> {
        let mut words = vec!["rev-list", bad, "--not"];
        words.extend(goods.iter().map(String::as_str));
        Ok(self.tree.git(&words)?.lines().map(str::to_owned).collect())
    }

    /// Builds and boots the commit of the working tree.
    fn try_commit(&mut self, commit: &str) -> anyhow::Result<Tried> {
        self.tried += 1;
        let name = format!("{:02}-{}", self.tried, &commit[..12]);
        let log = self.folder.join(format!("{name}.log"));
        self.tree.remove_built(self.kernel)?;
        let built = self.build(&log)?;
        if !built.success() {
            return Ok(Tried::Skipped(format!("the build failed ({built}), see {}", log.display())));
        }
        let mut maxima_ns = Vec::new();
        let rounds = self.options.rounds.unwrap_or(ROUNDS);
        for round in 1..=rounds {
            let name = if rounds == 1 { name.clone() } else { format!("{name}-{round}") };
            match self.boot(&name)? {
                Ok(maximum_ns) => maxima_ns.push(maximum_ns),
                Err(error) => {
                    let text = exit::message(&error);
                    fs::write(&log, text).with_context(|| format!("cannot write {}", log.display()))?;
                    return Ok(Tried::Skipped(format!("{}, see {}", in_one_line(&error), log.display())));
                }
            }
        }
        maxima_ns.sort_unstable();
        Ok(Tried::Measured(maxima_ns))
    }

    /// Runs the build in a process group of its own, which a signal to this process ends.
    fn build(&self, log: &Path) -> anyhow::Result<ExitStatus> {
        let file = File::create(log).with_context(|| format!("cannot write {}", log.display()))?;
        let mut command = Command::new("sh");
        command.args(["-c", self.build]).current_dir(self.tree.path()).process_group(0);
        command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file);
        let mut child = command.spawn().context("cannot start sh")?;
        loop {
            if let Some(status) = child.try_wait()? {
                return Ok(status);
            }
            if is_interrupted() {
                let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
                let _ = child.wait();
                bail!("interrupted");
            }
            thread::sleep(CHECK_EVERY);
        }
    }

    /// Boots the kernel of the working tree once, and saves its files. The inner error is one of the kernel; the outer one
    /// ends the search.
    fn boot(&self, name: &str) -> anyhow::Result<anyhow::Result<i64>> {
        let mut stderr = GuestStderr::default();
        let mut listen = |event: Event| match event {
            Event::Stderr(bytes) => stderr.print(bytes, true),
            Event::Console(line) if self.options.console => say!("{line}"),
            _ => {}
        };
        let append_file = self.options.append_file.as_ref().map(|path| self.tree.path().join(path));
        let job = Job::new(self.options, &self.tree.path().join(self.kernel), append_file.as_deref());
        let booted = job.and_then(|job| Ok((job.run(&mut listen)?, job.guest.time)));
        ensure!(!is_interrupted(), "interrupted");
        let (outcome, time) = match booted {
            Ok(booted) => booted,
            Err(error) => return Ok(Err(error)),
        };
        let files = RecordFiles::choose(Some(&self.folder.join(name)), false)?;
        let Some(record) = save(&outcome, &files, time)? else {
            let said = stderr.suppressed.lines().last().unwrap_or_default().to_owned();
            return Ok(Err(anyhow::anyhow!("no record (exit status {}): {said}", outcome.status)));
        };
        Ok(maximum_ns(&record).context("the record has no maximum"))
    }

    /// Prints a measured commit, and remembers its maximum.
    fn keep(&mut self, commit: &str, maxima_ns: &[i64], word: &str) -> anyhow::Result<()> {
        let maximum_ns = median(maxima_ns);
        self.measured.insert(commit.to_owned(), maximum_ns);
        self.say(&format!("{word:<8} {:<8} {}", analysis::format_ns(maximum_ns), self.title(commit)?))
    }

    fn say(&self, line: &str) -> anyhow::Result<()> {
        if self.options.quiet { Ok(()) } else { output::stdout(|out| writeln!(out, "{line}")) }
    }

    /// The short name and the subject of a commit.
    fn title(&self, commit: &str) -> anyhow::Result<String> {
        let title = self.tree.git(&["log", "--max-count=1", "--abbrev=12", "--format=%h %s", commit])?;
        Ok(visible::one_line(&title))
    }

    /// Prints the first bad commit, or those among which it is.
    fn answer(&self, bad: &str, candidates: &[String], good: &str) -> anyhow::Result<u8> {
        let format = |commit: &str| self.measured.get(commit).map(|&ns| analysis::format_ns(ns));
        let after = format(bad).unwrap_or_default();
        if let [_] = candidates {
            let parent = self.tree.git(&["rev-parse", &format!("{bad}^")])?;
            let before = format(&parent).or_else(|| format(good)).unwrap_or_default();
            let title = self.title(bad)?;
            output::stdout(|out| writeln!(out, "first    {title}: {after}, {before} before it"))?;
            return Ok(Outcome::Pass.exit_status());
        }
        output::stdout(|out| writeln!(out, "first    one of {}, because the others were skipped:", candidates.len()))?;
        for commit in candidates {
            let title = self.title(commit)?;
            output::stdout(|out| writeln!(out, "         {title}"))?;
        }
        Ok(Outcome::Inconclusive.exit_status())
    }
}

/// The geometric mean of the rounds of GOOD and BAD that are nearest to each other, ns. `None` if their ratio is less than
/// [`LEAST_RATIO`], or less than the ratio of the rounds of one of them.
fn limit_between(good_ns: &[i64], bad_ns: &[i64]) -> Option<i64> {
    let ratio = |larger_ns: i64, smaller_ns: i64| larger_ns as f64 / smaller_ns.max(1) as f64;
    let spread = |maxima_ns: &[i64]| Some(ratio(*maxima_ns.last()?, *maxima_ns.first()?));
    let (worst_good_ns, best_bad_ns) = (*good_ns.last()?, *bad_ns.first()?);
    let least = LEAST_RATIO.max(spread(good_ns)?).max(spread(bad_ns)?);
    let middle_ns = (worst_good_ns.max(1) as f64 * best_bad_ns as f64).sqrt();
    (ratio(best_bad_ns, worst_good_ns) >= least).then_some(float::to_i64(middle_ns.round()))
}

/// The median of sorted values, of an even number the lower one in the middle.
fn median(sorted: &[i64]) -> i64 {
    sorted[(sorted.len() - 1) / 2]
}

/// The largest value of the record, ns.
fn maximum_ns(record: &Record) -> Option<i64> {
    analysis::figures(record).iter().filter_map(|figures| figures.max_ns).max()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_between_rounds_that_do_not_overlap() {
        assert_eq!(limit_between(&[10_000], &[40_000]), Some(20_000));
        assert_eq!(limit_between(&[9_000, 9_500, 10_000], &[40_000, 50_000, 60_000]), Some(20_000));
        // They overlap, are too near, or vary within an end as much as between the ends.
        assert_eq!(limit_between(&[10_000, 30_000], &[20_000, 40_000]), None);
        assert_eq!(limit_between(&[10_000], &[11_900]), None);
        assert_eq!(limit_between(&[5_000, 10_000], &[19_000, 19_000]), None);
        assert_eq!(limit_between(&[40_000], &[10_000]), None);
    }

    #[test]
    fn the_median_of_three_ignores_the_largest() {
        assert_eq!((median(&[1]), median(&[1, 2]), median(&[1, 2, 90])), (1, 1, 2));
    }
}
